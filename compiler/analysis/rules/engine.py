"""Rules of engine operations: their knobs, sources and tiebreaks (ir.md §3)."""

from collections.abc import Iterator

from crucible.compiler.analysis.rules.case import Case, kind_of
from crucible.schemas.diagnostic import At, Finding
from crucible.schemas.ir import EvaluateTask, TopKTask


def engine_advisory(case: Case) -> Iterator[Finding]:
    """Find engine tasks that are not required."""
    for index, task in case.engine_tasks():
        if not task.required:
            yield Finding("engine-advisory", f'the engine task "{task.name}" is advisory; make it required', At(index))


def engine_isolated(case: Case) -> Iterator[Finding]:
    """Find engine tasks in a worktree of their own."""
    for index, task in case.engine_tasks():
        if task.isolation is not None:
            message = f'the engine task "{task.name}" is isolated; leave isolation out'
            yield Finding("engine-isolated", message, At(index))


def engine_join(case: Case) -> Iterator[Finding]:
    """Find engine tasks but grade that run on whatever passed."""
    for index, task in case.engine_tasks():
        if task.join != "all" and task.op != "grade":
            message = f'"{task.name}" ({task.op}) joins {task.join}; only grade may, let it join = "all"'
            yield Finding("engine-join", message, At(index))


def engine_in_playbook(case: Case) -> Iterator[Finding]:
    """Find engine tasks and top_k in a playbook."""
    if case.workflow.type == "playbook":
        for index, task in enumerate(case.tasks):
            if task.operation or isinstance(task, TopKTask):
                kind = kind_of(task)
                message = f'"{task.name}" ({kind}) is in a playbook, which has agent, command and evaluate tasks only'
                yield Finding("engine-in-playbook", message, At(index))


def source_required(case: Case) -> Iterator[Finding]:
    """Find grade and decide tasks without a source."""
    for index, task in case.engine_tasks("grade", "decide"):
        if task.source is None and not case.is_refused(index, "source"):
            what = "an evaluate task for its score" if task.op == "grade" else "its measurement"
            yield Finding("source-required", f'"{task.name}" ({task.op}) has no source; name {what}', At(index))


def source_unexpected(case: Case) -> Iterator[Finding]:
    """Find a source on an operation that takes none."""
    for index, task in case.engine_tasks("propose", "apply", "measure"):
        if task.source is not None:
            message = f'"{task.name}" ({task.op}) has a source; only grade and decide do'
            yield Finding("source-unexpected", message, At(index))


def tiebreak_unexpected(case: Case) -> Iterator[Finding]:
    """Find a tiebreak on an operation that takes none."""
    for index, task in case.engine_tasks("propose", "apply", "measure", "decide"):
        if task.tiebreak is not None:
            message = f'"{task.name}" ({task.op}) has a tiebreak; only grade does'
            yield Finding("tiebreak-unexpected", message, At(index))


def _named(case: Case, field: str, *operations: str) -> Iterator[tuple[int, str, int]]:
    """Yield the engine tasks whose source or tiebreak names another task, the name, and that task."""
    for index, task in case.engine_tasks(*operations):
        name = task.source if field == "source" else task.tiebreak
        found = case.graph.find(name)
        # A task that names itself and depends on itself has made one mistake: self-dependency.
        if name is not None and found is not None and not (found == index and name in task.depends_on):
            yield index, name, found


def source_not_ancestor(case: Case) -> Iterator[Finding]:
    """Find sources that do not run before the task that reads them."""
    yield from _not_ancestors(case, "source", "grade", "decide")


def tiebreak_not_ancestor(case: Case) -> Iterator[Finding]:
    """Find tiebreaks that do not run before the grade."""
    yield from _not_ancestors(case, "tiebreak", "grade")


def _not_ancestors(case: Case, field: str, *operations: str) -> Iterator[Finding]:
    for index, name, found in _named(case, field, *operations):
        if case.graph.is_ancestor(found, index) or index in case.graph.on_cycles or not case.is_sure(index):
            continue
        task = case.tasks[index]
        if task.operation == "grade" and not isinstance(case.tasks[found], EvaluateTask):
            continue  # the wrong task is named; where it runs does not matter
        message = f'"{task.name}" reads "{name}", which does not run before it; let "{task.name}" depend on it'
        yield Finding(f"{field}-not-ancestor", message, At(index, field))


def grade_source_not_evaluate(case: Case) -> Iterator[Finding]:
    """Find grades whose score comes from another kind of task."""
    yield from _not_evaluates(case, "source", "grade-source-not-evaluate")


def tiebreak_not_evaluate(case: Case) -> Iterator[Finding]:
    """Find grades whose tiebreak is another kind of task."""
    yield from _not_evaluates(case, "tiebreak", "tiebreak-not-evaluate")


def _not_evaluates(case: Case, field: str, code: str) -> Iterator[Finding]:
    what = "score" if field == "source" else "tiebreak"
    for index, name, found in _named(case, field, "grade"):
        task = case.tasks[found]
        if not isinstance(task, EvaluateTask) and not case.is_of_unknown_kind(found):
            kind = kind_of(task)
            message = f'"{case.tasks[index].name}" takes its {what} from "{name}" ({kind}); name an evaluate task'
            yield Finding(code, message, At(index, field))


def grade_source_advisory(case: Case) -> Iterator[Finding]:
    """Find grades whose score comes from an advisory task."""
    for index, name, found in _named(case, "source", "grade"):
        task = case.tasks[found]
        if isinstance(task, EvaluateTask) and not task.required:
            message = (
                f'"{case.tasks[index].name}" takes its score from "{name}", which is advisory; make "{name}" required'
            )
            yield Finding("grade-source-advisory", message, At(index, "source"))


def shared_measurement(case: Case) -> Iterator[Finding]:
    """Find a second decide with the same measurement."""
    first: dict[int, int] = {}
    for index, name, found in _named(case, "source", "decide"):
        other = first.setdefault(found, index)
        if other != index:
            names = f'"{case.tasks[other].name}" and "{case.tasks[index].name}"'
            message = f'{names} both decide on "{name}"; give each its own measurement'
            related = ((f'"{case.tasks[other].name}" decides on it', At(other, "source")),)
            yield Finding("shared-measurement", message, At(index, "source"), related)


def direction_conflict(case: Case) -> Iterator[Finding]:
    """Find score sources whose direction is not that of the manifest's judge."""
    wanted = case.facts.judge_direction
    seen: set[int] = set()
    for _, name, found in _named(case, "source", "grade"):
        task = case.tasks[found]
        if wanted is None or found in seen or not isinstance(task, EvaluateTask) or task.direction in (None, wanted):
            continue
        seen.add(found)
        message = (
            f'"{name}" gives the score, and {task.direction} is better there, but [judge].direction is "{wanted}"; '
            "let the two agree"
        )
        yield Finding("direction-conflict", message, At(found, "direction"))

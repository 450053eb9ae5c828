"""Rules of single dependencies and of cycles (codes.md, Graph)."""

from collections.abc import Iterator

from crucible.compiler.analysis.rules.case import LOOP_ENTRY, Case, first_places
from crucible.schemas.diagnostic import At, Finding
from crucible.schemas.ir import name_fault
from crucible.schemas.spelling import MOST_SEARCHED, hint


def unknown_task(case: Case) -> Iterator[Finding]:
    """Find names in dependencies, sources, tiebreaks and the result that no task bears.

    Of a name listed twice the first is the unknown one, the second the duplicate.
    """
    for number, (name, at, own) in enumerate(_unknown_names(case)):
        tail, guess = hint(name, _candidates(case, own) if number < MOST_SEARCHED else (), "tasks")
        yield Finding("unknown-task", f'"{name}" is no task of this workflow{tail}', at, suggestion=guess)


def _unknown_names(case: Case) -> Iterator[tuple[str, At, str | None]]:
    """Yield unknown names with their places and the tasks that they stand in, but for tasks that were not listed."""
    for index, task in enumerate(case.tasks):
        if not all(map(case.is_known, task.depends_on)):
            for name, element in first_places(task.depends_on).items():
                if not case.is_known(name) and name not in case.facts.dropped:
                    yield name, At(index, "depends_on", element), task.name
    for index, engine in case.engine_tasks():
        for field, named in (("source", engine.source), ("tiebreak", engine.tiebreak)):
            if named is not None and named not in case.graph.bearers and named not in case.facts.dropped:
                yield named, At(index, field), engine.name
    result = case.workflow.result
    if result is not None and result not in case.graph.bearers and result not in case.facts.dropped:
        yield result, At(None, "result"), None


def _candidates(case: Case, own: str | None) -> list[str]:
    """Return the tasks that may have been meant, never a task in its own list."""
    made = {case.tasks[index].name for index in case.facts.engine_origin} - {LOOP_ENTRY}  # they run after all extras
    candidates = [other for other in case.graph.bearers if other != own and name_fault(other) is None]
    candidates = [other for other in candidates if other not in made]
    if case.facts.splice and own is not None:
        candidates.append(LOOP_ENTRY)
    return candidates


def self_dependency(case: Case) -> Iterator[Finding]:
    """Find tasks that depend on themselves; of twins either may be meant, and they have their own rule."""
    for index, task in enumerate(case.tasks):
        if task.name in task.depends_on and not case.is_shared(task.name):
            at = At(index, "depends_on", task.depends_on.index(task.name))
            yield Finding("self-dependency", f'"{task.name}" depends on itself; remove the dependency', at)


def duplicate_dependency(case: Case) -> Iterator[Finding]:
    """Find a dependency that is named a second time."""
    for index, task in enumerate(case.tasks):
        if len(task.depends_on) == 1:
            continue
        first = first_places(task.depends_on)
        for element, name in enumerate(task.depends_on):
            if first[name] != element and not case.is_shared(name):
                message = f'"{task.name}" depends on "{name}" twice; name it once'
                yield Finding("duplicate-dependency", message, At(index, "depends_on", element))


def dependency_cycle(case: Case) -> Iterator[Finding]:
    """Find tasks that wait for each other: one shortest cycle per knot of them."""
    for cycle in case.graph.cycles():
        names = [case.tasks[index].name for index in cycle]
        path = " -> ".join([*names, names[0]])
        related = []
        for index, to in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
            message = f'"{case.tasks[index].name}" depends on "{case.tasks[to].name}"'
            related.append((message, At(index, "depends_on", case.graph.edges[index][to])))
        yield Finding(
            "dependency-cycle",
            f"these tasks wait for each other: {path}; remove one of the dependencies",
            At(cycle[0]),
            tuple(related),
        )

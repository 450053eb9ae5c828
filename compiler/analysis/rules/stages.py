"""Rules of the two stages: the iteration and the epilogue (ir.md §3)."""

from collections.abc import Iterator

from crucible.compiler.analysis.rules.case import LOOP_ENTRY, Case
from crucible.schemas.diagnostic import At, Finding
from crucible.schemas.ir import EngineTask


def cross_stage_dependency(case: Case) -> Iterator[Finding]:
    """Find dependencies from one stage on the other; an engine task in the epilogue is another mistake."""
    misplaced = {index for index, task in case.engine_tasks() if task.is_epilogue}
    for index, task in enumerate(case.tasks):
        if case.is_refused(index, "stage") or index in misplaced:
            continue
        for to, element in case.graph.edges[index].items():
            other = case.tasks[to]
            if other.stage != task.stage and not case.is_refused(to, "stage") and to not in misplaced:
                message = (
                    f'"{task.name}" is in the {task.stage} and "{other.name}" in the {other.stage}; '
                    "a dependency stays within its stage"
                )
                related = ((f'"{other.name}" is in the {other.stage}', At(to)),)
                yield Finding("cross-stage-dependency", message, At(index, "depends_on", element), related)
        # The loop's own propose is no task of the splice, but it iterates.
        if (
            case.facts.splice
            and task.is_epilogue
            and LOOP_ENTRY in task.depends_on
            and LOOP_ENTRY not in case.graph.bearers
        ):
            message = (
                f'"{task.name}" is in the epilogue and "{LOOP_ENTRY}" in the iteration; '
                "a dependency stays within its stage"
            )
            at = At(index, "depends_on", task.depends_on.index(LOOP_ENTRY))
            yield Finding("cross-stage-dependency", message, at)


def engine_in_epilogue(case: Case) -> Iterator[Finding]:
    """Find engine tasks in the epilogue."""
    for index, task in case.engine_tasks():
        if task.is_epilogue:
            message = f'"{task.name}" is an engine task and in the epilogue; engine operations belong to the iteration'
            yield Finding("engine-in-epilogue", message, At(index))


def epilogue_result(case: Case) -> Iterator[Finding]:
    """Find a result in the epilogue; of an engine task there its own rule says that it is misplaced."""
    found = case.graph.find(case.workflow.result)
    if found is None or isinstance(case.tasks[found], EngineTask) or case.is_refused(found, "stage"):
        return
    if case.tasks[found].is_epilogue:
        message = f'the result "{case.workflow.result}" is in the epilogue; name a task of the iteration'
        yield Finding("epilogue-result", message, At(None, "result"))

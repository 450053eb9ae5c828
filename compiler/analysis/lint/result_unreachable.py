"""result-unreachable: a task that neither leads to the result nor follows from it."""

from collections.abc import Iterator

from crucible.compiler.analysis.rules.case import Case
from crucible.schemas.diagnostic import At, Finding


def result_unreachable(case: Case) -> Iterator[Finding]:
    """Find tasks of the iteration that say nothing to the result; of several in a row the last one is where it ends."""
    result = case.graph.find(case.workflow.result)
    if result is None:
        return
    stray = {
        index
        for index, task in enumerate(case.tasks)
        if index != result
        and not task.is_epilogue
        and not case.graph.is_ancestor(index, result)
        and not case.graph.is_ancestor(result, index)
    }
    waited_for = {to for index in stray for to in case.graph.edges[index]}
    for index in sorted(stray - waited_for):
        message = f'"{case.tasks[index].name}" does not lead to the result, "{case.tasks[result].name}"'
        yield Finding("result-unreachable", f"{message}; let a task on the way there depend on it", At(index))

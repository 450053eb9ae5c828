"""redundant-dependency: one that other dependencies imply, and whose output is not what the task is for (ir.md §3)."""

from collections.abc import Iterator

from crucible.compiler.analysis.rules.case import Case
from crucible.schemas.diagnostic import At, Finding
from crucible.schemas.ir import EngineTask, TopKTask


def redundant_dependency(case: Case) -> Iterator[Finding]:
    """Find dependencies that the task would wait for anyway; a grade and a top_k read what they depend on."""
    graph = case.graph
    needed = graph.reduction()
    passed = _passed_before(case)
    for index, task in enumerate(case.tasks):
        if task.join == "passed" or task.kind == TopKTask.kind or task.operation == "grade":
            continue
        source = graph.find(task.source) if isinstance(task, EngineTask) else None
        for to, element in sorted(graph.edges[index].items(), key=lambda edge: edge[1]):
            if (index, to) in needed or to == source or index in case.facts.engine_origin:
                continue
            through = next((other for other in graph.edges[index] if passed[other] >> to & 1), None)
            if through is not None:
                message = (
                    f'"{task.name}" waits for "{case.tasks[to].name}" already, behind "{case.tasks[through].name}"'
                )
                yield Finding("redundant-dependency", f"{message}; remove it", At(index, "depends_on", element))


def _passed_before(case: Case) -> list[int]:
    """Return for each task those that have passed when it has, as bits; a join that takes failures says of none."""
    passed = [0] * len(case.tasks)
    for index in case.graph.order:
        if case.tasks[index].join != "passed":
            for to in case.graph.edges[index]:
                passed[index] |= passed[to] | 1 << to
    return passed

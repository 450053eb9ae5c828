"""Rules of joins and requirement: what may fail, and what then (ir.md §3)."""

from collections.abc import Iterator

from crucible.compiler.analysis.rules.case import Case
from crucible.schemas.diagnostic import At, Finding
from crucible.schemas.ir import EngineTask, Task, TopKTask


def required_behind_advisory(case: Case) -> Iterator[Finding]:
    """Find edges from a required task that joins all to an advisory task.

    This is the contract's rule of paths (§1.3): on a path of such joins from a required task to an
    advisory one, the last required task has such an edge. Where the wrong value lies in an engine
    task or in a grade's score, their own rules say so.
    """
    for index, task in enumerate(case.tasks):
        if not task.required or task.join != "all" or case.is_refused(index, "required", "join", "kind", "op"):
            continue
        made = index in case.facts.engine_origin
        if made and case.vague:
            continue  # a misspelt dependency elsewhere may be why this one feeds the loop's task
        for to in case.graph.edges[index]:
            other = case.tasks[to]
            if made and (to in case.lost or case.is_refused(to, "stage")):
                continue  # it depends on what runs behind this one, so it does not feed it; or it may not iterate
            if (
                other.required
                or case.is_refused(to, "required", "kind", "op")
                or isinstance(other, EngineTask)
                or case.graph.in_one_cycle(index, to)
            ):
                continue
            if task.operation == "grade" and getattr(task, "source", None) == other.name:
                continue
            yield _behind(index, to, task, other, made=made)


def _behind(index: int, to: int, task: Task, other: Task, *, made: bool) -> Finding:
    if task.operation and task.operation != "grade":
        way_out = 'put a task with join = "passed" between them'
    else:
        way_out = f'let "{task.name}" join = "passed"'
    way_out = f'make "{other.name}" required, or {way_out}'
    if made:
        return Finding(
            "required-behind-advisory",
            f'"{other.name}" is advisory, but feeds "{task.name}", which is required and joins all; {way_out}',
            At(to),
            ((f'"{task.name}" is required and joins all', At(index)),),
        )
    return Finding(
        "required-behind-advisory",
        f'"{task.name}" is required and joins all, but depends on "{other.name}", which is advisory; {way_out}',
        At(index),
        ((f'"{other.name}" is advisory', At(to)),),
    )


def join_without_dependencies(case: Case) -> Iterator[Finding]:
    """Find tasks that choose among dependencies and have none; an engine task's own rules ask for its."""
    for index, task in enumerate(case.tasks):
        if task.depends_on or isinstance(task, EngineTask) or case.is_refused(index, "depends_on", "kind", "op"):
            continue
        if isinstance(task, TopKTask):
            message = f'"{task.name}" keeps the best of its dependencies and has none; name at least one'
            yield Finding("join-without-dependencies", message, At(index, "depends_on"))
        elif task.join == "passed":
            message = (
                f'"{task.name}" joins passed and depends on nothing; name at least one dependency, or leave join out'
            )
            yield Finding("join-without-dependencies", message, At(index, "join"))

"""Rules of the splice form, whose tasks the default loop takes in (language.md §7)."""

from collections.abc import Iterator

from crucible.compiler.analysis.rules.case import Case
from crucible.schemas.diagnostic import At, Finding


def engine_in_splice(case: Case) -> Iterator[Finding]:
    """Find engine tasks in a splice: the loop around it has its own."""
    if case.facts.splice:
        for index, task in case.engine_tasks():
            message = (
                f'"{task.name}" is an engine task, and the loop around the splice has its own; '
                "leave it out, or write workflow(type = …, tasks = …, result = …)"
            )
            yield Finding("engine-in-splice", message, At(index))


def splice_advisory_sink(case: Case) -> Iterator[Finding]:
    """Find advisory iteration tasks that nothing depends on: they would feed the loop's required apply.

    With a dependency anywhere that leads nowhere it is not known what nothing depends on.
    """
    if not case.facts.splice or case.vague:
        return
    used = {to for edges in case.graph.edges for to in edges}
    for index, task in enumerate(case.tasks):
        if (
            task.required
            or task.is_epilogue
            or task.operation
            or index in used
            or case.is_refused(index, "stage", "kind")
        ):
            continue
        message = f'"{task.name}" is advisory, but feeds the loop\'s required apply; make it required'
        yield Finding("splice-advisory-sink", message, At(index))

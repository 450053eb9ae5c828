"""confusable-name: two tasks whose names people take for one."""

from collections.abc import Iterator

from crucible.compiler.analysis.rules.case import Case
from crucible.schemas.diagnostic import At, Finding


def confusable_name(case: Case) -> Iterator[Finding]:
    """Find names that are equal but for case, or for ``-`` and ``_``; the author's own is the one to change."""
    first: dict[str, int] = {}
    made = case.facts.engine_origin
    for index, task in sorted(enumerate(case.tasks), key=lambda each: (each[0] not in made, each[0])):
        other = first.setdefault(task.name.casefold().replace("-", "_"), index)
        if other != index:
            name = case.tasks[other].name
            yield Finding(
                "confusable-name",
                f'"{task.name}" is easily taken for "{name}"; choose names that differ in more than case, "-" and "_"',
                At(index, "name"),
                ((f'"{name}" is here', At(other, "name")),),
            )

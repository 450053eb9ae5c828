"""score-undeclared: a grade takes its score from a task that does not promise one."""

from collections.abc import Iterator

from crucible.compiler.analysis.rules.case import Case
from crucible.schemas.diagnostic import At, Finding


def score_undeclared(case: Case) -> Iterator[Finding]:
    """Find score sources that declare no emits; one that declares others is an error (emits-omits-score)."""
    for index, grade in case.engine_tasks("grade"):
        source = case.graph.find(grade.source)
        if source is not None and not case.tasks[source].emits:
            message = f'"{grade.name}" takes its score from "{grade.source}", which promises none'
            yield Finding(
                "score-undeclared",
                f'{message}; declare emits = ["score"] there',
                At(index, "source"),
                (("it is built here", At(source)),),
            )

"""A workflow as text: its tasks as a table in dependency order, a line each, and what else was asked about them.

It stands apart from the picture because it needs no drawing program and is read in a terminal.
"""

from collections.abc import Mapping, Sequence

from crucible.compiler.analysis.graph import Graph
from crucible.compiler.output import gist
from crucible.compiler.output.report import harmless
from crucible.schemas.canonical import digest
from crucible.schemas.ir import Task, Workflow

_MOST = {"task": 40, "after": 40, "runs": 60}


def to_text(
    workflow: Workflow, whole: Workflow, prompts: Mapping[str, str], fates: Mapping[str, str], remarks: Sequence[str]
) -> str:
    """Return the table of a workflow, or of a part of one.

    ``fates`` says by name what would become of tasks, ``remarks`` are lines below the table.
    """
    then = ["then"] if fates else []
    rows = [["", "task", "what", *then, "after", "runs"]]
    for number, index in enumerate(Graph(workflow).order, 1):
        task = workflow.task[index]
        fate = [harmless(fates[task.name])] if fates else []
        rows.append(
            [str(number), harmless(task.name), _what(task, workflow), *fate, _after(task), _runs(task, prompts)]
        )
    lines = [f"{gist.lane(whole)}, {len(whole.task)} task{'' if len(whole.task) == 1 else 's'}"]
    if whole.result is not None:
        lines.append(f"result  {harmless(whole.result)}")
    lines.append(f"digest  {digest(whole)}")
    return "\n".join([*lines, "", *grid(rows), "", *map(harmless, remarks)]) + "\n"


def grid(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of cells under each other, the first row being their titles."""
    cut = [
        [gist.cut(cell, _MOST[title]) if title in _MOST else cell for title, cell in zip(rows[0], row, strict=True)]
        for row in rows
    ]
    widths = [max(map(gist.width, column)) for column in zip(*cut, strict=True)]
    return [
        "  ".join(cell + " " * (width - gist.width(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cut
    ]


def _what(task: Task, workflow: Workflow) -> str:
    words = [gist.kind(task), *gist.traits(task)]
    if task.session is not None:
        words.append(f"session {task.session}")
    if task.is_epilogue:
        words.append("epilogue")
    if task.name == workflow.result:
        words.append("result")
    return ", ".join(words)


def _runs(task: Task, prompts: Mapping[str, str]) -> str:
    return "; ".join(part for part in (gist.runs(task, prompts), gist.bar(task)) if part)


def _after(task: Task) -> str:
    names = ", ".join(map(harmless, task.depends_on))
    return f"any of {names}" if task.join == "passed" and len(task.depends_on) > 1 else names

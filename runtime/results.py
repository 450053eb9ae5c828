"""RESULTS.md: the rows of a run as a table, for whoever reads the workspace.

In go the rows, out comes the text; its head tells our table from an author's file of that name.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crucible.runtime.history import Row

_MOST_OF_NOTE: Final = 300  # characters
HEAD: Final = """\
# Results

| iteration | decision | score | best | note |
| --- | --- | --- | --- | --- |
"""


def text(rows: "Iterable[Row]") -> str:
    """Return the whole file: a line for each row."""
    lines = []
    for row in rows:
        cells = (str(row.number), row.decision, _cell(row.score), _cell(row.plain.get("best")), line(row.note))
        shown = (" ".join(cell.replace("\\", "\\\\").replace("|", "\\|").split()) for cell in cells)
        lines.append(f"| {' | '.join(shown)} |\n")
    return HEAD + "".join(lines)


def is_ours(content: bytes) -> bool:
    """Tell whether a file begins as ours do; one that somebody was killed at may not be whole."""
    head = HEAD.encode()
    return head.startswith(content[: len(head)])


def line(note: str) -> str:
    """Return of a note, which may be a gate's and of any kind and length, what stands in a line with others."""
    return "".join(each if each.isprintable() else " " for each in note.partition("\n")[0][:_MOST_OF_NOTE]).strip()


def _cell(score: object) -> str:
    return "" if score is None else str(score)

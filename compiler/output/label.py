"""How a task looks in the picture: its shape, its colours, and the lines of its label.

A task and what is painted on it in, attributes of DOT out. Shapes and line styles say by themselves what
the colours say, for whoever sees the picture in grey.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from crucible.compiler.output import gist
from crucible.compiler.output.drawing import SHAPES
from crucible.compiler.output.report import harmless
from crucible.schemas.ir import Task

FONT: Final = "Helvetica"
MONO: Final = "Courier"
NAME_POINTS: Final = 13
_LONG_NAME_POINTS: Final = 10  # of a name of more lines than a few, where there is little room
_FEW_LINES: Final = 2
SMALL_POINTS: Final = 9
_NOT_IN_XML: Final = re.compile("[\ufffe\uffff]")
_ESCAPE: Final = "\\"
_NAME_COLUMNS: Final = 30
_BROAD_LETTERS: Final = "MWmw@%&"
_CODE_COLUMNS: Final = 34
_LINE_COLUMNS: Final = 40
_OFF_THE_ARROW: Final = 14  # points
_NOTE_LINES: Final = 2
INK: Final = "#1b1b1f"
FAINT: Final = "#6f6f78"
GREY: Final = "#74747c"
GREY_FILL: Final = "#f3f3f4"


class Look(NamedTuple):
    """The shape and the colours of a kind: its fill and its border, which is dark enough for text."""

    shape: str
    fill: str
    border: str
    rounded: bool = False
    margin: str = "0.11,0.05"


LOOKS: Final[dict[str, Look]] = {
    "agent": Look("box", "#d3e3ff", "#1f4f9e", rounded=True),
    "command": Look("box", "#f8f8f8", "#3d3d44"),
    "evaluate": Look("hexagon", "#ffe7b5", "#7d4f00", margin="0,0"),
    "top_k": Look("invtrapezium", "#dccbf7", "#5a3697", margin="0,0"),
    "propose": Look("ellipse", "#c4ebcf", "#146c34", margin="0,0"),
    "apply": Look("box3d", "#c4ebcf", "#146c34", margin="0.14,0.08"),
    "measure": Look("octagon", "#c4ebcf", "#146c34", margin="0.02,0.02"),
    "grade": Look("invhouse", "#c4ebcf", "#146c34", margin="0,0"),
    "decide": Look("diamond", "#c4ebcf", "#146c34", margin="0,0"),
}
SESSIONS: Final = ("#b9d7f0", "#f5c6a5", "#c3e3b6", "#dcc6ec", "#f2dd94", "#f0bfd0", "#b5e2dd", "#d3d3d3")

# The words of Marks, with the colour of their badge and the width of the border they give.
BADGES: Final = {
    "fail": "#b3261e",
    "blocked": "#5f5f68",
    "skipped": "#5f5f68",
    "truncated": "#5f5f68",
    "added": "#146c34",
    "removed": "#b3261e",
    "weakened": "#a63c00",
    "changed": "#1f4f9e",
}
DEAD: Final = frozenset({"blocked", "skipped", "truncated"})


class Paint(NamedTuple):
    """What is painted on one task: a state, a change, a line about them."""

    state: str = ""
    change: str = ""
    note: str = ""


def node(
    task: Task,
    prompts: Mapping[str, str],
    sessions: Mapping[str, str],
    paint: Paint,
    *,
    is_result: bool,
    is_crowded: bool = False,
) -> dict[str, str]:
    """Return the attributes of a task; ``sessions`` has the colour of each session.

    ``is_crowded`` tells that it is one of so many that their room decides about the scale of the picture.
    """
    look = LOOKS[gist.kind(task)]
    is_dead = paint.state in DEAD
    border = GREY if is_dead else look.border
    styles = ["filled"]
    if look.rounded:
        styles.append("rounded")
    if not task.required:
        styles.append("dashed")
    attributes = {
        "label": _label(
            task, prompts, sessions, paint, look, is_dead=is_dead, is_result=is_result, is_crowded=is_crowded
        ),
        "shape": look.shape,
        "style": ",".join(styles),
        "fillcolor": GREY_FILL if is_dead else look.fill,
        "color": border,
        "margin": look.margin,
    }
    width = 1.0
    badge = paint.change or (paint.state if paint.state == "fail" else "")
    if badge:
        attributes["color"] = BADGES[badge]
        width = 2.0
    if is_result:
        width = 3.5
    if width > 1:
        attributes["penwidth"] = f"{width:g}"
    if task.isolation is not None:
        attributes["peripheries"] = "2"
    return attributes


def _label(
    task: Task,
    prompts: Mapping[str, str],
    sessions: Mapping[str, str],
    paint: Paint,
    look: Look,
    *,
    is_dead: bool,
    is_result: bool,
    is_crowded: bool,
) -> str:
    """Return the lines of a label as an HTML-like table: what it is, its name, what it runs."""
    ink, tint, faint = (GREY, GREY, GREY) if is_dead else (INK, look.border, "#45454d")
    rows = [_row(_badge(word)) for word in (paint.change, paint.state if paint.state != "pass" else "") if word]
    words = [gist.kind(task), *gist.traits(task), *(["result"] if is_result else [])]
    rows.append(_row(font(" · ".join(words), SMALL_POINTS, tint)))
    lines = _name_lines(harmless(task.name))
    points = _LONG_NAME_POINTS if is_crowded and len(lines) > _FEW_LINES else NAME_POINTS
    rows += [_row(f"<B>{font(line, points, ink)}</B>", _least_width(line, points)) for line in lines]
    is_code = task.kind in {"command", "evaluate"}
    runs = gist.cut(gist.runs(task, prompts), _CODE_COLUMNS if is_code else _LINE_COLUMNS)
    if runs:
        rows.append(_row(font(runs, SMALL_POINTS, faint, MONO if is_code else "")))
    if gist.bar(task):
        rows.append(_row(font(gist.bar(task), SMALL_POINTS, ink)))
    if task.session is not None:
        text = font(f"session {task.session}", SMALL_POINTS, ink)
        rows.append(f'<TR><TD BGCOLOR="{GREY_FILL if is_dead else sessions[task.session]}">{text}</TD></TR>')
    if paint.note:
        note = gist.cut(harmless(paint.note), _NOTE_LINES * _LINE_COLUMNS)
        rows += [_row(f"<I>{font(line, SMALL_POINTS, INK)}</I>") for line in gist.fold(note, _LINE_COLUMNS)]
    return table(rows)


def table(rows: Iterable[str]) -> str:
    """Return a label that is a table without lines."""
    return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="1">{"".join(rows)}</TABLE>>'


def beside(content: str) -> str:
    """Return a label of an arrow that stands off it."""
    return (
        '<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0">'
        f'<TR><TD WIDTH="{_OFF_THE_ARROW}"></TD><TD>{content}</TD></TR></TABLE>>'
    )


def chip(text: str, border: str, inner: int = 0) -> str:
    """Return one entry of the legend: its words, framed by what they explain."""
    return (
        f'<TABLE {border} CELLBORDER="{inner}" CELLPADDING="2" COLOR="{FAINT}">'
        f"<TR><TD>{font(text, SMALL_POINTS, FAINT)}</TD></TR></TABLE>"
    )


def chips(entries: Iterable[str]) -> str:
    """Return the entries of the legend beside each other."""
    cells = "".join(f"<TD>{entry}</TD>" for entry in ["", *entries, ""])  # empty ones take what is left of the width
    return f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="4"><TR>{cells}</TR></TABLE>'


def _row(content: str, width: int = 0) -> str:
    wide = f' WIDTH="{width}"' if width else ""
    return f"<TR><TD{wide}>{content}</TD></TR>"


def _name_lines(name: str) -> list[str]:
    """Fold a name into lines, the shorter the more of its letters are broad."""
    share = sum(each in _BROAD_LETTERS for each in name) / max(len(name), 1)
    return gist.fold(name, round(_NAME_COLUMNS / (1 + 0.6 * share)))


def _least_width(line: str, points: int) -> int:
    """Return the room in points for a name with wide characters or boxes: the drawing program takes them for narrow."""
    if SHAPES.fullmatch(line):
        return 0
    tenths = sum(max(6 * gist.width(each), 0 if SHAPES.fullmatch(each) else 10) for each in line)
    return tenths * points // 10


def _badge(word: str) -> str:
    return f'<FONT COLOR="{BADGES[word]}" POINT-SIZE="{SMALL_POINTS + 2}"><B>{word.upper()}</B></FONT>'


def font(text: str, points: int, colour: str, face: str = "") -> str:
    """Return a text, drawn literally, in a size and a colour."""
    named = f' FACE="{face}"' if face else ""
    # DOT knows escapes even here, \\N say.
    return f'<FONT{named} POINT-SIZE="{points}" COLOR="{colour}">{escape(text).replace(_ESCAPE, 2 * _ESCAPE)}</FONT>'


def escape(text: str) -> str:
    """Return a text such that XML shows it as it is."""
    text = _NOT_IN_XML.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")

"""Diagnostics for people and for programs: a list of diagnostics becomes text or JSON (tooling.md §2).

Pure: whoever calls has the sources and prints the result. A source, a message and a file name are
other people's text, so nothing of them reaches a terminal that could steer it, and a caret stands
under the columns that the terminal gives to a character.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from crucible.schemas.diagnostic import Diagnostic, Related, Severity, Suggestion
from crucible.schemas.span import Position, Span

VERSION: Final = 1

_TAB: Final = "    "
_ROOM: Final = 100
_LEAST_ROOM: Final = 20
_CUT: Final = "…"
# Control characters, lone surrogates, line separators and text-direction marks: what can move a
# cursor, break a line, turn the order of a line round, or fail to encode.
_STEERING: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]",
)
# What nobody would see in a source line, and what terminals disagree about: a caret can only stand under its number.
_INVISIBLE: Final = re.compile("[\u00ad\u180e\u200b\u2060-\u2064\ufeff]")
_SHORT: Final = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}
_STYLES: Final = {"error": "1;31", "warning": "1;33", "note": "1;36", "gutter": "1;34", "message": "1"}


class _Cell(NamedTuple):
    """One code point of a source line as it is shown, with the columns it takes."""

    text: str
    columns: int


class _Block(NamedTuple):
    """One place to show: what is said about it, and where it is."""

    label: str
    style: str
    message: str
    file: str | None
    span: Span | None


def to_text(
    diagnostics: Iterable[Diagnostic],
    sources: Callable[[str], str | None],
    *,
    colour: bool = False,
    width: int | None = None,
) -> str:
    """Render diagnostics for a terminal, in the order given; nothing gives an empty text.

    ``sources`` gives the text of a file by the name that the diagnostics use, None when there is
    none to show. ``width`` is that of the terminal in columns; a source line gets 100 without it.
    """
    lines: dict[str, list[str]] = {}

    def line_of(file: str, number: int) -> str | None:
        if file not in lines:
            # Positions count lines at LF alone, without a byte-order mark; splitlines() splits at more.
            text = sources(file)
            lines[file] = [] if text is None else text.removeprefix("\ufeff").split("\n")
        texts = lines[file]
        return texts[number - 1].removesuffix("\r") if 1 <= number <= len(texts) else None

    return "\n".join(_one(diagnostic, line_of, _Paint(on=colour), width) for diagnostic in diagnostics)


def summary(diagnostics: Iterable[Diagnostic], files: int) -> str:
    """Return the closing line without its end: ``3 files: 1 error, 2 warnings``."""
    errors, warnings = _count(diagnostics)
    parts = [_many(number, noun) for number, noun in ((errors, "error"), (warnings, "warning")) if number]
    return f"{_many(files, 'file')}: {', '.join(parts) or 'no problems'}"


def to_json(diagnostics: Iterable[Diagnostic], files: int) -> str:
    """Return the diagnostics report, one JSON object in a text that ends in a newline.

    It keeps the order given and fits ``diagnostics.schema.json``; what could steer a terminal or
    fails to encode is escaped, and reads back as it was.
    """
    kept = list(diagnostics)
    errors, warnings = _count(kept)
    report = {
        "version": VERSION,
        "diagnostics": [_plain_diagnostic(diagnostic) for diagnostic in kept],
        "summary": {"files": files, "errors": errors, "warnings": warnings},
    }
    return one_json_object(report)


def one_json_object(value: dict[str, Any]) -> str:
    """Return plain data as JSON that ends in a newline and holds nothing that steers a terminal or fails to encode."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    # The newlines of the layout are the only steering characters outside of strings.
    return (
        "\n".join(_STEERING.sub(lambda found: f"\\u{ord(found.group()):04x}", line) for line in text.split("\n")) + "\n"
    )


# The JSON report


def _plain_diagnostic(diagnostic: Diagnostic) -> dict[str, Any]:
    """Return one diagnostic as plain data; every key is always there."""
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "file": diagnostic.file,
        "span": _plain_span(diagnostic.span),
        "related": [_plain_related(related) for related in diagnostic.related],
        "suggestion": _plain_suggestion(diagnostic.suggestion),
    }


def _plain_related(related: Related) -> dict[str, Any]:
    return {"message": related.message, "file": related.file, "span": _plain_span(related.span)}


def _plain_suggestion(suggestion: Suggestion | None) -> dict[str, Any] | None:
    if suggestion is None:
        return None
    return {"replacement": suggestion.replacement, "file": suggestion.file, "span": _plain_span(suggestion.span)}


def _plain_span(span: Span | None) -> dict[str, Any] | None:
    return None if span is None else {"begin": _plain_position(span.begin), "end": _plain_position(span.end)}


def _plain_position(position: Position) -> dict[str, int]:
    return {"line": position.line, "column": position.column}


def _count(diagnostics: Iterable[Diagnostic]) -> tuple[int, int]:
    """Count errors and warnings."""
    severities = [diagnostic.severity for diagnostic in diagnostics]
    return severities.count(Severity.ERROR), severities.count(Severity.WARNING)


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# The text


class _Paint(NamedTuple):
    """Colours, or none."""

    on: bool

    def __call__(self, style: str, text: str) -> str:
        """Return the text in the style's colour when colours are on."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.on and text else text


def _one(diagnostic: Diagnostic, line_of: Callable[[str, int], str | None], paint: _Paint, width: int | None) -> str:
    """Render one diagnostic: its own block, the way to its help, and a note for each related place."""
    severity = diagnostic.severity.value
    label = f"{severity}[{diagnostic.code}]"
    blocks = [
        _Block(label, severity, diagnostic.message, diagnostic.file, diagnostic.span),
        *(_Block("note", "note", related.message, related.file, related.span) for related in diagnostic.related),
    ]
    gutter = max(len(str(block.span.begin.line)) if block.span else 1 for block in blocks)
    margin = " " * gutter
    out: list[str] = []
    for block in blocks:
        out.append(f"{paint(block.style, block.label)}{paint('message', ': ' + harmless(block.message))}")
        if block.file is not None:
            place = harmless(block.file)
            if block.span is not None:
                place += f":{block.span.begin.line}:{block.span.begin.column}"
            out.append(f"{margin}{paint('gutter', '-->')} {place}")
        out += _snippet(block, line_of, paint, gutter, width)
        if block is blocks[0]:
            out.append(f"{margin} {paint('gutter', '=')} help: crucible plan explain {diagnostic.code}")
    return "\n".join(out) + "\n"


def _snippet(
    block: _Block, line_of: Callable[[str, int], str | None], paint: _Paint, gutter: int, width: int | None
) -> list[str]:
    """Return the source line with its carets between two empty gutters; nothing when there is no line to show."""
    line = line_of(block.file, block.span.begin.line) if block.file is not None and block.span is not None else None
    if line is None or block.span is None:
        return []
    begin, end = block.span
    first = min(begin.column - 1, len(line))
    last = end.column - 1 if end.line == begin.line else len(line.rstrip())
    room = _ROOM if width is None else max(_LEAST_ROOM, width - gutter - len(" | "))
    shown, before, carets = _underline(line, first, last, room)
    bar = paint("gutter", "|")
    margin = " " * (gutter + 1)
    return [
        f"{margin}{bar}",
        f"{paint('gutter', f'{begin.line:>{gutter}} |')} {shown}".rstrip(),
        f"{margin}{bar} {' ' * before}{paint(block.style, '^' * carets)}",
        f"{margin}{bar}",
    ]


def _underline(line: str, first: int, last: int, room: int) -> tuple[str, int, int]:
    """Return the part of a line to show, the columns before its carets, and the number of carets.

    ``first`` and ``last`` bound the span in code points, from 0. A line of more than ``room``
    columns is cut around the span.
    """
    # No more code points than could ever be shown, so that a line of 256 KiB costs no more than a short one.
    near, far = max(0, first - 4 * room), first + 4 * room
    cells = [_cell(character) for character in line[near:far]]
    begin, end = first - near, max(first, min(last, far, len(line))) - near
    left, right = 0, len(cells)
    if near > 0 or far < len(line) or _columns(cells) > room:
        inner = room - 2 * len(_CUT)
        end = begin + _fitting(cells[begin:end], inner)
        inner -= _columns(cells[begin:end])
        left = begin - _fitting(cells[:begin][::-1], inner // 2)
        right = end + _fitting(cells[end:], inner - _columns(cells[left:begin]))
        left = begin - _fitting(cells[:begin][::-1], inner - _columns(cells[end:right]))
        while left < begin and not cells[left].columns:  # a mark would sit on the sign of the cut
            left += 1
    head = _CUT if near + left > 0 else ""
    tail = _CUT if near + right < len(line) else ""
    shown = head + "".join(cell.text for cell in cells[left:right]) + tail
    before, carets = len(head) + _columns(cells[left:begin]), _columns(cells[begin:end])
    while left < begin < end and not carets:  # the span is a mark: it is seen on what stands before it
        begin -= 1
        carets = cells[begin].columns
        before -= carets
    return shown, before, max(1, carets)


def _fitting(cells: Sequence[_Cell], columns: int) -> int:
    """Count the first cells that fit into so many columns."""
    used = 0
    for number, cell in enumerate(cells):
        used += cell.columns
        if used > columns:
            return number
    return len(cells)


def _columns(cells: Iterable[_Cell]) -> int:
    return sum(cell.columns for cell in cells)


def _cell(character: str) -> _Cell:
    """Return how one code point of a source line is shown."""
    if character == "\t":
        return _Cell(_TAB, len(_TAB))
    if _STEERING.match(character) or _INVISIBLE.match(character):
        text = _escape(character)
        return _Cell(text, len(text))
    # Vowels and finals of conjoining Hangul have no width of their own; their category does not say so.
    is_conjoining = "\u1160" <= character <= "\u11ff" or "\ud7b0" <= character <= "\ud7ff"
    if is_conjoining or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return _Cell(character, 0)
    return _Cell(character, 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1)


def harmless(text: str) -> str:
    """Return a text on one line, with everything that steers a terminal written as an escape."""
    return _STEERING.sub(lambda found: _escape(found.group()), text)


def _escape(character: str) -> str:
    """Write a character as its short escape where it has one, else by its number."""
    number = ord(character)
    return _SHORT.get(character) or (f"\\x{number:02x}" if character <= "\xff" else f"\\u{number:04x}")

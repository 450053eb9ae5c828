"""Edits that take something out of a source and leave the rest as it is.

None in place of an edit means that more than the thing itself would go, or less; a comment always stays.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from crucible.compiler.analysis.lint.case import Edit
from crucible.compiler.frontend import tree
from crucible.compiler.frontend.source_file import SourceFile
from crucible.schemas.span import Position, Span

_FAR: Final = 1 << 30
_COMMA: Final = re.compile(r"\s*,\s*")
_LAST_COMMA: Final = re.compile(r"(\s*,)?\s*[\])]")
_REST_OF_ITS_LINE: Final = re.compile(r"[ \t]*,?[ \t]*(?:#.*)?")


def before(file: SourceFile, at: Position) -> str:
    """Return the text of a line up to a position."""
    return file.cut(Span(Position(at.line, 1), at))


def behind(file: SourceFile, at: Position) -> str:
    """Return the text of a line from a position on."""
    return file.cut(Span(at, Position(at.line, _FAR)))


def lines(file: SourceFile, span: Span) -> Span:
    """Return the span of the whole lines that a span touches, with the end of the last one if it has one."""
    last = span.end.line
    if last <= file.text.count("\n"):
        return Span(Position(span.begin.line, 1), Position(last + 1, 1))
    return Span(Position(span.begin.line, 1), Position(last, span.end.column + len(behind(file, span.end))))


def without_item(file: SourceFile, items: Sequence[Span], index: int) -> Edit | None:
    """Take an item out of some that commas separate, with its comma, and with its line if it has one of its own."""
    span = items[index]
    rest = behind(file, span.end)
    if not before(file, span.begin).strip() and _REST_OF_ITS_LINE.fullmatch(rest):
        return None if "#" in rest else _unless_commented(file, lines(file, span))
    if index and _COMMA.fullmatch(file.cut(Span(items[index - 1].end, span.begin))):
        return _unless_commented(file, Span(items[index - 1].end, span.end))
    if index + 1 < len(items) and _COMMA.fullmatch(file.cut(Span(span.end, items[index + 1].begin))):
        return _unless_commented(file, Span(span.begin, items[index + 1].begin))
    closing = _LAST_COMMA.match(rest)
    if len(items) == 1 and closing and before(file, span.begin).endswith(("[", "(")):
        end = Position(span.end.line, span.end.column + len(closing[1] or ""))
        return _unless_commented(file, Span(span.begin, end))
    return None


def without_statement(file: SourceFile, statement: tree.Node, block: Sequence[tree.Node]) -> Edit | None:
    """Take out a statement of a block with its lines, unless it shares one, or the block would be empty."""
    has_lines = not before(file, statement.span.begin).strip() and not behind(file, statement.span.end).strip()
    if not has_lines or (len(block) == 1 and block is not file.source.statements):
        return None
    return _unless_commented(file, lines(file, statement.span))


def _unless_commented(file: SourceFile, span: Span) -> Edit | None:
    """Take out a text in which nobody wrote a comment."""
    comments = file.source.comments
    first = bisect_left(comments, span.begin, key=lambda comment: comment.span.begin)
    is_commented = first < len(comments) and comments[first].span.begin < span.end
    return None if is_commented else Edit("", span)

"""Where something stands in a text, as the compiler counts and as an editor does; all arithmetic of both is here.

The compiler counts lines at LF and columns in code points, from 1, in a text without a byte-order mark
and with LF for CR LF. The protocol counts lines at LF, CR LF and CR, and columns in the units of an
encoding, from 0, in the text as it is. Between the two lies the offset in code points.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from crucible.schemas.span import Position, Span

UTF_8: Final = "utf-8"
UTF_16: Final = "utf-16"
UTF_32: Final = "utf-32"

_MARK: Final = "\ufeff"
_ANY_END: Final = re.compile("\r\n|\n|\r")


class Point(NamedTuple):
    """A place as the protocol has it: line and character from 0."""

    line: int
    character: int


class Range(NamedTuple):
    """A half-open range as the protocol has it."""

    begin: Point
    end: Point


def units(text: str, encoding: str) -> int:
    """Count the units of an encoding that a text takes; a lone surrogate counts like any character."""
    if encoding == UTF_32 or text.isascii():
        return len(text)
    if encoding == UTF_8:
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def points(text: str, count: int, encoding: str) -> int:
    """Count the code points at the beginning of a text that so many units hold whole; at most all of them."""
    if encoding == UTF_32 or text.isascii():
        return max(0, min(count, len(text)))
    return max(0, bisect_right(range(len(text) + 1), count, key=lambda n: units(text[:n], encoding)) - 1)


class Lines:
    """The lines of one text; every position that lies outside of it is moved to the nearest inside."""

    def __init__(self, text: str) -> None:
        """Find where lines begin."""
        self.text = text
        self._ours = [len(text) - len(text.removeprefix(_MARK)), *(found.end() for found in re.finditer("\n", text))]
        self._theirs = [0, *(found.end() for found in _ANY_END.finditer(text))]

    def offset(self, position: Position) -> int:
        """Return the offset of a position of the compiler."""
        begin, end = self._bounds(self._ours, position.line - 1, "\n")
        return begin if position.line < 1 else max(begin, min(begin + position.column - 1, end))

    def position(self, offset: int) -> Position:
        """Return the position, as the compiler has it, of an offset."""
        line = max(0, bisect_right(self._ours, offset) - 1)
        begin, end = self._bounds(self._ours, line, "\n")
        return Position(line + 1, max(begin, min(offset, end)) - begin + 1)

    def offset_of_point(self, point: Point, encoding: str) -> int:
        """Return the offset of a point of the protocol."""
        if point.line >= len(self._theirs):
            return len(self.text)
        begin, end = self._bounds(self._theirs, max(point.line, 0), "\r\n")
        return begin if point.line < 0 else begin + points(self.text[begin:end], point.character, encoding)

    def point(self, offset: int, encoding: str) -> Point:
        """Return the point of an offset."""
        line = max(0, bisect_right(self._theirs, offset) - 1)
        begin, end = self._bounds(self._theirs, line, "\r\n")
        return Point(line, units(self.text[begin : max(begin, min(offset, end))], encoding))

    def range(self, span: Span, encoding: str) -> Range:
        """Return the range of a span of the compiler."""
        begin = self.offset(span.begin)
        return Range(self.point(begin, encoding), self.point(max(begin, self.offset(span.end)), encoding))

    def whole(self, encoding: str) -> Range:
        """Return the range of the whole text."""
        return Range(Point(0, 0), self.point(len(self.text), encoding))

    def _bounds(self, begins: Sequence[int], line: int, ends: str) -> tuple[int, int]:
        """Return where a line begins and where what it says ends; the last line for a number beyond."""
        if line >= len(begins):
            return len(self.text), len(self.text)
        line = max(line, 0)
        begin = begins[line]
        behind = begins[line + 1] if line + 1 < len(begins) else len(self.text)
        end = behind
        if end > begin and self.text[end - 1] in ends:
            end -= 1
        if end < behind and self.text[end] == "\n" and end > begin and self.text[end - 1] == "\r":
            end -= 1
        return begin, end


def replaced(text: str, range_: Range | None, new: str, encoding: str) -> str:
    """Return a text after one change of the protocol; without a range the whole text is new."""
    if range_ is None:
        return new
    lines = Lines(text)
    begin, end = sorted(lines.offset_of_point(point, encoding) for point in range_)
    return text[:begin] + new + text[end:]

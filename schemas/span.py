"""Positions and spans in a text: 1-based lines and columns, columns in Unicode code points."""

from __future__ import annotations

from crucible.schemas.light import NamedTuple


class Position(NamedTuple):
    """A point in a text: 1-based line and 1-based column in code points."""

    line: int
    column: int


class Span(NamedTuple):
    """A half-open range of a text; ``end`` is the position behind its last character."""

    begin: Position
    end: Position

    @classmethod
    def of(cls, line: int, column: int, end_line: int, end_column: int) -> Span:
        """Build a span from its four numbers."""
        return cls(Position(line, column), Position(end_line, end_column))

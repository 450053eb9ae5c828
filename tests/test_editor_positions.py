"""Positions of the compiler and of the protocol: each against a plain reading of the text, and against each other."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.scan import decode
from crucible.editor.positions import UTF_8, UTF_16, UTF_32, Lines, Point, Range, points, replaced, units
from crucible.schemas.span import Position

ENCODINGS = (UTF_8, UTF_16, UTF_32)
TEXTS = st.text(st.sampled_from("ab\n\r\té€🙂\ufeff\u2028\x0b\ud83d\U0010ffff"), max_size=40)
SOUND = st.builds(
    str.__add__, st.sampled_from(["", "\ufeff"]), st.text(st.sampled_from("ab\n\ré🙂\u2028"), max_size=40)
)
NUMBERS = st.integers(-3, 60)


@given(TEXTS, st.integers(0, 50), st.sampled_from(ENCODINGS))
def test_units_of_a_prefix_lead_back_to_it(text: str, length: int, encoding: str) -> None:
    """Every prefix has as many units as its characters have, and so many units hold just that prefix."""
    prefix = text[:length]
    assert units(prefix, encoding) == sum(units(character, encoding) for character in prefix)
    assert points(text, units(prefix, encoding), encoding) == len(prefix)


@pytest.mark.parametrize(
    ("character", "sizes"), [("a", (1, 1, 1)), ("é", (2, 1, 1)), ("€", (3, 1, 1)), ("🙂", (4, 2, 1))]
)
def test_a_character_has_the_units_of_its_encoding(character: str, sizes: tuple[int, int, int]) -> None:
    """As the standard has it."""
    assert tuple(units(character, encoding) for encoding in ENCODINGS) == sizes


@given(TEXTS, st.integers(0, 50))
def test_all_encodings_tell_the_same_place(text: str, offset: int) -> None:
    """Every offset, but for one within the end of a line, comes back from its point in each encoding."""
    offset = min(offset, len(text))
    lines = Lines(text)
    within_end = text[offset - 1 : offset + 1] == "\r\n" and offset > 0
    for encoding in ENCODINGS:
        point = lines.point(offset, encoding)
        before = re.split("\r\n|\n|\r", text[: offset - within_end])
        assert point == Point(len(before) - 1, units(before[-1], encoding))
        assert lines.offset_of_point(point, encoding) == offset - within_end


@given(TEXTS, NUMBERS, NUMBERS, st.sampled_from(ENCODINGS))
def test_every_point_is_moved_into_the_text(text: str, line: int, character: int, encoding: str) -> None:
    """The offset is one of the text, on that line if there is such a line, and grows with the point."""
    lines = Lines(text)
    offset = lines.offset_of_point(Point(line, character), encoding)
    assert 0 <= offset <= len(text)
    assert lines.point(offset, encoding).line == max(0, min(line, len(re.split("\r\n|\n|\r", text)) - 1))
    assert offset <= lines.offset_of_point(Point(line, character + 1), encoding)
    assert offset <= lines.offset_of_point(Point(line + 1, character), encoding)


@given(SOUND, st.integers(0, 50))
def test_positions_are_those_of_the_text_that_the_compiler_reads(text: str, offset: int) -> None:
    """Every character that the compiler sees is found at its position in the text as it is."""
    plain, fault = decode(text.encode(), LIMITS)
    assert fault is None
    if offset >= len(plain) or plain[offset] == "\n":
        return
    position = Position(plain.count("\n", 0, offset) + 1, offset - plain.rfind("\n", 0, offset))
    lines = Lines(text)
    found = lines.offset(position)
    assert text[found] == plain[offset]
    assert lines.position(found) == position


@given(TEXTS, NUMBERS, NUMBERS)
def test_every_position_is_moved_into_the_text(text: str, line: int, column: int) -> None:
    """Positions that nobody can have meant give offsets of the text."""
    assert 0 <= Lines(text).offset(Position(line, column)) <= len(text)


@given(TEXTS, TEXTS, st.integers(0, 50), st.integers(0, 50), st.sampled_from(ENCODINGS))
def test_a_change_replaces_what_its_range_holds(text: str, new: str, one: int, other: int, encoding: str) -> None:
    """Every change is the one that slicing makes, whichever end of its range comes first."""
    lines = Lines(text)
    given_range = Range(lines.point(one, encoding), lines.point(other, encoding))
    begin, end = sorted(lines.offset_of_point(point, encoding) for point in given_range)
    assert replaced(text, given_range, new, encoding) == text[:begin] + new + text[end:]
    assert replaced(text, None, new, encoding) == new

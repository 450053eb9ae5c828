"""Named tuples and patterns of our own: what those of the standard library do, without their cost at the start."""

from __future__ import annotations

import copy
import pickle
import re
import typing
from typing import Any

import pytest

from crucible.schemas import light

if typing.TYPE_CHECKING:
    from collections.abc import Callable

TheirPoint: Any = typing.NamedTuple("TheirPoint", [("x", int), ("y", int), ("name", str)])
TheirPoint.__new__.__defaults__ = (2, "p")
TheirPoint.__name__ = TheirPoint.__qualname__ = "Point"


class Point(light.NamedTuple):
    """A place with a name."""

    x: int
    y: int = 2
    name: str = "p"

    @property
    def total(self) -> int:
        """Return the sum of both."""
        return self.x + self.y

    @classmethod
    def of(cls, text: str) -> Point:
        """Return the point that a text names."""
        x, y = map(int, text.split(","))
        return cls(x, y)


OURS: Any = Point
SAME: dict[str, Callable[[Any], Any]] = {
    "one value": lambda made: made(1),
    "two values": lambda made: made(1, 5),
    "a name": lambda made: made(1, name="q"),
    "only names": lambda made: made(y=3, x=4),
    "repr": lambda made: repr(made(1, 2, "it's")),
    "replace": lambda made: made(1)._replace(x=9, name="z"),
    "asdict": lambda made: made(1)._asdict(),
    "fields": lambda made: made._fields,
    "make": lambda made: made._make([7, 8, "m"]),
    "compared": lambda made: (
        made(1) == (1, 2, "p"),
        made(1) < made(2),
        hash(made(1)),
        len(made(1)),
    ),
    "read": lambda made: (made(1).x, made(1)[1], made(1).name),
    "copied": lambda made: copy.deepcopy(made(1, name="q")),
    "matched": lambda made: made.__match_args__,
}
WRONG: dict[str, Callable[[Any], Any]] = {
    "too few": lambda made: made(),
    "too many": lambda made: made(1, 2, "p", 4),
    "given twice": lambda made: made(1, x=1),
    "unknown": lambda made: made(1, z=1),
    "made of too many": lambda made: made._make([1, 2, "p", 4]),
}


@pytest.mark.parametrize("do", SAME.values(), ids=SAME)
def test_a_named_tuple_does_what_that_of_typing_does(do: Callable[[Any], Any]) -> None:
    """Value for value."""
    assert do(OURS) == do(TheirPoint)


@pytest.mark.parametrize("do", WRONG.values(), ids=WRONG)
def test_what_typing_refuses_is_refused(do: Callable[[Any], Any]) -> None:
    """With the same exception."""
    for made in (OURS, TheirPoint):
        with pytest.raises(TypeError):
            do(made)


def test_a_field_that_is_none_cannot_be_replaced() -> None:
    """And nothing can be set."""
    with pytest.raises(ValueError, match="z"):
        OURS(1)._replace(z=1)
    with pytest.raises(AttributeError):
        OURS(1).x = 3
    with pytest.raises(AttributeError):
        OURS(1).other = 3


def test_a_named_tuple_has_the_methods_of_its_class() -> None:
    """Also in another process."""
    assert Point.of("3,4").total == 7
    assert pickle.loads(pickle.dumps(Point(1, name="q"))) == Point(1, 2, "q")  # noqa: S301 - our own
    assert type(Point(1)._replace(x=2)) is Point
    match Point(5):
        case Point(x, y):
            assert (x, y) == (5, 2)


def test_fields_with_a_default_are_the_last() -> None:
    """As in every signature."""
    with pytest.raises(TypeError, match="the last ones"):
        type(OURS)("Bad", (light.NamedTuple,), {"__annotations__": {"a": int, "b": int}, "a": 1})


def test_a_class_without_fields_is_refused() -> None:
    """They may be there and not be seen."""
    with pytest.raises(TypeError, match="from __future__ import annotations"):
        type(OURS)("Bad", (light.NamedTuple,), {})


def test_a_pattern_is_compiled_when_it_is_used() -> None:
    """A bad one fails then."""
    found = light.pattern(r"(?P<word>\w+)", re.ASCII)
    assert "search" not in vars(found)
    match = found.search("-abc-")
    assert match is not None
    assert match["word"] == "abc"
    assert "search" in vars(found)
    assert found.sub("x", "a b") == "x x"
    assert found.pattern == r"(?P<word>\w+)"
    bad = light.pattern("(")
    with pytest.raises(re.error):
        bad.search("")

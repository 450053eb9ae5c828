"""External text that has lost its marks: found by evaluating again with other text.

Marks survive every string operation (external.py), but a source can take them off: by picking single
characters, or by leaving out the reserved ones. What then stands outside a prompt, or bare inside
one, changes with the text, and so differs between two evaluations; and so does what is built by
looking at it (language.md §6). In: the call records of both. Out: the places that differ.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from crucible.compiler.frontend import external
from crucible.compiler.frontend.binding import Spot
from crucible.compiler.frontend.lower import CallFinding, InCall

_CLASSES: Final = ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789")
_PUNCTUATION: Final = " ;|&$()<>`~/.,:!?*'\"\\-_=+[]{}#%@^"
_CURE: Final = "; it belongs whole into a prompt, and a command reads it as data from its inputs"
_FOR_EMPTY: Final = "x;"


def letters_changed(text: str) -> str:
    """Return a text with every letter and digit changed to another of its kind."""
    return "".join(_next(character, _CLASSES) if character.isascii() else "x" for character in text) or _FOR_EMPTY


def punctuation_changed(text: str) -> str:
    """Return a text with every blank and punctuation character changed to another."""
    return "".join(_next(character, (_PUNCTUATION,)) for character in text) or _FOR_EMPTY


def _next(character: str, kinds: tuple[str, ...]) -> str:
    for kind in kinds:
        place = kind.find(character)
        if place >= 0:
            return kind[(place + 1) % len(kind)]
    return character


def other_value(value: Any, change: Callable[[str], str]) -> Any:
    """Return a parameter's value, marked as param() gives it, with its external text changed."""
    if isinstance(value, list):
        return [other_value(item, change) for item in value]
    if not isinstance(value, str) or not external.has_mark(value):
        return value
    return external.mark(external.owner(value), change(external.without_marks(value)))


def find(calls: list[Any], others: list[Any], *, ended_early: bool, strict: bool) -> Iterator[CallFinding]:
    """Yield the arguments that hold external text without its marks.

    With ``strict`` also the call at which the two evaluations part: what is built there depends on
    the text. ``ended_early`` tells that the other one failed on its way.
    """
    for number, (call, other) in enumerate(zip(calls, others, strict=False)):
        if call[0] != other[0] or [name for name, _ in call[2]] != [name for name, _ in other[2]]:
            if strict:
                yield _parted(number)
            return
        if call[0] == "print":
            continue
        pairs = [(f"#{index}", *both) for index, both in enumerate(zip(call[1], other[1], strict=False))]
        pairs += [(name, value, twin) for (name, value), (_, twin) in zip(call[2], other[2], strict=True)]
        for argument, value, twin in pairs:
            place = _difference(value, twin, in_prompt=(call[0], argument) == ("agent", "prompt"))
            if place is not None:
                what = "this" if argument.startswith("#") else argument
                message = f"{what} holds text that a launcher may supply, without its marks"
                yield CallFinding("external-text", message + _CURE, InCall(number, Spot(argument, place)))
    if strict and (ended_early or len(calls) != len(others)):
        yield _parted(min(len(calls) - 1, len(others)))


def _parted(number: int) -> CallFinding:
    message = "what is built here depends on text that a launcher may supply; declare choices, and compare those"
    return CallFinding("external-text", message, InCall(number))


def _difference(value: Any, twin: Any, *, in_prompt: bool) -> tuple[int, ...] | None:
    """Return the path to the first part that is not the same in both, None when there is none."""
    if isinstance(value, list) and isinstance(twin, list):
        if len(value) != len(twin):
            return ()
        for index, (part, other) in enumerate(zip(value, twin, strict=True)):
            inner = _difference(part, other, in_prompt=in_prompt)
            if inner is not None:
                return (index, *inner)
        return None
    if isinstance(value, str) and isinstance(twin, str):
        if external.has_mark(value) and not (in_prompt and external.well_formed(value)):
            return None  # seen by its marks, and said already
        if in_prompt:
            value, twin = external.bare(value), external.bare(twin)
    return None if value == twin else ()

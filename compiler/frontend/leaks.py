"""External text that has lost its marks: found by evaluating again with other text of the same shape.

Slicing or splitting can cut a piece out of a marked text, both marks left behind. What then stands
outside a prompt, or bare inside one, changes with the text, and so differs between the two
evaluations (language.md §6). In: the call records of both. Out: the places that differ.
"""

from collections.abc import Iterator
from typing import Any

from crucible.compiler.frontend import external
from crucible.compiler.frontend.binding import Spot
from crucible.compiler.frontend.lower import CallFinding, InCall


def other_value(value: Any) -> Any:
    """Return a parameter's value with every letter and digit of its external text changed to another."""
    if isinstance(value, list):
        return [other_value(item) for item in value]
    if not isinstance(value, str) or not external.has_mark(value):
        return value
    return "".join(_other(character) for character in value)


def _other(character: str) -> str:
    """Return another character of the same kind and case; marks and punctuation stay."""
    for first, size in (("a", 26), ("A", 26), ("0", 10)):
        place = ord(character) - ord(first)
        if 0 <= place < size:
            return chr(ord(first) + (place + 1) % size)
    return character if character.isascii() or external.has_mark(character) else "x"


def find(calls: list[Any], others: list[Any]) -> Iterator[CallFinding]:
    """Yield the arguments that hold external text without its marks.

    A source may build other tasks for another text: the comparison ends where the calls part.
    """
    for number, (call, other) in enumerate(zip(calls, others, strict=False)):
        if call[0] != other[0] or [name for name, _ in call[2]] != [name for name, _ in other[2]]:
            return
        if call[0] == "print":
            continue
        pairs = [(f"#{index}", *both) for index, both in enumerate(zip(call[1], other[1], strict=False))]
        pairs += [(name, value, twin) for (name, value), (_, twin) in zip(call[2], other[2], strict=True)]
        for argument, value, twin in pairs:
            place = _difference(value, twin, in_prompt=(call[0], argument) == ("agent", "prompt"))
            if place is not None:
                what = "this" if argument.startswith("#") else argument
                message = f"{what} holds text that a launcher may supply, cut out of its marks"
                hint = "; it belongs whole into a prompt, and a command reads it as data from its inputs"
                yield CallFinding("external-text", message + hint, InCall(number, Spot(argument, place)))


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

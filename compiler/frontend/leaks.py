"""External text that has lost its marks, or was looked at: found by evaluating again with other text.

Marks survive every string operation (external.py), but a source can take them off: by picking single
characters, or by leaving out the reserved ones. What then stands outside a prompt, or bare inside
one, changes with the text, and so differs between two evaluations; and so does what is built by
looking at it: its letters, its length, whether two of them are equal (language.md §6). A comparison
that the marks decide is seen when there are none. In: the call records of both. Out: the places that differ.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from crucible.compiler.frontend import external
from crucible.compiler.frontend.binding import Spot
from crucible.compiler.frontend.origins import CallFinding, InCall

_CLASSES: Final = ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789")
_PUNCTUATION: Final = "".join(chr(code) for code in range(128) if not chr(code).isalnum())
_FOR_EMPTY: Final = "x;"
_LENGTHS: Final = 97
_UNMARKED: Final = (
    "holds text that a launcher may supply, or what was made by looking at it",
    "; such text belongs whole into a prompt, and a command reads it as data from its inputs",
)
_LOOKED_AT: Final = (
    "holds text that a launcher may supply, not whole",
    '; put it in as it is, and of a list each string: ", ".join(param(…))',
)
_MARKS_DECIDE: Final = (
    "depends on what the text of a parameter is",
    ", which compares equal to nothing and cannot be cut; declare choices, or put it in as it is",
)


class Change(NamedTuple):
    """One way to give a source other text: ``make`` takes a text and the number of it among all texts.

    ``marked`` tells that the other text has marks, too.
    """

    make: Callable[[str, int], str]
    marked: bool


def letters_changed(text: str, number: int) -> str:
    """Return a text with other letters and digits and of another length; texts that were equal differ then."""
    turned = "".join(_next(character, _CLASSES, number) if character.isascii() else "x" for character in text)
    return turned + "x" * (number % _LENGTHS)


def punctuation_changed(text: str, number: int) -> str:
    """Return half of a text, with every blank, control and punctuation character changed to another."""
    half = text[: (len(text) + 1) // 2]
    return "".join(_next(character, (_PUNCTUATION,), number) for character in half) or _FOR_EMPTY


CHANGES: Final = (
    Change(letters_changed, marked=True),
    Change(punctuation_changed, marked=True),
    Change(lambda text, _: text, marked=False),
)


def _next(character: str, kinds: tuple[str, ...], steps: int) -> str:
    for kind in kinds:
        place = kind.find(character)
        if place >= 0:
            return kind[(place + 1 + (steps - 1) % (len(kind) - 1)) % len(kind)]
    return character


def other_values(params: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """Return parameters, marked as param() gives them, with their external text changed."""
    number = 0

    def changed(value: Any) -> Any:
        nonlocal number
        if isinstance(value, list):
            return [changed(item) for item in value]
        if not isinstance(value, str) or not external.has_mark(value):
            return value
        number += 1
        text = change.make(external.without_marks(value), number)
        return external.mark(external.owner(value), text) if change.marked else text

    return {name: changed(value) for name, value in params.items()}


def find(
    calls: list[Any], others: list[Any], change: Change, *, ended_early: bool, known: Collection[int]
) -> Iterator[CallFinding]:
    """Yield the arguments that hold external text without its marks.

    Also the call at which the two evaluations part: what is built there depends on the text. ``ended_early``
    tells that the other one failed on its way; of the ``known`` calls something was said already. What print()
    shows is nobody's affair.
    """
    built = [number for number, call in enumerate(calls) if call[0] != "print"]
    twins = _without_prints(others)
    for number, call, other in zip(built, _without_prints(calls), twins, strict=False):
        if call[0] != other[0] or [name for name, _ in call[2]] != [name for name, _ in other[2]]:
            if number not in known:
                yield _parted(number)
            return
        if number in known:
            continue
        pairs = [(f"#{index}", *both) for index, both in enumerate(zip(call[1], other[1], strict=False))]
        pairs += [(name, value, twin) for (name, value), (_, twin) in zip(call[2], other[2], strict=True)]
        for argument, value, twin in pairs:
            in_prompt = (call[0], argument) == ("agent", "prompt")
            place = _difference(value, twin, _same_prompt(change) if in_prompt else _same_outside)
            if place is not None:
                message, cure = (_LOOKED_AT if change.marked else _MARKS_DECIDE) if in_prompt else _UNMARKED
                what = "this" if argument.startswith("#") else argument
                yield CallFinding("external-text", f"{what} {message}{cure}", InCall(number, Spot(argument, place)))
    if built and (ended_early or len(built) != len(twins)):
        yield _parted(built[min(len(built) - 1, len(twins))])


def _without_prints(calls: list[Any]) -> list[Any]:
    """Return call records without those of print(), their handles counted among what is left."""
    built = [number for number, call in enumerate(calls) if call[0] != "print"]
    if len(built) == len(calls):
        return calls
    places = {number: place for place, number in enumerate(built)}

    def moved(value: Any) -> Any:
        if isinstance(value, list):
            return [moved(item) for item in value]
        return {"call": places[value["call"]]} if isinstance(value, dict) and value.get("call") in places else value

    return [[calls[number][0], moved(calls[number][1]), moved(calls[number][2])] for number in built]


def _parted(number: int) -> CallFinding:
    message = "what is built here depends on text that a launcher may supply; declare choices, and compare those"
    return CallFinding("external-text", message, InCall(number))


def _same_outside(value: str, twin: str) -> bool:
    """Compare two texts that are no prompts; what has marks is seen by them, and said already."""
    return external.has_mark(value) or value == twin


def _same_prompt(change: Change) -> Callable[[str, str], bool]:
    """Return what compares two prompts: what stands outside of all regions or, without marks, all but its form."""
    if change.marked:
        return lambda value, twin: (
            (external.has_mark(value) and not external.well_formed(value))
            or external.bare(value) == external.bare(twin)
        )
    return lambda value, twin: _letters(external.without_marks(value)) == _letters(twin)


def _letters(text: str) -> str:
    """Return a text without its blanks and its case: strip() and title() find marks, and do no harm."""
    return "".join(text.split()).casefold()


def _difference(value: Any, twin: Any, same: Callable[[str, str], bool]) -> tuple[int, ...] | None:
    """Return the path to the first part that is not the same in both, None when there is none."""
    if isinstance(value, list) and isinstance(twin, list):
        if len(value) != len(twin):
            return ()
        for index, (part, other) in enumerate(zip(value, twin, strict=True)):
            inner = _difference(part, other, same)
            if inner is not None:
                return (index, *inner)
        return None
    if isinstance(value, str) and isinstance(twin, str):
        return None if same(value, twin) else ()
    return None if value == twin else ()

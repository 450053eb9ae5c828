"""Arguments as text become values: names with values, amounts of money and time, counts.

What does not fit is wrong usage, and the message says what does.
"""

from __future__ import annotations

import os

from crucible.cli.output import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_UNITS: Final = {"s": 1, "m": 60, "h": 3600}
_MICRO: Final = 1_000_000
_MOST_USD: Final = 1e9
_MOST_SECONDS: Final = 1e9
_MOST_DIGITS: Final = 9


def processors() -> int:
    """Return how many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def text(argument: str) -> str:
    """Return an argument as the text that it is."""
    # Which locale the arguments came in is no part of them: they are UTF-8, as every text.
    return os.fsencode(argument).decode(errors="surrogateescape")


def pair(argument: str) -> tuple[str, str]:
    """Return the name and the value of --param."""
    name, equals, value = text(argument).partition("=")
    if not equals or not name:
        message = f"--param takes NAME=VALUE, not {argument!r}"
        raise Usage(message)
    return name, value


def cost(argument: str | None) -> int | None:
    """Return --max-cost in micro-dollars."""
    if argument is None:
        return None
    usd = _number(argument)
    if usd is None or not 0 < usd <= _MOST_USD or not round(usd * _MICRO):
        message = f"--max-cost takes an amount of USD above 0, such as 2.50, not {argument!r}"
        raise Usage(message)
    return round(usd * _MICRO)


def seconds_of(argument: str | None) -> float | None:
    """Return --max-time in seconds."""
    if argument is None:
        return None
    number = _number(argument[:-1]) if argument[-1:] in _UNITS else None
    seconds = None if number is None else number * _UNITS[argument[-1]]
    if seconds is None or not 0 < seconds <= _MOST_SECONDS:
        message = f"--max-time takes a number with s, m or h, such as 90s or 1.5h, not {argument!r}"
        raise Usage(message)
    return seconds


def count(option: str, argument: str | None, least: int) -> int | None:
    """Return a whole number that is at least so large."""
    if argument is None:
        return None
    if not (argument.isascii() and argument.isdigit()) or len(argument) > _MOST_DIGITS or int(argument) < least:
        message = f"{option} takes a whole number from {least} on, not {argument!r}"
        raise Usage(message)
    return int(argument)


def _number(text: str) -> float | None:
    """Return a decimal number written plainly, None for anything else that float() takes."""
    whole, _, fraction = text.partition(".")
    if not (whole + fraction).isdigit() or not text.isascii():
        return None
    return float(text)

"""The types of launch parameters: which values they have, and how a launch writes one (language.md §6).

Texts and plain values in, plain values or the reason against them out; nothing here knows a place.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from crucible.compiler.frontend.external import has_mark

SMALLEST, LARGEST = -(2**31), 2**31 - 1
_INT_DIGITS = 10
_MOST_SHOWN = 60

Value = str | int | float | bool | list[str]


class ParamType(NamedTuple):
    """How messages name a value of a type, how a launch writes one, and the type's JSON Schema."""

    noun: str
    written: str
    schema: Mapping[str, Any]


TYPES: Final[Mapping[str, ParamType]] = {
    "string": ParamType("a string", "itself", {"type": "string"}),
    "int": ParamType("an int", "ASCII digits with an optional minus", {"type": "integer"}),
    "number": ParamType("a number", "a JSON number", {"type": "number"}),
    "bool": ParamType("True or False", "true or false", {"type": "boolean"}),
    "list<string>": ParamType(
        "a list of strings", "a JSON array of strings", {"type": "array", "items": {"type": "string"}}
    ),
}


def parse(kind: str, text: str) -> Value | None:
    """Read the text of a launch as a value of that type, None when it is not written as one."""
    if kind == "string":
        return text
    if kind == "int" and re.fullmatch("-?[0-9]+", text):
        # A longer one is out of range anyway, and Python refuses to read a very long one.
        return int(text) if len(text.lstrip("-0")) <= _INT_DIGITS else LARGEST + 1
    if kind == "number" and re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", text):
        return as_float(float(text))
    if kind == "bool":
        return {"true": True, "false": False}.get(text)
    return _parse_strings(text) if kind == "list<string>" else None


def _parse_strings(text: str) -> list[str] | None:
    """Read a JSON array of strings, None for any other text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list) and all(isinstance(element, str) for element in value):
        return value
    return None


def refusal(value: object) -> str | None:
    """Say why a value of the right type is none that a workflow can carry, None for a good one."""
    if isinstance(value, str):
        if has_mark(value):
            return "contains a private-use character that is reserved for marking external text"
        if re.search("[\ud800-\udfff]", value):
            return "is not valid Unicode text"
    elif isinstance(value, float):
        if not math.isfinite(value):
            return "is a finite number"
    elif isinstance(value, int) and not SMALLEST <= value <= LARGEST:
        return f"lies between {SMALLEST} and {LARGEST}"
    return None


def as_float(value: float) -> float:
    """Return a number as a float, infinity for one that is too large; zero has no sign."""
    try:
        return float(value) + 0.0
    except OverflowError:
        return math.inf


def shown(text: str) -> str:
    """Return a text for a message: quoted, escaped and not too long."""
    printable = text.encode("utf-8", "backslashreplace").decode()
    cut = printable if len(printable) <= _MOST_SHOWN else printable[:_MOST_SHOWN] + "…"
    return json.dumps(cut, ensure_ascii=False)

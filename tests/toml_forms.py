"""Manifests written as TOML in each of its forms, with the places of all that is in them.

A table has a header, or is spelt by dotted keys, or stands inline; of a list of tables each has a header of its own
in the first of these forms.
"""

import json
from typing import Any, NamedTuple

FORMS = ("headers", "dotted", "inline")
NEWLINES = ("\n", "\r\n")
Path = tuple[str | int, ...]


class Written(NamedTuple):
    """A text, and where its keys and values begin."""

    text: str
    keys: dict[Path, tuple[int, int]]
    values: dict[Path, tuple[int, int]]


class Writer:
    """What writes plain data as TOML; a list of tables is one of headers only in the form of headers."""

    def __init__(self, form: str, newline: str) -> None:
        self._form = form
        self._newline = newline
        self._text = "# A comment, é\n"
        self._keys: dict[Path, int] = {}
        self._values: dict[Path, int] = {}

    def write(self, data: dict[str, Any]) -> Written:
        """Write it all."""
        if self._form == "headers":
            self._table((), data)
        elif self._form == "dotted":
            self._dotted((), data)
        else:
            self._pairs((), data)
        found = [
            {path: (self._text.count("\n", 0, at) + 1, at - self._text.rfind("\n", 0, at)) for path, at in each.items()}
            for each in (self._keys, self._values)
        ]
        return Written(self._text.replace("\n", self._newline), *found)

    def _table(self, path: Path, data: dict[str, Any]) -> None:
        self._pairs(path, {key: value for key, value in data.items() if not is_table(value) and not is_tables(value)})
        for key, value in data.items():
            if is_table(value):
                self._header("[", (*path, key))
                self._table((*path, key), value)
            elif is_tables(value):
                for number, entry in enumerate(value):
                    self._header("[[", (*path, key))
                    self._table((*path, key, number), entry)

    def _header(self, bracket: str, path: Path) -> None:
        self._text += f"\n{bracket}"
        names = [(path[: at + 1], step) for at, step in enumerate(path) if isinstance(step, str)]
        for number, (here, name) in enumerate(names):
            self._text += "." if number else ""
            self._key(here, name)
        self._text += f"{']' * len(bracket)}\n"

    def _dotted(self, path: Path, data: dict[str, Any]) -> None:
        for key, value in data.items():
            if is_table(value) and value:
                self._dotted((*path, key), value)
                continue
            for at, step in enumerate((*path, key)):
                self._text += "." if at else ""
                self._key((*path, key)[: at + 1], str(step))
            self._text += " = "
            self._value((*path, key), value)
            self._text += "\n"

    def _pairs(self, path: Path, data: dict[str, Any]) -> None:
        for key, value in data.items():
            self._key((*path, key), key)
            self._text += " = "
            self._value((*path, key), value)
            self._text += "\n"

    def _key(self, path: Path, key: str) -> None:
        self._keys.setdefault(path, len(self._text))
        self._text += key if key.replace("-", "").replace("_", "").isalnum() else json.dumps(key)

    def _value(self, path: Path, value: Any) -> None:
        self._values[path] = len(self._text)
        if isinstance(value, dict):
            self._text += "{ "
            for number, (key, item) in enumerate(value.items()):
                self._text += ", " if number else ""
                self._key((*path, key), key)
                self._text += " = "
                self._value((*path, key), item)
            self._text += " }"
        elif isinstance(value, list):
            self._text += "["
            for number, item in enumerate(value):
                self._text += "\n  "
                self._value((*path, number), item)
                self._text += ","
            self._text += "\n]"
        else:
            self._text += json.dumps(value)


def is_table(value: object) -> bool:
    """Tell whether a value is a table."""
    return isinstance(value, dict)


def is_tables(value: object) -> bool:
    """Tell whether a value can be written as an array of tables."""
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def put(data: Any, path: Path, value: Any, key: str | None = None) -> Any:
    """Return a copy with another value at a place, or under another key there."""
    if not path:
        return value
    step = path[0]
    if isinstance(data, list):
        return [put(each, path[1:], value, key) if number == step else each for number, each in enumerate(data)]
    renamed = key if key is not None and len(path) == 1 else step
    return {
        (renamed if each == step else each): put(inner, path[1:], value, key) if each == step else inner
        for each, inner in data.items()
    }

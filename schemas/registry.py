"""The JSON Schema documents of this package: what there is, its text, and what it says about a value.

They are the public contract for tools in other languages. This file is the only owner of
jsonschema, which costs too much to import for a compile that needs no schema.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from importlib.resources.abc import Traversable

    from jsonschema.exceptions import ValidationError

_SUFFIX = ".schema.json"
_LONGEST_MESSAGE = 300


def names() -> list[str]:
    """Return the names of the documents, sorted."""
    return sorted(item.name.removesuffix(_SUFFIX) for item in _package().iterdir() if item.name.endswith(_SUFFIX))


def text(name: str) -> str:
    """Return a document as it is shipped; raise KeyError for a name that is none of ``names()``."""
    if name not in names():
        raise KeyError(name)
    return (_package() / f"{name}{_SUFFIX}").read_text(encoding="utf-8")


def load(name: str) -> dict[str, Any]:
    """Return a document as plain data; raise KeyError for a name that is none of ``names()``."""
    import json

    document: dict[str, Any] = json.loads(text(name))
    return document


def errors(name: str, instance: object) -> list[str]:
    """Return what a document forbids in a value, as ``$.task[0].k: message``, sorted; empty when it fits."""
    from jsonschema import Draft202012Validator

    found = Draft202012Validator(load(name)).iter_errors(instance)
    return sorted({f"{error.json_path}: {_message(error)}" for error in _leaves(found)})


def _leaves(found: "Iterable[ValidationError]") -> "Iterator[ValidationError]":
    """Replace the error of a choice between branches by those of the branch that was meant.

    That is the one whose constants, such as a task's kind, and whose type fit. When there is none,
    the error of the choice stays, unless another one already says what is wrong with that value.
    """
    errors_found = list(found)
    said = [list(error.absolute_path) for error in errors_found if not error.context]
    for error in errors_found:
        branches: dict[object, list[ValidationError]] = {}
        for part in error.context or ():
            branches.setdefault(part.schema_path[0], []).append(part)
        meant = [parts for parts in branches.values() if not any(_tells_apart(error, part) for part in parts)]
        here = list(error.absolute_path)
        if len(meant) == 1:
            yield from _leaves(meant[0])
        elif not branches or all(path[: len(here)] != here for path in said):
            yield error


def _tells_apart(choice: "ValidationError", part: "ValidationError") -> bool:
    """Tell whether an error means that its branch of a choice was not meant."""
    depth = len(part.absolute_path) - len(choice.absolute_path)
    return (part.validator == "const" and depth == 1) or (part.validator == "type" and depth == 0)


def _message(error: "ValidationError") -> str:
    """Return an error's message, which quotes the whole value, at a length that can be read."""
    message: str = error.message
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}…"


def _package() -> "Traversable":
    from importlib.resources import files

    return files("crucible.schemas")

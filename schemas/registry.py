"""The JSON Schema documents of this package: what there is, its text, and what it says about a value.

They are the public contract for tools in other languages. This file is the only owner of
jsonschema, which costs too much to import for a compile that needs no schema, and for a manifest that fits.
"""

import json
import os
from itertools import islice
from typing import Any, NamedTuple, cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from jsonschema.exceptions import ValidationError

_SUFFIX = ".schema.json"
_LONGEST_MESSAGE = 300
_FOLDER = os.path.dirname(__file__)
_TYPES: "Mapping[str, type | tuple[type, ...]]" = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


class Fault(NamedTuple):
    """What a document forbids: where in the value, by which keyword of which subschema, and what stands there.

    ``is_name`` tells that it is the name of the key at the end of ``path`` that is wrong.
    """

    path: tuple[str | int, ...]
    keyword: str
    schema: "Mapping[str, Any]"
    value: Any
    is_name: bool = False


def names() -> list[str]:
    """Return the names of the documents, sorted."""
    return sorted(name.removesuffix(_SUFFIX) for name in os.listdir(_FOLDER) if name.endswith(_SUFFIX))


def text(name: str) -> str:
    """Return a document as it is shipped; raise KeyError for a name that is none of ``names()``."""
    if name not in names():
        raise KeyError(name)
    with open(os.path.join(_FOLDER, name + _SUFFIX), encoding="utf-8") as file:
        return file.read()


def load(name: str) -> dict[str, Any]:
    """Return a document as plain data; raise KeyError for a name that is none of ``names()``."""
    document: dict[str, Any] = json.loads(text(name))
    return document


def errors(name: str, instance: object) -> list[str]:
    """Return what a document forbids in a value, as ``$.task[0].k: message``, sorted; empty when it fits."""
    from jsonschema import Draft202012Validator

    found = Draft202012Validator(load(name)).iter_errors(instance)
    return sorted({f"{error.json_path}: {_message(error)}" for error in _leaves(found)})


def faults(name: str, instance: object, most: int) -> list[Fault]:
    """Return what a document forbids in data of TOML, each fault once; a number with a point is no integer.

    There are at most so many, which are the first that are found.
    """
    document = load(name)
    if fits(document, document, instance):
        return []
    from jsonschema import Draft202012Validator, validators

    def is_integer(_checker: object, value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool)

    unordered = Draft202012Validator.VALIDATORS["additionalProperties"]

    def in_order(validator: Any, other: Any, value: Any, schema: Any) -> "Iterator[ValidationError]":
        """Look at other keys as they are written: the library's own order is that of a set."""
        if not isinstance(other, dict) or not isinstance(value, dict):
            yield from unordered(validator, other, value, schema) or ()
            return
        for key in value:
            if key not in schema.get("properties", {}):
                yield from validator.descend(value[key], other, path=key)

    strict = validators.extend(  # type: ignore[no-untyped-call]
        Draft202012Validator,
        {"additionalProperties": in_order},
        type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", is_integer),
    )
    found: dict[tuple[object, ...], Fault] = {}
    for error in _leaves(islice(strict(document).iter_errors(instance), most)):
        keyword, schema, value = str(error.validator), cast("Mapping[str, Any]", error.schema), error.instance
        is_name = "propertyNames" in error.absolute_schema_path
        path = (*error.absolute_path, str(value)) if is_name else (*error.absolute_path,)
        found.setdefault((path, keyword), Fault(path, keyword, schema, value, is_name))
    return list(found.values())


def resolved(document: "Mapping[str, Any]", schema: "Mapping[str, Any]") -> "Mapping[str, Any]":
    """Return a subschema with what it refers to filled in."""
    if "$ref" not in schema:
        return schema
    return {**resolved(document, document["$defs"][schema["$ref"].rpartition("/")[2]]), **schema}


def fits(document: "Mapping[str, Any]", schema: "Mapping[str, Any]", value: Any) -> bool:
    """Tell whether a value fits, by the few keywords that manifest.schema.json has.

    jsonschema, which costs more than the start of a run, is for whoever has to say what does not.
    """
    schema = resolved(document, schema)
    kind = schema.get("type")
    if kind is not None and (not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return False
    if "enum" in schema and not (isinstance(value, str) and value in schema["enum"]):
        return False
    if "oneOf" in schema and sum(fits(document, part, value) for part in schema["oneOf"]) != 1:
        return False
    if isinstance(value, str):
        import re

        return (
            len(value) <= schema.get("maxLength", len(value))
            and re.search(schema.get("pattern", ""), value) is not None
        )
    if isinstance(value, int):
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    if isinstance(value, list):
        items = schema.get("items", {})
        return len(value) <= schema.get("maxItems", len(value)) and all(fits(document, items, each) for each in value)
    return not isinstance(value, dict) or _table_fits(document, schema, value)


def _table_fits(document: "Mapping[str, Any]", schema: "Mapping[str, Any]", table: "Mapping[str, Any]") -> bool:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    if not all(key in table for key in schema.get("required", ())):
        return False
    if "not" in schema and fits(document, schema["not"], table):
        return False
    for key, partners in schema.get("dependentRequired", {}).items():
        if key in table and not all(partner in table for partner in partners):
            return False
    if "propertyNames" in schema and not all(fits(document, schema["propertyNames"], key) for key in table):
        return False
    for key, value in table.items():
        part = known.get(key, others)
        if part is not True and (part is False or not fits(document, part, value)):
            return False
    return True


def _leaves(found: "Iterable[ValidationError]") -> "Iterator[ValidationError]":
    """Replace the error of a choice between branches by those of the branch that was meant.

    That is the one whose constants, such as a task's kind, and whose type fit. When there is none,
    the error of the choice stays, unless another one already says what is wrong with that value.
    """
    errors_found = list(found)
    said = [list(error.absolute_path) for error in errors_found if not error.context]
    for error in errors_found:
        if _is_of_keys(error):
            if isinstance(error.instance, dict):  # of all else its type is said
                yield error
            continue
        branches: dict[object, list[ValidationError]] = {}
        for part in error.context or ():
            branches.setdefault(part.schema_path[0], []).append(part)
        meant = [parts for parts in branches.values() if not any(_tells_apart(error, part) for part in parts)]
        here = list(error.absolute_path)
        if len(meant) == 1:
            yield from _leaves(meant[0])
        elif not branches or all(path[: len(here)] != here for path in said):
            yield error


def _is_of_keys(choice: "ValidationError") -> bool:
    """Tell whether an error is about which of some keys a table has."""
    value: Any = choice.validator_value
    parts = value if choice.validator == "oneOf" else [value] if choice.validator == "not" else []
    return bool(parts) and all(part.keys() == {"required"} for part in parts)


def _tells_apart(choice: "ValidationError", part: "ValidationError") -> bool:
    """Tell whether an error means that its branch of a choice was not meant."""
    depth = len(part.absolute_path) - len(choice.absolute_path)
    return (part.validator == "const" and depth == 1) or (part.validator == "type" and depth == 0)


def _message(error: "ValidationError") -> str:
    """Return an error's message, which quotes the whole value, at a length that can be read."""
    message: str = error.message
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}…"

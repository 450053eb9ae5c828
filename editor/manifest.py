"""Hover and completion in crucible.toml: what the schema of manifests says of the key under the cursor.

Where the cursor is, is read from the text before it: while somebody types, the rest is seldom TOML.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from crucible.compiler import toml_text
from crucible.compiler.manifest_model import SCHEMA, UNCHECKED
from crucible.compiler.positions import Path
from crucible.editor import documentation
from crucible.editor.complete import Item
from crucible.editor.hover import Hover
from crucible.editor.script import Script
from crucible.schemas import registry
from crucible.schemas.span import Position, Span

_TOKEN: Final = re.compile(
    r"""(?P<string>"{3}(?:\\[\s\S]|(?!"{3})[\s\S])*(?:"{3})?|'{3}(?:(?!'{3})[\s\S])*(?:'{3})?"""
    r"""|"(?:\\.|[^"\\\n])*"?|'[^'\n]*'?)|(?P<word>[A-Za-z0-9_+-]+)|(?P<sign>[\[\]{}=,.])|(?P<skip>\#[^\n]*|[\s\S])"""
)
_HEADER: Final = re.compile(r"[ \t]*(\[\[?)[ \t]*([A-Za-z0-9_.-]*)")
_WORD: Final = re.compile(r"[A-Za-z0-9_-]*\Z")
_Schema = Mapping[str, Any]


def hover(script: Script, at: Position) -> Hover | None:
    """Say what the key at a position means, or that of the value; None where the schema knows nothing."""
    places = toml_text.locate(script.plain)
    found = places.at(script.offset(at))
    if found is None:
        return None
    path, span = found
    document = registry.load(SCHEMA)
    while path:
        schema = _at(document, path) if isinstance(path[-1], str) else None
        if schema is not None and "description" in schema:
            return Hover(_described(path, schema), span)
        path = path[:-1]
    return None


def complete(script: Script, at: Position) -> list[Item]:
    """Return the keys, tables and closed values that can stand at a position."""
    cursor = _cursor(script.plain, script.offset(at))
    if cursor is None:
        return []
    document = registry.load(SCHEMA)
    span = Span(script.position(cursor.begin), at)
    if cursor.header:
        return list(_headers(document, cursor, span))
    schema = _at(document, cursor.path)
    if schema is None:
        return []
    return list(_values(schema, cursor, span) if cursor.is_value else _keys(schema, cursor, span, document))


# What can stand there


def _headers(document: _Schema, cursor: "_Cursor", span: Span) -> Iterator[Item]:
    """Yield the tables that a header can begin, those of lists behind two brackets."""
    pending: list[tuple[Path, _Schema]] = [((), document)]
    while pending:
        path, schema = pending.pop(0)
        for name, part in schema.get("properties", {}).items():
            inner = registry.resolved(document, part)
            is_list = inner.get("type") == "array" and "object" in (
                each.get("type") for each in _branches(document, inner.get("items", {}))
            )
            here = (*path, name)
            is_table = inner.get("type") == "object" or here[0] in UNCHECKED
            if is_list if cursor.header == "[[" else is_table and here not in cursor.given:
                dotted = ".".join(map(str, here))
                yield Item(dotted, "constructor", dotted, span, inner["title"], _described(here, inner))
            if not is_list:
                pending.append((here, inner))


def _keys(schema: _Schema, cursor: "_Cursor", span: Span, document: _Schema) -> Iterator[Item]:
    """Yield the keys that the table has not yet."""
    for name, part in schema.get("properties", {}).items():
        path = (*cursor.path, name)
        if path not in cursor.given:
            inner = registry.resolved(document, part)
            is_table = inner.get("type") == "object" and not cursor.is_inline
            insert = f"{name}." if is_table else f"{name} = "
            yield Item(name, "argument", insert, span, inner.get("title", ""), _described(path, inner))


def _values(schema: _Schema, cursor: "_Cursor", span: Span) -> Iterator[Item]:
    """Yield the values of a closed set."""
    for value in schema.get("enum", ()):
        text = value if cursor.in_string else json.dumps(value)
        yield Item(text, "value", text, span)
    if schema.get("type") == "boolean" and not cursor.in_string:
        for text in ("true", "false"):
            yield Item(text, "value", text, span)


def _described(path: Path, schema: _Schema) -> str:
    """Describe a key: what it takes, what that means, an example."""
    takes = " or ".join(json.dumps(each) for each in schema.get("enum", ())) or _KINDS.get(schema.get("type", ""), "")
    default = f"{json.dumps(schema['default'])} by default" if "default" in schema else ""
    facts = ", ".join(each for each in (takes, default) if each)
    dotted = ".".join(each for each in path if isinstance(each, str))
    lines = [f"`{dotted}`" + (f" ({facts})" if facts else ""), "", schema["description"]]
    example = next(iter(schema.get("examples", ())), None)
    if isinstance(example, (str, bool, int)):
        lines += ["", documentation.block(f"{path[-1]} = {json.dumps(example)}", "toml")]
    return "\n".join(lines)


_KINDS: Final = {
    "string": "a string",
    "integer": "an integer",
    "boolean": "a boolean",
    "array": "a list",
    "object": "a table",
}


# The schema of a place


def _branches(document: _Schema, schema: _Schema) -> list[_Schema]:
    """Return the subschemas that a choice is between, or the one there is."""
    found = registry.resolved(document, schema)
    parts = found.get("oneOf", ())
    return [registry.resolved(document, each) for each in parts] if any("$ref" in each for each in parts) else [found]


def _at(document: _Schema, path: Path) -> _Schema | None:
    """Return the subschema of a place, None for one that it does not know."""
    schema: _Schema = document
    for step in path:
        for branch in _branches(document, schema):
            if isinstance(step, int):
                inner = branch.get("items")
            else:
                inner = branch.get("properties", {}).get(step, branch.get("additionalProperties"))
            if isinstance(inner, dict):
                schema = registry.resolved(document, inner)
                break
        else:
            return None
    return next((each for each in _branches(document, schema) if each.get("type") == "object"), schema)


# Where the cursor is


class _Cursor(NamedTuple):
    """What the text before the cursor tells.

    ``header`` are the brackets of a table header, "" for a key or a value. ``path`` is the table whose key is
    typed, or the key whose value is. What is typed of it begins at the offset ``begin``. ``given`` is what the
    rest of the text has.
    """

    header: str
    path: Path
    begin: int
    is_value: bool
    in_string: bool
    is_inline: bool
    given: frozenset[Path]


def _cursor(text: str, offset: int) -> _Cursor | None:
    """Read where the cursor is; None where nothing is completed, as in a comment."""
    line = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    before = toml_text.scan(text[:line])
    begin = before.statements[-1].begin if before.unclosed and before.statements else line
    given = frozenset(toml_text.locate(text[:begin] + text[len(text) if end < 0 else end :]).paths())
    head = text[begin:offset]
    header = _HEADER.fullmatch(head)
    if header is not None and not before.unclosed:
        return _Cursor(header[1], (), begin + header.start(2), False, False, False, given)  # noqa: FBT003
    headers = [each.keys for each in before.statements if each.is_header]
    table = before.positions.last(headers[-1]) if headers else ()
    return _inside(head, begin, table, given)


def _inside(head: str, begin: int, table: Path, given: frozenset[Path]) -> _Cursor | None:
    """Read the statement that the cursor is in, up to it."""
    stack: list[tuple[Path, str]] = []
    own: set[Path] = set()
    base, keys, opener, is_value = table, [""], "", False
    last = ""
    for token in _TOKEN.finditer(head):
        text = token.group()
        last = token.lastgroup or ""
        if last == "skip" and text.startswith("#") and token.end() == len(head):
            return None
        if last in ("word", "string") and not is_value:
            keys[-1] = text.strip("\"'")
        elif text == "." and not is_value:
            keys.append("")
        elif text == "=" and not is_value:
            is_value = True
            own.add((*base, *keys))
        elif text in ("{", "[") and is_value:
            stack.append((base, opener))
            base = (*base, *keys) if opener != "[" else (*base, 0)
            keys, opener, is_value = [""], text, text == "["
        elif text in ("}", "]") and stack:
            base, opener = stack.pop()
            keys, is_value = [""], True
        elif text == ",":
            keys, is_value = [""], opener == "["
    path = (*base, *keys) if opener != "[" else (*base, 0)
    is_string = last == "string" and is_value
    if is_string:
        quoted = list(_TOKEN.finditer(head))[-1]
        text = quoted.group()
        if len(text) > 1 and text[0] == text[-1]:
            return None
        return _Cursor("", path, begin + quoted.start() + 1, True, True, bool(stack), given | own)  # noqa: FBT003
    word = _WORD.search(head)
    start = begin + (word.start() if word else len(head))
    if not is_value:
        path = path[:-1]
    return _Cursor("", path, start, is_value, False, bool(stack), given | own)  # noqa: FBT003

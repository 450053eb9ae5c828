"""The pages of reference that no command prints: every command with its options, every JSON Schema with its keys."""

import argparse
import json
import os
from collections.abc import Iterator
from typing import Any, Final

from crucible import stdlib_star
from crucible.cli import main
from crucible.compiler.output.reference import escaped, table
from crucible.schemas import registry

_COMMANDS: Final = """\
# The command line

Every command has `--help`, which shows what this page shows, and `--debug`, which shows a traceback when the
command itself fails.
"""
_LIBRARY: Final = """\
# The standard library

Modules that every source can load; nothing of them is left in the plan but the tasks that they build. A mistake in a
call is told at that call. A playbook may load those that name no constructor of the scored lanes: matrix, panel,
prompts and review_loop.
"""
_SCHEMAS: Final = """\
# The JSON Schemas

What programs in other languages can rely on: `crucible plan schema NAME` prints one of these, in draft 2020-12. A
key that is not listed is forbidden. A key is required where its name is bold, at least in some of the forms that
its object has.
"""


def library() -> str:
    """Return the page of the standard library: what its sources say of themselves."""
    parts = [_LIBRARY]
    for name in sorted(os.listdir(os.path.dirname(stdlib_star.__file__))):
        if name.endswith(".star"):
            with open(os.path.join(os.path.dirname(stdlib_star.__file__), name), encoding="utf-8") as file:
                parts += _of_module(name, file.read())
    return "\n".join(parts)


def _of_module(name: str, text: str) -> Iterator[str]:
    words, *rest = text.split('"""')[1::2]
    head, example, behind = _parted(words)
    yield f"## {name.removesuffix('.star').replace('_', ' ')}\n"
    yield f"`@crucible//{name}`\n"
    yield f"{head}\n\n```starlark\n{example}\n```\n\n{behind}\n"
    functions = [part for part in text.split("\ndef ")[1:] if not part.startswith("_")]
    for function, doc in zip(functions, rest, strict=True):
        signature = function.partition("):\n")[0] + ")"
        summary, _, arguments = doc.partition("    Args:\n")
        taken, _, given = arguments.partition("    Returns:\n")
        yield f"### {signature.partition('(')[0]}\n\n```starlark\n{signature}\n```\n"
        yield " ".join(summary.split()) + "\n"
        yield table(["argument", "what it is"], [_row(line) for line in taken.strip().splitlines()])
        yield f"Returns: {' '.join(given.split())}\n"


def _parted(words: str) -> tuple[str, str, str]:
    """Cut the words of a module into what stands before its example, the example, and what stands behind."""
    lines = words.strip().split("\n")
    inside = [number for number, line in enumerate(lines) if line.startswith("    ")]
    first, last = inside[0], inside[-1]
    example = "\n".join(line.removeprefix("    ") for line in lines[first : last + 1])
    return "\n".join(lines[:first]).strip(), example, "\n".join(lines[last + 1 :]).strip()


def _row(line: str) -> list[str]:
    name, _, what = line.strip().partition(": ")
    return [f"`{name}`", escaped(what)]


def command_line() -> str:
    """Return the page of all commands."""
    return "\n".join([_COMMANDS, *_of_command(main.parser())])


def _of_command(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Give what there is to say of a command, and of those inside of it."""
    inner = _inner(parser)
    yield f"## {parser.prog}\n"
    yield f"{parser.description}\n"
    if inner is not None:
        rows = [
            [f"[`{parser.prog} {each.dest}`](#{_anchor(parser.prog)}-{each.dest})", each.help or ""]
            for each in _help(inner)
        ]
        yield table(["command", "does"], rows)
    rows = [[_named(action), _meaning(action)] for action in parser._actions if _is_its_own(action)]
    if rows:
        yield table(["argument", "what it is"], rows)
    if parser.epilog:
        yield f"```text\n{parser.epilog}\n```\n"
    for command in inner.choices.values() if inner is not None else ():
        yield from _of_command(command)


def _inner(parser: argparse.ArgumentParser) -> "argparse._SubParsersAction[argparse.ArgumentParser] | None":
    return next((action for action in parser._actions if isinstance(action, argparse._SubParsersAction)), None)


def _help(inner: "argparse._SubParsersAction[argparse.ArgumentParser]") -> list[argparse.Action]:
    return inner._choices_actions


def _anchor(title: str) -> str:
    return title.replace(" ", "-")


def _is_its_own(action: argparse.Action) -> bool:
    """Tell whether an argument is none that all commands have."""
    return action.dest not in {"help", "debug"} and not isinstance(action, argparse._SubParsersAction)


def _named(action: argparse.Action) -> str:
    """Write an argument as one types it; brackets stand around what may be left out."""
    what = str(action.metavar or action.dest)
    if action.choices:
        what = "|".join(map(str, action.choices))
    if not action.option_strings:
        return f"`{what}`" if action.required else f"`[{what}]`"
    name = action.option_strings[0] if action.nargs == 0 else f"{action.option_strings[0]} {what}"
    return f"`{name}`" if action.required else f"`[{name}]`"


def _meaning(action: argparse.Action) -> str:
    return escaped(action.help or "")


def schemas() -> str:
    """Return the page of all schemas."""
    parts = [_SCHEMAS]
    for name in registry.names():
        document = registry.load(name)
        parts += [f"## {name}\n", f"**{document['title']}.** {escaped(document['description'])}\n"]
        parts += _of_objects(document, name)
    return "\n".join(parts)


def _of_objects(document: dict[str, Any], name: str) -> Iterator[str]:
    """Give a table of keys for the document itself and for each definition and each nested object that has some."""
    yield from _of_object(document, document, name, "")
    for key, part in document.get("$defs", {}).items():
        yield from _of_object(part, document, name, key)


def _of_object(part: dict[str, Any], document: dict[str, Any], name: str, path: str) -> Iterator[str]:
    keys = part.get("properties", {})
    described = {key: value for key, value in keys.items() if isinstance(value, dict)}
    if not described:
        return
    if path:
        yield f"### {name}: {path}\n"
        if "description" in part:
            yield f"{escaped(part['description'])}\n"
    required = _required(part)
    rows = [
        [
            f"**`{key}`**" if key in required else f"`{key}`",
            _type(value, document),
            escaped(_description(value, document)),
        ]
        for key, value in described.items()
    ]
    yield table(["key", "type", "what it is"], rows)
    for key, value in described.items():
        inside = value.get("items", value)
        yield from _of_object(inside, document, name, f"{path}.{key}" if path else key)


def _required(part: dict[str, Any]) -> set[str]:
    """Return the keys that an object has to have."""
    return set(part.get("required", ()))


def _type(part: dict[str, Any], document: dict[str, Any]) -> str:
    """Name the type of a value, or the values that there are."""
    part = _followed(part, document)
    if "const" in part:
        return f"`{json.dumps(part['const'])}`"
    if "enum" in part:
        return " or ".join(f"`{json.dumps(value)}`" for value in part["enum"])
    types = part.get("type")
    if types == "array":
        inner = _type(part.get("items", {}), document)
        return f"array of {inner}" if inner else "array"
    if types is not None:
        return " or ".join([types] if isinstance(types, str) else types)
    choices = dict.fromkeys(_type(each, document) for word in ("oneOf", "anyOf") for each in part.get(word, ()))
    return " or ".join(each for each in choices if each)


def _description(part: dict[str, Any], document: dict[str, Any]) -> str:
    """Return what is said of a value where it stands, else where its definition stands."""
    return str(part.get("description") or _followed(part, document).get("description", ""))


def _followed(part: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """Return a schema, the one that it refers to where it does."""
    while "$ref" in part:
        part = document["$defs"][part["$ref"].removeprefix("#/$defs/")]
    return part

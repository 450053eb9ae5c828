"""[workflow] of a manifest: every key of its schemas, in every form that TOML has for it, as it is read and checked."""

from collections.abc import Iterator
from pathlib import Path as File
from typing import Any, NamedTuple

import pytest
from contract import contract
from toml_forms import FORMS, NEWLINES, Path, Writer, Written, put

from crucible.compiler import manifest_reading
from crucible.compiler.check import check
from crucible.compiler.manifest import read_workflow
from crucible.schemas import ir, registry
from crucible.schemas.diagnostic import Diagnostic, Severity

WORKFLOW = registry.load("workflow")
MANIFEST = registry.load("manifest")
OF_MANIFEST = MANIFEST["properties"]["workflow"]["properties"]
KINDS = [part["$ref"].rpartition("/")[2] for part in WORKFLOW["$defs"]["task"]["oneOf"]]
BASE: Path = ("workflow",)
FIRST: Path = ("workflow", "task", 0)
PARAM: Path = ("workflow", "params", "a.b")
NOBODY = "qzqzqzqz"
# Of what a schema says no more than its type.
SAMPLES: dict[str, object] = {"string": "name", "array": ["name"], "number": 1.5, "integer": 2, "boolean": True}


class Key(NamedTuple):
    """A key: where it stands, its subschema, and the smallest manifest that has it, with a valid value."""

    path: Path
    schema: dict[str, Any]
    data: dict[str, Any]


# Walking the schemas


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a subschema of a workflow with what it refers to filled in."""
    return dict(registry.resolved(WORKFLOW, schema))


def types(schema: dict[str, Any]) -> list[str]:
    """Return the types that a value may have; of a closed set they are strings."""
    found = schema.get("type", "string")
    return [found] if isinstance(found, str) else [each for each in found if each != "null"]


def sample(schema: dict[str, Any]) -> Any:
    """Return a valid value: one that the schema names, or any of its type; TOML has no null."""
    named = [*schema.get("examples", ()), *schema.get("enum", ()), schema.get("const"), schema.get("default")]
    return next((each for each in named if each not in (None, [])), SAMPLES.get(types(schema)[0]))


def task(kind: str, *more: str) -> dict[str, Any]:
    """Return a task with what its kind cannot do without, and some other keys."""
    schema = WORKFLOW["$defs"][kind]
    needed = [key for key in schema["required"] if "default" not in resolved(schema["properties"][key])]
    pairs = schema.get("dependentRequired", {})
    partners = [partner for key in more for partner in pairs.get(key, ())]
    return {key: sample(resolved(schema["properties"][key])) for key in dict.fromkeys((*needed, *more, *partners))}


def keys() -> Iterator[Key]:
    """Yield every key of [workflow], of its tasks by kind, and every element of a list."""
    build = task("command")
    whole = {"type": "custom", "task": [build]}
    yield Key(BASE, MANIFEST["properties"]["workflow"], {"workflow": whole})
    for key in OF_MANIFEST:
        schema = OF_MANIFEST[key] if key == "file" else resolved(WORKFLOW["properties"][key])
        table = {"type": "playbook", **(whole if key == "result" else {})}
        table[key] = [build] if key == "task" else sample(schema)
        if key not in ("file", "task"):
            table["task"] = [build]
        yield Key((*BASE, key), schema, {"workflow": table})
    of_values = WORKFLOW["properties"]["params"]["additionalProperties"]
    for each in types(of_values):
        schema = {**of_values, "type": each}
        data = {"workflow": {"type": "playbook", "params": {"a.b": SAMPLES[each]}, "task": [build]}}
        yield Key(PARAM, schema, data)
        if each == "array":
            yield Key((*PARAM, 0), schema["items"], data)
    for kind in KINDS:
        yield Key(FIRST, {"type": "object"}, {"workflow": {"type": "custom", "task": [task(kind)]}})
        for key, part in WORKFLOW["$defs"][kind]["properties"].items():
            schema, data = resolved(part), {"workflow": {"type": "custom", "task": [task(kind, key)]}}
            yield Key((*FIRST, key), schema, data)
            if types(schema) == ["array"]:
                yield Key((*FIRST, key, 0), schema["items"], data)


KEYS = list(keys())
NAMED = [each for each in KEYS if isinstance(each.path[-1], str) and each.path != PARAM]


def at(data: Any, path: Path) -> Any:
    """Return what stands at a place."""
    for step in path:
        data = data[step]
    return data


def name(key: Key) -> str:
    """Name a key as the report of the tests shows it."""
    kind = f"{at(key.data, FIRST)['kind']}-" if key.path[:3] == FIRST else ""
    return f"{kind}{'.'.join(map(str, key.path))}-{types(key.schema)[0]}"


every_newline = pytest.mark.parametrize("newline", NEWLINES, ids=["lf", "crlf"])
every_key = pytest.mark.parametrize("key", KEYS, ids=name)
every_name = pytest.mark.parametrize("key", NAMED, ids=name)


def wrong(key: Key) -> Any:
    """Return a value of the wrong type; of a parameter, whose type its source says, a table."""
    if key.path == PARAM:
        return {"x": 1}
    return "wrong" if types(key.schema)[0] in ("boolean", "integer", "number") else 3


def found_in(written: Written) -> list[Diagnostic]:
    """Return what is wrong in a manifest and its workflow."""
    manifest, diagnostics = manifest_reading.read(written.text, "crucible.toml")
    assert manifest is not None
    return [*diagnostics, *read_workflow(written.text, "crucible.toml", "toml")[1]]


def said(written: Written) -> list[tuple[str, tuple[int, int] | None]]:
    """Return the codes and the places of what is wrong."""
    return [(each.code, each.span and (each.span.begin.line, each.span.begin.column)) for each in found_in(written)]


# Every key


def place(written: Written, path: Path, form: str) -> tuple[int, int]:
    """Return where a value begins; a table has its header in the place of one, or else its key."""
    if path in written.values:
        return written.values[path]
    return (written.keys[path][0], 1) if form == "headers" else written.keys[path]


@every_newline
@every_key
def test_a_valid_value_is_accepted(key: Key, newline: str) -> None:
    """Of every key, in every form, with what the key needs beside it."""
    for form in FORMS:
        assert said(Writer(form, newline).write(key.data)) == [], form


@every_newline
@every_key
def test_a_value_of_the_wrong_type_is_refused_where_it_stands(key: Key, newline: str) -> None:
    """At its line and column, with nothing else said of it."""
    data = put(key.data, key.path, wrong(key))
    for form in FORMS:
        written = Writer(form, newline).write(data)
        assert said(written) == [("wrong-type", place(written, key.path, form))], form


@every_newline
@every_name
@contract("§1", "Unknown keys are an error (typo protection), not silently ignored.")
def test_an_unknown_neighbour_is_refused_at_its_key(key: Key, newline: str) -> None:
    """In the manifest, in its workflow, and in a task of each kind."""
    data = put(key.data, key.path[:-1], {**at(key.data, key.path[:-1]), NOBODY: 1})
    for form in FORMS:
        written = Writer(form, newline).write(data)
        assert said(written) == [("unknown-key", written.keys[*key.path[:-1], NOBODY])], form


@every_newline
@every_name
def test_a_misspelt_key_is_refused_with_the_one_that_was_meant(key: Key, newline: str) -> None:
    """At the key, with an edit that mends it, and not as one that is missing."""
    meant = str(key.path[-1])
    misspelt = f"{meant}x" if len(meant) > 1 else meant.upper()
    data = put(key.data, key.path, at(key.data, key.path), misspelt)
    for form in FORMS:
        written = Writer(form, newline).write(data)
        [diagnostic] = found_in(written)
        span = diagnostic.span
        assert (diagnostic.code, span and tuple(span.begin)) == ("unknown-key", written.keys[*key.path[:-1], misspelt])
        assert f'did you mean "{meant}"?' in diagnostic.message
        assert diagnostic.suggestion is not None
        assert (diagnostic.suggestion.replacement, diagnostic.suggestion.span) == (meant, span)


@every_key
def test_a_check_says_it_and_no_more(key: Key, tmp_path: File) -> None:
    """What is wrong with a value alone breaks no rule of the graph."""
    (tmp_path / "workflow.star").write_text("")
    before, now = (
        {
            (each.code, each.span and tuple(each.span.begin))
            for each in check(str(tmp_path / "crucible.toml"), written.text.encode()).diagnostics
            if each.severity is Severity.ERROR
        }
        for written in (Writer("headers", "\n").write(data) for data in (key.data, put(key.data, key.path, wrong(key))))
    )
    [found] = now - before
    written = Writer("headers", "\n").write(put(key.data, key.path, wrong(key)))
    assert found == ("wrong-type", place(written, key.path, "headers"))


def test_the_editors_schema_has_the_keys_of_a_workflow() -> None:
    """Those of the workflow's own schema, which this walk reads, and the file in place of tasks."""
    assert {*OF_MANIFEST} == {*WORKFLOW["properties"], "file"}


def test_a_task_of_every_kind_is_walked() -> None:
    """With every key that tasks of its kind are read with."""
    assert {*KINDS} == {*ir.KINDS}
    for kind, of_kind in ir.KINDS.items():
        walked = {key.path[-1] for key in NAMED if key.path[:3] == FIRST and at(key.data, FIRST)["kind"] == kind}
        assert walked | {"session"} == {*of_kind.fields, "kind", "session"}

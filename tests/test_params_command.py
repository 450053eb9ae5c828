"""plan params and plan schema as processes: what is printed is JSON Schema."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from process import COMPILE, SOURCE, codes, crucible, pack

from crucible.schemas import registry

PARAMS = ("plan", "params", "--file", "workflow.star")
PLAYBOOK = '''\
"""A docstring may stand first."""

params = {
    "topic": {
        "type": "string", "required": True, "doc": "What it is about: é.", "pattern": "^[a-z]+$", "example": "tides",
    },
    "depth": {"type": "string", "default": "short", "choices": ["short", "long"]},
    "rounds": {"type": "int", "default": -2, "min": -3, "max": 9},
    "share": {"type": "number", "default": 1, "max": 1.5},
    "fast": {"type": "bool", "required": True},
    "tags": {"type": "list<string>", "default": ["a"], "doc": "Labels."},
}

fail("never evaluated")
workflow(type = "playbook", tasks = [])
'''


def test_the_parameters_are_printed_as_json_schema(tmp_path: Path) -> None:
    """Every field of a declaration has its keyword, and the source is not evaluated."""
    done = crucible(*PARAMS, cwd=pack(tmp_path, workflow=PLAYBOOK))
    assert (done.status, done.err) == (0, b"")
    schema = json.loads(done.out)
    Draft202012Validator.check_schema(schema)
    assert schema == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "required": ["topic", "fast"],
        "properties": {
            "topic": {
                "type": "string",
                "description": "What it is about: é.",
                "pattern": "^[a-z]+$",
                "examples": ["tides"],
            },
            "depth": {"type": "string", "default": "short", "enum": ["short", "long"]},
            "rounds": {"type": "integer", "default": -2, "minimum": -3, "maximum": 9},
            "share": {"type": "number", "default": 1.0, "maximum": 1.5},
            "fast": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}, "default": ["a"], "description": "Labels."},
        },
    }
    assert list(schema["properties"]) == ["topic", "depth", "rounds", "share", "fast", "tags"]
    assert "é".encode() in done.out
    assert done.out.endswith(b"}\n")


@pytest.mark.parametrize("source", [SOURCE, SOURCE.replace("custom", "playbook"), "params = 3\n" + SOURCE])
def test_a_source_without_parameters_takes_none(tmp_path: Path, source: str) -> None:
    """In other lanes params is a name like any other."""
    schema = json.loads(crucible(*PARAMS, cwd=pack(tmp_path, workflow=source)).out)
    assert (schema["properties"], schema["required"], schema["additionalProperties"]) == ({}, [], False)


def test_a_manifest_has_the_parameters_of_the_source_that_it_names(tmp_path: Path) -> None:
    """What is compiled already takes none; a manifest that names no source is told so."""
    pack(tmp_path, workflow=PLAYBOOK, manifest='[workflow]\ntype = "playbook"\nfile = "workflow.star"\n')
    line = ("plan", "params", "--format", "json", "--file")
    assert crucible(*line, "crucible.toml", cwd=tmp_path) == crucible(*line, "workflow.star", cwd=tmp_path)
    pack(tmp_path / "compiled", manifest="")
    fill = crucible(*COMPILE, "--manifest", "crucible.toml", cwd=tmp_path / "compiled")
    (tmp_path / "compiled" / "workflow.json").write_bytes(fill.out)
    for name in ("crucible.toml", "workflow.json"):
        done = crucible(*line, name, cwd=tmp_path / "compiled")
        assert (done.status, json.loads(done.out)["properties"]) == (0, {})
    for text, code in (
        ('file = "../x.star"', "path-refused"),
        ('file = "x.star"', "file-not-found"),
        ("", "missing-key"),
    ):
        (tmp_path / "crucible.toml").write_text(f'[workflow]\ntype = "playbook"\n{text}\n')
        done = crucible(*line, "crucible.toml", cwd=tmp_path)
        assert (done.status, done.out, codes(done.report)) == (1, b"", [code])


def test_the_parameters_may_come_from_standard_input(tmp_path: Path) -> None:
    """The same text gives the same schema."""
    pack(tmp_path, workflow=PLAYBOOK)
    line = ("plan", "params", "--file", "-", "--stdin-filename", "workflow.star")
    assert crucible(*line, cwd=tmp_path, stdin=PLAYBOOK.encode()) == crucible(*PARAMS, cwd=tmp_path)


@pytest.mark.parametrize("style", ["text", "json"])
def test_mistakes_in_the_declarations_leave_no_product(tmp_path: Path, style: str) -> None:
    """All of them are told, with their places."""
    source = (
        PLAYBOOK.replace('"int"', '"integer"')
        .replace('"min": -3, ', "")
        .replace('"fast": {"type": "bool", ', '"fast": {')
    )
    done = crucible(*PARAMS, "--format", style, cwd=pack(tmp_path, workflow=source))
    assert (done.status, done.out) == (1, b"")
    if style == "json":
        assert codes(done.report) == ["invalid-params"] * 2
        assert [each["span"]["begin"]["line"] for each in done.report["diagnostics"]] == [8, 10]
    else:
        assert done.err.count(b"error[invalid-params]: ") == 2


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (PLAYBOOK.replace('"playbook"', '"playbok"'), ["unknown-value"]),
        (PLAYBOOK + "x = = 1\n", ["syntax-error"]),
        (PLAYBOOK.replace("\n}\n", "\n} 3\n"), ["syntax-error"]),
        (
            PLAYBOOK.replace('"min": -3', '"min": 3').replace("tasks = []", "tasks = [,]"),
            ["invalid-params", "syntax-error"],
        ),
    ],
)
def test_a_source_that_cannot_be_read_has_no_schema(tmp_path: Path, source: str, expected: list[str]) -> None:
    """A schema would promise a launch that can never be."""
    done = crucible(*PARAMS, "--format", "json", cwd=pack(tmp_path, workflow=source))
    assert (done.status, done.out) == (1, b"")
    assert sorted(set(codes(done.report))) == expected


def test_a_source_that_is_no_text_declares_nothing(tmp_path: Path) -> None:
    """The scan finds it before anything else reads it."""
    done = crucible(*PARAMS, "--format", "json", cwd=pack(tmp_path, workflow=b"params = \xff"))
    assert (done.status, done.out, codes(done.report)) == (1, b"", ["source-not-utf8"])


def test_the_json_report_of_a_success_stands_beside_the_schema(tmp_path: Path) -> None:
    """One object on each stream, whatever happens."""
    done = crucible(*PARAMS, "--format", "json", cwd=pack(tmp_path, workflow=PLAYBOOK))
    assert done.status == 0
    assert json.loads(done.out)["required"] == ["topic", "fast"]
    assert codes(done.report) == []


# plan schema, plan explain


def test_every_schema_is_listed_and_printed() -> None:
    """Without a name, the names; with one, the document as it is shipped."""
    done = crucible("plan", "schema")
    assert (done.status, done.err) == (0, b"")
    names = done.out.decode().split()
    assert names == registry.names()
    for name in names:
        printed = crucible("plan", "schema", name)
        assert (printed.status, printed.out.decode()) == (0, registry.text(name))
        Draft202012Validator.check_schema(json.loads(printed.out))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (("plan", "schema", "workflw"), 'crucible: there is no schema "workflw"; did you mean "workflow"?'),
        (("plan", "explain", "dropped-tsk"), 'crucible: there is no code "dropped-tsk"; did you mean "dropped-task"?'),
    ],
)
def test_an_unknown_name_is_2_with_a_suggestion(line: tuple[str, ...], said: str) -> None:
    """What was likely meant is offered."""
    done = crucible(*line)
    assert (done.status, done.out, done.err.decode()) == (2, b"", f"{said}\n")


def test_a_code_is_explained() -> None:
    """The help line of every diagnostic leads here."""
    done = crucible("plan", "explain", "dropped-task")
    assert (done.status, done.err) == (0, b"")
    assert b"dropped-task" in done.out
    assert b"list it or delete it" in done.out
    for copied in ("error[dropped-task]", "error[dropped-task]:"):
        assert crucible("plan", "explain", copied).out == done.out

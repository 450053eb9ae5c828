"""The JSON Schemas, held to the code in both directions: what it writes fits, what they forbid it refuses."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from compiled import compiled_workflows
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from crucible.compiler.output import report
from crucible.schemas import canonical, ir, registry
from crucible.schemas.codes import CODES
from crucible.schemas.diagnostic import Diagnostic, Related, Severity, Suggestion
from crucible.schemas.span import Position, Span

WORKFLOW = registry.load("workflow")
DIAGNOSTICS = registry.load("diagnostics")
EXAMPLES = WORKFLOW["examples"]


def test_the_documents_are_shipped() -> None:
    """Their names are those that a command takes."""
    assert {"diagnostics", "workflow"} <= set(registry.names())
    assert registry.names() == sorted(registry.names())


@pytest.mark.parametrize("name", registry.names())
def test_a_document_is_a_schema_that_explains_itself(name: str) -> None:
    """Draft 2020-12, an identifier of its own, and a title, a description and examples that fit."""
    document = registry.load(name)
    Draft202012Validator.check_schema(document)
    assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert document["$id"] == f"urn:crucible:schema:{name}:1"
    assert document["title"]
    assert document["description"]
    assert document["examples"]
    assert [registry.errors(name, example) for example in document["examples"]] == [[] for _ in document["examples"]]
    assert json.loads(registry.text(name)) == document
    assert registry.text(name).endswith("}\n")


@pytest.mark.parametrize("name", registry.names())
def test_every_object_of_a_document_is_closed_and_explained(name: str) -> None:
    """A key that is not listed is forbidden; one that is has a description, its own or a shared one."""
    for path, part in _parts(registry.load(name)):
        if part.get("type") == "object":
            assert "additionalProperties" in part or "oneOf" in part, path
        if len(path) > 1 and path[-2] == "properties" and path[-1] not in _PLAIN_NAMES and "else" not in path:
            assert "$ref" in part or "if" in path or "dependentSchemas" in path or part.get("description"), path


# Properties whose name says it all, and the one that the branches of a choice say again.
_PLAIN_NAMES = ("line", "column", "files", "errors", "warnings", "message", "replacement", "kind")


def _parts(part: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Walk the subschemas of a document, examples and defaults left out."""
    if isinstance(part, dict):
        yield path, part
        for key, value in part.items():
            if key not in ("examples", "default", "const", "enum"):
                yield from _parts(value, (*path, key))
    elif isinstance(part, list):
        for number, value in enumerate(part):
            yield from _parts(value, (*path, str(number)))


@pytest.mark.parametrize("name", ["", "Workflow", "../schemas/workflow", "workflow.schema.json", "workflow/"])
def test_an_unknown_name_is_refused(name: str) -> None:
    """A name is looked up in the list, never made into a path."""
    with pytest.raises(KeyError):
        registry.text(name)
    with pytest.raises(KeyError):
        registry.load(name)


# The workflow: fields


def test_the_fields_of_a_workflow_are_those_of_the_schema() -> None:
    """The same keys in the same order, the closed sets of values too."""
    written = ir.to_plain(ir.Workflow(type="playbook", result="r", params={}, task=()))
    assert list(WORKFLOW["properties"]) == list(written)
    assert set(written) == set(ir.Workflow.fields)
    assert set(WORKFLOW["required"]) == set(ir.to_plain(ir.Workflow(type="custom", task=())))
    assert WORKFLOW["properties"]["type"]["enum"] == list(ir.LANES)
    for name, values in {"join": ir.JOINS, "direction": ir.DIRECTIONS}.items():
        assert WORKFLOW["$defs"][name]["enum"] == list(values)
    assert WORKFLOW["$defs"]["isolation"]["enum"] == [ir.WORKTREE, None]
    assert WORKFLOW["$defs"]["stage"]["const"] in ir.STAGES
    assert WORKFLOW["$defs"]["engine"]["properties"]["op"]["enum"] == list(ir.OPERATIONS)
    assert WORKFLOW["$defs"]["name"]["maxLength"] == ir.NAME_LENGTH


def test_there_is_one_branch_for_every_kind() -> None:
    """A kind that is added to the code is added to the schema."""
    task = WORKFLOW["$defs"]["task"]
    assert task["properties"]["kind"]["enum"] == list(ir.KINDS)
    assert task["oneOf"] == [{"$ref": f"#/$defs/{kind}"} for kind in ir.KINDS]


# A value for every field of every kind, none of them a default.
SET: dict[str, Any] = {
    "name": "t",
    "prompt": "p",
    "harness": "h",
    "model": "m",
    "effort": "e",
    "command": "c",
    "threshold": 1.0,
    "direction": "lower",
    "k": 1,
    "op": "grade",
    "source": "s",
    "tiebreak": "s",
    "depends_on": ("s",),
    "session": "s",
    "needs": "gpu",
    "required": False,
    "isolation": "worktree",
    "join": "passed",
    "stage": "epilogue",
    "emits": ("score",),
}


@pytest.mark.parametrize("kind", ir.KINDS)
def test_the_fields_of_a_kind_are_those_of_its_branch(kind: str) -> None:
    """The same keys in the same order, but for a session, which only agents and engines can have."""
    branch = WORKFLOW["$defs"][kind]
    names = ir.KINDS[kind].fields
    written = list(ir.task_to_plain(ir.KINDS[kind](**{name: SET[name] for name in names})))
    assert sorted(written) == sorted(["kind", *names])
    if kind not in ("agent", "engine"):
        written.remove("session")
    assert list(branch["properties"]) == written
    assert branch["properties"]["kind"] == {"const": kind}


@pytest.mark.parametrize("kind", ir.KINDS)
def test_what_is_always_written_is_required(kind: str) -> None:
    """The required keys are those of a task that has nothing but what it must have."""
    must = {name: SET[name] for name in ("name", *_must(kind))}
    branch = WORKFLOW["$defs"][kind]
    assert branch["required"] == list(ir.task_to_plain(ir.KINDS[kind](**must)))


@pytest.mark.parametrize("kind", ir.KINDS)
def test_the_defaults_are_those_of_the_code(kind: str) -> None:
    """A default that the schema names is that of the field, as it is written."""
    defaults = ir.KINDS[kind].defaults
    for name, part in WORKFLOW["$defs"][kind]["properties"].items():
        part = WORKFLOW["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part  # noqa: PLW2901 - resolved
        if "default" in part:
            default = defaults[name]
            assert part["default"] == (list(default) if isinstance(default, tuple) else default)
        else:
            assert defaults.get(name) in (None, (), "iteration")


def _must(kind: str) -> list[str]:
    return [name for name in ir.KINDS[kind].fields if name not in ir.KINDS[kind].defaults]


# The workflow: what the code writes fits


@given(compiled_workflows())
def test_what_the_code_writes_fits(workflow: ir.Workflow) -> None:
    """Every workflow that the writer can be handed by the compiler."""
    assert registry.errors("workflow", json.loads(canonical.dumps(workflow))) == []


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_is_what_the_code_writes(number: int) -> None:
    """The examples are canonical: reading and writing one gives the same keys in the same order."""
    workflow, findings = ir.read(EXAMPLES[number], canonical=True)
    assert findings == []
    assert workflow is not None
    assert json.dumps(ir.to_plain(workflow)) == json.dumps(EXAMPLES[number])


def test_the_examples_show_every_kind_and_lane() -> None:
    """What is shown is also what the mutations below start from."""
    rows = [row for example in EXAMPLES for row in example["task"]]
    assert {row["kind"] for row in rows} == set(ir.KINDS)
    assert {example["type"] for example in EXAMPLES} == set(ir.LANES)
    assert {key for row in rows for key in row} >= set(SET)


# The workflow: what the schema forbids the code refuses

# One value of every JSON type, and those that closed sets and ranges refuse.
WRONG: list[Any] = [
    None,
    True,
    0,
    -1,
    2**31,
    1.5,
    "",
    " ",
    "x",
    "a\n",
    "a[b]",
    "a\u202eb",
    "a b",
    "a" * 129,
    [],
    ["score", "score"],
    ["a b"],
    [3],
    [None],
    {},
    {"x": None},
    {"x": {}},
    "iteration",
    "epilogue",
    "playbook",
    "engine",
    "decide",
    "apply",
]


def mutations(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Give every document that differs in one place: a key dropped, added, or a value replaced."""
    for path in _paths(document):
        holder = _at(document, path[:-1])
        if isinstance(holder, dict):
            yield f"{path} dropped", _changed(document, path, drop=True)
        for value in WRONG:
            yield f"{path} = {value!r:.40}", _changed(document, path, value)
    for path in [(), *_paths(document)]:
        if isinstance(_at(document, path), dict):
            for key in ("x", *WORKFLOW["properties"], *SET):
                if key not in _at(document, path):
                    yield f"{path} with {key}", _changed(document, (*path, key), "x")


def _paths(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from _paths(item, (*path, key))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _changed(document: dict[str, Any], path: tuple[Any, ...], value: object = None, *, drop: bool = False) -> object:
    changed = copy.deepcopy(document)
    holder = _at(changed, path[:-1])
    if drop:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return changed


# The examples with one task each, one for every kind and operation: small, so that many can be tried.
SMALL = {
    (example["type"], row["kind"], row.get("op")): {**example, "task": [row]}
    for example in EXAMPLES
    for row in example["task"]
}


@pytest.mark.parametrize("document", SMALL.values(), ids=["-".join(filter(None, key)) for key in SMALL])
def test_what_the_schema_forbids_the_code_refuses(document: dict[str, Any]) -> None:
    """Of all documents one change away from a good one, both refuse the same, but for what is said here."""
    validator = Draft202012Validator(WORKFLOW)
    tried = forbidden = 0
    for what, changed in mutations(document):
        fits = validator.is_valid(changed)
        refused = bool(ir.read(changed, canonical=True)[1])
        tried, forbidden = tried + 1, forbidden + (not fits)
        if not fits:
            assert refused, what
        elif refused:
            # JSON has one type for numbers; that an integer has 32 bits is for the code to say.
            assert "'params'" in what, what
    assert tried > 200
    assert forbidden > tried / 2


@pytest.mark.parametrize("plain", [None, [], "x", 3, True, {}])
def test_what_is_no_workflow_is_refused_by_both(plain: object) -> None:
    """Anything but a table with tasks."""
    assert registry.errors("workflow", plain)
    assert ir.read(plain, canonical=True)[1]


@given(st.text(max_size=4) | st.text("a ]\n\u3000\u202e😀", max_size=140))
def test_both_refuse_the_same_names(name: str) -> None:
    """Blank, bracketed, controlling, turned and over-long names; length counts code points."""
    document = _changed(EXAMPLES[0], ("task", 3, "name"), name)
    assert (registry.errors("workflow", document) == []) is (ir.name_fault(name) is None)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("task", 0, "kind"), "comand", "$.task[0].kind: 'comand' is not one of ['agent', 'command', 'evaluate',"),
        (("task", 0, "join"), "any", "$.task[0].join: 'any' is not one of ['all', 'passed']"),
        (("task", 2, "depends_on", 1), 3, "$.task[2].depends_on[1]: 3 is not of type 'string'"),
        (("task", 1, "thresold"), 1, "$.task[1]: Additional properties are not allowed ('thresold' was unexpected)"),
        (("type",), "costum", "$.type: 'costum' is not one of"),
        (("task", 0), 3, "$.task[0]: 3 is not of type 'object'"),
        (("task", 2, "prompt"), ["p" * 10_000], "$.task[2].prompt: ['pppp"),
    ],
)
def test_an_error_names_the_place_and_the_branch_that_was_meant(
    path: tuple[Any, ...], value: object, message: str
) -> None:
    """A task is judged as the kind that it says it is, not as none of five; a long value is cut."""
    found = registry.errors("workflow", _changed(EXAMPLES[0], path, value))
    assert len(found) == 1, found
    assert found[0].startswith(message)
    assert len(found[0]) < 400


def test_every_error_is_told() -> None:
    """Several mistakes in several tasks are several messages, sorted."""
    document = _changed(EXAMPLES[0], ("task", 0, "join"), "any")
    assert isinstance(document, dict)
    document = _changed(document, ("task", 1, "required"), drop=True)
    assert isinstance(document, dict)
    del document["type"]
    assert registry.errors("workflow", document) == [
        "$.task[0].join: 'any' is not one of ['all', 'passed']",
        "$.task[1]: 'required' is a required property",
        "$: 'type' is a required property",
    ]


# The report of diagnostics


def test_the_fields_of_a_diagnostic_are_those_of_the_schema() -> None:
    """Every field of the code's types is in the schema, and the other way round."""
    defs = DIAGNOSTICS["$defs"]
    types: dict[str, Any] = {
        "diagnostic": Diagnostic,
        "related": Related,
        "suggestion": Suggestion,
        "span": Span,
        "position": Position,
    }
    for name, cls in types.items():
        assert set(defs[name]["properties"]) == set(cls._fields)
        assert sorted(defs[name]["required"]) == sorted(cls._fields)
    assert defs["diagnostic"]["properties"]["severity"]["enum"] == [severity.value for severity in Severity]
    assert DIAGNOSTICS["properties"]["version"]["const"] == report.VERSION


def test_the_keys_of_the_report_stand_in_the_order_of_the_schema() -> None:
    """The order in which a reader of the schema expects them, nulls included."""
    span = Span.of(1, 1, 1, 2)
    full = Diagnostic("wrong-type", "m", "f", span, (Related("r", "f", span),), Suggestion("s", "f", span))
    written = json.loads(report.to_json([full, Diagnostic("no-tasks", "m")], 1))
    defs = DIAGNOSTICS["$defs"]
    assert list(written) == list(DIAGNOSTICS["properties"])
    assert list(written["summary"]) == list(defs["summary"]["properties"])
    for row in written["diagnostics"]:
        assert list(row) == list(defs["diagnostic"]["properties"])
    assert list(written["diagnostics"][0]["related"][0]) == list(defs["related"]["properties"])
    assert list(written["diagnostics"][0]["suggestion"]) == list(defs["suggestion"]["properties"])
    assert list(written["diagnostics"][0]["span"]["end"]) == list(defs["position"]["properties"])


POSITIONS = st.builds(Position, st.integers(1, 10**6), st.integers(1, 10**6))
SPANS = st.builds(Span, POSITIONS, POSITIONS)
DIAGNOSTIC = st.builds(
    Diagnostic,
    st.sampled_from(sorted(CODES)),
    st.text(),
    st.none() | st.text(),
    st.none() | SPANS,
    st.lists(st.builds(Related, st.text(), st.none() | st.text(), st.none() | SPANS), max_size=2).map(tuple),
    st.none() | st.builds(Suggestion, st.text(), st.text(), SPANS),
    st.sampled_from(Severity),
)


@given(st.lists(DIAGNOSTIC, max_size=4), st.integers(0, 9))
def test_every_report_fits(diagnostics: list[Diagnostic], files: int) -> None:
    """Whatever the code, the texts and the places."""
    assert registry.errors("diagnostics", json.loads(report.to_json(diagnostics, files))) == []


def test_every_code_fits() -> None:
    """The pattern of the schema is that of the registry of codes."""
    assert registry.errors("diagnostics", json.loads(report.to_json([Diagnostic(c, "m") for c in CODES], 1))) == []


@pytest.mark.parametrize("example", DIAGNOSTICS["examples"])
def test_an_example_of_a_report_is_what_the_code_writes(example: dict[str, Any]) -> None:
    """The keys in their order and the counts of the summary."""
    assert json.dumps(
        json.loads(report.to_json(map(_diagnostic, example["diagnostics"]), example["summary"]["files"]))
    ) == (json.dumps(example))


def _diagnostic(row: dict[str, Any]) -> Diagnostic:
    suggestion = row["suggestion"]
    return Diagnostic(
        row["code"],
        row["message"],
        row["file"],
        _span(row["span"]),
        tuple(Related(part["message"], part["file"], _span(part["span"])) for part in row["related"]),
        suggestion and Suggestion(**{**suggestion, "span": _span(suggestion["span"])}),
        Severity(row["severity"]),
    )


def _span(row: dict[str, Any] | None) -> Span | None:
    return None if row is None else Span(Position(**row["begin"]), Position(**row["end"]))


def test_a_report_with_a_key_dropped_added_or_mistyped_is_forbidden() -> None:
    """The schema is as strict as the code that writes: every key, no other, and the types of all."""
    example = DIAGNOSTICS["examples"][0]
    validator = Draft202012Validator(DIAGNOSTICS)
    for path in list(_paths(example)):
        if isinstance(_at(example, path[:-1]), dict):
            assert not validator.is_valid(_changed(example, path, drop=True)), path
        assert not validator.is_valid(_changed(example, path, 1.5)), path
    for path in [(), *_paths(example)]:
        if isinstance(_at(example, path), dict):
            assert not validator.is_valid(_changed(example, (*path, "x"), "x")), path


def test_an_error_in_a_place_that_may_be_null_is_told_as_that_of_the_place() -> None:
    """Not as "is not valid under any of the given schemas"."""
    changed = _changed(DIAGNOSTICS["examples"][0], ("diagnostics", 0, "span", "begin", "line"), 0)
    assert registry.errors("diagnostics", changed) == [
        "$.diagnostics[0].span.begin.line: 0 is less than the minimum of 1"
    ]

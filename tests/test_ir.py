"""The IR: its defaults, what is written of it, and what reading it from plain data finds and where."""

import copy
import math
from typing import Any

import pytest
from compiled import compiled_workflows
from hypothesis import given
from hypothesis import strategies as st
from strategies import workflows

from crucible.schemas import ir
from crucible.schemas.codes import CODES
from crucible.schemas.diagnostic import At, Finding

AGENT: dict[str, Any] = {"name": "ask", "kind": "agent", "prompt": "p"}
COMMAND: dict[str, Any] = {"name": "build", "kind": "command", "command": "make"}
EVALUATE: dict[str, Any] = {"name": "speed", "kind": "evaluate", "command": "./b", "threshold": 3, "direction": "lower"}
TOP_K: dict[str, Any] = {"name": "best", "kind": "top_k", "k": 2, "direction": "higher"}
GRADE: dict[str, Any] = {"name": "grade", "kind": "engine", "op": "grade", "source": "speed", "tiebreak": "speed"}
ALL = [AGENT, COMMAND, EVALUATE, TOP_K, GRADE]


def one(row: object) -> dict[str, Any]:
    """Put a task into a workflow, behind another, so that an index is not nothing by accident."""
    return {"type": "custom", "task": [COMMAND, row]}


def short(findings: list[Finding]) -> list[tuple[str, At]]:
    """Give code and place of each finding."""
    return [(finding.code, finding.at) for finding in findings]


def test_absent_fields_have_their_defaults() -> None:
    """What a hand does not write is required, joins all, shares the workspace and runs in the iteration."""
    task, findings = ir.read_task(AGENT, 0)
    assert findings == []
    assert task == ir.AgentTask(
        name="ask",
        prompt="p",
        harness=None,
        model=None,
        effort=None,
        depends_on=(),
        session=None,
        needs="any",
        required=True,
        isolation=None,
        join="all",
        stage="iteration",
        emits=(),
    )


def test_every_kind_reads_into_its_class() -> None:
    """The fields of a kind arrive, a whole threshold as a float."""
    workflow, findings = ir.read({"type": "custom", "result": "grade", "task": ALL})
    assert findings == []
    assert workflow == ir.Workflow(
        type="custom",
        result="grade",
        task=(
            ir.AgentTask(name="ask", prompt="p"),
            ir.CommandTask(name="build", command="make"),
            ir.EvaluateTask(name="speed", command="./b", threshold=3.0, direction="lower"),
            ir.TopKTask(name="best", k=2, direction="higher"),
            ir.EngineTask(name="grade", op="grade", source="speed", tiebreak="speed"),
        ),
    )
    threshold = workflow.task[2].threshold  # type: ignore[attr-defined]
    assert type(threshold) is float
    assert [task.operation for task in workflow.task] == ["", "", "", "", "grade"]


def test_an_absent_type_is_autoresearch() -> None:
    """The lane has the default that the language gives it; without a result that is the splice."""
    workflow, findings = ir.read({"task": [COMMAND]})
    assert findings == []
    assert workflow is not None
    assert (workflow.type, workflow.result, workflow.params, workflow.is_splice) == ("autoresearch", None, None, True)
    assert not workflow.replace(result="build").is_splice
    assert not workflow.replace(type="custom").is_splice


def test_null_is_absence_where_a_field_may_be_absent() -> None:
    """JSON writes null for what TOML leaves out."""
    nulls = {"harness": None, "model": None, "effort": None, "session": None, "isolation": None}
    assert ir.read_task({**AGENT, **nulls}, 0) == ir.read_task(AGENT, 0)
    bare = {key: EVALUATE[key] for key in ("name", "kind", "command")}
    assert ir.read_task({**bare, "threshold": None, "direction": None}, 0) == ir.read_task(bare, 0)
    assert ir.read({"result": None, "params": None, "task": [AGENT]}) == ir.read({"task": [AGENT]})


def test_tasks_are_written_in_the_order_of_their_fields() -> None:
    """Always: name, kind, the kind's own, depends_on, needs, required, isolation, join; the rest only when set."""
    least = [list(ir.task_to_plain(ir.KINDS[kind](**own))) for kind, own in LEAST.items()]
    tail = ["depends_on", "needs", "required", "isolation", "join"]
    assert least == [
        ["name", "kind", "prompt", "harness", "model", "effort", *tail],
        ["name", "kind", "command", *tail],
        ["name", "kind", "command", *tail],
        ["name", "kind", "k", "direction", *tail],
        ["name", "kind", "op", *tail],
    ]
    full = ir.EvaluateTask(
        name="e",
        command="c",
        threshold=1.0,
        direction="lower",
        depends_on=("d",),
        session="s",
        stage="epilogue",
        emits=("score",),
    )
    assert list(ir.task_to_plain(full)) == [
        *("name", "kind", "command", "threshold", "direction", "depends_on", "session", "needs", "required"),
        *("isolation", "join", "stage", "emits"),
    ]
    workflow = ir.Workflow(type="custom", result="e", params={}, task=())
    assert list(ir.to_plain(workflow)) == ["type", "result", "params", "task"]
    assert list(ir.to_plain(ir.Workflow(type="custom", task=()))) == ["type", "task"]


LEAST: dict[str, dict[str, Any]] = {
    "agent": {"name": "t", "prompt": "p"},
    "command": {"name": "t", "command": "c"},
    "evaluate": {"name": "t", "command": "c"},
    "top_k": {"name": "t", "k": 1, "direction": "lower"},
    "engine": {"name": "t", "op": "apply"},
}


@given(workflows())
def test_plain_data_reads_back_equal(workflow: ir.Workflow) -> None:
    """What is written of any workflow reads as that workflow, and writing shares nothing that can be changed."""
    plain = ir.to_plain(workflow)
    before = copy.deepcopy(plain)
    assert ir.read(plain) == (workflow, [])
    assert plain == before


@given(compiled_workflows())
def test_what_toml_leaves_out_reads_back_equal(workflow: ir.Workflow) -> None:
    """Without its nulls and in any order of keys the data is the same workflow."""
    plain = ir.to_plain(workflow)
    plain["task"] = [{key: value for key, value in reversed(row.items()) if value is not None} for row in plain["task"]]
    assert ir.read(plain) == (workflow, [])


@pytest.mark.parametrize("plain", [None, [], "x", 3, 1.5, True])
def test_a_workflow_is_a_table(plain: object) -> None:
    """Anything else is one finding at the workflow."""
    workflow, findings = ir.read(plain)
    assert workflow is None
    assert short(findings) == [("wrong-type", At())]


@pytest.mark.parametrize(
    ("change", "code", "at", "survives"),
    [
        ({"type": None}, "wrong-type", At(None, "type"), True),
        ({"type": 3}, "wrong-type", At(None, "type"), True),
        ({"type": ["custom"]}, "wrong-type", At(None, "type"), True),
        ({"type": "costum"}, "unknown-value", At(None, "type"), True),
        ({"result": 3}, "wrong-type", At(None, "result"), True),
        ({"result": "\ud800"}, "wrong-type", At(None, "result"), True),
        ({"params": []}, "wrong-type", At(None, "params"), True),
        ({"params": {"a": None}}, "wrong-type", At(None, "params", param="a"), True),
        ({"params": {"a": {"b": 1}}}, "wrong-type", At(None, "params", param="a"), True),
        ({"params": {"a": [["b"]]}}, "wrong-type", At(None, "params", 0, param="a"), True),
        ({"params": {"a": "\udfff"}}, "wrong-type", At(None, "params", param="a"), True),
        ({"params": {"\udfff": "a"}}, "wrong-type", At(None, "params", param="\udfff"), True),
        ({"params": {"a": 2**31}}, "out-of-range", At(None, "params", param="a"), True),
        ({"params": {"a": -(2**31) - 1}}, "out-of-range", At(None, "params", param="a"), True),
        ({"params": {"a": math.inf}}, "out-of-range", At(None, "params", param="a"), True),
        ({"params": {"a": math.nan}}, "out-of-range", At(None, "params", param="a"), True),
        ({"tasks": []}, "unknown-key", At(None, "tasks", part="key"), True),
        ({"task": None}, "wrong-type", At(None, "task"), False),
        ({"task": {}}, "wrong-type", At(None, "task"), False),
        ({"task": [3]}, "wrong-type", At(None, "task", 0), True),
        ({"task": [COMMAND, None]}, "wrong-type", At(None, "task", 1), True),
    ],
)
def test_a_bad_workflow_is_found_at_its_field(change: dict[str, Any], code: str, at: At, *, survives: bool) -> None:
    """Each mistake is one finding at its place, and the rules see the rest where there is a rest to see."""
    workflow, findings = ir.read({"type": "custom", "task": [COMMAND], **change})
    assert short(findings) == [(code, at)]
    assert (workflow is not None) is survives


def test_a_workflow_without_tasks_is_found() -> None:
    """The one key that a workflow must have."""
    workflow, findings = ir.read({"type": "custom"})
    assert workflow is None
    assert short(findings) == [("missing-key", At())]


def test_what_is_bad_has_a_stand_in_that_asks_for_nothing() -> None:
    """A type of no lane, a task of no kind and one without what it must have; the rules go on with the rest."""
    rows = [{"name": "a", "kind": "comand", "depends_on": ["b"]}, {"nmae": "b", "kind": "engine"}, 3, {**TOP_K, "k": 0}]
    workflow, findings = ir.read({"type": "costum", "result": 3, "task": rows})
    assert workflow == ir.Workflow(
        type="custom",
        task=(
            ir.AgentTask(name="a", prompt="", depends_on=("b",)),
            ir.AgentTask(name="b", prompt=""),
            ir.AgentTask(name="", prompt=""),
            ir.TopKTask(name="best", k=1, direction="higher"),
        ),
    )
    assert [finding.code for finding in findings] == [
        "unknown-value",
        "wrong-type",
        "unknown-value",
        "unknown-key",
        "missing-key",
        "wrong-type",
        "out-of-range",
    ]


def test_a_top_k_reads_whatever_passed() -> None:
    """It has no other join, in the canonical form neither."""
    task, findings = ir.read_task(TOP_K, 0)
    assert (task.join, findings) == ("passed", [])
    task, findings = ir.read_task({**TOP_K, "join": "all"}, 0)
    assert (task.join, short(findings)) == ("passed", [("unknown-value", At(0, "join"))])


KNOBS = [
    ({"name": 3}, "wrong-type", "name", None),
    ({"name": None}, "wrong-type", "name", None),
    ({"name": "a\udc80"}, "wrong-type", "name", None),
    ({"depends_on": "build"}, "wrong-type", "depends_on", None),
    ({"depends_on": None}, "wrong-type", "depends_on", None),
    ({"depends_on": {"build": 1}}, "wrong-type", "depends_on", None),
    ({"depends_on": ["build", 3]}, "wrong-type", "depends_on", 1),
    ({"depends_on": ["build", None]}, "wrong-type", "depends_on", 1),
    ({"session": 3}, "wrong-type", "session", None),
    ({"needs": None}, "wrong-type", "needs", None),
    ({"needs": ["gpu"]}, "wrong-type", "needs", None),
    ({"required": "yes"}, "wrong-type", "required", None),
    ({"required": 1}, "wrong-type", "required", None),
    ({"required": None}, "wrong-type", "required", None),
    ({"isolation": True}, "wrong-type", "isolation", None),
    ({"isolation": "worktrees"}, "unknown-value", "isolation", None),
    ({"join": None}, "wrong-type", "join", None),
    ({"join": "pased"}, "unknown-value", "join", None),
    ({"stage": "epilog"}, "unknown-value", "stage", None),
    ({"stage": False}, "wrong-type", "stage", None),
    ({"emits": "score"}, "wrong-type", "emits", None),
    ({"emits": ["score", 1]}, "wrong-type", "emits", 1),
    ({"kind": "comand"}, "unknown-value", "kind", None),
    ({"kind": None}, "wrong-type", "kind", None),
    ({"kind": 3}, "wrong-type", "kind", None),
    ({"kind": ["agent"]}, "wrong-type", "kind", None),
    ({"kind": {}}, "wrong-type", "kind", None),
]
OWN = [
    (AGENT, {"prompt": 3}, "wrong-type", "prompt"),
    (AGENT, {"prompt": None}, "wrong-type", "prompt"),
    (AGENT, {"harness": 3}, "wrong-type", "harness"),
    (AGENT, {"model": []}, "wrong-type", "model"),
    (AGENT, {"effort": False}, "wrong-type", "effort"),
    (COMMAND, {"command": ["make"]}, "wrong-type", "command"),
    (COMMAND, {"command": None}, "wrong-type", "command"),
    (EVALUATE, {"command": 3}, "wrong-type", "command"),
    (EVALUATE, {"threshold": "3"}, "wrong-type", "threshold"),
    (EVALUATE, {"threshold": True}, "wrong-type", "threshold"),
    (EVALUATE, {"threshold": math.nan}, "threshold-not-finite", "threshold"),
    (EVALUATE, {"threshold": -math.inf}, "threshold-not-finite", "threshold"),
    (EVALUATE, {"threshold": 10**400}, "threshold-not-finite", "threshold"),
    (EVALUATE, {"direction": "less"}, "unknown-value", "direction"),
    (EVALUATE, {"direction": 3}, "wrong-type", "direction"),
    (TOP_K, {"k": 0}, "out-of-range", "k"),
    (TOP_K, {"k": -1}, "out-of-range", "k"),
    (TOP_K, {"k": 2**31}, "out-of-range", "k"),
    (TOP_K, {"k": 10**5000}, "out-of-range", "k"),
    (TOP_K, {"k": 2.0}, "wrong-type", "k"),
    (TOP_K, {"k": True}, "wrong-type", "k"),
    (TOP_K, {"k": None}, "wrong-type", "k"),
    (TOP_K, {"direction": None}, "wrong-type", "direction"),
    (TOP_K, {"direction": "high"}, "unknown-value", "direction"),
    (GRADE, {"op": "grades"}, "unknown-value", "op"),
    (GRADE, {"op": None}, "wrong-type", "op"),
    (GRADE, {"source": 3}, "wrong-type", "source"),
    (GRADE, {"tiebreak": ["speed"]}, "wrong-type", "tiebreak"),
]


@pytest.mark.parametrize(("change", "code", "field", "index"), KNOBS)
@pytest.mark.parametrize("base", ALL, ids=[str(row["kind"]) for row in ALL])
def test_a_bad_common_field_is_found_at_its_value(
    base: dict[str, Any], change: dict[str, Any], code: str, field: str, index: int | None
) -> None:
    """On every kind, at the field, and at the element when only that is bad."""
    _, findings = ir.read(one({**base, **change}))
    assert short(findings) == [(code, At(1, field, index))]


@pytest.mark.parametrize(("base", "change", "code", "field"), OWN)
def test_a_bad_field_of_a_kind_is_found_at_its_value(
    base: dict[str, Any], change: dict[str, Any], code: str, field: str
) -> None:
    """Types, closed sets and ranges of the fields that one kind has."""
    _, findings = ir.read(one({**base, **change}))
    assert short(findings) == [(code, At(1, field))]


def test_every_field_has_a_bad_value_above() -> None:
    """A field that is added to a kind is added to the tables of this file."""
    tried = {"kind": {field for _, _, field, _ in KNOBS}}
    for base, _, _, field in OWN:
        tried.setdefault(str(base["kind"]), set()).add(field)
    for kind, cls in ir.KINDS.items():
        assert set(cls.fields) <= tried["kind"] | tried[kind]


@pytest.mark.parametrize(
    ("base", "missing"),
    [
        (AGENT, "name"),
        (AGENT, "prompt"),
        (COMMAND, "name"),
        (COMMAND, "command"),
        (EVALUATE, "command"),
        (TOP_K, "k"),
        (TOP_K, "direction"),
        (GRADE, "op"),
        (GRADE, "kind"),
    ],
)
def test_a_missing_key_is_found_at_the_task(base: dict[str, Any], missing: str) -> None:
    """The finding names the key, which the text has not, and the task is read with a stand-in for its value."""
    workflow, findings = ir.read(one({key: value for key, value in base.items() if key != missing}))
    assert workflow is not None
    assert short(findings) == [("missing-key", At(1, missing))]
    assert f'"{missing}"' in findings[0].message


def test_an_unknown_key_is_found_at_the_key() -> None:
    """With the nearest key that the kind has and the table has not, and the task is read without it."""
    workflow, findings = ir.read(one({**AGENT, "depend_on": ["build"]}))
    assert findings == [
        Finding(
            "unknown-key",
            'a task of kind agent has no key "depend_on"; did you mean "depends_on"?',
            At(1, "depend_on", part="key"),
            suggestion="depends_on",
        )
    ]
    assert workflow is not None
    assert workflow.task[1] == ir.AgentTask(name="ask", prompt="p")


def test_a_key_of_another_kind_says_whose_it_is() -> None:
    """No spelling is guessed for a word that was spelled right."""
    _, findings = ir.read(one({**COMMAND, "name": "b", "prompt": "p"}))
    assert findings == [
        Finding(
            "unknown-key",
            'a task of kind command has no key "prompt"; that is a key of agent tasks',
            At(1, "prompt", part="key"),
        )
    ]


def test_a_misspelt_key_is_not_missing_as_well() -> None:
    """What is only a consequence of another mistake is not reported."""
    row = {"name": "b", "kind": "command", "comand": "make"}
    workflow, findings = ir.read(one(row))
    assert workflow is not None
    assert [(finding.code, finding.suggestion) for finding in findings] == [("unknown-key", "command")]


def test_a_misspelt_key_beside_the_right_one_gets_no_suggestion() -> None:
    """A key that the table already has is no candidate."""
    _, findings = ir.read(one({**AGENT, "promt": "q"}))
    assert [(finding.code, finding.suggestion) for finding in findings] == [("unknown-key", None)]


def test_a_bad_half_of_a_pair_takes_the_other_with_it() -> None:
    """The rule that wants both halves would else report a half that the author wrote."""
    for change in ({"threshold": "3"}, {"direction": "less"}):
        task, findings = ir.read_task({**EVALUATE, **change}, 0)
        assert len(findings) == 1
        assert task == ir.EvaluateTask(name="speed", command="./b")
    task, findings = ir.read_task({"name": "s", "kind": "evaluate", "command": "c", "threshold": 3}, 0)
    assert (task, findings) == (ir.EvaluateTask(name="s", command="c", threshold=3.0), [])


def test_bad_elements_are_left_out_and_the_good_ones_kept() -> None:
    """The rules see the dependencies that could be read."""
    task, findings = ir.read_task({**COMMAND, "depends_on": ["a", 3, "b", None]}, 0)
    assert short(findings) == [("wrong-type", At(0, "depends_on", 1)), ("wrong-type", At(0, "depends_on", 3))]
    assert task is not None
    assert task.depends_on == ("a", "b")


def test_all_mistakes_are_found_at_once() -> None:
    """Of the workflow and of every task, in their order."""
    _, findings = ir.read(
        {"typ": "custom", "result": 3, "task": [{"kind": "agent", "prompt": 1}, {**TOP_K, "k": 0, "join": "any"}]}
    )
    assert short(findings) == [
        ("unknown-key", At(None, "typ", part="key")),
        ("wrong-type", At(None, "result")),
        ("wrong-type", At(0, "prompt")),
        ("missing-key", At(0, "name")),
        ("out-of-range", At(1, "k")),
        ("unknown-value", At(1, "join")),
    ]


JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.sampled_from([*ir.LANES, *ir.KINDS, *ir.JOINS, *ir.OPERATIONS, *ir.DIRECTIONS, "worktree", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "result", "params", "task", "name", "kind", "prompt", "command", "k", "op", "depends_on", "x"]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)


@given(JSON_VALUES, st.booleans())
def test_reading_never_fails_in_another_way(plain: object, canonical: bool) -> None:  # noqa: FBT001 - drawn by hypothesis
    """Whatever the data: a workflow that can be written, or a finding with a known code that says why not."""
    workflow, findings = ir.read(plain, canonical=canonical)
    assert workflow is not None or findings
    assert {finding.code for finding in findings} <= set(CODES)
    if workflow is not None:
        assert ir.read(ir.to_plain(workflow)) == (workflow, [])
    assert ir.read(plain, canonical=canonical)[1] == findings


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("build", None),
        (" a", None),
        ("a/b", None),
        ("../x", None),
        ("é", None),
        ("e\u0301", None),
        ("\u200b", None),
        ("a" * 128, None),
        ("😀" * 128, None),
        ("", "empty-name"),
        (" ", "empty-name"),
        ("\u3000\u00a0", "empty-name"),
        ("\n", "empty-name"),
        ("a" * 129, "invalid-name"),
        ("a[0]", "invalid-name"),
        ("]", "invalid-name"),
        ("a\nb", "invalid-name"),
        ("a\n", "invalid-name"),
        ("a\x00", "invalid-name"),
        ("a\x7f", "invalid-name"),
        ("a\x85b", "invalid-name"),
        ("a\u202eb", "invalid-name"),
        ("a\u2066b", "invalid-name"),
        ("a\u200fb", "invalid-name"),
        ("a\u061cb", "invalid-name"),
    ],
)
def test_a_task_name_is_something_that_can_be_shown(name: str, code: str | None) -> None:
    """Blank names are empty; brackets, control and text-direction characters and over 128 code points are refused."""
    fault = ir.name_fault(name)
    assert (fault and fault[0]) == code


def test_the_fault_of_a_name_names_the_character() -> None:
    """An invisible character is told by its number."""
    assert (ir.name_fault("a\u202eb") or ("", ""))[1].endswith("this one holds U+202E")
    assert (ir.name_fault("a[b") or ("", ""))[1].endswith('this one holds "["')
    assert (ir.name_fault("a" * 130) or ("", ""))[1].endswith("this one has 130")


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 64])
def test_good_session_and_field_names(name: str) -> None:
    """ASCII letters, digits and "_"; a session may hold "." and "-" as well."""
    assert ir.is_session_name(name)
    assert ir.is_field_name(name) is ("." not in name)


@pytest.mark.parametrize("name", ["", "x" * 65, "a b", "é", "a\n", "a/b", "٣"])
def test_bad_session_and_field_names(name: str) -> None:
    """Nothing, too much, and anything that is not ASCII or ends in a newline."""
    assert not ir.is_session_name(name)
    assert not ir.is_field_name(name)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "null"),
        (True, "a boolean"),
        ("x", "a string"),
        (3, "an integer"),
        (3.5, "a number"),
        ([], "a list"),
        ((), "a list"),
        ({}, "a table"),
        (b"", "a bytes"),
    ],
)
def test_a_message_names_the_type_of_a_value(value: object, words: str) -> None:
    """In the words of JSON and TOML, not of Python."""
    assert ir.kind_of(value) == words


def strict(**change: object) -> list[tuple[str, At]]:
    """Change the second task of a canonical workflow, None leaving a key out, and give what the strict reader finds."""
    rows = [ir.task_to_plain(ir.KINDS[kind](**own)) for kind, own in LEAST.items()]
    row = next(row for row in rows if row["kind"] == change.get("kind", "command"))
    row = {key: value for key, value in {**row, **change}.items() if value is not LEFT_OUT}
    plain = {"type": "custom", "task": [{**rows[0], "name": "first"}, row]}
    return short(ir.read(plain, canonical=True)[1])


LEFT_OUT = object()


def test_the_strict_reader_takes_what_is_written() -> None:
    """The base of the tests below is without a finding, for every kind."""
    assert [strict(kind=kind) for kind in ir.KINDS] == [[]] * 5


@pytest.mark.parametrize("key", ["depends_on", "needs", "required", "isolation", "join"])
def test_the_strict_reader_wants_every_key_that_is_always_written(key: str) -> None:
    """A default that a hand may leave out stands in every canonical text."""
    assert strict(**{key: LEFT_OUT}) == [("missing-key", At(1))]


@pytest.mark.parametrize(
    ("change", "code", "at"),
    [
        ({"kind": "agent", "model": LEFT_OUT}, "missing-key", At(1)),
        ({"session": None}, "unknown-key", At(1, "session", part="key")),
        ({"stage": "iteration"}, "unknown-key", At(1, "stage", part="key")),
        ({"emits": []}, "unknown-key", At(1, "emits", part="key")),
        ({"kind": "evaluate", "threshold": None}, "unknown-key", At(1, "threshold", part="key")),
        ({"kind": "engine", "source": None}, "unknown-key", At(1, "source", part="key")),
        ({"name": " "}, "empty-name", At(1, "name")),
        ({"name": "a\nb"}, "invalid-name", At(1, "name")),
        ({"session": "s"}, "session-unsupported", At(1)),
        ({"kind": "engine", "session": "s"}, "session-unsupported", At(1)),
        ({"kind": "agent", "session": "a b"}, "invalid-session-name", At(1, "session")),
        ({"depends_on": ["first", "first"]}, "duplicate-dependency", At(1, "depends_on", 1)),
        ({"emits": ["score", "a b"]}, "invalid-field", At(1, "emits", 1)),
        ({"emits": ["score", "score"]}, "duplicate-field", At(1, "emits", 1)),
        ({"kind": "evaluate", "threshold": 1.0}, "threshold-needs-direction", At(1, "threshold")),
        ({"kind": "evaluate", "direction": "lower"}, "threshold-needs-direction", At(1, "direction")),
        ({"kind": "engine", "op": "grade"}, "source-required", At(1)),
        ({"kind": "engine", "op": "decide"}, "source-required", At(1)),
        ({"kind": "engine", "op": "measure", "source": "first"}, "source-unexpected", At(1)),
        ({"kind": "engine", "op": "decide", "source": "x", "tiebreak": "x"}, "tiebreak-unexpected", At(1)),
    ],
)
def test_the_strict_reader_refuses_what_no_compiled_task_has(change: dict[str, Any], code: str, at: At) -> None:
    """Each with the code that the rules have for it, so that a text which no compiler wrote is not taken for one."""
    assert strict(**change) == [(code, at)]


@pytest.mark.parametrize(
    ("plain", "code", "at"),
    [
        ({"task": [{}]}, "missing-key", At()),
        ({"type": "custom", "result": None, "task": [{}]}, "unknown-key", At(None, "result", part="key")),
        ({"type": "custom", "params": {}, "task": [{}]}, "unknown-key", At(None, "params", part="key")),
        ({"type": "custom", "task": []}, "no-tasks", At(None, "task")),
    ],
)
def test_the_strict_reader_judges_the_workflow(plain: dict[str, Any], code: str, at: At) -> None:
    """The type is always there, nothing is null, only a playbook has parameters, and there is a task."""
    row = ir.task_to_plain(ir.CommandTask(name="t", command="c"))
    _, findings = ir.read({**plain, "task": [row for _ in plain["task"]]}, canonical=True)
    assert short(findings) == [(code, at)]


def test_the_reader_of_a_hand_written_ir_leaves_those_to_the_rules() -> None:
    """They know places and report each mistake once."""
    row = {"name": " ", "kind": "engine", "op": "apply", "source": "x", "session": "a b", "emits": ["a b", "a b"]}
    assert ir.read({"type": "custom", "task": [row]})[1] == []

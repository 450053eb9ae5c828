"""Plan files: what they may say, where a mistake in one stands, and what the commands make of them."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
import tomlkit
from compiled import compiled_workflows
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from process import codes, crucible, report

from crucible.compiler import manifest, plan_file
from crucible.compiler.analysis import rules
from crucible.compiler.pipeline import Compiled, Options, compile_source
from crucible.schemas import ir, registry
from crucible.schemas.canonical import dumps, write_value
from crucible.schemas.diagnostic import Diagnostic

SCHEMA = registry.load("plan")
GOOD = """\
version = 1
reason = "nightly"

[budget]
usd = 0.29

[[task]]
name = "build"
kind = "command"
command = "make"

[[task]]
name = "gate"
kind = "evaluate"
command = "make test"
depends_on = ["build"]
threshold = 12
direction = "higher"
"""


def judged(text: str | bytes, file: str = "plan.toml") -> Compiled:
    """Read and judge the text of a file."""
    return compile_source(text.encode() if isinstance(text, str) else text, file)


def at(diagnostic: Diagnostic, text: str) -> tuple[str, str, str]:
    """Show a diagnostic: its code, the line and column where it begins, and the text that it stands under."""
    assert diagnostic.span is not None
    (line, column), end = diagnostic.span
    lines = text.split("\n")
    last = end.column - 1 if end.line == line else len(lines[line - 1])
    return diagnostic.code, f"{line}:{column}", lines[line - 1][column - 1 : last]


def places(text: str, file: str = "plan.toml") -> list[tuple[str, str, str]]:
    """Show all that is wrong with a text."""
    return [at(each, text) for each in judged(text, file).diagnostics]


# What a plan file is


def test_a_plan_is_a_custom_workflow_with_a_budget_and_a_reason() -> None:
    """The defaults are those of the IR; money is counted in micro-dollars."""
    done = judged(GOOD)
    assert done.diagnostics == []
    assert done.plan == plan_file.PlanFile(290_000, "nightly")
    assert done.workflow == ir.Workflow(
        type="custom",
        task=(
            ir.CommandTask(name="build", command="make"),
            ir.EvaluateTask(
                name="gate", command="make test", depends_on=("build",), threshold=12.0, direction="higher"
            ),
        ),
    )


@pytest.mark.parametrize(
    ("file", "data", "expected"),
    [
        ("plan.toml", {}, True),
        ("a/plan.json", {"type": "custom", "task": []}, True),
        ("plan.json", [], True),
        ("nightly.toml", {"version": 1}, True),
        ("nightly.toml", {"task": []}, True),
        ("nightly.toml", {"repo": {}, "budget": {"usd": 1}}, False),
        ("nightly.toml", {"version": 1, "workflow": {}}, False),
        ("crucible.toml", {"version": 1, "task": []}, False),
        ("nightly.json", {"version": 1, "task": []}, True),
        ("nightly.json", {"budget": {"usd": 1}, "task": []}, True),
        ("nightly.json", {"type": "custom", "task": []}, False),
        ("nightly.json", {"task": []}, False),
        ("nightly.json", [], False),
        ("plan.star.toml", {}, False),
    ],
)
def test_a_plan_is_known_by_its_name_or_by_keys_of_its_own(file: str, data: object, *, expected: bool) -> None:
    """A manifest keeps its tasks in a table, a canonical JSON has a type; nothing else is asked of either."""
    assert plan_file.is_plan(file, data) is expected


@given(st.integers(1, 10**12), st.sampled_from([0, 0.25, 0.49, -0.49]))
def test_money_is_rounded_to_the_nearest_micro_dollar(micro: int, beside: float) -> None:
    """No sum of exact parts is over by an error of floats."""
    assert plan_file.micro_dollars((micro + beside) / 1_000_000) == micro


@pytest.mark.parametrize(
    ("usd", "micro"),
    [(5, 5_000_000), (0.3, 300_000), (1e-9, 1), (5e-324, 1), (1e300, int(1e300) * 10**6), (10**30, 10**36)],
)
def test_money_of_any_size_is_money(usd: float, micro: int) -> None:
    """What is more than nothing stays more than nothing, and nothing is too much."""
    assert plan_file.micro_dollars(usd) == micro


# What is wrong, and where


def test_a_misspelt_key_of_a_task_is_found_at_the_key() -> None:
    """With the right one as the edit that mends it."""
    text = GOOD.replace("depends_on", "depend_on")
    (found,) = judged(text).diagnostics
    assert at(found, text) == ("unknown-key", "16:1", "depend_on")
    assert found.suggestion is not None
    assert (found.suggestion.replacement, found.suggestion.span) == ("depends_on", found.span)


@pytest.mark.parametrize(
    ("usd", "code", "place"),
    [
        ("usd = nan", "out-of-range", ("5:7", "nan")),
        ("usd = inf", "out-of-range", ("5:7", "inf")),
        ("usd = -inf", "out-of-range", ("5:7", "-inf")),
        ("usd = 0", "out-of-range", ("5:7", "0")),
        ("usd = -0.0", "out-of-range", ("5:7", "-0.0")),
        ("usd = -1", "out-of-range", ("5:7", "-1")),
        ("usd = 1" + "0" * 400, "out-of-range", ("5:7", "1" + "0" * 400)),
        ('usd = "5"', "wrong-type", ("5:7", '"5"')),
        ("usd = true", "wrong-type", ("5:7", "true")),
        ("usd = [5]", "wrong-type", ("5:7", "[5]")),
        ("usd = 2026-01-01", "wrong-type", ("5:7", "2026-01-01")),
        ("", "missing-key", ("4:1", "[budget]")),
        ("usb = 5", "unknown-key", ("5:1", "usb")),
        ("usd = 5\neuro = 3", "unknown-key", ("6:1", "euro")),
    ],
)
def test_a_budget_is_a_finite_number_of_dollars_above_nothing(usd: str, code: str, place: tuple[str, str]) -> None:
    """Each other value is refused where it stands, a missing one at the header."""
    text = GOOD.replace("usd = 0.29", usd)
    assert places(text) == [(code, *place)]
    done = judged(text)
    assert done.workflow is None


ENVELOPES = {
    "no version": (("version = 1", ""), [("missing-key", "1:1", "")]),
    "no budget": (("[budget]\nusd = 0.29", ""), [("missing-key", "1:1", "")]),
    "another version": (("version = 1", "version = 2"), [("unknown-value", "1:11", "2")]),
    "a version that is text": (("version = 1", 'version = "1"'), [("wrong-type", "1:11", '"1"')]),
    "a version that is a float": (("version = 1", "version = 1.0"), [("wrong-type", "1:11", "1.0")]),
    "a version that is true": (("version = 1", "version = true"), [("wrong-type", "1:11", "true")]),
    "a misspelt version": (("version = 1", "versoin = 1"), [("unknown-key", "1:1", "versoin")]),
    "a reason that is a number": (('"nightly"', "3"), [("wrong-type", "2:10", "3")]),
    "a key of a workflow": (("version = 1", 'version = 1\ntype = "custom"'), [("unknown-key", "2:1", "type")]),
    "a key in quotes": (("version = 1", 'version = 1\n"a b" = 1'), [("unknown-key", "2:1", '"a b"')]),
    "a table that nobody knows": (("[budget]", "[workspace]\n[budget]"), [("unknown-key", "4:2", "workspace")]),
    "a budget that is a number": (("[budget]\nusd = 0.29", "budget = 3"), [("wrong-type", "4:10", "3")]),
    "a budget of one line": (("[budget]\nusd = 0.29", "budget = { }"), [("missing-key", "4:10", "{")]),
    "a key twice": (("version = 1", "version = 1\nversion = 1"), [("repeated-key", "2:1", "version")]),
    "a misspelt kind": (("kind", "knid"), [("unknown-key", "9:1", "knid")]),
    "no kind": (('kind = "command"\n', ""), [("missing-key", "7:1", "[[task]]")]),
    "a kind that is none": (('"command"', '"comand"'), [("unknown-value", "9:8", '"comand"')]),
    "no command": (('command = "make"\n', ""), [("missing-key", "7:1", "[[task]]")]),
    "a type that is wrong": (('"make"', "3"), [("wrong-type", "10:11", "3")]),
    "an element that is wrong": (('["build"]', '["build", 3]'), [("wrong-type", "16:24", "3")]),
    "a dependency that is not there": (('["build"]', '["biuld"]'), [("unknown-task", "16:15", '"biuld"')]),
    "a dependency on itself": (('["build"]', '["gate"]'), [("self-dependency", "16:15", '"gate"')]),
    "a dependency twice": (('["build"]', '["build", "build"]'), [("duplicate-dependency", "16:24", '"build"')]),
    "a name twice": (('"gate"', '"build"'), [("duplicate-task", "13:8", '"build"')]),
    "half a threshold": (("threshold = 12\n", ""), [("threshold-needs-direction", "17:13", '"higher"')]),
    "a join of nothing": (
        ('command = "make"\n', 'command = "make"\njoin = "passed"\n'),
        [("join-without-dependencies", "11:8", '"passed"')],
    ),
    "evidence that may be missing": (
        ('command = "make"\n', 'command = "make"\nrequired = false\n'),
        [("required-behind-advisory", "14:8", '"gate"')],
    ),
    "a promise without a score": (
        ("threshold = 12", 'emits = ["pass"]\nthreshold = 12'),
        [("emits-omits-score", "17:9", '["pass"]')],
    ),
    "a session of a command": (
        ('command = "make"\n', 'command = "make"\nsession = "s"\n'),
        [("session-unsupported", "8:8", '"build"')],
    ),
    "a stage that is mixed": (
        ('command = "make"\n', 'command = "make"\nstage = "epilogue"\n'),
        [("cross-stage-dependency", "17:15", '"build"')],
    ),
}


@pytest.mark.parametrize(("change", "expected"), ENVELOPES.values(), ids=ENVELOPES)
def test_a_mistake_is_found_where_it_stands(change: tuple[str, str], expected: list[tuple[str, str, str]]) -> None:
    """In the envelope and in the tasks, by the rules that hold for every workflow."""
    text = GOOD.replace(*change, 1)
    assert text != GOOD
    found = places(text)
    assert [each for each in found if each in expected] == expected
    assert [each[0] for each in found] == [each[0] for each in expected]


def test_everything_that_is_wrong_is_said_in_order() -> None:
    """The envelope does not hide the tasks, nor they it."""
    text = GOOD.replace("0.29", "0").replace("kind", "knid", 1).replace("12", '"12"')
    text = text.replace("version = 1", "version = 1\nbudgte = 3")
    assert places(text) == [
        ("unknown-key", "2:1", "budgte"),
        ("out-of-range", "6:7", "0"),
        ("unknown-key", "10:1", "knid"),
        ("wrong-type", "18:13", '"12"'),
    ]


def test_of_another_version_nothing_else_is_judged() -> None:
    """What it may hold is not known here."""
    text = GOOD.replace("version = 1", "version = 7\nlanes = 3").replace("[budget]", "[purse]")
    assert [each[:2] for each in places(text)] == [("unknown-value", "1:11")]


@pytest.mark.parametrize("text", ["", "# nothing\n", "\ufeff", "[[task]]\n", "task = []\n"])
def test_an_empty_plan_lacks_what_a_plan_has(text: str) -> None:
    """Each missing key is named once."""
    found = judged(text).diagnostics
    assert {each.code for each in found} <= {"missing-key", "no-tasks"}
    assert [word for word in ("version", "[budget]", "task") if any(word in each.message for each in found)]
    assert all(each.span is not None for each in found)


def json_plan(**changes: object) -> dict[str, Any]:
    """Return a good plan as plain data, with some keys changed."""
    task = [{"name": "a", "kind": "command", "command": "true"}]
    return {"version": 1, "budget": {"usd": 5}, "task": task, **changes}


TEXT = json.dumps(json_plan())


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ('{"version": 1, "version": 1, ' + TEXT[1:], "repeated-key", ("1:16", '"version"')),
        (TEXT.replace('"usd": 5', '"usd": 5, "usd": 6'), "repeated-key", ("1:37", '"usd"')),
        ("[" * 10_000 + "]" * 10_000, "json-syntax", ("1:65", "[")),
        (TEXT.replace("[{", "[" * 10_000 + "{"), "json-syntax", ("1:109", "[")),
        (TEXT.replace('"true"}', '"true",}'), "json-syntax", ("1:97", ",")),
        (TEXT[:-1] + ",}", "json-syntax", ("1:99", ",")),
        (TEXT.replace("5", "NaN"), "json-syntax", ("1:34", "NaN")),
        (TEXT.replace("5", "1e999"), "json-syntax", ("1:34", "1e999")),
        (TEXT.replace("5", "0"), "out-of-range", ("1:34", "0")),
        (TEXT.replace("5", "null"), "wrong-type", ("1:34", "null")),
        (TEXT.replace('"a"', '"\\ud800"'), "json-syntax", ("1:56", '"\\ud800"')),
        ("[]", "wrong-type", ("1:1", "[]")),
        ("3", "wrong-type", ("1:1", "3")),
        ("", "json-syntax", ("1:1", "")),
        (TEXT.replace('"version": 1, ', ""), "missing-key", ("1:1", "{")),
        (TEXT.replace('{"usd": 5}', "{}"), "missing-key", ("1:26", "{")),
        (TEXT.replace("command", "comand", 1), "unknown-value", ("1:69", '"comand"')),
    ],
)
def test_json_is_as_strict(text: str, code: str, place: tuple[str, str]) -> None:
    """Repeated keys, nesting without end, commas too many and numbers that are none, each at its place."""
    found = places(text, "plan.json")
    assert (code, *place) in found
    assert {each[0] for each in found} <= {code, "missing-key"}


def test_a_byte_order_mark_is_no_part_of_a_plan() -> None:
    """Neither in JSON nor in TOML; bytes that are no text are found at the byte."""
    for text, file in ((TEXT, "plan.json"), (GOOD, "plan.toml")):
        marked = judged("\ufeff" + text, file)
        assert (marked.diagnostics, marked.workflow) == ([], judged(text, file).workflow)
        assert [each.code for each in judged(text.encode()[:20] + b"\xff", file).diagnostics] == ["source-not-utf8"]


def test_a_plan_of_a_thousand_tasks_is_good() -> None:
    """The ceiling of a source is none of what is written by hand."""
    rows = [{"name": f"t{n}", "kind": "command", "command": "true", "depends_on": []} for n in range(1000)]
    done = judged(json.dumps(json_plan(task=rows)), "plan.json")
    assert done.diagnostics == []
    assert done.workflow is not None
    assert len(done.workflow.task) == 1000


# Written out and read back


def without_nulls(value: Any) -> Any:
    """Return plain data without what TOML has no word for."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@given(compiled_workflows(), st.integers(1, 10**9), st.sampled_from(["json", "toml"]))
def test_every_plan_that_is_written_reads_back(
    workflow: ir.Workflow, micro: int, kind: Literal["toml", "json"]
) -> None:
    """The tasks, the budget to the micro-dollar and the reason, from either form."""
    plain = json_plan(budget={"usd": micro / 1_000_000}, reason="r", task=ir.to_plain(workflow)["task"])
    text = write_value(plain) if kind == "json" else tomlkit.dumps(without_nulls(plain))
    data, positions, problems = manifest.parse(text, f"plan.{kind}", kind)
    assert problems == []
    found = plan_file.read(data, positions, kind, f"plan.{kind}")
    assert (found.diagnostics, found.findings) == ([], [])
    assert found.plan == plan_file.PlanFile(micro, "r")
    assert found.workflow == ir.Workflow(type="custom", task=workflow.task)
    assert registry.errors("plan", plain) == []


# Whatever it holds

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*plan_file.KEYS, "usd", "name", "kind", "x"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*plan_file.KEYS, "x"]), JSON_VALUES) | JSON_VALUES)
def test_every_value_is_judged_and_none_raises(data: object) -> None:
    """What is good has a workflow and a budget, what is not has a place."""
    done = judged(json.dumps(data), "plan.json")
    assert (done.workflow is None) == bool(done.diagnostics)
    assert all(each.span is not None and each.file == "plan.json" for each in done.diagnostics)
    if done.workflow is not None:
        assert done.plan is not None
        assert (done.plan.budget or 0) > 0


@given(st.integers(0, len(GOOD)), st.integers(0, 12), st.text('[]{}"=.,\n\\#aé\0 1', max_size=6))
def test_every_text_near_a_plan_is_judged_and_none_raises(begin: int, length: int, other: str) -> None:
    """A change anywhere is good, or is told with a place."""
    done = judged(GOOD[:begin] + other + GOOD[begin + length :])
    assert (done.workflow is None) == bool(done.diagnostics)
    assert all(each.span is not None for each in done.diagnostics)


# The schema


def test_the_keys_are_those_of_the_schema() -> None:
    """Every key that the code reads, in its order, and what it must have."""
    assert list(SCHEMA["properties"]) == list(plan_file.KEYS)
    assert SCHEMA["properties"]["version"]["const"] == plan_file.VERSION
    assert set(SCHEMA["required"]) == set(plan_file.KEYS) - {"reason"}
    assert plan_file.PlanFile._fields == ("budget", "reason")
    workflow = registry.load("workflow")["$defs"]
    for kind, cls in ir.KINDS.items():
        part = SCHEMA["$defs"][kind]
        assert set(part["properties"]) == {"kind", *cls.fields}
        own = [name for name in workflow[kind]["properties"] if name != "session"]
        assert [name for name in part["properties"] if name != "session"] == own
        assert part["required"] == ["name", "kind", *(n for n in cls.fields[1:] if n not in cls.defaults)]
    for name in ("needs", "required", "isolation", "join", "stage", "depends_on", "emits"):
        default = ir.Task.defaults[name]
        assert SCHEMA["$defs"][name]["default"] == (list(default) if isinstance(default, tuple) else default)
    assert SCHEMA["$defs"]["stage"]["enum"] == list(ir.STAGES)


WRONG: list[Any] = [None, True, 0, -1, 2, 1.5, "", "x", "a\n", [], ["score", "score"], ["a b"], [3], {}, {"x": 1}]
WRONG += ["iteration", "epilogue", "engine", "decide", "apply", 2**31]
ENGINES = [
    {"name": "p", "kind": "engine", "op": "propose", "session": "s"},
    {"name": "v", "kind": "evaluate", "command": "c", "depends_on": ["p"], "threshold": None, "direction": None},
    {"name": "g", "kind": "engine", "op": "grade", "source": "v", "tiebreak": None, "depends_on": ["v"]},
    {"name": "d", "kind": "engine", "op": "decide", "source": "g", "depends_on": ["g"], "session": None},
]


def paths(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of everything inside of plain data."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from paths(item, (*path, key))


def changed(document: Any, path: tuple[Any, ...], *value: object) -> Any:
    """Return a copy with one value replaced, or without it."""
    document = copy.deepcopy(document)
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    if value:
        holder[path[-1]] = value[0]
    else:
        del holder[path[-1]]
    return document


@pytest.mark.parametrize("document", [*SCHEMA["examples"], json_plan(task=ENGINES)], ids=["short", "long", "engine"])
def test_what_the_schema_forbids_the_code_refuses(document: dict[str, Any]) -> None:
    """Of all documents one change away from a good one."""
    validator = Draft202012Validator(SCHEMA)
    assert validator.is_valid(document)
    assert refusals(document) == []
    tried = forbidden = 0
    for path in paths(document):
        candidates = [changed(document, path, value) for value in WRONG]
        candidates.append(changed(document, path))
        if isinstance(path[-1], str) and len(path) != 1:
            keys = ("x", "session", "source", "tiebreak", "threshold", "direction", "k", "stage", "emits", "join")
            candidates += [changed(document, (*path[:-1], key), value) for key in keys for value in ("lower", None)]
        for candidate in candidates:
            tried += 1
            if not validator.is_valid(candidate):
                forbidden += 1
                assert refusals(candidate), candidate
    assert forbidden > tried / 3


def refusals(document: object) -> list[str]:
    """Return the codes with which the code refuses a document."""
    text = json.dumps(document)
    data, positions, problems = manifest.parse(text, "plan.json", "json")
    assert problems == []
    found = plan_file.read(data, positions, "json", "plan.json")
    said = [*(each.code for each in found.diagnostics), *(each.code for each in found.findings)]
    if found.workflow is None or said:
        return said
    return [each.code for each in rules.judge(found.workflow, rules.facts_by_hand(found.workflow))]


# What commands make of it


@pytest.fixture
def plans(tmp_path: Path) -> Path:
    """Give a folder with a good plan in both forms, a bad one, and what the good one compiles to."""
    workflow = judged(GOOD).workflow
    assert workflow is not None
    (tmp_path / "plan.toml").write_text(GOOD)
    rows = ir.to_plain(workflow)["task"]
    (tmp_path / "plan.json").write_text(json.dumps(json_plan(reason="nightly", budget={"usd": 0.29}, task=rows)))
    (tmp_path / "nightly.toml").write_text(GOOD)
    (tmp_path / "bad.toml").write_text(GOOD.replace("depends_on", "depend_on"))
    (tmp_path / "workflow.json").write_text(dumps(workflow))
    return tmp_path


@pytest.mark.parametrize("file", ["plan.toml", "plan.json", "nightly.toml"])
def test_every_command_with_a_file_takes_a_plan(plans: Path, file: str) -> None:
    """It is what its canonical JSON is, to all of them."""
    for command in (("compile-workflow",), ("show",), ("show", "--format", "dot"), ("params",)):
        done = crucible("plan", *command, "--file", file, cwd=plans)
        same = crucible("plan", *command, "--file", "workflow.json", cwd=plans)
        assert (done.status, done.err) == (0, b""), command
        assert done.out == same.out
        piped = crucible(
            "plan", *command, "--file", "-", "--stdin-filename", file, stdin=_bytes(plans, file), cwd=plans
        )
        assert piped == done
    done = crucible("plan", "diff", file, "workflow.json", "--fail-on", "changed", cwd=plans)
    assert (done.status, done.err) == (0, b"")
    assert crucible("plan", "render", "--file", file, "--output", "x.svg", cwd=plans).status == 0


def _bytes(folder: Path, file: str) -> bytes:
    return (folder / file).read_bytes()


@pytest.mark.parametrize("command", ["compile-workflow", "show", "render", "params"])
def test_every_command_finds_what_is_wrong_with_a_plan(plans: Path, command: str) -> None:
    """With the same words, and nothing of a default loop."""
    done = crucible("plan", command, "--file", "bad.toml", cwd=plans)
    assert (done.status, done.out) == (1, b"")
    said = b'error[unknown-key]: a task of kind evaluate has no key "depend_on"; did you mean "depends_on"?\n'
    assert done.err.startswith(said)
    assert b"--> bad.toml:16:1" in done.err
    (plans / "plan.toml").write_text("reason = 'no more'\n")
    done = crucible("plan", command, "--file", "plan.toml", cwd=plans)
    assert done.status == 1
    assert done.err.count(b"error[missing-key]") == 3


def test_a_side_of_a_comparison_may_be_a_plan(plans: Path) -> None:
    """A bad one is told, whichever side it is."""
    for sides in (("bad.toml", "plan.json"), ("plan.toml", "bad.toml")):
        done = crucible("plan", "diff", *sides, cwd=plans)
        assert (done.status, done.out) == (1, b"")
        assert b"--> bad.toml:16:1" in done.err


def test_the_gate_of_a_plan_is_that_of_the_manifest_beside_it(plans: Path) -> None:
    """A script that is thawed there weakens what the plan proves."""
    for folder, frozen in (("old", "true"), ("new", "false")):
        (plans / folder).mkdir()
        (plans / folder / "plan.toml").write_text(GOOD)
        (plans / folder / "gate.sh").write_text("true\n")
        inject = f'{{ src = "gate.sh", dst = "gate.sh", frozen = {frozen} }}'
        (plans / folder / "crucible.toml").write_text(f"[workspace]\ninject = [{inject}]\n")
    done = crucible("plan", "diff", "old/plan.toml", "new/plan.toml", "--fail-on", "weakened", cwd=plans)
    assert (done.status, done.err) == (1, b"")
    assert b"gate.sh" in done.out


def test_a_plan_fills_a_manifest_and_a_manifest_does_not(plans: Path) -> None:
    """Its tasks become the block; the budget is no part of a workflow."""
    (plans / "crucible.toml").write_text('[repo]\npath = "."\n')
    for file in ("plan.toml", "nightly.toml", "plan.json"):
        done = crucible("plan", "compile-workflow", "--file", file, "--manifest", "crucible.toml", cwd=plans)
        assert (done.status, done.err) == (0, b"")
        shown = crucible("plan", "compile-workflow", "--file", "crucible.toml", cwd=plans)
        assert (shown.status, shown.out) == (0, done.out)
    (plans / "other.toml").write_bytes((plans / "crucible.toml").read_bytes())
    for file in ("crucible.toml", "other.toml"):
        done = crucible("plan", "compile-workflow", "--file", file, "--manifest", "crucible.toml", cwd=plans)
        assert done.status == 2
        assert b"not from a manifest" in done.err


def test_lint_takes_a_plan_that_is_named_and_searches_for_none(plans: Path) -> None:
    """Whatever the name; what a search finds are sources and manifests."""
    assert crucible("lint", ".", cwd=plans).status == 2
    done = crucible("lint", "plan.toml", "bad.toml", "plan.json", "--format", "json", cwd=plans)
    assert (done.status, codes(report(done.out))) == (1, ["unknown-key"])
    assert report(done.out)["summary"]["files"] == 3
    done = crucible("lint", "--fix", "bad.toml", cwd=plans)
    assert done.status == 0
    assert (plans / "bad.toml").read_text() == GOOD


def test_the_schema_is_printed(plans: Path) -> None:
    """Under the name that the page on tools gives it."""
    assert json.loads(crucible("plan", "schema", "plan", cwd=plans).out) == SCHEMA


def test_a_parameter_of_a_plan_is_refused() -> None:
    """It has none, whatever it is launched with."""
    done = compile_source(GOOD.encode(), "plan.toml", Options(params=(("x", "1"),)))
    assert [each.code for each in done.diagnostics] == ["unknown-param"]

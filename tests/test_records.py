"""What a run writes down: events, report and ledger, whole at any moment, and held to their schemas both ways."""

import json
import math
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.runtime import agent_runner, records
from crucible.runtime.outcome import Ending, Reason, Result, Status, Why
from crucible.runtime.records import Records, dollars, make_report, outcome_of, report_text
from crucible.schemas import ir, registry
from crucible.schemas.ir import CommandTask, Workflow

EVENT, REPORT = registry.load("event"), registry.load("report")
EVENTS = {branch["$ref"].rpartition("/")[2]: branch["$ref"] for branch in EVENT["oneOf"]}
TASK = CommandTask(name="t", command="true")
LATER = (Status.PENDING, Status.READY, Status.RUNNING)
TOKENS = EVENT["$defs"]["transport"]["enum"]


def lines(folder: Path) -> list[dict[str, Any]]:
    """Return the events that were written."""
    return [json.loads(line) for line in (folder / "session.jsonl").read_bytes().split(b"\n")[:-1]]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def results(draw: Any) -> Result:
    """Draw what can become of a task."""
    status = draw(st.sampled_from([status for status in Status if status not in LATER]))
    note = draw(st.text())
    if status in {Status.PASS, Status.FAIL, Status.TRANSPORT}:
        took = {
            "attempts": draw(st.integers(1, 9)),
            "cost": draw(st.integers(0, 10**12)),
            "seconds": draw(st.floats(0, 1e6)),
        }
        output = draw(json_values) if status is not Status.TRANSPORT else None
        transport = draw(st.sampled_from(TOKENS)) if status is Status.TRANSPORT else None
        return Result(status, output=output, note=note, transport=transport, **took)
    return Result(status, draw(st.sampled_from(_REASONS[status])), note=note)


_BLOCKED = (
    Reason(Why.REQUIRED_TASK_FAILED, ("a",)),
    Reason(Why.BUDGET_CEILING),
    Reason(Why.WALL_CLOCK_CEILING),
    Reason(Why.DEPENDENCY_DID_NOT_PASS, ("a", "b")),
    Reason(Why.DEPENDENCY_DID_NOT_PASS),
    Reason(Why.STAGING_REFUSED),
)
_NEVER = (Reason(Why.CAPABILITY_MISSING, (), "gpu"), Reason(Why.DEPENDENCY_CANNOT_RUN, ("a",), "gpu"))
_REASONS = {
    Status.BLOCKED: _BLOCKED,
    Status.SKIPPED: _NEVER,
    Status.TRUNCATED: (*_NEVER, Reason(Why.REQUIRED_TASK_CANNOT_RUN, ("a",), "gpu")),
}


# The schemas


@given(result=results(), data=st.data())
def test_every_result_is_written_as_the_schemas_say(
    tmp_path_factory: pytest.TempPathFactory, result: Result, data: st.DataObject
) -> None:
    """In an event and in the report, whatever its texts hold."""
    folder = tmp_path_factory.mktemp("state")
    task = CommandTask(name=data.draw(st.text(min_size=1, max_size=50)), command="true")
    written = Records(str(folder))
    written.task_result(task, result)
    report = make_report(
        Workflow(type="custom", task=(task,)), (result,), valid=False, ending=Ending.COMPLETED, spent=0, digest="0" * 64
    )
    written.report(report)
    written.close("finished", "")
    assert [problem for event in lines(folder) for problem in registry.errors("event", event)] == []
    read = json.loads((folder / "report.json").read_bytes())
    assert read == report
    assert registry.errors("report", read) == []


def test_the_closed_sets_are_those_of_the_code() -> None:
    """Statuses, endings, reasons and kinds have one home each."""
    settled = [str(status) for status in Status if status not in LATER]
    assert EVENT["$defs"]["status"]["enum"] == settled
    assert REPORT["$defs"]["status"]["enum"] == ["pending", *settled]
    for document in (EVENT, REPORT):
        definitions = document["$defs"]
        assert definitions["exit"]["enum"] == [str(ending) for ending in Ending]
        assert sorted(definitions["task_kind"]["enum"]) == sorted(ir.KINDS)
        reasons = definitions["blocked"]["properties"]["reason"]["enum"]
        assert reasons == list(dict.fromkeys(str(reason.why) for reason in _BLOCKED))
    of_plans = {outcome_of(ending) for ending in Ending}
    assert set(EVENT["$defs"]["outcome"]["enum"]) == {*of_plans, "solved", "escalated", "stalled"}
    assert set(EVENT["$defs"]["summary"]["properties"]["tasks"]["propertyNames"]["enum"]) == {"pending", *settled}


def test_every_fact_of_a_result_is_in_the_schemas() -> None:
    """An event and an entry of the report have the same facts, but for the output, of which the log has a digest."""
    entry, event = REPORT["$defs"]["task"]["properties"], EVENT["$defs"]["task_result"]["properties"]
    assert [*entry] == [
        "name",
        "kind",
        "status",
        "attempts",
        "cost_usd",
        "seconds",
        "note",
        "output",
        "blocked",
        "transport",
    ]
    renamed = {"kind": "task_kind", "output": "output_digest"}
    assert list(event) == ["v", "kind", *(renamed.get(name, name) for name in entry), "iter"]


@pytest.mark.parametrize("number", range(len(EVENT["examples"])))
def test_an_example_without_one_of_its_facts_is_forbidden(number: int) -> None:
    """Those that may be absent are listed here."""
    example = EVENT["examples"][number]
    absent = {"note", "output_digest", "content"}
    for key in set(example) - absent:
        assert registry.errors("event", {name: value for name, value in example.items() if name != key}), key
    assert registry.errors("event", {**example, "other": 1})


def test_there_is_an_example_of_every_kind_of_event() -> None:
    """And of none that is not listed."""
    kinds = {EVENT["$defs"][name]["properties"]["kind"]["const"] for name in EVENTS}
    assert {example["kind"] for example in EVENT["examples"]} == kinds


@pytest.mark.parametrize("value", [None, True, 1, "x", []])
def test_what_the_schema_of_a_result_forbids_is_refused(value: object) -> None:
    """A result is an object, whatever is in it."""
    assert registry.errors("task-result", value)
    assert agent_runner._of_value(value, "it").status is Status.FAIL
    assert registry.errors("task-result", {"any": value}) == []
    assert agent_runner._of_value({"any": value}, "it").status is Status.PASS


# Events


def test_an_event_is_one_line_of_ascii(tmp_path: Path) -> None:
    """No reader takes a strange character for the end of a line, and lone surrogates crash nobody."""
    written = Records(str(tmp_path))
    text = "a\u2028b\x85c\nd\ud800\U0001f600"
    written.event("note", level="info", text=text)
    written.close("finished", "")
    data = (tmp_path / "session.jsonl").read_bytes()
    assert data.isascii()
    assert data.count(b"\n") == 2
    assert lines(tmp_path)[0]["text"] == text


def test_the_last_event_is_the_last_and_written_once(tmp_path: Path) -> None:
    """What comes after it is dropped."""
    written = Records(str(tmp_path))
    written.close("finished", "all is well")
    written.close("error", "too late")
    written.event("finished")
    assert lines(tmp_path) == [{"v": 1, "kind": "shutdown", "outcome": "finished", "reason": "all is well"}]


def test_an_event_is_there_as_soon_as_it_is_written(tmp_path: Path) -> None:
    """Whoever follows the log sees it line by line."""
    written = Records(str(tmp_path))
    written.event("finished")
    assert len(lines(tmp_path)) == 1
    written.close("finished", "")


@pytest.mark.parametrize(
    ("ending", "outcome"),
    [
        (Ending.COMPLETED, "finished"),
        (Ending.BUDGET_EXCEEDED, "budget"),
        (Ending.WALL_CLOCK, "budget"),
        (Ending.INTERRUPTED, "stopped"),
        (Ending.SHORT_CIRCUIT, "error"),
        (Ending.TRUNCATED, "error"),
    ],
)
def test_an_ending_has_its_outcome(ending: Ending, outcome: str) -> None:
    """As the last event names it."""
    assert outcome_of(ending) == outcome


# Files


def test_records_begin_anew_whatever_stands_in_their_place(tmp_path: Path) -> None:
    """Links are removed and never followed, folders of others stay."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("mine")
    state = tmp_path / "state"
    state.mkdir()
    (state / "logs").symlink_to(elsewhere)
    (state / "report.json").symlink_to(elsewhere / "mine")
    (state / "session.jsonl").symlink_to(elsewhere / "mine")
    (state / ".report.json.new").write_text("torn")
    Records(str(state)).close("finished", "")
    assert sorted(path.name for path in state.iterdir()) == ["logs", "session.jsonl"]
    assert not (state / "logs").is_symlink()
    assert (elsewhere / "mine").read_text() == "mine"


@pytest.mark.parametrize("kind", ["folder", "pipe"])
@pytest.mark.parametrize("name", ["report.json", "conversations.json", ".empty", "session.jsonl", "inputs-2", "logs"])
def test_what_a_task_left_in_place_of_records_is_removed(tmp_path: Path, name: str, kind: str) -> None:
    """The state directory is ours: the next run begins in it, whatever stands there."""
    if kind == "pipe":
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name / "deep").mkdir(parents=True)
    held = Records(str(tmp_path), reuses=True)
    held.report({"tasks": []})
    held.ledger({})
    held.close("finished", "")
    assert name != "inputs-2" or not (tmp_path / name).exists()
    assert (tmp_path / "report.json").is_file()
    assert list((tmp_path / "logs").iterdir()) == []


def test_a_report_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the new one is complete the old one stands; nothing else is left."""
    written = Records(str(tmp_path))
    written.report({"valid": 1, "tasks": []})
    seen = []
    replace = os.replace

    def look(source: str, target: str) -> None:
        seen.append(json.loads(Path(target).read_bytes()))
        replace(source, target)

    monkeypatch.setattr(os, "replace", look)
    written.report({"valid": 2, "tasks": []})
    written.close("finished", "")
    assert [each["valid"] for each in seen] == [1]
    assert json.loads((tmp_path / "report.json").read_bytes())["valid"] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs", "report.json", "session.jsonl"]


def test_the_ledger_is_for_nobody_else(tmp_path: Path) -> None:
    """Whatever the mask of the process says."""
    before = os.umask(0)
    try:
        written = Records(str(tmp_path))
        written.ledger({"s": {"cursor": "c", "turns": 1}})
        written.close("finished", "")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / records.LEDGER).stat().st_mode) == 0o600


def test_a_report_has_a_line_for_each_task() -> None:
    """So that a person finds one, and a diff shows one."""
    tasks = tuple(CommandTask(name=name, command="true") for name in ("a", "b"))
    report = make_report(
        Workflow(type="custom", task=tasks),
        (Result(Status.PASS, attempts=1, output={"x": "é\n\ud800"}), None),
        valid=True,
        ending=Ending.INTERRUPTED,
        spent=100_000,
        digest="d",
    )
    assert report_text(report).splitlines() == [
        '{"version": 1, "valid": true, "exit": "interrupted", "spent_usd": 0.1, "digest": "d", "tasks": [',
        (
            '{"name": "a", "kind": "command", "status": "pass", "attempts": 1, "cost_usd": 0.0, "seconds": 0.0, '
            '"output": {"x": "é\\n\\ud800"}},'
        ),
        '{"name": "b", "kind": "command", "status": "pending", "note": "the run was stopped before it began"}',
        "]}",
    ]


@given(st.integers(0, 10**15))
def test_an_amount_of_money_reads_back_as_it_was(micros: int) -> None:
    """Micro-dollars become USD and are the same micro-dollars again."""
    assert round(dollars(micros) * 1_000_000) == micros
    assert math.isfinite(dollars(micros))


def test_logs_that_nothing_was_written_to_serve_again_and_every_name_stays(tmp_path: Path) -> None:
    """What the next attempt prints is in its own log only."""
    held = Records(str(tmp_path), reuses=True)
    stems = [held.log(number, "t", 1) for number in range(4)]
    inodes = set()
    for stem, printed in zip(stems, ("", "", "x", ""), strict=True):
        held.begin_logs(stem)
        for ending in records.ENDINGS:
            with Path(stem + ending).open("a") as file:  # as a child that is started makes it
                inodes.add(os.fstat(file.fileno()).st_ino)
                file.write(printed)
        held.end_logs(*(stem + ending for ending in records.ENDINGS))
    found = {path.name: path.read_text() for path in (tmp_path / "logs").iterdir()}
    assert found == {
        f"00{number + 1}-t.attempt-1.{ending}": "x" if number == 2 else ""
        for number in range(4)
        for ending in ("out", "err")
    }
    assert len(inodes) == 4
    held.close("finished", "")
    Records(str(tmp_path)).close("finished", "")
    assert list((tmp_path / "logs").iterdir()) == []


@pytest.mark.parametrize("make", ["link", "other name", "pipe", "nothing", "read-only"])
def test_what_a_task_put_in_place_of_its_log_serves_nobody(tmp_path: Path, make: str) -> None:
    """Only a plain empty file that has one name is taken for the next attempt."""
    held = Records(str(tmp_path), reuses=True)
    first, second = (Path(held.log(number, "t", 1) + ".out") for number in range(2))
    if make == "link":
        first.symlink_to("elsewhere")
    elif make == "pipe":
        os.mkfifo(first)
    elif make != "nothing":
        first.touch()
        first.chmod(0o400 if make == "read-only" else 0o600)
        if make == "other name":
            (tmp_path / "kept").hardlink_to(first)
    held.end_logs(str(first))
    held.begin_logs(str(second).removesuffix(".out"))
    assert not second.exists()
    held.close("finished", "")

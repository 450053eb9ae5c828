"""What would become of a workflow if tasks failed: by examples, and as runs of the naive account."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_run import NaiveRun, Told
from test_machine import task, workflow, workflows

from crucible.cli.main import main
from crucible.runtime.outcome import Attempt, Ending, Status
from crucible.runtime.what_if import COLUMNS, WhatIf, each, rows, to_plain, what_if
from crucible.schemas.ir import TopKTask, Workflow

LOOP = workflow(
    task("build"),
    task("critic", "build", advisory=True, isolated=True),
    task("gpu", "build", advisory=True, needs="gpu"),
    task("gate", "critic", "gpu", join="passed"),
    task("notes", "critic", advisory=True),
    task("post", stage="epilogue"),
)


def fates(answer: WhatIf) -> dict[str, str]:
    """Return what becomes of each task, as people read it."""
    return {fate.task: fate.text for fate in answer.fates}


def test_without_a_failure_everything_possible_passes() -> None:
    """What can never run here is skipped all the same, and says what it needs."""
    answer = what_if(LOOP)
    assert fates(answer) == {
        **dict.fromkeys(("build", "critic", "gate", "notes", "post"), "pass"),
        "gpu": "skipped: it needs gpu, which is not there",
    }
    assert (answer.valid, answer.ending, answer.text) == (True, Ending.COMPLETED, "valid")
    assert what_if(LOOP, capabilities={"gpu"}).names(Status.PASS) == tuple(each.name for each in LOOP.task)


def test_a_failure_is_followed_to_the_end_of_the_run() -> None:
    """An advisory failure takes the last input of a required task, which ends the run."""
    answer = what_if(LOOP, ["critic"])
    assert fates(answer) == {
        "build": "pass",
        "critic": "fail",
        "gpu": "skipped: it needs gpu, which is not there",
        "gate": 'blocked: did not pass: "critic", "gpu"',
        "notes": 'blocked: the required task "gate" did not pass',
        "post": 'blocked: the required task "gate" did not pass',
    }
    assert answer.text == "invalid (short_circuit)"
    assert what_if(LOOP, ["critic"], {"gpu"}).valid
    assert not what_if(LOOP, ["critic", "gpu"], {"gpu"}).valid


def test_a_task_that_would_fail_and_never_runs_is_what_it_is() -> None:
    """It does not count as failed."""
    answer = what_if(LOOP, ["build", "critic"])
    assert (answer.failed, answer.names(Status.FAIL)) == (("build", "critic"), ("build",))


def test_a_plan_that_cannot_run_here_says_so() -> None:
    """Nothing would run, whatever failed."""
    answer = what_if(workflow(task("a"), task("b", needs="gpu")), ["a"])
    assert fates(answer) == {
        "a": 'truncated: the required task "b" cannot run here: gpu is not there',
        "b": "truncated: it needs gpu, which is not there",
    }
    assert answer.text == "invalid (truncated)"


def test_isolated_tasks_run_together_unless_told_otherwise() -> None:
    """What has passed when the run stops depends on how many run at once."""
    flow = workflow(task("a", isolated=True), task("b", isolated=True))
    assert what_if(flow, ["a"]).names(Status.PASS) == ("b",)
    assert what_if(flow, ["a"], jobs=1).names(Status.BLOCKED) == ("b",)


def test_promised_fields_and_reducers_are_no_obstacle() -> None:
    """Nothing has an output here, and what passes is taken at its word."""
    best = TopKTask(name="best", k=1, direction="lower", depends_on=("a",))
    assert what_if(workflow(task("a", emits=("score",)), best)).valid


def test_an_unknown_name_is_a_wrong_call() -> None:
    """Whoever asks has looked the names up."""
    with pytest.raises(KeyError, match="ghost"):
        what_if(LOOP, ["ghost"])


def test_the_table_of_single_failures_has_a_row_for_each_task() -> None:
    """The names of what does not run, by what became of it."""
    assert len(COLUMNS) == 5
    assert list(rows(each(LOOP))) == [
        ("build", "invalid (short_circuit)", "critic, gate, notes, post", "gpu", ""),
        ("critic", "invalid (short_circuit)", "gate, notes, post", "gpu", ""),
        ("gpu", "valid", "", "gpu", ""),
        ("gate", "invalid (short_circuit)", "notes, post", "gpu", ""),
        ("notes", "valid", "", "gpu", ""),
        ("post", "invalid (short_circuit)", "", "gpu", ""),
    ]


def test_an_answer_has_a_plain_form() -> None:
    """For programs: the reason is the contract's object, with the causes beside it."""
    plain = to_plain(what_if(LOOP, ["critic"]))
    reasons: dict[str, Any] = {each["name"]: each["reason"] for each in plain["tasks"]}
    assert {key: plain[key] for key in ("failed", "valid", "exit")} == {
        "failed": ["critic"],
        "valid": False,
        "exit": "short_circuit",
    }
    assert reasons == {
        "build": None,
        "critic": None,
        "gpu": {"reason": "capability_missing", "capability": "gpu"},
        "gate": {"reason": "dependency_did_not_pass", "causes": ["critic", "gpu"]},
        "notes": {"reason": "required_task_failed", "task": "gate"},
        "post": {"reason": "required_task_failed", "task": "gate"},
    }
    assert plain["tasks"][2] == {"name": "gpu", "required": False, "status": "skipped", "reason": reasons["gpu"]}


# On the command line

SHOW = [
    "plan",
    "show",
    "--file",
    str(Path(__file__).resolve().parent.parent / "golden" / "critic-panel" / "workflow.star"),
]


def test_the_command_line_tells_what_a_failure_does(capfd: pytest.CaptureFixture[str]) -> None:
    """The fate of each task stands in its row, the verdict below the table."""
    assert main([*SHOW, "--fail", "critic-cost", "--fail", "critic-security"]) == 0
    out = capfd.readouterr().out
    assert 'blocked: the required task "critic-security" did not pass' in out
    assert "the run would be invalid (short_circuit)" in out


def test_the_command_line_has_a_table_of_every_single_failure(capfd: pytest.CaptureFixture[str]) -> None:
    """A row for each task, and the same for programs."""
    assert main([*SHOW, "--fail", "each"]) == 0
    head, *table = capfd.readouterr().out.splitlines()
    assert head.split("  ")[0] == COLUMNS[0]
    assert [line.split()[0] for line in table if " invalid (short_circuit)" in line] == [
        "draft",
        "critic-security",
        "revise",
        "check-links",
    ]
    assert main([*SHOW, "--fail", "each", "--format", "json"]) == 0
    answers = json.loads(capfd.readouterr().out)["what_if"]
    assert [answer["failed"] for answer in answers if not answer["valid"]] == [
        ["draft"],
        ["critic-security"],
        ["revise"],
        ["check-links"],
    ]


def test_the_command_line_knows_the_task_that_was_meant(capfd: pytest.CaptureFixture[str]) -> None:
    """A failure of a task that is not there is wrong usage."""
    assert main([*SHOW, "--fail", "draff"]) == 2
    assert 'no task "draff"; did you mean "draft"?' in capfd.readouterr().err


# Every rule at once


@given(workflows(), st.data())
def test_every_answer_is_what_the_naive_account_says(flow: Workflow, data: st.DataObject) -> None:
    """Some tasks fail, the others pass; nothing costs, nothing is retried."""
    promising = tuple(task.replace(emits=()) for task in flow.task)
    failed = data.draw(st.sets(st.sampled_from([task.name for task in flow.task])))
    told = Told(frozenset({"cpu"}), None, None, 0, {name: [Attempt(Status.FAIL)] for name in failed})
    account = NaiveRun(flow.replace(task=promising), told).account()
    answer = what_if(flow, failed, ["cpu"])
    assert {fate.task: (fate.status, fate.reason) for fate in answer.fates} == account.fates
    assert (answer.valid, answer.ending) == (account.valid, account.ending)


@given(workflows(), st.sampled_from([None, 1, 2]))
def test_every_row_of_the_table_is_the_answer_for_its_task(flow: Workflow, jobs: int | None) -> None:
    """That the runs share their beginnings changes nothing."""
    assert each(flow, jobs=jobs) == tuple(what_if(flow, [task.name], jobs=jobs) for task in flow.task)

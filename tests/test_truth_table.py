"""What becomes of a task, for every combination: against the rules in short, and as a page that people read."""

from pathlib import Path

from pytest_snapshot.plugin import Snapshot
from truth_table import ALONE, OPEN, TOGETHER, WAITS, Case, cases, outcome, page

from crucible.runtime.outcome import Status

DOCS = Path(__file__).resolve().parent.parent / "docs"
ENDED_BEFORE = {Status.SKIPPED, Status.BLOCKED}  # before the task that halts the run has ended


def expected(case: Case) -> str:
    """Return what the rules say of a case, in the order in which they are asked."""
    named = dict(zip(("one", "two"), case.upstream, strict=False))
    lost = [name for name, state in named.items() if state is not Status.PASS]
    skipped = [name for name, state in named.items() if state is Status.SKIPPED]
    if skipped and (case.join == "all" or len(skipped) == len(named)):
        status = "truncated" if case.required else "skipped"
        return f"{status}: dependency_cannot_run {shown(skipped)}"
    if not named and case.join == "passed":
        return "blocked: dependency_did_not_pass"
    blocked = f"blocked: dependency_did_not_pass {shown(lost)}"
    if named and set(named.values()) <= ENDED_BEFORE:
        return blocked
    if {Status.PENDING, Status.RUNNING} & set(named.values()):
        return WAITS
    if case.halted != "no":
        halts = {"interrupted": OPEN, "required_task_failed": "blocked: required_task_failed `other`"}
        return halts.get(case.halted, f"blocked: {case.halted}")
    if lost and (case.join == "all" or len(lost) == len(named)):
        return blocked
    return TOGETHER if case.isolated else ALONE


def shown(names: list[str]) -> str:
    """Return names as a cell has them."""
    return " ".join(f"`{name}`" for name in names)


def test_every_combination_comes_out_as_the_rules_say() -> None:
    """Join, required, isolation, the states of none, one and two dependencies, and what has halted the run."""
    wrong = {case: (outcome(case), expected(case)) for case in cases() if outcome(case) != expected(case)}
    assert wrong == {}


def test_the_published_table_is_what_the_machine_does(snapshot: Snapshot) -> None:
    """The page that people read is played again; `make golden` writes it."""
    snapshot.snapshot_dir = DOCS
    assert page().isascii()
    try:
        snapshot.assert_match(page().encode(), "truth-table.md")
    except AssertionError as error:
        message = "docs/truth-table.md is not what the machine does; `make golden` mends it"
        raise AssertionError(message) from error

"""--resume: how the process before ended, what holds of it, and what is said again."""

import json
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from contract import contract
from process import COMMAND

from crucible.runtime import history
from crucible.schemas import registry

AGENT = f"{sys.executable} -P -m crucible.runtime.stand_in ../edits.toml"
# Kills the engine, the first time.
ONCE = 'if ! test -e ../killed; then touch ../killed; kill -KILL "$(cat ../state/lock)"; sleep 5; fi'


class Went(NamedTuple):
    """How a process ended, and all events so far."""

    status: int
    err: str
    events: list[dict[str, Any]]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of a kind."""
        return [event for event in self.events if event["kind"] == kind]

    @property
    def decisions(self) -> list[str]:
        """Return what was decided, iteration by iteration, none of them twice."""
        rows = self.of("row")
        assert [row["iter"] for row in rows] == list(range(len(rows)))
        return [row["decision"] for row in rows]

    @property
    def recovery(self) -> tuple[str, int]:
        """Return the class and the iteration of the last recovery."""
        last = self.of("recovery")[-1]
        return last["class"], last["iter"]


class Bench:
    """A pack whose agent leaves readings, and whose parts can kill the engine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "start").mkdir(parents=True)
        (folder / "start" / "reading").write_text('{"valid": true, "score": 10}\n')
        self.edits(*(f'echo \'{{"valid": true, "score": {score}}}\' > reading' for score in (9, 11, 8)))
        self.manifest()

    def edits(self, *commands: str) -> None:
        """Have the agent run a command in each iteration."""
        lines = [f"[[edit]]\niteration = {n}\nrun = {json.dumps(each)}\n" for n, each in enumerate(commands, 1)]
        (self.folder / "edits.toml").write_text("".join(lines))

    def manifest(self, gate: str = "cat reading", more: str = "", agent: str = AGENT, goal: str = "Lower it.") -> None:
        """Write the manifest."""
        (self.folder / "crucible.toml").write_text(
            f"[repo]\npath = 'start'\n[agent]\nbackend = 'command'\nagent_cmd = {json.dumps(agent)}\n"
            f"goal = {json.dumps(goal)}\n[judge]\nmeasure_cmd = {json.dumps(gate)}\ndirection = 'lower'\n{more}"
        )

    def run(self, *options: str) -> Went:
        """Run, in a process of its own."""
        line = [*COMMAND, "run", "--manifest", "crucible.toml", "--no-progress", *options]
        done = subprocess.run(line, cwd=self.folder, capture_output=True, text=True, check=False)
        return Went(done.returncode, done.stderr, self.events())

    def events(self) -> list[dict[str, Any]]:
        """Return the events so far, each of which its schema allows."""
        path = self.folder / "state" / "session.jsonl"
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        found = [json.loads(line) for line in lines]
        assert [problem for event in found for problem in registry.errors("event", event)] == []
        return found


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Return a pack that is measured at 10, 9, 11 and 8."""
    return Bench(tmp_path / "pack")


def in_the_gate(bench: Bench) -> None:
    """Have the gate kill the engine in the first iteration."""
    bench.manifest(gate=f'if test "$CRUCIBLE_ITERATION" = 1; then {ONCE}; fi; cat reading')


def in_the_baseline(bench: Bench) -> None:
    """Have the gate kill the engine at the baseline."""
    bench.manifest(gate=f"{ONCE}; cat reading")


def in_a_turn(bench: Bench) -> None:
    """Have the agent kill the engine in the second iteration, when it has done half of its work."""
    reading = 'echo \'{"valid": true, "score": %d}\' > reading'
    bench.edits(reading % 9, f"touch half; {ONCE}; rm half; {reading % 11}", reading % 8)


def in_a_snapshot(bench: Bench) -> None:
    """Have the domain kill the engine when the first candidate is kept."""
    world = {"snapshot_cmd": f"if grep -q 9 reading; then {ONCE}; fi; echo token", "restore_cmd": "true"}
    bench.manifest(more="[world]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in world.items()))


def in_a_restore(bench: Bench) -> None:
    """Have the domain kill the engine when the second candidate is taken back."""
    world = {"snapshot_cmd": "echo token", "restore_cmd": ONCE}
    bench.manifest(more="[world]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in world.items()))


@pytest.mark.parametrize(
    ("prepare", "recovery", "rows"),
    [
        (in_the_baseline, ("died_in_baseline", 0), 0),
        (in_a_turn, ("died_mid_turn", 2), 2),
        (in_the_gate, ("died_in_plan_task", 1), 1),
        (in_a_snapshot, ("died_deciding", 1), 1),
        (in_a_restore, ("died_between_iterations", 2), 3),
    ],
)
@contract("§7", "recovery: { class, iter, detail }, emitted once per --resume")
def test_a_run_that_died_goes_on(
    bench: Bench, prepare: Callable[[Bench], None], recovery: tuple[str, int], rows: int
) -> None:
    """How it died is told; the iteration that has no row is done again under its number, and nothing twice."""
    prepare(bench)
    died = bench.run("--iterations", "3")
    assert died.status == -9
    assert len(died.of("row")) == rows
    assert died.of("shutdown") == []
    went = bench.run("--resume")
    assert went.status == 0, went.err
    assert went.recovery == recovery
    assert went.decisions == ["keep", "keep", "discard", "keep"]
    assert len(went.of("shutdown")) == 1
    kinds = [event["kind"] for event in went.events]
    assert kinds[kinds.index("recovery") - 1] == "note"
    assert [kinds.count("start"), kinds.count("identity")] == [1, 2]
    assert not (bench.folder / "workspace" / "half").exists()


def test_what_a_turn_cost_that_died_is_named_unknown(bench: Bench) -> None:
    """What is known is the last sum of the log."""
    in_a_turn(bench)
    bench.run("--iterations", "3")
    went = bench.run("--resume")
    detail = went.of("recovery")[0]["detail"]
    assert detail.endswith("has no result; what it cost is unknown")
    assert f"going on with iteration 2: the run died; {detail}" in went.err


def test_the_flags_of_the_first_start_hold_and_new_ones_win(bench: Bench) -> None:
    """Iterations count from the first start."""
    bench.edits(*(f'echo \'{{"valid": true, "score": {9 - n}}}\' > reading' for n in range(5)))
    assert bench.run("--iterations", "2").decisions == ["keep"] * 3
    again = bench.run("--resume")
    assert (again.status, again.decisions, again.recovery) == (0, ["keep"] * 3, ("clean_exit", 2))
    assert "the run ended before: finished" in again.err
    assert [event["outcome"] for event in again.of("shutdown")] == ["finished", "finished"]
    assert bench.run("--resume", "--iterations", "4").decisions == ["keep"] * 5
    log = (bench.folder / "state" / "session.jsonl").read_bytes()
    bench.run("--iterations", "1")
    assert (bench.folder / "state" / "session-1.jsonl").read_bytes() == log


@pytest.mark.parametrize("solved", [True, False])
def test_a_run_that_has_nothing_left_to_do_exits_as_it_did(bench: Bench, *, solved: bool) -> None:
    """Solved is 0, nothing better is 1; neither takes another turn."""
    reading = json.dumps({"valid": True, "score": 10, "solved": solved})
    bench.edits(f"echo '{reading}' > reading", "touch ../turned")
    first = bench.run("--iterations", "1" if not solved else "5")
    again = bench.run("--resume")
    assert (first.status, again.status) == ((0, 0) if solved else (1, 1))
    assert again.of("shutdown")[-1]["outcome"] == ("solved" if solved else "finished")
    assert not (bench.folder / "turned").exists()


def test_a_steer_whose_iteration_has_no_row_is_said_again(bench: Bench) -> None:
    """One that was heard is not, and a new one joins it."""
    steer = bench.folder / "STEER.md"
    bench.edits('cp "$CRUCIBLE_PROMPT_FILE" ../told-1', f'{ONCE}; cp "$CRUCIBLE_PROMPT_FILE" ../told-2')
    steer.write_text("go left\n")
    bench.run("--iterations", "2")  # it is heard in the first iteration, and the second dies
    assert "go left" in (bench.folder / "told-1").read_text()
    assert not steer.exists()
    bench.run("--resume")
    assert "go left" not in (bench.folder / "told-2").read_text()
    (bench.folder / "killed").unlink()
    bench.edits(f'{ONCE}; cp "$CRUCIBLE_PROMPT_FILE" ../told-3')
    steer.write_text("go right\n")
    bench.run("--iterations", "1")
    assert not steer.exists()
    steer.write_text("and fast\n")
    bench.run("--resume")
    told = (bench.folder / "told-3").read_text()
    assert "go right" in told
    assert "and fast" in told


def test_conversations_go_on(bench: Bench) -> None:
    """The ledger has the cursor, for nobody else to read; a resumed conversation is told only what changed."""
    task = {"propose": 'op = "propose"\nsession = "solver"', "apply": 'op = "apply"\ndepends_on = ["propose"]',
            "measure": 'op = "measure"\ndepends_on = ["apply"]',
            "decide": 'op = "decide"\nsource = "measure"\ndepends_on = ["measure"]'}  # fmt: skip
    block = "[workflow]\ntype = 'autoresearch'\nresult = 'decide'\n" + "".join(
        f"[[workflow.task]]\nname = '{name}'\nkind = 'engine'\n{rest}\n" for name, rest in task.items()
    )
    bench.manifest(more=block)
    note = 'echo "$CRUCIBLE_CONVERSATION" >> ../cursors'
    bench.edits(note, note, f'{note}; cp "$CRUCIBLE_PROMPT_FILE" ../told')
    bench.run("--iterations", "2")
    ledger = bench.folder / "state" / "conversations.json"
    assert stat.S_IMODE(ledger.stat().st_mode) == 0o600
    went = bench.run("--resume", "--iterations", "3")
    assert len(set((bench.folder / "cursors").read_text().split())) == 1
    assert [(each["action"], each["turn"]) for each in went.of("agent_session")] == [
        ("start", 1), ("resume", 2), ("resume", 3)]  # fmt: skip
    assert (bench.folder / "told").read_text().startswith("# Status")
    assert json.loads(ledger.read_text())["solver"]["turns"] == 3


@contract("§7", "A mismatch against the original run's identity is a hard-warning note event, never an abort.")
def test_another_identity_is_a_loud_note(bench: Bench) -> None:
    """The run goes on."""
    bench.run("--iterations", "1")
    bench.manifest(goal="Raise it.")
    went = bench.run("--resume", "--iterations", "2")
    assert went.status == 0
    assert "warning: this is not the run that was begun" in went.err
    assert "what differs: manifest (its identity was v1:" in went.err
    assert [event["level"] for event in went.of("note")] == ["info", "warning"]


def test_the_budget_goes_on(bench: Bench) -> None:
    """What was spent before counts, and the ceiling is that of the first start."""
    spend = 'echo 0.4 > "$CRUCIBLE_COST_FILE"'
    bench.manifest(agent=f"{spend}; {AGENT}")
    bench.run("--iterations", "1", "--max-cost", "1")
    went = bench.run("--resume", "--iterations", "9")
    assert went.of("shutdown")[-1]["outcome"] == "budget"
    assert went.of("budget")[-1] == {"v": 1, "kind": "budget", "spent_usd": 1.2, "ceiling_usd": 1.0}
    assert went.decisions == ["keep", "keep", "discard", "discard"]


def test_a_resume_that_dies_is_gone_on_with_as_well(bench: Bench) -> None:
    """As often as it takes; each says how the one before ended."""
    reading = 'echo \'{"valid": true, "score": %d}\' > reading'
    dies = 'if ! test -e ../%d; then touch ../%d; kill -KILL "$(cat ../state/lock)"; sleep 5; fi; '
    bench.edits(*(dies % (number, number) + reading % (9 - number) for number in range(3)))
    assert bench.run("--iterations", "3").status == -9
    assert [bench.run("--resume").status for _ in range(3)] == [-9, -9, 0]
    went = bench.run("--resume")
    assert went.decisions == ["keep"] * 4
    assert [(each["class"], each["iter"]) for each in went.of("recovery")] == [
        ("died_mid_turn", 1), ("died_mid_turn", 2), ("died_mid_turn", 3), ("clean_exit", 3)]  # fmt: skip


def test_a_row_that_is_gone_from_the_log_is_told(bench: Bench) -> None:
    """What was kept there cannot be known, so nobody takes the best for the best silently."""
    bench.run("--iterations", "2")
    path = bench.folder / "state" / "session.jsonl"
    path.write_text(path.read_text().replace('"kind": "row", "iter": 1', '"kind": "row", "it'))
    path.write_text(path.read_text().replace('"kind":"row","iter":1', '"kind":"row","it'))
    line = [*COMMAND, "run", "--manifest", "crucible.toml", "--no-progress", "--resume", "--iterations", "3"]
    done = subprocess.run(line, cwd=bench.folder, capture_output=True, text=True, check=False)
    assert "warning: the log has no row of iteration 1, so what was kept there is not known" in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"score":9', '"scroe":9', "the log has no row of iteration 1, so"),
        ('"score":', '"scroe":', "the log has no row of iteration 0, 1, so"),
        ('"kind":"row","iter":1', '"kind":"row","iter":1000000000000', None),
    ],
)
def test_a_log_that_somebody_damaged_ends_no_run_in_a_fault(bench: Bench, old: str, new: str, told: str | None) -> None:
    """A row that was kept without a score is none; a number that nobody has reached is no reason to count up to it."""
    bench.run("--iterations", "1")
    path = bench.folder / "state" / "session.jsonl"
    path.write_text(path.read_text().replace(old, new))
    line = [*COMMAND, "run", "--manifest", "crucible.toml", "--no-progress", "--resume", "--iterations", "2"]
    done = subprocess.run(line, cwd=bench.folder, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}
    assert (told or "the log has no row of iteration 1 to 999999999999, so") in done.stderr


def test_a_log_with_rows_of_a_wide_round_is_gone_on_with(bench: Bench) -> None:
    """They are not ours, and decide nothing."""
    bench.run("--iterations", "1")
    path = bench.folder / "state" / "session.jsonl"
    row = next(line for line in path.read_text().splitlines() if '"kind":"row"' in line)
    with path.open("a") as file:
        file.write(json.dumps({**json.loads(row), "iter": 7, "score": -5, "phase": "wide"}) + "\n")
    line = [*COMMAND, "run", "--manifest", "crucible.toml", "--no-progress", "--resume", "--iterations", "3"]
    assert subprocess.run(line, cwd=bench.folder, capture_output=True, check=False).returncode == 0
    rows = [json.loads(line) for line in path.read_text().splitlines() if '"kind":"row"' in line]
    assert [(row["iter"], row["best"]) for row in rows if "phase" not in row] == [(0, 10), (1, 9), (2, 9), (3, 8)]


def test_without_a_run_there_is_nothing_to_go_on_with(bench: Bench) -> None:
    """It is said, and what to do."""
    went = bench.run("--resume")
    assert went.status == 2
    assert went.err.endswith("there is no run in state to go on with; start one without --resume\n")


def test_a_state_that_is_gone_is_said(bench: Bench) -> None:
    """Nobody goes on from a state that is not the one that was kept."""
    bench.run("--iterations", "1")
    (bench.folder / "state" / "world.json").unlink()
    went = bench.run("--resume", "--iterations", "2")
    assert went.status == 1
    assert "are gone from" in went.err


# What is read of a log


def log(folder: Path, events: Iterable[dict[str, Any]], tail: str = "") -> Path:
    """Write a log."""
    (folder / "session.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events) + tail)
    return folder


START = {"v": 1, "kind": "start", "gate": "score"}
ROW = {"v": 1, "kind": "row", "iter": 0, "decision": "keep", "score": 3, "snapshot": "a" * 40, "valid": True}


def test_what_nobody_knows_is_passed_over(tmp_path: Path) -> None:
    """Unknown kinds and fields, rows of a wide round, torn and odd lines; a torn last line is cut off."""
    log(
        tmp_path,
        [START, {"kind": "news"}, {**ROW, "colour": "red"}, {**ROW, "iter": 5, "phase": "wide"}, {"kind": "row"}],
        '[1]\n{"kind": "budget", "spent_usd": 0.25}\nnot json\n{"v": 1, "kind": "row", "iter": 1, "deci',
    )
    past = history.read(str(tmp_path))
    assert past is not None
    assert [(row.number, row.score) for row in past.rows] == [(0, 3)]
    assert past.spent == 250_000
    assert (tmp_path / "session.jsonl").read_bytes()[past.size :] == b'{"v": 1, "kind": "row", "iter": 1, "deci'


def test_only_a_trailing_shutdown_is_an_exit_on_purpose(tmp_path: Path) -> None:
    """One that is followed by more belongs to an earlier process."""
    end = {"kind": "shutdown", "outcome": "stopped"}
    past = history.read(str(log(tmp_path, [START, ROW, end])))
    assert past is not None
    assert (past.ended[0], past.outcome) == ("clean_exit", "stopped")
    log(tmp_path, [START, ROW, end, {"kind": "phase", "phase": "iteration", "iter": 1}])
    past = history.read(str(tmp_path))
    assert past is not None
    assert (past.ended[:2], past.outcome) == (("died_between_iterations", 1), None)


_NUMBER, _SCORE = (int, float), (int, float, type(None))
OLD: dict[str, dict[str, Any]] = {
    "start": {"gate": str, "file": str, "ts": _NUMBER},
    "phase": {"phase": str, "iter": int},
    "row": {
        "iter": int,
        "decision": str,
        "score": _SCORE,
        "tiebreak": _SCORE,
        "best": _SCORE,
        "valid": bool,
        "solved": bool,
        "note": str,
        "detail": dict,
        "seconds": _NUMBER,
        "cost_usd": _NUMBER,
    },
    "budget": {"spent_usd": _NUMBER, "ceiling_usd": _SCORE},
    "summary": {"spent_usd": _NUMBER},
    "finished": {},
}


def test_a_reader_of_old_logs_reads_ours(bench: Bench) -> None:
    """One that knows six kinds passes over all others; a deep row has no phase, and phases are old tokens."""
    in_a_turn(bench)
    bench.run("--iterations", "3")
    went = bench.run("--resume")
    known = [event for event in went.events if event["kind"] in OLD]
    assert {event["kind"] for event in known} == OLD.keys()
    for event in known:
        for name, kind in OLD[event["kind"]].items():
            assert isinstance(event[name], kind), event
    assert [row for row in went.of("row") if "phase" in row] == []
    phases = [event["phase"] for event in went.of("phase")]
    assert set(phases) <= {"starting", "baseline", "iteration", "epilogue", "finished"}
    pairs = [(event["phase"], event["iter"]) for event in went.of("phase")]
    assert [here for here, before in zip(pairs[1:], pairs, strict=False) if here == before] == [("iteration", 2)]
    assert went.events[-1]["kind"] == "shutdown"

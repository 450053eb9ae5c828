"""The scored loop as people run it: real packs, real git, a stand-in agent that does what its list says."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from contract import contract
from process import COMMAND
from runs import events

from crucible.cli import main
from crucible.runtime.progress import sparkline

# The gate reads a reading that the candidate's file holds: what is tested here is the loop, not the gate.
GATE = "test -f reading && cat reading"
AGENT = f"{sys.executable} -P -m crucible.runtime.stand_in ../edits.toml"
LOOP = """\
[workflow]
type = "autoresearch"
result = "decide"
[[workflow.task]]
name = "propose"
kind = "engine"
op = "propose"
[[workflow.task]]
name = "apply"
kind = "engine"
op = "apply"
depends_on = ["propose"]
[[workflow.task]]
name = "measure"
kind = "engine"
op = "measure"
depends_on = ["apply"]
[[workflow.task]]
name = "decide"
kind = "engine"
op = "decide"
source = "measure"
depends_on = ["measure"]
"""


class Looped(NamedTuple):
    """How a run ended."""

    status: int
    out: str
    err: str
    pack: Path

    @property
    def events(self) -> list[dict[str, Any]]:
        """Return the events of the run."""
        return events(self.pack / "state")

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the run."""
        return [event for event in self.events if event["kind"] == "row"]

    @property
    def decisions(self) -> list[str]:
        """Return what was decided, iteration by iteration."""
        return [row["decision"] for row in self.rows]

    @property
    def outcome(self) -> str:
        """Return the outcome of the last event."""
        outcome: str = self.events[-1]["outcome"]
        return outcome

    @property
    def notes(self) -> list[str]:
        """Return the notes of the rows."""
        return [row["note"] for row in self.rows]


class Bench:
    """A pack to be run: a measuring script, and a list of what the agent does."""

    def __init__(self, pack: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.pack = pack
        self._capfd = capfd
        (pack / "start").mkdir(parents=True)
        self.reading(score=10)
        self.manifest()

    def manifest(
        self, judge: str = "", more: str = "", agent: str = "", workflow: str = LOOP, gate: str = GATE
    ) -> None:
        """Write the manifest."""
        (self.pack / "crucible.toml").write_text(
            f"""
[repo]
path = "start"
[agent]
backend = "command"
agent_cmd = {json.dumps(AGENT)}
goal = "Lower the score."
{agent}
[judge]
measure_cmd = {json.dumps(gate)}
direction = "lower"
{judge}
{more}
{workflow}"""
        )

    def reading(self, **facts: Any) -> None:
        """Have the workspace begin with a reading."""
        (self.pack / "start" / "reading").write_text(json.dumps({"valid": True, **facts}) + "\n")

    def agent(self, *edits: Mapping[str, Any] | str) -> None:
        """Have the agent leave a reading each iteration, or run a command."""
        lines = []
        for number, edit in enumerate(edits, 1):
            text = edit if isinstance(edit, str) else f"echo '{json.dumps({'valid': True, **edit})}' > reading"
            lines.append(f"[[edit]]\niteration = {number}\nrun = {json.dumps(text)}\n")
        (self.pack / "edits.toml").write_text("".join(lines))

    def run(self, *options: str, iterations: int | None = None) -> Looped:
        """Run the loop, as many iterations as the agent has edits."""
        edits = self.pack / "edits.toml"
        count = iterations if iterations is not None else edits.read_text().count("[[edit]]") if edits.exists() else 1
        words = ["run", "--manifest", str(self.pack / "crucible.toml"), "--iterations", str(count), *options]
        self._capfd.readouterr()
        status = main.main(words)
        out, err = self._capfd.readouterr()
        return Looped(status, out, err, self.pack)


@pytest.fixture
def bench(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Bench:
    """Return a pack that scores 10 at the baseline."""
    return Bench(tmp_path / "pack", capfd)


# The rule, sentence by sentence (contract §4)


@contract("§4", "The first valid reading sets the baseline")
def test_the_first_valid_reading_is_the_baseline_and_is_kept(bench: Bench) -> None:
    """The untouched workspace is measured before any turn."""
    bench.agent({"score": 10})
    ran = bench.run()
    assert (ran.rows[0]["decision"], ran.rows[0]["score"], ran.rows[0]["best"]) == ("keep", 10, 10)
    assert ran.status == 1  # nothing better was kept


def test_an_invalid_baseline_leaves_it_to_the_first_valid_reading(bench: Bench) -> None:
    """There is no best until then; what comes first is no improvement."""
    bench.reading(valid=False, score=None)
    bench.agent({"valid": False, "score": 3}, {"score": 8}, {"score": 9}, {"score": 7})
    ran = bench.run()
    assert ran.decisions == ["discard", "discard", "keep", "discard", "keep"]
    assert [row["best"] for row in ran.rows] == [None, None, 8, 8, 7]
    assert ran.status == 0
    bench.agent({"score": 8})
    assert bench.run().status == 1


def test_better_is_kept_and_equal_and_worse_are_not(bench: Bench) -> None:
    """What is discarded is gone from the workspace."""
    bench.agent({"score": 9}, {"score": 9}, {"score": 12}, {"score": 8.5})
    ran = bench.run()
    assert ran.decisions == ["keep", "keep", "discard", "discard", "keep"]
    assert json.loads((bench.pack / "workspace" / "reading").read_text())["score"] == 8.5
    assert ran.status == 0
    assert ran.outcome == "finished"


def test_higher_is_better_where_the_manifest_says_so(bench: Bench) -> None:
    """The direction is the manifest's."""
    bench.manifest()
    text = (bench.pack / "crucible.toml").read_text().replace('direction = "lower"', 'direction = "higher"')
    (bench.pack / "crucible.toml").write_text(text)
    bench.agent({"score": 9}, {"score": 11})
    assert bench.run().decisions == ["keep", "discard", "keep"]


@contract("§4", "a best with no recorded tiebreak counts as the worst value")
def test_a_tie_is_broken_by_the_tiebreak_in_its_own_direction(bench: Bench) -> None:
    """The tiebreak counts only on an exact tie of scores."""
    bench.manifest(judge='tiebreak_direction = "higher"')
    bench.agent({"score": 10, "tiebreak": 1}, {"score": 10, "tiebreak": 1}, {"score": 10, "tiebreak": 2},
                {"score": 10}, {"score": 11, "tiebreak": 9})  # fmt: skip
    assert bench.run().decisions == ["keep", "keep", "discard", "keep", "discard", "discard"]


@contract("§4", "solved implies keep.")
@contract("§4", "The loop terminates when a kept iteration is solved")
def test_what_is_solved_is_kept_at_an_equal_score_and_ends_the_run(bench: Bench) -> None:
    """No further turn is taken."""
    bench.agent({"score": 10, "solved": True}, {"score": 1})
    ran = bench.run()
    assert ran.decisions == ["keep", "keep"]
    assert (ran.outcome, ran.status) == ("solved", 0)


@contract("§4", "solved never rescues an invalid reading.")
def test_an_invalid_reading_is_not_rescued(bench: Bench) -> None:
    """It is discarded whatever it claims."""
    bench.agent({"valid": False, "score": 1, "solved": True}, {"score": 5})
    ran = bench.run()
    assert ran.decisions == ["keep", "discard", "keep"]
    assert ran.outcome == "finished"


def test_a_solved_baseline_ends_the_run_before_any_turn(bench: Bench) -> None:
    """Nothing is spent, and the exit code says that it is solved."""
    bench.reading(score=10, solved=True)
    bench.agent("touch turned")
    ran = bench.run()
    assert (ran.decisions, ran.outcome, ran.status) == (["keep"], "solved", 0)
    assert not (bench.pack / "workspace" / "turned").exists()


@contract("§3", "CRUCIBLE_BASELINE_SCORE, CRUCIBLE_BASELINE_TOTAL, CRUCIBLE_BEST_SCORE")
def test_the_gate_finds_the_numbers_of_the_loop(bench: Bench) -> None:
    """They are absent at the baseline; the iteration is there always."""
    bench.reading(score=10, detail={"total": 7})
    bench.manifest(gate=f"env | grep '^CRUCIBLE_[BI]' | sort | tr '\\n' ' ' >> ../seen; echo >> ../seen; {GATE}")
    bench.agent({"score": 9, "detail": {"total": 3}}, {"score": 8})
    bench.run()
    assert (bench.pack / "seen").read_text().splitlines() == [
        "CRUCIBLE_ITERATION=0 ",
        "CRUCIBLE_BASELINE_SCORE=10 CRUCIBLE_BASELINE_TOTAL=7 CRUCIBLE_BEST_SCORE=10 CRUCIBLE_ITERATION=1 ",
        "CRUCIBLE_BASELINE_SCORE=10 CRUCIBLE_BASELINE_TOTAL=7 CRUCIBLE_BEST_SCORE=9 CRUCIBLE_ITERATION=2 ",
    ]


# Before the first turn


@pytest.mark.parametrize("gate", ["echo hello", "no-such-gate", "echo '{\"score\": 1}'", "true"])
def test_a_gate_that_does_not_measure_ends_the_run_before_any_turn(bench: Bench, gate: str) -> None:
    """It is told with the place of the measure_cmd."""
    bench.manifest(gate=gate)
    bench.agent("touch turned")
    ran = bench.run()
    line = (bench.pack / "crucible.toml").read_text().split("\n").index(f"measure_cmd = {json.dumps(gate)}") + 1
    assert "error[gate-unreadable]" in ran.err
    assert f"crucible.toml:{line}:15" in ran.err
    assert (ran.status, ran.outcome, ran.rows) == (1, "error", [])
    assert not (bench.pack / "workspace" / "turned").exists()


@pytest.mark.parametrize("agent", ["agnet --fast", "./agnet.sh", "claude"])
def test_an_agent_that_is_not_there_ends_the_run_before_anything_is_measured(
    bench: Bench, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its place in the manifest."""
    bench.manifest()
    text = (bench.pack / "crucible.toml").read_text()
    if agent == "claude":
        text = text.replace('backend = "command"', 'backend = "local"').replace("agent_cmd = ", "model = ")
    (bench.pack / "crucible.toml").write_text(text.replace(json.dumps(AGENT), json.dumps(agent)))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    ran = bench.run(iterations=1)
    assert ran.status == 1
    assert f'begins with "{agent.split(maxsplit=1)[0]}", which is no program' in ran.err or "install it (" in ran.err
    assert re.search(r"crucible\.toml:\d+:\d+", ran.err)
    assert ran.rows == []
    assert ran.outcome == "error"


@pytest.mark.parametrize("agent", [f"X=1 {AGENT}", f"cd . && {AGENT}", f"  exec {AGENT}", f"if true; then {AGENT}; fi"])
def test_nothing_is_claimed_of_a_command_that_only_a_shell_knows(bench: Bench, agent: str) -> None:
    """It runs."""
    text = (bench.pack / "crucible.toml").read_text()
    (bench.pack / "crucible.toml").write_text(text.replace(json.dumps(AGENT), json.dumps(agent)))
    bench.agent({"score": 9})
    assert bench.run().decisions == ["keep", "keep"]


@pytest.mark.parametrize(
    ("more", "agent", "code", "key"),
    [
        ('[search]\nwide = 1\napproaches = ["a"]', "", "missing-capability", "wide = 1"),
        ("", "[agent.broker]\nenabled = true", "missing-capability", "enabled = true"),
        ('[[component]]\nname = "a"', "", "missing-capability", "[[component]]"),
    ],
)
def test_what_this_loop_lacks_is_refused_at_its_key(bench: Bench, more: str, agent: str, code: str, key: str) -> None:
    """Nothing is prepared, and nothing passed over."""
    bench.manifest(more=more, agent=agent)
    ran = bench.run()
    line = (bench.pack / "crucible.toml").read_text().split("\n").index(key) + 1
    assert f"error[{code}]" in ran.err
    assert f"crucible.toml:{line}:" in ran.err
    assert ran.status == 1
    assert not (bench.pack / "workspace").exists()
    assert not (bench.pack / "state").exists()


@contract("§6", "The OpenShell driver uploads the workspace into the sandbox and syncs edits back")
def test_a_sandbox_that_is_not_there_is_refused_and_never_done_without(bench: Bench) -> None:
    """The backend is refused at its value."""
    text = (bench.pack / "crucible.toml").read_text()
    (bench.pack / "crucible.toml").write_text(text.replace('backend = "command"', 'backend = "openshell"'))
    ran = bench.run()
    assert ran.status == 1
    assert 'there is no backend "openshell" here' in ran.err
    assert not (bench.pack / "workspace").exists()


def test_another_lane_is_sent_to_its_own_runner(bench: Bench) -> None:
    """A custom workflow is not run as a loop."""
    bench.manifest(
        workflow='[workflow]\ntype = "custom"\n[[workflow.task]]\nname = "a"\nkind = "command"\ncommand = "true"'
    )
    ran = bench.run()
    assert ran.status == 1
    assert "the plan runner does (crucible plan run)" in ran.err


def test_the_default_loop_and_a_splice_are_run(bench: Bench) -> None:
    """Without a block and a source it is the default loop; a splice is a loop around its tasks."""
    bench.agent({"score": 9})
    bench.manifest(workflow="")
    assert list(bench.run().rows[1]["tasks"]) == ["propose", "apply", "measure", "decide"]
    task = '[[workflow.task]]\nname = "smoke"\nkind = "command"\ncommand = "test -f reading"'
    bench.manifest(workflow=f'[workflow]\ntype = "autoresearch"\n{task}')
    ran = bench.run()
    assert ran.rows[1]["tasks"] == dict.fromkeys(("propose", "smoke", "apply", "measure", "decide"), "pass")


def test_a_source_that_the_block_does_not_hold_is_stale(bench: Bench) -> None:
    """A check that somebody wrote is never dropped silently."""
    (bench.pack / "workflow.star").write_text('default_autoresearch([command(name = "smoke", run = "true")])\n')
    ran = bench.run()
    assert ran.status == 1
    assert "error[stale-workflow]" in ran.err


# An iteration


@contract("§3", "Nonzero exit ⇒ the iteration is treated as an invalid candidate (discard).")
@contract("§3.1", "A compile failure must be distinguishable from a bad score.")
@contract("§3.1", "a compile error is returned to the agent as a free retry with no candidate spent")
def test_what_cannot_be_applied_is_unscoreable_and_the_agent_is_told_why(bench: Bench) -> None:
    """It is not measured, so it has no score that could be bad, and the next turn reads the reason."""
    bench.manifest(more='[world]\napply_cmd = "if test -f broken; then echo no semicolon >&2; exit 1; fi"')
    bench.agent("touch broken", 'cp "$CRUCIBLE_PROMPT_FILE" told')
    ran = bench.run()
    row = ran.rows[1]
    assert (row["decision"], row["valid"], row["score"]) == ("discard", False, None)
    assert row["note"] == 'the required task "apply" failed: unscoreable: apply_cmd: exit 1: no semicolon'
    assert row["tasks"] == {"propose": "pass", "apply": "fail", "measure": "blocked", "decide": "blocked"}
    assert "unscoreable: apply_cmd: exit 1: no semicolon" in (
        next((bench.pack / "state" / "logs" / "iteration-0002").glob("*.prompt.md")).read_text()
    )


@contract("§1.3", "Required failures discard the candidate")
def test_a_required_task_behind_the_decision_discards_the_candidate(bench: Bench) -> None:
    """The task is named, and what was decided does not stand."""
    after = '[[workflow.task]]\nname = "audit"\nkind = "command"\ncommand = "test ! -f bad"\ndepends_on = ["decide"]\n'
    bench.manifest(workflow=LOOP + after)
    bench.agent('echo \'{"valid": true, "score": 1}\' > reading; touch bad', {"score": 9})
    ran = bench.run()
    assert ran.decisions == ["keep", "discard", "keep"]
    assert ran.notes[1].startswith('the required task "audit" failed: exit 1')
    assert ran.rows[2]["best"] == 9


def test_an_advisory_task_costs_nothing_when_it_fails(bench: Bench) -> None:
    """The candidate is kept."""
    after = '[[workflow.task]]\nname = "audit"\nkind = "command"\ncommand = "false"\ndepends_on = ["decide"]\n'
    bench.manifest(workflow=f"{LOOP}{after}required = false")
    bench.agent({"score": 9})
    ran = bench.run()
    assert ran.decisions == ["keep", "keep"]
    assert ran.rows[1]["tasks"]["audit"] == "fail"


def test_iterations_whose_agent_dies_are_void_and_three_in_a_row_end_the_run(bench: Bench) -> None:
    """A void iteration counts, and is no verdict on anything."""
    bench.agent("exit 75", {"score": 9}, "exit 75", "exit 75", "exit 75", {"score": 1})
    ran = bench.run("--retries", "0")
    assert ran.decisions == ["keep", "void", "keep", "void", "void", "void"]
    assert ran.outcome == "stalled"
    assert ran.status == 0  # something better was kept
    assert "exit 75" in ran.notes[1]


def test_what_an_agent_escalates_ends_the_run(bench: Bench) -> None:
    """The file is taken, a void row is written, and the workspace is restored."""
    bench.agent({"score": 9}, 'echo \'{"reason": "no network"}\' > ESCALATION.json; touch half')
    ran = bench.run(iterations=5)
    assert ran.decisions == ["keep", "keep", "void"]
    assert (ran.outcome, ran.status) == ("escalated", 1)
    assert [event["phase"] for event in ran.events if event["kind"] == "phase"][-2:] == ["escalated", "finished"]
    assert next(event for event in ran.events if event["kind"] == "escalation")["content"] == {"reason": "no network"}
    assert not (bench.pack / "workspace" / "ESCALATION.json").exists()
    assert not (bench.pack / "workspace" / "half").exists()


def test_what_lay_there_before_a_turn_is_no_escalation(bench: Bench) -> None:
    """A file of the repository, or of a command, says nothing for the agent."""
    (bench.pack / "start" / "ESCALATION.json").write_text("{}")
    bench.agent({"score": 9})
    assert bench.run().decisions == ["keep", "keep"]


def test_steering_reaches_an_agent_whose_method_has_no_place_for_it(bench: Bench) -> None:
    """It is never taken without being told."""
    (bench.pack / "method.md").write_text("{{GOAL}}\n")
    (bench.pack / "STEER.md").write_text("go left\n")
    bench.manifest(agent='method_prompt = "method.md"')
    bench.agent('cp "$CRUCIBLE_PROMPT_FILE" ../told', 'cp "$CRUCIBLE_PROMPT_FILE" ../then')
    bench.run()
    assert (bench.pack / "told").read_text() == "Lower the score.\n\n# Steering\n\ngo left\n"
    assert (bench.pack / "then").read_text() == "Lower the score.\n"


def test_a_folder_steers_nobody(bench: Bench) -> None:
    """One that is named is refused, one that lies there is told of."""
    bench.agent({"score": 9})
    refused = bench.run("--steer", str(bench.pack))
    assert refused.status == 2
    assert "--steer names a file" in refused.err
    (bench.pack / "STEER.md").mkdir()
    ran = bench.run()
    assert ran.status == 0
    assert "STEER.md steers nobody: it is no regular file" in ran.err


def test_an_agent_that_fails_leaves_nothing(bench: Bench) -> None:
    """Its candidate is discarded, whatever it had done by then."""
    bench.agent("touch half; exit 3", {"score": 9})
    ran = bench.run()
    assert ran.decisions == ["keep", "discard", "keep"]
    assert ran.notes[1] == 'the required task "propose" failed: exit 3'
    assert not (bench.pack / "workspace" / "half").exists()


def test_the_budget_ends_the_run(bench: Bench) -> None:
    """What is spent exactly is fine; nothing more is begun then."""
    cost = 'echo 0.25 > "$CRUCIBLE_COST_FILE"; '
    bench.manifest(agent="")
    text = (bench.pack / "crucible.toml").read_text().replace(json.dumps(AGENT), json.dumps(cost + AGENT))
    (bench.pack / "crucible.toml").write_text(text)
    bench.agent({"score": 9}, {"score": 8}, {"score": 7})
    ran = bench.run("--max-cost", "0.50")
    assert ran.decisions == [
        "keep",
        "keep",
        "discard",
    ]  # the second turn has spent what its measurement needs nothing of
    assert ran.outcome == "budget"
    assert [row["cost_usd"] for row in ran.rows] == [0, 0.25, 0.25]
    report = json.loads((bench.pack / "state" / "report.json").read_text())
    assert (report["outcome"], report["spent_usd"], report["rows"]) == ("budget", 0.5, 3)


def test_the_clock_ends_the_run_without_a_row(bench: Bench) -> None:
    """What is broken off is restored, and counts for nothing."""
    bench.agent({"score": 9}, "touch half; sleep 60")
    ran = bench.run("--max-time", "2s")
    assert ran.decisions == ["keep", "keep"]
    assert ran.outcome == "budget"
    assert not (bench.pack / "workspace" / "half").exists()


def test_the_authors_own_checkout_is_worked_in_when_it_is_clean(bench: Bench) -> None:
    """A change that is not committed is named and nothing is touched; what the loop makes is no change of theirs."""
    pack = bench.pack
    bench.manifest(gate="cat reading")
    text = (
        (pack / "crucible.toml")
        .read_text()
        .replace('[repo]\npath = "start"', '[repo]\npath = "."\n[workspace]\ndir = "."')
    )
    (pack / "crucible.toml").write_text(text.replace("../edits.toml", "edits.toml"))
    (pack / "start" / "reading").rename(pack / "reading")
    (pack / "start").rmdir()
    (pack / "empty").mkdir()
    (pack / ".gitignore").write_text("cache/\n")
    (pack / "cache").mkdir()
    (pack / "cache" / "big").write_text("big")
    bench.agent("echo go > STEER.md; rm -r cache empty; exit 1", {"score": 9})
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q", "."), ("add", "-A"), ("commit", "-q", "-m", "all")):
        subprocess.run([*git, *words], cwd=pack, check=True)
    (pack / "mine").write_text("mine")
    refused = bench.run()
    assert refused.status == 1
    assert "has changes that are not committed: mine; commit or stash them" in refused.err
    assert (pack / "mine").read_text() == "mine"
    (pack / "mine").unlink()
    (pack / "STEER.md").write_text("faster")
    ran = bench.run()
    assert ran.decisions == ["keep", "discard", "keep"]
    assert (pack / "empty").is_dir()
    changed = subprocess.run([*git, "status", "--porcelain"], cwd=pack, capture_output=True, text=True, check=True)
    assert changed.stdout.splitlines() == [" M reading", "?? RESULTS.md"]
    (pack / "reading").write_text((pack / "reading").read_text() + "the author's\n")
    (pack / "new").write_text("the author's")
    (pack / "STEER.md").write_text("more")
    for _ in range(2):
        refused = bench.run("--resume", "--iterations", "4")
        assert refused.status == 1
        assert "has changed since the run ended: new; going on would undo that" in refused.err
    assert (pack / "new").read_text() == "the author's"
    assert (pack / "reading").read_text().endswith("the author's\n")
    kept = subprocess.run(
        [*git, "--git-dir", "state/world.git", "ls-tree", "--name-only", "refs/crucible/kept/2"],
        cwd=pack, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert kept.stdout.splitlines() == [".gitignore", "crucible.toml", "edits.toml", "reading"]


def test_files_that_nobody_of_ours_brought_are_never_touched(bench: Bench) -> None:
    """A workspace that another prepared is refused."""
    (bench.pack / "workspace").mkdir()
    (bench.pack / "workspace" / "theirs").write_text("theirs")
    ran = bench.run()
    assert ran.status == 1
    assert "has files, and no run of this state directory prepared it" in ran.err
    assert [path.name for path in (bench.pack / "workspace").iterdir()] == ["theirs"]


# What an agent reads


def test_the_method_is_filled_in(bench: Bench) -> None:
    """Each placeholder once; text that is filled in is not filled again."""
    (bench.pack / "method.md").write_text("G={{GOAL}}\nS={{STATUS}}\nT={{STEER}}\n")
    (bench.pack / "STEER.md").write_text("say {{GOAL}}\n")
    bench.manifest(agent='method_prompt = "method.md"')
    bench.agent({"score": 9}, {"score": 11})
    bench.run()
    prompts = [
        next((bench.pack / "state" / "logs" / f"iteration-000{number}").glob("*.prompt.md")).read_text()
        for number in (1, 2)
    ]
    assert prompts[0] == (
        "G=Lower the score.\n"
        "S=Iteration 1 of 2; lower is better.\n"
        "Baseline: 10\n"
        "Best, which the workspace holds: 10, of iteration 0\n"
        "- iteration 0: keep, score 10\n"
        "T=say {{GOAL}}\n"
    )
    assert "- iteration 1: keep, score 9\n" in prompts[1]
    assert prompts[1].endswith("T=\n")
    assert not (bench.pack / "STEER.md").exists()


@contract("§1.3", "A resumed proposer receives only the new authoritative delta")
def test_a_conversation_is_told_only_what_changed(bench: Bench) -> None:
    """The first turn of a session gets everything, a later one the status and new steering."""
    bench.manifest(workflow=LOOP.replace('op = "propose"', 'op = "propose"\nsession = "solver"'))
    bench.agent({"score": 9}, {"score": 11}, {"score": 8})
    ran = bench.run()
    first, second, third = (
        next((bench.pack / "state" / "logs" / f"iteration-000{number}").glob("*.prompt.md")).read_text()
        for number in (1, 2, 3)
    )
    assert first.startswith("# Goal\n\nLower the score.\n\n# Status\n\nIteration 1 of 3")
    assert second == (
        "# Status\n\nIteration 2 of 3.\nBest, which the workspace holds: 9, of iteration 1\n"
        "- iteration 1: keep, score 9\n"
    )
    assert third == (
        "# Status\n\nIteration 3 of 3.\nBest, which the workspace holds: 9, of iteration 1\n"
        "- iteration 2: discard, score 11\n"
    )
    turns = [(event["action"], event["turn"]) for event in ran.events if event["kind"] == "agent_session"]
    assert turns == [("start", 1), ("resume", 2), ("resume", 3)]


def test_the_toolbox_is_there_before_every_turn_and_in_no_state(bench: Bench) -> None:
    """What an agent makes of it is put back."""
    (bench.pack / "tools").mkdir()
    (bench.pack / "tools" / "skill.md").write_text("help\n")
    bench.manifest(agent='toolbox_dir = "tools"')
    look = "cat .claude/skills/skill.md >> ../seen; echo bad > .claude/skills/skill.md; touch new-$CRUCIBLE_ITERATION"
    bench.agent(look, look)
    ran = bench.run()
    assert (bench.pack / "seen").read_text() == "help\nhelp\n"
    assert ran.decisions == ["keep", "discard", "discard"]
    assert not (bench.pack / "workspace" / "new-1").exists()
    assert (bench.pack / "workspace" / ".claude" / "skills" / "skill.md").exists()


# Measurement as a graph

GRAPH = """\
[workflow]
type = "autoresearch"
result = "choose"
[[workflow.task]]
name = "idea"
kind = "engine"
op = "propose"
[[workflow.task]]
name = "deploy"
kind = "engine"
op = "apply"
depends_on = ["idea"]
[[workflow.task]]
name = "correct"
kind = "evaluate"
command = "cat correct"
depends_on = ["deploy"]
[[workflow.task]]
name = "latency"
kind = "evaluate"
command = "cat reading"
threshold = 12.5
direction = "lower"
depends_on = ["correct"]
isolation = "worktree"
[[workflow.task]]
name = "racecheck"
kind = "evaluate"
command = "false"
required = false
depends_on = ["correct"]
isolation = "worktree"
[[workflow.task]]
name = "grade"
kind = "engine"
op = "grade"
source = "latency"
join = "passed"
depends_on = ["correct", "latency", "racecheck"]
[[workflow.task]]
name = "choose"
kind = "engine"
op = "decide"
source = "grade"
depends_on = ["grade"]
"""


def test_evidence_is_folded_into_a_reading(bench: Bench) -> None:
    """A required rung that fails discards, an advisory one is told, a missed threshold at the baseline ends nothing."""
    bench.manifest(workflow=GRAPH)
    (bench.pack / "start" / "correct").write_text("{}\n")
    bench.reading(score=20)
    bench.agent({"score": 12}, "echo '{\"pass\": false}' > correct", {"score": 11, "solved": True})
    ran = bench.run()
    assert ran.decisions == ["discard", "keep", "discard", "keep"]
    assert ran.notes[0].startswith('the required task "latency" failed: score 20 is above the threshold 12.5')
    assert ran.notes[2] == 'the required task "correct" failed: pass is false'
    detail = ran.rows[1]["detail"]
    assert {name: each["status"] for name, each in detail.items()} == {
        "correct": "pass",
        "latency": "pass",
        "racecheck": "fail",
    }
    assert detail["latency"]["output"]["score"] == 12
    assert ran.outcome == "solved"


def test_evidence_that_cannot_be_read_at_the_baseline_ends_the_run(bench: Bench) -> None:
    """No turn is spent on a gate that does not measure."""
    bench.manifest(workflow=GRAPH)
    bench.agent("touch turned")
    ran = bench.run()  # there is no file for the first rung
    assert (ran.status, ran.outcome, ran.rows) == (1, "error", [])
    line = (bench.pack / "crucible.toml").read_text().split("\n").index('command = "cat correct"') + 1
    assert '"correct": exit 1' in ran.err
    assert f"crucible.toml:{line}:11" in ran.err
    assert not (bench.pack / "workspace" / "turned").exists()


# What a person sees


@pytest.mark.parametrize(
    ("values", "bars"),
    [
        ([], ""),
        ([3.0], "▄"),
        ([None, 1.0, None], "·▄·"),
        ([0.0, 1.0, 2.0, 7.0], "▁▂▃█"),
        ([5, 5, 5], "▄▄▄"),
        ([-1e308, 1e308], "▄▄"),  # so far apart that the distance is no number
    ],
)
def test_scores_are_drawn_as_bars(values: list[float | None], bars: str) -> None:
    """The lowest and the highest are the ends; a reading without a score is a dot."""
    assert sparkline(values) == bars


def test_the_live_table_has_iteration_best_and_bars_and_rows_stay(bench: Bench) -> None:
    """Under a terminal each iteration's line stays above the table."""
    bench.agent({"score": 9}, 'sleep 0.6; echo \'{"valid": true, "score": 11}\' > reading')
    words = ["run", "--manifest", str(bench.pack / "crucible.toml"), "--iterations", "2"]
    shown = under_a_terminal([*COMMAND, *words])
    assert "iteration 1: keep, score 9" in shown
    assert "iteration 2: discard, score 11" in shown
    assert "iteration 2 of 2  best 9, of iteration 1  █▁" in shown
    assert "Traceback" not in shown


def under_a_terminal(words: list[str]) -> str:
    """Run a command under a terminal of 110 columns, and return what it showed without its escape sequences."""
    pid, terminal = pty.fork()
    if not pid:
        os.environ.update(TERM="xterm-256color", COLUMNS="110", LINES="30")
        os.execvp(words[0], words)  # noqa: S606 - the command under test
    data = b""
    with suppress(OSError):  # the end, on Linux
        while block := os.read(terminal, 1 << 16):
            data += block
    os.close(terminal)
    os.waitpid(pid, 0)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", data.decode())

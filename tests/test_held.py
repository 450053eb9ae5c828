"""What is measured is what is kept: nothing that runs after it, or while it, changes a candidate."""

import subprocess
from pathlib import Path

import pytest
from test_loop import GATE, LOOP, Bench, Looped

BEHIND = '[[workflow.task]]\nname = "late"\nkind = "command"\ncommand = "echo late > late"\ndepends_on = ["decide"]\n'
RUNGS = """\
[workflow]
type = "autoresearch"
result = "decide"
[[workflow.task]]
name = "propose"
kind = "engine"
op = "propose"
[[workflow.task]]
name = "build"
kind = "command"
command = "echo built > built"
depends_on = ["propose"]
[[workflow.task]]
name = "apply"
kind = "engine"
op = "apply"
depends_on = ["build"]
[[workflow.task]]
name = "tests"
kind = "evaluate"
command = "test -f built -o $CRUCIBLE_ITERATION = 0 && sh ./program && echo '{}'"
depends_on = ["apply"]
[[workflow.task]]
name = "score"
kind = "evaluate"
command = "cat reading"
emits = ["score"]
depends_on = ["tests"]
[[workflow.task]]
name = "grade"
kind = "engine"
op = "grade"
source = "score"
depends_on = ["score", "tests"]
[[workflow.task]]
name = "decide"
kind = "engine"
op = "decide"
source = "grade"
depends_on = ["grade"]
"""


@pytest.fixture
def bench(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Bench:
    """Return a pack that scores 10 at the baseline."""
    bench = Bench(tmp_path / "pack", capfd)
    (bench.pack / "start" / "program").write_text("true\n")
    return bench


def kept(ran: Looped, number: int, path: str) -> str | None:
    """Return a file of a kept state, None when it has none."""
    words = ["git", "--git-dir", str(ran.pack / "state" / "world.git"), "show", f"refs/crucible/kept/{number}:{path}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def test_a_program_that_rewrites_itself_while_it_is_measured_is_kept_as_it_was(bench: Bench) -> None:
    """What it became has no score; the task says what was put back."""
    bench.manifest(gate=f"sh ./program; {GATE}")
    program = "echo evil > program; echo evil > new; rm -f gone"
    bench.agent(f'echo \'{{"valid": true, "score": 9}}\' > reading; touch gone; echo "{program}" > program')
    ran = bench.run()
    assert ran.decisions == ["keep", "keep"]
    assert kept(ran, 1, "program") == f"{program}\n"
    assert kept(ran, 1, "gone") == ""
    assert kept(ran, 1, "new") is None
    folder = bench.pack / "workspace"
    assert (folder / "program").read_text() == f"{program}\n"
    assert not (folder / "new").exists()
    measured = [event for event in ran.events if event["kind"] == "task_result" and event["name"] == "measure"]
    assert '"new" changed while it ran, and was put back' in measured[1]["note"]
    assert "note" not in measured[0]


def test_what_a_gate_leaves_each_time_is_told_once(bench: Bench) -> None:
    """A cache that nobody ignores is put back every time, without a word after the first."""
    bench.manifest(gate=f"mkdir -p cache; echo hit >> cache/hits; {GATE}")
    bench.agent({"score": 9}, {"score": 8})
    ran = bench.run()
    assert ran.decisions == ["keep", "keep", "keep"]
    assert not (bench.pack / "workspace" / "cache" / "hits").exists()
    notes = [event.get("note") for event in ran.events if event.get("name") == "measure" and "status" in event]
    assert notes == ['"cache/hits" changed while it ran, and was put back; what is to stay belongs into .gitignore',
                     None, None]  # fmt: skip


def test_what_runs_behind_the_decision_is_in_no_state(bench: Bench) -> None:
    """It is taken back, and the next turn begins with what was measured."""
    bench.manifest(workflow=LOOP + BEHIND)
    bench.agent({"score": 9}, 'test ! -e late && echo \'{"valid": true, "score": 8}\' > reading')
    ran = bench.run()
    assert ran.decisions == ["keep", "keep", "keep"]
    assert ran.rows[1]["tasks"]["late"] == "pass"
    assert [kept(ran, number, "late") for number in (1, 2)] == [None, None]
    assert not (bench.pack / "workspace" / "late").exists()


def test_one_measurement_cannot_prepare_the_next(bench: Bench) -> None:
    """Each measures the same candidate; what commands have built for them stays."""
    bench.manifest(workflow=RUNGS)
    cheat = 'echo \'{\\"valid\\": true, \\"score\\": 1}\' > reading'
    bench.agent(f'echo "{cheat}" > program', {"score": 9})
    ran = bench.run()
    assert [(row["decision"], row["score"]) for row in ran.rows] == [("keep", 10), ("discard", 10), ("keep", 9)]
    assert kept(ran, 2, "built") == "built\n"


def test_a_cache_that_is_ignored_stays_between_measurements(bench: Bench) -> None:
    """As the rules of the first state say; nothing is put back."""
    (bench.pack / "start" / ".gitignore").write_text("cache/\n")
    bench.manifest(gate=f"mkdir -p cache; echo hit >> cache/hits; {GATE}")
    bench.agent({"score": 9})
    ran = bench.run()
    assert (bench.pack / "workspace" / "cache" / "hits").read_text() == "hit\nhit\n"
    assert not any("note" in event for event in ran.events if event.get("name") == "measure")


@pytest.mark.parametrize("before", ["", "build"])
def test_a_turn_that_is_made_again_begins_where_the_first_began(bench: Bench, before: str) -> None:
    """What an attempt left that died is no part of the candidate; what a command made before it is."""
    if before:
        bench.manifest(workflow=RUNGS.replace('op = "propose"', 'op = "propose"\ndepends_on = ["build"]').replace(
            'command = "echo built > built"\ndepends_on = ["propose"]', 'command = "echo built > built"').replace(
            'op = "apply"\ndepends_on = ["build"]', 'op = "apply"\ndepends_on = ["propose"]'))  # fmt: skip
        (bench.pack / "start" / "built").write_text("")
    check = "grep -q built built" if before else "true"
    bench.agent(
        f"if test $CRUCIBLE_ATTEMPT = 1; then touch half; rm -f built; exit 75; fi; test ! -e half && {check} && "
        'echo \'{"valid": true, "score": 9}\' > reading'
    )
    ran = bench.run("--retries", "1")
    assert ran.decisions == ["keep", "keep"], ran.notes
    assert kept(ran, 1, "half") is None

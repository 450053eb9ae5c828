"""Loops that are killed or stopped at random moments, and go on: the verdict is that of one that nobody disturbed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from process import COMMAND

from crucible.schemas import registry

pytestmark = pytest.mark.torture

GATE = "sleep 0.02; cat reading"
EDITS = """
[[edit]]
iteration = 1
run = '''echo '{"valid": true, "score": 9}' > reading; echo one >> log; mkdir -p deep; echo 1 > deep/one'''
[[edit]]
iteration = 2
run = '''echo '{"valid": true, "score": 12}' > reading; rm -r deep; ln -s /etc deep'''
[[edit]]
iteration = 3
run = "rm -f reading; sleep 0.05; exit 75"
[[edit]]
iteration = 4
run = "touch broken; rm log"
[[edit]]
iteration = 5
run = '''echo '{"valid": true, "score": 7}' > reading; echo five >> log; sleep 300 &'''
[[edit]]
iteration = 6
run = '''echo '{"valid": true, "score": 6.5, "note": "six"}' > reading; git add -A; git commit -qm mine; rm deep/one'''
"""
DECISIONS = ["keep", "keep", "discard", "void", "discard", "keep", "keep"]


class Verdict(NamedTuple):
    """What a run came to: decisions, kept states, and every file of the workspace that is the candidate's."""

    decisions: list[str]
    kept: list[tuple[int, str]]
    best: float | None
    files: dict[str, bytes]


def write_pack(folder: Path) -> Path:
    """Write a pack whose agent does good, bad, broken and dirty work."""
    (folder / "start").mkdir(parents=True)
    (folder / "start" / "reading").write_text('{"valid": true, "score": 10}\n')
    (folder / "start" / "log").write_text("")
    (folder / "frozen.txt").write_text("frozen\n")
    (folder / "edits.toml").write_text(EDITS)
    agent = f"{sys.executable} -P -m crucible.runtime.stand_in ../edits.toml"
    (folder / "crucible.toml").write_text(
        f"""
[repo]
path = "start"
[workspace]
inject = ["frozen.txt"]
[agent]
backend = "command"
agent_cmd = {json.dumps(agent)}
goal = "Lower it."
[judge]
measure_cmd = {json.dumps(GATE)}
direction = "lower"
[world]
apply_cmd = "test ! -e broken"
"""
    )
    return folder


def start(folder: Path, *options: str, mark: str = "") -> "subprocess.Popen[bytes]":
    """Start the loop."""
    line = [*COMMAND, "run", "--manifest", "crucible.toml", "--iterations", "6", "--retries", "0", *options]
    return subprocess.Popen(
        line,
        cwd=folder,
        env={**os.environ, "TORTURE": mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def events(folder: Path) -> list[dict[str, Any]]:
    """Return the events so far, each of which its schema allows; a torn last line is none."""
    found = [json.loads(line) for line in (folder / "state" / "session.jsonl").read_bytes().split(b"\n")[:-1]]
    assert [problem for event in found for problem in registry.errors("event", event)] == []
    return found


def verdict(folder: Path) -> Verdict:
    """Return what a run that has ended came to."""
    rows = [event for event in events(folder) if event["kind"] == "row"]
    assert [row["iter"] for row in rows] == list(range(len(rows)))  # none is counted twice
    report = json.loads((folder / "state" / "report.json").read_bytes())
    assert registry.errors("loop-report", report) == []
    assert report["rows"] == len(rows)
    workspace = folder / "workspace"
    files = {
        str(path.relative_to(workspace)): path.read_bytes()
        for path in sorted(workspace.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(workspace).parts
    }
    kept = [(row["iter"], row["sha"]) for row in rows if row["decision"] == "keep"]
    return Verdict([row["decision"] for row in rows], kept, rows[-1]["best"], files)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    """Return what the run comes to when nobody disturbs it."""
    folder = write_pack(tmp_path_factory.mktemp("undisturbed") / "pack")
    with start(folder) as process:
        _, said = process.communicate()
    assert process.returncode == 0, said
    found = verdict(folder)
    assert found.decisions == DECISIONS
    return found


def survivors(mark: str) -> list[str]:
    """Return the command lines of all processes that were started for a run."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                environment = Path(f"/proc/{entry}/environ").read_bytes()
                if f"TORTURE={mark}".encode() in environment.split(b"\0"):
                    found.append(Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def gone(mark: str) -> bool:
    """Tell whether nothing of a run lives any more, after a moment for what was killed just now."""
    for _ in range(100):
        if not survivors(mark):
            return True
        time.sleep(0.02)
    return False


linux = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="only Linux tells what others have in theirs"
)


def moments(count: int, seed: int) -> tuple[int, random.Random]:
    """Return a seed, by chance when there are many moments, and what draws them."""
    seed = random.randrange(2**32) if count > 20 else seed
    return seed, random.Random(seed)


def went_on(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Start the run, or go on with it, until it has ended by itself."""
    while True:
        has_begun = (folder / "state" / "session.jsonl").exists() and any(
            event["kind"] == "start" for event in events(folder)
        )
        process = start(folder, *(["--resume"] if has_begun else []), mark=folder.name)
        yield process
        if process.returncode != -signal.SIGKILL:
            return


@linux
@pytest.mark.parametrize("count", [8, pytest.param(300, marks=[pytest.mark.whole, pytest.mark.timeout(3600)])])
def test_a_loop_that_is_killed_goes_on_to_the_same_verdict(tmp_path: Path, undisturbed: Verdict, count: int) -> None:
    """Whenever it was, and however often: the same states are kept, and nothing is left."""
    seed, chance = moments(count, 3)
    kills = number = 0
    while kills < count:
        number += 1
        folder = write_pack(tmp_path / f"{os.getpid()}.{number}")
        for starts, process in enumerate(went_on(folder), 1):
            with process:
                if starts < 6 and kills < count:
                    time.sleep(chance.random() * 1.3)
                    process.kill()
                said = process.communicate()[1]
            what = f"run {number}, start {starts} of seed {seed}: {said.decode(errors='replace')[-2000:]}"
            kills += process.returncode == -signal.SIGKILL
        assert process.returncode == 0, what
        assert verdict(folder) == undisturbed, what
        assert gone(folder.name), (what, survivors(folder.name))
        assert not (folder / "state" / "lock").exists(), what
        assert not list((folder / "state").rglob("*.lock")), what
        assert not list((folder / "state" / "private").rglob("*")), what
        kinds = [event["kind"] for event in events(folder)]
        assert kinds[-1] == "shutdown", what
        # A process that was killed behind its last word has one, too; none has two.
        lives = " ".join(kinds).split(" recovery")
        assert max(life.count("shutdown") for life in lives) == 1, what
        assert kinds.count("start") == 1, what


@linux
@pytest.mark.parametrize("count", [5, pytest.param(100, marks=[pytest.mark.whole, pytest.mark.timeout(3600)])])
def test_a_loop_that_is_stopped_leaves_what_was_kept(tmp_path: Path, undisturbed: Verdict, count: int) -> None:
    """It says so, has no row for what was broken off, and goes on to the same verdict."""
    seed, chance = moments(count, 4)
    stops = number = 0
    while stops < count:
        number += 1
        folder = write_pack(tmp_path / f"{os.getpid()}.{number}")
        with start(folder, mark=folder.name) as process:
            time.sleep(0.3 + chance.random() * 0.9)
            process.send_signal(chance.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
            said = process.communicate()[1]
        what = f"run {number} of seed {seed}, exit {process.returncode}: {said.decode(errors='replace')[-2000:]}"
        assert gone(folder.name), (what, survivors(folder.name))
        if process.returncode < 0 or not (folder / "state" / "session.jsonl").exists():
            continue  # before there was anything of ours
        assert process.returncode in {0, 130}, what
        found = events(folder)
        assert [event["kind"] for event in found].count("shutdown") == 1, what
        assert not (folder / "state" / "lock").exists(), what
        rows = [event for event in found if event["kind"] == "row"]
        if process.returncode == 130:
            stops += 1
            assert found[-1]["outcome"] in {"stopped", "finished"}, what
            if rows:
                assert json.loads((folder / "workspace" / "reading").read_bytes())["score"] == rows[-1]["best"], what
                assert not (folder / "workspace" / "broken").exists(), what
        with start(folder, "--resume", mark=folder.name) as process:
            said = process.communicate()[1]
        assert process.returncode == 0, (what, said)
        assert verdict(folder) == undisturbed, (what, said)

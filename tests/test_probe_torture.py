"""Probes that are killed or stopped at random moments: what the next one finds, and what is left of them."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from contract import contract
from repositories import commit, repository
from test_probe import everything
from test_run_torture import gone, survivors

from crucible.runtime.judge import Reading
from crucible.runtime.prepare import Origin
from crucible.runtime.probe import Gate, Probed, Site, probe
from crucible.runtime.process import Processes

pytestmark = [
    pytest.mark.torture,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux tells what others have in theirs"),
]

# Processes that stay, in the group and out of it; and files wherever somebody may look for them.
_LITTER = "(sleep 600 & setsid sleep 600 & sh -c \"trap '' HUP; exec sleep 600\" &) ; mkdir -p a/b; date > a/b/c; "
SETUP = f"git clone -q origin workspace && cd workspace && {_LITTER} sleep 0.05"
LOOK = 'test "$(cat n)" = 5 -a -e a/b/c -a ! -e left && '
STAGE = f"{LOOK} {_LITTER} sleep 0.05; touch left; echo %d > n"
MEASURE = f'{_LITTER} sleep 0.03; echo "{{\\"valid\\": true, \\"score\\": $(cat n)}}"; touch left'
GATE = Gate(MEASURE, "lower", STAGE % 3, STAGE % 9, 2)
DRIVER = """
import os, signal, sys
from crucible.runtime.prepare import Origin
from crucible.runtime.probe import Gate, Site, probe
from crucible.runtime.process import Processes
signal.signal(signal.SIGINT, signal.SIG_DFL)  # in the background of a script, keys are ignored
folder, setup, measure, good, bad = sys.argv[1:]
site = Site(Origin(folder, setup), f"{folder}/workspace", f"{folder}/state")
with Processes() as processes:
    found = probe(Gate(measure, "lower", good, bad, 2), site, os.environ, processes)
sys.exit(0 if found.selftest and found.selftest.passed else 130 if found.stopped else 1)
"""
_COUNTS = [8, pytest.param(100, marks=[pytest.mark.whole, pytest.mark.timeout(3600)])]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a pack with a repository and with a workspace of its own, in which somebody has worked."""
    commit(repository(tmp_path / "pack" / "origin"), {"n": "5\n", **{f"{n}.txt": "x" * 999 for n in range(200)}})
    (tmp_path / "pack" / "workspace").mkdir()
    (tmp_path / "pack" / "workspace" / "n").write_text("77")
    return tmp_path / "pack"


def start(folder: Path, mark: str, measure: str = MEASURE) -> "subprocess.Popen[bytes]":
    """Start a probe in a process of its own."""
    assert GATE.good_cmd is not None
    assert GATE.bad_cmd is not None
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(folder), SETUP, measure, GATE.good_cmd, GATE.bad_cmd],
        env={**os.environ, "TORTURE": mark},
        start_new_session=True,
    )


def again(folder: Path) -> Probed:
    """Probe once more, in this process."""
    site = Site(Origin(str(folder), SETUP), str(folder / "workspace"), str(folder / "state"))
    with Processes() as processes:
        return probe(GATE, site, os.environ, processes)


def check(found: Probed) -> None:
    """Check that a probe found everything pristine, at its begin and before each control."""
    assert found.measured is not None, found
    assert found.measured.reading == Reading(valid=True, score=5)
    assert found.selftest is not None
    assert found.selftest.why == ""
    assert (found.selftest.good.mean, found.selftest.bad.mean) == (3, 9)


def slots(folder: Path) -> list[str]:
    """Return the folders that probes have in a state directory."""
    private = folder / "state" / "private"
    return sorted(path.name for path in private.iterdir()) if private.exists() else []


@contextmanager
def neighbour(folder: Path) -> Iterator[None]:
    """Let another probe live in the same pack, in the middle of a measurement, until the end of the block."""
    started, go = folder.parent / "started", folder.parent / "go"
    wait = f"touch {started}; while ! test -e {go}; do sleep 0.05; done; {MEASURE}"
    with start(folder, f"{os.getpid()}.neighbour", wait) as process:
        while not started.exists():
            time.sleep(0.02)
        try:
            yield
        finally:
            go.touch()
        assert process.wait() == 0


@contract("§1.1", "The workspace is restored to pristine on every exit path (pass, fail, or error).")
@pytest.mark.parametrize("count", _COUNTS)
def test_a_probe_after_one_that_was_killed_finds_all_pristine(folder: Path, count: int) -> None:
    """It ends what that one left and removes its folder; a neighbour that lives keeps what it has."""
    before = everything(folder)
    seed = random.randrange(2**32) if count > 20 else 1
    moments = random.Random(seed)
    killed = 0
    with neighbour(folder):
        [kept] = slots(folder)
        for number in range(count):
            mark = f"{os.getpid()}.killed.{number}"
            with start(folder, mark) as process:
                time.sleep(moments.random())
                process.kill()
                killed += process.wait() == -signal.SIGKILL
            what = f"kill {number} of seed {seed}"
            check(again(folder))
            assert gone(mark), (what, survivors(mark))
            assert slots(folder) == [kept], what
        assert killed > count / 4
    assert gone(f"{os.getpid()}.neighbour")
    assert everything(folder) == before


@contract("§1.1", "The workspace is restored to pristine on every exit path (pass, fail, or error).")
@pytest.mark.parametrize("count", _COUNTS)
def test_a_probe_that_is_stopped_leaves_nothing(folder: Path, count: int) -> None:
    """No process, no folder, no state directory, whenever it was and by whichever signal."""
    before = everything(folder)
    seed = random.randrange(2**32) if count > 20 else 2
    moments = random.Random(seed)
    begin = time.monotonic()
    with start(folder, f"{os.getpid()}.whole") as process:
        assert process.wait() == 0
    whole = time.monotonic() - begin
    ready = min(0.3, whole / 2)  # its handlers stand by then
    stops = 0
    for number in range(count):
        mark = f"{os.getpid()}.stopped.{number}"
        with start(folder, mark) as process:
            time.sleep(ready + moments.random() * (whole - ready))
            process.send_signal(moments.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
            if moments.random() < 0.3:
                time.sleep(moments.random() / 5)
                process.send_signal(signal.SIGINT)
            status = process.wait()
        what = f"stop {number} of seed {seed}: {status}"
        assert gone(mark), (what, survivors(mark))
        assert status in {0, 130} or (status < 0 and not (folder / "state").exists()), what
        stops += status == 130
        assert everything(folder) == before, what
    assert stops > count / 4

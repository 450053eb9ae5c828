"""What a run that was killed left running: told by the mark in its environment, and by the death of its process."""

import os
import subprocess
from pathlib import Path

import pytest

from crucible.runtime import leftovers
from crucible.runtime.process import MARK

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="only Linux tells what others have in theirs"
)


def test_only_what_belongs_to_a_dead_process_is_ended() -> None:
    """A living one keeps its own, and so does every other run."""
    with subprocess.Popen(["true"]) as dead:
        pass
    marks = [f"{dead.pid}.1", f"{dead.pid}0.1", f"{os.getpid()}.1"]
    sleepers = [subprocess.Popen(["sleep", "600"], env={**os.environ, MARK: mark}) for mark in marks]
    try:
        for run in (dead.pid, os.getpid(), 2**62):
            leftovers.end(run)
        assert sleepers[0].wait() == -9
        assert [each.poll() for each in sleepers[1:]] == [None, None]
    finally:
        for each in sleepers:
            each.kill()
            each.wait()


def test_a_process_that_cleared_its_environment_is_known_by_the_log_that_it_writes(tmp_path: Path) -> None:
    """Who reads a log is somebody who looks, and lives on."""
    with subprocess.Popen(["true"]) as dead:
        pass
    log = tmp_path / "logs" / "iteration-0001" / "000-propose.out"
    log.parent.mkdir(parents=True)
    with log.open("w") as writing, log.open() as reading:
        orphan = subprocess.Popen(["sleep", "600"], env={}, stdout=writing)
        looks = subprocess.Popen(["sleep", "600"], env={}, stdin=reading)
    try:
        leftovers.end(dead.pid)
        assert orphan.poll() is None
        leftovers.end(dead.pid, str(tmp_path / "logs"))
        assert orphan.wait() == -9
        assert looks.poll() is None
    finally:
        for each in (orphan, looks):
            each.kill()
            each.wait()

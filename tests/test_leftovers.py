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

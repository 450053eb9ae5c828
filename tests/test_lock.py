"""Locks: one holder at a time, and none when the holder is dead."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crucible.runtime.lock import Held, hold, take

HOLDER = """\
import sys, time
from crucible.runtime.lock import hold, take
held = (take if sys.argv[1] == "file" else hold)(sys.argv[2])
print("held", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_lock_dies_with_its_process(tmp_path: Path, kind: str) -> None:
    """Whoever comes second is refused and told who holds it, until that one is killed."""
    path = str(tmp_path / "lock") if kind == "file" else str(tmp_path)
    with subprocess.Popen([sys.executable, "-c", HOLDER, kind, path], stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            if kind == "file":
                with pytest.raises(Held, match=f"process {holder.pid} runs here already"):
                    take(path)
            else:
                assert hold(path) is None
        finally:
            holder.kill()
    if kind == "file":
        take(path).close()
        assert os.listdir(tmp_path) == []
    else:
        descriptor = hold(path)
        assert descriptor is not None
        os.close(descriptor)


FORKING = """\
import os, sys, time
from crucible.runtime.lock import hold, take
if sys.argv[1] == "file":
    held = take(sys.argv[2])
else:
    os.pwrite(hold(sys.argv[2]), b"%d" % os.getpid(), 0)
if not os.fork():
    os.close(1)
    time.sleep(0.5)
os._exit(0)
"""


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_dead_process_has_just_forked_does_not_hold_its_lock(tmp_path: Path, kind: str) -> None:
    """It still has the descriptor, for as long as it is no other program: whoever comes waits for that."""
    path = str(tmp_path / "lock") if kind == "file" else str(tmp_path)
    subprocess.run([sys.executable, "-c", FORKING, kind, path], check=True, stdout=subprocess.DEVNULL)
    if kind == "file":
        take(path).close()
    else:
        descriptor = hold(path)
        assert descriptor is not None
        os.close(descriptor)


@pytest.mark.parametrize("text", ["", "x", "0", "9" * 30, "-1"])
def test_a_lock_that_names_nobody_is_held_all_the_same(tmp_path: Path, text: str) -> None:
    """Whatever somebody has written into it."""
    path = tmp_path / "lock"
    with take(str(path)):
        path.write_text(text)
        with pytest.raises(Held):
            take(str(path))


def test_a_lock_is_given_back_and_its_file_removed(tmp_path: Path) -> None:
    """Closing twice does no harm to the next holder."""
    path = str(tmp_path / "lock")
    first = take(path)
    with pytest.raises(Held, match=f"process {os.getpid()} "):
        take(path)
    first.close()
    assert os.listdir(tmp_path) == []
    with take(path):
        first.close()
        assert Path(path).read_text(encoding="ascii") == f"{os.getpid()}\n"
    assert os.listdir(tmp_path) == []


RUSH = """\
import os, sys
from crucible.runtime.lock import Held, take
path, inside = sys.argv[1:]
for _ in range(300):
    try:
        lock = take(path)
    except Held:
        continue
    os.close(os.open(inside, os.O_CREAT | os.O_EXCL))
    os.unlink(inside)
    lock.close()
"""


def test_of_many_who_rush_for_a_lock_one_has_it(tmp_path: Path) -> None:
    """Its file is removed and made again under their hands, and never do two hold it."""
    line = [sys.executable, "-c", RUSH, str(tmp_path / "lock"), str(tmp_path / "inside")]
    runs = [subprocess.Popen(line, stderr=subprocess.PIPE) for _ in range(4)]
    assert [run.communicate()[1] for run in runs] == [b""] * 4
    assert os.listdir(tmp_path) == []


def test_children_do_not_inherit_a_lock(tmp_path: Path) -> None:
    """A process that outlives its run does not hold the run's lock."""
    path = str(tmp_path / "lock")
    lock = take(path)
    pid = os.posix_spawnp("sleep", ["sleep", "600"], os.environ)
    try:
        lock.close()
        take(path).close()
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def test_a_folder_that_is_gone_has_no_lock(tmp_path: Path) -> None:
    """Neither has what is no folder."""
    assert hold(str(tmp_path / "gone")) is None
    (tmp_path / "file").touch()
    assert hold(str(tmp_path / "file")) is None


def test_a_link_is_no_lock(tmp_path: Path) -> None:
    """Nothing is written where it leads."""
    os.symlink(tmp_path / "elsewhere", tmp_path / "lock")
    with pytest.raises(OSError, match="symbolic links"):
        take(str(tmp_path / "lock"))
    assert not (tmp_path / "elsewhere").exists()

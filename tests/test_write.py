"""The one writer: old or new and nothing else, whoever is killed, competes or stands in the way."""

import errno
import fcntl
import json
import os
import random
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crucible.compiler import write
from crucible.compiler.write import Outcome, replace

OLD, NEW = b"old = 1\n", b"new = 2\n"
AS_ROOT = os.geteuid() == 0


def names(directory: Path) -> list[str]:
    """List a directory, hidden files included."""
    return sorted(path.name for path in directory.iterdir())


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """Give a file that stands alone in its directory."""
    path = tmp_path / "pack" / "crucible.toml"
    path.parent.mkdir()
    path.write_bytes(OLD)
    return path


def test_a_file_gets_its_new_content(manifest: Path) -> None:
    """The content is there, and nothing else is."""
    assert replace(str(manifest), NEW) is Outcome.WRITTEN
    assert manifest.read_bytes() == NEW
    assert names(manifest.parent) == [manifest.name]


def test_a_file_that_is_not_there_is_made_with_the_mode_of_the_umask(tmp_path: Path) -> None:
    """A new file is as readable as any other that the user makes."""
    before = os.umask(0o027)
    try:
        assert replace(str(tmp_path / "new"), NEW) is Outcome.WRITTEN
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_a_file_in_the_working_directory_needs_no_directory_in_its_name(
    manifest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bare name is a path."""
    monkeypatch.chdir(manifest.parent)
    assert replace("crucible.toml", NEW, expected=OLD) is Outcome.WRITTEN
    assert manifest.read_bytes() == NEW


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o664])
def test_the_mode_is_kept(manifest: Path, mode: int) -> None:
    """Who could read or run the file still can, and nobody else."""
    manifest.chmod(mode)
    replace(str(manifest), NEW)
    assert stat.S_IMODE(manifest.stat().st_mode) == mode


@pytest.mark.skipif(not AS_ROOT, reason="only root may give files away")
def test_the_owner_is_kept_where_the_system_allows(manifest: Path) -> None:
    """An administrator's write leaves the file to its owner."""
    os.chown(manifest, 4321, 4322)
    replace(str(manifest), NEW)
    assert (manifest.stat().st_uid, manifest.stat().st_gid) == (4321, 4322)


def test_an_owner_that_cannot_be_kept_stops_nothing(manifest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content matters more than whose it is."""

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no")

    monkeypatch.setattr(os, "fchown", refuse)
    assert replace(str(manifest), NEW) is Outcome.WRITTEN


@pytest.mark.parametrize("expected", [OLD, None, b"something else"])
def test_an_unchanged_file_is_not_touched(manifest: Path, expected: bytes | None) -> None:
    """The same inode with the same times: no build tool sees a change, and a write protection is no matter."""
    manifest.chmod(0o444)
    os.utime(manifest, ns=(1, 1))
    before = manifest.stat()
    assert replace(str(manifest), OLD, expected=expected) is Outcome.UNCHANGED
    after = manifest.stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )


def test_a_file_that_changed_since_it_was_read_is_left_alone(manifest: Path) -> None:
    """Somebody's edit is worth more than our result, and so is his removal of the file."""
    assert replace(str(manifest), NEW, expected=b"what we read") is Outcome.CHANGED
    assert manifest.read_bytes() == OLD
    manifest.unlink()
    assert replace(str(manifest), NEW, expected=OLD) is Outcome.CHANGED
    assert names(manifest.parent) == []


def test_a_link_inside_the_pack_stays_and_its_target_is_written(manifest: Path) -> None:
    """The link is a name for the file, not the file."""
    (manifest.parent / "real").mkdir()
    target = manifest.rename(manifest.parent / "real" / "x.toml")
    manifest.symlink_to("real/x.toml")
    assert replace(str(manifest), NEW) is Outcome.WRITTEN
    assert manifest.is_symlink()
    assert target.read_bytes() == NEW
    assert names(manifest.parent) == ["crucible.toml", "real"]
    assert names(target.parent) == ["x.toml"]


def test_a_link_that_leaves_the_pack_is_refused(manifest: Path) -> None:
    """However it leaves: by a chain of links, through a directory, or to a name that only begins alike."""
    outside = manifest.rename(manifest.parent.parent / "outside.toml")
    (manifest.parent / "step").symlink_to("../outside.toml")
    manifest.symlink_to("step")
    (manifest.parent / "up").symlink_to("..")
    (manifest.parent / "twin").symlink_to("../pack-2/x")
    (manifest.parent.parent / "pack-2").mkdir()
    for name in ("crucible.toml", "step", "twin"):
        assert replace(str(manifest.parent / name), NEW) is Outcome.OUTSIDE
    assert replace(str(manifest.parent / "up" / "outside.toml"), NEW, root=str(manifest.parent)) is Outcome.OUTSIDE
    assert outside.read_bytes() == OLD
    assert replace(str(manifest), NEW, root=str(outside.parent)) is Outcome.WRITTEN
    assert outside.read_bytes() == NEW


def test_a_pack_that_is_reached_through_a_link_is_a_pack(manifest: Path) -> None:
    """Only a link below the root can leave it."""
    (manifest.parent.parent / "link").symlink_to("pack")
    assert replace(str(manifest.parent.parent / "link" / "crucible.toml"), NEW) is Outcome.WRITTEN
    assert manifest.read_bytes() == NEW


def no_space(*_: object) -> int:
    """Fail as a full disk does."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("call", ["write", "fsync", "fork"])
@pytest.mark.parametrize("nameless", [True, False])
def test_a_failure_leaves_the_old_file_alone(
    manifest: Path, monkeypatch: pytest.MonkeyPatch, call: str, *, nameless: bool
) -> None:
    """Whatever step fails, the old file stands alone and the error names it."""
    if not nameless:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    monkeypatch.setattr(os, call, no_space)
    with pytest.raises(OSError, match="No space left") as caught:
        replace(str(manifest), NEW)
    assert caught.value.filename == str(manifest)
    assert manifest.read_bytes() == OLD
    assert names(manifest.parent) == [manifest.name]


@pytest.mark.parametrize("call", ["link", "rename", "setsid"])
def test_a_failure_of_the_child_is_a_failure(manifest: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """What the child cannot do is told by its exit status, and it leaves no temporary name."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EDQUOT, "no")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match=os.strerror(errno.EDQUOT)) as caught:
        replace(str(manifest), NEW)
    assert caught.value.filename == str(manifest)
    assert manifest.read_bytes() == OLD
    assert names(manifest.parent) == [manifest.name]


def test_a_system_without_nameless_files_gets_a_name_that_is_gone_afterwards(
    manifest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other way to write leaves as little."""
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    manifest.chmod(0o640)
    assert replace(str(manifest), NEW) is Outcome.WRITTEN
    assert manifest.read_bytes() == NEW
    assert stat.S_IMODE(manifest.stat().st_mode) == 0o640
    assert names(manifest.parent) == [manifest.name]


def test_a_file_system_without_locks_is_written_under_a_name_of_ones_own(
    manifest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody can be waited for, nobody's temporary file is removed either."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    foreign = manifest.parent / write._TEMPORARY
    foreign.touch()
    monkeypatch.setattr(fcntl, "flock", refuse)
    assert replace(str(manifest), NEW) is Outcome.WRITTEN
    assert manifest.read_bytes() == NEW
    assert foreign.exists()


def test_what_a_dead_writer_left_is_removed(manifest: Path) -> None:
    """The next run in the directory finds and removes it, even one that writes nothing."""
    (manifest.parent / write._TEMPORARY).write_bytes(b"half")
    assert replace(str(manifest), OLD) is Outcome.UNCHANGED
    assert names(manifest.parent) == [manifest.name]


def test_an_ignored_end_of_children_hides_no_result(manifest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the starter of the process ignores SIGCHLD, success and failure are still told apart."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert replace(str(manifest), NEW) is Outcome.WRITTEN
        monkeypatch.setattr(os, "rename", no_space)
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            replace(str(manifest), OLD)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert manifest.read_bytes() == NEW


def test_no_signal_mask_and_no_descriptor_is_left_behind(manifest: Path) -> None:
    """A caller goes on as before."""
    descriptors = names(Path("/dev/fd"))
    replace(str(manifest), NEW)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()
    assert names(Path("/dev/fd")) == descriptors


@pytest.mark.parametrize("kind", ["directory", "missing directory", "fifo", "not a directory"])
def test_what_is_no_regular_file_is_an_error(manifest: Path, kind: str) -> None:
    """The error names the path; nothing blocks and nothing is made."""
    path = manifest.parent / "x"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path = (manifest if kind == "not a directory" else path) / "y"
    listed = names(manifest.parent)
    with pytest.raises(OSError, match=r".") as caught:
        replace(str(path), NEW)
    assert caught.value.filename == str(path)
    assert names(manifest.parent) == listed


@pytest.mark.skipif(AS_ROOT, reason="root may write anything")
def test_a_write_protected_file_or_directory_is_an_error(manifest: Path) -> None:
    """A rename would get around a file's protection; it is respected."""
    manifest.chmod(0o444)
    with pytest.raises(PermissionError):
        replace(str(manifest), NEW)
    manifest.chmod(0o644)
    manifest.parent.chmod(0o555)
    with pytest.raises(PermissionError):
        replace(str(manifest), NEW)
    manifest.parent.chmod(0o755)
    assert manifest.read_bytes() == OLD


def test_a_protection_is_asked_for(manifest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the tests run as a user whom nothing stops."""
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    with pytest.raises(PermissionError):
        replace(str(manifest), NEW)
    assert manifest.read_bytes() == OLD


# Real processes

# Writes one content after the other; says so when it is under way.
_WRITER = """
import json, os, sys
from crucible.compiler.write import replace
path, size, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if "named" in sys.argv:
    del os.O_TMPFILE
for number in range(rounds):
    replace(path, json.dumps({"writer": os.getpid(), "text": "x" * size * (number % 2 + 1)}).encode())
    if number == 1:
        print("ready", flush=True)
"""


@contextmanager
def endless(path: Path, size: int, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a writer that stops at no time of its own, in its own process group, and wait until it is under way."""
    command = [sys.executable, "-c", _WRITER, str(path), str(size), str(10**9), *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


def settle(directory: Path) -> None:
    """Wait until no writer holds the directory: a child that outlives its writer holds the lock."""
    opened = os.open(directory, os.O_RDONLY)
    fcntl.flock(opened, fcntl.LOCK_EX)
    os.close(opened)


def killed_writers_leave_only_the_file(path: Path, kills: int, seed: int) -> None:
    """Kill writers at random moments, every other time with their whole group, and look at what is left."""
    moments = random.Random(seed)
    for number in range(kills):
        with endless(path, moments.choice([1, 10_000])) as process:
            time.sleep(moments.random() / 50)
            if number % 2:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait()
            settle(path.parent)
            assert names(path.parent) == [path.name], f"kill {number} of seed {seed}"
            assert set(json.loads(path.read_bytes())["text"]) == {"x"}


def test_a_killed_writer_leaves_the_old_or_the_new_file(manifest: Path) -> None:
    """A kill at any moment leaves one whole content and no other name in the directory."""
    killed_writers_leave_only_the_file(manifest, 20, 1)


@pytest.mark.whole
@pytest.mark.timeout(3600)
def test_a_thousand_killed_writers_leave_the_old_or_the_new_file(manifest: Path) -> None:
    """The same a thousand times, at other moments each time it runs."""
    killed_writers_leave_only_the_file(manifest, 1_000, random.randrange(2**32))


# Stops between the two calls, in the child that makes them, until it is told to go on.
_STOPS_BEFORE_THE_RENAME = """
import os, sys
from crucible.compiler.write import replace
rename = os.rename
def stop(*args, **kwargs):
    print("linked", flush=True)
    sys.stdin.readline()
    rename(*args, **kwargs)
os.rename = stop
replace(sys.argv[1], sys.argv[2].encode())
"""


def test_a_writer_killed_between_the_two_calls_is_outlived_by_its_child(manifest: Path) -> None:
    """The one moment at which there is a temporary name is over even when the writer's whole group is killed."""
    command = [sys.executable, "-c", _STOPS_BEFORE_THE_RENAME, str(manifest), NEW.decode()]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"linked\n"
        assert len(names(manifest.parent)) == 2
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdin.write(b"go\n")
        process.stdin.flush()
        settle(manifest.parent)
    assert manifest.read_bytes() == NEW
    assert names(manifest.parent) == [manifest.name]


def test_a_writer_killed_while_its_content_has_a_name_is_cleaned_up_after(manifest: Path) -> None:
    """Where the system has no nameless files, the next writer removes what a killed one left."""
    for _ in range(5):
        with endless(manifest, 10_000, "named"):
            time.sleep(0.01)
        settle(manifest.parent)
        json.loads(manifest.read_bytes())
        replace(str(manifest), NEW)
        assert names(manifest.parent) == [manifest.name]


def test_writers_at_once_leave_one_of_their_results(manifest: Path) -> None:
    """At every instant the file is one writer's whole content, and at the end it stands alone."""
    replace(str(manifest), json.dumps({"writer": os.getpid()}).encode())
    commands = [[sys.executable, "-c", _WRITER, str(manifest), str(size), "8"] for size in range(1, 80_000, 5_000)]
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    seen = set()
    while any(process.poll() is None for process in processes):
        seen.add(json.loads(manifest.read_bytes())["writer"])
    assert [process.returncode for process in processes] == [0] * 16
    assert seen <= {os.getpid(), *(process.pid for process in processes)}
    assert json.loads(manifest.read_bytes())["writer"] in {process.pid for process in processes}
    assert names(manifest.parent) == [manifest.name]


_ONCE = """
import sys
from crucible.compiler.write import replace
path, data, expected = sys.argv[1], sys.argv[2].encode(), sys.argv[3].encode()
sys.stdin.readline()
print(replace(path, data, expected=expected).name)
"""


def test_of_writers_that_read_the_same_file_one_result_wins(manifest: Path) -> None:
    """Sixteen start from one content with two results: the first decides, the others are told."""
    results = ("a = 1\n", "b = 2\n")
    commands = [[sys.executable, "-c", _ONCE, str(manifest), results[number % 2], OLD.decode()] for number in range(16)]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for command in commands]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outcomes = [process.communicate()[0].strip() for process in processes]
    winner = outcomes.index("WRITTEN")
    assert manifest.read_text() == results[winner % 2]
    assert outcomes.count("WRITTEN") == 1
    for number, outcome in enumerate(outcomes):
        if number != winner:
            assert outcome == ("UNCHANGED" if number % 2 == winner % 2 else "CHANGED")
    assert names(manifest.parent) == [manifest.name]

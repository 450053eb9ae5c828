"""Runs that are stopped or killed at random moments, under a terminal: what is left of them, and what comes next."""

import json
import os
import pty
import random
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from process import COMMAND
from runs import STAND_IN, agent, command, events, write_plan

from crucible.schemas import registry

pytestmark = pytest.mark.torture

MANIFEST = f"""
[repo]
path = "origin"
[workspace]
inject = ["frozen.txt"]
[judge]
measure_cmd = "true"
direction = "lower"
[agent]
backend = "command"
agent_cmd = '{STAND_IN}'
"""
_SLEEPERS = "sleep 6000 & setsid sleep 6000 & sh -c \"trap '' HUP; exec sleep 6000\" & "
_DEAF = "trap '' TERM; sleep 6000 & sleep 0.1; echo 1"
TASKS = (
    command("first", "echo '{}'"),
    command("leaves", f"{_SLEEPERS} sleep 0.05; echo 2", "first"),
    *(
        command(f"alone-{number}", f"{_SLEEPERS} sleep 0.2; cat a.txt >&2", "leaves", isolated=True)
        for number in range(4)
    ),
    agent("turn", 'result {"a": 1}\ncost 0.01', "alone-0", session="s"),
    command("deaf", _DEAF, "turn"),
    command("last", "sleep 0.3; echo '{}'", "deaf"),
)


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """Return a folder with a plan, a manifest, and a repository that the manifest names."""
    origin = tmp_path / "origin"
    origin.mkdir()
    for number in range(20):
        (origin / f"{number}.txt").write_text("x" * 1_000)
    (origin / "a.txt").write_text("a\n")
    (tmp_path / "frozen.txt").write_text("frozen\n")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q", "."), ("add", "-A"), ("commit", "-q", "-m", "first")):
        subprocess.run([*git, *words], cwd=origin, check=True)
    write_plan(tmp_path, *TASKS)
    (tmp_path / "crucible.toml").write_text(MANIFEST)
    return tmp_path


class Running:
    """A run under a terminal of its own, whose keyboard and screen we hold."""

    def __init__(self, folder: Path, mark: str, *options: str) -> None:
        self.pid, self._screen = pty.fork()
        if not self.pid:
            os.chdir(folder)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)  # in the background of a script, keys are ignored
            line = [
                *COMMAND,
                "plan",
                "run",
                "--file",
                "plan.json",
                "--manifest",
                "crucible.toml",
                "--jobs",
                "4",
                *options,
            ]
            os.execvpe(line[0], line, {**os.environ, "TORTURE": mark, "TERM": "xterm"})  # noqa: S606 - ours
        self.shown = b""

    def type(self, keys: bytes) -> None:
        """Press keys; what runs no more does not read them."""
        with suppress(OSError):
            os.write(self._screen, keys)

    def read_for(self, seconds: float) -> None:
        """Read the screen for some time, or until it is dark."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and self._read(left):
            pass

    def end(self) -> int:
        """Wait for the end and return how it ended."""
        while self._read(60):
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self._screen)
        return os.waitstatus_to_exitcode(status)

    def _read(self, seconds: float) -> bool:
        if not select.select([self._screen], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._screen, 1 << 16)
        except OSError:
            return False
        self.shown += data
        return bool(data)


def survivors(mark: str) -> list[str]:
    """Return the command lines of all processes that were started for a run."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                environment = Path(f"/proc/{entry}/environ").read_bytes()
                if f"TORTURE={mark}".encode() in environment.split(b"\0"):
                    found.append(Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
    return found


def gone(mark: str) -> bool:
    """Tell whether nothing of a run lives any more, after a moment for what was killed just now."""
    for _ in range(100):
        if not survivors(mark):
            return True
        time.sleep(0.02)
    return False


def clones(state: Path) -> list[str]:
    """Return what there is of private clones."""
    return [str(path) for path in (state / "private").rglob("*")]


def whole(state: Path) -> None:
    """Check that no JSON of a state directory is torn, but for a last line of events."""
    for path in state.glob("*.json"):
        json.loads(path.read_bytes())
    report = state / "report.json"
    if report.exists():
        assert registry.errors("report", json.loads(report.read_bytes())) == []
    session = state / "session.jsonl"
    if session.exists():
        for line in session.read_bytes().split(b"\n")[:-1]:
            assert registry.errors("event", json.loads(line)) == []


_COUNTS = [8, pytest.param(200, marks=[pytest.mark.whole, pytest.mark.timeout(3600)])]
linux = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="only Linux tells what others have in theirs"
)


@linux
@pytest.mark.parametrize("count", _COUNTS)
@pytest.mark.parametrize("how", ["keyboard", "signal"])
def test_a_run_that_is_stopped_leaves_nothing(pack: Path, how: str, count: int) -> None:
    """No process, no clone and no lock; the events end in shutdown, whenever it was."""
    state = pack / "state"
    seed = random.randrange(2**32) if count > 20 else 1
    moments = random.Random(seed)
    outcomes = set()
    for number in range(count):
        mark = f"{os.getpid()}.{how}.{number}"
        options = ("--no-progress",) if number % 2 else ()
        running = Running(pack, mark, *options)
        running.read_for(moments.random() * 2.2)
        if how == "keyboard":
            running.type(b"\x03")
        else:
            os.kill(running.pid, moments.choice([signal.SIGTERM, signal.SIGHUP]))
        if moments.random() < 0.3:
            running.read_for(moments.random() / 5)
            running.type(b"\x03")
        status = running.end()
        what = f"stop {number} of seed {seed}, exit {status}: {running.shown.decode(errors='replace')[-2000:]}"
        assert gone(mark), (what, survivors(mark))
        # The interpreter itself may be what is stopped, before there is anything of ours.
        has_begun = b"Fatal Python error: init_import_site" not in running.shown
        assert not has_begun or status in {0, 130, -signal.SIGTERM, -signal.SIGHUP, -signal.SIGINT}, what
        assert clones(state) == [], what
        assert not (state / "lock").exists(), what
        whole(state)
        if status < 0 or not has_begun or not (state / "session.jsonl").exists():
            continue  # before there was anything to close
        found = events(state)
        outcomes.add(found[-1]["outcome"])
        if status == 130:
            assert found[-1]["outcome"] in {"stopped", "finished"}, what
            if (state / "report.json").exists():
                report = json.loads((state / "report.json").read_bytes())
                assert report["exit"] == "interrupted", what
                assert {task["status"] for task in report["tasks"]} <= {"pass", "fail", "pending"}, what
        if running.shown.count(b"\x1b[?25l"):
            assert running.shown.rindex(b"\x1b[?25h") > running.shown.rindex(b"\x1b[?25l"), "the cursor is hidden"
    assert "stopped" in outcomes


@contextmanager
def neighbour(pack: Path, mark: str) -> Iterator[dict[str, Any]]:
    """Run beside others, in the same workspace, with a clone, until the end of the block; give how it ended."""
    path = pack / "neighbour.json"
    wait = f"touch {pack}/started; while ! test -e {pack}/go; do sleep 0.02; done; cat a.txt >&2"
    write_plan(pack, command("alone", wait, isolated=True)).rename(path)
    write_plan(pack, *TASKS)
    line = [*COMMAND, "plan", "run", "--file", str(path), "--manifest", "crucible.toml", "--state-dir", "beside"]
    with subprocess.Popen(
        line, cwd=pack, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "TORTURE": mark}
    ) as process:
        while not (pack / "started").exists() and process.poll() is None:
            time.sleep(0.02)
        found: dict[str, Any] = {}
        try:
            yield found
        finally:
            (pack / "go").touch()
            _, errors = process.communicate()
            found.update(status=process.returncode, errors=errors)


@linux
@pytest.mark.parametrize("count", _COUNTS)
def test_a_run_after_one_that_was_killed_cleans_up(pack: Path, count: int) -> None:
    """It ends what that one left, removes its clones and is valid; a neighbour that lives keeps what it has."""
    state = pack / "state"
    seed = random.randrange(2**32) if count > 20 else 2
    moments = random.Random(seed)
    subprocess.run(
        [*COMMAND, "plan", "run", "--file", "plan.json", "--manifest", "crucible.toml"], cwd=pack, check=True
    )
    write_plan(pack, command("only", "cat a.txt >&2", isolated=True)).rename(pack / "next.json")
    with neighbour(pack, f"{os.getpid()}.neighbour") as beside:
        write_plan(pack, *TASKS)
        for number in range(count):
            mark = f"{os.getpid()}.killed.{number}"
            running = Running(pack, mark, "--no-progress")
            running.read_for(moments.random() * 2.2)
            os.kill(running.pid, signal.SIGKILL)
            assert running.end() in {0, -signal.SIGKILL}
            what = f"kill {number} of seed {seed}"
            whole(state)
            line = [*COMMAND, "plan", "run", "--file", "next.json", "--manifest", "crucible.toml"]
            done = subprocess.run(line, cwd=pack, capture_output=True, check=False)
            assert done.returncode == 0, (what, done.stderr)
            assert gone(mark), (what, survivors(mark))
            assert clones(state) == [], what
            assert events(state)[-1]["outcome"] == "finished"
            assert clones(pack / "beside"), what
    assert beside == {"status": 0, "errors": beside["errors"]}
    assert (pack / "workspace" / "a.txt").read_text() == "a\n"
    assert (pack / "workspace" / "frozen.txt").read_text() == "frozen\n"

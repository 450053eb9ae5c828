"""Child processes, on their own: real ones, real signals, real leftovers."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from errno import E2BIG, EINVAL, ENOENT, ENOTDIR
from pathlib import Path
from typing import Any

import pytest

from crucible.runtime import process
from crucible.runtime.process import Command, Exit, Processes

LINUX = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("setsid") is None,
    reason="elsewhere what left its group is not found",
)
FOREVER = 600.0  # seconds that no test waits: what it counts on comes first


class Box:
    """A folder for commands, their output and what they say of themselves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made = 0

    def command(self, line: str, **variables: str) -> Command:
        """Return a command of the shell with output files of its own."""
        self.made += 1
        out = str(self.folder / f"{self.made}.out")
        environment = {"PATH": os.environ["PATH"], **variables}
        return Command(("sh", "-c", line), environment, str(self.folder), out, out.replace(".out", ".err"))

    def text(self, name: str) -> str:
        """Return what a file of the folder holds."""
        return (self.folder / name).read_text(encoding="utf-8")

    def until(self, name: str) -> None:
        """Wait for a file of the folder that holds something."""
        path = self.folder / name
        while not (path.exists() and path.stat().st_size):
            time.sleep(0.005)

    def is_alive(self, name: str) -> bool:
        """Tell whether the process whose number a file holds runs; one that nobody has buried does not."""
        number = int(self.text(name))
        with suppress(OSError):
            os.kill(number, 0)
            stat = Path(f"/proc/{number}/stat")
            return not stat.exists() or stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
        return False


@pytest.fixture
def box(tmp_path: Path) -> Box:
    """Return a box."""
    return Box(tmp_path)


@pytest.fixture
def processes() -> Iterator[Processes]:
    """Yield processes that are at work."""
    with Processes() as made:
        yield made


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give what is ended little time."""
    monkeypatch.setattr(process, "GRACE", 0.05)


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give what is ended the time to end by itself; what TERM does not reach, being just forked, is killed then."""
    monkeypatch.setattr(process, "GRACE", 10.0)


def how(exit_: Exit) -> tuple[int | None, int | None, str | None]:
    """Return the code, the signal and the cause of an exit."""
    assert exit_.fault is None
    return exit_.code, exit_.signal, exit_.cause


def test_a_command_ends_with_its_status_and_its_output_in_files(box: Box, processes: Processes) -> None:
    """Status, both outputs, and how much there was."""
    exit_ = processes.run(box.command('echo "$A"; echo err >&2; exit 3', A="one"))
    assert how(exit_) == (3, None, None)
    assert exit_.size == 4
    assert (box.text("1.out"), box.text("1.err")) == ("one\n", "err\n")


def test_a_signal_is_no_status(box: Box, processes: Processes) -> None:
    """A process that a signal ended has no status."""
    assert how(processes.run(box.command("kill -SEGV $$"))) == (None, signal.SIGSEGV, None)


def test_files_are_begun_anew_and_appended_to(box: Box, processes: Processes) -> None:
    """Nothing stale is left in a file; two streams in one file overwrite nothing."""
    command = box.command("echo a; echo b >&2; echo c")
    Path(command.out).write_text("stale\n" * 100, encoding="utf-8")
    processes.run(command._replace(err=command.out))
    assert box.text("1.out") == "a\nb\nc\n"


def test_a_child_stands_alone(box: Box, processes: Processes) -> None:
    """Own session and group, nothing on stdin, its directory; ours stays."""
    (box.folder / "below").mkdir()
    before = os.getcwd()
    script = "import os; print(os.getsid(0) == os.getpgrp() == os.getpid(), os.read(0, 1), os.getcwd())"
    command = box.command("")._replace(argv=(sys.executable, "-c", script), directory=str(box.folder / "below"))
    assert how(processes.run(command)) == (0, None, None)
    assert box.text("1.out").split() == ["True", "b''", os.path.realpath(command.directory)]
    assert os.getcwd() == before


@pytest.mark.parametrize("number", [signal.SIGPIPE, signal.SIGUSR1, signal.SIGHUP, signal.SIGCHLD])
def test_a_child_has_all_signals_as_the_system_has_them(box: Box, number: signal.Signals) -> None:
    """What we ignore or hold back is neither to the child."""
    before = signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    try:
        with Processes() as processes:
            exit_ = processes.run(box.command(f"kill -{number.name[3:]} $$; echo alive"))
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
        signal.signal(number, before)
    expected = (0, None, None) if number is signal.SIGCHLD else (None, number, None)
    assert how(exit_) == expected


def test_a_child_inherits_no_descriptor(box: Box) -> None:
    """A pipe of somebody else that we inherited is not held open by a child."""
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)  # noqa: FBT003 - it has no name
    with Processes() as processes:
        exit_ = processes.run(box.command(f'{sys.executable} -c "import os; os.fstat({writing})" 2>/dev/null'))
    os.close(reading)
    os.close(writing)
    assert how(exit_) == (1, None, None)


def test_many_run_at_once_and_each_is_returned_once(box: Box, processes: Processes) -> None:
    """Every command comes back with its own exit, in whatever order they end."""
    handles = {processes.start(box.command(f"exit {number}")): number for number in range(40)}
    found: dict[int, int | None] = {}
    while len(found) < len(handles):
        for handle, exit_ in processes.wait(None):
            assert handle not in found
            found[handle] = exit_.code
    assert found == handles
    assert processes.wait(None) == []


def test_waiting_has_an_end(box: Box, processes: Processes) -> None:
    """Nothing comes back when the time is over and all runs on."""
    handle = processes.start(box.command(f"sleep {FOREVER}"))
    assert processes.wait(time.monotonic() + 0.01) == []
    assert processes.wait(0.0) == []
    processes.end(handle, "enough")
    [(ended, exit_)] = processes.wait(None)
    assert (ended, how(exit_)) == (handle, (None, signal.SIGTERM, "enough"))


def test_what_has_ended_by_itself_is_not_ended_by_us(box: Box, processes: Processes) -> None:
    """Ending what is over changes nothing, nor does a second cause."""
    handle = processes.start(box.command("echo $$ >pid; exit 4"))
    box.until("pid")
    while box.is_alive("pid"):
        time.sleep(0.005)
    processes.end(handle, "too late")
    assert [how(exit_) for _, exit_ in processes.wait(None)] == [(4, None, None)]
    processes.end(handle, "gone")
    handle = processes.start(box.command(f"sleep {FOREVER}"))
    processes.end(handle, "first")
    processes.end(handle, "second")
    assert [exit_.cause for _, exit_ in processes.wait(None)] == ["first"]


@pytest.mark.usefixtures("short")
def test_what_ignores_term_is_killed(box: Box, processes: Processes) -> None:
    """The whole group is killed when TERM does not end it."""
    handle = processes.start(
        box.command(f"trap '' TERM; sleep {FOREVER} & echo $! >one; sleep {FOREVER} & echo $! >two; wait")
    )
    box.until("two")
    processes.end(handle, "ended by --max-time")
    [(_, exit_)] = processes.wait(None)
    assert how(exit_) == (None, signal.SIGKILL, "ended by --max-time")
    assert not box.is_alive("one")
    assert not box.is_alive("two")


@pytest.mark.usefixtures("long")
def test_term_lets_a_child_end_in_order(box: Box, processes: Processes) -> None:
    """What ends by itself at TERM has its own status; that we ended it is said all the same."""
    handle = processes.start(box.command(f"trap 'exit 7' TERM; echo >ready; sleep {FOREVER} & wait"))
    box.until("ready")
    processes.end(handle, "enough")
    assert [how(exit_) for _, exit_ in processes.wait(None)] == [(7, None, "enough")]


@pytest.mark.usefixtures("long")
def test_a_stopped_child_hears_term(box: Box, processes: Processes) -> None:
    """A process that stopped itself is ended like any other."""
    handle = processes.start(box.command("echo $$ >pid; kill -STOP $$; echo on"))
    box.until("pid")
    processes.end(handle, "enough")
    assert [how(exit_) for _, exit_ in processes.wait(None)] == [(None, signal.SIGTERM, "enough")]


LEFT = {
    "in the group": f"sleep {FOREVER} & echo $! >pid",
    "of a subshell": f"(sleep {FOREVER} & echo $! >pid) & wait",
    "stopped": f"sleep {FOREVER} & echo $! >pid; kill -STOP $!",
}
LEFT_THE_GROUP = {
    "a session of its own": f"setsid sleep {FOREVER} & echo $! >pid; wait_for_it",
    "an orphan": f"setsid sh -c 'sleep {FOREVER} & echo $! >pid'; wait_for_it",
    "nothing to tell whose": f"env -i setsid sh -c 'echo $$ >pid; exec sleep {FOREVER}' & wait_for_it",
    "a daemon that has left another": "setsid sh -c 'echo $$ >pid; "
    f'setsid sh -c "echo \\$\\$ >two; exec sleep {FOREVER}" & sleep {FOREVER}\' & until [ -s two ]; do :; done',
}


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize(
    "line",
    [*LEFT.values(), *(pytest.param(line, marks=LINUX) for line in LEFT_THE_GROUP.values())],
    ids=[*LEFT, *LEFT_THE_GROUP],
)
def test_what_a_command_leaves_behind_is_ended(box: Box, processes: Processes, line: str) -> None:
    """A command is over when nothing of it runs any more; its status is its own."""
    line = line.replace("wait_for_it", "until [ -s pid ]; do :; done")
    exit_ = processes.run(box.command(f"{line}\necho '{{}}'"))
    assert how(exit_) == (0, None, None)
    assert not box.is_alive("pid")
    if (box.folder / "two").exists():
        assert not box.is_alive("two")


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("before", ["", pytest.param("setsid ", marks=LINUX)], ids=["in the group", "left the group"])
def test_leftovers_that_ignore_term_are_killed(box: Box, processes: Processes, before: str) -> None:
    """A background process gets its time, and no more."""
    inner = f"{before}sh -c 'trap \"\" TERM; echo $$ >pid; sleep {FOREVER}'"
    exit_ = processes.run(box.command(f"{inner} & until [ -s pid ]; do :; done"))
    assert how(exit_) == (0, None, None)
    assert not box.is_alive("pid")


@pytest.mark.usefixtures("long")
def test_what_leftovers_say_at_their_end_is_behind_the_size(box: Box, processes: Processes) -> None:
    """A server in the background may say goodbye; that is no output of the command."""
    server = f"(trap 'echo stopped; exit' TERM; echo >ready; sleep {FOREVER} & wait)"
    exit_ = processes.run(box.command(f"{server} & until [ -e ready ]; do :; done; echo '{{}}'"))
    assert how(exit_) == (0, None, None)
    assert box.text("1.out") == "{}\nstopped\n"
    assert exit_.size == 3


@LINUX
@pytest.mark.usefixtures("long")
def test_an_orphan_lives_as_long_as_its_own_command(box: Box, processes: Processes) -> None:
    """The end of a neighbour ends no daemon of a command that runs on."""
    daemon = f"(setsid sh -c 'echo $$ >pid; exec sleep {FOREVER}' &)"
    own = processes.start(box.command(f"{daemon}; until [ -e go ]; do sleep 0.01; done"))
    box.until("pid")
    assert processes.run(box.command("true")).code == 0
    assert box.is_alive("pid")
    (box.folder / "go").touch()
    assert [handle for handle, _ in processes.wait(None)] == [own]
    assert not box.is_alive("pid")


@LINUX
def test_dead_orphans_are_buried_while_their_command_runs(box: Box, processes: Processes) -> None:
    """A command that leaves many processes leaves no zombies with us."""
    line = "for i in 1 2 3 4 5 6 7 8 9; do (setsid true &); done; echo >ready; until [ -e go ]; do sleep 0.01; done"
    handle = processes.start(box.command(line))
    box.until("ready")
    found = 9
    while found > 1:  # what counts is that it comes to this
        processes.wait(time.monotonic() + 0.01)
        found = len(Path(f"/proc/self/task/{os.getpid()}/children").read_bytes().split())
    (box.folder / "go").touch()
    assert [ended for ended, _ in processes.wait(None)] == [handle]


def test_children_of_others_are_left_alone(box: Box) -> None:
    """A process that was ours before is neither ended nor awaited."""
    with subprocess.Popen(["sleep", str(FOREVER)], start_new_session=True) as other:
        with Processes() as processes:
            assert processes.run(box.command("true")).code == 0
        assert other.poll() is None
        other.kill()
        assert other.wait() == -signal.SIGKILL


FAULTS: dict[str, tuple[Callable[[Command], Command], int, Callable[[Command], str]]] = {
    "no directory": (lambda c: c._replace(directory=c.directory + "/no"), ENOENT, lambda c: c.directory),
    "a directory that is a file": (lambda c: c._replace(directory=__file__), ENOTDIR, lambda c: c.directory),
    "no room for the output": (lambda c: c._replace(out="/no/out"), ENOENT, lambda c: c.out),
    "no room for the errors": (lambda c: c._replace(err="/no/err"), ENOENT, lambda c: c.err),
    "no such program": (lambda c: c._replace(argv=("no-such-program",)), ENOENT, lambda c: c.argv[0]),
    "a NUL byte": (lambda c: c._replace(argv=("sh", "-c", "a\0b")), EINVAL, lambda c: c.argv[0]),
    "a NUL byte in a variable": (lambda c: c._replace(environment={"A": "\0"}), EINVAL, lambda c: c.argv[0]),
    "too much for the system": (lambda c: c._replace(argv=("sh", "-c", "#" * 3_000_000)), E2BIG, lambda c: c.argv[0]),
}


@pytest.mark.parametrize(("change", "number", "what"), FAULTS.values(), ids=FAULTS)
def test_what_cannot_be_started_says_why(
    box: Box, processes: Processes, change: Callable[[Command], Command], number: int, what: Callable[[Command], str]
) -> None:
    """The fault names the thing that is wrong; nothing was started, and our directory stays."""
    before = os.getcwd()
    command = change(box.command("touch never"))
    exit_ = processes.run(command)
    assert exit_.fault is not None
    assert (exit_.fault.errno, exit_.fault.filename) == (number, what(command))
    assert exit_._replace(fault=None) == Exit(None)
    assert os.getcwd() == before
    assert not (box.folder / "never").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_wait_and_is_noted(box: Box, processes: Processes, number: signal.Signals) -> None:
    """A signal to us ends nothing by itself; the wait comes back, and who waited sees it."""
    processes.start(box.command(f"kill -{number.name[3:]} $PPID; sleep {FOREVER}"))
    assert processes.wait(None) == []
    assert processes.caught == number


def test_a_signal_between_two_waits_ends_the_next_one(box: Box, processes: Processes) -> None:
    """No signal is lost, and each ends one wait."""
    processes.start(box.command(f"sleep {FOREVER}"))
    os.kill(os.getpid(), signal.SIGINT)
    assert processes.wait(None) == []
    assert processes.wait(time.monotonic() + 0.01) == []
    os.kill(os.getpid(), signal.SIGTERM)
    assert processes.wait(None) == []
    assert processes.caught == signal.SIGINT


def test_one_signal_does_not_end_what_is_steadfast(box: Box, processes: Processes) -> None:
    """It is noted, and the command goes on to its own end; a second one ends it."""
    done = processes.run(box.command("kill -INT $PPID; sleep 0.1; echo whole >said"), is_steadfast=True)
    assert (how(done), box.text("said").strip(), processes.caught) == ((0, None, None), "whole", 2)
    done = processes.run(box.command(f"kill -INT $PPID; sleep 0.1; kill -INT $PPID; sleep {FOREVER}"),
                         is_steadfast=True)  # fmt: skip
    assert done.cause == "interrupted"


def test_a_second_signal_kills_at_once(box: Box, processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks twice does not wait for what ignores TERM."""
    monkeypatch.setattr(process, "GRACE", FOREVER)
    handle = processes.start(box.command(f"trap '' TERM; echo >ready; sleep {FOREVER}"))
    box.until("ready")
    os.kill(os.getpid(), signal.SIGINT)
    processes.wait(None)
    processes.end(handle, "interrupted")
    assert processes.wait(time.monotonic() + 0.01) == []
    os.kill(os.getpid(), signal.SIGINT)
    found = processes.wait(None) or processes.wait(None)
    assert [how(exit_) for _, exit_ in found] == [(None, signal.SIGKILL, "interrupted")]


def test_run_is_ended_by_a_signal_and_cleaning_up_is_not(box: Box, processes: Processes) -> None:
    """A signal while it runs ends a command; one that begins afterwards runs to its end."""
    exit_ = processes.run(box.command(f"kill -INT $PPID; sleep {FOREVER}"))
    assert how(exit_) == (None, signal.SIGTERM, "interrupted")
    processes.start(box.command("echo >other"))
    box.until("other")
    assert how(processes.run(box.command("sleep 0.05; exit 5"))) == (5, None, None)


def test_run_keeps_what_else_ends(box: Box, processes: Processes) -> None:
    """What ended while another command was run comes with the next wait."""
    first = processes.start(box.command("touch first; exit 1"))
    assert processes.run(box.command("until [ -e first ]; do :; done; sleep 0.05")).code == 0
    assert [(handle, exit_.code) for handle, exit_ in processes.wait(None)] == [(first, 1)]


@pytest.mark.usefixtures("long")
def test_leaving_ends_everything_and_gives_the_signals_back(box: Box) -> None:
    """Behind the context nothing runs, and signals do what they did."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)]
    with pytest.raises(ZeroDivisionError), Processes() as processes:
        processes.start(box.command(f"echo $$ >pid; sleep {FOREVER}"))
        box.until("pid")
        _ = 1 // 0
    assert not box.is_alive("pid")
    after = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)]
    assert after == before
    assert signal.set_wakeup_fd(-1) == -1


def test_an_ignored_signal_stays_ignored(box: Box) -> None:
    """Under nohup a hang-up is no reason to end."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Processes() as processes:
            assert processes.run(box.command("kill -HUP $PPID; sleep 0.05; exit 6")).code == 6
            assert processes.caught is None
    finally:
        signal.signal(signal.SIGHUP, before)


PROGRAM = """\
import os, sys
from crucible.runtime.process import Command, Processes
folder, line = sys.argv[1:]
with Processes() as processes:
    out = os.path.join(folder, "out")
    handle = processes.start(Command(("sh", "-c", line), os.environ, folder, out, out))
    while not (found := processes.wait(None)):
        processes.end(handle, "interrupted")
        open(os.path.join(folder, "told"), "w").write("once")
open(os.path.join(folder, "said"), "w").write(f"{processes.caught} {found[0][1][:2]}")
"""
UNDER_A_TERMINAL = "import pty, sys; pty.spawn(sys.argv[1:])"


@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])
def test_ctrl_c_on_a_terminal_reaches_us_alone(box: Box, times: int) -> None:
    """The terminal signals its foreground group; the child has a session of its own and is ended by us."""
    own = "trap 'touch heard' INT; " + ("trap '' TERM; " if times > 1 else "")
    line = f"{own}echo $$ >pid; until [ -e never ]; do sleep 0.01; done"
    argv = [sys.executable, "-c", UNDER_A_TERMINAL, sys.executable, "-c", PROGRAM, str(box.folder), line]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True) as outer:
        assert outer.stdin is not None
        box.until("pid")
        for name in ("told", "said")[-times:]:
            outer.stdin.write(b"\x03")
            outer.stdin.flush()
            box.until(name)
        outer.stdin.close()
    assert not box.is_alive("pid")
    assert not (box.folder / "heard").exists()
    ended_by = signal.SIGKILL if times > 1 else signal.SIGTERM
    assert box.text("said") == f"{int(signal.SIGINT)} (None, {int(ended_by)})"


def test_the_system_that_adopts_no_orphans_still_ends_groups(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where orphans do not come to us, a group is looked at until it is gone."""
    nothing: Any = lambda **_: None  # noqa: E731 - in the place of a function
    monkeypatch.setattr(process, "_adopt", nothing)
    monkeypatch.setattr(Processes, "_born", lambda _: [])
    with Processes() as processes:
        assert processes.run(box.command(f"sleep {FOREVER} & echo $! >pid")).code == 0
    assert not box.is_alive("pid")

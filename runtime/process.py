"""Child processes: each in a session of its own, its output in files, ended with everything that it left behind.

In: commands. Out: how each ended. One thread runs as many as it likes, and there is no pipe: what a child
prints goes straight into its files, so that nothing blocks, whoever holds them and however much it is. What
outlives its leader is ended, too; on Linux that includes what left the group, since an orphan of ours becomes our
child there (prctl(2), PR_SET_CHILD_SUBREAPER), and a variable in its environment tells to which command it belongs.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
import time
from contextlib import suppress
from math import ceil

from crucible.schemas.light import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType, TracebackType
    from typing import Any, Final, Self

GRACE: Final = 5.0  # seconds between TERM and KILL
INTERRUPTED: Final = "interrupted"
_LAST_LOOK: Final = 1.0  # seconds after KILL: what is left then cannot be ended
_TICK: Final = 0.02  # seconds between two looks at what is being ended: only children of ours announce their end
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A child begins with every signal as the system has it, whatever we ignore or inherited.
_DEFAULT: Final = tuple(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
MARK: Final = "CRUCIBLE_RUN"  # the variable that tells to which run a process belongs
# A task may have put a pipe or a link in the place of the next one's log: opening that neither waits nor follows.
_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
_MODE: Final = 0o666
_REACH: Final[int] = getattr(os, "O_PATH", os.O_RDONLY)  # a folder that nobody may list can be gone back to as well
_SUBREAPER: Final = 36
_FIRST_FREE: Final = 3  # descriptor behind stdin, stdout and stderr
_MOST_BYTES: Final = 1 << 16  # of what is read at once
_NOW: Final = 2  # signals after which nobody waits


class Command(NamedTuple):
    """What to run: a program looked up on PATH, its whole environment, and absolute paths.

    The files ``out`` and ``err`` are made anew and appended to; they may be the same one. Text is what
    ``os.fsencode`` can write. ``then`` is called when the process has ended and what it left has not.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    directory: str
    out: str
    err: str
    then: Callable[[], object] | None = None


class Exit(NamedTuple):
    """What came of a command.

    ``code`` is None when a signal ended it or it never started; ``cause`` says why we ended it, and
    ``fault`` why it could not be started: its ``filename`` is that of the directory, a file or the program.
    ``size`` is how long ``out`` was when the process ended: what its leftovers print is no part of it; nor is
    what they write elsewhere of ``then``, what the command's own ``then`` returned.
    """

    code: int | None
    signal: int | None = None
    seconds: float = 0.0
    cause: str | None = None
    fault: OSError | None = None
    size: int = 0
    then: Any = None


class _Child:
    """A process that was started and not yet given back: its leader runs, or what it left is being ended."""

    __slots__ = ("cause", "command", "exit", "kill_at", "pid", "started", "told")

    def __init__(self, pid: int, started: float, command: Command) -> None:
        self.pid = pid
        self.started = started
        self.command = command
        self.exit: Exit | None = None
        self.cause: str | None = None
        self.kill_at: float | None = None
        self.told: set[int] = set()  # what TERM was sent to: processes, and groups as negative numbers


class Processes:
    """The running commands of one thread, the main one; a context manager that leaves nothing running.

    Within it SIGINT, SIGTERM and SIGHUP are noted instead of obeyed, except those that are ignored: ``caught``
    is the first. After a second one nobody gets time to end by itself any more. No other code may start or
    await processes meanwhile.
    """

    def __init__(self) -> None:
        self.caught: int | None = None
        self.limit: tuple[float, str] | None = None
        self._children: dict[int, _Child] = {}
        self._over: list[tuple[int, Exit]] = []
        self._last = 0
        self._signals = 0
        self._told = 0  # signals that a wait has ended for
        self._mark = f"{os.getpid()}."
        self._handlers: dict[int, Any] = {}
        self._foreign: set[int] = set()
        self._listing: int | None = None

    def __enter__(self) -> Self:
        self._home = os.open(".", _REACH | os.O_DIRECTORY)
        self._wake, self._waker = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._waker, False)
        self._poll = select.poll()
        self._poll.register(self._wake, select.POLLIN)
        self._handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, _ignore)
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._handlers[number] = signal.signal(number, self._catch)
        self._mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, self._handlers)  # we may have inherited any
        self._outer_waker = signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        _keep_descriptors()
        _adopt(orphans=True)
        with suppress(OSError):  # not every system tells
            own = os.getpid()  # also the number of the main thread, to which orphans come
            self._listing = os.open(f"/proc/{own}/task/{own}/children", os.O_RDONLY)
        self._foreign = set(self._born())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for handle in tuple(self._children):
                self.end(handle, INTERRUPTED)
            while self._children:
                self.wait(None)
        finally:
            _adopt(orphans=False)
            signal.set_wakeup_fd(self._outer_waker)
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            for handled, handler in self._handlers.items():
                signal.signal(handled, signal.SIG_DFL if handler is None else handler)
            for descriptor in (self._home, self._wake, self._waker, self._listing):
                if descriptor is not None:
                    os.close(descriptor)

    @property
    def leaves_none(self) -> bool:
        """Tell whether all that a command leaves is found, wherever it went, and ended."""
        return self._listing is not None

    def start(self, command: Command) -> int:
        """Start a command and return its handle; ``wait`` tells what the system refuses, too."""
        self._last += 1
        started = time.monotonic()
        try:
            pid = self._spawn(command)
        except OSError as fault:
            self._over.append((self._last, Exit(None, fault=fault)))
        except ValueError as error:  # no argument, variable or path has a NUL byte, or what cannot be encoded
            self._over.append((self._last, Exit(None, fault=OSError(errno.EINVAL, str(error), command.argv[0]))))
        else:
            self._children[self._last] = _Child(pid, started, command)
        return self._last

    def wait(self, until: float | None) -> list[tuple[int, Exit]]:
        """Wait for commands to end and return them; one has ended when nothing of it is left.

        Return none at ``until`` (of time.monotonic), at a signal that is ``caught``, and when nothing runs that
        could end.
        """
        while not self._over:
            now = time.monotonic()
            alarms = [
                now + _TICK if child.exit is not None else max(child.kill_at, now + _TICK)
                for child in self._children.values()
                if child.kill_at is not None
            ]
            alarms += [] if until is None else [until]
            if self._told != self._signals or not (alarms or self._children):
                break
            alarm = max(0, ceil((min(alarms) - now) * 1000)) if alarms else None
            if self._poll.poll(alarm):
                os.read(self._wake, _MOST_BYTES)
            self._look()
            if until is not None and time.monotonic() >= until:
                break
        self._told = self._signals
        over, self._over = self._over, []
        return over

    def end(self, handle: int, cause: str) -> None:
        """End a command: TERM to its group now, KILL after the grace; its exit will have the cause.

        One that has ended by itself, or is being ended, stays as it is.
        """
        child = self._children.get(handle)
        if child is None or child.kill_at is not None:
            return
        self._bury(child)
        if child.exit is None:
            child.cause = cause
            child.kill_at = time.monotonic() + GRACE
            self._press(child, [-child.pid])

    def run(self, command: Command, cause: str = INTERRUPTED, *, is_steadfast: bool = False) -> Exit:
        """Run a command to its end; what else ends meanwhile is kept for the next ``wait``.

        A signal that arrives while it runs ends it with the cause, the second one does where it ``is_steadfast``; so
        does the moment of the ``limit``, with its own.
        """
        before = self._signals + is_steadfast
        limit = self.limit
        handle = self.start(command)
        kept: list[tuple[int, Exit]] = []
        while True:
            for number, exit_ in self.wait(None if limit is None else limit[0]):
                if number == handle:
                    found = exit_
                    break
                kept.append((number, exit_))
            else:
                if self._signals > before:
                    self.end(handle, cause)
                elif limit is not None and time.monotonic() >= limit[0]:
                    self.end(handle, limit[1])
                    limit = None
                continue
            break
        self._over = kept + self._over
        return found

    @property
    def stopped(self) -> str | None:
        """Return why nothing more is to be begun outside of ``start``, None while it may."""
        if self.caught is not None:
            return INTERRUPTED
        return self.limit[1] if self.limit is not None and time.monotonic() >= self.limit[0] else None

    def _catch(self, number: int, _frame: FrameType | None) -> None:
        self._signals += 1
        if self.caught is None:
            self.caught = number

    def _spawn(self, command: Command) -> int:
        """Start the process of a command in its directory; the file that is wrong is in the OSError."""
        actions = (
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, command.out, _FLAGS, _MODE),
            (os.POSIX_SPAWN_OPEN, 2, command.err, _FLAGS, _MODE),
        )
        environment = {**command.environment, MARK: f"{self._mark}{self._last}"}
        os.chdir(command.directory)
        try:
            return os.posix_spawnp(
                command.argv[0],
                command.argv,
                environment,
                file_actions=actions,
                setsid=True,
                setsigmask=(),
                setsigdef=_DEFAULT,
            )
        except OSError:
            for path in (command.out, command.err):  # the system does not tell which of the files it was
                os.close(os.open(path, _FLAGS, _MODE))
            raise
        finally:
            os.fchdir(self._home)

    def _look(self) -> None:
        """Note which leaders have ended, press what they left, and give back what is gone."""
        ended = [handle for handle, child in self._children.items() if self._bury(child)]
        now = time.monotonic()
        for child in self._children.values():
            if child.exit is None and child.kill_at is not None:
                self._press(child, [-child.pid])
        # Before the orphans: a process of a group that dies may leave one.
        groups = [handle for handle in ended if _send(-self._children[handle].pid, 0)]
        orphans = self._orphans()
        is_last = len(ended) == len(self._children)
        for handle in ended:
            child = self._children[handle]
            left = [pid for pid, owner in orphans.items() if owner == handle or (is_last and owner is None)]
            left += [-child.pid] * (handle in groups)
            if left and child.kill_at is None:
                child.kill_at = now + GRACE
            if left and child.kill_at is not None and now < child.kill_at + _LAST_LOOK:
                self._press(child, left)
            elif child.exit is not None:
                self._foreign.update(left)  # what even KILL did not end: nobody waits for it again
                del self._children[handle]
                self._over.append((handle, child.exit))

    def _bury(self, child: _Child) -> bool:
        """Tell whether the leader has ended, and note how."""
        if child.exit is None:
            try:
                pid, status = os.waitpid(child.pid, os.WNOHANG)
            except ChildProcessError as fault:  # somebody else took it
                child.exit = Exit(None, fault=fault)
                return True
            if not pid:
                return False
            seconds = time.monotonic() - child.started
            code = os.waitstatus_to_exitcode(status)
            size = 0
            with suppress(OSError):
                size = os.stat(child.command.out).st_size
            by = -code if code < 0 else None
            then = None if child.command.then is None else child.command.then()
            child.exit = Exit(None if by else code, by, seconds, child.cause, None, size, then)
        return True

    def _press(self, child: _Child, left: list[int]) -> None:
        """Send TERM to what has not had it yet, KILL when the grace is over; a stopped process gets to hear it."""
        is_late = self._signals >= _NOW or (child.kill_at is not None and time.monotonic() >= child.kill_at)
        for target in left:
            if is_late:
                _send(target, signal.SIGKILL)
            elif target not in child.told:
                child.told.add(target)
                if not _send(target, signal.SIGTERM):
                    self._foreign.add(target)  # it has become somebody else's
                _send(target, signal.SIGCONT)

    def _orphans(self) -> dict[int, int | None]:
        """Return the living processes that came to us, each with the handle of its command; bury the dead ones."""
        leaders = {child.pid for child in self._children.values() if child.exit is None}
        while True:
            found = [pid for pid in self._born() if pid not in leaders and pid not in self._foreign]
            living = [pid for pid in found if not _is_buried(pid)]
            if len(living) == len(found):  # else they may have left others
                return {pid: self._owner(pid) for pid in living}

    def _born(self) -> list[int]:
        """Return the numbers of all our children, none where the system does not tell."""
        if self._listing is None:
            return []
        # A space follows each number; without one a number was cut off.
        return [int(word) for word in os.pread(self._listing, _MOST_BYTES, 0).rpartition(b" ")[0].split()]

    def _owner(self, pid: int) -> int | None:
        """Return the handle of the command that an orphan belongs to, None when nothing tells."""
        with suppress(OSError, ValueError):
            with open(f"/proc/{pid}/environ", "rb") as file:
                variables = file.read().split(b"\0")
            start = f"{MARK}={self._mark}".encode()
            for variable in variables:
                if variable.startswith(start):
                    handle = int(variable[len(start) :])
                    return handle if handle in self._children else None
        return None


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: a signal with a handler wakes who waits, an ignored one does not."""


def _send(target: int, number: int) -> bool:
    """Send a signal to a process, or to a group as a negative number; tell whether there was somebody to get it."""
    try:
        os.kill(target, number)
    except OSError:  # gone, or not ours any more
        return False
    return True


def _is_buried(pid: int) -> bool:
    """Tell whether an orphan was dead; it is no zombie any more."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True


def _keep_descriptors() -> None:
    """Keep for ourselves what we inherited: a child that holds a pipe of others lets them wait."""
    with suppress(OSError):
        for name in os.listdir("/dev/fd"):
            if int(name) >= _FIRST_FREE:
                with suppress(OSError):  # that of the listing
                    os.set_inheritable(int(name), False)  # noqa: FBT003 - it has no name


def _adopt(*, orphans: bool) -> None:
    """Let orphans of our descendants become our children, or not, where the system can."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError, ImportError):
            from _ctypes import call_function, dlopen, dlsym  # importing ctypes costs a millisecond more

            program = dlopen(None, 0)  # type: ignore[arg-type]  # its own stub does not know it
            call_function(dlsym(program, "prctl"), (_SUBREAPER, int(orphans), 0, 0, 0))

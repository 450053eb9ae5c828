"""The parent's side of an evaluation: starts the child, feeds it, bounds it, buries it.

A crash, a hang or an overrun of the child becomes a Death with the code and the text of a
diagnostic; nothing that the child sends is trusted. The pack's files are served to it by a function.
"""

import json
import os
import select
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, Self

from crucible.compiler.frontend.limits import Limits

_GRACE: Final = 0.5
_OUT_OF_MEMORY: Final = 3  # the exit status of a child that has no memory left to say so
_PATIENCE: Final = 0.2
_SLOW: Final = 1.0
# As Linux and macOS number them; importing signal costs a millisecond.
_TERM, _KILL, _ALARM, _CPU, _PROFILED = 15, 9, 14, 24, 27
_MOST_BYTES: Final = 64 << 20  # of all messages together
_MOST_STDERR: Final = 4096
_SERVED: Final = {"ask", "at", "more"}  # what a message has that is no answer
_PROGRAM: Final = (
    "import sys;sys.path[:]=sys.argv.pop().split(chr(10));from crucible.compiler.frontend.evaluate import main;main()"
)
Reply = dict[str, Any]


class Death(Exception):
    """The child is gone or was ended: a code and a message, and whether its memory was the reason."""

    def __init__(self, code: str, message: str, *, heap: bool = False) -> None:
        """Keep what a diagnostic says of it."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.heap = heap


class Child:
    """A process that was started for one evaluation; this one is our own child."""

    def __init__(self, pid: int) -> None:
        """Take over a process by its number."""
        self._pid = pid

    def kill(self, sign: int) -> None:
        """Send a signal to the process, if it is still there."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, sign)

    def reap(self, *, block: bool) -> int | None:
        """Return the wait status of the dead process, None while it lives; with ``block`` wait for it.

        The status is 0 when the system has reaped it already.
        """
        try:
            pid, status = os.waitpid(self._pid, 0 if block else os.WNOHANG)
        except ChildProcessError:  # SIGCHLD is ignored: that is inherited from whoever started us
            return 0
        return status if pid else None

    def is_stopped(self) -> bool:
        """Tell whether somebody has stopped the process; False where the system does not tell."""
        if not hasattr(os, "waitid"):
            return False
        try:
            return os.waitid(os.P_PID, self._pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return False

    def dismiss(self) -> None:
        """End and reap a process that has nothing more to do, were it stopped; its channel is closed."""
        self.kill(_KILL)
        self.reap(block=True)


class Channel(NamedTuple):
    """A child with the descriptors to write to it and to read its answers and its stderr from."""

    child: Child
    to: int
    answers: int
    errors: int

    def close(self) -> None:
        """Close the descriptors; the child is left to its own."""
        for descriptor in (self.to, self.answers, self.errors):
            os.close(descriptor)


def open_channel(start: Callable[[int, int, int], Child]) -> Channel:
    """Start a child on three new pipes; ``start`` gets its ends as stdin, stdout and stderr."""
    ours: list[int] = []
    theirs: list[int] = []
    try:
        for for_reading in (True, False, False):
            end, other = os.pipe()
            theirs.append(end if for_reading else other)
            ours.append(other if for_reading else end)
        child = start(theirs[0], theirs[1], theirs[2])
    except BaseException:
        for descriptor in ours:
            os.close(descriptor)
        raise
    finally:
        for descriptor in theirs:
            os.close(descriptor)
    os.set_blocking(ours[0], False)
    return Channel(child, ours[0], ours[1], ours[2])


def fresh() -> Channel:
    """Start a fresh interpreter for one evaluation, in a session of its own with an empty environment."""
    return open_channel(lambda stdin, stdout, stderr: Child(start_program("main", stdin, stdout, stderr)))


class Sandbox:
    """One child process for one evaluation, with its channel and its clock.

    ``serve`` answers what the child asks for (modules, prompts) with a message; ``connect`` gives the
    process, a fresh interpreter unless a pool (pool.py) has a warmed one. Use it as a context manager:
    leaving it ends the child, whatever has happened. ``when_slow`` is called once when an answer takes
    a second; it may raise Death to give up. What the child tells on its way ("more" call records, the
    statement that it is "at") is served, too, and gets no reply.
    """

    def __init__(
        self,
        limits: Limits,
        serve: Callable[[Reply], Reply | None],
        connect: Callable[[], Channel] = fresh,
    ) -> None:
        """Start the clock, and let the child set its limits before it reads anything else."""
        self._limits = limits
        self._serve = serve
        self._left = limits.seconds + _GRACE
        self._deadline: float | None = None
        self._stderr = b""
        self._received = 0
        self._buffer = bytearray()
        self._status: int | None = None
        self._is_open = True
        self.when_slow: Callable[[], None] | None = None
        self._channel = connect()
        self._child = self._channel.child
        self._to, self._from, self._errors = self._channel.to, self._channel.answers, self._channel.errors
        try:
            with suppress(Death):  # the next message says so again
                self.begin({"seconds": limits.seconds, "heap_bytes": limits.heap_bytes})
            self._stop_clock()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End and reap the child and close the channel; may be called twice."""
        if self._is_open:
            self._is_open = False
            self._channel.close()
            if self._status is None:
                self._child.dismiss()

    def ask(self, request: Reply) -> Reply:
        """Send a request and return the answer, serving what the child asks for meanwhile.

        Raises Death when the child dies, writes to stderr, sends what is no message, or is too slow.
        """
        self.begin(request)
        return self.finish()

    def begin(self, request: Reply) -> None:
        """Send a request without waiting for the answer; the clock goes on where it stopped."""
        if self._deadline is None:
            self._deadline = time.monotonic() + self._left
        data = json.dumps(request, separators=(",", ":")).encode()
        self._write(len(data).to_bytes(4, "big") + data)

    def finish(self) -> Reply:
        """Wait for the answer to the request that was begun."""
        while True:
            message = self._message()
            if not message.keys() & _SERVED:
                self._stop_clock()
                return message
            try:
                reply = self._serve(message)
            except (LookupError, TypeError, ValueError):
                raise self._crashed("it asked for what nobody asks for") from None
            if reply is not None:
                self.begin(reply)

    def _stop_clock(self) -> None:
        """Stop the clock until the next request: what we do between two is no part of the evaluation."""
        if self._deadline is not None:
            self._left, self._deadline = self._deadline - time.monotonic(), None

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._to, view) :]
            except BlockingIOError:
                self._wait(writing=True)
            except BrokenPipeError:
                raise self._dead() from None

    def _message(self) -> Reply:
        """Read one message."""
        size = int.from_bytes(self._take(4), "big")
        self._received += size
        if self._received > _MOST_BYTES:
            message = f"what the source evaluates to may have {_MOST_BYTES:,} bytes; this is {self._received:,}"
            raise Death("limit-exceeded", message)
        try:
            message = json.loads(self._take(size))
        except (ValueError, RecursionError):
            raise self._crashed("it sent what is no message") from None
        if not isinstance(message, dict):
            raise self._crashed("it sent what is no message")
        return message

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._wait(writing=False)
            block = os.read(self._from, 1 << 18)
            if not block:
                raise self._dead()
            self._buffer += block
        with memoryview(self._buffer) as view:
            data = bytes(view[:size])
        del self._buffer[:size]
        return data

    def _wait(self, *, writing: bool) -> None:
        """Wait until the channel is ready; any byte on stderr and the clock end the child."""
        poll = select.poll()
        poll.register(self._errors, select.POLLIN)
        poll.register(self._to if writing else self._from, select.POLLOUT if writing else select.POLLIN)
        while True:
            left = self._left if self._deadline is None else self._deadline - time.monotonic()
            pause = left if self.when_slow is None else min(left, _SLOW)
            ready = poll.poll(max(pause, 0) * 1000) if left > 0 else []
            if not ready and left > pause and self.when_slow is not None:
                ask, self.when_slow = self.when_slow, None
                ask()
                continue
            if not ready:
                self._end()
                raise self._too_slow()
            if any(descriptor != self._errors for descriptor, _ in ready):
                return  # what it wrote before it died is read first
            if ready[0][1] & select.POLLIN:
                self._stderr += os.read(self._errors, _MOST_STDERR)
                raise self._dead()
            poll.unregister(self._errors)

    def _dead(self) -> Death:
        """End the child if need be and say what it died of."""
        while len(self._stderr) < _MOST_STDERR:
            poll = select.poll()
            poll.register(self._errors, select.POLLIN)
            if not poll.poll(50):
                break
            block = os.read(self._errors, _MOST_STDERR)
            if not block:
                break
            self._stderr += block
        self._end()
        status = self._status or 0
        said = self._stderr.decode(errors="replace")
        words = said.lower()
        if (os.WIFEXITED(status) and os.WEXITSTATUS(status) == _OUT_OF_MEMORY) or any(
            w in words for w in ("memory", "capacity", "alloc", "alignedsize")
        ):
            return Death("limit-exceeded", heap_is_full(self._limits), heap=True)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (_CPU, _ALARM):
            return self._too_slow()
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == _PROFILED:
            return Death("limit-exceeded", _allowed())
        first = said.strip().split("\n", 1)[0][:200]
        return self._crashed(first or _how(status))

    def _too_slow(self) -> Death:
        seconds = self._limits.seconds
        return Death("limit-exceeded", f"one evaluation may take {seconds:g} s; this one was still running then")

    def _crashed(self, how: str) -> Death:
        self._end()
        return Death("evaluator-crashed", f"the evaluation process died: {how}")

    def _end(self) -> None:
        """End the child, TERM then KILL, and reap it."""
        if self._status is not None:
            return
        until = time.monotonic() + _PATIENCE
        self._child.kill(_TERM)
        while self._status is None and time.monotonic() < until:
            self._status = self._child.reap(block=False)
            if self._status is None:
                time.sleep(0.001)
        if self._status is None:
            self._child.kill(_KILL)
            self._status = self._child.reap(block=True)


def heap_is_full(limits: Limits) -> str:
    """Say that the evaluation asked for more memory than it may have."""
    return f"the Starlark heap may have {limits.heap_bytes >> 20} MiB; the evaluation asked for more"


def _allowed() -> str:
    """Say that the evaluation took the processor time that whoever started us allows a process."""
    import resource

    seconds = resource.getrlimit(resource.RLIMIT_CPU)[1]
    return (
        f"one evaluation may take {seconds} s of processor time here, by a limit of the caller (ulimit -t); "
        "this one was still running then"
    )


def _how(status: int) -> str:
    """Say how a process ended."""
    if os.WIFSIGNALED(status):
        import signal

        number = os.WTERMSIG(status)
        names = {known.value: known.name for known in signal.Signals}  # those for real time have none
        return f"signal {number} ({names[number]})" if number in names else f"signal {number}"
    return f"exit status {os.WEXITSTATUS(status)}"


def evaluation_config(limits: Limits) -> dict[str, int]:
    """Return the ceilings of one evaluation, as a request carries them."""
    return {
        "ticks": limits.ticks,
        "call_depth": limits.call_depth,
        "constructed": limits.constructed,
        "calls": limits.calls,
        "elements": limits.elements,
        "text_bytes": limits.text_bytes,
        "printed": limits.printed_lines + 1,
        "value_depth": limits.value_depth,
    }


def start_program(function: str, stdin: int, stdout: int, stderr: int) -> int:
    """Start a fresh interpreter on a function of evaluate.py with nothing but its three descriptors."""
    program = _PROGRAM.replace("main", function)
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-I", "-S", "-c", program, "\n".join(sys.path)],
        {"RUST_BACKTRACE": "0"},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, stdin, 0),
            (os.POSIX_SPAWN_DUP2, stdout, 1),
            (os.POSIX_SPAWN_DUP2, stderr, 2),
        ],
        setsid=True,
    )

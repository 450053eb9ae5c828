"""A pool of warmed evaluators for processes that compile more than once: an editor, lint, a test run.

Each evaluator is a server process of its own (evaluate.fork_on_demand), single-threaded, that forks a
child for every evaluation: the process of the editor or the test run is never forked. Servers take
turns, so that the child of an evaluation was forked and warmed while the one before it went on. No state
goes from one evaluation to the next. Where a server cannot be had, a fresh interpreter does it, slower.
"""

import os
import select
import socket
import threading
import time
from contextlib import suppress
from typing import Final, Self

from crucible.compiler.frontend.sandbox import Channel, Child, fresh, open_channel, start_program

_ANSWER: Final = 8
_START, _REAP, _LEAVE = 3.0, 1.0, 0.2  # seconds that a server has; one that does not answer has them once
_LOOK: Final = 0.02  # seconds after which it is looked whether somebody has stopped it
_KILL: Final = 9


class Pool:
    """``size`` evaluators, started when one is first needed; safe to use from several threads.

    Use it as a context manager, or close() it: the servers end then, and are reaped.
    """

    def __init__(self, size: int = 2) -> None:
        """Start nothing yet."""
        self._size = size
        self._owner = os.getpid()
        self._idle: list[_Server] = []
        self._busy = 0
        self._changed = threading.Condition()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the servers that are idle; those in use end when they are given back."""
        if os.getpid() != self._owner:
            return
        with self._changed:
            self._size = 0
            idle, self._idle = self._idle, []
            self._changed.notify_all()
        for server in idle:
            server.close()

    def connect(self) -> Channel:
        """Return the channel to a child for one evaluation: the ``connect`` of a Sandbox."""
        if os.getpid() != self._owner:
            return fresh()  # a fork of the owner shares the servers' sockets
        server = self._take()
        if server is None:
            return fresh()
        try:
            return server.channel(self)
        except OSError:
            self.give_back(server, usable=False)
            return fresh()
        except BaseException:
            self.give_back(server, usable=False)
            raise

    def _take(self) -> "_Server | None":
        """Take an idle server, start one, or wait for one; None in a closed pool or when none can be started."""
        with self._changed:
            while not self._idle and self._busy >= self._size > 0:
                self._changed.wait()
            if self._size == 0:
                return None
            self._busy += 1
            if self._idle:
                return self._idle.pop(0)  # the one that had most time to prepare
        try:
            self._start_others()
            return _Server()
        except OSError:
            self._forget()
            return None
        except BaseException:
            self._forget()
            raise

    def _start_others(self) -> None:
        """Start what is missing of the pool; nobody waits for it."""
        with self._changed, suppress(OSError):
            while self._busy + len(self._idle) < self._size:
                server = _Server()
                try:
                    server.prepare()
                except BaseException:
                    server.close()
                    raise
                self._idle.append(server)
                self._changed.notify()

    def give_back(self, server: "_Server", *, usable: bool) -> None:
        """Take a server back from an evaluation that is over."""
        keep = False
        try:
            if usable and self._size > 0:
                with suppress(OSError):
                    server.prepare()
                    keep = True
        finally:
            with self._changed:
                keep = keep and self._size > 0
                if keep:
                    self._idle.append(server)
            self._forget()
            if not keep:
                server.close()

    def _forget(self) -> None:
        with self._changed:
            self._busy -= 1
            self._changed.notify()


class _Server:
    """One server process, the socket to it, and the channel to the child that it has ready.

    What was asked of the server and not read yet is read when it is needed: the wait status of the
    last child, then the number of the next. A server that does not answer in time is an OSError.
    """

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._ready: Channel | None = None
        self._owes_status = False
        try:
            sink = os.open(os.devnull, os.O_WRONLY)
            try:
                self._process = Child(start_program("fork_on_demand", theirs.fileno(), sink, sink))
            finally:
                os.close(sink)
        except BaseException:
            self._socket.close()
            raise
        finally:
            theirs.close()
        self._socket.settimeout(_REAP)

    def prepare(self) -> None:
        """Ask for the next child, without waiting for it; raise OSError when the server is gone."""
        self._ready = open_channel(self._ask)

    def _ask(self, stdin: int, stdout: int, stderr: int) -> Child:
        socket.send_fds(self._socket, [b"f"], [stdin, stdout, stderr])
        return self._process  # a stand-in: the channel gets its child when it is handed out

    def channel(self, pool: Pool) -> Channel:
        """Hand out the channel to the child that is ready; a server that was stopped has none."""
        if self._ready is None:
            self.prepare()
        self._socket.settimeout(_START)
        if self._owes_status:
            self.status()
        child = _Leased(pool, self, self._answer())
        self._socket.settimeout(_REAP)
        channel, self._ready = self._ready, None
        if channel is None:
            raise ConnectionError("the evaluation server is gone")
        poll = select.poll()
        poll.register(channel.answers, select.POLLIN)
        if poll.poll(0):  # it has nothing to say yet: somebody has ended it
            channel.close()
            raise ConnectionError("the child that was ready is gone")
        return channel._replace(child=child)

    def ask_to_reap(self) -> None:
        """Ask for the wait status of the child."""
        self._socket.sendall(b"r")
        self._owes_status = True

    def has_answered(self, seconds: float = 0) -> bool:
        """Tell whether an answer, or the end of the server, is there to be read, or comes within some time."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def status(self) -> int:
        """Return the wait status that was asked for."""
        self._owes_status = False
        return self._answer()

    def _answer(self) -> int:
        """Read an answer; a server that somebody has stopped has none, and is not waited for."""
        until = time.monotonic() + (self._socket.gettimeout() or 0)
        while not self.has_answered(_LOOK):
            if time.monotonic() > until or self._process.is_stopped():
                raise TimeoutError("the evaluation server does not answer")
        data = b""
        while len(data) < _ANSWER:
            block = self._socket.recv(_ANSWER - len(data))
            if not block:
                raise ConnectionError("the evaluation server is gone")
            data += block
        return int.from_bytes(data, "big")

    def close(self) -> None:
        """End the server, which ends and reaps its child, and reap it; kill it when it does not leave by itself."""
        if self._ready is not None:
            self._ready.close()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # a fork of the owner may hold it open
        self._socket.close()
        until = time.monotonic() + _LEAVE
        while self._process.reap(block=False) is None:
            if time.monotonic() > until or self._process.is_stopped():
                self._process.kill(_KILL)
                self._process.reap(block=True)
                return
            time.sleep(0.001)


class _Leased(Child):
    """A child of a server, which reaps it only when asked: until then its number is its own."""

    def __init__(self, pool: Pool, server: _Server, pid: int) -> None:
        super().__init__(pid)
        self._pool = pool
        self._server = server
        self._asked = False

    def reap(self, *, block: bool) -> int | None:
        """Return the wait status of the child and give the server back, None while the child lives."""
        try:
            if not self._asked:
                self._asked = True
                self._server.ask_to_reap()
            if not block and not self._server.has_answered():
                return None
            status = self._server.status()
        except OSError:
            self._pool.give_back(self._server, usable=False)
            return 0
        self._pool.give_back(self._server, usable=True)
        return status

    def dismiss(self) -> None:
        """End the child; its status is read when the server is next used."""
        self.kill(_KILL)
        try:
            if not self._asked:  # an interrupt may come between asking and reading
                self._server.ask_to_reap()
        except OSError:
            self._pool.give_back(self._server, usable=False)
        else:
            self._pool.give_back(self._server, usable=True)

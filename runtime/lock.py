"""Locks that die with their process: a file or a folder that one run holds, and nobody else meanwhile.

The system gives a lock back when the process ends, however it ends; so what a dead run left can be told from
what a living one uses. Closing a lock on a file removes the file.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from stat import S_ISREG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, Self

_FILE: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_DIGITS: Final = 20
_LOOKS: Final = 100
_PAUSE: Final = 0.02  # seconds between two looks


class Held(Exception):
    """Another process holds the lock; the text says which."""


class Lock:
    """A lock on a file, as long as it is open and its process lives."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def stand(self) -> None:
        """Take the lock again where a task has removed its file; raise Held when another process was faster."""
        if self._descriptor is not None and not _is_there(self._path, self._descriptor):
            again = _take(self._path)
            os.close(self._descriptor)
            self._descriptor = again

    def close(self) -> None:
        """Remove the file and give the lock back."""
        if self._descriptor is not None:
            # In this order: whoever opens the file in between sees that it is gone, and makes another one. Where a task
            # has removed ours, the one that stands there is another's.
            with suppress(FileNotFoundError):
                if _is_there(self._path, self._descriptor):
                    os.unlink(self._path)
            os.close(self._descriptor)
            self._descriptor = None


def take(path: str) -> Lock:
    """Take the lock on a file, which is made for it; raise Held while another process has it."""
    return Lock(path, _take(path))


def _take(path: str) -> int:
    while True:
        try:
            descriptor = os.open(path, _FILE, 0o644)
        except IsADirectoryError:
            raise _no_lock(path) from None
        try:
            _check(path, descriptor)
            has_lock = _lock_of_dead(descriptor)
            if has_lock and _is_there(path, descriptor):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
                return descriptor
            held = None if has_lock else _held(path, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if held is not None:
            raise held


def _held(path: str, descriptor: int) -> Held:
    holder = os.pread(descriptor, _MOST_DIGITS, 0).decode("ascii", "replace").strip()
    who = f"process {holder}" if holder else "another process"
    return Held(f"{who} runs here already: it holds {path}")


def hold(folder: str) -> int | None:
    """Lock a folder, through a file in it; None while another process has it, or when it is gone.

    The lock is the descriptor that is returned: closing that gives it back.
    """
    path = os.path.join(folder, "lock")
    try:
        within = os.open(folder, _FOLDER)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        descriptor = os.open("lock", _FILE, 0o644, dir_fd=within)
    except FileNotFoundError:
        return None
    finally:
        os.close(within)
    try:
        if _lock_of_dead(descriptor) and _is_there(path, descriptor):
            return descriptor
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _check(path: str, descriptor: int) -> None:
    """Refuse what a task may have put in the place of a lock."""
    if not S_ISREG(os.fstat(descriptor).st_mode):
        raise _no_lock(path)


def _no_lock(path: str) -> OSError:
    return OSError(errno.EINVAL, "it is no regular file, as a lock is; remove it", path)


def lives(process: int) -> bool:
    """Tell whether there is a process of a number."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass  # it is another user's
    return True


def _lock_of_dead(descriptor: int) -> bool:
    """Lock a file, or tell that a living process has it.

    What a process that was killed had just forked still has its descriptors, until it becomes another program.
    """
    for _ in range(_LOOKS):
        if _lock(descriptor):
            return True
        holder = os.pread(descriptor, _MOST_DIGITS, 0).strip()
        if not holder.isdigit() or lives(int(holder)):
            return False
        time.sleep(_PAUSE)
    return False


def _lock(descriptor: int) -> bool:
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_there(path: str, descriptor: int) -> bool:
    """Tell whether an open file still stands under its name."""
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(descriptor))
    except (FileNotFoundError, NotADirectoryError):
        return False

"""Opens, reads and writes files that a child can reach, which may be a link, a pipe or a device by now.

A path in, a regular file out, or an OSError that says why not; nothing here ever blocks. Everything in the
runtime that a task could have put something else in the place of goes through here.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from stat import S_ISBLK, S_ISCHR, S_ISREG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_MOST: Final = 1 << 30
_ALWAYS: Final = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class NoFile(OSError):
    """What stands there is something else than a regular file."""


def opener(path: str, flags: int, *, follows: bool = False) -> int:
    """Open a regular file; ``follows`` where a link to it is the user's own affair. Raises OSError."""
    file = os.open(path, flags | _ALWAYS | (0 if follows else os.O_NOFOLLOW))
    if not S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise NoFile(errno.EINVAL, "it is no regular file", path)
    return file


def read(path: str, most: int = _MOST, *, follows: bool = False) -> bytes:
    """Return the first bytes of a regular file; raises OSError."""
    file = opener(path, os.O_RDONLY, follows=follows)
    try:
        data = bytearray()
        while len(data) < most and (block := os.read(file, most - len(data) if most < _MOST else 1 << 20)):
            data += block
    finally:
        os.close(file)
    return bytes(data)


def end_of(path: str, most: int, size: int) -> bytes:
    """Return the last of the first ``size`` bytes of a regular file; raises OSError."""
    file = opener(path, os.O_RDONLY)
    try:
        start = max(0, size - most)
        return os.pread(file, size - start, start)
    finally:
        os.close(file)


def write(path: str, data: bytes) -> None:
    """Write a file over one of an attempt that is over, which costs a fraction of making one.

    A child may have put anything in its place, or have kept it by a link: then it is made anew.
    """
    try:
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | _ALWAYS)
    except OSError:
        file = -1
    if file >= 0:
        found = os.fstat(file)
        if not S_ISREG(found.st_mode) or found.st_nlink != 1:
            os.close(file)
            file = -1
    if file < 0:
        with suppress(FileNotFoundError):
            mode = os.lstat(path).st_mode
            if S_ISCHR(mode) or S_ISBLK(mode):  # who names one by mistake is not to lose it
                raise OSError(errno.EPERM, "it is a device", path)
            os.unlink(path)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]
        os.ftruncate(file, len(data))  # not before: some systems write a file out when it was emptied
    except OSError as error:  # that of a full disk does not say where
        raise OSError(error.errno, error.strerror, path) from None
    finally:
        os.close(file)

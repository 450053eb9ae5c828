"""The one writer of files: what stands under a name is the old content or the new, never a part.

The new content is written to a file without a name, in the directory of the old one, and synced.
Then it gets a temporary name and is renamed over the old file. Between these two calls a killed
writer would leave the temporary name, so a child in a session of its own makes them: a signal to
the writer or to its process group does not reach it. Writers of one directory take turns by a lock
on it; so the next one knows that a temporary name is a dead writer's (a power failure, or a system
that has no files without a name), and removes it.
"""

import errno
import os
import stat
from contextlib import suppress
from enum import Enum
from typing import NoReturn

_TEMPORARY = ".crucible-write"
_MODE_OF_A_NEW_FILE = 0o666  # less the umask
_MODE_UNTIL_COPIED = 0o600


class Outcome(Enum):
    """What became of a write; the value says it to people, about "the file"."""

    WRITTEN = "the file was written"
    UNCHANGED = "the file holds this already and was not touched"
    CHANGED = "the file was changed by somebody else in the meantime and was not touched; run the command again"
    OUTSIDE = "the file is a link that leaves its pack and was not touched; name the file that it leads to"


def replace(path: str, data: bytes, *, expected: bytes | None = None, root: str | None = None) -> Outcome:
    """Make a regular file hold ``data``, whole or not at all, its mode and if possible its owner kept.

    ``expected`` is what the file held when it was read: with anything else in it, or nothing, it is
    left alone (CHANGED), unless it is ``data``. A link is followed to its target, which stays below
    ``root``, by default the directory of ``path`` (OUTSIDE). A file that already holds ``data`` is not
    touched at all (UNCHANGED). Raises OSError, with the path, for what the system refuses.
    """
    target = os.path.realpath(path)
    ground = os.path.realpath(os.path.dirname(path) if root is None else root)
    if os.path.commonpath((target, ground)) != ground:
        return Outcome.OUTSIDE
    folder, name = os.path.split(target)
    try:
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return _replace_in(directory, name, data, expected)
        finally:
            os.close(directory)
    except OSError as error:
        error.filename = path
        raise


def _replace_in(directory: int, name: str, data: bytes, expected: bytes | None) -> Outcome:
    """Replace a file of an open directory."""
    if _lock(directory):
        # Whoever holds the lock is the only writer: this name is what a dead one left.
        temporary = _TEMPORARY
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
    else:
        temporary = f"{_TEMPORARY}-{os.getpid()}"
    held, status = _current(directory, name)
    if held == data:
        return Outcome.UNCHANGED
    if expected is not None and held != expected:
        return Outcome.CHANGED
    if status is not None and not os.access(name, os.W_OK, dir_fd=directory):
        # A rename asks the directory only and would get around the protection of the file.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    new, is_named = _create(directory, temporary, _MODE_OF_A_NEW_FILE if status is None else _MODE_UNTIL_COPIED)
    try:
        _fill(new, data, status)
        _rename(directory, new, temporary, name, is_named=is_named)
    except BaseException:
        if is_named:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=directory)
        raise
    finally:
        os.close(new)
    # The content is safe by now, and not every file system can sync a name.
    with suppress(OSError):
        os.fsync(directory)
    return Outcome.WRITTEN


def _lock(directory: int) -> bool:
    """Wait for the other writers of the directory; False where the file system has no such locks."""
    import fcntl  # who only reads needs no lock

    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
    except OSError:
        return False
    return True


def _current(directory: int, name: str) -> tuple[bytes | None, os.stat_result | None]:
    """Return the content and the status of the file, None and None when there is none."""
    try:
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except FileNotFoundError:
        return None, None
    try:
        status = os.fstat(opened)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "Not a regular file")
        with open(opened, "rb", closefd=False) as file:
            return file.read(), status
    finally:
        os.close(opened)


def _create(directory: int, temporary: str, mode: int) -> tuple[int, bool]:
    """Open an empty file without a name, or with the temporary one where the system has no other."""
    if hasattr(os, "O_TMPFILE") and os.path.exists("/proc/self/fd"):
        with suppress(OSError):
            return os.open(".", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, mode, dir_fd=directory), False
    return os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode, dir_fd=directory), True


def _fill(new: int, data: bytes, like: os.stat_result | None) -> None:
    """Write and sync the content, with owner and mode of the file that it will replace."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(new, rest) :]
    if like is not None:
        with suppress(PermissionError):
            os.fchown(new, like.st_uid, like.st_gid)
        os.fchmod(new, stat.S_IMODE(like.st_mode))
    os.fsync(new)


def _rename(directory: int, new: int, temporary: str, name: str, *, is_named: bool) -> None:
    """Give the written file its name, in a child that outlives a killed writer."""
    import signal
    import warnings

    # An interrupt between the fork and the child's first line would run the writer's code twice.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        with warnings.catch_warnings():
            # The warning is about locks that threads hold; the child takes none.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            _rename_and_exit(directory, None if is_named else new, temporary, name)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except ChildProcessError:
        # Where SIGCHLD is ignored no child has an exit status.
        code = 0 if os.stat(name, dir_fd=directory).st_ino == os.fstat(new).st_ino else errno.EIO
    if code:
        code = max(code, 0) or errno.EIO
        raise OSError(code, os.strerror(code))


def _rename_and_exit(directory: int, nameless: int | None, temporary: str, name: str) -> NoReturn:
    """Link and rename, and end the process with the number of the error, 0 for none."""
    code = errno.EIO
    try:
        os.setsid()
        if nameless is not None:
            os.link(f"/proc/self/fd/{nameless}", temporary, dst_dir_fd=directory, follow_symlinks=True)
        try:
            os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError:
            os.unlink(temporary, dir_fd=directory)
            raise
        code = 0
    except OSError as error:
        code = error.errno or code
    finally:
        os._exit(code)

"""Folders that a task may change at the same time: entered, emptied and copied without ever following a link.

Everything is done relative to an open folder. So a link that is put on the way, at whatever moment, leads
nowhere; it is removed or refused. What is only protected by its permission bits is unprotected first.
"""

import errno
import os
import stat
from collections.abc import Callable
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_TRIES: Final = 100  # against somebody who puts things in the way as fast as we remove them
_MOST_LEVELS: Final = 100  # each costs a descriptor
_CHUNK: Final = 1 << 20
_ACCESS: Final = 0o700
_T = TypeVar("_T")


@contextmanager
def opened(path: str) -> "Iterator[int]":
    """Give the descriptor of a folder; a link in its place is refused with an OSError."""
    descriptor = os.open(path, _FOLDER)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def enter(parent: int, name: str) -> int:
    """Open a folder of a folder; it is made when it is missing, and anything else in its place is removed."""
    for _ in range(_TRIES):
        try:
            return os.open(name, _FOLDER, dir_fd=parent)
        except FileNotFoundError:
            with suppress(FileExistsError):
                _in(parent, lambda: os.mkdir(name, dir_fd=parent))
        except PermissionError:
            _unprotect(parent, name)
        except OSError as error:
            if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                raise
            remove(parent, name)
    raise OSError(errno.EBUSY, "others keep putting things in its place", name)


def remove(parent: int, name: str) -> None:
    """Remove whatever stands under a name, with all that is in it; nothing there is fine."""
    for _ in range(_TRIES):
        try:
            _in(parent, lambda: os.unlink(name, dir_fd=parent))
        except FileNotFoundError:
            return
        except OSError:
            if not _is_folder(parent, name):
                raise
            with suppress(FileNotFoundError):
                folder = _open_any(parent, name)
                try:
                    while _empty(folder, folder, 0):
                        pass
                finally:
                    os.close(folder)
            try:
                _in(parent, lambda: os.rmdir(name, dir_fd=parent))
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
                    raise
            else:
                return
        else:
            return
    raise OSError(errno.EBUSY, "others keep putting things into it", name)


def put(parent: int, name: str, new: str, new_parent: int) -> None:
    """Rename a new file over whatever stands under a name."""
    for _ in range(_TRIES):
        try:
            _in(parent, lambda: os.rename(new, name, src_dir_fd=new_parent, dst_dir_fd=parent))
        except IsADirectoryError:
            remove(parent, name)
        else:
            return
    raise OSError(errno.EBUSY, "others keep putting things in its place", name)


def places(*folders: str) -> set[tuple[int, int]]:
    """Return device and inode of those of some folders that are there, and of the links that lead to them."""
    found = set()
    for folder in folders:
        for look in (os.stat, os.lstat):
            with suppress(FileNotFoundError, NotADirectoryError):
                status = look(folder)
                found.add((status.st_dev, status.st_ino))
    return found


def copy(
    source: int,
    target: int,
    leave_out: "Collection[tuple[int, int]]",
    is_stopped: Callable[[], bool],
    *,
    is_exact: bool = False,
    moved: Callable[[str], str] = str,
) -> None:
    """Copy what is in a folder: folders, files and links, with permission bits.

    Left out are what is called ``.git``, folders of ``leave_out`` (device and inode), and what is neither
    file, folder nor link; ``moved`` says where a link leads in the copy. An exact copy has what is called
    ``.git`` as well, and files have their times; it is without what cannot be read.
    """
    with os.scandir(source) as entries:
        names = sorted(entry.name for entry in entries)
    for name in names:
        status = os.stat(name, dir_fd=source, follow_symlinks=False)
        if (status.st_dev, status.st_ino) in leave_out or is_stopped():
            continue
        if name == ".git" and not is_exact:
            continue
        if stat.S_ISLNK(status.st_mode):
            os.symlink(moved(os.readlink(name, dir_fd=source)), name, dir_fd=target)
        elif stat.S_ISREG(status.st_mode):
            with suppress(PermissionError) if is_exact else nullcontext():
                _copy_file(source, target, name, has_times=is_exact)
        elif stat.S_ISDIR(status.st_mode):
            os.mkdir(name, _ACCESS, dir_fd=target)
            with suppress(PermissionError) if is_exact else nullcontext():
                _copy_folder(source, target, name, leave_out, is_stopped, is_exact=is_exact, moved=moved)


def _copy_folder(
    source: int,
    target: int,
    name: str,
    leave_out: "Collection[tuple[int, int]]",
    is_stopped: Callable[[], bool],
    *,
    is_exact: bool,
    moved: Callable[[str], str],
) -> None:
    old = os.open(name, _FOLDER, dir_fd=source)
    try:
        new = os.open(name, _FOLDER, dir_fd=target)
        try:
            copy(old, new, leave_out, is_stopped, is_exact=is_exact, moved=moved)
            os.fchmod(new, stat.S_IMODE(os.fstat(old).st_mode))
        finally:
            os.close(new)
    finally:
        os.close(old)


def _copy_file(source: int, target: int, name: str, *, has_times: bool) -> None:
    old = os.open(name, _FILE, dir_fd=source)
    try:
        new = os.open(name, _NEW_FILE, 0o600, dir_fd=target)
        try:
            while chunk := os.read(old, _CHUNK):
                write(new, chunk)
            status = os.fstat(old)
            os.fchmod(new, stat.S_IMODE(status.st_mode))
            if has_times:
                os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(new)
    finally:
        os.close(old)


def write(descriptor: int, data: bytes) -> None:
    """Write all of the data."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _empty(folder: int, top: int, level: int) -> bool:
    """Remove all that is in a folder; what lies too deep is moved to the top, and then True is returned."""
    was_moved = False
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        with suppress(FileNotFoundError):
            if not is_folder:
                _in(folder, lambda name=name: os.unlink(name, dir_fd=folder))  # type: ignore[misc]
                continue
            child = _open_any(folder, name)
            try:
                if level == _MOST_LEVELS:
                    _move_up(folder, name, top, os.fstat(child).st_ino)
                    was_moved = True
                    continue
                was_moved |= _empty(child, top, level + 1)
            finally:
                os.close(child)
            _in(folder, lambda name=name: os.rmdir(name, dir_fd=folder))  # type: ignore[misc]
    return was_moved


def _move_up(folder: int, name: str, top: int, number: int) -> None:
    os.fchmod(top, stat.S_IMODE(os.fstat(top).st_mode) | _ACCESS)
    _in(folder, lambda: os.rename(name, f"{name[:50]}.{number}", src_dir_fd=folder, dst_dir_fd=top))


def _open_any(parent: int, name: str) -> int:
    """Open a folder, whatever its permission bits say, and give us all access to it."""
    try:
        folder = os.open(name, _FOLDER, dir_fd=parent)
    except PermissionError:
        _unprotect(parent, name)
        folder = os.open(name, _FOLDER, dir_fd=parent)
    with suppress(PermissionError):
        _widen(folder)
    return folder


def _in(folder: int, change: Callable[[], _T]) -> _T:
    """Make a change in a folder, whose permission bits may forbid it."""
    try:
        return change()
    except PermissionError:
        if not _widen(folder):
            raise
    return change()


def _widen(folder: int) -> bool:
    """Give us all access to an open folder; False when we have it already."""
    mode = stat.S_IMODE(os.fstat(folder).st_mode)
    if mode & _ACCESS == _ACCESS:
        return False
    os.fchmod(folder, mode | _ACCESS)
    return True


def _unprotect(parent: int, name: str) -> None:
    """Give us all access to a folder that cannot even be opened; raise PermissionError when it is not ours."""
    has_changed = _widen(parent)
    status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISDIR(status.st_mode) or (mode & _ACCESS == _ACCESS and not has_changed):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
    if os.chmod in os.supports_follow_symlinks:
        os.chmod(name, mode | _ACCESS, dir_fd=parent, follow_symlinks=False)
        return
    # Where no call changes the mode of what may be a link, only a descriptor is safe.
    place = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{place}", mode | _ACCESS)
    finally:
        os.close(place)


def _is_folder(parent: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return True  # gone by now: the next try sees that

"""Injects: which files a manifest brings into a workspace, and putting them there (contract §1).

``expand`` turns the manifest's entries into single files, at load. A ``Stock`` then holds their content where
no task reaches it, and puts it into a workspace, as often as asked: bytes and permission bits, in place of
whatever stands at a path or on the way to it. A file that is as it should be is not touched.
"""

import errno
import os
import posixpath
import re
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final, NamedTuple, Self

from crucible.runtime import tree
from crucible.schemas.glob import pattern

_NEW: Final = "new"
_CHUNK: Final = 1 << 20
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_LOOK: Final = _READ | os.O_NOFOLLOW
_MAKE: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BITS: Final = 0o777
_MOST_FILES: Final = 10_000  # of one entry


class Entry(NamedTuple):
    """An entry of the manifest as written; without ``dst`` it is a string that stands for its own path."""

    src: str
    dst: str | None = None
    frozen: bool = True


class Inject(NamedTuple):
    """A file: where it comes from, and its path below the workspace, with / separators."""

    source: str
    target: str
    frozen: bool


class Fault(NamedTuple):
    """What is wrong with an entry: its number, a code, and a sentence."""

    entry: int
    code: str
    message: str


class NoSource(Exception):
    """A file to inject cannot be read; the text says which and why."""


# Which files


def expand(entries: Sequence[Entry], folder: str, skip: Collection[str] = ()) -> tuple[list[Inject], list[Fault]]:
    """Return the files that entries name, in order, one for each path in the workspace: the last one wins.

    ``folder`` anchors the sources. A directory or a pattern stands for every regular file below it, sorted,
    but for those in the folders of ``skip`` and in git's own.
    """
    found: dict[str, Inject] = {}
    numbers: dict[str, int] = {}
    faults = []
    left_out = {os.path.realpath(path) for path in skip} - {os.path.realpath(folder)}
    for number, entry in enumerate(entries):
        try:
            for inject in _expand(entry, folder, left_out):
                found.pop(inject.target, None)
                found[inject.target] = inject
                numbers[inject.target] = number
        except _Bad as bad:
            faults.append(Fault(number, *bad.args))
    for target, number in numbers.items():
        above = next((path for path in _above(target) if path in numbers), None)
        if above is not None:
            message = f'"{target}" needs a folder where "{above}" puts a file; give one of them another dst'
            faults.append(Fault(max(number, numbers[above]), "path-refused", message))
    return list(found.values()), faults


def _above(target: str) -> Iterator[str]:
    """Yield the folders that a path lies in."""
    while target := target.rpartition("/")[0]:
        yield target


class _Bad(Exception):
    """A code and a message."""


def _expand(entry: Entry, folder: str, left_out: Collection[str]) -> Iterator[Inject]:
    shown = entry.src
    if not shown or "\0" in shown:
        raise _Bad("path-refused", f'"{shown}" is no path')
    source = posixpath.normpath(shown)
    if entry.dst is None and (source.startswith(("/", "../")) or source == ".."):
        raise _Bad(
            "path-refused", f'"{shown}" leaves the directory of the manifest; write it as {{ src, dst }} if it must'
        )
    base, files = _files(folder, source, left_out)
    if not files:
        raise _Bad("inject-matches-nothing", f'"{shown}" names no file')
    if len(files) > _MOST_FILES:
        raise _Bad("limit-exceeded", f'"{shown}" names more than {_MOST_FILES} files; name fewer')
    home = os.path.realpath(folder)
    for file in files:
        if entry.dst is None and not _lies_in(os.path.realpath(file), home):
            raise _Bad("path-refused", f'"{shown}" brings {file}, a link that leaves the directory of the manifest')
        if entry.dst is None:
            target = _target(os.path.relpath(file, folder).replace(os.sep, "/"), "")
        else:
            rest = "" if file == base else os.path.relpath(file, base).replace(os.sep, "/")
            target = _target(entry.dst, rest)
        yield Inject(os.path.abspath(file), target, entry.frozen)


def _target(to: str, rest: str) -> str:
    target = posixpath.normpath(posixpath.join(to, rest))
    if not to or "\0" in to or target.startswith(("/", "../")) or target in {".", ".."}:
        raise _Bad("path-refused", f'"{to}" is no path of a file below the workspace')
    if is_git(target):
        raise _Bad("path-refused", f'"{to}" is git\'s own: what stands there can run commands')
    return target


def is_git(path: str) -> bool:
    """Tell whether a path is git's own or below it, on a system that knows no case as well."""
    return ".git" in path.casefold().split("/")


def _files(folder: str, source: str, left_out: Collection[str]) -> tuple[str, list[str]]:
    """Return the regular files that a source names, sorted, and the folder or file that they are counted from."""
    named = os.path.join(folder, source)
    if os.path.isfile(named):
        return named, [named]
    if os.path.isdir(named):
        return named, _sorted(_walk(named, left_out))
    special = re.search(r"[*?[]", source)
    if special is None:
        return named, []
    head = source[: special.start()].rpartition("/")[0]
    base = os.path.join(folder, head) if head or not source.startswith("/") else "/"
    fits = pattern(source).fullmatch
    start = 0 if source.startswith("/") else len(os.path.join(os.path.normpath(folder), ""))
    fit = (path for path in _walk(os.path.normpath(base), left_out) if fits(path[start:]))
    return base, _sorted(fit)


def _sorted(paths: Iterator[str]) -> list[str]:
    """Sort paths, at most one more than allowed."""
    return sorted(islice(paths, _MOST_FILES + 1))


def _walk(top: str, left_out: Collection[str]) -> Iterator[str]:
    """Yield the regular files below a folder; links to folders are not followed."""
    pending = [top]
    while pending:
        here = pending.pop()
        with suppress(OSError), os.scandir(here) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != ".git" and os.path.realpath(entry.path) not in left_out:
                        pending.append(entry.path)
                elif entry.is_file():
                    yield entry.path


def _lies_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


# Putting them there


class _Held(NamedTuple):
    """A file of the stock: where it goes, its permission bits, and where its bytes stand."""

    target: tuple[str, ...]
    frozen: bool
    mode: int
    begin: int
    size: int


class Seal(NamedTuple):
    """What tells a frozen file, and the folders on the way to it, from any that took their place in between.

    ``file`` are device, inode and time of change, which nobody can set; ``folders`` have the times of change and of
    modification as well: a folder that was renamed and renamed back has changed and was not modified.
    """

    file: tuple[int, int, int]
    folders: tuple[tuple[int, int, int, int], ...]

    def is_broken_by(self, other: "Seal") -> bool:
        """Tell whether something else stood there between two looks."""
        if self.file != other.file or len(self.folders) != len(other.folders):
            return True
        return any(
            old[:2] != new[:2] or (old[2] != new[2] and old[3] == new[3])
            for old, new in zip(self.folders, other.folders, strict=True)
        )


class Stock:
    """The content of injects as it was when the run began, whatever becomes of the sources."""

    def __init__(self, injects: Sequence[Inject], folder: str) -> None:
        """Read all sources into one file without a name; ``folder`` is ours, and where new files are written first.

        Raises NoSource.
        """
        self._folder = folder
        self._held: list[_Held] = []
        # By number: a task that looks for it finds nothing to open.
        path = os.path.join(folder, _NEW)
        self._content = os.open(path, _MAKE, 0o600)
        try:
            os.unlink(path)
            begin = 0
            for inject in injects:
                size, mode = self._read(inject)
                self._held.append(_Held(tuple(inject.target.split("/")), inject.frozen, mode, begin, size))
                begin += size
        except BaseException:
            os.close(self._content)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._content)

    def move(self, folder: str) -> None:
        """Write new files first in another folder from now on."""
        self._folder = folder

    @property
    def has_frozen(self) -> bool:
        """Tell whether anything is put back before a task."""
        return any(held.frozen for held in self._held)

    @property
    def targets(self) -> list[str]:
        """Return the paths of the files below a workspace."""
        return ["/".join(held.target) for held in self._held]

    def put(self, folder: str, *, frozen_only: bool) -> None:
        """Put the files into a folder; raise OSError when the system refuses."""
        with tree.opened(folder) as top:
            for held in self._held:
                if held.frozen or not frozen_only:
                    self._put(top, held)

    def is_in_place(self, folder: str) -> bool:
        """Tell whether every frozen file stands in a folder as it was put there; nothing is changed."""
        try:
            with tree.opened(folder) as top:
                return all(self._is_there(top, held) for held in self._held if held.frozen)
        except OSError:
            return False

    def seal(self, folder: str) -> tuple[Seal, ...]:
        """Return what ``is_unbroken`` holds the frozen files against; raise OSError where one is missing."""
        with tree.opened(folder) as top:
            return tuple(self._seal(top, held) for held in self._held if held.frozen)

    def is_unbroken(self, folder: str, seals: tuple[Seal, ...]) -> bool:
        """Tell whether every frozen file stands in a folder as it was put there, and stood there all the time."""
        try:
            now = self.seal(folder)
        except OSError:
            return False
        has_other = any(old.is_broken_by(new) for old, new in zip(seals, now, strict=True))
        return not has_other and self.is_in_place(folder)

    def _seal(self, top: int, held: _Held) -> Seal:
        folders = []
        parent = os.dup(top)
        try:
            for each in held.target[:-1]:
                inner = os.open(each, _LOOK | os.O_DIRECTORY, dir_fd=parent)
                os.close(parent)
                parent = inner
                found = os.fstat(parent)
                folders.append((found.st_dev, found.st_ino, found.st_ctime_ns, found.st_mtime_ns))
            found = os.stat(held.target[-1], dir_fd=parent, follow_symlinks=False)
        finally:
            os.close(parent)
        return Seal((found.st_dev, found.st_ino, found.st_ctime_ns), tuple(folders))

    def _is_there(self, top: int, held: _Held) -> bool:
        *folders, name = held.target
        parent = os.dup(top)
        try:
            for each in folders:
                inner = os.open(each, _LOOK | os.O_DIRECTORY, dir_fd=parent)
                os.close(parent)
                parent = inner
            return self._stands(parent, name, held)
        finally:
            os.close(parent)

    def _read(self, inject: Inject) -> tuple[int, int]:
        try:
            source = os.open(inject.source, _READ)
            try:
                status = os.fstat(source)
                if not stat.S_ISREG(status.st_mode):
                    raise NoSource(f"{inject.source} cannot be injected: it is not a regular file")
                size = 0
                while chunk := os.read(source, _CHUNK):
                    tree.write(self._content, chunk)
                    size += len(chunk)
            finally:
                os.close(source)
        except OSError as error:
            raise NoSource(f"{inject.source} cannot be injected: {error.strerror or error}") from None
        return size, status.st_mode & _BITS

    def _put(self, top: int, held: _Held) -> None:
        *folders, name = held.target
        parent = os.dup(top)
        try:
            for each in folders:
                inner = tree.enter(parent, each)
                os.close(parent)
                parent = inner
            if not self._stands(parent, name, held):
                self._replace(parent, name, held)
        finally:
            os.close(parent)

    def _stands(self, parent: int, name: str, held: _Held) -> bool:
        """Tell whether the file is there as it should be, under this name alone."""
        try:
            file = os.open(name, _LOOK, dir_fd=parent)
        except OSError:
            return False
        try:
            status = os.fstat(file)
            if (status.st_mode, status.st_size, status.st_nlink) != (stat.S_IFREG | held.mode, held.size, 1):
                return False
            return all(os.read(file, len(chunk)) == chunk for chunk in self._chunks(held)) and not os.read(file, 1)
        finally:
            os.close(file)

    def _chunks(self, held: _Held) -> Iterator[bytes]:
        at, end = held.begin, held.begin + held.size
        while at < end:
            chunk = os.pread(self._content, min(_CHUNK, end - at), at)
            if not chunk:
                raise OSError(errno.EIO, "the stock of injects was cut short")
            yield chunk
            at += len(chunk)

    def _replace(self, parent: int, name: str, held: _Held) -> None:
        """Write the file beside all workspaces, and rename it into its place."""
        with tree.opened(self._folder) as ours:
            self._write(ours, _NEW, held)
            try:
                tree.put(parent, name, _NEW, ours)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                os.unlink(_NEW, dir_fd=ours)
                # Another file system: then the new name stands beside the old one for a moment.
                beside = f".crucible-inject-{os.getpid()}"
                tree.remove(parent, beside)
                self._write(parent, beside, held)
                tree.put(parent, name, beside, parent)

    def _write(self, folder: int, name: str, held: _Held) -> None:
        tree.remove(folder, name)
        new = os.open(name, _MAKE, 0o600, dir_fd=folder)
        try:
            for chunk in self._chunks(held):
                tree.write(new, chunk)
            os.fchmod(new, held.mode)
        finally:
            os.close(new)

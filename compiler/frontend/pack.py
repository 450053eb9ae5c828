"""The pack: the only opener of its files, by the one path policy of language.md §5.

A path is walked component by component below one open directory, never through a link, and what is
read is what was checked: the open descriptor. Byte budgets are counted here.
"""

from __future__ import annotations

import errno
import os
import stat

from crucible.compiler.frontend.external import has_mark
from crucible.schemas.light import NamedTuple
from crucible.schemas.spelling import MOST_SEARCHED, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Final, Self

    from crucible.compiler.frontend.limits import Limits

STANDARD_LIBRARY: Final = "@crucible//"
_BLOCK: Final = 1 << 16
_LONGEST_PATH: Final = 4_096  # characters; no file system takes a longer one
_TOO_LONG: Final = "the path is longer than the file system takes"


class Refusal(NamedTuple):
    """Why a file is not served: a code, a message, and the path that was most likely meant."""

    code: str
    message: str
    suggestion: str | None = None


class Unreadable(Exception):
    """The file named on the command line cannot be read; the text says why."""


def normalise(path: str) -> str | Refusal:
    """Return a pack path without empty and "." components, or why the spelling is refused."""
    if not path.strip():
        return Refusal("path-refused", "the path is empty; name a file below the pack")
    if len(path) > _LONGEST_PATH:
        return Refusal("path-refused", _TOO_LONG)
    if "\0" in path:
        return Refusal("path-refused", "the path holds a NUL")
    if "\\" in path:
        return Refusal(
            "path-refused", f'the path "{path}" holds a backslash; separate its parts with /', path.replace("\\", "/")
        )
    if path.startswith("/") or (path[1:2] == ":" and path[0].isascii() and path[0].isalpha()):
        return Refusal("path-refused", f'the path "{path}" is absolute; paths are relative to the pack')
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        return Refusal("path-refused", f'the path "{path}" holds ".."; a path stays inside the pack')
    if not parts or path.endswith(("/", "/.")):
        return Refusal("path-refused", f'"{path}" is a directory; name a file below it')
    return "/".join(parts)


class _Listing:
    """What a directory holds: its names, and the same without their case."""

    def __init__(self, names: list[bytes]) -> None:
        self.names = frozenset(names)
        self._texts: tuple[str, ...] | None = None
        self._by_fold: dict[str, str] = {}

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the names that are text, in order."""
        if self._texts is None:
            self._texts = tuple(sorted(name.decode() for name in self.names if _is_text(name)))
        return self._texts

    def in_another_case(self, part: str) -> str | None:
        """Return the first name that differs from a component in nothing but case."""
        if not self._by_fold:
            self._by_fold = {text.casefold(): text for text in reversed(self.texts)}
        found = self._by_fold.get(part.casefold())
        return None if found == part else found


class Pack:
    """A directory of files that sources may name; holds one descriptor until it is closed.

    A directory on the way to one is listed once; only so many names that it has not are searched for what they mean.
    ``opened`` has the normalised paths of the prompt files served so far, in order of first use.
    ``unsaved`` has the bytes that an editor holds of files, by their normalised paths: they stand for what
    the disk has of a file, or for one that it has not yet, and for nothing that the policy refuses.
    """

    def __init__(
        self, directory: str, limits: Limits, unsaved: Mapping[str, bytes] | None = None, root: str | None = None
    ) -> None:
        """Open the directory, which a search below ``root`` found, or somebody named; raises OSError."""
        if root is None:
            self._directory = os.open(directory or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        else:
            self._directory = open_found(directory, root)
        self._unsaved = unsaved or {}
        self._limits = limits
        self._prompts: dict[str, str | Refusal] = {}
        self._prompt_bytes = 0
        self._source_bytes = 0
        self._listings: dict[str, _Listing] = {}
        self._meant: dict[tuple[str, str], str | None] = {}

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    @property
    def opened(self) -> list[tuple[str, int]]:
        """Return the prompt files that were embedded, with their sizes in characters."""
        return [(path, len(text)) for path, text in self.prompts.items()]

    @property
    def prompts(self) -> dict[str, str]:
        """Return the texts of the prompt files served so far, in order of first use."""
        return {path: text for path, text in self._prompts.items() if isinstance(text, str)}

    def prompt(self, path: str) -> str | Refusal:
        """Return the text of a prompt file: line ends become LF, a byte-order mark is dropped."""
        name = normalise(path)
        if isinstance(name, Refusal):
            return name
        if name not in self._prompts:
            self._prompts[name] = self._read_prompt(name)
        return self._prompts[name]

    def _read_prompt(self, name: str) -> str | Refusal:
        data = self._read(name, self._limits.prompt_bytes, "one prompt file")
        if isinstance(data, Refusal):
            return data
        self._prompt_bytes += len(data)
        if self._prompt_bytes > self._limits.all_prompt_bytes:
            return over("all prompt files together", self._limits.all_prompt_bytes, self._prompt_bytes)
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            return Refusal(
                "prompt-not-utf8",
                f'"{name}" is not UTF-8: byte {data[error.start]:#04x} at offset {error.start}; save the file as UTF-8',
            )
        if has_mark(text):
            message = f'"{name}" holds a reserved character, U+100000 to U+100FFF; remove it'
            return Refusal("path-refused", message)
        return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")

    def module(self, path: str) -> tuple[str, bytes] | Refusal:
        """Return the normalised path and the bytes of a module; charge() counts them."""
        name = module_name(path)
        if isinstance(name, Refusal):
            return name
        if name.startswith(STANDARD_LIBRARY):
            return _standard_module(name)
        data = self._read(name, self._limits.source_bytes, "one source file")
        return data if isinstance(data, Refusal) else (name, data)

    def has(self, path: str) -> bool:
        """Tell whether there is a regular file, or a link, at a path without ".." below the pack.

        Where a link leads is not looked at: whether there is something is nothing that a pack may find out.
        """
        parts = [part for part in path.split("/") if part not in ("", ".")]
        mode = 0
        try:
            for depth in range(1, len(parts) + 1):
                mode = os.stat("/".join(parts[:depth]), dir_fd=self._directory, follow_symlinks=False).st_mode
                if stat.S_ISLNK(mode):
                    return True
        except (OSError, ValueError):
            return False
        return stat.S_ISREG(mode)

    def charge(self, size: int) -> Refusal | None:
        """Count a source against the ceiling of all sources together."""
        self._source_bytes += size
        if self._source_bytes > self._limits.all_source_bytes:
            return over("all sources together", self._limits.all_source_bytes, self._source_bytes)
        return None

    def entries(self, directory: str) -> list[tuple[str, bool]]:
        """Return what a directory of the pack holds but for what is hidden and links; true beside a directory."""
        found: list[tuple[str, bool]] = []
        parts = [part for part in directory.split("/") if part not in ("", ".")]
        if ".." in parts:
            return found
        descriptor = os.dup(self._directory)
        try:
            for part in parts:
                below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = below
            for entry in sorted(filter(_is_text, _names(descriptor))):
                mode = os.stat(entry, dir_fd=descriptor, follow_symlinks=False).st_mode
                if not entry.startswith(b".") and (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                    found.append((entry.decode(), stat.S_ISDIR(mode)))
        except (OSError, ValueError):
            return found
        finally:
            os.close(descriptor)
        return found

    def _read(self, name: str, most: int, ceiling: str) -> bytes | Refusal:
        """Read a file below the pack: as it is unsaved, where it is, unless its path is refused."""
        saved = self._saved(name, most, ceiling)
        data = self._unsaved.get(name)
        if data is None or (isinstance(saved, Refusal) and saved.code == "path-refused"):
            return saved
        return over(ceiling, most, len(data)) if len(data) > most else data

    def _saved(self, name: str, most: int, ceiling: str) -> bytes | Refusal:
        """Read a regular file below the pack without following any link."""
        directory = os.dup(self._directory)
        try:
            for depth in range(name.count("/") + 1):
                opened = self._open_below(directory, name, depth)
                if isinstance(opened, Refusal):
                    return opened
                os.close(directory)
                directory = opened
            return _read_regular(directory, name, most, ceiling)
        except OSError as error:
            return _unreadable(name, error)
        finally:
            os.close(directory)

    def _open_below(self, directory: int, name: str, depth: int) -> int | Refusal:
        """Open the component of a path at a depth, in the directory that the ones before it lead to, or say why not."""
        part, folder = name.split("/")[depth], depth < name.count("/")
        encoded = part.encode(errors="surrogatepass")
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_DIRECTORY if folder else 0)
        try:
            opened = os.open(encoded, flags, dir_fd=directory)
        except OSError as error:
            return self._why_not(directory, name, depth, error)
        # A file system that ignores case opens what another would not find.
        try:
            listing = self._listed(directory, name, depth)
            if encoded not in listing.names and listing.in_another_case(part) is None:
                listing = self._listed(directory, name, depth, anew=True)  # it may have come since
        except OSError as error:
            os.close(opened)
            return _unreadable(name, error)
        if encoded in listing.names:
            return opened
        os.close(opened)
        return _wrong_case(listing, name, depth) or _missing(name)

    def _listed(self, directory: int, name: str, depth: int, *, anew: bool = False) -> _Listing:
        """Return what the directory holds that a path leads to at a depth; raises OSError when nobody may list it."""
        above = "/".join(name.split("/")[:depth])
        if anew or above not in self._listings:
            self._listings[above] = _Listing(_names(directory))
        return self._listings[above]

    def _why_not(self, directory: int, name: str, depth: int, error: OSError) -> Refusal:
        """Explain a failed open of one component."""
        part, folder = name.split("/")[depth], depth < name.count("/")
        encoded = part.encode(errors="surrogatepass")
        try:
            mode = os.stat(encoded, dir_fd=directory, follow_symlinks=False).st_mode
        except OSError:
            mode = 0
        if stat.S_ISLNK(mode):
            return Refusal("path-refused", f'"{part}" in "{name}" is a symbolic link; a path goes through none')
        if folder and mode and not stat.S_ISDIR(mode):
            return Refusal("path-refused", f'"{part}" in "{name}" is not a directory')
        if mode and not folder and not stat.S_ISREG(mode):
            return Refusal("path-refused", f'"{name}" is not a regular file; name one')
        if error.errno == errno.ENOENT:
            try:
                listing = self._listed(directory, name, depth)
            except OSError:
                return _missing(name)
            return _wrong_case(listing, name, depth) or _missing(name, self._near(listing, name, depth))
        if error.errno == errno.ENAMETOOLONG:
            return Refusal("path-refused", _TOO_LONG)
        return _unreadable(name, error)

    def _near(self, listing: _Listing, name: str, depth: int) -> str | None:
        """Return the path that was most likely meant by one whose component at a depth is not there."""
        parts = name.split("/")
        key = ("/".join(parts[:depth]), parts[depth])
        if key not in self._meant and len(self._meant) < MOST_SEARCHED:
            self._meant[key] = nearest(parts[depth], listing.texts)
        guess = self._meant.get(key)
        return guess and _with_part(name, depth, guess)


def _missing(name: str, meant: str | None = None) -> Refusal:
    """Say that a file is not there; a module of the standard library may be meant."""
    module = STANDARD_LIBRARY + name.rpartition("/")[2]
    meant = meant or (module if module in standard_library() else None)
    tail = f'; did you mean "{meant}"?' if meant else ""
    return Refusal("file-not-found", f'"{name}" does not exist in the pack{tail}', meant)


def _wrong_case(listing: _Listing, name: str, depth: int) -> Refusal | None:
    """Say that a file of that name exists in another case, if one does."""
    entry = listing.in_another_case(name.split("/")[depth])
    if entry is None:
        return None
    meant = _with_part(name, depth, entry)
    message = f'"{name}" differs in case from "{meant}", the file in the pack; did you mean "{meant}"?'
    return Refusal("path-refused", message, meant)


def module_name(path: str) -> str | Refusal:
    """Return the normalised path that a load names, or why its spelling is refused."""
    if path.startswith(STANDARD_LIBRARY):
        return path
    name = normalise(path)
    if not isinstance(name, Refusal) and not name.endswith(".star"):
        return Refusal("path-refused", f'load() takes files that end in .star, not "{path}"')
    return name


def _names(directory: int) -> list[bytes]:
    """List a directory as bytes, whatever the locale."""
    return [os.fsencode(entry) for entry in os.listdir(directory)]


def _unreadable(name: str, error: OSError) -> Refusal:
    return Refusal("file-not-found", f'"{name}" cannot be read: {os.strerror(error.errno or 0)}')


def _is_text(entry: bytes) -> bool:
    try:
        entry.decode()
    except UnicodeDecodeError:
        return False
    return True


def _with_part(name: str, depth: int, other: str) -> str:
    """Put another component in the place of one in a path."""
    parts = name.split("/")
    parts[depth] = other
    return "/".join(parts)


def _read_regular(descriptor: int, name: str, most: int, ceiling: str) -> bytes | Refusal:
    """Read a whole regular file through its descriptor, at most ``most`` bytes."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return Refusal("path-refused", f'"{name}" is not a regular file; name one')
    if status.st_size > most:
        return over(ceiling, most, status.st_size)
    data = b"".join(_blocks(descriptor, most + 1))
    return over(ceiling, most, len(data)) if len(data) > most else data


def _blocks(descriptor: int, most: int) -> Iterator[bytes]:
    """Yield what a descriptor gives, at most ``most`` bytes."""
    while most > 0:
        block = os.read(descriptor, min(most, _BLOCK))
        if not block:
            return
        most -= len(block)
        yield block


def over(ceiling: str, most: int, measured: int) -> Refusal:
    """Say that a number of bytes is above its ceiling."""
    return Refusal("limit-exceeded", f"{ceiling} may have at most {most:,} bytes; this is {measured:,}")


def read_named(
    path: str, most: int, ceiling: str = "one source file", *, follow: bool = True, directory: int | None = None
) -> bytes | Refusal:
    """Read a file that a person named, at most ``most`` bytes; raise Unreadable when that is not possible.

    A file over the ceiling is a refusal; one that does not exist, is a directory, a device or a
    pipe, or may not be read, is not an input at all. Without ``follow``, for a file that nobody named but the
    pack itself, neither is a link. ``directory`` is where the path begins.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags, dir_fd=directory)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ELOOP and not follow:
            raise Unreadable("it is a symbolic link") from None
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise Unreadable(reason) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable("Is a directory" if stat.S_ISDIR(status.st_mode) else "Not a regular file")
        return _read_regular(descriptor, path, most, ceiling)
    except OSError as error:
        raise Unreadable(os.strerror(error.errno or 0)) from None
    finally:
        os.close(descriptor)


def read_found(path: str, root: str | None, most: int, ceiling: str = "one source file") -> bytes | Refusal:
    """Read a file that a search below ``root`` found, or without it one that a person named, as ``read_named``."""
    if root is None:
        return read_named(path, most, ceiling)
    folder, name = os.path.split(path)
    try:
        directory = open_found(folder, root)
    except OSError as error:
        raise Unreadable(os.strerror(error.errno or 0)) from None
    try:
        return read_named(name, most, ceiling, follow=False, directory=directory)
    finally:
        os.close(directory)


def open_found(folder: str, root: str) -> int:
    """Open a folder that a search below ``root`` found; the way there goes through no link. Raises OSError."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    descriptor = os.open(root or ".", flags)
    try:
        for part in os.path.relpath(folder or ".", root or ".").split("/"):
            below = os.open(part, flags | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_input(path: str, limits: Limits, root: str | None = None) -> bytes | Refusal:
    """Read what --file names: a source, or IR that was written by hand, which holds whole prompts and may be larger.

    ``root`` is that of ``read_found``. Raises Unreadable when the file cannot be read at all.
    """
    if path.endswith((".toml", ".json")):
        return read_found(path, root, limits.json_bytes, "a manifest, a plan file or a canonical JSON")
    return read_found(path, root, limits.source_bytes)


def standard_library() -> dict[str, str]:
    """Return the files of the standard library, which is package data of this project, by the paths of their loads."""
    folder = os.path.normpath(os.path.join(os.path.dirname(__file__), "..", "..", "stdlib_star"))
    names = sorted(entry for entry in os.listdir(folder) if entry.endswith(".star"))
    return {STANDARD_LIBRARY + name: os.path.join(folder, name) for name in names}


def _standard_module(path: str) -> tuple[str, bytes] | Refusal:
    """Return a module of the standard library."""
    known = standard_library()
    if path not in known:
        guess = nearest(path.removeprefix(STANDARD_LIBRARY), [name.removeprefix(STANDARD_LIBRARY) for name in known])
        tail = f'; did you mean "{STANDARD_LIBRARY}{guess}"?' if guess else ""
        message = f'the standard library has no module "{path.removeprefix(STANDARD_LIBRARY)}"{tail}'
        return Refusal("file-not-found", message, STANDARD_LIBRARY + guess if guess else None)
    with open(known[path], "rb") as file:
        return path, file.read()

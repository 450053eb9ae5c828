"""A first pack: the files of a lane, whole and ready to run, as they are shipped in starters/.

In goes the name of a lane, out come names and contents; writing them never touches a file that is there.
"""

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from crucible.schemas.ir import LANES

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

DEFAULT: Final = LANES[0]
IGNORE: Final = ".gitignore"
# What a run makes in the pack's folder.
_IGNORED: Final = "/state/\n/workspace/\n"
_PROGRAM: Final = ".sh"


class File(NamedTuple):
    """A file of a pack: its path below it, with / separators, what it holds, and whether it is a program."""

    name: str
    data: bytes
    is_program: bool


class Exists(Exception):
    """Files of the pack are there already; the text names them."""


def starter(lane: str) -> list[File]:
    """Return the files of a first pack of a lane, by name; raise KeyError for a lane that there is not."""
    from importlib.resources import files

    if lane not in LANES:
        raise KeyError(lane)
    return sorted(_below(files("crucible.compiler") / "starters" / lane, ""))


def _below(folder: "Traversable", head: str) -> list[File]:
    found = []
    for entry in folder.iterdir():
        name = f"{head}{entry.name}"
        found += (
            _below(entry, f"{name}/") if entry.is_dir() else [File(name, entry.read_bytes(), name.endswith(_PROGRAM))]
        )
    return found


def write(files: list[File], directory: str) -> list[str]:
    """Write the files of a pack into a directory, all or none, and return their paths.

    A .gitignore is added where there is none. Raises Exists, and OSError with a path.
    """
    there = [each.name for each in files if os.path.lexists(os.path.join(directory, each.name))]
    if there:
        raise Exists(", ".join(os.path.join(directory, name) for name in there))
    if not os.path.lexists(os.path.join(directory, IGNORE)):
        files = [*files, File(IGNORE, _IGNORED.encode(), is_program=False)]
    written: list[str] = []
    made: list[str] = []
    try:
        for file in files:
            path = os.path.join(directory, file.name)
            _make(os.path.dirname(path), made)
            with open(path, "xb", opener=_program if file.is_program else None) as new:
                written.append(path)
                new.write(file.data)
    except BaseException as error:
        for path in written:
            with suppress(OSError):
                os.unlink(path)
        for folder in reversed(made):
            with suppress(OSError):
                os.rmdir(folder)
        if isinstance(error, FileExistsError) and isinstance(error.filename, str):
            raise Exists(error.filename) from None
        raise
    return written


def _make(folder: str, made: list[str]) -> None:
    """Make a folder and those above it, and remember which."""
    if folder and not os.path.isdir(folder):
        _make(os.path.dirname(folder), made)
        os.mkdir(folder)
        made.append(folder)


def _program(path: str, flags: int) -> int:
    return os.open(path, flags, 0o777)

"""The sources below a directory, as git sees it: what .gitignore excludes, hidden folders and links are passed over.

In: the paths that a person named. Out: the files to lint, and what could not be listed. The only owner of pathspec.
"""

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from crucible.compiler.pipeline import Unreadable, read_named

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

SOURCE: Final = "workflow.star"
MANIFEST: Final = "crucible.toml"
_IGNORE: Final = ".gitignore"
_MOST_BYTES: Final = 1 << 20


class Found(NamedTuple):
    """A directory's sources, the directories below it that could not be listed, with the reasons, and broken links."""

    files: list[str]
    unlisted: list[tuple[str, str]]
    broken: list[str]


class _Ignored(NamedTuple):
    """The patterns of one .gitignore, which hold below its folder."""

    folder: str
    spec: "GitIgnoreSpec"


def discover(directory: str) -> Found:
    """Find every workflow.star and crucible.toml below a directory, in the order of their paths."""
    start = os.path.realpath(directory)
    above = _above(start)
    if _is_ignored(f"{start}/", above):
        above = []  # who names an ignored directory means it
    files: list[str] = []
    unlisted: list[tuple[str, str]] = []
    broken: list[str] = []
    pending = [(directory, start, above)]
    while pending:
        shown, folder, ignored = pending.pop()
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            unlisted.append((shown, os.strerror(error.errno or 0)))
            continue
        ignored = [*ignored, *_read(folder)]
        folders = []
        for entry in found:
            name, path = entry.name, os.path.join(folder, entry.name)
            below = name if shown in ("", ".") else os.path.join(shown, name)
            if name in (SOURCE, MANIFEST):
                is_broken = entry.is_symlink() and not os.path.exists(path)
                if (is_broken or entry.is_file()) and not _is_ignored(path, ignored):
                    (broken if is_broken else files).append(below)
            elif entry.is_dir(follow_symlinks=False) and not _is_apart(path) and not _is_ignored(f"{path}/", ignored):
                folders.append((below, path, ignored))
        pending.extend(reversed(folders))
    return Found(sorted(files), unlisted, sorted(broken))


def _is_apart(path: str) -> bool:
    """Tell whether a folder is hidden, or an environment that tools made."""
    return os.path.basename(path).startswith(".") or os.path.lexists(os.path.join(path, "pyvenv.cfg"))


def _above(start: str) -> list[_Ignored]:
    """Return what the folders above a directory ignore, as far as its repository goes."""
    found: list[_Ignored] = []
    folder = start
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return []  # no repository: the files of a whole machine are not asked
        folder = above
        found[:0] = _read(folder)
    return found


def _read(folder: str) -> list[_Ignored]:
    """Read the .gitignore of a folder, if it has one that can be read."""
    path = os.path.join(folder, _IGNORE)
    if not os.path.isfile(path):
        return []
    from pathspec import GitIgnoreSpec

    try:
        data = read_named(path, _MOST_BYTES)
    except Unreadable:
        return []
    if not isinstance(data, bytes):
        return []
    text = data.decode(errors="surrogateescape").removeprefix("\ufeff")
    specs = []
    try:
        specs = [GitIgnoreSpec.from_lines(text.splitlines())]
    except ValueError:  # git passes over a pattern that is none
        for line in text.splitlines():
            try:
                specs.append(GitIgnoreSpec.from_lines([line]))
            except ValueError:
                continue
    return [_Ignored(folder, spec) for spec in specs]


def _is_ignored(path: str, ignored: list[_Ignored]) -> bool:
    """Tell whether a path, which ends in / for a folder, is ignored: the last that fits decides, deeper first."""
    for folder, spec in reversed(ignored):
        below = path.removeprefix(folder.rstrip("/") + "/")
        include = spec.check_file(below).include if below not in ("", path) else None
        if include is not None:
            return bool(include)
    return False

"""The sources below a directory, as git sees it: what .gitignore excludes, hidden folders and links are passed over.

In: the paths that a person named. Out: the files to lint, and what could not be listed.
"""

import os
import time
from typing import Final, NamedTuple

from crucible.cli.ignored import Pattern, read, verdict
from crucible.compiler.frontend.limits import LIMITS, Limits
from crucible.compiler.pipeline import Unreadable, read_named

SOURCE: Final = "workflow.star"
MANIFEST: Final = "crucible.toml"
_IGNORE: Final = ".gitignore"


class Found(NamedTuple):
    """A directory's sources, the directories below it that could not be searched, with the reasons, and links.

    A link that stands for a source may lead anywhere; those to sources that were found anyway are left out.
    """

    files: list[str]
    unlisted: list[tuple[str, str]]
    links: list[str]


class _Ignored(NamedTuple):
    """The patterns of one .gitignore, which hold below its folder, and its size."""

    folder: str
    patterns: list[Pattern]
    size: int


def discover(directory: str, limits: Limits = LIMITS) -> Found:
    """Find every workflow.star and crucible.toml below a directory, in the order of their paths."""
    return _Search(limits).run(directory)


class _Search:
    """One search; what its paths are compared with comes from the pack, so the time for that is counted."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._seconds = 0.0
        self._files: list[str] = []
        self._links: list[tuple[str, str]] = []

    def run(self, directory: str) -> Found:
        """Search a directory."""
        start = os.path.realpath(directory)
        unlisted: list[tuple[str, str]] = []
        pending = [(directory, start, self._above(start))]
        while pending:
            shown, folder, ignored = pending.pop()
            try:
                pending += self._folder(shown, folder, ignored)
            except OSError as error:
                unlisted.append((shown, os.strerror(error.errno or 0)))
        real = {os.path.realpath(path) for path in self._files} if self._links else set()
        links = [shown for shown, path in self._links if os.path.realpath(path) not in real]
        return Found(sorted(self._files), unlisted, sorted(links))

    def _folder(self, shown: str, folder: str, ignored: list[_Ignored]) -> list[tuple[str, str, list[_Ignored]]]:
        """Take the sources of one folder, and return the folders in it, the first last."""
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name, reverse=True)
        ignored = self._with_own(ignored, folder)
        folders = []
        for entry in found:
            name, path = entry.name, os.path.join(folder, entry.name)
            below = name if shown in ("", ".") else os.path.join(shown, name)
            if name in (SOURCE, MANIFEST):
                is_link = entry.is_symlink()
                if (is_link or entry.is_file()) and not self._is_ignored(path, ignored, is_folder=False):
                    if is_link:
                        self._links.append((below, path))
                    else:
                        self._files.append(below)
            elif (
                entry.is_dir(follow_symlinks=False)
                and not _is_apart(path)
                and not self._is_ignored(path, ignored, is_folder=True)
            ):
                folders.append((below, path, ignored))
        return folders

    def _above(self, start: str) -> list[_Ignored]:
        """Return what the folders above a directory ignore, as far as its repository goes."""
        folders = [start]
        while not os.path.lexists(os.path.join(folders[-1], ".git")):
            above = os.path.dirname(folders[-1])
            if above == folders[-1]:
                return []  # no repository: the files of a whole machine are not asked
            folders.append(above)
        ignored: list[_Ignored] = []
        for folder, below in zip(folders[:0:-1], folders[-2::-1], strict=True):
            ignored = self._with_own(ignored, folder)
            if self._is_ignored(below, ignored, is_folder=True):
                return []  # who names an ignored directory means it
        return ignored

    def _with_own(self, ignored: list[_Ignored], folder: str) -> list[_Ignored]:
        """Return what holds in a folder: what held above it, and the .gitignore that it may have."""
        path = os.path.join(folder, _IGNORE)
        if not os.path.lexists(path):
            return ignored
        most = self._limits.ignore_bytes - sum(each.size for each in ignored)
        try:
            data = read_named(path, most, follow=False)
        except Unreadable:
            return ignored
        if not isinstance(data, bytes):
            return ignored  # too much to compare every path with: rather too many files are searched than too few
        return [*ignored, _Ignored(folder, read(data), len(data))]

    def _is_ignored(self, path: str, ignored: list[_Ignored], *, is_folder: bool) -> bool:
        """Tell whether a path is ignored: the last pattern that fits decides, deeper ones first."""
        if self._seconds > self._limits.seconds:
            return False  # as long as people may wait for that
        found = None
        begin = time.monotonic()
        for folder, patterns, _ in reversed(ignored):
            found = verdict(path[len(folder.rstrip("/")) + 1 :], patterns, is_folder=is_folder)
            if found is not None:
                break
        self._seconds += time.monotonic() - begin
        return bool(found)


def _is_apart(path: str) -> bool:
    """Tell whether a folder is hidden, or an environment that tools made."""
    return os.path.basename(path).startswith(".") or os.path.lexists(os.path.join(path, "pyvenv.cfg"))

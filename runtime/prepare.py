"""Makes a workspace ready before the first task: set up, cloned, copied or empty, with its injects, and committed.

A workspace that holds anything is used as it is, unless an earlier preparation of ours was cut short: then
it is moved aside, into the state directory, and made again. Which commit is the baseline is written down there.
"""

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from crucible.runtime import careful, tree
from crucible.runtime.git import LEADING, Git, GitFailed
from crucible.runtime.process import Command, Exit, Processes

if TYPE_CHECKING:
    from crucible.runtime.injects import Stock

_NOTHING: Final[Mapping[str, str]] = {}
RECORD: Final = "workspace.json"
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
UNFINISHED: Final = "preparing"
_ASIDE: Final = "unfinished"
_MOST_SAID: Final = 4096
_MOST_RECORD: Final = 1 << 16
_AUTHOR: Final = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Crucible"), ("EMAIL", "crucible@localhost"))
}
_OURS: Final = (
    "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false", "-c", "gc.auto=0", "-c", "core.fsmonitor=false",
)  # fmt: skip


class Unprepared(Exception):
    """The workspace cannot be made ready; the text says why."""


class Origin(NamedTuple):
    """What a manifest says of where the workspace comes from.

    ``manifest`` is its directory. At most one of ``url`` and ``path`` is given; without either, and without
    a set-up, the workspace begins empty. What is copied of ``path`` is without the folders of ``skip``.
    """

    manifest: str
    setup_cmd: str | None = None
    url: str | None = None
    path: str | None = None
    ref: str | None = None
    skip: tuple[str, ...] = ()


class Prepared(NamedTuple):
    """Whether the workspace was made now, and the commit of its baseline, None when it has none."""

    is_new: bool
    base: str | None


class Preparation:
    """Making one workspace ready."""

    def __init__(
        self,
        folder: str,
        state: str,
        processes: Processes,
        environ: Mapping[str, str],
        ours: str,
        stock: "Stock | None",
    ) -> None:
        """Keep what it takes; ``folder`` and ``state`` are real paths, ``ours`` a folder for what we need meanwhile."""
        self.folder: Final = folder
        self._state = state
        self._processes = processes
        self._environ = environ
        self._ours = ours
        self._stock = stock
        self._git = Git(processes, environ, ours)

    def prepare(self, origin: Origin, logs: str) -> Prepared:
        """Make the workspace ready; what the set-up prints goes to ``setup.out`` and ``setup.err`` in ``logs``.

        Raises Unprepared.
        """
        marker = os.path.join(self._state, UNFINISHED)
        try:
            if self._is_in_use(marker):
                base = recorded_base(self._state, self.folder)
                return Prepared(is_new=False, base=base or self._record(self._head(self.folder)))
            self._clear(marker)
            self._fetch(origin, logs)
            if not os.path.isdir(self.folder):
                raise Unprepared(f"setup_cmd made no folder {self.folder}")
            if self._stock is not None:
                self._stock.put(self.folder, frozen_only=False)
            base = self._record(self._commit(is_ours=origin.setup_cmd is None))
            os.unlink(marker)
        except GitFailed as failed:
            raise Unprepared(f"the workspace cannot be prepared: {failed}") from None
        except OSError as error:
            where = f"{error.filename}: " if error.filename is not None else ""
            raise Unprepared(f"the workspace cannot be prepared: {where}{error.strerror or error}") from None
        return Prepared(is_new=True, base=base)

    def _is_in_use(self, marker: str) -> bool:
        """Tell whether the workspace holds anything that is not the rest of a preparation."""
        if not os.path.lexists(self.folder):
            return False
        if not os.path.isdir(self.folder):
            raise Unprepared(f"{self.folder} is to be the workspace, and is no folder")
        return bool(os.listdir(self.folder)) and _text(marker) != self.folder

    def _clear(self, marker: str) -> None:
        """Note that a preparation is under way, and move aside what an earlier one left."""
        careful.write(marker, os.fsencode(self.folder))
        os.makedirs(os.path.dirname(self.folder), exist_ok=True)
        if os.path.lexists(self.folder) and os.listdir(self.folder):
            # Never removed: somebody may have worked in it since.
            with tree.opened(self._state) as state:
                tree.remove(state, _ASIDE)
            os.rename(self.folder, os.path.join(self._state, _ASIDE))
        with suppress(OSError):
            os.rmdir(self.folder)

    def _fetch(self, origin: Origin, logs: str) -> None:
        """Bring the files into the workspace."""
        if origin.setup_cmd is not None:
            self._set_up(origin.setup_cmd, origin.manifest, logs)
        elif origin.url is not None:
            self._clone(origin.url, origin, is_closed=False)
        elif origin.path is not None:
            source = os.path.realpath(os.path.join(origin.manifest, origin.path))
            if not os.path.isdir(source):
                raise Unprepared(f"[repo].path names {source}, which is no folder")
            if self._is_repository(source):
                self._clone(source, origin, is_closed=True)
            elif origin.ref is not None:
                raise Unprepared(f"[repo].ref is given, and {source} is not the top of a git repository")
            else:
                self._copy(source, origin.skip)
        else:
            os.makedirs(self.folder, exist_ok=True)

    def _set_up(self, script: str, directory: str, logs: str) -> None:
        os.makedirs(logs, exist_ok=True)
        out, err = (os.path.join(logs, f"setup.{name}") for name in ("out", "err"))
        script = os.fsdecode(script.encode())
        environ = {name: value for name, value in self._environ.items() if name not in LEADING}
        ended = self._processes.run(Command(("sh", "-c", script), environ, directory, out, err))
        if ended.cause is not None:
            raise Unprepared(ended.cause)
        if ended.code != 0:
            raise Unprepared(f"setup_cmd failed: {_how(ended)}{_last_line(err)}")

    def _clone(self, source: str, origin: Origin, *, is_closed: bool) -> None:
        # Copies and no hard links: what is changed in place over here must not change over there.
        self._git("clone", "--quiet", "--no-hardlinks", "--template=", "--", source, self.folder,
                      directory=origin.manifest, is_closed=is_closed)  # fmt: skip
        if origin.ref is not None:
            if origin.ref.startswith("-"):
                raise Unprepared(f'[repo].ref is no revision: "{origin.ref}"')
            self._git("checkout", "--quiet", origin.ref, "--", directory=self.folder, is_closed=is_closed)

    def _copy(self, source: str, skip: tuple[str, ...]) -> None:
        os.makedirs(self.folder, exist_ok=True)
        leave_out = tree.places(self.folder, self._state, *skip)
        with tree.opened(source) as old, tree.opened(self.folder) as new:
            tree.copy(old, new, leave_out, lambda: self._processes.stopped is not None)
        if self._processes.stopped is not None:
            raise Unprepared(self._processes.stopped)

    def _is_repository(self, folder: str) -> bool:
        """Tell whether a folder is the top of a repository, or a bare one."""
        try:
            found = self._git("rev-parse", "--is-bare-repository", "--show-prefix", "--absolute-git-dir",
                                  directory=folder, is_closed=False)  # fmt: skip
        except GitFailed as failed:
            if failed.cause is None and str(failed).startswith("not a git repository"):
                return False
            raise
        is_bare, prefix, directory = os.fsdecode(found).split("\n", 2)
        return os.path.realpath(directory.rstrip("\n")) == folder if is_bare == "true" else not prefix

    def _commit(self, *, is_ours: bool) -> str | None:
        """Commit the workspace as the baseline, unless its set-up left a commit; return the baseline's name."""
        if not os.path.lexists(os.path.join(self.folder, ".git")):
            self._git("-c", "init.defaultBranch=main", "init", "--quiet", "--template=", directory=self.folder)
        places = {"GIT_DIR": os.path.join(self.folder, ".git"), "GIT_WORK_TREE": self.folder}
        head = self._head(self.folder)
        if head is not None and not is_ours:
            return head
        self._git(*_OURS, "add", "--all", directory=self.folder, also=places)
        if self._stock is not None:
            paths = os.path.join(self._ours, "paths")
            names = (b":(top,literal)%b\0" % os.fsencode(target) for target in self._stock.targets)
            careful.write(paths, b"".join(names))
            self._git(*_OURS, "add", "--force", f"--pathspec-from-file={paths}", "--pathspec-file-nul",
                          directory=self.folder, also=places)  # fmt: skip
        date = "@0 +0000"
        if head is not None:
            if not self._git("diff-index", "--cached", "--name-only", "HEAD", directory=self.folder, also=places):
                return head
            seconds = self._git("log", "-1", "--format=%ct", directory=self.folder, also=places)
            date = f"@{os.fsdecode(seconds).strip()} +0000"
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        self._git(*_OURS, "commit", "--quiet", "--no-verify", "--allow-empty", "--message", "baseline",
                      directory=self.folder, also={**places, **dates, **_AUTHOR})  # fmt: skip
        return self._head(self.folder)

    def _head(self, folder: str) -> str | None:
        """Return the commit that a folder's repository stands at."""
        try:
            found = self._git("rev-parse", "--verify", "--quiet", "HEAD^{commit}", directory=folder, is_closed=False)
        except GitFailed as failed:
            if failed.cause is not None:
                raise
            return None
        return os.fsdecode(found).strip()

    def _record(self, base: str | None) -> str | None:
        record(self._state, Baseline(self.folder, base))
        return base


class Baseline(NamedTuple):
    """A workspace, and the commit of its baseline, None when it has none."""

    workspace: str
    commit: str | None


def record(state: str, baseline: Baseline) -> None:
    """Write down a baseline; raises OSError."""
    if os.path.isdir(os.path.join(state, RECORD)):
        with tree.opened(state) as folder:
            tree.remove(folder, RECORD)
    new = os.path.join(state, f"{RECORD}.new")
    careful.write(new, json.dumps({"workspace": baseline.workspace, "base": baseline.commit}).encode())
    os.replace(new, os.path.join(state, RECORD))


def recorded(state: str) -> Baseline | None:
    """Return the baseline that an earlier run wrote down, None without one."""
    try:
        found = json.loads(careful.read(os.path.join(state, RECORD), _MOST_RECORD))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("workspace"), str):
        return None
    base = found.get("base")
    return Baseline(found["workspace"], base if isinstance(base, str) and _COMMIT.fullmatch(base) else None)


def recorded_base(state: str, folder: str) -> str | None:
    """Return the baseline's commit of a workspace that an earlier run knew, None without one."""
    found = recorded(state)
    return found.commit if found is not None and found.workspace == os.path.realpath(folder) else None


def _how(ended: Exit) -> str:
    if ended.fault is not None:
        return f"it could not be started: {ended.fault.strerror or ended.fault}"
    return f"signal {ended.signal}" if ended.code is None else f"exit {ended.code}"


def _last_line(path: str) -> str:
    """Return the last line of a log behind a colon, "" when it has none."""
    try:
        said = careful.end_of(path, _MOST_SAID, os.stat(path).st_size)
    except OSError:
        return ""
    lines = [line for line in said.decode(errors="replace").split("\n") if line.strip()]
    return f": {lines[-1].strip()}" if lines else ""


def _text(path: str) -> str | None:
    try:
        return os.fsdecode(careful.read(path, _MOST_RECORD))
    except OSError:  # what is no file there is none of ours
        return None

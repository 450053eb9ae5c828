"""Makes the workspace of a scored loop ready, and its world: made anew, used again, or its author's own checkout.

In go the two folders, out comes a world that has its first state. What somebody may have worked in is never touched:
it is clean, or made by us, or refused.
"""

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from crucible.runtime import careful, results
from crucible.runtime.git import Git, GitFailed
from crucible.runtime.prepare import UNFINISHED, recorded
from crucible.runtime.workspace import Refused
from crucible.runtime.world import (
    ESCALATION,
    RESULTS,
    SKILLS,
    TASK_RESULT,
    GitWorld,
    Lost,
    Unkept,
    known,
    sha_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from crucible.runtime.prepare import Origin
    from crucible.runtime.process import Processes
    from crucible.runtime.workspace import Workspace

_BEGINNING: Final = "beginning"
_QUIETLY: Final = ("-c", "core.fsmonitor=false")


class InUse(Exception):
    """Another run works in the workspace; the text says which."""


class Hold:
    """A workspace that no other run gets, whatever its state directory; given back when the process ends."""

    def __init__(self, folder: str, doing: str = "runs") -> None:
        """Take it, and make it where somebody has removed it; raise InUse, and Refused for what is no folder.

        ``doing`` is what the others are told that one does here.
        """
        import fcntl

        try:
            os.makedirs(folder, exist_ok=True)
            self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise Refused(f"{folder} is to be the workspace, and cannot be: {error.strerror or error}") from None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = _holder(self._descriptor)
            os.close(self._descriptor)
            raise InUse(f"{who} {doing} in {folder} already") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Give it back."""
        os.close(self._descriptor)


def _holder(descriptor: int) -> str:
    """Say who holds the lock on an open folder, as far as the system tells."""
    found = os.fstat(descriptor)
    place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    try:
        with open("/proc/locks", encoding="ascii") as file:
            rows = [line.split() for line in file]
    except OSError:
        rows = []
    pids = [row[4] for row in rows if len(row) > 5 and row[1] == "FLOCK" and row[5] == place]  # noqa: PLR2004
    return f"process {pids[0]}" if pids else "another process"


class Site:
    """The folders of one run of a loop."""

    def __init__(
        self,
        folder: str,
        state: str,
        processes: "Processes",
        environ: "Mapping[str, str]",
        *,
        is_own: bool,
        has_toolbox: bool = False,
        apart: bool,
        others: "Collection[str]" = (),
    ) -> None:
        """Keep what it takes; ``is_own`` tells whether the workspace is its author's checkout.

        ``has_toolbox`` tells whether skills are laid out in it; all else is the world's.
        """
        self.folder: Final = folder
        self.world: Final = GitWorld(folder, state, processes, environ, apart=apart, others=others)
        self._state = state
        self.put_by: tuple[str, str] | None = None  # where the states of an earlier run are
        self._is_own = is_own
        self._has_toolbox = has_toolbox
        self._marker = os.path.join(state, _BEGINNING)
        scratch = os.path.join(state, "world")
        self._git = Git(processes, environ, scratch)

    @property
    def is_known(self) -> bool:
        """Tell whether there are states of the workspace."""
        found = known(self._state)
        return found is not None and found.workspace == self.folder

    def refusal(self) -> str | None:
        """Return why the workspace cannot be used for a new run; None when it can."""
        if self._is_ours() or self._is_free() or self._is_begun():
            return None
        if not os.path.isdir(self.folder):
            return f"{self.folder} is to be the workspace, and is no folder"
        base = recorded(self._state)
        is_prepared = base is not None and base.workspace == self.folder and base.commit is not None
        if not (self._is_own or is_prepared):
            return (
                f"{self.folder} has files, and no run of this state directory prepared it; move it away, or name "
                "another [workspace].dir"
            )
        try:
            prefix = self._ask("rev-parse", "--show-prefix").strip()
            changed = self._changed()
        except GitFailed as failed:
            return f"{self.folder} is to be worked in as it is, and cannot be: {failed}"
        theirs = self._theirs()
        if theirs is not None:
            return theirs
        if prefix:
            return f"{self.folder} is not the top of its git repository; a run keeps states of a whole checkout"
        if changed:
            return (
                f"{self.folder} is to be worked in as it is, and has changes that are not committed: {changed}; "
                "commit or stash them"
            )
        return None

    def begin(self, workspace: "Workspace", origin: "Origin", logs: str, earlier: int) -> bool:
        """Make the workspace ready for a new run; tell whether it was made now. Raises Refused.

        The states of the run before, the ``earlier`` one by its number, are ``put_by``.
        """
        found = known(self._state)
        try:
            if self._is_ours() and found is not None and self.world.has(found.first):
                self.world.go_on(found)
                self.put_by = self.world.put_by(earlier, is_whole=False)
                self.world.restore(found.first)
                workspace.prepare(origin, logs)  # it is in use: only its baseline is looked up
                return False
            if not self._is_own:
                careful.write(self._marker, os.fsencode(self.folder))
            is_new = workspace.prepare(origin, logs)
            tracked = self._ask("ls-files", "-z") if os.path.lexists(os.path.join(self.folder, ".git")) else b""
            self.put_by = self.world.put_by(earlier, is_whole=True)
            self.world.begin(tracked, is_ours=not self._is_own)
            with suppress(FileNotFoundError):
                os.unlink(self._marker)
        except (GitFailed, Lost, Unkept) as failed:
            raise Refused(str(failed)) from None
        except OSError as error:
            raise Refused(f"{error.filename}: {error.strerror}") from None
        return is_new

    def go_on(
        self, workspace: "Workspace", origin: "Origin", logs: str, token: str | None, last: int, *, died: bool
    ) -> str | None:
        """Make the workspace again what an earlier process kept last, the first state without one; raise Refused.

        That process left its author's own checkout in this state unless it ``died``: what differs now is theirs. If
        it died it may be theirs, too: it is put aside, and where is returned.
        """
        found = known(self._state)
        if found is None or not self.is_known:
            raise Refused(f"the states of {self.folder} are gone from {self._state}, so there is nothing to go on with")
        self.world.go_on(found)
        self.world.forget(last)
        token = token or found.first
        if not self.world.has(token):
            raise Refused(f"the state {sha_of(token)} is gone from {self._state}")
        aside = None
        try:
            changed = self.world.changed(token) if self._is_own else None
            if changed is not None and not died:
                raise Refused(
                    f"{self.folder} has changed since the run ended: {changed}; going on would undo that, so move it "
                    "away, or commit it and start a new run"
                )
            if changed is not None:
                aside = self.world.put_aside(token)
            self.world.restore(token)
        except (Lost, Unkept) as failed:
            raise Refused(str(failed)) from None
        workspace.prepare(origin, logs)
        if aside is None:
            return None
        shown = f"git --git-dir={os.path.join(self._state, 'world.git')} diff {sha_of(token)[:12]} {aside}"
        return f"{self.folder} was not left as the run keeps it, and is restored; what it had is put aside: {shown}"

    def _theirs(self) -> str | None:
        """Return why a run would write over what is its author's in their own checkout, None when it would not."""
        if not self._is_own:
            return None
        names = [TASK_RESULT, ESCALATION]
        names += [] if _is_results(os.path.join(self.folder, RESULTS)) else [RESULTS]
        names += [os.path.join(SKILLS, "skills")] if self._has_toolbox and not self.is_known else []
        found = next((name for name in names if os.path.lexists(os.path.join(self.folder, name))), None)
        return None if found is None else (
            f"{self.folder} is to be worked in as it is, and a run writes {found} there, which is not ours; move it "
            "away, or name another [workspace].dir"
        )  # fmt: skip

    def _is_ours(self) -> bool:
        found = known(self._state)
        return found is not None and self.is_known and found.is_ours and not self._is_own

    def _is_begun(self) -> bool:
        """Tell whether a run that died had prepared the workspace, and was about to keep its first state."""
        return not self._is_own and self._noted(self._marker) == self.folder

    def _is_free(self) -> bool:
        """Tell whether there is no workspace yet, or the rest of a preparation."""
        if not os.path.lexists(self.folder):
            return True
        if not os.path.isdir(self.folder):
            return False
        return not os.listdir(self.folder) or self._noted(os.path.join(self._state, UNFINISHED)) == self.folder

    def _noted(self, path: str) -> str:
        try:
            return os.fsdecode(careful.read(path))
        except OSError:
            return ""

    def _changed(self) -> str:
        """Return the first path that differs from the last commit, "" when none does but for what loops make."""
        ignore = ("-c", f"core.excludesFile={os.path.join(self._git.home, 'ignore')}")
        found = self._ask(*ignore, "status", "--porcelain", "--no-renames", "-z", "--ignore-submodules=none")
        for entry in found.split(b"\0"):
            path = os.fsdecode(entry[3:])
            if path and not any(path == name or path.startswith(f"{name}/") for name in self.world.left_out):
                return path
        return ""

    def _ask(self, *arguments: str) -> bytes:
        return self._git(*_QUIETLY, *arguments, directory=self.folder)


def _is_results(path: str) -> bool:
    """Tell whether a file is the table of a run, the rest of one that died while it wrote included."""
    try:
        return results.is_ours(careful.read(path))
    except OSError:
        return not os.path.lexists(path)

"""The folders that tasks run in: the workspace, made ready once, and a private clone for each isolated task.

``Workspace`` has the injects put back before every task, and all that it makes for itself in a folder of the
state directory that it holds a lock on: what a dead run left there is removed when the next one begins, what
a living one has is never touched.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from itertools import count

from crucible.runtime import leftovers, lock
from crucible.runtime import state as state_directory
from crucible.runtime.process import Command, Processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final, Self

    from crucible.runtime.git import Steps
    from crucible.runtime.injects import Inject, Stock
    from crucible.runtime.prepare import Origin
    from crucible.runtime.private import Captures
    from crucible.schemas.ir import Task

_PRIVATE: Final = "private"


class Refused(Exception):
    """There is no workspace, or no folder for a task to run in; the text says why."""


class Workspace:
    """The workspace of one run; a context manager that removes every private clone at its end."""

    def __init__(
        self,
        folder: str,
        state: str,
        processes: Processes,
        environ: Mapping[str, str],
        injects: Sequence[Inject] = (),
    ) -> None:
        """Keep what a run needs; both folders are absolute, and neither has to be there yet."""
        self.folder: Final = os.path.realpath(folder)
        self.base: str | None = None
        self._state = os.path.realpath(state)
        self._processes = processes
        self._environ = environ
        self._injects = injects
        self._stack = ExitStack()
        self._slot: str | None = None
        self.stock: Stock | None = None
        self._captures: Captures | None = None
        self._is_captured = False
        self._refusal: str | None = None  # why no task of this wave gets a clone
        self._taken: set[int] = set()  # numbers of the clones that tasks are in

    def __enter__(self) -> Self:
        """Make the state directory, remove what dead runs left in it, and read the injects; raise Refused."""
        try:
            state_directory.make(self._state)
            sweep(self._state)
            if self._injects:
                self.stock = self._stock_up()
        except OSError as error:
            self.close()
            raise _refused(error, "the state directory cannot be used") from None
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove all that we made for ourselves, whatever is in it."""
        if self.base is not None:
            self._keep_base()
        self._stack.close()

    def _keep_base(self) -> None:
        """Write down the baseline again where a task has changed it: the next run believes it."""
        from crucible.runtime.prepare import Baseline, record, recorded

        baseline = Baseline(self.folder, self.base)
        if recorded(self._state) != baseline:
            with suppress(OSError):
                state_directory.make(self._state)
                record(self._state, baseline)

    def _stock_up(self) -> Stock:
        from crucible.runtime.injects import NoSource, Stock  # many runs have none

        try:
            return self._stack.enter_context(Stock(self._injects, self._ours()))
        except NoSource as missing:
            self.close()
            raise Refused(str(missing)) from None

    def prepare(self, origin: Origin, logs: str) -> bool:
        """Make the workspace ready; tell whether it was made now, False when it is used as it was found.

        What the set-up prints goes to ``setup.out`` and ``setup.err`` in the folder ``logs``. Raises Refused.
        """
        from crucible.runtime.prepare import Preparation, Unprepared  # only who has a manifest prepares

        try:
            ours = self._ours()
            preparation = Preparation(self.folder, self._state, self._processes, self._environ, ours, self.stock)
            ready = preparation.prepare(origin, logs)
        except OSError as error:
            raise _refused(error, "the state directory cannot be used") from None
        except Unprepared as failed:
            raise Refused(str(failed)) from None
        self.base = ready.base
        return ready.is_new

    # Around every task

    def next_wave(self) -> None:
        """Forget what the tasks of the last wave got: the next isolated one sees the workspace as it is then."""
        self._is_captured = False
        self._refusal = None

    def enter(self, task: Task) -> Steps[str]:
        """Return the folder that a task runs in, its frozen injects in place; raise Refused.

        An isolated one gets a clone of its own, and the first of its wave captures the workspace for all.
        """
        folder = self.folder
        if self._slot is not None and not os.path.lexists(os.path.join(self._slot, "lock")):
            self._begin_again()
        if task.isolation is not None:
            folder = yield from self._isolate()
        try:
            if self.stock is not None and self.stock.has_frozen:
                self.stock.put(folder, frozen_only=True)
        except OSError as error:
            raise _refused(error, "the frozen injects cannot be put in place") from None
        return folder

    def leave(self, task: Task, folder: str) -> Steps[None]:
        """Give back the clone of a task that has run: the next one gets it made anew, or it is removed at the end."""
        if task.isolation is not None:
            number = os.path.relpath(folder, self._ours()).split(os.sep)[0]
            if number.isdigit():  # a clone of before a task removed the state directory has none
                self._taken.discard(int(number))
        yield from ()

    def _isolate(self) -> Steps[str]:
        from crucible.runtime.git import GitFailed

        captures = self._capture()
        number = next(number for number in count(1) if number not in self._taken)
        self._taken.add(number)
        place = os.path.join(self._ours(), str(number))
        clone = os.path.join(place, captures.name)
        try:
            is_made = os.path.lexists(place) and (yield from captures.renew_clone(clone, f"{place}.git"))
            if not is_made:
                yield from self._clear(place)
                yield from captures.clone(clone, f"{place}.git")
        except GitFailed as failed:
            raise Refused(f"the workspace cannot be cloned: {failed}") from None
        except OSError as error:
            raise _refused(error, "the workspace cannot be cloned") from None
        folder = os.path.join(clone, captures.prefix)
        if not os.path.isdir(folder):
            raise Refused(f"git ignores all that is in {self.folder}, so a clone does not have it")
        return folder

    def _clear(self, place: str) -> Steps[None]:
        """Remove a clone that cannot be made anew."""
        if os.path.lexists(place):
            from crucible.runtime import tree

            # A program of its own, so that others go on meanwhile; permission bits may have been in its way.
            yield Command(("rm", "-rf", "--", place), self._environ, self._ours(), os.devnull, os.devnull)
            with tree.opened(self._ours()) as ours:
                tree.remove(ours, os.path.basename(place))

    def _capture(self) -> Captures:
        """Return what the clones of this wave are made of, captured when it is first asked for."""
        if self._captures is None:
            from crucible.runtime.git import Git  # many runs have no isolated task
            from crucible.runtime.private import Captures

            git = Git(self._processes, self._environ, self._ours())
            self._captures = Captures(git, self.folder, os.path.join(self._ours(), "captures"))
        if self._refusal is None and not self._is_captured:
            self._refusal = self._renew(self._captures)
            is_over = self._processes.stopped is not None
            if self._refusal is not None and not is_over and self.stock is not None and self.stock.has_frozen:
                # A frozen file that cannot be read is no reason: it is put back.
                with suppress(OSError):
                    self.stock.put(self.folder, frozen_only=True)
                    self._refusal = self._renew(self._captures)
            self._is_captured = True
        if self._refusal is not None:
            raise Refused(self._refusal)
        return self._captures

    def _renew(self, captures: Captures) -> str | None:
        """Capture the workspace, and return why that cannot be."""
        from crucible.runtime.git import GitFailed

        try:
            state_directory.make(self._state)
            captures.renew()
        except GitFailed as failed:
            return str(failed)
        except OSError as error:
            return str(_refused(error, "the workspace cannot be cloned"))
        return None

    # What is ours

    def _begin_again(self) -> None:
        """Make anew what a task has removed with the state directory."""
        if self._slot is not None:
            remove(self._slot)  # some of it may be left
        self._slot, self._captures, self._is_captured = None, None, False
        try:
            state_directory.make(self._state)
            if self.stock is not None:
                self.stock.move(self._ours())
        except OSError as error:
            raise _refused(error, "the state directory cannot be used") from None

    def _ours(self) -> str:
        """Return a folder of our own below the state directory, made and locked when it is first asked for."""
        if self._slot is None:
            self._slot, descriptor = claim(self._state)
            self._stack.callback(os.close, descriptor)
            self._stack.callback(remove, self._slot)
        return self._slot


def sweep(state: str) -> None:
    """Remove what runs left in a state directory that do not live any more."""
    private = os.path.join(state, _PRIVATE)
    if os.path.islink(private):
        os.unlink(private)  # what it leads to is not ours to sweep
    with suppress(FileNotFoundError):
        for name in os.listdir(private):
            path = os.path.join(private, name)
            descriptor = lock.hold(path)
            if descriptor is not None:
                try:
                    holder = leftovers.holder(os.path.join(path, "lock"))
                    if holder is not None:
                        leftovers.end(holder)  # what runs there would go on writing
                    remove(path)
                finally:
                    os.close(descriptor)


def claim(state: str) -> tuple[str, int]:
    """Make and lock the first folder of its kind that no living run has: its path is then the same every time."""
    number = 0
    while True:
        number += 1
        path = os.path.join(state, _PRIVATE, str(number))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            os.mkdir(path, 0o700)
        except (FileExistsError, FileNotFoundError):
            continue
        descriptor = lock.hold(path)
        if descriptor is not None:
            os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
            return path, descriptor


def remove(path: str) -> None:
    """Remove one of our folders, and the one that it stands in when it was the last."""
    from crucible.runtime import tree  # many runs have nothing of the kind

    parent, name = os.path.split(path)
    # What cannot be removed, such as files of another user, stays, and the next start tries again.
    with suppress(OSError):
        with tree.opened(parent) as folder:
            tree.remove(folder, name)
        os.rmdir(parent)


def _refused(error: OSError, what: str) -> Refused:
    where = f"{error.filename}: " if error.filename is not None else ""
    return Refused(f"{what}: {where}{error.strerror or error}")

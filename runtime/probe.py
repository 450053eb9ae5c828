"""Tries a gate before anybody runs by it: measures once, and tells two controls apart (contract §1.1, §9).

All of it happens in a copy of the pack, with a workspace of its own that is prepared as a run's is. The copy lies
in a folder of the state directory that is locked while we live: what a probe that was killed left there is ended
and removed when the next one begins.
"""

import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Final, NamedTuple, Self

from crucible.runtime import state as state_directory
from crucible.runtime import tree
from crucible.runtime.injects import Inject
from crucible.runtime.judge import Measured, better, environment, measure
from crucible.runtime.prepare import Origin
from crucible.runtime.process import Command, Exit, Processes
from crucible.runtime.shell_runner import SHELL, exit_note
from crucible.runtime.surroundings import encodable
from crucible.runtime.workspace import Refused, Workspace, claim, remove, sweep

_COPY: Final = "copy"
_PRISTINE: Final = "pristine"
_CEILINGS: Final = "GIT_CEILING_DIRECTORIES"


class Gate(NamedTuple):
    """What is tried: the measure command with its direction, and the two controls, both or neither."""

    measure_cmd: str
    direction: str
    good_cmd: str | None = None
    bad_cmd: str | None = None
    runs: int = 1


class Site(NamedTuple):
    """Where a run would work: absolute paths of the pack's own workspace and state directory, and what goes in."""

    origin: Origin
    workspace: str
    state: str
    injects: Sequence[Inject] = ()


class Control(NamedTuple):
    """One side of the self-test: every measurement of it, and their mean, None unless all are valid.

    ``fault`` says what is wrong with it, None when nothing is.
    """

    measured: tuple[Measured, ...] = ()
    mean: float | None = None
    fault: str | None = None


class SelfTest(NamedTuple):
    """The verdict of the self-test; ``why`` says in a sentence what is wrong, "" when it passed."""

    good: Control
    bad: Control
    passed: bool
    why: str


class Probed(NamedTuple):
    """What came of a probe.

    ``refusal`` says why there was no workspace to measure in, ``stopped`` why we ended it (a signal, a limit).
    ``base`` is the commit of the pristine workspace. ``fault`` says why the measure command does not keep the
    protocol, None when it does. Without controls, and when the gate cannot be read, there is no ``selftest``.
    """

    base: str | None = None
    measured: Measured | None = None
    fault: str | None = None
    selftest: SelfTest | None = None
    refusal: str | None = None
    stopped: str | None = None


class _Stopped(Exception):
    """A signal or a limit ended what ran; the text says which."""


def probe(gate: Gate, site: Site, environ: Mapping[str, str], processes: Processes) -> Probed:
    """Measure a pristine workspace once, and run the self-test if there is one; nothing is left of either."""
    found = Probed()
    try:
        with _Bench(site, environ, processes) as bench:
            found = found._replace(base=bench.base)
            if gate.good_cmd is not None:
                bench.keep()
            measured = bench.measure(gate.measure_cmd)
            found = found._replace(measured=measured, fault=measured.fault)
            if measured.fault is None and gate.good_cmd is not None and gate.bad_cmd is not None:
                found = found._replace(selftest=_selftest(gate, gate.good_cmd, gate.bad_cmd, bench))
    except _Stopped as stopped:
        return found._replace(stopped=str(stopped))
    except (Refused, state_directory.NotOurs) as refused:
        return _refused(found, str(refused), processes)
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return _refused(found, f"the workspace cannot be used: {where}{error.strerror or error}", processes)
    except RecursionError:
        return _refused(found, "the pack has folders nested too deep to be copied", processes)
    return found


def _refused(found: Probed, why: str, processes: Processes) -> Probed:
    if processes.stopped is not None:  # what was refused was not done
        return found._replace(stopped=processes.stopped)
    return found._replace(refusal=why)


def _selftest(gate: Gate, good_cmd: str, bad_cmd: str, bench: "_Bench") -> SelfTest:
    good = _control("good", good_cmd, gate, bench)
    bad = _control("bad", bad_cmd, gate, bench)
    why = "; ".join(each.fault for each in (good, bad) if each.fault is not None)
    if good.mean is not None and bad.mean is not None and not better(good.mean, bad.mean, gate.direction):
        why = (
            f"the gate does not tell them apart: the good control has a mean score of {good.mean:.12g}, the bad one "
            f"of {bad.mean:.12g}; the good one's is to be strictly {gate.direction}"
        )
    return SelfTest(good, bad, passed=not why, why=why)


def _control(name: str, command: str, gate: Gate, bench: "_Bench") -> Control:
    """Stage one control in the pristine workspace, and measure it."""
    bench.restore()
    fault = bench.stage(command)
    if fault is not None:
        return Control(fault=f"{name}_cmd failed: {fault}")
    measured = tuple(bench.measure(gate.measure_cmd) for _ in range(gate.runs))
    for number, each in enumerate(measured, 1):
        if each.reading is None or not each.reading.valid:
            which = f"measurement {number} of the {name} control" if gate.runs > 1 else f"the {name} control"
            said = each.fault or (each.reading.note if each.reading is not None else "")
            return Control(measured, fault=f"{which} has no valid reading{f': {said}' if said else ''}")
    return Control(measured, _mean(measured))


def _mean(measured: Sequence[Measured]) -> float:
    """Return the mean of valid readings, rounded once: their order has no say in the verdict."""
    from fractions import Fraction

    scores = [Fraction(each.reading.score or 0) for each in measured if each.reading is not None]
    return float(sum(scores) / len(scores))


class _Bench:
    """A workspace to measure in, in a copy of the pack; a context manager that removes both."""

    def __init__(self, site: Site, environ: Mapping[str, str], processes: Processes) -> None:
        self.base: str | None = None
        self._site = site
        self._environ = environ
        self._processes = processes
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        try:
            self._prepare()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stack.close()

    def _prepare(self) -> None:
        """Copy the pack, and prepare a workspace in it as a run would."""
        site = self._site
        state_directory.borrow(site.state)
        state = os.path.realpath(site.state)
        self._stack.callback(state_directory.leave, state)
        sweep(state)
        self._slot, descriptor = claim(state)
        self._stack.callback(os.close, descriptor)
        self._stack.callback(remove, self._slot)
        state_directory.make(state)  # another probe may just have removed it, as there was nothing in it
        pack = self._copy_pack()
        own = os.path.join(self._slot, "state")
        workspace = self._stack.enter_context(
            Workspace(self._folder, own, self._processes, self._environ, site.injects)
        )
        self._check()
        workspace.prepare(self._origin(pack), os.path.join(own, "logs"))
        self._check()
        self.base, self._stock = workspace.base, workspace.stock
        self._variables = environment(
            self._environ, (self._folder, site.workspace), _ceiling(self._environ, self._slot)
        )

    def _copy_pack(self) -> str:
        """Copy the pack, so that a path from the workspace into it leads where it should; return where it is.

        What a run uses as it is, a workspace that has the manifest in it, is copied; any other is made anew.
        """
        site = self._site
        manifest, workspace = os.path.realpath(site.origin.manifest), os.path.realpath(site.workspace)
        is_inside = os.path.commonpath([manifest, workspace]) == workspace
        if not is_inside:
            parent, name = os.path.split(site.workspace)
            workspace = os.path.join(os.path.realpath(parent), name)  # what its name may lead to is not ours
        common = os.path.commonpath([manifest, workspace])
        top = self._neighbours(common)
        pack, self._folder = (
            os.path.normpath(os.path.join(top, os.path.relpath(each, common))) for each in (manifest, workspace)
        )
        source, target = (workspace, self._folder) if is_inside else (manifest, pack)
        self._copy(source, target, site.state, *(() if is_inside else (workspace,)))
        at = os.path.join(target, ".git")
        if os.path.islink(at) or not os.path.isdir(at):
            with suppress(FileNotFoundError):
                os.unlink(at)  # it leads to a git directory that is not ours to change
        return pack

    def _neighbours(self, folder: str) -> str:
        """Return where the copy of a folder goes: among links to all that the repository around it has beside it."""
        root = folder
        while not os.path.lexists(os.path.join(root, ".git")):
            root = os.path.dirname(root)
            if root == os.path.dirname(root):
                root = folder  # no repository has it
                break
        here = os.path.join(self._slot, _COPY, os.path.basename(root) or "root")
        names = [] if root == folder else os.path.relpath(folder, root).split(os.sep)
        for name in names:
            os.makedirs(here)
            for each in os.listdir(root):
                if each not in {name, ".git"}:
                    os.symlink(os.path.join(root, each), os.path.join(here, each))
            root, here = os.path.join(root, name), os.path.join(here, name)
        return here

    def _copy(self, source: str, target: str, *skip: str) -> None:
        """Copy a folder; a link into it leads into the copy."""
        os.makedirs(target)

        def moved(link: str) -> str:
            is_within = os.path.isabs(link) and os.path.commonpath((source, os.path.normpath(link))) == source
            return os.path.join(target, os.path.relpath(link, source)) if is_within else link

        is_stopped = lambda: self._processes.stopped is not None  # noqa: E731
        with tree.opened(source) as old, tree.opened(target) as new:
            tree.copy(old, new, tree.places(*skip), is_stopped, is_exact=True, moved=moved)
            os.fchmod(new, stat.S_IMODE(os.fstat(old).st_mode))
        self._check()

    def _origin(self, pack: str) -> Origin:
        """Return where the workspace comes from: what the manifest names lies where it always did."""
        site, origin = self._site, self._site.origin
        return origin._replace(
            manifest=origin.manifest if origin.setup_cmd is None else pack,
            path=None if origin.path is None else os.path.realpath(os.path.join(origin.manifest, origin.path)),
            skip=(site.workspace, site.state),
        )

    def keep(self) -> None:
        """Keep the workspace as it is, to be restored."""
        self._copy(self._folder, os.path.join(self._slot, _PRISTINE))

    def restore(self) -> None:
        """Make the workspace again what it was, whatever has become of it."""
        self._check()
        parent, name = os.path.split(self._folder)
        with tree.opened(parent) as folder:
            tree.remove(folder, name)
        self._copy(os.path.join(self._slot, _PRISTINE), self._folder)

    def stage(self, command: str) -> str | None:
        """Run a command in the workspace; return why it failed, None when it did not."""
        out, err = self._logs("stage")
        argv = (SHELL, "-c", encodable(command))
        ended = self._run(Command(argv, self._variables, self._folder, out, err))
        if ended.fault is not None:
            return f"it could not be started: {ended.fault.strerror or ended.fault}"
        return exit_note(ended, err) or None

    def measure(self, command: str) -> Measured:
        """Measure what is in the workspace."""
        steps = measure(command, self._folder, self._variables, self._logs("measure"), self._stock)
        try:
            wanted = next(steps)
            while True:
                wanted = steps.send(self._run(wanted))
        except StopIteration as end:
            found: Measured = end.value
            return found

    def _run(self, command: Command) -> Exit:
        self._check()
        ended = self._processes.run(command)
        if ended.cause is not None:
            raise _Stopped(ended.cause)
        return ended

    def _logs(self, name: str) -> tuple[str, str]:
        return os.path.join(self._slot, f"{name}.out"), os.path.join(self._slot, f"{name}.err")

    def _check(self) -> None:
        if self._processes.stopped is not None:
            raise _Stopped(self._processes.stopped)


def _ceiling(environ: Mapping[str, str], folder: str) -> dict[str, str]:
    """Return what keeps git from finding the repository that our copy lies in: nobody is to change that."""
    known = environ.get(_CEILINGS)
    return {_CEILINGS: folder if not known else os.pathsep.join((known, folder))}

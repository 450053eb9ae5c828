"""The operations that the engine owns: propose, apply, measure, grade, decide (loop.md).

A job in, an attempt out, as with every runner; what the loop knows when a pass begins is its ``Standing``. Beside it
stand the two wrappers that a loop needs of other runners: measuring commands are held to their frozen files, and
what is measured is held to what it was.
"""

import json
import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from crucible.runtime import careful, judge, tree
from crucible.runtime.judge import Best, Reading
from crucible.runtime.outcome import Attempt, Result, Status
from crucible.runtime.process import Command
from crucible.runtime.runner import Job, Runner, Turn
from crucible.runtime.shell_runner import NOT_RUN, SHELL, ShellRunner, exit_note
from crucible.runtime.surroundings import encodable, refusal
from crucible.runtime.world import ESCALATION, Unkept, World
from crucible.schemas.ir import EngineTask

if TYPE_CHECKING:
    from crucible.runtime.injects import Stock

_MOST_ESCALATED: Final = 1 << 16
_SHOWN: Final = 500
_PURE: Final = frozenset({"grade", "decide"})  # they read results, and touch nothing


class Operations(NamedTuple):
    """What the manifest says of the operations: the contract's [judge] and [world]."""

    measure_cmd: str
    direction: str
    tiebreak_direction: str | None = None
    apply_cmd: str | None = None


class Standing(NamedTuple):
    """What the loop knows when a pass begins; there is no baseline before a valid reading."""

    iteration: int = 0
    baseline: Reading | None = None
    best: Best | None = None

    @property
    def numbers(self) -> dict[str, str]:
        """Return the loop's numbers as a measure command finds them; none in the baseline's own pass."""
        if self.iteration == 0:
            return {}
        return judge.numbers(self.baseline, self.best.score if self.best else None)


class Proposer(Protocol):
    """Who has an agent propose a candidate."""

    def propose(self, job: Job) -> Turn:
        """Return the turn in which an agent changes the workspace."""


class EngineRunner:
    """Does engine tasks."""

    def __init__(
        self,
        operations: Operations,
        proposer: Proposer,
        world: World,
        environ: Mapping[str, str],
        workspaces: Collection[str],
        stock: "Stock | None",
    ) -> None:
        """Keep what it takes; ``environ`` is ours, ``workspaces`` are the folders that agents can write to."""
        self.standing = Standing()
        self._operations = operations
        self._proposer = proposer
        self._world = world
        self._environ = environ
        self._workspaces = workspaces
        self._stock = stock

    def attempt(self, job: Job) -> Turn:
        """Return the turn of one operation."""
        task = job.task
        assert isinstance(task, EngineTask)  # noqa: S101 - narrows: the executor gives each runner its kinds
        match task.op:
            case "propose":
                return self._proposer.propose(job)
            case "apply":
                return self._apply(job)
            case "measure":
                return self._measure(job)
            case "grade":
                return _done(_graded(task, job.settled))
            case _:
                return _done(self._decided(task, job.settled))

    def _apply(self, job: Job) -> Turn:
        """Make the candidate live; one that cannot be is unscoreable, which is never worse."""
        fault = self._world.refusal()
        if fault is not None:
            return Attempt(Status.FAIL, note=f"unscoreable: {fault}")
        command = self._operations.apply_cmd
        if command is None:
            return Attempt(Status.PASS, output={})
        ended = yield Command(
            (SHELL, "-c", encodable(command)), self._environment(), job.workspace, job.logs.out, job.logs.err
        )
        if ended.fault is not None:
            return refusal(ended.fault, job)
        note = exit_note(ended, job.logs.err)
        if note:
            return Attempt(Status.FAIL, note=f"unscoreable: apply_cmd: {note}", seconds=ended.seconds)
        return Attempt(Status.PASS, output={}, seconds=ended.seconds)

    def _measure(self, job: Job) -> Turn:
        """Measure the workspace under the command protocol (contract §3)."""
        command = self._operations.measure_cmd
        try:
            logs = (job.logs.out, job.logs.err)
            environ = self._environment(self.standing.numbers)
            measured = yield from judge.measure(command, job.workspace, environ, logs, self._stock)
        except OSError as error:
            return Attempt(Status.FAIL, note=f"the frozen files cannot be put in place: {error.strerror or error}")
        ended = measured.ended
        if ended.fault is not None:
            return refusal(ended.fault, job)
        if measured.reading is None or ended.cause is not None:
            return Attempt(Status.FAIL, note=ended.cause or measured.fault or "", seconds=ended.seconds)
        reading = measured.reading
        if self.standing.iteration == 0 and ended.code in NOT_RUN and reading.score is None:
            return Attempt(Status.FAIL, note=reading.note, seconds=ended.seconds)  # there is no gate
        note = reading.note if reading.valid else f"invalid: {reading.note}" if reading.note else "invalid"
        return Attempt(Status.PASS, reading.to_plain(), seconds=ended.seconds, note=note)

    def _environment(self, numbers: Mapping[str, str] = {}) -> dict[str, str]:
        return judge.environment(self._environ, self._workspaces, numbers, self.standing.iteration)

    def _decided(self, task: EngineTask, settled: Mapping[str, Result]) -> Attempt:
        """Decide by the rule that all domains share (contract §4)."""
        source = settled.get(task.source or "")
        reading = Reading.of_plain(source.output if source is not None and source.status is Status.PASS else None)
        ours = self._operations
        decision = judge.decide(reading, self.standing.best, ours.direction, ours.tiebreak_direction)
        word = "keep" if decision.keep else "discard"
        return Attempt(Status.PASS, {"decision": word, **reading.to_plain()}, note=word)


def _graded(task: EngineTask, settled: Mapping[str, Result]) -> Attempt:
    """Fold evidence into a reading: the score source decides whether there is one."""
    evidence = {name: settled[name] for name in task.depends_on if name in settled}
    source = evidence.get(task.source or "")
    output = _output(source)
    score = judge.finite(output.get("score"))
    valid = source is not None and source.status is Status.PASS and score is not None
    if task.join == "all":
        valid = valid and all(result.status is Status.PASS for result in evidence.values())
    tiebreak = judge.finite(_output(evidence.get(task.tiebreak or "")).get("score"))
    note = output.get("note")
    reading = Reading(
        valid,
        score if valid else None,
        tiebreak if valid else None,
        valid and output.get("solved") is True,
        note if isinstance(note, str) else "",
        {name: _plain(result) for name, result in evidence.items()},
    )
    return Attempt(Status.PASS, reading.to_plain(), note=reading.note)


def _output(result: Result | None) -> dict[str, Any]:
    passes = result is not None and result.status is Status.PASS
    return result.output if passes and result is not None and isinstance(result.output, dict) else {}


def _plain(result: Result) -> dict[str, Any]:
    plain: dict[str, Any] = {"status": str(result.status)}
    if result.text:
        plain["note"] = result.text
    if result.output is not None:
        plain["output"] = result.output
    return plain


def _done(attempt: Attempt) -> Turn:
    """Return the turn of what needs no process."""
    yield from ()
    return attempt


class GateRunner:
    """Does evaluate tasks as a judge: no program of the agent's is on PATH, and the frozen files stay in place."""

    def __init__(self, environ: Mapping[str, str], workspaces: Collection[str], stock: "Stock | None") -> None:
        """Keep what it takes; ``workspaces`` are the folders that agents can write to, beside a task's own."""
        self._environ = environ
        self._workspaces = workspaces
        self._stock = stock

    def attempt(self, job: Job) -> Turn:
        """Return the turn of one attempt."""
        environ = judge.environment(self._environ, (*self._workspaces, job.workspace), {})
        try:
            seals = () if self._stock is None else self._stock.seal(job.workspace)
        except OSError as error:
            return Attempt(Status.FAIL, note=f"the frozen files are not in place: {error.strerror or error}")
        attempt = yield from ShellRunner(environ).attempt(job)
        if self._stock is not None and not self._stock.is_unbroken(job.workspace, seals):
            return Attempt(Status.FAIL, note=judge.GATE_CHANGED, seconds=attempt.seconds)
        return attempt


class WatchingRunner:
    """Has others do the tasks of a pass, and watches over the shared workspace while they do.

    What a candidate is worth is measured of what was ``held`` before the last measurement that counts: whatever runs
    of it then changes nothing of it. A turn that is made again begins where the first one began, and what an agent
    escalates is taken.
    """

    def __init__(self, runners: Mapping[str, Runner], folder: str, world: World, scoring: Collection[int]) -> None:
        """Keep the runners by the kind of their tasks; ``scoring`` are the tasks whose measurements count."""
        self.escalated: dict[str, Any] | None = None
        self.held: str | None = None
        self.has_moved_on = False
        self._runners = runners
        self._folder = folder
        self._world = world
        self._scoring = scoring
        self._is_touched = False
        self._told: set[str] = set()  # paths that were put back, of which nobody need hear again
        self._begun: dict[int, str] = {}  # what the workspace had before a turn, "" for the last state

    def begin(self) -> None:
        """Begin a pass: the workspace is the last state."""
        self.escalated = self.held = None
        self.has_moved_on = self._is_touched = False
        self._begun = {}

    def attempt(self, job: Job) -> Turn:
        """Return the turn of one attempt."""
        runner = self._runners[job.task.kind]
        is_shared = job.workspace == self._folder
        if job.number in self._scoring and (job.task.kind == "evaluate" or job.task.operation == "measure"):
            return self._measured(job, runner, is_shared=is_shared)
        if not is_shared or job.task.operation in _PURE:
            return runner.attempt(job)
        is_turn = job.task.kind == "agent" or job.task.operation == "propose"
        return self._turn(job, runner) if is_turn else self._touching(job, runner)

    def _measured(self, job: Job, runner: Runner, *, is_shared: bool) -> Turn:
        """Measure the workspace as it is, and leave it so; what ran in a clone of it measured it, too."""
        try:
            held = self._world.hold()
        except Unkept as unkept:
            return Attempt(Status.FAIL, note=f"unscoreable: {unkept}")
        attempt = yield from runner.attempt(job)
        self.held, self.has_moved_on = held, False
        changed = self._world.revert(held) if is_shared else None
        if changed is None or changed in self._told:
            return attempt
        self._told.add(changed)
        note = f'"{changed}" changed while it ran, and was put back; what is to stay belongs into .gitignore'
        return attempt._replace(note="\n".join(filter(None, (attempt.note, note))))

    def _touching(self, job: Job, runner: Runner) -> Turn:
        self._is_touched = self.has_moved_on = True
        return (yield from runner.attempt(job))

    def _turn(self, job: Job, runner: Runner) -> Turn:
        """Have an agent do its turn; one that escalates fails, whatever else came of it."""
        self._taken()  # what lies there already is no word of this turn
        if job.attempt > 1:
            self._world.revert(self._begun[job.number])
        else:
            try:
                self._begun[job.number] = self._world.hold() if self._is_touched else ""
            except Unkept as unkept:
                return Attempt(Status.FAIL, note=f"unscoreable: {unkept}")
        attempt = yield from self._touching(job, runner)
        found = self._taken()
        if found is None:
            return attempt
        self.escalated = {"task": job.task.name, **found}
        return attempt._replace(status=Status.FAIL, note=f"escalated: {found['text'][:_SHOWN]}", transport=None)

    def _taken(self) -> dict[str, Any] | None:
        """Return what an agent escalates, and take the file away; None when there is none."""
        path = os.path.join(self._folder, ESCALATION)
        if not os.path.lexists(path):
            return None
        try:
            text = careful.read(path, _MOST_ESCALATED).decode(errors="replace").strip()
        except OSError as error:
            text = f"{ESCALATION} cannot be read: {error.strerror or error}"
        with tree.opened(self._folder) as folder:
            tree.remove(folder, ESCALATION)
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            content = None
        return {"text": " ".join(text.split()), **({} if content is None else {"content": content})}

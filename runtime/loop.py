"""The scored loop: baseline, iterations, verdict (contract §4, loop.md).

It names no version control and no shell: it asks the world for states, the machine for what runs next, and the judge
for decisions. Every iteration ends in one row, and the row is the point of commit: what has none is done again by
whoever goes on.
"""

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from crucible.runtime import careful, judge, machine, results, tree
from crucible.runtime.engine_runner import EngineRunner, Operations, Standing, WatchingRunner
from crucible.runtime.execute import Execution, Pass, Places
from crucible.runtime.history import Past, Row
from crucible.runtime.judge import ITERATION, Best, Reading
from crucible.runtime.outcome import Status, Why
from crucible.runtime.passes import Passes, without_agents
from crucible.runtime.plan import Plan
from crucible.runtime.process import Command, Processes
from crucible.runtime.progress import sparkline
from crucible.runtime.proposer import AgentProposer, Progress
from crucible.runtime.records import Records, dollars
from crucible.runtime.results import line
from crucible.runtime.shell_runner import SHELL, exit_note
from crucible.runtime.surroundings import encodable
from crucible.runtime.world import RESULTS, Lost, Unkept, World, sha_of

if TYPE_CHECKING:
    from crucible.runtime.outcome import Result
    from crucible.runtime.progress import Display

_STALLED: Final = 3  # void iterations in a row
_CLEAN: Final = ("finished", "solved", "budget")
_KEEP, _DISCARD, _VOID = "keep", "discard", "void"


class Settings(NamedTuple):
    """What a run holds to from its first start on, and where its steering is looked for."""

    plan: Plan
    operations: Operations
    iterations: int
    steer: str
    max_time: float | None = None
    has_restore: bool = False


class Ended(NamedTuple):
    """How a run ended: the outcome of the last event, and why; ``task`` is one that could not measure."""

    outcome: str
    reason: str
    task: str | None = None


class _End(Exception):
    """The run is over."""

    def __init__(self, outcome: str, reason: str, task: str | None = None) -> None:
        super().__init__(outcome)
        self.ended = Ended(outcome, reason, task)


class Parts(NamedTuple):
    """Who does the work of a loop."""

    world: World
    places: Places
    engine: EngineRunner
    runner: WatchingRunner
    proposer: AgentProposer
    processes: Processes
    records: Records
    display: "Display"


class Loop:
    """One run, or the rest of one; ``run`` is called once."""

    def __init__(self, settings: Settings, workspace: str, parts: Parts, past: Past | None = None) -> None:
        """Keep what a run needs; ``workspace`` is its folder, ``past`` what earlier processes of the run did."""
        self.rows: list[Row] = list(past.rows) if past else []
        self.spent = past.spent if past else 0
        self._settings = settings
        self._workspace = workspace
        self._world = parts.world
        self._places = parts.places
        self._engine = parts.engine
        self._runner = parts.runner
        self._processes = parts.processes
        self._records = parts.records
        self._display = parts.display
        self._past = past
        parts.proposer.guide = self
        self._graph = Passes(settings.plan)
        self._begin = time.monotonic()
        self._phase: tuple[str, int] | None = None
        self._steered: tuple[int, str] | None = None  # what this iteration's agent was told
        self._is_restored = True

    # What is known so far

    @property
    def baseline(self) -> Row | None:
        """Return the first row with a valid reading."""
        return next((row for row in self.rows if row.decision == _KEEP), None)

    @property
    def best(self) -> Row | None:
        """Return the last row that was kept."""
        return next((row for row in reversed(self.rows) if row.decision == _KEEP), None)

    @property
    def is_better(self) -> bool:
        """Tell whether something better than the baseline was kept."""
        return self.best is not self.baseline

    def status(self) -> Progress:
        """Return where the loop stands, for the agent that proposes next."""
        baseline, best = self.baseline, self.best
        return Progress(
            self._engine.standing.iteration,
            self._settings.iterations,
            self._settings.operations.direction,
            baseline.score if baseline else None,
            best.score if best else None,
            best.number if best else None,
            tuple(self.rows),
        )

    def steer(self) -> str:
        """Return what steers the agent of this iteration, taken from its file when it is first asked for."""
        number = self._engine.standing.iteration
        if self._steered is None or self._steered[0] != number:
            again = self._past.lost_steer if self._past else ""
            try:
                new = careful.read(self._settings.steer, follows=True).decode(errors="replace")
            except OSError as error:
                new = ""
                if os.path.lexists(self._settings.steer):
                    self._tell("warning", f"{self._settings.steer} steers nobody: {error.strerror or error}")
            text = "\n".join(dict.fromkeys(part for part in (again.strip(), new.strip()) if part))
            self._past = None if self._past is None else self._past._replace(steers={})
            self._steered = (number, text)
            if text:
                # In this order: who dies in between delivers it again.
                self._records.event("steer", iter=number, text=text)
            if new:
                try:
                    os.unlink(self._settings.steer)
                except OSError as error:
                    self._tell("warning", f"{self._settings.steer} cannot be removed: {error.strerror}")
        return self._steered[1]

    # The run

    def run(self) -> Ended:
        """Run to the end, and say which it was; the workspace then holds what was kept last."""
        try:
            if self._past is None or not self.rows:
                self._measure_baseline()
            else:
                self._world.restore(self._token())
                self._write_results()
            while True:
                self._look_at_end()
                self._iterate(self.rows[-1].number + 1)
        except _End as end:
            ended = end.ended
        except Lost as lost:
            return Ended("error", str(lost))
        try:
            if not self._is_restored:
                self._world.restore(self._token())
            if ended.outcome in _CLEAN and self.is_better and not (self._past and self._past.is_finished):
                ended = self._close(ended)
        except Lost as lost:
            return Ended("error", f"{lost}; before that: {ended.reason}")
        self.enter("finished", self._last())
        return ended

    def enter(self, phase: str, number: int) -> None:
        """Note in which phase the run is."""
        if self._phase != (phase, number):
            self._phase = (phase, number)
            self._records.event("phase", phase=phase, iter=number)

    def _last(self) -> int:
        return self.rows[-1].number if self.rows else 0

    def _token(self) -> str:
        """Return the token of the state that a discard returns to."""
        found = next((row.snapshot for row in reversed(self.rows) if row.snapshot and row.decision == _KEEP), None)
        found = found or next((row.snapshot for row in self.rows if row.snapshot), None)
        if found is None:
            raise Lost("no row has a state to go back to")
        return found

    def _left(self) -> float | None:
        limit = self._settings.max_time
        return None if limit is None else limit - (time.monotonic() - self._begin)

    def _look_at_end(self) -> None:
        """End the run when there is nothing more to do, or nothing more to spend."""
        plan = self._settings.plan
        left = self._left()
        last = self.rows[-1]
        if self._processes.caught is not None:
            raise _End("stopped", "interrupted")
        if last.decision == _KEEP and last.solved:
            raise _End("solved", f"iteration {last.number} is solved" if last.number else "the baseline is solved")
        if last.number >= self._settings.iterations:
            raise _End("finished", f"{_counted(self._settings.iterations, 'iteration')} done")
        if plan.budget is not None and self.spent >= plan.budget:
            raise _End("budget", "the budget is spent")
        if left is not None and left <= 0:
            raise _End("budget", "the time is up")
        void = [row.decision == _VOID for row in self.rows[self._void_from() :]]
        if len(void) >= _STALLED and all(void[-_STALLED:]):
            raise _End("stalled", f"{_STALLED} iterations in a row were void: {last.note}")

    def _void_from(self) -> int:
        """Return from which row on void ones are counted: who goes on after a stall has another try."""
        return len(self._past.rows) if self._past else 0

    def _measure_baseline(self) -> None:
        """Measure the workspace as it was prepared; the state after it is what discards return to."""
        self.enter("baseline", 0)
        self._engine.standing = Standing()
        state = self._pass(self._graph.not_in_baseline, 0, "baseline")
        self._stop_if_halted(state)
        for number in self._graph.baseline:
            found = state.results[number]
            if found is not None and self._graph.is_unreadable(number, found):
                name = self._graph.names[number]
                said = "; ".join(found.text.splitlines())
                raise _End("error", f'the gate gives no reading: "{name}": {said}', name)
        reading = self._reading(state, self._graph.source)
        try:
            token = self._world.snapshot(0, held=self._runner.held)
        except Unkept as unkept:
            self._stop_if_caught()
            raise _End("error", str(unkept)) from None
        decision = judge.decide(reading, None, self._settings.operations.direction)
        note = reading.note or self._why_not(state)
        self._row(0, _KEEP if decision.keep else _DISCARD, reading, state, token=token, note=note)
        if self._runner.has_moved_on:
            self._world.restore(token)

    def _iterate(self, number: int) -> None:
        """Do one iteration, to its row."""
        self.enter("iteration", number)
        if self._past is not None:
            self._past = self._past._replace(is_finished=False)
        baseline, best = self.baseline, self.best
        self._engine.standing = Standing(
            number,
            Reading.of_plain(baseline.plain) if baseline else None,
            Best(best.score, best.tiebreak) if best is not None and best.score is not None else None,
        )
        self._is_restored = False
        state = self._pass(self._graph.late, number, f"iteration-{number:04}")
        escalated = self._runner.escalated
        if escalated is not None:
            self._records.event("escalation", iter=number, **escalated)
            self._row(number, _VOID, Reading(valid=False), state, note=f"escalated: {escalated['text']}")
            self.enter("escalated", number)
            raise _End("escalated", escalated["text"] or "an agent escalated and said nothing")
        self._stop_if_halted(state)
        lost = self._graph.required(state, Status.TRANSPORT)
        if lost is not None:
            note = f'"{self._graph.names[lost]}" could not be run: {_text(state.results[lost])}'
            self._row(number, _VOID, Reading(valid=False), state, note=note)
        else:
            self._decide(number, state)
        if not self._is_restored:
            self._world.restore(self._token())
            self._is_restored = True

    def _decide(self, number: int, state: machine.Run) -> None:
        """Write the row of an iteration that has run, and keep its state if that is decided."""
        reading = self._reading(state, self._graph.result)
        verdict = machine.verdict(state)
        if not verdict.valid:
            note = self._why_not(state)
            self._row(number, _DISCARD, reading._replace(valid=False, solved=False), state, note=note)
            return
        output = _output(state.results[self._graph.result])
        if output.get("decision") != _KEEP:
            self._row(number, _DISCARD, reading, state, note=reading.note)
            return
        try:
            token = self._world.snapshot(number, line(reading.note), self._runner.held)
        except Unkept as unkept:
            self._stop_if_caught()
            self._row(number, _DISCARD, reading, state, note=str(unkept))
            return
        # What was measured is kept, and not what has become of it since.
        self._is_restored = not self._runner.has_moved_on
        self._row(number, _KEEP, reading, state, token=token, note=reading.note)

    def _pass(self, given: frozenset[int], number: int, part: str, **inputs: Any) -> machine.Run:
        """Run one pass over the graph, without the tasks that are ``given``."""
        self._records.enter(number, part)
        self._display.fresh(self._title(part))
        self._runner.begin()
        plan = self._settings.plan._replace(given=given)
        left = self._left()
        if part == "epilogue":
            left = None
            plan = (
                plan._replace(budget=None) if plan.budget is None or self.spent < plan.budget else without_agents(plan)
            )
        runners = dict.fromkeys(("agent", "command", "evaluate", "engine"), self._runner)
        execution = Execution(
            plan,
            runners,
            self._places,
            self._processes,
            self._records,
            self._display,
            None if left is None else max(0.0, left),
            Pass(self.spent, inputs, {ITERATION: str(number)}),
        )
        execution.run()
        self.spent = execution.state.spent
        return execution.state

    def _stop_if_halted(self, state: machine.Run) -> None:
        """End the run when somebody or the clock has stopped this pass: what is broken off has no row."""
        if state.is_interrupted or self._processes.caught is not None:
            raise _End("stopped", "interrupted")
        if state.halt is not None and state.halt.why is Why.WALL_CLOCK_CEILING:
            raise _End("budget", "the time is up")

    def _stop_if_caught(self) -> None:
        if self._processes.caught is not None:
            raise _End("stopped", "interrupted")

    def _close(self, ended: Ended) -> Ended:
        """Make what was kept live, and run the epilogue once."""
        best = self.best
        assert best is not None  # noqa: S101 - narrows: is_better has looked
        number = self._last()
        self.enter("epilogue", number)
        self._world.restore(self._token())
        command = self._settings.operations.apply_cmd
        if command is not None and not self._settings.has_restore:
            self._apply_again(command, number)
        if len(self._graph.late) and self._processes.caught is None:
            kept = {
                "iter": best.number,
                "score": best.score,
                "tiebreak": best.tiebreak,
                "sha": sha_of(best.snapshot or ""),
                "snapshot": best.snapshot,
                "note": best.note,
            }
            self._pass(self._graph.not_late, number, "epilogue", kept=kept)
        if self._processes.caught is not None:
            return Ended("stopped", "interrupted")
        return ended

    def _apply_again(self, command: str, number: int) -> None:
        self._records.enter(number, "epilogue")
        self._records.stand()
        stem = self._records.log(-1, "apply", 1)
        environ = judge.environment(os.environ, (self._workspace,), {}, number)
        argv = (SHELL, "-c", encodable(command))
        ended = self._processes.run(Command(argv, environ, self._workspace, f"{stem}.out", f"{stem}.err"))
        fault = str(ended.fault) if ended.fault is not None else exit_note(ended, f"{stem}.err")
        if fault:
            self._tell("warning", f"what was kept could not be applied again: {fault}")

    def _reading(self, state: machine.Run, number: int) -> Reading:
        """Return what a pass has read: the output of a task, or an invalid reading where that has none."""
        return Reading.of_plain(_output(state.results[number]))

    def _why_not(self, state: machine.Run) -> str:
        """Say which task is why a pass came to no verdict, "" when it did."""
        if state.halt is not None and state.halt.why is Why.BUDGET_CEILING:
            return "the budget is spent"
        failed = self._graph.required(state, Status.FAIL)
        if failed is not None:
            return f'the required task "{self._graph.names[failed]}" failed: {_text(state.results[failed])}'
        return state.halt.text if state.halt is not None else ""

    def _row(
        self,
        number: int,
        decision: str,
        reading: Reading,
        state: machine.Run,
        *,
        token: str | None = None,
        note: str = "",
    ) -> None:
        """Write the row of an iteration: the point of commit."""
        results = [(self._graph.names[index], state.results[index]) for index in self._graph.of_pass(state)]
        cost = sum(result.cost for _, result in results if result is not None)
        best = self.best
        better = reading.score if decision == _KEEP else best.score if best else None
        facts = {
            "iter": number,
            "decision": decision,
            "score": reading.score,
            "tiebreak": reading.tiebreak,
            "best": better,
            "valid": reading.valid,
            "solved": reading.solved,
            "note": note,
            "detail": dict(reading.detail or {}),
            "seconds": round(sum(result.seconds for _, result in results if result is not None), 3),
            "cost_usd": dollars(cost),
            "sha": None if token is None else sha_of(token),
            "snapshot": token,
            "tasks": {name: str(result.status) for name, result in results if result is not None},
        }
        if not self._records.event("row", **facts):
            # Who goes on would do this iteration again, so nothing may be built on it.
            self._is_restored = False
            raise _End("error", f"the row of iteration {number} cannot be written: {self._records.problems[-1]}")
        row = Row.of(facts)
        assert row is not None  # noqa: S101 - narrows: it has what a row has
        self.rows.append(row)
        self._write_results()
        self._display.say(_told(row))

    def _write_results(self) -> None:
        """Write RESULTS.md anew from the rows."""
        try:
            with tree.opened(self._workspace) as folder:
                if os.path.isdir(os.path.join(self._workspace, RESULTS)):
                    tree.remove(folder, RESULTS)
            careful.write(os.path.join(self._workspace, RESULTS), results.text(self.rows).encode(errors="replace"))
        except OSError as error:
            self._tell("warning", f"{RESULTS} cannot be written: {error.strerror or error}")

    def _tell(self, level: str, text: str) -> None:
        self._records.event("note", level=level, text=text)
        self._display.say(f"{level}: {text}")

    def _title(self, part: str) -> str:
        best = self.best
        known = (
            f"best {best.score:g}, of iteration {best.number}" if best is not None and best.score is not None else ""
        )
        number = self._engine.standing.iteration
        what = f"iteration {number} of {self._settings.iterations}" if part.startswith("iteration") else part
        bars = sparkline([row.score for row in self.rows]) if self.rows else ""
        return "  ".join(filter(None, (what, known, bars)))


def _output(result: "Result | None") -> Mapping[str, Any]:
    passes = result is not None and result.status is Status.PASS
    return result.output if passes and result is not None and isinstance(result.output, dict) else {}


def _text(result: "Result | None") -> str:
    return "" if result is None else result.text


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _told(row: Row) -> str:
    """Say in a line what came of an iteration."""
    what = f"iteration {row.number}" if row.number else "baseline"
    score = "no score" if row.score is None else f"score {row.score:g}"
    note = line(row.note)
    return f"{what}: {row.decision}, {score}" + (f"  {note}" if note else "")

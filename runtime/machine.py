"""The state machine of a run: what runs next, and what becomes of the rest (runtime.md §1-2).

Pure and deterministic: every function takes a run and returns another one; in whatever order the attempts
of a wave end, the same ones give the same run. It owns advancement and knows no process, no file and no
clock. The executor asks, runs, records:

    run = begin(plan)
    while next_wave(run):
        run = start(run)
        ... of each task of the wave, while its number is in run.running: attempt it, run = record(run, number, attempt)
        ... of run.recorded, what is new: write it down
    verdict(run)
"""

from __future__ import annotations

import math
from bisect import insort

from crucible.runtime.outcome import Attempt, Ending, Reason, Result, Status, Why
from crucible.schemas.ir import TopKTask, is_finite
from crucible.schemas.light import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from crucible.runtime.plan import Plan

_ENDINGS: Final = {
    Why.REQUIRED_TASK_CANNOT_RUN: Ending.TRUNCATED,
    Why.REQUIRED_TASK_FAILED: Ending.SHORT_CIRCUIT,
    Why.BUDGET_CEILING: Ending.BUDGET_EXCEEDED,
    Why.WALL_CLOCK_CEILING: Ending.WALL_CLOCK,
}
_TIME_IS_UP: Final = Reason(Why.WALL_CLOCK_CEILING)
_NOTHING_LEFT: Final = Reason(Why.BUDGET_CEILING)


class Run(NamedTuple):
    """A run between two events; tasks are numbers in declaration order.

    ``results`` has what became of each task, None while that is open. ``ready`` could run next,
    ``wave`` was started last, ``running`` is what of it has no result yet, ``attempts`` are those of its
    tasks that are to be retried. ``recorded`` are the tasks with a result in the order in which they are
    written down. ``halt`` is why nothing more is dispatched, ``spent`` is in micro-dollars.
    ``open_dependencies`` counts for each task what it waits for, ``open_main`` the tasks of the main graph.
    """

    plan: Plan
    results: tuple[Result | None, ...]
    open_dependencies: tuple[int, ...]
    open_main: int
    ready: tuple[int, ...] = ()
    wave: tuple[int, ...] = ()
    running: tuple[int, ...] = ()
    attempts: tuple[tuple[int, Attempt], ...] = ()
    recorded: tuple[int, ...] = ()
    spent: int = 0
    halt: Reason | None = None
    is_interrupted: bool = False


class Verdict(NamedTuple):
    """Whether a run is valid, and how it ended."""

    valid: bool
    ending: Ending


def begin(plan: Plan, spent: int = 0) -> Run:
    """Return the run of a plan before its first wave: what can never run here is settled.

    ``spent`` is what earlier passes over the graph have cost, which counts against the budget, too.
    """
    open_main = sum(not late for late in plan.is_late)
    # Who waits for the main graph has it as one dependency more.
    waits = (len(to) + (late and open_main > 0) for to, late in zip(plan.depends_on, plan.is_late, strict=True))
    run = Run(plan, (None,) * len(plan.never), tuple(waits), open_main, spent=spent)
    return _Consequences(run).of_begin()


def next_wave(run: Run) -> tuple[int, ...]:
    """Return the tasks that run next: one that is not isolated alone, or isolated ones together.

    The first of the ready tasks decides which; nothing while something runs, and when all is over.
    """
    if run.running or not run.ready:
        return ()
    tasks = run.plan.workflow.task
    first = run.ready[0]
    if tasks[first].isolation is None:
        return (first,)
    return tuple(index for index in run.ready if tasks[index].isolation is not None)[: run.plan.jobs]


def start(run: Run) -> Run:
    """Return the run with its next wave running; raise ValueError when there is none."""
    wave = next_wave(run)
    if not wave:
        message = "nothing can be started now"
        raise ValueError(message)
    started = frozenset(wave)
    return run._replace(ready=tuple(index for index in run.ready if index not in started), wave=wave, running=wave)


def record(run: Run, index: int, attempt: Attempt, *, is_last: bool = False) -> Run:
    """Return the run after an attempt of a running task.

    The task runs on when the attempt ended in transport and may be retried, unless the executor says that it
    ``is_last``; its result stands otherwise, and with the last one of a wave the consequences are drawn. A
    passing output without a field that the task promises is a failure. Raises ValueError for a task that does not run.
    """
    if index not in run.running:
        message = f"task {index} does not run"
        raise ValueError(message)
    attempt = _held(run, index, attempt)
    run = run._replace(spent=run.spent + attempt.cost)
    attempts = (*(each for number, each in run.attempts if number == index), attempt)
    if attempt.status is Status.TRANSPORT and not is_last and _may_retry(run, len(attempts)):
        return run._replace(attempts=(*run.attempts, (index, attempt)))
    results, running = run.results, run.running
    place = running.index(index)
    run = run._replace(
        results=(*results[:index], _result(attempts), *results[index + 1 :]),
        running=(*running[:place], *running[place + 1 :]),
    )
    return run if run.running else _Consequences(run).of_wave()


def may_retry(run: Run, index: int, attempt: Attempt, others: int = 0) -> bool:
    """Tell whether a running task would be attempted again after this attempt; ``others`` is spent and not recorded."""
    attempts = sum(number == index for number, _ in run.attempts) + 1
    spent = run._replace(spent=run.spent + attempt.cost + others)
    return attempt.status is Status.TRANSPORT and _may_retry(spent, attempts)


def expire(run: Run) -> Run:
    """Return the run when its time is up: what runs is ended by the executor, the rest is blocked."""
    if not run.running and not run.ready:
        return run
    run = run._replace(halt=_TIME_IS_UP, ready=())
    return run if run.running else _Consequences(run).of_wave()


def interrupt(run: Run) -> Run:
    """Return the run when somebody stops it: what runs is ended by the executor, the rest has no result."""
    return run._replace(is_interrupted=True, ready=())


def status(run: Run, index: int) -> Status:
    """Return the state of a task."""
    result = run.results[index]
    if result is not None:
        return result.status
    if index in run.running:
        return Status.RUNNING
    return Status.READY if index in run.ready else Status.PENDING


def inputs(run: Run, index: int) -> dict[str, Any]:
    """Return what a task receives: the outputs of its passing dependencies by name, in declaration order."""
    tasks = run.plan.workflow.task
    found = ((tasks[to].name, run.results[to]) for to in run.plan.depends_on[index] if to not in run.plan.given)
    return {name: result.output for name, result in found if result is not None and result.status is Status.PASS}


def verdict(run: Run) -> Verdict:
    """Return whether a run is valid; raise ValueError while something can still run."""
    if run.running or run.ready:
        message = "the run is not over"
        raise ValueError(message)
    if run.is_interrupted:
        return Verdict(valid=False, ending=Ending.INTERRUPTED)
    if run.halt is not None:
        return Verdict(valid=False, ending=_ENDINGS[run.halt.why])
    return Verdict(valid=True, ending=Ending.COMPLETED)


def top_k(task: TopKTask, given: Mapping[str, Any]) -> Attempt:
    """Return the attempt of a top_k: the k best of its inputs, which come in declaration order, best first."""
    kept = []
    for name, output in given.items():
        score = output.get("score") if isinstance(output, dict) else None
        if isinstance(score, bool) or not isinstance(score, (int, float)) or not is_finite(score):
            return Attempt(Status.FAIL, note=f'the output of "{name}" has no finite number "score"')
        kept.append({"task": name, "score": score, "output": output})
    kept.sort(key=lambda each: each["score"], reverse=task.direction == "higher")  # stable both ways
    return Attempt(Status.PASS, output={"kept": kept[: task.k], "score": kept[0]["score"]})


class _Consequences:
    """What follows when a run begins or a wave has ended: settled tasks, blocked ones, those that are ready now."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._plan = run.plan
        self._results = list(run.results)
        self._recorded = list(run.recorded)
        self._open = list(run.open_dependencies)
        self._open_main = run.open_main
        self._ready = list(run.ready)
        self._due: list[int] = []  # tasks whose dependencies are all settled, in order
        self._halt = run.halt

    def of_begin(self) -> Run:
        """Settle what can never run here, everything if that is required; then see what is ready."""
        self._halt = self._plan.truncation
        if self._halt is not None:
            for index, never in enumerate(self._plan.never):
                self._settle(index, Result(Status.TRUNCATED, never or self._halt))
            return self._end()
        for index in self._plan.given:
            self._results[index] = Result(Status.PASS)
        self._due = [index for index, count in enumerate(self._open) if not count and self._is_dispatched(index)]
        for index in sorted(self._plan.given):
            self._go_by(index)
        for index, never in enumerate(self._plan.never):
            if never is not None and index not in self._plan.given:
                self._settle(index, Result(Status.SKIPPED, never))
        return self._go_on()

    def of_wave(self) -> Run:
        """Record the results of a wave in declaration order; then see what is ready, or why nothing is any more."""
        for index in self._run.wave:
            self._settled(index)
        if self._run.is_interrupted:
            return self._end()
        if self._halt is None and self._plan.budget is not None and self._run.spent > self._plan.budget:
            self._halt = _NOTHING_LEFT
        if self._halt is None:
            self._halt = next((self._failure(i) for i in self._run.wave if self._is_failure(i)), None)
        return self._go_on()

    def _go_on(self) -> Run:
        """Ready or block whatever is due, first declared first; once halted, block whatever is open."""
        while self._due and self._halt is None:
            index = self._due.pop(0)
            blocked = self._unsatisfied(index)
            if blocked is None:
                insort(self._ready, index)
                continue
            self._settle(index, Result(Status.BLOCKED, blocked))
            if self._is_failure(index):
                self._halt = self._failure(index)
        if self._halt is None and self._ready and _is_spent(self._run):
            self._halt = _NOTHING_LEFT
        if self._halt is not None:
            self._ready = []
            for index, result in enumerate(self._results):
                if result is None:
                    self._settle(index, Result(Status.BLOCKED, self._halt))
        return self._end()

    def _end(self) -> Run:
        return self._run._replace(
            results=tuple(self._results),
            open_dependencies=tuple(self._open),
            open_main=self._open_main,
            ready=tuple(self._ready),
            wave=(),
            attempts=(),
            recorded=tuple(self._recorded),
            halt=self._halt,
        )

    def _settle(self, index: int, result: Result) -> None:
        self._results[index] = result
        self._settled(index)

    def _settled(self, index: int) -> None:
        """Record a task that has its result; whoever waited for it waits for one task less."""
        self._recorded.append(index)
        self._go_by(index)

    def _go_by(self, index: int) -> None:
        self._release(self._plan.dependents[index])
        if not self._plan.is_late[index]:
            self._open_main -= 1
            if not self._open_main:
                self._release(tuple(other for other, late in enumerate(self._plan.is_late) if late))

    def _release(self, waiting: tuple[int, ...]) -> None:
        for index in waiting:
            self._open[index] -= 1
            if not self._open[index] and self._is_dispatched(index):
                insort(self._due, index)

    def _is_dispatched(self, index: int) -> bool:
        """Tell whether a task runs when its turn comes."""
        return self._plan.never[index] is None and index not in self._plan.given

    def _unsatisfied(self, index: int) -> Reason | None:
        """Return why the join of a task is not satisfied, all of whose dependencies are settled."""
        task, dependencies = self._plan.workflow.task[index], self._plan.depends_on[index]
        lost = [to for to in dependencies if not self._has_passed(to)]
        if task.join == "all" and not lost:
            return None
        if task.join == "passed" and len(lost) < len(dependencies):
            return None
        return Reason(Why.DEPENDENCY_DID_NOT_PASS, tuple(self._name(to) for to in lost))

    def _has_passed(self, index: int) -> bool:
        result = self._results[index]
        return result is not None and result.status is Status.PASS

    def _is_failure(self, index: int) -> bool:
        """Tell whether a settled task makes the run invalid: a required one that did not pass, whatever the reason."""
        return self._plan.workflow.task[index].required and not self._has_passed(index)

    def _failure(self, index: int) -> Reason:
        return Reason(Why.REQUIRED_TASK_FAILED, (self._name(index),))

    def _name(self, index: int) -> str:
        return self._plan.workflow.task[index].name


def _held(run: Run, index: int, attempt: Attempt) -> Attempt:
    """Hold a passing attempt to the fields that its task promises."""
    if attempt.status is not Status.PASS:
        return attempt
    output = attempt.output if isinstance(attempt.output, dict) else {}
    missing = [name for name in run.plan.workflow.task[index].emits if name not in output]
    if not missing:
        return attempt
    note = f"the output has no {' and no '.join(missing)}, which the task emits"
    return attempt._replace(status=Status.FAIL, note=note)


def _may_retry(run: Run, attempts: int) -> bool:
    """Tell whether a task whose last attempt ended in transport is attempted again.

    A required failure beside it changes nothing: what runs is allowed to finish.
    """
    is_stopped = run.halt is not None or run.is_interrupted
    return attempts <= run.plan.retries and not is_stopped and not _is_spent(run)


def _is_spent(run: Run) -> bool:
    """Tell whether nothing more may be spent."""
    return run.plan.budget is not None and run.spent >= run.plan.budget


def _result(attempts: tuple[Attempt, ...]) -> Result:
    """Return what became of a task over its attempts: the last one says what, all of them what it took."""
    last = attempts[-1]
    is_blocked = last.status is Status.BLOCKED
    return Result(
        last.status,
        reason=Reason(Why.STAGING_REFUSED) if is_blocked else None,
        output=last.output,
        attempts=len(attempts) - is_blocked,
        cost=sum(attempt.cost for attempt in attempts),
        seconds=math.fsum(attempt.seconds for attempt in attempts),
        note=last.note,
        transport=last.transport,
    )

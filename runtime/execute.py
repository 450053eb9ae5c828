"""One pass over a plan: ask the machine what runs next, run it, record what came of it (runtime.md §2).

One thread. Each attempt is a generator that yields the processes it needs; the loop starts them, waits for
whichever ends first, and hands its end back. What stops a run, a signal or a clock, is looked at here alone.
"""

from __future__ import annotations

import time

from crucible.runtime import machine
from crucible.runtime.outcome import Attempt, Result, Status, Why
from crucible.runtime.records import Records, dollars
from crucible.runtime.runner import Job, Logs, Runner, Turn
from crucible.runtime.workspace import Refused
from crucible.schemas.ir import Task, TopKTask
from crucible.schemas.light import NamedTuple, Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from typing import Any, Final

    from crucible.runtime.plan import Plan
    from crucible.runtime.process import Command, Exit, Processes
    from crucible.runtime.progress import Display

INTERRUPTED: Final = "interrupted"
TIME_IS_UP: Final = "ended by --max-time"
_NOTHING: Final[Mapping[str, Result]] = {}
DELAYS: Final = (1.0, 4.0)  # seconds before an attempt is made again; the last holds for all later ones


class Places(Protocol):
    """Where attempts run."""

    def enter(self, task: Task) -> Generator[Command, Exit, str]:
        """Make ready the folder of one attempt and return it; raise Refused where that cannot be."""

    def leave(self, task: Task, folder: str) -> Generator[Command, Exit, None]:
        """Clear away the folder of an attempt, unless others need it."""

    def next_wave(self) -> None:
        """Forget what the tasks of one wave share."""


class _Going:
    """An attempt under way."""

    __slots__ = ("attempt", "is_leaving", "number", "turn")

    def __init__(self, number: int, attempt: int) -> None:
        self.number = number
        self.attempt = attempt
        self.is_leaving = False
        self.turn: Turn = _nothing()


class _Held(NamedTuple):
    """An attempt that died and is made again, when it is time."""

    due: float
    going: _Going
    attempt: Attempt


class Pass(NamedTuple):
    """What is special to one pass of several over a graph.

    ``spent`` is what the earlier ones have cost, in micro-dollars; ``inputs`` every task gets, beside those of its
    dependencies, ``variables`` every child finds in its environment.
    """

    spent: int = 0
    inputs: Mapping[str, Any] = {}
    variables: Mapping[str, str] = {}


class Execution:
    """One pass over one plan. ``run()`` is called once; ``state`` is how far it has come, whatever happens."""

    def __init__(
        self,
        plan: Plan,
        runners: Mapping[str, Runner],
        places: Places,
        processes: Processes,
        records: Records,
        display: Display,
        max_time: float | None = None,
        this: Pass = Pass(),  # noqa: B008 - it is frozen
    ) -> None:
        """Keep what a run needs: runners of each kind but top_k, and after how many seconds what runs is ended."""
        self.state = machine.begin(plan, this.spent)
        self._pass = this
        self._tasks = plan.workflow.task
        self._params = plan.workflow.params or {}
        self._runners = runners
        self._places = places
        self._processes = processes
        self._records = records
        self._display = display
        self._max_time = max_time
        self._deadline: float | None = None
        self._cause: str | None = None  # why we end what runs
        self._going: dict[int, _Going] = {}  # by the handle of its process
        self._held: list[_Held] = []
        self._told = 0  # results that are recorded
        self._spent = this.spent  # of which the records know

    def run(self) -> None:
        """Run the plan to its end."""
        if self._max_time is not None:
            self._deadline = time.monotonic() + self._max_time
        self._record_news()
        while self._look() and machine.next_wave(self.state):
            if self._records.tells_what_begins:
                self._record_news()
            self.state = machine.start(self.state)
            self._places.next_wave()
            for number in self.state.wave:
                self._begin(_Going(number, 1))
            self._record_news()  # of the wave before: its processes have ended, and those of this one run meanwhile
            while self.state.running:
                self._wait()
        self._record_news()

    def _look(self) -> bool:
        """See whether somebody or the clock stops the run, end what runs if so, and tell whether it goes on."""
        if not (self.state.running or self.state.ready):
            return False  # it is over, and nobody can stop it any more
        if self._processes.caught is not None and not self.state.is_interrupted:
            self.state = machine.interrupt(self.state)
            self._stop(INTERRUPTED)
        elif self._deadline is not None and self._cause is None and time.monotonic() >= self._deadline:
            self.state = machine.expire(self.state)
            self._stop(TIME_IS_UP)
        return self._cause is None

    def _stop(self, cause: str) -> None:
        self._cause = self._cause or cause
        for handle, going in self._going.items():
            if not going.is_leaving:
                self._processes.end(handle, cause)
        held, self._held = self._held, []
        for each in held:
            self._end(each.going, each.attempt)

    def _wait(self) -> None:
        """Wait for what comes first: the end of a process, a signal, the clock, a time to try again, a picture."""
        moments = [each.due for each in self._held]
        if self._deadline is not None and self._cause is None:
            moments.append(self._deadline)
        if self._display.period is not None:
            moments.append(time.monotonic() + self._display.period)
            self._display.refresh()
        for handle, ended in self._processes.wait(min(moments) if moments else None):
            self._step(self._going.pop(handle), ended)
        self._look()
        now = time.monotonic()
        for each in tuple(self._held):
            is_last = not self._is_made_again(each.going, each.attempt)
            if each.due <= now or is_last:
                self._held.remove(each)
                self._end(each.going, each.attempt, is_last=is_last)

    def _begin(self, going: _Going) -> None:
        """Begin an attempt: all of it that needs no process happens now."""
        task = self._tasks[going.number]
        self._display.running(going.number, going.attempt)
        inputs = {**machine.inputs(self.state, going.number), **self._pass.inputs}
        if isinstance(task, TopKTask):
            self._end(going, machine.top_k(task, inputs))
            return
        self._records.stand()
        self._records.task_begun(task, going.attempt)
        stem = self._records.log(going.number, task.name, going.attempt)
        self._records.begin_logs(stem)
        # Making a file costs as much as half a process, so those who end in their turn share one for their inputs;
        # a conversation may come back to its own.
        shared = self._records.inputs(self.state.wave.index(going.number))
        logs = Logs(f"{stem}.out", f"{stem}.err", f"{stem}.inputs.json" if task.kind == "agent" else shared)
        going.turn = self._attempt(going, task, inputs, logs)
        self._step(going, None)

    def _step(self, going: _Going, ended: Exit | None) -> None:
        """Hand an attempt the end of its process, and start the next one that it needs."""
        caught = self._processes.caught
        if ended is not None and ended.cause is None and caught is not None and ended.signal == caught:
            ended = ended._replace(cause=INTERRUPTED)  # until it has a session of its own, a key reaches it too
            self._look()  # while it still counts as running: else nobody would know that the run was stopped
        try:
            command = next(going.turn) if ended is None else going.turn.send(ended)
        except StopIteration as end:
            self._over(going, end.value)
        else:
            self._going[self._processes.start(command)] = going

    def _attempt(self, going: _Going, task: Task, inputs: dict[str, Any], logs: Logs) -> Turn:
        """Make the folder ready, run in it, clear it away."""
        entering = self._places.enter(task)
        try:
            command = next(entering)
            while True:
                ended = yield command
                if self._cause is not None:
                    entering.close()
                    return Attempt(Status.FAIL, note=self._cause)
                command = entering.send(ended)
        except StopIteration as end:
            folder: str = end.value
        except Refused as refusal:
            self._look()  # it may be refused because the run is to stop
            if self._cause is not None:
                return Attempt(Status.FAIL, note=self._cause)
            return Attempt(Status.BLOCKED, note=str(refusal))
        settled = self._settled() if task.operation else _NOTHING
        variables = self._pass.variables
        job = Job(task, going.number, going.attempt, inputs, self._params, folder, logs, variables, settled)
        attempt = yield from self._runners[task.kind].attempt(job)
        if len(self.state.wave) == 1:  # beside others, a process that has hidden whose it is lives on for a while
            self._records.end_logs(logs.out, logs.err)
        going.is_leaving = True
        yield from self._places.leave(task, folder)
        return attempt

    def _settled(self) -> dict[str, Result]:
        """Return the results of this pass so far, by name."""
        found = zip(self._tasks, self.state.results, strict=True)
        given = self.state.plan.given
        return {task.name: result for number, (task, result) in enumerate(found) if result and number not in given}

    def _over(self, going: _Going, attempt: Attempt) -> None:
        """Hold an attempt that may be made again until it is time, and record any other."""
        if self._cause is not None or not self._is_made_again(going, attempt):
            self._end(going, attempt, is_last=True)
            return
        delay = DELAYS[min(going.attempt, len(DELAYS)) - 1]
        self._held.append(_Held(time.monotonic() + delay, going, attempt))
        self._display.again(going.number, attempt, delay)

    def _is_made_again(self, going: _Going, attempt: Attempt) -> bool:
        """Tell whether a task is attempted again, what the others have cost that wait for that included."""
        others = sum(each.attempt.cost for each in self._held if each.going is not going)
        return machine.may_retry(self.state, going.number, attempt, others)

    def _end(self, going: _Going, attempt: Attempt, *, is_last: bool = False) -> None:
        """Hand an attempt to the machine, which says whether there is another one."""
        self.state = machine.record(self.state, going.number, attempt, is_last=is_last)
        if going.number in self.state.running:
            self._begin(_Going(going.number, going.attempt + 1))
            return
        result = self.state.results[going.number]
        if result is not None:
            self._display.settled(going.number, result)

    def _record_news(self) -> None:
        """Write down the results that are new, in the order in which the machine has them."""
        for number in self.state.recorded[self._told :]:
            result = self.state.results[number]
            if result is None:
                continue
            self._records.task_result(self._tasks[number], result)
            if not _was_shown(result):
                self._display.settled(number, result)
        self._told = len(self.state.recorded)
        if self.state.spent != self._spent:
            self._spent = self.state.spent
            budget = self.state.plan.budget
            ceiling = None if budget is None else dollars(budget)
            self._records.event("budget", spent_usd=dollars(self._spent), ceiling_usd=ceiling)


def _was_shown(result: Result) -> bool:
    """Tell whether a display knows a result already: that of a task that was attempted."""
    return result.reason is None or result.reason.why is Why.STAGING_REFUSED


def _nothing() -> Turn:
    """Return the turn of an attempt that has none yet."""
    yield from ()
    return Attempt(Status.FAIL)

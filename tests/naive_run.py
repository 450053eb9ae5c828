"""A second, naive account of how a run goes, to hold the machine to: it looks at everything again at every step.

It shares with the machine the words for statuses and reasons, and nothing else.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crucible.runtime.outcome import Attempt, Ending, Reason, Status, Why
from crucible.schemas.ir import Task, Workflow

Fate = tuple[Status, Reason | None]


class Told(NamedTuple):
    """What a run is told: attempts by name, in turn, then passing ones; before which wave the time is up.

    ``given`` are the names that are no part of this pass, ``spent`` is what the earlier ones have cost.
    """

    capabilities: frozenset[str]
    budget: int | None
    jobs: int | None
    retries: int
    attempts: Mapping[str, Sequence[Attempt]]
    time_is_up_in: int | None = None
    interrupted_in: int | None = None
    given: frozenset[str] = frozenset()
    spent: int = 0


class Account(NamedTuple):
    """What became of a run."""

    fates: dict[str, Fate | None]
    waves: list[list[str]]
    recorded: list[str]
    spent: int
    valid: bool
    ending: Ending


class NaiveRun:
    """One run, told step by step."""

    def __init__(self, workflow: Workflow, told: Told) -> None:
        self.tasks = {task.name: task for task in workflow.task}
        self.told = told
        self.fates: dict[str, Fate] = {}
        self.waves: list[list[str]] = []
        self.recorded: list[str] = []
        self.spent = told.spent

    def account(self) -> Account:
        """Play the whole run."""
        ending = self._play()
        fates = {name: self.fates.get(name) for name in self.tasks}
        return Account(fates, self.waves, self.recorded, self.spent, ending is Ending.COMPLETED, ending)

    def _play(self) -> Ending:
        required = [name for name, task in self.tasks.items() if task.required and self._never(task)]
        if required:
            root = self._never(self.tasks[required[0]])
            assert root
            for name, task in self.tasks.items():
                reason = Reason(Why.REQUIRED_TASK_CANNOT_RUN, (required[0],), root.capability)
                self._put(name, Status.TRUNCATED, self._never(task) or reason)
            return Ending.TRUNCATED
        self.fates = dict.fromkeys(self.told.given, (Status.PASS, None))
        for name, task in self.tasks.items():
            never = self._never(task)
            if never and name not in self.told.given:
                self._put(name, Status.SKIPPED, never)
        while True:
            doomed = self._block_the_unsatisfied()
            if doomed:
                return self._stop(Reason(Why.REQUIRED_TASK_FAILED, (doomed,)), Ending.SHORT_CIRCUIT)
            ready = [name for name, task in self.tasks.items() if name not in self.fates and self._is_due(task)]
            if not ready:
                return Ending.COMPLETED
            budget = self.told.budget
            if budget is not None and self.spent >= budget:
                return self._stop(Reason(Why.BUDGET_CEILING), Ending.BUDGET_EXCEEDED)
            if self.tasks[ready[0]].isolation:
                wave = [name for name in ready if self.tasks[name].isolation][: self.told.jobs]
            else:
                wave = ready[:1]
            number = len(self.waves)
            self.waves.append(wave)
            for name in wave:
                self._run(name, keep_trying=number not in (self.told.time_is_up_in, self.told.interrupted_in))
            if number == self.told.interrupted_in:
                return Ending.INTERRUPTED
            if number == self.told.time_is_up_in:
                return self._stop(Reason(Why.WALL_CLOCK_CEILING), Ending.WALL_CLOCK)
            if budget is not None and self.spent > budget:
                return self._stop(Reason(Why.BUDGET_CEILING), Ending.BUDGET_EXCEEDED)
            for name in wave:
                if self.tasks[name].required and self.fates[name][0] is not Status.PASS:
                    return self._stop(Reason(Why.REQUIRED_TASK_FAILED, (name,)), Ending.SHORT_CIRCUIT)

    def _run(self, name: str, *, keep_trying: bool) -> None:
        said = list(self.told.attempts.get(name, ()))
        for turn in range(1 + self.told.retries):
            attempt = said[turn] if turn < len(said) else Attempt(Status.PASS)
            self.spent += attempt.cost
            status = attempt.status
            if status is not Status.TRANSPORT or not keep_trying:
                break
            if self.told.budget is not None and self.spent >= self.told.budget:
                break
        if status is Status.PASS and self.tasks[name].emits:
            status = Status.FAIL  # nothing that is told here has an output
        self._put(name, status, Reason(Why.STAGING_REFUSED) if status is Status.BLOCKED else None)

    def _block_the_unsatisfied(self) -> str | None:
        """Block what waited for nothing; return the first required one of these."""
        while True:
            for name, task in self.tasks.items():
                if name in self.fates or not self._is_over(task):
                    continue
                lost = [to for to in self._dependencies(task) if self.fates[to][0] is not Status.PASS]
                if (lost and task.join == "all") or (task.join == "passed" and lost == self._dependencies(task)):
                    self._put(name, Status.BLOCKED, Reason(Why.DEPENDENCY_DID_NOT_PASS, tuple(lost)))
                    if task.required:
                        return name
                    break
            else:
                return None

    def _stop(self, reason: Reason, ending: Ending) -> Ending:
        for name in self.tasks:
            if name not in self.fates:
                self._put(name, Status.BLOCKED, reason)
        return ending

    def _put(self, name: str, status: Status, reason: Reason | None) -> None:
        self.fates[name] = (status, reason)
        self.recorded.append(name)

    def _dependencies(self, task: Task) -> list[str]:
        return [name for name in self.tasks if name in task.depends_on]

    def _is_late(self, task: Task) -> bool:
        return task.is_epilogue or any(self._is_late(self.tasks[name]) for name in task.depends_on)

    def _is_over(self, task: Task) -> bool:
        """Tell whether all that a task waits for has a fate."""
        before = self._dependencies(task)
        if self._is_late(task):
            before = before + [name for name, other in self.tasks.items() if not self._is_late(other)]
        return all(name in self.fates for name in before)

    def _is_due(self, task: Task) -> bool:
        return self._is_over(task)

    def _never(self, task: Task) -> Reason | None:
        if task.needs not in {"any", *self.told.capabilities}:
            return Reason(Why.CAPABILITY_MISSING, (), task.needs)
        lost = {name: why for name in self._dependencies(task) if (why := self._never(self.tasks[name]))}
        if not lost or (task.join == "passed" and len(lost) < len(self._dependencies(task))):
            return None
        return Reason(Why.DEPENDENCY_CANNOT_RUN, tuple(lost), next(iter(lost.values())).capability)

"""The passes of a scored loop over one graph: which tasks run at the baseline, in an iteration, in the epilogue.

In goes a plan, out come the numbers of tasks, and what their results mean for a pass; nothing runs here.
"""

from typing import TYPE_CHECKING

from crucible.runtime.outcome import Reason, Status, Why
from crucible.schemas.ir import EngineTask

if TYPE_CHECKING:
    from crucible.runtime import machine
    from crucible.runtime.outcome import Result
    from crucible.runtime.plan import Plan


class Passes:
    """Which tasks run in which pass, by number."""

    def __init__(self, plan: "Plan") -> None:
        tasks = plan.workflow.task
        self._tasks = tasks
        self.names = [task.name for task in tasks]
        numbers = {name: number for number, name in enumerate(self.names)}
        everything = frozenset(range(len(tasks)))
        self.late = frozenset(number for number, late in enumerate(plan.is_late) if late)
        self.not_late = everything - self.late
        self.result = numbers[plan.workflow.result or ""]
        decision = tasks[self.result]
        assert isinstance(decision, EngineTask)  # noqa: S101 - narrows: no other result is admitted
        self.source = numbers[decision.source or ""]
        above = _ancestors(plan, self.source)
        applies = {number for number in everything if tasks[number].operation == "apply"}
        self.baseline = sorted(
            number
            for number in (self.source, *above)
            if tasks[number].operation != "propose"
            and (
                number == self.source
                or number in applies
                or self._measures(number)
                or _ancestors(plan, number) & applies
            )
        )
        self.not_in_baseline = everything - frozenset(self.baseline)
        # What the decision rests on.
        self.scoring = frozenset(number for number in (self.source, *above) if self._measures(number))

    def of_pass(self, state: "machine.Run") -> list[int]:
        """Return the tasks of a pass."""
        return [number for number in range(len(self._tasks)) if number not in state.plan.given]

    def required(self, state: "machine.Run", status: Status) -> int | None:
        """Return the first required task of a pass that ended so."""
        for number in self.of_pass(state):
            result = state.results[number]
            if self._tasks[number].required and result is not None and result.status is status:
                return number
        return None

    def is_unreadable(self, number: int, result: "Result") -> bool:
        """Tell whether a required task was to measure and did not.

        A missed threshold, and ``pass = false``, are measured.
        """
        if not self._measures(number) or not self._tasks[number].required:
            return False
        is_vetoed = self._tasks[number].kind == "evaluate" and result.output is not None
        return result.status is Status.TRANSPORT or (result.status is Status.FAIL and not is_vetoed)

    def _measures(self, number: int) -> bool:
        return self._tasks[number].kind == "evaluate" or self._tasks[number].operation == "measure"


def _ancestors(plan: "Plan", number: int) -> frozenset[int]:
    found: set[int] = set()
    pending = [number]
    while pending:
        for to in plan.depends_on[pending.pop()]:
            if to not in found:
                found.add(to)
                pending.append(to)
    return frozenset(found)


def without_agents(plan: "Plan") -> "Plan":
    """Return a plan in which nothing costs: its agents have no budget left."""
    spent = Reason(Why.BUDGET_CEILING)
    tasks = zip(plan.workflow.task, plan.never, strict=True)
    never = tuple(spent if task.kind == "agent" and reason is None else reason for task, reason in tasks)
    return plan._replace(budget=None, never=never)

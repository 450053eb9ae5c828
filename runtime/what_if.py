"""What would become of a workflow if some of its tasks failed; nothing runs.

In: a workflow, the names of the tasks that fail, the capabilities of a substrate. Out: the fate of every
task and of the run. It has no rules of its own: it is an executor that makes its attempts up.
"""

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from crucible.runtime import machine
from crucible.runtime.outcome import Attempt, Ending, Reason, Result, Status
from crucible.runtime.plan import Plan, make_plan
from crucible.schemas.ir import Task, Workflow


class Fate(NamedTuple):
    """What becomes of one task: its last status, and the reason when it never ran."""

    task: str
    required: bool
    status: Status
    reason: Reason | None

    @property
    def text(self) -> str:
        """Say it in a line: ``pass``, ``fail``, ``blocked: the required task "a" did not pass``."""
        return f"{self.status}: {self.reason.text}" if self.reason else str(self.status)


class WhatIf(NamedTuple):
    """What becomes of a run in which the tasks ``failed`` fail as soon as they run, and all others pass.

    ``fates`` are those of all tasks in declaration order.
    """

    failed: tuple[str, ...]
    valid: bool
    ending: Ending
    fates: tuple[Fate, ...]

    def names(self, status: Status) -> tuple[str, ...]:
        """Return the names of the tasks that end with a status."""
        return tuple(fate.task for fate in self.fates if fate.status is status)

    @property
    def text(self) -> str:
        """Say what becomes of the run: ``valid``, or ``invalid (short_circuit)``."""
        return "valid" if self.valid else f"invalid ({self.ending})"


def what_if(
    workflow: Workflow, failed: Collection[str] = (), capabilities: Collection[str] = (), *, jobs: int | None = None
) -> WhatIf:
    """Return what becomes of a run in which the named tasks fail as soon as they run, and all others pass.

    ``capabilities`` are those of the substrate. ``jobs`` is how many isolated tasks run at once: by
    default all that are ready, so that the answer is the same on every machine. Raises KeyError for a
    name that no task has, ValueError for what no compiled workflow is (``make_plan``).
    """
    plan = make_plan(workflow, capabilities, jobs=jobs)
    numbers = {task.name: index for index, task in enumerate(workflow.task)}
    return _answer(_play(machine.begin(plan), frozenset(numbers[name] for name in failed)), failed)


def each(workflow: Workflow, capabilities: Collection[str] = (), *, jobs: int | None = None) -> tuple[WhatIf, ...]:
    """Return for each task, in declaration order, what becomes of a run in which it alone fails.

    Arguments and errors as in ``what_if``.
    """
    start = machine.begin(make_plan(workflow, capabilities, jobs=jobs))
    before: dict[int, machine.Run] = {}
    run = start
    while wave := machine.next_wave(run):
        before.update(dict.fromkeys(wave, run))
        run = _settle(run, wave, frozenset())
    # Until its wave a run is the same whether or not the task will fail.
    return tuple(
        _answer(_play(before.get(index, run), frozenset((index,))), (task.name,))
        for index, task in enumerate(workflow.task)
    )


COLUMNS = ("if this fails", "the run is", "blocked", "skipped", "truncated")


def rows(table: Collection[WhatIf]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of a table of single failures, a row each, below ``COLUMNS``: names, joined by commas."""
    for answer in table:
        statuses = (Status.BLOCKED, Status.SKIPPED, Status.TRUNCATED)
        yield (", ".join(answer.failed), answer.text, *(", ".join(answer.names(status)) for status in statuses))


def to_plain(answer: WhatIf) -> dict[str, Any]:
    """Return an answer as plain data; a task that ran has the reason None."""
    return {
        "failed": list(answer.failed),
        "valid": answer.valid,
        "exit": str(answer.ending),
        "tasks": [
            {
                "name": fate.task,
                "required": fate.required,
                "status": str(fate.status),
                "reason": fate.reason.to_plain() if fate.reason else None,
            }
            for fate in answer.fates
        ],
    }


def _play(run: machine.Run, failed: frozenset[int]) -> machine.Run:
    """Take a run to its end."""
    while wave := machine.next_wave(run):
        run = _settle(run, wave, failed)
    return run


def _settle(run: machine.Run, wave: tuple[int, ...], failed: frozenset[int]) -> machine.Run:
    """Start a wave, and let each of its tasks fail or pass."""
    run = machine.start(run)
    for index in wave:
        run = machine.record(run, index, _attempt(run.plan, index, fails=index in failed))
    return run


def _attempt(plan: Plan, index: int, *, fails: bool) -> Attempt:
    """Return what a runner would say; what passes has the fields that it promises."""
    task: Task = plan.workflow.task[index]
    return Attempt(Status.FAIL) if fails else Attempt(Status.PASS, output=dict.fromkeys(task.emits))


def _answer(run: machine.Run, failed: Collection[str]) -> WhatIf:
    verdict = machine.verdict(run)
    fates = tuple(
        _fate(task, result) for task, result in zip(run.plan.workflow.task, run.results, strict=True) if result
    )
    return WhatIf(tuple(failed), verdict.valid, verdict.ending, fates)


def _fate(task: Task, result: Result) -> Fate:
    return Fate(task.name, task.required, result.status, result.reason)

"""A workflow becomes something runnable on one substrate: edges by number, the epilogue, what can never run.

In: a compiled workflow, the capabilities that are there, the budget. Out: a frozen plan, with the verdict
of truncation (runtime.md §2), before anything is dispatched. The machine reads nothing else.
"""

from __future__ import annotations

from crucible.runtime.outcome import Reason, Why
from crucible.schemas.light import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Final

    from crucible.schemas.ir import Task, Workflow

ANY: Final = "any"
RETRIES: Final = 2


class Plan(NamedTuple):
    """A workflow with what a run of it has to know; tasks are numbered in declaration order.

    ``depends_on`` and ``dependents`` have for each task the numbers of others, in order. ``is_late``
    tells the tasks that wait for the main graph: those of the epilogue, and what depends on one.
    ``never`` has the reason of each task that can never run here. ``budget`` is in micro-dollars,
    None for no ceiling; ``jobs`` is how many isolated tasks run at once, None for all. ``given`` are tasks that are
    no part of this pass over the graph: they count as passed, and nobody gets anything of them.
    """

    workflow: Workflow
    depends_on: tuple[tuple[int, ...], ...]
    dependents: tuple[tuple[int, ...], ...]
    is_late: tuple[bool, ...]
    never: tuple[Reason | None, ...]
    budget: int | None = None
    jobs: int | None = None
    retries: int = RETRIES
    given: frozenset[int] = frozenset()

    @property
    def truncation(self) -> Reason | None:
        """Return why nothing of the plan may run here: the first required task that never can; None for a good plan."""
        for task, reason in zip(self.workflow.task, self.never, strict=True):
            if task.required and reason is not None:
                return Reason(Why.REQUIRED_TASK_CANNOT_RUN, (task.name,), reason.capability)
        return None


def make_plan(
    workflow: Workflow,
    capabilities: Collection[str] = (),
    *,
    budget: int | None = None,
    jobs: int | None = None,
    retries: int = RETRIES,
) -> Plan:
    """Return the plan of a workflow on a substrate with some capabilities.

    Raises ValueError for what no compiled workflow has: a name that two tasks share or that nobody
    bears, a cycle; and for less than one job.
    """
    if jobs is not None and jobs < 1:
        message = f"a plan has at least one job, not {jobs}"
        raise ValueError(message)
    tasks = workflow.task
    numbers = {task.name: index for index, task in enumerate(tasks)}
    unknown = {name for task in tasks for name in task.depends_on} - numbers.keys()
    if len(numbers) < len(tasks) or unknown:
        message = f"the tasks of a plan have names of their own, and dependencies among them: {sorted(unknown)}"
        raise ValueError(message)
    depends_on = tuple(tuple(sorted({numbers[name] for name in task.depends_on})) for task in tasks)
    found: list[list[int]] = [[] for _ in tasks]
    for index, dependencies in enumerate(depends_on):
        for to in dependencies:
            found[to].append(index)
    dependents = tuple(map(tuple, found))
    is_late = [task.is_epilogue for task in tasks]
    never: list[Reason | None] = [None] * len(tasks)
    for index in _order(depends_on, dependents):
        is_late[index] = is_late[index] or any(is_late[to] for to in depends_on[index])
        never[index] = _never(tasks, index, depends_on[index], never, capabilities)
    return Plan(workflow, depends_on, dependents, tuple(is_late), tuple(never), budget, jobs, retries)


def _order(depends_on: tuple[tuple[int, ...], ...], dependents: tuple[tuple[int, ...], ...]) -> list[int]:
    """Return all tasks, dependencies first; raise ValueError where there is a cycle."""
    left = [len(dependencies) for dependencies in depends_on]
    order = [index for index, count in enumerate(left) if not count]
    for index in order:
        for other in dependents[index]:
            left[other] -= 1
            if not left[other]:
                order.append(other)
    if len(order) < len(left):
        message = "the tasks of a plan do not depend on themselves"
        raise ValueError(message)
    return order


def _never(
    tasks: tuple[Task, ...],
    index: int,
    dependencies: tuple[int, ...],
    never: list[Reason | None],
    capabilities: Collection[str],
) -> Reason | None:
    """Return why a task can never run here: what it needs is not there, or its join can never be satisfied."""
    task = tasks[index]
    if task.needs != ANY and task.needs not in capabilities:
        return Reason(Why.CAPABILITY_MISSING, capability=task.needs)
    lost = [(tasks[to].name, reason) for to in dependencies if (reason := never[to]) is not None]
    enough = 1 if task.join == "all" else max(1, len(dependencies))
    if len(lost) < enough:
        return None
    return Reason(Why.DEPENDENCY_CANNOT_RUN, tuple(name for name, _ in lost), lost[0][1].capability)

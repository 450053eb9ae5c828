"""The truth table of the state machine, played and not computed: every cell is a run of a small workflow.

In that run stand the task in question, its dependencies, and another required task that ends last of what
ends at all; what that one comes to halts the run, or does not.
"""

from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from typing import Final, NamedTuple

from crucible.runtime import machine
from crucible.runtime.outcome import Attempt, Status
from crucible.runtime.plan import make_plan
from crucible.schemas.ir import JOINS, WORKTREE, CommandTask, Task, Workflow

# What a dependency can have come to when the other task has ended.
STATES: Final = (
    Status.PENDING,
    Status.RUNNING,
    Status.PASS,
    Status.FAIL,
    Status.TRANSPORT,
    Status.SKIPPED,
    Status.BLOCKED,
)
HALTS: Final = {
    "no": "The run goes on",
    "required_task_failed": "A required task has failed",
    "budget_ceiling": "The budget is passed",
    "wall_clock_ceiling": "The time is up",
    "interrupted": "Somebody has stopped the run",
}
UPSTREAM: Final = tuple(states for count in range(3) for states in combinations_with_replacement(STATES, count))
BUDGET: Final = 5
WAITS, ALONE, TOGETHER, OPEN = "waits", "runs alone", "runs in a wave", "has no result"

_HEAD: Final = """\
# What becomes of a task

What a task comes to by its join, by what its dependencies have come to, by whether it is required and isolated,
and by what has halted the run. Each cell is a run of the machine (`tests/truth_table.py`); `make golden` writes this
page again.

* The dependencies are advisory and are called `one` and `two`; the required task that halts the run is called `other`.
* Where a cell has two outcomes, the second is that of an isolated task: it runs in a wave with the other isolated
  tasks that are ready, at most as many as there are jobs.
* A run that is halted lets finish what runs. Until then the task waits.
* The budget is looked at first: where a required task has failed and the budget is passed, the budget halts the run.
* A task is truncated, with the whole plan, when it is required and can never run on this substrate. No dependency has
  come to anything then.
"""


class Case(NamedTuple):
    """One combination; ``upstream`` are the states of the dependencies, at most two."""

    halted: str
    upstream: tuple[Status, ...]
    join: str
    required: bool
    isolated: bool


def cases() -> Iterator[Case]:
    """Give every combination."""
    yield from map(Case._make, product(HALTS, UPSTREAM, JOINS, (True, False), (False, True)))


def outcome(case: Case) -> str:
    """Play a case, and say what became of the task."""
    run = _play(case)
    index = _numbers(run)["task"]
    result, wave = run.results[index], machine.next_wave(run)
    if result is not None and result.reason is not None:
        causes = " ".join(f"`{name}`" for name in result.reason.causes)
        return f"{result.status}: {result.reason.why} {causes}".rstrip()
    if index in wave:
        return ALONE if wave == (index,) else TOGETHER
    return WAITS if run.running else OPEN


def page() -> str:
    """Return the truth table as a page of Markdown."""
    columns = list(product(JOINS, (True, False)))
    titles = [f"`{join}`, {'required' if required else 'advisory'}" for join, required in columns]
    lines = [_HEAD]
    for halted, title in HALTS.items():
        lines += [f"## {title}", "", f"| dependencies | {' | '.join(titles)} |", f"| --- |{' --- |' * len(columns)}"]
        for upstream in UPSTREAM:
            cells = [
                " / ".join(
                    dict.fromkeys(outcome(Case(halted, upstream, *column, isolated)) for isolated in (False, True))
                )
                for column in columns
            ]
            lines.append(f"| {', '.join(upstream) or 'none'} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def _cell(case: Case) -> str:
    """Return the outcomes of a task that is not isolated and of one that is, once if they are the same."""
    return " / ".join(dict.fromkeys((outcome(case), outcome(case._replace(isolated=True)))))


def _play(case: Case) -> machine.Run:
    """Take a run to the moment when the other task has ended, and with it all that is not left running."""
    run = machine.begin(make_plan(_workflow(case), budget=BUDGET, retries=0))
    ends = {"lost": Status.FAIL, "one": Status.PASS, "two": Status.PASS}
    ends |= {
        name: state for name, state in zip(("one", "two"), case.upstream, strict=False) if state is not Status.PENDING
    }
    while "other" not in _running(run) and machine.next_wave(run):
        run = machine.start(run)
        for name in _running(run):
            if ends.get(name, Status.RUNNING) is not Status.RUNNING:
                run = machine.record(run, _numbers(run)[name], Attempt(ends[name]))
    if "other" in _running(run):
        if case.halted == "wall_clock_ceiling":
            run = machine.expire(run)
        elif case.halted == "interrupted":
            run = machine.interrupt(run)
        status = Status.FAIL if case.halted == "required_task_failed" else Status.PASS
        cost = BUDGET + 1 if case.halted == "budget_ceiling" else 0
        run = machine.record(run, _numbers(run)["other"], Attempt(status, cost=cost))
    return run


def _workflow(case: Case) -> Workflow:
    """Return the workflow of a case.

    A dependency that is to be pending waits for ``slow``, which never ends; one that is to be blocked for
    ``lost``, which fails before all else. ``mate`` is ready as soon as the task in question is.
    """
    names = ("one", "two")[: len(case.upstream)]
    tasks = [_task("lost", isolated=False)] if Status.BLOCKED in case.upstream else []
    tasks.append(_task("other", isolated=bool(case.upstream), required=True))
    if Status.PENDING in case.upstream:
        tasks.append(_task("slow"))
    waits_for = {Status.PENDING: ("slow",), Status.BLOCKED: ("lost",)}
    for name, state in zip(names, case.upstream, strict=True):
        tasks.append(_task(name, *waits_for.get(state, ()), needs="gpu" if state is Status.SKIPPED else "any"))
    tasks.append(_task("task", *names, join=case.join, required=case.required, isolated=case.isolated))
    tasks.append(_task("mate", "other"))
    return Workflow(type="custom", task=tuple(tasks))


def _task(
    name: str, *depends_on: str, needs: str = "any", join: str = "all", required: bool = False, isolated: bool = True
) -> Task:
    return CommandTask(
        name=name,
        command="true",
        depends_on=depends_on,
        needs=needs,
        join=join,
        required=required,
        isolation=WORKTREE if isolated else None,
    )


def _numbers(run: machine.Run) -> dict[str, int]:
    return {task.name: index for index, task in enumerate(run.plan.workflow.task)}


def _running(run: machine.Run) -> list[str]:
    return [run.plan.workflow.task[index].name for index in run.running]

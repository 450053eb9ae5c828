"""Which failures a run survives now: the verdict of the diff against the machine that runs workflows."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weaker import with_task

from crucible.compiler.analysis.graph import Graph
from crucible.compiler.change import Class
from crucible.compiler.diff import compare
from crucible.compiler.failures import Survived, survived
from crucible.compiler.standing import Standing
from crucible.runtime.outcome import Status
from crucible.runtime.what_if import what_if
from crucible.schemas import ir


@st.composite
def runnable(draw: st.DrawFn) -> ir.Workflow:
    """Generate a workflow of commands and evaluates that an executor takes."""
    tasks: list[ir.Task] = []
    for number in range(draw(st.integers(2, 5))):
        name = f"t{number}"
        stage = draw(st.sampled_from(["iteration", "iteration", "iteration", "epilogue"]))
        earlier = [task.name for task in tasks if task.stage == stage]
        common: dict[str, Any] = {
            "name": name,
            "command": f"./{name}.sh",
            "stage": stage,
            "required": draw(st.booleans()),
            "depends_on": tuple(draw(st.lists(st.sampled_from(earlier), unique=True, max_size=3)) if earlier else ()),
        }
        common["join"] = draw(st.sampled_from(ir.JOINS)) if common["depends_on"] else "all"
        tasks.append(draw(st.sampled_from([ir.CommandTask, ir.EvaluateTask]))(**common))
    iteration = [task.name for task in tasks if not task.is_epilogue]
    return ir.Workflow(
        type="custom", task=tuple(tasks), result=draw(st.none() | st.sampled_from(iteration)) if iteration else None
    )


@st.composite
def edited(draw: st.DrawFn) -> tuple[ir.Workflow, ir.Workflow]:
    """Generate a workflow and one that a few edits of who waits for whom have made of it."""
    old = new = draw(runnable())
    for _ in range(draw(st.integers(1, 3))):
        number = draw(st.integers(0, len(new.task) - 1))
        task = new.task[number]
        earlier = [each.name for each in new.task[:number] if each.stage == task.stage]
        what = draw(st.sampled_from(["required", "join", "more", "fewer"]))
        if what == "required":
            new = with_task(new, task.name, required=not task.required)
        elif what == "join" and task.depends_on:
            new = with_task(new, task.name, join="all" if task.join == "passed" else "passed")
        elif what == "more" and earlier:
            other = draw(st.sampled_from(earlier))
            new = with_task(new, task.name, depends_on=tuple(dict.fromkeys((*task.depends_on, other))))
        elif what == "fewer" and len(task.depends_on) > 1:
            new = with_task(new, task.name, depends_on=task.depends_on[1:])
    return old, new


def _failing(workflow: ir.Workflow) -> Iterator[tuple[str, ...]]:
    names = [task.name for task in workflow.task]
    for number in range(len(names) + 1):
        yield from itertools.combinations(names, number)


def _came_of(workflow: ir.Workflow, failed: tuple[str, ...]) -> tuple[bool, bool]:
    """Return whether a run is valid, and whether it is and has its result."""
    found = what_if(workflow, failed)
    return found.valid, found.valid and workflow.result in (None, *found.names(Status.PASS))


def _survived(old: ir.Workflow, new: ir.Workflow) -> list[Survived]:
    """Ask of two workflows of the same tasks in the same order."""
    return list(survived(*(Standing(Graph(each), lambda index: index) for each in (old, new))))


@settings(max_examples=300)
@given(edited())
def test_what_is_survived_is_what_the_machine_says(pair: tuple[ir.Workflow, ir.Workflow]) -> None:
    """Every set of failures is tried: a run is valid, or has its result, that was or had not, or there is none."""
    old, new = pair
    outcomes = [(failed, _came_of(old, failed), _came_of(new, failed)) for failed in _failing(old)]
    worse = {
        failed for failed, before, after in outcomes if any(b and not a for a, b in zip(before, after, strict=True))
    }
    found = _survived(old, new)
    assert bool(found) == bool(worse)
    for each in found:  # and what is named is such a set, of which each counts
        failed = tuple(old.task[one].name for one in each.failed)
        assert failed in worse
    if worse:
        assert compare(old, new).verdict == "weakened"


A = ir.AgentTask(name="a", prompt="x")
CHECKS = tuple(
    ir.EvaluateTask(name=name, command=f"./{name}.sh", required=False, depends_on=("a",)) for name in ("one", "two")
)
OTHER = ir.CommandTask(name="other", command="true", required=False, depends_on=("a",))
PUBLISH = ir.CommandTask(name="publish", command="./publish.sh", join="passed", depends_on=("one", "two"))
EITHER = ir.Workflow(type="custom", result="publish", task=(A, *CHECKS, PUBLISH))
FREE = EITHER.replace(result=None)
WITH_OTHER = EITHER.replace(task=(A, *CHECKS, OTHER, PUBLISH))
LATER = ir.CommandTask(name="later", command="./later.sh", depends_on=("a",))
BEHIND_ONE = EITHER.replace(task=(A, CHECKS[0], PUBLISH.replace(depends_on=("one",)), LATER), result="later")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            EITHER, with_task(EITHER, "publish", depends_on=("one", "two", "a")),
            'a run in which "one" and "two" fail may be valid now; "publish" had needed one of them to pass',
        ),
        (
            EITHER, with_task(WITH_OTHER, "publish", depends_on=("one", "two", "other")),
            'a run in which "one" and "two" fail may be valid now; "publish" had needed one of them to pass',
        ),
        (
            BEHIND_ONE, with_task(BEHIND_ONE, "publish", depends_on=("a",), join="all"),
            'a run in which "one" fails may be valid now; "publish" had needed it to pass',
        ),
    ],
)  # fmt: skip
def test_a_way_around_a_check_is_told_with_what_may_fail(old: ir.Workflow, new: ir.Workflow, says: str) -> None:
    """As the what-if shows it: those failures made the run invalid."""
    difference = compare(old, new)
    assert says in [change.sentence for change in difference.changes if change.kind is Class.WEAKENED]
    assert Class.STRENGTHENED not in {change.kind for change in difference.changes}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (FREE, with_task(FREE, "publish", depends_on=("one",))),
        (
            with_task(EITHER, "publish", depends_on=("a", "one")),
            with_task(EITHER, "publish", depends_on=("a", "one", "two")),
        ),
        (EITHER, with_task(with_task(WITH_OTHER, "other", depends_on=("one",)), "publish",
                           depends_on=("two", "other"))),
    ],
)  # fmt: skip
def test_a_choice_that_lets_nothing_through_is_no_weakening(old: ir.Workflow, new: ir.Workflow) -> None:
    """Fewer to choose from, more beside one that passes anyway, and one that stands for another behind it."""
    assert compare(old, new).verdict == "changed"


def test_many_choices_are_told_apart_soon() -> None:
    """A workflow of nothing but choices is the same as itself, and one that grew is not."""
    tasks: list[ir.Task] = []
    for number in range(30):
        names = tuple(f"{number}.{each}" for each in range(3))
        tasks += [ir.EvaluateTask(name=name, command="./x.sh", required=False) for name in names]
        tasks.append(ir.CommandTask(name=f"{number}", command="./y.sh", join="passed", depends_on=names))
    old = ir.Workflow(type="custom", task=tuple(tasks))
    assert compare(old, old.replace(task=old.task[::-1])).verdict == "cosmetic"
    wider = with_task(old, "7", depends_on=("7.0", "7.1", "7.2", "8.0"))
    assert [change.task for change in compare(old, wider).changes if change.kind is Class.WEAKENED] == ["7"]

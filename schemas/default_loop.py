"""The default loop as IR: propose, the extras, apply, measure, decide (language.md §7).

In goes what was written, a list of extras or a splice; out comes the workflow that runs. It stands on
the ground floor since who compares workflows and who runs them need the same answer.
"""

from collections.abc import Iterable

from crucible.schemas.ir import EngineTask, Task, Workflow


def loop_around(extras: Iterable[Task]) -> Workflow:
    """Return the default loop with extra tasks in it, their dependencies as they are.

    Apply waits for what nothing else of the iteration waits for.
    """
    propose = EngineTask(name="propose", op="propose")
    inner = tuple(extras)
    inside = [propose, *(task for task in inner if not task.is_epilogue)]
    waited_for = {name for task in inside for name in task.depends_on}
    sinks = tuple(task.name for task in inside if task.name not in waited_for)
    tasks = (
        propose,
        *inner,
        EngineTask(name="apply", op="apply", depends_on=sinks),
        EngineTask(name="measure", op="measure", depends_on=("apply",)),
        EngineTask(name="decide", op="decide", depends_on=("measure",), source="measure"),
    )
    return Workflow(type="autoresearch", task=tasks, result="decide")


def expanded(workflow: Workflow) -> Workflow:
    """Return a splice as the loop that it stands for, and any other workflow as it is.

    A task of the iteration that depends on nothing waits for propose.
    """
    if not workflow.is_splice:
        return workflow
    return loop_around(
        task if task.depends_on or task.is_epilogue else task.replace(depends_on=("propose",)) for task in workflow.task
    )

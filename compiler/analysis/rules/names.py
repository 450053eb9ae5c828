"""Rules of the task list and its names (codes.md, Graph)."""

from collections.abc import Iterator

from crucible.compiler.analysis.rules.case import LOOP_NAMES, Case
from crucible.schemas.diagnostic import At, Finding
from crucible.schemas.ir import RESERVED_EPILOGUE_INPUTS, RESERVED_INPUTS, name_fault


def no_tasks(case: Case) -> Iterator[Finding]:
    """Find an empty list of tasks."""
    if not case.tasks and not case.is_refused(None, "task"):
        yield Finding("no-tasks", "the workflow has no tasks; list at least one", At(None, "task"))


def empty_name(case: Case) -> Iterator[Finding]:
    """Find names that are nothing but blanks."""
    return _faulty_names(case, "empty-name")


def invalid_name(case: Case) -> Iterator[Finding]:
    """Find names that are too long or hold what a name may not hold."""
    return _faulty_names(case, "invalid-name")


def _faulty_names(case: Case, code: str) -> Iterator[Finding]:
    for index, task in enumerate(case.tasks):
        fault = name_fault(task.name)
        if fault is not None and fault[0] == code and not case.is_refused(index, "name"):
            yield Finding(code, fault[1], At(index, "name"))


def reserved_name(case: Case) -> Iterator[Finding]:
    """Find names that would hide an input of the engine, or that the loop around a splice has itself."""
    for index, task in enumerate(case.tasks):
        if task.name in RESERVED_INPUTS or (task.is_epilogue and task.name in RESERVED_EPILOGUE_INPUTS):
            message = f'"{task.name}" is the key of an input that the engine gives to tasks; choose another name'
        elif case.facts.splice and task.name in LOOP_NAMES and not task.operation:
            message = f'"{task.name}" is the name of a task of the loop itself; choose another name'
        else:
            continue
        yield Finding("reserved-name", message, At(index, "name"))


def duplicate_task(case: Case) -> Iterator[Finding]:
    """Find a second task of one name; one without a name has its own rule."""
    for name, (first, *others) in case.graph.bearers.items():
        for index in others if name.strip() else ():
            message = f'two tasks are named "{name}"; give each a name of its own'
            yield Finding("duplicate-task", message, At(index), ((f'the first "{name}"', At(first)),))

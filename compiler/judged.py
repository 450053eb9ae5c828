"""How grave a change of one field of a task is, and what is said of it: one small function for each field.

A field that stands in no row is compared by diff.py, which knows the graph.
"""

from collections.abc import Callable
from typing import Final

from crucible.compiler.change import Class
from crucible.compiler.shell import Strictness, says_the_same, strictness
from crucible.schemas.ir import AgentTask, EngineTask, EvaluateTask, Task, TopKTask


def kind_of(task: Task) -> str:
    """Return what a task is, as a person says it."""
    return task.operation or task.kind


def of_kinds(old: Task, new: Task) -> Class:
    """Judge a task that became one of another kind."""
    if isinstance(old, (EvaluateTask, TopKTask, EngineTask)) or isinstance(new, AgentTask):
        return Class.WEAKENED
    command = getattr(new, "command", None)
    if strictness(command) < strictness(getattr(old, "command", None)):
        return Class.WEAKENED
    same = isinstance(new, EvaluateTask) and command == getattr(old, "command", None)
    return Class.STRENGTHENED if same else Class.CHANGED


# What is said of a command when less of its failures counts than before.
_COUNTS: Final = {
    Strictness.NONE: "that cannot fail",
    Strictness.UNKNOWN: "of which it cannot be told whether it can fail",
    Strictness.LOSSY: "of which a failure may be lost",
}

# Fields: how a change of each is judged, and what is said of the task.

_Judged = tuple[Class, str]


def _required(_old: Task, new: Task) -> _Judged:
    if new.required:
        return Class.STRENGTHENED, "{} is required now"
    return Class.WEAKENED, "{} is advisory now: its failure does not count"


def _isolation(old: Task, new: Task) -> _Judged:
    if new.isolation is None:
        return Class.WEAKENED, "{} is no longer isolated: it works where the others do"
    kind = Class.STRENGTHENED if isinstance(old, EvaluateTask) else Class.REWIRED
    return kind, "{} is isolated now: what it leaves behind reaches no other task"


def _join(_old: Task, new: Task) -> _Judged:
    if new.join == "passed":
        return Class.WEAKENED, "{} needs only one of its dependencies to pass now, not all"
    return Class.STRENGTHENED, "{} needs all of its dependencies to pass now"


def _stage(_old: Task, new: Task) -> _Judged:
    if new.is_epilogue:
        return Class.WEAKENED, "{} runs in the epilogue now, when all is decided"
    return (Class.STRENGTHENED if new.required else Class.REWIRED), "{} runs in the iteration now"


def _needs(old: Task, new: Task) -> _Judged:
    if old.needs != "any":
        return Class.WEAKENED, "{} does not need any more what it needed to run"
    if new.required:
        return Class.STRENGTHENED, "{} needs a capability now"
    return Class.WEAKENED, "{} is advisory and needs a capability now: without that it is skipped"


def _command(old: Task, new: Task) -> _Judged:
    before, after = getattr(old, "command", None), getattr(new, "command", None)
    if strictness(after) < strictness(before):
        return Class.WEAKENED, f"{{}} runs a command now {_COUNTS[strictness(after)]}"
    if isinstance(new, EvaluateTask) and says_the_same(after) and not says_the_same(before):
        return Class.WEAKENED, "{} runs a command now that says the same whatever it finds: its last line is a constant"
    return Class.CHANGED, "{} runs another command"


def _threshold(old: Task, new: Task) -> _Judged:
    before, after, way = (
        getattr(old, "threshold", None),
        getattr(new, "threshold", None),
        getattr(new, "direction", None),
    )
    if after is None:
        return Class.WEAKENED, "{} has no threshold any more"
    if before is None:
        return Class.STRENGTHENED, "{} has a threshold now"
    if getattr(old, "direction", None) != way:
        return Class.WEAKENED, "{} has another threshold, in the other direction"
    if (after > before) if way == "lower" else (after < before):
        return Class.WEAKENED, "{} has a looser threshold"
    return Class.STRENGTHENED, "{} has a tighter threshold"


def _k(old: Task, new: Task) -> _Judged:
    if getattr(new, "k", 0) > getattr(old, "k", 0):
        return Class.WEAKENED, "{} keeps more of what it chooses from"
    return Class.STRENGTHENED, "{} keeps fewer of what it chooses from"


def _always(kind: Class, says: str) -> Callable[[Task, Task], _Judged]:
    return lambda _old, _new: (kind, says)


FIELDS: Final[dict[str, Callable[[Task, Task], _Judged]]] = {
    "required": _required,
    "isolation": _isolation,
    "join": _join,
    "stage": _stage,
    "needs": _needs,
    "prompt": _always(Class.CHANGED, "{} is told something else"),
    "command": _command,
    "harness": _always(Class.CHANGED, "{} has another harness"),
    "model": _always(Class.CHANGED, "{} has another model"),
    "effort": _always(Class.CHANGED, "{} has another effort"),
    "threshold": _threshold,
    "direction": _always(Class.WEAKENED, "{} takes for better what was worse"),
    "k": _k,
    "op": _always(Class.WEAKENED, "{} is another operation of the engine"),
}

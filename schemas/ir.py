"""The IR: frozen workflows and tasks, one class per kind, and reading them from plain data (ir.md §1).

Plain data is what a JSON or TOML reader gives: dicts, lists, strings, numbers, booleans, None.
``to_plain`` writes every field in the canonical order; ``read`` reads it back and reports what does
not fit as findings whose places are fields of the IR.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from crucible.schemas.diagnostic import At, Finding
from crucible.schemas.spelling import hint

LANES = ("autoresearch", "custom", "playbook")
JOINS = ("all", "passed")
STAGES = ("iteration", "epilogue")
DIRECTIONS = ("lower", "higher")
OPERATIONS = ("propose", "apply", "measure", "grade", "decide")
WORKTREE = "worktree"
RESERVED_INPUTS = ("params",)
RESERVED_EPILOGUE_INPUTS = ("kept",)

NAME_LENGTH = 128
_FORBIDDEN_IN_NAME = re.compile("[\\[\\]\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SESSION = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_FIELD = re.compile(r"[A-Za-z0-9_]{1,64}", re.ASCII)
_LARGEST_INT = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Task:
    """What all tasks have; a task of one kind is an instance of a subclass.

    ``depends_on`` and ``emits`` are tuples of names, ``isolation`` is "worktree" or None.
    """

    kind: ClassVar[str] = ""
    name: str
    depends_on: tuple[str, ...] = ()
    session: str | None = None
    needs: str = "any"
    required: bool = True
    isolation: str | None = None
    join: str = "all"
    stage: str = "iteration"
    emits: tuple[str, ...] = ()

    @property
    def is_epilogue(self) -> bool:
        """Tell whether the task runs after the main graph has settled."""
        return self.stage == "epilogue"

    @property
    def operation(self) -> str:
        """Return the engine operation, "" for a task of another kind."""
        return ""


@dataclass(frozen=True, kw_only=True)
class AgentTask(Task):
    """A turn of an agent with a prompt."""

    kind: ClassVar[str] = "agent"
    prompt: str
    harness: str | None = None
    model: str | None = None
    effort: str | None = None


@dataclass(frozen=True, kw_only=True)
class CommandTask(Task):
    """A deterministic shell command in the candidate workspace."""

    kind: ClassVar[str] = "command"
    command: str


@dataclass(frozen=True, kw_only=True)
class EvaluateTask(Task):
    """A measuring command with an optional threshold on its score."""

    kind: ClassVar[str] = "evaluate"
    command: str
    threshold: float | None = None
    direction: str | None = None


@dataclass(frozen=True, kw_only=True)
class TopKTask(Task):
    """A reducer that keeps the k best of its dependencies by score."""

    kind: ClassVar[str] = "top_k"
    k: int
    direction: str


@dataclass(frozen=True, kw_only=True)
class EngineTask(Task):
    """An operation that the engine owns: propose, apply, measure, grade or decide.

    ``source`` is the score's task of a grade and the measurement of a decide.
    """

    kind: ClassVar[str] = "engine"
    op: str
    source: str | None = None
    tiebreak: str | None = None

    @property
    def operation(self) -> str:
        """Return the engine operation."""
        return self.op


@dataclass(frozen=True, kw_only=True)
class Workflow:
    """A graph of tasks in the order of its list, with its lane and its result.

    ``params`` are the bound values of a source that declares parameters, in declaration order,
    None for one that declares none.
    """

    type: str
    task: tuple[Task, ...]
    result: str | None = None
    params: Mapping[str, Any] | None = field(default=None)

    @property
    def is_splice(self) -> bool:
        """Tell whether only the extras of the default loop are written (language.md §7)."""
        return self.type == "autoresearch" and self.result is None


KINDS: dict[str, type[Task]] = {
    cls.kind: cls for cls in (AgentTask, CommandTask, EvaluateTask, TopKTask, EngineTask)
}
_OWN_FIELDS: dict[str, tuple[str, ...]] = {
    kind: tuple(f.name for f in fields(cls))[len(fields(Task)) :] for kind, cls in KINDS.items()
}
_ALWAYS_NULLABLE = ("harness", "model", "effort")


def name_fault(name: str) -> tuple[str, str] | None:
    """Return the code and the message for a task name that ir.md §1 refuses, None for a good one."""
    if not name.strip():
        return "empty-name", "a task name is something other than blanks"
    if len(name) > NAME_LENGTH:
        return "invalid-name", f"a task name has at most {NAME_LENGTH} characters; this one has {len(name)}"
    found = _FORBIDDEN_IN_NAME.search(name)
    if found:
        character = found.group()
        shown = f'"{character}"' if character in "[]" else f"U+{ord(character):04X}"
        return "invalid-name", f"a task name holds no brackets, control or text-direction characters; this one holds {shown}"
    return None


def is_session_name(name: str) -> bool:
    """Tell whether a session name is 1 to 64 ASCII letters, digits, ".", "_" or "-"."""
    return _SESSION.fullmatch(name) is not None


def is_field_name(name: str) -> bool:
    """Tell whether an emitted field is 1 to 64 ASCII letters, digits or "_"."""
    return _FIELD.fullmatch(name) is not None


def to_plain(workflow: Workflow) -> dict[str, Any]:
    """Return a workflow as plain data, every field in the order of ir.md §1."""
    plain: dict[str, Any] = {"type": workflow.type}
    if workflow.result is not None:
        plain["result"] = workflow.result
    if workflow.params is not None:
        plain["params"] = dict(workflow.params)
    plain["task"] = [task_to_plain(task) for task in workflow.task]
    return plain


def task_to_plain(task: Task) -> dict[str, Any]:
    """Return one task as plain data, every field in the order of ir.md §1."""
    plain: dict[str, Any] = {"name": task.name, "kind": task.kind}
    for name in _OWN_FIELDS[task.kind]:
        value = getattr(task, name)
        if value is not None or name in _ALWAYS_NULLABLE:
            plain[name] = value
    plain["depends_on"] = list(task.depends_on)
    if task.session is not None:
        plain["session"] = task.session
    plain["needs"] = task.needs
    plain["required"] = task.required
    plain["isolation"] = task.isolation
    plain["join"] = task.join
    if task.is_epilogue:
        plain["stage"] = task.stage
    if task.emits:
        plain["emits"] = list(task.emits)
    return plain


# Reading: one row per field: its type, the values of a closed set, and whether it must be there.
_STRING, _BOOLEAN, _NAMES, _INTEGER, _NUMBER = "a string", "a boolean", "a list of strings", "an integer", "a number"
_TASK_TABLE: dict[str, tuple[str, tuple[str, ...]]] = {
    "name": (_STRING, ()),
    "kind": (_STRING, tuple(KINDS)),
    "prompt": (_STRING, ()),
    "harness": (_STRING, ()),
    "model": (_STRING, ()),
    "effort": (_STRING, ()),
    "command": (_STRING, ()),
    "threshold": (_NUMBER, ()),
    "direction": (_STRING, DIRECTIONS),
    "k": (_INTEGER, ()),
    "op": (_STRING, OPERATIONS),
    "source": (_STRING, ()),
    "tiebreak": (_STRING, ()),
    "depends_on": (_NAMES, ()),
    "session": (_STRING, ()),
    "needs": (_STRING, ()),
    "required": (_BOOLEAN, ()),
    "isolation": (_STRING, (WORKTREE,)),
    "join": (_STRING, JOINS),
    "stage": (_STRING, STAGES),
    "emits": (_NAMES, ()),
}
_COMMON = ("name", "kind", "depends_on", "session", "needs", "required", "isolation", "join", "stage", "emits")
_MUST = {
    "agent": ("name", "prompt"),
    "command": ("name", "command"),
    "evaluate": ("name", "command"),
    "top_k": ("name", "k", "direction"),
    "engine": ("name", "op"),
}
_NULLABLE = ("harness", "model", "effort", "isolation", "session", "threshold", "direction", "source", "tiebreak", "result")


def read(plain: object) -> tuple[Workflow | None, list[Finding]]:
    """Read a workflow from plain data; without one, the findings say why.

    A task that has no usable name or kind is left out, a bad value takes its default, so that the
    rules can judge what is left; the workflow is None only when nothing is left to judge.
    """
    findings: list[Finding] = []
    if not isinstance(plain, dict):
        return None, [Finding("wrong-type", f"a workflow is a table, not {kind_of(plain)}", At())]
    for key in plain:
        if key not in ("type", "result", "params", "task"):
            tail, guess = hint(str(key), ("type", "result", "params", "task"), "keys")
            findings.append(Finding("unknown-key", f'a workflow has no key "{key}"{tail}', At(None, str(key), part="key"), suggestion=guess))
    lane = plain.get("type", "autoresearch")
    findings += _value_findings("type", lane, _STRING, LANES, At(None, "type"))
    result = plain.get("result")
    if result is not None:
        findings += _value_findings("result", result, _STRING, (), At(None, "result"))
    params = plain.get("params")
    if params is not None and not isinstance(params, dict):
        findings.append(Finding("wrong-type", f"params is a table, not {kind_of(params)}", At(None, "params")))
        params = None
    rows = plain.get("task")
    if rows is None:
        findings.append(Finding("missing-key", 'a workflow needs the key "task"', At()))
        return None, findings
    if not isinstance(rows, list):
        findings.append(Finding("wrong-type", f"task is a list of tables, not {kind_of(rows)}", At(None, "task")))
        return None, findings
    tasks = []
    for index, row in enumerate(rows):
        task, problems = read_task(row, index)
        findings += problems
        if task is not None:
            tasks.append(task)
    if lane not in LANES or len(tasks) < len(rows):
        return None, findings
    return Workflow(type=lane, result=result if isinstance(result, str) else None, params=params, task=tuple(tasks)), findings


def read_task(row: object, index: int) -> tuple[Task | None, list[Finding]]:
    """Read one task from plain data; ``index`` is its place in the list."""
    if not isinstance(row, dict):
        return None, [Finding("wrong-type", f"a task is a table, not {kind_of(row)}", At(None, "task", index))]
    findings: list[Finding] = []
    kind = row.get("kind")
    if kind not in KINDS:
        if "kind" not in row:
            findings.append(Finding("missing-key", 'a task needs the key "kind"', At(index)))
        else:
            findings += _value_findings("kind", kind, _STRING, tuple(KINDS), At(index, "kind"))
        return None, findings
    allowed = (*_COMMON, *_OWN_FIELDS[kind])
    values: dict[str, Any] = {}
    for key, value in row.items():
        at = At(index, str(key))
        if key not in allowed:
            owners = [other for other, own in _OWN_FIELDS.items() if key in own]
            if owners:
                tail, guess = f"; that is a key of {' and '.join(owners)} tasks", None
            else:
                tail, guess = hint(str(key), [name for name in allowed if name not in row], "keys")
            findings.append(Finding("unknown-key", f'a task of kind {kind} has no key "{key}"{tail}', at._replace(part="key"), suggestion=guess))
            continue
        type_name, choices = _TASK_TABLE[key]
        if value is None and key in _NULLABLE:
            continue
        problems = _value_findings(key, value, type_name, choices, at)
        findings += problems
        if not problems:
            values[key] = value
        elif type_name == _NAMES and isinstance(value, list):
            values[key] = [element for element in value if isinstance(element, str)]
    findings += [
        Finding("missing-key", f'a task of kind {kind} needs the key "{key}"', At(index))
        for key in _MUST[kind]
        if key not in row
    ]
    if any(key not in values for key in _MUST[kind]):
        return None, findings
    values.pop("kind")
    for key in ("depends_on", "emits"):
        if key in values:
            values[key] = tuple(values[key])
    if "threshold" in values:
        values["threshold"] = float(values["threshold"])
    return KINDS[kind](**values), findings


def _value_findings(key: str, value: object, type_name: str, choices: tuple[str, ...], at: At) -> Iterator[Finding]:
    """Yield what is wrong with the value of one field."""
    if type_name == _NAMES:
        if not isinstance(value, list):
            yield Finding("wrong-type", f"{key} is {type_name}, not {kind_of(value)}", at)
            return
        for number, element in enumerate(value):
            if not isinstance(element, str):
                yield Finding("wrong-type", f"an element of {key} is a string, not {kind_of(element)}", at._replace(index=number))
        return
    expected = {_STRING: str, _BOOLEAN: bool, _INTEGER: int, _NUMBER: (int, float)}[type_name]
    if not isinstance(value, expected) or (isinstance(value, bool) and type_name != _BOOLEAN):  # type: ignore[arg-type]
        yield Finding("wrong-type", f"{key} is {type_name}, not {kind_of(value)}", at)
    elif type_name == _INTEGER and isinstance(value, int) and not 1 <= value <= _LARGEST_INT:
        yield Finding("out-of-range", f"{key} lies between 1 and {_LARGEST_INT}; this is {value}", at)
    elif type_name == _NUMBER and isinstance(value, (int, float)) and not is_finite(value):
        yield Finding("threshold-not-finite", f"{key} is a finite number", at)
    elif choices and isinstance(value, str) and value not in choices:
        tail, guess = hint(value, choices, "values")
        yield Finding("unknown-value", f'{key} has no value "{value}"{tail}', at, suggestion=guess)


def is_finite(value: float) -> bool:
    """Tell whether a number fits a finite float."""
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def kind_of(value: object) -> str:
    """Name the type of a plain value as a message does."""
    for cls, text in ((bool, "a boolean"), (str, "a string"), (int, "an integer"), (float, "a number"), (list, "a list"), (tuple, "a list"), (dict, "a table")):
        if isinstance(value, cls):
            return text
    return "null" if value is None else f"a {type(value).__name__}"

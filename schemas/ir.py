"""The IR: frozen workflows and tasks, one class per kind, and reading them from plain data (ir.md §1).

Plain data is what a JSON or TOML reader gives: dicts, lists, strings, numbers, booleans, None.
``to_plain`` writes every field in the canonical order; ``read`` reads it back and reports what does
not fit as findings whose places are fields of the IR.
"""

from __future__ import annotations

import math
import re
from itertools import islice

from crucible.schemas.diagnostic import At, Finding
from crucible.schemas.light import pattern
from crucible.schemas.record import Record
from crucible.schemas.spelling import hint, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, ClassVar

LANES = ("autoresearch", "custom", "playbook")
JOINS = ("all", "passed")
STAGES = ("iteration", "epilogue")
DIRECTIONS = ("lower", "higher")
WORKFLOW_KEYS = ("type", "result", "params", "task")
OPERATIONS = ("propose", "apply", "measure", "grade", "decide")
OPERATIONS_WITH_SOURCE = ("grade", "decide")
WORKTREE = "worktree"
RESERVED_INPUTS = ("params",)
RESERVED_EPILOGUE_INPUTS = ("kept",)

NAME_LENGTH = 128
# What is read of IR that was written by hand: so many tasks, so many characters of a word, which is every text but
# a prompt, a command and what parameters hold, and so many mistakes; who reads them reads no more.
MOST_TASKS = 1_024
MOST_IN_A_WORD = 256
MOST_FINDINGS = 1_000
_FORBIDDEN_IN_NAME = pattern("[\\[\\]\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SESSION = pattern(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_FIELD = pattern(r"[A-Za-z0-9_]{1,64}", re.ASCII)
_SURROGATE = pattern("[\ud800-\udfff]")
_LARGEST_INT = 2**31 - 1
_SHOWN_BITS = 64


class Task(Record):
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


class AgentTask(Task):
    """A turn of an agent with a prompt."""

    kind: ClassVar[str] = "agent"
    prompt: str
    harness: str | None = None
    model: str | None = None
    effort: str | None = None


class CommandTask(Task):
    """A deterministic shell command in the candidate workspace."""

    kind: ClassVar[str] = "command"
    command: str


class EvaluateTask(Task):
    """A measuring command with an optional threshold on its score."""

    kind: ClassVar[str] = "evaluate"
    command: str
    threshold: float | None = None
    direction: str | None = None


class TopKTask(Task):
    """A reducer that keeps the k best of its dependencies by score."""

    kind: ClassVar[str] = "top_k"
    join: str = "passed"
    k: int
    direction: str


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


class Workflow(Record):
    """A graph of tasks in the order of its list, with its lane and its result.

    ``params`` are the bound values of a source that declares parameters, in declaration order,
    None for one that declares none.
    """

    type: str
    task: tuple[Task, ...]
    result: str | None = None
    params: Mapping[str, Any] | None = None

    @property
    def is_splice(self) -> bool:
        """Tell whether only the extras of the default loop are written (language.md §7)."""
        return self.type == "autoresearch" and self.result is None


KINDS: dict[str, type[Task]] = {cls.kind: cls for cls in (AgentTask, CommandTask, EvaluateTask, TopKTask, EngineTask)}
_OWN_FIELDS: dict[str, tuple[str, ...]] = {kind: cls.fields[len(Task.fields) :] for kind, cls in KINDS.items()}
_ALWAYS_NULLABLE = ("harness", "model", "effort")


def name_fault(name: str) -> tuple[str, str] | None:
    """Return the code and the message for a task name that ir.md §1 refuses, None for a good one."""
    if not name.strip():
        return "empty-name", "a task name is something other than blanks"
    if len(name) > NAME_LENGTH:
        return "invalid-name", f"a task name has at most {NAME_LENGTH} characters; this one has {len(name)}"
    found = None if name.isalnum() else _FORBIDDEN_IN_NAME.search(name)
    if found:
        character = found.group()
        shown = f'"{character}"' if character in "[]" else f"U+{ord(character):04X}"
        return (
            "invalid-name",
            f"a task name holds no brackets, control or text-direction characters; this one holds {shown}",
        )
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


# Reading: one row per field: its type and the values of a closed set.
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
# What a task has in the place of a required value that is bad or missing.
_STAND_INS: dict[str, Any] = {"name": "", "prompt": "", "command": "", "k": 1, "direction": "lower"}
_TEXTS = ("prompt", "command", "params")
_NULLABLE = ("harness", "model", "effort", "isolation", "session", "threshold", "direction", "source", "tiebreak")


def read(plain: object, *, canonical: bool = False) -> tuple[Workflow | None, list[Finding]]:
    """Read a workflow from plain data, with the defaults of ir.md §1; the findings say what does not fit.

    A bad value takes its default, or where there is none a stand-in, a bad element and an unknown key
    are left out, so that the rules can judge the rest, knowing the findings. A bad type becomes
    "custom", which asks for least, and a task of unknown kind or operation an agent's. The workflow
    is None when there is no list of tasks, and when there are more tasks or findings than are read.

    ``canonical`` holds the data to what the canonical JSON writes: every key that is always written,
    none that is left out, and names and fields that a compiled workflow can have. It is what
    ``workflow.schema.json`` says.
    """
    if not isinstance(plain, dict):
        return None, [Finding("wrong-type", f"a workflow is a table, not {kind_of(plain)}", At())]
    unknown = (key for key in plain if key not in WORKFLOW_KEYS)
    left = [key for key in WORKFLOW_KEYS if key not in plain]
    findings = [_unknown_key("a workflow", key, left, At()) for key in islice(unknown, MOST_FINDINGS + 1)]
    lane, result, params = plain.get("type", "autoresearch"), plain.get("result"), plain.get("params")
    bad_head = list(_value_findings("type", lane, _STRING, LANES, At(None, "type")))
    if result is not None:
        bad_head += _value_findings("result", result, _STRING, (), At(None, "result"))
    findings += bad_head
    if params is not None:
        problems = list(islice(_params_findings(params), MOST_FINDINGS + 1))
        findings += problems
        params = None if problems else params
    if bad_head:
        lane = lane if lane in LANES else "custom"
        result = result if _is_word(result) else None
    rows = plain.get("task")
    if "task" not in plain:
        if all(finding.suggestion != "task" for finding in findings):
            findings.append(Finding("missing-key", 'a workflow needs the key "task"', At()))
    elif not isinstance(rows, list):
        findings.append(Finding("wrong-type", f"task is a list of tables, not {kind_of(rows)}", At(None, "task")))
    elif len(rows) > MOST_TASKS:
        message = f"tasks written by hand may be at most {MOST_TASKS:,}; these are {len(rows):,}"
        findings.append(Finding("limit-exceeded", message, At(None, "task", MOST_TASKS)))
        rows = None
    rows = rows if isinstance(rows, list) else None
    tasks: list[Task] = []
    for index, row in enumerate(rows or []):
        if len(findings) > MOST_FINDINGS:
            break
        task, problems = read_task(row, index, canonical=canonical)
        findings += problems
        tasks.append(task)
    if rows is None or len(findings) > MOST_FINDINGS:
        return None, findings
    workflow = Workflow(type=lane, result=result, params=params, task=tuple(tasks))
    if canonical and not findings:
        written = to_plain(workflow)
        findings += _form_findings("a workflow", plain, written, At())
        if params is not None and lane != "playbook":
            message = f'a workflow of type {lane} has no key "params"; only a playbook has parameters'
            findings.append(Finding("unknown-key", message, At(None, "params", part="key")))
        if not tasks:
            findings.append(Finding("no-tasks", "a workflow has at least one task", At(None, "task")))
    return workflow, findings


def read_task(row: object, index: int, *, canonical: bool = False) -> tuple[Task, list[Finding]]:
    """Read one task from plain data; ``index`` is its place in the list, ``canonical`` as in ``read``."""
    if not isinstance(row, dict):
        finding = Finding("wrong-type", f"a task is a table, not {kind_of(row)}", At(None, "task", index))
        return AgentTask(name="", prompt=""), [finding]
    if "kind" in row:
        findings = list(_value_findings("kind", row["kind"], _STRING, tuple(KINDS), At(index, "kind")))
    else:
        misspelt = nearest("kind", (key for key in row if isinstance(key, str) and key not in _TASK_TABLE))
        if misspelt is None:
            findings = [Finding("missing-key", 'a task needs the key "kind"', At(index, "kind"))]
        else:
            findings = [_unknown_key("a task", misspelt, ["kind"], At(index))]
    if findings:
        common = {key: value for key, value in row.items() if key in _COMMON and key != "kind"}
        task, others = read_task({"kind": "agent", "prompt": "", **common}, index)
        return task, [*findings, *others]
    kind = row["kind"]
    allowed = (*_COMMON, *_OWN_FIELDS[kind])
    values: dict[str, Any] = {}
    for key, value in row.items():
        at = At(index, key)
        if len(findings) > MOST_FINDINGS:
            break
        if key not in allowed:
            findings.append(
                _unknown_key(f"a task of kind {kind}", key, [a for a in allowed if a not in row], At(index))
            )
            continue
        type_name, choices = _TASK_TABLE[key]
        if kind == "top_k" and key == "join":
            choices = ("passed",)  # ir.md §1: a top_k reads whatever passed
        if value is None and key in _NULLABLE and key not in _MUST[kind]:
            continue
        problems = (
            [] if _is_plain(value, type_name, choices)
            else list(islice(_value_findings(key, value, type_name, choices, at), MOST_FINDINGS + 1))
        )  # fmt: skip
        findings += problems
        if not problems:
            values[key] = value
        elif type_name == _NAMES and isinstance(value, list):
            values[key] = [element for element in value if _is_word(element)]
    meant = [finding.suggestion for finding in findings]
    findings += [
        Finding("missing-key", f'a task of kind {kind} needs the key "{key}"', At(index, key))
        for key in _MUST[kind]
        if key not in row and key not in meant
    ]
    for finding in findings:
        if finding.suggestion == "name" and _is_word(row[finding.at.field]):
            values["name"] = row[finding.at.field]  # others call it so
    made = _task_values(values, row)
    if kind == "engine" and "op" not in made:
        kind, made = "agent", {key: value for key, value in made.items() if key in _COMMON}
    task = KINDS[kind](**{**{key: _STAND_INS[key] for key in _MUST[kind] if key in _STAND_INS}, **made})
    if canonical and not findings:
        findings += _form_findings(f"a task of kind {kind}", row, task_to_plain(task), At(index))
        findings += _task_findings(task, index)
    return task, findings


def _task_values(values: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a task's class for the values that could be read."""
    made: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in values.items() if key != "kind"
    }
    if "threshold" in made:
        made["threshold"] = float(made["threshold"])
    # Of a pair with a bad half the good half goes too: alone it would be one more mistake, and is none.
    for half, other in (("threshold", "direction"), ("direction", "threshold")):
        if row["kind"] == "evaluate" and row.get(half) is not None and half not in values:
            made.pop(other, None)
    return made


def _unknown_key(owner: str, key: str, allowed: Iterable[str], at: At) -> Finding:
    """Return the finding for a key that a workflow or a task does not have."""
    owners = [kind for kind, own in _OWN_FIELDS.items() if key in own] if at.task is not None else []
    if owners:
        tail, guess = f"; that is a key of {' and '.join(owners)} tasks", None
    else:
        tail, guess = hint(key, allowed, "keys")
    message = f'{owner} has no key "{_shown(key)}"{tail}'
    return Finding("unknown-key", message, at._replace(field=key, part="key"), suggestion=guess)


def _shown(text: str) -> str:
    """Return a text as a message shows it."""
    return text if len(text) <= MOST_IN_A_WORD else f"{text[:NAME_LENGTH]}…"


def _params_findings(params: object) -> Iterator[Finding]:
    """Yield what is wrong with the bound parameters (language.md §6 has their types)."""
    whole = At(None, "params")
    if not isinstance(params, dict):
        yield Finding("wrong-type", f"params is a table, not {kind_of(params)}", whole)
        return
    for name, value in params.items():
        label, at = f'the parameter "{_shown(name)}"', whole._replace(param=name)
        if not is_text(name):
            yield Finding("wrong-type", "a parameter's name is Unicode text; this one holds a lone surrogate", at)
        elif isinstance(value, list):
            yield from _value_findings(label, value, _NAMES, (), at)
        elif isinstance(value, float) and not math.isfinite(value):
            yield Finding("out-of-range", f"{label} is a finite number", at)
        elif isinstance(value, int) and not -_LARGEST_INT - 1 <= value <= _LARGEST_INT:
            yield Finding("out-of-range", f"{label} is an integer of 32 bits", at)
        elif not (isinstance(value, (bool, int, float)) or is_text(value)):
            message = f"{label} is a string, a number, a boolean or a list of strings, not {kind_of(value)}"
            yield Finding("wrong-type", message, at)


def _form_findings(owner: str, row: dict[str, Any], written: dict[str, Any], at: At) -> Iterator[Finding]:
    """Yield the keys that the canonical form writes and a row has not, and the other way round."""
    for key in written:
        if key not in row:
            yield Finding("missing-key", f'the canonical form of {owner} always has the key "{key}"', at)
    for key in row:
        if key not in written:
            message = f'the canonical form of {owner} leaves "{key}" out when it says no more than its absence'
            yield Finding("unknown-key", message, at._replace(field=key, part="key"))


def _task_findings(task: Task, index: int) -> Iterator[Finding]:
    """Yield what no compiled task can have, as far as the task alone shows it."""
    fault = name_fault(task.name)
    if fault:
        yield Finding(*fault, At(index, "name"))
    if task.session is not None:
        if task.kind != "agent" and task.operation != "propose":
            yield Finding("session-unsupported", "only agent and propose tasks have a session", At(index))
        elif not is_session_name(task.session):
            message = "a session name is 1 to 64 ASCII letters, digits, '.', '_' or '-'"
            yield Finding("invalid-session-name", message, At(index, "session"))
    seen: set[str] = set()
    for place, name in enumerate(task.depends_on):
        if name in seen:
            message = f'"{name}" is named twice; a dependency is named once'
            yield Finding("duplicate-dependency", message, At(index, "depends_on", place))
        seen.add(name)
    seen.clear()
    for place, name in enumerate(task.emits):
        if not is_field_name(name):
            message = "a field is 1 to 64 ASCII letters, digits or '_'"
            yield Finding("invalid-field", message, At(index, "emits", place))
        elif name in seen:
            message = f'"{name}" is declared twice; a field is declared once'
            yield Finding("duplicate-field", message, At(index, "emits", place))
        seen.add(name)
    if isinstance(task, EvaluateTask) and (task.threshold is None) != (task.direction is None):
        there, other = ("threshold", "direction") if task.direction is None else ("direction", "threshold")
        message = f"{there} needs {other}; they come together or not at all"
        yield Finding("threshold-needs-direction", message, At(index, there))
    if isinstance(task, EngineTask):
        if task.op in OPERATIONS_WITH_SOURCE and task.source is None:
            yield Finding("source-required", f"{task.op} names the task whose reading it takes", At(index))
        if task.op not in OPERATIONS_WITH_SOURCE and task.source is not None:
            yield Finding("source-unexpected", f"{task.op} has no source; only grade and decide have one", At(index))
        if task.op != "grade" and task.tiebreak is not None:
            yield Finding("tiebreak-unexpected", f"{task.op} has no tiebreak; only grade has one", At(index))


def _is_plain(value: object, type_name: str, choices: tuple[str, ...]) -> bool:
    """Tell of most values that nothing is wrong with them, without a look at each of their faults."""
    if type_name == _STRING and type(value) is str:
        return value in choices if choices else value.isascii() and value.isalnum() and len(value) <= MOST_IN_A_WORD
    if type_name == _NAMES and type(value) is list:
        return all(_is_plain(each, _STRING, ()) for each in value)
    return type_name == _BOOLEAN and type(value) is bool


def _value_findings(key: str, value: object, type_name: str, choices: tuple[str, ...], at: At) -> Iterator[Finding]:
    """Yield what is wrong with the value of one field."""
    if type_name == _NAMES:
        if not isinstance(value, list):
            yield Finding("wrong-type", f"{key} is {type_name}, not {kind_of(value)}", at)
            return
        for number, element in enumerate(value):
            yield from _value_findings(f"an element of {key}", element, _STRING, (), at._replace(index=number))
        return
    expected = _PYTHON_TYPES[type_name]
    if not isinstance(value, expected) or (isinstance(value, bool) and type_name != _BOOLEAN):
        yield Finding("wrong-type", f"{key} is {type_name}, not {kind_of(value)}", at)
    elif isinstance(value, str) and not is_text(value):
        yield Finding("wrong-type", f"{key} is Unicode text; this one holds a lone surrogate", at)
    elif isinstance(value, str) and len(value) > MOST_IN_A_WORD and at.field not in _TEXTS:
        message = f"{key} has at most {MOST_IN_A_WORD} characters; this has {len(value):,}"
        code, message = (at.field == "name" and name_fault(value)) or ("limit-exceeded", message)
        yield Finding(code, message, at)
    elif type_name == _INTEGER and isinstance(value, int) and not 1 <= value <= _LARGEST_INT:
        shown = f"; this is {value}" if value.bit_length() <= _SHOWN_BITS else ""
        yield Finding("out-of-range", f"{key} lies between 1 and {_LARGEST_INT}{shown}", at)
    elif type_name == _NUMBER and isinstance(value, (int, float)) and not is_finite(value):
        yield Finding("threshold-not-finite", f"{key} is a finite number", at)
    elif choices and isinstance(value, str) and value not in choices:
        tail, guess = hint(value, choices, "values")
        yield Finding("unknown-value", f'{key} has no value "{value}"{tail}', at, suggestion=guess)


_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    _STRING: (str,),
    _BOOLEAN: (bool,),
    _INTEGER: (int,),
    _NUMBER: (int, float),
}
_KINDS_OF_VALUES: tuple[tuple[tuple[type, ...], str], ...] = (
    ((bool,), "a boolean"),
    ((str,), "a string"),
    ((int,), "an integer"),
    ((float,), "a number"),
    ((list, tuple), "a list"),
    ((dict,), "a table"),
)


def is_finite(value: float) -> bool:
    """Tell whether a number fits a finite float."""
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def is_text(value: object) -> bool:
    """Tell whether a value is a string that UTF-8 can write: one without a lone surrogate."""
    return isinstance(value, str) and (value.isascii() or _SURROGATE.search(value) is None)


def _is_word(value: object) -> bool:
    """Tell whether a value is a text that is no longer than a name or the like may be."""
    return isinstance(value, str) and len(value) <= MOST_IN_A_WORD and is_text(value)


def kind_of(value: object) -> str:
    """Name the type of a plain value as a message does."""
    for types, words in _KINDS_OF_VALUES:
        if isinstance(value, types):
            return words
    return "null" if value is None else f"a {type(value).__name__}"

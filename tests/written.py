"""Generated workflows as people write them: one workflow, and sources that differ in everything that means nothing.

The workflows keep the rules of the graph, so that each source compiles to just the workflow it was written from.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from compiled import FIELDS, NAMES, SESSIONS
from hypothesis import strategies as st
from strategies import floats, strings

from crucible.compiler.frontend.external import has_mark
from crucible.schemas import ir

# What no text of a source may hold: the marks of external text.
TEXTS = strings().filter(lambda text: not has_mark(text))
RESERVED = {"params", "kept"}


class Style(NamedTuple):
    """Everything about a source that means nothing."""

    newline: str
    mark: str
    filler: Callable[[], str]
    shuffled: Callable[[list[str]], list[str]]
    escaped: bool
    by_value: bool
    defaults: bool


@st.composite
def styles(draw: st.DrawFn) -> Style:
    """Give a way to write."""
    return Style(
        newline=draw(st.sampled_from(["\n", "\r\n"])),
        mark=draw(st.sampled_from(["", "\ufeff"])),
        filler=lambda: draw(st.sampled_from(["", "\n", "# a comment: [workflow]\n", "  # indented\n\n"])),
        shuffled=lambda parts: draw(st.permutations(parts)),
        escaped=draw(st.booleans()),
        by_value=draw(st.booleans()),
        defaults=draw(st.booleans()),
    )


PLAIN = Style("\n", "", lambda: "", lambda parts: parts, escaped=False, by_value=True, defaults=False)


@st.composite
def _task(draw: st.DrawFn, name: str, earlier: tuple[ir.Task, ...], number: int) -> ir.Task:
    """Give a task that may depend on the earlier ones."""
    needed = draw(st.lists(st.sampled_from(earlier), unique=True, max_size=4)) if earlier else []
    kind = draw(st.sampled_from(["agent", "command", "evaluate", *(["top_k"] if needed else [])]))
    join = "passed" if kind == "top_k" else draw(st.sampled_from(ir.JOINS if needed else ir.JOINS[:1]))
    is_held = join == "passed" or all(task.required for task in needed)
    emits = draw(st.lists(FIELDS.filter(lambda field: field != "score"), unique=True, max_size=2))
    session = f"s{number}" if kind == "agent" and draw(st.booleans()) else None
    common: dict[str, Any] = {
        "name": name,
        "depends_on": tuple(task.name for task in needed),
        "required": draw(st.booleans()) and is_held,
        "join": join,
    }
    direction = st.sampled_from(ir.DIRECTIONS)
    if kind == "top_k":
        return ir.TopKTask(k=draw(st.integers(1, 2**31 - 1)), direction=draw(direction), **common)
    common |= {
        "needs": draw(st.sampled_from(["any", "gpu", "é b"])),
        "isolation": None if session else draw(st.sampled_from([None, ir.WORKTREE])),
        "emits": tuple(draw(st.permutations([*emits, "score"]))) if emits else (),
    }
    if kind == "agent":
        common |= {key: draw(st.none() | TEXTS) for key in ("harness", "model", "effort")}
        if session:
            session = draw(SESSIONS.map(lambda text: f"{number}{text}"[:64]))
        return ir.AgentTask(prompt=draw(TEXTS), session=session, **common)
    if kind == "command":
        return ir.CommandTask(command=draw(TEXTS), **common)
    threshold = draw(st.none() | floats())
    better = None if threshold is None else draw(direction)
    return ir.EvaluateTask(command=draw(TEXTS), threshold=threshold, direction=better, **common)


@st.composite
def workflows(draw: st.DrawFn) -> ir.Workflow:
    """Give a custom workflow of one to six tasks."""
    names = draw(st.lists(NAMES.filter(lambda name: name not in RESERVED), unique=True, min_size=1, max_size=6))
    tasks: tuple[ir.Task, ...] = ()
    for number, name in enumerate(names):
        tasks = (*tasks, draw(_task(name, tasks, number)))
    return ir.Workflow(type="custom", task=tasks, result=draw(st.none() | st.sampled_from(names)))


def source(workflow: ir.Workflow, style: Style = PLAIN) -> str:
    """Write a workflow down."""
    variables = {task.name: f"t{number}" for number, task in enumerate(workflow.task)}

    def reference(name: str) -> str:
        return variables[name] if style.by_value else _literal(name, style)

    statements = []
    for task in workflow.task:
        constructor, arguments = _arguments(task, style)
        arguments["depends_on"] = f"[{', '.join(map(reference, task.depends_on))}]" if task.depends_on else None
        statements.append(f"{variables[task.name]} = {_call(constructor, arguments, style)}")
    whole: dict[str, str | None] = {"type": '"custom"', "tasks": f"[{', '.join(variables.values())}]"}
    if workflow.result is not None:
        whole["result"] = reference(workflow.result)
    statements.append(_call("workflow", whole, style))
    text = "".join(f"{style.filler()}{statement}\n" for statement in statements) + style.filler()
    return style.mark + text.replace("\n", style.newline)


def _call(constructor: str, arguments: dict[str, str | None], style: Style) -> str:
    parts = style.shuffled([f"{name} = {value}" for name, value in arguments.items() if value is not None])
    return f"{constructor}(" + "".join(f"{style.filler()}{part}, " for part in parts) + f"{style.filler()})"


def _arguments(task: ir.Task, style: Style) -> tuple[str, dict[str, str | None]]:
    """Return the constructor and its arguments, all but depends_on; None is left out."""

    def text(value: str | None) -> str | None:
        return _literal(value, style) if value is not None else ("None" if style.defaults else None)

    def unless(value: object, written: str | None, *, default: object) -> str | None:
        return None if value == default and not style.defaults else written

    arguments = {"name": text(task.name), "required": unless(task.required, str(task.required), default=True)}
    if isinstance(task, ir.TopKTask):
        return "top_k", arguments | {"k": str(task.k), "direction": text(task.direction)}
    arguments |= {
        "needs": unless(task.needs, text(task.needs), default="any"),
        "isolated": unless(task.isolation, str(task.isolation is not None), default=None),
        "join": unless(task.join, text(task.join), default="all") if task.depends_on else None,
        "emits": unless(task.emits, f"[{', '.join(_literal(field, style) for field in task.emits)}]", default=()),
    }
    match task:
        case ir.AgentTask():
            own = {"prompt": text(task.prompt), "session": text(task.session)}
            own |= {key: text(getattr(task, key)) for key in ("harness", "model", "effort")}
            return "agent", arguments | own
        case ir.EvaluateTask():
            threshold = None if task.threshold is None else repr(task.threshold)
            own = {"run": text(task.command), "threshold": threshold, "direction": text(task.direction)}
            return "evaluate", arguments | own
        case ir.CommandTask():
            return "command", arguments | {"run": text(task.command)}
    raise AssertionError(task)


def _literal(text: str, style: Style) -> str:
    """Write a string with few escapes, or with as many as there are."""
    if not style.escaped:
        return json.dumps(text, ensure_ascii=False)
    return "'" + "".join(f"\\U{ord(sign):08x}" for sign in text) + "'"

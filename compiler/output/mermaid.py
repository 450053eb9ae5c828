"""A workflow as a Mermaid flowchart, for places that draw one from text: a README, a comment on a pull request."""

import re
from collections.abc import Mapping

from crucible.compiler.output import gist
from crucible.compiler.output.report import harmless
from crucible.schemas.ir import Task, Workflow

# The brackets of each kind's shape.
_SHAPES = {
    "agent": ("(", ")"),
    "command": ("[", "]"),
    "evaluate": ("{{", "}}"),
    "top_k": ("[\\", "/]"),
    "propose": ("([", "])"),
    "apply": ("[[", "]]"),
    "measure": ("{{", "}}"),
    "grade": ("[/", "\\]"),
    "decide": ("{", "}"),
}
_LINE_COLUMNS = 48
_CLASSES = {
    "advisory": "stroke-dasharray:5 3",
    "isolated": "stroke-width:2px",
    "result": "stroke-width:4px",
    "dead": "fill:#eeeeee,color:#777777",
}


def to_mermaid(workflow: Workflow, prompts: Mapping[str, str], dead: Mapping[str, str]) -> str:
    """Return the flowchart; the tasks of ``dead`` do not run, for the reasons given."""
    ids = {task.name: f"t{number}" for number, task in enumerate(workflow.task)}
    groups: dict[str, list[Task]] = {"": [], "Measurement": [], "Epilogue": []}
    for task in workflow.task:
        measures = gist.kind(task) in {"evaluate", "grade"}
        groups["Epilogue" if task.is_epilogue else "Measurement" if measures else ""].append(task)
    lines = ["flowchart TB"]
    for title, tasks in groups.items():
        inside = [f"{ids[task.name]}{_node(task, prompts, dead)}" for task in tasks]
        if title and inside:
            lines += [f"  subgraph {title}", *(f"    {line}" for line in inside), "  end"]
        else:
            lines += [f"  {line}" for line in inside]
    lines += [
        f"  {ids[name]} {'-.->' if task.join == 'passed' else '-->'} {ids[task.name]}"
        for task in workflow.task
        for name in task.depends_on
        if name in ids
    ]
    members = {
        "advisory": [task for task in workflow.task if not task.required],
        "isolated": [task for task in workflow.task if task.isolation is not None],
        "result": [task for task in workflow.task if task.name == workflow.result],
        "dead": [task for task in workflow.task if task.name in dead],
    }
    for name, found in members.items():
        if found:
            lines.append(f"  classDef {name} {_CLASSES[name]}")
            lines.append(f"  class {','.join(ids[task.name] for task in found)} {name}")
    return "\n".join(lines) + "\n"


def _node(task: Task, prompts: Mapping[str, str], dead: Mapping[str, str]) -> str:
    left, right = _SHAPES[gist.kind(task)]
    runs = gist.cut(gist.runs(task, prompts), _LINE_COLUMNS)
    parts = [" · ".join([gist.kind(task), *gist.traits(task)]), harmless(task.name), runs, gist.bar(task)]
    if task.session is not None:
        parts.append(f"session {task.session}")
    if task.name in dead:
        parts.append(harmless(dead[task.name]))
    return f'{left}"{"<br/>".join(_escape(part) for part in parts if part)}"{right}'


def _escape(text: str) -> str:
    """Return a text such that a chart shows it as it is: Mermaid reads marks, Markdown and HTML in a label."""
    return re.sub(r"[^\w .,:·≤≥…/-]", lambda found: f"#{ord(found.group())};", text)

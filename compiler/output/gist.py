"""What a task is, in few words: the text that the picture, the table and the chart of a workflow have in common.

A task in, short lines out, each of one line and harmless to print. Nothing of a workflow is read here as
anything but text.
"""

import unicodedata
from collections.abc import Mapping

from crucible.compiler.output.report import harmless
from crucible.schemas.canonical import format_float
from crucible.schemas.ir import AgentTask, CommandTask, EngineTask, EvaluateTask, Task, TopKTask, Workflow

DIGEST_LENGTH = 12
ELLIPSIS = "…"
_ANYWHERE = "any"
_LONGEST = 2_000  # characters of a prompt or command that are looked at
_PLAIN_OPERATIONS = {
    "propose": "the loop's agent changes the candidate",
    "apply": "makes the candidate live",
    "measure": "runs the judge's measure_cmd",
}


def kind(task: Task) -> str:
    """Name what a task is: its operation for an engine task, else its kind."""
    return task.operation or task.kind


def prompt_files(workflow: Workflow, texts: Mapping[str, str]) -> dict[str, str]:
    """Return for each agent task, by name, the embedded files that its prompt holds, in the order of the prompt.

    ``texts`` are those of all embedded files, by path; a prompt into which something was written is not found.
    """
    found = {}
    for task in workflow.task:
        if isinstance(task, AgentTask):
            places = {path: task.prompt.find(text) for path, text in texts.items() if text.strip()}
            paths = sorted((path for path, place in places.items() if place >= 0), key=lambda path: places[path])
            if paths:
                found[task.name] = " + ".join(paths)
    return found


def lane(workflow: Workflow) -> str:
    """Name what a workflow is."""
    return "tasks for the default loop" if workflow.is_splice else f"{workflow.type} workflow"


def runs(task: Task, prompts: Mapping[str, str]) -> str:
    """Say in one line what a task runs; ``prompts`` has the embedded files by task name, where they are known."""
    if isinstance(task, AgentTask):
        return harmless(prompts[task.name]) if task.name in prompts else f"“{_first_line(task.prompt)}”"
    if isinstance(task, CommandTask | EvaluateTask):
        return harmless(task.command[:_LONGEST].strip()) + (ELLIPSIS if len(task.command) > _LONGEST else "")
    if isinstance(task, TopKTask):
        plural = "" if task.k == 1 else "s"
        return f"keeps the {task.k} {'lowest' if task.direction == 'lower' else 'highest'} score{plural}"
    if isinstance(task, EngineTask):
        return harmless(_operation(task))
    return ""


def _operation(task: EngineTask) -> str:
    if task.op == "grade":
        return f"score of {task.source}" + (f", ties by {task.tiebreak}" if task.tiebreak is not None else "")
    if task.op == "decide":
        return f"keep or drop, by {task.source}"
    return _PLAIN_OPERATIONS[task.op]


def _first_line(text: str) -> str:
    line = next((line for line in text[:_LONGEST].split("\n") if line.strip()), "")
    return harmless(line.strip())


def bar(task: Task) -> str:
    """Say what score a task passes at, "" for one without a threshold."""
    if not isinstance(task, EvaluateTask) or task.threshold is None:
        return ""
    return f"passes at score {'≤' if task.direction == 'lower' else '≥'} {format_float(task.threshold)}"


def traits(task: Task) -> list[str]:
    """List what is unusual about a task, a word or two each."""
    found = []
    if not task.required:
        found.append("advisory")
    if task.isolation is not None:
        found.append("isolated")
    if task.needs != _ANYWHERE:
        found.append(f"needs {harmless(task.needs)}")
    return found


def width(text: str) -> int:
    """Count the columns of a text: two for a wide character, none for one that combines with the last."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def cut(text: str, columns: int) -> str:
    """Cut a text to so many columns; one that was cut ends in an ellipsis."""
    if width(text) <= columns:
        return text
    kept, room = 0, columns - 1
    for character in text:
        room -= _columns(character)
        if room < 0:
            break
        kept += 1
    return text[:kept].rstrip() + ELLIPSIS


def fold(text: str, columns: int) -> list[str]:
    """Fold a text into lines of at most so many columns, best behind a blank or a mark; joined, they are the text."""
    lines, rest = [], text
    while width(rest) > columns:
        end, room = 0, columns
        while end < len(rest) and room >= _columns(rest[end]):
            room -= _columns(rest[end])
            end += 1
        end = max(end, 1)
        behind = max(rest.rfind(mark, columns // 3, end) for mark in " -_./:,")
        end = behind + 1 if behind > 0 else end
        lines.append(rest[:end])
        rest = rest[end:]
    return [*lines, rest]

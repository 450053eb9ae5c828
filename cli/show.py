"""crucible plan show: a workflow as a table, as data, or as a picture, with what would become of it.

The one place where the compiler's picture and the runtime's state machine meet.
"""

import argparse
from typing import Any

from crucible.cli.drawn import STDOUT, Loaded, check_output, load, warn, write
from crucible.cli.output import UNREADABLE, WRONG_USAGE, Usage, as_log, failed, remark, unreadable
from crucible.compiler.pipeline import Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from crucible.compiler.output.picture import Marks
    from crucible.runtime.what_if import WhatIf
    from crucible.schemas.ir import Workflow

EACH = "each"
ANYWHERE = "any"  # the need of a task that can run on every substrate
_DRAWN = ("svg", "png")
_TABLES = ("text", "json")
_REMEDY = "; --cap says what there is"
_ELSEWHERE = "required_task_cannot_run"  # the reason of all other tasks when one required task can never run


def run(arguments: argparse.Namespace) -> int:
    """Show the workflow in the format that was asked for."""
    style = arguments.format
    try:
        check_output(arguments.output, style)
        loaded = load(arguments, style)
        if loaded is None:
            return 1
        data = _shown(arguments, loaded)
    except Usage as error:
        return failed(WRONG_USAGE, str(error), style, to_stdout=False)
    except Unreadable as error:
        return failed(UNREADABLE, unreadable(arguments.file, error), style, to_stdout=False)
    if data is None:
        return 2
    if style == "text" and isinstance(data, str) and arguments.output in (None, STDOUT):
        data = as_log(data)
    return write(arguments.output, data.encode(errors="surrogateescape") if isinstance(data, str) else data)


def _shown(arguments: argparse.Namespace, loaded: Loaded) -> str | bytes | None:
    """Return the product; None when there is no drawing program, which is then reported."""
    whole, style = loaded.workflow, arguments.format
    failing = list(dict.fromkeys(arguments.fail))
    if EACH in failing and EACH not in (task.name for task in whole.task):
        if len(failing) > 1 or style not in _TABLES:
            message = f"--fail {EACH} stands alone and makes a table, --format {' or '.join(_TABLES)}"
            raise Usage(message)
        return _each(whole, arguments.cap, style)
    for name in failing:
        _find(whole, name, "--fail")
    workflow = whole if arguments.focus is None else _around(whole, arguments.focus)
    capabilities = _capabilities(whole, arguments.cap)
    verdict = what_if(whole, (), capabilities)
    answer = verdict if arguments.cap is not None else None
    if failing:
        answer = what_if(whole, failing, capabilities)
    if style == "json":
        return _json(whole, workflow, arguments.cap, verdict, answer)
    if style == "text":
        return _text(workflow, whole, loaded, arguments, verdict, answer)
    if style == "mermaid":
        from crucible.compiler.output.mermaid import to_mermaid

        dead = {fate.task: fate.text for fate in answer.fates if fate.status != "pass"} if answer else {}
        return to_mermaid(workflow, loaded.prompts, dead)
    return _picture(workflow, whole, loaded, arguments, answer)


def what_if(
    workflow: "Workflow", failing: "list[str] | tuple[str, ...]", capabilities: "list[str] | tuple[str, ...]"
) -> "WhatIf":
    """Ask the machine what becomes of a run in which some tasks fail."""
    from crucible.runtime import what_if as machine

    return machine.what_if(_runnable(workflow), failing, capabilities)


def _runnable(workflow: "Workflow") -> "Workflow":
    """Return a splice as what the loop runs of it: the propose that its tasks name has passed by then."""
    if not workflow.is_splice:
        return workflow
    known = {task.name for task in workflow.task}
    return workflow.replace(
        task=tuple(
            task.replace(depends_on=tuple(name for name in task.depends_on if name in known)) for task in workflow.task
        )
    )


def _capabilities(workflow: "Workflow", given: list[str] | None) -> list[str]:
    """Return the capabilities that are there: those given, else all that the tasks need."""
    return sorted({task.needs for task in workflow.task}) if given is None else given


def _assumed(workflow: "Workflow", given: list[str] | None) -> str:
    """Say what was taken as met because no capabilities were given, "" when nothing was."""
    needs = sorted({task.needs for task in workflow.task} - {ANYWHERE}) if given is None else []
    return f"every need taken as met ({', '.join(needs)})" if needs else ""


def _each(workflow: "Workflow", given: list[str] | None, style: str) -> str:
    """Return what every single failure would do."""
    from crucible.runtime.what_if import COLUMNS, each, rows, to_plain

    table = each(_runnable(workflow), _capabilities(workflow, given))
    if style == "json":
        from crucible.schemas.canonical import digest, write_value

        content = {
            "version": 1,
            "digest": digest(workflow),
            "capabilities": given,
            "what_if": [to_plain(answer) for answer in table],
        }
        return write_value(content) + "\n"
    from crucible.compiler.output.report import harmless
    from crucible.compiler.output.table import grid

    assumed = _assumed(workflow, given)
    return "\n".join([*grid([COLUMNS, *rows(table)]), *(["", harmless(assumed) + _REMEDY] if assumed else [])]) + "\n"


def _find(workflow: "Workflow", name: str, option: str) -> int:
    """Return the place of the task that an option names; raise Usage, with what was likely meant."""
    from crucible.schemas.spelling import hint

    names = [task.name for task in workflow.task]
    if name not in names:
        message = f'{option}: there is no task "{name}"{hint(name, names, "tasks")[0]}'
        raise Usage(message)
    return names.index(name)


def _around(workflow: "Workflow", name: str) -> "Workflow":
    """Return a task with all that comes before and after it."""
    from crucible.compiler.analysis.graph import Graph

    index = _find(workflow, name, "--focus")
    graph = Graph(workflow)
    kept = {index, *graph.ancestors(index), *graph.descendants(index)}
    left_out = {task.name for number, task in enumerate(workflow.task) if number not in kept}
    return workflow.replace(
        result=None if workflow.result in left_out else workflow.result,
        task=tuple(
            task.replace(depends_on=tuple(each for each in task.depends_on if each not in left_out))
            for number, task in enumerate(workflow.task)
            if number in kept
        ),
    )


def _json(
    whole: "Workflow", workflow: "Workflow", given: list[str] | None, verdict: "WhatIf", answer: "WhatIf | None"
) -> str:
    """Return everything as data; ``capabilities`` is null when every need was taken as met."""
    from crucible.compiler.analysis.graph import Graph
    from crucible.runtime.what_if import to_plain
    from crucible.schemas.canonical import digest, write_value
    from crucible.schemas.ir import to_plain as workflow_to_plain

    content: dict[str, Any] = {
        "version": 1,
        "digest": digest(whole),
        "workflow": workflow_to_plain(workflow),
        "order": [workflow.task[index].name for index in Graph(workflow).order],
        "edges": [
            {"from": name, "to": task.name, "join": task.join} for task in workflow.task for name in task.depends_on
        ],
        "capabilities": given,
        "truncated": verdict.ending == "truncated",
        "what_if": None if answer is None else to_plain(answer),
    }
    return write_value(content) + "\n"


def _text(
    workflow: "Workflow",
    whole: "Workflow",
    loaded: Loaded,
    arguments: argparse.Namespace,
    verdict: "WhatIf",
    answer: "WhatIf | None",
) -> str:
    from crucible.compiler.output.table import to_text

    fates = {fate.task: fate.text for fate in answer.fates} if answer is not None else {}
    assumed = _assumed(whole, arguments.cap)
    remarks = [*([assumed + _REMEDY] if assumed else []), _verdict(arguments.cap, verdict)]
    if arguments.fail and answer is not None:
        remarks.append(f"if {' and '.join(arguments.fail)} failed, the run would be {answer.text}")
    if len(workflow.task) < len(whole.task):
        remarks.append(f"{len(workflow.task)} of {len(whole.task)} tasks: those before and after {arguments.focus}")
    return to_text(workflow, whole, loaded.prompts, fates, remarks)


def _verdict(given: list[str] | None, verdict: "WhatIf") -> str:
    """Say whether anything would run at all with these capabilities (runtime.md §2)."""
    there = f"with {', '.join(f'--cap {name}' for name in given)}: " if given else ""
    lost = [fate for fate in verdict.fates if fate.status != "pass"]
    if verdict.ending == "truncated":
        causes = [fate for fate in lost if fate.required and fate.reason and fate.reason.why != _ELSEWHERE]
        names = " and ".join(f'"{fate.task}"' for fate in causes)
        missing = " and ".join(sorted({fate.reason.capability or "" for fate in causes if fate.reason}))
        return f"{there}truncated, nothing would run: required and impossible {names}; missing: {missing}"
    if lost:
        return f"{there}every required task can run; {', '.join(fate.task for fate in lost)} would be skipped"
    return f"{there}every task can run"


def _picture(
    workflow: "Workflow", whole: "Workflow", loaded: Loaded, arguments: argparse.Namespace, answer: "WhatIf | None"
) -> str | bytes | None:
    from crucible.compiler.output import picture
    from crucible.compiler.output.drawing import Undrawable

    marks = _marks(whole, arguments, answer)
    if arguments.format == "dot":
        return picture.to_dot(workflow, marks, loaded.prompts)
    try:
        drawing = picture.draw(workflow, arguments.format, marks, loaded.prompts)
    except Undrawable as error:
        remark(f"crucible: {error}\n")
        return None
    warn(drawing)
    return drawing.data


def _marks(whole: "Workflow", arguments: argparse.Namespace, answer: "WhatIf | None") -> "Marks":
    from crucible.compiler.output.picture import Marks

    titles = []
    if arguments.focus is not None:
        titles.append(f"before and after {arguments.focus}")
    if answer is None:
        return Marks(title="; ".join(titles), whole=whole)
    if arguments.cap is not None:
        titles.append(f"with {', '.join(arguments.cap)}")
    elif _assumed(whole, None):
        titles.append(_assumed(whole, None))
    if arguments.fail:
        titles.append(f"if {' and '.join(arguments.fail)} failed")
    titles.append("the run would be valid" if answer.valid else f"the run would be {answer.text}")
    notes = {fate.task: fate.reason.text for fate in answer.fates if fate.reason and fate.reason.why != _ELSEWHERE}
    return Marks(
        states={fate.task: str(fate.status) for fate in answer.fates}, notes=notes, title="; ".join(titles), whole=whole
    )

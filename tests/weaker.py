"""Every way to make a workflow prove less that the definition of weakened names, for any workflow (tooling.md §5)."""

import ast
import math
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from crucible.compiler.analysis.graph import Graph
from crucible.schemas import ir
from crucible.schemas.default_loop import expanded

GOLDEN = Path(__file__).resolve().parent.parent / "golden"


def with_task(workflow: ir.Workflow, name: str, **changes: Any) -> ir.Workflow:
    """Return a workflow in which one task differs."""
    return workflow.replace(
        task=tuple(task.replace(**changes) if task.name == name else task for task in workflow.task)
    )


def without_task(workflow: ir.Workflow, name: str) -> ir.Workflow:
    """Return a workflow without a task, and without the edges to it."""
    return workflow.replace(
        task=tuple(
            task.replace(depends_on=tuple(other for other in task.depends_on if other != name))
            for task in workflow.task
            if task.name != name
        )
    )


def without_edge(workflow: ir.Workflow, name: str, other: str) -> ir.Workflow:
    """Return a workflow in which one task does not depend on another."""
    task = next(task for task in workflow.task if task.name == name)
    return with_task(workflow, name, depends_on=tuple(each for each in task.depends_on if each != other))


def renamed(workflow: ir.Workflow, kept: Collection[str] = ()) -> ir.Workflow:
    """Return a workflow in which every task has another name, but for those that keep theirs."""

    def new(name: str | None) -> str | None:
        return name if name is None or name in kept else f"{name} anew"

    tasks = []
    for task in workflow.task:
        depends_on = tuple(new(name) for name in task.depends_on)
        changes: dict[str, Any] = {"name": new(task.name), "depends_on": depends_on}
        if isinstance(task, ir.EngineTask):
            changes |= {"source": new(task.source), "tiebreak": new(task.tiebreak)}
        tasks.append(task.replace(**changes))
    return workflow.replace(task=tuple(tasks), result=new(workflow.result))


def weakenings(workflow: ir.Workflow) -> Iterator[tuple[str, ir.Workflow]]:
    """Yield each weaker workflow that is one step away, with what was done to it."""
    workflow = expanded(workflow)
    yield from _of_the_whole(workflow)
    sessions = sorted({task.session for task in workflow.task if task.session is not None})
    for task in workflow.task:
        yield from _of_any_task(workflow, task, sessions)
        if isinstance(task, ir.EvaluateTask):
            yield from _of_an_evaluate(workflow, task)
        if isinstance(task, ir.TopKTask):
            yield from _of_a_top_k(workflow, task)
        if isinstance(task, ir.EngineTask):
            yield from _of_an_operation(workflow, task)


def _of_the_whole(workflow: ir.Workflow) -> Iterator[tuple[str, ir.Workflow]]:
    graph = Graph(workflow)
    for lane in ir.LANES[ir.LANES.index(workflow.type) + 1 :]:
        yield f"lane {lane}", workflow.replace(type=lane)
    result = graph.find(workflow.result)
    if result is None:
        return
    if workflow.type != "autoresearch":  # that would be a splice
        yield "no result", workflow.replace(result=None)
    for index in graph.ancestors(result):
        name = workflow.task[index].name
        yield f"result {name}", workflow.replace(result=name)
        for behind, edges in enumerate(graph.edges):
            if index in edges:
                cut = without_edge(workflow, workflow.task[behind].name, name)
                after = Graph(cut)
                if not after.is_ancestor(index, result):
                    yield f"{name} no longer leads to the result", cut


def _of_any_task(workflow: ir.Workflow, task: ir.Task, sessions: list[str]) -> Iterator[tuple[str, ir.Workflow]]:
    name = task.name
    if task.required:
        yield f"{name} advisory", with_task(workflow, name, required=False)
    if task.join == "all":
        yield f"{name} joins passed", with_task(workflow, name, join="passed")
    if task.isolation is not None:
        yield f"{name} not isolated", with_task(workflow, name, isolation=None)
    if task.needs != "any":
        yield f"{name} needs nothing", with_task(workflow, name, needs="any")
    elif not task.required:
        yield f"{name} may be skipped", with_task(workflow, name, needs="gpu")
    if not task.is_epilogue:
        yield f"{name} in the epilogue", with_task(workflow, name, stage="epilogue")
    if task.required or isinstance(task, ir.EvaluateTask):
        yield f"{name} gone", without_task(workflow, name)
    for field in task.emits:
        kept = tuple(each for each in task.emits if each != field)
        yield f"{name} without {field}", with_task(workflow, name, emits=kept)
    for session in sessions:
        if task.kind == "agent" and task.session != session:
            yield f"{name} in session {session}", with_task(workflow, name, session=session)
    if isinstance(task, (ir.CommandTask, ir.EvaluateTask)) and not task.command.startswith(
        ("echo ", "printf ", "cat <<")
    ):
        yield f"{name} cannot fail", with_task(workflow, name, command="true")
        yield f"{name} may fail", with_task(workflow, name, command=f"{task.command} || true")


def _of_an_evaluate(workflow: ir.Workflow, task: ir.EvaluateTask) -> Iterator[tuple[str, ir.Workflow]]:
    name = task.name
    command = ir.CommandTask(command=task.command, **{field: getattr(task, field) for field in ir.Task.fields})
    tasks = tuple(command if each is task else each for each in workflow.task)
    yield f"{name} a command", workflow.replace(task=tasks)
    if task.threshold is None:
        return
    loose = math.inf if task.direction == "lower" else -math.inf
    other = ir.DIRECTIONS[1 - ir.DIRECTIONS.index(task.direction or "")]
    yield f"{name} looser", with_task(workflow, name, threshold=math.nextafter(task.threshold, loose))
    yield f"{name} in the other direction", with_task(workflow, name, direction=other)
    yield f"{name} without a threshold", with_task(workflow, name, threshold=None, direction=None)


def _of_a_top_k(workflow: ir.Workflow, task: ir.TopKTask) -> Iterator[tuple[str, ir.Workflow]]:
    other = ir.DIRECTIONS[1 - ir.DIRECTIONS.index(task.direction)]
    yield f"{task.name} keeps more", with_task(workflow, task.name, k=task.k + 1)
    yield f"{task.name} in the other direction", with_task(workflow, task.name, direction=other)
    for candidate in task.depends_on:
        yield f"{task.name} without {candidate}", without_edge(workflow, task.name, candidate)


def _of_an_operation(workflow: ir.Workflow, task: ir.EngineTask) -> Iterator[tuple[str, ir.Workflow]]:
    graph = Graph(workflow)
    if task.op in ("grade", "decide"):
        for other in task.depends_on:
            yield f"{task.name} without {other}", without_edge(workflow, task.name, other)
    if task.tiebreak is not None:
        yield f"{task.name} without a tiebreak", with_task(workflow, task.name, tiebreak=None)
    source = graph.find(task.source)
    if source is not None:
        for index in graph.ancestors(source):
            name = workflow.task[index].name
            yield f"{task.name} of {name}", with_task(workflow, task.name, source=name)
            moved = tuple(name if each == task.source else each for each in task.depends_on)
            if len(set(moved)) == len(moved):
                yield f"{task.name} on {name}", with_task(workflow, task.name, source=name, depends_on=moved)


# A condition that holds for some launches of the playbook among the golden packs, but for none without values.
_WHEN = (
    'param("component") == "client"',
    'param("component") not in ["server", "client"]',
    'param("attempts") > 7',
    'param("attempts") == 6',
    'param("confidence") > 0.95',
    'not param("confidence") > 0.1',
    'param("reply")',
    'len(param("labels")) > 2',
    'param("component") == "docs" and param("reply")',
    'param("attempts") >= 9 and param("component") == "docs"',
)
_WEAKER = {"run": '"true"', "required": "False", "emits": "[]"}
_USUAL = {"required": "True"}


def weaker_under_a_launch(source: str) -> Iterator[tuple[str, str]]:
    """Yield sources that prove less under some launches, with what was done when: each way and each condition."""
    ways = [
        (call, field, given.get(field, _USUAL.get(field)))
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ("agent", "command")
        for given in [{keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}]
        for field in _WEAKER
        if given.get(field, _USUAL.get(field)) not in (None, "False", "param('reply')")
        if field != "required" or "depends_on" in given  # others need the first one, and may not then
    ]
    for number in range(max(len(ways), len(_WHEN))):
        when = _WHEN[number % len(_WHEN)]
        call, field, value = ways[number % len(ways)]
        given = {keyword.arg or "": ast.unparse(keyword.value) for keyword in call.keywords}
        given[field] = f"{_WEAKER[field]} if {when} else {value}"
        text = f"{ast.unparse(call.func)}({', '.join(f'{name} = {each}' for name, each in given.items())})"
        yield f"{given['name']} {field} when {when}", source.replace(ast.get_source_segment(source, call) or "", text)

"""What a rule judges: the graph of a workflow and what is known of how it was written.

A rule is a function from a Case to findings. What the rules must not conclude, because an earlier
stage already refused a value that the conclusion rests on, is answered here.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Final, NamedTuple

from crucible.compiler.analysis.graph import Graph
from crucible.schemas.diagnostic import At, Finding
from crucible.schemas.ir import EngineTask, Task, Workflow

# The loop's own task that a spliced task may depend on, and the four names the loop needs (language.md §7).
LOOP_ENTRY: Final = "propose"
LOOP_NAMES: Final = ("propose", "apply", "measure", "decide")


class Facts(NamedTuple):
    """What the rules need to know beside the workflow.

    ``judge_direction`` is [judge].direction of the manifest, None without one. ``by_hand`` is true
    for IR that someone wrote as TOML or JSON, ``splice`` for the splice form. ``engine_origin``
    holds the indices of tasks that a constructor made for the author, ``dropped`` the names of
    tasks that were constructed and not listed. ``refused`` holds (task index, IR field) of values
    that were found wrong before, wholly or in an element, and now hold a default or the rest;
    the index is None for fields of the workflow. ``behind_loop`` holds the indices of extras whose refused
    dependencies all name tasks of the default loop, so that they surely mean no other extra.
    """

    judge_direction: str | None = None
    by_hand: bool = False
    splice: bool = False
    engine_origin: frozenset[int] = frozenset()
    dropped: frozenset[str] = frozenset()
    refused: frozenset[tuple[int | None, str]] = frozenset()
    behind_loop: frozenset[int] = frozenset()


def facts_by_hand(workflow: Workflow, judge_direction: str | None = None, findings: Iterable[Finding] = ()) -> Facts:
    """Return the facts of IR written by hand; ``findings`` are those of reading it."""
    refused: set[tuple[int | None, str]] = set()
    for finding in findings:
        refused.add((finding.at.task, finding.at.field))
        if finding.at.task is None and finding.at.field == "task" and finding.at.index is not None:
            refused |= {(finding.at.index, "name"), (finding.at.index, "kind")}
        if finding.at.part == "key" and finding.suggestion is not None:
            refused.add((finding.at.task, finding.suggestion))
    return Facts(
        judge_direction=judge_direction,
        by_hand=True,
        splice=workflow.is_splice and (None, "result") not in refused,
        refused=frozenset(refused),
    )


def as_written(judged: Iterable[Finding], findings: Iterable[Finding]) -> list[Finding]:
    """Return what was judged with elements counted as they are written: ``findings`` of reading left bad ones out."""
    bad: dict[tuple[int | None, str], list[int]] = {}
    for finding in findings:
        if finding.at.index is not None:
            bad.setdefault((finding.at.task, finding.at.field), []).append(finding.at.index)

    def moved(at: At) -> At:
        index = at.index
        for out in sorted(bad.get((at.task, at.field), ())):
            if index is not None and index >= out:
                index += 1
        return at._replace(index=index)

    return [
        finding._replace(at=moved(finding.at), related=tuple((message, moved(at)) for message, at in finding.related))
        for finding in judged
    ]


class Case:
    """A workflow before the rules: its tasks, its graph, and the facts."""

    def __init__(self, workflow: Workflow, facts: Facts) -> None:
        """Build the graph of the workflow."""
        self.workflow: Final = workflow
        self.tasks: Final = workflow.task
        self.facts: Final = facts
        self.graph: Final = Graph(workflow)

    def is_refused(self, task: int | None, *fields: str) -> bool:
        """Tell whether one of these fields was found wrong before the rules ran."""
        refused = self.facts.refused
        return bool(refused) and any((task, field) in refused for field in fields)

    def is_of_unknown_kind(self, task: int) -> bool:
        """Tell whether a task is an agent's only because its kind or operation was found wrong before."""
        return self.is_refused(task, "kind", "op")

    def is_shared(self, name: str) -> bool:
        """Tell whether more than one task bears the name, so that it is not known which is meant."""
        return len(self.graph.bearers.get(name, ())) > 1

    def is_known(self, name: str) -> bool:
        """Tell whether the name is that of a task that a dependency may name."""
        return name in self.graph.bearers or (self.facts.splice and name == LOOP_ENTRY)

    def engine_tasks(self, *operations: str) -> Iterator[tuple[int, EngineTask]]:
        """Yield the engine tasks of some operations, of all without any, in the order of the list."""
        for index, task in enumerate(self.tasks):
            if isinstance(task, EngineTask) and (not operations or task.op in operations):
                yield index, task

    @cached_property
    def lost(self) -> frozenset[int]:
        """Return the tasks with a dependency that is not known: refused, misspelt or shared."""
        return frozenset(
            index
            for index, task in enumerate(self.tasks)
            if self.is_refused(index, "depends_on", "source", "tiebreak") or self._is_lost_by_name(task)
        )

    @cached_property
    def vague(self) -> frozenset[int]:
        """Return the tasks with a dependency that may mean any other task: one that is not known, or themselves."""
        return frozenset(
            index
            for index, task in enumerate(self.tasks)
            if (index in self.lost and (index not in self.facts.behind_loop or self._is_lost_by_name(task)))
            or task.name in task.depends_on
        )

    def _is_lost_by_name(self, task: Task) -> bool:
        return any(self.is_shared(name) or not self.is_known(name) for name in task.depends_on)

    def is_sure(self, index: int) -> bool:
        """Tell whether all that comes before a task is known, so that what is missing is really missing."""
        if index in self.vague or index in self.lost:
            return False
        return not any(self.graph.is_ancestor(other, index) for other in self.lost)


def kind_of(task: Task) -> str:
    """Name what a task is as its author does: an engine task by its operation."""
    return task.operation or task.kind


def first_places(names: Iterable[str]) -> dict[str, int]:
    """Return for each name of a list the place where it stands first."""
    places: dict[str, int] = {}
    for place, name in enumerate(names):
        places.setdefault(name, place)
    return places


Rule = Callable[[Case], Iterator[Finding]]

"""Which task of a new workflow is which of the old one: by name, by equal body, by equal place (tooling.md §5).

In go two graphs, out comes an index for an index. A task that changed its name and all else at once
has no partner: it is gone, and another came.
"""

from collections.abc import Callable, Hashable

from crucible.compiler.analysis.graph import Graph
from crucible.schemas.ir import AgentTask, CommandTask, EngineTask, EvaluateTask, Task

_Key = Callable[[Task, tuple[object, ...], frozenset[object]], Hashable | None]


def match(old: Graph, new: Graph) -> dict[int, int]:
    """Return the new index of each old task that is still there."""
    matching = _Matching(old, new)
    # Each partner found may tell more tasks by their edges, so the surest key goes first again after each.
    keys: list[tuple[_Key, bool]] = [(_body, False), (_work, False), (_operation, True), (_place, False)]
    number = 0
    while number < len(keys):
        number = 0 if matching.pair(*keys[number]) else number + 1
    return dict(sorted(matching.pairs.items()))


class _Matching:
    """The partners found so far."""

    def __init__(self, old: Graph, new: Graph) -> None:
        self._old, self._new = old, new
        names = {task.name: index for index, task in enumerate(new.tasks)}
        self.pairs = {index: names[task.name] for index, task in enumerate(old.tasks) if task.name in names}

    def pair(self, key: _Key, only_one: bool) -> bool:  # noqa: FBT001 - a column of the table above
        """Pair the tasks of equal keys, in the order of their lists; tell whether there were any.

        With ``only_one`` a key tells a task only where it is the only one on either side.
        """
        known_old = {index: index for index in self.pairs}
        known_new = {index: other for other, index in self.pairs.items()}
        left, right = (_keyed(self._old, known_old, key), _keyed(self._new, known_new, key))
        before = len(self.pairs)
        for value, ours in left.items():
            theirs = right.get(value, [])
            if not only_one or len(ours) == len(theirs) == 1:
                self.pairs.update(zip(ours, theirs, strict=False))
        return len(self.pairs) > before


def _keyed(graph: Graph, known: dict[int, int], key: _Key) -> dict[Hashable, list[int]]:
    """Return the tasks without a partner by their keys; ``known`` has a number for each that has one."""
    dependents: dict[int, set[object]] = {}
    for index, edges in enumerate(graph.edges):
        for to in edges:
            dependents.setdefault(to, set()).add(known.get(index))
    found: dict[Hashable, list[int]] = {}
    for index, task in enumerate(graph.tasks):
        if index not in known:
            upwards = tuple(known.get(to) for to in graph.edges[index])
            value = key(task, upwards, frozenset(dependents.get(index, ())))
            if value is not None:
                found.setdefault(value, []).append(index)
    return found


def _body(task: Task, dependencies: tuple[object, ...], _dependents: frozenset[object]) -> Hashable:
    """Return all that a task is but for its name, and for the names of others without a partner."""
    blank: dict[str, object] = {"name": "", "depends_on": ()}
    if isinstance(task, EngineTask):
        blank |= {"source": task.source and "", "tiebreak": task.tiebreak and ""}
    return task.replace(**blank), frozenset(dependencies), len(dependencies)


def _work(task: Task, _dependencies: tuple[object, ...], _dependents: frozenset[object]) -> Hashable | None:
    """Return what a task is told or runs."""
    if isinstance(task, AgentTask):
        return task.kind, task.prompt
    return (task.kind, task.command) if isinstance(task, (CommandTask, EvaluateTask)) else None


def _operation(task: Task, _dependencies: tuple[object, ...], _dependents: frozenset[object]) -> Hashable | None:
    """Return the operation of an engine task."""
    return task.operation or None


def _place(task: Task, dependencies: tuple[object, ...], dependents: frozenset[object]) -> Hashable | None:
    """Return what stands around a task, None where nothing that has a partner does."""
    around = {*dependencies, *dependents} - {None}
    return (task.kind, task.operation, frozenset(dependencies), dependents) if around else None

"""The graph of a workflow: edges by name, order, ancestry, cycles.

In goes a Workflow, right or wrong; out come answers in task indices, so that a twin or an empty name
confuses nobody. It stands apart as the only owner of networkx, which is slow to import: who wants it
late imports this module late.
"""

from functools import cached_property
from typing import Final

import networkx as nx

from crucible.schemas.ir import Workflow


class Graph:
    """The tasks of a workflow, by index, with the edges between them.

    A name is an edge when exactly one other task bears it: unknown names, self dependencies and
    names that two tasks share lead nowhere, and of a name listed twice the first element counts.
    ``edges`` has for each task its dependencies, each with its place in ``depends_on``, and
    ``bearers`` for each name the tasks that bear it. Ancestry is that of the whole graph, through
    cycles too; ``order`` and ``reduction`` are those of the tasks outside cycles.
    """

    def __init__(self, workflow: Workflow) -> None:
        """Build the graph of a workflow."""
        self.workflow: Final = workflow
        self.tasks: Final = workflow.task
        bearers: dict[str, list[int]] = {}
        for index, task in enumerate(workflow.task):
            bearers.setdefault(task.name, []).append(index)
        self.bearers: Final = bearers
        self._only: Final = {name: found[0] for name, found in bearers.items() if len(found) == 1}
        self.edges: Final = tuple(self._edges_of(index) for index in range(len(workflow.task)))

    @cached_property
    def _digraph(self) -> "nx.DiGraph[int]":
        digraph: nx.DiGraph[int] = nx.DiGraph()
        digraph.add_nodes_from(range(len(self.edges)))
        digraph.add_edges_from((to, index) for index, edges in enumerate(self.edges) for to in edges)
        return digraph

    def _edges_of(self, index: int) -> dict[int, int]:
        edges: dict[int, int] = {}
        for element, name in enumerate(self.tasks[index].depends_on):
            to = self._only.get(name, index)
            if to != index:
                edges.setdefault(to, element)
        return edges

    def find(self, name: str | None) -> int | None:
        """Return the index of the only task of that name; None when there is none or more than one."""
        return self._only.get(name) if name is not None else None

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Return the tasks outside cycles, dependencies first, ties in the order of the list."""
        outside = self._digraph if not self.on_cycles else self._digraph.subgraph(self._outside)
        return tuple(nx.lexicographical_topological_sort(outside))

    @cached_property
    def on_cycles(self) -> frozenset[int]:
        """Return the tasks that lie on some cycle."""
        return frozenset(index for part in self._knots for index in part)

    @property
    def _outside(self) -> list[int]:
        return [index for index in range(len(self.tasks)) if index not in self.on_cycles]

    @cached_property
    def _knots(self) -> tuple[frozenset[int], ...]:
        """Return the strongly connected parts of more than one task; there is none where all edges lead back."""
        if all(to < index for index, edges in enumerate(self.edges) for to in edges):
            return ()
        if nx.is_directed_acyclic_graph(self._digraph):
            return ()
        parts = nx.strongly_connected_components(self._digraph)
        return tuple(frozenset(part) for part in parts if len(part) > 1)

    def in_one_cycle(self, one: int, other: int) -> bool:
        """Tell whether each of two tasks waits for the other."""
        return any(one in part and other in part for part in self._knots)

    def cycles(self) -> list[tuple[int, ...]]:
        """Return one shortest cycle per strongly connected part, sorted by their first names.

        A cycle begins at its smallest name and goes from each task to a dependency; of several
        shortest ones it is the one whose names come first.
        """
        found = [self._shortest_cycle(part) for part in self._knots]
        return sorted(found, key=lambda cycle: self.tasks[cycle[0]].name)

    def _shortest_cycle(self, part: frozenset[int]) -> tuple[int, ...]:
        inside: nx.DiGraph[int] = nx.DiGraph(self._digraph.subgraph(part))
        by_name = sorted(part, key=lambda index: self.tasks[index].name)
        dependencies = {index: [to for to in self.edges[index] if to in part] for index in part}
        start, steps, length = by_name[0], {}, len(part) + 1
        for candidate in by_name:
            # How many dependencies lead from each task back to the candidate, as far as that would be shorter.
            back = nx.single_source_shortest_path_length(inside, candidate, cutoff=length - 2)
            around = 1 + min((back[to] for to in dependencies[candidate] if to in back), default=length)
            if around < length:
                start, steps, length = candidate, back, around
        cycle = [start]
        for left in range(length - 1, 0, -1):
            nearer = [to for to in dependencies[cycle[-1]] if steps.get(to) == left]
            cycle.append(min(nearer, key=lambda index: self.tasks[index].name))
        return tuple(cycle)

    @cached_property
    def _reach(self) -> list[int]:
        """Return for each task the set of its ancestors, as the bits of an integer.

        A task on a cycle is its own ancestor.
        """
        reach = [0] * len(self.tasks)
        if not self._knots:
            for index in nx.topological_sort(self._digraph):
                for to in self.edges[index]:
                    reach[index] |= reach[to] | 1 << to
            return reach
        parts = nx.condensation(self._digraph)
        for number in nx.topological_sort(parts):
            members = parts.nodes[number]["members"]
            together = 0
            for index in members:
                for to in self.edges[index]:
                    together |= reach[to] | 1 << to
            for index in members:
                reach[index] = together
        return reach

    def is_ancestor(self, one: int, other: int) -> bool:
        """Tell whether ``one`` comes before ``other`` by way of dependencies."""
        return bool(self._reach[other] >> one & 1)

    def ancestors(self, index: int) -> frozenset[int]:
        """Return the tasks that come before a task; one on a cycle is among its own."""
        reach = self._reach[index]
        return frozenset(other for other in range(len(self.tasks)) if reach >> other & 1)

    def descendants(self, index: int) -> frozenset[int]:
        """Return the tasks that come after a task; one on a cycle is among its own."""
        return frozenset(other for other, reach in enumerate(self._reach) if reach >> index & 1)

    def reduction(self) -> frozenset[tuple[int, int]]:
        """Return the edges (dependent, dependency) outside cycles that no longer path implies."""
        outside = self._digraph.subgraph(self._outside) if self.on_cycles else self._digraph
        return frozenset((index, to) for to, index in nx.transitive_reduction(outside).edges)

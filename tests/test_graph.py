"""The graph of a workflow against naive references: edges, order, ancestry, cycles."""

import random
from collections.abc import Sequence
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from crucible.compiler.analysis.graph import Graph
from crucible.schemas.ir import CommandTask, Workflow

NAMES = "dacbfe"


def graph_of(*rows: tuple[str, Sequence[str]]) -> Graph:
    """Build the graph of command tasks, each given as its name and its dependencies."""
    tasks = tuple(CommandTask(name=name, command="true", depends_on=tuple(after)) for name, after in rows)
    return Graph(Workflow(type="custom", task=tasks))


@st.composite
def rows(draw: st.DrawFn) -> list[tuple[str, list[str]]]:
    """Draw tasks of up to six names in any order, with any edges between them, self edges included."""
    names = draw(st.permutations(NAMES))[: draw(st.integers(0, len(NAMES)))]
    return [(name, draw(st.lists(st.sampled_from(names), unique=True))) for name in names]


def closure(edges: dict[str, list[str]]) -> dict[str, set[str]]:
    """Return for each name the names that its dependencies lead to, by repetition until nothing changes."""
    reach = {name: {other for other in after if other != name} for name, after in edges.items()}
    while True:
        wider = {name: found.union(*(reach[other] for other in found)) for name, found in reach.items()}
        if wider == reach:
            return reach
        reach = wider


def shortest_cycle(part: set[str], edges: dict[str, list[str]]) -> tuple[str, ...]:
    """Return the shortest cycle in a part, the first by names among equals, by trying all sequences."""
    for length in range(2, len(part) + 1):
        for cycle in permutations(sorted(part), length):
            if all(after in edges[name] for name, after in zip(cycle, (*cycle[1:], cycle[0]), strict=True)):
                return cycle
    raise AssertionError


@given(rows())
def test_cycles_are_those_that_trying_all_finds(drawn: list[tuple[str, list[str]]]) -> None:
    """One shortest cycle for each knot of tasks, beginning at its smallest name."""
    edges = dict(drawn)
    reach = closure(edges)
    parts = {frozenset(other for other in reach[name] if name in reach[other]) for name in edges if name in reach[name]}
    expected = sorted(shortest_cycle(set(part), edges) for part in parts)
    graph = graph_of(*drawn)
    assert [tuple(drawn[index][0] for index in cycle) for cycle in graph.cycles()] == expected
    assert {drawn[index][0] for index in graph.on_cycles} == {name for part in parts for name in part}
    for one, (name, _) in enumerate(drawn):
        for other, (second, _) in enumerate(drawn):
            assert graph.in_one_cycle(one, other) == any(name in part and second in part for part in parts)


@given(rows())
def test_ancestry_is_that_of_the_whole_graph(drawn: list[tuple[str, list[str]]]) -> None:
    """Ancestors and descendants are what following dependencies reaches, through cycles too."""
    reach = closure(dict(drawn))
    graph = graph_of(*drawn)
    for index, (name, _) in enumerate(drawn):
        assert {drawn[other][0] for other in graph.ancestors(index)} == reach[name]
        assert {drawn[other][0] for other in graph.descendants(index)} == {n for n in reach if name in reach[n]}
        for other, (second, _) in enumerate(drawn):
            assert graph.is_ancestor(other, index) == (second in reach[name])


@given(rows())
def test_order_and_reduction_leave_cycles_out(drawn: list[tuple[str, list[str]]]) -> None:
    """Tasks outside cycles come after their dependencies, in the order of the list where that is free."""
    graph = graph_of(*drawn)
    outside = [index for index in range(len(drawn)) if index not in graph.on_cycles]
    expected: list[int] = []
    while len(expected) < len(outside):
        ready = (
            index
            for index in outside
            if index not in expected and all(to in expected for to in graph.edges[index] if to in outside)
        )
        expected.append(next(ready))
    assert list(graph.order) == expected
    edges = {index: [to for to in graph.edges[index] if to in outside] for index in outside}
    needed = {
        (index, to)
        for index, after in edges.items()
        for to in after
        if not any(to in seen for other in after for seen in [_behind(other, edges)])
    }
    assert graph.reduction() == needed


def _behind(index: int, edges: dict[int, list[int]]) -> set[int]:
    found = set(edges[index])
    return found.union(*(_behind(other, edges) for other in edges[index]))


@given(st.integers(2, 150), st.integers())
def test_a_large_acyclic_graph_never_looks_cyclic(size: int, seed: int) -> None:
    """However the tasks are listed, edges that all point one way make no cycle."""
    chance = random.Random(seed)
    order = list(range(size))
    chance.shuffle(order)
    drawn = [(f"t{n}", [f"t{m}" for m in range(n) if chance.random() < 0.3]) for n in order]
    graph = graph_of(*drawn)
    assert graph.cycles() == []
    assert graph.on_cycles == frozenset()
    assert len(graph.order) == size


def test_every_task_on_all_earlier_ones_is_no_cycle() -> None:
    """One hundred and twenty tasks, each depending on all before it, run in the order of the list."""
    graph = graph_of(*((f"t{n}", [f"t{m}" for m in range(n)]) for n in range(120)))
    assert graph.cycles() == []
    assert graph.order == tuple(range(120))
    assert graph.reduction() == {(n + 1, n) for n in range(119)}


def test_only_a_name_of_exactly_one_other_task_is_an_edge() -> None:
    """Unknown names, the task's own, and names of twins lead nowhere; the first of two elements counts."""
    graph = graph_of(("a", []), ("twin", []), ("twin", ["a"]), ("b", ["twin", "a", "nobody", "b", "a"]))
    assert [dict(edges) for edges in graph.edges] == [{}, {}, {0: 0}, {0: 1}]
    assert [graph.find(name) for name in ("a", "twin", "nobody", None)] == [0, None, None, None]


def test_a_long_ring_is_one_cycle() -> None:
    """A ring of all tasks is walked once, from its smallest name along the dependencies."""
    graph = graph_of(*((f"t{n:03}", [f"t{(n + 1) % 128:03}"]) for n in range(128)))
    assert graph.cycles() == [tuple(range(128))]

"""What stands where in a workflow: what leads to its result, what a passing task proves, what a measurement sees.

In goes a graph with a number for each task that both sides of a comparison share; out come answers in these.
"""

from collections.abc import Callable
from typing import Final

from crucible.compiler.analysis.graph import Graph
from crucible.schemas.ir import AgentTask, CommandTask, EngineTask, Task

_NOBODY: Final = -(1 << 62)


class Standing:
    """One workflow in terms of identities: that of a matched task is its old index, that of a new one is negative.

    ``above`` has for each task those that come before it, for one of the epilogue all of the iteration. ``leads`` are
    the tasks that lead to the result, and itself; without a result all of the iteration. ``proven`` has for each task
    those that must have passed when it has.
    """

    def __init__(self, graph: Graph, identity: Callable[[int], int]) -> None:
        self.workflow = graph.workflow
        self.tasks = {identity(index): task for index, task in enumerate(graph.tasks)}
        self.ids = {task.name: one for one, task in self.tasks.items()}
        self.order = tuple(identity(index) for index in graph.order)
        self.depends = {identity(index): tuple(identity(to) for to in edges) for index, edges in enumerate(graph.edges)}
        iteration = {one for one, task in self.tasks.items() if not task.is_epilogue}
        self.above = {
            identity(index): frozenset(identity(to) for to in graph.ancestors(index)).union(
                iteration if task.is_epilogue else ()
            )
            for index, task in enumerate(graph.tasks)
        }
        result = graph.find(graph.workflow.result)
        self.result = None if result is None else identity(result)
        if self.result is None:
            self.leads = frozenset(one for one, task in self.tasks.items() if not task.is_epilogue)
        else:
            self.leads = self.above[self.result] | {self.result}
        self.proven: dict[int, frozenset[int]] = {one: frozenset() for one in self.tasks}
        for index in graph.order:
            one = identity(index)
            below = [self.proven[to] | {to} for to in self.depends[one]]
            if below:
                self.proven[one] = frozenset.intersection(*below) if self.is_any(one) else frozenset().union(*below)
            for scores in self._scores(one):
                self.proven[one] |= {scores} | self.proven[scores]

    def is_any(self, one: int) -> bool:
        """Tell whether a task needs only one of its dependencies to pass."""
        return self.tasks[one].join == "passed" and len(self.depends[one]) > 1

    def task(self, name: str | None) -> Task | None:
        """Return the task of a name, None when there is none."""
        return self.tasks.get(self.ids.get(name or "", _NOBODY))

    def needs_all(self, one: int) -> tuple[int, ...]:
        """Return the tasks without each of which a task does not pass."""
        return self._scores(one) if self.is_any(one) else (*self.depends[one], *self._scores(one))

    def needs_one(self, one: int) -> tuple[int, ...]:
        """Return the tasks of which a task needs only one, nothing where it needs all."""
        return self.depends[one] if self.is_any(one) else ()

    def _scores(self, one: int) -> tuple[int, ...]:
        """Return what gives a task its score: a grade is none without it, whatever it joins."""
        source = self.ids.get(getattr(self.tasks[one], "source", None) or "")
        return (source,) if source in self.above[one] else ()

    def gates(self, one: int) -> frozenset[int]:
        """Return what the engine does only when a task has passed, but for grades, and the result."""
        return frozenset(
            other
            for other, task in self.tasks.items()
            if one in self.proven[other] and (other == self.result or task.operation in ("propose", "apply", "decide"))
        )

    def gives_readings(self, one: int) -> bool:
        """Tell whether some task takes its reading from another."""
        engine = [task for task in self.tasks.values() if isinstance(task, EngineTask)]
        return any(self.tasks[one].name in (task.source, task.tiebreak) for task in engine)

    def shapes(self, one: int) -> bool:
        """Tell whether what a task does reaches what later tasks find in the workspace."""
        task = self.tasks[one]
        if isinstance(task, EngineTask):
            return task.op in ("propose", "apply")
        return isinstance(task, (AgentTask, CommandTask)) and task.isolation is None

    def shaping(self, one: int) -> frozenset[int]:
        """Return the tasks before one whose work it finds."""
        return frozenset(other for other in self.above[one] if self.shapes(other))

    def agents_behind(self, one: int) -> set[int]:
        """Return the tasks on the way to the result that change by judgement what a task has found."""
        return {other for other in self.agents_after(one) if other in self.leads and one in self.above[other]}

    def agents_after(self, one: int) -> set[int]:
        """Return the tasks that may, by judgement, change what a task has found: nothing has them come before it.

        What the epilogue changes is no matter of the iteration, in which all is decided by then.
        """
        return {
            other
            for other, task in self.tasks.items()
            if (isinstance(task, AgentTask) or task.operation == "propose")
            and self.shapes(other)
            and (not task.is_epilogue or self.tasks[one].is_epilogue)
            and other != one
            and other not in self.above[one]
        }

    def repeated(self, one: int, other: int) -> bool:
        """Tell whether what a task checks is checked by an equal one once more, behind another task."""
        command = getattr(self.tasks[one], "command", None)
        return command is not None and any(
            other in self.above[each]
            and each in self.leads
            and task.required
            and task.kind == self.tasks[one].kind
            and getattr(task, "command", None) == command
            for each, task in self.tasks.items()
        )

    def reaches(self, command: int, one: int) -> bool:
        """Tell whether what a command leaves is still there for a task: nothing is made live in between."""
        return command in self.above[one] and not any(
            self.tasks[other].operation == "apply" and command in self.above[other] for other in self.above[one]
        )

    def together(self, one: int) -> frozenset[int]:
        """Return the other tasks of a task's conversation."""
        session = self.tasks[one].session
        if session is None:
            return frozenset()
        return frozenset(other for other, task in self.tasks.items() if task.session == session and other != one)

    def evidence(self, name: str | None) -> frozenset[int]:
        """Return what stands behind a reading: the task that gives it and all before it, but for grades."""
        one = self.ids.get(name or "")
        if one is None:
            return frozenset()
        return frozenset(each for each in self.above[one] | {one} if self.tasks[each].operation != "grade")

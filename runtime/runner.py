"""The protocol of a runner: one attempt of one task, as a generator of the processes that it needs.

A runner is handed a job and yields commands; the executor runs each and sends back how it ended; at last
the generator returns an attempt. So a runner knows no graph, and the executor drives as many attempts
as a wave has in one thread.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

from crucible.runtime.outcome import Attempt, Result
from crucible.runtime.process import Command, Exit
from crucible.schemas.light import NamedTuple, Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from crucible.schemas.ir import Task

Turn: TypeAlias = Generator[Command, Exit, Attempt]


class Logs(NamedTuple):
    """The paths of the files of one attempt: what it printed, and the inputs that it can read.

    The inputs may stand where those of an attempt stood that is over.
    """

    out: str
    err: str
    inputs: str


class Job(NamedTuple):
    """One attempt of one task, and all that a runner may know of it.

    ``number`` is the task's place in the plan, from 0; ``attempt`` counts from 1. ``inputs`` are the
    outputs of the passing dependencies by name, in declaration order; ``params`` the workflow's bound
    parameters. ``workspace`` is the absolute path of the folder in which it runs, its worktree if it has one.
    ``variables`` are what the pass adds to the environment of its children; ``settled`` are the results so far of an
    engine task's pass, by name.
    """

    task: Task
    number: int
    attempt: int
    inputs: Mapping[str, Any]
    params: Mapping[str, Any]
    workspace: str
    logs: Logs
    variables: Mapping[str, str] = {}
    settled: Mapping[str, Result] = {}


class Runner(Protocol):
    """Does attempts of the kinds of task that it is for."""

    def attempt(self, job: Job) -> Turn:
        """Return the turn of one attempt; nothing happens before it is driven."""

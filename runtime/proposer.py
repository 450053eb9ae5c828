"""What an agent is asked for when it proposes: the method filled in, or in a conversation only what changed.

In go the goal, the rows so far and new steering, out comes the prompt of a turn; the agent runner does the turn.
"""

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from crucible.runtime import tree
from crucible.runtime.outcome import Attempt, Status
from crucible.runtime.results import line
from crucible.runtime.world import SKILLS
from crucible.schemas.ir import AgentTask
from crucible.schemas.placeholders import PLACEHOLDERS

if TYPE_CHECKING:
    from crucible.runtime.agent_runner import AgentRunner
    from crucible.runtime.history import Row
    from crucible.runtime.runner import Job, Turn

_FILLED: Final = re.compile(r"\{\{(" + "|".join(PLACEHOLDERS) + r")\}\}")
_LAST_ROWS: Final = 5


class Method(NamedTuple):
    """What the manifest gives every proposing agent: texts, and a folder of skills."""

    goal: str
    method: str | None = None
    toolbox: str | None = None


class Progress(NamedTuple):
    """Where the loop stands."""

    iteration: int
    iterations: int
    direction: str
    baseline: float | None
    best: float | None
    best_iteration: int | None
    rows: tuple["Row", ...]

    @property
    def text(self) -> str:
        """Return what an agent reads of it that has been told nothing yet."""
        better = "lower is better" if self.direction == "lower" else "higher is better"
        baseline = "none yet" if self.baseline is None else f"{self.baseline:g}"
        return self._told(f"Iteration {self.iteration} of {self.iterations}; {better}.", f"Baseline: {baseline}",
                          rows=self.rows[-_LAST_ROWS:])  # fmt: skip

    def since(self, iteration: int) -> str:
        """Return what an agent reads of it that has been told all that was known before an iteration."""
        rows = [row for row in self.rows if row.number >= iteration]
        return self._told(f"Iteration {self.iteration} of {self.iterations}.", rows=rows[-_LAST_ROWS:])

    def _told(self, *lines: str, rows: "Sequence[Row]") -> str:
        best = "none yet" if self.best is None else f"{self.best:g}, of iteration {self.best_iteration}"
        told = [*lines, f"Best, which the workspace holds: {best}"]
        for row in rows:
            score = "no score" if row.score is None else f"score {row.score:g}"
            note = line(row.note)
            told.append(f"- iteration {row.number}: {row.decision}, {score}" + (f", {note}" if note else ""))
        return "\n".join(told)


class Guide(Protocol):
    """The loop, as far as a prompt tells of it."""

    def status(self) -> Progress:
        """Return where the loop stands."""

    def steer(self) -> str:
        """Return what steers the agent of this iteration."""


class AgentProposer:
    """Has the agent runner do the turns of propose tasks."""

    def __init__(
        self,
        runner: "AgentRunner",
        method: Method,
        folder: str,
    ) -> None:
        """Keep what it takes; ``folder`` is the workspace."""
        self.guide: Guide | None = None
        self._runner = runner
        self._method = method
        self._told: dict[str, int] = {}  # at which iteration a conversation was told last
        self._folder = folder

    def propose(self, job: "Job") -> "Turn":
        """Return the turn in which an agent changes the workspace."""
        try:
            self._lay_out_skills()
        except OSError as error:
            return Attempt(Status.FAIL, note=f"the toolbox cannot be copied: {error.filename}: {error.strerror}")
        task = job.task
        prompt = self.prompt(task.session)
        asked = AgentTask(name=task.name, prompt=prompt, session=task.session, emits=task.emits)
        attempt = yield from self._runner.attempt(job._replace(task=asked), owes=False)
        return attempt

    def prompt(self, session: str | None = None) -> str:
        """Return the prompt; a conversation that was told the method and the goal gets only what changed since."""
        assert self.guide is not None  # noqa: S101 - narrows: a loop sets it
        progress, steer = self.guide.status(), self.guide.steer().strip()
        if session is not None and self._runner.turns(session):
            # Of a conversation that an earlier process held, the last row is new in any case.
            since = self._told.get(session, progress.iteration - 1)
            self._told[session] = progress.iteration
            return _headed({"Status": progress.since(since), "Steering": steer})
        if session is not None:
            self._told[session] = progress.iteration
        status = progress.text
        if self._method.method is None:
            return _headed({"Goal": self._method.goal.strip(), "Status": status, "Steering": steer or "None."})
        given: Mapping[str, str] = {"GOAL": self._method.goal.strip(), "STATUS": status, "STEER": steer}
        filled = _FILLED.sub(lambda found: given[found[1]], self._method.method)
        has_place = "{{STEER}}" in self._method.method
        return filled if has_place or not steer else f"{filled.rstrip()}\n\n{_headed({'Steering': steer})}"

    def _lay_out_skills(self) -> None:
        """Copy the toolbox to where an agent looks for skills, in place of what it may have made of the last copy."""
        if self._method.toolbox is None:
            return
        with tree.opened(self._folder) as top:
            home = tree.enter(top, SKILLS)
            try:
                tree.remove(home, "skills")
                new = tree.enter(home, "skills")
                try:
                    with tree.opened(os.path.realpath(self._method.toolbox)) as old:
                        tree.copy(old, new, (), lambda: False)
                finally:
                    os.close(new)
            finally:
                os.close(home)


def _headed(parts: Mapping[str, str]) -> str:
    return "\n\n".join(f"# {title}\n\n{text}" for title, text in parts.items() if text) + "\n"

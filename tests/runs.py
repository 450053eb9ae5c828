"""Runs of a workflow for tests: small graphs in few words, started as people start them, and what they left."""

import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from crucible.cli import main
from crucible.schemas import canonical, registry
from crucible.schemas.ir import WORKTREE, AgentTask, CommandTask, EvaluateTask, Task, TopKTask, Workflow

STAND_IN = f"{sys.executable} {Path(__file__).resolve().parent / 'stand_in.py'}"


class Ran(NamedTuple):
    """How a run ended, and where its state is."""

    status: int
    out: str
    err: str
    state: Path

    @property
    def report(self) -> dict[str, Any]:
        """Return the report, which its schema allows."""
        report: dict[str, Any] = json.loads((self.state / "report.json").read_text(encoding="utf-8"))
        assert registry.errors("report", report) == []
        return report

    @property
    def events(self) -> list[dict[str, Any]]:
        """Return the events, each of which its schema allows, the last one being the only shutdown."""
        return events(self.state)

    def task(self, name: str) -> dict[str, Any]:
        """Return what the report says of a task."""
        return next(task for task in self.report["tasks"] if task["name"] == name)

    def statuses(self) -> dict[str, str]:
        """Return the status of each task by name."""
        return {task["name"]: task["status"] for task in self.report["tasks"]}

    def log(self, ending: str) -> str:
        """Return the log whose name ends so."""
        (path,) = (self.state / "logs").glob(f"*{ending}")
        return path.read_text(encoding="utf-8")


def events(state: Path) -> list[dict[str, Any]]:
    """Return the events of a run that was not killed."""
    data = (state / "session.jsonl").read_bytes()
    assert data.endswith(b"\n")
    found: list[dict[str, Any]] = [json.loads(line) for line in data.split(b"\n")[:-1]]
    assert [problem for event in found for problem in registry.errors("event", event)] == []
    assert [event["kind"] for event in found].count("shutdown") == 1
    assert found[-1]["kind"] == "shutdown"
    return found


def command(
    name: str, run: str, *depends_on: str, advisory: bool = False, isolated: bool = False, **others: Any
) -> Task:
    """Return a command with few words."""
    return CommandTask(name=name, command=run, **_common(depends_on, advisory, isolated), **others)


def evaluate(
    name: str, run: str, *depends_on: str, advisory: bool = False, isolated: bool = False, **others: Any
) -> Task:
    """Return an evaluate with few words."""
    return EvaluateTask(name=name, command=run, **_common(depends_on, advisory, isolated), **others)


def agent(
    name: str, prompt: str, *depends_on: str, advisory: bool = False, isolated: bool = False, **others: Any
) -> Task:
    """Return an agent with few words."""
    return AgentTask(name=name, prompt=prompt, **_common(depends_on, advisory, isolated), **others)


def top_k(name: str, k: int, direction: str, *depends_on: str) -> Task:
    """Return a top_k with few words."""
    return TopKTask(name=name, k=k, direction=direction, depends_on=depends_on)


def _common(depends_on: tuple[str, ...], advisory: bool, isolated: bool) -> dict[str, Any]:  # noqa: FBT001 - flags of a task
    return {"depends_on": depends_on, "required": not advisory, "isolation": WORKTREE if isolated else None}


def write_plan(folder: Path, *tasks: Task, lane: str = "custom", **others: Any) -> Path:
    """Write the canonical JSON of some tasks."""
    path = folder / "plan.json"
    workflow = Workflow(type=lane, task=tasks, **others)
    path.write_text(canonical.dumps(workflow), encoding="utf-8", newline="\n")
    return path


class Runs:
    """Runs workflows in a folder, in this process."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capfd = capfd

    def __call__(self, *tasks: Task, options: tuple[str, ...] = (), **plan: Any) -> Ran:
        """Run a workflow of some tasks."""
        path = write_plan(self.folder, *tasks, **plan)
        return self.run("--file", str(path), *options)

    def run(self, *arguments: str | os.PathLike[str], state: Path | None = None) -> Ran:
        """Run the command with these arguments."""
        self._capfd.readouterr()
        status = main.main(["plan", "run", *(os.fspath(each) for each in arguments)])
        out, err = self._capfd.readouterr()
        return Ran(status, out, err, state or self.folder / "state")

"""The executor, with real processes: it does what the machine says, whatever ends first, and records it in order."""

import itertools
import os
import signal
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from naive_run import NaiveRun, Told
from runs import command, events, top_k

from crucible.runtime import machine
from crucible.runtime.execute import Execution
from crucible.runtime.outcome import Attempt, Ending, Status
from crucible.runtime.plan import make_plan
from crucible.runtime.process import Command, Exit, Processes
from crucible.runtime.progress import Lines, duration
from crucible.runtime.records import Records
from crucible.runtime.runner import Job, Turn
from crucible.runtime.shell_runner import ShellRunner
from crucible.runtime.surroundings import base
from crucible.runtime.workspace import Refused
from crucible.schemas.ir import Task, Workflow


class Here:
    """Runs every task in one folder; an isolated one is refused where there are no clones."""

    def __init__(self, folder: Path, *, clones: bool = True) -> None:
        self._folder = folder
        self._clones = clones
        self.told: list[str] = []

    def next_wave(self) -> None:
        """Note that a wave begins."""
        self.told.append("wave")

    def enter(self, task: Task) -> Generator[Command, Exit, str]:
        """Return the folder."""
        if task.isolation and not self._clones:
            message = "there are no clones"
            raise Refused(message)
        yield from ()
        self.told.append(task.name)
        return str(self._folder)

    def leave(self, task: Task, folder: str) -> Generator[Command, Exit, None]:
        """Note that a task has left, after a process of its own."""
        yield Command(("true",), os.environ, folder, os.devnull, os.devnull)
        self.told.append(f"{task.name} left")


class Ran:
    """One run of some tasks, and what was said of it."""

    def __init__(self, folder: Path, *tasks: Task, places: Here | None = None, **options: Any) -> None:
        self.lines: list[str] = []
        self.places = places or Here(folder)
        state = folder / "state"
        state.mkdir(exist_ok=True)
        plan_options = {name: options.pop(name) for name in ("jobs", "retries", "budget") if name in options}
        plan = make_plan(Workflow(type="custom", task=tasks), options.pop("capabilities", ()), **plan_options)
        runner = options.pop("runner", None) or ShellRunner(base(os.environ))
        with options.pop("processes", Processes)() as processes:
            records = Records(str(state))
            display = Lines(plan.workflow, self.lines.append)
            runners = {"command": runner, "evaluate": runner}
            execution = Execution(plan, runners, self.places, processes, records, display, **options)
            execution.run()
            records.close("finished", "")
        self.run = execution.state
        self.verdict = machine.verdict(self.run)
        found = [event for event in events(state) if event["kind"] == "task_result"]
        self.recorded = [event["name"] for event in found]
        self.statuses = {
            task.name: str(machine.status(self.run, number)) for number, task in enumerate(plan.workflow.task)
        }


class Dying:
    """A runner whose attempts end as they are told, at once and without a process."""

    def __init__(self, *said: Attempt, line: tuple[str, ...] = ("true",)) -> None:
        self._said = list(said)
        self._line = line
        self.moments: list[float] = []

    def attempt(self, job: Job) -> Turn:
        """Return the next attempt that was told."""
        self.moments.append(time.monotonic())
        yield Command(self._line, os.environ, job.workspace, job.logs.out, job.logs.err)
        return self._said.pop(0)


def test_isolated_tasks_run_at_the_same_time_and_are_recorded_in_order(tmp_path: Path) -> None:
    """Each waits for the other to begin; the second ends first, and the first is written down first."""
    meet = "touch {0}; while ! test -e {1}; do sleep 0.01; done; {2}; echo 1"
    ran = Ran(
        tmp_path,
        command("one", meet.format("1", "2", "while ! test -e 3; do sleep 0.01; done"), isolated=True),
        command("two", meet.format("2", "1", "touch 3"), isolated=True),
        jobs=2,
    )
    assert ran.statuses == {"one": "pass", "two": "pass"}
    assert ran.recorded == ["one", "two"]
    ended = [line.split()[0] for line in ran.lines if line.split()[1] == "pass"]
    assert sorted(ended) == ["one", "two"]
    assert ran.places.told == ["wave", "one", "two", *ran.places.told[3:]]


def test_a_wave_is_told_to_the_places_before_its_tasks(tmp_path: Path) -> None:
    """What is captured for a wave is captured once; a task leaves when it has ended."""
    ran = Ran(tmp_path, command("a", "true"), command("b", "true", isolated=True), command("c", "true", isolated=True))
    assert ran.places.told[:3] == ["wave", "a", "a left"]
    assert ran.places.told[3:6] == ["wave", "b", "c"]


def test_a_task_without_a_place_is_blocked_with_the_reason(tmp_path: Path) -> None:
    """It was never attempted, and it is not run anywhere else."""
    ran = Ran(tmp_path, command("a", "touch ran", isolated=True, advisory=True), places=Here(tmp_path, clones=False))
    (result,) = ran.run.results
    assert result is not None
    assert (result.status, result.text, result.attempts) == (Status.BLOCKED, "there are no clones", 0)
    assert not (tmp_path / "ran").exists()
    assert ran.lines == ["a  running", "a  blocked    there are no clones"]


def test_a_required_failure_lets_finish_what_runs(tmp_path: Path) -> None:
    """What runs beside it is recorded; what was ready never begins."""
    ran = Ran(
        tmp_path,
        command("fails", "exit 1", isolated=True),
        command("runs", "sleep 0.2; echo 1", isolated=True),
        command("later", "true", isolated=True),
        jobs=2,
    )
    assert ran.statuses == {"fails": "fail", "runs": "pass", "later": "blocked"}
    assert ran.verdict.ending is Ending.SHORT_CIRCUIT


def test_each_attempt_waits_longer_than_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the last delay holds for all later ones."""
    monkeypatch.setattr("crucible.runtime.execute.DELAYS", (0.1, 0.3))
    dead = Attempt(Status.TRANSPORT, note="gone", transport="command")
    runner = Dying(dead, dead, dead, Attempt(Status.PASS))
    ran = Ran(tmp_path, command("a", "-"), runner=runner, retries=3)
    delays = [after - before for before, after in itertools.pairwise(runner.moments)]
    assert delays[0] >= 0.1
    assert min(delays[1:]) >= 0.3
    assert ran.statuses == {"a": "pass"}
    assert [line for line in ran.lines if "again" in line] == [
        "a  transport  gone; again in 0.1 s",
        "a  transport  gone; again in 0.3 s",
        "a  transport  gone; again in 0.3 s",
    ]


def test_what_is_ended_is_not_tried_again(tmp_path: Path) -> None:
    """Whatever its runner makes of that."""
    runner = Dying(Attempt(Status.TRANSPORT, note="gone", transport="command"), line=("sleep", "600"))
    ran = Ran(tmp_path, command("a", "-"), runner=runner, max_time=0.1)
    assert ran.statuses == {"a": "transport"}
    assert ran.lines == ["a  running", "a  transport  0.0 s  gone"]


class Both(Processes):
    """Processes of which each ends by the signal that we get in the same moment."""

    def wait(self, until: float | None) -> list[tuple[int, Exit]]:
        """Return what ended, as if a key had reached all."""
        over = super().wait(until)
        self.caught = signal.SIGINT
        return [(handle, ended._replace(code=None, signal=signal.SIGINT)) for handle, ended in over]


def test_a_key_that_ends_the_last_task_before_we_hear_of_it_is_an_interrupt(tmp_path: Path) -> None:
    """The end of the child and the signal are seen in one look; nobody's check has failed."""

    class Staying(Here):
        def leave(self, task: Task, folder: str) -> Generator[Command, Exit, None]:
            self.told.append(f"{task.name} left {folder}")
            yield from ()

    ran = Ran(tmp_path, command("a", "true"), processes=Both, places=Staying(tmp_path))
    assert machine.verdict(ran.run).ending is Ending.INTERRUPTED


def test_a_run_that_is_over_cannot_be_interrupted(tmp_path: Path) -> None:
    """Whoever presses the keys when the last task has ended gets what it came to."""

    class Late(Here):
        def leave(self, task: Task, folder: str) -> Generator[Command, Exit, None]:
            yield from super().leave(task, folder)
            os.kill(os.getpid(), signal.SIGINT)

    ran = Ran(tmp_path, command("only", "true"), places=Late(tmp_path))
    assert ran.verdict == (True, Ending.COMPLETED)
    ran = Ran(tmp_path, command("one", "true"), command("two", "true"), places=Late(tmp_path))
    assert ran.verdict == (False, Ending.INTERRUPTED)
    assert ran.statuses == {"one": "pass", "two": "pending"}


def test_nothing_is_done_while_there_is_nothing_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait ends when something has happened, not again and again."""
    monkeypatch.setattr("crucible.runtime.execute.DELAYS", (0.2,))
    waits = []
    wait = Processes.wait

    def counted(self: Processes, until: float | None) -> list[tuple[int, Exit]]:
        waits.append(until)
        return wait(self, until)

    monkeypatch.setattr(Processes, "wait", counted)
    dead = Attempt(Status.TRANSPORT, note="gone", transport="command")
    Ran(tmp_path, command("a", "-"), runner=Dying(dead, Attempt(Status.PASS)))
    assert len(waits) < 10


def test_others_go_on_while_one_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A delay is nobody else's."""
    monkeypatch.setattr("crucible.runtime.execute.DELAYS", (0.5,))

    class Once(ShellRunner):
        def attempt(self, job: Job) -> Turn:
            done = yield from super().attempt(job)
            died = job.task.name == "dies" and job.attempt == 1
            return Attempt(Status.TRANSPORT, note="gone", transport="command") if died else done

    tasks = (command("dies", "true", isolated=True), command("other", "sleep 0.1", isolated=True))
    ran = Ran(tmp_path, *tasks, runner=Once(base(os.environ)), jobs=2)
    assert [line.split()[:2] for line in ran.lines] == [
        ["dies", "running"],
        ["other", "running"],
        ["dies", "transport"],
        ["other", "pass"],
        ["dies", "running"],
        ["dies", "pass"],
    ]
    assert ran.recorded == ["dies", "other"]


def test_a_command_that_cannot_be_started_fails_the_task(tmp_path: Path) -> None:
    """The folder is gone: that is ours to say plainly, and nothing to try again."""
    ran = Ran(tmp_path, command("a", "true"), places=Here(tmp_path / "nowhere"))
    (result,) = ran.run.results
    assert result is not None
    assert (result.status, result.attempts) == (Status.FAIL, 1)
    assert result.note == "the workspace cannot be entered: No such file or directory"


def test_a_thousand_tasks_are_no_burden(tmp_path: Path) -> None:
    """A plan by hand may have as many; a reducer takes no process."""
    leaves = [command(f"t{number}", "true", advisory=True) for number in range(1_000)]
    ran = Ran(
        tmp_path, *leaves, top_k("best", 1, "lower", *(leaf.name for leaf in leaves)), runner=Dying(*_scores(1_000))
    )
    assert ran.verdict.valid
    assert len(ran.recorded) == 1_001


def _scores(count: int) -> list[Attempt]:
    return [Attempt(Status.PASS, {"score": number}) for number in range(count)]


_STATUSES = (Status.PASS, Status.FAIL)


@st.composite
def runs(draw: Callable[[st.SearchStrategy[Any]], Any]) -> tuple[list[Task], Told, bool]:
    """Draw a small graph, how its tasks end, and whether isolated ones get a place."""
    tasks: list[Task] = []
    said = {}
    clones = draw(st.booleans())
    for number in range(draw(st.integers(1, 6))):
        name = f"t{number}"
        before = draw(st.sets(st.sampled_from([task.name for task in tasks]))) if tasks else set()
        isolated = draw(st.booleans())
        status = draw(st.sampled_from(_STATUSES))
        tasks.append(
            command(
                name,
                "exit 0" if status is Status.PASS else "exit 1",
                *sorted(before),
                advisory=draw(st.booleans()),
                isolated=isolated,
                join=draw(st.sampled_from(["all", "passed"])) if before else "all",
                needs=draw(st.sampled_from(["any", "any", "any", "gpu"])),
            )
        )
        said[name] = [Attempt(Status.BLOCKED if isolated and not clones else status)]
    tasks = draw(st.permutations(tasks))  # a task may be declared before what it depends on
    told = Told(frozenset(draw(st.sets(st.just("gpu")))), None, draw(st.integers(1, 3)), 0, said)
    return tasks, told, clones


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(runs())
def test_every_run_goes_as_the_naive_account_says(tmp_path: Path, drawn: tuple[list[Task], Told, bool]) -> None:
    """Statuses, order of the record, ending and validity are those of a second account, with real processes."""
    tasks, told, clones = drawn
    places = Here(tmp_path, clones=clones)
    ran = Ran(tmp_path, *tasks, places=places, jobs=told.jobs, retries=0, capabilities=told.capabilities)
    account = NaiveRun(Workflow(type="custom", task=tuple(tasks)), told).account()
    assert ran.statuses == {name: str(fate[0]) for name, fate in account.fates.items() if fate is not None}
    assert ran.recorded == account.recorded
    assert ran.verdict == (account.valid, account.ending)


_UPSTREAM = {
    "pass": (command("up", "true"),),
    "fail": (command("up", "exit 1"),),
    "advisory fail": (command("up", "exit 1", advisory=True),),
    "skipped": (command("up", "true", advisory=True, needs="gpu"),),
    "blocked": (command("root", "exit 1", advisory=True), command("up", "true", "root", advisory=True)),
}


@pytest.mark.parametrize("upstream", _UPSTREAM)
@pytest.mark.parametrize("advisory", [False, True], ids=["required", "advisory"])
@pytest.mark.parametrize("join", ["all", "passed"])
def test_a_task_that_did_not_run_names_its_cause(tmp_path: Path, join: str, upstream: str, *, advisory: bool) -> None:
    """For every join, requirement and state of what came before, as the published table has it."""
    before = _UPSTREAM[upstream]
    ran = Ran(tmp_path, *before, command("down", "true", "up", advisory=advisory, join=join), retries=0)
    said = {"up": [Attempt(Status.FAIL)], "root": [Attempt(Status.FAIL)]} if "pass" not in upstream else {}
    flow = ran.run.plan.workflow
    account = NaiveRun(flow, Told(frozenset(), None, None, 0, said)).account()
    result = ran.run.results[-1]
    assert result is not None
    assert (result.status, result.reason) == account.fates["down"]
    assert result.status is Status.PASS or (result.reason is not None and result.reason.text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (59.94, "59.9 s"), (59.96, "1 m 00 s"), (125, "2 m 05 s"), (3599.6, "1 h 00 m"), (7380, "2 h 03 m")],
)
def test_a_time_is_written_as_people_do(seconds: float, text: str) -> None:
    """In the two largest units that say something."""
    assert duration(seconds) == text

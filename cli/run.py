"""crucible plan run: a workflow in, its tasks run, the verdict as exit code."""

import argparse
import os
import time

from crucible.cli.amounts import cost, count, pair, processors, seconds_of, text
from crucible.cli.output import (
    UNREADABLE,
    WRONG_USAGE,
    Usage,
    failed,
    named_input,
    product,
    relative,
    remark,
    remark_printed,
    report_text,
    unreadable,
)
from crucible.compiler.launch import CannotRead, Launch, read
from crucible.schemas.diagnostic import Diagnostic, has_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

    from crucible.cli.pack import Pack
    from crucible.compiler.manifest_model import Manifest
    from crucible.runtime.agent_runner import Agents
    from crucible.runtime.execute import Execution
    from crucible.runtime.injects import Inject
    from crucible.runtime.plan import Plan
    from crucible.runtime.process import Processes
    from crucible.runtime.progress import Display
    from crucible.runtime.records import Records
    from crucible.runtime.runner import Runner
    from crucible.runtime.workspace import Workspace

INTERRUPTED: "Final" = 130


def run(arguments: argparse.Namespace) -> int:
    """Run a workflow; exit code 0 when the run is valid, 1 when not, 130 when somebody stopped it."""
    try:
        command = _Command(arguments)
        launch = command.launch()
    except Usage as error:
        return failed(WRONG_USAGE, str(error), "text", to_stdout=False)
    except CannotRead as error:
        usual = "crucible.toml" if error.path == arguments.manifest else "workflow.star"
        return failed(UNREADABLE, unreadable(error.path, error.reason, usual), "text", to_stdout=False)
    if launch.printed:
        remark_printed(launch.printed)
    injects, faults = command.injects(launch.manifest)
    diagnostics = [*launch.diagnostics, *faults]
    if diagnostics:
        remark(report_text(diagnostics, launch.texts, 2))
    if launch.workflow is None or has_errors(diagnostics):
        return 1
    return command.execute(launch, injects)


class _Command:
    """What the command line asks for, as values."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        """Read the options; raise Usage for one that cannot be."""
        self._source = named_input(arguments.file, arguments.stdin_filename)
        self._is_stdin = self._source.data is not None
        self._manifest: str | None = arguments.manifest
        self._params = tuple(map(pair, arguments.param or ()))
        self._capabilities = frozenset(arguments.cap or ())
        self._agent_cmd = None if arguments.agent_cmd is None else text(arguments.agent_cmd)
        self._max_cost = cost(arguments.max_cost)
        self._max_time = seconds_of(arguments.max_time)
        self._jobs = count("--jobs", arguments.jobs, 1) or processors()
        self._retries = count("--retries", arguments.retries, 0)
        self._state: str | None = arguments.state_dir
        if self._state == "":
            message = "--state-dir names no folder"
            raise Usage(message)
        self._is_json: bool = arguments.json
        self._is_plain: bool = arguments.no_progress
        self._notes: list[str] = []

    def launch(self) -> Launch:
        """Read and check what is run, the manifest as it was at its workspace's base commit where it lies inside."""
        path = relative(self._source.path)
        persist = True if self._agent_cmd is not None else None
        launch = read(path, self._source.data, manifest=self._manifest, params=self._params, persist=persist)
        manifest = launch.manifest
        if manifest is None:
            unused = self.unused()
            self._notes += [] if unused is None else [unused]
            return launch
        from crucible.cli.frozen import frozen

        held = frozen(manifest, self._state_folder(manifest))
        if held.note:
            self._notes.append(held.note)
        if held.data is None:
            return launch
        return read(
            path,
            self._source.data,
            manifest=self._manifest,
            manifest_data=held.data,
            params=self._params,
            persist=persist,
        )

    def _state_folder(self, manifest: "Manifest | None") -> str:
        """Return where the state of the run is kept."""
        if self._state is not None:
            return os.path.abspath(self._state)
        return os.path.join(os.path.abspath(manifest.folder if manifest else self._folder()), "state")

    def _folder(self) -> str:
        return os.curdir if self._is_stdin else os.path.dirname(self._source.path) or os.curdir

    def execute(self, launch: Launch, injects: "list[Inject]") -> int:
        """Run it under the lock of its state directory."""
        from crucible.runtime import leftovers, lock
        from crucible.runtime import state as state_directory
        from crucible.runtime.plan import make_plan
        from crucible.runtime.process import Processes
        from crucible.runtime.records import Records

        assert launch.workflow is not None  # noqa: S101 - narrows: run() has looked
        budgets = [each for each in (self._max_cost, launch.budget) if each is not None]
        plan = make_plan(launch.workflow, self._capabilities, budget=min(budgets, default=None), jobs=self._jobs)
        if self._retries is not None:
            plan = plan._replace(retries=self._retries)
        state = self._state_folder(launch.manifest)
        try:
            state_directory.take(state)
        except state_directory.NotOurs as error:
            return failed(WRONG_USAGE, str(error), "text", to_stdout=False)
        path = os.path.join(state, "lock")
        before = leftovers.holder(path)  # it closes its lock unless it is killed
        try:
            with Processes() as processes, lock.take(path) as taken:
                if before is not None:
                    leftovers.end(before, os.path.join(os.path.realpath(state), "logs"))
                records = Records(state, taken, reuses=processes.leaves_none)
                session = _Session(self, launch, plan, processes, records, state)
                try:
                    return session.run(injects)
                finally:
                    records.close(*session.end)
        except lock.Held as error:
            return failed(WRONG_USAGE, str(error), "text", to_stdout=False)

    @property
    def notes(self) -> list[str]:
        """Return what is to be said before the run begins."""
        return self._notes

    def unused(self) -> str | None:
        """Say that there is a manifest beside the file which nobody named, None when there is none."""
        beside = os.path.join(self._folder(), "crucible.toml")
        if self._manifest is not None or self._is_stdin or not os.path.isfile(beside):
            return None
        name, file = (os.path.normpath(relative(path)) for path in (beside, self._source.path))
        return f"{name} is not used: --file {file} --manifest {name} runs in its workspace, with its agent"

    @property
    def max_time(self) -> float | None:
        """Return after how many seconds what runs is ended."""
        return self._max_time

    def folder(self, manifest: "Manifest | None") -> str:
        """Return the workspace."""
        return os.path.abspath(self._folder()) if manifest is None else self.pack(manifest).workspace

    def injects(self, manifest: "Manifest | None") -> "tuple[list[Inject], list[Diagnostic]]":
        """Return the files that come into the workspace, and what is wrong with their entries."""
        return ([], []) if manifest is None else self.pack(manifest).injects()

    def agents(self, manifest: "Manifest | None") -> "Agents":
        """Return how agents are run."""
        if manifest is not None:
            return self.pack(manifest).agents(self._agent_cmd)
        from crucible.runtime.agent_runner import Agents

        return Agents(self._agent_cmd)

    def pack(self, manifest: "Manifest") -> "Pack":
        """Return the manifest with the folders of the run."""
        from crucible.cli.pack import Pack

        return Pack(manifest, self._state_folder(manifest))

    def display(self, plan: "Plan") -> "Display":
        """Return the live table on a terminal, plain lines anywhere else."""
        from crucible.runtime.progress import Lines, Live

        if self._is_plain or not os.isatty(2) or os.environ.get("TERM", "dumb") == "dumb":
            return Lines(plan.workflow, lambda line: remark(_harmless(line) + "\n"))
        return Live(plan.workflow, _harmless)

    def tell(self, lines: "Iterable[str]", report: str) -> None:
        """Say how the run ended; the product is the report with --json, else what people read."""
        said = "".join(_harmless(line) + "\n" for line in lines)
        if self._is_json:
            remark(said)
            product(report)
        else:
            product(said)


class _Session:
    """One run: what is told and recorded around the execution; ``end`` is its outcome so far, and the reason."""

    def __init__(
        self, command: _Command, launch: Launch, plan: "Plan", processes: "Processes", records: "Records", state: str
    ) -> None:
        self.end = ("error", "a fault of the command itself")
        self._is_over = False
        self._command = command
        self._launch = launch
        self._plan = plan
        self._processes = processes
        self._records = records
        self._state = state
        self._begin = time.monotonic()
        if command.max_time is not None:
            from crucible.runtime.execute import TIME_IS_UP

            processes.limit = (self._begin + command.max_time, TIME_IS_UP)

    def run(self, injects: "list[Inject]") -> int:
        """Begin, make the workspace ready, execute, and say how it ended."""
        from crucible.runtime.records import dollars
        from crucible.runtime.workspace import Refused, Workspace

        launch, plan, records = self._launch, self._plan, self._records
        manifest = launch.manifest
        budget = None if plan.budget is None else dollars(plan.budget)
        gate = manifest.judge.objective if manifest and manifest.judge else "score"
        records.event("start", gate=gate, file=launch.path, ts=round(time.time(), 3))
        workflow = plan.workflow
        records.event(
            "plan_admitted", digest=launch.digest, type=workflow.type, result=workflow.result, tasks=len(workflow.task)
        )
        for note in self._command.notes:
            self._warn(note)
        records.event("budget", spent_usd=0.0, ceiling_usd=budget)
        folder = self._command.folder(manifest)
        environ = os.environ
        try:
            with Workspace(folder, self._state, self._processes, environ, injects) as workspace:
                if manifest is not None and plan.truncation is None and self._processes.caught is None:
                    self._prepare(workspace, manifest)
                self._identify(workspace, injects)
                return self._execute(workspace)
        except Refused as refusal:
            if self._processes.caught is not None:
                self.end = ("stopped", "interrupted")
                return INTERRUPTED
            self.end = ("error", str(refusal))
            records.event("note", level="error", text=str(refusal))
            remark_printed([f"crucible: {refusal}"])
            return 1
        except OSError as error:
            if not self._is_over:
                self.end = ("error", str(error))
            raise

    def _prepare(self, workspace: "Workspace", manifest: "Manifest") -> None:
        from crucible.runtime.records import LOGS
        from crucible.runtime.workspace import Refused

        origin = self._command.pack(manifest).origin()
        try:
            is_new = workspace.prepare(origin, os.path.join(self._state, LOGS))
        except Refused as refusal:
            if self._left() != 0:
                raise
            remark_printed([f"crucible: {refusal}"])  # the run goes on to its end: nothing is dispatched any more
            return
        folder = relative(self._command.folder(manifest))
        if is_new:
            remark_printed([f"prepared {folder}"])
        elif not _lies_in(manifest.folder, workspace.folder):
            text = f"{folder} is used as an earlier run left it; move it away to have it prepared again"
            self._records.event("note", level="info", text=text)
            remark_printed([text])

    def _warn(self, text: str) -> None:
        self._records.event("note", level="warning", text=text)
        remark_printed([f"warning: {text}"])

    def _left(self) -> float | None:
        """Return how many seconds --max-time leaves."""
        limit = self._processes.limit
        return None if limit is None else max(0.0, limit[0] - time.monotonic())

    def _identify(self, workspace: "Workspace", injects: "list[Inject]") -> None:
        """Record by what this run can be compared with others."""
        manifest = self._launch.manifest
        if manifest is not None:
            found = self._command.pack(manifest).identity(injects, workspace.base)
        else:
            from crucible.runtime.identity import identity

            found = identity(base=workspace.base, manifest=self._launch.digest)  # nothing else says what is run
        self._records.event("identity", identity=found)

    def _execute(self, workspace: "Workspace") -> int:
        from crucible.runtime.execute import Execution
        from crucible.runtime.shell_runner import ShellRunner
        from crucible.runtime.surroundings import base

        ours = base(os.environ)
        if self._launch.manifest is not None or any(task.isolation for task in self._plan.workflow.task):
            from crucible.runtime.git import LEADING  # to a repository that is none of these tasks' business

            ours = {name: value for name, value in ours.items() if name not in LEADING}
        shell = ShellRunner(ours)
        runners: dict[str, Runner] = {"command": shell, "evaluate": shell}
        if any(task.kind == "agent" for task in self._plan.workflow.task):
            from crucible.runtime.agent_runner import AgentRunner
            from crucible.schemas.ir import AgentTask

            agents = AgentRunner(self._command.agents(self._launch.manifest), ours, self._records)
            runners["agent"] = agents
            harnesses = [task.harness for task in self._plan.workflow.task if isinstance(task, AgentTask)]
            if self._plan.truncation is None and self._processes.caught is None and os.path.isdir(workspace.folder):
                for lack in agents.lacking(harnesses, workspace.folder, self._processes):
                    self._warn(f"no agent can do a turn here: {lack}")
        isolates = any(task.isolation for task in self._plan.workflow.task)
        if isolates and self._plan.truncation is None and not _is_in_repository(workspace.folder):
            where = relative(workspace.folder)
            self._warn(f"isolated tasks run in clones of the workspace, and {where} is no git repository; run git init "
                       "there, or leave isolated out")  # fmt: skip
        with self._command.display(self._plan) as display:
            execution = Execution(
                self._plan,
                runners,
                workspace,
                self._processes,
                self._records,
                display,
                self._left(),
            )
            execution.run()
        return self._finish(execution)

    def _finish(self, execution: "Execution") -> int:
        """Write the report and the last events, and say how it ended."""
        from crucible.cli.summary import lines, verdict_text
        from crucible.runtime import machine, records
        from crucible.runtime.outcome import Ending, Status
        from crucible.runtime.records import dollars, make_report, outcome_of

        state = execution.state
        verdict = machine.verdict(state)
        report = make_report(
            state.plan.workflow,
            state.results,
            valid=verdict.valid,
            ending=verdict.ending,
            spent=state.spent,
            digest=self._launch.digest,
        )
        self._records.report(report)
        found = [machine.status(state, number) for number in range(len(state.results))]
        counts = {str(status): found.count(status) for status in Status if status in found}
        self._records.event(
            "summary", valid=verdict.valid, exit=str(verdict.ending), tasks=counts, spent_usd=dollars(state.spent)
        )
        self._records.event("finished")
        self.end = (outcome_of(verdict.ending), verdict_text(state, verdict))
        self._is_over = True  # whether anybody can read what is said of it or not
        seconds = time.monotonic() - self._begin
        for problem in self._records.problems:
            remark(f"warning: {_harmless(problem)}\n")
        self._command.tell(lines(state, verdict, seconds, self._records.log), records.report_text(report))
        if verdict.ending is Ending.INTERRUPTED:
            return INTERRUPTED
        return 0 if verdict.valid else 1


def _is_in_repository(folder: str) -> bool:
    parent = os.path.dirname(folder)
    return os.path.lexists(os.path.join(folder, ".git")) or (parent != folder and _is_in_repository(parent))


def _lies_in(path: str, folder: str) -> bool:
    return os.path.join(os.path.realpath(path), "").startswith(os.path.join(folder, ""))


def _harmless(line: str) -> str:
    """Return a line that steers no terminal; nearly every one is so as it is."""
    if line.isprintable():
        return line
    from crucible.compiler.output.report import harmless

    return harmless(line)

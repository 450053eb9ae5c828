"""One process of a scored loop: what is around the loop, from the locks to the report and the exit code."""

import json
import os
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

from crucible.cli.output import Usage, product, relative, remark, remark_printed, report_text
from crucible.cli.summary import money
from crucible.compiler.output.report import harmless
from crucible.schemas.canonical import digest
from crucible.schemas.diagnostic import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crucible.cli.loop_options import Options
    from crucible.cli.pack import Pack
    from crucible.runtime.history import Past
    from crucible.runtime.injects import Inject
    from crucible.runtime.lock import Lock
    from crucible.runtime.loop import Ended, Loop
    from crucible.runtime.plan import Plan
    from crucible.runtime.process import Processes
    from crucible.runtime.progress import Display
    from crucible.runtime.proposer import Method
    from crucible.runtime.records import Records
    from crucible.runtime.site import Site
    from crucible.runtime.workspace import Workspace
    from crucible.runtime.world import World
    from crucible.schemas.ir import Workflow
    from crucible.schemas.span import Span

INTERRUPTED: Final = 130
_MOST_SHOWN: Final = 10  # gaps in a log


class LoopProcess:
    """One process of a run: what is around the loop."""

    def __init__(self, pack: "Pack", workflow: "Workflow", injects: "list[Inject]", options: "Options") -> None:
        self._pack = pack
        self._workflow = workflow
        self._injects = injects
        self._options = options
        self._folder = os.path.realpath(pack.workspace)
        self._end = ("error", "a fault of the command itself")
        self._begin = time.monotonic()
        self._earlier = 0  # the number of the run before

    def run(self) -> int:
        """Run it under the locks of its state directory and its workspace."""
        from crucible.runtime import leftovers, lock
        from crucible.runtime import state as state_directory
        from crucible.runtime.process import Processes

        state = self._pack.state
        try:
            state_directory.take(state)
        except state_directory.NotOurs as error:
            raise Usage(str(error)) from None
        path = os.path.join(state, "lock")
        before = leftovers.holder(path)  # it closes its lock unless it is killed
        try:
            with Processes() as processes, lock.take(path) as taken:
                if before is not None:
                    leftovers.end(before, os.path.join(state, "logs"))
                return self._locked(processes, taken)
        except lock.Held as error:
            raise Usage(str(error)) from None

    def _locked(self, processes: "Processes", taken: "Lock") -> int:
        from crucible.runtime import history
        from crucible.runtime.records import SESSION, Records
        from crucible.runtime.site import InUse

        state = self._pack.state
        past = history.read(state) if self._options.resumes else None
        if self._options.resumes and past is None:
            message = f"there is no run in {relative(state)} to go on with; start one without --resume"
            raise Usage(message)
        if past is None:
            self._earlier = _move_aside(os.path.join(state, SESSION))
        records = Records(state, taken, reuses=processes.leaves_none, goes_on_at=None if past is None else past.size)
        try:
            return self._recorded(processes, records, past)
        except InUse as error:
            self._end = ("error", str(error))
            raise Usage(str(error)) from None
        except OSError as error:
            self._end = ("error", str(error)) if self._end[0] == "error" else self._end
            raise
        finally:
            records.close(*self._end)

    def _recorded(self, processes: "Processes", records: "Records", past: "Past | None") -> int:
        from crucible.runtime.workspace import Refused, Workspace

        held = self._options.over(dict(past.start) if past else {}, self._pack.folder)
        self._told(records, past, held)
        environ = os.environ
        try:
            with Workspace(self._folder, self._pack.state, processes, environ, self._injects) as workspace:
                return self._set_up(workspace, processes, records, past, held)
        except Refused as refusal:
            if processes.caught is not None:
                self._end = ("stopped", "interrupted")
                return INTERRUPTED
            self._end = ("error", str(refusal))
            records.event("note", level="error", text=str(refusal))
            remark_printed([f"crucible: {refusal}"])
            return 1

    def _told(self, records: "Records", past: "Past | None", held: dict[str, Any]) -> None:
        """Write how the run begins, or goes on."""
        from crucible.runtime.records import dollars

        judge = self._pack.manifest.judge
        assert judge is not None  # noqa: S101 - narrows: the lane demands one
        if past is not None:
            number = past.rows[-1].number if past.rows else 0
            records.event("note", level="info", text=f"resumed behind row {number}")
            kind, iteration, detail = past.ended
            records.event("recovery", **{"class": kind}, iter=iteration, detail=detail)
            records.event("budget", spent_usd=dollars(past.spent), ceiling_usd=held["budget"])
            if past.lost_rows:
                numbers = ", ".join(past.lost_rows[:_MOST_SHOWN])
                more = ", …" if past.lost_rows[_MOST_SHOWN:] else ""
                _warn(records, f"the log has no row of iteration {numbers}{more}, so what was kept there is not known")
            return
        records.event(
            "start",
            gate=judge.objective,
            file=self._pack.manifest.path,
            ts=round(time.time(), 3),
            direction=judge.direction,
            digest=digest(self._workflow),
            **held,
        )
        records.event("budget", spent_usd=0.0, ceiling_usd=held["budget"])
        records.event("phase", phase="starting", iter=0)

    def _set_up(
        self,
        workspace: "Workspace",
        processes: "Processes",
        records: "Records",
        past: "Past | None",
        held: dict[str, Any],
    ) -> int:
        from crucible.runtime.records import LOGS
        from crucible.runtime.site import Hold, Site
        from crucible.runtime.workspace import Refused

        world = self._pack.manifest.world
        site = Site(
            self._folder,
            self._pack.state,
            processes,
            os.environ,
            is_own=self._is_own(),
            has_toolbox=self._pack.manifest.agent.toolbox_dir is not None,
            apart=any((world.apply_cmd, world.snapshot_cmd, world.restore_cmd)),
            others=(os.path.realpath(held["steer"]),),
        )
        logs = os.path.join(self._pack.state, LOGS)
        if past is None or (not past.rows and not site.is_known):
            refusal = site.refusal()
            if refusal is not None:
                raise Refused(refusal)
            # To prepare it may mean to make it anew, so who prepares holds the folder that it is in.
            above = os.path.dirname(self._folder)
            with nullcontext() if self._is_own() else Hold(above, "prepares a workspace"):
                if os.path.isdir(self._folder):
                    Hold(self._folder).close()  # before anything is touched
                if site.begin(workspace, self._pack.origin(), logs, self._earlier):
                    remark_printed([f"prepared {relative(self._folder)}"])
                if site.put_by is not None:
                    directory, names = site.put_by
                    text = f"what the run before kept is in {relative(directory)}, as {names}"
                    records.event("note", level="info", text=text)
                    remark_printed([text])
                hold = Hold(self._folder)
        else:
            kept = [row for row in past.rows if row.snapshot and row.decision == "keep"]
            first = [row for row in past.rows if row.snapshot]
            row = kept[-1] if kept else first[0] if first else None
            hold = Hold(self._folder)
            last = past.rows[-1].number if past.rows else -1
            token = row.snapshot if row else None
            try:
                aside = site.go_on(workspace, self._pack.origin(), logs, token, last, died=past.has_died)
            except Refused:
                hold.close()
                raise
            if aside is not None:
                _warn(records, aside)
        with hold:
            self._identify(records, workspace, past)
            return self._loop(site, workspace, processes, records, past, held)

    def _is_own(self) -> bool:
        """Tell whether the workspace is its author's checkout: the manifest lies in it."""
        return os.path.join(os.path.realpath(self._pack.folder), "").startswith(os.path.join(self._folder, ""))

    def _identify(self, records: "Records", workspace: "Workspace", past: "Past | None") -> None:
        from crucible.runtime.identity import whole

        parts = self._pack.identity_parts(self._injects, workspace.base)
        identity = whole(parts)
        records.event("identity", identity=identity, parts=parts)
        if past is None or past.identity in {None, identity}:
            return
        differing = [name for name in parts if past.parts.get(name) != parts[name]] if past.parts else []
        what = f"; what differs: {', '.join(differing)}" if differing else ""
        _warn(records, f"this is not the run that was begun, so scores from before cannot be compared with those from "
                       f"now on{what} (its identity was {past.identity} and is {identity})")  # fmt: skip

    def _loop(
        self,
        site: "Site",
        workspace: "Workspace",
        processes: "Processes",
        records: "Records",
        past: "Past | None",
        held: dict[str, Any],
    ) -> int:
        from crucible.runtime import history
        from crucible.runtime.agent_runner import AgentRunner
        from crucible.runtime.engine_runner import EngineRunner, GateRunner, Operations, WatchingRunner
        from crucible.runtime.git import LEADING
        from crucible.runtime.loop import Loop, Parts, Settings
        from crucible.runtime.passes import Passes
        from crucible.runtime.proposer import AgentProposer
        from crucible.runtime.shell_runner import ShellRunner
        from crucible.runtime.surroundings import base
        from crucible.runtime.world import CommandWorld

        manifest = self._pack.manifest
        judge, commands = manifest.judge, manifest.world
        assert judge is not None  # noqa: S101 - narrows: the lane demands one
        plan = self._plan(held)
        ours = {name: value for name, value in base(os.environ).items() if name not in LEADING}
        world: World = site.world
        if any((commands.apply_cmd, commands.snapshot_cmd, commands.restore_cmd)):
            pair = (commands.snapshot_cmd, commands.restore_cmd)
            world = CommandWorld(
                site.world,
                self._folder,
                os.path.join(self._pack.state, "logs"),
                processes,
                ours,
                pair if pair[0] and pair[1] else None,  # type: ignore[arg-type]
            )
        agents = AgentRunner(
            self._pack.agents(), ours, records, history.conversations(self._pack.state) if past else {}
        )
        homes = (self._folder,)
        proposer = AgentProposer(agents, self._method(), self._folder)
        operations = Operations(judge.measure_cmd, judge.direction, judge.tiebreak_direction, commands.apply_cmd)
        engine = EngineRunner(operations, proposer, world, os.environ, homes, workspace.stock)
        runner = WatchingRunner(
            {
                "agent": agents,
                "command": ShellRunner(ours),
                "evaluate": GateRunner(os.environ, homes, workspace.stock),
                "engine": engine,
            },
            self._folder,
            world,
            Passes(plan).scoring,
        )
        settings = Settings(
            plan, operations, held["iterations"], held["steer"], held["max_time"], commands.restore_cmd is not None
        )
        if past is None:
            lacking = agents.lacking([getattr(task, "harness", None) for task in plan.workflow.task], self._folder,
                                     processes)  # fmt: skip
            if lacking:
                self._end = ("error", lacking[0])
                records.event("note", level="error", text=lacking[0])
                at = manifest.place("agent", "agent_cmd") or manifest.place("agent")
                diagnostics = [Diagnostic("missing-capability", lack, manifest.path, at) for lack in lacking]
                remark(report_text(diagnostics, {manifest.path: manifest.text}, 2))
                return 1
        with self._display(plan) as display:
            parts = Parts(world, workspace, engine, runner, proposer, processes, records, display)
            loop = Loop(settings, self._folder, parts, past)
            if past is not None:
                display.say(_going_on(past, held["iterations"]))
            ended = loop.run()
        return self._finish(loop, ended, records)

    def _plan(self, held: dict[str, Any]) -> "Plan":
        from crucible.runtime.plan import make_plan

        plan = make_plan(
            self._workflow,
            frozenset(held["capabilities"] or ()),
            budget=None if held["budget"] is None else round(held["budget"] * 1_000_000),
            jobs=held["jobs"],
        )
        if plan.truncation is not None:
            raise Usage(f"nothing can run here: {plan.truncation.text}; name what there is with --cap")
        return plan if held["retries"] is None else plan._replace(retries=held["retries"])

    def _method(self) -> "Method":
        """Read what the agents are asked by."""
        from crucible.runtime.proposer import Method

        agent = self._pack.manifest.agent

        def text(name: str | None) -> str | None:
            if name is None:
                return None
            with open(os.path.join(self._pack.folder, name), encoding="utf-8") as file:
                return file.read()

        goal = text(agent.goal_file) if agent.goal is None else agent.goal
        toolbox = None if agent.toolbox_dir is None else os.path.join(self._pack.folder, agent.toolbox_dir)
        return Method(goal or "", text(agent.method_prompt), toolbox)

    def _display(self, plan: "Plan") -> "Display":
        from crucible.runtime.progress import Lines, Live

        if self._options.is_plain or not os.isatty(2) or os.environ.get("TERM", "dumb") == "dumb":
            return Lines(plan.workflow, lambda line: remark(harmless(line) + "\n"))
        return Live(plan.workflow, harmless)

    # The end

    def _finish(self, loop: "Loop", ended: "Ended", records: "Records") -> int:
        """Write the report and the last events, and say how it ended."""
        best, baseline = loop.best, loop.baseline
        report = {
            "version": 1,
            "outcome": ended.outcome,
            "reason": ended.reason,
            "baseline": None if baseline is None else baseline.score,
            "best": None
            if best is None
            else {
                "iter": best.number,
                "score": best.score,
                "tiebreak": best.tiebreak,
                "sha": best.plain.get("sha"),
            },
            "rows": len(loop.rows),
            "spent_usd": loop.spent / 1_000_000,
            "digest": digest(self._workflow),
        }
        text = json.dumps(report, indent=2) + "\n"
        records.put_report(text)
        summary = {name: value for name, value in report.items() if name in {"baseline", "best", "rows", "spent_usd"}}
        records.event("summary", outcome=ended.outcome, **summary)
        records.event("finished")
        self._end = (ended.outcome, ended.reason)
        for problem in records.problems:
            remark(f"warning: {harmless(problem)}\n")
        if ended.task is not None:
            manifest = self._pack.manifest
            place = self._place(ended.task) or manifest.place("judge", "measure_cmd")
            remark(report_text([Diagnostic("gate-unreadable", ended.reason, manifest.path, place)],
                               {manifest.path: manifest.text}, 2))  # fmt: skip
        lines = "".join(f"{harmless(line)}\n" for line in self._lines(loop, ended))
        if self._options.is_json:
            remark(lines)
            product(text)
        else:
            product(lines)
        if ended.outcome == "stopped":
            return INTERRUPTED
        if ended.outcome in {"error", "escalated"}:
            return 1
        return 0 if loop.is_better or ended.outcome == "solved" else 1

    def _place(self, task: str) -> "Span | None":
        """Return where the command of an evaluate task stands in the manifest, None for what is none of its tasks."""
        table = self._pack.manifest.data.get("workflow")
        rows = table.get("task") if isinstance(table, dict) else None
        for number, row in enumerate(rows if isinstance(rows, list) else ()):
            if isinstance(row, dict) and row.get("name") == task:
                return self._pack.manifest.place("workflow", "task", number, "command")
        return None

    def _lines(self, loop: "Loop", ended: "Ended") -> "Iterator[str]":
        from crucible.runtime.progress import duration, sparkline
        from crucible.runtime.results import line as one_line

        yield ""
        for row in loop.rows:
            score = "" if row.score is None else f"{row.score:g}"
            note = one_line(row.note)
            yield f"{row.number:>4}  {row.decision:7}  {score:>12}  {note}".rstrip()
        yield ""
        if loop.rows:
            yield f"scores     {sparkline([row.score for row in loop.rows])}"
        best, baseline = loop.best, loop.baseline
        if baseline is not None and best is not None:
            yield f"baseline   {baseline.score:g}"
            kept = f"iteration {best.number}" if loop.is_better else "nothing better was kept"
            yield f"best       {best.score:g}  ({kept})"
            if ended.outcome != "error":
                yield f"kept in    {relative(self._folder)}; its RESULTS.md has the rows"
        yield f"{ended.outcome}: {ended.reason}"
        yield f"{money(loop.spent)} spent; {duration(time.monotonic() - self._begin)}"


def _going_on(past: "Past", iterations: int) -> str:
    """Say how the run ended before, and what comes next."""
    last = past.rows[-1] if past.rows else None
    if past.outcome is None:
        what = "the baseline" if last is None else f"iteration {last.number + 1}"
        return f"going on with {what}: the run died; {past.ended[2]}"
    is_over = last is not None and (last.number >= iterations or (last.solved and last.decision == "keep"))
    if last is None or is_over:
        return f"the run ended before: {past.outcome}"
    return f"going on with iteration {last.number + 1}; the run before ended: {past.outcome}"


def _warn(records: "Records", text: str) -> None:
    records.event("note", level="warning", text=text)
    remark_printed([f"warning: {text}"])


def _move_aside(path: str) -> int:
    """Keep the log of an earlier run under the next number that is free, and return that."""
    head, ending = os.path.splitext(path)
    number = 1
    while os.path.lexists(f"{head}-{number}{ending}"):
        number += 1
    if os.path.lexists(path):
        os.rename(path, f"{head}-{number}{ending}")
    return number

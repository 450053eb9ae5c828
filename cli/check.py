"""crucible check: a manifest and its pack, everything that is wrong with them, and whether the gate can be trusted."""

import argparse
import json
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from crucible.cli.amounts import seconds_of
from crucible.cli.frozen import as_held, state_of
from crucible.cli.output import (
    UNREADABLE,
    WRONG_USAGE,
    Usage,
    failed,
    number_of_files,
    product,
    remark,
    remark_printed,
    report_text,
    unreadable,
)
from crucible.cli.pack import Pack
from crucible.compiler.check import Checked, check
from crucible.compiler.launch import CannotRead
from crucible.compiler.output.report import harmless, one_json_object, summary, to_json
from crucible.schemas.diagnostic import Diagnostic, Related, Severity, arrange, brief, has_errors

if TYPE_CHECKING:
    from crucible.compiler.manifest_model import Manifest
    from crucible.runtime.injects import Inject
    from crucible.runtime.judge import Measured
    from crucible.runtime.probe import Control, Probed

INTERRUPTED: Final = 130
_TASK_MODE: Final = (
    "TASK MODE: there is no [judge], so nothing measures what the agents do, and nothing decides what is kept"
)


def run(arguments: argparse.Namespace) -> int:
    """Check and report; exit code 1 for an error, 130 when somebody stopped it. Warnings fail nothing."""
    style = "json" if arguments.json else "text"
    try:
        checked = as_held(check, arguments)
        seconds_of(arguments.max_time)
    except Usage as error:
        return failed(WRONG_USAGE, str(error), style, to_stdout=arguments.json)
    except CannotRead as error:
        message = unreadable(error.path, error.reason, "crucible.toml")
        return failed(UNREADABLE, message, style, to_stdout=arguments.json)
    remark_printed(checked.printed)
    found = _Found(checked.diagnostics, None, None)
    if checked.manifest is not None:
        checking = _Checking(checked.manifest, arguments)
        injects, faults = checking.pack.injects()
        told = {each.span and each.span.begin.line for each in checked.diagnostics if each.code == "path-refused"}
        faults = [
            each for each in faults if each.code != "path-refused" or (each.span and each.span.begin.line) not in told
        ]
        found = found._replace(diagnostics=[*checked.diagnostics, *faults])
        may_run = not arguments.static and checked.manifest.judge is not None
        probed = checking.probe(injects) if may_run and not has_errors(found.diagnostics) else None
        if probed is not None and probed.stopped is not None:
            remark(f"crucible: the gate was {harmless(probed.stopped)}\n")
            from crucible.runtime.process import INTERRUPTED as BY_HAND

            return INTERRUPTED if probed.stopped == BY_HAND else 1
        wrong = [] if probed is None else checking.diagnostics(probed)
        identity = None if faults else checking.identity(injects, probed)
        found = _Found([*found.diagnostics, *wrong], probed, identity)
    diagnostics = [each._replace(message=brief(each.message)) for each in arrange(found.diagnostics)]
    found = found._replace(diagnostics=diagnostics)
    if checked.is_task_mode:
        remark(f"warning: {_TASK_MODE}\n")
    if arguments.json:
        product(_as_json(checked, found))
    else:
        if diagnostics:
            remark(report_text(diagnostics, checked.texts, 2))
        product("".join(f"{harmless(line)}\n" for line in _as_text(checked, found, is_static=arguments.static)))
    return 1 if has_errors(diagnostics) else 0


class _Found(NamedTuple):
    """All that is wrong, what came of running the gate, and the identity that a run would have."""

    diagnostics: list[Diagnostic]
    probed: "Probed | None"
    identity: str | None


class _Checking:
    """A pack whose gate is run."""

    def __init__(self, manifest: "Manifest", arguments: argparse.Namespace) -> None:
        self._manifest = manifest
        self._max_time = seconds_of(arguments.max_time)
        self.pack = Pack(manifest, state_of(arguments, manifest))

    def probe(self, injects: "list[Inject]") -> "Probed | None":
        """Run the gate, and its self-test if it has one, in a workspace that is gone afterwards."""
        from crucible.runtime.execute import TIME_IS_UP
        from crucible.runtime.probe import Gate, Site, probe
        from crucible.runtime.process import Processes

        judge = self._manifest.judge
        if judge is None:
            return None
        gate = Gate(judge.measure_cmd, judge.direction)
        if judge.selftest is not None:
            gate = gate._replace(**judge.selftest._asdict())
        site = Site(self.pack.origin(), self.pack.workspace, self.pack.state, injects)
        with Processes() as processes:
            if self._max_time is not None:
                processes.limit = (time.monotonic() + self._max_time, TIME_IS_UP)
            return probe(gate, site, os.environ, processes)

    def diagnostics(self, probed: "Probed") -> list[Diagnostic]:
        """Return what running the gate proved wrong."""
        manifest = self._manifest
        found = []
        for reason, at in ((probed.refusal, ("workspace", "setup_cmd")), (probed.fault, ())):
            if reason is not None:
                origin = next((place for each in (at, ("repo",)) if each and (place := manifest.place(*each))), None)
                related = (Related("the workspace comes from here", manifest.path, origin),) if at and origin else ()
                message = f"the gate gives no reading: {_one_line(reason)}"
                place = manifest.place("judge", "measure_cmd")
                found.append(Diagnostic("gate-unreadable", message, manifest.path, place, related))
        reading = None if probed.measured is None else probed.measured.reading
        if probed.fault is None and reading is not None and not reading.valid and probed.selftest is None:
            note = f": {_one_line(reading.note)}" if reading.note else ""
            message = f"the gate takes the untouched workspace for invalid, so it was never seen to measure{note}"
            place = manifest.place("judge", "measure_cmd")
            found.append(Diagnostic("gate-unreadable", message, manifest.path, place, severity=Severity.WARNING))
        if probed.selftest is not None and not probed.selftest.passed:
            message = _one_line(probed.selftest.why)
            found.append(Diagnostic("selftest-failed", message, manifest.path, manifest.place("judge", "selftest")))
        return found

    def identity(self, injects: "list[Inject]", probed: "Probed | None") -> str | None:
        """Return what the next run could be compared by, None while nobody knows the commit that it begins with."""
        from crucible.runtime.prepare import recorded_base

        base = recorded_base(self.pack.state, self.pack.workspace) or (None if probed is None else probed.base)
        return None if base is None else self.pack.identity(injects, base)


def _one_line(text: str) -> str:
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


# The report


def _as_json(checked: Checked, found: _Found) -> str:
    """Return the report of diagnostics with what else a check knows."""
    report: dict[str, Any] = json.loads(to_json(found.diagnostics, number_of_files(checked.texts)))
    return one_json_object(
        {
            **report,
            "identity": found.identity,
            "task_mode": checked.is_task_mode,
            "probe": None if found.probed is None else _plain_probe(found.probed),
            "exposure": checked.exposure,
        }
    )


def _plain_probe(probed: "Probed") -> dict[str, Any]:
    test = probed.selftest
    return {
        "measured": None if probed.measured is None else _plain_measured(probed.measured),
        "refusal": probed.refusal,
        "selftest": None
        if test is None
        else {
            "passed": test.passed,
            "why": test.why or None,
            "good": _plain_control(test.good),
            "bad": _plain_control(test.bad),
        },
    }


def _plain_control(control: "Control") -> dict[str, Any]:
    return {
        "mean": control.mean,
        "fault": control.fault,
        "measured": [_plain_measured(each) for each in control.measured],
    }


def _plain_measured(measured: "Measured") -> dict[str, Any]:
    reading = measured.reading
    return {
        "reading": None if reading is None else reading._asdict(),
        "fault": measured.fault,
        "seconds": round(measured.seconds, 3),
    }


def _as_text(checked: Checked, found: _Found, *, is_static: bool) -> Iterator[str]:
    """Yield the lines of the report for people."""
    if checked.workflow is not None:
        yield f"workflow: {checked.workflow.type}, {len(checked.workflow.task)} tasks"
    if found.identity is not None:
        yield f"identity: {found.identity}"
    yield from _of_probe(checked, found, is_static=is_static)
    if checked.exposure is not None:
        from crucible.compiler.output.disclosure import lines

        yield from lines(checked.exposure)
    yield summary(found.diagnostics, number_of_files(checked.texts))


def _of_probe(checked: Checked, found: _Found, *, is_static: bool) -> Iterator[str]:
    """Say what the gate read, or why it was not run."""
    manifest, probed = checked.manifest, found.probed
    if manifest is None or manifest.judge is None:
        return
    if probed is None:
        yield f"gate: not run, {'as --static says' if is_static else 'for there are errors'}"
        return
    if probed.measured is not None and probed.measured.reading is not None:
        reading = probed.measured.reading
        score = f"score {reading.score:g}" if reading.score is not None else "no score"
        note = f", {reading.note}" if reading.note else ""
        yield f"gate: {'valid' if reading.valid else 'invalid'}, {score}{note} ({probed.measured.seconds:.1f} s)"
    if probed.selftest is not None:
        means = [
            f"{name} {control.mean:g}"
            for name, control in (("good", probed.selftest.good), ("bad", probed.selftest.bad))
            if control.mean is not None
        ]
        yield f"self-test: {', '.join(['passed' if probed.selftest.passed else 'failed', *means])}"

"""crucible run: an autoresearch pack in, its scored loop run, whether something better was kept as exit code."""

import argparse
import os
from typing import TYPE_CHECKING, Final

from crucible.cli.frozen import as_held, state_of
from crucible.cli.loop_options import Options
from crucible.cli.loop_process import LoopProcess
from crucible.cli.output import (
    UNREADABLE,
    WRONG_USAGE,
    Usage,
    failed,
    remark,
    remark_printed,
    report_text,
    unreadable,
)
from crucible.cli.pack import Pack
from crucible.compiler.analysis.admission import admit
from crucible.compiler.check import Checked, check
from crucible.compiler.launch import CannotRead
from crucible.schemas.default_loop import expanded
from crucible.schemas.diagnostic import Diagnostic, arrange, has_errors

if TYPE_CHECKING:
    from crucible.runtime.injects import Inject

_ORCHESTRATOR: Final = "loop"


def run(arguments: argparse.Namespace) -> int:
    """Run the loop; exit code 0 when something better was kept or it is solved, 1 when not, 130 when it was stopped."""
    try:
        options = Options(arguments)
        checked = as_held(check, arguments)
    except Usage as error:
        return failed(WRONG_USAGE, str(error), "text", to_stdout=False)
    except CannotRead as error:
        message = unreadable(error.path, error.reason, "crucible.toml")
        return failed(UNREADABLE, message, "text", to_stdout=False)
    remark_printed(checked.printed)
    diagnostics = checked.diagnostics
    injects: list[Inject] = []
    pack = None
    if checked.manifest is not None:
        pack = Pack(checked.manifest, os.path.realpath(state_of(arguments, checked.manifest)))
        injects, faults = pack.injects()
        diagnostics = arrange([*diagnostics, *_lacking(checked), *faults])
    if diagnostics:
        remark(report_text(diagnostics, checked.texts, 2))
    if pack is None or checked.workflow is None or has_errors(diagnostics):
        return 1
    try:
        return LoopProcess(pack, expanded(checked.workflow), injects, options).run()
    except Usage as error:
        return failed(WRONG_USAGE, str(error), "text", to_stdout=False)


def _lacking(checked: Checked) -> list[Diagnostic]:
    """Find what a manifest asks for that this loop does not have; nothing of it is passed over."""
    manifest = checked.manifest
    assert manifest is not None  # noqa: S101 - narrows
    found = [
        (bool(manifest.search.wide), ("search", "wide"), "there is no wide round here; leave [search].wide out"),
        (
            manifest.agent.backend == "openshell",
            ("agent", "backend"),
            'there is no backend "openshell" here; use "local" or "command"',
        ),
        (
            manifest.agent.broker.enabled,
            ("agent", "broker", "enabled"),
            "there is no broker here; leave [agent.broker].enabled out",
        ),
        ("component" in manifest.data, ("component",), "composite manifests are not run here; leave [[component]] out"),
    ]
    lacking = [
        Diagnostic("missing-capability", f"the scored loop does not have this: {message}", manifest.path,
                   manifest.place(*at))
        for is_asked, at, message in found
        if is_asked
    ]  # fmt: skip
    if checked.workflow is not None:
        missing = admit(checked.workflow, _ORCHESTRATOR, persist=True)
        lacking += [Diagnostic(each.code, each.message, manifest.path) for each in missing]
    elif not has_errors(checked.diagnostics):
        message = "there is no [judge] and no [workflow], so there is no loop to run"
        lacking.append(Diagnostic("missing-key", message, manifest.path))
    return lacking

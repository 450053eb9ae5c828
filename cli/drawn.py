"""What `plan show` and `plan render` have in common: a workflow from whatever --file names, and a picture to a file."""

import argparse
import os
from typing import NamedTuple

from crucible.cli.output import (
    Usage,
    named_input,
    number_of_files,
    product,
    relative,
    remark,
    remark_printed,
    report_text,
)
from crucible.compiler.facts import ManifestFacts
from crucible.compiler.pipeline import Compiled, Options, compile_file, compile_source
from crucible.schemas.diagnostic import has_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from crucible.compiler.output.picture import Drawing
    from crucible.schemas.ir import Workflow

STDOUT = "-"
ENDINGS = ("png", "svg", "dot", "json")
_DEFAULT_LOOP = b"default_autoresearch([])\n"


class Loaded(NamedTuple):
    """A workflow to show: the path it was read from, the embedded prompt files by task name."""

    path: str
    workflow: "Workflow"
    prompts: dict[str, str]


def load(arguments: argparse.Namespace, style: str) -> Loaded | None:
    """Compile or read the workflow; None when it has errors, which are then reported.

    Raises Usage and Unreadable as ``named_input`` and the compiler do.
    """
    from crucible.compiler.output.gist import prompt_files

    source = named_input(arguments.file, arguments.stdin_filename)
    path = relative(source.path)
    folder = os.path.dirname(path)
    options = Options(judge_direction=ManifestFacts(os.path.join(folder, "crucible.toml")).judge_direction)
    compiled = compile_file(path, options) if source.data is None else compile_source(source.data, path, options)
    beside = os.path.join(folder, "workflow.star")
    if path.endswith(".toml") and _has_no_workflow(compiled) and not os.path.lexists(beside):
        compiled = compile_source(_DEFAULT_LOOP, beside, options)  # language.md §7
    if compiled.printed and style != "json":
        remark_printed(compiled.printed)
    if style == "json" and (compiled.diagnostics or compiled.workflow is None):
        from crucible.compiler.output.report import to_json

        remark(to_json(compiled.diagnostics, number_of_files(compiled.texts)))
    elif compiled.diagnostics:
        remark(report_text(compiled.diagnostics, compiled.texts, 2))
    if compiled.workflow is None or has_errors(compiled.diagnostics):
        return None
    return Loaded(path, compiled.workflow, prompt_files(compiled.workflow, compiled.prompt_texts))


def _has_no_workflow(compiled: Compiled) -> bool:
    return [(each.code, each.span) for each in compiled.diagnostics] == [("missing-key", None)]


def check_output(path: str | None, style: str) -> None:
    """Raise Usage for a --output that no picture can go to, or that is called what it is not."""
    if path == "":
        message = "--output needs the name of a file, or - for standard output"
        raise Usage(message)
    if path in (None, STDOUT) and style == "png" and os.isatty(1):
        message = "a terminal shows no png; name a file with --output"
        raise Usage(message)
    ending = os.path.splitext(path or "")[1].lower().removeprefix(".")
    if ending in ENDINGS and ending != style:
        message = f"--output {path}: what is written is {style}, which the name should say"
        raise Usage(message)


def write(path: str | None, data: bytes) -> int:
    """Write to standard output, or a file whole or not at all; exit code 2 when it is a link that leaves its directory.

    None stands for standard output, and so does -.
    """
    from crucible.compiler.write import Outcome, replace

    if path in (None, STDOUT):
        product(data)
        return 0
    outcome = replace(path, data)
    if outcome is Outcome.OUTSIDE:
        remark(f"crucible: {path}: {outcome.value}\n")
        return 2
    return 0


def warn(drawing: "Drawing") -> None:
    """Say what a reader of the picture should know."""
    remark("".join(f"warning: {note}\n" for note in drawing.notes))

"""crucible plan render: the picture for a pull request, beside the source."""

import argparse
import os

from crucible.cli.drawn import ENDINGS, STDOUT, check_output, load, warn, write
from crucible.cli.output import UNREADABLE, WRONG_USAGE, Usage, failed, relative, remark, unreadable
from crucible.compiler.pipeline import Unreadable

_NAME = "WORKFLOW.png"


def run(arguments: argparse.Namespace) -> int:
    """Draw the workflow into a file; nothing is written when anything is wrong."""
    try:
        style = _style(arguments.output)
        loaded = load(arguments, "text")
    except Usage as error:
        return failed(WRONG_USAGE, str(error), "text", to_stdout=False)
    except Unreadable as error:
        return failed(UNREADABLE, unreadable(arguments.file, error), "text", to_stdout=False)
    if loaded is None:
        return 1
    from crucible.compiler.output.drawing import Undrawable
    from crucible.compiler.output.picture import draw, to_dot

    output = os.path.join(os.path.dirname(loaded.path), _NAME) if arguments.output is None else arguments.output
    if style == "dot":
        return _written(output, to_dot(loaded.workflow, prompts=loaded.prompts).encode())
    try:
        drawing = draw(loaded.workflow, style, prompts=loaded.prompts)
    except Undrawable as error:
        remark(f"crucible: {error}\n")
        return 2
    warn(drawing)
    return _written(output, drawing.data)


def _written(output: str, data: bytes) -> int:
    """Write the picture and say where; exit code 2 when it cannot go there."""
    status = write(output, data)
    if status == 0 and output != STDOUT:
        remark(f"wrote {relative(output)}\n")
    return status


def _style(output: str | None) -> str:
    """Return the format that a file's name ends in; raise Usage for another one."""
    if output is None:
        return "png"
    ending = os.path.splitext(output)[1].lower().removeprefix(".") if output != STDOUT else "png"
    if output and (ending not in ENDINGS or ending == "json"):
        message = f"--output {output}: a picture is .png, .svg or .dot"
        raise Usage(message)
    check_output(output, ending)
    return ending

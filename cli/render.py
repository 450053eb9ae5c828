"""crucible plan render: the picture for a pull request, beside the source."""

import argparse
import os

from crucible.cli.drawn import load, warn, write
from crucible.cli.output import UNREADABLE, WRONG_USAGE, Usage, failed, remark, unreadable
from crucible.compiler.pipeline import Unreadable

_NAME = "WORKFLOW.png"


def run(arguments: argparse.Namespace) -> int:
    """Draw the workflow into a file; nothing is written when anything is wrong."""
    try:
        loaded = load(arguments, "text")
    except Usage as error:
        return failed(WRONG_USAGE, str(error), "text", to_stdout=False)
    except Unreadable as error:
        return failed(UNREADABLE, unreadable(arguments.file, error), "text", to_stdout=False)
    if loaded is None:
        return 1
    from crucible.compiler.output.drawing import Undrawable
    from crucible.compiler.output.picture import draw

    output = arguments.output or os.path.join(os.path.dirname(loaded.path), _NAME)
    try:
        drawing = draw(loaded.workflow, "svg" if output.endswith(".svg") else "png", prompts=loaded.prompts)
    except Undrawable as error:
        remark(f"crucible: {error}\n")
        return 2
    warn(drawing)
    return write(output, drawing.data)

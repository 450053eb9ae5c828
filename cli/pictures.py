"""Pictures into a folder: all are drawn before the first is written, and each is written whole or not at all."""

import errno
import os
import signal
from typing import TYPE_CHECKING, NamedTuple

from crucible.cli.output import SYSTEM_ERROR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crucible.compiler.output.picture import Marks
    from crucible.schemas.ir import Workflow


class Problem(NamedTuple):
    """Why there are no pictures: they could not be drawn, or else not be written."""

    code: str
    message: str
    is_drawn: bool = True


def end_on_signals() -> None:
    """Have a signal that ends the process unwind it, so that no temporary folder is left."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


def _end(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def render(folder: str, pictures: "Mapping[str, tuple[Workflow, Marks]]") -> Problem | None:
    """Draw workflows into the PNG files of a folder, which is made; return what went wrong, if anything did."""
    from crucible.compiler.output.picture import Undrawable, draw
    from crucible.compiler.write import Outcome, replace

    if os.path.lexists(folder) and not os.path.isdir(folder):
        return Problem(SYSTEM_ERROR, f"{folder}: {os.strerror(errno.ENOTDIR)}")
    try:
        drawn = {name: draw(workflow, "png", marks).data for name, (workflow, marks) in pictures.items()}
        os.makedirs(folder, exist_ok=True)
        for name, data in drawn.items():
            path = os.path.join(folder, name)
            if replace(path, data) is Outcome.OUTSIDE:
                return Problem(SYSTEM_ERROR, f"{path}: {Outcome.OUTSIDE.value}")
    except Undrawable as error:
        return Problem(SYSTEM_ERROR, str(error), is_drawn=False)
    except OSError as error:
        return Problem(SYSTEM_ERROR, f"{os.fsdecode(error.filename or folder)}: {error.strerror or error}")
    return None

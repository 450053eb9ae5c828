"""The state directory of a run: made so that git does not see it, made again where a task has removed it.

A folder that is somebody else's is never written to: ours has a .gitignore that leaves out everything.
"""

import os
import time
from contextlib import suppress
from typing import Final

from crucible.runtime import careful

_IGNORE: Final = ".gitignore"
_ALL: Final = b"*"
_LOOKS: Final = 3


class NotOurs(Exception):
    """The folder has files and is no state directory; the text says what to do."""


def take(folder: str) -> None:
    """Make a state directory, or take one that a run has left; raises NotOurs and OSError."""
    for _ in range(_LOOKS):
        if _is_ours(folder):
            make(folder)
            return
        time.sleep(0.02)  # another run may be making it just now
    message = (
        f"{folder} has files and is no state directory of ours, so nothing is written there; name another folder "
        f'with --state-dir, or, if what it has may be lost, put a file {_IGNORE} with the line "*" in it'
    )
    raise NotOurs(message)


def make(folder: str) -> None:
    """Make a state directory that git does not see."""
    os.makedirs(folder, exist_ok=True)
    with suppress(FileExistsError), open(os.path.join(folder, _IGNORE), "x", encoding="ascii") as file:
        file.write("*\n")


def leave(folder: str) -> None:
    """Remove a state directory that holds nothing; one that holds anything stays."""
    with suppress(OSError):
        if os.listdir(folder) in ([], [_IGNORE]):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, _IGNORE))
            os.rmdir(folder)


def _is_ours(folder: str) -> bool:
    """Tell whether a folder is a state directory, or may become one."""
    try:
        return not os.listdir(folder) or careful.read(os.path.join(folder, _IGNORE), 64).strip() == _ALL
    except FileNotFoundError:
        return not os.path.lexists(folder)
    except careful.NoFile:
        return False

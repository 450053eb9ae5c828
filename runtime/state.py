"""The state directory of a run: made so that git does not see it, made again where a task has removed it.

A folder that is somebody else's is never written to: ours has a .gitignore that leaves out everything.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from crucible.runtime import careful

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_IGNORE: Final = ".gitignore"
_BORROWED: Final = ".borrowed"
_NEW: Final = "new"
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


def borrow(folder: str) -> None:
    """Take a state directory that ``leave`` makes again what it was; raises NotOurs and OSError."""
    is_new = not os.path.lexists(folder)
    is_marked = not is_new and os.path.lexists(os.path.join(folder, _IGNORE))
    take(folder)
    if not is_marked:
        with suppress(FileExistsError), open(os.path.join(folder, _BORROWED), "x", encoding="ascii") as file:
            file.write(_NEW if is_new else "")


def leave(folder: str) -> None:
    """Take away what ``borrow`` made, once there is nothing else; what was there stays."""
    with suppress(OSError):
        if _BORROWED in (names := os.listdir(folder)) and {*names} <= {_BORROWED, _IGNORE}:
            is_new = careful.read(os.path.join(folder, _BORROWED), len(_NEW)) == _NEW.encode()
            for name in names:
                os.unlink(os.path.join(folder, name))
            if is_new:
                os.rmdir(folder)


def _is_ours(folder: str) -> bool:
    """Tell whether a folder is a state directory, or may become one."""
    try:
        return not os.listdir(folder) or careful.read(os.path.join(folder, _IGNORE), 64).strip() == _ALL
    except FileNotFoundError:
        return not os.path.lexists(folder)
    except careful.NoFile:
        return False

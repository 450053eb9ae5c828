"""What a run that was killed left running: its processes go on, in folders that the next run needs.

Every child of a run carries the run's mark in its environment, and writes to a log of its run. Where the system
shows the environments and the open files of others (Linux), the processes of a run that is dead are told from all
others by these, and ended: by one of them alone, too, for a program may clear its environment or close its files.
"""

from __future__ import annotations

import os
import signal
import stat
import time
from contextlib import suppress

from crucible.runtime import careful
from crucible.runtime.lock import lives
from crucible.runtime.process import MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_LOOKS: Final = 50
_EMPTY_LOOKS: Final = 2  # a process that just becomes another program has no environment for a moment
_PAUSE: Final = 0.02  # seconds between two looks
_LARGEST: Final = (1 << 31) - 1  # number of a process


def holder(path: str) -> int | None:
    """Return the process that a lock file names, None when there is none."""
    try:
        number = int(careful.read(path, 20))
    except (OSError, ValueError):
        return None
    return number if 1 < number <= _LARGEST else None


def end(run: int, logs: str | None = None) -> None:
    """Kill what the run of a process left, unless that process lives; ``logs`` is the folder of its logs."""
    empty = 0
    for _ in range(_LOOKS):  # one may begin another while we look
        if lives(run):
            break
        empty = 0 if _kill(f"{MARK}={run}.".encode(), logs) else empty + 1
        if empty == _EMPTY_LOOKS:
            break
        time.sleep(_PAUSE)


def _kill(start: bytes, logs: str | None) -> int:
    """Kill the processes that have a variable which begins so, or write to one of the logs; return how many."""
    ended = 0
    try:
        entries = os.listdir("/proc")
    except OSError:
        return 0
    for entry in entries:
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        with suppress(OSError):
            with open(f"/proc/{entry}/environ", "rb") as file:
                is_of_run = any(variable.startswith(start) for variable in file.read().split(b"\0"))
            if is_of_run or (logs is not None and _writes_below(entry, os.path.join(logs, ""))):
                os.kill(int(entry), signal.SIGKILL)
                ended += 1
    return ended


def _writes_below(process: str, folder: str) -> bool:
    """Tell whether a process has a file below a folder open for writing; who reads one is somebody who looks."""
    for name in os.listdir(f"/proc/{process}/fd"):
        with suppress(OSError):
            is_below = os.readlink(f"/proc/{process}/fd/{name}").startswith(folder)
            # The owner's write bit of such a link tells how the file was opened.
            if is_below and os.lstat(f"/proc/{process}/fd/{name}").st_mode & stat.S_IWUSR:
                return True
    return False

"""What a run that was killed left running: its processes go on, in folders that the next run needs.

Every child of a run carries the run's mark in its environment. Where the system shows the environments of
others (Linux), the processes of a run that is dead are told from all others by it, and ended.
"""

import os
import signal
from contextlib import suppress
from typing import Final

from crucible.runtime import careful
from crucible.runtime.process import MARK

_LOOKS: Final = 20
_LARGEST: Final = (1 << 31) - 1  # number of a process


def holder(path: str) -> int | None:
    """Return the process that a lock file names, None when there is none."""
    try:
        number = int(careful.read(path, 20))
    except (OSError, ValueError):
        return None
    return number if 1 < number <= _LARGEST else None


def end(run: int) -> None:
    """Kill what the run of a process left, unless that process lives."""
    for _ in range(_LOOKS):  # one may begin another while we look
        if _lives(run) or not _kill(f"{MARK}={run}.".encode()):
            break


def _kill(start: bytes) -> int:
    """Kill the processes that have a variable which begins so; return how many there were."""
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
            if is_of_run:
                os.kill(int(entry), signal.SIGKILL)
                ended += 1
    return ended


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True

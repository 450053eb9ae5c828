"""What the child of an attempt finds, its environment and the file with its inputs, and what it means that it got none.

Shell commands and agents get the same, so it stands apart from both.
"""

from __future__ import annotations

import errno
import json
import os

from crucible.runtime import careful
from crucible.runtime.outcome import Attempt, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

    from crucible.runtime.runner import Job

IN_ENVIRONMENT: Final = 96 << 10  # bytes: the system refuses a variable of 128 KiB, its name included
# Colour where nobody looks, and what a run around ours says of its own task.
_UNSET: Final = frozenset(
    {
        "FORCE_COLOR",
        "CLICOLOR_FORCE",
        "CRUCIBLE_INPUTS",
        "CRUCIBLE_PROMPT",
        "CRUCIBLE_PROMPT_FILE",
        "CRUCIBLE_HARNESS",
        "CRUCIBLE_MODEL",
        "CRUCIBLE_EFFORT",
        "CRUCIBLE_SESSION",
        "CRUCIBLE_CONVERSATION",
        "CRUCIBLE_COST_FILE",
    }
)
_PASSING: Final = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
_write = json.JSONEncoder(ensure_ascii=False).encode


def base(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the part of our environment that every child gets."""
    return {name: value for name, value in environ.items() if name not in _UNSET}


def inputs_json(job: Job) -> bytes:
    """Write the inputs of a job as one line of JSON: the outputs by task name, and the parameters under ``params``."""
    # A lone surrogate has no UTF-8, but its escape is JSON.
    return _write({**job.inputs, "params": dict(job.params)}).encode("utf-8", "backslashreplace")


def environment(job: Job, base: Mapping[str, str]) -> dict[str, str]:
    """Write the inputs file of a job, and return the environment of its child.

    The inputs stand in CRUCIBLE_INPUTS as well when they are short enough. Raises OSError when the file
    cannot be written.
    """
    inputs = inputs_json(job)
    careful.write(job.logs.inputs, inputs + b"\n")
    made = {
        **base,
        **job.variables,
        "CRUCIBLE_TASK": encodable(job.task.name),
        "CRUCIBLE_ATTEMPT": str(job.attempt),
        "CRUCIBLE_INPUTS_FILE": job.logs.inputs,
    }
    if len(inputs) <= IN_ENVIRONMENT:
        made["CRUCIBLE_INPUTS"] = os.fsdecode(inputs)
    return made


def encodable(text: str) -> str:
    """Return a text as arguments and variables take it, so that the child gets its UTF-8 in any locale."""
    return os.fsdecode(text.encode("utf-8", "surrogateescape"))


def refusal(fault: OSError, job: Job) -> Attempt:
    """Return what becomes of an attempt whose child could not be started.

    It may be tried again when the system had no room for one more process, or no shell; never when the
    workspace, the disk or the command is at fault.
    """
    reason = fault.strerror or str(fault)
    if fault.errno == errno.E2BIG:
        return Attempt(Status.FAIL, note="the command with its environment is larger than the system allows")
    if fault.errno == errno.EINVAL:
        return Attempt(Status.FAIL, note=f"the system takes no such command or environment: {reason}")
    if fault.errno not in _PASSING and fault.filename == job.workspace:
        return Attempt(Status.FAIL, note=f"the workspace cannot be entered: {reason}")
    if fault.errno not in _PASSING and fault.filename in job.logs:
        return Attempt(Status.FAIL, note=f"{os.path.basename(fault.filename)} cannot be written: {reason}")
    name = "the process" if fault.errno in _PASSING else fault.filename
    return Attempt(Status.TRANSPORT, note=f"{name} cannot be started: {reason}", transport="command")

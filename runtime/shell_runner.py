"""Runs command and evaluate tasks: one shell per attempt, its exit and its last line judged (runtime.md §3).

In: a job. Out: an attempt. What the child printed is read from its log when it has ended.
"""

from __future__ import annotations

import signal

from crucible.runtime import last_line
from crucible.runtime.outcome import Attempt, Status
from crucible.runtime.process import Command, Exit
from crucible.runtime.surroundings import encodable, environment, refusal
from crucible.schemas.ir import CommandTask, EvaluateTask, is_finite, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

    from crucible.runtime.last_line import LastLine
    from crucible.runtime.runner import Job, Turn

SHELL: Final = "/bin/sh"
NOT_RUN: Final = {126: "it cannot be executed", 127: "it was not found"}
_SIGNALLED: Final = 128  # a shell reports the signal n of what it ran as 128 + n


class ShellRunner:
    """Attempts of tasks with a command; ``base`` is the environment that all of them get (surroundings.base)."""

    def __init__(self, base: Mapping[str, str]) -> None:
        self._base = base

    def attempt(self, job: Job) -> Turn:
        """Return the turn of one attempt: one process, and the judgement on it."""
        task = job.task
        if not isinstance(task, (CommandTask, EvaluateTask)):
            message = f"a task of kind {task.kind} has no command"
            raise TypeError(message)
        try:
            variables = environment(job, self._base)
        except OSError as fault:
            return refusal(fault, job)
        argv = (SHELL, "-c", encodable(task.command))
        exit_ = yield Command(argv, variables, job.workspace, job.logs.out, job.logs.err)
        if exit_.fault is not None:
            return refusal(exit_.fault, job)
        note = exit_note(exit_, job.logs.err)
        if note:
            return Attempt(Status.FAIL, seconds=exit_.seconds, note=note)
        line = last_line.read(job.logs.out, exit_.size)
        judged = graded(task, line) if isinstance(task, EvaluateTask) else _taken(line)
        return judged._replace(seconds=exit_.seconds)


def exit_note(exit_: Exit, err: str) -> str:
    """Say in a note why a process failed, with the end of its stderr; "" when its exit is no reason.

    The first line says it all; what could not be run and what died by a signal has more of them.
    """
    if exit_.cause is not None:
        return exit_.cause
    if exit_.signal is not None:
        return "\n".join(filter(None, (f"ended by {_name(exit_.signal)}", last_line.tail(err))))
    code = exit_.code
    if not code:
        return ""
    if code in NOT_RUN:
        return "\n".join(filter(None, (f"exit {code}: {NOT_RUN[code]}", last_line.tail(err))))
    reported = f" ({_name(code - _SIGNALLED)})" if code - _SIGNALLED in signal.valid_signals() else ""
    said = last_line.tail(err, 1)
    return f"exit {code}{reported}" + (f": {said}" if said else "")


def graded(task: EvaluateTask, line: LastLine) -> Attempt:
    """Judge the last line of a measurement: its own ``pass`` can veto, the threshold decides."""
    value = line.value
    if line.fault is not None:
        return _fail(f"an evaluate prints a JSON object on its last line: {line.fault}")
    if not isinstance(value, dict):
        return _fail(f"an evaluate prints a JSON object on its last line, not {kind_of(value)}")
    passes = value.get("pass", True)
    if not isinstance(passes, bool):
        return _fail(f"pass is true or false, not {kind_of(passes)}")
    note = line.note if passes else "pass is false"
    if task.threshold is not None:
        score = value.get("score")
        if "score" not in value:
            return _fail("there is no score to hold against the threshold")
        if isinstance(score, bool) or not isinstance(score, (int, float)):
            return _fail(f"score is a number, not {kind_of(score)}")
        if not is_finite(score):
            return _fail("score is not finite")
        is_lower = task.direction == "lower"
        if score > task.threshold if is_lower else score < task.threshold:
            passes = False
            note = f"score {score} is {'above' if is_lower else 'below'} the threshold {task.threshold}"
    status = Status.PASS if passes else Status.FAIL
    return Attempt(status, output={**value, "pass": passes}, note=note)


def _taken(line: LastLine) -> Attempt:
    """Take the last line of a command as its output; one that prints nothing has none."""
    if line.fault is None or line.fault == last_line.EMPTY:
        return Attempt(Status.PASS, output=line.value, note=line.note)
    return _fail(line.fault)


def _fail(note: str) -> Attempt:
    return Attempt(Status.FAIL, note=note)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

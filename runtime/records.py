"""What a run leaves under its state directory: session.jsonl, report.json, logs, the ledger of conversations.

In goes what happened, out come files that a reader can trust at any moment: an event is one line and one
write, everything else is put beside itself and renamed. Nothing is decided here (runtime.md §6).
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from stat import S_IRUSR, S_ISREG, S_IWUSR

from crucible.runtime import careful, state
from crucible.runtime.outcome import Ending, Result, Status
from crucible.schemas.hashes import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from crucible.runtime.lock import Lock
    from crucible.schemas.ir import Task, Workflow

VERSION: Final = 1
SESSION, REPORT, LOGS, LEDGER = "session.jsonl", "report.json", "logs", "conversations.json"
ENDINGS: Final = (".out", ".err")
_EMPTY: Final = ".empty"
_INPUTS: Final = "inputs-"
_MINE: Final = S_IRUSR | S_IWUSR
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_SLUG: Final = 40
_BLOCK: Final = 1 << 20
_SESSION_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_OUTCOMES: Final = {
    Ending.COMPLETED: "finished",
    Ending.BUDGET_EXCEEDED: "budget",
    Ending.WALL_CLOCK: "budget",
    Ending.INTERRUPTED: "stopped",
}
_ended: Final = json.JSONEncoder(separators=(",", ":")).encode  # ASCII: no reader takes U+2028 for the end of a line
_written: Final = json.JSONEncoder(ensure_ascii=False).encode
_sorted: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class Records:
    """The records of one run, begun anew in a folder that is there; raises OSError where that cannot be.

    ``close`` writes the last event, once. Whoever holds the records closes them, whatever happens.
    """

    def __init__(
        self, folder: str, lock: Lock | None = None, *, reuses: bool = False, goes_on_at: int | None = None
    ) -> None:
        """``reuses`` tells whether nobody can write into a log any more when its attempt is over.

        Records that go on keep the events in so many first bytes of the log, and what earlier processes printed.
        """
        self._lock = lock
        self.problems: list[str] = []  # what could not be written, each once
        self._folder = folder
        self._is_open = True
        self._reuses = reuses
        self._spare: list[str] = []  # logs that nothing was written to
        self._empty = os.path.join(folder, _EMPTY)
        self._iteration: int | None = None
        self._part = ""
        kept = () if goes_on_at is None else (SESSION, LEDGER)
        for name in os.listdir(folder):
            if (name in _ANEW and name not in kept) or name.startswith(_INPUTS):
                _remove(os.path.join(folder, name))
        logs = os.path.join(folder, LOGS)
        if os.path.islink(logs) or not os.path.isdir(logs):
            _remove(logs)
        os.makedirs(logs, exist_ok=True)
        self._logs = logs
        self._begun = os.lstat(logs)
        self._is_link = os.path.islink(folder)
        for name in os.listdir(logs) if goes_on_at is None else ():
            _remove(os.path.join(logs, name))
        if reuses:
            os.close(os.open(self._empty, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444))
        path = os.path.join(folder, SESSION)
        if goes_on_at is None:
            self._session = os.open(path, _SESSION_FLAGS, 0o666)
        else:
            self._session = careful.opener(path, os.O_RDWR | os.O_APPEND)
            os.ftruncate(self._session, goes_on_at)

    def enter(self, iteration: int, part: str) -> None:
        """Note which pass over the graph the tasks belong to from now on; its logs have a folder of their own."""
        self._iteration, self._part = iteration, part
        self._spare.clear()

    def event(self, kind: str, **facts: Any) -> bool:
        """Write one event, whole or not at all, and tell whether it is there; those after the last one are dropped."""
        if not self._is_open:
            return False
        size = -1
        try:
            size = os.fstat(self._session).st_size
            _write(self._session, _ended({"v": VERSION, "kind": kind, **facts}).encode() + b"\n")
        except OSError as error:
            self._problem(SESSION, error)
            with suppress(OSError):
                os.ftruncate(self._session, size)
            return False
        return True

    def stand(self) -> None:
        """Make the folder again where a task has removed it; the events so far are not lost.

        Raises lock.Held where another run has taken it meanwhile.
        """
        try:
            is_there = os.path.samestat(os.lstat(self._logs), self._begun)
        except OSError:
            is_there = False
        if not is_there:
            self._make_again()
        if self._part:
            with suppress(OSError):  # a log that cannot be made says so itself
                os.makedirs(os.path.join(self._logs, self._part), exist_ok=True)
        if self._lock is not None:
            with suppress(OSError):
                self._lock.stand()

    def _make_again(self) -> None:
        try:
            # Where a link stands now, its target is somebody else's.
            for path in (self._folder, self._logs):
                if os.path.islink(path) and (path == self._logs or not self._is_link):
                    os.unlink(path)
            state.make(self._folder)
            os.makedirs(self._logs, exist_ok=True)
            self._begun = os.lstat(self._logs)
            self._stand_session()
        except OSError as error:
            self._problem("", error)
            return
        text = f"a task removed {self._folder}, which was made again; the logs of earlier tasks are gone"
        if text not in self.problems:
            self.problems.append(text)
            self.event("note", level="warning", text=text)

    def _stand_session(self) -> None:
        """Have the events in the folder again, if they are not there any more."""
        path = os.path.join(self._folder, SESSION)
        try:
            if os.path.samestat(os.lstat(path), os.fstat(self._session)):
                return
            os.unlink(path)
        except FileNotFoundError:
            pass
        new = os.open(path, _SESSION_FLAGS, 0o666)
        try:
            at = 0
            while data := os.pread(self._session, _BLOCK, at):
                _write(new, data)
                at += len(data)
        except BaseException:
            os.close(new)
            raise
        os.close(self._session)
        self._session = new

    def _problem(self, name: str, error: OSError) -> None:
        """Keep what could not be written; a run does not end for it."""
        text = f"{os.path.join(self._folder, name)} cannot be written: {error.strerror or error}"
        if text not in self.problems:
            self.problems.append(text)

    @property
    def tells_what_begins(self) -> bool:
        """Tell whether it is written when a task begins, which has its place behind the results so far."""
        return self._iteration is not None

    def task_begun(self, task: Task, attempt: int) -> None:
        """Write that a task of an iteration is attempted: who goes on after a crash sees where it was."""
        if self.tells_what_begins:
            self.event(
                "task_begun",
                name=task.name,
                task_kind=task.kind,
                attempt=attempt,
                iter=self._iteration,
                **({"op": task.operation} if task.operation else {}),
            )

    def task_result(self, task: Task, result: Result) -> None:
        """Write what became of a task."""
        facts = {"name": task.name, "task_kind": task.kind, **_facts(result)}
        if self._iteration is not None:
            facts["iter"] = self._iteration
        if "output" in facts:
            facts["output_digest"] = _digest(facts.pop("output"))
        self.event("task_result", **facts)

    def report(self, report: Mapping[str, Any]) -> None:
        """Write the report of the run."""
        self.stand()
        try:
            self._stand_session()
        except OSError as error:
            self._problem(SESSION, error)
        self._put(REPORT, report_text(report).encode(), 0o666)

    def put_report(self, text: str) -> None:
        """Write a report that is text already."""
        self.stand()
        self._put(REPORT, text.encode(errors="backslashreplace"), 0o666)

    def ledger(self, conversations: Mapping[str, Mapping[str, Any]]) -> None:
        """Write the cursors and turns of all conversations, for nobody else to read."""
        self._put(LEDGER, (_written(conversations) + "\n").encode(errors="backslashreplace"), 0o600)

    def _put(self, name: str, data: bytes, mode: int) -> None:
        try:
            _replace(os.path.join(self._folder, name), data, mode)
        except OSError as error:
            self._problem(name, error)

    def log(self, number: int, name: str, attempt: int) -> str:
        """Return the path of the logs of an attempt, without their endings; tasks are numbered from 0, files from 1."""
        slug = "".join(letter for letter in name if letter in _PLAIN)[:_SLUG]
        return os.path.join(self._folder, LOGS, self._part, f"{number + 1:03}-{slug}.attempt-{attempt}")

    def begin_logs(self, stem: str) -> None:
        """Give an attempt the logs of earlier ones that printed nothing, which stay behind as names of one empty file.

        A file that is made and removed costs up to half a millisecond where a file system has no journal; this costs
        a fiftieth of it.
        """
        for ending in ENDINGS:
            if not self._spare:
                return
            old = self._spare.pop()
            with suppress(OSError):  # a task can remove any of them
                os.rename(old, stem + ending)
                os.link(self._empty, old)

    def end_logs(self, *paths: str) -> None:
        """Keep the logs of an attempt for the next one if nothing was printed."""
        if not self._reuses:
            return
        for path in paths:
            with suppress(OSError):
                found = os.lstat(path)
                if (
                    not found.st_size
                    and found.st_nlink == 1
                    and S_ISREG(found.st_mode)
                    and found.st_mode & _MINE == _MINE
                ):
                    self._spare.append(path)

    def inputs(self, slot: int) -> str:
        """Return the path of a file for inputs; of the tasks that run at the same time, each has a slot of its own."""
        return os.path.join(self._folder, f"{_INPUTS}{slot + 1}")

    def close(self, outcome: str, reason: str) -> None:
        """Write the last event, if nobody has, and close the log."""
        if self._is_open:
            self.event("shutdown", outcome=outcome, reason=reason)
            self._is_open = False
            os.close(self._session)


def outcome_of(ending: Ending) -> str:
    """Return the outcome that the last event names for an ending."""
    return _OUTCOMES.get(ending, "error")


def dollars(micros: int) -> float:
    """Return an amount in micro-dollars as the number of USD that is written."""
    return micros / 1_000_000


def make_report(
    workflow: Workflow, results: tuple[Result | None, ...], *, valid: bool, ending: Ending, spent: int, digest: str
) -> dict[str, Any]:
    """Return the report of a run as plain data; a task without a result was never dispatched."""
    unrun = Result.of_unrun(is_interrupted=ending is Ending.INTERRUPTED)
    return {
        "version": VERSION,
        "valid": valid,
        "exit": str(ending),
        "spent_usd": dollars(spent),
        "digest": digest,
        "tasks": [
            {"name": task.name, "kind": task.kind, **_facts(result or unrun)}
            for task, result in zip(workflow.task, results, strict=True)
        ],
    }


def report_text(report: Mapping[str, Any]) -> str:
    """Return a report as JSON text with a line for each task; a lone surrogate is written as its escape."""
    head = _written({key: value for key, value in report.items() if key != "tasks"})
    text = f'{head[:-1]}, "tasks": [\n' + ",\n".join(map(_written, report["tasks"])) + "\n]}\n"
    return text.encode(errors="backslashreplace").decode()


def _facts(result: Result) -> dict[str, Any]:
    """Return what is there to say of a result, absent facts left out."""
    facts: dict[str, Any] = {"status": str(result.status)}
    if result.attempts:
        facts |= {
            "attempts": result.attempts,
            "cost_usd": dollars(result.cost),
            "seconds": round(result.seconds, 3),
        }
    if result.text:
        facts["note"] = result.text
    if result.status is Status.PASS or result.output is not None:
        facts["output"] = result.output
    if result.status is Status.BLOCKED and result.reason is not None:
        facts["blocked"] = result.reason.to_plain()
    if result.transport is not None and result.status is Status.TRANSPORT:
        facts["transport"] = result.transport
    return facts


def _digest(value: object) -> str:
    return sha256(_sorted(value).encode())


def _beside(name: str) -> str:
    return f".{name}.new"


def _remove(path: str) -> None:
    """Remove what is ours, whatever a task has put in its place; a link is not followed."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError:
        from crucible.runtime import tree

        with tree.opened(os.path.dirname(path)) as parent:
            tree.remove(parent, os.path.basename(path))


# What a run begins anew.
_ANEW: Final = frozenset({SESSION, REPORT, LEDGER, _beside(REPORT), _beside(LEDGER), _EMPTY})


def _replace(path: str, data: bytes, mode: int) -> None:
    """Write a file whole or not at all."""
    folder, name = os.path.split(path)
    beside = os.path.join(folder, _beside(name))
    _remove(beside)
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        _write(file, data)
    finally:
        os.close(file)
    try:
        os.replace(beside, path)
    except IsADirectoryError:
        _remove(path)
        os.replace(beside, path)


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]

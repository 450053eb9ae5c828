"""What a session log says of a run that has ended, or died: its rows, its cost, and how its last process ended.

In goes session.jsonl, out comes what ``--resume`` goes on with. Kinds and fields that nobody here knows are passed
over, as are torn lines; rows of a wide round are none of ours (contract §7).
"""

import json
import os
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

from crucible.runtime import careful
from crucible.runtime.records import LEDGER, SESSION
from crucible.schemas.ir import is_finite

_MICRO: Final = 1_000_000
_BEFORE: Final = ("starting", "preflight", "baseline")


class Row(NamedTuple):
    """What came of one iteration; ``plain`` is the whole event."""

    number: int
    decision: str
    score: float | None
    tiebreak: float | None
    snapshot: str | None
    valid: bool
    solved: bool
    note: str
    plain: Mapping[str, Any]

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> "Row | None":
        """Return the row that an event is, None for one of a wide round and for what is none."""
        number, decision, snapshot = _count(event.get("iter")), event.get("decision"), event.get("snapshot")
        note = event.get("note")
        score = _finite(event.get("score"))
        if "phase" in event or number is None or not isinstance(decision, str):
            return None
        if decision == "keep" and score is None:
            return None
        return cls(
            number,
            decision,
            score,
            _finite(event.get("tiebreak")),
            snapshot if isinstance(snapshot, str) else None,
            event.get("valid") is True,
            event.get("solved") is True,
            note if isinstance(note, str) else "",
            event,
        )


class Past(NamedTuple):
    """What is known of earlier processes of a run.

    ``size`` is how many bytes of the log are whole lines. ``start`` are the facts of its first event, ``parts`` the
    digests of its identity. ``spent`` is in micro-dollars. ``steers`` are the texts that were delivered, by
    iteration. ``ended`` tells how: the class of the contract, the iteration that it touched, and a sentence;
    ``outcome`` is that of a process that ended on purpose. ``has_died`` tells that the last one that worked in the
    workspace did not leave it as it should be, ``damaged`` which iterations have what was a row once.
    """

    size: int
    start: Mapping[str, Any]
    identity: str | None
    parts: Mapping[str, Any]
    rows: tuple[Row, ...]
    spent: int
    steers: Mapping[int, str]
    ended: tuple[str, int, str]
    outcome: str | None
    is_finished: bool
    has_died: bool
    damaged: frozenset[int]

    @property
    def lost_rows(self) -> list[str]:
        """Return the iterations whose rows are gone or are none any more, runs of them as "3 to 7"."""
        known = sorted({-1, *(row.number for row in self.rows)})
        gaps = [(one + 1, other - 1) for one, other in pairwise(known) if other > one + 1]
        gaps += [(number, number) for number in sorted(self.damaged) if number > known[-1]]
        return [str(first) if first == last else f"{first} to {last}" for first, last in gaps]

    @property
    def lost_steer(self) -> str:
        """Return what was delivered to an iteration that has no row, "" when all was heard."""
        known = {row.number for row in self.rows}
        return "\n".join(text for number, text in sorted(self.steers.items()) if number not in known)


def read(state: str) -> Past | None:
    """Return what the log of a state directory says, None when there is no run to go on with; raises OSError."""
    try:
        data = careful.read(os.path.join(state, SESSION))
    except FileNotFoundError:
        return None
    size = data.rfind(b"\n") + 1
    reading = _Reading()
    for line in data[:size].split(b"\n"):
        reading.take(line)
    if reading.start is None:
        return None
    rows = tuple(reading.rows[number] for number in sorted(reading.rows))
    ended = reading.ended()
    return Past(size, reading.start, reading.identity, reading.parts, rows, reading.spent, reading.steers, ended,
                reading.outcome, reading.is_finished, reading.has_died, frozenset(reading.damaged))  # fmt: skip


def conversations(state: str) -> dict[str, dict[str, Any]]:
    """Return the conversations of the ledger; what is none is passed over."""
    try:
        found = json.loads(careful.read(os.path.join(state, LEDGER)))
    except (OSError, ValueError, RecursionError):
        return {}
    known = found.items() if isinstance(found, dict) else ()
    return {
        name: each
        for name, each in known
        if isinstance(each, dict) and isinstance(each.get("cursor"), str) and _count(each.get("turns")) is not None
    }


class _Reading:
    """The events so far."""

    def __init__(self) -> None:
        self.start: Mapping[str, Any] | None = None
        self.identity: str | None = None
        self.parts: Mapping[str, Any] = {}
        self.rows: dict[int, Row] = {}
        self.steers: dict[int, str] = {}
        self.spent = 0
        self.outcome: str | None = None
        self.is_finished = False
        self.has_died = False
        self.damaged: set[int] = set()
        self._phase, self._iteration = "starting", 0
        self._running: Mapping[str, Any] | None = None
        self._done: Mapping[str, Any] | None = None  # the last task of the iteration that has ended

    def take(self, line: bytes) -> None:
        """Take one line of the log."""
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(event, dict):
            return
        kind = event.get("kind")
        if kind not in {"shutdown", "recovery"}:
            self.outcome = None
        match kind:
            case "start":
                self.start = self.start or event
            case "identity":
                found = event.get("parts")
                self.parts = self.parts or (found if isinstance(found, dict) else {})
                self.identity = self.identity or event.get("identity")
                self.has_died = True  # who writes this has the workspace, and one that is refused before does not
            case "phase":
                self._phase, self._iteration = str(event.get("phase")), _count(event.get("iter")) or 0
                self._running = self._done = None
                self.is_finished = self.is_finished and self._phase != "iteration"
            case "row":
                row = Row.of(event)
                number = _count(event.get("iter"))
                if row is not None:
                    self.rows[row.number] = row
                elif number is not None and "phase" not in event:
                    self.damaged.add(number)
            case "budget":
                spent = _finite(event.get("spent_usd"))
                self.spent = self.spent if spent is None else round(spent * _MICRO)
            case "steer":
                number, text = _count(event.get("iter")), event.get("text")
                if number is not None and isinstance(text, str):
                    self.steers[number] = text
            case "task_begun":
                self._running = event
            case "task_result":
                self._done, self._running = self._running or event, None
            case "finished":
                self.is_finished = True
            case "shutdown":
                self.outcome = str(event.get("outcome"))
                self.has_died = self.has_died and self.outcome == "error"

    def ended(self) -> tuple[str, int, str]:
        """Classify how the last process ended (contract §7)."""
        number = self._iteration
        if self.outcome is not None:
            return "clean_exit", max(self.rows, default=0), f"it ended on purpose: {self.outcome}"
        if 0 not in self.rows:
            return "died_in_baseline", 0, f"the log ends in the phase {self._phase}, before row 0"
        if self._phase in _BEFORE or (self._phase == "iteration" and number in self.rows):
            last = max(self.rows)
            return "died_between_iterations", last, f"the log ends behind row {last}"
        doing = self._running or self._done
        if doing is None:
            return "died_between_iterations", number, f"the log ends in {self._where()}, before its first task"
        name, operation = doing.get("name"), doing.get("op")
        is_turn = operation == "propose" or doing.get("task_kind") == "agent"
        if self._running is not None and is_turn:
            return (
                "died_mid_turn",
                number,
                f'the turn "{name}" of {self._where()} has no result; what it cost is unknown',
            )
        if operation == "decide":
            return "died_deciding", number, f'"{name}" of {self._where()} had begun, and there is no row'
        return "died_in_plan_task", number, f'"{name}" of {self._where()} had begun, and there is no row'

    def _where(self) -> str:
        return f"iteration {self._iteration}" if self._phase == "iteration" else f"the {self._phase}"


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _finite(value: object) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and is_finite(value) else None  # type: ignore[arg-type, return-value]

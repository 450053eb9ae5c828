"""What a person sees of a run while it lasts: one line for each change of state, or a live table on a terminal.

In go the same few events, told by number of task; nothing of a run depends on what is shown. The only
owner of rich, which is loaded for a terminal alone.
"""

from __future__ import annotations

import math
import time

from crucible.runtime.outcome import Attempt, Result, Status
from crucible.schemas.light import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Final, Self

    from rich.console import Group

    from crucible.schemas.ir import Workflow

_PERIOD: Final = 0.2  # seconds between two pictures of the live table
_BARS: Final = "▁▂▃▄▅▆▇█"
_SIXTY: Final = 60
_AROUND: Final = 8  # lines of a terminal that are not rows
_STYLES: Final = {
    Status.RUNNING: "bold cyan",
    Status.PASS: "green",
    Status.FAIL: "bold red",
    Status.TRANSPORT: "bold magenta",
    Status.SKIPPED: "yellow",
    Status.BLOCKED: "yellow",
    Status.TRUNCATED: "yellow",
}


class Display(Protocol):
    """Who is told what becomes of tasks; ``period`` is how often it wants to be refreshed, None for never."""

    period: float | None

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def fresh(self, title: str) -> None:
        """Begin another pass over the graph, all tasks pending, under a title."""

    def say(self, line: str) -> None:
        """Tell what stays to be read when the pass is over."""

    def running(self, number: int, attempt: int) -> None:
        """Tell that an attempt has begun."""

    def again(self, number: int, attempt: Attempt, delay: float) -> None:
        """Tell that an attempt ended in transport and is made again after a delay."""

    def settled(self, number: int, result: Result) -> None:
        """Tell what became of a task."""

    def refresh(self) -> None:
        """Show how much time has passed."""


class Lines:
    """Says one plain line for each change of state."""

    period: float | None = None

    def __init__(self, workflow: Workflow, say: Callable[[str], None]) -> None:
        self._names = [task.name for task in workflow.task]
        self._width = min(max(map(len, self._names), default=0), 32)
        self._say = say

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def fresh(self, title: str) -> None:
        """Say the title."""
        self._say(title)

    def say(self, line: str) -> None:
        """Say it."""
        self._say(line)

    def running(self, number: int, attempt: int) -> None:
        """Say that an attempt has begun."""
        self._line(number, Status.RUNNING, f"attempt {attempt}" if attempt > 1 else "")

    def again(self, number: int, attempt: Attempt, delay: float) -> None:
        """Say what died, and when it is tried again."""
        self._line(number, attempt.status, f"{attempt.note}; again in {delay:g} s")

    def settled(self, number: int, result: Result) -> None:
        """Say what became of a task, and why."""
        took = duration(result.seconds) if result.attempts else ""
        self._line(number, result.status, "  ".join(part for part in (took, result.text) if part))

    def refresh(self) -> None:
        """Show nothing: a line says what has changed."""

    def _line(self, number: int, status: Status, more: str) -> None:
        self._say(f"{self._names[number]:{self._width}}  {status:9}  {first_line(more)}".rstrip())


class Live:
    """Shows a table of all tasks that is drawn again and again, as far as the terminal has lines for it."""

    period: float | None = _PERIOD

    def __init__(self, workflow: Workflow, harmless: Callable[[str], str]) -> None:
        from rich.console import Console
        from rich.live import Live as Screen

        self._names = [harmless(task.name) for task in workflow.task]
        self._harmless = harmless
        self._rows: list[_Row] = [_Row() for _ in self._names]
        self._begin = time.monotonic()
        self._title = ""
        self._drawn = 0.0
        console = Console(stderr=True)
        self._screen = Screen(
            console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        )

    def __enter__(self) -> Self:
        self._screen.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._screen.stop()

    def fresh(self, title: str) -> None:
        """Show all tasks as pending, under a title."""
        self._rows = [_Row() for _ in self._names]
        self._title = self._harmless(title)
        self._drawn = 0.0
        self.refresh()

    def say(self, line: str) -> None:
        """Print it above the table, where it stays."""
        from rich.text import Text

        self._screen.console.print(Text(self._harmless(line)))

    def running(self, number: int, attempt: int) -> None:
        """Show a task as running since now."""
        row = self._rows[number]
        row.status, row.since, row.attempts = Status.RUNNING, time.monotonic(), attempt
        self.refresh()

    def again(self, number: int, attempt: Attempt, delay: float) -> None:
        """Show what died, and when it is tried again."""
        row = self._rows[number]
        row.status, row.note = attempt.status, f"{attempt.note}; again in {delay:g} s"
        row.seconds += attempt.seconds
        self.refresh()

    def settled(self, number: int, result: Result) -> None:
        """Show what became of a task, and why."""
        row = self._rows[number]
        row.status, row.seconds, row.attempts = result.status, result.seconds, result.attempts
        row.note = result.text
        self.refresh()

    def refresh(self) -> None:
        """Draw the table, unless it was drawn just now."""
        now = time.monotonic()
        if now - self._drawn >= _PERIOD / 2:
            self._drawn = now
            self._screen.update(self._table(now), refresh=True)

    def _table(self, now: float) -> Group:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        shown = self._window(self._screen.console.size.height - _AROUND)
        settled = sum(row.status not in (Status.PENDING, Status.RUNNING) for row in self._rows)
        heading = [Text(self._title, style="bold", no_wrap=True, overflow="ellipsis")] if self._title else []
        table = Table(box=None, pad_edge=False, caption_justify="left")
        for title in ("task", "state", "elapsed", "attempts", "note"):
            table.add_column(title, no_wrap=True, overflow="ellipsis", ratio=1 if title == "note" else None)
        for number in shown:
            row = self._rows[number]
            elapsed = row.seconds + (now - row.since if row.status is Status.RUNNING else 0.0)
            table.add_row(
                Text(self._names[number]),
                Text(str(row.status), style=_STYLES.get(row.status, "dim")),
                Text(duration(elapsed) if row.attempts else ""),
                Text(str(row.attempts or "")),
                Text(self._harmless(first_line(row.note))),
            )
        hidden = len(self._rows) - len(shown)
        more = f" ({hidden} not shown)" if hidden else ""
        table.caption = Text(f"{settled} of {len(self._rows)} settled{more}, {duration(now - self._begin)}")
        return Group(*heading, table)

    def _window(self, room: int) -> Sequence[int]:
        """Return which rows are shown: all, or as many as there is room for, from a little before what runs."""
        count, room = len(self._rows), max(room, 1)
        first = next((number for number, row in enumerate(self._rows) if row.status is Status.RUNNING), 0)
        begin = max(0, min(first - room // 3, count - room))
        return range(begin, min(begin + room, count))


def sparkline(values: Sequence[float | None]) -> str:
    """Draw numbers as a line of bars, the lowest and the highest of them at its ends; a dot where there is none."""
    known = [value for value in values if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    span = high - low
    steps = len(_BARS) - 1
    return "".join(
        "·" if value is None else _BARS[round((value - low) / span * steps) if 0 < span < math.inf else steps // 2]
        for value in values
    )


class _Row:
    """What is shown of a task."""

    __slots__ = ("attempts", "note", "seconds", "since", "status")

    def __init__(self) -> None:
        self.status, self.since, self.seconds, self.attempts, self.note = Status.PENDING, 0.0, 0.0, 0, ""


def first_line(note: str) -> str:
    """Return what of a note stands in a line with others."""
    return note.partition("\n")[0]


def duration(seconds: float) -> str:
    """Write a time for people: ``0.3 s``, ``2 m 05 s``, ``1 h 02 m``."""
    if round(seconds, 1) < _SIXTY:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), _SIXTY)
    if minutes < _SIXTY:
        return f"{minutes} m {rest:02} s"
    hours, minutes = divmod(minutes, _SIXTY)
    return f"{hours} h {minutes:02} m"

"""What a run says at its end: a line for each task, what failed and which log to open, the verdict, the cost.

In goes the run and where its logs are, out come plain lines, not yet made harmless for a terminal.
"""

import json
import os
from collections.abc import Callable, Iterator

from crucible.runtime.last_line import tail
from crucible.runtime.machine import Run, Verdict
from crucible.runtime.outcome import Result, Status
from crucible.runtime.progress import duration, first_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from crucible.schemas.ir import Task

_MOST: "Final" = 40  # columns that a cell makes those below it keep clear
_MOST_OUTPUT: "Final" = 500  # characters
_LONG, _SHORT = 20, 5
_FAILED: "Final" = (Status.FAIL, Status.TRANSPORT)


def lines(run: Run, verdict: Verdict, seconds: float, log: Callable[[int, str, int], str]) -> Iterator[str]:
    """Yield the lines of the summary; ``log`` gives the path of an attempt's logs, without their endings."""
    tasks = run.plan.workflow.task
    unrun = Result.of_unrun(is_interrupted=run.is_interrupted)
    results = [result or unrun for result in run.results]
    yield from _table(tasks, results)
    for number, (task, result) in enumerate(zip(tasks, results, strict=True)):
        if result.status in _FAILED and result.attempts:
            yield from _failure(task, result, log(number, task.name, result.attempts))
    yield ""
    yield f"{'valid' if verdict.valid else 'invalid'}: {verdict_text(run, verdict)}"
    counts = {status: sum(result.status is status for result in results) for status in Status}
    yield from _product(run, results)
    said = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    yield f"{said}; {_cost(run)}; {duration(seconds)}"


def _product(run: Run, results: list[Result]) -> Iterator[str]:
    """Yield the output of the workflow's result, if it has one."""
    workflow = run.plan.workflow
    for task, result in zip(workflow.task, results, strict=True):
        if task.name == workflow.result and result.status is Status.PASS and result.output not in (None, {}):
            text = json.dumps(result.output, ensure_ascii=False)
            yield f"{task.name}: {text if len(text) <= _MOST_OUTPUT else f'{text[:_MOST_OUTPUT]}…'}"


def verdict_text(run: Run, verdict: Verdict) -> str:
    """Say in a line how a run ended, and why."""
    if verdict.valid:
        return "every required task passed"
    because = f": {run.halt.text}" if run.halt is not None and not run.is_interrupted else ""
    return f"{str(verdict.ending).replace('_', ' ')}{because}"


def money(micros: int) -> str:
    """Write an amount in micro-dollars as people do, with the digits that it has and at least the cents."""
    whole, rest = divmod(micros, 1_000_000)
    cents = f"{rest:06}".rstrip("0").ljust(2, "0")
    return f"${whole:,}.{cents}"


def _table(tasks: "tuple[Task, ...]", results: list[Result]) -> Iterator[str]:
    rows = [("task", "state", "attempts", "elapsed", "cost", "score", "note")]
    for task, result in zip(tasks, results, strict=True):
        tried = (str(result.attempts), duration(result.seconds)) if result.attempts else ("", "")
        cost = money(result.cost) if result.cost else ""
        rows.append((task.name, str(result.status), *tried, cost, _score(task, result), first_line(result.text)))
    # A column of nothing but its title says nothing.
    shown = [index for index in range(len(rows[0])) if index < 2 or any(row[index] for row in rows[1:])]  # noqa: PLR2004
    widths = {index: min(max(_width(row[index]) for row in rows), _MOST) for index in shown}
    for row in rows:
        yield "  ".join(row[index] + " " * (widths[index] - _width(row[index])) for index in shown).rstrip()


def _score(task: "Task", result: Result) -> str:
    """Return the score of a measurement, "" of one that has none, and of any other task."""
    score = result.output.get("score") if task.kind == "evaluate" and isinstance(result.output, dict) else None
    return f"{score:g}" if isinstance(score, (int, float)) and not isinstance(score, bool) else ""


def _failure(task: "Task", result: Result, log: str) -> Iterator[str]:
    """Yield what a person needs who asks why: the whole note, the log to open, and how that ends."""
    from crucible.cli.output import relative

    yield ""
    note = result.text.splitlines() or [""]
    yield f'"{task.name}" {"failed" if result.status is Status.FAIL else "could not be run"}: {note[0]}'
    if note[1:]:
        yield from (f"  | {line}" for line in note[1:])
        yield f"  log: {relative(f'{log}.err')}"
        return
    for ending in ("err", "out"):
        found = tail(f"{log}.{ending}", _LONG if task.required else _SHORT)
        if found:
            yield from (f"  | {line}" for line in found.split("\n"))
            yield f"  log: {relative(f'{log}.{ending}')}"
            return
    if os.path.exists(f"{log}.err"):
        yield f"  log: {relative(f'{log}.err')} (it printed nothing)"


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from crucible.compiler.output.gist import width

    return width(text)


def _cost(run: Run) -> str:
    ceiling = "without a ceiling" if run.plan.budget is None else f"of at most {money(run.plan.budget)}"
    return f"{money(run.spent)} spent {ceiling}"

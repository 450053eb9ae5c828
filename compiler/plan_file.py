"""plan.toml and plan.json: tasks that somebody wrote by hand, in a versioned envelope with a budget (ir.md §5).

In goes the plain data of a file with its places, out come a workflow of type custom, the budget, and what
is wrong: findings for the tasks, which the rules go on with, and diagnostics for the envelope.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

from crucible.compiler.manifest import TABLE, Places
from crucible.compiler.positions import Path, Positions
from crucible.schemas import ir
from crucible.schemas.diagnostic import At, Diagnostic, Finding, Suggestion
from crucible.schemas.ir import Workflow
from crucible.schemas.span import Position, Span
from crucible.schemas.spelling import hint

VERSION: Final = 1
LANE: Final = "custom"
NAMES: Final = ("plan.toml", "plan.json")
_MANIFEST: Final = "crucible.toml"
KEYS: Final = ("version", "reason", "budget", "task")
_MUST: Final = ("version", "budget", "task")
_BUDGET_KEYS: Final = ("usd",)
_MICRO: Final = 1_000_000
_EXACT: Final = 2.0**53
_TOP: Final = Span(Position(1, 1), Position(1, 1))  # where what has no header of its own begins


class PlanFile(NamedTuple):
    """What a plan file says beside its tasks: the budget in micro-dollars, and why the plan is what it is."""

    budget: int | None = None
    reason: str | None = None


class Read(NamedTuple):
    """What reading gave: the workflow is None without a list of tasks; all is good only when nothing is wrong."""

    workflow: Workflow | None
    plan: PlanFile
    findings: list[Finding]
    diagnostics: list[Diagnostic]
    places: Places


def is_plan(file: str, data: object) -> bool:
    """Tell a plan file from a manifest and from a canonical JSON: by its name, or by keys that only it has.

    A manifest keeps its tasks in a table, and no canonical JSON has a version.
    """
    name = os.path.basename(file)
    if name in NAMES:
        return True
    if name == _MANIFEST or not isinstance(data, Mapping):
        return False
    if file.endswith(".json"):
        return "type" not in data and any(key in data for key in KEYS if key != "task")
    return TABLE not in data and ("version" in data or "task" in data)


def read(data: object, positions: Positions, kind: Literal["toml", "json"], file: str) -> Read:
    """Read a plan file from its plain data; what is wrong in the envelope has its place already."""
    envelope = _Envelope(positions, kind, file)
    places = Places(positions, (), kind)
    if not isinstance(data, dict):
        problem = envelope.problem("wrong-type", f"a plan is a table, not {ir.kind_of(data)}", ())
        return Read(None, PlanFile(), [], [problem], places)
    diagnostics = list(envelope.version(data))
    if diagnostics:  # what else another version may hold is not known
        return Read(None, PlanFile(), [], diagnostics, places)
    diagnostics = list(envelope.keys(data))
    reason = data.get("reason")
    if "reason" in data and not ir.is_text(reason):
        what = "Unicode text; this holds a lone surrogate" if isinstance(reason, str) else "a string"
        tail = "" if isinstance(reason, str) else f", not {ir.kind_of(reason)}"
        diagnostics.append(envelope.problem("wrong-type", f"reason is {what}{tail}", ("reason",)))
        reason = None
    budget, problems = envelope.budget(data)
    diagnostics += problems
    workflow, findings = ir.read({"type": LANE, "task": data["task"]}) if "task" in data else (None, [])
    return Read(workflow, PlanFile(budget, reason), findings, diagnostics, places)


def micro_dollars(usd: float) -> int:
    """Return a positive number of dollars in micro-dollars, the least there is for less than one."""
    if isinstance(usd, float) and usd < _EXACT / _MICRO:
        return max(1, round(usd * _MICRO))
    return int(usd) * _MICRO


class _Envelope:
    """The keys around the tasks, and where they stand."""

    def __init__(self, positions: Positions, kind: Literal["toml", "json"], file: str) -> None:
        self._positions = positions
        self._places = Places(positions, (), kind)
        self._file = file

    def problem(self, code: str, message: str, path: Path, suggestion: str | None = None) -> Diagnostic:
        """Make a diagnostic: at a value, at the table that lacks a key, or at the key that nobody knows."""
        if code == "unknown-key":
            span = self._positions.key(path)
        else:
            span = self._positions.value(path) if code != "missing-key" else None
            span = span or self._positions.table(path)
        edit = None if suggestion is None or span is None else Suggestion(suggestion, self._file, span)
        return Diagnostic(code, message, self._file, span or _TOP, suggestion=edit)

    def version(self, data: Mapping[str, Any]) -> Iterator[Diagnostic]:
        """Find a version that is not ours; one that is missing may be misspelt, and is somebody else's to find."""
        found = data.get("version", VERSION)
        if isinstance(found, bool) or not isinstance(found, int):
            yield self.problem("wrong-type", f"version is an integer, not {ir.kind_of(found)}", ("version",))
        elif found != VERSION:
            message = f"plan files have version {VERSION}; this compiler knows no other"
            yield self.problem("unknown-value", message, ("version",), str(VERSION))

    def keys(self, data: Mapping[str, Any]) -> Iterator[Diagnostic]:
        """Find keys that a plan has not, and those that it lacks."""
        meant = []
        for key in data:
            if key not in KEYS:
                found, guess = self._unknown("a plan", key, [each for each in KEYS if each not in data], (key,))
                meant.append(guess)
                yield found
        for key in _MUST:
            if key not in data and key not in meant:
                table = {"budget": "the table [budget] with its usd", "task": "tasks, each a table [[task]]"}
                what = table.get(key, f"{key} = {VERSION}")
                yield self.problem("missing-key", f"a plan needs {what}", ())

    def budget(self, data: Mapping[str, Any]) -> tuple[int | None, list[Diagnostic]]:
        """Read the budget."""
        if "budget" not in data:
            return None, []
        table = data["budget"]
        if not isinstance(table, dict):
            message = f"budget is a table with the key usd, not {ir.kind_of(table)}"
            return None, [self.problem("wrong-type", message, ("budget",))]
        problems = []
        meant = []
        for key in table:
            if key not in _BUDGET_KEYS:
                left = [each for each in _BUDGET_KEYS if each not in table]
                found, guess = self._unknown("a budget", key, left, ("budget", key))
                meant.append(guess)
                problems.append(found)
        usd = table.get("usd")
        at = ("budget", "usd")
        if "usd" not in table:
            if "usd" not in meant:
                problems.append(self.problem("missing-key", 'a budget needs the key "usd"', ("budget",)))
        elif isinstance(usd, bool) or not isinstance(usd, (int, float)):
            problems.append(self.problem("wrong-type", f"usd is a number, not {ir.kind_of(usd)}", at))
        elif not ir.is_finite(usd) or usd <= 0:
            problems.append(self.problem("out-of-range", "usd is a finite number above 0", at))
        else:
            return micro_dollars(usd), problems
        return None, problems

    def _unknown(self, owner: str, key: str, left: list[str], path: Path) -> tuple[Diagnostic, str | None]:
        tail, guess = hint(key, left, "keys")
        replacement = None if guess is None else self._places.quote(guess, At(None, guess, part="key"))
        return self.problem("unknown-key", f'{owner} has no key "{key}"{tail}', path, replacement), guess

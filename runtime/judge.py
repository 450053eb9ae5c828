"""The judge: one measurement under the command protocol, and what is decided by it (contract §3, §4).

``measure`` runs a measure command and makes a reading of what it printed and how it ended; ``decide`` is the
rule that all domains share, a function of numbers. Neither knows of a world, a loop or a log.
"""

import os
from collections.abc import Collection, Generator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from crucible.runtime import last_line
from crucible.runtime.git import LEADING
from crucible.runtime.process import Command, Exit
from crucible.runtime.shell_runner import SHELL, exit_note
from crucible.runtime.surroundings import base, encodable
from crucible.schemas.ir import is_finite, kind_of

if TYPE_CHECKING:
    from crucible.runtime.injects import Seal, Stock

GATE_CHANGED: Final = "gate changed during the measurement"
BASELINE_SCORE: Final = "CRUCIBLE_BASELINE_SCORE"
BASELINE_TOTAL: Final = "CRUCIBLE_BASELINE_TOTAL"
BEST_SCORE: Final = "CRUCIBLE_BEST_SCORE"
ITERATION: Final = "CRUCIBLE_ITERATION"
# What a loop around ours says of its own measurements.
_UNSET: Final = frozenset({BASELINE_SCORE, BASELINE_TOTAL, BEST_SCORE, ITERATION, "CRUCIBLE_TOKEN"})


class Reading(NamedTuple):
    """What a measurement found; the score of a valid one is a finite number."""

    valid: bool
    score: float | None = None
    tiebreak: float | None = None
    solved: bool = False
    note: str = ""
    detail: Mapping[str, Any] | None = None

    @property
    def total(self) -> float | None:
        """Return ``detail.total``, None when that is no finite number."""
        return finite((self.detail or {}).get("total"))

    def to_plain(self) -> dict[str, Any]:
        """Return the reading as plain data; what is not there is left out, the score never."""
        plain: dict[str, Any] = {"valid": self.valid, "score": self.score, "solved": self.solved}
        facts = {"tiebreak": self.tiebreak, "note": self.note or None, "detail": self.detail}
        return plain | {name: value for name, value in facts.items() if value is not None}

    @classmethod
    def of_plain(cls, plain: object) -> "Reading":
        """Return the reading that plain data gives: an invalid one when it has no finite score, or is none at all."""
        if not isinstance(plain, dict):
            return cls(valid=False)
        score, note, detail = finite(plain.get("score")), plain.get("note"), plain.get("detail")
        return cls(
            plain.get("valid") is True and score is not None,
            score,
            finite(plain.get("tiebreak")),
            plain.get("solved") is True,
            note if isinstance(note, str) else "",
            detail if isinstance(detail, dict) else None,
        )


class Measured(NamedTuple):
    """One measurement, and how its command ended.

    ``fault`` says in what the command broke the protocol, None when it kept it. Without a ``reading`` it printed
    none and ended well: a failure, and no candidate that is worse.
    """

    reading: Reading | None
    fault: str | None
    ended: Exit

    @property
    def seconds(self) -> float:
        """Return how long it took."""
        return self.ended.seconds


# Measuring


def environment(
    environ: Mapping[str, str], workspaces: Collection[str], numbers: Mapping[str, str], iteration: int = 0
) -> dict[str, str]:
    """Return what a command of the judge finds in its environment: ours, and the loop's ``numbers``.

    Programs that an agent could have written are not found by their bare names: of PATH stay the absolute
    entries outside of the ``workspaces``.
    """
    made = {name: value for name, value in base(environ).items() if name not in LEADING and name not in _UNSET}
    if "PATH" in made:
        homes = [os.path.join(os.path.realpath(folder), "") for folder in workspaces]
        entries = made["PATH"].split(os.pathsep)
        made["PATH"] = os.pathsep.join(each for each in entries if _is_outside(each, homes)) or os.defpath
    return {**made, **numbers, ITERATION: str(iteration)}


def numbers(baseline: Reading | None, best: float | None) -> dict[str, str]:
    """Return the variables with the loop's current numbers; there are none before the baseline is measured."""
    found = {
        BASELINE_SCORE: baseline.score if baseline else None,
        BASELINE_TOTAL: baseline.total if baseline else None,
        BEST_SCORE: best,
    }
    return {name: decimal(value) for name, value in found.items() if value is not None}


def decimal(number: float) -> str:
    """Write a number as a decimal string that shells can read: without exponent, and without an empty fraction."""
    from decimal import Decimal

    text = f"{Decimal(str(number)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def measure(
    command: str, folder: str, environ: Mapping[str, str], logs: tuple[str, str], stock: "Stock | None" = None
) -> Generator[Command, Exit, Measured]:
    """Measure what a folder holds; the frozen files are put back first, and compared afterwards.

    ``logs`` are the files for what the command prints. Raises OSError when the frozen files cannot be put back.
    """
    seals: tuple[Seal, ...] = ()
    if stock is not None:
        stock.put(folder, frozen_only=True)
        seals = stock.seal(folder)
    exit_ = yield Command((SHELL, "-c", encodable(command)), environ, folder, *logs)
    found = judged(exit_, *logs)
    if stock is not None and not stock.is_unbroken(folder, seals):
        reading = found.reading or Reading(valid=False)
        return found._replace(reading=reading._replace(valid=False, note=GATE_CHANGED), fault=GATE_CHANGED)
    return found


def judged(exit_: Exit, out: str, err: str) -> Measured:
    """Judge how a measure command ended and what it printed."""
    if exit_.fault is not None:
        return Measured(None, f"it could not be started: {exit_.fault.strerror or exit_.fault}", exit_)
    reading, fault = _read(last_line.read_object(out, exit_.size))
    note = exit_note(exit_, err)
    if note:
        reading = (reading or Reading(valid=False))._replace(valid=False, note=note)
        return Measured(reading, note, exit_)
    return Measured(reading, fault, exit_)


def _read(line: last_line.LastLine) -> tuple[Reading | None, str | None]:
    """Make a reading of a line; or say why it is none."""
    if line.fault is not None:
        return None, f"a measure command prints a JSON object on a line of its own: {line.fault}"
    value = line.value
    if "valid" not in value:
        return None, 'the reading has no "valid", which is required: true or false'
    for name, kind, what in _FIELDS:
        found = value.get(name)
        if (found is None and name != "valid") or _is(found, kind):
            continue
        return None, f"{name} is {what}, not {kind_of(found) if found is not None else 'null'}"
    place = _infinite({name: each for name, each in value.items() if name != "score"})
    if place is not None:
        return None, f"{place} is not finite, which JSON does not allow"
    score, note = finite(value.get("score")), value.get("note") or ""
    valid = value["valid"]
    if valid and score is None:
        valid = False
        note = "; ".join(filter(None, (_no_score(value), note)))
    return Reading(valid, score, value.get("tiebreak"), bool(value.get("solved")), note, value.get("detail")), None


_FIELDS: Final[tuple[tuple[str, type | tuple[type, ...], str], ...]] = (
    ("valid", bool, "true or false"),
    ("tiebreak", (int, float), "a number"),
    ("solved", bool, "true or false"),
    ("note", str, "a string"),
    ("detail", dict, "an object"),
)


def _is(value: object, kind: type | tuple[type, ...]) -> bool:
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def finite(value: object) -> float | None:
    """Return a finite number, None for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and is_finite(value):
        return value
    return None


def _no_score(value: Mapping[str, Any]) -> str:
    score = value.get("score")
    if score is None:
        return "score is null" if "score" in value else "there is no score"
    is_number = isinstance(score, (int, float)) and not isinstance(score, bool)
    return "score is not finite" if is_number else f"score is a number, not {kind_of(score)}"


def _infinite(value: Mapping[str, Any]) -> str | None:
    """Return the key under which a number stands that is not finite."""
    for name, each in value.items():
        pending = [each]
        while pending:
            found = pending.pop()
            if isinstance(found, dict):
                pending += found.values()
            elif isinstance(found, list):
                pending += found
            elif isinstance(found, (int, float)) and not is_finite(found):
                return name
    return None


def _is_outside(entry: str, homes: list[str]) -> bool:
    return os.path.isabs(entry) and not any(os.path.join(os.path.realpath(entry), "").startswith(at) for at in homes)


# Deciding


class Best(NamedTuple):
    """The numbers of what was kept last."""

    score: float
    tiebreak: float | None = None


class Decision(NamedTuple):
    """Whether a candidate is kept; one that is kept and ``solved`` ends the loop."""

    keep: bool
    solved: bool


def better(score: float, best: float, direction: str) -> bool:
    """Tell whether a score is strictly better than another."""
    return score < best if direction == "lower" else score > best


def decide(reading: Reading, best: Best | None, direction: str, tiebreak_direction: str | None = None) -> Decision:
    """Decide whether a candidate is kept (contract §4); without a ``best`` the first valid reading is."""
    keep = reading.valid and reading.score is not None and _keeps(reading, reading.score, best, direction,
                                                                  tiebreak_direction or direction)  # fmt: skip
    return Decision(keep, reading.solved)


def _keeps(reading: Reading, score: float, best: Best | None, direction: str, tiebreak_direction: str) -> bool:
    if best is None or reading.solved or better(score, best.score, direction):
        return True
    if score != best.score or reading.tiebreak is None:
        return False
    return best.tiebreak is None or better(reading.tiebreak, best.tiebreak, tiebreak_direction)

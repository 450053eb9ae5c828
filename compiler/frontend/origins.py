"""Where things were written, as calls know it: a spot in the n-th recorded call; nothing here knows a file.

Lowering notes it on the way from calls to IR; places.py turns it into files, lines and columns when somebody asks.
"""

from typing import Any, Final, NamedTuple

from crucible.compiler.frontend.binding import Bound, Spot
from crucible.schemas.diagnostic import At

# What the IR calls an argument, where that is another word.
FIELDS: Final = {
    "evidence": "depends_on",
    "isolated": "isolation",
    "run": "command",
    "score": "source",
    "measurement": "source",
}


class InCall(NamedTuple):
    """A place: a spot in the n-th recorded call."""

    call: int
    spot: Spot = Spot()


class CallFinding(NamedTuple):
    """A mistake with its place; ``suggestion`` as in binding.Problem."""

    code: str
    message: str
    place: InCall
    related: tuple[tuple[str, InCall], ...] = ()
    suggestion: str | None = None


class Origins:
    """The way from a place in the IR to the call and spot where the author wrote it."""

    def __init__(self) -> None:
        self.workflow_call = 0
        self.tasks: list[int] = []
        self.made: set[int] = set()
        self.refused: set[tuple[int | None, str]] = set()
        self.behind_loop: set[int] = set()
        self.splice = False
        self._arguments: dict[int, dict[str, str]] = {}
        self._spots: dict[tuple[int | None, str], Spot] = {}
        self._elements: dict[tuple[int | None, str], list[tuple[str, tuple[int, ...]]]] = {}

    def note_call(self, task: int, arguments: dict[str, str]) -> None:
        """Remember where the arguments of a task's call were written, as Bound.spots has them."""
        self._arguments[task] = arguments

    def note(
        self, task: int | None, field: str, spot: Spot, elements: list[tuple[str, tuple[int, ...]]] | None = None
    ) -> None:
        """Remember where a field was written, and each element of a list field by argument and path."""
        self._spots[task, field] = spot
        if elements is not None:
            self._elements[task, field] = elements

    def resolve(self, at: At) -> InCall:
        """Return the place of something in the IR; the task's or workflow's call when it is unwritten."""
        call = self.workflow_call if at.task is None else self.tasks[at.task]
        if at.index is not None:
            elements = self._elements.get((at.task, at.field), [])
            if at.index < len(elements):
                return InCall(call, Spot(*elements[at.index]))
        spot = self._spots.get((at.task, at.field))
        if spot is None:
            written = self._arguments.get(-1 if at.task is None else at.task, {})
            arguments = [argument for argument in written if FIELDS.get(argument, argument) == at.field]
            spot = Spot(written[arguments[0]]) if arguments else Spot()
        return InCall(call, spot)


class Call(NamedTuple):
    """A recorded call with its arguments sorted out."""

    number: int
    name: str
    bound: Bound

    @property
    def values(self) -> dict[str, Any]:
        """Return the values of the arguments that are as they should be, by name."""
        return self.bound.values

    def spot(self, argument: str) -> Spot:
        """Return the place of an argument's value, the constructor's name when it was not given."""
        return Spot(self.bound.spots.get(argument, ""))

    def at(self, argument: str) -> InCall:
        """Return the place of an argument's value in this call."""
        return InCall(self.number, self.spot(argument))

    def is_refused(self, argument: str) -> bool:
        """Tell whether the value of an argument is wrong."""
        spot = self.bound.spots.get(argument)
        return spot is not None and any(problem.spot.argument == spot for problem in self.bound.problems)

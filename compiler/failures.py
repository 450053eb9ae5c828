"""Which failures a new workflow survives that the old one did not: then a run is valid that was not before.

In go two workflows in shared identities, out comes for each task that had to pass a smallest set of failures.
Whether a run is valid follows from who passes, and more that pass make no run less valid: so only the choices at
joins that need one of several have to be tried, and of those only the ones that matter.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from crucible.compiler.standing import Standing

_TRIES: Final = 2000


class Survived(NamedTuple):
    """A task that had to pass in a valid run and no longer has to, and what may fail; nothing where that is open."""

    task: int
    failed: tuple[int, ...]


def survived(old: Standing, new: Standing) -> Iterator[Survived]:
    """Yield what a valid run no longer needs, and what a run no longer needs that is valid and has its result."""
    required = [one for one, task in new.tasks.items() if task.required]
    before = [one for one, task in old.tasks.items() if task.required]
    yield from _Search(old, new).of(required, before)
    if old.result is not None and new.result is not None and old.result not in before:
        yield from _Search(old, new).of([*required, new.result], [old.result])


class _Search:
    """Looks for runs of the new workflow in which a task of the old one would not have passed."""

    def __init__(self, old: Standing, new: Standing) -> None:
        self._old, self._new = old, new
        self._tries = _TRIES
        # Tasks of which one that passes in the new workflow would have passed in the old one, whatever else fails.
        self._kept: set[int] = set()
        for one in old.order:
            if one in new.tasks and self._is_kept(one):
                self._kept.add(one)

    def of(self, holds: Iterable[int], goals: Iterable[int]) -> Iterator[Survived]:
        """Yield the goals that need not pass when all of ``holds`` have."""
        passed = self._with(frozenset(), holds)
        lost = set(goals) - self._passes(passed)
        for goal in self._old.tasks:
            if goal in lost:
                found = self._run_without(passed, goal)
                if found is not None:
                    yield Survived(goal, self._smallest(found, goal) if self._tries else ())

    def _is_kept(self, one: int) -> bool:
        proven = self._new.proven[one]
        if not all(other in proven and other in self._kept for other in self._old.needs_all(one)):
            return False
        choice = self._kept.intersection(self._old.needs_one(one))
        ways = [self._new.proven[other] | {other} for other in self._new.needs_one(one)]
        return not self._old.is_any(one) or bool(choice & proven) or bool(ways and all(choice & way for way in ways))

    def _with(self, passed: frozenset[int], more: Iterable[int]) -> frozenset[int]:
        """Return what has passed in the new workflow when some others have, too."""
        return passed.union(*(self._new.proven[one] | {one} for one in more))

    def _passes(self, passed: frozenset[int]) -> set[int]:
        """Return what would have passed in the old workflow, when this has in the new one."""
        return self._fed(passed, passed & self._kept)

    def _fed(self, sound: frozenset[int], known: frozenset[int]) -> set[int]:
        """Return what passes in the old workflow when only what is not sound fails; of some it is known."""
        found: set[int] = set()
        for one in self._old.order:
            choice = self._old.needs_one(one)
            joined = found.issuperset(self._old.needs_all(one)) and (not choice or not found.isdisjoint(choice))
            if one in known or (one in sound and joined):
                found.add(one)
        return found

    def _run_without(self, passed: frozenset[int], goal: int) -> frozenset[int] | None:
        """Return what passes in some valid run in which the goal would not have, None when there is none."""
        if goal in self._passes(passed):
            return None
        open_joins = [one for one in passed if self._new.is_any(one) and passed.isdisjoint(self._new.needs_one(one))]
        if not open_joins or not self._tries:
            return passed
        self._tries -= 1
        near = self._new.above.get(goal, frozenset()) | self._old.above[goal] | {goal}
        join = min(open_joins, key=lambda one: (one not in near, one))
        for other in self._new.needs_one(join):
            found = self._run_without(self._with(passed, [other]), goal)
            if found is not None:
                return found
        return None

    def _smallest(self, passed: frozenset[int], goal: int) -> tuple[int, ...]:
        """Return failures of which each counts, in the order of the tasks."""
        for one in self._old.tasks:
            if one not in passed and goal not in self._fed(passed | {one}, frozenset()):
                passed |= {one}
        return tuple(one for one in self._old.tasks if one not in passed)

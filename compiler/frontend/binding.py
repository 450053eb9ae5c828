"""Binds the arguments of one constructor call by the table: given values in, good values and problems out.

Used twice with the same words: on the values that an evaluation recorded (lower.py) and on what
reading the tree tells of a call (names.py), where a value that is no literal is UNKNOWN.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, NamedTuple

from crucible.compiler.frontend.external import has_mark
from crucible.compiler.frontend.vocabulary import Argument, Constructor, Type, owners_of
from crucible.schemas.diagnostic import brief
from crucible.schemas.ir import is_finite
from crucible.schemas.spelling import hint, nearest

LARGEST_INT: Final = 2**31 - 1
OPAQUE_TEXT: Final = "<opaque python object>"


class Handle(NamedTuple):
    """An opaque value of the language: what the n-th recorded call gave back."""

    call: int


class Odd(NamedTuple):
    """A value of a type that no argument takes; ``text`` names it in a message."""

    text: str


class _Unknown:
    """The type of UNKNOWN, TOO_DEEP and NOT_FINITE."""


UNKNOWN: Final = _Unknown()
TOO_DEEP: Final = _Unknown()
NOT_FINITE: Final = _Unknown()


class Spot(NamedTuple):
    """A place inside one call.

    ``argument`` is the name of an argument, or "#n" for the n-th positional one (from 0), or "" for
    the constructor's name; ``path`` leads to an element of a nested list; ``part`` "name" means the
    argument's name, "again" its second name.
    """

    argument: str = ""
    path: tuple[int, ...] = ()
    part: Literal["value", "name", "again"] = "value"


class Problem(NamedTuple):
    """What is wrong in a call.

    In ``suggestion``, "{}" stands for the text at the place; without it, the suggestion replaces a
    name, or the text between the quotes of a string.
    """

    code: str
    message: str
    spot: Spot
    suggestion: str | None = None


class Given(NamedTuple):
    """One argument as it was given; ``name`` is None for a positional one."""

    name: str | None
    value: Any


class Bound(NamedTuple):
    """A call whose arguments were sorted out.

    ``values`` has the good values by argument name, without what was left out or is None;
    ``spots`` says where each of them was written; ``opaque`` is true when ``*`` or ``**`` hid some.
    """

    values: dict[str, Any]
    spots: dict[str, str]
    problems: list[Problem]


def bind(
    constructor: Constructor,
    given: list[Given],
    lane: str | None,
    kind_of: Callable[[Handle], str],
    *,
    complete: bool = True,
) -> Bound:
    """Sort the arguments of a call by the table of its constructor.

    ``kind_of`` tells what a handle is: "task", "session" or "workflow". ``complete`` is false when
    reading the tree could not see every argument; then none is called missing.
    """
    bound = Bound({}, {}, [])
    values, spots, problems = bound
    if len(given) > _MOST_GIVEN:
        message = f"arguments of one call may be at most {_MOST_GIVEN:,}; these are {len(given):,}"
        problems.append(Problem("limit-exceeded", message, Spot()))
        return bound
    unknown: list[str] = []
    positional = 0
    for item in given:
        name, value = item
        argument = constructor.rows.get(name) if name is not None else None
        if argument is None or name is None or name in spots:
            sorted_in = _sort_in(constructor, item, (given, positional), bound, lane)
            positional += name is None
            if sorted_in is None:
                if argument is None and name is not None:
                    unknown.append(name)
                continue
            argument, name = sorted_in
        spots[argument.name] = name
        if value.__class__ is str and argument.type is Type.TEXT and not argument.choices and OPAQUE_TEXT not in value:
            values[argument.name] = value  # most values are such texts
            continue
        wrong, value = _check(constructor, argument, value, name, kind_of)
        problems.extend(wrong)
        if value is not None:
            values[argument.name] = value
    if complete:
        if any(name not in spots for name in constructor.needed):
            problems.extend(_missing(constructor, bound, unknown))
        if "threshold" in constructor.rows:
            problems.extend(_pair(bound, unknown))
    for place, problem in enumerate(problems):
        problems[place] = problem._replace(message=brief(problem.message))
    return bound


def _sort_in(
    constructor: Constructor, item: Given, among: tuple[list[Given], int], bound: Bound, lane: str | None
) -> tuple[Argument, str] | None:
    """Return the argument that an item without a known name of its own gives, and its spot; or report a problem.

    ``among`` are all items, and how many without a name come before this one.
    """
    given, place = among
    have = {other.name for other in given if other.name is not None}
    if item.name is None:
        argument = constructor.argument(constructor.positional) if place == 0 else None
        if argument is None or (constructor.name == "workflow" and any(_is_of(constructor, name) for name in have)):
            count = sum(other.name is None for other in given)
            bound.problems.append(_positional(constructor, f"#{place}", have, count))
        elif argument.name in have:
            message = _repeated(constructor, argument.name)
            bound.problems.append(Problem("repeated-argument", message, Spot(argument.name, part="name")))
        else:
            return argument, f"#{place}"
    elif item.name in constructor.rows:
        message = _repeated(constructor, item.name)
        bound.problems.append(Problem("repeated-argument", message, Spot(item.name, part="again")))
    elif has_mark(item.name):
        message = "text that a launcher may supply belongs whole into a prompt; it may not be an argument's name"
        bound.problems.append(Problem("external-text", message, Spot()))
    else:
        meant = {
            (problem.suggestion or "").removesuffix(" = {}")
            for problem in bound.problems
            if problem.code in ("unknown-argument", "positional-argument")
        } & constructor.rows.keys()
        candidates = constructor.rows.keys() - have
        problem = _unknown_argument(constructor, item.name, candidates, lane)
        if problem.suggestion in meant:
            message = f'{constructor.name}() has no argument "{item.name}", and "{problem.suggestion}" is given already'
            problem = problem._replace(message=f"{message}; remove one of the two", suggestion=None)
        bound.problems.append(problem)
    return None


def _is_of(constructor: Constructor, name: str) -> bool:
    """Tell whether a name is, or was to be, that of an argument of the constructor."""
    return name in constructor.rows or nearest(name, constructor.rows) is not None


def _repeated(constructor: Constructor, name: str) -> str:
    return f'{constructor.name}() is given "{name}" twice; remove one of the two'


def _positional(constructor: Constructor, spot: str, have: set[str], count: int) -> Problem:
    """Say that an argument needs its name, and which name it most likely has."""
    if constructor.name == "workflow":
        message = "workflow() takes its tasks without a name only when it has no other argument; write tasks = […]"
        return Problem(
            "positional-argument", message, Spot(spot), "tasks = {}" if spot == "#0" and "tasks" not in have else None
        )
    if constructor.positional:
        return Problem(
            "positional-argument", f"{constructor.name}() takes one argument; this is one too many", Spot(spot)
        )
    absent = [name for name in constructor.needed if name not in have]
    guess = f"{absent[0]} = {{}}" if count == 1 and len(absent) == 1 else None
    example = absent[0] if absent else constructor.arguments[0].name
    return Problem(
        "positional-argument",
        f"{constructor.name}() takes its arguments by name; write {example} = …",
        Spot(spot),
        guess,
    )


def _unknown_argument(constructor: Constructor, name: str, candidates: set[str], lane: str | None) -> Problem:
    """Say that the constructor has no such argument: another's, a misspelling, or just unknown."""
    owners = owners_of(name, lane)
    if owners:
        tail, guess = f"; that is an argument of {' and '.join(f'{owner}()' for owner in owners[:3])}", None
    else:
        tail, guess = hint(name, candidates, "other arguments")
    return Problem(
        "unknown-argument", f'{constructor.name}() has no argument "{name}"{tail}', Spot(name, part="name"), guess
    )


def _missing(constructor: Constructor, bound: Bound, unknown: list[str]) -> list[Problem]:
    """Name the required arguments that are absent and that no other mistake explains.

    An argument that lacks its name, or has it misspelt, is there.
    """
    absent = [name for name in constructor.needed if name not in bound.spots]
    nameless = sum(problem.code == "positional-argument" for problem in bound.problems)
    return [
        Problem("missing-argument", f'{constructor.name}() needs the argument "{name}"', Spot())
        for name in absent[nameless:]
        if not any(nearest(given, [name]) for given in unknown)
    ]


def _pair(bound: Bound, unknown: list[str]) -> Iterator[Problem]:
    """Check that threshold and direction of an evaluate come together; one that lacks its name is there."""
    if any(problem.code == "positional-argument" for problem in bound.problems):
        return
    for one, other in (("threshold", "direction"), ("direction", "threshold")):
        if (one == "direction" and "k" in bound.spots) or bound.values.get(one) is UNKNOWN:
            continue  # what reading does not know may be None
        if one in bound.values and bound.values.get(other) is None and _was_left_out(bound, other):
            if any(nearest(name, [other]) for name in unknown):
                continue
            infinite = other == "threshold" and other in bound.spots
            none = "; threshold is None here, as a computed infinity is" if infinite else ""
            yield Problem("threshold-needs-direction", f"{one} needs {other} beside it{none}", Spot(bound.spots[one]))


def _was_left_out(bound: Bound, name: str) -> bool:
    """Tell whether an argument is absent rather than given with a mistake of its own."""
    spot = bound.spots.get(name)
    return spot is None or not any(problem.spot.argument == spot for problem in bound.problems)


def _check(
    constructor: Constructor, argument: Argument, value: Any, spot: str, kind_of: Callable[[Handle], str]
) -> tuple[list[Problem], Any]:
    """Check one value; return the problems and what of the value is good (None for nothing)."""
    if value is None:
        if argument.required:
            message = f"{argument.name} of {constructor.name}() is {argument.type.value}, not None"
            also = " (which a computed infinity is, too)" if argument.type is Type.INTEGER else ""
            return [Problem("wrong-type", message + also, Spot(spot))], None
        return [], None
    if value is UNKNOWN:
        return [], UNKNOWN
    if value is TOO_DEEP:
        return [Problem("value-too-deep", f"{argument.name} is nested more than 128 levels deep", Spot(spot))], None
    if argument.type in (Type.TASKS, Type.FIELDS):
        return _check_list(constructor, argument, value, spot, kind_of)
    problem = _check_scalar(constructor, argument, value, Spot(spot), kind_of)
    return ([problem], None) if problem else ([], value)


def _check_list(
    constructor: Constructor, argument: Argument, value: Any, spot: str, kind_of: Callable[[Handle], str]
) -> tuple[list[Problem], Any]:
    """Check a list: its good elements come back as (path, element), nested lists of tasks flattened."""
    of_tasks = argument.type is Type.TASKS
    scalar = Argument(argument.name, Type.TASK if of_tasks else Type.TEXT, "")
    if isinstance(value, str) and has_mark(value):
        return [], [((), value)]
    if not isinstance(value, list):
        single = _check_scalar(constructor, scalar, value, Spot(spot), kind_of) is None
        message = f"{argument.name} of {constructor.name}() is {argument.type.value}, not {describe(value, kind_of)}"
        problem = Problem("wrong-type", message, Spot(spot), "[{}]" if single else None)
        return [problem], [((), value)] if single else None
    problems: list[Problem] = []
    good: list[tuple[tuple[int, ...], Any]] = []
    for place, outermost in enumerate(value):
        if of_tasks and outermost.__class__ is Handle and kind_of(outermost) == "task":
            good.append(((place,), outermost))  # as most elements are
            continue
        pending: list[tuple[tuple[int, ...], Any]] = [((place,), outermost)]
        while pending:
            path, element = pending.pop()
            if of_tasks and isinstance(element, list):
                pending.extend(((*path, i), inner) for i, inner in reversed(list(enumerate(element))))
            elif element is UNKNOWN:
                good.append((path, UNKNOWN))
            elif element is TOO_DEEP:
                message = f"{argument.name} is nested more than 128 levels deep"
                problems.append(Problem("value-too-deep", message, Spot(spot, path)))
            else:
                wrong = _check_scalar(constructor, scalar, element, Spot(spot, path), kind_of, "an element of ")
                if wrong:
                    problems.append(wrong)
                else:
                    good.append((path, element))
    return problems, good


_MOST_GIVEN: Final = 256  # arguments of one call
_CLASSES: Final[dict[Type, tuple[type, ...]]] = {
    Type.TEXT: (str,),
    Type.BOOLEAN: (bool,),
    Type.INTEGER: (int,),
    Type.NUMBER: (int, float),
    Type.TASK: (str, Handle),
    Type.SESSION: (str, Handle),
}


def _check_scalar(
    constructor: Constructor,
    argument: Argument,
    value: Any,
    spot: Spot,
    kind_of: Callable[[Handle], str],
    what: str = "",
) -> Problem | None:
    """Check a value that is no list against its type, its range and its set."""
    if value is UNKNOWN:
        return None
    if value in (NOT_FINITE, HUGE) and argument.type is Type.NUMBER:
        return Problem("threshold-not-finite", f"{argument.name} is a finite number, and this one is not", spot)
    fits = isinstance(value, _CLASSES[argument.type]) and (not isinstance(value, bool) or argument.type is Type.BOOLEAN)
    if fits and isinstance(value, Handle):
        fits = kind_of(value) == ("session" if argument.type is Type.SESSION else "task")
    if not fits:
        if argument.type is Type.INTEGER and value == HUGE:
            return _out_of_range(argument, spot, HUGE.text)
        message = (
            f"{what}{argument.name} of {constructor.name}() is {argument.type.value}, not {describe(value, kind_of)}"
        )
        return Problem("wrong-type", message, spot)
    if isinstance(value, str):
        if OPAQUE_TEXT in value:
            message = f"{argument.name} holds the text form of a task or session; write its name instead"
            return Problem("opaque-in-text", message, spot)
        if argument.choices and value not in argument.choices and not has_mark(value):  # that is its own mistake
            tail, guess = hint(value, argument.choices, "values")
            return Problem("unknown-value", f'{argument.name} has no value "{value}"{tail}', spot, guess)
    if argument.type is Type.INTEGER and not 1 <= value <= LARGEST_INT:
        return _out_of_range(argument, spot, str(value))
    if argument.type is Type.NUMBER and not is_finite(value):
        return Problem("threshold-not-finite", f"{argument.name} is a finite number, and this one is not", spot)
    return None


HUGE: Final = Odd("a huge integer")


def _out_of_range(argument: Argument, spot: Spot, measured: str) -> Problem:
    return Problem("out-of-range", f"{argument.name} lies between 1 and {LARGEST_INT}; this is {measured}", spot)


def describe(value: Any, kind_of: Callable[[Handle], str]) -> str:
    """Name a value's type as a message does."""
    if isinstance(value, Handle):
        return f"a {kind_of(value)}"
    if isinstance(value, Odd):
        return value.text
    if value is NOT_FINITE:
        return "a number that is not finite"
    for cls, text in ((bool, str(value)), (str, "a string"), (int, "an integer"), (float, "a float"), (list, "a list")):
        if isinstance(value, cls):
            return text
    return "None" if value is None else "a value of another type"

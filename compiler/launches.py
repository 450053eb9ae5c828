"""What two playbooks become under the launches that they admit: each is compiled for many, and both are compared.

In go the declarations and texts of two sources with what compiles them for a launch, out comes their difference
with what differs under some launch only. No source is read for what it does with a parameter: it is evaluated.
"""

import itertools
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from crucible.compiler import diff
from crucible.compiler.change import Change, Class
from crucible.compiler.frontend.param_types import as_float, parse
from crucible.compiler.frontend.params import Declaration, Declarations, bind, read_block
from crucible.compiler.frontend.scan import string_value, tokens
from crucible.schemas.diagnostic import Severity
from crucible.schemas.hashes import sha256

if TYPE_CHECKING:
    from crucible.compiler.diff import Diff
    from crucible.compiler.gate import Gate
    from crucible.compiler.pipeline import Compiled
    from crucible.schemas.ir import Task, Workflow

_LANE: Final = "playbook"
# Launches in which one parameter is not as usual, and those in which any may be.
MOST_ALONE: Final = 96
MOST_TOGETHER: Final = 64
_SECONDS: Final = 120.0  # for all launches of a comparison; usual ones take a second or two
_PLAIN_TEXT: Final = "Some words."
_ODD_TEXT: Final = " \"quoted\" 'and' `more`\n\ttab $HOME %s {} \\ <b> é 😀 0123456789 " + "long " * 8
_LONGEST_NUMBER: Final = 30
_LENGTHS: Final = (0, 1, 2, 3, 8, 40)  # of lists, beside the numbers of the sources
_LONGEST_LIST: Final = 200
# What is said of a parameter that has another fact, and of which class that is: what it does to a run is seen there.
_FACTS: Final[Mapping[str, tuple[Class, str]]] = {
    "type": (Class.CHANGED, "another type"),
    "required": (Class.CHANGED, "another answer to whether a launch must give it"),
    "pattern": (Class.CHANGED, "another pattern"),
    "min": (Class.CHANGED, "another min"),
    "max": (Class.CHANGED, "another max"),
    "choices": (Class.CHANGED, "other choices"),
    "example": (Class.COSMETIC, "another example"),
}

Launch = Mapping[str, str]


class Source(NamedTuple):
    """One side: what it declares, the texts that it is made of, and what compiles it for a launch."""

    declared: Declarations
    texts: tuple[str, ...]
    compile: "Callable[[tuple[tuple[str, str], ...]], tuple[Compiled, Gate | None]]"


def declared(root: str) -> Declarations:
    """Read the declarations of a playbook from its text."""
    block, _ = read_block(tokens(root), _LANE)
    return block if block is not None else NOTHING


NOTHING: Final = Declarations((), (), ())


def compare(old: Source, new: Source, usual: "Diff") -> "Diff":
    """Add to the difference without a launch what is another one under some launch, and what may be asked for."""
    before, after = _Tried(old), _Tried(new)
    _give_what_is_required(before, after)
    was, now = before.under({}), after.under({})
    if _has_other_examples(old, new) and was is not None and now is not None:
        # No launch takes an example, so it is not what a run differs by.
        usual = was.difference(now) or usual
    changes = [*_of_declarations(old, new), *_Comparison(before, after, usual.changes).changes()]
    return usual.with_more(changes)


def _has_other_examples(old: Source, new: Source) -> bool:
    """Tell whether a compile without a launch gives another value to what any launch must give."""
    examples = [{row.name: row.example for row in each.declared.rows if row.required} for each in (old, new)]
    return any(examples[0][name] != examples[1][name] for name in examples[0].keys() & examples[1].keys())


def _of_declarations(old: Source, new: Source) -> Iterator[Change]:
    """Yield in what the parameters differ that both have; that one is new or gone is seen in their values."""
    for after in new.declared.rows:
        before = old.declared.get(after.name)
        if before is None:
            continue
        for fact, (kind, says) in _FACTS.items():
            one, other = _data(getattr(before, fact)), _data(getattr(after, fact))
            if one == other:
                continue
            change = Change(kind, None, "params", f"the parameter {{}} has {says}", (after.name,), one, other)
            is_order = fact == "choices" and sorted(one) == sorted(other)
            yield change._replace(kind=Class.COSMETIC) if is_order else change


def _data(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


# Trying


class _Outcome(NamedTuple):
    """What a source comes to under a launch that it does not refuse; without a workflow there is an error."""

    workflow: "Workflow | None"
    gate: "Gate | None"
    code: str = ""
    message: str = ""

    def difference(self, other: "_Outcome") -> "Diff | None":
        """Compare the workflows, None where one did not compile."""
        if self.workflow is None or other.workflow is None:
            return None
        return diff.compare(self.workflow, other.workflow, self.gate, other.gate)

    def is_same(self, other: "_Outcome") -> bool:
        """Tell whether another source comes to the very same."""
        one, two = self.workflow, other.workflow
        if one is None or two is None:
            return one is two and self.code == other.code
        return (one.type, one.task, one.result, self.gate) == (two.type, two.task, two.result, other.gate)


class _Tried:
    """A source and what it has come to so far; ``usual`` are the values of what a launch must give."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.usual: Launch = {
            row.name: _text(row.example) for row in source.declared.rows if row.required and row.example is not None
        }
        self._tasks: dict[Task, Task] = {}  # each kept once: most are the same under every launch
        self._found: dict[tuple[tuple[str, str], ...], _Outcome | None] = {}

    def under(self, launch: Launch) -> _Outcome | None:
        """Compile for a launch, of which it is given what it declares; None when it refuses that."""
        names = self.source.declared.names
        given = tuple(sorted((name, text) for name, text in {**self.usual, **launch}.items() if name in names))
        if given not in self._found:
            self._found[given] = self._compiled(given)
        return self._found[given]

    def _compiled(self, given: tuple[tuple[str, str], ...]) -> _Outcome | None:
        if bind(self.source.declared, given).problems:
            return None
        compiled, gate = self.source.compile(given)
        errors = [each for each in compiled.diagnostics if each.severity is Severity.ERROR]
        if any(each.code == "invalid-param" for each in errors):  # its pattern
            return None
        if compiled.workflow is None:
            return _Outcome(None, gate, *((errors[0].code, errors[0].message) if errors else ("", "")))
        tasks = tuple(self._tasks.setdefault(task, task) for task in compiled.workflow.task)
        return _Outcome(compiled.workflow.replace(task=tasks), gate)


def _give_what_is_required(old: _Tried, new: _Tried) -> None:
    """Let both sides have the same values of what a launch must give, where both admit them."""
    for both in ({**new.usual, **old.usual}, {**old.usual, **new.usual}):
        own = old.usual, new.usual
        old.usual = new.usual = both
        if old.under({}) is not None and new.under({}) is not None:
            return
        old.usual, new.usual = own


# Comparing


class _Comparison:
    """Two sources under many launches; what is known without one is not said again."""

    def __init__(self, old: _Tried, new: _Tried, known: Iterable[Change]) -> None:
        self._old, self._new = old, new
        self._known = {_key(change) for change in known}
        self._until = time.monotonic() + _SECONDS
        # By the parameters that a launch gives: what the old source came to, and what only the new one admits.
        self._before: dict[tuple[str, ...], list[tuple[Launch, _Outcome]]] = {}
        self._widened: dict[tuple[str, ...], list[tuple[Launch, _Outcome]]] = {}

    def changes(self) -> Iterator[Change]:
        """Try all launches, one parameter after the other first, then all together."""
        values = _values(self._old.source, self._new.source)
        alone = [{}, *({name: text} for name, texts in values.items() for text in texts)]
        yield from self._under_each(alone)
        steering = {row.name for row in self._new.source.declared.rows if row.type != "string" or row.choices}
        admitted = {
            name: [text for text in texts if self._is_admitted({name: text})]
            for name, texts in values.items()
            if name in steering  # what is built by looking at other text is refused
        }
        yield from self._under_each(_together({name: texts for name, texts in admitted.items() if texts}))
        for names, widened in self._widened.items():
            yield from self._of_widened([*self._before.get(names, ()), *self._before.get((), ())], widened)

    def _under_each(self, launches: Sequence[Launch]) -> Iterator[Change]:
        for number, launch in enumerate(launches):
            if time.monotonic() > self._until:
                says = f"what {len(launches) - number} of {len(launches)} more launches come to is not known"
                yield Change(Class.CHANGED, None, "params", f"{says}: they take too long")
                return
            yield from self._under(launch)

    def _is_admitted(self, launch: Launch) -> bool:
        """Tell whether neither side refuses a launch."""
        return self._old.under(launch) is not None and self._new.under(launch) is not None

    def _under(self, launch: Launch) -> Iterator[Change]:
        was, now = self._old.under(launch), self._new.under(launch)
        group = tuple(launch)
        if was is not None and was.workflow is not None:
            self._before.setdefault(group, []).append((launch, was))
        if now is None or (was is not None and was.is_same(now)):
            return
        if now.workflow is None:
            if was is not None and was.workflow is not None:
                yield from self._fresh(launch, [_of_compiling("any more", now)])
            return
        if was is None or was.workflow is None:
            self._widened.setdefault(group, []).append((launch, now))
            if was is not None:
                yield from self._fresh(launch, [_of_compiling("before", was)])
            return
        found = was.difference(now)
        # The values of a launch are the same; where only one side has a parameter, that is known.
        yield from self._fresh(launch, (each for each in found.changes if each.field != "params") if found else ())

    def _fresh(self, launch: Launch, changes: Iterable[Change]) -> Iterator[Change]:
        for change in changes:
            key = _key(change)
            if key not in self._known:
                self._known.add(key)
                yield change._replace(launch=tuple(self._needed(launch, key).items()))

    def _needed(self, launch: Launch, key: tuple[object, ...]) -> Launch:
        """Leave out of a launch what a change does not need."""
        for name in launch if len(launch) > 1 else ():
            less = {other: text for other, text in launch.items() if other != name}
            was, now = self._old.under(less), self._new.under(less)
            found = was.difference(now) if was is not None and now is not None else None
            if found is not None and key in map(_key, found.changes):
                launch = less
        return launch

    def _of_widened(
        self, before: list[tuple[Launch, _Outcome]], widened: list[tuple[Launch, _Outcome]]
    ) -> Iterator[Change]:
        """Find a launch that might not be made before and proves less than whatever might."""
        for launch, now in widened:
            weaker = []
            for _, was in sorted(before, key=lambda one: _distance(one[0], launch)):
                found = was.difference(now)
                changes = [] if found is None else [
                    each for each in found.changes if each.kind is Class.WEAKENED and _key(each) not in self._known
                ]  # fmt: skip
                if not changes:
                    break
                weaker.append(changes)
            else:
                if weaker:
                    worst = min(weaker, key=len)
                    for change in self._fresh(launch, worst):
                        yield change._replace(says=f"{change.says}, which no launch could ask for before")
                    return


def _key(change: Change) -> tuple[object, ...]:
    """Return what two changes have in common that are one, whatever the values."""
    return change.kind, change.task, change.field, change.says, change.names


def _of_compiling(when: str, outcome: _Outcome) -> Change:
    if when == "before":
        says = "it compiles now; before, there was the error {}"
        return Change(Class.CHANGED, None, "", says, (outcome.code,), outcome.message, None)
    says = "it does not compile any more; there is the error {}"
    return Change(Class.CHANGED, None, "", says, (outcome.code,), None, outcome.message)


def _distance(one: Launch, other: Launch) -> float:
    """Return how far apart the numbers of two launches are."""
    pairs = [(parse("number", one.get(name, "")), parse("number", text)) for name, text in other.items()]
    known = [abs(a - b) for a, b in pairs if isinstance(a, float) and isinstance(b, float)]
    return sum(known) if len(known) == len(pairs) else math.inf


# Which launches


def _together(values: Mapping[str, Sequence[str]]) -> list[Launch]:
    """Return launches that give all parameters: every one there is, or some where those are too many."""
    if len(values) < 2:  # noqa: PLR2004 - one alone has been varied
        return []
    if math.prod(len(texts) for texts in values.values()) <= MOST_TOGETHER:
        return [dict(zip(values, texts, strict=True)) for texts in itertools.product(*values.values())]
    return [
        {name: texts[_drawn(f"{number} {name}") % len(texts)] for name, texts in values.items()}
        for number in range(MOST_TOGETHER)
    ]


def _drawn(text: str) -> int:
    """Return a number that is as good as chance, and the same every time."""
    return int(sha256(text.encode())[:8], 16)


def _values(old: Source, new: Source) -> dict[str, list[str]]:
    """Return what to give each parameter of the new source, as a launch writes it; at most MOST_ALONE in all."""
    numbers = sorted({number for text in (*old.texts, *new.texts) for number in _numbers(text)})
    found = {}
    for row in new.declared.rows:
        rows = [each for each in (row, old.declared.get(row.name)) if each is not None]
        texts = dict.fromkeys(_text(value) for each in rows for value in _candidates(each, rows, numbers))
        found[row.name] = [text for text in texts if any(_admits(each, text) for each in rows)]
    share = max(map(len, found.values()), default=0)
    while sum(min(len(texts), share) for texts in found.values()) > MOST_ALONE and share > 1:
        share -= 1
    return {name: texts[:share] for name, texts in itertools.islice(found.items(), MOST_ALONE)}


def _numbers(text: str) -> Iterator[float]:
    """Yield the numbers that stand in a source, such as are written in a string as well."""
    before = ""
    for token in tokens(text):
        written = string_value(token.text) or "" if token.kind == "STRING" else token.text
        if token.kind in ("INT", "FLOAT", "STRING") and len(written) <= _LONGEST_NUMBER:
            value = _number(written)
            if value is not None and math.isfinite(value):
                yield -value if before == "-" else value
        before = token.text


def _number(text: str) -> float | None:
    with suppress(ValueError, OverflowError):
        return float(text) if any(sign in text for sign in ".e") else float(int(text, 0))
    return None


def _admits(row: Declaration, text: str) -> bool:
    """Tell whether a parameter may have a value, as far as its pattern is not asked."""
    return not bind(Declarations((row,), (row.name,), ()), ((row.name, text),)).problems


def _candidates(row: Declaration, rows: Sequence[Declaration], numbers: Sequence[float]) -> Iterator[Any]:
    """Yield values for a parameter as one of its declarations has it."""
    if row.choices:
        yield from row.choices
    elif row.type == "bool":
        yield from (False, True)
    elif row.type in ("int", "number"):
        yield from _points(row, rows, numbers)
    else:
        own = [value for each in rows for value in (each.default, each.example) if value is not None]
        yield from own
        if row.type == "string":
            yield from (_PLAIN_TEXT, _ODD_TEXT, "")
            yield from (value + _ODD_TEXT for value in own if isinstance(value, str))  # where a pattern asks for more
        else:
            near = (int(number) + step for number in numbers for step in (-1, 0, 1) if 0 <= number <= _LONGEST_LIST)
            lengths = sorted({*_LENGTHS, *(length for length in near if length >= 0)})
            yield from (([_PLAIN_TEXT, _ODD_TEXT] * length)[:length] for length in lengths)


def _points(row: Declaration, rows: Sequence[Declaration], numbers: Sequence[float]) -> Iterator[float]:
    """Yield the numbers at which something may change, one between each two of them, and some beyond.

    Bounds come first, for there are only so many launches.
    """
    own = [
        float(value)
        for each in rows
        for value in (each.min, each.max, each.default, each.example)
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    ]
    marks = sorted({*own, *numbers})
    low, high = min(marks, default=0.0), max(marks, default=0.0)
    points = [*own, *(value + step for value in own for step in (-1, 1)), 2 * high + 1, 2 * low - 1, *numbers]
    points += [(one + other) / 2 for one, other in itertools.pairwise(marks)]
    if row.type == "number":
        yield from map(as_float, points)
        return
    steps = (*points, *(value + step for value in numbers for step in (-1, 1)))
    yield from (int(edge(value)) for value in steps if math.isfinite(value) for edge in (math.floor, math.ceil))


def _text(value: Any) -> str:
    """Return a value as a launch writes it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

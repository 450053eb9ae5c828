"""The semantic diff: two workflows become a list of changes and a verdict (tooling.md §5).

Pure. The one question is whether a run of the new workflow proves less than a run of the old one did:
that is *weakened*, and in doubt a change is. Splices are compared as the loops that they stand for.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, Self

from crucible.compiler import gate as gates
from crucible.compiler.analysis.graph import Graph
from crucible.compiler.change import Change, Class
from crucible.compiler.failures import survived
from crucible.compiler.gate import Gate
from crucible.compiler.judged import FIELDS, kind_of, of_kinds
from crucible.compiler.matching import match
from crucible.compiler.shell import Strictness, strictness
from crucible.compiler.standing import Standing
from crucible.schemas.default_loop import expanded
from crucible.schemas.ir import LANES, AgentTask, CommandTask, EngineTask, EvaluateTask, Task, TopKTask, Workflow

UNCHANGED: Final = "unchanged"
VERDICTS: Final = ("weakened", "changed", "strengthened", "cosmetic", UNCHANGED)

_MOST_NAMES: Final = 3
_MEASURES: Final = ("measure", "grade", "decide")


class Diff(NamedTuple):
    """How two workflows differ: the changes, gravest first, else in the order of the tasks.

    ``old`` and ``new`` are the workflows as they were compared, ``renamed`` has the old names of tasks by their new
    ones, ``added`` and ``removed`` the names of tasks without a partner.
    """

    changes: tuple[Change, ...]
    old: Workflow
    new: Workflow
    renamed: dict[str, str]
    added: tuple[str, ...]
    removed: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """Return one of VERDICTS: whether a run proves less; else what the changes come to together."""
        kinds = {change.kind for change in self.changes}
        if Class.WEAKENED in kinds:
            return "weakened"
        if kinds & {Class.REWIRED, Class.CHANGED}:
            return "changed"
        return "strengthened" if Class.STRENGTHENED in kinds else "cosmetic" if kinds else UNCHANGED

    @property
    def changes_meaning(self) -> bool:
        """Tell whether there is any change but such as are cosmetic."""
        return self.verdict not in ("cosmetic", UNCHANGED)

    def with_more(self, changes: Iterable[Change]) -> Self:
        """Return a diff with further changes."""
        return self._replace(changes=_gravest_first([*self.changes, *changes]))

    def counts(self) -> dict[str, int]:
        """Return how many changes of each class there are."""
        kinds = [change.kind for change in self.changes]
        return {kind.value: kinds.count(kind) for kind in Class}


def compare(old: Workflow, new: Workflow, old_gate: Gate | None = None, new_gate: Gate | None = None) -> Diff:
    """Compare two workflows that compiled, and where both are known their manifests' gates."""
    before, after = Graph(expanded(old)), Graph(expanded(new))
    pairs = match(before, after)
    comparison = _Comparison(before, after, pairs)
    changes = list(comparison.changes())
    if old_gate is not None and new_gate is not None:
        changes += gates.compare(old_gate, new_gate)
    found = set(pairs.values())
    return Diff(
        _gravest_first(changes),
        before.workflow,
        after.workflow,
        {
            after.tasks[n].name: before.tasks[o].name
            for o, n in pairs.items()
            if after.tasks[n].name != before.tasks[o].name
        },
        tuple(task.name for index, task in enumerate(after.tasks) if index not in found),
        tuple(task.name for index, task in enumerate(before.tasks) if index not in pairs),
    )


def _gravest_first(changes: Iterable[Change]) -> tuple[Change, ...]:
    order = list(Class)
    return tuple(sorted(changes, key=lambda change: order.index(change.kind)))  # stable: the tasks keep their order


def _finds(task: Task) -> bool:
    """Tell whether what a task says holds for what was there when it ran."""
    return isinstance(task, (EvaluateTask, CommandTask)) or task.operation in ("measure", "apply")


def _strictness(task: Task | None) -> Strictness:
    """Return how much the answer of a task counts."""
    return strictness(getattr(task, "command", None))


def _says_yes(task: Task | None) -> bool:
    """Tell whether a task passes whatever it finds."""
    return _strictness(task) is Strictness.NONE


def _may_say_no(task: Task | None) -> bool:
    """Tell whether a task is known to be able to fail."""
    return _strictness(task) > Strictness.UNKNOWN


# What is said of a task that takes over from one that had more of something.
_RANKS: Final = {
    "required": "is advisory",
    "stage": "runs in the epilogue",
    "join": "needs only one of its dependencies to pass",
    "isolation": "is not isolated",
    "threshold": "has no such threshold",
    "direction": "has no such direction",
}


def _body_of(task: Task) -> tuple[str, str]:
    """Return what a task runs or is told, nothing for one that does neither."""
    if isinstance(task, AgentTask):
        return "prompt", task.prompt
    return "command", getattr(task, "command", "")


def _bearers(side: Standing) -> dict[tuple[str, str], list[int]]:
    """Return the tasks by what they run or are told."""
    found: dict[tuple[str, str], list[int]] = {}
    for one, task in side.tasks.items():
        body = _body_of(task)
        if body[1]:
            found.setdefault(body, []).append(one)
    return found


def _is_check(task: Task) -> bool:
    """Tell whether a task can say no without anybody's judgement."""
    return isinstance(task, (EvaluateTask, CommandTask)) or task.operation in _MEASURES


class _Comparison:
    """Two workflows with the partners of their tasks; each method yields the changes of one sort."""

    def __init__(self, old: Graph, new: Graph, pairs: dict[int, int]) -> None:
        partners = {index: other for other, index in pairs.items()}
        self._old = Standing(old, lambda index: index)
        self._new = Standing(new, lambda index: partners.get(index, ~index))
        self._both = tuple(pairs)
        self._said: list[Change] = []

    def changes(self) -> Iterator[Change]:
        """Yield all changes, those of the whole first, then task by task as the new workflow lists them."""
        self._said = [*self._one_by_one(), *self._moved()]
        # What follows from the graph as a whole is said where no change of its own has said it.
        self._said += list(self._consequences())
        self._said += list(self._survived())
        of_task: dict[str | None, list[Change]] = {}
        for change in [*self._of_the_whole(), *self._said]:
            of_task.setdefault(change.task, []).append(change)
        names = [
            None,
            *(task.name for task in self._new.workflow.task),
            *(task.name for task in self._old.workflow.task),
        ]
        for name in dict.fromkeys(names):
            yield from of_task.get(name, ())

    def _name(self, one: int) -> str:
        """Return what a task is called now, or was called when it is gone."""
        return (self._new.tasks[one] if one in self._new.tasks else self._old.tasks[one]).name

    # The whole

    def _of_the_whole(self) -> Iterator[Change]:
        old, new = self._old.workflow, self._new.workflow
        if old.type != new.type:
            weaker = LANES.index(new.type) > LANES.index(old.type)
            says = "the lane asks less of a workflow" if weaker else "the lane asks more of a workflow"
            yield Change(Class.WEAKENED if weaker else Class.STRENGTHENED, None, "type", says, (), old.type, new.type)
        yield from self._result()
        before, after = dict(old.params or {}), dict(new.params or {})
        for name in dict.fromkeys([*before, *after]):
            if name not in before or name not in after or _differ(before[name], after[name]):
                says = "{} is a parameter now" if name not in before else "{} is no parameter any more"
                if name in before and name in after:
                    says = "the value of the parameter {} changed"
                yield Change(
                    Class.CHANGED, None, "params", says, (name,), before.get(name), after.get(name)
                )  # fmt: skip
        kept = [one for one in self._new.tasks if one in self._old.tasks]
        if kept != sorted(kept):
            yield Change(Class.COSMETIC, None, "task", "the tasks stand in another order")

    def _result(self) -> Iterator[Change]:
        before, after = self._old.result, self._new.result
        if before == after:
            return
        names = (self._old.workflow.result, self._new.workflow.result)
        if after is None:
            yield Change(Class.WEAKENED, None, "result", "there is no result any more", (), *names)
        elif before is None:
            yield Change(Class.REWIRED, None, "result", "{} is the result now", (self._name(after),), *names)
        elif self._old.leads <= self._new.leads:
            says = "{} is the result now, in place of {}"
            yield Change(Class.REWIRED, None, "result", says, (self._name(after), self._name(before)), *names)
        else:
            says = "the result is {} now, with less behind it than {} had"
            yield Change(Class.WEAKENED, None, "result", says, (self._name(after), self._name(before)), *names)

    # One task after the other

    def _one_by_one(self) -> Iterator[Change]:
        for one, task in self._new.tasks.items():
            if one in self._old.tasks:
                yield from self._of_a_task(one)
            else:
                yield self._added(one, task)
                yield from self._joined(one, task)
        for one, task in self._old.tasks.items():
            if one not in self._new.tasks:
                yield self._removed(one, task)

    def _added(self, one: int, task: Task) -> Change:
        adds = _is_check(task) and task.required and one in self._new.leads and _may_say_no(task)
        return Change(
            Class.STRENGTHENED if adds else Class.REWIRED, task.name, "", "{} is new", (task.name,), None, kind_of(task)
        )

    def _joined(self, one: int, task: Task) -> Iterator[Change]:
        """Find the conversations that a new task joins: those in it may hear what they had not."""
        for other in sorted(self._new.together(one)):
            partner = self._new.tasks[other]
            if other in self._old.tasks and isinstance(partner, AgentTask) and partner.required:
                says = "{} is new in the conversation of {}, which had not heard it"
                yield Change(Class.WEAKENED, task.name, "session", says, (task.name, partner.name))

    def _removed(self, one: int, task: Task) -> Change:
        leads = self._old.result is not None and one in self._old.leads
        proves = task.required or leads or (_is_check(task) and not task.is_epilogue)
        kind = Class.WEAKENED if proves else Class.REWIRED
        return Change(kind, task.name, "", "{} is gone", (task.name,), kind_of(task), None)

    def _of_a_task(self, one: int) -> Iterator[Change]:
        old, new = self._old.tasks[one], self._new.tasks[one]
        if old.name != new.name:
            says = "{} is called {} now; what reads its output finds it under that name"
            yield Change(Class.CHANGED, new.name, "name", says, (old.name, new.name), old.name, new.name)
        if type(old) is not type(new):
            yield Change(
                of_kinds(old, new),
                new.name,
                "kind",
                "{} is a task of another kind",
                (new.name,),
                kind_of(old),
                kind_of(new),
            )
        yield from self._edges(one)
        is_pair = (getattr(old, "threshold", None) is None) != (getattr(new, "threshold", None) is None)
        for field in new.fields:
            if field not in FIELDS or (field == "direction" and is_pair):
                continue
            before, after = getattr(old, field, None), getattr(new, field, None)
            if field in old.fields and _differ(before, after):
                kind, says = FIELDS[field](old, new)
                if field == "join" and kind is Class.STRENGTHENED and not self._asks_all_that_it_had(one):
                    kind = Class.REWIRED
                yield Change(kind, new.name, field, says, (new.name,), before, after)
        yield from self._emits(old, new)
        yield from self._session(one, old, new)
        if isinstance(old, EngineTask) and isinstance(new, EngineTask):
            yield from self._readings(old, new)

    def _asks_all_that_it_had(self, one: int) -> bool:
        """Tell whether a task still has all the dependencies of which it needed some."""
        return set(self._old.depends[one]) <= set(self._new.depends[one])

    def _emits(self, old: Task, new: Task) -> Iterator[Change]:
        for field in old.emits:
            if field not in new.emits:
                says = "{} no longer promises the field {}"
                yield Change(Class.WEAKENED, new.name, "emits", says, (new.name, field), field, None)
        for field in new.emits:
            if field not in old.emits:
                says = "{} promises the field {} now"
                yield Change(Class.STRENGTHENED, new.name, "emits", says, (new.name, field), None, field)
        if old.emits != new.emits and sorted(old.emits) == sorted(new.emits):
            says = "the fields of {} stand in another order"
            yield Change(Class.COSMETIC, new.name, "emits", says, (new.name,), list(old.emits), list(new.emits))

    def _session(self, one: int, old: Task, new: Task) -> Iterator[Change]:
        if old.session == new.session:
            return
        before = {other for other in self._old.together(one) if other in self._new.tasks}
        after = {other for other in self._new.together(one) if other in self._old.tasks}
        for other in sorted(after - before):
            says = "{} shares its conversation with {} now, which was apart from it"
            names = (new.name, self._name(other))
            yield Change(Class.WEAKENED, new.name, "session", says, names, old.session, new.session)
        if after - before:
            return
        if old.session is None or new.session is None:
            kind = Class.CHANGED
            says = "{} has no session any more" if new.session is None else "{} has a session now"
        elif before - after:
            kind, says = Class.CHANGED, "{} has a conversation of its own now"
        else:
            kind, says = Class.COSMETIC, "the session of {} has another name"
        yield Change(kind, new.name, "session", says, (new.name,), old.session, new.session)

    def _readings(self, old: EngineTask, new: EngineTask) -> Iterator[Change]:
        """Compare what a grade or a decide takes its reading from."""
        for field, words in (("source", "its reading"), ("tiebreak", "its tiebreak")):
            before, after = getattr(old, field), getattr(new, field)
            if self._old.ids.get(before) == self._new.ids.get(after) and (before is None) == (after is None):
                continue
            names: tuple[str, ...] = (new.name,)
            if after is None:
                kind, says = Class.WEAKENED, f"{{}} has no {field} any more"
            elif before is None:
                kind = Class.STRENGTHENED if _may_say_no(self._new.task(after)) else Class.REWIRED
                says = f"{{}} has a {field} now"
            elif _strictness(self._new.task(after)) < _strictness(self._old.task(before)):
                kind, says = Class.WEAKENED, f"{{}} takes {words} from {{}} now, which says less of what it finds"
                names = (new.name, after)
            elif self._old.evidence(before) <= self._new.evidence(after):
                kind, says = Class.REWIRED, f"{{}} takes {words} from {{}} now, behind which stands all that did before"
                names = (new.name, after)
            else:
                kind, says = Class.WEAKENED, f"{{}} takes {words} from {{}} now, with less evidence behind it"
                names = (new.name, after)
            yield Change(kind, new.name, field, says, names, before, after)

    # What tasks run or are told, wherever it stands

    def _moved(self) -> Iterator[Change]:
        """Find what went from one task to another that counts for less, and what went nowhere to make room."""
        before, after = _bearers(self._old), _bearers(self._new)
        for body, bearers in before.items():
            heirs = after.get(body, [])
            if len(bearers) > 1 or len(heirs) > 1 or bearers[0] not in self._new.tasks or bearers == heirs:
                continue
            (one,) = bearers
            field, says = ("prompt", "told to") if body[0] == "prompt" else ("command", "run by")
            old = self._old.tasks[one]
            if heirs:
                lost = self._lost_on_the_way(one, heirs[0])
                if lost:
                    new = self._new.tasks[heirs[0]]
                    was = "was told" if field == "prompt" else "ran"
                    says = f"what {{}} {was} is {says} {{}} now, which {', '.join(lost)}"
                    yield Change(Class.WEAKENED, new.name, field, says, (old.name, new.name))
                continue
            others = before.get(_body_of(self._new.tasks[one]), [])
            taken = [other for other in others if other != one and other in self._new.tasks]
            if taken and one not in others and old.required and _is_check(old) and not _says_yes(old):
                name = self._name(one)
                says = "{} runs what {} ran, and what it ran itself runs nowhere now"
                yield Change(Class.WEAKENED, name, field, says, (name, self._old.tasks[taken[0]].name))

    def _lost_on_the_way(self, one: int, other: int) -> list[str]:
        """Say what a task is not, or not as much, which now does what another did."""
        old, new = self._old.tasks[one], self._new.tasks[other]
        lost = []
        if type(old) is not type(new) and of_kinds(old, new) is Class.WEAKENED:
            lost.append("is a task of another kind")
        for field, says in _RANKS.items():
            before, after = getattr(old, field, None), getattr(new, field, None)
            is_less = before is not None and _differ(before, after) and FIELDS[field](old, new)[0] is Class.WEAKENED
            if is_less and not (field == "direction" and _RANKS["threshold"] in lost):
                lost.append(says)
        if None not in (self._old.result, self._new.result) and one in self._old.leads and other not in self._new.leads:
            lost.append("does not lead to the result")
        elif (self._old.gates(one) - self._new.gates(other) - {other}) & self._new.tasks.keys():
            lost.append("is not needed where that was")
        if self._old.gives_readings(one) and not self._new.gives_readings(other):
            lost.append("gives no reading")
        return lost

    # Edges

    def _edges(self, one: int) -> Iterator[Change]:
        before, after = self._old.depends[one], self._new.depends[one]
        old, new = self._old.tasks[one], self._new.tasks[one]
        for other in before:
            if other not in after:
                name = self._name(other)
                kind, says = self._lost_edge(one, other)
                edge = (old.name, self._old.tasks[other].name)
                yield Change(kind, new.name, "depends_on", says, (new.name, name), name, None, edge)
        for other in after:
            if other not in before:
                name = self._name(other)
                kind, says = self._new_edge(one, other)
                yield Change(kind, new.name, "depends_on", says, (new.name, name), None, name, (new.name, name))
        if not self._old.is_any(one) and self._new.is_any(one) and new.operation != "grade":
            for other in before:
                if other in after and old.join == new.join and not self._new.tasks[other].required:
                    says = "{} can do without {} now, the only one that it had"
                    names = (new.name, self._name(other))
                    yield Change(Class.WEAKENED, new.name, "depends_on", says, names)
        if before != after and sorted(before) == sorted(after):
            says = "the dependencies of {} stand in another order"
            yield Change(
                Class.COSMETIC, new.name, "depends_on", says, (new.name,), list(old.depends_on), list(new.depends_on)
            )

    def _lost_edge(self, one: int, other: int) -> tuple[Class, str]:
        """Judge a dependency that a task no longer has."""
        old = self._old.tasks[one]
        if old.operation == "grade":
            return Class.WEAKENED, "{} no longer counts {} as evidence"
        if old.operation == "decide":
            if other in self._new.proven[one]:
                return Class.REWIRED, "{} waits for {} behind another dependency only"
            return Class.WEAKENED, "{} no longer waits for {}"
        if isinstance(old, TopKTask):
            return Class.WEAKENED, "{} no longer has {} to choose from"
        return Class.REWIRED, "{} no longer depends on {}"

    def _new_edge(self, one: int, other: int) -> tuple[Class, str]:
        """Judge a dependency that a task did not have."""
        new = self._new.tasks[one]
        if isinstance(new, TopKTask):
            kind = Class.WEAKENED if _says_yes(self._new.tasks[other]) else Class.REWIRED
            return kind, "{} has {} to choose from, too"
        if _says_yes(self._new.tasks[other]):
            return Class.REWIRED, "{} depends on {} now, which cannot fail"
        if not _may_say_no(self._new.tasks[other]):
            return Class.REWIRED, "{} depends on {} now"
        if new.operation == "grade":
            return Class.STRENGTHENED, "{} counts {} as evidence now"
        if new.operation == "decide" and other not in self._old.proven[one]:
            return Class.STRENGTHENED, "{} waits for {} now"
        return Class.REWIRED, "{} depends on {} now"

    # What follows from the graph as a whole

    def _consequences(self) -> Iterator[Change]:
        for one in self._both:
            old, new = self._old.tasks[one], self._new.tasks[one]
            if old.stage != new.stage:
                continue
            if (
                None not in (self._old.result, self._new.result)
                and one in self._old.leads
                and one not in self._new.leads
            ):
                yield Change(Class.WEAKENED, new.name, "", "{} no longer leads to the result", (new.name,))
            if _finds(old) and _finds(new):
                yield from self._found(one, new)
            if one == self._new.result == self._old.result or new.operation not in ("", "propose"):
                yield from self._unproven(one, new)

    def _found(self, one: int, task: Task) -> Iterator[Change]:
        """Find what a check no longer sees, and who may change what it saw."""
        before, after = self._old.shaping(one), self._new.shaping(one)
        for other in sorted(before - after):
            if other in self._new.tasks and self._new.shapes(other) and task.operation != "apply":
                says = "{} no longer comes after {}, so it may find what was there before"
                yield Change(Class.WEAKENED, task.name, "depends_on", says, (task.name, self._name(other)))
            elif (
                isinstance(self._new.tasks.get(other), CommandTask)
                and self._old.reaches(other, one)
                and task.operation != "apply"
                and after
            ):
                says = "what {} makes no longer reaches {}"
                yield Change(Class.WEAKENED, task.name, "", says, (self._name(other), task.name))
        isolated = any(other in self._new.tasks and not self._new.shapes(other) for other in before)
        if isolated and not after and not isinstance(task, EngineTask):
            says = "{} measures what no task of this workflow has made"
            yield Change(Class.WEAKENED, task.name, "", says, (task.name,))
        if one not in self._old.leads and not self._old.tasks[one].required:
            return
        behind = self._new.agents_behind(one) - self._old.agents_behind(one)
        beside = self._new.agents_after(one) - self._old.agents_after(one)
        for other in sorted(behind | beside):
            if other not in self._old.tasks or self._old.shapes(other):  # else its isolation says so
                how = "comes" if one in self._new.above[other] else "may come"
                if not self._new.repeated(one, other):
                    says = f"{{}} {how} after {{}} and may change what that has found"
                    yield Change(Class.WEAKENED, task.name, "", says, (self._name(other), task.name))

    def _unproven(self, one: int, task: Task) -> Iterator[Change]:
        """Find the tasks that had to pass before one and no longer have to, where no other change says so."""
        grave = [change for change in self._said if change.kind is Class.WEAKENED]
        behind: set[int] = set()
        for change in grave:
            place = self._new.ids.get(change.task or "", self._old.ids.get(change.task or ""))
            if place is not None and change.field in ("", "join", "depends_on"):
                behind |= {place, *self._old.proven.get(place, ()), *self._old.depends.get(place, ())}
        for other in sorted(self._old.proven[one] - self._new.proven[one] - behind):
            if other in self._new.tasks and other in self._new.leads and not self._new.tasks[other].is_epilogue:
                says = "{} no longer needs {} to have passed"
                yield Change(Class.WEAKENED, task.name, "depends_on", says, (task.name, self._name(other)))

    def _survived(self) -> Iterator[Change]:
        """Find the failures with which a run is valid now and was not, where no other change says why."""
        grave = {change.task for change in self._said if change.kind is Class.WEAKENED}
        blamed = {one for each in (self._old, self._new) for one, task in each.tasks.items() if task.name in grave}
        for one, failed in survived(self._old, self._new):
            if blamed.isdisjoint({one, *failed, *self._old.proven[one]}):
                yield self._survives(one, failed)

    def _survives(self, one: int, failed: tuple[int, ...]) -> Change:
        """Say that a run may do without a task."""
        name = self._name(one)
        names = tuple(self._name(other) for other in failed if other != one)
        if not names:
            return Change(Class.WEAKENED, name, "depends_on", "a run may be valid now without what {} needed", (name,))
        holes = ["{}"] * min(len(names), _MOST_NAMES) + ["others"] * (len(names) > _MOST_NAMES)
        who = " and ".join([", ".join(holes[:-1]), holes[-1]]) if len(holes) > 1 else "{}"
        fail, them = ("fails", "it") if len(names) == 1 else ("fail", "one of them")
        says = f"a run in which {who} {fail} may be valid now; {{}} had needed {them} to pass"
        return Change(Class.WEAKENED, name, "depends_on", says, (*names[:_MOST_NAMES], name))


def _differ(before: Any, after: Any) -> bool:
    """Tell whether two plain values differ; an integer is not the float of its value, nor True the integer 1."""
    return type(before) is not type(after) or before != after

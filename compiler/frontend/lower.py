"""Call records to IR: binds arguments, resolves names and sessions, fills in defaults.

Places are calls and spots in them (binding.Spot); nothing here knows a file. A mistake is left out
and lowering goes on, so that the rules can judge the rest.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from crucible.compiler.frontend.binding import HUGE, TOO_DEEP, Bound, Given, Handle, Odd, Spot, bind
from crucible.compiler.frontend.declared_sessions import Sessions
from crucible.compiler.frontend.limits import Limits
from crucible.compiler.frontend.origins import FIELDS, Call, CallFinding, InCall, Origins
from crucible.compiler.frontend.vocabulary import CONSTRUCTORS, DEFAULT_LANE
from crucible.schemas import ir
from crucible.schemas.diagnostic import At, brief
from crucible.schemas.spelling import MOST_SEARCHED, hint

_MOST_FINDINGS: Final = 10_000  # more than anybody is shown, echoes left out
_LOOP: Final = ("propose", "apply", "measure", "decide")
_BEHIND_EXTRAS: Final = ("apply", "measure", "decide")
_SOURCES: Final = {"grade": ("score", "tiebreak"), "decide": ("measurement",)}
_NAMELESS: Final = "\0\U0010fffd"  # begins the stand-in for the name of a task that has none; no name begins so


class ExternalText(NamedTuple):
    """How text that a launcher may supply is recognised and shown (language.md §6)."""

    has_mark: Callable[[str], bool]
    render: Callable[[str], str | None]


class Recorded(NamedTuple):
    """What an evaluation gave.

    ``calls`` are [constructor, positional values, [name, value] pairs] in the order of the calls;
    ``last`` is the call whose value the last statement has; ``ended_early`` is true when the
    evaluation failed on the way. Handles are those of recorded calls.
    """

    calls: list[Any]
    last: int | None
    ended_early: bool = False


class Options(NamedTuple):
    """What lowering must know beside the calls.

    ``lane`` is the lane literal of the root, None when it names none; ``params`` the bound values
    of a source that declares parameters.
    """

    lane: str | None
    limits: Limits
    params: Mapping[str, Any] | None = None
    external: ExternalText | None = None
    declared: tuple[str, ...] | None = None


class Lowered(NamedTuple):
    """A workflow, if there is one to judge, with the mistakes and the way back from IR to calls."""

    workflow: ir.Workflow | None
    findings: list[CallFinding]
    places: Origins


def lower(recorded: Recorded, options: Options) -> Lowered:
    """Turn the records of an evaluation into a workflow, as far as the mistakes let it."""
    lowering = Lowering(options)
    lowering.take(recorded.calls)
    return lowering.finish(recorded.last, ended_early=recorded.ended_early)


class Lowering:
    """One lowering, which takes the records while the evaluation goes on."""

    def __init__(self, options: Options) -> None:
        """Begin without a record."""
        self._records: list[Any] = []
        self._last: int | None = None
        self._options = options
        self._lane = DEFAULT_LANE if options.lane is None else options.lane
        self._findings: list[CallFinding] = []
        self._origins = Origins()
        self._calls: dict[int, Call] = {}
        self._names: dict[int, str] = {}
        self._listed: dict[int, Spot] = {}  # the calls of the listed tasks, in order, with their places in the list
        self._listed_names: set[str] = set()
        self._all_names: set[str] = set()

    def take(self, records: list[Any]) -> None:
        """Bind the arguments of more calls, in the order of the evaluation."""
        first = len(self._records)
        self._records += records
        for number, record in enumerate(records, first):
            if record[0] in CONSTRUCTORS:
                self._calls[number] = self._bind(number, record)

    def finish(self, last: int | None, *, ended_early: bool) -> Lowered:
        """Settle the sessions, then build the one workflow; the arguments are those of Recorded."""
        self._last = last
        self._names = {
            n: self._name(call) for n, call in self._calls.items() if CONSTRUCTORS[call.name].makes == "task"
        }
        self._all_names = set(self._names.values())
        sessions = Sessions(self._calls, self._report)
        sessions.settle()
        if not ended_early:
            sessions.report_unbound(_misplaced(self._calls, self._records))
        self._check_params()
        workflow = None if ended_early else self._build(sessions)
        return Lowered(workflow, self._findings, self._origins)

    def _report(
        self, code: str, message: str, place: InCall, *related: tuple[str, InCall], suggestion: str | None = None
    ) -> None:
        if len(self._findings) < _MOST_FINDINGS:
            self._findings.append(CallFinding(code, brief(message), place, related, suggestion))

    # Arguments

    def _bind(self, number: int, record: Any) -> Call:
        """Sort out one call's arguments, without external text where it may not be."""
        name, positional, named = record
        given = [Given(None, _value(value)) for value in positional] + [
            Given(key, value if value.__class__ is str else _value(value)) for key, value in named
        ]
        bound = bind(CONSTRUCTORS[name], given, self._lane, self._kind_of)
        for problem in bound.problems:
            self._report(problem.code, problem.message, InCall(number, problem.spot), suggestion=problem.suggestion)
        if self._options.external:
            self._keep_external_out(number, name, bound, self._options.external)
        return Call(number, name, bound)

    def _kind_of(self, handle: Handle) -> str:
        row = CONSTRUCTORS.get(self._records[handle.call][0])
        return row.makes if row else "value"

    def _keep_external_out(self, number: int, name: str, bound: Bound, external: ExternalText) -> None:
        """Refuse external text everywhere but in a prompt, and show it there as what it is."""
        for argument, value in list(bound.values.items()):
            spot = Spot(bound.spots[argument])
            texts = [(spot, value)] if isinstance(value, str) else []
            if isinstance(value, list):
                texts = [(spot._replace(path=path), element) for path, element in value if isinstance(element, str)]
            for place, text in texts:
                if not external.has_mark(text):
                    continue
                shown = external.render(text) if (name, argument) == ("agent", "prompt") else None
                if shown is not None:
                    bound.values[argument] = shown
                    continue
                where = "its marks were damaged by slicing" if argument == "prompt" else f"it may not be in {argument}"
                message = f"text that a launcher may supply belongs whole into a prompt; {where}"
                self._report("external-text", message, InCall(number, place))
                if isinstance(value, list):
                    bound.values[argument] = [item for item in bound.values[argument] if item[1] is not text]
                else:
                    bound.values.pop(argument, None)

    def _name(self, call: Call) -> str:
        name = call.values.get("name")
        return name if isinstance(name, str) else f"{_NAMELESS}{call.number}"

    def _check_params(self) -> None:
        """Check that every param() names a declared parameter."""
        declared = self._options.declared
        for call in self._calls.values():
            name = call.values.get("name")
            if call.name == "param" and isinstance(name, str) and name not in (declared or ()):
                message, guess = unknown_param(name, declared if len(self._findings) < MOST_SEARCHED else None)
                self._report("unknown-param", message, call.at("name"), suggestion=guess)

    # The workflow

    def _build(self, sessions: Sessions) -> ir.Workflow | None:
        """Build the workflow that the last statement gave, None without exactly one."""
        built = [call for call in self._calls.values() if CONSTRUCTORS[call.name].makes == "workflow"]
        if len(built) > 1:
            first = InCall(built[0].number)
            for other in built[1:]:
                self._report(
                    "second-workflow",
                    "a second workflow is built; a source has one",
                    InCall(other.number),
                    ("the first is built here", first),
                )
            return None
        if not built or self._last != built[0].number:  # what the last statement gave may be a task
            return None
        call = built[0]
        self._origins.workflow_call = call.number
        is_default = call.name == "default_autoresearch"
        field = "extra_tasks" if is_default else "tasks"
        self._origins.splice = call.bound.spots.get("tasks") == "#0"
        if not (is_default or self._lane_agrees(call)):
            return None
        if not self._list_tasks(call, field):
            return None
        count = len(self._listed) + (len(_LOOP) if is_default else 0)
        if count > self._options.limits.tasks:
            message = f"tasks in the workflow may be at most {self._options.limits.tasks}; these are {count}"
            self._report("limit-exceeded", message, call.at(field))
            return None
        if is_default:
            tasks = self._default_loop(call, sessions)
            return ir.Workflow(type="autoresearch", task=tuple(tasks), result="decide")
        tasks = [self._task(index, call_number, sessions) for index, call_number in enumerate(self._listed)]
        return ir.Workflow(type=self._lane, task=tuple(tasks), result=self._result(call), params=self._options.params)

    def _lane_agrees(self, call: Call) -> bool:
        """Tell whether the call's lane is the literal that reading the source has found, and report when not."""
        if call.values.get("type", DEFAULT_LANE) == self._lane:
            return True
        message = 'the lane is a string literal in the root file, type = "…"; this call gives it in another way'
        self._report("lane-not-literal", message, call.at("type"))
        return False

    def _list_tasks(self, call: Call, field: str) -> bool:
        """Find the calls of the listed tasks; false when the list itself is unusable."""
        codes = {problem.code for problem in call.bound.problems}
        if field not in call.values:
            if any(problem.spot.argument for problem in call.bound.problems) or "missing-argument" in codes:
                return False
            self._origins.note(None, "task", call.spot(field), [])
            self._report_dropped(set(), field)
            return True
        if codes & {"positional-argument", "repeated-argument"}:
            return False
        listed = self._listed
        argument = call.spot(field).argument
        meant: set[str] = set()
        for path, element in call.values[field]:
            spot = Spot(argument, path)
            number = self._find(element, InCall(call.number, spot), meant)
            if number is None:
                self._origins.refused.add((None, "task"))
                continue
            if number in listed:
                first = InCall(call.number, listed[number])
                self._report(
                    "duplicate-task",
                    f"{self._shown(number)} is listed twice; list it once",
                    InCall(call.number, spot),
                    ("it is listed here", first),
                )
                continue
            listed[number] = spot
        self._listed_names = {self._names[number] for number in listed}
        self._origins.tasks = list(listed)
        self._origins.refused |= _refused(None, call, {field: "task"})
        self._origins.note(None, "task", call.spot(field), [(spot.argument, spot.path) for spot in listed.values()])
        is_list = not any(p.code == "wrong-type" and p.spot == call.spot(field) for p in call.bound.problems)
        # What lies deeper than could be seen may well be listed, and so may what was to be a list and is none.
        if "value-too-deep" not in codes and (is_list or listed):
            self._report_dropped(meant, field)
        return True

    def _shown(self, number: int) -> str:
        name = self._names[number]
        return "a task" if name.startswith(_NAMELESS) else f'"{name}"'

    def _find(self, element: Any, place: InCall, meant: set[str]) -> int | None:
        """Return the call of a listed task; a string names the one constructed task of that name."""
        if isinstance(element, Handle):
            return element.call
        candidates = [number for number, name in self._names.items() if name == element]
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            message = f'"{element}" is the name of {len(candidates)} tasks; list the task itself'
            self._report("unknown-task", message, place)
            meant.add(element)
        else:
            known = [name for name in self._names.values() if not name.startswith(_NAMELESS)]
            tail, guess = hint(element, known if len(self._findings) < MOST_SEARCHED else (), "tasks")
            self._report("unknown-task", f'no task is named "{element}"{tail}', place, suggestion=guess)
            meant.add(guess or "")
        return None

    def _report_dropped(self, meant: set[str], field: str) -> None:
        """Report every task that was built and not listed."""
        where = "workflow(tasks = …)" if field == "tasks" else "default_autoresearch(…)"
        for number, name in self._names.items():
            if number not in self._listed and name not in meant:
                message = f"{self._shown(number)} is built and not listed in {where}; list it or delete it"
                self._report("dropped-task", message, InCall(number))

    def _result(self, call: Call) -> str | None:
        """Return the name of the result, None when there is none or only a dropped task was named."""
        result = call.values.get("result")
        self._origins.note(None, "result", call.spot("result"))
        name = None if result is None else self._task_name(result)
        if result is not None and name is None:
            self._origins.refused.add((None, "result"))
        return name

    def _task_name(self, value: Any) -> str | None:
        """Return the name that a reference has in the IR; None for a task that is not listed."""
        if isinstance(value, Handle):
            return self._names[value.call] if value.call in self._listed else None
        return None if value not in self._listed_names and value in self._all_names else str(value)

    # Tasks

    def _task(self, index: int, number: int, sessions: Sessions) -> ir.Task:
        """Build the IR of one listed task."""
        call = self._calls[number]
        values = call.values
        self._origins.note_call(index, call.bound.spots)
        self._origins.refused |= _refused(index, call, FIELDS)
        common = {
            "name": self._names[number],
            "depends_on": tuple(self._dependencies(index, call)),
            "session": sessions.name_of(number),
            "needs": values.get("needs", "any"),
            "required": values.get("required", True),
            "isolation": ir.WORKTREE if values.get("isolated") else None,
            "stage": values.get("stage", "iteration"),
            "join": "passed"
            if call.name == "top_k"
            else values.get("join", "passed" if call.name == "grade" else "all"),
            "emits": tuple(self._fields(index, call)) if "emits" in values else (),
        }
        return self._of_kind(call, common, sessions)

    def _of_kind(self, call: Call, common: dict[str, Any], sessions: Sessions) -> ir.Task:
        """Build the IR of a task from what all tasks have and what its kind adds."""
        values = call.values
        if call.name == "agent":
            return ir.AgentTask(**common, prompt=values.get("prompt", ""), **sessions.config_of(call.number))
        if call.name == "command":
            return ir.CommandTask(**common, command=values.get("run", ""))
        if call.name == "evaluate":
            threshold = None if values.get("threshold") is None else float(values["threshold"])
            return ir.EvaluateTask(
                **common, command=values.get("run", ""), threshold=threshold, direction=values.get("direction")
            )
        if call.name == "top_k":
            return ir.TopKTask(**common, k=values.get("k", 1), direction=values.get("direction", "lower"))
        sources = (values.get("score", values.get("measurement")), values.get("tiebreak"))
        source, tiebreak = (None if value is None else self._task_name(value) for value in sources)
        return ir.EngineTask(**common, op=call.name, source=source, tiebreak=tiebreak)

    def _fields(self, index: int, call: Call) -> Iterator[str]:
        elements = call.values["emits"]
        spot = call.spot("emits")
        self._origins.note(index, "emits", spot, [(spot.argument, path) for path, _ in elements])
        return (element for _, element in elements)

    def _dependencies(self, index: int, call: Call) -> list[str]:
        """Return the dependencies of a task by name, with what its kind adds, and note their places."""
        argument = "evidence" if call.name == "grade" else "depends_on"
        names: list[str] = []
        spots: list[tuple[str, tuple[int, ...]]] = []
        written = call.bound.spots.get(argument, "")
        for path, element in call.values.get(argument, []):
            if argument == "evidence" and self._is_engine(element):
                self._report(
                    "wrong-type",
                    "evidence is not an engine task; give the tasks that measured",
                    InCall(call.number, Spot(written, path)),
                )
                self._origins.refused.add((index, "depends_on"))
                continue
            name = self._task_name(element)
            if name is None:
                self._origins.refused.add((index, "depends_on"))
            else:
                names.append(name)
                spots.append((written, path))
        added = _SOURCES.get(call.name, ())
        for source in added:
            if source not in call.values or (
                call.name == "decide" and "depends_on" in call.bound.spots and "depends_on" in call.values
            ):
                continue
            name = self._task_name(call.values[source])
            if name is None:
                self._origins.refused |= {(index, "depends_on"), (index, FIELDS.get(source, source))}
            elif name not in names:
                names.append(name)
                spots.append((call.bound.spots[source], ()))
        self._origins.note(
            index,
            "depends_on",
            call.spot(argument if argument in call.bound.spots else (added[0] if added else argument)),
            spots,
        )
        return names

    def _is_engine(self, element: Any) -> bool:
        """Tell whether a reference means an engine task."""
        name = element if isinstance(element, str) else None
        numbers = [element.call] if isinstance(element, Handle) else [n for n in self._listed if self._names[n] == name]
        return any(self._calls[number].name in ir.OPERATIONS for number in numbers)

    # The default loop

    def _default_loop(self, call: Call, sessions: Sessions) -> list[ir.Task]:
        """Expand default_autoresearch (language.md §7)."""
        listed = list(self._listed)
        self._origins.tasks = [call.number, *listed, *[call.number] * 3]
        self._origins.made = {0, *range(len(listed) + 1, len(listed) + 4)}
        extras = []
        for index, number in enumerate(listed, 1):
            task = self._task(index, number, sessions)
            kept = self._without_loop(index, task, self._listed_names)
            changes: dict[str, Any] = {
                "depends_on": kept if kept or task.depends_on or task.is_epilogue else ("propose",)
            }
            if task.name in _LOOP:
                message = f'"{task.name}" is the name of one of the loop\'s own tasks; choose another'
                self._report("reserved-name", message, self._origins.resolve(At(index, "name")))
                changes["name"] = f"{_NAMELESS}{number}"
                self._origins.refused.add((index, "name"))
            extras.append(task.replace(**changes))
        from crucible.schemas.default_loop import loop_around

        return list(loop_around(extras).task)

    def _without_loop(self, index: int, task: ir.Task, taken: set[str]) -> tuple[str, ...]:
        """Return an extra's dependencies without those on what runs after it, and report these.

        A name that an extra has taken from the loop means that extra, and is reported there.
        """
        kept: list[str] = []
        spots: list[tuple[str, tuple[int, ...]]] = []
        if (index, "depends_on") not in self._origins.refused:
            self._origins.behind_loop.add(index)
        for place, name in enumerate(task.depends_on):
            at = self._origins.resolve(At(index, "depends_on", place))
            if name not in _BEHIND_EXTRAS:
                kept.append(name)
                spots.append((at.spot.argument, at.spot.path))
                continue
            self._origins.refused.add((index, "depends_on"))
            if name not in taken:
                message = f'"{task.name}" depends on "{name}"; an extra task runs between propose and apply'
                self._report("extra-after-apply", message, at)
        self._origins.note(index, "depends_on", self._origins.resolve(At(index, "depends_on")).spot, spots)
        return tuple(kept)


def unknown_param(name: str, declared: tuple[str, ...] | None) -> tuple[str, str | None]:
    """Return the message about a parameter that is not declared, and the one that was meant."""
    tail, guess = hint(name, declared or (), "parameters")
    return f'no parameter "{name}" is declared in params{tail}', guess


def _refused(task: int | None, call: Call, fields: Mapping[str, str]) -> set[tuple[int | None, str]]:
    """Return the IR fields of a call whose values are wrong, or missing though required, as rules.Facts has them."""
    row = CONSTRUCTORS[call.name]
    if not call.bound.problems and all(name in call.values for name in row.needed):
        return set()
    wrong = {spot: argument for argument, spot in call.bound.spots.items()}
    arguments = {wrong.get(problem.spot.argument, "") for problem in call.bound.problems}
    arguments |= {problem.suggestion or "" for problem in call.bound.problems if problem.code == "unknown-argument"}
    arguments |= {name for name in row.needed if name not in call.values}
    return {(task, fields.get(argument, argument)) for argument in arguments if argument}


def _misplaced(calls: Mapping[int, Call], records: list[Any]) -> list[Any]:
    """Return the values, and the elements of lists, of all arguments that are not as they should be."""
    found: list[Any] = []
    for number, call in calls.items():
        if call.bound.problems:
            _, positional, named = records[number]
            wrong = {problem.spot.argument for problem in call.bound.problems}
            pending = [value for place, value in enumerate(positional) if f"#{place}" in wrong]
            pending += [value for name, value in named if name in wrong]
            while pending:
                value = _value(pending.pop())
                found.append(value)
                pending.extend(value if isinstance(value, list) else ())
    return found


def _value(plain: Any) -> Any:
    """Return a recorded value as binding takes it: the one-key objects of the channel unpacked."""
    if plain.__class__ is list:
        return [_value(item) for item in plain]
    if plain.__class__ is not dict:
        return plain
    if "call" in plain:
        return Handle(plain["call"])
    if "deep" in plain:
        return TOO_DEEP
    return HUGE if plain.get("odd") == HUGE.text else Odd(str(plain.get("odd")))


def is_placeholder(text: str) -> bool:
    """Tell whether a message speaks of a task that has no usable name of its own."""
    return _NAMELESS in text

"""The sessions that a source declares, and the tasks that are bound to them (language.md §4).

In: the calls of an evaluation with their arguments bound. Out: the session and the agent's settings of each task,
with the mistakes on the way.
"""

from collections.abc import Callable
from typing import Any, Final

from crucible.compiler.frontend.binding import Handle
from crucible.compiler.frontend.origins import Call, InCall
from crucible.schemas import ir
from crucible.schemas.spelling import MOST_SEARCHED, hint

_CONFIG: Final = ("harness", "model", "effort")


class Sessions:
    """The declared sessions of a source and the tasks that they are bound to (language.md §4)."""

    def __init__(self, calls: dict[int, Call], report: Callable[..., None]) -> None:
        self._calls = calls
        self._report = report
        self._declared = [call for call in calls.values() if call.name == "session"]
        self._bound: set[int] = set()
        self._unknown = 0
        self._of: dict[int, str] = {}
        self._declaration: dict[int, Call] = {}

    def settle(self) -> None:
        """Check the declarations, then bind every task that names a session."""
        first: dict[str, Call] = {}
        for call in self._declared:
            name = call.values.get("name")
            if not isinstance(name, str):
                self._bound.add(call.number)
            elif not ir.is_session_name(name):
                self._invalid(name, call.at("name"))
                self._bound.add(call.number)
            elif name in first:
                self._report(
                    "duplicate-session",
                    f'the session "{name}" is declared twice; remove or rename one',
                    call.at("name"),
                    ("it is declared here", first[name].at("name")),
                )
                self._bound.add(call.number)
            else:
                first[name] = call
        for call in self._calls.values():
            value = call.values.get("session")
            if value is not None:
                self._bind(call, value, first)

    def _invalid(self, name: str, place: InCall) -> None:
        shown = name if len(name) <= 2 * ir.NAME_LENGTH else name[: ir.NAME_LENGTH] + "…"
        message = f'"{shown}" is no session name; use 1 to 64 ASCII letters, digits, ".", "_" or "-"'
        self._report("invalid-session-name", message, place)

    def _bind(self, call: Call, value: Any, first: dict[str, Call]) -> None:
        """Bind one task to the session that it names, and take over the declaration's defaults."""
        declaration = self._calls[value.call] if isinstance(value, Handle) else first.get(value)
        place = call.at("session")
        if declaration is None:
            if not ir.is_session_name(value):
                self._invalid(value, place)
            elif self._declared:
                self._unknown += 1
                tail, guess = hint(value, first if self._unknown < MOST_SEARCHED else (), "declared sessions")
                self._report("unknown-session", f'no session "{value}" is declared{tail}', place, suggestion=guess)
                if guess:
                    self._bound.add(first[guess].number)
            self._of[call.number] = value
            return
        self._bound.add(declaration.number)
        name = declaration.values.get("name")
        if isinstance(name, str):
            self._of[call.number] = name
            self._bound.update(other.number for other in [first.get(name)] if other)
        related = ("it is declared here", InCall(declaration.number))
        if declaration.number > call.number:
            message = f'the session "{name}" is declared after the task that binds it; declare it before'
            self._report("session-before-declaration", message, place, related)
        self._declaration[call.number] = declaration
        given = {knob: declaration.values[knob] for knob in _CONFIG if knob in declaration.values}
        if call.name == "propose" and given:
            message = f'the session "{name}" sets {" and ".join(given)}, and propose() is configured by the manifest'
            cure = "; declare it without defaults"
            self._report("session-defaults-on-propose", message + cure, place, related)
        for knob, default in given.items():
            own = call.values.get(knob, default)
            if own != default:
                task = call.values.get("name", "the task")
                message = f'"{task}" sets {knob} = "{own}", and its session "{name}" declares {knob} = "{default}"'
                self._report("session-conflict", message + "; they must agree", call.at(knob), related)

    def report_unbound(self, misplaced: list[Any]) -> None:
        """Report every declaration that no task is bound to, but for those that a refused argument has.

        A ``session`` that is refused and holds none of them may mean any.
        """
        known = [Handle(call.number) for call in self._declared] + [call.values.get("name") for call in self._declared]
        if any(call.is_refused("session") for call in self._calls.values()) and not any(v in known for v in misplaced):
            return
        for call in self._declared:
            if not (call.number in self._bound or Handle(call.number) in misplaced or call.values["name"] in misplaced):
                message = f'the session "{call.values["name"]}" is bound to no task; bind it or remove it'
                self._report("unbound-session", message, InCall(call.number))

    def name_of(self, number: int) -> str | None:
        """Return the session of a task in the IR."""
        return self._of.get(number)

    def config_of(self, number: int) -> dict[str, Any]:
        """Return harness, model and effort of an agent task, its session's defaults filled in."""
        own = self._calls[number].values
        declaration = self._declaration.get(number)
        defaults = declaration.values if declaration else {}
        return {knob: own.get(knob, defaults.get(knob)) for knob in _CONFIG}

"""What can come of a task: statuses, the reasons of one that never ran, attempts and results (runtime.md §1).

Plain values without a rule: a runner makes attempts, the machine makes results of them, records write them.
Money is in whole micro-dollars, so that a sum does not depend on its order.
"""

from __future__ import annotations

from enum import StrEnum

from crucible.schemas.light import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Status(StrEnum):
    """The state of a task; all but the first three are final."""

    PENDING = "pending"
    READY = "ready"
    RUNNING = "running"
    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    TRANSPORT = "transport"
    SKIPPED = "skipped"
    BLOCKED = "blocked"
    TRUNCATED = "truncated"


class Why(StrEnum):
    """Why a task never ran: those of a blocked one, then those of one that can never run on this substrate."""

    REQUIRED_TASK_FAILED = "required_task_failed"
    BUDGET_CEILING = "budget_ceiling"
    WALL_CLOCK_CEILING = "wall_clock_ceiling"
    DEPENDENCY_DID_NOT_PASS = "dependency_did_not_pass"  # noqa: S105 - no password
    STAGING_REFUSED = "staging_refused"
    CAPABILITY_MISSING = "capability_missing"
    DEPENDENCY_CANNOT_RUN = "dependency_cannot_run"
    REQUIRED_TASK_CANNOT_RUN = "required_task_cannot_run"


class Ending(StrEnum):
    """How a run ended: ``exit`` of the report (runtime.md §6)."""

    COMPLETED = "completed"
    TRUNCATED = "truncated"
    SHORT_CIRCUIT = "short_circuit"
    BUDGET_EXCEEDED = "budget_exceeded"
    WALL_CLOCK = "wall_clock"
    INTERRUPTED = "interrupted"


class Reason(NamedTuple):
    """Why a task never ran, and what caused it.

    ``causes`` are names of tasks: the required one that failed or can never run, or the dependencies
    that did not pass or can never run. ``capability`` is the missing one, also of a cause.
    """

    why: Why
    causes: tuple[str, ...] = ()
    capability: str | None = None

    @property
    def text(self) -> str:
        """Return the reason as a note says it."""
        names = ", ".join(f'"{name}"' for name in self.causes)
        match self.why:
            case Why.REQUIRED_TASK_FAILED:
                return f"the required task {names} did not pass"
            case Why.BUDGET_CEILING:
                return "the budget is spent"
            case Why.WALL_CLOCK_CEILING:
                return "the time is up"
            case Why.DEPENDENCY_DID_NOT_PASS:
                return f"did not pass: {names}" if names else "it joins passed and has no dependency"
            case Why.STAGING_REFUSED:
                return "there is no workspace to run it in"
            case Why.CAPABILITY_MISSING:
                return f"it needs {self.capability}, which is not there"
            case Why.DEPENDENCY_CANNOT_RUN:
                return f"cannot run here: {names}"
            case Why.REQUIRED_TASK_CANNOT_RUN:
                return f"the required task {names} cannot run here: {self.capability} is not there"

    def to_plain(self) -> dict[str, Any]:
        """Return the reason as plain data: the contract's object (§7), with the causes beside it."""
        plain: dict[str, Any] = {"reason": str(self.why)}
        if self.why is Why.REQUIRED_TASK_FAILED:
            plain["task"] = self.causes[0]
        elif self.causes:
            plain["causes"] = list(self.causes)
        if self.capability is not None:
            plain["capability"] = self.capability
        return plain


class Attempt(NamedTuple):
    """What a runner says of one attempt: pass, fail, transport, or blocked where staging was refused.

    ``output`` is plain data, ``cost`` in micro-dollars, ``transport`` the token of what died.
    """

    status: Status
    output: Any = None
    cost: int = 0
    seconds: float = 0.0
    note: str = ""
    transport: str | None = None


class Result(NamedTuple):
    """What became of a task, over all its attempts; ``reason`` is that of a task that never ran."""

    status: Status
    reason: Reason | None = None
    output: Any = None
    attempts: int = 0
    cost: int = 0
    seconds: float = 0.0
    note: str = ""
    transport: str | None = None

    @classmethod
    def of_unrun(cls, *, is_interrupted: bool) -> Result:
        """Return what there is to say of a task that nobody dispatched and nothing blocked."""
        return cls(Status.PENDING, note="the run was stopped before it began" if is_interrupted else "")

    @property
    def text(self) -> str:
        """Say in a line why it never ran, or what its last attempt said."""
        if self.reason is not None:
            return self.note or self.reason.text
        if self.status is Status.TRANSPORT and self.attempts > 1:
            return f"{self.attempts} attempts; the last: {self.note}"
        return self.note

"""Admission: may this orchestrator run this workflow? (ir.md §4).

In goes a well-formed workflow and the orchestrator's name, out come the capabilities that are
missing. It stands apart from the rules because authority is never in the IR.
"""

from __future__ import annotations

from crucible.schemas.diagnostic import At, Finding
from crucible.schemas.ir import LANES, OPERATIONS, Workflow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

PERSIST: Final = "agent.session.persist"

# The orchestrators, with how a message names them, the command that is one, and what each advertises.
_ADVERTISED: Final = {
    "loop": (
        "the scored loop",
        "crucible run",
        frozenset({"workflow.autoresearch", *(f"engine.{op}" for op in OPERATIONS)}),
    ),
    "runner": ("the plan runner", "crucible plan run", frozenset({"workflow.custom", "workflow.playbook"})),
}
ORCHESTRATORS: Final = tuple(_ADVERTISED)
_BACKENDS: Final = ("local", "openshell", "command")
_FORGETFUL_HARNESSES: Final = ("hermes",)
CAPABILITIES: Final = (
    *(f"workflow.{lane}" for lane in LANES),
    *(f"engine.{op}" for op in OPERATIONS),
    PERSIST,
)


def continues_conversations(backend: object, harness: object) -> bool:
    """Tell whether a backend and a harness can go on with a conversation; None is what the manifest leaves open.

    A command is told which one it is, and may keep it.
    """
    known = backend is None or backend in _BACKENDS
    return known and (backend == "command" or harness not in _FORGETFUL_HARNESSES)


def required(workflow: Workflow) -> dict[str, list[int]]:
    """Return the capabilities that a workflow requires, each with the indices of the tasks that do.

    The lane's own capability comes first and has no tasks; the others come in the order of ir.md §4.
    """
    needed: dict[str, list[int]] = {f"workflow.{workflow.type}": []}
    for operation in OPERATIONS:
        tasks = [index for index, task in enumerate(workflow.task) if task.operation == operation]
        if tasks:
            needed[f"engine.{operation}"] = tasks
    tasks = [index for index, task in enumerate(workflow.task) if task.session is not None]
    if tasks:
        needed[PERSIST] = tasks
    return needed


def admit(workflow: Workflow, orchestrator: str, *, persist: bool) -> list[Finding]:
    """Return one missing-capability for each capability that the orchestrator does not advertise.

    ``persist`` tells whether the chosen backend and harness can continue a conversation. Raises
    KeyError for an orchestrator that is not one of ORCHESTRATORS.
    """
    title, _, advertised = _ADVERTISED[orchestrator]
    findings = []
    for capability, tasks in required(workflow).items():
        if capability in advertised or (capability == PERSIST and persist):
            continue
        needing = [f'"{workflow.task[index].name}"' for index in tasks]
        who = f"{', '.join(needing)} need{'s' if len(needing) == 1 else ''}" if needing else "the workflow needs"
        message = f"{title} does not offer {capability}, which {who}; {_remedy(capability, workflow)}"
        related = tuple((f"{name} needs it too", At(index)) for name, index in zip(needing[1:], tasks[1:], strict=True))
        findings.append(Finding("missing-capability", message, At(tasks[0]) if tasks else At(), related))
    return findings


def _remedy(capability: str, workflow: Workflow) -> str:
    """Say who offers a capability, or what to change where nobody offers all that a workflow needs."""
    is_mixed = workflow.type != "autoresearch" and any(task.operation for task in workflow.task)
    if is_mixed and capability == f"workflow.{workflow.type}":
        return 'it has tasks of the engine, so make it type = "autoresearch" with a decide() as its result'
    for title, command, advertised in _ADVERTISED.values():
        if capability in advertised:
            where = ', for type = "autoresearch"' if is_mixed else ""
            return f"{title} does{where} ({command})"
    return "choose a backend and a harness that continue a conversation, or leave the session out"

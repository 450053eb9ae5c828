"""Rules of sessions as the IR has them: names on tasks (language.md §4)."""

from collections.abc import Iterator
from itertools import pairwise

from crucible.compiler.analysis.rules.case import Case, kind_of
from crucible.schemas.diagnostic import At, Finding
from crucible.schemas.ir import AgentTask, Task, is_session_name


def _may_have_session(task: Task) -> bool:
    return isinstance(task, AgentTask) or task.operation == "propose"


def _is_agent(case: Case, index: int) -> bool:
    return isinstance(case.tasks[index], AgentTask) and not case.is_of_unknown_kind(index)


def invalid_session_name(case: Case) -> Iterator[Finding]:
    """Find session names that are none, in IR by hand; a source's are judged where they are written."""
    if not case.facts.by_hand:
        return
    for index, task in enumerate(case.tasks):
        if task.session is not None and not is_session_name(task.session):
            message = f'"{task.session}" is no session name; it is 1 to 64 ASCII letters, digits, ".", "_" or "-"'
            yield Finding("invalid-session-name", message, At(index, "session"))


def session_unsupported(case: Case) -> Iterator[Finding]:
    """Find sessions on tasks that are no turns of an agent."""
    for index, task in enumerate(case.tasks):
        if task.session is not None and not _may_have_session(task):
            kind = kind_of(task)
            message = f'"{task.name}" ({kind}) has a session; only agent and propose tasks do'
            yield Finding("session-unsupported", message, At(index))


def session_isolated(case: Case) -> Iterator[Finding]:
    """Find agents with a session in a worktree of their own; for an engine task the worktree is the mistake."""
    for index, task in enumerate(case.tasks):
        if task.session is not None and task.isolation is not None and _is_agent(case, index):
            message = f'"{task.name}" has the session "{task.session}" and is isolated; leave out one of the two'
            yield Finding("session-isolated", message, At(index, "isolation"))


def session_not_ordered(case: Case) -> Iterator[Finding]:
    """Find tasks of one session that no dependency puts in order.

    Neighbours in the order in which they would run are enough: when each comes before the next,
    all are ordered, and mending these pairs mends all.
    """
    members: dict[str, list[int]] = {}
    for index, task in enumerate(case.tasks):
        if task.session is not None and _may_have_session(task) and not case.is_of_unknown_kind(index):
            members.setdefault(task.session, []).append(index)
    for session, sharing in members.items():
        if len(sharing) > 1:
            in_order = [index for index in case.graph.order if index in sharing]
            in_order.sort(key=lambda index: case.tasks[index].is_epilogue)
            for earlier, later in pairwise(in_order):
                if case.graph.is_ancestor(earlier, later) or case.graph.is_ancestor(later, earlier):
                    continue
                if case.is_sure(earlier) and case.is_sure(later):
                    yield _unordered(case, session, earlier, later)


def _unordered(case: Case, session: str, earlier: int, later: int) -> Finding:
    first, second = case.tasks[earlier], case.tasks[later]
    if first.stage == second.stage:
        way_out = f'let "{second.name}" depend on "{first.name}"'
    else:
        way_out = "they are in different stages, so give one of them another session"
    both = f'"{first.name}" and "{second.name}"'
    return Finding(
        "session-not-ordered",
        f'{both} share the session "{session}", but neither depends on the other; {way_out}',
        At(later),
        ((f'"{first.name}" is in the session too', At(earlier)),),
    )

"""One attempt of an agent's turn: by a command that stands in, or by the agent's own program on PATH.

A job in, an attempt out (runtime.md §4). The result is the file PLAN_TASK_RESULT.json in the workspace,
removed before the turn, so that an old one is never taken for an answer, and after it.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from crucible.runtime import agent_program, careful, harness, last_line, surroundings, tree
from crucible.runtime.outcome import Attempt, Status
from crucible.runtime.process import Command, Exit, Processes
from crucible.runtime.runner import Job, Turn
from crucible.runtime.shell_runner import exit_note
from crucible.schemas.ir import AgentTask

RESULT: Final = "PLAN_TASK_RESULT.json"
_MOST_RESULT: Final = 1 << 20
_MOST_VARIABLE: Final = 96 << 10
_MOST_INPUTS: Final = 64 << 10
_MOST_COST: Final = 1 << 10
_TRY_AGAIN: Final = 75  # what a stand-in exits with when asking again may help


class Agents(NamedTuple):
    """How agents are run: what the manifest and the command line say of it.

    ``command`` is the stand-in, None for the harness's own program. ``refusal`` is why no agent can be
    run at all. The environment holds what agents alone are given, without what only the broker may have.
    """

    command: str | None = None
    harness: str | None = None
    model: str | None = None
    effort: str | None = None
    environment: Mapping[str, str] = {}
    withheld: frozenset[str] = frozenset()
    refusal: str | None = None


class Book(Protocol):
    """Who writes down conversations."""

    def event(self, kind: str, **facts: Any) -> bool:
        """Write one event, and tell whether it is there."""

    def ledger(self, conversations: Mapping[str, Mapping[str, Any]]) -> None:
        """Write the cursors and turns of all conversations."""


class AgentRunner:
    """Does the turns of agents, and keeps their conversations."""

    def __init__(
        self,
        agents: Agents,
        base: Mapping[str, str],
        book: Book,
        conversations: Mapping[str, Mapping[str, Any]] = {},
    ) -> None:
        """Keep how agents are run; ``conversations`` are those that an earlier process wrote into the ledger."""
        self._agents = agents
        ours = {name: value for name, value in base.items() if name not in agents.withheld}
        self._base = {**ours, **agents.environment}
        self._book = book
        self._conversations: dict[str, dict[str, Any]] = {
            name: {"cursor": each["cursor"], "turns": each["turns"], "exists": each["turns"] > 0}
            for name, each in conversations.items()
        }

    def turns(self, session: str | None) -> int:
        """Return how many turns of a conversation are complete."""
        return self._conversations[session]["turns"] if session in self._conversations else 0

    def lacking(self, harnesses: Iterable[str | None], folder: str, processes: Processes) -> list[str]:
        """Return why turns with these harnesses cannot be done at all, as far as that can be told beforehand."""
        agents, path = self._agents, self._base.get("PATH", os.defpath)
        if agents.refusal is not None:
            return [agents.refusal]
        if agents.command is not None:
            fault = agent_program.of_command(_text(agents.command), self._base, folder, processes)
            return [] if fault is None else [fault]
        found: dict[str, None] = {}
        for name in harnesses:
            try:
                agent_program.of_harness(name or agents.harness or harness.DEFAULT, path)
            except LookupError as missing:
                found[str(missing.args[0])] = None
        return list(found)

    def attempt(self, job: Job, *, owes: bool = True) -> Turn:
        """Do one turn; a session's conversation is the same each time.

        A turn that ``owes`` no result passes without one: what counts is what it leaves in the workspace.
        """
        task, agents = job.task, self._agents
        assert isinstance(task, AgentTask)  # noqa: S101 - narrows: the executor gives each runner its kinds
        if agents.refusal is not None:
            return Attempt(Status.FAIL, note=agents.refusal)
        turn = _Turn(job, task, agents, owes=owes)
        problem = _remove(turn.result)
        if problem:
            return Attempt(Status.FAIL, note=problem)
        conversation = self._open(task.session)
        try:
            environment = self._environment(turn, conversation)
            command = turn.command(environment, conversation)
        except OSError as fault:
            return surroundings.refusal(fault, job)
        except LookupError as missing:
            return Attempt(Status.FAIL, note=str(missing.args[0]))
        if conversation is not None:
            action = "resume" if conversation["turns"] else "start"
            self._book.event("agent_session", session=task.session, action=action, turn=conversation["turns"] + 1)
        ended = yield command
        attempt = turn.attempt(ended, conversation)
        if conversation is not None:
            conversation["turns"] += attempt.status is Status.PASS
            self._book.ledger(
                {name: {"cursor": each["cursor"], "turns": each["turns"]} for name, each in self._conversations.items()}
            )
        return attempt

    def _open(self, session: str | None) -> dict[str, Any] | None:
        """Return the conversation of a session, begun when it is first asked for."""
        if session is None:
            return None
        if session not in self._conversations:
            self._conversations[session] = {"cursor": _new_identifier(), "turns": 0, "exists": False}
        return self._conversations[session]

    def _environment(self, turn: "_Turn", conversation: Mapping[str, Any] | None) -> dict[str, str]:
        """Return what the turn finds in its environment, its prompt being in a file."""
        task = turn.task
        found = surroundings.environment(turn.job, self._base)
        prompt = turn.prompt()
        careful.write(turn.prompt_file, prompt)
        careful.write(turn.cost_file, b"")
        found |= {
            "CRUCIBLE_PROMPT_FILE": turn.prompt_file,
            "CRUCIBLE_COST_FILE": turn.cost_file,
            "CRUCIBLE_HARNESS": _text(task.harness or self._agents.harness),
            "CRUCIBLE_MODEL": _text(task.model or self._agents.model),
            "CRUCIBLE_EFFORT": _text(task.effort or self._agents.effort),
            "CRUCIBLE_SESSION": _text(task.session),
        }
        if len(prompt) <= _MOST_VARIABLE and b"\0" not in prompt:
            found["CRUCIBLE_PROMPT"] = os.fsdecode(prompt)
        if conversation is not None:
            found["CRUCIBLE_CONVERSATION"] = conversation["cursor"]
        return found


class _Turn:
    """One turn: the files around it, its command line, and what came of it."""

    def __init__(self, job: Job, task: AgentTask, agents: Agents, *, owes: bool) -> None:
        self.job = job
        self._owes = owes
        self.task = task
        self._agents = agents
        stem = os.path.splitext(job.logs.out)[0]
        self.prompt_file = f"{stem}.prompt.md"
        self.cost_file = f"{stem}.cost"
        self.result = os.path.join(job.workspace, RESULT)

    def prompt(self) -> bytes:
        """Return what the agent is asked: a stand-in the task's prompt bare, a harness with what it has to know."""
        text = self.task.prompt
        if self._agents.command is None:
            text = "\n\n".join(part for part in (text.rstrip("\n"), self._given(), self._owed()) if part) + "\n"
        return text.encode(errors="surrogateescape")

    def command(self, environment: dict[str, str], conversation: Mapping[str, Any] | None) -> Command:
        """Return what is run; raise LookupError, saying what to do, where there is no such program."""
        logs, folder = self.job.logs, self.job.workspace
        if self._agents.command is not None:
            argv = ("sh", "-c", _text(self._agents.command))
            return Command(argv, environment, folder, logs.out, logs.err, self._then)
        name = self.task.harness or self._agents.harness or harness.DEFAULT
        found = agent_program.of_harness(name, environment.get("PATH", os.defpath))
        effort = environment["CRUCIBLE_EFFORT"]
        if effort:
            environment.setdefault("CLAUDE_CODE_EFFORT_LEVEL", effort)
        cursor = None if conversation is None else conversation["cursor"]
        resumed = conversation is not None and conversation["exists"]
        arguments = harness.words(environment["CRUCIBLE_MODEL"], cursor, is_resumed=resumed)
        # Its prompt is longer than an argument may be, so a shell gives it the file as standard input.
        line = 'exec "$0" "$@" <"$CRUCIBLE_PROMPT_FILE"'
        words = ("sh", "-c", line, found, *arguments)
        return Command(words, environment, folder, logs.out, logs.err, self._then)

    def _then(self) -> tuple[bytes | str | None, bytes | str]:
        """Return the result, None where there is none, and the cost, as they are when the turn ends."""
        result = _read(self.result, _MOST_RESULT) if os.path.lexists(self.result) else None
        return result, _read(self.cost_file, _MOST_COST)

    def attempt(self, ended: Exit, conversation: dict[str, Any] | None) -> Attempt:
        """Return what came of the turn, its result taken away."""
        if self._agents.command is not None:
            cost = _stand_in_cost(ended.then[1]) if ended.then else 0  # one that never began has cost nothing
            attempt = self._of_stand_in(ended)
        else:
            story = harness.read(self.job.logs.out, ended.size)
            cost = story.cost if story.ended else 0  # who died before it could say so is asked again
            if conversation is not None and story.conversation:
                conversation["cursor"] = story.conversation
            if conversation is not None:
                conversation["exists"] |= story.began
            attempt = self._of_harness(ended, story)
        _remove(self.result)
        if cost is None and attempt.status in {Status.PASS, Status.TRANSPORT}:
            note = "what the turn cost is not a number of USD, so nothing can be held against the budget"
            attempt = Attempt(Status.FAIL, attempt.output, note=note)
        return attempt._replace(cost=cost or 0, seconds=ended.seconds)

    def _of_stand_in(self, ended: Exit) -> Attempt:
        failed = self._ended_badly(ended)
        if failed is not None:
            return failed
        if ended.then[0] is not None:
            return _of_result(ended.then[0])
        if not self._owes:
            return Attempt(Status.PASS, {})
        line = last_line.read(self.job.logs.out, ended.size)
        if line.fault is not None:
            return Attempt(Status.FAIL, note=f"there is no {RESULT}, and {line.fault}")
        return _of_value(line.value, "the last line")

    def _of_harness(self, ended: Exit, story: harness.Story) -> Attempt:
        if ended.cause is None and story.transport is not None:
            return Attempt(Status.TRANSPORT, note=story.fault, transport=story.transport)
        if ended.cause is None and not story.began and ended.fault is None and ended.code != 0:
            note = f"the harness did not start: {exit_note(ended, self.job.logs.err)}"
            return Attempt(Status.TRANSPORT, note=note, transport="agent")
        failed = self._ended_badly(ended)
        if failed is not None and story.fault:
            return failed._replace(note=story.fault)
        if failed is not None:
            return failed
        if story.fault:
            return Attempt(Status.FAIL, note=story.fault)
        if not story.ended:
            return Attempt(Status.FAIL, note="the harness ended without the event that says how its turn ended")
        if ended.then[0] is None:
            return Attempt(Status.FAIL, note=f"the agent left no {RESULT}") if self._owes else Attempt(Status.PASS, {})
        return _of_result(ended.then[0])

    def _ended_badly(self, ended: Exit) -> Attempt | None:
        if ended.cause is not None:
            return Attempt(Status.FAIL, note=ended.cause)
        if ended.fault is not None:
            return surroundings.refusal(ended.fault, self.job)
        if ended.code == 0:
            return None
        note = exit_note(ended, self.job.logs.err)
        if ended.code == _TRY_AGAIN and self._agents.command is not None:
            return Attempt(Status.TRANSPORT, note=note, transport="agent")
        return Attempt(Status.FAIL, note=note)

    def _given(self) -> str:
        """Return the section of the inputs, "" when there are none."""
        job = self.job
        if not job.inputs and not job.params:
            return ""
        size = os.path.getsize(job.logs.inputs)
        if size > _MOST_INPUTS:
            return f"## Inputs\n\nWhat earlier tasks found is in this file, as JSON by name: {job.logs.inputs}"
        text = surroundings.inputs_json(job).decode(errors="surrogateescape").rstrip("\n")
        fence = "```"
        while fence in text:
            fence += "`"
        return f"## Inputs\n\nWhat earlier tasks found, by name:\n\n{fence}json\n{text}\n{fence}"

    def _owed(self) -> str:
        """Return what is asked for as the result, "" when nothing is."""
        if not self._owes:
            return ""
        fields = ", ".join(f'"{name}"' for name in self.task.emits)
        having = f" with at least the field{'s' if len(self.task.emits) > 1 else ''} {fields}" if fields else ""
        return (
            f"## Result\n\nWhen you are done, write one JSON object{having} to the file {RESULT} in the working "
            "directory. It is the only result of this task: without it, the task has failed."
        )


def _stand_in_cost(data: bytes | str) -> int | None:
    """Return what a stand-in says it cost, nothing when it says nothing, None for what is no amount."""
    if isinstance(data, str):
        return None
    if not data.strip():
        return 0
    if b"_" in data:  # Python reads 1_0 as a number
        return None
    try:
        return harness.micro_dollars(float(data))
    except ValueError:
        return None


def _of_result(data: bytes | str) -> Attempt:
    """Return what the result file says; it is the agent's, so anything may stand in its place."""
    if isinstance(data, str):
        return Attempt(Status.FAIL, note=f"{RESULT} {data}")
    line = last_line.parse(data, RESULT)
    if line.fault is not None:
        return Attempt(Status.FAIL, note=line.fault)
    return _of_value(line.value, RESULT)


def _of_value(value: object, what: str) -> Attempt:
    if isinstance(value, dict):
        return Attempt(Status.PASS, value)
    return Attempt(Status.FAIL, note=f"{what} is not a JSON object")


def _remove(path: str) -> str:
    """Remove whatever stands in the place of a result; return why that cannot be, "" when it is gone."""
    folder, name = os.path.split(path)
    try:
        if os.path.lexists(path):
            with tree.opened(folder) as parent:
                tree.remove(parent, name)
    except OSError as error:
        return f"{RESULT} of an earlier turn cannot be removed: {error.strerror}"
    return ""


def _read(path: str, most: int) -> bytes | str:
    """Return the bytes of a file that is the agent's, or what is wrong with it."""
    try:
        data = careful.read(path, most + 1)
    except careful.NoFile:
        return "is no regular file"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return data if len(data) <= most else f"has more than {most:,} bytes"


def _text(value: str | None) -> str:
    """Return a text of the workflow as the environment takes it: UTF-8 whatever the locale."""
    return os.fsdecode((value or "").encode(errors="surrogateescape").replace(b"\0", b""))


def _new_identifier() -> str:
    """Return a new conversation's identifier, a random UUID as harnesses want it."""
    data = bytearray(os.urandom(16))
    data[6], data[8] = data[6] & 0x0F | 0x40, data[8] & 0x3F | 0x80
    text = data.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

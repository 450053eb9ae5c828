"""The agents' own command-line programs: how one is started, and what its stream of events came to.

A turn in, the words of a command line out; the log of that turn in, a finding out. Text is all there is
here: who starts programs is agent_runner.py. One entry a harness.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from crucible.runtime import careful

_TAIL: Final = 1 << 20
_RESULT: Final = "result"
# Another turn is given this as an argument.
_CURSOR: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,199}")
_FORGED: Final = "an event has a session_id that is no identifier: letters, digits and . _ : - are, at most 200"
_MOST_USD: Final = 1e12
# What a provider or a connection says when asking again may help: a closed list. Numbers and words count where the
# harness speaks, never in the middle of a text, which may be about anything.
_PASSING_STATUSES: Final = frozenset({"429", "503", "529"})
_PASSING_TYPES: Final = ("overloaded_error", "rate_limit_error")
_OF_HARNESS: Final = re.compile(r"\s*api error\b[\s:(]*(?:(?P<status>\d{3})\b)?(?P<rest>.*)", re.DOTALL)
_ERROR: Final = re.compile(
    r'\s*(?:\d{3}\s+)?\{"type":\s*"error",\s*"error":\s*\{(?:"details":\s*null,\s*)?"type":\s*"(?P<type>\w+)"'
)
_PASSING: Final = (
    ("provider", re.compile(r"overloaded|rate limit|overloaded_error|rate_limit_error")),
    (
        "gateway",
        re.compile(
            r"connection error|fetch failed|socket hang up"
            r"|(?:read |write |connect )?(?:econnreset|econnrefused|etimedout)"
        ),
    ),
)


class Harness(NamedTuple):
    """A program that does agent turns: its name on PATH, and where people get it."""

    program: str
    install: str


HARNESSES: Final[Mapping[str, Harness]] = {
    "claude": Harness("claude", "npm install -g @anthropic-ai/claude-code"),
}
DEFAULT: Final = "claude"


class Story(NamedTuple):
    """What the events of a turn say.

    ``began`` tells whether there was any event, ``conversation`` is the identifier that the harness
    gave it. ``cost`` is in micro-dollars, None when it did not say or said nonsense. ``fault`` is why the
    turn failed, "" when it did not; ``transport`` names what died when asking again may help.
    """

    began: bool = False
    ended: bool = False
    conversation: str | None = None
    cost: int | None = None
    fault: str = ""
    transport: str | None = None


def words(model: str | None, conversation: str | None, *, is_resumed: bool) -> tuple[str, ...]:
    """Return the arguments of a turn, whose prompt comes on standard input."""
    found = ["-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits"]
    if model:
        found += ["--model", model]
    if conversation is not None:
        found += ["--resume" if is_resumed else "--session-id", conversation]
    return tuple(found)


def read(path: str, size: int) -> Story:
    """Return what the first ``size`` bytes of the log of a turn say, of which at most the last MiB is read."""
    began, conversation, last, forged = False, None, None, False
    for event in _events(path, size):
        began = True
        named = event.get("session_id")
        if isinstance(named, str) and _CURSOR.fullmatch(named):
            conversation = named
        elif named:
            forged = True
        if event.get("type") == _RESULT:
            last = event
    if forged:  # it would be an argument of the next turn, and somebody else than the harness wrote it
        cost = None if last is None else micro_dollars(last.get("total_cost_usd"))
        return Story(began, last is not None, cost=cost, fault=_FORGED)
    if last is None:
        return Story(began, conversation=conversation)
    fault, transport = "", None
    if last.get("is_error") or last.get("subtype", "success") != "success":
        said = last.get("result") or _said(last.get("error")) or last.get("subtype")
        fault = said if isinstance(said, str) else "the harness reports an error"
        transport = None if last.get("retryable") is False else _passing(last, fault)
    cost = micro_dollars(last.get("total_cost_usd"))
    return Story(began, ended=True, conversation=conversation, cost=cost, fault=fault, transport=transport)


def _said(error: object) -> object:
    return error.get("message") or error.get("type") if isinstance(error, dict) else error


def micro_dollars(usd: object) -> int | None:
    """Return an amount of USD in whole micro-dollars, None for what is no amount."""
    if isinstance(usd, bool) or not isinstance(usd, (int, float)) or not 0 <= usd < _MOST_USD:
        return None
    return round(usd * 1_000_000)


def _passing(event: Mapping[str, Any], fault: str) -> str | None:
    """Return what died when asking again may help: by the fields of the event, else by how its text begins."""
    status, error = event.get("api_error_status"), event.get("error")
    if status is not None:
        return "provider" if str(status) in _PASSING_STATUSES else None
    if isinstance(error, dict) and "type" in error:
        return "provider" if error["type"] in _PASSING_TYPES else None
    said = fault.lower()
    typed = _ERROR.match(said)
    if typed:
        return "provider" if typed["type"] in _PASSING_TYPES else None
    spoken = _OF_HARNESS.match(said)
    if spoken is None:
        bare = said.strip().removeprefix("error: ").rstrip(".!")
        return next((token for token, sign in _PASSING if sign.fullmatch(bare)), None)
    if spoken["status"]:
        return "provider" if spoken["status"] in _PASSING_STATUSES else None
    rest = spoken["rest"].lstrip(" :(")
    return next((token for token, sign in _PASSING if sign.match(rest)), None)


def _events(path: str, size: int) -> Iterator[dict[str, Any]]:
    """Yield the last events of a log; what is none is passed over."""
    try:
        lines = careful.end_of(path, _TAIL, size).split(b"\n")
    except OSError:
        return
    for line in lines:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            yield event

"""A real program that stands in for an agent: it does what its prompt says, line by line.

As a command (`--agent-cmd`) it is run as it is. Under the name of a harness, on PATH, it streams events as
that harness does; its arguments and its prompt are then what the harness would be given.

    result TEXT    write TEXT to PLAN_TASK_RESULT.json     print TEXT    print a line
    complain TEXT  print a line on standard error          cost TEXT     what the turn cost, as text
    exit N         end with a status                       first TEXT    do TEXT in the first attempt only
    put NAME       have the result hold a variable         event TEXT    stream an event (harness only)
    arguments      have the result hold our arguments      prompt        have the result hold the prompt
    silent         no event of its own (harness only)      place KIND    put a link, a pipe or a folder in its place
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

CONVERSATION = "11111111-2222-4333-8444-555555555555"


def main() -> int:
    """Do what the prompt says and return the exit code."""
    is_harness = len(sys.argv) > 1
    prompt = sys.stdin.read() if is_harness else Path(os.environ["CRUCIBLE_PROMPT_FILE"]).read_text(encoding="utf-8")
    kept: dict[str, Any] = {}
    events: list[dict[str, Any]] = []
    status, cost = 0, None
    silent = False
    for each in prompt.splitlines():
        word, _, rest = each.partition(" ")
        if word == "first":
            if os.environ["CRUCIBLE_ATTEMPT"] != "1":
                continue
            word, _, rest = rest.partition(" ")
        match word:
            case "result":
                Path("PLAN_TASK_RESULT.json").write_text(rest, encoding="utf-8")
            case "place":
                _place(rest)
            case "print":
                print(rest, flush=True)
            case "complain":
                print(rest, file=sys.stderr, flush=True)
            case "cost":
                cost = rest
            case "exit":
                status = int(rest)
            case "put":
                kept[rest] = os.environ.get(rest)
            case "arguments":
                kept["arguments"] = sys.argv[1:]
            case "prompt":
                kept["prompt"] = prompt
            case "event":
                events.append(json.loads(rest))
            case "silent":
                silent = True
    if kept:
        Path("PLAN_TASK_RESULT.json").write_text(json.dumps(kept), encoding="utf-8")
    if is_harness and not silent:
        _stream(events, cost)
    elif cost is not None:
        Path(os.environ["CRUCIBLE_COST_FILE"]).write_text(cost, encoding="utf-8")
    return status


def _place(kind: str) -> None:
    result = Path("PLAN_TASK_RESULT.json")
    if kind == "link":
        Path("elsewhere").write_text('{"elsewhere": 1}', encoding="utf-8")
        result.symlink_to("elsewhere")
    elif kind == "pipe":
        os.mkfifo(result)
    else:
        result.mkdir()


def _stream(events: list[dict[str, Any]], cost: str | None) -> None:
    print(json.dumps({"type": "system", "subtype": "init", "session_id": CONVERSATION}))
    for event in events:
        print(json.dumps(event))
    if not any(event.get("type") == "result" for event in events):
        end = {"type": "result", "subtype": "success", "is_error": False, "result": "done", "session_id": CONVERSATION}
        print(json.dumps({**end, "total_cost_usd": 0.0 if cost is None else json.loads(cost)}))


if __name__ == "__main__":
    sys.exit(main())

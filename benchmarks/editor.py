"""Measure how long an editor waits: a client of our own types into `crucible lsp` and asks, `make bench`.

A key is a change of the text; its answer are the diagnostics of that very version, the pause before a check
included. Medians in milliseconds, held as they were asked for.
"""

import argparse
import json
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

_CRUCIBLE = Path(sysconfig.get_path("scripts")) / "crucible"
_COMMAND = [str(_CRUCIBLE)] if _CRUCIBLE.exists() else [sys.executable, "-P", "-m", "crucible.cli.main"]
_MOST_KEY = {24: 50.0, 128: 150.0}
_MOST_HOVER = 20.0


class Figure(NamedTuple):
    """One line of the table: what was measured, its median, and the most it may be, if that is held."""

    what: str
    measured: float
    most: float | None = None


class Client:
    """A client of the server on its standard streams."""

    def __enter__(self) -> Self:
        """Start the server and greet it."""
        self._process = subprocess.Popen([*_COMMAND, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._number = 0
        self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        self.tell("initialized", {})
        return self

    def __exit__(self, *_exc: object) -> None:
        """Leave as the protocol asks."""
        self.ask("shutdown", None)
        self.tell("exit", None)
        self._process.communicate()

    def tell(self, method: str, params: object) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def ask(self, method: str, params: object) -> Any:
        """Send a request and wait for its answer."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while (message := self._receive()).get("id") != self._number:
            pass
        return message["result"]

    def diagnostics(self, version: int) -> list[Any]:
        """Wait for the diagnostics of a version."""
        while True:
            message = self._receive()
            params = message.get("params") or {}
            if message.get("method") == "textDocument/publishDiagnostics" and params.get("version") == version:
                return list(params["diagnostics"])

    def key(self, change: dict[str, Any]) -> None:
        """Change a document and wait for its diagnostics."""
        self.tell("textDocument/didChange", change)
        self.diagnostics(change["textDocument"]["version"])

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        size = 0
        while (line := self._process.stdout.readline()) != b"\r\n":
            if not line:
                raise EOFError
            name, _, value = line.partition(b":")
            size = int(value) if name == b"Content-Length" else size
        return dict(json.loads(self._process.stdout.read(size)))


def main() -> int:
    """Print the table; exit code 1 when a figure is above what it may be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder, Client() as client:
        for tasks in _MOST_KEY:
            figures += _measure(client, Path(folder, str(tasks)), tasks, rounds)
    fits = True
    sys.stdout.write(f"{rounds} rounds; medians in ms\n\n")
    for figure in figures:
        fits &= figure.most is None or figure.measured <= figure.most
        limit = "" if figure.most is None else f" (at most {figure.most:.0f})"
        sys.stdout.write(f"{figure.what:56} {figure.measured:7.2f}{limit}\n")
    return 0 if fits else 1


def _source(tasks: int) -> str:
    """Write a source as people do: a few lines a task."""
    lines = ['words = "Read the candidate and name its worst flaw."\n']
    for n in range(tasks):
        after = f"t{n - 1}" if n else ""
        lines.append(
            f't{n} = agent(\n    name = "task-{n}",\n    prompt = words + " Number {n}.",\n    harness = "claude",\n'
            f"    depends_on = [{after}],\n)\n"
        )
    listed = ", ".join(f"t{n}" for n in range(tasks))
    return "".join(lines) + f'workflow(type = "custom", tasks = [{listed}])\n'


def _measure(client: Client, folder: Path, tasks: int, rounds: int) -> list[Figure]:
    """Type into a file of so many tasks, without a mistake and with one, and ask about it."""
    folder.mkdir()
    uri = (folder / "workflow.star").as_uri()
    text = _source(tasks)
    document = {"uri": uri, "languageId": "starlark", "version": 0, "text": text}
    client.tell("textDocument/didOpen", {"textDocument": document})
    client.diagnostics(0)
    version = 0
    keys: dict[str, list[float]] = {"sound": [], "mistaken": [], "torn": []}
    asked: dict[str, list[float]] = {"hover": [], "completion": []}
    line = text.split("\n").index('    harness = "claude",')
    states = {
        "sound": text,
        "mistaken": text.replace("depends_on", "depend_on", 1),
        "torn": text.replace('harness = "claude"', "harness = (", 1),
    }

    def timed(times: list[float], call: Callable[[], object]) -> None:
        begin = time.perf_counter()
        call()
        times.append((time.perf_counter() - begin) * 1_000)

    for _ in range(rounds):
        for state, typed in states.items():
            version += 1
            change = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": typed}]}

            timed(keys[state], partial(client.key, change))
        place = {"textDocument": {"uri": uri}, "position": {"line": line, "character": 6}}
        for what, times in asked.items():
            timed(times, partial(client.ask, f"textDocument/{what}", place))
    return [
        *(
            Figure(f"diagnostics after a key, {tasks} tasks, {state}", statistics.median(times), _MOST_KEY[tasks])
            for state, times in keys.items()
        ),
        Figure(f"hover, {tasks} tasks", statistics.median(asked["hover"]), _MOST_HOVER),
        Figure(f"completion, {tasks} tasks", statistics.median(asked["completion"])),
    ]


if __name__ == "__main__":
    sys.exit(main())

"""A client of the language server: the real process, spoken to on its standard streams, never waited for blindly."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

from process import COMMAND

PUBLISH = "textDocument/publishDiagnostics"
ERROR = 1


class Cursor(NamedTuple):
    """A text without its mark, and where the mark stood, as the protocol counts."""

    text: str
    line: int
    character: int


def cursor(text: str, mark: str = "|") -> Cursor:
    """Take the mark out of a text."""
    before, _, after = text.partition(mark)
    lines = before.split("\n")
    return Cursor(before + after, len(lines) - 1, len(lines[-1]))


class Client:
    """One connection; use it as a context manager, which leaves politely and kills what does not."""

    def __init__(
        self, *folders: Path, capabilities: Mapping[str, Any] | None = None, cwd: str | os.PathLike[str] | None = None
    ) -> None:
        """Start the server; nothing is said yet."""
        self.process = subprocess.Popen(
            [*COMMAND, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd
        )
        self.folders = [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]
        self.capabilities = dict(capabilities or {})
        self.server: dict[str, Any] = {}
        self.received: list[dict[str, Any]] = []
        self._number = 0

    def __enter__(self) -> Self:
        """Greet the server."""
        params = {"processId": None, "rootUri": None, "capabilities": self.capabilities}
        self.server = self.ask("initialize", {**params, "workspaceFolders": self.folders})
        self.tell("initialized", {})
        return self

    def __exit__(self, kind: object, *_exc: object) -> None:
        """Leave; the server must end by itself, with nothing on standard error."""
        if kind is not None or self.process.poll() is not None:
            self.process.kill()
            self.process.communicate()
            return
        assert self.ask("shutdown") is None
        self.tell("exit")
        _, err = self.process.communicate()
        assert (self.process.returncode, err) == (0, b"")

    # Messages

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message."""
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.send_raw(b"Content-Length: %d\r\n\r\n" % len(data) + data)

    def send_raw(self, data: bytes) -> None:
        """Send bytes."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """Wait for the next message; EOFError when the server has gone."""
        assert self.process.stdout is not None
        size = 0
        while (line := self.process.stdout.readline()) != b"\r\n":
            if not line:
                raise EOFError
            name, _, value = line.partition(b":")
            size = int(value) if name == b"Content-Length" else size
        message: dict[str, Any] = json.loads(self.process.stdout.read(size))
        return message

    def tell(self, method: str, params: object = None) -> None:
        """Send a notification."""
        self.send({"method": method, "params": params})

    def answer(self, method: str, params: object = None) -> dict[str, Any]:
        """Send a request and return its whole answer; what comes before is kept."""
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params})
        while True:
            message = self.receive()
            if "method" not in message and message.get("id") == self._number:
                return message
            self.received.append(message)

    def ask(self, method: str, params: object = None) -> Any:
        """Send a request and return its result, which is no error."""
        message = self.answer(method, params)
        assert "error" not in message, message
        return message.get("result")

    def wait_for(self, method: str) -> dict[str, Any]:
        """Return the parameters of the next message of a method."""
        while True:
            for message in self.received:
                if message.get("method") == method:
                    self.received.remove(message)
                    return dict(message["params"])
            self.received.append(self.receive())

    # Documents

    def open(self, path: Path | str, text: str, version: int = 1, language: str = "starlark") -> str:
        """Open a document; return its URI."""
        uri = path if isinstance(path, str) else path.as_uri()
        document = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": document})
        return uri

    def change(self, uri: str, version: int, *changes: str | Mapping[str, Any]) -> None:
        """Change a document: whole texts, or ranges with texts."""
        given = [{"text": change} if isinstance(change, str) else change for change in changes]
        document = {"uri": uri, "version": version}
        self.tell("textDocument/didChange", {"textDocument": document, "contentChanges": given})

    def close(self, uri: str) -> None:
        """Close a document."""
        self.tell("textDocument/didClose", {"textDocument": {"uri": uri}})

    def diagnostics(self, uri: str, version: int | None = 1) -> list[dict[str, Any]]:
        """Wait for the diagnostics of a version of a document."""
        while True:
            params = self.wait_for(PUBLISH)
            if params["uri"] == uri and params.get("version") == version:
                return list(params["diagnostics"])

    def errors(self, uri: str, version: int | None = 1) -> list[dict[str, Any]]:
        """Wait for the diagnostics of a version of a document; return the errors."""
        return [each for each in self.diagnostics(uri, version) if each["severity"] == ERROR]

    def at(self, uri: str, place: Cursor) -> dict[str, Any]:
        """Return the parameters of a request about a place."""
        return {"textDocument": {"uri": uri}, "position": {"line": place.line, "character": place.character}}


def codes(diagnostics: list[dict[str, Any]]) -> list[str]:
    """Return the codes of diagnostics, in their order."""
    return [diagnostic["code"] for diagnostic in diagnostics]

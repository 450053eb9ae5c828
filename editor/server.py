"""The language server on standard input and output, its own entry point: the only owner of pygls and lsprotocol.

It turns messages into calls of the files beside it and their answers into messages. Nothing that takes
long happens in the thread of the protocol: checks and requests are worked on in threads of their own.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter

from crucible.compiler.frontend.pack import standard_library
from crucible.compiler.frontend.pool import Pool
from crucible.compiler.frontend.sandbox import Channel
from crucible.editor import manifest
from crucible.editor.checking import Abandoned, Outcome
from crucible.editor.complete import Item, complete
from crucible.editor.hover import hover
from crucible.editor.navigate import definition, references_of
from crucible.editor.outline import Symbol, outline
from crucible.editor.positions import UTF_16, Lines, Point, Range
from crucible.editor.script import Script
from crucible.editor.session import DEBOUNCE, Document, Session, Timer
from crucible.editor.view import Place, View
from crucible.schemas.codes import CODES
from crucible.schemas.diagnostic import Diagnostic, Severity
from crucible.schemas.span import Position, Span

NAME: Final = "crucible"
_GRAPH: Final = "crucible.graph"
_REQUEST_FAILED: Final = -32803  # as the protocol numbers it
_CHECKS: Final = 2
_SWITCH: Final = 0.001  # seconds that a busy thread lets the protocol wait
_WATCHED: Final = ("**/*.star", "**/crucible.toml", "**/*.md")
_LANGUAGES: Final = frozenset({"crucible", "crucible-workflow", "starlark"})
_TRIGGERS: Final = ['"', "'", "/", "(", ",", "["]

_ITEMS: Final = {
    "constructor": types.CompletionItemKind.Class,
    "argument": types.CompletionItemKind.Field,
    "value": types.CompletionItemKind.EnumMember,
    "task": types.CompletionItemKind.Event,
    "session": types.CompletionItemKind.Interface,
    "file": types.CompletionItemKind.File,
    "folder": types.CompletionItemKind.Folder,
    "symbol": types.CompletionItemKind.Variable,
    "builtin": types.CompletionItemKind.Function,
}
_SYMBOLS: Final = {
    "task": types.SymbolKind.Event,
    "session": types.SymbolKind.Interface,
    "constant": types.SymbolKind.Constant,
    "function": types.SymbolKind.Function,
    "workflow": types.SymbolKind.Module,
}
_SEVERITIES: Final = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
}

_Answer = TypeVar("_Answer")


# Paths and URIs


def path_of(uri: str, folder: str) -> str | None:
    """Return the path of a document; one that was never saved stands in a folder. None for what is no file."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = os.fsdecode(unquote_to_bytes(parts.path))
    if "\0" in path:
        return None
    if parts.scheme == "file" and path.startswith("/"):
        return os.path.normpath(path)
    if parts.scheme == "untitled":
        name = os.path.basename(path) or "untitled"
        return os.path.join(folder, name if name.endswith(".star") else f"{name}.star")
    return None


def uri_of(path: str) -> str:
    """Return the URI of a path."""
    return "file://" + quote_from_bytes(os.fsencode(path))


class Protocol(LanguageServerProtocol):
    """The protocol, in which every request has an answer: one that cannot be read, too."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Read a message; a request that cannot be read is answered with an error."""
        try:
            return super().structure_message(data)
        except JsonRpcException:
            if "id" in data and "method" in data:
                message = f"the parameters of {data['method']} are not what the protocol has"
                self._send_response(data["id"], None, JsonRpcInvalidParams(message).to_response_error())
            raise


class Server(LanguageServer):
    """The server: a session, its pool of evaluators, and the threads that work for it."""

    def __init__(self, version: str) -> None:
        """Start nothing yet."""
        super().__init__(NAME, version, protocol_cls=Protocol, converter_factory=default_converter)
        self.pool = Pool(_CHECKS)
        self.checks = ThreadPoolExecutor(_CHECKS, "check")
        self.requests = ThreadPoolExecutor(1, "request")
        self.drawings = ThreadPoolExecutor(1, "drawing")  # one takes seconds when the workflow is large
        self.session = Session(self)
        self.is_shut_down = False
        # Where they put a character is decided in positions.py.
        for method in (types.TEXT_DOCUMENT_DID_OPEN, types.TEXT_DOCUMENT_DID_CHANGE, types.TEXT_DOCUMENT_DID_CLOSE):
            self.protocol.fm.builtin_features.pop(method)

    @property
    def encoding(self) -> str:
        """Return the encoding that the client counts characters in."""
        return str(getattr(self.workspace.position_encoding, "value", self.workspace.position_encoding) or UTF_16)

    # What a session needs

    def later(self, seconds: float, call: Callable[[], None], /) -> Timer:
        """Call after a while."""
        return asyncio.get_running_loop().call_later(seconds, call)

    def submit(self, work: Callable[[], Outcome], done: Callable[[Outcome | None], None], /) -> None:
        """Do the work in a thread and call back in this one."""
        loop = asyncio.get_running_loop()

        def call_back(future: Future[Outcome]) -> None:
            with suppress(RuntimeError):  # the loop is over: the client has left meanwhile
                loop.call_soon_threadsafe(self._take, future, done)

        self.checks.submit(work).add_done_callback(call_back)

    def _take(self, future: Future[Outcome], done: Callable[[Outcome | None], None]) -> None:
        """Hand on what a check gave; a fault of ours costs its answer, and is told."""
        try:
            outcome = future.result()
        except Abandoned:
            outcome = None
        except Exception as error:  # noqa: BLE001 - no source may stop the server
            outcome = None
            text = f"a fault of ours: {type(error).__name__}: {error}"[:300]
            self.window_log_message(types.LogMessageParams(types.MessageType.Error, text))
        done(outcome)

    def publish(self, document: Document, diagnostics: list[Diagnostic], /) -> None:
        """Show the diagnostics of a document."""
        shown = [self._diagnostic(document.script.lines, each) for each in diagnostics]
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=document.uri, version=document.version, diagnostics=shown)
        )

    def show(self, path: str, diagnostics: list[Diagnostic], /) -> None:
        """Show the diagnostics of a file that nobody has open."""
        lines = self.session.lines(path) or Lines("")
        shown = [self._diagnostic(lines, each) for each in diagnostics]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=uri_of(path), diagnostics=shown))

    def clear(self, uri: str, /) -> None:
        """Show nothing any more."""
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=uri, diagnostics=[]))

    def connect(self) -> Channel:
        """Return a process of the pool."""
        return self.pool.connect()

    # Answers as the protocol has them

    def range(self, lines: Lines, span: Span | None) -> types.Range:
        """Return the range of a span; without one that of nothing at the beginning."""
        return _range(lines.range(span, self.encoding) if span else Range(Point(0, 0), Point(0, 0)))

    def place(self, file: str, span: Span | None) -> types.Location | None:
        """Return a place in a file as diagnostics name it, None when nobody knows the file."""
        path = standard_library().get(file, file)
        lines = self.session.lines(file)
        return None if lines is None else types.Location(self.uri(path), self.range(lines, span))

    def uri(self, path: str) -> str:
        """Return the URI of a path, as the client writes it where the file is open."""
        document = self.session.at_path(path)
        return document.uri if document else uri_of(path)

    def location(self, place: Place) -> types.Location:
        """Return a place of a script."""
        return types.Location(self.uri(place.script.path), self.range(place.script.lines, place.span))

    def _diagnostic(self, text: Lines, diagnostic: Diagnostic) -> types.Diagnostic:
        """Return a diagnostic of a text; its suggestion and the help of its code travel as data."""
        related = []
        for other in diagnostic.related:
            where = self.place(other.file, other.span) if other.file is not None else None
            if where is not None:
                related.append(types.DiagnosticRelatedInformation(where, other.message))
        data: dict[str, Any] = {"help": CODES[diagnostic.code].help} if diagnostic.code in CODES else {}
        suggestion = diagnostic.suggestion
        where = self.place(suggestion.file, suggestion.span) if suggestion else None
        if suggestion is not None and where is not None:
            data["suggestion"] = {
                "replacement": suggestion.replacement,
                "uri": where.uri,
                "range": {"start": vars_of(where.range.start), "end": vars_of(where.range.end)},
            }
        return types.Diagnostic(
            range=self.range(text, diagnostic.span),
            message=diagnostic.message,
            severity=_SEVERITIES[diagnostic.severity],
            code=diagnostic.code,
            source=NAME,
            related_information=related or None,
            data=data or None,
        )

    def item(self, lines: Lines, rank: int, item: Item) -> types.CompletionItem:
        """Return a completion; its rank keeps the order."""
        return types.CompletionItem(
            label=item.label,
            kind=_ITEMS[item.kind],
            detail=item.detail or None,
            documentation=types.MarkupContent(types.MarkupKind.Markdown, item.documentation)
            if item.documentation
            else None,
            sort_text=f"{rank:04}",
            text_edit=types.TextEdit(self.range(lines, item.span), item.insert),
        )

    def symbol(self, lines: Lines, symbol: Symbol) -> types.DocumentSymbol:
        """Return an entry of the outline."""
        return types.DocumentSymbol(
            name=symbol.name or "?",
            kind=_SYMBOLS[symbol.kind],
            detail=symbol.detail or None,
            range=self.range(lines, symbol.span),
            selection_range=self.range(lines, symbol.name_span),
        )

    def fixes(self, document: Document, asked: types.Range) -> list[types.CodeAction]:
        """Return the edits that the diagnostics of a range suggest."""
        actions = []
        begin, end = _point(asked.start), _point(asked.end)
        for diagnostic in self.session.shown(document):
            suggestion = diagnostic.suggestion
            shown = document.script.lines.range(diagnostic.span, self.encoding) if diagnostic.span else None
            where = self.place(suggestion.file, suggestion.span) if suggestion else None
            if suggestion is None or where is None or shown is None or shown.end < begin or end < shown.begin:
                continue
            edit = types.TextEdit(where.range, suggestion.replacement)
            words = " ".join(suggestion.replacement.split())[:60]
            actions.append(
                types.CodeAction(
                    title=f"Replace with `{words}`" if words else "Remove this",
                    kind=types.CodeActionKind.QuickFix,
                    diagnostics=[self._diagnostic(document.script.lines, diagnostic)],
                    is_preferred=True,
                    edit=types.WorkspaceEdit(changes={where.uri: [edit]}),
                )
            )
        return actions

    # Requests

    async def ask(self, uri: str, work: Callable[[View], _Answer]) -> _Answer | None:
        """Work on a request about a source in a thread; None for a document that is no source."""
        view = self.session.view(uri)
        if view is None:
            return None
        return await asyncio.get_running_loop().run_in_executor(self.requests, work, view)

    async def graph(self, uri: str) -> str:
        """Return the last good workflow of a document's root as SVG; raises what the client is told."""
        view = self.session.view(uri)
        while view is not None and view.workflow is None and self.session.is_busy(uri):
            await asyncio.sleep(DEBOUNCE)
            view = self.session.view(uri)
        if view is None:
            raise JsonRpcException(f'"{uri}" is no source that is open; open a workflow.star', _REQUEST_FAILED)
        workflow = view.workflow
        if workflow is None:
            wrong = self.session.mistake(uri)
            why = f", {wrong.code}: {wrong.message}" if wrong else ""
            raise JsonRpcException(f"the workflow has mistakes and cannot be drawn{why}", _REQUEST_FAILED)

        def work() -> str:
            from crucible.compiler.output.picture import Undrawable, to_svg

            try:
                return to_svg(workflow)
            except Undrawable as error:
                raise JsonRpcException(str(error), _REQUEST_FAILED) from None

        return await asyncio.get_running_loop().run_in_executor(self.drawings, work)

    def position(self, script: Script, position: types.Position) -> Position:
        """Return a position of the client, moved into the text if it lies outside."""
        return script.lines.position(script.lines.offset_of_point(_point(position), self.encoding))


def vars_of(position: types.Position) -> dict[str, int]:
    """Return a position as plain data."""
    return {"line": position.line, "character": position.character}


def _point(position: types.Position) -> Point:
    return Point(position.line, position.character)


def _range(value: Range) -> types.Range:
    return types.Range(types.Position(*value.begin), types.Position(*value.end))


def _folders(found: Sequence[types.WorkspaceFolder]) -> list[str]:
    """Return the paths of workspace folders."""
    return [path for folder in found if (path := path_of(folder.uri, ""))]


def _add_life(server: Server) -> None:
    """Answer what begins and ends a connection."""

    @server.feature(types.INITIALIZED)
    def _(_params: types.InitializedParams) -> None:
        server.session.folders = _folders(list(server.workspace.folders.values()))
        workspace = server.client_capabilities.workspace
        watching = workspace.did_change_watched_files if workspace else None
        if watching and watching.dynamic_registration:
            watchers = [types.FileSystemWatcher(glob_pattern=pattern) for pattern in _WATCHED]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
            method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
            server.client_register_capability(types.RegistrationParams([types.Registration("files", method, options)]))

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def _(_params: types.DidChangeWorkspaceFoldersParams) -> None:
        server.session.folders = _folders(list(server.workspace.folders.values()))
        server.session.refresh()

    @server.feature(types.SHUTDOWN)
    def _(_params: None) -> None:
        server.is_shut_down = True
        server.session.end()


def _add_documents(server: Server) -> None:
    """Answer what happens to documents and files."""

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def _(params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        folders = server.session.folders
        path = path_of(item.uri, folders[0] if folders else os.sep)
        if path is not None:
            is_source = item.language_id.lower() in _LANGUAGES
            server.session.open(item.uri, path, item.version, item.text, is_source=is_source)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def _(params: types.DidChangeTextDocumentParams) -> None:
        changes = []
        for change in params.content_changes:
            given = getattr(change, "range", None)
            changes.append((Range(_point(given.start), _point(given.end)) if given else None, change.text))
        document = params.text_document
        server.session.change(document.uri, document.version, changes, server.encoding)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def _(params: types.DidCloseTextDocumentParams) -> None:
        server.session.close(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def _(_params: types.DidSaveTextDocumentParams) -> None:
        server.session.refresh()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def _(_params: types.DidChangeWatchedFilesParams) -> None:
        server.session.refresh()


def _add_requests(server: Server) -> None:
    """Answer questions about a document."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def _(params: types.HoverParams) -> types.Hover | None:
        def work(view: View) -> types.Hover | None:
            at = server.position(view.script, params.position)
            found = manifest.hover(view.script, at) if view.script.is_manifest else hover(view, at)
            if found is None:
                return None
            text = types.MarkupContent(types.MarkupKind.Markdown, found.text)
            return types.Hover(text, server.range(view.script.lines, found.span))

        return await server.ask(params.text_document.uri, work)

    options = types.CompletionOptions(trigger_characters=_TRIGGERS)

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, options)
    async def _(params: types.CompletionParams) -> list[types.CompletionItem] | None:
        def work(view: View) -> list[types.CompletionItem]:
            at = server.position(view.script, params.position)
            items = manifest.complete(view.script, at) if view.script.is_manifest else complete(view, at)
            return [server.item(view.script.lines, rank, item) for rank, item in enumerate(items)]

        return await server.ask(params.text_document.uri, work)

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def _(params: types.DefinitionParams) -> list[types.Location] | None:
        def work(view: View) -> list[Place]:
            return definition(view, server.position(view.script, params.position))

        found = await server.ask(params.text_document.uri, work)
        return [server.location(place) for place in found or ()]

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    async def _(params: types.ReferenceParams) -> list[types.Location] | None:
        def work(view: View) -> list[Place]:
            at = server.position(view.script, params.position)
            return references_of(view, at, with_definition=params.context.include_declaration)

        found = await server.ask(params.text_document.uri, work)
        return [server.location(place) for place in found or ()]

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def _(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol] | None:
        def work(view: View) -> list[types.DocumentSymbol]:
            return [server.symbol(view.script.lines, symbol) for symbol in outline(view)]

        return await server.ask(params.text_document.uri, work)

    kinds = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)
    def _(params: types.CodeActionParams) -> list[types.CodeAction]:
        only = params.context.only
        document = server.session.document(params.text_document.uri)
        if document is None or (only is not None and types.CodeActionKind.QuickFix not in only):
            return []
        return server.fixes(document, params.range)


def _add_commands(server: Server) -> None:
    """Answer the commands."""

    @server.command(_GRAPH)
    async def _(uri: str = "") -> str:
        return await server.graph(uri)


def main(version: str = "") -> int:
    """Serve one client until it leaves; return 0 when it said so first, as the protocol asks."""
    import logging

    logging.getLogger("pygls").setLevel(logging.CRITICAL)  # a client's odd message is no news
    sys.setswitchinterval(_SWITCH)
    # Whatever else writes to standard output, here or in a library, must not get among the messages.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    server = Server(version)
    _add_life(server)
    _add_documents(server)
    _add_requests(server)
    _add_commands(server)
    server.start_io(None, out)
    server.session.end()
    server.pool.close()
    return 0 if server.is_shut_down else 1


if __name__ == "__main__":
    os._exit(main(*sys.argv[1:2]))  # a check may still be at work; nobody waits for it

"""The open documents, which roots they belong to, and when each root is checked.

Everything here runs in one thread. Checks run elsewhere: ``submit`` hands one over and calls back with
its outcome in this thread, ``later`` calls after a while. A result that a newer text has overtaken is dropped.
"""

import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from crucible.compiler.frontend.pack import STANDARD_LIBRARY
from crucible.compiler.frontend.sandbox import Channel
from crucible.editor.checking import Evaluation, Outcome, Request, check, makes_workflow, shown_in
from crucible.editor.positions import Lines, Range, replaced
from crucible.editor.script import Script, encoded, is_manifest
from crucible.editor.view import View
from crucible.schemas.diagnostic import Diagnostic, Severity, arrange

if TYPE_CHECKING:
    from crucible.schemas.ir import Workflow

DEBOUNCE: Final = 0.02  # seconds of silence before a check
ROOT: Final = "workflow.star"
_SOURCE: Final = ".star"


class Document(NamedTuple):
    """An open text; ``is_source`` is false for one that sources only name, as a prompt."""

    uri: str
    version: int
    script: Script
    is_source: bool

    @property
    def path(self) -> str:
        """Return the path."""
        return self.script.path


class Timer(Protocol):
    """What later() gives back."""

    def cancel(self) -> None:
        """Call nothing any more."""


class Host(Protocol):
    """What a session needs of the world."""

    def later(self, seconds: float, call: Callable[[], None], /) -> Timer:
        """Call after a while."""

    def submit(self, work: Callable[[], Outcome], done: Callable[[Outcome | None], None], /) -> None:
        """Do the work elsewhere and call back with its result, None for none."""

    def publish(self, document: Document, diagnostics: list[Diagnostic], /) -> None:
        """Show the diagnostics of a document."""

    def show(self, path: str, diagnostics: list[Diagnostic], /) -> None:
        """Show the diagnostics of a file that nobody has open."""

    def clear(self, uri: str, /) -> None:
        """Show no diagnostics of a document that was closed."""

    def connect(self) -> Channel:
        """Return a process for an evaluation."""


class _Root:
    """A source that is checked, and its last outcome; ``home`` is the root of which it is a module that none loads."""

    def __init__(self, home: str | None = None) -> None:
        self.home = home
        self.timer: Timer | None = None
        self.running: Evaluation | None = None
        self.again = False
        self.outcome: Outcome | None = None
        self.versions: dict[str, int] = {}
        self.shown: dict[str, list[Diagnostic]] = {}
        self.workflow: Workflow | None = None

    @property
    def is_busy(self) -> bool:
        """Tell whether a check is still to come."""
        return self.timer is not None or self.running is not None


class Session:
    """The documents of one client."""

    def __init__(self, host: Host) -> None:
        """Begin with nothing open."""
        self._host = host
        self._documents: dict[str, Document] = {}
        self._roots: dict[str, _Root] = {}
        self._shelf: dict[str, Script] = {}
        self._closed: dict[str, list[Diagnostic]] = {}  # what is shown of files that nobody has open
        self.folders: list[str] = []

    # Documents

    def document(self, uri: str) -> Document | None:
        """Return an open document."""
        return self._documents.get(uri)

    def at_path(self, path: str) -> Document | None:
        """Return the open document of a path."""
        return next((document for document in self._documents.values() if document.path == path), None)

    def open(self, uri: str, path: str, version: int, text: str, *, is_source: bool) -> None:
        """Take over a document."""
        self._documents[uri] = Document(
            uri, version, Script(path, text), is_source or path.endswith(_SOURCE) or is_manifest(path)
        )
        if self._closed.pop(path, None) is not None:
            self._host.show(path, [])  # the client may spell the URI in another way
        self._touch_for(self._documents[uri])

    def change(self, uri: str, version: int, changes: Iterable[tuple[Range | None, str]], encoding: str) -> None:
        """Apply changes to a document, one after the other."""
        document = self._documents.get(uri)
        if document is None:
            return
        text = document.script.text
        for range_, new in changes:
            text = replaced(text, range_, new, encoding)
        document = document._replace(version=version, script=Script(document.path, text))
        self._documents[uri] = document
        self._touch_for(document)

    def close(self, uri: str) -> None:
        """Give a document back; the disk has its text from now on."""
        document = self._documents.pop(uri, None)
        if document is None:
            return
        self._host.clear(uri)
        self._touch_for(document)
        root = self._roots.get(document.path)
        if root is not None and root.home is not None:
            self._drop(document.path)
        self._settle()

    def refresh(self) -> None:
        """Check everything again: a file has changed on the disk."""
        for path in list(self._roots):
            self._touch(path)

    def end(self) -> None:
        """Give up what is running."""
        for path in list(self._roots):
            self._drop(path)

    def is_busy(self, uri: str) -> bool:
        """Tell whether a check of the root of a document is still to come."""
        root = self._root_of(uri)
        return root is not None and root.is_busy

    def mistake(self, uri: str) -> Diagnostic | None:
        """Return the first mistake of the root of a document, None when it has none or was never checked."""
        root = self._root_of(uri)
        found = root.outcome.diagnostics if root is not None and root.outcome is not None else []
        return next((each for each in found if each.severity is Severity.ERROR), None)

    def _root_of(self, uri: str) -> _Root | None:
        document = self._documents.get(uri)
        if document is None:
            return None
        path = next(iter(self._covering(document.path)), self._home(document))
        root = self._roots.get(path)
        return self._roots.get(root.home) if root is not None and root.home is not None else root

    def view(self, uri: str) -> View | None:
        """Return what a request about a source sees."""
        document = self._documents.get(uri)
        if document is None or not document.is_source:
            return None
        path = next(iter(self._covering(document.path)), self._home(document))
        home = self._roots[path].home if path in self._roots else None
        root = self._roots.get(home or path)
        texts = {each.path: each.script for each in self._documents.values()}
        return View(document.script, home or path, texts, self._shelf, root.workflow if root else None)

    def lines(self, path: str) -> Lines | None:
        """Return the lines of a file that is open or that a check has read."""
        document = self.at_path(path)
        if document is not None:
            return document.script.lines
        outcomes = (root.outcome for root in self._roots.values() if root.outcome is not None)
        return next((Lines(outcome.texts[path]) for outcome in outcomes if path in outcome.texts), None)

    # Roots

    def _home(self, document: Document) -> str:
        """Return the root that a source belongs to: the nearest workflow.star, or itself, as a manifest always is."""
        if document.script.is_manifest:
            return document.path
        folder = os.path.dirname(document.path)
        within = max((each for each in self.folders if _is_below(document.path, each)), key=len, default=os.sep)
        while True:
            candidate = os.path.join(folder, ROOT)
            if self.at_path(candidate) is not None or os.path.isfile(candidate):
                return candidate
            above = os.path.dirname(folder)
            if folder in {within, above}:
                return document.path
            folder = above

    def _covering(self, path: str) -> list[str]:
        """Return the roots whose last check has read a file."""
        return [key for key, root in self._roots.items() if root.outcome is not None and path in root.outcome.texts]

    def _touch_for(self, document: Document) -> None:
        """Check what a document has a part in."""
        if not document.is_source or document.script.is_manifest:
            for path in list(self._roots):
                if _is_below(document.path, os.path.dirname(self._roots[path].home or path)):
                    self._touch(path)
        if not document.is_source:
            return
        covering = self._covering(document.path)
        if document.path in self._roots:
            covering.append(document.path)
        for path in dict.fromkeys(covering or [self._home(document)]):
            self._touch(path)

    def _touch(self, path: str, home: str | None = None) -> None:
        """Check a root soon; what runs for it is out of date."""
        root = self._roots.setdefault(path, _Root(home))
        if root.timer is not None:
            root.timer.cancel()
        if root.running is not None:
            root.running.abandon()
        root.timer = self._host.later(DEBOUNCE, partial(self._start, path))

    def _drop(self, path: str) -> None:
        root = self._roots.pop(path)
        if root.timer is not None:
            root.timer.cancel()
        if root.running is not None:
            root.running.abandon()

    def _start(self, path: str) -> None:
        root = self._roots.get(path)
        if root is None:
            return
        root.timer = None
        if root.running is not None:
            root.again = True
            return
        documents = {each.path: each for each in self._documents.values()}
        own = documents.get(path)
        home = root.home or path
        folder = os.path.dirname(home)
        unsaved = {
            os.path.relpath(each.path, folder): encoded(each.script.text)
            for each in documents.values()
            if _is_below(each.path, folder)
        }
        text = documents[home].script.text if home in documents else None
        request = Request(home, text, unsaved, own.script if root.home is not None and own is not None else None)
        evaluation = root.running = Evaluation(self._host.connect)
        versions = {each.path: each.version for each in documents.values()}
        self._host.submit(partial(check, request, evaluation), partial(self._finish, path, root, versions))

    def _finish(self, path: str, root: _Root, versions: dict[str, int], outcome: Outcome | None) -> None:
        """Take the outcome of a check; one that is out of date is dropped."""
        root.running = None
        if self._roots.get(path) is not root:
            return
        if root.again:
            root.again = False
            self._start(path)
            return
        if root.timer is not None or outcome is None:
            return
        root.outcome, root.versions = outcome, versions
        root.workflow = outcome.workflow or root.workflow
        documents = {each.path: each for each in self._documents.values()}
        for file, tree in outcome.trees.items():
            if file in documents and documents[file].version == versions.get(file):
                documents[file].script.take(tree)
        before = root.shown
        is_open = path in documents
        visible = {file for file in outcome.texts if file in documents or (is_open and not _is_ours(file))}
        root.shown = shown_in(outcome, path, visible)
        self._settle()
        for file in {*before, *root.shown}:
            document = documents.get(file)
            if document is not None:
                self._publish(document)

    def shown(self, document: Document) -> list[Diagnostic]:
        """Return what is shown of a document, nothing when its text has changed since."""
        covering = [self._roots[path] for path in self._covering(document.path)]
        current = [root for root in covering if root.versions.get(document.path) == document.version]
        return arrange(each for root in current for each in root.shown.get(document.path, ()))

    def _publish(self, document: Document) -> None:
        """Show what all roots say of a document, unless its text has changed since one of them was checked."""
        covering = [self._roots[path] for path in self._covering(document.path)]
        if covering and all(root.versions.get(document.path) == document.version for root in covering):
            found = arrange(each for root in covering for each in root.shown.get(document.path, ()))
            self._host.publish(document, found)

    def _settle(self) -> None:
        """Give each source that no root loads a check of its own, and drop what nobody needs."""
        for document in list(self._documents.values()):
            if document.is_source:
                self._settle_one(document)
        needed = {path for document in self._documents.values() for path in self._needed(document)}
        for path in [path for path in self._roots if path not in needed]:
            self._drop(path)
        self._show_closed()

    def _show_closed(self) -> None:
        """Show what open roots say of modules that nobody has open, and no longer what they said before."""
        documents = {each.path for each in self._documents.values()}
        found: dict[str, list[Diagnostic]] = {}
        for root in self._roots.values():
            for file, diagnostics in root.shown.items():
                # What a check has yet to say may differ from what was said of the text that was open.
                if file not in documents and diagnostics and (file in self._closed or not root.is_busy):
                    found.setdefault(file, []).extend(diagnostics)
        for file in [file for file in self._closed if file not in found]:
            del self._closed[file]
            self._host.show(file, [])
        for file, diagnostics in sorted(found.items()):
            arranged = arrange(diagnostics)
            if self._closed.get(file) != arranged:
                self._closed[file] = arranged
                self._host.show(file, arranged)

    def _settle_one(self, document: Document) -> None:
        path = document.path
        home = self._home(document)
        root = self._roots.get(path)
        if os.path.basename(path) != ROOT and any(each != path for each in self._covering(path)):
            if root is not None:
                self._drop(path)
                self._publish(document)
            return
        of = None if home == path or makes_workflow(document.script.text) else home
        if root is not None and root.home != of:
            self._drop(path)
            root = None
        # Whether the home loads it shows when that was checked.
        if root is None and (of is None or (of in self._roots and self._roots[of].outcome is not None)):
            self._touch(path, of)

    def _needed(self, document: Document) -> list[str]:
        """Return the roots that a document is a reason to check."""
        return [*self._covering(document.path), self._home(document), document.path] if document.is_source else []


def _is_ours(file: str) -> bool:
    """Tell whether a file is one of the standard library."""
    return file.startswith(STANDARD_LIBRARY)


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)

"""One check of a root: what is compiled, from which texts, and what of the answer belongs to which file.

The evaluation runs in a process of a pool, and can be given up while it does.
"""

import os
import re
import threading
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from crucible.compiler.facts import ManifestFacts
from crucible.compiler.frontend import scan
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.names import exports
from crucible.compiler.frontend.pack import STANDARD_LIBRARY, Refusal, normalise
from crucible.compiler.frontend.sandbox import Channel, Child
from crucible.compiler.frontend.tree import Load, Source
from crucible.compiler.frontend.vocabulary import CONSTRUCTORS, DEFAULT_LANE
from crucible.compiler.pipeline import Compiled, Options, Unreadable, compile_source, read_named
from crucible.editor.script import MANIFEST, Script, encoded, is_manifest
from crucible.schemas.diagnostic import Diagnostic, Related, Severity, Suggestion
from crucible.schemas.ir import Workflow

_KILL = 9
_MOST_RELATED = 10
_SOURCE = "workflow.star"
# What a module alone cannot do: its root lists its tasks, binds its sessions and declares its parameters.
_OF_THE_ROOT = frozenset({
    "dropped-task", "unbound-session", "unknown-session", "session-before-declaration", "unknown-param",
})  # fmt: skip
_WORKFLOW = rf"(?m)^(?:{'|'.join(row.name for row in CONSTRUCTORS.values() if row.makes == 'workflow')})[ ]*\("


class Abandoned(Exception):
    """Nobody wants the answer of a check any more."""


class Evaluation:
    """The evaluation of one check; another thread may give it up."""

    def __init__(self, connect: Callable[[], Channel]) -> None:
        """Keep what gives a process; none is taken yet."""
        self._connect = connect
        self._lock = threading.Lock()
        self._child: _Watched | None = None
        self._is_abandoned = False

    def connect(self) -> Channel:
        """Take a process: the ``connect`` of Options. Raises Abandoned when nobody wants the answer."""
        channel = self._connect()
        child = _Watched(channel.child)
        with self._lock:
            self._child = child
            if self._is_abandoned:
                channel.close()
                child.dismiss()
                raise Abandoned
        return channel._replace(child=child)

    def abandon(self) -> None:
        """End the process, if there is one, and take no other."""
        with self._lock:
            self._is_abandoned = True
            if self._child is not None:
                self._child.kill(_KILL)


class _Watched(Child):
    """A child that is never sent a signal once somebody has begun to reap it: its number may be another's then."""

    def __init__(self, child: Child) -> None:
        super().__init__(0)
        self._child = child
        self._lock = threading.Lock()
        self._is_over = False

    def kill(self, sign: int) -> None:
        with self._lock:
            if not self._is_over:
                self._child.kill(sign)

    def reap(self, *, block: bool) -> int | None:
        with self._lock:
            if block:
                self._is_over = True
            else:
                status = self._child.reap(block=False)
                self._is_over = status is not None
                return status
        return self._child.reap(block=True)

    def dismiss(self) -> None:
        with self._lock:
            self._is_over = True
            self._child.dismiss()


class Request(NamedTuple):
    """What to check: the root's path, its text when somebody has it open, and the open files of the pack by name.

    ``module`` is a source that no root loads, to be read as a module of this one.
    """

    root: str
    text: str | None
    unsaved: Mapping[str, bytes]
    module: Script | None = None


class Outcome(NamedTuple):
    """What became of a check: the texts that were read, by path, the trees of some of them, and what is wrong.

    ``loads`` say at the loads of modules with mistakes that these have them.
    """

    texts: Mapping[str, str]
    diagnostics: list[Diagnostic]
    workflow: Workflow | None = None
    trees: Mapping[str, Source] = {}
    loads: tuple[Diagnostic, ...] = ()


def check(request: Request, evaluation: Evaluation) -> Outcome:
    """Compile a root, or a module alone; raises Abandoned when the evaluation was given up early."""
    manifest = os.path.join(os.path.dirname(request.root), MANIFEST)
    facts = ManifestFacts(manifest, request.unsaved.get(MANIFEST))
    options = Options(
        judge_direction=facts.judge_direction,
        connect=evaluation.connect,
        unsaved=request.unsaved,
        lint=facts.workspace,
    )
    folder, name = os.path.split(request.root)
    if not name.endswith(".star"):
        name = request.root  # a manifest, which names a source beside it
    options = options._replace(pack=folder)
    if is_manifest(request.root):
        has_source = os.path.isfile(os.path.join(folder, _SOURCE)) or _SOURCE in request.unsaved
        if not facts.has_workflow_of_its_own(beside_source=has_source):
            options = options._replace(keys_only=frozenset((request.root,)))
    try:
        if request.module is not None:
            return _check_module(request, request.module, options)
        text = request.text
        data = encoded(text) if text is not None else read_named(request.root, LIMITS.source_bytes)
        compiled = _placed(compile_source(data, name, options), folder)
        if is_manifest(request.root):  # what a source says that it names is told in that
            own = [each for each in compiled.diagnostics if each.file == request.root]
            return Outcome({request.root: compiled.texts.get(request.root, "")}, own, compiled.workflow)
        loads = tuple(_at_loads(compiled, folder))
        texts = {request.root: "", **compiled.texts}
        return Outcome(texts, compiled.diagnostics, compiled.workflow, compiled.trees, loads)
    except Unreadable:
        return Outcome({request.root: ""}, [])


def _placed(compiled: Compiled, folder: str) -> Compiled:
    """Return what was compiled under names below the pack, which messages then have, with the files by their paths."""

    def path(name: str) -> str:
        return name if name.startswith(STANDARD_LIBRARY) else os.path.join(folder, name)

    def related(other: Related) -> Related:
        return other if other.file is None else other._replace(file=path(other.file))

    def suggested(suggestion: Suggestion | None) -> Suggestion | None:
        return suggestion and suggestion._replace(file=path(suggestion.file))

    diagnostics = [
        each._replace(
            file=None if each.file is None else path(each.file),
            related=tuple(related(other) for other in each.related),
            suggestion=suggested(each.suggestion),
        )
        for each in compiled.diagnostics
    ]
    return compiled._replace(
        diagnostics=diagnostics,
        texts={path(name): text for name, text in compiled.texts.items()},
        trees={path(name): tree for name, tree in compiled.trees.items()},
    )


def _at_loads(compiled: Compiled, folder: str) -> list[Diagnostic]:
    """Say at each load of a module that it, or what it loads in turn, has mistakes."""
    wrong: dict[str, list[Diagnostic]] = {}
    for each in compiled.diagnostics:
        if each.file in compiled.texts and each.severity is Severity.ERROR:
            wrong.setdefault(each.file, []).append(each)
    if not wrong:
        return []
    loads: dict[str, dict[str, Load]] = {}
    for file, text in compiled.texts.items():
        if file.startswith(STANDARD_LIBRARY):
            continue
        loads[file] = {}
        for statement in (compiled.trees.get(file) or Script(file, text).tree).statements:
            name = normalise(str(statement.path.value)) if isinstance(statement, Load) else None
            if isinstance(statement, Load) and name is not None and not isinstance(name, Refusal):
                loads[file].setdefault(os.path.join(folder, name), statement)
    found = []
    for file, modules in loads.items():
        for module, load in modules.items():
            paths = [module, *sorted(_reached(module, loads) - {module})]
            mistakes = [each for path in paths if path != file for each in wrong.get(path, ())]
            if mistakes:
                found.append(_at_load(file, load, mistakes, folder))
    return found


def _reached(module: str, loads: Mapping[str, Mapping[str, Load]]) -> set[str]:
    """Return a module with all that it loads."""
    reached: set[str] = set()
    pending = [module]
    while pending:
        path = pending.pop()
        if path not in reached:
            reached.add(path)
            pending.extend(loads.get(path, ()))
    return reached


def _at_load(file: str, load: Load, mistakes: list[Diagnostic], folder: str) -> Diagnostic:
    """Return what is said at the load of a module with mistakes; it has the code of the first."""
    first = mistakes[0]
    where = os.path.relpath(first.file or file, folder) + (f":{first.span.begin.line}" if first.span else "")
    how_many = "a mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes, the first"
    message = f'"{load.path.value}" has {how_many}: {where}: {first.message}'
    related = tuple(Related(each.message, each.file, each.span) for each in mistakes[:_MOST_RELATED])
    return Diagnostic(first.code, message, file, load.path.span, related)


def _check_module(request: Request, module: Script, options: Options) -> Outcome:
    """Compile a root that does nothing but load a module, in the lane of the real one."""
    root = encoded(request.text) if request.text is not None else read_named(request.root, LIMITS.source_bytes)
    lane = scan.find_lane(scan.decode(root, LIMITS)[0]).name if isinstance(root, bytes) else None
    name = os.path.relpath(module.path, os.path.dirname(request.root))
    symbols = sorted(exports(module.tree))[:1]
    loading = "".join(f'load("{name}", "{symbol}")\n' for symbol in symbols)
    source = f'{loading}workflow(type = "{lane or DEFAULT_LANE}", tasks = [])\n'
    if not symbols:
        # Nothing of it can be loaded: it is read as a file of its own, from which a workflow is not asked.
        folder, name = os.path.split(module.path)
        compiled = _placed(compile_source(encoded(module.text), name, options._replace(pack=folder)), folder)
        codes = _OF_THE_ROOT | {"no-workflow"}
    else:
        folder, name = os.path.split(request.root)
        compiled, codes = _placed(compile_source(source.encode(), name, options), folder), _OF_THE_ROOT
    kept = [
        each._replace(related=tuple(other for other in each.related if other.file != request.root))
        for each in compiled.diagnostics
        if each.file == module.path and each.code not in codes
    ]
    return Outcome({module.path: module.plain}, kept)


def makes_workflow(text: str) -> bool:
    """Tell, at a glance, whether a source builds a workflow, and so is a root."""
    return re.search(_WORKFLOW, text) is not None


def shown_in(outcome: Outcome, root: str, visible: Collection[str]) -> dict[str, list[Diagnostic]]:
    """Return the diagnostics of an outcome by the file where each is shown, which is one of the visible.

    One without a file stands in the root. What a module has that is not visible is told at its load; what the
    root or the standard library has is shown where a visible file leads to it.
    """
    shown: dict[str, list[Diagnostic]] = {path: [] for path in outcome.texts if path in visible}
    for entry in outcome.loads:
        if entry.file in shown:
            shown[entry.file].append(entry)
    for diagnostic in outcome.diagnostics:
        file = diagnostic.file or root
        if file in shown:
            shown[file].append(diagnostic)
            continue
        if file in outcome.texts and file != root and not file.startswith(STANDARD_LIBRARY):
            continue
        lead = next((other for other in diagnostic.related if other.file in shown), None)
        if lead is not None and lead.file is not None:
            where = f"{os.path.basename(file)}:{diagnostic.span.begin.line}" if diagnostic.span else file
            moved = diagnostic._replace(
                message=f"{where}: {diagnostic.message}",
                file=lead.file,
                span=lead.span,
                related=(Related(diagnostic.message, file, diagnostic.span), *diagnostic.related),
                suggestion=None,
            )
            shown[lead.file].append(moved)
    return shown

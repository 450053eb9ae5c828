"""The warnings of one compile, each at its place, but for those that a comment suppresses.

In: an attempt to compile with the diagnostics so far, and what the pack's manifest says. Out: the
diagnostics with the warnings among them. Only lint and the editor ask; a compile that has a warning of
its own asks for the comments alone.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final, NamedTuple

from crucible.compiler.analysis import lint
from crucible.compiler.analysis.lint.case import Doubt, PackCase, TreeCase, Warned, Workspace
from crucible.compiler.analysis.lint.edits import without_item
from crucible.compiler.analysis.lint.suppression import suppress
from crucible.compiler.analysis.lint.unused_prompt import FOLDER as PROMPTS
from crucible.compiler.analysis.rules.case import Case, Facts
from crucible.compiler.attempt import Attempt
from crucible.compiler.explain import places_of
from crucible.compiler.frontend import names, tree
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.origins import InCall
from crucible.compiler.frontend.pack import STANDARD_LIBRARY, Pack, Refusal, normalise
from crucible.compiler.frontend.places import Place, Places, call_at
from crucible.compiler.frontend.sandbox import Sandbox
from crucible.compiler.frontend.source_file import SourceFile, loaded_from
from crucible.compiler.frontend.vocabulary import CONSTRUCTORS
from crucible.schemas.diagnostic import At, Diagnostic, Finding, Related, Severity, Suggestion, at_most, has_errors
from crucible.schemas.ir import Workflow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from crucible.schemas.span import Span

_REDUNDANT: Final = "redundant-dependency"
_ROOTS: Final = frozenset(name for name, row in CONSTRUCTORS.items() if row.makes == "workflow")
_BOUND_AND_READ: Final = 2  # occurrences of a name
_PAIR: Final = 2
_FEW: Final = 8  # unknown names: of more, any name may be what one of them means
_ELSEWHERE: Final = ("param-without-example",)  # warnings that other stages give


def without_suppressed(attempt: Attempt, diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Return the diagnostics but for the warnings that a comment suppresses."""
    return suppress(_own_files(attempt), diagnostics, None)


def with_warnings(
    attempt: Attempt,
    pack: Pack,
    sandbox: Sandbox,
    workflow: Workflow | None,
    diagnostics: list[Diagnostic],
    workspace: Workspace,
) -> list[Diagnostic]:
    """Return the diagnostics with the warnings; ``workflow`` is None for a source with an error."""
    linting = _Linting(attempt, pack, sandbox, tuple(diagnostics), workspace)
    found = [*diagnostics, *islice(linting.of_the_trees(), 2 * LIMITS.mistakes)]
    judged = {*lint.OF_A_TREE, *_ELSEWHERE}
    if workflow is not None and not has_errors(diagnostics):
        found += linting.of_the_workflow(workflow)
        judged |= {*lint.OF_A_GRAPH, *lint.OF_A_PACK}
    return _as_many_as_are_read(suppress(_own_files(attempt), found, judged), attempt.files[0].shown)


def _as_many_as_are_read(diagnostics: list[Diagnostic], file: str) -> list[Diagnostic]:
    """Leave out warnings that nobody reads any more; every error stays."""
    warnings = [each for each in diagnostics if each.severity is Severity.WARNING]
    if len(warnings) <= LIMITS.mistakes:
        return diagnostics
    errors = [each for each in diagnostics if each.severity is not Severity.WARNING]
    return [*errors, *at_most(warnings, LIMITS.mistakes, file)]


def of_data(workflow: Workflow, facts: Facts, pack: Pack, workspace: Workspace) -> list[Finding]:
    """Return the warnings about IR without errors that was written by hand."""
    return lint.of_a_workflow(PackCase(Case(workflow, facts), workspace, pack.has))


def _own_files(attempt: Attempt) -> list[SourceFile]:
    """Return the files that are the author's own."""
    return [file for file in attempt.files.values() if not file.path.startswith(STANDARD_LIBRARY)]


class _Element(NamedTuple):
    """Where a dependency is written, and the value of the argument that it is part of.

    ``inside`` is a place elsewhere where it is named, None when reading finds none. ``is_item`` tells an element of a
    list in the call from an expression that several may come out of; ``path`` is the way to it.
    """

    place: Place
    value: tree.Node
    inside: Place | None
    is_item: bool
    path: tuple[int, ...]

    @property
    def key(self) -> "tuple[str, Span]":
        """Return what all dependencies that are written here share."""
        return self.place.file.shown, self.place.span

    @property
    def own(self) -> tuple[object, ...]:
        """Return what those share that cannot be told apart but by the tasks: the name elsewhere, or way and calls."""
        if self.inside is not None:
            return self.inside.file.shown, self.inside.span
        return (*self.key, self.path, self.place.callers)


class _Linting:
    """The state of one lint."""

    def __init__(
        self,
        attempt: Attempt,
        pack: Pack,
        sandbox: Sandbox,
        errors: tuple[Diagnostic, ...],
        workspace: Workspace,
    ) -> None:
        self._attempt = attempt
        self._pack = pack
        self._sandbox = sandbox
        self._errors = errors
        self._workspace = workspace
        self._names: dict[str, Counter[str]] = {}

    # What reading shows

    def of_the_trees(self) -> Iterator[Diagnostic]:
        """Judge the tree of every file."""
        lane = self._attempt.lane
        for file in _own_files(self._attempt):
            reading = names.read(file.source, lane, {})
            is_root = file.number == 0 and _builds_a_workflow(file)
            errors = tuple(each for each in self._errors if each.file == file.shown)
            case = TreeCase(file, reading, lane, is_root, errors, _doubt(file, errors))
            for warned in lint.of_a_tree(case):
                yield self._of_file(file, warned)

    def _of_file(self, file: SourceFile, warned: Warned) -> Diagnostic:
        edit = warned.edit and Suggestion(warned.edit.replacement, file.shown, warned.edit.span)
        related = loaded_from(self._attempt.files, file)
        return Diagnostic(warned.code, warned.message, file.shown, warned.span, related, edit, Severity.WARNING)

    # What the workflow shows

    def of_the_workflow(self, workflow: Workflow) -> Iterator[Diagnostic]:
        """Judge a workflow without errors, and its pack."""
        lowered = self._attempt.lowered
        if lowered is None:
            return
        origins = lowered.places
        case = Case(workflow, Facts(engine_origin=frozenset(origins.made), splice=origins.splice))
        shown = self._attempt.files[0].shown
        prompts = tuple((path, shown[: shown.rfind("/") + 1] + path) for path in self._idle_prompts())
        findings = lint.of_a_workflow(PackCase(case, self._workspace, self._pack.has, prompts))
        if not findings:
            return
        places = places_of(self._attempt, self._sandbox)
        places.prepare({*origins.tasks, origins.workflow_call})
        yield from self._redundant(workflow, [each for each in findings if each.code == _REDUNDANT], places)
        for finding in findings:
            if finding.code in lint.WITHOUT_A_PLACE:
                yield Diagnostic(finding.code, finding.message, severity=Severity.WARNING)
            elif finding.code != _REDUNDANT:
                yield self._placed(finding, places)

    def _placed(self, finding: Finding, places: Places) -> Diagnostic:
        """Give a finding its place, and those that explain it theirs."""
        place = places.find(self._resolve(finding.at))
        others = ((message, places.find(self._resolve(at))) for message, at in finding.related)
        related = tuple(Related(message, other.file.shown, other.span) for message, other in others if other)
        return self._at(finding, place, related)

    def _at(
        self, finding: Finding, place: Place | None, related: tuple[Related, ...] = (), edit: Suggestion | None = None
    ) -> Diagnostic:
        code, message = finding.code, finding.message
        if place is None:
            shown = self._attempt.files[0].shown
            return Diagnostic(code, message, shown, None, related, None, Severity.WARNING)
        callers = place.callers or loaded_from(self._attempt.files, place.file)
        return Diagnostic(code, message, place.file.shown, place.span, (*related, *callers), edit, Severity.WARNING)

    def _resolve(self, at: At) -> InCall:
        lowered = self._attempt.lowered
        return InCall(0) if lowered is None else lowered.places.resolve(at)

    def _redundant(self, workflow: Workflow, findings: list[Finding], places: Places) -> Iterator[Diagnostic]:
        """Place the redundant dependencies: where an element means several, of one task or many, all have to be.

        Those of a list that is not written in the call have to be told apart to be removed, so no edit is suggested.
        """
        if not findings:
            return
        found = {(finding.at.task, finding.at.index): finding for finding in findings}
        needed: set[tuple[object, ...]] = set()
        placed: list[tuple[Finding, _Element]] = []
        for index, task in enumerate(workflow.task):
            for number in range(len(task.depends_on)):
                element = self._element(At(index, "depends_on", number), places)
                if element is None:
                    continue
                finding = found.get((index, number))
                if finding is None:
                    needed |= {element.key, element.own}
                else:
                    placed.append((finding, element))
        told: set[tuple[object, ...]] = set()
        key: tuple[object, ...]
        for finding, element in placed:
            if element.key not in needed:
                key, place, edit = element.key, element.place, _without(element)
            elif not element.is_item and element.own not in needed:
                key, place, edit = element.own, element.place, None
                if element.inside is not None and self._is_read_once(element):
                    place = element.inside
            else:
                continue
            if key not in told:
                told.add(key)
                yield self._at(finding, place, (), edit)

    def _is_read_once(self, element: _Element) -> bool:
        """Tell whether a list of a name is read in one place; elsewhere another one may need what is in it."""
        file, node = element.place.file, element.place.node
        if file.shown not in self._names:
            walked = tree.walk(*file.source.statements)
            self._names[file.shown] = Counter(each.id for each in walked if isinstance(each, tree.Name))
        return isinstance(node, tree.Name) and self._names[file.shown][node.id] == _BOUND_AND_READ

    def _element(self, at: At, places: Places) -> _Element | None:
        """Return where a dependency is written in the call of its own task, as exactly as it is."""
        where = self._resolve(at)
        name = self._attempt.calls[where.call][0]
        head = places.find(InCall(where.call))
        call = None if head is None else call_at(head.file, head.span.begin, name)
        if head is None or call is None:
            return None
        path = where.spot.path
        exact = places.find(where)
        for length in range(len(path), -1, -1):
            place = places.find(where._replace(spot=where.spot._replace(path=path[:length])))
            if place is None or place.file is not head.file or place.node is None:
                continue
            for argument in call.arguments:
                if argument.span.begin <= place.span.begin and place.span.end <= argument.span.end:
                    is_item = exact is not None and exact.span == place.span and _is_item(place.node, argument.value)
                    is_named = exact is not None and isinstance(exact.node, tree.Name | tree.Literal)
                    inside = exact if is_named and exact and exact.span != place.span else None
                    return _Element(place, argument.value, inside, is_item, path)
        return None

    def _idle_prompts(self) -> list[str]:
        """Return the prompt files that nobody embeds, but for those that another source or launch may."""
        files = _files_below(self._pack, PROMPTS)
        used = {name for name, _ in self._pack.opened}
        if used.issuperset(files) or _has_other_root(self._pack, {file.path for file in self._attempt.files.values()}):
            return []
        for file in self._attempt.files.values():
            for node in tree.walk(*file.source.statements):
                if isinstance(node, tree.Literal) and isinstance(node.value, str):
                    path = normalise(node.value)
                    used |= {path} if isinstance(path, str) else set()
                if self._attempt.declared and _embeds_what_is_computed(node):
                    return []
        return [path for path in files if path not in used]


def _doubt(file: SourceFile, errors: Collection[Diagnostic]) -> Doubt:
    """Return what the errors of a file may hide: what was not read, what nobody knows, and what builds nothing."""
    if file.source.faults or any(each.code == "syntax-error" for each in errors):
        return Doubt(all=True)
    unknown = [each for each in errors if each.code == "unknown-name"]
    if len(unknown) > _FEW or any(each.suggestion is None or each.span is None for each in unknown):
        return Doubt(all=True)
    names = tuple({file.cut(each.span) for each in unknown if each.span is not None})
    return Doubt(of_the_file=_hides_tasks(file, errors), unknown=names)


def _hides_tasks(file: SourceFile, errors: Collection[Diagnostic]) -> bool:
    """Tell whether a file builds no workflow, or one that is refused as a whole or by a whole argument."""
    places = {each.span for each in errors if each.span is not None}
    if any(each.code == "no-workflow" for each in errors) and not _builds_a_workflow(file):
        return True
    return any(
        isinstance(node, tree.Call)
        and isinstance(node.function, tree.Name)
        and node.function.id in _ROOTS
        and not places.isdisjoint(_whole(node))
        for node in tree.walk(*file.source.statements)
    )


def _whole(call: tree.Call) -> Iterator["Span"]:
    """Yield the places of a call as such, and of its arguments as such."""
    yield from (call.span, call.function.span)
    for argument in call.arguments:
        yield from (argument.span, argument.value.span)
        if argument.name is not None:
            yield argument.name.span


def _builds_a_workflow(file: SourceFile) -> bool:
    """Tell whether a file is the root of a pack: one that is linted for itself may be a module."""
    return any(isinstance(node, tree.Name) and node.id in _ROOTS for node in tree.walk(*file.source.statements))


def _files_below(pack: Pack, folder: str) -> list[str]:
    """Return the paths of the files at whatever depth below a folder of the pack."""
    found: list[str] = []
    pending = [folder]
    while pending:
        folder = pending.pop()
        for name, is_folder in pack.entries(folder):
            (pending if is_folder else found).append(f"{folder}/{name}")
    return found


def _has_other_root(pack: Pack, known: Collection[str]) -> bool:
    """Tell whether beside the sources that were read another one stands that may build a workflow of its own."""
    for name, is_folder in pack.entries(""):
        if not is_folder and name.endswith(".star") and name not in known:
            module = pack.module(name)
            if not isinstance(module, Refusal) and any(root.encode() in module[1] for root in _ROOTS):
                return True
    return False


def _without(element: _Element) -> Suggestion | None:
    """Return the edit that takes an element out of its list; a tuple of two would become no tuple."""
    file = element.place.file
    for display in tree.walk(element.value):
        if isinstance(display, tree.ListExpr):
            for index, each in enumerate(display.elements):
                if each is element.place.node and not (display.is_tuple and len(display.elements) <= _PAIR):
                    edit = without_item(file, [item.span for item in display.elements], index)
                    return edit and Suggestion(edit.replacement, file.shown, edit.span)
    return None


def _is_item(node: tree.Node | None, value: tree.Node) -> bool:
    """Tell whether an expression is an element of a list that is written in a value."""
    displays = (each for each in tree.walk(value) if isinstance(each, tree.ListExpr))
    return any(each is node for display in displays for each in display.elements)


def _embeds_what_is_computed(node: tree.Node) -> bool:
    """Tell whether a node is a call of prompt_file() whose path is no literal."""
    return (
        isinstance(node, tree.Call)
        and isinstance(node.function, tree.Name)
        and node.function.id == "prompt_file"
        and not all(isinstance(argument.value, tree.Literal) for argument in node.arguments)
    )

"""What can be said of a manifest and its pack without running anything: the static part of `crucible check`.

In go the path of a crucible.toml, out come everything wrong with it and with what it names, its workflow as it would
be admitted, and what it discloses. The gate is run by others, as are injects expanded.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from crucible.compiler import beside, manifest_reading, measured_path
from crucible.compiler.exposure import Source, exposure
from crucible.compiler.facts import ManifestFacts
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.pack import Pack, Refusal, Unreadable, normalise, read_found, read_input, read_named
from crucible.compiler.launch import CannotRead
from crucible.compiler.manifest import TABLE, Places, decode, find_workflow, to_diagnostics
from crucible.compiler.manifest_model import Manifest
from crucible.compiler.pipeline import Options, compile_file, compile_source, declared_params
from crucible.compiler.positions import Node, Path, Positions
from crucible.compiler.toml_text import locate
from crucible.schemas.default_loop import loop_around
from crucible.schemas.diagnostic import At, Diagnostic, Severity, Suggestion, arrange, at_most, has_errors
from crucible.schemas.ir import Workflow
from crucible.schemas.placeholders import PLACEHOLDERS, unfilled
from crucible.schemas.spelling import hint, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from crucible.compiler.analysis.lint.case import Workspace
    from crucible.schemas.span import Span

# The files that a manifest names by a key of [agent], and what they are.
_FILES: Final = ("method_prompt", "goal_file")
_TOOLBOX: Final = "toolbox_dir"
_SHOWN: Final = 80  # characters of what is like a placeholder


class Checked(NamedTuple):
    """What a check found; ``manifest`` is None for what is no manifest, ``workflow`` for one that cannot run.

    ``texts`` are the files that diagnostics quote, ``printed`` the lines of print(). ``exposure`` is the disclosure,
    None where the manifest has an error.
    """

    manifest: Manifest | None
    diagnostics: list[Diagnostic]
    texts: Mapping[str, str]
    workflow: Workflow | None = None
    printed: tuple[str, ...] = ()
    is_task_mode: bool = False
    exposure: dict[str, Any] | None = None


def check(path: str, held: bytes | None = None) -> Checked:
    """Check the manifest in a file, or the text that is held to in its place, and its pack.

    Raises CannotRead when it cannot be read at all.
    """
    data = _read(path) if held is None else held
    text, problems = _text(data, path)
    manifest = None
    if text is not None:
        manifest, problems = manifest_reading.read(text, path)
    if text is None or manifest is None or isinstance(data, Refusal):
        return Checked(None, problems, {} if text is None else {path: text})
    checking = _Checking(manifest, data)
    try:
        checking.run()
    except Unreadable as error:
        raise CannotRead(path, str(error)) from None
    diagnostics = at_most(arrange([*problems, *checking.diagnostics]), LIMITS.mistakes, path)
    shown = None
    if not has_errors([*problems, *checking.of_manifest]):
        shown = exposure(manifest, _for_exposure(manifest, checking.source, checking.workflow))
    return Checked(
        manifest,
        diagnostics,
        checking.texts,
        None if has_errors(diagnostics) else checking.workflow,
        checking.printed,
        manifest.is_task_mode(checking.lane),
        shown,
    )


def disclosed(path: str, held: bytes | None = None) -> Checked:
    """Read what a manifest discloses, as ``check`` does; nothing of the pack is evaluated."""
    data = _read(path) if held is None else held
    text, problems = _text(data, path)
    if text is None or isinstance(data, Refusal):
        return Checked(None, problems, {})
    manifest, problems = manifest_reading.read(text, path)
    if manifest is None:
        return Checked(None, problems, {path: text})
    content, findings, places = find_workflow(dict(manifest.data), locate(text), "toml")
    workflow = content if isinstance(content, Workflow) else None
    problems += to_diagnostics(findings, places, path)
    problems += [*manifest_reading.for_lane(manifest, manifest.lane), *_of_params(manifest, data, workflow)]
    diagnostics = at_most(arrange(problems), LIMITS.mistakes, path)
    if has_errors(diagnostics):
        return Checked(manifest, diagnostics, {path: text})
    shown = exposure(manifest, _for_exposure(manifest, beside.source_of(text, path), workflow))
    return Checked(manifest, diagnostics, {path: text}, exposure=shown)


def _read(path: str) -> bytes | Refusal:
    try:
        return read_input(path, LIMITS)
    except Unreadable as error:
        raise CannotRead(path, str(error)) from None


def _text(data: bytes | Refusal, path: str) -> tuple[str | None, list[Diagnostic]]:
    if isinstance(data, Refusal):
        return None, [Diagnostic(data.code, data.message, path)]
    return decode(data, path)


def _for_exposure(manifest: Manifest, source: str | None, workflow: Workflow | None) -> Workflow | Source | None:
    """Return what is disclosed of a workflow: one that is compiled at launch is known by its source alone."""
    named = _named_source(manifest)
    if named is not None:
        return Source(named)
    if TABLE not in manifest.data and source is not None:
        return Source(os.path.basename(source))
    return workflow


def _named_source(manifest: Manifest) -> str | None:
    """Return the source that a [workflow] names in place of tasks."""
    table = manifest.data.get(TABLE)
    file = table.get("file") if isinstance(table, dict) else None
    return file if isinstance(file, str) else None


def _of_params(manifest: Manifest, data: bytes, workflow: Workflow | None) -> list[Diagnostic]:
    """Find outputs that are bound to a parameter which nobody declares; only the declarations are read."""
    if all(output.param is None for output in manifest.outputs.values()):
        return []
    names = tuple((workflow.params or {}) if workflow is not None else ())
    if _named_source(manifest) is not None:
        try:
            declarations = declared_params(manifest.path, data)[0]
        except Unreadable:
            return []
        if declarations is None:
            return []  # what is wrong with them, a compile says
        names = declarations.names
    return manifest_reading.unknown_params(manifest, names)


class _Checking:
    """One check: what is wrong so far. ``of_manifest`` are the diagnostics that no compile gave."""

    def __init__(self, manifest: Manifest, data: bytes) -> None:
        self._manifest = manifest
        self._data = data
        self._positions = locate(manifest.text)
        self._of_sources: list[Diagnostic] = []
        self.of_manifest: list[Diagnostic] = []
        self.texts: dict[str, str] = {manifest.path: manifest.text}
        self.printed: tuple[str, ...] = ()
        self.workflow: Workflow | None = None
        self.lane: str | None = manifest.lane
        self.source: str | None = beside.source_of(manifest.text, manifest.path)

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Return all that was found."""
        return [*self._of_sources, *self.of_manifest]

    def run(self) -> None:
        """Look at the workflow, then at the files that are named, then at the gate."""
        facts = ManifestFacts(self._manifest.path, self._data)
        self._compile(facts)
        self.of_manifest += manifest_reading.for_lane(self._manifest, self.lane)
        self.of_manifest += _of_params(self._manifest, self._data, self.workflow)
        self._files()
        self.of_manifest += self._gate(facts.workspace())

    # The workflow

    def _compile(self, facts: ManifestFacts) -> None:
        """Compile what the manifest holds or names, and compare it with the source beside it."""
        manifest = self._manifest
        named = _named_source(manifest)
        admit = "loop" if self.lane == "autoresearch" else "runner"
        options = Options(judge_direction=facts.judge_direction, persist=facts.can_persist(), lint=facts.workspace)
        if named is not None and self._lacks_source(named):
            return
        if TABLE in manifest.data:
            # What was generated is mended in its source, and warned of there.
            own = options._replace(admit=admit, lint=facts.workspace if named or self.source is None else None)
            compiled = compile_source(self._data, manifest.path, own)
            self._take(compiled.diagnostics, compiled.texts, compiled.printed)
            self.workflow = compiled.workflow
            if named or self.source is None or compiled.workflow is None:
                return
        elif self.source is None:
            if manifest.judge is not None:
                self.workflow, self.lane = loop_around(()), "autoresearch"
            return
        stale: Diagnostic | None
        try:
            if self.workflow is None:
                stale, source = beside.absent(manifest.path, self.source), compile_file(self.source, options)
            else:
                stale, source = beside.compare(self.workflow, manifest.text, manifest.path, self.source, options)
        except Unreadable as error:
            raise CannotRead(self.source, str(error)) from None
        self._take(source.diagnostics, source.texts, source.printed)
        if stale is not None:
            self.of_manifest.append(stale)
        if self.workflow is None and source.workflow is not None:
            self.lane = source.workflow.type

    def _lacks_source(self, file: str) -> bool:
        """Say that the source which the manifest names is not there; what is no path, a compile refuses."""
        name = normalise(file)
        if isinstance(name, Refusal) or os.path.lexists(self._path(name)):
            return False
        self._missing(name, f'"{name}" does not exist', (TABLE, "file"), folders=False)
        return True

    def _take(self, diagnostics: list[Diagnostic], texts: Mapping[str, str], printed: tuple[str, ...]) -> None:
        self._of_sources += diagnostics
        self.texts |= texts
        self.printed += printed

    # Files

    def _files(self) -> None:
        """Find each file and folder that a key names, and read those that become prompts."""
        agent, repo = self._manifest.agent, self._manifest.repo
        workspace = self._path(self._manifest.workspace.dir)
        if os.path.lexists(workspace) and not os.path.isdir(workspace):
            message = f'"{self._manifest.workspace.dir}" is no folder; name one, or what is to become one'
            self._wrong("path-refused", message, ("workspace", "dir"))
        for key in _FILES:
            name = getattr(agent, key)
            if name is not None:
                self._prompt(name, ("agent", key))
        for name, at in ((agent.toolbox_dir, ("agent", _TOOLBOX)), (repo.path if repo else None, ("repo", "path"))):
            if name is not None and not os.path.isdir(self._path(name)):
                what = f'"{name}" is no folder' if os.path.lexists(self._path(name)) else f'"{name}" does not exist'
                self._missing(name, what, at, folders=True)

    def _path(self, name: str) -> str:
        return os.path.normpath(os.path.join(self._manifest.folder, name.replace("\0", "\ufffd")))

    def _is_ours(self, path: str) -> bool:
        """Tell whether a path leads to what is in the pack."""
        home = os.path.realpath(self._manifest.folder)
        return os.path.commonpath((home, os.path.realpath(path))) == home

    def _prompt(self, name: str, at: Path) -> None:
        path = self._path(name)
        try:
            data = read_named(path, LIMITS.prompt_bytes, "a prompt file")
        except Unreadable as error:
            what = f'"{name}" cannot be read: {error}' if os.path.lexists(path) else f'"{name}" does not exist'
            self._missing(name, what, at, folders=False)
            return
        if isinstance(data, Refusal):
            self._wrong(data.code, data.message, at)
            return
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            self._wrong("prompt-not-utf8", f'"{name}" is not UTF-8: byte {error.start} cannot be read', at)
            return
        if at[-1] == _FILES[0]:
            self._method(text, path)

    def _method(self, text: str, path: str) -> None:
        """Find placeholders that nobody fills, in the method file."""
        if self._is_ours(path):  # of what lies outside, nothing is quoted
            self.texts[path] = text
        positions = Positions(text, Node())
        for found in unfilled(text):
            known = [f"{{{{{name}}}}}" for name in PLACEHOLDERS]
            bare = f"{{{{{found.word}}}}}"
            tail, guess = (f'; did you mean "{bare}"?', bare) if bare in known else hint(bare, known, "placeholders")
            span = positions.span(found.begin, found.end)
            suggestion = Suggestion(guess, path, span) if guess else None
            message = f"nobody fills {text[found.begin : found.end][:_SHOWN]}{tail}"
            self.of_manifest.append(Diagnostic("unknown-placeholder", message, path, span, suggestion=suggestion))

    def _missing(self, name: str, what: str, at: Path, *, folders: bool) -> None:
        """Say that a file or folder is not there, and which was likely meant: one in the same folder of the pack."""
        folder, last = os.path.split(self._path(name))
        meant = None
        if self._is_ours(folder):  # of what lies outside, a pack is told nothing
            try:
                near = nearest(last, sorted(os.listdir(folder or os.curdir)))
            except OSError:
                near = None
            if near is not None and os.path.isdir(os.path.join(folder, near)) == folders:
                meant = os.path.join(os.path.dirname(name), near)
        tail = f'; did you mean "{meant}"?' if meant is not None else ""
        self._wrong("file-not-found", f"{what}{tail}", at, meant)

    # The gate

    def _gate(self, workspace: "Workspace") -> Iterator[Diagnostic]:
        """Warn of what an agent could edit on the way to its score, and of a gate that was never proven."""
        manifest = self._manifest
        judge = manifest.judge
        try:
            pack = Pack(os.path.dirname(manifest.path), LIMITS)
        except OSError:
            return
        with pack:
            files = measured_path.Files(pack.has, self._script)
            if judge is not None:
                for code, message in measured_path.of_measure(judge.measure_cmd, workspace, files):
                    yield self._warning(code, message, self._place(("judge", "measure_cmd")))
            if manifest.world.apply_cmd is not None:
                for code, message in measured_path.of_apply(manifest.world.apply_cmd, workspace, files):
                    yield self._warning(code, message, self._place(("world", "apply_cmd")))
        yield from self._reachable()
        if judge is not None and judge.selftest is None:
            message = "the gate was never seen to tell good from bad; give [judge.selftest] a good_cmd and a bad_cmd"
            yield self._warning("selftest-missing", message, self._positions.table(("judge",)))

    def _reachable(self) -> "Iterator[Diagnostic]":
        """Warn of frozen files whose source an agent can edit: a run has its own copy, the next one the edited file."""
        workspace = os.path.abspath(self._path(self._manifest.workspace.dir))
        for inject in self._manifest.workspace.injects:
            source = os.path.abspath(self._path(inject.src))
            if inject.frozen and os.path.commonpath((workspace, source)) == workspace:
                message = (
                    f'"{inject.src}" comes from the workspace, where an agent can edit it for the next run; '
                    "keep it outside, and name it by { src, dst }"
                )
                yield self._warning("gate-editable", message, self._place(("workspace", "inject", inject.index)))

    def _script(self, name: str) -> str | None:
        """Return the text of a script of the pack."""
        folder = os.path.dirname(self._manifest.path)
        try:
            data = read_found(os.path.join(folder, name), folder, LIMITS.prompt_bytes)
        except Unreadable:
            return None
        return None if isinstance(data, Refusal) else data.decode(errors="replace")

    def _warning(self, code: str, message: str, span: "Span | None") -> Diagnostic:
        return Diagnostic(code, message, self._manifest.path, span, severity=Severity.WARNING)

    # Places

    def _place(self, at: Path) -> "Span | None":
        return self._positions.value(at) or self._positions.table(at)

    def _wrong(self, code: str, message: str, at: Path, meant: str | None = None) -> None:
        span = self._place(at)
        edit = None
        if meant is not None and span is not None:
            edit = Suggestion(Places(self._positions, (), "toml").quote(meant, At()), self._manifest.path, span)
        self.of_manifest.append(Diagnostic(code, message, self._manifest.path, span, suggestion=edit))

"""The way of a source: scan, evaluate, lower, check; or, when something is wrong, parse and explain.

Bytes in, a workflow and diagnostics out. This file alone knows the order of the stages. A stage is
imported where it is reached: a source without a mistake never pays for the parser, and networkx is
imported while the evaluation runs in its own process.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

from crucible.compiler.frontend.limits import LIMITS, Limits
from crucible.compiler.frontend.pack import (
    Pack,
    Refusal,
    Unreadable,
    module_name,
    normalise,
    over,
    read_found,
    read_input,
    read_named,
)
from crucible.compiler.frontend.sandbox import Channel, Death, Sandbox, evaluation_config, fresh
from crucible.schemas.diagnostic import At, Diagnostic, Finding, Severity, arrange, at_most, has_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from crucible.compiler.analysis.lint.case import Workspace
    from crucible.compiler.analysis.rules import Facts
    from crucible.compiler.attempt import Attempt
    from crucible.compiler.frontend.lower import Lowering
    from crucible.compiler.frontend.origins import CallFinding
    from crucible.compiler.frontend.params import Declarations
    from crucible.compiler.frontend.scan import Fault, Lane
    from crucible.compiler.frontend.source_file import SourceFile
    from crucible.compiler.frontend.tree import Source
    from crucible.compiler.manifest import Places, Reference
    from crucible.compiler.plan_file import PlanFile
    from crucible.schemas.ir import Workflow

__all__ = [
    "Compiled",
    "Options",
    "Refusal",
    "Unreadable",
    "compile_file",
    "compile_source",
    "declared_params",
    "read_found",
    "read_named",
]

_ROOT: Final = "workflow.star"
_SECOND_LOOK: Final = 1.5  # seconds, which come on top of those of the first
NO_ANSWER: Final = "the evaluation process sent what is no answer"


class Options(NamedTuple):
    """What a compile is told.

    ``params`` are the names and texts of a launch, None where there is no launch (language.md §6).
    ``connect`` gives the evaluation its process: that of a pool, in a process that compiles often.
    ``judge_direction`` reads [judge].direction of the manifest when a rule needs it. ``admit`` names
    the orchestrator that is asked to admit the workflow, ``persist`` tells whether it can continue a
    conversation (ir.md §4). ``unsaved`` are the bytes that an editor holds of files of the pack, as Pack has them.
    ``pack`` is the directory that is opened as the pack in place of the source's own, which then need not exist.
    ``lint`` asks for the warnings too: it tells what the manifest says of the workspace. ``root`` is the directory
    whose search found the source: neither it nor the way there is a link, whatever stands there by now.
    ``keys_only`` are the manifests whose [workflow] somebody else judges, such as the source it was generated from.
    """

    limits: Limits = LIMITS
    params: tuple[tuple[str, str], ...] | None = None
    judge_direction: Callable[[], str | None] = lambda: None
    admit: str | None = None
    connect: Callable[[], Channel] = fresh
    persist: bool = True
    unsaved: Mapping[str, bytes] = {}
    pack: str | None = None
    lint: "Callable[[], Workspace] | None" = None
    root: str | None = None
    keys_only: frozenset[str] = frozenset()


class Compiled(NamedTuple):
    """What became of a source.

    ``workflow`` is None when there is an error, or nothing to evaluate with. ``declares_params``
    tells a playbook that is a function of its launch. ``prompts`` are the embedded files with their
    sizes in characters, ``printed`` the lines of print(), ``texts`` the sources by the name that
    diagnostics give them, ``trees`` those of them that were parsed, ``prompt_texts`` the embedded files.
    ``plan`` is what a plan file says beside its tasks, None for all else.
    """

    workflow: "Workflow | None"
    diagnostics: list[Diagnostic]
    declares_params: bool = False
    prompts: tuple[tuple[str, int], ...] = ()
    printed: tuple[str, ...] = ()
    texts: dict[str, str] = {}  # noqa: RUF012 - never changed
    trees: "dict[str, Source]" = {}  # noqa: RUF012 - never changed
    prompt_texts: dict[str, str] = {}  # noqa: RUF012 - never changed
    plan: "PlanFile | None" = None


def compile_file(path: str, options: Options = Options()) -> Compiled:  # noqa: B008 - frozen
    """Compile the source in a file; its directory is the pack.

    Raises Unreadable when the file cannot be read at all.
    """
    return compile_source(read_input(path, options.limits, options.root), path, options)


def compile_source(data: bytes | Refusal, path: str, options: Options = Options()) -> Compiled:  # noqa: B008 - frozen
    """Compile the bytes of a source that stands, or would stand, at ``path``.

    Raises Unreadable when the pack's directory does not exist.
    """
    if isinstance(data, Refusal):
        return Compiled(None, [Diagnostic(data.code, data.message, path)])
    if path.endswith((".toml", ".json")):
        return _read_by_hand(data, path, options)
    return _compile(data, path, options)


def _compile(data: bytes, path: str, options: Options) -> Compiled:
    """Compile a Starlark source."""
    with _open_pack(path, options) as pack:
        compilation = _Compilation(data, path, pack, options)
        try:
            return compilation.run()
        finally:
            vars(compilation).clear()  # it is part of a circle of references, which would keep all that was recorded


class _ByHand(NamedTuple):
    """A file of IR that nobody compiled; ``diagnostics`` are about all of it but its ``content``.

    Without places the text could not be read at all. ``tables`` are those of a manifest, None for all else.
    """

    text: str | None
    content: "Workflow | Reference | None"
    findings: list[Finding]
    diagnostics: list[Diagnostic]
    places: "Places | None"
    plan: "PlanFile | None"
    tables: dict[str, Any] | None = None


def _open_by_hand(data: bytes, path: str) -> _ByHand:
    """Read what people write by hand: a manifest, a canonical JSON or a plan file, which tells itself apart."""
    from crucible.compiler import manifest, plan_file

    text, problems = manifest.decode(data, path)
    if text is None:
        return _ByHand(None, None, [], problems, None, None)
    tables, positions, problems = manifest.parse(text, path, _form(path))
    if problems:
        return _ByHand(text, None, [], problems, None, None)
    if plan_file.is_plan(path, tables):
        plan = plan_file.read(tables, positions, _form(path), path)
        return _ByHand(text, plan.workflow, plan.findings, plan.diagnostics, plan.places, plan.plan)
    content, findings, places = manifest.find_workflow(tables, positions, _form(path))
    return _ByHand(text, content, findings, [], places, None, tables if places.kind == "toml" else None)


def _read_by_hand(data: bytes, path: str, options: Options) -> Compiled:
    """Read and judge IR that was written by hand; lint judges the manifest around it, too."""
    found = _open_by_hand(data, path)
    if options.lint is None or found.tables is None:
        return _judge_by_hand(found, path, options)
    if path not in options.keys_only and (found.content is not None or found.findings):
        return _with_keys(_judge_by_hand(found, path, options), found, path, options)
    return _with_keys(Compiled(None, []), found, path, options)


def _with_keys(compiled: Compiled, found: _ByHand, path: str, options: Options) -> Compiled:
    """Add to what is said of a [workflow] what is wrong in the manifest around it."""
    from crucible.compiler import manifest_reading

    if found.tables is None or found.text is None or found.places is None:
        return compiled
    facts, problems = manifest_reading.judge(found.tables, found.places.positions, found.text, path)
    with _open_pack(path, options) as pack:
        is_known = facts.lane is not None or not pack.has(_ROOT)  # of a source that is yet to be compiled it is not
    if is_known:
        problems += manifest_reading.for_lane(facts, facts.lane)
    if compiled.workflow is not None:
        problems += manifest_reading.unknown_params(facts, compiled.workflow.params or ())
    diagnostics = at_most(arrange([*compiled.diagnostics, *problems]), options.limits.mistakes, path)
    workflow = None if has_errors(diagnostics) else compiled.workflow
    return compiled._replace(workflow=workflow, diagnostics=diagnostics, texts={path: found.text, **compiled.texts})


def _judge_by_hand(found: _ByHand, path: str, options: Options) -> Compiled:
    """Judge IR that was written by hand."""
    from crucible.compiler import manifest
    from crucible.compiler.analysis import rules

    text, content, read, problems, places, plan, _ = found
    texts = {} if text is None else {path: text}
    most = options.limits.mistakes
    if isinstance(content, manifest.Reference) and places is not None:
        source = _referred(content, path, options.limits, options.root)
        if isinstance(source, Refusal):
            return Compiled(None, _refused(source, path, places), texts=texts)
        return _compile(source[1], source[0], options)
    if content is None or places is None or isinstance(content, manifest.Reference):
        diagnostics = [*problems, *(manifest.to_diagnostics(read, places, path) if places is not None else ())]
        if not diagnostics:
            diagnostics = [
                Diagnostic("missing-key", "the manifest has no [workflow]; compile one with --manifest", path)
            ]
        return Compiled(None, at_most(arrange(diagnostics), most, path), texts=texts, plan=plan)
    facts = rules.facts_by_hand(content, options.judge_direction(), read)
    findings = rules.as_written(rules.judge(content, facts, most + 1), read)
    is_good = not findings and not read and not problems
    if is_good and options.admit:
        findings = _admission(content, options)
    if is_good and not findings and options.lint is not None:
        findings = _warnings_by_hand(content, facts, path, options)
    if options.params:
        from crucible.compiler.frontend.params import bind

        # What is compiled already has no parameters left to bind.
        problems = [*problems, *(Diagnostic(each.code, each.message) for each in bind(None, options.params).problems)]
    diagnostics = arrange([*problems, *manifest.to_diagnostics([*read, *findings], places, path)])
    diagnostics = at_most(diagnostics, most, path)
    return Compiled(None if has_errors(diagnostics) else content, diagnostics, texts=texts, plan=plan)


def _warnings_by_hand(workflow: "Workflow", facts: "Facts", path: str, options: Options) -> list[Finding]:
    """Find the warnings about IR without errors that was written by hand."""
    from crucible.compiler.lint import of_data

    if options.lint is None:
        return []
    with _open_pack(path, options) as pack:
        return of_data(workflow, facts, pack, options.lint())


def _open_pack(path: str, options: Options) -> Pack:
    """Open the pack of a source: its directory. Raises Unreadable when there is none."""
    try:
        directory = os.path.dirname(path) if options.pack is None else options.pack
        return Pack(directory, options.limits, options.unsaved, options.root)
    except OSError as error:
        raise Unreadable(os.strerror(error.errno or 0)) from None


def _form(path: str) -> Literal["toml", "json"]:
    """Return the form of IR that was written by hand, which its path tells."""
    return "toml" if path.endswith(".toml") else "json"


def _referred(
    reference: "Reference", path: str, limits: Limits, root: str | None = None
) -> tuple[str, bytes] | Refusal:
    """Read the source that the manifest at ``path`` names in place of tasks, through no link; also return its path."""
    name = normalise(reference.file)
    if isinstance(name, Refusal):
        return name
    source = os.path.join(os.path.dirname(path), name)
    try:
        data = read_found(source, os.path.dirname(path) if root is None else root, limits.source_bytes)
    except Unreadable as error:
        return Refusal("file-not-found", f'"{name}" cannot be read: {error}')
    return data if isinstance(data, Refusal) else (source, data)


def _refused(refusal: Refusal, path: str, places: "Places") -> list[Diagnostic]:
    """Say that a manifest names no source, at the name."""
    return [Diagnostic(refusal.code, refusal.message, path, places.resolve(At(None, "file")))]


def _admission(workflow: "Workflow", options: Options) -> list[Finding]:
    """Ask the orchestrator, if one is named, to admit a workflow that is well formed."""
    if options.admit is None:
        return []
    from crucible.compiler.analysis.admission import admit

    return admit(workflow, options.admit, persist=options.persist)


def declared_params(
    path: str, data: bytes | Refusal | None = None, limits: Limits = LIMITS
) -> tuple["Declarations | None", list[Diagnostic], dict[str, str]]:
    """Read the parameters that a source declares, without evaluating it; also return its text by name.

    Raises Unreadable when the file cannot be read at all.
    """
    read = read_input(path, limits) if data is None else data
    if isinstance(read, Refusal):
        return None, [Diagnostic(read.code, read.message, path)], {}
    if path.endswith((".toml", ".json")):
        from crucible.compiler import manifest

        found = _open_by_hand(read, path)
        texts = {} if found.text is None else {path: found.text}
        if not isinstance(found.content, manifest.Reference) or found.places is None:
            own = manifest.to_diagnostics(found.findings, found.places, path) if found.places is not None else []
            return None, arrange([*found.diagnostics, *own]), texts
        source = _referred(found.content, path, limits)
        if isinstance(source, Refusal):
            return None, _refused(source, path, found.places), texts
        path, read = source
    with _open_pack(path, Options(limits)) as pack:
        return _Compilation(read, path, pack, Options(limits)).read_params()


class _Compilation:
    """One compile: the files it read, and what is wrong so far."""

    def __init__(self, data: bytes, path: str, pack: Pack, options: Options) -> None:
        self._data = data
        self._path = path
        self._pack = pack
        self._options = options
        self._limits = options.limits
        self._files: dict[int, SourceFile] = {}
        self._numbers: dict[str, int] = {}
        self._texts: dict[str, str] = {}
        self._diagnostics: list[Diagnostic] = []
        self._attempt: Attempt
        self._lane: Lane
        self._declarations: Declarations | None = None
        self._lowering: Lowering | None = None
        self.is_second = False  # whether it only looks for what another one did not come to
        self._calls: list[Any] = []
        self._most_bytes = 0
        self._tokens = 0
        self._uncounted: list[str] = []

    def run(self) -> Compiled:
        """Take the source through the stages."""
        with Sandbox(self._limits, self._serve, self._options.connect) as sandbox:
            if not self._scan():
                return self._result(None)
            lane = self._attempt.lane
            if self._attempt.lane_fault or not self._attempt.lane_known:
                return self._explain(sandbox)
            is_asked = lane == "playbook" or self._options.params is not None
            params = self._bind_params(sandbox) if is_asked else {}
            if params is None:
                return self._explain(sandbox)
            return self._evaluate(sandbox, params)

    def read_params(self) -> tuple["Declarations | None", list[Diagnostic], dict[str, str]]:
        """Read the declarations alone, of a source that can be read and has a lane."""
        with Sandbox(self._limits, self._serve, self._options.connect) as sandbox:
            if self._scan():
                attempt = self._attempt
                if attempt.lane == "playbook" and not attempt.lane_fault:
                    self._bind_params(sandbox)
                if attempt.lane_fault or not attempt.lane_known or self._files[0].source.faults:
                    self._explain(sandbox)
        errors = [d for d in arrange(self._diagnostics) if d.severity is Severity.ERROR]
        return self._declarations, errors, self._texts

    def _scan(self) -> bool:
        """Read the bytes as far as needed before any parser sees them; false when that fails."""
        from crucible.compiler.attempt import Attempt

        text = self._admit(0, os.path.basename(self._path) or _ROOT, self._path, self._data, None)
        if text is None:
            return False
        self._attempt = Attempt(self._files, self._lane, self._pack.prompt)
        self._attempt.module = self._serve_module
        return True

    def _admit(self, number: int, path: str, shown: str, data: bytes, loaded_by: tuple[int, int] | None) -> str | None:
        """Scan one source and keep it as a file of this compile; None when it is refused."""
        from crucible.compiler.frontend import scan
        from crucible.compiler.frontend.source_file import SourceFile

        text, fault = "", None
        charged = self._pack.charge(len(data))
        if charged is None:
            text, fault = scan.decode(data, self._limits)
        if fault is None and not (text.isascii() and "\\U" not in text):
            fault = _reserved(text)
        plain: dict[int, int] = {}
        if fault is None:
            fault = scan.guard(text, self._limits, plain)
        file = SourceFile(number, path, shown, text, loaded_by)
        self._files[number] = file
        self._texts[shown] = text or data.decode(errors="replace")
        charged = charged or self._charge_tokens(text)
        if fault is None and charged is not None:
            fault = scan.Fault(charged.code, charged.message, None)
        if fault is None:
            lane = scan.find_lane(text, plain, module=number > 0)
            if not number:
                self._lane = lane
            elif lane.fault is not None:
                self._attempt.lane_faults.append((file, lane.fault))
        else:
            from crucible.compiler.explain import of_fault
            from crucible.compiler.frontend.source_file import loaded_from

            self._diagnostics.append(of_fault(file, fault, loaded_from(self._files, file)))
            del self._files[number]  # nobody may parse it
            return None
        return text

    def _charge_tokens(self, text: str) -> Refusal | None:
        """Hold all sources together against the ceiling on tokens; short ones are not even counted."""
        from crucible.compiler.frontend.lexis import count_tokens

        most = self._limits.tokens
        self._uncounted.append(text)
        if self._tokens + sum(map(len, self._uncounted)) <= most:
            return None
        for each in self._uncounted:
            self._tokens += count_tokens(each, most)
        self._uncounted.clear()
        if self._tokens <= most:
            return None
        return Refusal("limit-exceeded", f"tokens of all sources together may be at most {most:,}; these are more")

    # Serving the evaluation

    def _serve(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Answer what the evaluation asks for."""
        if message.get("ask") == "prompt":
            text = self._pack.prompt(str(message["path"]))
            if isinstance(text, Refusal):
                self._attempt.refused_prompts.append((int(message["call"]), text))
                return {}
            return {"text": text}
        if message.get("ask") == "module":
            return self._serve_module(str(message["path"]), int(message["file"]), int(message["load"]))
        if "more" in message:
            self._take(message["more"])
            return None
        message_kind = f"unexpected message {sorted(message)}"
        raise ValueError(message_kind)

    def _serve_module(self, path: str, file: int, load: int) -> dict[str, Any]:
        """Give the child a module's number, with its text at the first time."""
        if file not in self._files or load < 0:
            raise KeyError(file)
        self._attempt.served_loads.add((file, load))
        refused = self._attempt.refused_loads
        if len(refused) > self._limits.mistakes:
            return {}  # more than anybody is told of
        name = module_name(path)
        if isinstance(name, Refusal):
            refused.append((file, load, name))
            return {}
        if name == self._files[0].path:
            return {"file": 0}
        if name in self._numbers:
            number = self._numbers[name]
            return {"file": number} if number in self._files else {}
        if len(self._numbers) >= self._limits.modules:
            message = f"loaded modules may be at most {self._limits.modules}; this is one more"
            refused.append((file, load, Refusal("limit-exceeded", message)))
            return {}
        served = self._pack.module(name)
        if isinstance(served, Refusal):
            refused.append((file, load, served))
            return {}
        number = self._numbers[name] = len(self._numbers) + 1
        shown = name if name.startswith("@") else os.path.join(os.path.dirname(self._path), name)
        text = self._admit(number, name, shown, served[1], (file, load))
        if text is None:
            self._attempt.broken_module = True
            return {}
        return {"file": number, "text": text}

    # Parameters

    def _bind_params(self, sandbox: Sandbox) -> dict[str, Any] | None:
        """Read the declarations and bind their values; None when evaluating makes no sense."""
        from crucible.compiler.explain import of_param
        from crucible.compiler.frontend import external, params, scan

        file = self._files[0]
        self._declarations, problems = params.read_block(scan.tokens(file.text), self._attempt.lane)
        bound = params.bind(self._declarations, self._options.params)
        problems = [*problems, *bound.problems]
        checks = [*(self._declarations.checks if self._declarations else ()), *bound.checks]
        if checks:
            try:
                answer = sandbox.ask({"patterns": [[check.pattern, check.text] for check in checks]})
            except Death as death:
                self._diagnostics.append(Diagnostic(death.code, death.message, file.shown))
                return None
            verdicts = answer.get("patterns")
            if not isinstance(verdicts, list) or [type(each) in (bool, str) for each in verdicts] != [True] * len(
                checks
            ):
                self._diagnostics.append(Diagnostic("evaluator-crashed", NO_ANSWER, file.shown))
                return None
            problems += params.refused_patterns(checks, verdicts)
        self._diagnostics.extend(of_param(file, problem) for problem in problems)
        if problems:
            return None
        if self._declarations is None:
            return {}
        names = self._declarations.names
        self._attempt.params = bound.values
        self._attempt.declared = names
        self._attempt.external = (external.has_mark, lambda text: external.render_prompt(text, names, bound.supplied))
        return params.marked(self._declarations, bound.values)

    # Evaluating

    def _evaluate(self, sandbox: Sandbox, params: dict[str, Any]) -> Compiled:
        """Evaluate, lower and check; explain what is wrong, if anything is."""
        from crucible.compiler.frontend.vocabulary import constructors_of

        attempt = self._attempt
        attempt.request = {
            "config": evaluation_config(self._limits),
            "text": self._files[0].text,
            "makes": {name: row.makes for name, row in constructors_of(attempt.lane).items()},
            "params": params,
        }
        try:
            sandbox.begin(attempt.request)
            from crucible.compiler.analysis import rules
            from crucible.compiler.frontend.lower import ExternalText, Lowering
            from crucible.compiler.frontend.lower import Options as LowerOptions

            external = ExternalText(*attempt.external) if attempt.external else None
            options = LowerOptions(attempt.lane_literal, self._limits, attempt.params, external, attempt.declared)
            self._lowering = Lowering(options)
            sandbox.when_slow = self._give_up_on_unknown_names
            answer = sandbox.finish()
            sandbox.when_slow = None
            self._take(answer.get("calls"))
            check_answer(answer, self._files, len(self._calls))
        except Death as death:
            attempt.death = death
            return self._explain(sandbox)
        attempt.answer, attempt.calls = answer, self._calls
        lowering, self._lowering = self._lowering, None
        lowered = attempt.lowered = lowering.finish(answer.get("last"), ended_early=answer["error"] is not None)
        if external is not None and answer["error"] is None:
            try:
                lowered.findings.extend(self._leaks(sandbox, params))
            except Death as death:
                attempt.death = death
                return self._explain(sandbox)
        if lowered.workflow is not None:
            origins = lowered.places
            facts = rules.Facts(
                judge_direction=self._options.judge_direction() if _may_conflict(lowered.workflow) else None,
                by_hand=False,
                engine_origin=frozenset(origins.made),
                splice=origins.splice,
                refused=frozenset(origins.refused),
                behind_loop=frozenset(origins.behind_loop),
            )
            attempt.findings = rules.judge(lowered.workflow, facts, 10 * self._limits.mistakes)
            if not attempt.findings and not lowered.findings:
                attempt.findings = _admission(lowered.workflow, self._options)
        if attempt.is_clean and not self._diagnostics:
            return self._result(sandbox)
        return self._explain(sandbox)

    def _take(self, calls: Any) -> None:
        """Take over call records, which come some at a time; only the evaluation that was begun first has any."""
        if self._lowering is None:
            raise ValueError
        self._most_bytes += check_calls(calls, len(self._calls))
        self._calls += calls
        self._lowering.take(calls)

    def _give_up_on_unknown_names(self) -> None:
        """End an evaluation that may only look for what its unknown names mean, which can take it minutes."""
        from crucible.compiler.lane_in_scope import has_unknown_names

        if has_unknown_names(self._attempt):
            raise Death("evaluator-crashed", NO_ANSWER)

    def _leaks(self, sandbox: Sandbox, params: dict[str, Any]) -> "list[CallFinding]":
        """Find external text without its marks, by evaluating with other text."""
        from crucible.compiler.frontend import leaks

        known = {finding.place.call for finding in self._attempt.lowered.findings} if self._attempt.lowered else set()
        found: list[CallFinding] = []
        for change in leaks.CHANGES:
            others = leaks.other_values(params, change)
            if others == params or found:
                continue
            answer = sandbox.ask({"again": others})
            check_calls(answer.get("calls"))
            check_answer(answer, self._files, len(answer["calls"]))
            ended_early = answer["error"] is not None
            found = list(leaks.find(self._attempt.calls, answer["calls"], change, ended_early=ended_early, known=known))
        return found

    def _explain(self, sandbox: Sandbox) -> Compiled:
        """Read the trees and say everything that is wrong, each at its place."""
        from crucible.compiler.explain import explain
        from crucible.compiler.second_look import beyond, without_functions

        found = explain(self._attempt, self._limits, sandbox)
        self._diagnostics.extend(found)
        text = None if self.is_second else without_functions(self._attempt, found)
        if text is not None:
            # In a process of its own: a pool of one would wait for this one.
            limits = self._limits._replace(seconds=min(self._limits.seconds, _SECOND_LOOK))
            options = self._options._replace(limits=limits, connect=fresh, lint=None, admit=None)
            with _open_pack(self._path, options) as pack:
                second = _Compilation(text.encode(), self._path, pack, options)
                second.is_second = True
                self._diagnostics.extend(beyond(found, second.run().diagnostics))
        return self._result(sandbox)

    def _result(self, sandbox: Sandbox | None) -> Compiled:
        """Gather what became of the source; without a sandbox nothing was evaluated."""
        diagnostics = at_most(arrange(self._diagnostics), self._limits.mistakes + 1, self._path)
        workflow = None
        printed: Iterable[str] = ()
        if sandbox is not None:
            if not has_errors(diagnostics) and self._attempt.lowered is not None:
                workflow = self._attempt.lowered.workflow
            if any(call[0] == "print" for call in self._attempt.calls):
                from crucible.compiler.explain import printed_lines

                printed = printed_lines(self._attempt, self._limits, sandbox)
        if workflow is not None and self._most_bytes > self._limits.json_bytes:
            from crucible.schemas.canonical import encoded

            size = len(encoded(workflow))
            if size > self._limits.json_bytes:
                refusal = over("the canonical JSON", self._limits.json_bytes, size)
                diagnostics.append(Diagnostic(refusal.code, refusal.message, self._path))
                workflow = None
        if sandbox is not None and self._options.lint is not None:
            from crucible.compiler.lint import with_warnings

            found = with_warnings(self._attempt, self._pack, sandbox, workflow, diagnostics, self._options.lint())
            diagnostics = arrange(found)
        elif sandbox is not None and any(each.severity is Severity.WARNING for each in diagnostics):
            from crucible.compiler.lint import without_suppressed

            diagnostics = without_suppressed(self._attempt, diagnostics)
        return Compiled(
            workflow,
            diagnostics,
            declares_params=self._declarations is not None,
            prompts=tuple(self._pack.opened),
            printed=tuple(printed),
            texts=self._texts,
            trees={file.shown: file.parsed for file in self._files.values() if file.parsed is not None},
            prompt_texts=self._pack.prompts,
        )


def _reserved(text: str) -> "Fault | None":
    """Refuse a source that holds a character with which external text is marked (language.md §6)."""
    from crucible.compiler.frontend.external import reserved_character
    from crucible.compiler.frontend.lexis import Fault, place

    found = reserved_character(text)
    if found is None:
        return None
    message = "the characters U+100000 to U+100FFF are reserved; remove this one"
    return Fault("syntax-error", message, place(text, found.start(), found.end()))


def check_calls(calls: Any, before: int = 0) -> int:
    """Return the most bytes that call records can take in the canonical JSON; ``before`` them came so many others.

    Raises Death for what are no records: the process that gave them is not trusted.
    """
    values: list[Any] = []
    try:
        fits = isinstance(calls, list)
        for name, positional, named in calls:
            fits = fits and isinstance(name, str) and isinstance(positional, list)
            fits = fits and (name != "print" or [type(text) for text in positional] == [str])
            for key, value in named:
                fits = fits and key.__class__ is str
                values.append(value)
            values.extend(positional)
        if fits:
            return _most_bytes(values, len(calls), before)
    except (LookupError, TypeError, ValueError):
        pass
    raise Death("evaluator-crashed", NO_ANSWER)


def check_answer(answer: dict[str, Any], files: Collection[int], count: int) -> None:
    """Raise Death for an answer, to so many calls in all, that has not the shape of one."""
    try:
        last, limit = answer.get("last"), answer.get("limit")
        fits = last is None or (isinstance(last, int) and 0 <= last < count)
        fits = fits and (answer["error"] is None or _error_fits(answer["error"], files))
        fits = fits and (limit is None or [type(part) for part in limit] == [str, int, int])
    except (LookupError, TypeError, ValueError):
        fits = False
    if not fits:
        raise Death("evaluator-crashed", NO_ANSWER)


def _most_bytes(values: list[Any], count: int, before: int) -> int:
    """Return the most bytes that the recorded values of so many calls can take in the canonical JSON.

    A character takes six bytes at the most, a task without its texts less than 1,000, a dependency, which is
    written by its name, 800. Raises ValueError for the handle of a call that was not recorded.
    """
    most = 1_000 * (count + 4)
    pending = values
    while pending:
        item = pending.pop()
        if item.__class__ is str:
            most += 6 * len(item) + 16
        elif item.__class__ is list:
            most += 800 * len(item)
            pending.extend(item)
        elif item.__class__ is dict and "call" in item:
            call = item["call"]
            if not (isinstance(call, int) and 0 <= call < before + count):
                raise ValueError(call)
    return most


def _error_fits(error: dict[str, Any], files: Collection[int]) -> bool:
    """Tell whether an error has the parts that its kind needs, in files that there are."""
    if error["kind"] == "load":
        return True
    if error["kind"] in ("cycle", "symbols"):
        numbers = [error["file"], *error.get("chain", ())]
        return isinstance(error["load"], int) and all(number in files for number in numbers)
    place = error["place"]
    fits = place is None or (place[0] in files and [type(part) for part in place] == [int, int, int])
    fits = fits and isinstance(error["message"], str) and isinstance(error["width"], int)
    fits = fits and isinstance(error["frames"], list)
    return fits and all(
        number in files and isinstance(line, int) and isinstance(name, str) for number, line, name in error["frames"]
    )


def _may_conflict(workflow: "Workflow") -> bool:
    """Tell whether some score source has a direction that the manifest's could contradict."""
    return any(getattr(task, "direction", None) for task in workflow.task)

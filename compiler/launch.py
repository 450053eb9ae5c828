"""What `plan run` asks of the compiler: a file in any of its forms becomes a workflow that the plan runner admits.

A canonical JSON is its own proof of being compiled, and a run of it starts at once: when writing what was read gives
the same bytes, its graph is looked over and nothing else is imported. All else takes the way of every source.
"""

from __future__ import annotations

import json
import os

from crucible.compiler.analysis.admission import admit, continues_conversations
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.pack import Refusal, Unreadable, read_input
from crucible.schemas import ir
from crucible.schemas.canonical import encoded
from crucible.schemas.diagnostic import Diagnostic, Severity, arrange, has_errors
from crucible.schemas.hashes import sha256
from crucible.schemas.light import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Final

    from crucible.compiler.manifest_model import Manifest
    from crucible.compiler.pipeline import Compiled, Options
    from crucible.schemas.ir import Workflow

_ORCHESTRATOR: Final = "runner"
_SMALL: Final = 1 << 20  # bytes of which nothing can be made that takes much memory


class CannotRead(Exception):
    """A file that was named cannot be read at all."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = path, reason


class Launch(NamedTuple):
    """A workflow to run, with all that its run takes from files.

    ``workflow`` is None when there is an error. ``budget`` is that of a plan file, in micro-dollars, and ``reason``
    its own words. ``digest`` is the workflow's identity. ``manifest`` is None unless one was named. ``texts`` are the
    sources by the name that diagnostics give them, ``printed`` the lines of print().
    """

    path: str
    workflow: Workflow | None
    diagnostics: list[Diagnostic]
    digest: str = ""
    budget: int | None = None
    reason: str | None = None
    manifest: Manifest | None = None
    texts: Mapping[str, str] = {}
    printed: tuple[str, ...] = ()


def read(
    path: str,
    data: bytes | Refusal | None = None,
    *,
    manifest: str | None = None,
    manifest_data: bytes | None = None,
    params: Iterable[tuple[str, str]] = (),
    persist: bool | None = None,
) -> Launch:
    """Read what is to be run, and the manifest that a run is set up by.

    ``data`` is what standard input gave in the place of the file. ``manifest_data`` are the bytes of the manifest as
    the workspace's base commit has them, when those hold. ``persist`` tells whether the agents of the run can go on
    with a conversation, None leaves that to the manifest. Raises CannotRead.
    """
    params = tuple(params)
    held: bytes | Refusal | None = None
    facts: Manifest | None = None
    problems: list[Diagnostic] = []
    texts: dict[str, str] = {}
    if manifest is not None:
        held = _read(manifest) if manifest_data is None else manifest_data
        facts, problems = _facts(held, manifest, texts)
        if data is None and _is_same(path, manifest):
            data = held
    data = _read(path) if data is None else data
    can_persist = persist if persist is not None else _can_persist(facts)
    known = None
    if isinstance(data, bytes) and path.endswith(".json") and not params:
        known = _canonical(data, persist=can_persist)
    if known is not None:
        launch = Launch(path, known[0], [], known[1])
    else:
        launch = _compile(path, data, (manifest, held), params, persist=can_persist)
    if facts is not None and launch.workflow is not None:
        from crucible.compiler.manifest_reading import for_lane

        problems = [*problems, *for_lane(facts, launch.workflow.type)]
    problems = arrange([*launch.diagnostics, *problems])
    workflow = None if has_errors(problems) else launch.workflow
    return launch._replace(workflow=workflow, diagnostics=problems, manifest=facts, texts={**texts, **launch.texts})


def _read(path: str) -> bytes | Refusal:
    try:
        return read_input(path, LIMITS)
    except Unreadable as error:
        raise CannotRead(path, str(error)) from None


def _is_same(path: str, manifest: str) -> bool:
    return path == manifest or os.path.realpath(path) == os.path.realpath(manifest)


# A canonical JSON


def _canonical(data: bytes, *, persist: bool) -> tuple[Workflow, str] | None:
    """Return a workflow and its digest when these are the bytes of its canonical JSON and the runner admits it.

    What is None here is a matter for the compiler, which has positions and reasons.
    """
    try:
        if len(data) > _SMALL and _is_excessive(data.decode()):
            return None
        workflow, findings = ir.read(json.loads(data), canonical=True)
        if workflow is None or findings or encoded(workflow) != data:
            return None
    except (ValueError, RecursionError):
        return None
    if not _is_graph(workflow) or admit(workflow, _ORCHESTRATOR, persist=persist):
        return None
    return workflow, sha256(data)


def _is_excessive(text: str) -> bool:
    from crucible.compiler.bulk import excess

    return excess(text) is not None


def _is_graph(workflow: Workflow) -> bool:
    """Tell whether all names are known and nobody's but one task's, and no task waits for itself."""
    tasks = workflow.task
    waits = {task.name: task.depends_on for task in tasks}
    if len(waits) < len(tasks) or not (workflow.result is None or workflow.result in waits):
        return False
    seen: set[str] = set()
    is_ordered = True
    for task in tasks:
        for name in task.depends_on:
            if name not in waits:
                return False
            is_ordered = is_ordered and name in seen
        seen.add(task.name)
    if is_ordered:
        return True
    from graphlib import CycleError, TopologicalSorter

    try:
        TopologicalSorter(waits).prepare()
    except CycleError:
        return False
    return True


# All else


def _compile(
    path: str,
    data: bytes | Refusal,
    manifest: tuple[str | None, bytes | Refusal | None],
    params: tuple[tuple[str, str], ...],
    *,
    persist: bool,
) -> Launch:
    """Compile a source, or read and judge what was written by hand."""
    from crucible.compiler.facts import ManifestFacts
    from crucible.compiler.pipeline import Options, compile_source

    name, held = manifest
    beside = path if path.endswith(".toml") else os.path.join(os.path.dirname(path), "crucible.toml")
    facts = ManifestFacts(name or beside, held if isinstance(held, bytes) else None)
    options = Options(params=params, judge_direction=facts.judge_direction, admit=_ORCHESTRATOR, persist=persist)
    try:
        compiled = compile_source(data, path, options)
        if path.endswith(".toml") and compiled.plan is None:
            compiled = _against_source(compiled, path, options)
    except Unreadable as error:
        raise CannotRead(path, str(error)) from None
    workflow = None if has_errors(compiled.diagnostics) else compiled.workflow
    launch = Launch(path, workflow, compiled.diagnostics, texts=compiled.texts, printed=compiled.printed)
    if compiled.plan is not None:
        launch = launch._replace(budget=compiled.plan.budget, reason=compiled.plan.reason)
    if workflow is None:
        return launch
    from crucible.schemas.canonical import digest

    return launch._replace(digest=digest(workflow))


def _against_source(compiled: Compiled, path: str, options: Options) -> Compiled:
    """Hold the [workflow] of a manifest against the source beside it, as the scored loop does."""
    from crucible.compiler import beside

    has_none = [(each.code, each.span) for each in compiled.diagnostics] == [("missing-key", None)]
    text = compiled.texts.get(path)
    if text is None or (compiled.workflow is None and not has_none):
        return compiled  # a playbook that was compiled for this launch, or what is wrong anyway
    source = beside.source_of(text, path)
    if compiled.workflow is None:
        return compiled._replace(diagnostics=[_default_loop(path) if source is None else beside.absent(path, source)])
    if source is None:
        return compiled
    try:
        stale, other = beside.compare(compiled.workflow, text, path, source, options)
    except Unreadable as error:
        raise CannotRead(source, str(error)) from None
    if stale is None:
        return compiled
    errors = [each for each in other.diagnostics if each.severity is Severity.ERROR]
    texts = {**compiled.texts, **other.texts}
    return compiled._replace(workflow=None, diagnostics=arrange([*errors, stale]), texts=texts)


def _default_loop(path: str) -> Diagnostic:
    """Say that nothing but the default loop is to be run, which is not this orchestrator's."""
    from crucible.compiler.beside import SOURCE
    from crucible.schemas.default_loop import loop_around

    lacking = admit(loop_around(()), _ORCHESTRATOR, persist=True)[0]
    return Diagnostic(
        lacking.code, f"without [workflow] and without {SOURCE} it is the default loop: {lacking.message}", path
    )


# The manifest that a run is set up by


def _facts(data: bytes | Refusal, path: str, texts: dict[str, str]) -> tuple[Manifest | None, list[Diagnostic]]:
    """Read the facts of the manifest; its text joins those that diagnostics quote."""
    if isinstance(data, Refusal):
        return None, [Diagnostic(data.code, data.message, path)]
    text = data.decode(errors="replace")
    if "\ufffd" in text or _is_excessive(text):
        from crucible.compiler.manifest import decode

        decoded, diagnostics = decode(data, path)
        if decoded is None:
            return None, diagnostics
    from crucible.compiler import manifest_reading

    texts[path] = text
    return manifest_reading.read(text, path)


def _can_persist(facts: Manifest | None) -> bool:
    """Tell whether the agents that a manifest names can go on with a conversation; the defaults can."""
    if facts is None:
        return True
    return continues_conversations(facts.agent.backend, facts.agent.harness)

"""A side of a comparison: what a source, or one of the forms written by hand, means on the disk or at a revision.

In go the files of a pack and the name of one of them, out comes a workflow with the gate of its manifest, or
the diagnostics that say why not. What the disk and a revision have in common is all that is asked here.
"""

import hashlib
import os
import posixpath
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from crucible.compiler import diff, gate, manifest, plan_file
from crucible.compiler.facts import ManifestFacts
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.pack import normalise, over
from crucible.compiler.pipeline import Compiled, Options, Refusal, Unreadable, compile_source, read_named
from crucible.schemas.default_loop import loop_around
from crucible.schemas.diagnostic import Diagnostic, arrange
from crucible.schemas.ir import CommandTask, EvaluateTask

if TYPE_CHECKING:
    from crucible.compiler.gate import Gate
    from crucible.compiler.launches import Launch
    from crucible.compiler.revisions import Tree
    from crucible.schemas.ir import Workflow

MANIFEST: Final = "crucible.toml"
SOURCE: Final = "workflow.star"
_MOST: Final = LIMITS.json_bytes


class Files(Protocol):
    """The files of a pack, by their paths below it.

    ``shown`` is the folder as people call it, ``directory`` what a compile may open in its place, ``unsaved`` the
    bytes of files that this directory has not.
    """

    shown: str
    directory: str
    unsaved: Mapping[str, bytes]

    def read(self, name: str) -> bytes | Refusal | None:
        """Return the bytes of a file, a refusal for one that is too large, None where there is none."""
        ...

    def below(self, folder: str) -> list[str]:
        """Return the regular files below a folder; a file is all that there is below it, and so is a submodule."""
        ...

    def digest(self, name: str) -> str | None:
        """Return what tells the content of a file, or the state of a submodule, from another."""
        ...


class OnDisk:
    """The files of a directory."""

    def __init__(self, directory: str) -> None:
        self.shown = directory
        self.directory = directory
        self.unsaved: Mapping[str, bytes] = {}

    def read(self, name: str) -> bytes | Refusal | None:
        """Read a file, as whoever names it on the command line does."""
        try:
            return read_named(os.path.join(self.directory, name), _MOST, f'"{name}"')
        except Unreadable:
            return None

    def below(self, folder: str) -> list[str]:
        """Walk the directory; links are not followed."""
        start = os.path.join(self.directory, folder) if folder else self.directory or "."
        if os.path.isfile(start):
            return [folder]
        head = len(self.directory) + 1 if self.directory else 2 * (not folder)
        found: list[str] = []
        for where, folders, names in os.walk(start):
            folders[:] = [each for each in folders if each != ".git"]
            if where != start and os.path.isfile(os.path.join(where, ".git")):
                folders[:] = []  # a submodule, as a tree has it
                found.append(where)
                continue
            found += [path for name in names if os.path.isfile(path := os.path.join(where, name))]
        return sorted(path[head:].replace(os.sep, "/") for path in found)

    def digest(self, name: str) -> str | None:
        """Return the digest of the content."""
        return _digest(self, name)


class AtRevision:
    """The files of a folder at a revision, beside a directory that stands for it."""

    def __init__(self, tree: "Tree", folder: str, shown: str, directory: str) -> None:
        self.shown = shown
        self.directory = directory
        self.unsaved: Mapping[str, bytes] = tree.blobs(folder, max(LIMITS.source_bytes, LIMITS.prompt_bytes))
        self._tree = tree
        self._folder = folder

    def read(self, name: str) -> bytes | Refusal | None:
        """Read a file of the tree, through links that stay in it."""
        path = f"{self._folder}/{name}"
        size = self._tree.size(path)
        return over(f'"{name}"', _MOST, size) if size > _MOST else self._tree.read(path)

    def below(self, folder: str) -> list[str]:
        """List what the tree has."""
        found = self._tree.find(f"{self._folder}/{folder}")
        if found is None:
            return []
        names = [name[len(found) :].lstrip("/") for name in self._tree.contents(found)]
        return [posixpath.join(folder, name) if name and folder else name or folder for name in names]

    def digest(self, name: str) -> str | None:
        """Return the digest of the content, or the commit of a submodule."""
        return self._tree.submodule(f"{self._folder}/{name}") or _digest(self, name)


@contextmanager
def at_revision(tree: "Tree", folder: str, shown: str, *, whole: bool = False) -> Iterator[AtRevision]:
    """Give the files of a folder at a revision; with ``whole`` also what stands around it, as names and sizes.

    Raises Unreadable when there is no such folder.
    """
    found = tree.find(folder)
    if found is None or not tree.is_folder(found):
        raise Unreadable("No such file or directory")
    with tree.directory("" if whole else found) as directory:
        yield AtRevision(tree, found, shown, os.path.join(directory, found) if whole else directory)


class Side(NamedTuple):
    """What one side of a comparison came to.

    ``gate`` is None where no manifest is known; ``is_pack`` tells that the side is a pack, which then has none.
    ``reads`` are the files that it was made of, by their paths below the pack. ``launch`` is what the source says of
    its parameters, None for what is no source.
    """

    compiled: Compiled
    gate: "Gate | None"
    is_pack: bool
    reads: frozenset[str] = frozenset()
    launch: "Launch | None" = None

    @property
    def workflow(self) -> "Workflow | None":
        """Return the workflow, None when there is an error, or nothing to evaluate with."""
        return self.compiled.workflow


def read(files: Files, name: str, options: Options | None = None, *, lint: bool = False) -> Side:
    """Compile a file of a pack, as it is or was; ``lint`` asks for the warnings too.

    Raises Unreadable when the file cannot be read at all.
    """
    data = files.read(name)
    if data is None:
        raise Unreadable("No such file or directory")
    is_plan = isinstance(data, bytes) and _is_plan(data, name)
    is_json = name.endswith(".json") and not is_plan
    own = name if name.endswith(".toml") and not is_plan else MANIFEST
    held = None if is_json else data if own == name else files.read(own)
    tables: Mapping[str, Any] | None = None
    problems: list[Diagnostic] = []
    if isinstance(held, bytes):
        tables, problems = _tables(held, _shown(files, own))
    elif held is not None:
        problems = [Diagnostic(held.code, held.message, _shown(files, own))]
    facts = ManifestFacts(os.path.join(files.directory, own), held if isinstance(held, bytes) else b"")
    options = (options or Options())._replace(
        judge_direction=facts.judge_direction,
        unsaved=files.unsaved,
        pack=files.directory,
        lint=facts.workspace if lint else None,
    )
    if problems and own == name:
        return Side(Compiled(None, problems, texts=_texts(held, _shown(files, own))), None, is_pack=True)
    compiled = _compile(files, name, data, options)
    if problems:
        texts = {**compiled.texts, **_texts(held, _shown(files, own))}
        compiled = compiled._replace(
            workflow=None, diagnostics=arrange([*compiled.diagnostics, *problems]), texts=texts
        )
    reads = {name, own, *(path for path, _ in compiled.prompts)}
    reads |= {path.removeprefix(_shown(files, "")) for path in compiled.texts}
    launch = None if is_json or is_plan else _launch(compiled)
    if tables is None:
        return Side(compiled, None, not is_json, frozenset(reads), launch)
    tasks = compiled.workflow.task if compiled.workflow is not None else ()
    commands = [task.command for task in tasks if isinstance(task, (CommandTask, EvaluateTask))]
    found = gate.read(tables, files.below, files.digest, commands)
    reads |= {each.source for each in found.injects.values()} | found.scripts.keys()
    return Side(compiled, found, is_pack=True, reads=frozenset(reads), launch=launch)


def _launch(compiled: Compiled) -> "Launch | None":
    """Read the parameters of what was compiled from a source; others have none."""
    from crucible.compiler import launches

    sources = [text for name, text in compiled.texts.items() if name.endswith(".star")]
    roots = [text for text in sources if "workflow" in text and "params" in text] if compiled.declares_params else []
    return launches.read(roots[0], [text for text in sources if text is not roots[0]]) if roots else launches.NONE


def compare(old: Side, new: Side, *, is_one_pack: bool) -> "diff.Diff | None":
    """Compare two sides, None when one has no workflow; a pack that lost its manifest has lost its gate."""
    if old.workflow is None or new.workflow is None:
        return None
    new_gate = gate.Gate({}, {}) if new.gate is None and new.is_pack and is_one_pack else new.gate
    launches = None if old.launch is None or new.launch is None else (old.launch, new.launch)
    return diff.compare(old.workflow, new.workflow, old.gate, new_gate, launches)


def _compile(files: Files, name: str, data: bytes | Refusal, options: Options) -> Compiled:
    """Compile a file; a manifest may name its source, or stand for the default loop."""
    shown = _shown(files, name)
    if isinstance(data, bytes) and name.endswith(".toml") and not _is_plan(data, name):
        text, _ = manifest.decode(data, shown)
        content, problems, places = manifest.read_workflow(text or "", shown, "toml")
        if isinstance(content, manifest.Reference):
            source = normalise(content.file)
            held = files.read(source) if isinstance(source, str) else None
            if isinstance(source, str) and held is not None:
                return compile_source(held, _shown(files, source), options)
            refusal = source if isinstance(source, Refusal) else Refusal("file-not-found", f'there is no "{source}"')
            return Compiled(None, [Diagnostic(refusal.code, refusal.message, shown)], texts=_texts(data, shown))
        if content is None and not problems and places is not None and files.read(SOURCE) is None:
            return Compiled(loop_around(()), [])
    return compile_source(data, shown, options)


def _is_plan(data: bytes, name: str) -> bool:
    """Tell whether a file holds a plan."""
    if not name.endswith((".toml", ".json")):
        return False
    text, _ = manifest.decode(data, name)
    tables, _, problems = manifest.parse(text or "", name, "toml" if name.endswith(".toml") else "json")
    return plan_file.is_plan(name, None if problems else tables)


def _shown(files: Files, name: str) -> str:
    """Return how people call a file of a pack."""
    return f"{files.shown}{'' if files.shown.endswith((':', '/')) or not files.shown else '/'}{name}"


def _tables(data: bytes, shown: str) -> tuple[Mapping[str, Any] | None, list[Diagnostic]]:
    """Return what a manifest says, or why it says nothing."""
    text, problems = manifest.decode(data, shown)
    return manifest.read_manifest(text, shown) if text is not None else (None, problems)


def _texts(data: bytes | Refusal | None, shown: str) -> dict[str, str]:
    return {shown: data.decode(errors="replace")} if isinstance(data, bytes) else {}


def _digest(files: Files, file: str) -> str | None:
    data: bytes | Refusal | None = None
    with suppress(OSError):
        data = files.read(file)
    if isinstance(data, Refusal):
        return data.message
    return None if data is None else hashlib.sha256(data).hexdigest()

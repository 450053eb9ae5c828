"""A side of a comparison: what a source, or one of the forms written by hand, means on the disk or at a revision.

In go the files of a pack and the name of one of them, out comes a workflow with the gate of its manifest, or
the diagnostics that say why not. What the disk and a revision have in common is all that is asked here.
"""

import hashlib
import io
import os
import posixpath
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from crucible.compiler import diff, gate, manifest, plan_file
from crucible.compiler.change import Change, Class
from crucible.compiler.facts import ManifestFacts
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.pack import normalise, over
from crucible.compiler.pipeline import Compiled, Options, Refusal, Unreadable, compile_source, read_found
from crucible.schemas.default_loop import loop_around
from crucible.schemas.diagnostic import Diagnostic, arrange
from crucible.schemas.ir import CommandTask, EvaluateTask

if TYPE_CHECKING:
    from crucible.compiler.gate import Gate
    from crucible.compiler.launches import Source
    from crucible.compiler.revisions import Tree
    from crucible.schemas.ir import Workflow

MANIFEST: Final = "crucible.toml"
SOURCE: Final = "workflow.star"
_SECONDS: Final = 2.0  # of an evaluation for one launch among many
_MOST: Final = LIMITS.json_bytes
_MOST_NAMES: Final = 3
_SHA1: Final = 40
_STATE: Final = ("state",)
# What nothing runs, and what is compared by its meaning.
# What no command has a use for; a picture or a text elsewhere may be what a result is compared with.
_PROMPTS: Final = "prompts"
_NO_USE: Final = (MANIFEST, "expected-workflow.json", "WORKFLOW.png", "README.md", "CHANGELOG.md", "LICENSE")


class Files(Protocol):
    """The files of a pack, by their paths below it.

    ``shown`` is the folder as people call it, ``directory`` what a compile may open in its place, ``unsaved`` the
    bytes of files that this directory has not. ``is_whole`` tells that all files are the pack's: a disk has others.
    """

    shown: str
    directory: str
    unsaved: Mapping[str, bytes]
    is_whole: bool

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
    """The files of a directory, one of which was named and may be a link."""

    def __init__(self, directory: str, named: str = "") -> None:
        self._named = named
        self.shown = directory
        self.directory = directory
        self.unsaved: Mapping[str, bytes] = {}
        self.is_whole = False

    def read(self, name: str) -> bytes | Refusal | None:
        """Read a file, through no link but the one that was named."""
        path, root = os.path.join(self.directory, name), None if name == self._named else self.directory
        try:
            return read_found(path, root, _MOST, f'"{name}"')
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
        """Return the name that git would give the content, and whether it may be executed."""
        path = os.path.join(self.directory, name)
        with suppress(OSError):
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    found = os.fstat(file.fileno())
                    return _digest(file, found.st_size, is_program=bool(found.st_mode & stat.S_IXUSR))
        return None


class AtRevision:
    """The files of a folder at a revision, beside a directory that stands for it."""

    def __init__(self, tree: "Tree", folder: str, shown: str, directory: str) -> None:
        self.shown = shown
        self.directory = directory
        self.unsaved: Mapping[str, bytes] = tree.blobs(folder, max(LIMITS.source_bytes, LIMITS.prompt_bytes))
        self.is_whole = True
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
        """Return the name that git has for the content and whether it may be executed, or a submodule's commit."""
        path = f"{self._folder}/{name}"
        entry = self._tree.entry(path)
        if entry is not None and entry.is_file and len(entry.object) != _SHA1:  # a disk knows no other names
            return _digest(io.BytesIO(self._tree.read(path) or b""), entry.size, is_program=entry.is_program)
        return entry and f"{gate.EXECUTABLE if entry.is_program else ''}{entry.object}"


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
    ``reads`` are the files that it was made of, by their paths below the pack. ``under`` compiles it for a launch, as
    long as its files are there; it is None for a canonical JSON, which was compiled for one. ``block`` is the
    manifest's own workflow where a source stands beside it that means something else.
    """

    compiled: Compiled
    gate: "Gate | None"
    is_pack: bool
    reads: frozenset[str] = frozenset()
    under: "Callable[[tuple[tuple[str, str], ...]], Side] | None" = None
    files: Files | None = None
    has_manifest: bool = False
    is_manifest: bool = False
    block: "Workflow | None" = None

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
    gates: dict[tuple[str, ...], Gate] = {}  # by the commands of the workflow, which a launch may change
    digest, text = cache(files.digest), cache(lambda name: _text(files.read(name)))

    def compiled_as(options: Options) -> Side:
        compiled = _compile(files, name, data, options)
        if problems:
            texts = {**compiled.texts, **_texts(held, _shown(files, own))}
            compiled = compiled._replace(
                workflow=None, diagnostics=arrange([*compiled.diagnostics, *problems]), texts=texts
            )
        reads = {name, own, *(path for path, _ in compiled.prompts)}
        reads |= {path.removeprefix(_shown(files, "")) for path in compiled.texts}
        if is_json or problems:
            return Side(compiled, None, not is_json, frozenset(reads))
        tasks = compiled.workflow.task if compiled.workflow is not None else ()
        commands = tuple(task.command for task in tasks if isinstance(task, (CommandTask, EvaluateTask)))
        if commands not in gates:
            gates[commands] = gate.read(tables, files.below, digest, commands, text)
        found = gates[commands]
        reads |= found.reads
        side = Side(compiled, found, is_pack=True, reads=frozenset(reads), files=files)
        return side._replace(has_manifest=tables is not None, is_manifest=own == name)

    limits = options.limits._replace(seconds=min(options.limits.seconds, _SECONDS))
    launched = options._replace(lint=None, limits=limits)
    under = None if is_json or is_plan else lambda given: compiled_as(launched._replace(params=given))
    usual = compiled_as(options)
    block = _block(files, own, held, tables, options) if own != name and not is_plan else None
    return usual._replace(under=under, block=None if block == usual.workflow else block)


def compare(old: Side, new: Side, *, is_one_pack: bool) -> "diff.Diff | None":
    """Compare two sides, None when one has no workflow; a pack that lost its manifest has lost its gate.

    The files of sources with parameters must still be there: they are compiled for many launches.
    """
    if old.workflow is None or new.workflow is None:
        return None
    is_lost = old.is_manifest and new.is_pack  # whoever names a manifest means what it holds
    has_gates = is_one_pack or is_lost or old.has_manifest == new.has_manifest
    found = diff.compare(old.workflow, new.workflow, *(each.gate if has_gates else None for each in (old, new)))
    if old.compiled.declares_params or new.compiled.declares_params:
        from crucible.compiler import launches

        one, two = (_source(each, has_gate=has_gates) for each in (old, new))
        found = found if one is None or two is None else launches.compare(one, two, found)
    if has_gates:
        found = found.with_more(_of_the_workspace(old, new))
    return found.with_more(_of_the_block(old, new, found)) if is_one_pack else found


def _of_the_block(old: Side, new: Side, found: "diff.Diff") -> Iterator[Change]:
    """Yield what differs between the workflows that manifests hold, which are what runs, and not in the sources."""
    before, after = old.block or old.workflow, new.block or new.workflow
    if before is not None and after is not None and (old.block, new.block) != (None, None):
        for change in diff.compare(before, after).changes:
            if change not in found.changes:
                yield change._replace(says=f"in [workflow] of the manifest: {change.says}")


def _of_the_workspace(old: Side, new: Side) -> Iterator[Change]:
    """Yield that files differ which a command may run or read, though none names them and nobody puts them back."""
    files = list(_other_files(old, new))
    if files:
        shown = files[:_MOST_NAMES]
        rest = f" and {len(files) - len(shown)} more" if len(files) > len(shown) else ""
        says = f"files changed that the commands may run or read: {', '.join(['{}'] * len(shown))}{rest}"
        yield Change(Class.CHANGED, None, "workspace", says, tuple(shown))


def _other_files(old: Side, new: Side) -> Iterator[str]:
    """Yield the files of a run's workspace that differ; what only a disk has may be anybody's."""
    one, two, before, after = old.gate, new.gate, old.files, new.files
    if one is None or two is None or before is None or after is None or not two.runs:
        return
    place = two.place
    whole = [files for files in (before, after) if files.is_whole]
    if place is None or one.place != place or not (whole or (old.has_manifest and before.directory != after.directory)):
        return
    listed = [set(files.below(place)) for files in whole or (before, after)]
    own = {*_STATE, *(_folder(gate) for gate in (one, two))}
    told_elsewhere = old.reads & new.reads
    replaced = one.injects.keys() & two.injects.keys()
    for name in sorted(set.union(*listed) if whole else set.intersection(*listed)):
        is_ours = not whole and name.partition("/")[0] in own
        if is_ours or name in told_elsewhere or posixpath.relpath(name, place or ".") in replaced:
            continue
        folder, _, base = name.rpartition("/")
        is_of_use = base not in _NO_USE and not base.endswith(".star") and _PROMPTS not in folder.split("/")
        if is_of_use and before.digest(name) != after.digest(name):
            yield name


def _folder(found: "Gate") -> str:
    """Return the first part of the folder that a run works in."""
    return str(found.settings.get("workspace.dir") or "workspace").partition("/")[0]


def _source(side: Side, *, has_gate: bool) -> "Source | None":
    """Return what a side is under a launch."""
    from crucible.compiler import launches

    under = side.under
    if under is None:
        return None
    texts = [text for name, text in side.compiled.texts.items() if name.endswith(".star")]  # the root is read first
    declared = launches.declared(texts[0]) if side.compiled.declares_params else launches.NOTHING

    def compiled(given: tuple[tuple[str, str], ...]) -> "tuple[Compiled, Gate | None]":
        found = under(given)
        return found.compiled, found.gate if has_gate else None

    return launches.Source(declared, tuple(texts), compiled)


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


def _text(data: bytes | Refusal | None) -> str | None:
    return data.decode(errors="replace") if isinstance(data, bytes) else None


def _digest(file: IO[bytes], size: int, *, is_program: bool) -> str:
    """Return the name that git gives a content, and whether it may be executed."""
    digest = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
    while chunk := file.read(1 << 20):
        digest.update(chunk)
    return f"{gate.EXECUTABLE if is_program else ''}{digest.hexdigest()}"


def _block(
    files: Files, own: str, held: bytes | Refusal | None, tables: Mapping[str, Any] | None, options: Options
) -> "Workflow | None":
    """Compile the workflow that a manifest holds, None where it holds none, or only says where that is."""
    table = (tables or {}).get(manifest.TABLE)
    if not isinstance(held, bytes) or not isinstance(table, dict) or "file" in table:
        return None
    return compile_source(held, _shown(files, own), options._replace(lint=None)).workflow

"""The review of a change: of every pack that it touches, what is wrong with it and whether it proves less.

In go a repository and two revisions, out comes a record for each pack. The work tree is not asked: both sides
are compiled as they were committed.
"""

import posixpath
from collections.abc import Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from crucible.compiler import manifest, side
from crucible.compiler.gate import TOLD
from crucible.compiler.pipeline import Compiled, Options, Unreadable
from crucible.compiler.revisions import FETCH_IT, NoRevision
from crucible.compiler.side import MANIFEST, SOURCE
from crucible.schemas.diagnostic import Diagnostic, Severity, arrange, has_errors

if TYPE_CHECKING:
    from crucible.compiler.diff import Diff
    from crucible.compiler.revisions import Repository, Tree
    from crucible.schemas.ir import Workflow

__all__ = ["NEW", "REMOVED", "UNKNOWN", "PackReview", "Review", "review"]

NEW: Final = "new"
REMOVED: Final = "removed"
UNKNOWN: Final = "unknown"
_PROMPTS: Final = "prompts/"  # one that nothing embeds is worth a warning
# What may have become weaker: a pack that is gone checks nothing, and what cannot be compared may be anything.
_GRAVE: Final = ("weakened", REMOVED, UNKNOWN)


class PackReview(NamedTuple):
    """What a change does to one pack.

    ``path`` is its folder from the top of the repository, "" for the top itself, ``was`` the one that it had when
    that is another. ``root`` is its source, or the manifest of one without. ``verdict`` is NEW, REMOVED, UNKNOWN, or
    that of ``diff``. ``old`` and ``new`` are the workflows of a pack that is removed or new. ``texts`` are the sources
    by the names that diagnostics give them.
    """

    path: str
    root: str
    was: str | None
    verdict: str
    diff: "Diff | None"
    diagnostics: list[Diagnostic]
    texts: dict[str, str]
    printed: tuple[str, ...] = ()
    old: "Workflow | None" = None
    new: "Workflow | None" = None

    @property
    def is_grave(self) -> bool:
        """Tell whether the pack proves less, or may."""
        return self.verdict in _GRAVE


class Review(NamedTuple):
    """The packs that a change touches, sorted by path; ``base`` is the commit that the change is compared with."""

    base: str
    head: str
    packs: tuple[PackReview, ...]

    @property
    def verdict(self) -> str:
        """Return the gravest verdict of all packs, "unchanged" when there is none."""
        found = {pack.verdict for pack in self.packs}
        return next((verdict for verdict in _ORDER if verdict in found), "unchanged")

    @property
    def has_errors(self) -> bool:
        """Tell whether some pack has an error."""
        return any(has_errors(pack.diagnostics) for pack in self.packs)

    @property
    def is_grave(self) -> bool:
        """Tell whether some pack proves less, or may."""
        return any(pack.is_grave for pack in self.packs)


_ORDER: Final = ("weakened", REMOVED, UNKNOWN, "changed", NEW, "strengthened", "cosmetic")


def review(repository: "Repository", base: str, head: str, options: Options) -> Review:
    """Review what a head has changed since its history parted from that of a base. Raises NoRevision.

    Histories that never met are compared as they are; where they meet may not be known in a shallow clone.
    """
    tip, commit = repository.commit(base), repository.commit(head)
    start = repository.merge_base(tip, commit)
    if start is None and repository.is_shallow():
        raise NoRevision(f"the commit at which {head} left {base} is not in this repository; {FETCH_IT}")
    start = start or tip
    return _Reviewing(repository, start, commit, options).run()


class _Reviewing:
    """The two trees of a review, and what is compiled of them."""

    def __init__(self, repository: "Repository", start: str, commit: str, options: Options) -> None:
        self._repository = repository
        self._start, self._commit = start, commit
        self._options = options
        self._old, self._new = repository.tree(start), repository.tree(commit)

    def run(self) -> Review:
        changed = self._old.changed(self._new)
        before, after = _packs(self._old), _packs(self._new)
        moved = self._moved(before, after)
        touched = _by_pack(changed, before | after)
        for path in sorted(before | after):
            if any(_reaches(tree, path, changed) for tree in (self._old, self._new)):
                touched.setdefault(path, [])
        for new, old in moved.items():
            touched[new] = touched.get(new, []) + touched.pop(old, [])
        packs = [self._pack(path, moved.get(path), before, after, changed) for path in sorted(touched)]
        return Review(self._start, self._commit, tuple(pack for pack in packs if pack is not None))

    def _moved(self, before: set[str], after: set[str]) -> dict[str, str]:
        """Return the old folders of packs that moved, by their new ones."""
        moved: dict[str, str] = {}
        for name in (SOURCE, MANIFEST):
            for new, old in self._repository.moved(self._start, self._commit, name).items():
                folders = new.rpartition("/")[0], old.rpartition("/")[0]
                if folders[0] not in before and folders[1] not in after and folders[1] not in moved.values():
                    moved.setdefault(*folders)
        return moved

    def _pack(
        self, path: str, was: str | None, before: set[str], after: set[str], changed: list[str]
    ) -> PackReview | None:
        """Review one pack, None where the change touches nothing that a compile or a judge reads."""
        old_path = path if was is None else was
        with ExitStack() as stack:
            old = self._read(self._old, old_path, self._start, stack) if old_path in before else None
            new = self._read(self._new, path, None, stack) if path in after else None
            difference = side.compare(old, new, is_one_pack=True) if old is not None and new is not None else None
        differs = difference is not None and bool(difference.changes)  # by what is read for some launch only, too
        if path in before and path in after and not differs and not self._concerns(path, changed, old, new):
            return None
        sides = [each for each in (old, new) if each is not None]
        if new is None:
            verdict = REMOVED
        elif old is None:
            verdict = NEW if new.workflow is not None else UNKNOWN
        else:
            verdict = UNKNOWN if difference is None else difference.verdict
        diagnostics = list(new.compiled.diagnostics) if new is not None else []
        if new is not None:
            diagnostics += self._stale(path, new)
        if new is not None and old is not None and old.workflow is None:
            diagnostics += [_as_warning(each) for each in old.compiled.diagnostics]
        return PackReview(
            path,
            _root(self._new if new is not None else self._old, path),
            was,
            verdict,
            difference,
            arrange(diagnostics),
            {name: text for each in sides for name, text in each.compiled.texts.items()},
            new.compiled.printed if new is not None else (),
            old.workflow if old is not None and new is None else None,
            new.workflow if new is not None and old is None else None,
        )

    def _concerns(self, path: str, changed: Iterable[str], *sides: side.Side | None) -> bool:
        """Tell whether some of the changed paths are such as a compile of the pack, or its judge, reads."""
        reads = {SOURCE, MANIFEST}.union(*(each.reads for each in sides if each is not None))
        places = {_join(path, _PROMPTS.removesuffix("/"))}
        for tree in (self._old, self._new):
            for name in reads:
                places |= tree.trail(posixpath.join(path, name))
            for link in tree.links(path):
                places |= tree.trail(link)
        return any(_is_at(name, place) for place in places for name in changed)

    def _read(self, tree: "Tree", path: str, revision: str | None, stack: ExitStack) -> side.Side:
        """Compile a pack as it was, whose files are there as long as the stack stands.

        With a revision it is only to compare with it.
        """
        name = _root(tree, path).rpartition("/")[2]
        shown = path if revision is None else f"{revision[:12]}:{path}"
        is_head = revision is None
        whole = is_head and _reaches_out(tree.read(_join(path, MANIFEST)))
        files = stack.enter_context(side.at_revision(tree, path, shown, whole=whole))
        try:
            return side.read(files, name, self._options, lint=is_head)
        except Unreadable as error:
            message = f"{_join(path, name)} cannot be read: {error}; is it a link that leaves the repository?"
            return side.Side(Compiled(None, [Diagnostic("file-not-found", message)]), None, is_pack=True)

    def _stale(self, path: str, new: side.Side) -> list[Diagnostic]:
        """Say when the manifest's block is not what the source compiles to."""
        source, name = _join(path, SOURCE), _join(path, MANIFEST)
        data = self._new.read(name)
        content: Workflow | manifest.Reference | None = new.workflow
        if new.compiled.declares_params and not has_errors(new.compiled.diagnostics):
            content = manifest.Reference(SOURCE)
        if data is None or content is None or _root(self._new, path) != source:
            return []
        text, problems = manifest.decode(data, name)
        return problems if text is None else manifest.stale(text, name, content, SOURCE)[0]


def _as_warning(diagnostic: Diagnostic) -> Diagnostic:
    """Return what was wrong with the base, which is nobody's mistake now, as a warning."""
    return diagnostic._replace(severity=Severity.WARNING, suggestion=None)


def _packs(tree: "Tree") -> set[str]:
    """Return the folders that hold a source or a manifest."""
    return {
        path.rpartition("/")[0] for path, entry in tree.entries.items() if path.rpartition("/")[2] in (SOURCE, MANIFEST)
    }


def _by_pack(changed: Iterable[str], packs: set[str]) -> dict[str, list[str]]:
    """Return the packs that some changed path lies below, with these paths; packs may lie below each other."""
    found: dict[str, list[str]] = {}
    for path in changed:
        folder: str | None = path.rpartition("/")[0]
        while folder is not None:
            if folder in packs:
                found.setdefault(folder, []).append(path)
            folder = folder.rpartition("/")[0] if folder else None
    return found


def _tables(data: bytes | None) -> dict[str, Any]:
    """Return what a manifest says, nothing where that cannot be read."""
    text, _ = manifest.decode(data or b"", MANIFEST)
    return (manifest.read_manifest(text, MANIFEST)[0] if text is not None else None) or {}


def _repository(tables: dict[str, Any]) -> str | None:
    """Return the path of the local repository that a manifest names."""
    repo = tables.get("repo")
    path = repo.get("path") if isinstance(repo, dict) else None
    return path if isinstance(path, str) else None


def _reaches_out(data: bytes | None) -> bool:
    """Tell whether a manifest's repository lies outside of its pack, so that what stands there counts."""
    return ".." in (_repository(_tables(data)) or "").split("/")


def _reaches(tree: "Tree", path: str, changed: Iterable[str]) -> bool:
    """Tell whether a change may concern a pack though it lies elsewhere: behind a link, or where its manifest points.

    What is read there is only known when the pack is compiled.
    """
    tables = _tables(tree.read(_join(path, MANIFEST)))
    workspace = tables.get("workspace")
    entries = workspace.get("inject") if isinstance(workspace, dict) else None
    sources = [
        each.get("src") if isinstance(each, dict) else each for each in (entries if isinstance(entries, list) else ())
    ]
    agent = tables.get("agent")
    told = [agent.get(key) for key in TOLD] if isinstance(agent, dict) else []
    named = [
        each for each in (*sources, *told, _repository(tables)) if isinstance(each, str) and ".." in each.split("/")
    ]
    places = set[str]()
    for each in named:
        fixed = posixpath.join(path, each).partition("*")[0].partition("?")[0].partition("[")[0]
        places |= tree.trail(fixed.rpartition("/")[0] if fixed != posixpath.join(path, each) else fixed)
    for link in tree.links(path):
        places |= tree.trail(link)
    return any(_is_at(name, place) for place in places for name in changed)


def _is_at(path: str, place: str) -> bool:
    """Tell whether a path is a place, or lies below it."""
    return place in (".", path) or path.startswith(f"{place}/")


def _root(tree: "Tree", path: str) -> str:
    """Return the file that stands for a pack: its source, but where the manifest names another one, or none is."""
    source, own = _join(path, SOURCE), _join(path, MANIFEST)
    if source not in tree.entries:  # a link that leads nowhere is the mistake
        return own
    workflow = _tables(tree.read(own)).get("workflow")
    file = workflow.get("file") if isinstance(workflow, dict) else None
    return own if isinstance(file, str) and posixpath.normpath(file) != SOURCE else source


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name

"""What a compile asks of the pack's manifest: read when it is asked, silent about one that is none."""

import os
from collections.abc import Iterator

from crucible.compiler.analysis.admission import continues_conversations
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.pack import Pack, Unreadable, read_found, read_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from crucible.compiler.analysis.lint.case import Workspace


class ManifestFacts:
    """The few facts of a manifest that the rules and admission need; ``data`` is its bytes when somebody read it."""

    def __init__(self, path: str, data: bytes | None = None, root: str | None = None) -> None:
        """Keep the path, and the directory whose search found the pack; nothing is read yet."""
        self._path = path
        self._root = root
        self._data = data
        self._read: dict[str, object] | None = None

    def _tables(self) -> dict[str, object]:
        """Return what the manifest says, nothing for one that is none; it is read once."""
        if self._read is None:
            from crucible.compiler.manifest import decode, read_manifest

            text, _ = decode(self._bytes(), self._path)
            self._read = (read_manifest(text, self._path)[0] if text is not None else None) or {}
        return self._read

    def _bytes(self) -> bytes:
        """Return the manifest as it is, nothing where it cannot be read."""
        if self._data is None:
            try:
                if self._root is None:
                    data = read_named(self._path, LIMITS.json_bytes, follow=False)
                else:
                    data = read_found(self._path, self._root, LIMITS.json_bytes)
            except Unreadable:
                data = b""
            self._data = data if isinstance(data, bytes) else b""
        return self._data

    def _table(self, name: str) -> dict[str, object]:
        table = self._tables().get(name)
        return table if isinstance(table, dict) else {}

    def judge_direction(self) -> str | None:
        """Return [judge].direction."""
        direction = self._table("judge").get("direction")
        return direction if isinstance(direction, str) else None

    def can_persist(self) -> bool:
        """Tell whether backend and harness can continue a conversation; without a manifest, the defaults can."""
        agent = self._table("agent")
        return continues_conversations(agent.get("backend"), agent.get("harness"))

    def has_workflow_of_its_own(self, *, beside_source: bool) -> bool:
        """Tell whether there is something to lint: what is no TOML, or a [workflow] that was not generated here."""
        if not self._tables():
            return bool(self._bytes().strip())
        if "workflow" not in self._tables():
            return False
        from crucible.compiler.manifest import is_generated

        return not (beside_source and is_generated(self._bytes().decode(), "workflow.star"))

    def _is_ours(self, folder: str) -> bool:
        """Tell whether a folder is one of the repository that the pack is in; of no other does a warning speak."""
        own = os.path.realpath(os.path.dirname(self._path))
        top = own
        while not os.path.lexists(os.path.join(top, ".git")):
            if os.path.dirname(top) == top:
                top = own
                break
            top = os.path.dirname(top)
        place = os.path.realpath(folder)
        return os.path.isdir(place) and os.path.commonpath((top, place)) == top

    def workspace(self) -> "Workspace":
        """Return what lint asks: what comes into the workspace, and the strings that may name files."""
        from crucible.compiler.analysis.lint.case import Inject, Workspace

        if not self._tables():
            is_there = os.path.lexists(self._path)
            return Workspace(None, lambda _path: is_there, None if is_there else frozenset())
        table, repo = self._table("workspace"), self._table("repo")
        entries = table.get("inject")
        injects = []
        for entry in entries if isinstance(entries, list) else ():
            source, to, frozen = entry, None, True
            if isinstance(entry, dict):
                source, to, frozen = entry.get("src"), entry.get("dst"), entry.get("frozen") is not False
            if isinstance(source, str):
                injects.append(Inject(source, to if isinstance(to, str) else None, frozen))
        local = repo.get("path")
        folder = os.path.join(os.path.dirname(self._path), local) if isinstance(local, str) else None
        may_have_all = "setup_cmd" in table or "url" in repo or (folder is not None and not self._is_ours(folder))

        def repo_has(path: str) -> bool:
            if may_have_all or folder is None:
                return may_have_all
            with Pack(folder, LIMITS) as repository:
                return repository.has(path)

        return Workspace(tuple(injects), repo_has, frozenset(_strings(self._tables())))


def _strings(value: object) -> Iterator[str]:
    """Yield every string in plain data."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)

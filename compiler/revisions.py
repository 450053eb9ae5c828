"""The files of a git repository as they were at a revision: git objects in, names, bytes and folders out.

Nothing is checked out: the work tree, the index and the refs stay as they are. A compile of a pack gets a
directory outside of the repository that has the names, kinds and sizes of the pack's files, so that the
policy of paths holds as on any disk, and their bytes through ``blobs``.
"""

import os
import posixpath
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Final, NamedTuple, Self

_FILE, _PROGRAM, _LINK, _FOLDER, _SUBMODULE = "100644", "100755", "120000", "40000", "160000"
_MOST_LINKS: Final = 40
FETCH_IT: Final = "it is a shallow clone: fetch the whole history (git fetch --unshallow; fetch-depth: 0 in a checkout)"
# What a caller set for another repository stays; nothing is fetched, asked or replaced on our account.
_ENVIRONMENT: Final = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


class NoRevision(Exception):
    """There is no such revision, or no repository; the text says so."""


class Entry(NamedTuple):
    """A file of a tree: its mode, the name of its object and its size, which is 0 for a submodule."""

    mode: str
    object: str
    size: int

    @property
    def is_file(self) -> bool:
        """Tell whether it is a regular file."""
        return self.mode.startswith("100")

    @property
    def is_program(self) -> bool:
        """Tell whether it is a file that may be executed."""
        return self.mode == _PROGRAM


class Repository:
    """A repository, through the git program; holds a process until it is closed."""

    def __init__(self, directory: str = ".") -> None:
        """Find the repository of a directory; raises NoRevision when there is none, or no git."""
        self._directory = directory
        self._objects: subprocess.Popen[bytes] | None = None
        self.prefix = _text(self._git("rev-parse", "--show-prefix")).removesuffix("\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process that reads objects."""
        if self._objects is not None:
            self._objects.communicate()
            self._objects = None

    def commit(self, revision: str) -> str:
        """Return the name of the commit that a revision means; raises NoRevision."""
        return self._resolve(revision, "commit")

    def merge_base(self, one: str, other: str) -> str | None:
        """Return where the histories of two commits part, None when they have nothing in common."""
        try:
            found = _text(self._git("merge-base", one, other)).split()
        except NoRevision:
            return None
        return found[0] if found else None

    def is_shallow(self) -> bool:
        """Tell whether some of the history was left behind when the repository was cloned."""
        return _text(self._git("rev-parse", "--is-shallow-repository")).strip() == "true"

    def moved(self, old: str, new: str, name: str) -> dict[str, str]:
        """Return the old paths of files of a name that moved between two commits, by their new ones."""
        spec = f":(top,glob)**/{name}"
        options = ("-r", "-z", "-M", "-l0", "--diff-filter=R", "--name-status")
        out = self._git("diff-tree", *options, old, new, "--", spec)
        parts = [_text(part) for part in out.split(b"\0")]
        return {parts[at + 2]: parts[at + 1] for at in range(0, len(parts) - 2, 3)}

    def tree(self, revision: str) -> "Tree":
        """Return the files at a revision; raises NoRevision."""
        name = self._resolve(revision, "tree")
        entries: dict[str, Entry] = {}
        for row in self._git("ls-tree", "-r", "-z", "-l", "--full-tree", name).split(b"\0"):
            head, tab, path = row.partition(b"\t")
            if tab and _is_plain(path):
                mode, _kind, object_name, size = head.decode("ascii").split()
                entries[_text(path)] = Entry(mode, object_name, int(size) if size.isdigit() else 0)
        return Tree(self, entries)

    def blob(self, name: str) -> bytes:
        """Return the bytes of an object."""
        if self._objects is None:
            self._objects = self._start("cat-file", "--batch")
        reader, writer = self._pipes(self._objects)
        writer.write(f"{name}\n".encode())
        writer.flush()
        head = reader.readline().split()
        if len(head) != 3:  # noqa: PLR2004 - name, type, size
            raise NoRevision(f"the object {name} is not in the repository")
        data = reader.read(int(head[2]))
        reader.read(1)
        return data

    def _resolve(self, revision: str, kind: str) -> str:
        if revision and not revision.startswith("-"):
            with suppress(NoRevision):
                found = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{{kind}}}")
                return _text(found).strip()
        hint = f"; {FETCH_IT}" if self.is_shallow() else ""
        raise NoRevision(f'there is no revision "{revision}" in this repository{hint}')

    def _git(self, *arguments: str) -> bytes:
        with self._start(*arguments) as process:
            out, err = process.communicate()
        if process.returncode:
            raise NoRevision(_text(err).strip().removeprefix("fatal: ") or "git could not read the repository")
        return out

    def _start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        try:
            return subprocess.Popen(  # noqa: S603 - the program is git, and a revision is never an option
                ["git", "-C", self._directory, *arguments],  # noqa: S607 - as on the caller's PATH
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **_ENVIRONMENT},
            )
        except OSError as error:
            raise NoRevision(f"git cannot be run: {error.strerror or error}") from None

    @staticmethod
    def _pipes(process: "subprocess.Popen[bytes]") -> tuple[IO[bytes], IO[bytes]]:
        if process.stdout is None or process.stdin is None:
            raise NoRevision("git cannot be read")
        return process.stdout, process.stdin


class Tree:
    """The files at a revision; paths are from the top, with / separators."""

    def __init__(self, repository: Repository, entries: Mapping[str, Entry]) -> None:
        self._repository = repository
        self.entries: Final = entries
        self._links = sorted(path for path, entry in entries.items() if entry.mode == _LINK)
        self._folders = {""}
        for path in entries:
            while path := path.rpartition("/")[0]:
                if path in self._folders:
                    break
                self._folders.add(path)

    def is_folder(self, path: str) -> bool:
        """Tell whether a path is a folder."""
        return path in self._folders

    def changed(self, other: "Tree") -> list[str]:
        """Return the paths at which two trees differ, sorted; no setting of a repository has a say in it."""
        paths = self.entries.keys() | other.entries.keys()
        return sorted(path for path in paths if self.entries.get(path) != other.entries.get(path))

    def find(self, path: str) -> str | None:
        """Return where a path leads when links inside the tree are followed, None when nowhere in it."""
        pending = path.split("/")[::-1]
        found: list[str] = []
        links = 0
        while pending:
            part = pending.pop()
            if part in ("", "."):
                continue
            if part == "..":
                if not found:
                    return None
                found.pop()
                continue
            found.append(part)
            here = "/".join(found)
            entry = self.entries.get(here)
            if entry is None or entry.mode != _LINK:
                if entry is None and here not in self._folders:
                    return None
                if entry is not None and pending:
                    return None
                continue
            links += 1
            target = self._target(entry)
            if links > _MOST_LINKS or target.startswith("/"):
                return None
            found.pop()
            pending += target.split("/")[::-1]
        return "/".join(found)

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a file, links followed inside the tree, None where there is none."""
        found = self.find(path)
        entry = self.entries.get(found) if found is not None else None
        return self._repository.blob(entry.object) if entry is not None and entry.is_file else None

    def size(self, path: str) -> int:
        """Return how many bytes a file has, links followed inside the tree, 0 where there is none."""
        entry = self.entries.get(self.find(path) or "")
        return entry.size if entry is not None else 0

    def below(self, folder: str) -> list[str]:
        """Return the regular files below a folder, named from the top, sorted; a file is all there is below it."""
        if folder in self.entries:
            return [folder] if self.entries[folder].is_file else []
        head = f"{folder}/" if folder else ""
        return sorted(path for path, entry in self.entries.items() if path.startswith(head) and entry.is_file)

    def contents(self, folder: str) -> list[str]:
        """Return what a disk has below a folder: files, links to files, and submodules, sorted."""
        if folder in self.entries:
            return [folder]
        head = f"{folder}/" if folder else ""
        return sorted(
            path
            for path, entry in self.entries.items()
            if path.startswith(head) and (entry.mode != _LINK or self.find(path) in self.entries)
        )

    def entry(self, path: str) -> Entry | None:
        """Return the file or submodule that a path leads to, None when it leads to none."""
        return self.entries.get(self.find(path) or "")

    def links(self, folder: str) -> list[str]:
        """Return the links below a folder, sorted."""
        head = f"{folder}/" if folder else ""
        return [path for path in self._links if path.startswith(head)]

    def trail(self, path: str) -> set[str]:
        """Return what decides where a path leads: itself, the links that are followed, and the end."""
        found = {posixpath.normpath(path)}
        pending = [posixpath.normpath(path)]
        while pending:
            parts = pending.pop().split("/")
            for number in range(1, len(parts) + 1):
                head = "/".join(parts[:number])
                entry = self.entries.get(head)
                if entry is not None and entry.mode == _LINK:
                    found.add(head)
                    target = posixpath.join(posixpath.dirname(head), self._target(entry), *parts[number:])
                    target = posixpath.normpath(target)
                    if target not in found:
                        found.add(target)
                        pending.append(target)
                    break
        return found

    def blobs(self, folder: str, most: int) -> "Blobs":
        """Return the bytes of the files of a folder, of each that has at most so many."""
        return Blobs(self, folder, most)

    @contextmanager
    def directory(self, folder: str) -> Iterator[str]:
        """Give a directory that has the names, kinds and sizes of a folder's files, and stands as deep as it does.

        Its files hold nothing but zeros; a link that leads out of the tree leads nowhere.
        """
        with tempfile.TemporaryDirectory(prefix="crucible-") as top:
            head = f"{folder}/" if folder else ""
            chosen = {path: entry for path, entry in self.entries.items() if path.startswith(head)}
            root = os.path.realpath(top)
            os.mkdir(os.path.join(root, ".git"))  # where a repository begins is told by this, and no tree holds it
            for path in {folder, *(path.rpartition("/")[0] for path in chosen)}:
                os.makedirs(_on_disk(root, path), exist_ok=True)
            # Links come last: no file is ever made behind one, whatever an odd tree holds.
            for path, entry in sorted(chosen.items(), key=lambda item: item[1].mode == _LINK):
                with suppress(FileExistsError):
                    self._stand_in(_on_disk(root, path), path, entry)
            yield os.path.join(root, folder)

    def _stand_in(self, place: bytes, path: str, entry: Entry) -> None:
        if entry.mode == _LINK:
            leads = self.find(path) is not None
            target = self._target(entry).encode(errors="surrogateescape")
            os.symlink(target if leads else os.path.basename(place), place)
        elif entry.is_file:
            opened = os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o700)
            try:
                os.truncate(opened, entry.size)
            finally:
                os.close(opened)
        else:
            os.mkdir(place)  # a submodule

    def _target(self, entry: Entry) -> str:
        return _text(self._repository.blob(entry.object))


class Blobs(Mapping[str, bytes]):
    """The bytes of a folder's regular files, read when they are asked for."""

    def __init__(self, tree: Tree, folder: str, most: int) -> None:
        self._tree = tree
        self._head = f"{folder}/" if folder else ""
        self._most = most

    def __getitem__(self, name: str) -> bytes:
        entry = self._tree.entries.get(self._head + name)
        if entry is None or not entry.is_file or entry.size > self._most:
            raise KeyError(name)
        data = self._tree.read(self._head + name)
        if data is None:
            raise KeyError(name)
        return data

    def __iter__(self) -> Iterator[str]:
        return (path[len(self._head) :] for path in self._tree.below(self._head.removesuffix("/")))

    def __len__(self) -> int:
        return len(self._tree.below(self._head.removesuffix("/")))


def _is_plain(path: bytes) -> bool:
    """Tell whether a path of a tree is such as git makes: an odd tree could name what is not below it."""
    return all(part not in (b"", b".", b"..") for part in path.split(b"/"))


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


def _on_disk(root: str, path: str) -> bytes:
    return os.path.join(os.fsencode(root), path.encode(errors="surrogateescape"))

"""Private clones: the workspace as it stands, uncommitted state included, once for each isolated task.

A capture is what all tasks of one wave get: git's own index of the files as they lie there, made in a git
directory of ours that shares the objects of the user's and knows nothing of its configuration. A clone is
checked out of it, byte for byte, and gets the commits, refs and staged files of the workspace. Nothing of
the user's repository is written: no ref, no index, no configuration, no object.

A clone that a task has left is made anew for the next one, which costs a fraction of a new clone: git, with
an index that was kept aside, writes again what was touched, and removes what was not there.

Carried over is what ``git status`` calls tracked or untracked: bytes, links, the executable bit, deletions;
repositories within the workspace likewise, submodules or not. Left out are ignored files and empty folders.
"""

import os
import re
import stat
from contextlib import suppress
from typing import Final, NamedTuple

from crucible.runtime import careful, tree
from crucible.runtime.git import Git, GitFailed, Steps, check
from crucible.schemas.hashes import sha256

_EXECUTABLE_ETC: Final = "filemode|symlinks|ignorecase|precomposeunicode"
_KEPT: Final = rf"^(core\.({_EXECUTABLE_ETC}|excludesfile|attributesfile|autocrlf|eol|safecrlf)|user\.(name|email))$"
# Above whatever the files of the workspace say: bytes go in and out as they are.
_AS_THEY_ARE: Final = b"* -text -ident !filter !working-tree-encoding !eol !diff !merge\n"
_SUBMODULE: Final = re.compile(rb"(?:^|\0)(?:[a-zA-Z?] )?160000 [0-9a-f]+ \d\t([^\0]+)")
# Of a list with marks: all but the plain one, and the files that say how others are converted.
_MARKED: Final = re.compile(rb"(?:^|\0)[^H]")
_ATTRIBUTES: Final = re.compile(rb"[\t/]\.gitattributes\0")
_CONVERTING: Final = frozenset({"core.autocrlf", "core.eol", "core.attributesfile"})
_NOT_COPIED: Final = frozenset({"core.excludesfile", "core.attributesfile"})
_PATHS: Final = ("objects", "index", "info/exclude", "info/attributes", "shallow")
# Of a clone: write what is not as it was, remove what was not there, and see whether the folders are as git makes them.
_RENEW: Final = """\
git read-tree --reset -u "$1" && git clean -ffdxq && test -z "$(find . ! -type d -prune -o ! -perm "$2" -print)"
"""
_NOT_READ: Final = "could not open directory"


class _Place(NamedTuple):
    """The parts of a user's repository that are read, as absolute paths."""

    prefix: str  # of the folder that was asked about, below the top, with / at its end
    format: str
    objects: str
    index_file: str
    exclude: str
    attributes: str
    shallow: str


class _Captured(NamedTuple):
    """What a clone of one repository is made of.

    ``directory`` is our git directory, whose index has the files, as ``tree`` does; ``staged`` is the tree of the
    clone's own index; ``files`` are those of the clone's git directory.
    """

    directory: str
    tree: str
    staged: str
    files: dict[str, bytes]


class Captures:
    """The captures of one run, one after the other: each begins with what the last one found."""

    def __init__(self, git: Git, folder: str, ours: str) -> None:
        """Prepare to capture the repository of a folder; ``ours`` is a folder for our git directories."""
        self._git = git
        self._folder = folder
        self._ours = ours
        self._known: dict[str, _Repository] = {}
        self._made = 0
        self._kept: dict[str, str] = {}  # digests of the indexes that clones are made anew by, which a task can reach
        self._captured: list[tuple[str, _Captured]] = []  # by path below the top, outer ones first
        self.prefix = ""
        self.name = os.path.basename(folder)

    def renew(self) -> None:
        """Capture the workspace as it stands now; raise GitFailed or OSError when that cannot be."""
        known, self._known = self._known, {}  # what fails half-way is begun anew
        self._captured = []
        try:
            place = _find(self._git, self._folder)
        except GitFailed as failed:
            raise _refusal(failed, self._folder) from None
        self.prefix = place.prefix.rstrip("/")
        top = self._folder.removesuffix(self.prefix).rstrip("/") or "/"
        self.name = os.path.basename(top) or "workspace"
        renewed = {}
        pending = [("", place)]
        while pending:
            path, place = pending.pop(0)
            repository = known.get(path)
            if repository is None or repository.place != place:
                self._made += 1
                ours = os.path.join(self._ours, f"{self._made}.git")
                repository = _Repository(self._git, os.path.join(top, path), place, ours)
            at = path
            try:
                captured = repository.capture()
                for inner in repository.inner():
                    at = os.path.join(path, inner)
                    pending.append((at, _find(self._git, os.path.join(top, at))))
            except GitFailed as failed:
                raise _refusal(failed, os.path.join(top, at) if at else self._folder, is_inner=bool(at)) from None
            self._captured.append((path, captured))
            renewed[path] = repository
        self._known = renewed

    def clone(self, target: str, output: str) -> Steps[None]:
        """Make a clone in a folder that does not exist yet; raise GitFailed or OSError.

        ``output`` is how the files begin that are kept beside it.
        """
        os.makedirs(target)
        for path, captured in self._captured:
            top = os.path.join(target, path)
            _make_directory(top, captured)
            index = os.path.join(top, ".git", "index")
            _copy(os.path.join(captured.directory, "index"), index)
            places = {"GIT_DIR": captured.directory, "GIT_WORK_TREE": top, "GIT_INDEX_FILE": index}
            yield from self._do("checkout-index", "--all", "--index", "--quiet", top=top, output=output, places=places)
            if not path:
                _copy(index, f"{output}.index")
                self._keep(output)
            yield from self._stage(captured, top, output, places)

    def renew_clone(self, target: str, output: str) -> Steps[bool]:
        """Make a clone anew out of one that a task has used, if that is all it takes; raise GitFailed or OSError.

        Git knows from the index that was kept which files somebody touched, and writes only those. A link in
        place of a folder, repositories within, or a folder with other permission bits are not worth an effort.
        """
        if len(self._captured) > 1 or os.path.islink(target) or not os.path.isdir(target):
            return False
        captured = self._captured[0][1]
        with tree.opened(target) as top:
            tree.remove(top, ".git")
        kept = f"{output}.index"
        if sha256(careful.read(kept)) != self._kept.get(output):
            return False  # who marked a file there could hide what became of it
        places = {"GIT_DIR": captured.directory, "GIT_WORK_TREE": target, "GIT_INDEX_FILE": kept}
        bits = f"{stat.S_IMODE(os.stat(self._ours).st_mode):o}"
        command = self._git.command(directory=target, output=output, also=places)
        command = command._replace(argv=("sh", "-c", _RENEW, "sh", captured.tree, bits))
        ended = yield command
        if ended.code != 0:
            return False
        self._keep(output)
        _make_directory(target, captured)
        index = os.path.join(target, ".git", "index")
        _copy(kept, index)
        yield from self._stage(captured, target, output, {**places, "GIT_INDEX_FILE": index})
        return True

    def _keep(self, output: str) -> None:
        self._kept[output] = sha256(careful.read(f"{output}.index"))

    def _stage(self, captured: _Captured, top: str, output: str, places: dict[str, str]) -> Steps[None]:
        """Stage in a clone what is staged in the workspace."""
        if captured.staged != captured.tree:
            yield from self._do("read-tree", "-m", captured.staged, top=top, output=output, places=places)

    def _do(self, *arguments: str, top: str, output: str, places: dict[str, str]) -> Steps[None]:
        command = self._git.command(*arguments, directory=top, output=output, also=places)
        check(command, (yield command))


class _Repository:
    """One repository of the workspace, and our git directory beside it."""

    def __init__(self, git: Git, top: str, place: _Place, ours: str) -> None:
        self.place = place
        self._git = git
        self._top = top
        self._ours = ours
        self._is_new = True
        self._settings: dict[str, str] = {}
        self._index: tuple[int, ...] | None = None  # what the user's index file was when it was read
        self._staged = ""
        self._tree = ""
        self._submodules: list[str] = []
        self._nested: list[str] = []

    def capture(self) -> _Captured:
        """Bring our index up to date with the files."""
        head, refs = self._refs()
        if self._is_new:
            self._begin()
        has_changed = self._look_at_index(head)
        is_blank = self._is_new and not self._adopt_index()
        if self._look_at_files(is_blank=is_blank):
            has_changed = True
            paths = self._paths_but_nested()
            self._ours_git("add", "--all", f"--pathspec-from-file={paths}", "--pathspec-file-nul")
            self._refuse_unread()
            self._submodules = _submodules(self._ours_git("ls-files", "--stage", "-z"))
        if has_changed:
            self._tree = os.fsdecode(self._ours_git("write-tree", "--missing-ok")).strip()
        self._is_new = False
        return _Captured(self._ours, self._tree, self._staged, self._files(head, refs))

    def inner(self) -> list[str]:
        """Return the paths of the repositories within this one that have files."""
        found = {*self._submodules, *self._nested}
        return sorted(path for path in found if os.path.lexists(os.path.join(self._top, path, ".git")))

    def _begin(self) -> None:
        """Make our git directory."""
        found = self._git_of_user("config", "--null", "--get-regexp", _KEPT, may_fail=True)
        for item in os.fsdecode(found).split("\0"):
            if item:
                key, _, value = item.partition("\n")
                self._settings[key] = value if "\n" in item else "true"
        for folder in ("objects/info", "objects/pack", "refs", "info"):
            os.makedirs(os.path.join(self._ours, folder))
        settings = {
            **{
                key: value
                for key, value in self._settings.items()
                if key.removeprefix("core.") in _EXECUTABLE_ETC.split("|")
            },
            "core.bare": "false",
            "core.autocrlf": "false",
            "core.excludesfile": self._excludes(),
            "core.hookspath": os.devnull,
            "core.fsmonitor": "false",
            "core.untrackedcache": "false",
            "core.splitindex": "false",
            "core.compression": "0",
            "gc.auto": "0",
        }
        _write(os.path.join(self._ours, "HEAD"), b"ref: refs/heads/none\n")
        _write(os.path.join(self._ours, "config"), _config(settings, self.place.format))
        _write(os.path.join(self._ours, "objects/info/alternates"), _quoted(self.place.objects))
        _write(os.path.join(self._ours, "info/attributes"), _AS_THEY_ARE)

    def _excludes(self) -> str:
        """Return the path of the user's own ignore rules."""
        named = self._settings.get("core.excludesfile")
        if named is not None:
            return os.path.join(self._top, os.path.expanduser(named))
        return os.path.join(self._git.home, "ignore")

    def _refs(self) -> tuple[bytes, bytes]:
        """Return HEAD and all other refs of the user's repository, as files of a git directory."""
        found = self._git_of_user("show-ref", "--head", may_fail=True)
        head = b""
        refs = []
        for line in found.splitlines():
            if line.endswith(b" HEAD"):
                head = line.partition(b" ")[0] + b"\n"
            elif b" refs/" in line and not line.endswith(b" refs/stash"):
                refs.append(line + b"\n")
        if not head:
            name = self._git_of_user("symbolic-ref", "--quiet", "HEAD", may_fail=True).strip()
            head = b"ref: " + (name or b"refs/heads/main") + b"\n"
        return head, b"".join(refs)

    def _look_at_index(self, head: bytes) -> bool:
        """Bring the tree of what is staged up to date; tell whether it may be another one."""
        now = _key(self.place.index_file)
        if not self._is_new and now == self._index:
            return False
        self._index = now
        copy = os.path.join(self._ours, "staged")
        if now is None:
            with suppress(FileNotFoundError):
                os.unlink(copy)
        else:
            _copy(self.place.index_file, copy)
            self._copy_shared()
        try:
            tree = self._ours_git("write-tree", "--missing-ok", GIT_INDEX_FILE=copy)
        except GitFailed as failed:
            if failed.cause is not None or head.startswith(b"ref:"):
                raise
            # A merge is under way: its two sides cannot be staged, the files have them.
            tree = self._ours_git("rev-parse", f"{os.fsdecode(head).strip()}^{{tree}}")
        self._staged = os.fsdecode(tree).strip()
        return True

    def _copy_shared(self) -> None:
        """Copy what a split index leans on."""
        folder = os.path.dirname(self.place.index_file)
        for name in os.listdir(folder):
            if name.startswith("sharedindex."):
                _copy(os.path.join(folder, name), os.path.join(self._ours, name))

    def _adopt_index(self) -> bool:
        """Begin our index with the user's, which knows what has not changed; tell whether that can be believed.

        It cannot where a file is marked as not to be looked at, or may not be in git as it lies there. Then
        our index begins with the names only, and every file is read.
        """
        copy, ours = (os.path.join(self._ours, name) for name in ("staged", "index"))
        listed = self._ours_git("ls-files", "--stage", "-v", "-z", GIT_INDEX_FILE=copy)
        is_converted = _ATTRIBUTES.search(listed) or self._settings.keys() & _CONVERTING or self._has_attributes()
        if is_converted or _MARKED.search(listed):
            self._ours_git("read-tree", self._staged)
            return False
        if self._index is not None:
            _copy(copy, ours)
            # Git tells by this time which files may have changed in the same moment.
            os.utime(ours, ns=(self._index[2], self._index[2]))
        self._submodules = _submodules(listed)
        return True

    def _has_attributes(self) -> bool:
        """Tell whether attributes are given outside of the files that git tracks."""
        paths = (self.place.attributes, os.path.join(self._git.home, "attributes"), "/etc/gitattributes")
        return any(os.path.exists(path) for path in paths)

    def _look_at_files(self, *, is_blank: bool) -> bool:
        """Tell whether our index is behind the files; find repositories in them that nobody tracks."""
        # The rules may change from wave to wave.
        _write(os.path.join(self._ours, "info/exclude"), _read(self.place.exclude))
        options = ("--others",) if is_blank else ("--modified", "--others")
        found = os.fsdecode(self._ours_git("ls-files", *options, "--exclude-standard", "-z"))
        self._refuse_unread()
        names = [name for name in found.split("\0") if name]
        self._nested = [name.rstrip("/") for name in names if name.endswith("/")]
        return is_blank or len(names) > len(self._nested)

    def _refuse_unread(self) -> None:
        said = self._git.said()
        if _NOT_READ in said:
            line = next(line for line in said.split("\n") if _NOT_READ in line)
            raise GitFailed(line.removeprefix("warning: "))

    def _paths_but_nested(self) -> str:
        """Return a file with what to add: all, but for repositories that nobody tracks, which are cloned themselves."""
        path = os.path.join(self._ours, "paths")
        specs = [".", *(f":(exclude,top,literal){name}" for name in self._nested)]
        _write(path, b"".join(os.fsencode(spec) + b"\0" for spec in specs))
        return path

    def _files(self, head: bytes, refs: bytes) -> dict[str, bytes]:
        """Return the files of a clone's git directory."""
        own = {key: value for key, value in self._settings.items() if key not in _NOT_COPIED}
        config = {**own, "core.bare": "false", "core.logallrefupdates": "true"}
        files = {
            "HEAD": head,
            "packed-refs": refs,
            "config": _config(config, self.place.format),
            "objects/info/alternates": _quoted(self.place.objects) + _quoted(os.path.join(self._ours, "objects")),
            "info/exclude": _read(self.place.exclude),
            "info/attributes": _read(self.place.attributes),
            "shallow": _read(self.place.shallow),
        }
        return {name: data for name, data in files.items() if data}

    def _ours_git(self, *arguments: str, **variables: str) -> bytes:
        """Run git with our git directory and the user's files."""
        places = {"GIT_DIR": self._ours, "GIT_WORK_TREE": self._top}
        return self._git(*arguments, directory=self._top, also={**places, **variables})

    def _git_of_user(self, *arguments: str, may_fail: bool = False) -> bytes:
        """Ask the user's own repository, with the user's configuration."""
        try:
            return self._git(*arguments, directory=self._top, is_closed=False)
        except GitFailed as failed:
            if not may_fail or failed.cause is not None:
                raise
            return b""


def _make_directory(top: str, captured: _Captured) -> None:
    """Make the git directory of a clone, but for its index."""
    for folder in ("objects/info", "objects/pack", "refs/heads", "info"):
        os.makedirs(os.path.join(top, ".git", folder))
    for name, data in captured.files.items():
        _write(os.path.join(top, ".git", name), data)


def _find(git: Git, folder: str) -> _Place:
    """Find the repository of a folder; raise GitFailed when there is none with a work tree."""
    asked = [word for path in _PATHS for word in ("--git-path", path)]
    found = git("rev-parse", "--is-inside-work-tree", "--show-prefix", "--show-object-format", *asked,
                directory=folder, is_closed=False)  # fmt: skip
    lines = os.fsdecode(found).split("\n")
    if lines[0] != "true" or len(lines) != len(_PATHS) + 4:
        raise GitFailed("it has no work tree" if lines[0] != "true" else "its path has a line break")
    return _Place(lines[1], lines[2], *(os.path.join(folder, path) for path in lines[3:-1]))


def _refusal(failed: GitFailed, folder: str, *, is_inner: bool = False) -> GitFailed:
    """Return why a repository cannot be cloned, in words that help."""
    if failed.cause is not None:
        return failed
    named = str(failed).partition("not a git repository: ")[2]
    if is_inner or (named and not named.startswith("(")):
        return GitFailed(
            f"an isolated task runs in a clone of the workspace, and {folder} cannot be cloned: {failed}; if that is a "
            "submodule, mend it with git submodule update --init, or leave isolated out"
        )
    if str(failed).startswith("not a git repository"):
        return GitFailed(
            f"an isolated task runs in a clone of the workspace, and {folder} is no git repository; "
            "run git init there, or leave isolated out"
        )
    return GitFailed(f"{folder} cannot be cloned: {failed}")


def _submodules(listed: bytes) -> list[str]:
    """Return the paths of the submodules in a list of an index."""
    return [os.fsdecode(path) for path in _SUBMODULE.findall(listed)]


def _config(settings: dict[str, str], object_format: str) -> bytes:
    """Write settings as git reads them."""
    is_plain = object_format == "sha1"
    every = {"core.repositoryformatversion": "0" if is_plain else "1", **settings}
    if not is_plain:
        every["extensions.objectformat"] = object_format
    lines = []
    for key, value in every.items():
        section, name = key.split(".")
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        lines.append(f'[{section}]\n\t{name} = "{escaped}"\n')
    return os.fsencode("".join(lines))


def _quoted(path: str) -> bytes:
    """Write a path as a line of alternates, in quotes where git asks for them."""
    if "\n" in path or path.startswith('"'):
        escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return os.fsencode(f'"{escaped}"\n')
    return os.fsencode(f"{path}\n")


def _key(path: str) -> tuple[int, ...] | None:
    """Return what changes when a file is written, None when there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _read(path: str) -> bytes:
    try:
        return careful.read(path, follows=True)
    except (FileNotFoundError, NotADirectoryError):
        return b""


def _write(path: str, data: bytes) -> None:
    careful.write(path, data)


def _copy(source: str, target: str) -> None:
    _write(target, careful.read(source, follows=True))

"""The world of a scored loop: states of the workspace that can be gone back to (contract §5, loop.md).

``snapshot`` gives a token, ``restore`` goes back to one; nobody else knows what a token is. The git half keeps
every state in a git directory of ours, with the workspace as its work tree: the workspace's own repository is the
agent's, and is never read or written here. A command world has the two commands of the domain beside it.

What the ignore rules of the first state leave out stays as it is, as a cache: rules that a candidate adds hide
nothing. Nothing that a candidate writes is ever run, converted or believed: what git reads beside the objects is
put back before every use, and the index is one that we wrote, or is made anew.
"""

import json
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple, Protocol

from crucible.runtime import careful, tree
from crucible.runtime.git import Git, GitFailed, check
from crucible.runtime.process import Command, Exit, Processes
from crucible.runtime.shell_runner import SHELL, exit_note
from crucible.runtime.surroundings import encodable
from crucible.schemas.hashes import sha256

TOKEN: Final = "CRUCIBLE_TOKEN"  # noqa: S105 - no password
SKILLS: Final = ".claude"
RESULTS: Final = "RESULTS.md"
ESCALATION: Final = "ESCALATION.json"
TASK_RESULT: Final = "PLAN_TASK_RESULT.json"
# What is the loop's own in a workspace, never the candidate's.
LEFT_OUT: Final = (SKILLS, RESULTS, ESCALATION, TASK_RESULT)
_DIRECTORY: Final = "world.git"
_RECORD: Final = "world.json"
_MOST_RECORD: Final = 1 << 24
_SHA: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SPECIAL: Final = re.compile(r"([\\*?\[\]!#\s])")
_EPOCH: Final = "@0 +0000"
_CONFIG: Final = b"""\
[core]
	repositoryformatversion = 0
	bare = false
	filemode = true
	symlinks = true
	autocrlf = false
	hooksPath = /dev/null
	fsmonitor = false
	untrackedCache = false
	splitIndex = false
	excludesFile = /dev/null
	attributesFile = /dev/null
	logAllRefUpdates = false
[gc]
	auto = 0
[commit]
	gpgSign = false
"""
# Above whatever the files of the workspace say: bytes go in and out as they are.
_ATTRIBUTES: Final = b"* -text -ident !filter !working-tree-encoding !eol !diff !merge\n"
_HEAD: Final = b"ref: refs/crucible/none\n"
_FILES: Final = {"config": _CONFIG, "info/attributes": _ATTRIBUTES, "info/exclude": b"", "HEAD": _HEAD}
_KNOWN: Final = frozenset({"HEAD", "config", "index", "info", "objects", "refs"})
_KEPT: Final = "refs/crucible/kept"
_ASIDE: Final = "refs/crucible/aside"
_EARLIER: Final = "refs/crucible/earlier"
_AUTHOR: Final = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Crucible"), ("EMAIL", "crucible@localhost"))
}
_ACCESS: Final = 0o700
_LOOK: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LITERAL: Final = "GIT_LITERAL_PATHSPECS"
_SLASH: Final = ord("/")
_MOST_TOKEN: Final = 96 << 10  # bytes: it is given back in a variable


class Lost(Exception):
    """A state cannot be restored: the world is not what we think. The text says why."""


class Unkept(Exception):
    """The workspace, or the domain, cannot be made a state of; the text says why."""


class World(Protocol):
    """States that can be gone back to."""

    def hold(self) -> str:
        """Return what the workspace has now, to be made a state of, or to be gone back to; raise Unkept."""

    def revert(self, held: str = "") -> str | None:
        """Bring the workspace back to what was held, or to the last state; raise Lost.

        Return a path in which it differed, None when it did not.
        """

    def snapshot(self, number: int, note: str = "", held: str | None = None) -> str:
        """Return the token of a state: what was held, or what there is now; raise Unkept.

        ``number`` is its iteration. The workspace stays as it is.
        """

    def restore(self, token: str) -> None:
        """Make the world again what it was when it gave the token; raise Lost."""

    def refusal(self) -> str | None:
        """Return why no state can be made of the workspace as it is, whatever it is worth; None when it can."""


def sha_of(token: str) -> str:
    """Return the git half of a token."""
    return token.partition("\t")[0]


class Known(NamedTuple):
    """What a state directory knows of its world.

    ``first`` is the commit of the workspace as it was prepared, ``rules`` what git leaves out of all states, and
    ``hollow`` the folders that were empty, which git does not know, as it does not know the permission bits that
    ``modes`` has. ``is_ours`` tells whether we made the workspace: else it is its author's.
    """

    workspace: str
    first: str
    rules: tuple[str, ...]
    hollow: tuple[str, ...]
    is_ours: bool
    modes: Mapping[str, int] = {}


def known(state: str) -> Known | None:
    """Return what an earlier run wrote down, None without any."""
    try:
        found = json.loads(careful.read(os.path.join(state, _RECORD), _MOST_RECORD))
        rules, hollow = tuple(found["rules"]), tuple(found["hollow"])
        modes = {path: mode for path, mode in found.get("modes", {}).items() if type(mode) is int}
        made = Known(found["workspace"], found["first"], rules, hollow, found["is_ours"] is True, modes)
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    texts = (made.workspace, made.first, *made.rules, *made.hollow)
    return made if all(isinstance(each, str) for each in texts) and _SHA.fullmatch(made.first) else None


class GitWorld:
    """Keeps the states of a workspace, and those alone."""

    def __init__(
        self,
        folder: str,
        state: str,
        processes: Processes,
        environ: Mapping[str, str],
        *,
        apart: bool = False,
        others: Collection[str] = (),
    ) -> None:
        """Keep what it takes; both folders are real paths. ``apart`` tells whether a domain has a half of its own.

        ``others`` are paths that are the loop's own, too, if they lie in the workspace.
        """
        self._folder = folder
        self._state = state
        self._directory = os.path.join(state, _DIRECTORY)
        # Whoever stops a run still wants its workspace restored.
        self._git = Git(processes, environ, self._scratch(), heeds_stops=False)
        self._processes = processes
        self._places = {
            "GIT_DIR": self._directory,
            "GIT_WORK_TREE": folder,
            _LITERAL: "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            **_AUTHOR,
        }
        self._apart = apart
        below = (os.path.relpath(path, folder) for path in (state, *others))
        self.left_out: Final = (*LEFT_OUT, *(path for path in below if not path.startswith("..")))
        self._rules: tuple[str, ...] = ()
        self._hollow: tuple[str, ...] = ()
        self._modes: Mapping[str, int] = {}
        self._commit: str | None = None  # the last state: the next one stands behind it
        self._tree: str | None = None  # what our index has, a state or what was held
        self._index: str | None = None  # the digest of our index as we left it
        self.first = ""

    # The first state, and going on

    def begin(self, tracked: bytes, *, is_ours: bool) -> None:
        """Make a commit of the workspace as it was prepared, and begin with it; raise Unkept.

        ``tracked`` are the files, each with a NUL behind it, that belong to it whatever is ignored.
        """
        try:
            self._stand()
            self._rules = tuple(self._ignored())
            listed = set(self._run("ls-files", "--others", "--exclude-standard", "-z").split(b"\0"))
            listed |= set(tracked.split(b"\0"))
            ours = tuple(os.fsencode(name) for name in self.left_out)
            paths = sorted(
                path
                for path in listed
                if path and not any(path == each or path.startswith(each + b"/") for each in ours)
                and os.path.lexists(os.path.join(os.fsencode(self._folder), path))
            )  # fmt: skip
            rules = [rule for path in paths if path == b".gitignore" or path.endswith(b"/.gitignore")
                     for rule in self._rules_of(os.fsdecode(path))]  # fmt: skip
            # Those nearer to a file come later, and win.
            self._rules = (*rules, *self._rules)
            nested = [path for path in paths if path.endswith(b"/")]
            if nested:
                raise Unkept(_nested(os.fsdecode(nested[0].rstrip(b"/"))))
            self._add(paths, "--force")
            self.first = self._commit_of(self._write_tree(), None, "as prepared")
            self._hollow = self._empty(is_ours=is_ours)
            self._modes = self._odd_modes(os.fsdecode(path) for path in paths)
            self._write(Known(self._folder, self.first, self._rules, self._hollow, is_ours, self._modes))
        except (GitFailed, OSError) as failed:
            raise Unkept(f"the workspace cannot be kept: {_why(failed)}") from None

    def go_on(self, found: Known) -> None:
        """Begin with what an earlier run wrote down; ``restore`` comes next."""
        self.first, self._rules, self._hollow, self._modes = found.first, found.rules, found.hollow, found.modes
        with suppress(OSError):
            for folder, _, names in os.walk(self._directory):
                for name in names:
                    if name.endswith(".lock"):  # its process was killed, and we hold the lock of the state directory
                        os.unlink(os.path.join(folder, name))

    def forget(self, last: int) -> None:
        """Forget the kept states after an iteration: nobody wrote down that they count."""
        folder = os.path.join(self._directory, _KEPT)
        with suppress(OSError):
            for name in os.listdir(folder):
                if name.isdigit() and int(name) > last:
                    os.unlink(os.path.join(folder, name))

    def put_by(self, number: int, *, is_whole: bool) -> tuple[str, str] | None:
        """Keep the states of an earlier run, by its number; return the git directory and their names in it.

        A new world takes nothing over, so the old one ``is_whole`` put by; else its states get other names. None is
        returned when it had none.
        """
        kept = os.path.join(self._directory, _KEPT)
        if not os.path.isdir(kept):
            if is_whole:
                with tree.opened(self._state) as state:
                    tree.remove(state, _DIRECTORY)
            return None
        old, home, name = kept, self._directory, f"{_EARLIER}/{number}"
        if is_whole:
            old, home, name = self._directory, self._state, f"world-{number}.git"
        while os.path.lexists(os.path.join(home, name)):
            name = f"again-{name}" if is_whole else f"{name}-again"
        new = os.path.join(home, name)
        os.makedirs(os.path.dirname(new), exist_ok=True)
        os.rename(old, new)
        return (new, _KEPT) if is_whole else (home, name)

    def has(self, token: str) -> bool:
        """Tell whether a state is there."""
        try:
            self._stand()
            self._run("cat-file", "-e", f"{sha_of(token)}^{{commit}}")
        except (GitFailed, OSError):
            return False
        return True

    # States

    def changed(self, token: str) -> str | None:
        """Return a path in which the workspace differs from a state, None when it is that state; raise Lost."""
        try:
            return self._differing(sha_of(token))
        except (GitFailed, OSError) as failed:
            raise Lost(f"the workspace cannot be compared: {_why(failed)}") from None

    def put_aside(self, token: str) -> str:
        """Keep what the workspace has now where nothing forgets it, behind a state; return the name; raise Unkept."""
        self._commit = self._tree = sha_of(token)
        self._index = None
        made = self._commit_of(self.hold(), self._commit, "put aside")
        self._commit = sha_of(token)
        name = f"{_ASIDE}/{made[:12]}"
        self._put_ref(name, made)
        return name

    def hold(self) -> str:
        """Return the name of a tree of everything that no rule leaves out: of a state where nothing differs from it."""
        try:
            refusal = self.refusal()
            if refusal is not None:
                raise Unkept(refusal)
            self._stand()
            self._trust()
            known, new = self._changes()
            nested = next((path for path in new if path.endswith(b"/")), None)
            if nested is not None:
                raise Unkept(_nested(os.fsdecode(nested.rstrip(b"/"))))
            if known:
                self._add(known, "--update")
            if new:
                self._add(new, "--force")
            if not (known or new) and self._tree is not None:
                return self._tree
            return self._write_tree()
        except (GitFailed, OSError) as failed:
            self._index = None
            raise Unkept(f"the workspace cannot be kept: {_why(failed)}") from None

    def snapshot(self, number: int, note: str = "", held: str | None = None) -> str:
        """Commit what was held, or everything that no rule leaves out, behind the state that was there before."""
        tree_of_it = self.hold() if held is None else held
        try:
            made = self._commit_of(tree_of_it, self._commit, f"iteration {number}" + (f": {note}" if note else ""))
            self._put_ref(f"{_KEPT}/{number}", made)
        except (GitFailed, OSError) as failed:
            raise Unkept(f"the workspace cannot be kept: {_why(failed)}") from None
        return f"{made}\t" if self._apart else made

    def revert(self, held: str = "") -> str | None:
        """Bring the workspace back to what was held, or to the last state, if it differs."""
        last = self._commit
        try:
            changed = self._differing(held or last)
            if changed is None:
                return None
            aim = self._commit_of(held, last, "held") if held else last
            assert aim is not None  # noqa: S101 - narrows: there is a state since the workspace was prepared
        except (GitFailed, OSError) as failed:
            raise Lost(f"the workspace cannot be restored: {_why(failed)}") from None
        self._bring(aim)
        self._commit = last
        return changed

    def restore(self, token: str) -> None:
        """Bring the workspace back to a state, whatever has become of it."""
        sha = sha_of(token)
        if not _SHA.fullmatch(sha):
            raise Lost(f"{sha!r} is no state of the workspace")
        self._bring(sha)

    def _bring(self, sha: str) -> None:
        try:
            try:
                self._restore(sha)
            except (GitFailed, OSError):
                _unprotect(self._folder)  # permission bits may have been in its way
                self._index = None
                self._restore(sha)
        except (GitFailed, OSError) as failed:
            raise Lost(f"the workspace cannot be restored: {_why(failed)}") from None

    def _differing(self, aim: str | None) -> str | None:
        """Return a path in which the workspace differs from a state or what was held, None when there is none."""
        self._stand()
        if aim != self._tree:
            self._tree, self._index = aim, None
        self._trust()
        known, new = self._changes()
        unseen = (path for path, entry in self._unseen() if entry is not None)
        return next((os.fsdecode(path) for path in (*new, *known)), None) or next(unseen, None)

    def _restore(self, sha: str) -> None:
        if not os.path.isdir(self._folder) or os.path.islink(self._folder):
            parent, name = os.path.split(self._folder)
            with tree.opened(parent) as folder:
                os.close(tree.enter(folder, name))
        self._stand()
        self._trust()
        with tree.opened(self._folder) as top:
            for name in (ESCALATION, TASK_RESULT):
                tree.remove(top, name)
        self._run("reset", "--hard", "--quiet", sha)
        excludes = [word for rule in (*self._rules, *self._own_rules()) for word in ("-e", rule)]
        self._run("clean", "-ffdxq", *excludes)
        for path, entry in self._unseen():
            if entry is not None:
                parent, name = os.path.split(os.path.join(self._folder, path))
                with tree.opened(parent) as folder:
                    tree.remove(folder, name)
        for path in self._hollow:
            os.makedirs(os.path.join(self._folder, path), exist_ok=True)
        self._set_modes()
        self._commit = self._tree = sha
        self._index = self._digest()

    def refusal(self) -> str | None:
        """Return why no state can be made of the workspace: it is gone, or a repository in it keeps files from us."""
        if os.path.islink(self._folder) or not os.path.isdir(self._folder):
            return "the workspace is no folder any more"
        for path, entry in self._unseen():
            if entry is not None and _is_git(entry):
                return _nested(os.path.dirname(path))
        return None

    def _unseen(self) -> Iterator[tuple[str, os.DirEntry[str] | None]]:
        """Yield what git does not see within the workspace, but for what is its own and in caches.

        That are the git directories of others, or what leads to one, pipes and sockets, and, with no entry, empty
        folders. Folders that we may not change are made so that we may.
        """
        left_out = {os.path.join(self._folder, name) for name in (".git", *self.left_out)}
        found: list[tuple[str, os.DirEntry[str] | None]] = []
        pending = [self._folder]
        while pending:
            here = pending.pop()
            with suppress(OSError):
                _widen(here)
                with os.scandir(here) as listing:
                    entries = list(listing)
                if not entries and here != self._folder:
                    found.append((os.path.relpath(here, self._folder), None))
                for entry in entries:
                    if entry.path in left_out:
                        continue
                    is_folder = entry.is_dir(follow_symlinks=False)
                    is_seen = is_folder or entry.is_symlink() or entry.is_file(follow_symlinks=False)
                    if _is_git(entry) or not is_seen:
                        found.append((os.path.relpath(entry.path, self._folder), entry))
                    elif is_folder:
                        pending.append(entry.path)
        if found:
            caches = tuple(os.fsdecode(path) for path in self._excluded("--ignored", "--directory") if path)
            folders = tuple(cache for cache in caches if cache.endswith("/"))
            yield from (each for each in found if not f"{each[0]}/".startswith(folders))

    def _empty(self, *, is_ours: bool) -> tuple[str, ...]:
        """Return the folders that have nothing in them; raise Unkept for what no state of an author's own can have."""
        hollow = []
        for path, entry in self._unseen():
            if entry is None:
                hollow.append(path)
            elif not is_ours:
                if _is_git(entry):
                    raise Unkept(_nested(os.path.dirname(path)))
                raise Unkept(f'"{path}" is no file, folder or link, so no state of the workspace has it; remove it')
        return tuple(hollow)

    def _odd_modes(self, paths: Iterable[str]) -> dict[str, int]:
        """Return the permission bits, by path, that git would not make: of files, and of all folders above them."""
        mask = os.umask(0)
        os.umask(mask)
        known = [*paths]
        folders = {os.path.dirname(path) for path in (*known, *self._hollow)} | {*self._hollow}
        found: dict[str, int] = {}
        for path in (*known, *(folder for folder in folders if folder)):
            status = os.lstat(os.path.join(self._folder, path))
            mode = stat.S_IMODE(status.st_mode)
            is_run = stat.S_ISDIR(status.st_mode) or mode & stat.S_IXUSR
            if not stat.S_ISLNK(status.st_mode) and mode != (0o777 if is_run else 0o666) & ~mask:
                found[path] = mode
        return found

    def _set_modes(self) -> None:
        """Give what was there from the beginning its permission bits again, unless a state made it executable."""
        for path, mode in self._modes.items():
            with suppress(OSError):
                file = os.open(os.path.join(self._folder, path), _LOOK)
                try:
                    found = os.fstat(file).st_mode
                    has_kept = stat.S_ISDIR(found) or (stat.S_ISREG(found) and not (found ^ mode) & stat.S_IXUSR)
                    if has_kept and stat.S_IMODE(found) != mode:
                        os.fchmod(file, mode)
                finally:
                    os.close(file)

    # Git

    def _scratch(self) -> str:
        """Return a folder for what git prints."""
        path = os.path.join(self._state, "world")
        os.makedirs(path, exist_ok=True)
        return path

    def _run(self, *arguments: str, also: Mapping[str, str] | None = None) -> bytes:
        self._scratch()
        return self._git(*arguments, directory=self._folder, also={**self._places, **(also or {})})

    def _stand(self) -> None:
        """Make our git directory, or make it again what it was where somebody has changed it."""
        for folder in ("objects/info", "objects/pack", "refs", "info"):
            os.makedirs(os.path.join(self._directory, folder), exist_ok=True)
        for name in os.listdir(self._directory):
            if name not in _KNOWN:
                with tree.opened(self._directory) as ours:
                    tree.remove(ours, name)
        for name, data in _FILES.items():
            path = os.path.join(self._directory, name)
            try:
                is_there = careful.read(path, len(data) + 1) == data
            except OSError:
                is_there = False
            if not is_there:
                with tree.opened(os.path.dirname(path)) as ours:
                    tree.remove(ours, os.path.basename(path))
                careful.write(path, data)

    def _trust(self) -> None:
        """Go on with the index that we left; who marked a file in it could hide what becomes of that."""
        if self._index is not None and self._index == self._digest():
            return
        with tree.opened(self._directory) as folder:
            tree.remove(folder, "index")
        if self._tree is not None:
            self._run("read-tree", self._tree)
            self._index = self._digest()

    def _digest(self) -> str | None:
        try:
            return sha256(careful.read(os.path.join(self._directory, "index")))
        except OSError:
            return None

    def _add(self, paths: Iterable[bytes], how: str) -> None:
        named = os.path.join(self._scratch(), "paths")
        careful.write(named, b"".join(path + b"\0" for path in paths))
        self._run("add", how, f"--pathspec-from-file={named}", "--pathspec-file-nul")

    def _write_tree(self) -> str:
        self._tree = os.fsdecode(self._run("write-tree")).strip()
        self._index = self._digest()
        return self._tree

    def _commit_of(self, tree_of_it: str, parent: str | None, message: str) -> str:
        """Make a commit, the last state from now on; it has the date of the first, since no other says more."""
        behind = () if parent is None else ("-p", parent)
        dates = {"GIT_AUTHOR_DATE": _EPOCH, "GIT_COMMITTER_DATE": _EPOCH}
        made = self._run("commit-tree", *behind, "-m", encodable(message), f"{tree_of_it}^{{tree}}", also=dates)
        self._commit = os.fsdecode(made).strip()
        return self._commit

    def _put_ref(self, name: str, sha: str) -> None:
        path = os.path.join(self._directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        careful.write(f"{path}.new", f"{sha}\n".encode())
        os.replace(f"{path}.new", path)

    def _write(self, record: Known) -> None:
        path = os.path.join(self._state, _RECORD)
        careful.write(f"{path}.new", json.dumps(record._asdict()).encode())
        os.replace(f"{path}.new", path)

    # What is left out

    def _changes(self) -> tuple[list[bytes], list[bytes]]:
        """Return the files that are no more as our index has them, and those of no state that no rule leaves out."""
        found = [(line[:1], line[2:]) for line in self._excluded("-t", "--modified") if line]
        return [path for tag, path in found if tag != b"?"], [path for tag, path in found if tag == b"?"]

    def _excluded(self, *options: str) -> list[bytes]:
        rules = os.path.join(self._scratch(), "rules")
        careful.write(rules, b"".join(os.fsencode(rule) + b"\n" for rule in (*self._rules, *self._own_rules())))
        return self._run("ls-files", "--others", "-z", *options, f"--exclude-from={rules}").split(b"\0")

    def _own_rules(self) -> Iterator[str]:
        """Yield the rules for what is the loop's own in the workspace."""
        for name in self.left_out:
            yield "/" + _escaped(name)

    def _ignored(self) -> Iterator[str]:
        """Yield a rule for each thing that is ignored in the workspace as it was prepared: the topmost of each path.

        A folder that has nothing but ignored files is not ignored itself, and what comes into it later is seen.
        """
        found = self._run("ls-files", "--others", "--ignored", "--exclude-standard", "-z").split(b"\0")
        ways = {path: [path[:at] for at, each in enumerate(path) if each == _SLASH] for path in found if path}
        folders = sorted({folder for way in ways.values() for folder in way})
        known = self._are_ignored(folders) if folders else set()
        for top in sorted({next((folder for folder in way if folder in known), path) for path, way in ways.items()}):
            yield "/" + _escaped(os.fsdecode(top))

    def _are_ignored(self, folders: list[bytes]) -> set[bytes]:
        """Return which folders are ignored themselves; git asks about names that end in a slash."""
        named = os.path.join(self._scratch(), "paths")
        careful.write(named, b"".join(b"./" + folder + b"/\0" for folder in folders))
        script = 'exec git check-ignore -z --stdin <"$1"'
        places = {name: value for name, value in self._places.items() if name != _LITERAL}  # it takes no magic away
        command = self._git.command(directory=self._folder, also=places)
        command = command._replace(argv=("sh", "-c", script, "sh", named))
        ended = self._processes.run(command, is_steadfast=True)
        if ended.code not in {0, 1}:  # 1 when none is
            check(command, ended)
        return {path.removeprefix(b"./").rstrip(b"/") for path in careful.read(command.out).split(b"\0")}

    def _rules_of(self, path: str) -> Iterator[str]:
        """Yield the rules of a file of them as rules of the top of the workspace."""
        try:
            text = os.fsdecode(careful.read(os.path.join(self._folder, path), 1 << 20))
        except OSError:
            return
        home = os.path.dirname(path)
        for line in text.removeprefix("\ufeff").split("\n"):
            rule = line.removesuffix("\r")
            while rule.endswith(" ") and not rule.endswith("\\ "):
                rule = rule[:-1]
            if not rule or rule.startswith("#"):
                continue
            is_again, rule = rule.startswith("!"), rule.removeprefix("!")
            if home:
                way = "/" if "/" in rule.rstrip("/") else "/**/"
                rule = "/" + _escaped(home) + way + rule.lstrip("/")
            yield ("!" if is_again else "") + rule


class CommandWorld:
    """Has a domain beside the workspace, whose state only its own commands know."""

    def __init__(
        self,
        git: GitWorld,
        folder: str,
        logs: str,
        processes: Processes,
        environ: Mapping[str, str],
        commands: tuple[str, str] | None,
    ) -> None:
        """``commands`` are those that give a token and that take one; without them only git has states."""
        self._git = git
        self._folder = folder
        self._logs = logs
        self._processes = processes
        self._environ = environ
        self._commands = commands

    def hold(self) -> str:
        """Return what the workspace has; of the domain nothing can be held."""
        return self._git.hold()

    def revert(self, held: str = "") -> str | None:
        """Bring the workspace back; the domain stays as it is."""
        return self._git.revert(held)

    def snapshot(self, number: int, note: str = "", held: str | None = None) -> str:
        """Commit, then ask the domain for its token."""
        token = self._git.snapshot(number, note, held)
        if self._commands is None:
            return token
        out, err = self._files("snapshot")
        ended = self._run(self._commands[0], self._environ, out, err)
        fault = self._fault(ended, err)
        said = ""
        if fault is None:
            lines = os.fsdecode(careful.end_of(out, _MOST_TOKEN + 2, ended.size)).split("\n")
            said = next((line for line in reversed(lines) if line.strip()), "").removesuffix("\r")
            fault = None if said else "it printed no token"
            if "\0" in said:
                fault = "its token has a NUL byte, which no variable can hold"
        if len(said) > _MOST_TOKEN:
            fault = f"its token has more than {_MOST_TOKEN:,} bytes"
        if fault is not None:
            raise Unkept(f"snapshot_cmd failed: {fault}")
        return token + said

    def restore(self, token: str) -> None:
        """Bring back the workspace, then have the domain go back to its token."""
        self._git.restore(token)
        if self._commands is None:
            return
        out, err = self._files("restore")
        environ = {**self._environ, TOKEN: token.partition("\t")[2]}
        ended = self._run(self._commands[1], environ, out, err, is_steadfast=True)
        fault = self._fault(ended, err)
        if fault is not None:
            raise Lost(f"restore_cmd failed: {fault}")

    def refusal(self) -> str | None:
        """Return why no state can be made of the workspace."""
        return self._git.refusal()

    def _files(self, name: str) -> tuple[str, str]:
        os.makedirs(self._logs, exist_ok=True)
        return os.path.join(self._logs, f"{name}.out"), os.path.join(self._logs, f"{name}.err")

    def _run(self, command: str, environ: Mapping[str, str], out: str, err: str, *, is_steadfast: bool = False) -> Exit:
        whole = Command((SHELL, "-c", encodable(command)), environ, self._folder, out, err)
        return self._processes.run(whole, is_steadfast=is_steadfast)

    def _fault(self, ended: Exit, err: str) -> str | None:
        if ended.fault is not None:
            return f"it could not be started: {ended.fault.strerror or ended.fault}"
        return exit_note(ended, err) or None


def _nested(path: str) -> str:
    return f'there is a git repository in "{path}", whose files no state of the workspace has; remove its .git'


def _is_git(entry: os.DirEntry[str]) -> bool:
    return entry.name.casefold() == ".git"


def _escaped(path: str) -> str:
    return _SPECIAL.sub(r"\\\1", path)


def _why(failed: GitFailed | OSError) -> str:
    if isinstance(failed, GitFailed):
        return str(failed)
    where = f"{failed.filename}: " if failed.filename is not None else ""
    return f"{where}{failed.strerror or failed}"


def _widen(folder: str) -> None:
    mode = os.stat(folder, follow_symlinks=False).st_mode
    if mode & _ACCESS != _ACCESS:
        os.chmod(folder, stat.S_IMODE(mode) | _ACCESS)


def _unprotect(folder: str) -> None:
    """Give us all access to the folders of a workspace; what is not ours stays as it is."""
    pending = [folder]
    while pending:
        here = pending.pop()
        with suppress(OSError):
            _widen(here)
            with os.scandir(here) as entries:
                pending += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]

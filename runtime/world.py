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
from collections.abc import Collection, Iterator, Mapping
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
_AUTHOR: Final = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Crucible"), ("EMAIL", "crucible@localhost"))
}
_ACCESS: Final = 0o700
_LITERAL: Final = "GIT_LITERAL_PATHSPECS"
_SLASH: Final = ord("/")
_MOST_TOKEN: Final = 96 << 10  # bytes: it is given back in a variable


class Lost(Exception):
    """A state cannot be restored: the world is not what we think. The text says why."""


class Unkept(Exception):
    """The workspace, or the domain, cannot be made a state of; the text says why."""


class World(Protocol):
    """States that can be gone back to."""

    def snapshot(self, number: int, note: str = "") -> str:
        """Return the token of the state that there is now; raise Unkept. ``number`` is its iteration."""

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
    ``hollow`` the folders that were empty, which git does not know. ``is_ours`` tells whether we made the workspace:
    else it is its author's.
    """

    workspace: str
    first: str
    rules: tuple[str, ...]
    hollow: tuple[str, ...]
    is_ours: bool


def known(state: str) -> Known | None:
    """Return what an earlier run wrote down, None without any."""
    try:
        found = json.loads(careful.read(os.path.join(state, _RECORD), _MOST_RECORD))
        rules, hollow = tuple(found["rules"]), tuple(found["hollow"])
        made = Known(found["workspace"], found["first"], rules, hollow, found["is_ours"] is True)
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
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
        self._commit: str | None = None  # what our index and the workspace were last brought to
        self._index: str | None = None  # the digest of our index as we left it
        self.first = ""

    # The first state, and going on

    def begin(self, tracked: bytes, *, is_ours: bool) -> None:
        """Make a commit of the workspace as it was prepared, and begin with it; raise Unkept.

        ``tracked`` are the files, each with a NUL behind it, that belong to it whatever is ignored.
        """
        try:
            with tree.opened(self._state) as state:
                tree.remove(state, _DIRECTORY)
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
            self._add(b"".join(path + b"\0" for path in paths))
            self.first = self._commit_of(None, "as prepared")
            self._hollow = tuple(path for path, entry in self._unseen() if entry is None)
            self._write(Known(self._folder, self.first, self._rules, self._hollow, is_ours))
        except GitFailed as failed:
            raise Unkept(f"the workspace cannot be kept: {failed}") from None
        except OSError as error:
            raise Unkept(f"the workspace cannot be kept: {_reason(error)}") from None

    def go_on(self, found: Known) -> None:
        """Begin with what an earlier run wrote down; ``restore`` comes next."""
        self.first, self._rules, self._hollow = found.first, found.rules, found.hollow
        with suppress(OSError):
            for folder, _, names in os.walk(self._directory):
                for name in names:
                    if name.endswith(".lock"):  # its process was killed, and we hold the lock of the state directory
                        os.unlink(os.path.join(folder, name))

    def forget(self, last: int | None = None) -> None:
        """Forget the kept states, or those after an iteration: nobody wrote down that they count."""
        folder = os.path.join(self._directory, _KEPT)
        with suppress(OSError):
            for name in os.listdir(folder):
                if last is None or (name.isdigit() and int(name) > last):
                    os.unlink(os.path.join(folder, name))

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
        """Return a path in which the workspace differs from a state, None when it is that state; raise GitFailed."""
        self._stand()
        self._index, self._commit = None, sha_of(token)
        self._trust()
        found = self._run("diff", "--no-ext-diff", "--name-only", "-z").split(b"\0")
        self._index = None
        return next((os.fsdecode(path) for path in (*found, *self._others().split(b"\0")) if path), None)

    def snapshot(self, number: int, note: str = "") -> str:
        """Commit everything that no rule leaves out, behind the state that was there before."""
        try:
            refusal = self.refusal()
            if refusal is not None:
                raise Unkept(refusal)
            self._stand()
            self._trust()
            self._run("add", "--update", "--", ".")
            others = self._others()
            nested = next((path for path in others.split(b"\0") if path.endswith(b"/")), None)
            if nested is not None:
                raise Unkept(_nested(os.fsdecode(nested.rstrip(b"/"))))
            if others:
                self._add(others)
            made = self._commit_of(self._commit, f"iteration {number}" + (f": {note}" if note else ""))
            self._put_ref(f"{_KEPT}/{number}", made)
        except GitFailed as failed:
            self._index = None
            raise Unkept(f"the workspace cannot be kept: {failed}") from None
        except OSError as error:
            self._index = None
            raise Unkept(f"the workspace cannot be kept: {_reason(error)}") from None
        return f"{made}\t" if self._apart else made

    def restore(self, token: str) -> None:
        """Bring the workspace back to a state, whatever has become of it."""
        sha = sha_of(token)
        if not _SHA.fullmatch(sha):
            raise Lost(f"{sha!r} is no state of the workspace")
        try:
            try:
                self._restore(sha)
            except (GitFailed, OSError) as failed:
                # Whoever stops the run stops git, too, and still wants the workspace restored.
                if not (isinstance(failed, GitFailed) and failed.cause is not None):
                    _unprotect(self._folder)  # permission bits may have been in its way
                self._index = None
                self._restore(sha)
        except GitFailed as failed:
            raise Lost(f"the workspace cannot be restored: {failed}") from None
        except OSError as error:
            raise Lost(f"the workspace cannot be restored: {_reason(error)}") from None

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
        self._commit = sha
        self._sealed()

    def refusal(self) -> str | None:
        """Return why no state can be made of the workspace: a repository in it keeps its files from us."""
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
        if self._commit is not None:
            self._run("read-tree", self._commit)
            self._index = self._digest()

    def _sealed(self) -> None:
        self._index = self._digest()

    def _digest(self) -> str | None:
        try:
            return sha256(careful.read(os.path.join(self._directory, "index")))
        except OSError:
            return None

    def _add(self, paths: bytes) -> None:
        named = os.path.join(self._scratch(), "paths")
        careful.write(named, paths)
        self._run("add", "--force", f"--pathspec-from-file={named}", "--pathspec-file-nul")

    def _commit_of(self, parent: str | None, message: str) -> str:
        made = os.fsdecode(self._run("write-tree")).strip()
        self._sealed()
        behind: tuple[str, ...] = ()
        date = _EPOCH
        if parent is not None:
            behind = ("-p", parent)
            told = self._run("cat-file", "commit", parent)
            date = f"@{os.fsdecode(told.split(b'committer ', 1)[1].split(b'> ', 1)[1].split(b' ', 1)[0])} +0000"
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        self._commit = os.fsdecode(
            self._run("commit-tree", *behind, "-m", encodable(message), made, also=dates)
        ).strip()
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

    def _others(self) -> bytes:
        """Return the files that are in no state yet and that no rule leaves out, each with a NUL behind it."""
        return b"".join(path + b"\0" for path in self._excluded() if path)

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
        ended = self._processes.run(command)
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

    def snapshot(self, number: int, note: str = "") -> str:
        """Commit, then ask the domain for its token."""
        token = self._git.snapshot(number, note)
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
        ended = self._run(self._commands[1], environ, out, err)
        if ended.cause is not None:  # whoever stops the run still wants the domain restored
            ended = self._run(self._commands[1], environ, out, err)
        fault = self._fault(ended, err)
        if fault is not None:
            raise Lost(f"restore_cmd failed: {fault}")

    def refusal(self) -> str | None:
        """Return why no state can be made of the workspace."""
        return self._git.refusal()

    def _files(self, name: str) -> tuple[str, str]:
        os.makedirs(self._logs, exist_ok=True)
        return os.path.join(self._logs, f"{name}.out"), os.path.join(self._logs, f"{name}.err")

    def _run(self, command: str, environ: Mapping[str, str], out: str, err: str) -> Exit:
        return self._processes.run(Command((SHELL, "-c", encodable(command)), environ, self._folder, out, err))

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


def _reason(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename is not None else ""
    return f"{where}{error.strerror or error}"


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

"""Workspaces on a real disk with the real git: what tasks see, and that nobody's repository is touched."""

import hashlib
import os
import resource
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from contract import contract
from repositories import commit, git, repository

from crucible.runtime import state as state_directory
from crucible.runtime.injects import Entry, expand
from crucible.runtime.prepare import Origin, recorded_base
from crucible.runtime.process import Command, Exit, Processes
from crucible.runtime.workspace import Refused, Workspace
from crucible.schemas.ir import CommandTask

_T = TypeVar("_T")
SHARED = CommandTask(name="a", command="true")
ISOLATED = CommandTask(name="a", command="true", isolation="worktree")


@pytest.fixture
def processes() -> Iterator[Processes]:
    """Give a place for children."""
    with Processes() as running:
        yield running


def drive(processes: Processes, steps: Generator[Command, Exit, _T]) -> _T:
    """Do what a generator asks for, to its end."""
    try:
        command = next(steps)
        while True:
            command = steps.send(processes.run(command))
    except StopIteration as end:
        found: _T = end.value
        return found


def clone(processes: Processes, at: Workspace) -> Path:
    """Return the clone of an isolated task."""
    return Path(drive(processes, at.enter(ISOLATED)))


def tree(top: Path, *, but: tuple[str, ...] = ()) -> dict[bytes, tuple[str, bytes]]:
    """Return kinds and bytes of all files below a folder, git's own left out, by their names."""
    found = {}
    root = os.fsencode(top)
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != b".git"]
        for name in [*files, *(name for name in folders if os.path.islink(os.path.join(folder, name)))]:
            path = os.path.join(folder, name)
            below = os.path.relpath(path, root)
            if below == b".git" or name == b".git" or os.fsdecode(below).startswith(but or ("\0",)):
                continue
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                found[below] = ("link", os.readlink(path))
            else:
                found[below] = ("program" if mode & 0o100 else "file", Path(os.fsdecode(path)).read_bytes())
    return found


def fingerprint(top: Path) -> dict[str, str]:
    """Return hash, mode and, but for objects, time of every file of all git directories below a folder."""
    found = {}
    for path in sorted(top.rglob("*")):
        parts = path.relative_to(top).parts
        if ".git" in parts and "state" not in parts[: parts.index(".git")] and path.is_file() and not path.is_symlink():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            # Git itself renews the time of an object that it meets again.
            moment = 0 if "objects" in parts else path.stat().st_mtime_ns
            found[str(path.relative_to(top))] = f"{content} {moment} {path.stat().st_mode:o}"
    return found


def asked(top: Path) -> tuple[str, ...]:
    """Return what git says of a repository, without letting it write."""
    git_of = ["--no-optional-locks"]
    return tuple(
        git(top, *git_of, *words)
        for words in (
            ("status", "--porcelain", "-z"),
            ("worktree", "list"),
            ("for-each-ref",),
            ("stash", "list"),
            ("config", "--local", "--list"),
        )
    )


def changed(top: Path) -> Path:  # noqa: PLR0915 - one line for each kind
    """Make a repository with every kind of change that is not committed."""
    repository(top)
    files: dict[str, str | bytes | None] = {
        "kept.txt": "kept\n",
        "unstaged.txt": "one\n",
        "staged.txt": "one\n",
        "both.txt": "one\n",
        "deleted.txt": "gone\n",
        "deleted and staged.txt": "gone\n",
        "program.sh": "#!/bin/sh\n",
        "latin.txt": "caf\xe9\n".encode("latin-1"),
        "picture.bin": bytes(range(256)),
        "becomes a folder": "x\n",
        "becomes a file/inner.txt": "x\n",
        "becomes a link": "x\n",
        "renamed.txt": "a name\n" * 20,
        "marked.txt": "as committed\n",
        "skipped.txt": "as committed\n",
        "ignored but tracked.log": "one\n",
        "deep/er/file.txt": "x\n",
        ".gitignore": "*.log\nignored/\n",
        "empty": "",
    }
    commit(top, {name: content for name, content in files.items() if name != "ignored but tracked.log"})
    (top / "ignored but tracked.log").write_text("one\n")
    os.symlink("kept.txt", top / "link")
    git(top, "add", "-f", "ignored but tracked.log", "link")
    git(top, "commit", "-qm", "more")
    git(top, "branch", "other")
    git(top, "tag", "v1")
    (top / "kept.txt").write_text("stashed\n")
    git(top, "stash", "-q")
    (top / "staged.txt").write_text("two\n")
    (top / "both.txt").write_text("two\n")
    (top / "new and staged.txt").write_text("new\n")
    (top / "intended.txt").write_text("later\n")
    git(top, "add", "staged.txt", "both.txt", "new and staged.txt")
    git(top, "add", "-N", "intended.txt")
    git(top, "rm", "-q", "deleted and staged.txt")
    git(top, "mv", "renamed.txt", "under another name.txt")
    (top / "both.txt").write_text("three\n")
    (top / "unstaged.txt").write_text("two\n")
    (top / "deleted.txt").unlink()
    (top / "program.sh").chmod(0o755)
    (top / "latin.txt").write_bytes("na\xefve\n".encode("latin-1"))
    (top / "picture.bin").write_bytes(bytes(reversed(range(256))))
    (top / "becomes a folder").unlink()
    (top / "becomes a folder").mkdir()
    (top / "becomes a folder" / "inner.txt").write_text("y\n")
    (top / "becomes a file" / "inner.txt").unlink()
    (top / "becomes a file").rmdir()
    (top / "becomes a file").write_text("y\n")
    (top / "becomes a link").unlink()
    os.symlink("/nowhere/at all", top / "becomes a link")
    (top / "link").unlink()
    os.symlink("staged.txt", top / "link")
    git(top, "update-index", "--assume-unchanged", "marked.txt")
    git(top, "update-index", "--skip-worktree", "skipped.txt")
    (top / "marked.txt").write_text("edited in secret\n")
    (top / "skipped.txt").write_text("edited in secret\n")
    (top / "ignored but tracked.log").write_text("two\n")
    (top / "untracked.log").write_text("ignored\n")
    (top / "ignored").mkdir()
    (top / "ignored/file.txt").write_text("ignored\n")
    odd = ["a\nb.txt", "-n", ":(top)x", "[ab]*.txt", 'tab\tquote".txt', "trailing ", "é😀.txt", "back\\slash"]
    for name in odd:
        (top / name).write_text(name)
    Path(os.fsdecode(os.fsencode(top) + b"/not-\xff-utf8")).write_bytes(b"\xff")
    (top / "empty and new").touch()
    (top / "large.bin").write_bytes(os.urandom(300_000))
    (top / ".git/hooks").mkdir(exist_ok=True)
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-commit"):
        (top / ".git/hooks" / hook).write_text(f"#!/bin/sh\ntouch {top.parent}/a-hook-ran\n")
        (top / ".git/hooks" / hook).chmod(0o755)
    return top


@contract("§1.3", "isolated = True gives it a disposable worktree")
def is_carried(name: bytes) -> bool:
    """Tell whether a file of the changed repository belongs to what a clone gets."""
    return name != b"untracked.log" and not name.startswith((b"ignored/", b"state/"))


def test_eight_clones_see_the_same_files_and_the_repository_is_not_touched(
    tmp_path: Path, processes: Processes
) -> None:
    """Every kind of change is carried over byte for byte, and the user's git directory stays as it was."""
    top = changed(tmp_path / "repo")
    state = top / "state"
    state_directory.make(str(state))
    before = fingerprint(top), asked(top)
    with Workspace(str(top), str(state), processes, os.environ) as at:
        for _wave in range(4):
            at.next_wave()
            both = [clone(processes, at), clone(processes, at)]
            for each in both:
                expected = {name: what for name, what in tree(top).items() if is_carried(name)}
                assert tree(each) == expected
                assert git(each, "log", "--oneline", "--all") == git(top, "log", "--oneline", "HEAD", "other")
                assert git(each, "rev-parse", "HEAD", "v1", "other") == git(top, "rev-parse", "HEAD", "v1", "other")
                (each / "kept.txt").write_text("edited\n")
                git(each, "add", "-A")
                git(each, "commit", "-qm", "of the task")
                git(each, "branch", "-D", "other")
                drive(processes, at.leave(ISOLATED, str(each)))
    assert (fingerprint(top), asked(top)) == before
    assert os.listdir(state) == [".gitignore"]
    assert not (tmp_path / "a-hook-ran").exists()


def test_git_says_of_a_clone_what_it_says_of_the_workspace(tmp_path: Path, processes: Processes) -> None:
    """What is staged is staged in the clone, too, and nothing looks changed because it was copied."""
    top = changed(tmp_path / "repo")
    git(top, "update-index", "--no-assume-unchanged", "marked.txt")
    git(top, "update-index", "--no-skip-worktree", "skipped.txt")
    git(top, "reset", "-q", "intended.txt")
    with Workspace(str(top), str(tmp_path / "state"), processes, os.environ) as at:
        found = clone(processes, at)
        status = ("status", "--porcelain", "-z")
        assert git(found, *status) == git(top, "--no-optional-locks", *status)
        assert git(found, "diff-files", "-z", "--name-status") == git(top, "diff", "-z", "--name-status")
        assert git(found, "diff", "--cached") == git(top, "--no-optional-locks", "diff", "--cached")


def test_a_clean_workspace_gives_a_clean_clone(tmp_path: Path, processes: Processes) -> None:
    """Even a plumbing command that trusts times finds no change."""
    top = repository(tmp_path / "repo")
    commit(top, {"a.txt": "a\n", "b/c.txt": "c\n"})
    with Workspace(str(top), str(tmp_path / "state"), processes, os.environ) as at:
        found = clone(processes, at)
        assert git(found, "diff-index", "--name-only", "HEAD", "--") == ""
        assert git(found, "status", "--porcelain") == ""
        assert git(found, "fsck", "--no-dangling") == ""


def test_each_wave_sees_the_workspace_as_it_is_then(tmp_path: Path, processes: Processes) -> None:
    """Within a wave all get the same; the next one gets what has changed since."""
    top = repository(tmp_path / "repo")
    commit(top, {"a.txt": "one\n", "b.txt": "b\n"})
    with Workspace(str(top), str(tmp_path / "state"), processes, os.environ) as at:
        first = clone(processes, at)
        (top / "a.txt").write_text("two\n")
        second = clone(processes, at)
        at.next_wave()
        third = clone(processes, at)
        (top / "a.txt").write_text("one\n")
        (top / "new.txt").write_text("new\n")
        git(top, "add", "-A")
        (top / "b.txt").unlink()
        at.next_wave()
        fourth = clone(processes, at)
        assert [(each / "a.txt").read_text() for each in (first, second, third, fourth)] == [
            "one\n", "one\n", "two\n", "one\n",
        ]  # fmt: skip
        assert git(fourth, "status", "--porcelain") == " D b.txt\nA  new.txt"


def test_a_repository_without_a_commit_can_be_cloned(tmp_path: Path, processes: Processes) -> None:
    """The files are there, the clone has no commit either, and is on the same branch."""
    top = repository(tmp_path / "repo")
    git(top, "checkout", "-q", "-b", "trunk")
    (top / "a.txt").write_text("a\n")
    (top / "b.txt").write_text("b\n")
    git(top, "add", "a.txt")
    with Workspace(str(top), str(top / "state"), processes, os.environ) as at:
        found = clone(processes, at)
        assert git(found, "status", "--porcelain", "-b") == "## No commits yet on trunk\nA  a.txt\n?? b.txt"


def test_a_workspace_below_the_top_of_its_repository(tmp_path: Path, processes: Processes) -> None:
    """The whole repository is cloned, and the task runs in the same folder of it."""
    top = repository(tmp_path / "repo")
    commit(top, {"lib/a.txt": "a\n", "packs/one/b.txt": "b\n"})
    with Workspace(str(top / "packs/one"), str(top / "packs/one/state"), processes, os.environ) as at:
        found = clone(processes, at)
        assert (found / "b.txt").read_text() == "b\n"
        assert (found / "../../lib/a.txt").read_text() == "a\n"
        assert found.parts[-3:] == ("repo", "packs", "one")


def test_repositories_within_the_workspace_come_along(tmp_path: Path, processes: Processes) -> None:
    """A submodule and a repository that nobody tracks have their files and their own history in the clone."""
    inner = repository(tmp_path / "inner")
    commit(inner, {"in.txt": "one\n"})
    top = repository(tmp_path / "repo")
    commit(top, {"a.txt": "a\n"})
    allow = ("-c", "protocol.file.allow=always")
    git(top, *allow, "submodule", "--quiet", "add", str(inner), "sub module")
    git(top, *allow, "submodule", "--quiet", "add", str(inner), "absent")
    git(top, "commit", "-qm", "submodules")
    git(top, "submodule", "--quiet", "deinit", "-f", "absent")
    (top / "sub module/in.txt").write_text("two\n")
    (top / "sub module/new.txt").write_text("new\n")
    (top / "new.txt").write_text("new\n")
    repository(top / "nested")
    (top / "nested/file.txt").write_text("x\n")
    git(top / "nested", "init", "-q", "deeper")
    commit(top / "nested/deeper", {"y.txt": "y\n"})
    before = fingerprint(top)
    with Workspace(str(top), str(tmp_path / "state"), processes, os.environ) as at:
        for _wave in range(2):
            at.next_wave()
            found = clone(processes, at)
            assert tree(found) == tree(top)
            assert git(found, "status", "--porcelain") == git(top, "--no-optional-locks", "status", "--porcelain")
            assert git(found / "sub module", "status", "--porcelain") == " M in.txt\n?? new.txt"
            assert git(found / "nested/deeper", "log", "--format=%s") == "a change"
    assert fingerprint(top) == before


@pytest.mark.parametrize("kind", ["gone", "elsewhere"])
def test_a_broken_submodule_is_named(tmp_path: Path, processes: Processes, kind: str) -> None:
    """Whoever is told that something is no repository has to know what."""
    inner = repository(tmp_path / "inner")
    commit(inner, {"in.txt": "one\n"})
    top = repository(tmp_path / "repo")
    git(top, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "inside")
    git(top, "commit", "-qm", "submodules")
    if kind == "gone":
        shutil.rmtree(top / ".git/modules")
    else:
        git(top / "inside", "config", "core.worktree", "/nowhere")
    with Workspace(str(top), str(tmp_path / "state"), processes, os.environ) as at:
        with pytest.raises(Refused) as refused:
            clone(processes, at)
        assert "inside" in str(refused.value)
        assert "None" not in str(refused.value)


def test_files_that_git_converts_are_carried_as_they_lie_there(tmp_path: Path, processes: Processes) -> None:
    """Line ends, keywords, encodings and large-file pointers: the clone has the workspace's bytes, no filter runs."""
    top = repository(tmp_path / "repo")
    ran = tmp_path / "a-filter-ran"
    git(top, "config", "filter.large.clean", "sed s/x/pointer/")
    git(top, "config", "filter.large.smudge", "sed s/pointer/x/")
    attributes = "*.txt text eol=crlf\n*.id ident\n*.utf16 working-tree-encoding=UTF-16LE\n*.big filter=large\n"
    files = {
        "a.txt": b"a\r\nb\r\n",
        "mixed.txt": b"a\r\nb\n",
        "b.id": b"$Id: by hand $\n",
        "c.utf16": "é\n".encode("utf-16-le"),
        "d.big": b"x\n",
    }
    commit(top, {".gitattributes": attributes, **files})
    for name in files:
        os.utime(top / name, (10**9, 10**9))
    git(top, "add", "-A")
    assert git(top, "status", "--porcelain") == ""
    for what in ("clean", "smudge"):
        git(top, "config", f"filter.large.{what}", f"touch {ran}; cat")
    with Workspace(str(top), str(tmp_path / "state"), processes, os.environ) as at:
        found = tree(clone(processes, at))
        assert {name: found[os.fsencode(name)][1] for name in files} == files
        assert found == tree(top)
    assert not ran.exists()


def test_a_split_index_and_a_linked_worktree_can_be_cloned(tmp_path: Path, processes: Processes) -> None:
    """Where git keeps what it knows elsewhere, it is found."""
    main = repository(tmp_path / "main")
    commit(main, {f"{number}.txt": "x\n" for number in range(50)})
    git(main, "worktree", "add", "-q", str(tmp_path / "linked"))
    top = tmp_path / "linked"
    git(top, "update-index", "--split-index")
    (top / "1.txt").write_text("y\n")
    git(top, "add", "1.txt")
    (top / "2.txt").write_text("y\n")
    before = fingerprint(main)
    with Workspace(str(top), str(tmp_path / "state"), processes, os.environ) as at:
        found = clone(processes, at)
        assert tree(found) == tree(top)
        assert git(found, "status", "--porcelain") == "M  1.txt\n M 2.txt"
    assert fingerprint(main) == before


def test_a_merge_under_way_can_be_cloned(tmp_path: Path, processes: Processes) -> None:
    """The files are there with their conflict, as changes that nobody has staged."""
    top = repository(tmp_path / "repo")
    commit(top, {"a.txt": "one\n"})
    git(top, "checkout", "-qb", "other")
    commit(top, {"a.txt": "two\n"})
    git(top, "checkout", "-q", "main")
    commit(top, {"a.txt": "three\n"})
    with pytest.raises(subprocess.CalledProcessError):
        git(top, "merge", "other")
    with Workspace(str(top), str(tmp_path / "state"), processes, os.environ) as at:
        found = clone(processes, at)
        assert "<<<<<<<" in (found / "a.txt").read_text()
        assert git(found, "status", "--porcelain") == " M a.txt"


def test_other_formats_of_repositories_can_be_cloned(tmp_path: Path, processes: Processes) -> None:
    """A repository with longer object names, and one that was cloned without its whole history."""
    long = tmp_path / "long"
    long.mkdir()
    git(long, "init", "-q", "--object-format=sha256")
    commit(long, {"a.txt": "a\n"})
    commit(long, {"a.txt": "b\n"})
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{long}", str(shallow))
    for top in (long, shallow):
        with Workspace(str(top), str(tmp_path / "state"), processes, os.environ) as at:
            found = clone(processes, at)
            assert git(found, "log", "--format=%H") == git(top, "log", "--format=%H")
            assert git(found, "status", "--porcelain") == ""


def test_settings_and_variables_of_the_user_are_not_obeyed(tmp_path: Path, processes: Processes) -> None:
    """Hooks, monitors, templates and editors of the user do not run, and git is not led elsewhere."""
    ran = tmp_path / "ran"
    program = tmp_path / "program.sh"
    program.write_text(f"#!/bin/sh\necho $0 $* >>{ran}\n")
    program.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "post-commit"):
        os.symlink(program, hooks / hook)
    settings = tmp_path / "settings"
    git(tmp_path, "config", "-f", str(settings), "core.fsmonitor", str(program))
    git(tmp_path, "config", "-f", str(settings), "core.hooksPath", str(hooks))
    git(tmp_path, "config", "-f", str(settings), "core.pager", str(program))
    git(tmp_path, "config", "-f", str(settings), "core.editor", str(program))
    git(tmp_path, "config", "-f", str(settings), "init.templateDir", str(hooks))
    git(tmp_path, "config", "-f", str(settings), "core.excludesFile", str(tmp_path / "rules"))
    (tmp_path / "rules").write_text("*.swp\n")
    top = repository(tmp_path / "repo")
    commit(top, {"a.txt": "a\n"})
    (top / "a.swp").touch()
    (top / "a.txt").write_text("b\n")
    elsewhere = repository(tmp_path / "elsewhere")
    environ = {
        **os.environ, "GIT_CONFIG_GLOBAL": str(settings), "GIT_DIR": str(elsewhere / ".git"),
        "GIT_WORK_TREE": str(elsewhere), "GIT_INDEX_FILE": str(tmp_path / "index"), "GIT_EDITOR": str(program),
    }  # fmt: skip
    before = fingerprint(elsewhere), fingerprint(top)
    with Workspace(str(top), str(tmp_path / "state"), processes, environ) as at:
        found = clone(processes, at)
        assert tree(found) == {b"a.txt": ("file", b"b\n")}
    made = Workspace(str(tmp_path / "made"), str(tmp_path / "state"), processes, environ)
    with made as at:
        assert at.prepare(Origin(str(tmp_path), path="repo"), str(tmp_path / "logs"))
    assert (fingerprint(elsewhere), fingerprint(top)) == before
    assert not ran.exists()


@pytest.mark.parametrize("kind", ["no repository", "ignored", "bare"])
def test_what_cannot_be_cloned_is_refused_with_the_reason(tmp_path: Path, processes: Processes, kind: str) -> None:
    """An isolated task never runs in the shared workspace instead."""
    folder = tmp_path / "it"
    folder.mkdir()
    expected = "is no git repository"
    if kind == "ignored":
        commit(repository(tmp_path), {".gitignore": "it/\n"})
        (folder / "a.txt").write_text("a\n")
        expected = "git ignores all that is in"
    if kind == "bare":
        git(folder, "init", "-q", "--bare")
        expected = "it has no work tree"
    with Workspace(str(folder), str(tmp_path / "state"), processes, os.environ) as at:
        for _ in range(2):
            with pytest.raises(Refused, match=expected):
                clone(processes, at)
        assert drive(processes, at.enter(SHARED)) == str(folder)


def test_read_only_clones_and_links_in_them_are_removed(tmp_path: Path, processes: Processes) -> None:
    """Neither permission bits nor depth keep a clone, and what a link leads to stays."""
    top = repository(tmp_path / "repo")
    commit(top, {"a/b/c.txt": "c\n"})
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.txt").touch()
    state = tmp_path / "state"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Workspace(str(top), str(state), processes, os.environ) as at:
        for is_left in (True, False):
            found = clone(processes, at)
            os.symlink(outside, found / "a/link")
            here = os.open(found, os.O_RDONLY)
            for _ in range(300):
                os.mkdir("deep", dir_fd=here)
                inner = os.open("deep", os.O_RDONLY, dir_fd=here)
                os.close(here)
                here = inner
            os.close(here)
            (found / "a/b/c.txt").chmod(0o000)
            (found / "a/b").chmod(0o555)
            (found / "a").chmod(0o000)
            if is_left:
                drive(processes, at.leave(ISOLATED, str(found)))
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert os.listdir(state) == [".gitignore"]
    assert (outside / "kept.txt").exists()


def _edit_and_hide(used: Path) -> None:
    before = (used / "a.txt").stat()
    (used / "a.txt").write_text("z\n")
    os.utime(used / "a.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
    git(used, "update-index", "--assume-unchanged", "a.txt")


def _commit_and_ignore(used: Path) -> None:
    (used / ".gitignore").write_text("*\n!.gitignore\n")
    (used / "cache/deep").mkdir(parents=True)
    (used / "cache/deep/big.bin").write_bytes(b"x" * 1000)
    commit(used, {"a.txt": "committed\n"})
    git(used, "checkout", "-q", "-b", "mine")


def _make_repository(used: Path) -> None:
    commit(repository(used / "inner"), {"x.txt": "x\n"})


def _remove_git(used: Path) -> None:
    for path in sorted((used / ".git").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (used / ".git").rmdir()
    (used / ".git").write_text("gitdir: /nowhere\n")


def _close_folders(used: Path) -> None:
    (used / "b/c.txt").chmod(0o600)
    (used / "b").chmod(0o500)


def _share_folder(used: Path) -> None:
    (used / "b").chmod(0o777)


def _link_folder(used: Path) -> None:
    (used / "b").rename(used / "moved")
    os.symlink(used.parents[4] / "outside", used / "b")


def _link_top(used: Path) -> None:
    used.rename(used.parent / "aside")
    os.symlink(used.parents[4] / "outside", used)


def _remove_all(used: Path) -> None:
    used.rename(used.parent / "aside")


def _hide_in_our_index(used: Path) -> None:
    (used / "a.txt").write_text("z\n")
    ours = used.parents[1]
    found = {"GIT_DIR": str(ours / "captures/1.git"), "GIT_WORK_TREE": str(used)}
    index = ours / f"{used.parent.name}.git.index"
    line = ["git", "update-index", "--skip-worktree", "a.txt"]
    subprocess.run(line, cwd=used, env={**os.environ, **found, "GIT_INDEX_FILE": str(index)}, check=True)


@pytest.mark.parametrize(
    "use",
    [
        _hide_in_our_index,
        _edit_and_hide, _commit_and_ignore, _make_repository, _remove_git, _close_folders, _share_folder, _link_folder,
        _link_top, _remove_all,
    ],
)  # fmt: skip
def test_a_used_clone_is_as_good_as_new(tmp_path: Path, processes: Processes, use: Callable[[Path], None]) -> None:
    """Whatever a task did in its clone, the next one finds the workspace, and the same of it as in a new clone."""
    top = repository(tmp_path / "repo")
    commit(top, {"a.txt": "a\n", "b/c.txt": "c\n", "d.log": "d\n"})
    (top / "b/new.txt").write_text("new\n")
    git(top, "add", "-A")
    (top / "b/new.txt").write_text("newer\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "c.txt").write_text("outside\n")
    with Workspace(str(top), str(tmp_path / "state"), processes, os.environ) as at:
        used = clone(processes, at)
        use(used)
        drive(processes, at.leave(ISOLATED, str(used)))
        at.next_wave()
        again, new = clone(processes, at), clone(processes, at)
        assert again == used
        for each in (again, new):
            assert tree(each) == tree(top)
            assert git(each, "status", "--porcelain", "-b") == "## HEAD (no branch)\nAM b/new.txt"
            assert git(each, "diff-files", "--name-only") == "b/new.txt"
            assert git(each, "for-each-ref") == git(top, "for-each-ref")
            modes = {
                path.relative_to(each): path.lstat().st_mode for path in each.rglob("*") if ".git" not in path.parts
            }
            assert modes == {
                path.relative_to(new): path.lstat().st_mode for path in new.rglob("*") if ".git" not in path.parts
            }
            assert {path.lstat().st_nlink for path in each.rglob("*") if path.is_file()} == {1}
    assert tree(outside) == {b"c.txt": ("file", b"outside\n")}


def test_a_used_clone_becomes_what_the_workspace_has_become(tmp_path: Path, processes: Processes) -> None:
    """Files that came, went or changed since; and when the workspace gets a repository of its own, a new clone."""
    top = repository(tmp_path / "repo")
    commit(top, {"a.txt": "a\n", "b/c.txt": "c\n"})
    with Workspace(str(top), str(tmp_path / "state"), processes, os.environ) as at:
        for change in ("edit", "remove", "add", "nested"):
            used = clone(processes, at)
            assert tree(used) == tree(top)
            (used / "of the task.txt").touch()
            drive(processes, at.leave(ISOLATED, str(used)))
            at.next_wave()
            if change == "edit":
                (top / "a.txt").write_text("b\n")
            elif change == "remove":
                (top / "b/c.txt").unlink()
            elif change == "add":
                commit(top, {"e/f.txt": "f\n"})
            else:
                commit(repository(top / "nested"), {"g.txt": "g\n"})
        assert tree(clone(processes, at)) == tree(top)


HOLDER = """\
import os, sys, time
from crucible.runtime.process import Processes
from crucible.runtime.workspace import Workspace
from test_workspace import clone
with Processes() as processes, Workspace(sys.argv[1], sys.argv[2], processes, os.environ) as at:
    print(clone(processes, at), flush=True)
    time.sleep(600)
"""


def test_leftovers_of_dead_runs_are_swept_and_those_of_living_ones_never(tmp_path: Path) -> None:
    """A start removes what a killed run left; what a neighbour works in stays."""
    top = repository(tmp_path / "repo")
    commit(top, {"a.txt": "a\n"})
    state = str(tmp_path / "state")
    here = str(Path(__file__).resolve().parent)
    line = [sys.executable, "-c", HOLDER, str(top), state]
    runs = [subprocess.Popen(line, stdout=subprocess.PIPE, cwd=here) for _ in range(2)]
    try:
        places = [Path(os.fsdecode(run.stdout.readline().rstrip(b"\n"))) for run in runs if run.stdout]
        assert len({place.parent.parent for place in places}) == 2
        runs[0].kill()
        runs[0].wait()
        assert (places[0] / "a.txt").exists()
        # Begun after the neighbours, which are not its children then.
        with Processes() as processes, Workspace(str(top), state, processes, os.environ) as at:
            assert not places[0].exists()
            assert (places[1] / "a.txt").exists()
            assert clone(processes, at) == places[0]
        assert (places[1] / "a.txt").exists()
        assert runs[1].poll() is None
    finally:
        for run in runs:
            run.kill()
            run.communicate()
    with Processes() as processes, Workspace(str(top), state, processes, os.environ):
        assert os.listdir(state) == [".gitignore"]


def test_a_sweep_follows_no_link(tmp_path: Path, processes: Processes) -> None:
    """A task that puts links where leftovers are looked for has nothing swept but the links."""
    outside = tmp_path / "outside"
    (outside / "1").mkdir(parents=True)
    (outside / "1/kept.txt").touch()
    state = tmp_path / "state"
    for links in ({"private": outside}, {"private/1": outside / "1"}):
        for name, target in links.items():
            (state / name).parent.mkdir(parents=True, exist_ok=True)
            os.symlink(target, state / name)
        with Workspace(str(tmp_path), str(state), processes, os.environ):
            pass
        assert list(tree(outside)) == [b"1/kept.txt"]


# Preparing


def prepared(processes: Processes, pack: Path, entries: Sequence[Entry] = (), **origin: Any) -> Workspace:
    """Prepare the workspace of a pack and return it, closed."""
    injects, faults = expand(entries, str(pack))
    assert faults == []
    with Workspace(str(pack / "workspace"), str(pack / "state"), processes, os.environ, injects) as at:
        at.prepare(Origin(str(pack), **origin), str(pack / "state/logs"))
    return at


def test_a_clone_of_a_repository_is_the_workspace(tmp_path: Path, processes: Processes) -> None:
    """The revision is checked out, the injects are put over it and committed; the source stays as it was."""
    source = repository(tmp_path / "source")
    commit(source, {"a.txt": "one\n", "gate.sh": "true\n"})
    git(source, "branch", "older")
    commit(source, {"a.txt": "two\n"})
    (tmp_path / "gate.sh").write_text("exit 1\n")
    (tmp_path / "gate.sh").chmod(0o755)
    before = fingerprint(source)
    at = prepared(processes, tmp_path, (Entry("gate.sh"),), path="source", ref="older")
    made = tmp_path / "workspace"
    assert tree(made) == {b"a.txt": ("file", b"one\n"), b"gate.sh": ("program", b"exit 1\n")}
    assert git(made, "status", "--porcelain") == ""
    assert at.base == git(made, "rev-parse", "HEAD")
    assert git(made, "rev-parse", "HEAD~1") == git(source, "rev-parse", "older")
    assert fingerprint(source) == before
    assert recorded_base(str(tmp_path / "state"), str(made)) == at.base


def test_the_baseline_is_the_same_commit_every_time(tmp_path: Path, processes: Processes) -> None:
    """It depends on the files only: not on the moment, nor on who the user is."""
    names = set()
    for pack in (tmp_path / "one", tmp_path / "two"):
        (pack / "files/sub").mkdir(parents=True)
        (pack / "files/a.txt").write_text("a\n")
        os.symlink("a.txt", pack / "files/link")
        (pack / "files/sub/run.sh").write_text("true\n")
        (pack / "files/sub/run.sh").chmod(0o755)
        names.add(prepared(processes, pack, path="files").base)
        assert tree(pack / "workspace") == tree(pack / "files")
        assert git(pack / "workspace", "status", "--porcelain") == ""
    assert len(names) == 1
    assert None not in names


def test_a_folder_that_is_no_repository_is_copied(tmp_path: Path, processes: Processes) -> None:
    """Files and links come along; git's own folders, the workspace and the state directory do not."""
    outer = repository(tmp_path)
    commit(outer, {"crucible.toml": "", "a.txt": "a\n", "sub/b.txt": "b\n"})
    pack = tmp_path / "pack"
    pack.mkdir()
    (pack / "b.txt").write_text("b\n")
    repository(pack / "inner")
    (pack / "inner/c.txt").write_text("c\n")
    os.mkfifo(pack / "pipe")
    prepared(processes, pack, path=".")
    made = pack / "workspace"
    assert tree(made) == {b"b.txt": ("file", b"b\n"), b"inner/c.txt": ("file", b"c\n")}
    assert git(made, "rev-parse", "--show-toplevel") == str(made)
    assert len(git(made, "log", "--format=%s").split("\n")) == 1


def test_an_empty_workspace_gets_the_injects(tmp_path: Path, processes: Processes) -> None:
    """One that git would ignore is part of the baseline as well."""
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "seed.log").write_text("seed\n")
    prepared(processes, tmp_path, (Entry(".gitignore"), Entry("seed.log", "data/[seed].log", frozen=False)))
    made = tmp_path / "workspace"
    assert git(made, "ls-files") == ".gitignore\ndata/[seed].log"


@pytest.mark.parametrize(
    ("script", "subjects"),
    [
        ("mkdir workspace && echo a >workspace/a.txt", ["baseline"]),
        ("mkdir workspace && cd workspace && git init -q && echo a >a.txt", ["baseline"]),
        ("cp -R source workspace", ["a change"]),
    ],
)
def test_a_setup_command_makes_the_tree(tmp_path: Path, processes: Processes, script: str, subjects: list[str]) -> None:
    """It runs beside the manifest; where it leaves no commit, the baseline is committed."""
    commit(repository(tmp_path / "source"), {"a.txt": "a\n"})
    (tmp_path / "gate.sh").write_text("true\n")
    at = prepared(processes, tmp_path, (Entry("gate.sh"),), setup_cmd=f"echo ready; {script}")
    made = tmp_path / "workspace"
    assert (made / "a.txt").read_text() == "a\n"
    assert (made / "gate.sh").exists()
    assert git(made, "log", "--format=%s").split("\n") == subjects
    assert at.base == git(made, "rev-parse", "HEAD")
    assert (tmp_path / "state/logs/setup.out").read_text() == "ready\n"


def test_a_setup_that_fails_is_refused_and_made_again(tmp_path: Path, processes: Processes) -> None:
    """What it left is no workspace; the next start begins anew."""
    script = "mkdir workspace; touch workspace/$(ls | wc -l); echo no good >&2; test -e fine"
    with pytest.raises(Refused, match="setup_cmd failed: exit 1: no good"):
        prepared(processes, tmp_path, setup_cmd=script)
    with pytest.raises(Refused, match="setup_cmd made no folder"):
        prepared(processes, tmp_path, setup_cmd="true")
    (tmp_path / "fine").touch()
    prepared(processes, tmp_path, setup_cmd=script)
    assert len(tree(tmp_path / "workspace")) == 1


def test_an_existing_workspace_is_used_as_it_is(tmp_path: Path, processes: Processes) -> None:
    """Nothing is set up, copied or committed in it; its commit becomes the baseline and stays it."""
    made = repository(tmp_path / "workspace")
    first = commit(made, {"a.txt": "a\n"})
    (made / "a.txt").write_text("edited\n")
    (tmp_path / "seed.txt").write_text("seed\n")
    before = fingerprint(made)
    injects, _ = expand((Entry("seed.txt", "seed.txt", frozen=False),), str(tmp_path))
    for _ in range(2):
        with Workspace(str(made), str(tmp_path / "state"), processes, os.environ, injects) as at:
            assert not at.prepare(Origin(str(tmp_path), setup_cmd="touch ran"), str(tmp_path / "logs"))
            assert at.base == first
    assert tree(made) == {b"a.txt": ("file", b"edited\n")}
    assert fingerprint(made) == before
    commit(made, {"a.txt": "b\n"})
    assert recorded_base(str(tmp_path / "state"), str(made)) == first


@pytest.mark.parametrize(
    ("origin", "message"),
    [
        ({"path": "nowhere"}, "which is no folder"),
        ({"path": "files", "ref": "main"}, "is not the top of a git repository"),
        ({"path": "source", "ref": "nowhere"}, "the workspace cannot be prepared: .*nowhere"),
        ({"path": "source", "ref": "--orphan"}, "is no revision"),
        ({"url": "file:///nowhere/at-all"}, "the workspace cannot be prepared: "),
    ],
)
def test_a_source_that_is_not_there_is_refused(
    tmp_path: Path, processes: Processes, origin: dict[str, str], message: str
) -> None:
    """The reason names it."""
    commit(repository(tmp_path / "source"), {"a.txt": "a\n"})
    (tmp_path / "files").mkdir()
    with pytest.raises(Refused, match=message):
        prepared(processes, tmp_path, (), **origin)


# Frozen injects


def _edit(gate: Path) -> None:
    gate.write_text("exit 0\n")


def _delete(gate: Path) -> None:
    gate.unlink()


def _replace_by_link(gate: Path) -> None:
    gate.unlink()
    os.symlink(gate.parents[2] / "outside/file.txt", gate)


def _replace_folder_by_link(gate: Path) -> None:
    gate.unlink()
    gate.parent.rmdir()
    os.symlink(gate.parents[2] / "outside", gate.parent)


def _replace_by_folder(gate: Path) -> None:
    gate.unlink()
    gate.mkdir()
    (gate / "full").mkdir()
    (gate / "full/file.txt").touch()
    (gate / "full").chmod(0o500)


def _replace_folder_by_file(gate: Path) -> None:
    gate.unlink()
    gate.parent.rmdir()
    gate.parent.write_text("in the way")


def _make_read_only(gate: Path) -> None:
    gate.write_text("exit 0\n")
    gate.chmod(0o400)
    gate.parent.chmod(0o500)


def _lock_folder(gate: Path) -> None:
    gate.chmod(0o000)
    gate.parent.chmod(0o000)


def _change_bits(gate: Path) -> None:
    gate.chmod(0o644)


def _link_hard(gate: Path) -> None:
    os.link(gate, gate.parents[1] / "another name")


def _replace_by_pipe(gate: Path) -> None:
    gate.unlink()
    os.mkfifo(gate)


TAMPER: list[Callable[[Path], None]] = [
    _edit, _delete, _replace_by_link, _replace_folder_by_link, _replace_by_folder, _replace_folder_by_file,
    _make_read_only, _lock_folder, _change_bits, _link_hard, _replace_by_pipe,
]  # fmt: skip


@pytest.mark.parametrize("tamper", TAMPER)
@pytest.mark.parametrize("kind", ["shared", "isolated"])
def test_a_frozen_file_is_back_before_the_next_task(
    tmp_path: Path, processes: Processes, kind: str, tamper: Callable[[Path], None]
) -> None:
    """Whatever a task does to it, the next one finds its bytes and permission bits; nothing outside is touched."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file.txt").write_text("outside\n")
    (tmp_path / "gate.sh").write_text("exit 1\n")
    (tmp_path / "gate.sh").chmod(0o755)
    entries = (Entry("gate.sh", "judge/gate.sh"), Entry("gate.sh", "seed.sh", frozen=False))
    injects, _ = expand(entries, str(tmp_path))
    task = SHARED if kind == "shared" else ISOLATED
    with Workspace(str(tmp_path / "workspace"), str(tmp_path / "state"), processes, os.environ, injects) as at:
        at.prepare(Origin(str(tmp_path)), str(tmp_path / "logs"))
        made = Path(at.folder)
        tamper(made / "judge/gate.sh")
        (made / "seed.sh").write_text("edited\n")
        folder = Path(drive(processes, at.enter(task)))
        gate = folder / "judge/gate.sh"
        status = gate.lstat()
        assert (stat.filemode(status.st_mode), status.st_nlink) == ("-rwxr-xr-x", 1)
        assert not gate.parent.is_symlink()
        assert gate.read_text() == "exit 1\n"
        assert (folder / "seed.sh").read_text() == "edited\n"
    assert tree(outside) == {b"file.txt": ("file", b"outside\n")}


def test_a_task_that_edits_the_source_of_a_frozen_file_changes_nothing(tmp_path: Path, processes: Processes) -> None:
    """What the files were when the run began counts, also where the workspace is the pack itself."""
    (tmp_path / "gate.sh").write_text("exit 1\n")
    injects, _ = expand((Entry("gate.sh"),), str(tmp_path))
    with Workspace(str(tmp_path), str(tmp_path / "state"), processes, os.environ, injects) as at:
        (tmp_path / "gate.sh").write_text("exit 0\n")
        drive(processes, at.enter(SHARED))
        assert (tmp_path / "gate.sh").read_text() == "exit 1\n"
        before = (tmp_path / "gate.sh").stat()
        drive(processes, at.enter(SHARED))
        after = (tmp_path / "gate.sh").stat()
        assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_frozen_file_that_git_ignores_is_in_every_clone(tmp_path: Path, processes: Processes) -> None:
    """A clone has no ignored files, but the injects it gets itself."""
    (tmp_path / "gate.log").write_text("gate\n")
    injects, _ = expand((Entry("gate.log"),), str(tmp_path))
    top = repository(tmp_path / "repo")
    commit(top, {".gitignore": "*.log\n"})
    with Workspace(str(top), str(tmp_path / "state"), processes, os.environ, injects) as at:
        assert (clone(processes, at) / "gate.log").read_text() == "gate\n"
        assert not (top / "gate.log").exists()


def test_a_workspace_that_is_replaced_by_a_link_is_refused(tmp_path: Path, processes: Processes) -> None:
    """Nothing is written where the link leads to."""
    (tmp_path / "gate.sh").write_text("exit 1\n")
    made = tmp_path / "workspace"
    made.mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    injects, _ = expand((Entry("gate.sh"),), str(tmp_path))
    with Workspace(str(made), str(tmp_path / "state"), processes, os.environ, injects) as at:
        made.rmdir()
        os.symlink(outside, made)
        with pytest.raises(Refused, match="frozen injects"):
            drive(processes, at.enter(SHARED))
    assert os.listdir(outside) == []


def test_a_source_that_is_gone_is_refused(tmp_path: Path, processes: Processes) -> None:
    """A run does not begin without its gate."""
    (tmp_path / "gate.sh").write_text("exit 1\n")
    injects, _ = expand((Entry("gate.sh"),), str(tmp_path))
    (tmp_path / "gate.sh").unlink()
    with (
        pytest.raises(Refused, match=r"gate\.sh cannot be injected: No such file"),
        Workspace(str(tmp_path), str(tmp_path / "state"), processes, os.environ, injects),
    ):
        pass
    assert os.listdir(tmp_path / "state") == [".gitignore"]

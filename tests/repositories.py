"""Git repositories for tests: written, committed, and looked at to see that nobody touched them."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_IDENTITY = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.com",
}


def git(directory: Path, *arguments: str, stdin: bytes = b"") -> str:
    """Run git and return what it prints, without the last line's end."""
    environment = {**os.environ, **_IDENTITY}
    done = subprocess.run(
        ["git", "-C", str(directory), *arguments], input=stdin, env=environment, capture_output=True, check=True
    )
    return done.stdout.decode(errors="surrogateescape").removesuffix("\n")


def repository(directory: Path) -> Path:
    """Make an empty repository."""
    directory.mkdir(parents=True, exist_ok=True)
    git(directory, "init", "-q", "-b", "main")
    return directory


def commit(directory: Path, files: Mapping[str, str | bytes | None] | None = None) -> str:
    """Write files, None to remove one, commit all there is, and return the commit's name."""
    for name, content in (files or {}).items():
        path = directory / name
        if content is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    git(directory, "add", "-A")
    git(directory, "commit", "-q", "--allow-empty", "-m", "a change")
    return git(directory, "rev-parse", "HEAD")


def state(directory: Path) -> object:
    """Return all that a command may not touch: files with inodes and times, index, refs and objects of a repository."""
    return {
        str(path): (path.lstat().st_ino, path.lstat().st_mtime_ns, path.lstat().st_size)
        for path in sorted(directory.rglob("*"))
    }

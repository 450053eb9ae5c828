"""The search for sources below a directory: what git ignores, hidden folders and links are passed over."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from crucible.cli.discover import discover
from crucible.compiler.frontend.limits import LIMITS


def plant(root: Path, *files: str, **ignores: str) -> Path:
    """Write empty files, and .gitignore files by the folder that they stand in, __ for a slash, top for the root."""
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for folder, text in ignores.items():
        path = root / ("" if folder == "top" else folder.replace("__", "/")) / ".gitignore"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def found(root: Path, start: str = ".") -> list[str]:
    """Return what is found below a folder, from there."""
    return [os.path.relpath(path, root / start) for path in discover(str(root / start)).files]


def test_every_source_and_manifest_is_found_in_the_order_of_the_paths(tmp_path: Path) -> None:
    """At whatever depth, by these two names alone."""
    plant(
        tmp_path, "workflow.star", "b/workflow.star", "b/crucible.toml", "a/x/y/crucible.toml", "a/lib.star", "c.star"
    )
    assert found(tmp_path) == ["a/x/y/crucible.toml", "b/crucible.toml", "b/workflow.star", "workflow.star"]


def test_hidden_folders_environments_and_links_are_passed_over(tmp_path: Path) -> None:
    """They hold copies, or what tools made, or lead round in circles; of a source that is one is told."""
    plant(
        tmp_path,
        ".git/workflow.star",
        ".venv/workflow.star",
        "env/pyvenv.cfg",
        "env/x/workflow.star",
        "p/workflow.star",
    )
    (tmp_path / "p" / "round").symlink_to(tmp_path)
    (tmp_path / "p" / "crucible.toml").symlink_to("nowhere")
    (tmp_path / "q" / "workflow.star").mkdir(parents=True)
    plant(tmp_path, "kept", ".git/HEAD", "r/kept", r="workflow.star\n")
    (tmp_path / "r" / "workflow.star").symlink_to("nowhere")
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "workflow.star").symlink_to("../p/workflow.star")
    (tmp_path / "s" / "crucible.toml").symlink_to("../kept")
    assert found(tmp_path) == ["p/workflow.star"]
    links = [f"{tmp_path}/p/crucible.toml", f"{tmp_path}/s/crucible.toml"]
    assert discover(str(tmp_path)).links == links, "but for one to a source that is found where it stands"
    assert found(tmp_path, ".venv") == ["workflow.star"]


def test_a_named_directory_is_searched_though_it_is_ignored(tmp_path: Path) -> None:
    """Who names it means it; what it ignores itself counts."""
    plant(tmp_path, ".git/HEAD", "build/p/workflow.star", "build/q/workflow.star", top="build/\n", build="q/\n")
    assert found(tmp_path) == []
    assert found(tmp_path, "build") == ["p/workflow.star"]


def test_without_a_repository_the_folders_above_are_not_asked(tmp_path: Path) -> None:
    """A .gitignore in somebody's home is none of a pack's."""
    plant(tmp_path, "p/workflow.star", top="*\n")
    assert found(tmp_path, "p") == ["workflow.star"]
    plant(tmp_path, ".git/HEAD", "p/q/workflow.star", top="q\n")
    assert found(tmp_path, "p") == ["workflow.star"]


def test_a_folder_that_cannot_be_listed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are searched all the same."""
    plant(tmp_path, "a/workflow.star", "b/workflow.star")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("/a"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert discover(str(tmp_path)) == ([f"{tmp_path}/b/workflow.star"], [(f"{tmp_path}/a", "Permission denied")], [])


TREE = [
    f"{folder}workflow.star"
    for folder in ("", "a/", "a/b/", "a/b/c/", "build/", "build/keep/", "x/build/", "x y/", "é/")
]
IGNORES: dict[str, dict[str, str]] = {
    "a folder": {"top": "build/\n"},
    "a folder at the top": {"top": "/build\n"},
    "a file everywhere": {"top": "workflow.star\n"},
    "a file at the top": {"top": "/workflow.star\n"},
    "a negation": {"top": "workflow.star\n!a/workflow.star\n"},
    "no way back into an ignored folder": {"top": "build/\n!build/keep/\n"},
    "a way back by a pattern of the content": {"top": "build/*\n!build/keep/\n"},
    "a deeper file": {"a": "b/\n"},
    "a deeper file against one above": {"top": "a/b/workflow.star\n", "a": "!b/workflow.star\n"},
    "stars": {"top": "**/b/**\n"},
    "one star": {"top": "a/*/workflow.star\n"},
    "a comment and blanks": {"top": "# a/\n\n  \nx y/\n"},
    "an escaped blank": {"top": "x\\ y\n"},
    "not ascii": {"top": "é/\n"},
    "carriage returns": {"top": "build/\r\na/\r\n"},
    "a class": {"top": "[ab]\n"},
    "a broken pattern": {"top": "a[\nbuild/\n!\n"},
    "a class that takes in a slash": {"top": "a[!x]b\n"},
    "a named class": {"top": "[[:alpha:]]/[[:alpha:]]/\n"},
    "a bracket in a class, and a range": {"top": "[]b-d]\n"},
    "a range that is none": {"top": "[c-a]\n"},
    "a class that is not known": {"top": "[[:letter:]b]\n"},
    "escapes": {"top": "\\b\nx\\ y\n\\[\n"},
    "a backslash at the end": {"top": "b\\\n"},
    "two stars that mean one": {"top": "bu**ld\n"},
    "two stars behind a name": {"top": "a**/c\n"},
    "two stars in between": {"top": "a/**/c\n"},
    "two stars at the end": {"top": "a/b/**\n"},
    "three stars": {"top": "***/c\n"},
    "question marks": {"top": "?/?/?\n"},
    "bytes, not characters": {"top": "??/\n"},
    "stars that meet": {"top": "*u*i*d\n"},
    "a mark": {"top": "\ufeffbuild\n"},
    "a folder that is a file": {"top": "workflow.star/\n"},
    "only a slash": {"top": "/\n//\n"},
}


@pytest.mark.skipif(shutil.which("git") is None, reason="git has the last word")
@pytest.mark.parametrize("ignores", IGNORES.values(), ids=IGNORES)
def test_what_is_found_is_what_git_would_take(tmp_path: Path, ignores: dict[str, str]) -> None:
    """The same patterns, read by git itself."""
    plant(tmp_path, *TREE, **ignores)
    git = ("git", "-c", "core.excludesFile=/dev/null", "-C", str(tmp_path))
    subprocess.run([*git, "init", "--quiet"], check=True)
    line = [*git, "ls-files", "-z", "--others", "--exclude-standard"]
    listed = subprocess.run(line, check=True, capture_output=True).stdout.decode().split("\0")
    assert found(tmp_path) == sorted(name for name in listed if name.endswith("workflow.star"))


SLOW = {
    "stars": ("*a" * 12 + "*b\n", "a" * 200),
    "stars in several components": ("*a*a*a*a*a*a/" * 8 + "b\n", "/".join(["a" * 40] * 8)),
    "folders at any depth": ("**/a/" * 40 + "b\n", "a/" * 39 + "c"),
    "stars behind each other": ("*" * 4000 + "b\n", "a" * 200),
}


@pytest.mark.parametrize(("pattern", "folder"), SLOW.values(), ids=SLOW)
def test_no_pattern_takes_longer_than_its_length_allows(tmp_path: Path, pattern: str, folder: str) -> None:
    """One that could be laid against a path in very many ways is not; else nobody would wait for this test."""
    plant(tmp_path, ".git/HEAD", f"{folder}/workflow.star", top=pattern)
    assert found(tmp_path) == [f"{folder}/workflow.star"]


def test_patterns_without_end_ignore_nothing(tmp_path: Path) -> None:
    """By their size where they hold together, and by the time for all: rather too much is searched than too little."""
    plant(tmp_path, "p/workflow.star", "q/workflow.star", "q/r/workflow.star", q="x\n" * 50, q__r="w*\n" * 50)
    everything = [f"{tmp_path}/{name}/workflow.star" for name in ("p", "q/r", "q")]
    assert discover(str(tmp_path), LIMITS._replace(ignore_bytes=150)) == (everything, [], [])
    assert discover(str(tmp_path)) == ([everything[0], everything[2]], [], [])
    plant(tmp_path, top="p\n")
    assert discover(str(tmp_path), LIMITS._replace(seconds=-1.0)) == (everything, [], [])
    (tmp_path / ".gitignore").unlink()
    (tmp_path / "elsewhere").write_text("p/\n")
    (tmp_path / ".gitignore").symlink_to("elsewhere")
    assert "p/workflow.star" in found(tmp_path), "git reads no link either"

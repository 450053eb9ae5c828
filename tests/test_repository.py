"""Names from the top of a repository: of the working directory's, else of the file's own."""

from pathlib import Path

import pytest

from crucible.cli.repository import from_top


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Make a repository with a pack in it, and another pack beside it."""
    top = tmp_path / "repository"
    (top / "packs" / "kernel").mkdir(parents=True)
    (tmp_path / "loose").mkdir()
    (top / ".git").mkdir()
    return top


@pytest.mark.parametrize("file", ["workflow.star", "./workflow.star", "../kernel/workflow.star"])
def test_a_file_is_named_from_the_top_wherever_one_stands(
    repository: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    """Relative names are those of the working directory."""
    monkeypatch.chdir(repository / "packs" / "kernel")
    assert from_top()(file) == "packs/kernel/workflow.star"
    assert from_top()(str(repository / "packs" / "w.star")) == "packs/w.star"
    monkeypatch.chdir(repository)
    assert from_top()("packs/kernel/workflow.star") == "packs/kernel/workflow.star"


def test_a_linked_worktree_has_a_top_too(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its .git is a file."""
    (repository / ".git").rmdir()
    (repository / ".git").write_text("gitdir: elsewhere\n")
    monkeypatch.chdir(repository / "packs")
    assert from_top()("w.star") == "packs/w.star"


def test_a_file_of_a_submodule_is_named_from_the_top_that_is_checked(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repository of the working directory is the one that a bot looks at."""
    (repository / "packs" / ".git").write_text("gitdir: elsewhere\n")
    monkeypatch.chdir(repository)
    assert from_top()("packs/kernel/workflow.star") == "packs/kernel/workflow.star"


def test_from_outside_a_file_is_named_from_its_own_repository(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the working directory has none."""
    monkeypatch.chdir(repository.parent)
    assert from_top()("repository/packs/w.star") == "packs/w.star"


def test_without_a_repository_the_working_directory_is_the_top(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what lies outside of the top keeps its absolute path."""
    monkeypatch.chdir(repository.parent)
    assert from_top()("loose/w.star") == "loose/w.star"
    monkeypatch.chdir(repository)
    assert from_top()("../loose/w.star") == str(repository.parent / "loose" / "w.star")


def test_a_name_that_only_begins_like_the_top_lies_outside(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """repository-2 is no part of repository."""
    monkeypatch.chdir(repository)
    assert from_top()("../repository-2/w.star") == f"{repository}-2/w.star"


def test_names_stay_as_they_are_when_the_working_directory_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no telling what they are relative to."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert from_top()("w.star") == "w.star"

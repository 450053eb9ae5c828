"""init: a first pack of each lane works as it is written, and nothing that is there is touched."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from manifests import Manifests, names_below

from crucible.compiler import init
from crucible.schemas.ir import LANES

ORCHESTRATORS = {"autoresearch": "loop"}


@pytest.fixture
def pack(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Manifests:
    """Return what runs commands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Manifests(tmp_path, capfd)


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("is_repository", [False, True])
def test_a_first_pack_works_at_once(lane: str, is_repository: bool, pack: Manifests) -> None:  # noqa: FBT001 - a case
    """It compiles, its block is not stale, it is admitted, checks without a warning, is drawn, linted and run."""
    if is_repository:
        subprocess.run(["git", "init", "--quiet", "."], check=True)
    assert pack.run("init", "--lane", lane).status == 0
    source, manifest = ("--file", "workflow.star"), ("--manifest", "crucible.toml")
    orchestrator = ORCHESTRATORS.get(lane, "runner")
    compiled = pack.run("plan", "compile-workflow", *source, *manifest, "--check", "--admit", orchestrator)
    assert (compiled.status, compiled.err) == (0, "")
    checked = pack.run("check", *manifest, "--json")
    assert (checked.status, checked.report["diagnostics"]) == (0, [])
    assert checked.report["exposure"] is not None
    assert checked.report["task_mode"] is False
    assert pack.run("plan", "render", *source).status == 0
    assert (pack.folder / "WORKFLOW.png").read_bytes().startswith(b"\x89PNG")
    assert pack.run("plan", "exposure", *manifest).status == 0
    if lane == "autoresearch":
        assert checked.report["probe"]["selftest"]["passed"] is True
        ran = pack.run("run", *manifest, "--iterations", "2", "--no-progress")
    else:
        ran = pack.run("plan", "run", *source, *manifest, "--no-progress")
    assert ran.status == 0, ran.err
    assert (pack.folder / "workspace").is_dir()
    linted = pack.run("lint", ".", "--deny", "warnings")
    assert (linted.status, linted.out) == (0, "2 files: no problems\n")


def test_the_first_lane_is_the_one_that_is_usual(pack: Manifests) -> None:
    """Without --lane the pack has a gate."""
    assert pack.run("init").status == 0
    assert names_below(pack.folder) == [".gitignore", "crucible.toml", "measure.sh", "method.md", "workflow.star"]
    assert os.access("measure.sh", os.X_OK)


@pytest.mark.parametrize("lane", LANES)
def test_it_says_what_to_type_next(lane: str, pack: Manifests) -> None:
    """Every file is named on standard output, and the commands are good to copy, whatever the folder is called."""
    told = pack.run("init", "--dir", "my packs/page", "--lane", lane)
    assert told.out.startswith("wrote my packs/page/c")
    commands = [line.strip() for line in told.err.split("\n") if line.startswith("  crucible ")]
    assert len(commands) == 4
    for command in commands:
        _, *words = shlex.split(command, comments=True)
        done = pack.run(*words)
        assert done.status == 0, done.err


@pytest.mark.parametrize("name", ["crucible.toml", "prompts/page.md", "workflow.star"])
@pytest.mark.parametrize("kind", ["file", "folder", "dead link"])
def test_nothing_is_overwritten_and_nothing_is_written_beside(name: str, kind: str, pack: Manifests) -> None:
    """Whatever stands at the place of one file, the folder stays as it was, and the file is named."""
    path = pack.folder / name
    path.parent.mkdir(exist_ok=True)
    if kind == "file":
        path.write_text("mine")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("nowhere")
    before = names_below(pack.folder)
    told = pack.run("init", "--lane", "custom")
    assert told.status == 2
    assert name in told.err
    assert names_below(pack.folder) == before
    assert kind != "file" or path.read_text() == "mine"


def test_all_that_is_in_the_way_is_named(pack: Manifests) -> None:
    """Whoever moves the files away does so once."""
    pack.write("mine", {"check.sh": "mine"})
    told = pack.run("init", "--lane", "custom")
    assert told.status == 2
    assert "already check.sh, crucible.toml;" in told.err


def test_what_was_written_goes_when_a_file_cannot_be(pack: Manifests) -> None:
    """A file where a folder should come: the pack is whole or not there."""
    (pack.folder / "prompts").write_text("mine")
    told = pack.run("init", "--lane", "custom")
    assert told.status == 2
    assert "already prompts" in told.err
    assert names_below(pack.folder) == ["prompts"]


def test_a_gitignore_of_ones_own_is_kept(pack: Manifests) -> None:
    """What a run makes is to be added by hand then, and it says so."""
    (pack.folder / ".gitignore").write_text("mine\n")
    told = pack.run("init")
    assert told.status == 0
    assert "workspace/" in told.err
    assert (pack.folder / ".gitignore").read_text() == "mine\n"


def test_a_lane_that_there_is_not_is_wrong_usage(pack: Manifests) -> None:
    """With the one that was likely meant; nothing is written."""
    told = pack.run("init", "--lane", "costum")
    assert told.status == 2
    assert 'did you mean "custom"?' in told.err
    assert names_below(pack.folder) == []


@pytest.mark.parametrize("folder", ["", "a\0b"])
def test_a_folder_that_cannot_be_is_wrong_usage(folder: str, pack: Manifests) -> None:
    """No traceback, and nothing is written."""
    assert pack.run("init", "--dir", folder).status == 2
    assert names_below(pack.folder) == []


def test_there_is_a_pack_for_every_lane_and_no_other() -> None:
    """One list of lanes."""
    assert sorted(path.name for path in (Path(init.__file__).parent / "starters").iterdir()) == sorted(LANES)
    with pytest.raises(KeyError):
        init.starter("../starters/custom")

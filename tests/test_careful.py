"""Files that a child can reach: whatever it puts in their place, nothing blocks and nothing is followed."""

import ast
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from process import crucible
from runs import STAND_IN, Runs, agent, command, write_plan

from crucible import runtime
from crucible.runtime import careful, harness, leftovers, prepare, stand_in


def _link_to_pipe(path: Path) -> None:
    os.mkfifo(f"{path}.pipe")
    path.symlink_to(f"{path}.pipe")


OTHERS: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "folder": os.mkdir,
    "link": lambda path: path.symlink_to(__file__),
    "link to a pipe": _link_to_pipe,
    "nothing": lambda _: None,
}


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Return what runs workflows in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Runs(tmp_path, capfd)


@pytest.mark.parametrize("kind", OTHERS)
def test_what_is_no_file_reads_as_nothing(tmp_path: Path, kind: str) -> None:
    """Each reader of a file that a task can replace says that there is nothing."""
    path = tmp_path / "workspace.json"
    OTHERS[kind](path)
    for read in (careful.read, lambda place: careful.end_of(place, 10, 10)):
        with pytest.raises(OSError, match=r"\w"):
            read(str(path))
    assert harness.read(str(path), 0) == harness.Story()
    assert leftovers.holder(str(path)) is None
    assert prepare.recorded_base(str(tmp_path), str(tmp_path)) is None


@pytest.mark.parametrize("kind", ["pipe", "link", "link to a pipe", "nothing"])
def test_a_file_is_written_anew_where_something_else_stands(tmp_path: Path, kind: str) -> None:
    """What a link leads to stays as it is."""
    path = tmp_path / "file"
    before = Path(__file__).read_bytes()
    OTHERS[kind](path)
    careful.write(str(path), b"text")
    assert not path.is_symlink()
    assert path.read_bytes() == b"text"
    assert Path(__file__).read_bytes() == before


def test_no_file_is_opened_in_any_other_way() -> None:
    """The runtime opens files through one module, with three kinds of exceptions that cannot block.

    The agent that stands in is no part of it: it may do what agents do.
    """
    bare = []
    for path in {*Path(next(iter(runtime.__path__))).glob("*.py")} - {Path(stand_in.__file__)}:
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "open":
                text = ast.unparse(call)
                if "opener=careful.opener" not in text and "'/proc/" not in text and "'x'" not in text:
                    bare.append(f"{path.name}: {text}")
    assert bare == []


def test_a_log_that_became_a_pipe_hangs_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither that of the turn itself, nor those of tasks to come, nor the files that the next turn is given."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n{STAND_IN} "$@"\nrm -f state/logs/*; mkfifo {{pipes}}\nexit 0\n')
    pipes = " ".join(f"state/logs/{name}" for name in (
        "001-a.attempt-1.out", "001-a.attempt-1.err", "002-b.attempt-1.prompt.md", "002-b.attempt-1.cost",
        "002-b.attempt-1.inputs.json", "003-c.attempt-1.out", "003-c.attempt-1.err",
    ))  # fmt: skip
    program.write_text(program.read_text().replace("{pipes}", pipes))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    write_plan(
        tmp_path,
        agent("a", "result {}", advisory=True),
        agent("b", "result {}", advisory=True),
        command("c", "true", advisory=True),
        command("d", "true"),
    )
    done = crucible("plan", "run", "--file", "plan.json", "--json", before=("timeout", "-k", "1", "60"))
    assert done.status == 0, done.err
    assert '"name": "d", "kind": "command", "status": "pass"' in done.out.decode()


def test_a_lock_that_became_a_pipe_is_told_plainly(run: Runs) -> None:
    """The next run does not wait for it."""
    run(command("a", "true"))
    os.mkfifo(run.folder / "state" / "lock")
    done = crucible("plan", "run", "--file", "plan.json", before=("timeout", "-k", "1", "60"))
    assert done.status == 2
    assert "lock: it is no regular file" in done.err.decode()


def test_a_log_of_the_setup_that_became_a_pipe_hangs_nobody(run: Runs) -> None:
    """The reason of a set-up that failed is read from it."""
    (run.folder / "crucible.toml").write_text(
        '[workspace]\nsetup_cmd = "rm state/logs/setup.err; mkfifo state/logs/setup.err; exit 3"\n'
    )
    path = write_plan(run.folder, command("a", "true"), lane="playbook")
    done = run.run("--file", path, "--manifest", "crucible.toml")
    assert done.status == 1
    assert "setup_cmd failed: exit 3" in done.err

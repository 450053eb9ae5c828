"""The agent that makes the edits of a list: as the loop runs it, in a folder, with an iteration in its environment."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = (sys.executable, "-P", "-m", "crucible.runtime.stand_in")


def turn(folder: Path, edits: str, iteration: int, *words: str) -> "subprocess.CompletedProcess[str]":
    """Have it make the edits of an iteration."""
    (folder / "edits.toml").write_text(edits)
    variables = {**os.environ, "CRUCIBLE_ITERATION": str(iteration), "CRUCIBLE_COST_FILE": str(folder / "cost")}
    return subprocess.run(
        (*COMMAND, *(words or ("edits.toml",))), cwd=folder, env=variables, capture_output=True, text=True, check=False
    )


def test_it_makes_the_edits_of_its_iteration_in_order(tmp_path: Path) -> None:
    """A text is replaced, a file is written with its folders, a command is run; what else stands there waits."""
    (tmp_path / "a.txt").write_text("one two\n")
    done = turn(
        tmp_path,
        """
[[edit]]
iteration = 1
file = "a.txt"
find = "two"
replace = "three"
say = "counting"
cost = 0.25
[[edit]]
iteration = 1
run = "cp a.txt b.txt"
cost = 0.5
[[edit]]
iteration = 2
file = "deep/er/c.txt"
replace = "new"
""",
        1,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "counting\n", "")
    assert (tmp_path / "b.txt").read_text() == "one three\n"
    assert float((tmp_path / "cost").read_text()) == 0.75
    assert not (tmp_path / "deep").exists()
    assert turn(tmp_path, (tmp_path / "edits.toml").read_text(), 2).returncode == 0
    assert (tmp_path / "deep" / "er" / "c.txt").read_text() == "new"
    assert turn(tmp_path, (tmp_path / "edits.toml").read_text(), 3).returncode == 0


@pytest.mark.parametrize(
    ("edits", "status", "said"),
    [
        ('[[edit]]\niteration = 1\nfile = "a"\nfind = "x"', 1, "a has 'x' 2 times, not once"),
        ('[[edit]]\niteration = 1\nfile = "none"\nfind = "x"', 1, "No such file"),
        ('[[edit]]\niteration = 1\nfil = "a"', 1, "an edit is a table [[edit]] with the keys"),
        ("edit = 3", 1, "an edit is a table [[edit]] with the keys"),
        ("[[edit]\n", 1, ""),
        ('[[edit]]\niteration = 1\nrun = "exit 75"', 75, ""),
        ('[[edit]]\niteration = 1\nrun = "kill $$"', 1, ""),
    ],
)
def test_an_edit_that_does_not_fit_is_said(tmp_path: Path, edits: str, status: int, said: str) -> None:
    """Nobody takes a list that is wrong for an agent that had no idea."""
    (tmp_path / "a").write_text("xx")
    done = turn(tmp_path, edits, 1)
    assert done.returncode == status
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_it_says_how_it_is_used(tmp_path: Path) -> None:
    """Without a list, or two of them, nothing is done."""
    assert turn(tmp_path, "", 1, "a", "b").returncode == 2
    assert "usage: python -m crucible.runtime.stand_in" in turn(tmp_path, "", 1, "a", "b").stderr

"""The packs under examples/: each is run as its README says, and fails where its input is broken."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from process import COMMAND

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
PACKS = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
PLANS = [name for name in PACKS if name != "faster"]
RUN = ("plan", "run", "--file", "workflow.star", "--manifest", "crucible.toml", "--no-progress")


class Example:
    """A copy of an example."""

    def __init__(self, name: str, folder: Path) -> None:
        self.folder = Path(shutil.copytree(EXAMPLES / name, folder / name))

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command in it, with the interpreter of the tests as the first python on PATH."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        variables = {**os.environ, "PATH": path}
        return subprocess.run(
            [*COMMAND, *words], cwd=self.folder, env=variables, capture_output=True, text=True, check=False
        )

    @property
    def report(self) -> dict[str, Any]:
        """Return the report of the last run."""
        report: dict[str, Any] = json.loads((self.folder / "state" / "report.json").read_text(encoding="utf-8"))
        return report

    def output(self, name: str) -> Any:
        """Return what the last run's task gave."""
        return next(task.get("output") for task in self.report["tasks"] if task["name"] == name)

    def statuses(self) -> dict[str, str]:
        """Return what became of the tasks."""
        return {task["name"]: task["status"] for task in self.report["tasks"]}


@pytest.mark.parametrize("name", PACKS)
def test_an_example_is_sound(name: str, tmp_path: Path) -> None:
    """It is linted and checked without a word, its block is not stale, and it says how it is run."""
    example = Example(name, tmp_path)
    assert example.run("lint", ".", "--deny", "warnings").returncode == 0
    stale = example.run("plan", "compile-workflow", "--file", "workflow.star", "--manifest", "crucible.toml", "--check")
    assert stale.returncode == 0, stale.stderr
    checked = json.loads(example.run("check", "--manifest", "crucible.toml", "--json").stdout)
    assert checked["diagnostics"] == []
    told = (example.folder / "README.md").read_text(encoding="utf-8")
    assert len(told.splitlines()) <= 25
    assert "--manifest crucible.toml" in told


@pytest.mark.parametrize("name", PLANS)
def test_an_example_runs_and_leaves_nothing_that_git_sees(name: str, tmp_path: Path) -> None:
    """The run is valid, and so is the next one, in the workspace as it is then."""
    example = Example(name, tmp_path)
    shutil.copy(EXAMPLES / ".gitignore", tmp_path)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q", "."), ("add", "-A"), ("commit", "-q", "-m", "all")):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    for _ in range(2):
        done = example.run(*RUN)
        assert done.returncode == 0, done.stderr
    status = subprocess.run(["git", "status", "--porcelain"], cwd=tmp_path, capture_output=True, check=True)
    assert status.stdout == b""


def test_the_flaky_test_is_found(tmp_path: Path) -> None:
    """The one that fails in some rounds, and no other."""
    example = Example("flaky-hunt", tmp_path)
    example.run(*RUN)
    report = example.output("report")
    assert report["rounds"] == 12
    assert list(report["flaky"]) == ["test_first"]
    assert report["broken"] == []


def test_the_notes_are_those_of_the_range(tmp_path: Path) -> None:
    """Parameters choose it; the epilogue has looked."""
    example = Example("release-notes", tmp_path)
    assert example.run(*RUN, "--param", "title=Version 2").returncode == 0
    notes = (example.folder / "workspace" / "NOTES.md").read_text(encoding="utf-8")
    assert notes == (
        "# Version 2\n\n## cli\n\n* --quiet\n* exit code 2 for wrong usage\n\n"
        "## docs\n\n* a page on errors\n\n## parser\n\n* say where a string ends\n"
    )
    assert example.statuses() == {"collect": "pass", "write": "pass", "check": "pass"}
    assert example.run(*RUN, "--param", "since=none").returncode == 1
    assert example.run(*RUN, "--param", "since=$(true)").returncode == 1


@pytest.mark.parametrize(
    ("edit", "failed"),
    [
        ("8,2026-01-08,3,de\n", {"duplicates": "more than once: 8"}),
        ("9,2026-01-08,-1,de\n", {"ranges": "out of range: 9"}),
        ("9,2026-01-08,5000,de\n", {"drift": "above the threshold 0.1"}),
    ],
)
def test_broken_data_is_stopped_and_named(edit: str, failed: dict[str, str], tmp_path: Path) -> None:
    """Nothing is published."""
    example = Example("data-gate", tmp_path)
    with (example.folder / "start" / "orders.csv").open("a", encoding="utf-8") as file:
        file.write(edit)
    assert example.run(*RUN).returncode == 1
    (name,) = failed
    statuses = example.statuses()
    assert (statuses[name], statuses["publish"]) == ("fail", "blocked")
    task = next(each for each in example.report["tasks"] if each["name"] == name)
    assert failed[name] in f"{task['note']} {task.get('output')}"
    assert not (example.folder / "workspace" / "orders.csv.gz").exists()


def test_the_panel_gives_its_verdict(tmp_path: Path) -> None:
    """With the advisory critic's remark, and without it when that one fails."""
    example = Example("panel-review", tmp_path)
    example.run(*RUN)
    remarks = example.output("verdict")["remarks"]
    assert [each.partition(":")[0] for each in remarks] == ["line 4", "line 7", "line 9"]
    (example.folder / "critic.py").write_text(
        (example.folder / "critic.py").read_text().replace('"types": (r"', '"tipes": (r"'), encoding="utf-8"
    )
    assert example.run(*RUN).returncode == 0
    assert example.statuses()["verdict-types"] == "fail"
    assert len(example.output("verdict")["remarks"]) == 2


def test_the_small_program_gets_faster_and_no_fraud_counts(tmp_path: Path) -> None:
    """Good ideas are kept, bad, broken and fraudulent ones are not, and the one that nobody answered is void."""
    example = Example("faster", tmp_path)
    done = example.run("run", "--manifest", "crucible.toml", "--retries", "0", "--no-progress")
    assert done.returncode == 0, done.stderr
    lines = (example.folder / "state" / "session.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [event for event in map(json.loads, lines) if event["kind"] == "row"]
    assert [row["decision"] for row in rows] == ["keep", "keep", *["discard"] * 7, "void", "keep"]
    assert [row["valid"] for row in rows[3:10]] == [False, True, True, False, True, False, False]
    assert rows[10]["best"] < rows[1]["best"] < rows[0]["best"]
    kept = (example.folder / "workspace" / "pairs.py").read_text(encoding="utf-8")
    assert "seen.get(target - number, 0)" in kept
    assert (example.folder / "workspace" / "judge.py").read_bytes() == (EXAMPLES / "faster" / "judge.py").read_bytes()

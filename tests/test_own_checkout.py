"""The author's own checkout as a workspace: what is theirs is refused or comes back, and never lost."""

import json
import os
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from process import COMMAND
from test_loop import Bench

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
KILL = 'if ! test -e ../killed; then touch ../killed; kill -KILL "$(cat state/lock)"; sleep 5; fi'


class Own(Bench):
    """A pack that is worked in as it is."""

    def __init__(self, pack: Path, capfd: pytest.CaptureFixture[str], agent: str = "") -> None:
        super().__init__(pack, capfd)
        self.manifest(agent=agent)
        text = (pack / "crucible.toml").read_text()
        text = text.replace('[repo]\npath = "start"', '[repo]\npath = "."\n[workspace]\ndir = "."')
        (pack / "crucible.toml").write_text(text.replace("../edits.toml", "edits.toml"))
        (pack / "start" / "reading").rename(pack / "reading")
        (pack / "start").rmdir()

    def commit(self) -> None:
        """Commit all of it."""
        for words in (("init", "-q", "."), ("add", "-A"), ("commit", "-q", "-m", "all")):
            subprocess.run([*GIT, *words], cwd=self.pack, check=True)

    def refused(self) -> str:
        """Run it, which is refused before anything is changed, and return what is said."""
        before = self.names()
        ran = self.run()
        assert (ran.status, self.names()) == (1, before)
        return ran.err

    def names(self) -> list[str]:
        """Return all that lies in it."""
        found = (path.relative_to(self.pack) for path in self.pack.rglob("*"))
        return sorted(str(path) for path in found if path.parts[0] not in {".git", "state"})


@pytest.fixture
def own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Own:
    """Return a checkout that scores 10 at the baseline."""
    return Own(tmp_path / "pack", capfd)


@pytest.mark.parametrize("name", ["RESULTS.md", "ESCALATION.json", "PLAN_TASK_RESULT.json"])
def test_a_file_of_the_authors_where_a_run_writes_is_refused(own: Own, name: str) -> None:
    """Whether it is committed or not."""
    own.agent({"score": 9})
    (own.pack / name).write_text("mine")
    own.commit()
    assert f"a run writes {name} there, which is not ours; move it away" in own.refused()
    assert (own.pack / name).read_text() == "mine"


def test_the_table_of_an_earlier_run_is_ours(own: Own) -> None:
    """Also the rest of one that somebody was killed at."""
    own.agent({"score": 9})
    own.commit()
    for text in ("", "# Res"):
        (own.pack / "RESULTS.md").write_text(text)
        assert own.run().status == 0
        subprocess.run([*GIT, "checkout", "-q", "."], cwd=own.pack, check=True)
    assert own.run().status == 0


def test_skills_of_the_authors_are_refused_where_a_toolbox_is_laid_out(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without one they stay where they are."""
    for agent, is_refused in (('toolbox_dir = "tools"', True), ("", False)):
        own = Own(tmp_path / f"pack{is_refused}", capfd, agent)
        for folder in ("tools", ".claude/skills"):
            (own.pack / folder).mkdir(parents=True)
            (own.pack / folder / "skill.md").write_text(folder)
        own.agent({"score": 9})
        own.commit()
        if is_refused:
            assert "a run writes .claude/skills there, which is not ours" in own.refused()
        else:
            assert own.run().status == 0
        assert (own.pack / ".claude" / "skills" / "skill.md").read_text() == ".claude/skills"


def test_what_no_state_can_have_is_refused(own: Own) -> None:
    """A pipe would be gone after the first restore."""
    own.agent({"score": 9})
    own.commit()
    os.mkfifo(own.pack / "pipe")
    assert '"pipe" is no file, folder or link' in own.refused()


def test_permission_bits_come_back(own: Own) -> None:
    """Those of files, of folders, and of empty folders; git knows one bit of them."""
    private, hollow = own.pack / "private", own.pack / "hollow"
    private.mkdir()
    hollow.mkdir()
    (private / "key").write_text("secret")
    modes = {private / "key": 0o600, private: 0o700, hollow: 0o710}
    for path, mode in modes.items():
        path.chmod(mode)
    own.agent("rm -r private hollow; exit 1", "chmod 777 private/key private hollow; exit 1")
    own.commit()
    assert own.run().decisions == ["keep", "discard", "discard"]
    assert {path: stat.S_IMODE(path.stat().st_mode) for path in modes} == modes


def test_what_lies_there_when_a_run_was_killed_is_put_aside(own: Own) -> None:
    """It may be the author's: the command that shows it is told, and the run goes on."""
    own.agent({"score": 9}, f'{KILL}; echo \'{{"valid": true, "score": 8}}\' > reading')
    own.commit()
    line = [*COMMAND, "run", "--manifest", "crucible.toml", "--iterations", "2", "--no-progress"]
    assert subprocess.run(line, cwd=own.pack, capture_output=True, check=False).returncode == -9
    (own.pack / "mine").write_text("written since\n")
    went = own.run("--resume")
    assert [event["decision"] for event in rows(own)] == ["keep", "keep", "keep"]
    assert not (own.pack / "mine").exists()
    told = next(line for line in went.err.splitlines() if "put aside: git" in line)
    shown = subprocess.run(shlex.split(told.partition("put aside: ")[2]), capture_output=True, text=True, check=True)
    assert "+written since" in shown.stdout


def rows(own: Own) -> list[dict[str, object]]:
    """Return the rows of all processes of a run."""
    lines = (own.pack / "state" / "session.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["kind"] == "row"]


def test_a_resume_that_was_refused_says_nothing_of_the_workspace(own: Own) -> None:
    """Who was killed before it left the workspace as it is, and the next one still restores it."""
    own.agent({"score": 9}, f'touch half; {KILL}; echo \'{{"valid": true, "score": 8}}\' > reading')
    own.commit()
    line = [*COMMAND, "run", "--manifest", "crucible.toml", "--iterations", "2", "--no-progress"]
    assert subprocess.run(line, cwd=own.pack, capture_output=True, check=False).returncode == -9
    with subprocess.Popen([sys.executable, "-c", HOLD, str(own.pack)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert own.run("--resume").status == 2
        other.kill()
    went = own.run("--resume")
    assert went.status == 0, went.err
    assert len(rows(own)) == 3


def test_what_an_earlier_run_kept_is_put_by(own: Own) -> None:
    """A new run forgets nothing: what it begins with is told with where the states are now."""
    own.agent({"score": 9})
    own.commit()
    assert own.run().decisions == ["keep", "keep"]
    subprocess.run([*GIT, "checkout", "-q", "."], cwd=own.pack, check=True)
    again = own.run()
    assert again.decisions == ["keep", "keep"]
    assert re.search(
        r"^what the run before kept is in \S*state/world-1\.git, as refs/crucible/kept$", again.err, re.MULTILINE
    )
    words = ["git", "--git-dir", "state/world-1.git", "show", "refs/crucible/kept/1:reading"]
    shown = subprocess.run(words, cwd=own.pack, capture_output=True, text=True, check=True)
    assert json.loads(shown.stdout)["score"] == 9


HOLD = """\
import fcntl, os, sys, time
folder = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(folder, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""

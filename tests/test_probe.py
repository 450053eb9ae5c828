"""Probes of real packs with real shells and git: what is measured, what is said, and that nothing is left."""

import hashlib
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from contract import contract
from repositories import commit, git, repository

from crucible.runtime import state as state_directory
from crucible.runtime import tree
from crucible.runtime.injects import Entry, expand
from crucible.runtime.judge import GATE_CHANGED, Reading
from crucible.runtime.prepare import Origin
from crucible.runtime.probe import Gate, Probed, Site, probe
from crucible.runtime.process import Processes
from crucible.runtime.workspace import Workspace, claim

MEASURE = """echo "{\\"valid\\": true, \\"score\\": $(cat n)}\""""
CHECK = Gate(MEASURE, "lower", "echo 3 > n", "echo 9 > n")


class Pack:
    """A pack in a folder, and the probes of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = "workspace"
        self.entries: tuple[Entry, ...] = ()

    def site(self, **origin: Any) -> Site:
        """Return where a run would work."""
        workspace, state = (os.path.normpath(self.folder / name) for name in (self.workspace, "state"))
        injects, faults = expand(self.entries, str(self.folder), (workspace, state))
        assert faults == []
        return Site(Origin(str(self.folder), **origin), workspace, state, injects)

    def __call__(self, gate: Gate, limit: tuple[float, str] | None = None, **origin: Any) -> Probed:
        """Probe a gate; whatever comes of it, the pack is as it was."""
        before = everything(self.folder)
        with Processes() as processes:
            processes.limit = limit
            found = probe(gate, self.site(**origin), os.environ, processes)
        assert everything(self.folder) == before
        return found


def everything(top: Path) -> dict[str, tuple[int, int, str]]:
    """Return mode, time and content of all that is below a folder."""
    found = {}
    for path in sorted(top.rglob("*")):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
        is_folder = stat.S_ISDIR(status.st_mode)
        found[str(path)] = (status.st_mode, 0 if is_folder else status.st_mtime_ns, content)
    return found


@pytest.fixture
def pack(tmp_path: Path) -> Pack:
    """Return a pack with a repository that its manifest names."""
    folder = tmp_path / "pack"
    commit(repository(folder / "origin"), {"n": "5\n", ".gitignore": "cache\n"})
    return Pack(folder)


def score(found: Probed) -> float | None:
    """Return the score that was measured; the protocol was kept."""
    assert (found.refusal, found.stopped, found.fault) == (None, None, None)
    assert found.measured is not None
    assert found.measured.reading is not None
    return found.measured.reading.score


# The workspace


def test_a_clone_is_measured_as_a_run_would_find_it(pack: Pack) -> None:
    """The base commit is that of the repository, or of the baseline with the injects."""
    found = pack(Gate(MEASURE, "lower"), path="origin")
    assert score(found) == 5
    assert found.selftest is None
    assert found.base == git(pack.folder / "origin", "rev-parse", "HEAD")
    (pack.folder / "extra.txt").write_text("1")
    pack.entries = (Entry("extra.txt"),)
    found = pack(Gate(f"cat extra.txt >&2 && {MEASURE}", "lower"), path="origin")
    assert score(found) == 5
    with (
        Processes() as processes,
        Workspace(
            str(pack.folder / "workspace"), str(pack.folder / "state"), processes, os.environ, pack.site().injects
        ) as workspace,
    ):
        workspace.prepare(Origin(str(pack.folder), path="origin"), str(pack.folder / "logs"))
        assert workspace.base == found.base


def test_the_pack_s_own_workspace_is_neither_used_nor_touched(pack: Pack) -> None:
    """What a run has left in it says nothing of the gate."""
    own = pack.folder / "workspace"
    own.mkdir()
    (own / "n").write_text("77")
    found = pack(CHECK, path="origin")
    assert score(found) == 5
    assert found.selftest is not None
    assert found.selftest.passed


def test_a_set_up_makes_its_workspace_in_the_copy(pack: Pack) -> None:
    """It runs in the manifest's directory, as it believes, and names the workspace."""
    (pack.folder / "tools").mkdir()
    (pack.folder / "tools" / "setup.sh").write_text("git clone -q origin workspace && touch here\n")
    (pack.folder / "workspace").mkdir()
    assert score(pack(CHECK, setup_cmd="sh tools/setup.sh")) == 5


def test_what_lies_beside_the_workspace_is_found_there(pack: Pack) -> None:
    """A measure command, and a control, outside of the workspace: the agent cannot edit them."""
    (pack.folder / "measure.sh").write_text(MEASURE)
    (pack.folder / "controls").mkdir()
    (pack.folder / "controls" / "good").write_text("1\n")
    (pack.folder / "controls" / "bad").write_text("2\n")
    found = pack(Gate("sh ../measure.sh", "lower", "cp ../controls/good n", "cp ../controls/bad n"), path="origin")
    assert score(found) == 5
    assert found.selftest is not None
    assert found.selftest.passed


@pytest.mark.parametrize("workspace", ["workspace", "deep/in/the/pack", "../beside", "../../far/away"])
def test_the_workspace_lies_to_the_pack_as_its_own_does(tmp_path: Path, workspace: str) -> None:
    """A script that goes from itself to the workspace arrives, by the real path as well."""
    folder = tmp_path / "top" / "pack"
    commit(repository(folder / "origin"), {"n": "5\n"})
    pack = Pack(folder)
    pack.workspace = workspace
    script = f'import pathlib; print(pathlib.Path(__file__).resolve().parent.joinpath("{workspace}", "n").read_text())'
    (folder / "read.py").write_text(script)
    up = os.path.relpath("/p", os.path.join("/p", workspace)) if not workspace.startswith("..") else None
    place = up or os.path.relpath(folder, folder / workspace)
    program = f"{sys.executable} {place}/read.py"
    measure = f'echo "{{\\"valid\\": true, \\"score\\": $({program})}}"'
    found = pack(Gate(measure, "higher", "echo 9 > n", "echo 3 > n"), path="origin")
    assert score(found) == 5
    assert found.selftest is not None
    assert found.selftest.passed


def test_what_the_repository_around_the_pack_has_is_found_there(tmp_path: Path) -> None:
    """Tools for many packs, from the set-up and from the workspace."""
    top = repository(tmp_path / "top")
    commit(top, {"tools/setup.sh": "mkdir workspace && echo 5 > workspace/n", "tools/measure.sh": MEASURE, "n": "9"})
    (top / "packs" / "one").mkdir(parents=True)
    (top / "packs" / "two").mkdir()
    pack = Pack(top / "packs" / "one")
    found = pack(CHECK._replace(measure_cmd="sh ../../../tools/measure.sh"), setup_cmd="sh ../../tools/setup.sh")
    assert score(found) == 5
    assert found.selftest is not None
    assert found.selftest.passed
    assert score(pack(Gate(f"test -d ../../two && {MEASURE}", "lower"), setup_cmd="sh ../../tools/setup.sh")) == 5
    before = git(top, "rev-parse", "HEAD"), git(top, "status", "--porcelain")
    clone = 'git clone -q "$(git rev-parse --show-toplevel)" workspace'
    assert score(pack(Gate(MEASURE, "lower"), setup_cmd=clone)) == 9
    assert (git(top, "rev-parse", "HEAD"), git(top, "status", "--porcelain")) == before


def test_a_workspace_that_is_a_link_is_not_followed(pack: Pack) -> None:
    """What it leads to is the pack's own workspace."""
    own = pack.folder.parent / "disk"
    own.mkdir()
    (pack.folder / "workspace").symlink_to(own)
    found = pack(CHECK, setup_cmd="mkdir -p workspace && echo 5 > workspace/n")
    assert score(found) == 5
    assert list(own.iterdir()) == []
    assert score(pack(CHECK, path="origin")) == 5


def test_a_worktree_of_git_is_copied_without_what_leads_to_its_repository(tmp_path: Path) -> None:
    """What git changes in the copy would be changed in the author's repository."""
    top = repository(tmp_path / "top")
    commit(top, {"n": "5\n", ".gitignore": "state\n"})
    folder = tmp_path / "tree"
    git(top, "worktree", "add", "-q", str(folder))
    (folder / "n").write_text("6\n")
    pack = Pack(folder)
    pack.workspace = "."
    index = (top / ".git" / "worktrees" / "tree" / "index").read_bytes()
    assert score(pack(Gate(f"git add n; git reset -q --hard; {MEASURE}", "lower"), path=".")) == 6
    assert (top / ".git" / "worktrees" / "tree" / "index").read_bytes() == index


def test_a_workspace_that_has_the_manifest_is_copied_as_it_stands(tmp_path: Path) -> None:
    """Uncommitted and ignored files and commits included; what git does there is done to the copy."""
    folder = repository(tmp_path / "pack")
    base = commit(folder, {"n": "5\n", ".gitignore": "cache\nstate\n"})
    (folder / "n").write_text("6\n")
    (folder / "cache").write_text("kept")
    pack = Pack(folder)
    pack.workspace = "."
    gate = Gate(f"test -e cache && {MEASURE}", "lower", "git checkout -q n", "git stash -q; echo 7 > n")
    found = pack(gate, path=".")
    assert score(found) == 6
    assert found.base == base
    assert found.selftest is not None
    assert [found.selftest.good.mean, found.selftest.bad.mean] == [5, 7]


def test_git_never_reaches_the_repository_around_the_copy(tmp_path: Path) -> None:
    """A workspace in a folder of a repository, or in a worktree of another: its git directory is not ours."""
    top = repository(tmp_path / "top")
    commit(top, {"pack/n": "5\n", "pack/.gitignore": "state\n"})
    git(top, "worktree", "add", "-q", str(tmp_path / "tree"))
    for folder in (top / "pack", tmp_path / "tree" / "pack"):
        (folder / "n").write_text("6\n")
        pack = Pack(folder)
        pack.workspace = "."
        before = git(folder, "status", "--porcelain"), (top / ".git" / "index").read_bytes()
        found = pack(Gate(f"git reset -q --hard; {MEASURE}", "lower"), path=".")
        assert score(found) == 6
        assert (git(folder, "status", "--porcelain"), (top / ".git" / "index").read_bytes()) == before


def test_an_empty_workspace_is_measured_too(pack: Pack) -> None:
    """A playbook has no repository."""
    assert score(pack(Gate("""test -z "$(ls)" && echo '{"valid": true, "score": 1}'""", "lower"))) == 1


def test_a_copied_repository_is_without_what_a_run_leaves_out(tmp_path: Path) -> None:
    """The pack itself as the path, no repository: its own workspace and state are no part of it."""
    folder = tmp_path / "pack"
    for name in ("n", "workspace/old", "state/old"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("5\n")
    (folder / "state" / ".gitignore").write_text("*\n")
    found = Pack(folder)(Gate(f"ls >&2; test ! -e workspace -a ! -e state && {MEASURE}", "lower"), path=".")
    assert score(found) == 5


def test_what_cannot_be_read_or_copied_is_passed_over(pack: Pack) -> None:
    """Pipes, and files of others: no command could use them either."""
    os.mkfifo(pack.folder / "pipe")
    (pack.folder / "closed").write_text("x")
    (pack.folder / "closed").chmod(0)
    with_pipe = Gate(MEASURE, "lower")
    with Processes() as processes:
        found = probe(with_pipe, pack.site(path="origin"), os.environ, processes)
    assert score(found) == 5


@contract("§1", "then commits the result as the baseline")
def test_frozen_files_are_put_back_before_every_measurement(pack: Pack) -> None:
    """A control that edits one does not reach the gate; one that changes it while it measures is found out."""
    (pack.folder / "gate.sh").write_text(MEASURE)
    pack.entries = (Entry("gate.sh"),)
    found = pack(Gate("sh gate.sh", "lower", "echo 3 > n", "echo 'exit 1' > gate.sh; echo 9 > n"), path="origin")
    assert found.selftest is not None
    assert found.selftest.passed
    found = pack(Gate("sh gate.sh; echo >> gate.sh", "lower"), path="origin")
    assert found.fault == GATE_CHANGED


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        ({"setup_cmd": "echo no >&2; exit 3"}, "setup_cmd failed: exit 3: no"),
        ({"setup_cmd": "true"}, "setup_cmd made no folder "),
        ({"path": "nowhere"}, "which is no folder"),
        ({"path": "origin", "ref": "nowhere"}, "the workspace cannot be prepared: "),
    ],
)
def test_a_workspace_that_cannot_be_made_is_a_refusal(pack: Pack, origin: dict[str, Any], said: str) -> None:
    """Nothing is measured then, and nothing is left either."""
    found = pack(CHECK, **origin)
    assert found.refusal is not None
    assert said in found.refusal
    assert found == Probed(refusal=found.refusal)


def test_a_state_directory_of_somebody_else_is_a_refusal(pack: Pack) -> None:
    """Nothing is written there."""
    (pack.folder / "state").mkdir()
    (pack.folder / "state" / "thesis.txt").write_text("mine")
    found = pack(CHECK, path="origin")
    assert found.refusal is not None
    assert "is no state directory of ours" in found.refusal


def test_a_source_that_has_gone_is_a_refusal(pack: Pack) -> None:
    """Between looking for the injects and reading them."""
    (pack.folder / "gone.txt").write_text("x")
    pack.entries = (Entry("gone.txt"),)
    site = pack.site(path="origin")
    (pack.folder / "gone.txt").unlink()
    with Processes() as processes:
        found = probe(CHECK, site, os.environ, processes)
    assert found.refusal is not None
    assert "gone.txt cannot be injected: No such file" in found.refusal


def test_a_pack_that_is_too_deep_is_a_refusal(pack: Pack) -> None:
    """Whether the system or we give up first; what was copied by then is removed."""
    with tree.opened(str(pack.folder)) as top:
        here = os.dup(top)
        for _ in range(1_200):
            os.mkdir("deep", dir_fd=here)
            inner = os.open("deep", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = inner
        os.close(here)
        with Processes() as processes:
            found = probe(CHECK, pack.site(path="origin"), os.environ, processes)
        tree.remove(top, "deep")
    assert found.refusal is not None
    assert not (pack.folder / "state").exists()


# The gate


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("echo hello", 'no line of its output begins with "{"'),
        ("echo '{}'", 'the reading has no "valid"'),
        ("exit 4", "exit 4"),
        ("./none.sh", "exit 127: it was not found"),
        ("kill -TERM $$", "ended by SIGTERM"),
    ],
)
def test_a_gate_that_cannot_be_read_is_a_fault(pack: Pack, command: str, fault: str) -> None:
    """The controls are not tried then."""
    found = pack(Gate(command, "lower", "touch ../good", "touch ../bad"), path="origin")
    assert found.fault is not None
    assert fault in found.fault
    assert found.selftest is None
    assert found.base is not None


def test_an_invalid_reading_keeps_the_protocol(pack: Pack) -> None:
    """A pristine workspace need not be valid; the controls are tried."""
    gate = Gate(f'grep -q 5 n && echo \'{{"valid": false, "note": "raw"}}\' || {MEASURE}', *CHECK[1:])
    found = pack(gate, path="origin")
    assert found.fault is None
    assert found.measured is not None
    assert found.measured.reading == Reading(valid=False, note="raw")
    assert found.selftest is not None
    assert found.selftest.passed


# The self-test


@contract("§1.1", "[judge.selftest] declares two controls the gate must tell apart before it's trusted.")
@contract("§1.1", "good's mean score is strictly better than bad's per [judge].direction")
@contract("§1.1", "pass iff both controls' readings are all valid")
@pytest.mark.parametrize(
    ("direction", "good", "bad", "passed"),
    [("lower", 3, 9, True), ("lower", 9, 3, False), ("higher", 9, 3, True), ("higher", 3, 9, False),
     ("lower", 3, 3, False), ("higher", 3, 3, False), ("lower", 3, "3.0000000001", True), ("lower", -1, 0, True)],
)  # fmt: skip
def test_the_good_control_is_to_be_strictly_better(
    pack: Pack,
    direction: str,
    good: float,
    bad: float,
    passed: bool,  # noqa: FBT001 - an expectation
) -> None:
    """In the direction of the judge."""
    found = pack(Gate(MEASURE, direction, f"echo {good} > n", f"echo {bad} > n"), path="origin").selftest
    assert found is not None
    assert found.passed is passed
    assert (found.good.mean, found.bad.mean) == (float(good), float(bad))
    if not passed:
        assert found.why == (
            f"the gate does not tell them apart: the good control has a mean score of {good}, the bad one of {bad}; "
            f"the good one's is to be strictly {direction}"
        )
    else:
        assert not found.why


COUNTING = 'c=$(cat c 2>/dev/null || echo 0); echo $((c + 1)) > c; set -- $(cat n); shift "$c"; '
COUNTING += 'echo "{\\"valid\\": true, \\"score\\": $1}"'


@contract("§1", "measurements averaged per control")
@pytest.mark.parametrize(
    ("good", "bad", "means"),
    [("1 2 6", "4 4 4", (3, 4)), ("9 9 0", "6 6 6", (6, 6)), ("0.1 0.1 0.1", "0.1 0.1 0.1", (0.1, 0.1)),
     ("1e308 1e308 1e308", "9 9 9", (1e308, 9)), ("0.1 0.2 0.3", "0.3 0.2 0.1", (0.2, 0.2))],
)  # fmt: skip
def test_the_mean_of_the_runs_decides(pack: Pack, good: str, bad: str, means: tuple[float, float]) -> None:
    """Each control is measured as often as it says, exactly, in one staging."""
    gate = Gate(COUNTING, "lower", f"echo {good} > n", f"echo {bad} > n", 3)
    found = pack(gate._replace(measure_cmd=COUNTING.replace("$(cat n)", "$(cat n)")), path="origin").selftest
    assert found is not None
    assert [len(each.measured) for each in found[:2]] == [3, 3]
    assert (found.good.mean, found.bad.mean) == means
    assert found.passed is (means[0] < means[1])


@contract("§1.1", "restore to pristine, stage good_cmd, measure runs times through the domain's own Judge, restore")
@pytest.mark.parametrize(
    "mess",
    ["rm -rf .git", "git checkout -q -b other; git rm -q n; git -c user.name=a -c user.email=b commit -q -m x",
     "mkdir -p a/b/c; chmod 0 a", "rm n; ln -s /etc/passwd n", "cd ..; rm -rf workspace",
     "cd ..; mv workspace away; ln -s away workspace", "cd ..; rm -rf workspace; touch workspace",
     "touch cache; echo cache > .git/info/exclude", "chmod 555 .", "mkdir -p $(seq -s / 1 300)"],
)  # fmt: skip
def test_every_control_begins_with_the_pristine_workspace(pack: Pack, mess: str) -> None:
    """Whatever the one before has made of it; ignored files, git's own and the bits of the folder included."""
    look = 'test -z "$(git status --porcelain)" -a ! -e cache -a "$(git log --oneline | wc -l)" = 1'
    look += ' -a "$(cat n)" = 5'
    gate = Gate(f"{look} || echo broken >&2; {MEASURE}", "lower", f"{look} && echo 3 > n", f"{look} && echo 9 > n")
    messy = gate._replace(measure_cmd=f"{MEASURE}; {mess}; exit 0")
    found = pack(messy, path="origin")
    assert found.selftest is not None, found
    assert found.selftest.why == ""
    assert found.selftest.passed


def test_the_bits_of_the_workspace_and_the_times_of_its_files_are_restored(pack: Pack) -> None:
    """What builds by times builds nothing again that has not changed."""
    look = '{ ls -ld .; find n -newer ../marker; } | tee ../seen | grep -q "^drwx------" && test $(wc -l < ../seen) = 1'
    gate = CHECK._replace(good_cmd=f"{look} && echo 3 > n", bad_cmd=f"{look} && echo 9 > n")
    setup = "mkdir -m 700 workspace; echo 5 > workspace/n; sleep 0.02; touch marker"
    found = pack(gate._replace(measure_cmd=f"touch n; chmod 755 .; {MEASURE}"), setup_cmd=setup).selftest
    assert found is not None
    assert found.why == ""


@contract("§1.1", "pass iff both controls' readings are all valid")
@pytest.mark.parametrize(
    ("gate", "why"),
    [
        (CHECK._replace(good_cmd="echo no >&2; exit 2"), "good_cmd failed: exit 2: no"),
        (
            CHECK._replace(good_cmd="exit 2", bad_cmd="exit 3"),
            "good_cmd failed: exit 2; bad_cmd failed: exit 3",
        ),
        (CHECK._replace(good_cmd="echo null > n"), "the good control has no valid reading: score is null"),
        (CHECK._replace(bad_cmd="rm n"), "the bad control has no valid reading: a measure command prints"),
        (
            CHECK._replace(measure_cmd=f"test $(cat n) = 9 && exit 7; {MEASURE}", runs=2),
            "measurement 1 of the bad control has no valid reading: exit 7",
        ),
    ],
)
def test_a_control_that_is_not_valid_fails_the_self_test(pack: Pack, gate: Gate, why: str) -> None:
    """Both sides are tried, and all that is wrong is said."""
    found = pack(gate, path="origin").selftest
    assert found is not None
    assert not found.passed
    assert found.why.startswith(why)
    assert None in {found.good.mean, found.bad.mean}


def test_processes_that_a_control_leaves_do_not_reach_the_next(pack: Pack) -> None:
    """They are ended with it, and so cannot write later."""
    late = "(setsid sh -c 'sleep 0.5; echo 99 > n' &) ; echo 3 > n"
    found = pack(CHECK._replace(good_cmd=late, measure_cmd=f"sleep 0.3; {MEASURE}", runs=2), path="origin").selftest
    assert found is not None
    assert (found.good.mean, found.bad.mean) == (3, 9)


# Ends


@contract("§1.1", "The workspace is restored to pristine on every exit path (pass, fail, or error).")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("slow", ["measure_cmd", "good_cmd", "setup_cmd"])
def test_a_signal_stops_it_and_leaves_nothing(pack: Pack, slow: str, number: int) -> None:
    """Whatever is running: the set-up, a control or the gate."""
    started = pack.folder.parent / "started"
    wait = f"touch {started}; sleep 600"
    origin: dict[str, Any] = {"setup_cmd": f"mkdir workspace; {wait}"} if slow == "setup_cmd" else {"path": "origin"}
    slowed: dict[str, Any] = {} if slow == "setup_cmd" else {slow: wait}
    gate = CHECK._replace(**slowed)

    def stop() -> None:
        while not started.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    before = signal.signal(number, signal.SIG_DFL)  # in the background of a script, keys are ignored
    try:
        thread = threading.Thread(target=stop)
        thread.start()
        found = pack(gate, **origin)
        thread.join()
    finally:
        signal.signal(number, before)
    assert found.stopped == "interrupted"
    assert (found.refusal, found.selftest) == (None, None)


def test_a_limit_stops_it(pack: Pack) -> None:
    """The moment that the caller has set."""
    found = pack(Gate("sleep 600", "lower"), (time.monotonic() + 0.3, "the time is up"), path="origin")
    assert found.stopped == "the time is up"
    found = pack(CHECK, (time.monotonic() - 1, "the time is up"), path="origin")
    assert found == Probed(stopped="the time is up")


def test_what_dead_probes_left_is_removed_and_the_living_are_let_be(pack: Pack) -> None:
    """A folder that is locked stays, with all that is in it."""
    state = pack.folder / "state"
    state_directory.take(str(state))
    mine, descriptor = claim(str(state))
    try:
        Path(mine, "file").write_text("mine")
        dead = state / "private" / "7"
        (dead / "copy").mkdir(parents=True)
        (dead / "copy").chmod(0)
        with Processes() as processes:
            assert score(probe(CHECK, pack.site(path="origin"), os.environ, processes)) == 5
        assert [path.name for path in (state / "private").iterdir()] == [Path(mine).name]
        assert Path(mine, "file").read_text() == "mine"
    finally:
        os.close(descriptor)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux tells what others have in theirs")
def test_what_a_killed_probe_left_running_is_ended(pack: Pack, tmp_path: Path) -> None:
    """Its folder is removed after its processes are gone: they would go on writing."""
    started = tmp_path / "started"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(pack.folder), str(started)]) as process:
        while not (started.exists() and started.read_text()):
            time.sleep(0.01)
        process.kill()
    sleeper = int(started.read_text())
    os.kill(sleeper, 0)
    with Processes() as processes:
        assert score(probe(CHECK, pack.site(path="origin"), os.environ, processes)) == 5
    with pytest.raises(ProcessLookupError):
        for _ in range(200):  # until whoever adopted it has buried it
            os.kill(sleeper, 0)
            time.sleep(0.02)
    assert not (pack.folder / "state").exists()


KILLED = """
import os, sys
from crucible.runtime.probe import *
from crucible.runtime.prepare import Origin
from crucible.runtime.process import Processes
folder, started = sys.argv[1:]
site = Site(Origin(folder, path="origin"), f"{folder}/workspace", f"{folder}/state")
with Processes() as processes:
    probe(Gate(f"echo $$ > {started}; sleep 600; :", "lower"), site, os.environ, processes)
"""


@pytest.fixture(autouse=True)
def _no_process_is_left() -> Iterator[None]:
    """Check that no child of a test runs on."""
    yield
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@pytest.mark.parametrize("kind", ["empty", "link", "tracked"])
def test_a_state_directory_that_was_there_stays(
    pack: Pack, kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """An empty one, one that a link leads to, one with no more than what git ignores: all are the author's."""
    state = pack.folder / "state"
    if kind == "link":
        state.symlink_to(tmp_path_factory.mktemp("elsewhere"))
    else:
        state.mkdir()
    if kind == "tracked":
        (state / ".gitignore").write_text("*\n")
    assert score(pack(CHECK, path="origin")) == 5
    assert state.is_dir()


def test_a_link_into_the_pack_leads_into_the_copy(pack: Pack) -> None:
    """So does what is called .git: a gate that commits or writes by it changes nothing of the author's."""
    subprocess.run(["git", "init", "-q", str(pack.folder / "aside")], check=True)
    (pack.folder / ".git").symlink_to(pack.folder / "aside" / ".git")
    (pack.folder / "real").mkdir()
    (pack.folder / "real" / "x").write_text("1")
    (pack.folder / "way").symlink_to(pack.folder / "real")
    gate = Gate('echo 2 >../way/x; echo \'{"valid": true, "score": 1}\'; git -C .. config a.b c', "lower")
    pack(gate, path="origin")
    assert not os.path.exists(pack.folder / "workspace")


def test_a_git_directory_elsewhere_is_not_written_to(pack: Pack, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What is called .git may be a link out of the pack; the copy has none."""
    outside = tmp_path_factory.mktemp("outside")
    subprocess.run(["git", "init", "-q", str(outside)], check=True)
    (pack.folder / ".git").symlink_to(outside / ".git")
    before = everything(outside)
    pack(Gate('git -C .. config a.b c; echo \'{"valid": true, "score": 1}\'', "lower"), path="origin")
    assert everything(outside) == before

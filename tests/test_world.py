"""States of the world: what a snapshot has, what a restore brings back, and what a domain has beside it."""

import json
import os
import shutil
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from process import COMMAND
from test_loop import LOOP, Bench

from crucible.runtime.process import Processes
from crucible.runtime.world import GitWorld, Lost, Unkept, known
from crucible.schemas import registry


@pytest.fixture
def bench(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Bench:
    """Return a pack that scores 10 at the baseline."""
    return Bench(tmp_path / "pack", capfd)


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    """Return what runs git."""
    with Processes() as running:
        yield running


# Any tree

NAMES = st.sampled_from(["a", "b c", "d", "e.log", "cache", "ü", "-x", ":y", "*"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CONTENTS = st.sampled_from(["", "one\n", "two\r\n", "$Id$\n", "\x00\x01"])
EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), PATHS, CONTENTS),
        st.tuples(st.just("link"), PATHS, st.sampled_from(["a", "/etc", "nowhere"])),
        st.tuples(st.just("folder"), PATHS, st.just("")),
        st.tuples(st.just("remove"), PATHS, st.just("")),
        st.tuples(st.just("mode"), PATHS, st.sampled_from(["755", "644"])),
        st.tuples(st.just("ignore"), PATHS, st.sampled_from(["*\n", "!a\n", "cache/\n*.log\n", "/d\n", "b c\n"])),
    ),
    max_size=8,
)


def edit(top: Path, edits: list[tuple[str, str, str]]) -> None:
    """Do to a tree what can be done to it."""
    for what, path, more in edits:
        at = top / path
        try:
            if what == "remove":
                shutil.rmtree(at) if at.is_dir() and not at.is_symlink() else at.unlink()
            elif what == "mode":
                at.chmod(int(more, 8)) if not at.is_symlink() and at.is_file() else None
            elif what == "folder":
                at.mkdir(parents=True)
            elif what == "ignore":
                at.parent.mkdir(parents=True, exist_ok=True)
                (at.parent / ".gitignore").write_text(more)
            else:
                at.parent.mkdir(parents=True, exist_ok=True)
                at.symlink_to(more) if what == "link" else at.write_text(more)
        except OSError:
            continue  # something else stands there


def picture(top: Path) -> dict[str, Any]:
    """Return what git can keep of a tree, and its folders."""
    found: dict[str, Any] = {}
    for folder, folders, files in os.walk(top):
        for name in (*folders, *files):
            at = Path(folder) / name
            status = at.lstat()
            if at.is_symlink():
                found[str(at.relative_to(top))] = os.readlink(at)
            elif at.is_file():
                found[str(at.relative_to(top))] = (at.read_bytes(), bool(status.st_mode & stat.S_IXUSR))
            else:
                found[str(at.relative_to(top))] = None
    return found


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(first=EDITS, second=EDITS, third=EDITS)
def test_a_state_comes_back_whatever_was_done_to_the_tree(
    tmp_path_factory: pytest.TempPathFactory, processes: Processes, first: Any, second: Any, third: Any
) -> None:
    """But for caches: what the first state's own rules leave out stays as it is."""
    home = tmp_path_factory.mktemp("home")
    top, state = home / "top", home / "state"
    top.mkdir()
    state.mkdir()
    edit(top, first)
    world = GitWorld(str(top), str(state), processes, os.environ)
    world.begin(b"", is_ours=True)
    ignored = set(left_out(home, top))
    pristine = picture(top)
    token = world.snapshot(0)
    edit(top, second)
    other = world.snapshot(1)
    then = picture(top)
    edit(top, third)
    world.restore(token)
    assert files(kept(picture(top), ignored)) == files(kept(pristine, ignored))
    assert {path for path in kept(pristine, ignored) if is_empty(path, pristine)} <= picture(top).keys()
    world.restore(other)
    assert files(kept(picture(top), ignored)) == files(kept(then, ignored))


def is_empty(path: str, found: dict[str, Any]) -> bool:
    """Tell whether a path is a folder with nothing in it."""
    return found[path] is None and not any(other.startswith(f"{path}/") for other in found)


def files(found: dict[str, Any]) -> dict[str, Any]:
    """Return all but the folders."""
    return {path: what for path, what in found.items() if what is not None}


def kept(found: dict[str, Any], ignored: set[str]) -> dict[str, Any]:
    """Return what is no cache, nor lies in one."""
    return {
        path: what
        for path, what in found.items()
        if not any(path == each or path.startswith(f"{each}/") for each in ignored)
    }


def left_out(home: Path, top: Path) -> list[str]:
    """Ask git which paths the rules of the first state leave out: of those that there are, and could be."""
    bare = home / "bare"  # nothing but the rules: git refuses to answer for what lies behind a link
    subprocess.run(["git", "init", "-q", str(bare)], check=True, capture_output=True)
    for rules in [path for path in top.rglob(".gitignore") if path.is_file() and not path.is_symlink()]:
        copy = bare / rules.relative_to(top)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(rules, copy)
    names = ["a", "b c", "d", "e.log", "cache", "ü", "-x", ":y", "*", ".gitignore"]
    paths = [*names, *(f"{one}/{two}" for one in names for two in names)]
    paths += [f"{path}/{name}" for path in paths for name in names if "/" in path]
    asked = "\0".join(f"{path}{end}" for path in paths for end in ("", "/"))
    done = subprocess.run(
        ["git", "check-ignore", "-z", "--stdin", "--no-index"],
        input=asked.encode(),
        capture_output=True,
        check=False,
        cwd=bare,
    )
    return [path.rstrip("/") for path in done.stdout.decode().split("\0") if path]


def test_who_stops_a_run_disturbs_no_state(tmp_path: Path) -> None:
    """Whatever git does at that moment is done to its end."""
    top = tmp_path / "top"
    top.mkdir()
    (top / "a").write_text("one")
    for number in range(12):
        state = tmp_path / f"state{number}"
        state.mkdir()
        with Processes() as processes:
            world = GitWorld(str(top), str(state), processes, os.environ)
            world.begin(b"", is_ours=True)
            timer = threading.Timer(number * 0.002, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            (top / "a").write_text("two")
            held = world.hold()
            (top / "b").write_text("three")
            assert world.revert(held) == "b"
            world.restore(world.first)
            timer.join()
            assert world.revert() is None
            assert processes.caught == signal.SIGINT
        assert [path.read_text() for path in top.iterdir()] == ["one"]


def test_what_is_gone_is_lost_and_a_repository_within_is_not_kept(tmp_path: Path, processes: Processes) -> None:
    """Both are said; the record of a world that is none is none."""
    top, state = tmp_path / "top", tmp_path / "state"
    top.mkdir()
    state.mkdir()
    world = GitWorld(str(top), str(state), processes, os.environ)
    world.begin(b"", is_ours=True)
    assert known(str(state)) is not None
    with pytest.raises(Lost, match="cannot be restored"):
        world.restore("0" * 40)
    with pytest.raises(Lost, match="is no state"):
        world.restore("main")
    subprocess.run(["git", "init", "-q", str(top / "inner")], check=True)
    with pytest.raises(Unkept, match='there is a git repository in "inner"'):
        world.snapshot(1)
    for text in ("", "[]", "{}", '{"workspace": 1, "first": 2, "rules": 3, "hollow": 4, "is_ours": 5}'):
        (state / "world.json").write_text(text)
        assert known(str(state)) is None


# A domain beside it


def commands(snapshot: str, restore: str, apply: str = "true") -> str:
    """Return the [world] of a manifest."""
    pairs = {"apply_cmd": apply, "snapshot_cmd": snapshot, "restore_cmd": restore}
    return "[world]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in pairs.items() if value)


def test_a_domain_goes_back_to_its_own_token(bench: Bench) -> None:
    """It is the last line of what the command prints, blanks and tabs and all."""
    said = 'echo noise; printf "v%s\\t x=\\"%s\\" \\n\\n" "$CRUCIBLE_ITERATION" "$(cat reading | wc -c)"'
    bench.manifest(more=commands(said, 'printf "%s|" "$CRUCIBLE_TOKEN" >> ../restored'))
    bench.agent({"score": 9}, {"score": 11})
    ran = bench.run()
    assert ran.decisions == ["keep", "keep", "discard"]
    tokens = [row["snapshot"] for row in ran.rows if row["snapshot"]]
    assert [each.partition("\t")[0] for each in tokens] == [row["sha"] for row in ran.rows if row["sha"]]
    domain = tokens[1].partition("\t")[2]
    assert domain.endswith('" ')
    assert set((bench.pack / "restored").read_text().split("|")) == {domain, ""}


@pytest.mark.parametrize(
    ("command", "note"),
    [("exit 3", "snapshot_cmd failed: exit 3"), ("true", "printed no token"), ("printf 'a\\0b'", "NUL byte")],
)
def test_a_snapshot_that_fails_aborts_the_keep(bench: Bench, command: str, note: str) -> None:
    """The candidate is discarded with the reason, and solved does not end the run."""
    bench.manifest(more=commands(f"if grep -q solved reading; then {command}; else echo t; fi", "true"))
    bench.agent({"score": 9, "solved": True}, {"score": 8})
    ran = bench.run()
    assert ran.decisions == ["keep", "discard", "keep"]
    assert note in ran.notes[1]
    assert ran.outcome == "finished"


def test_a_restore_that_fails_ends_the_run_loudly(bench: Bench) -> None:
    """The world is not what we think; the row is there, and nothing is built on it."""
    bench.manifest(more=commands("echo t", "echo broken pipe >&2; exit 4"))
    bench.agent({"score": 11}, {"score": 1})
    ran = bench.run()
    assert (ran.status, ran.outcome) == (1, "error")
    assert ran.decisions == ["keep", "discard"]
    assert "restore_cmd failed: exit 4: broken pipe" in ran.out


def test_what_was_kept_is_applied_again_and_the_epilogue_is_told_of_it(bench: Bench) -> None:
    """Once, when something better was kept, where no command restores the domain."""
    late = (
        '[[workflow.task]]\nname = "report"\nkind = "command"\nstage = "epilogue"\n'
        "command = 'cp \"$CRUCIBLE_INPUTS_FILE\" ../told; echo {}'\n"
    )
    bench.manifest(more=commands("", "", "cat reading >> ../applied"), workflow=LOOP + late)
    bench.agent({"score": 9, "note": "nine"}, {"score": 11})
    ran = bench.run()
    assert ran.status == 0
    applied = [json.loads(line)["score"] for line in (bench.pack / "applied").read_text().splitlines()]
    assert applied == [10, 9, 11, 9]
    kept = json.loads((bench.pack / "told").read_text())["kept"]
    row = ran.rows[1]
    assert kept == {
        "iter": 1, "score": 9, "tiebreak": None, "sha": row["sha"], "snapshot": f"{row['sha']}\t", "note": "nine"
    }  # fmt: skip
    (bench.pack / "told").unlink()
    bench.agent({"score": 11})
    assert bench.run().status == 1
    assert not (bench.pack / "told").exists()  # nothing better was kept


def test_the_report_is_what_its_schema_says(bench: Bench) -> None:
    """On standard output with --json, and in the state directory."""
    bench.agent({"score": 9})
    ran = bench.run("--json")
    report = json.loads(ran.out)
    assert registry.errors("loop-report", report) == []
    assert report == json.loads((bench.pack / "state" / "report.json").read_text())
    assert (report["baseline"], report["best"]["iter"], report["rows"]) == (10, 1, 2)


def test_a_workspace_that_is_gone_is_made_again_by_who_goes_on(bench: Bench) -> None:
    """With what was kept last."""
    bench.agent({"score": 9}, {"score": 8})
    bench.run(iterations=1)
    shutil.rmtree(bench.pack / "workspace")
    ran = bench.run("--resume", iterations=2)
    assert ran.status == 0, ran.err
    assert json.loads((bench.pack / "workspace" / "reading").read_text())["score"] == 8


def test_a_new_run_puts_the_states_of_the_one_before_by(bench: Bench) -> None:
    """Each under the number of its log."""
    bench.agent({"score": 9})
    for number in range(3):
        assert bench.run().decisions == ["keep", "keep"]
        refs = bench.pack / "state" / "world.git" / "refs" / "crucible"
        earlier = {str(path.relative_to(refs)) for path in refs.rglob("*") if path.is_file()} - {"none"}
        assert earlier == {"kept/0", "kept/1"} | {
            f"earlier/{before}/{each}" for before in range(1, number + 1) for each in range(2)
        }
        assert len(list((bench.pack / "state").glob("session-*.jsonl"))) == number


def test_one_run_at_a_time_works_in_a_checkout(bench: Bench) -> None:
    """The second is told who does, whatever its state directory."""
    pack = bench.pack
    text = (pack / "crucible.toml").read_text()
    text = text.replace('[repo]\npath = "start"', '[repo]\npath = "."\n[workspace]\ndir = "."')
    (pack / "crucible.toml").write_text(text.replace("../edits.toml", "edits.toml"))
    (pack / "start" / "reading").rename(pack / "reading")
    (pack / ".gitignore").write_text("state*/\n")
    bench.agent("touch ../started; while ! test -e ../go; do sleep 0.02; done")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q", "."), ("add", "-A"), ("commit", "-q", "-m", "all")):
        subprocess.run([*git, *words], cwd=pack, check=True)
    line = [*COMMAND, "run", "--manifest", "crucible.toml", "--iterations", "1", "--no-progress"]
    with subprocess.Popen(line, cwd=pack, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as first:
        while not (pack.parent / "started").exists() and first.poll() is None:
            time.sleep(0.02)
        second = bench.run("--state-dir", str(pack / "state2"))
        (pack.parent / "go").touch()
        first.communicate()
    assert second.status == 2
    assert f"process {first.pid} runs in {pack} already" in second.err


def test_one_run_at_a_time_prepares_a_workspace(bench: Bench) -> None:
    """The second is told who does, and touches nothing."""
    pack = bench.pack
    text = (pack / "crucible.toml").read_text()
    setup = "mkdir workspace; touch started; while ! test -e go; do sleep 0.02; done; cp start/reading workspace"
    (pack / "crucible.toml").write_text(text.replace("[agent]", f'[workspace]\nsetup_cmd = "{setup}"\n[agent]'))
    bench.agent({"score": 9})
    line = [*COMMAND, "run", "--manifest", "crucible.toml", "--iterations", "1", "--no-progress"]
    with subprocess.Popen(line, cwd=pack, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as first:
        while not (pack / "started").exists() and first.poll() is None:
            time.sleep(0.02)
        second = bench.run("--state-dir", str(pack / "state2"))
        (pack / "go").touch()
        _, err = first.communicate()
    assert (second.status, first.returncode) == (2, 0), err
    assert f"process {first.pid} prepares a workspace in {pack} already" in second.err


def test_a_workspace_that_became_a_file_is_refused(bench: Bench) -> None:
    """In a sentence, and the file stays."""
    bench.agent({"score": 9}, {"score": 8})
    bench.run(iterations=1)
    shutil.rmtree(bench.pack / "workspace")
    (bench.pack / "workspace").write_text("mine")
    for options in (["--resume"], []):
        ran = bench.run(*options, iterations=2)
        assert ran.status == 1
        assert "is no folder" in ran.err
    assert (bench.pack / "workspace").read_text() == "mine"

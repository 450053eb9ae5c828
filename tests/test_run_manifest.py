"""plan run with a manifest: where tasks run, what agents alone are given, and which manifest is believed."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from runs import STAND_IN, Ran, Runs, agent, command, write_plan

from crucible.schemas.ir import Task

GIT = shutil.which("git") or "git"


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Return what runs workflows in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Runs(tmp_path, capfd)


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder and return what it printed."""
    line = [GIT, "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(line, cwd=folder, check=True, capture_output=True, text=True).stdout


def repository(folder: Path, **files: str) -> None:
    """Make a repository with one commit."""
    folder.mkdir(exist_ok=True)
    git(folder, "init", "--quiet", ".")
    for name, text in files.items():
        (folder / name).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "first")


def start(run: Runs, manifest: str, *tasks: Task, options: tuple[str, ...] = (), lane: str = "playbook") -> Ran:
    """Run some tasks with a manifest."""
    (run.folder / "crucible.toml").write_text(manifest)
    return run.run("--file", write_plan(run.folder, *tasks, lane=lane), "--manifest", "crucible.toml", *options)


def test_a_playbook_runs_in_a_workspace_of_its_injects(run: Runs) -> None:
    """A folder of its own, with the copies and nothing else of the pack."""
    (run.folder / "given.txt").write_text("given")
    manifest = '[workspace]\ndir = "there"\ninject = ["given.txt"]\n'
    done = start(run, manifest, command("a", 'ls >&2; cat given.txt >&2; pwd >&2; echo "[1]"'))
    assert done.status == 0
    assert done.log(".err") == f"given.txt\ngiven{(run.folder / 'there').resolve()}\n"


def test_a_frozen_inject_is_put_back_before_every_task(run: Runs) -> None:
    """One that is not frozen is the tasks' own."""
    for name in ("frozen", "free"):
        (run.folder / name).write_text(name)
    manifest = '[workspace]\ninject = ["frozen", {src = "free", dst = "free", frozen = false}]\n'
    done = start(
        run,
        manifest,
        command("edit", "echo edited >frozen; echo edited >free"),
        command("see", "cat frozen free >&2", "edit"),
        command("alone", "cat frozen free >&2; echo again >frozen", "see", isolated=True),
    )
    assert done.status == 0
    assert [done.log(f"{number}.err") for number in ("002-see.attempt-1", "003-alone.attempt-1")] == [
        "frozenedited\n"
    ] * 2


def test_a_repository_is_cloned_and_left_alone(run: Runs) -> None:
    """Commits, index and files of the original stay as they are."""
    origin = run.folder / "origin"
    repository(origin, a="one\n")
    manifest = '[repo]\npath = "origin"\n[judge]\nmeasure_cmd = "true"\ndirection = "lower"\n'
    done = start(
        run,
        manifest,
        command("a", "cat a >&2; echo two >a"),
        command("b", "cat a >&2", "a", isolated=True),
        lane="custom",
    )
    assert done.status == 0
    assert (done.log("a.attempt-1.err"), done.log("b.attempt-1.err")) == ("one\n", "two\n")
    assert git(origin, "status", "--porcelain") == ""
    assert (origin / "a").read_text() == "one\n"


def test_a_setup_that_fails_runs_nothing(run: Runs) -> None:
    """Exit code 1, with the reason; the log of what happened is closed properly."""
    done = start(run, '[workspace]\nsetup_cmd = "echo nowhere >&2; exit 3"\n', command("a", "touch ../ran"))
    assert done.status == 1
    assert "setup_cmd failed: exit 3: nowhere" in done.err
    assert done.events[-1]["outcome"] == "error"
    assert not (run.folder / "ran").exists()


# What agents alone are given


def test_the_environment_of_agents_is_theirs_alone(run: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """[agent].env is for agents; a secret of the broker's is taken out of theirs and stays in that of commands."""
    monkeypatch.setenv("BROKERED", "secret")
    monkeypatch.setenv("OTHER", "ours")
    manifest = f"""
[agent]
backend = "command"
agent_cmd = '{STAND_IN}'
model = "m1"
[agent.env]
GIVEN = "value"
[[capabilities.secret]]
name = "BROKERED"
context = "broker"
system = "jira"
scope = "read"
"""
    prompt = "put GIVEN\nput BROKERED\nput OTHER\nput CRUCIBLE_MODEL"
    shell = 'printf \'["%s", "%s"]\' "$GIVEN" "$BROKERED"'
    done = start(run, manifest, agent("a", prompt), command("b", shell))
    assert done.status == 0
    assert done.task("a")["output"] == {"GIVEN": "value", "BROKERED": None, "OTHER": "ours", "CRUCIBLE_MODEL": "m1"}
    assert done.task("b")["output"] == ["", "secret"]
    assert "secret" not in (done.state / "session.jsonl").read_text()


def test_a_secret_of_the_broker_may_not_reach_the_agent(run: Runs) -> None:
    """Refused before anything runs, at the name."""
    manifest = """
[agent.env]
TOKEN = "x"
[[capabilities.secret]]
name = "TOKEN"
context = "broker"
system = "jira"
scope = "read"
"""
    done = start(run, manifest, command("a", "true"))
    assert done.status == 1
    assert "error[uncovered-capability]" in done.err
    assert "crucible.toml:3:1" in done.err
    assert not done.state.exists()


@pytest.mark.parametrize(
    ("agent_table", "note"),
    [
        ('backend = "openshell"\nsandbox_image = "x"', 'there is no backend "openshell" here'),
        ('backend = "command"', "no agent_cmd"),
    ],
)
def test_a_backend_that_is_not_there_is_told_plainly(run: Runs, agent_table: str, note: str) -> None:
    """Each agent fails, once; with --agent-cmd it does not matter."""
    manifest = f"[agent]\n{agent_table}\n"
    done = start(run, manifest, agent("a", "result {}"))
    assert (done.status, done.task("a")["status"], done.task("a")["attempts"]) == (1, "fail", 1)
    assert note in done.task("a")["note"]
    assert start(run, manifest, agent("a", "result {}"), options=("--agent-cmd", STAND_IN)).status == 0


# Which manifest is believed


def test_a_manifest_in_its_own_workspace_is_read_from_the_base_commit(run: Runs) -> None:
    """Once there is one; the first run warns and trusts what is there."""
    judge = '[judge]\nmeasure_cmd = "true"\ndirection = "lower"\nobjective = "first"\n'
    manifest = f'[repo]\npath = "."\n[workspace]\ndir = "."\n{judge}'
    plan = write_plan(run.folder, command("a", "true"))
    (run.folder / "crucible.toml").write_text(manifest)
    (run.folder / ".gitignore").write_text("state\n")
    repository(run.folder)
    arguments = ("--file", plan, "--manifest", "crucible.toml")
    first = run.run(*arguments)
    assert first.status == 0
    assert "lies in the workspace that it is for" in first.err
    assert [event["level"] for event in first.events if event["kind"] == "note"] == ["warning"]
    (run.folder / "crucible.toml").write_text(manifest.replace('"first"', '"second"'))
    second = run.run(*arguments)
    assert (second.status, second.events[0]["gate"]) == (0, "first")
    assert "lies in the workspace that it is for and differs from that of the base commit" in second.err
    (run.folder / "crucible.toml").write_text(manifest)
    assert "lies in" not in run.run(*arguments).err


JUDGE = '[judge]\nmeasure_cmd = "true"\ndirection = "lower"\nobjective = "first"\n'
INSIDE = f'[repo]\npath = "."\n[workspace]\ndir = "."\n{JUDGE}'


@pytest.mark.parametrize(
    "forge",
    [
        (
            'git commit -qam forged; printf \'{"workspace": "%s", "base": "%s"}\' '
            '"$PWD" "$(git rev-parse HEAD)" >state/workspace.json'
        ),
        "git commit -qam forged; rm state/workspace.json",
        "git commit -qam forged; rm -rf state",
        "rm state/workspace.json; mkdir -p state/workspace.json/x",
        "rm state/workspace.json; mkfifo state/workspace.json",
        "sed -i.bak 's/^dir = .*/dir = \"elsewhere\"/' crucible.toml",
    ],
)
def test_no_task_chooses_the_manifest_of_the_next_run(run: Runs, forge: str) -> None:
    """Where the baseline is written down lies in reach of tasks; what a run knows is written again at its end."""
    (run.folder / ".gitignore").write_text("state\n")
    (run.folder / "crucible.toml").write_text(INSIDE)
    plan = write_plan(run.folder, command("a", "true"))
    repository(run.folder)
    git(run.folder, "config", "user.name", "a")
    git(run.folder, "config", "user.email", "a@b")
    arguments = ("--file", plan, "--manifest", "crucible.toml")
    assert run.run(*arguments).status == 0
    plan = write_plan(run.folder, command("a", f"sed -i.bak s/first/forged/ crucible.toml; {forge}"))
    assert run.run(*arguments).status == 0
    assert "forged" in (run.folder / "crucible.toml").read_text()
    write_plan(run.folder, command("a", "true"))
    done = run.run(*arguments)
    assert (done.status, done.events[0]["gate"]) == (0, "first")
    assert "differs from that of the base commit" in done.err


def test_a_base_commit_that_is_gone_is_refused(run: Runs) -> None:
    """With what to do about it; nothing is trusted in its place."""
    (run.folder / ".gitignore").write_text("state\n")
    (run.folder / "crucible.toml").write_text(INSIDE)
    plan = write_plan(run.folder, command("a", "true"))
    repository(run.folder)
    arguments = ("--file", plan, "--manifest", "crucible.toml")
    assert run.run(*arguments).status == 0
    shutil.rmtree(run.folder / ".git")
    done = run.run(*arguments)
    assert done.status == 2
    assert "remove state/workspace.json if the file as it is may be trusted" in done.err


def test_the_ledger_of_one_run_is_not_that_of_the_next(run: Runs) -> None:
    """A run begins its conversations anew."""
    options = ("--agent-cmd", STAND_IN)
    for _ in range(2):
        done = start(
            run, "", agent("a", "put CRUCIBLE_SESSION\nput CRUCIBLE_CONVERSATION", session="s"), options=options
        )
        assert done.task("a")["output"]["CRUCIBLE_SESSION"] == "s"
        ledger = json.loads((done.state / "conversations.json").read_text())
        assert ledger == {"s": {"cursor": done.task("a")["output"]["CRUCIBLE_CONVERSATION"], "turns": 1}}


def test_only_one_run_at_a_time_has_a_state_directory(run: Runs) -> None:
    """The second one is told who has it, and touches nothing."""
    from crucible.runtime.lock import take

    done = start(run, "", command("a", "true"))
    before = (done.state / "session.jsonl").read_bytes()
    with take(str(done.state / "lock")):
        other = start(run, "", command("a", "true"))
    assert other.status == 2
    assert "runs here already" in other.err
    assert (done.state / "session.jsonl").read_bytes() == before


# Options, beside what files say


def test_of_two_ceilings_the_smaller_holds(run: Runs) -> None:
    """That of the plan file, or that of the command line."""
    text = 'version = 1\n[budget]\nusd = {}\n[[task]]\nname = "a"\nkind = "agent"\nprompt = "result {{}}\\ncost 0.10"\n'
    options = ("--agent-cmd", STAND_IN, "--max-cost")
    for plan, option, status in (("0.05", "1", 1), ("1", "0.05", 1), ("1", "1", 0)):
        (run.folder / "plan.toml").write_text(text.format(plan))
        done = run.run("--file", "plan.toml", *options, option)
        assert (done.status, done.report["valid"]) == (status, not status)
        assert done.events[2]["ceiling_usd"] == min(float(plan), float(option))


def test_what_runs_together_may_pass_the_ceiling_together(run: Runs) -> None:
    """Both are finished and counted; the run is invalid, and says what never ran."""
    repository(run.folder, a="a")
    turns = [agent(name, "cost 0.60\nresult {}", isolated=True) for name in ("a", "b")]
    options = ("--agent-cmd", STAND_IN, "--max-cost", "1.00", "--jobs", "2")
    done = run(*turns, command("c", "true", "a", "b"), options=options)
    assert (done.status, done.report["exit"], done.report["spent_usd"]) == (1, "budget_exceeded", 1.2)
    assert done.statuses() == {"a": "pass", "b": "pass", "c": "blocked"}
    assert done.task("c")["blocked"] == {"reason": "budget_ceiling"}
    assert "$1.20 spent of at most $1.00" in done.out


def test_a_stand_in_continues_conversations_whatever_the_manifest_names(run: Runs) -> None:
    """It is told which conversation it is; the harness that is named could not be."""
    manifest = '[agent]\nharness = "hermes"\n'
    turn = agent("a", "result {}", session="s")
    assert start(run, manifest, turn).status == 1
    assert start(run, manifest, turn, options=("--agent-cmd", STAND_IN)).status == 0


def test_as_many_jobs_run_at_once_as_are_asked_for(run: Runs) -> None:
    """Two wait for each other; where there is one at a time, they wait in vain."""
    repository(run.folder, a="a")
    wait = (
        f"touch {run.folder}/{{}}; for i in $(seq 100); do test -e {run.folder}/{{}} && exit; sleep 0.05; done; exit 1"
    )
    tasks = [
        command(*each, isolated=True, advisory=True) for each in (("a", wait.format(1, 2)), ("b", wait.format(2, 1)))
    ]
    together = run(*tasks, options=("--jobs", "2"))
    assert together.statuses() == {"a": "pass", "b": "pass"}
    for name in "12":
        (run.folder / name).unlink()
    alone = run(*tasks, options=("--jobs", "1"))
    assert alone.statuses() == {"a": "fail", "b": "pass"}


def test_a_private_clone_is_not_led_back_to_the_repository(run: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who starts us from a hook of git has variables set that name his repository."""
    repository(run.folder, a="a")
    monkeypatch.setenv("GIT_DIR", str(run.folder / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(run.folder / ".git" / "index"))
    done = run(
        command("a", 'git rm -q --cached a; git status --porcelain >&2; echo "[\\"${GIT_DIR-}\\"]"', isolated=True)
    )
    assert (done.status, done.task("a")["output"]) == (0, [""])
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_INDEX_FILE")
    assert "a" in git(run.folder, "ls-files").split()

"""plan run: a workflow runs as people run it, with real processes; what is said, written down and left."""

import errno
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from process import COMMAND, crucible, shell
from runs import STAND_IN, Ran, Runs, agent, command, evaluate, events, top_k, write_plan

AGENTS = ("--agent-cmd", STAND_IN)


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Return what runs workflows in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Runs(tmp_path, capfd)


def kinds(found: list[dict[str, Any]]) -> list[str]:
    """Return the kinds of events."""
    return [event["kind"] for event in found]


# What a run leaves


def test_a_valid_run_says_so_and_leaves_a_report_events_and_logs(run: Runs) -> None:
    """Exit code 0; a line for each task, the verdict and the cost on standard output."""
    done = run(command("build", "echo built >&2; echo '{\"size\": 3}'"), command("test", "true", "build"))
    assert done.status == 0
    assert done.report["valid"] is True
    assert done.report["exit"] == "completed"
    assert done.task("build")["output"] == {"size": 3}
    assert done.task("test")["output"] is None
    assert kinds(done.events) == [
        *("start", "plan_admitted", "budget", "identity", "task_result", "task_result"),
        *("summary", "finished", "shutdown"),
    ]
    assert done.events[-1] == {
        "v": 1,
        "kind": "shutdown",
        "outcome": "finished",
        "reason": "every required task passed",
    }
    assert done.log("001-build.attempt-1.err") == "built\n"
    assert done.log("001-build.attempt-1.out") == '{"size": 3}\n'
    lines = done.out.splitlines()
    assert [line.split()[:2] for line in lines[:3]] == [["task", "state"], ["build", "pass"], ["test", "pass"]]
    assert lines[-2] == "valid: every required task passed"
    assert lines[-1].startswith("2 pass; $0.00 spent without a ceiling; ")


def test_without_a_terminal_each_change_of_state_is_a_line(run: Runs) -> None:
    """They go to standard error, in the order in which things happen."""
    done = run(
        command("one", "true"),
        command("two", "exit 3", "one", advisory=True),
        command("three", "true", "two", advisory=True),
    )
    assert done.status == 0
    said = [re.sub(r"\d+\.\d s", "T s", line) for line in done.err.splitlines()]
    assert said == [
        "one    running",
        "one    pass       T s",
        "two    running",
        "two    fail       T s  exit 3",
        'three  blocked    did not pass: "two"',
    ]


def test_a_failure_names_the_task_the_log_and_what_was_said_last(run: Runs) -> None:
    """Who reads the end of a run knows which file to open."""
    done = run(
        command("build", "true"),
        command("smoke", "echo first >&2; echo 'no such page' >&2; exit 1", "build"),
        command("publish", "true", "smoke"),
    )
    assert done.status == 1
    assert done.report["exit"] == "short_circuit"
    assert done.task("publish")["blocked"] == {"reason": "required_task_failed", "task": "smoke"}
    text = done.out
    assert '"smoke" failed: exit 1: no such page\n  | first\n  | no such page\n' in text
    assert f"  log: {Path('state/logs/002-smoke.attempt-1.err')}\n" in text
    assert 'invalid: short circuit: the required task "smoke" did not pass\n' in text
    assert done.events[-1]["outcome"] == "error"


def test_the_report_is_the_product_when_it_is_asked_for(run: Runs) -> None:
    """With --json standard output is the report alone; people read standard error."""
    done = run(command("a", "echo 1"), options=("--json",))
    assert json.loads(done.out) == done.report
    assert "valid: every required task passed" in done.err


def test_a_run_begins_its_records_anew(run: Runs) -> None:
    """Nothing of the run before is left among them, and a link in their place is not followed."""
    run(command("a", "false"), command("b", "true"))
    elsewhere = run.folder / "elsewhere"
    elsewhere.write_text("mine")
    session = run.folder / "state" / "session.jsonl"
    session.unlink()
    session.symlink_to(elsewhere)
    done = run(command("only", "true"))
    assert [path.name for path in sorted((done.state / "logs").iterdir())] == [
        "001-only.attempt-1.err",
        "001-only.attempt-1.out",
    ]
    assert kinds(done.events).count("task_result") == 1
    assert elsewhere.read_text() == "mine"


@pytest.mark.parametrize(
    "script", ["git clean -qfdx", "rm -rf state", "rm -rf state; mkdir state", "rm -rf state/logs"]
)
@pytest.mark.parametrize("isolated", [False, True])
def test_a_task_that_removes_the_state_does_not_take_the_verdict(run: Runs, script: str, *, isolated: bool) -> None:
    """The folder is made again with all events, git does not see it, and whoever ran it is told."""
    assert os.system("git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first") == 0  # noqa: S605 - a constant
    before = command("before", "true", isolated=isolated)
    done = run(before, command("clean", script, "before"), command("after", "echo 1", "clean", isolated=isolated))
    assert done.status == 0, done.err
    assert done.statuses() == dict.fromkeys(("before", "clean", "after"), "pass")
    assert kinds([event for event in done.events if event["kind"] != "note"])[0] == "start"
    assert kinds(done.events).count("task_result") == 3
    assert f"a task removed {done.state}, which was made again" in done.err
    assert "valid: every required task passed" in done.out
    assert (done.state / ".gitignore").read_text() == "*\n"
    assert run(command("a", "true")).status == 0


def test_the_last_task_that_removes_the_state_does_not_take_the_verdict(run: Runs) -> None:
    """Nothing comes after it but the report."""
    done = run(command("clean", "rm -rf state; exit 3"))
    assert done.status == 1
    assert done.report["exit"] == "short_circuit"
    assert kinds(done.events)[0] == "start"


def test_what_an_attempt_left_prints_into_no_other_log(run: Runs, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Beside another task a process that has hidden whose it is lives on: its words judge nobody."""
    assert os.system("git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first") == 0  # noqa: S605 - a constant
    meeting = tmp_path_factory.mktemp("meeting")
    wait = "i=0; while ! test -e {0}/{1} && test $((i+=1)) -lt 500; do sleep 0.01; done"
    left = wait.format(meeting, "second") + f"; echo '{{\"forged\": 1}}' | tee /dev/stderr; touch {meeting}/said"
    first = f"env -i PATH=$PATH setsid sh -c {shlex.quote(left)} & sleep 0.3; exit 75"
    second = f"echo '{{}}'; touch {meeting}/second; {wait.format(meeting, 'said')}; touch {meeting}/done"
    agent_cmd = f"if [ $CRUCIBLE_ATTEMPT = 1 ]; then {first}; fi; {second}"
    beside = command("beside", wait.format(meeting, "done") + "; echo 1", isolated=True)
    done = run(beside, agent("judged", "p", isolated=True), options=("--jobs", "2", "--agent-cmd", agent_cmd))
    assert (done.status, done.task("judged").get("output")) == (0, {}), done.out


@pytest.mark.parametrize("there", ["empty", "with logs"])
def test_a_task_that_puts_a_link_in_place_of_the_state_writes_nowhere_else(run: Runs, there: str) -> None:
    """The link goes, and what it leads to is not touched, now and in the next run."""
    theirs = run.folder / "theirs"
    (theirs / "logs" if there == "with logs" else theirs).mkdir(parents=True)
    (theirs / "mine").write_text("mine")
    done = run(command("link", "mv state aside; ln -s theirs state"), command("after", "echo 1", "link"))
    assert (done.status, done.state.is_symlink()) == (0, False)
    assert kinds(done.events).count("task_result") == 2
    assert run(command("a", "true")).status == 0
    found = sorted(path.name for path in theirs.rglob("*"))
    assert found == (["logs", "mine"] if there == "with logs" else ["mine"])


@pytest.mark.parametrize("number", ["99999999999999999999", "0", "-1", "x", ""])
def test_a_lock_file_that_names_nobody_stops_nobody(run: Runs, number: str) -> None:
    """Whoever wrote it, the lock itself is free."""
    run(command("a", "true"))
    (run.folder / "state" / "lock").write_text(number)
    assert run(command("a", "true")).status == 0


@pytest.mark.parametrize("script", ["rm -f state/lock", "rm -rf state"])
def test_a_task_that_removes_the_lock_lets_no_second_run_in(run: Runs, script: str) -> None:
    """It is taken again before the next task, and the second run is told who holds it."""
    (run.folder / "other").mkdir()
    plan = write_plan(run.folder / "other", command("a", "true"))
    line = shlex.join([*COMMAND, "plan", "run", "--file", str(plan), "--state-dir", "state"])
    second = command("second", f"{line} >said 2>&1; echo $?", "clean")
    done = run(command("clean", script), second)
    assert (done.status, done.task("second")["output"]) == (0, 2)
    assert "runs here already: it holds" in (run.folder / "said").read_text()
    assert not (done.state / "lock").exists()


@pytest.mark.parametrize("place", ["report.json", ".report.json.new"])
def test_a_report_is_written_whatever_a_task_put_in_its_place(run: Runs, place: str) -> None:
    """The state directory is ours."""
    done = run(command("a", f"mkdir -p state/{place}/x"))
    assert (done.report["valid"], done.err) == (True, "a  running\na  pass       0.0 s\n")


@pytest.mark.parametrize(("script", "status", "verdict"), [("true", 0, "valid: "), ("exit 1", 1, "invalid: ")])
def test_a_report_that_cannot_be_written_is_told(
    run: Runs, script: str, status: int, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdict is printed, and the exit code is that of the run."""

    def full(*_paths: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("crucible.runtime.records.os.replace", full)
    done = run(command("a", script))
    assert done.status == status
    assert f"\n{verdict}" in done.out
    assert f"warning: {done.state / 'report.json'} cannot be written: {os.strerror(errno.ENOSPC)}" in done.err
    assert done.events[-1]["kind"] == "shutdown"


def test_a_full_disk_does_not_take_the_verdict(run: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that are not written are named, and an event is written whole or not at all."""
    write = os.write

    def full(descriptor: int, data: bytes) -> int:
        if b'"summary"' in bytes(data) or b'"tasks": [' in bytes(data):
            if len(data) < 10:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write(descriptor, data[:9]) if b'"summary"' in bytes(data) else _no_room()
        if bytes(data).endswith(b"}\n") and not bytes(data).startswith(b"{"):
            _no_room()
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", full)
    done = run(command("a", "true"))
    monkeypatch.undo()
    assert done.status == 0
    for name in ("report.json", "session.jsonl"):
        assert f"warning: {done.state / name} cannot be written: No space left on device" in done.err
    assert kinds(events(done.state))[-3:] == ["task_result", "finished", "shutdown"]


def _no_room() -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("content", [None, "", "*.log\n", "*\n!keep\n"])
def test_a_folder_of_somebody_else_is_no_state_directory(run: Runs, content: str | None) -> None:
    """What a user keeps under that name is never written over."""
    mine = run.folder / "state"
    mine.mkdir()
    (mine / "report.json").write_text("mine")
    if content is not None:
        (mine / ".gitignore").write_text(content)
    before = sorted(os.listdir(mine))
    done = run(command("a", "true"))
    assert done.status == 2
    assert "is no state directory of ours" in done.err
    assert "--state-dir" in done.err
    assert (sorted(os.listdir(mine)), (mine / "report.json").read_text()) == (before, "mine")
    assert run(command("a", "true"), options=("--state-dir", "other")).status == 0


def test_an_empty_folder_becomes_a_state_directory(run: Runs) -> None:
    """And stays one for the next run."""
    (run.folder / "state").mkdir()
    assert run(command("a", "true")).status == 0
    assert run(command("a", "true")).status == 0


def test_a_name_of_a_task_never_leaves_the_folder_of_logs(run: Runs) -> None:
    """The slug keeps what is harmless of a name; the number tells tasks apart."""
    names = ["../../x", "a/b", "é", "A", "a", "x" * 100]
    done = run(*(command(name, "true") for name in names))
    found = sorted(path.name for path in (done.state / "logs").glob("*.out"))
    assert found == [
        "001-....x.attempt-1.out",
        "002-ab.attempt-1.out",
        "003-.attempt-1.out",
        "004-A.attempt-1.out",
        "005-a.attempt-1.out",
        f"006-{'x' * 40}.attempt-1.out",
    ]


def test_git_sees_nothing_of_a_run(run: Runs) -> None:
    """The state directory is none of the repository's business."""
    os.system("git init -q . && touch plan.json && git add plan.json")  # noqa: S605 - a fixed line
    run(command("a", "true"))
    with os.popen("git status --porcelain") as status:  # noqa: S605 - a fixed line
        assert status.read() == "AM plan.json\n"


# Inputs and outputs


def test_a_task_reads_the_outputs_of_its_dependencies_and_the_parameters(run: Runs) -> None:
    """In a file, by name, in declaration order; and in a variable while they are small."""
    done = run(
        command("b", "echo 1"),
        command("a", "echo '{\"x\": 2}'"),
        command(
            "all", 'cat "$CRUCIBLE_INPUTS_FILE"; test "$CRUCIBLE_INPUTS" = "$(cat "$CRUCIBLE_INPUTS_FILE")"', "a", "b"
        ),
        lane="playbook",
        params={"issue": "P-7"},
    )
    assert done.status == 0
    assert list(done.task("all")["output"].items()) == [("b", 1), ("a", {"x": 2}), ("params", {"issue": "P-7"})]


def test_large_inputs_come_by_file_alone(run: Runs) -> None:
    """300 KB are more than the system lets a variable have: it is left out, and nothing fails of it."""
    big = 'printf \'{"text": "%0300000d"}\\n\' 0'
    size = '{ test -z "${CRUCIBLE_INPUTS+x}" && wc -c <"$CRUCIBLE_INPUTS_FILE"; }'
    prompt = f"print {{}}\n{'x' * 200_000}"
    done = run(command("big", big), command("small", size, "big"), agent("read", prompt, "small"), options=AGENTS)
    assert done.status == 0
    assert done.task("small")["output"] > 300_000


def test_a_top_k_keeps_the_best(run: Runs) -> None:
    """It takes no process; what failed is not among its inputs."""
    done = run(
        command("a", "echo '{\"score\": 1}'", advisory=True),
        command("b", "echo '{\"score\": 3}'", advisory=True),
        command("c", "exit 1", advisory=True),
        top_k("best", 1, "higher", "a", "b", "c"),
    )
    assert done.task("best")["output"] == {"kept": [{"task": "b", "score": 3, "output": {"score": 3}}], "score": 3}


def test_a_missing_field_fails_the_task_that_promised_it(run: Runs) -> None:
    """Not the one behind it."""
    done = run(command("a", "echo '{\"x\": 1}'", emits=("score",)))
    assert done.status == 1
    assert done.task("a")["note"] == "the output has no score, which the task emits"


# Agents: a command that stands in


@pytest.mark.parametrize("kind", ["result", "cost"])
def test_what_a_stand_in_left_has_no_say(run: Runs, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that outlives its turn, until it is ended by force, makes it neither better nor cheaper."""
    monkeypatch.setattr("crucible.runtime.process.GRACE", 1.0)
    late = {"result": "echo '{\"late\": 1}' >PLAN_TASK_RESULT.json", "cost": "echo 0 >$CRUCIBLE_COST_FILE"}[kind]
    turn = f"(trap '' TERM; sleep 0.5; {late}; sleep 60) & sleep 0.1; echo 2 >$CRUCIBLE_COST_FILE; echo '{{}}'"
    done = run(agent("a", "p"), options=("--agent-cmd", turn))
    assert (done.task("a")["output"], done.report["spent_usd"]) == ({}, 2.0)
    assert not (run.folder / "PLAN_TASK_RESULT.json").exists()


def test_a_turn_that_died_with_a_cost_that_is_none_is_not_made_again(run: Runs) -> None:
    """Nobody could say what the next one would cost in all."""
    done = run(agent("a", "cost nan\nexit 75"), options=AGENTS)
    assert (done.task("a")["status"], done.task("a")["attempts"]) == ("fail", 1)
    assert "not a number of USD" in done.task("a")["note"]


def test_a_stand_in_answers_by_its_file_or_its_last_line(run: Runs) -> None:
    """It finds its prompt bare, in a variable and in a file."""
    done = run(
        agent("file", 'result {"a": 1}\nprint {"a": 2}'),
        agent("line", 'print {"a": 3}'),
        agent("variable", "put CRUCIBLE_PROMPT", model="m"),
        options=AGENTS,
    )
    assert [task["output"] for task in done.report["tasks"]] == [
        {"a": 1},
        {"a": 3},
        {"CRUCIBLE_PROMPT": "put CRUCIBLE_PROMPT"},
    ]
    assert not (run.folder / "PLAN_TASK_RESULT.json").exists()


def test_a_stand_in_knows_what_the_task_says_of_the_agent(run: Runs) -> None:
    """Harness, model, effort and session; empty where the task says nothing."""
    names = ("HARNESS", "MODEL", "EFFORT", "SESSION")
    prompt = "\n".join(f"put CRUCIBLE_{name}" for name in names)
    done = run(agent("a", prompt, harness="h", model="m", effort="e", session="s"), agent("b", prompt), options=AGENTS)
    assert [list(task["output"].values()) for task in done.report["tasks"]] == [["h", "m", "e", "s"], [""] * 4]


def test_an_old_result_is_never_taken_for_an_answer(run: Runs) -> None:
    """It is removed before the turn, whatever kind of file it is, and after it."""
    (run.folder / "PLAN_TASK_RESULT.json").write_text('{"old": true}')
    done = run(agent("a", "print nothing useful"), options=AGENTS)
    assert done.task("a")["status"] == "fail"
    assert "old" not in json.dumps(done.report)
    assert not (run.folder / "PLAN_TASK_RESULT.json").exists()


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("[1]", "not a JSON object"),
        ('{"a": NaN}', "NaN"),
        ('{"a": 1, "a": 2}', "twice"),
        ("{", "is not JSON"),
    ],
)
def test_a_result_that_is_no_object_fails(run: Runs, text: str, note: str) -> None:
    """A measured failure, in plain words."""
    done = run(agent("a", f"result {text}"), options=AGENTS)
    assert (done.task("a")["status"], done.task("a")["attempts"]) == ("fail", 1)
    assert note in done.task("a")["note"]
    assert "PLAN_TASK_RESULT.json" in done.task("a")["note"]


@pytest.mark.parametrize(
    ("kind", "note"),
    [("link", "cannot be read"), ("pipe", "is no regular file"), ("folder", "is no regular file")],
)
def test_a_result_that_is_no_file_fails(run: Runs, kind: str, note: str) -> None:
    """A link is not followed, and a pipe does not block."""
    done = run(agent("a", f"place {kind}"), options=AGENTS)
    assert done.task("a")["status"] == "fail"
    assert note in done.task("a")["note"]
    assert not os.path.lexists(run.folder / "PLAN_TASK_RESULT.json")
    assert run(agent("a", "result {}"), options=AGENTS).status == 0


def test_what_died_is_tried_again_after_a_while(run: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 75 of a stand-in is transport; each attempt has logs of its own."""
    monkeypatch.setattr("crucible.runtime.execute.DELAYS", (0.01, 0.02))
    done = run(agent("a", "first exit 75\nfirst complain gone\nresult {}"), options=AGENTS)
    assert done.status == 0
    assert (done.task("a")["status"], done.task("a")["attempts"]) == ("pass", 2)
    assert "a  transport  exit 75: gone; again in 0.01 s" in done.err
    assert done.log("attempt-1.err") == "gone\n"
    assert done.log("attempt-2.err") == ""


def test_what_dies_each_time_is_given_up(run: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two more attempts by default, as many as --retries says otherwise; the token says what died."""
    monkeypatch.setattr("crucible.runtime.execute.DELAYS", (0.01, 0.02))
    done = run(agent("a", "exit 75"), options=AGENTS)
    assert done.task("a") == {
        **done.task("a"),
        "status": "transport",
        "attempts": 3,
        "transport": "agent",
        "note": "3 attempts; the last: exit 75",
    }
    assert "0.02 s" in done.err
    once = run(agent("a", "exit 75"), options=(*AGENTS, "--retries", "0"))
    assert (once.task("a")["attempts"], once.task("a")["note"]) == (1, "exit 75")


def test_the_delays_are_those_that_are_promised() -> None:
    """After 1 s and after 4 s."""
    from crucible.runtime import execute

    assert execute.DELAYS == (1.0, 4.0)


@pytest.mark.parametrize("cost", ["-1", "nan", "inf", "cheap", "1e300", "1_0", "0x1"])
def test_a_cost_that_is_no_amount_fails_the_turn(run: Runs, cost: str) -> None:
    """Nothing can be held against a budget that way."""
    done = run(agent("a", f"cost {cost}\nresult {{}}"), options=AGENTS)
    assert done.task("a")["status"] == "fail"
    assert "cost" in done.task("a")["note"]


def test_what_passes_the_ceiling_and_dies_is_over_budget(run: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not waited for, and nobody is told that it comes again."""
    monkeypatch.setattr("crucible.runtime.execute.DELAYS", (1_000.0,))
    stand_in = "echo 0.6 >$CRUCIBLE_COST_FILE; exit 75"
    done = run(agent("a", "x"), command("b", "true", "a"), options=("--agent-cmd", stand_in, "--max-cost", "0.5"))
    assert done.report["exit"] == "budget_exceeded"
    assert done.events[-1]["outcome"] == "budget"
    assert done.task("b")["blocked"] == {"reason": "budget_ceiling"}
    assert (done.task("a")["status"], done.task("a")["attempts"]) == ("transport", 1)
    assert "again in" not in done.err


def test_what_waits_to_be_tried_again_is_ended_when_others_have_spent_all(
    run: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for an attempt that will not be made."""
    monkeypatch.setattr("crucible.runtime.execute.DELAYS", (1_000.0,))
    stand_in = "echo 0.3 >$CRUCIBLE_COST_FILE; exit 75"
    turns = [agent(name, "x", isolated=True, advisory=True) for name in ("a", "b")]
    git = "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first"
    assert os.system(git) == 0  # noqa: S605 - a constant
    done = run(*turns, options=("--agent-cmd", stand_in, "--max-cost", "0.5", "--jobs", "2"))
    assert done.report["exit"] == "budget_exceeded"
    assert [(task["status"], task["attempts"]) for task in done.report["tasks"]] == [("transport", 1)] * 2


@pytest.mark.parametrize(
    ("ceiling", "exit_", "statuses"),
    [
        ("0.30", "completed", ["pass", "pass", "pass", "pass"]),
        ("0.29", "budget_exceeded", ["pass", "pass", "pass", "blocked"]),
        ("0.20", "budget_exceeded", ["pass", "pass", "blocked", "blocked"]),
    ],
)
def test_a_sum_of_money_is_exact(run: Runs, ceiling: str, exit_: str, statuses: list[str]) -> None:
    """Three times 0.10 is 0.30; what passes the ceiling is finished and nothing runs after it."""
    turns = [agent(name, "cost 0.10\nresult {}", *before) for name, before in (("a", ()), ("b", "a"), ("c", "b"))]
    last = [] if exit_ == "completed" else [command("d", "true", "c")]
    done = run(*turns, *last, options=(*AGENTS, "--max-cost", ceiling))
    assert (done.report["exit"], list(done.statuses().values())) == (exit_, statuses[: len(turns) + len(last)])
    assert done.status == (0 if exit_ == "completed" else 1)
    assert done.events[-1]["outcome"] == ("finished" if exit_ == "completed" else "budget")
    assert f"of at most ${ceiling}" in done.out


# Agents: the harness's own program


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program on PATH that streams events as the harness does."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "claude"
    program.write_text(f'#!/bin/sh\nexec {STAND_IN} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.usefixtures("claude")
def test_a_harness_is_given_prompt_inputs_and_contract(run: Runs) -> None:
    """In this order, on its standard input, for a prompt may be longer than an argument."""
    done = run(command("one", 'echo \'{"a": "```"}\''), agent("two", "prompt\ncost 0.25", "one", emits=("prompt",)))
    assert done.status == 0
    assert done.report["spent_usd"] == 0.25
    prompt = done.task("two")["output"]["prompt"]
    assert prompt == (
        "prompt\ncost 0.25\n\n## Inputs\n\nWhat earlier tasks found, by name:\n\n"
        '````json\n{"one": {"a": "```"}, "params": {}}\n````\n\n## Result\n\nWhen you are done, write one JSON object '
        'with at least the field "prompt" to the file PLAN_TASK_RESULT.json in the working directory. It is the only '
        "result of this task: without it, the task has failed.\n"
    )


@pytest.mark.usefixtures("claude")
def test_a_session_is_one_conversation(run: Runs) -> None:
    """The first turn begins it and the next goes on with it; its cursor stays in the private ledger."""
    done = run(
        agent("a", "arguments", session="solver", model="m"),
        agent("b", "arguments", "a", session="solver"),
        agent("c", "arguments", "b"),
    )
    first, second, third = (task["output"]["arguments"] for task in done.report["tasks"])
    assert first[-4:-1] == ["--model", "m", "--session-id"]
    assert second[-2:] == ["--resume", "11111111-2222-4333-8444-555555555555"]
    assert not {"--resume", "--session-id"} & set(third)
    turns = [(event["action"], event["turn"]) for event in done.events if event["kind"] == "agent_session"]
    assert turns == [("start", 1), ("resume", 2)]
    ledger = done.state / "conversations.json"
    assert ledger.stat().st_mode & 0o777 == 0o600
    assert json.loads(ledger.read_text()) == {"solver": {"cursor": "11111111-2222-4333-8444-555555555555", "turns": 2}}
    assert "11111111" not in (done.state / "session.jsonl").read_text()


@pytest.mark.usefixtures("claude")
@pytest.mark.parametrize(
    "cursor",
    ["--dangerously-skip-permissions", "-c", "a b", "a\n", "a\0b", "\ud800", "é", "a/b", "x" * 201, 5, ["a"], {"a": 1}],
)
def test_a_cursor_that_is_no_identifier_fails_the_turn(run: Runs, cursor: object) -> None:
    """It would be an argument of the next turn, which goes on with the conversation that there was."""
    event = {"type": "assistant", "session_id": cursor}
    done = run(
        agent("a", f"event {json.dumps(event)}\ncost 0.5\nresult {{}}", session="s", advisory=True),
        agent("b", "arguments", session="s"),
        command("c", "true", "a", advisory=True),
    )
    assert done.status == 0
    assert done.task("a")["status"] == "fail"
    assert done.task("a")["cost_usd"] == 0.5
    assert "session_id that is no identifier" in done.task("a")["note"]
    assert cursor not in done.task("b")["output"]["arguments"]


@pytest.mark.usefixtures("claude")
@pytest.mark.parametrize("cursor", ["a", "A.b_c:d-e", "0" * 200])
def test_a_cursor_is_any_identifier(run: Runs, cursor: str) -> None:
    """Whatever form a harness gives it."""
    event = {"type": "result", "session_id": cursor, "total_cost_usd": 0}
    done = run(
        agent("a", f"event {json.dumps(event)}\nresult {{}}", session="s"), agent("b", "arguments", "a", session="s")
    )
    assert done.task("b")["output"]["arguments"][-2:] == ["--resume", cursor]


@pytest.mark.usefixtures("claude")
@pytest.mark.parametrize(
    ("event", "status", "transport"),
    [
        ({"result": "API Error: 529 overloaded"}, "transport", "provider"),
        ({"result": "API Error: Connection error."}, "transport", "gateway"),
        ({"result": "API Error: 529 overloaded", "retryable": False}, "fail", None),
        ({"result": "API Error (503 Service Unavailable)"}, "transport", "provider"),
        ({"result": 'API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}'}, "transport", "provider"),
        ({"result": '{"type":"error","error":{"type":"overloaded_error","message":""}}'}, "transport", "provider"),
        ({"result": "overloaded_error"}, "transport", "provider"),
        ({"result": "API Error: Overloaded"}, "transport", "provider"),
        ({"result": "API Error: read ECONNRESET"}, "transport", "gateway"),
        ({"result": "fetch failed"}, "transport", "gateway"),
        ({"result": "it broke", "api_error_status": 529}, "transport", "provider"),
        ({"result": "", "error": {"type": "overloaded_error", "message": "busy"}}, "transport", "provider"),
        ({"result": "API Error: 529 overloaded", "api_error_status": 400}, "fail", None),
        ({"result": "it broke", "api_error_status": 529, "retryable": False}, "fail", None),
        ({"result": "12 of 1429 tests failed; see line 529"}, "fail", None),
        ({"result": "429 tests failed"}, "fail", None),
        ({"result": "529"}, "fail", None),
        ({"result": "the test of a rate limit failed: overloaded, connection error, ECONNRESET"}, "fail", None),
        ({"result": "API Error: 400 the prompt speaks of 529 and of overloaded_error"}, "fail", None),
        ({"result": "API Error: 5290 is no status"}, "fail", None),
        ({"result": "API Error: no such model; rate limit 429"}, "fail", None),
        ({"result": "Invalid API key"}, "fail", None),
        ({"subtype": "error_max_turns"}, "fail", None),
    ],
)
def test_only_what_is_listed_is_tried_again(
    run: Runs, event: dict[str, Any], status: str, transport: str | None
) -> None:
    """An overloaded provider, a lost connection; and not when the harness says that it is no use."""
    full = {"type": "result", "subtype": "success", "is_error": True, "total_cost_usd": 0.01, **event}
    done = run(agent("a", f"event {json.dumps(full)}\nexit 1"), options=("--retries", "0"))
    assert (done.task("a")["status"], done.task("a").get("transport")) == (status, transport)
    assert done.report["spent_usd"] == 0.01


@pytest.mark.usefixtures("claude")
@pytest.mark.parametrize("cost", ["null", "-1", "NaN", '"free"', "true"])
def test_a_harness_has_to_say_what_it_cost(run: Runs, cost: str) -> None:
    """A turn whose cost is not known fails."""
    done = run(agent("a", f"cost {cost}\nresult {{}}"))
    assert done.task("a")["status"] == "fail"
    assert "cost" in done.task("a")["note"]


@pytest.mark.usefixtures("claude")
def test_what_a_harness_left_has_no_say(run: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events that come when its turn has ended make it neither better nor cheaper."""
    monkeypatch.setattr("crucible.runtime.process.GRACE", 1.0)
    event = '{"type": "result", "subtype": "success", "total_cost_usd": %s}'
    late = f"(trap '' TERM; sleep 0.5; echo '{event % 0.01}'; sleep 60) & sleep 0.1"
    program = tmp_path / "bin" / "claude"
    program.write_text(f"#!/bin/sh\necho '{{}}' >PLAN_TASK_RESULT.json\n{late}\necho '{event % 50}'\n")
    assert run(agent("a", "p")).report["spent_usd"] == 50


@pytest.mark.usefixtures("claude")
def test_a_harness_that_ends_without_a_word_did_not_start(run: Runs) -> None:
    """That may come right; one that ended well but left no result has failed."""
    done = run(agent("a", "silent\nexit 3", advisory=True), agent("b", "print x"), options=("--retries", "0"))
    assert (done.task("a")["status"], done.task("a")["transport"]) == ("transport", "agent")
    assert done.task("b")["note"] == "the agent left no PLAN_TASK_RESULT.json"


def test_a_missing_harness_is_told_plainly(run: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to install; it does not come back by asking again."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    done = run(agent("a", "x", advisory=True), agent("b", "x", harness="nosuch"))
    assert done.task("a")["status"] == done.task("b")["status"] == "fail"
    assert 'the agent\'s program "claude" is not on PATH; install it' in done.task("a")["note"]
    assert done.task("b")["note"].startswith('there is no harness "nosuch" here; known: claude')
    assert "log:" not in done.out


# Ceilings and capabilities


def test_time_that_is_up_ends_what_runs_and_blocks_the_rest(run: Runs) -> None:
    """Whole groups, also of processes that do not listen to TERM; the grace is theirs."""
    done = run(
        command("stubborn", "trap '' TERM; sleep 6000 & echo $! >>pids; sleep 6000 & echo $! >>pids; wait; wait"),
        command("never", "true"),
        options=("--max-time", "0.3s"),
    )
    assert done.status == 1
    assert done.report["exit"] == "wall_clock"
    assert (done.task("stubborn")["status"], done.task("stubborn")["note"]) == ("fail", "ended by --max-time")
    assert done.task("never")["blocked"] == {"reason": "wall_clock_ceiling"}
    for pid in (run.folder / "pids").read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)
    assert done.events[-1]["outcome"] == "budget"


def test_time_that_is_up_ends_the_set_up_too(run: Runs) -> None:
    """The report says so, as it does when the time is up later."""
    (run.folder / "crucible.toml").write_text('[workspace]\nsetup_cmd = "sleep 600 & sleep 600"\n')
    path = write_plan(run.folder, command("a", "touch ../ran"), lane="playbook")
    done = run.run("--file", path, "--manifest", "crucible.toml", "--max-time", "0.3s")
    assert done.status == 1
    assert "ended by --max-time" in done.err
    assert done.report["exit"] == "wall_clock"
    assert done.task("a")["blocked"] == {"reason": "wall_clock_ceiling"}
    assert done.events[-1]["outcome"] == "budget"
    assert not (run.folder / "ran").exists()


def test_time_that_is_up_ends_the_wait_for_another_attempt(run: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """What died stays what it was."""
    monkeypatch.setattr("crucible.runtime.execute.DELAYS", (3_000.0,))
    done = run(agent("a", "exit 75"), command("b", "true", "a"), options=(*AGENTS, "--max-time", "0.5s"))
    assert (done.task("a")["status"], done.task("a")["attempts"]) == ("transport", 1)
    assert done.report["exit"] == "wall_clock"


def test_a_plan_that_can_never_pass_runs_nothing(run: Runs) -> None:
    """Every task is truncated, and it is said what is missing."""
    done = run(command("first", "touch ran"), command("gpu", "true", "first", needs="gpu"))
    assert done.status == 1
    assert done.report["exit"] == "truncated"
    assert set(done.statuses().values()) == {"truncated"}
    assert not (run.folder / "ran").exists()
    assert 'invalid: truncated: the required task "gpu" cannot run here: gpu is not there' in done.out
    there = run(command("first", "touch ran"), command("gpu", "true", "first", needs="gpu"), options=("--cap", "gpu"))
    assert there.status == 0


@pytest.mark.parametrize(
    "options",
    [
        *(("--max-cost", text) for text in ("0", "-1", "nan", "inf", "1e3", "x", "", "0.0000001", "٣")),
        *(("--max-time", text) for text in ("5", "0s", "-1s", "s", "1d", "nans", "infs", "")),
        *(("--jobs", text) for text in ("0", "-1", "1.5", "x", "9" * 5000, "")),
        *(("--retries", text) for text in ("-1", "x", "")),
        ("--state-dir", ""),
        ("--param", "novalue"),
    ],
)
def test_an_option_that_makes_no_sense_is_wrong_usage(run: Runs, options: tuple[str, str]) -> None:
    """Exit code 2 before anything is written; the option is named."""
    done = run(command("a", "true"), options=(f"{options[0]}={options[1]}",))
    assert done.status == 2
    assert options[0] in done.err
    assert not done.state.exists()


def test_a_file_that_is_not_there_is_exit_2(run: Runs) -> None:
    """With what was likely meant."""
    (run.folder / "workflow.star").write_text("")
    done = run.run("--file", "workflow.sta")
    assert done.status == 2
    assert 'did you mean "workflow.star"?' in done.err


def test_standard_input_runs_in_the_working_directory(run: Runs) -> None:
    """Its name says what it is, not where it runs."""
    plan = write_plan(run.folder, command("a", "pwd >&2"))
    line = ("plan", "run", "--file", "-", "--stdin-filename", "elsewhere/plan.json")
    done = crucible(*line, cwd=run.folder, stdin=plan.read_bytes())
    assert done.status == 0
    assert Ran(0, "", "", run.folder / "state").log("001-a.attempt-1.err") == f"{run.folder.resolve()}\n"


def test_a_source_is_compiled_and_run(run: Runs) -> None:
    """One with mistakes is exit 1, and nothing is written."""
    good = 'a = command(name = "a", run = "echo 1")\nworkflow(type = "custom", tasks = [a], result = a)\n'
    (run.folder / "workflow.star").write_text(good)
    assert run.run("--file", "workflow.star").task("a")["output"] == 1
    other = run.folder / "other"
    other.mkdir()
    (other / "workflow.star").write_text(good.replace("run =", "runs ="))
    done = run.run("--file", "other/workflow.star", state=other / "state")
    assert (done.status, done.state.exists()) == (1, False)
    assert "unknown-argument" in done.err


def test_state_goes_where_it_is_told(run: Runs) -> None:
    """And nowhere else."""
    done = run.run(
        "--file",
        str(run(command("a", "true")).state.parent / "plan.json"),
        "--state-dir",
        "there",
        state=run.folder / "there",
    )
    assert done.status == 0
    assert done.report["valid"] is True


@pytest.mark.parametrize("signal", ["INT", "TERM", "HUP"])
def test_a_run_that_is_stopped_says_what_was_running(run: Runs, signal: str) -> None:
    """Exit code 130; what ran is a failure with that note, what had not begun has no result."""
    done = run(command("done", "true"), command("stop", f"kill -{signal} $PPID; sleep 6000"), command("never", "true"))
    assert done.status == 130
    assert done.report["exit"] == "interrupted"
    assert done.statuses() == {"done": "pass", "stop": "fail", "never": "pending"}
    assert done.task("stop")["note"] == "interrupted"
    assert done.task("never")["note"] == "the run was stopped before it began"
    assert done.events[-1] == {"v": 1, "kind": "shutdown", "outcome": "stopped", "reason": "interrupted"}
    assert "invalid: interrupted\n" in done.out


@pytest.mark.parametrize("how", ["key", "clock"])
@pytest.mark.parametrize("inject", ["", 'inject = ["frozen"]\n'])
def test_a_run_that_is_stopped_while_it_captures_the_workspace(
    run: Runs, inject: str, how: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The capture ends and is not begun again, and the run says that it was stopped, not that a clone was refused."""
    shims = tmp_path_factory.mktemp("shims")
    key = "kill -INT $PPID; " if how == "key" else ""
    script = f'case "$1" in ls-files) echo >>{shims}/calls; {key}sleep 60;; esac; exec {shutil.which("git")} "$@"'
    (shims / "git").write_text(f"#!/bin/sh\n{script}\n")
    (shims / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{shims}{os.pathsep}{os.environ['PATH']}")
    (run.folder / "frozen").write_text("")
    (run.folder / "crucible.toml").write_text(f'[repo]\npath = "origin"\n[workspace]\n{inject}')
    (run.folder / "origin").mkdir()
    (run.folder / "origin" / "file").write_text("")
    options = ("--max-time", "2s") if how == "clock" else ()
    done = run(command("a", "true", isolated=True), options=("--manifest", "crucible.toml", *options))
    assert (shims / "calls").read_text() == "\n"
    ended = ("interrupted", "stopped") if how == "key" else ("wall_clock", "budget")
    assert (done.report["exit"], done.events[-1]["outcome"]) == ended
    assert done.status == (130 if how == "key" else 1)


def test_a_run_whose_words_nobody_can_read_has_ended_all_the_same(run: Runs) -> None:
    """The last event says how it ended; the exit code tells of the closed output."""
    plan = write_plan(run.folder, command("a", "true"))
    assert shell('"$@" >&-', "plan", "run", "--file", str(plan), cwd=run.folder).status == 2
    assert events(run.folder / "state")[-1]["outcome"] == "finished"


def test_a_key_that_reaches_a_child_too_is_an_interrupt(run: Runs) -> None:
    """A child that has no session of its own yet dies of it; that is nobody's failure."""
    done = run(command("both", "kill -INT $PPID; kill -INT $$; sleep 6000"))
    assert (done.status, done.task("both")["note"]) == (130, "interrupted")


# Order


def test_two_runs_tell_the_same_story(run: Runs) -> None:
    """But for times, costs and identifiers."""
    tasks = [
        *(command(f"f{number}", f"echo {number}; exit {number % 2}", advisory=True) for number in range(6)),
        evaluate("e", "echo '{\"score\": 2}'", threshold=1.0, direction="higher"),
        command("end", "cat $CRUCIBLE_INPUTS_FILE", "f0", "f2", "e"),
        command("never", "true", "f1", advisory=True),
    ]
    stories = []
    for _ in range(2):
        done = run(*tasks)
        stories.append(
            [
                {key: value for key, value in event.items() if key not in ("ts", "seconds", "cost_usd")}
                for event in done.events
            ]
        )
    assert stories[0] == stories[1]


def test_commands_do_not_read_what_the_run_is_given(run: Runs) -> None:
    """Standard input of a task is closed."""
    done = run(command("a", "cat; echo 1"))
    assert (done.status, done.task("a")["output"]) == (0, 1)


def test_a_run_starts_without_what_it_does_not_need(tmp_path: Path) -> None:
    """Each of these costs milliseconds of every start."""
    write_plan(tmp_path, command("one", "true"))
    script = """\
import sys
from crucible.cli import main
main.main(["plan", "run", "--file", "plan.json", "--no-progress"])
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, check=True)
    loaded = set(done.stdout.decode().splitlines()[-1].split())
    assert "crucible.runtime.execute" in loaded
    heavy = {"typing", "dataclasses", "inspect", "hashlib", "gettext", "locale", "heapq", "subprocess", "rich"}
    assert loaded & heavy == set()


# What is said before a run, and at its end


def test_a_manifest_that_nobody_named_is_told(run: Runs) -> None:
    """With what to type; a run with it says nothing."""
    (run.folder / "crucible.toml").write_text("[workspace]\ndir = 'w'\n")
    told = "warning: crucible.toml is not used: --file plan.json --manifest crucible.toml runs in its workspace"
    assert told in run(command("one", "true")).err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--agent-cmd", "agnet --fast"), 'the command of the agent begins with "agnet", which is no program on PATH'),
        ((), 'the agent\'s program "claude" is not on PATH; install it ('),
    ],
)
def test_an_agent_that_is_not_there_is_told_before_the_first_task(
    run: Runs, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], said: str
) -> None:
    """The run goes on to its end: other tasks may not need one."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    done = run(command("one", "true"), agent("two", "go", "one"), options=options)
    assert done.err.index(f"warning: no agent can do a turn here: {said}") < done.err.index("one  running")
    assert done.statuses() == {"one": "pass", "two": "fail"}


def test_isolated_tasks_without_a_repository_are_told_before_the_first_task(run: Runs) -> None:
    """Where there is none above the folder either."""
    done = run(command("one", "true"), command("two", "true", isolated=True))
    assert done.err.index("warning: isolated tasks run in clones of the workspace, and ") < done.err.index(
        "one  running"
    )


def test_the_end_shows_scores_and_the_result(run: Runs) -> None:
    """The score of each measurement in its row, the output of the result in a line."""
    done = run(evaluate("size", "echo '{\"score\": 12.5}'"), command("top", "echo '{\"best\": [1, \"ü\"]}'", "size"),
               result="top")  # fmt: skip
    assert re.search(r"^task +state +attempts +elapsed +score$", done.out, re.MULTILINE)
    assert re.search(r"^size +pass +1 +0\.\d s +12\.5$", done.out, re.MULTILINE)
    assert 'top: {"best": [1, "ü"]}\n' in done.out

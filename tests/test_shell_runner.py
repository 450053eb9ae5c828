"""Commands and measurements, each run by a real shell: what the child finds, and what its end means."""

import json
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from crucible.runtime import process, surroundings
from crucible.runtime.outcome import Attempt, Status
from crucible.runtime.process import Exit, Processes
from crucible.runtime.runner import Job, Logs
from crucible.runtime.shell_runner import ShellRunner
from crucible.schemas.ir import AgentTask, CommandTask, EvaluateTask, Task


class Shop(NamedTuple):
    """A workspace, a folder of logs, and processes that are at work."""

    workspace: Path
    logs: Path
    processes: Processes

    def job(self, task: Task, **changes: Any) -> Job:
        """Return the job of a first attempt of a task."""
        logs = Logs(*(str(self.logs / f"001.{end}") for end in ("out", "err", "inputs.json")))
        return Job(task, 0, 1, {}, {}, str(self.workspace), logs)._replace(**changes)

    def attempt(self, job: Job, environ: Mapping[str, str] = os.environ) -> Attempt:
        """Attempt a job."""
        turn = ShellRunner(surroundings.base(environ)).attempt(job)
        try:
            command = next(turn)
            while True:
                command = turn.send(self.processes.run(command))
        except StopIteration as end:
            attempt: Attempt = end.value
            return attempt._replace(seconds=0.0)

    def command(self, line: str, *, emits: tuple[str, ...] = (), **changes: Any) -> Attempt:
        """Attempt a command task."""
        return self.attempt(self.job(CommandTask(name="it", command=line, emits=emits), **changes))

    def evaluate(self, line: str, threshold: float | None = None, direction: str | None = None) -> Attempt:
        """Attempt an evaluate task."""
        task = EvaluateTask(name="it", command=line, threshold=threshold, direction=direction)
        return self.attempt(self.job(task))


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """Yield a shop."""
    for name in ("workspace", "logs"):
        (tmp_path / name).mkdir()
    with Processes() as processes:
        yield Shop(tmp_path / "workspace", tmp_path / "logs", processes)


def passed(output: Any = None, note: str = "") -> Attempt:
    """Return an attempt that passed."""
    return Attempt(Status.PASS, output=output, note=note)


def failed(note: str, output: Any = None) -> Attempt:
    """Return a measured failure."""
    return Attempt(Status.FAIL, output=output, note=note)


def test_a_command_passes_with_its_last_line(shop: Shop) -> None:
    """Any value is an output; nothing printed is none."""
    assert shop.command("echo building; echo '[1, 2]'") == passed([1, 2])
    assert shop.command("echo '{\"a\": null}' && echo done >&2") == passed({"a": None})
    assert shop.command("true") == passed()


def test_plain_text_is_no_output_of_a_command(shop: Shop) -> None:
    """The last line that a command prints is JSON; the note says what to do."""
    note = "the last line is not JSON: done in 3s; line 1 would have been: print it last"
    assert shop.command("echo '{\"score\": 1}'; echo done in 3s") == failed(note)


def test_colours_are_removed_and_nobody_is_made_to_print_them(shop: Shop) -> None:
    """Escape sequences are taken off with a remark, and what forces colour is unset for the child."""
    note = "escape sequences were removed from the last line"
    assert shop.evaluate(r"""printf '\033[32m{"score": 1}\033[0m\n'""") == passed({"score": 1, "pass": True}, note)
    environ = {**os.environ, "FORCE_COLOR": "1", "CLICOLOR_FORCE": "1"}
    task = CommandTask(name="it", command='echo "\\"$FORCE_COLOR$CLICOLOR_FORCE\\""')
    assert shop.attempt(shop.job(task), environ) == passed("")


GRADES: dict[str, tuple[str, float | None, str | None, Attempt]] = {
    "no pass": ("{}", None, None, passed({"pass": True})),
    "pass": ('{"pass": true, "n": 1}', None, None, passed({"pass": True, "n": 1})),
    "veto": ('{"pass": false}', None, None, failed("pass is false", {"pass": False})),
    "score without threshold": ('{"score": "any"}', None, None, passed({"score": "any", "pass": True})),
    "lower, at it": ('{"score": 2}', 2.0, "lower", passed({"score": 2, "pass": True})),
    "lower, above": (
        '{"score": 2.5, "pass": true}',
        2.0,
        "lower",
        failed("score 2.5 is above the threshold 2.0", {"score": 2.5, "pass": False}),
    ),
    "higher, at it": ('{"score": 2}', 2.0, "higher", passed({"score": 2, "pass": True})),
    "higher, below": (
        '{"score": -1}',
        0.0,
        "higher",
        failed("score -1 is below the threshold 0.0", {"score": -1, "pass": False}),
    ),
    "veto of a good score": (
        '{"pass": false, "score": 9}',
        1.0,
        "higher",
        failed("pass is false", {"pass": False, "score": 9}),
    ),
    "no score": ("{}", 1.0, "higher", failed("there is no score to hold against the threshold")),
    "null": ('{"score": null}', 1.0, "higher", failed("score is a number, not null")),
    "a string": ('{"score": "5"}', 1.0, "higher", failed("score is a number, not a string")),
    "a boolean": ('{"score": true}', 1.0, "higher", failed("score is a number, not a boolean")),
    "beyond all floats": (f'{{"score": 1{"0" * 400}}}', 1.0, "higher", failed("score is not finite")),
    "pass is a string": ('{"pass": "yes"}', None, None, failed("pass is true or false, not a string")),
    "pass is null": ('{"pass": null}', None, None, failed("pass is true or false, not null")),
    "pass is a number": ('{"pass": 1, "score": 5}', 1.0, "higher", failed("pass is true or false, not an integer")),
    "a list": ("[1]", None, None, failed("an evaluate prints a JSON object on its last line, not a list")),
    "nothing": ("", None, None, failed("an evaluate prints a JSON object on its last line: it printed nothing")),
    "Infinity": (
        '{"score": Infinity}',
        1.0,
        "higher",
        failed(
            "an evaluate prints a JSON object on its last line: the last line is not JSON: Infinity is no number there"
        ),
    ),
}


@pytest.mark.parametrize(("line", "threshold", "direction", "attempt"), GRADES.values(), ids=GRADES)
def test_a_measurement_is_judged(
    shop: Shop, line: str, threshold: float | None, direction: str | None, attempt: Attempt
) -> None:
    """Pass can veto, the threshold decides, and the output says which it was."""
    assert shop.evaluate(f"echo '{line}'", threshold, direction) == attempt


ENDS: dict[str, tuple[str, str]] = {
    "a status": ("echo one >&2; echo two >&2; exit 3", "exit 3: two"),
    "a status without a word": ("echo '{}'; exit 1", "exit 1"),
    "a signal": ("echo a >&2; echo b >&2; kill -SEGV $$", "ended by SIGSEGV\na\nb"),
    "killed": ("kill -KILL $$", "ended by SIGKILL"),
    "a signal that the shell reports": ("sh -c 'kill -KILL $$' 2>/dev/null; exit $?", "exit 137 (SIGKILL)"),
    "a status beyond signals": ("exit 255", "exit 255"),
    "127": ("for i in 1 2 3; do echo $i >&2; done; exit 127", "exit 127: it was not found\n1\n2\n3"),
    "126": ("seq 30 >&2; exit 126", "\n".join(["exit 126: it cannot be executed", *map(str, range(11, 31))])),
    "colours on stderr": (r"printf '\033[31mred\033[0m\n' >&2; exit 1", "exit 1: red"),
    "broken UTF-8 on stderr": (r"printf 'a\377b\n' >&2; exit 1", "exit 1: a\N{REPLACEMENT CHARACTER}b"),
}


@pytest.mark.parametrize(("line", "note"), ENDS.values(), ids=ENDS)
def test_an_end_that_is_a_failure_says_what_happened(shop: Shop, line: str, note: str) -> None:
    """Status or signal, and the end of stderr; none of them is retried, and none has an output."""
    assert shop.command(line) == failed(note)


def test_what_is_not_there_and_what_cannot_be_executed_are_failures(shop: Shop) -> None:
    """The shell says so itself; asking again changes nothing."""
    attempt = shop.command("nosuchcmd")
    assert attempt.status is Status.FAIL
    assert attempt.note.startswith("exit 127: it was not found\n")
    assert "nosuchcmd" in attempt.note
    (shop.workspace / "script").write_text("#!/bin/sh\n", encoding="utf-8")
    attempt = shop.command("./script")
    assert attempt.status is Status.FAIL
    assert attempt.note.startswith("exit 126: it cannot be executed\n")


def test_a_child_finds_its_inputs(shop: Shop) -> None:
    """Task, attempt, and the inputs twice: as a file and as a variable; in the workspace, with nothing on stdin."""
    inputs = {"b": {"score": 1.5}, "a": 'quote " \u2028 é \ud800', "none": None}
    params = {"n": 3, "text": "é"}
    (shop.workspace / "here").touch()
    line = 'cat here; cat; printf %s "$CRUCIBLE_INPUTS" >var; cat "$CRUCIBLE_INPUTS_FILE" >file; '
    line += 'printf \'["%s", "%s"]\' "$CRUCIBLE_TASK" "$CRUCIBLE_ATTEMPT"'
    task = CommandTask(name="größer", command=line)
    assert shop.attempt(shop.job(task, attempt=2, inputs=inputs, params=params)) == passed(["größer", "2"])
    text = (shop.workspace / "file").read_text(encoding="utf-8")
    assert text == (shop.workspace / "var").read_text(encoding="utf-8") + "\n"
    assert json.loads(text) == {**inputs, "params": params}
    assert list(json.loads(text)) == ["b", "a", "none", "params"]
    assert "é" in text


def test_large_inputs_are_in_the_file_alone(shop: Shop) -> None:
    """Beyond 96 KiB the variable is left out, also one of a run around ours."""
    largest = surroundings.IN_ENVIRONMENT - len('{"a": "", "params": {}}')
    line = 'printf \'["%s", %s]\' "${CRUCIBLE_INPUTS+set}" "$(wc -c <"$CRUCIBLE_INPUTS_FILE")"'
    task = CommandTask(name="it", command=line)
    environ = {**os.environ, "CRUCIBLE_INPUTS": "outer"}
    for length, is_set in ((0, "set"), (largest, "set"), (largest + 1, ""), (300_000, "")):
        job = shop.job(task, inputs={"a": "x" * length})
        size = len('{"a": "", "params": {}}\n') + length
        assert shop.attempt(job, environ) == passed([is_set, size])


def test_broken_variables_of_ours_reach_the_child_as_they_are(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our environment is bytes, whatever they mean."""
    monkeypatch.setitem(os.environb, b"BROKEN", b"\xff")
    line = 'printf \'"é %s"\' "$(printf %s "$BROKEN" | od -An -tx1 | tr -d \' \')"'
    assert shop.command(line) == passed("é ff")


def test_the_locale_changes_no_byte() -> None:
    """What the system calls text is UTF-8 for the child, also where the locale has no such characters."""
    script = "import os, sys; from crucible.runtime.surroundings import encodable as text\n"
    script += "print(sys.getfilesystemencoding(), os.fsencode(text('\\xe9\\u2028')))"
    environ = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == "ascii b'\\xc3\\xa9\\xe2\\x80\\xa8'\n"


def no_workspace(shop: Shop, job: Job) -> Job:
    """Let the workspace vanish."""
    shop.workspace.rmdir()
    return job


def no_logs(shop: Shop, job: Job) -> Job:
    """Let the folder of logs vanish."""
    shop.logs.rmdir()
    return job


def no_out(_shop: Shop, job: Job) -> Job:
    """Put a folder where the output is to go."""
    Path(job.logs.out).mkdir()
    return job


def too_long(_shop: Shop, job: Job) -> Job:
    """Give it a command that no system takes."""
    return job._replace(task=CommandTask(name="it", command="#" * 3_000_000))


def nul(_shop: Shop, job: Job) -> Job:
    """Give it a command that no process can have."""
    return job._replace(task=CommandTask(name="it", command="echo a\0b"))


OURS: dict[str, tuple[Callable[[Shop, Job], Job], str]] = {
    "no workspace": (no_workspace, "the workspace cannot be entered: No such file or directory"),
    "no logs": (no_logs, "001.inputs.json cannot be written: No such file or directory"),
    "no output": (no_out, "001.out cannot be written: Is a directory"),
    "too long": (too_long, "the command with its environment is larger than the system allows"),
    "a NUL byte": (nul, "the system takes no such command or environment: embedded null byte"),
}


@pytest.mark.parametrize(("change", "note"), OURS.values(), ids=OURS)
def test_what_is_our_fault_is_never_retried(shop: Shop, change: Callable[[Shop, Job], Job], note: str) -> None:
    """A workspace, a disk, a command: they do not come back by asking again."""
    job = change(shop, shop.job(CommandTask(name="it", command="true")))
    assert shop.attempt(job) == failed(note)


def test_a_file_that_finds_no_room_is_said(shop: Shop) -> None:
    """Where the inputs cannot be written nothing is started."""
    job = shop.job(CommandTask(name="it", command="touch started"), inputs={"a": "x" * 10_000})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, hard))
    try:
        attempt = shop.attempt(job)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert attempt == failed("001.inputs.json cannot be written: File too large")
    assert not (shop.workspace / "started").exists()


PLAYS: dict[str, str] = {
    "nothing": "true",
    "removed": 'rm "$CRUCIBLE_INPUTS_FILE"',
    "moved": 'mv "$CRUCIBLE_INPUTS_FILE" kept',
    "linked": 'ln "$CRUCIBLE_INPUTS_FILE" kept',
    "a link in its place": 'cp "$CRUCIBLE_INPUTS_FILE" kept; ln -sf "$PWD/kept" "$CRUCIBLE_INPUTS_FILE"',
    "a pipe in its place": 'rm "$CRUCIBLE_INPUTS_FILE"; mkfifo "$CRUCIBLE_INPUTS_FILE"',
    "longer": 'cp "$CRUCIBLE_INPUTS_FILE" kept; seq 9999 >"$CRUCIBLE_INPUTS_FILE"',
    "unreadable": 'cp "$CRUCIBLE_INPUTS_FILE" kept; chmod 0 "$CRUCIBLE_INPUTS_FILE"',
}


@pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS)
def test_the_inputs_file_of_an_earlier_attempt_is_used_again(shop: Shop, play: str) -> None:
    """Whatever a child did with its file, the next one finds its own inputs there, and what was kept is not changed."""
    first = {"a": "first" * 100}
    assert shop.attempt(shop.job(CommandTask(name="it", command=play), inputs=first)).status is Status.PASS
    job = shop.job(CommandTask(name="it", command='cat "$CRUCIBLE_INPUTS_FILE"'), inputs={"a": 2})
    assert shop.attempt(job) == passed({"a": 2, "params": {}})
    kept = shop.workspace / "kept"
    if kept.exists():
        assert json.loads(kept.read_bytes()) == {**first, "params": {}}


def test_a_device_in_the_place_of_the_inputs_stays(shop: Shop) -> None:
    """Whoever names a device by mistake does not lose it."""
    job = shop.job(CommandTask(name="it", command="touch started"))
    try:
        os.mknod(job.logs.inputs, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes devices")
    assert shop.attempt(job) == failed("001.inputs.json cannot be written: it is a device")
    assert stat.S_ISCHR(os.lstat(job.logs.inputs).st_mode)
    assert not (shop.workspace / "started").exists()


def test_a_shell_that_cannot_be_started_is_transport(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only that may be tried again."""
    monkeypatch.setattr("crucible.runtime.shell_runner.SHELL", "/no/such/shell")
    note = "/no/such/shell cannot be started: No such file or directory"
    assert shop.command("true") == Attempt(Status.TRANSPORT, note=note, transport="command")


def test_a_system_without_room_is_transport(shop: Shop) -> None:
    """Too many open files are a matter of the moment, whichever file it is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        attempt = shop.command("true")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    note = "the process cannot be started: Too many open files"
    assert attempt == Attempt(Status.TRANSPORT, note=note, transport="command")


def test_an_attempt_that_we_ended_says_so(shop: Shop) -> None:
    """The note is the cause, whatever the child makes of it."""
    job = shop.job(CommandTask(name="it", command="trap 'echo {}; exit 0' TERM; kill -INT $PPID; sleep 600 & wait"))
    assert shop.attempt(job) == failed("interrupted")


def test_a_cause_stands_alone(shop: Shop) -> None:
    """An exit with a cause has no other note, nor one that we killed."""
    for exit_ in (Exit(0, cause="ended by --max-time"), Exit(None, signal.SIGKILL, cause="ended by --max-time")):
        turn = ShellRunner({}).attempt(shop.job(CommandTask(name="a", command="b")))
        next(turn)
        with pytest.raises(StopIteration) as end:
            turn.send(exit_)
        assert end.value.value == failed("ended by --max-time")


def test_a_server_in_the_background_takes_nothing_away(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says when it is ended is behind the last line of the command."""
    monkeypatch.setattr(process, "GRACE", 10.0)
    server = "(trap 'echo stopped; exit' TERM; touch ready; sleep 600 & wait) & until [ -e ready ]; do :; done"
    assert shop.command(f"{server}; echo '{{\"a\": 1}}'") == passed({"a": 1})


def test_a_stale_log_is_no_answer(shop: Shop) -> None:
    """What an earlier run left in the place of the log is gone."""
    job = shop.job(EvaluateTask(name="it", command="true"))
    Path(job.logs.out).write_text('{"pass": true}\n', encoding="utf-8")
    assert shop.attempt(job).status is Status.FAIL


def test_an_endless_line_and_much_on_stderr_hang_nobody(shop: Shop) -> None:
    """Both streams may be of any length at once."""
    loud = "yes x | tr -d '\\n' | head -c 40000000; yes err | head -c 5000000 >&2; echo; echo '{\"a\": 1}'"
    assert shop.command(loud) == passed({"a": 1})
    assert os.path.getsize(shop.logs / "001.err") == 5_000_000


def test_a_child_that_removes_its_log_printed_nothing(shop: Shop) -> None:
    """The log is within reach of the child; what it does there is no crash of ours."""
    line = 'echo "{}"; rm "${CRUCIBLE_INPUTS_FILE%.inputs.json}.out"'
    assert shop.evaluate(line).note == "an evaluate prints a JSON object on its last line: it printed nothing"


def test_a_task_without_a_command_is_a_mistake_of_ours(shop: Shop) -> None:
    """Other kinds have other runners."""
    with pytest.raises(TypeError, match="agent"):
        shop.attempt(shop.job(AgentTask(name="it", prompt="p")))

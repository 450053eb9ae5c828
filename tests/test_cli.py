"""The command line as a process: exit codes, what goes to which stream, and what may be wrong with those."""

import fcntl
import itertools
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import process
import pytest
from process import COMMAND, COMPILE, ENDLESS, MISTAKE, SOURCE, Done, codes, crucible, everything, pack, report, shell

UNKNOWN = b'error[unknown-argument]: evaluate() has no argument "depend_on"; did you mean "depends_on"?\n'


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """Give a pack without a mistake."""
    return pack(tmp_path / "good")


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """Give a pack with one mistake."""
    return pack(tmp_path / "bad", workflow=MISTAKE)


# Exit codes and streams


def test_a_good_source_is_0_and_says_nothing_but_its_product(good: Path) -> None:
    """Standard output has the JSON, standard error nothing at all."""
    done = crucible(*COMPILE, cwd=good)
    assert (done.status, done.err) == (0, b"")
    assert json.loads(done.out)["result"] == "gate"


def test_a_mistake_is_1_and_has_no_product(bad: Path) -> None:
    """Diagnostics are no product of a compile."""
    done = crucible(*COMPILE, cwd=bad)
    assert (done.status, done.out) == (1, b"")
    assert done.err.startswith(UNKNOWN + b" --> workflow.star:2:")


USAGES = {
    "nothing": [],
    "half a command": ["plan"],
    "an unknown command": ["compile"],
    "no file": ["plan", "compile-workflow"],
    "an unknown option": [*COMPILE, "--manfest", "crucible.toml"],
    "a shortened option": ["plan", "compile-workflow", "--fil", "workflow.star"],
    "check without a manifest": [*COMPILE, "--check"],
    "a launch into a manifest": [*COMPILE, "--manifest", "crucible.toml", "--param", "a=b"],
    "a parameter without a value": [*COMPILE, "--param", "a"],
    "a parameter without a name": [*COMPILE, "--param", "=a"],
    "an unknown orchestrator": [*COMPILE, "--admit", "anyone"],
    "standard input of no pack": ["plan", "compile-workflow", "--file", "-"],
    "a pack for no standard input": [*COMPILE, "--stdin-filename", "workflow.star"],
    "a manifest out of a manifest": ["plan", "compile-workflow", "--file", "crucible.toml", "--manifest", "x.toml"],
    "a warning that there is not": ["lint", "--deny", "unused-lod"],
    "two sources to mend and print": ["lint", "--fix", "-", "workflow.star", "--stdin-filename", "workflow.star"],
    "standard input twice": ["lint", "-", "-", "--stdin-filename", "workflow.star"],
    "a pack for nothing to lint": ["lint", "workflow.star", "--stdin-filename", "workflow.star"],
    "parameters of nothing": ["plan", "params"],
}


@pytest.mark.parametrize("arguments", USAGES.values(), ids=USAGES)
def test_wrong_usage_is_2_and_one_object_of_json(good: Path, arguments: list[str]) -> None:
    """What is wrong is said in the form that was asked for, and nothing is compiled."""
    said = crucible(*arguments, cwd=good)
    assert (said.status, said.out) == (2, b"")
    assert re.search(rb"^crucible.*: \S", said.err, re.MULTILINE)
    done = crucible(*arguments, "--format", "json", cwd=good)
    text, other = (done.out, done.err) if "lint" in arguments else (done.err, done.out)
    assert (done.status, other) == (2, b"")
    if not said.err.startswith(b"usage: crucible [-h]"):  # those take no --format
        assert codes(report(text)) == ["wrong-usage"]


def test_wrong_usage_points_to_the_help(good: Path) -> None:
    """Whoever does not know the command is told where it is explained."""
    assert crucible(cwd=good).err.endswith(b"; crucible --help shows examples\n")
    assert b"; the commands are plan, lint, check, run, review, init, lsp; " in crucible(cwd=good).err
    assert b"; the commands are compile-workflow, params, show, render, " in crucible("plan", cwd=good).err
    assert crucible("plan", "params", cwd=good).err.endswith(b"; crucible plan params --help shows examples\n")


GUESSES = {
    "plan explain": ["explain", "dropped-task"],
    "plan render": ["rendr", "--file", "workflow.star"],
    "lint": ["plan", "lint"],
    "plan show": ["plan", "shwo"],
    "--file workflow.star": ["plan", "render", "workflow.star"],
    "--manifest crucible.toml": ["check", "crucible.toml", "--json"],
}


@pytest.mark.parametrize(("guess", "arguments"), GUESSES.items(), ids=GUESSES)
def test_wrong_usage_says_what_was_meant(good: Path, guess: str, arguments: list[str]) -> None:
    """A command on the other level, one that is misspelt, and a file without its option."""
    done = crucible(*arguments, cwd=good)
    whole = guess if guess.startswith("-") else f"crucible {guess}"
    assert (done.status, f"did you mean {whole}?" in (done.out + done.err).decode()) == (2, True)


@pytest.mark.parametrize("arguments", [["plan", "render"], ["check", "--manifest"], ["compile"], ["check", "--json"]])
def test_nothing_is_guessed_from_nothing(good: Path, arguments: list[str]) -> None:
    """What was meant is not said where that is anybody's guess."""
    done = crucible(*arguments, cwd=good)
    assert (done.status, b"did you mean" in done.out + done.err) == (2, False)


def test_an_argument_too_many_is_told_by_its_command(good: Path) -> None:
    """The usage and the help are those of the command that does not take it."""
    done = crucible("init", "packs/page", cwd=good)
    assert done.status == 2
    assert done.err.startswith(b"usage: crucible init [-h]")
    assert done.err.endswith(b": unrecognized arguments: packs/page; crucible init --help shows examples\n")


HELPS = ["", *(f"plan {name}".strip() for name in ("", "compile-workflow", "params", "schema", "explain", "exposure"))]
HELPS += ["lint", "check", "init"]


@pytest.mark.parametrize("command", HELPS)
def test_help_has_an_example_on_every_level(command: str) -> None:
    """Examples teach faster than lists of options."""
    done = crucible(*command.split(), "--help")
    assert (done.status, done.err) == (0, b"")
    assert re.search(rb"\nexamples?:\n  crucible ", done.out)
    assert max(map(len, done.out.splitlines())) <= 120


# Files that cannot be read


@contextmanager
def oddity(kind: str, path: Path) -> Iterator[None]:
    """Put something under a name that is no readable file."""
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "dangling link":
        path.symlink_to("nowhere")
    elif kind == "loop of links":
        path.symlink_to(path.name)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    yield


ODDITIES = ["missing", "directory", "fifo", "dangling link", "loop of links", "device"]
READERS = {
    "compile": ("plan", "compile-workflow", "--file", "odd.star"),
    "params": ("plan", "params", "--file", "odd.star"),
    "lint": ("lint", "odd.star"),
    "manifest": (*COMPILE, "--manifest", "odd.star"),
    "check": (*COMPILE, "--check", "--manifest", "odd.star"),
    "by hand": ("plan", "compile-workflow", "--file", "odd.toml"),
}


@pytest.mark.parametrize(
    ("reader", "kind"), [each for each in itertools.product(READERS, ODDITIES) if each != ("lint", "directory")]
)
def test_a_file_that_cannot_be_read_is_2_in_both_formats(good: Path, kind: str, reader: str) -> None:
    """The path is named, nothing blocks, nothing is written, and there is no traceback."""
    arguments = READERS[reader]
    name = next(word for word in arguments if word.startswith("odd."))
    with oddity(kind, good / name):
        before = everything(good) if kind != "device" else None
        done = crucible(*arguments, cwd=good)
        spoken = done.out if reader == "lint" else done.err
        assert done.status == 2
        assert spoken.startswith(f"error[file-not-found]: cannot read {name}: ".encode())
        assert (done.err if reader == "lint" else done.out) == b""
        done = crucible(*arguments, "--format=json", cwd=good)
        assert done.status == 2
        told = report(done.out if reader == "lint" else done.err)
        assert codes(told) == ["file-not-found"]
        assert told["diagnostics"][0]["span"] is None
        assert before is None or everything(good) == before


@pytest.mark.parametrize("reader", ["compile", "params", "lint", "manifest"])
def test_a_file_that_may_not_be_read_is_2(good: Path, reader: str) -> None:
    """A lack of permission is no mistake in the source."""
    before = process.without_privileges()
    if before is None:
        pytest.skip("root may read anything")
    (good / "odd.star").write_text(SOURCE)
    (good / "odd.star").chmod(0)
    done = crucible(*READERS[reader], cwd=good, before=before)
    assert done.status == 2
    assert b"cannot read odd.star: Permission denied" in done.out + done.err


def test_a_name_near_the_missing_one_is_offered(good: Path) -> None:
    """A typing error in a path is like one in a source."""
    done = crucible("plan", "compile-workflow", "--file", good / "workflw.star")
    assert done.err.split(b"\n")[0].endswith(f'; did you mean "{good}/workflow.star"?'.encode())


def test_a_directory_is_asked_for_its_usual_file(good: Path) -> None:
    """Whoever names the pack is told how to name what is in it."""
    (good / "crucible.toml").touch()
    done = crucible("plan", "params", "--file", ".", cwd=good)
    assert done.status == 2
    assert b'cannot read .: Is a directory; did you mean "./workflow.star"?\n' in done.err
    done = crucible(*COMPILE, "--manifest", str(good), cwd=good)
    assert f'did you mean "{good}/crucible.toml"?'.encode() in done.err


def test_a_directory_of_a_missing_file_may_be_missing_too(good: Path) -> None:
    """Looking for a name near it finds nothing and is no fault."""
    done = crucible("plan", "compile-workflow", "--file", "no/such/pack/workflow.star", cwd=good)
    assert done.status == 2
    assert b"cannot read no/such/pack/workflow.star: No such file or directory\n" in done.err


@pytest.mark.parametrize("name", ["giant.star", "giant.toml", "giant.json"])
def test_a_giant_is_refused_unread(good: Path, name: str) -> None:
    """A sparse file of ten gigabytes costs nothing, as a source, as IR by hand or as the manifest."""
    with (good / name).open("wb") as file:
        file.truncate(10 << 30)
    script = 'ulimit -v 1000000; exec "$@"'
    commands = [["plan", "compile-workflow", "--file", name], ["lint", name], [*COMPILE, "--manifest", name]]
    for command in commands:
        done = shell(script, *command, cwd=good)
        assert done.status == 1
        assert b"[limit-exceeded]: " in done.out + done.err
        assert b"10,737,418,240" in done.out + done.err


def test_standard_input_without_end_is_refused(good: Path) -> None:
    """It is read as far as the ceiling and no further."""
    script = 'ulimit -v 1000000; "$@" </dev/zero'
    done = shell(script, "lint", "--format", "json", "--stdin-filename", "workflow.star", "-", cwd=good)
    assert done.status == 1
    assert codes(report(done.out)) == ["limit-exceeded"]


def test_a_file_name_of_any_bytes_is_a_file_name(good: Path) -> None:
    """A name that is no UTF-8, and one that would steer a terminal, are read and shown unharmed."""
    for name in (b"caf\xe9.star", b"\x1b[31m\n.star", "émoji-😀.star".encode()):
        path = os.fsencode(good) + b"/" + name
        Path(os.fsdecode(path)).write_text(SOURCE)
        assert crucible("plan", "compile-workflow", "--file", name, cwd=good).status == 0
        Path(os.fsdecode(path)).write_text(MISTAKE)
        for locale in ("C", "C.UTF-8"):
            for where in (("plan", "compile-workflow", "--file", name), ("lint", name)):
                done = crucible(*where, cwd=good, env={"LC_ALL": locale})
                assert done.status == 1
                assert b"\x1b" not in done.out + done.err
                told = crucible(*where, "--format", "json", cwd=good, env={"LC_ALL": locale})
                told_of = report(told.out or told.err)["diagnostics"][0]["file"]
                assert os.fsencode(told_of) == name


# Streams that fail


@pytest.mark.parametrize("style", ["text", "json"])
def test_a_full_disk_under_standard_output_is_2(good: Path, bad: Path, style: str) -> None:
    """The product could not be written: that is said once, and is no success."""
    done = shell('"$@" >/dev/full', *COMPILE, "--format", style, cwd=good)
    assert done.status == 2
    message = "standard output: No space left on device"
    if style == "json":
        assert [each["message"] for each in done.report["diagnostics"]] == [message]
    else:
        assert done.err == f"crucible: {message}\n".encode()
    done = shell('"$@" >/dev/full', "lint", "workflow.star", "--format", style, cwd=bad)
    assert (done.status, done.err) == (2, f"crucible: {message}\n".encode())


def test_a_full_disk_under_standard_error_changes_no_exit_code(good: Path, bad: Path) -> None:
    """Who cannot hear the reasons still learns the result."""
    assert shell('"$@" 2>/dev/full', *COMPILE, cwd=bad) == Done(1, b"", b"")
    done = shell('"$@" 2>/dev/full', *COMPILE, "--format", "json", "-v", cwd=good)
    assert done.status == 0
    assert json.loads(done.out)


@pytest.mark.parametrize("closing", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_fault(good: Path, closing: str) -> None:
    """A cron job may close any of the three; none is taken for the channel of the evaluation."""
    done = shell(f'"$@" {closing}', *COMPILE, cwd=good)
    if " >" in f" {closing}":
        assert (done.status, done.out) == (2, b"")
        assert done.err == (b"" if "2>" in closing else b"crucible: standard output: Bad file descriptor\n")
    else:
        assert (done.status, done.err) == (0, b"")
        assert json.loads(done.out)["type"] == "custom"


def test_a_closed_standard_input_is_an_empty_source(good: Path) -> None:
    """Nothing to read is no fault."""
    done = shell('"$@" <&-', "lint", "-", "--stdin-filename", "workflow.star", cwd=good)
    assert done.status == 1
    assert done.out.startswith(b"error[no-workflow]: ")


@pytest.mark.parametrize("arguments", [COMPILE, ("lint", "workflow.star"), ("plan", "schema", "workflow"), ("--help",)])
def test_a_closed_pipe_is_no_traceback(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """A reader such as head that has seen enough hears no complaint."""
    many = "".join(f'c{n} = command(name = "c{n}", run = "{"x" * 2000}")\n' for n in range(100))
    pack(tmp_path, workflow=many + f'workflow(type = "custom", tasks = [{", ".join(f"c{n}" for n in range(100))}])\n')
    read, write = os.pipe()
    with subprocess.Popen([*COMMAND, *arguments], cwd=tmp_path, stdout=write, stderr=subprocess.PIPE) as started:
        os.close(write)
        os.close(read)
        _, err = started.communicate()
    assert err == b""
    assert started.returncode in (0, 1)


def test_a_reader_that_reads_a_little_hears_no_complaint(tmp_path: Path) -> None:
    """The same through a shell's pipe."""
    many = "".join(f'agent(name = "a{n}", prompt = "{"x" * 2000}"),' for n in range(100))
    pack(tmp_path, workflow=f'workflow(type = "custom", tasks = [{many}])\n')
    assert shell('"$@" | head -c 1', *COMPILE, cwd=tmp_path) == Done(0, b"{", b"")


def test_a_pipe_that_does_not_wait_gets_everything(tmp_path: Path) -> None:
    """Some programs start others with a non-blocking pipe; a large product is written whole all the same."""
    many = 'agent(name = "a%d" % n, prompt = "x" * 4000) for n in range(120)'
    pack(tmp_path, workflow=f'workflow(type = "custom", tasks = [{many}])\n')
    read, write = os.pipe()
    os.set_blocking(write, False)
    with subprocess.Popen([*COMMAND, *COMPILE], cwd=tmp_path, stdout=write, stderr=subprocess.PIPE) as started:
        os.close(write)
        time.sleep(0.5)  # so that the pipe is full
        with os.fdopen(read, "rb") as file:
            out = file.read()
        assert started.communicate()[1] == b""
    assert started.returncode == 0
    assert len(json.loads(out)["task"]) == 120


# The terminal


def on_a_terminal(*arguments: str, cwd: Path, columns: int, **environment: str) -> str:
    """Run the command on a terminal of that width and return what stands there."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")} | environment
    with subprocess.Popen([*COMMAND, *arguments], cwd=cwd, stdin=slave, stdout=slave, stderr=slave, env=env) as started:
        os.close(slave)
        text = b""
        while select.select([master], [], [], 60)[0]:
            try:
                block = os.read(master, 1 << 16)
            except OSError:  # Linux says so when nobody is left on the other side
                break
            if not block:
                break
            text += block
        os.close(master)
        started.wait()
    return text.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("arguments", [COMPILE, ("lint", "workflow.star")])
def test_colour_is_for_terminals_that_want_it(bad: Path, arguments: tuple[str, ...]) -> None:
    """Without the colours, a terminal and a pipe show the same."""
    done = crucible(*arguments, cwd=bad)
    plain = (done.out + done.err).decode()
    assert "\x1b" not in plain
    coloured = on_a_terminal(*arguments, cwd=bad, columns=104, TERM="xterm")
    assert coloured.startswith("\x1b[1;31merror[unknown-argument]\x1b[0m")
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    assert on_a_terminal(*arguments, cwd=bad, columns=104, TERM="xterm", NO_COLOR="1") == plain
    assert on_a_terminal(*arguments, cwd=bad, columns=104, TERM="dumb") == plain
    assert "\x1b[1;31m" in on_a_terminal(*arguments, cwd=bad, columns=104, TERM="xterm", NO_COLOR="")


def test_the_product_has_no_colour_on_a_terminal(good: Path) -> None:
    """JSON is JSON wherever it is shown."""
    assert json.loads(on_a_terminal(*COMPILE, cwd=good, columns=80, TERM="xterm"))


def test_a_narrow_terminal_gets_lines_cut_around_the_mistake(bad: Path) -> None:
    """The carets stand under the mistake at any width; a width of nothing is no width."""
    wide = on_a_terminal(*COMPILE, cwd=bad, columns=200, NO_COLOR="1", TERM="xterm")
    assert '    run = "make test"' not in wide
    assert SOURCE.split("\n")[1].replace("depends_on", "depend_on") in wide
    narrow = on_a_terminal(*COMPILE, cwd=bad, columns=40, NO_COLOR="1", TERM="xterm")
    lines = narrow.split("\n")
    carets = next(number for number, line in enumerate(lines) if "^" in line)
    assert all(len(line) <= 40 for line in lines[carets - 1 : carets + 1])
    assert lines[carets - 1][lines[carets].index("^") :].startswith("depend_on")
    unknown = on_a_terminal(*COMPILE, cwd=bad, columns=0, NO_COLOR="1", TERM="xterm")
    assert unknown == crucible(*COMPILE, cwd=bad).err.decode()


# Faults of ours

_FAULT = """
import sys
from crucible.compiler import pipeline
from crucible.cli import main

def fault(*_):
    raise {error}

pipeline.Sandbox.__init__ = fault
sys.argv[0] = "crucible"
main.entry()
"""


def faulty(cwd: Path, error: str, *arguments: str) -> Done:
    """Run the command with an evaluation that fails as nothing may."""
    line = [sys.executable, "-P", "-c", _FAULT.format(error=error), *arguments]
    done = subprocess.run(line, cwd=cwd, capture_output=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    "error",
    ["ZeroDivisionError('a\\nb')", "RecursionError", "MemoryError", "AssertionError()", "KeyError('\\ud800\\udcff')"],
)
def test_a_fault_of_ours_is_3_and_one_line(good: Path, error: str) -> None:
    """The line says how to report it; a traceback is for those who ask."""
    done = faulty(good, error, *COMPILE)
    assert (done.status, done.out) == (3, b"")
    kind = error.partition("(")[0]
    assert re.fullmatch(rf"crucible: a fault of ours: {kind}.*report it.*--debug.*\n".encode(), done.err)


@pytest.mark.parametrize("error", ["RuntimeError from stop", "BrokenPipeError(32, 'x')", "ValueError from KeyError()"])
def test_an_interrupt_inside_of_another_exception_is_130(good: Path, error: str) -> None:
    """An import or the end of a with block makes something else of it."""
    wrapped = f"try:\n        raise KeyboardInterrupt\n    except BaseException as stop:\n        raise {error}"
    program = _FAULT.replace("raise {error}", wrapped)
    done = subprocess.run([sys.executable, "-P", "-c", program, *COMPILE], cwd=good, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, b"")


@pytest.mark.parametrize("command", [COMPILE, ("plan", "params", "--file", "workflow.star"), ("lint", "workflow.star")])
def test_a_fault_of_ours_is_one_object_of_json(good: Path, command: tuple[str, ...]) -> None:
    """A bot that reads reports gets one."""
    done = faulty(good, "ZeroDivisionError('x')", *command, "--format", "json")
    text, other = (done.out, done.err) if "lint" in command else (done.err, done.out)
    assert (done.status, other) == (3, b"")
    assert codes(report(text)) == ["internal-fault"]
    assert "ZeroDivisionError: x" in report(text)["diagnostics"][0]["message"]


@pytest.mark.parametrize("arguments", [("--debug", *COMPILE), (*COMPILE, "--debug")])
def test_debug_shows_where_a_fault_is(good: Path, arguments: tuple[str, ...]) -> None:
    """The option stands wherever it was put."""
    done = faulty(good, "ZeroDivisionError('x')", *arguments)
    assert done.status == 3
    assert done.err.startswith(b"Traceback (most recent call last):\n")
    assert b"\nZeroDivisionError: x\n" in done.err


def test_what_the_system_refuses_is_2_and_named(good: Path) -> None:
    """A machine without processes to spare is no fault of ours."""
    done = faulty(good, "BlockingIOError(11, 'Resource temporarily unavailable')", *COMPILE)
    assert done == Done(2, b"", b"crucible: Resource temporarily unavailable\n")
    done = faulty(good, "PermissionError(13, 'Permission denied', b'/x\\xff')", *COMPILE, "--format", "json")
    assert (done.status, codes(done.report)) == (2, ["system-error"])


# Interrupts


@contextmanager
def under_way(cwd: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run the command on a source that never ends, until its evaluation is under way: the process, the child."""
    line = [*COMMAND, *arguments]
    with subprocess.Popen(line, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as run:
        try:
            children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
            while not (child := children.read_text().split()) or processor_time(int(child[0])) < 20:
                time.sleep(0.01)
            yield run, int(child[0])
        finally:
            run.kill()


def processor_time(pid: int) -> int:
    """Return the processor time of a process, in hundredths of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11])


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found in /proc")
@pytest.mark.parametrize("arguments", [COMPILE, ("lint", "workflow.star"), (*COMPILE, "--manifest", "crucible.toml")])
def test_an_interrupt_is_130_and_leaves_no_child(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Ctrl-C ends the command at once, without a word, and the evaluation with it."""
    pack(tmp_path, workflow=ENDLESS, manifest="")
    with under_way(tmp_path, *arguments) as (run, child):
        run.send_signal(signal.SIGINT)
        assert run.communicate() == (b"", b"")
        assert run.returncode == 130
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)
    assert (tmp_path / "crucible.toml").read_bytes() == b""


# The surroundings


def test_a_deleted_working_directory_is_no_fault(tmp_path: Path) -> None:
    """Paths that do not need it work; those that do are not found."""
    pack(tmp_path / "pack", manifest="")
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    path = str(tmp_path / "pack" / "workflow.star")
    manifest = str(tmp_path / "pack" / "crucible.toml")
    done = shell(script, "plan", "compile-workflow", "--file", path, "--manifest", manifest, cwd=tmp_path)
    assert (done.status, done.err) == (0, b"")
    assert Path(manifest).read_bytes().count(b"[workflow]\n") == 1
    assert shell(script, "lint", path, cwd=tmp_path).status == 0
    done = shell(script, *COMPILE, cwd=tmp_path)
    assert (done.status, done.out) == (2, b"")
    assert done.err.startswith(b"error[file-not-found]: cannot read workflow.star: ")


@pytest.mark.parametrize(
    "surroundings",
    [
        {"LANG": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "C.UTF-8"},
        {"LC_ALL": "tr_TR.UTF-8"},
        {"LC_ALL": "en_US.ISO-8859-1"},
        {"LC_ALL": "nonsense", "PYTHONIOENCODING": "ascii"},
    ],
    ids=str,
)
def test_every_locale_shows_the_same_bytes(tmp_path: Path, surroundings: dict[str, str]) -> None:
    """Sources, messages and products are UTF-8 wherever they are shown."""
    pack(tmp_path, workflow=SOURCE.replace("gate", "Prüfung") + 'é = İ("ş")\n')
    pack(tmp_path / "good", workflow=SOURCE.replace('"gate"', '"Prüfung 😀"').replace("result = gate", ""))
    plain = {"LC_ALL": "", "LANG": "", "PYTHONUTF8": "1"}
    for arguments, cwd in ((COMPILE, tmp_path), (("lint", "workflow.star"), tmp_path), (COMPILE, tmp_path / "good")):
        done = crucible(*arguments, cwd=cwd, env={"LC_ALL": "", "LANG": "", **surroundings})
        assert done == crucible(*arguments, cwd=cwd, env=plain)
        assert "é".encode() in done.out + done.err or "Prüfung 😀".encode() in done.out


@pytest.mark.parametrize("arguments", [COMPILE, ("lint", "workflow.star"), (*COMPILE, "--manifest", "crucible.toml")])
def test_no_warning_of_python_is_hidden(good: Path, bad: Path, arguments: tuple[str, ...]) -> None:
    """Everything works, and says the same, where warnings are errors and development mode is on."""
    strict = {"PYTHONWARNINGS": "error", "PYTHONDEVMODE": "1"}
    for where, status in ((good, 0), (bad, 1)):
        (where / "crucible.toml").touch()
        done = crucible(*arguments, cwd=where, env=strict)
        assert done == crucible(*arguments, cwd=where, env={"PYTHONWARNINGS": ""})
        assert done.status == status


def test_a_pack_cannot_replace_our_modules(good: Path) -> None:
    """A file that is named like a module of Python or of ours is just a file of the pack."""
    for name in ("json", "starlark", "argparse", "networkx", "crucible", "tomllib"):
        (good / f"{name}.py").write_text("raise SystemExit('taken in')")
    (good / "crucible.toml").touch()
    done = crucible(*COMPILE, "--manifest", "crucible.toml", cwd=good)
    assert (done.status, done.err) == (0, b"")


@pytest.mark.parametrize("style", ["dot", "svg", "png", "mermaid"])
def test_a_picture_that_cannot_be_made_is_no_annotation(tmp_path: Path, style: str) -> None:
    """The formats of pictures are none of a report, which then is for people."""
    done = crucible("plan", "show", "--file", "gone.star", "--format", style, cwd=tmp_path)
    assert (done.status, done.out) == (2, b"")
    assert b"::error" not in done.err

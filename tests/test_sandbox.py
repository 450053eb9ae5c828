"""The parent's side of an evaluation, against children that do what no evaluation should.

A stand-in takes the place of the evaluation's program. Whatever it does, one death with the right
words comes of it, and neither a process nor a descriptor is left behind.
"""

import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from packs import END, children, descriptors

from crucible.compiler.frontend import sandbox
from crucible.compiler.frontend.limits import LIMITS, Limits
from crucible.compiler.frontend.sandbox import Death, Sandbox, evaluation_config, start_program

PATIENT = LIMITS._replace(seconds=60)
SHORT = LIMITS._replace(seconds=0.2)
PRELUDE = """
import json, os, signal, sys, time
def send(message):
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    os.write(1, len(data).to_bytes(4, "big") + data)
def receive():
    data = b""
    size = int.from_bytes(os.read(0, 4), "big")
    while len(data) < size:
        data += os.read(0, size - len(data))
    return json.loads(data)
CEILINGS = receive()
"""

Start = Callable[..., Sandbox]


def is_alive(pid: int) -> bool:
    """Tell whether a process exists, dead and unburied ones included."""
    return Path(f"/proc/{pid}").exists()


def _is_inheritable(descriptor: int) -> bool:
    """Tell whether a process that we start gets a descriptor that whoever started us has left open."""
    try:
        return os.get_inheritable(descriptor)
    except OSError:
        return False


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Return what starts a sandbox around a stand-in; at the end nothing of it may be left."""
    before = descriptors()
    started: list[Sandbox] = []
    pids: list[int] = []

    def spawn(*arguments: Any) -> int:
        pids.append(start_program(*arguments))
        return pids[-1]

    monkeypatch.setattr(sandbox, "start_program", spawn)

    def begin(program: str, limits: Limits = PATIENT, serve: Callable[[Any], Any] = lambda _: None) -> Sandbox:
        monkeypatch.setattr(sandbox, "_PROGRAM", PRELUDE + program)
        started.append(Sandbox(limits, serve))
        return started[-1]

    yield begin
    for one in started:
        one.close()
        one.close()
    assert not any(map(is_alive, pids))
    assert descriptors() == before


def death(child: Sandbox, request: dict[str, Any] | None = None) -> Death:
    """Ask and return the death that comes of it."""
    with child, pytest.raises(Death) as caught:
        child.ask(request or {})
    return caught.value


# A child that answers


def test_an_answer_comes_back(start: Start) -> None:
    """Requests and answers of any size, one after the other."""
    with start("while True: send(receive())") as child:
        for request in ({}, {"text": "é\0😀\ud800"}, {"text": "x" * 3_000_000}, {"n": [1, None, 2.5]}):
            assert child.ask(request) == request


def test_what_the_child_asks_for_is_served_meanwhile(start: Start) -> None:
    """A mark is taken note of and not answered."""
    asked: list[Any] = []

    def serve(message: dict[str, Any]) -> dict[str, Any] | None:
        asked.append(message)
        return None if "at" in message else {"text": message["path"] * 2}

    program = """
receive()
send({"at": [0, 1]})
send({"ask": "prompt", "path": "ab", "call": 0})
first = receive()
send({"ask": "prompt", "path": "c", "call": 1})
send({"found": [first, receive()]})
"""
    with start(program, serve=serve) as child:
        assert child.ask({}) == {"found": [{"text": "abab"}, {"text": "cc"}]}
    assert [message.get("path") for message in asked] == [None, "ab", "c"]


def test_a_request_may_be_begun_and_finished_later(start: Start) -> None:
    """The parent works meanwhile."""
    with start("send({**receive(), 'b': 2})") as child:
        child.begin({"a": 1})
        assert child.finish() == {"a": 1, "b": 2}


def test_the_child_has_no_environment_and_a_session_of_its_own(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of ours reaches it but three descriptors."""
    monkeypatch.setenv("SECRET", "x")
    program = """
receive()
send({"environment": sorted(os.environ), "session": os.getsid(0) == os.getpid(), "site": "site" in sys.modules,
      "open": sorted(map(int, os.listdir("/proc/self/fd")))})
"""
    with start(program) as child:
        answer = child.ask({})
    assert set(answer["environment"]) <= {"RUST_BACKTRACE", "LC_CTYPE"}
    assert answer["session"] is True
    assert answer["site"] is False
    ours = {int(number) for number in descriptors() if _is_inheritable(int(number))}
    assert len(set(answer["open"]) - ours - {0, 1, 2}) == 1  # the listing itself


def test_what_was_written_before_the_end_is_read(start: Start) -> None:
    """An answer and a word on stderr at once: the answer was first."""
    with start("receive(); send({'a': 1}); os.write(2, b'late'); time.sleep(60)") as child:
        time.sleep(0.3)
        assert child.ask({}) == {"a": 1}
        assert death(child).message == "the evaluation process died: late"


# A child that dies


@pytest.mark.parametrize(
    ("program", "code", "words"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "evaluator-crashed", "signal 11 (SIGSEGV)"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "evaluator-crashed", "signal 9 (SIGKILL)"),
        ("os.kill(os.getpid(), 40)", "evaluator-crashed", "signal 40"),
        ("os._exit(7)", "evaluator-crashed", "exit status 7"),
        ("os._exit(0)", "evaluator-crashed", "exit status 0"),
        ("receive(); os._exit(7)", "evaluator-crashed", "exit status 7"),
        ("receive(); os.write(1, b'\\0\\0\\0\\7{'); os._exit(7)", "evaluator-crashed", "exit status 7"),
        ("receive(); os.kill(os.getpid(), signal.SIGALRM)", "limit-exceeded", "60 s"),
        ("receive(); os.kill(os.getpid(), signal.SIGXCPU)", "limit-exceeded", "60 s"),
        ("receive(); os.kill(os.getpid(), signal.SIGPROF)", "limit-exceeded", "processor time here"),
        (
            "receive(); os.write(2, b'thread panicked\\nat x.rs'); time.sleep(60)",
            "evaluator-crashed",
            "thread panicked",
        ),
        ("os.write(2, b'\\xff\\n'); os._exit(1)", "evaluator-crashed", "\ufffd"),
        ("os.write(2, b'x' * 5000); time.sleep(60)", "evaluator-crashed", "x" * 200),
        ("sys.exit('no module')", "evaluator-crashed", "no module"),
        ("os.close(1); receive(); time.sleep(60)", "evaluator-crashed", "signal 15 (SIGTERM)"),
        ("os.close(0); os.close(1); os.close(2); time.sleep(60)", "evaluator-crashed", "signal 15 (SIGTERM)"),
    ],
)
def test_a_death_is_said_in_one_line(start: Start, program: str, code: str, words: str) -> None:
    """A signal by its name, a status by its number, or the first line of what it said."""
    found = death(start(program))
    assert (found.code, found.heap) == (code, False)
    assert words in found.message
    assert "\n" not in found.message
    assert len(found.message) < 300


@pytest.mark.parametrize(
    "program",
    [
        "receive(); os._exit(3)",
        "receive(); os.write(2, b'memory allocation of 99 bytes failed'); os._exit(134)",
        "receive(); os.write(2, b'capacity overflow'); time.sleep(60)",
        "receive(); os.write(2, b'MemoryError'); time.sleep(60)",
        "receive(); os.write(2, b'panicked at x.rs\\nAlignedSize must not exceed u32::MAX'); time.sleep(60)",
    ],
)
def test_a_death_for_want_of_memory_names_the_ceiling(start: Start, program: str) -> None:
    """Whatever way it chose to say so."""
    found = death(start(program))
    assert (found.code, found.heap) == ("limit-exceeded", True)
    assert "64 MiB" in found.message


def test_a_child_that_dies_while_it_is_written_to(start: Start) -> None:
    """The pipe breaks in the middle of a large request."""
    found = death(start("os.read(0, 100000); os._exit(7)"), {"text": "x" * 10_000_000})
    assert "exit status 7" in found.message


def test_a_dead_child_stays_dead(start: Start) -> None:
    """Every later request says the same."""
    child = start("receive(); os._exit(7)")
    with child:
        for _ in range(3):
            with pytest.raises(Death, match="exit status 7"):
                child.ask({})


# A child that does not come to an end


@pytest.mark.parametrize(
    "program",
    [
        "time.sleep(60)",
        "receive(); time.sleep(60)",
        "receive()\nwhile True: pass",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.alarm(0); time.sleep(60)",
        "receive(); os.write(1, b'\\0'); time.sleep(60)",
        "receive()\nwhile True: send({'ask': 'prompt'}); receive()",
        "receive(); os.write(1, b'\\3\\0\\0\\0')\nwhile True: os.write(1, b' '); time.sleep(0.01)",
        "receive(); os.close(2); time.sleep(60)",
    ],
)
def test_a_child_that_does_not_answer_is_ended(start: Start, program: str) -> None:
    """Silent, busy, deaf to TERM, or talking without end."""
    found = death(start(program, SHORT, lambda _: {}))
    assert found.code == "limit-exceeded"
    assert "0.2 s" in found.message


def test_a_child_that_does_not_read_is_ended(start: Start) -> None:
    """The request does not fit into the pipe."""
    found = death(start("time.sleep(60)", SHORT), {"text": "x" * 10_000_000})
    assert found.code == "limit-exceeded"


# A child that talks nonsense


@pytest.mark.parametrize(
    "data",
    [
        "b'no JSON'",
        "b''",
        "b'\\xff'",
        "b'[]'",
        "b'null'",
        "b'3'",
        "b'\"ask\"'",
        "b'[' * 100_000 + b']' * 100_000",
        "b'{\"a\": }'",
    ],
)
def test_what_is_no_message_is_a_crash(start: Start, data: str) -> None:
    """Not JSON, not an object, or nested without measure."""
    found = death(start(f"receive(); send({data}); time.sleep(60)"))
    assert (found.code, found.message) == (
        "evaluator-crashed",
        "the evaluation process died: it sent what is no message",
    )


def test_a_message_beyond_all_measure_is_not_read(start: Start) -> None:
    """Its announced size is enough."""
    found = death(start(f"receive(); os.write(1, {struct.pack('>I', (64 << 20) + 1)!r}); time.sleep(60)"))
    assert found.code == "limit-exceeded"
    assert "67,108,865" in found.message


@pytest.mark.parametrize("failure", [KeyError("x"), TypeError("x"), ValueError("x")])
def test_a_question_that_nobody_asks_is_a_crash(start: Start, failure: Exception) -> None:
    """Whoever serves says so by an ordinary exception."""

    def serve(_: Any) -> None:
        raise failure

    found = death(start("receive(); send({'ask': 'passwords'}); time.sleep(60)", serve=serve))
    assert found.message == "the evaluation process died: it asked for what nobody asks for"


# Starting and leaving


def test_a_child_that_the_system_buries_is_dead_all_the_same(start: Start) -> None:
    """Whoever started us may have said that dead children are of no interest."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert death(start("receive(); os._exit(7)")).code == "evaluator-crashed"
        with start("send(receive())") as child:
            assert child.ask({"a": 1}) == {"a": 1}
        with start("time.sleep(60)"):
            pass
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_leaving_ends_a_child_that_still_works(start: Start) -> None:
    """Also when it was never asked, or an exception passes."""
    before = children()

    def fail() -> None:
        with start("receive()\nwhile True: pass") as child:
            child.begin({})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert children() == before


def test_a_child_that_cannot_be_started_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipes are closed again."""
    before = descriptors()

    def refuse(*_: object) -> int:
        raise OSError(12, "no")

    monkeypatch.setattr(sandbox, "start_program", refuse)
    with pytest.raises(OSError, match="no"):
        Sandbox(LIMITS, lambda _: None)
    assert descriptors() == before


def test_who_waits_long_is_asked_once_and_may_give_up(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever does not give up gets the answer."""
    monkeypatch.setattr(sandbox, "_SLOW", 0.01)
    asked: list[str] = []
    with start("import time; receive(); time.sleep(0.3); send({'late': 1}); receive(); time.sleep(60)") as child:
        child.when_slow = lambda: asked.append("go on")
        assert child.ask({}) == {"late": 1}
        assert asked == ["go on"]

        def give_up() -> None:
            raise Death("given-up", "it takes too long")

        child.when_slow = give_up
        with pytest.raises(Death, match="it takes too long"):
            child.ask({})


def test_what_the_parent_does_between_two_requests_is_no_time_of_the_child(start: Start) -> None:
    """The clock stands still meanwhile."""
    with start("while True: send(receive())", LIMITS._replace(seconds=3)) as child:
        assert child.ask({"a": 1}) == {"a": 1}
        time.sleep(4)
        assert child.ask({"a": 2}) == {"a": 2}


WITHOUT_A_LIST = """
import builtins
opening = builtins.open
def refuse(path, *rest, **named):
    if path == "/proc/self/statm":
        raise FileNotFoundError(path)
    return opening(path, *rest, **named)
builtins.open = refuse
"""
WITHOUT_A_LIMIT = """
import resource
limit = resource.setrlimit
limit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
def refuse(name, both):
    if name in (resource.RLIMIT_AS, OTHER):
        raise ValueError("no")
    limit(name, both)
resource.setrlimit = refuse
"""
GROWING = "def f():\n    x = []\n    for i in range(20000):\n        x.append(str(i) * 5000)\n    return x\n\nf()\n"


@pytest.mark.parametrize(
    "patch",
    [WITHOUT_A_LIST, WITHOUT_A_LIMIT.replace("OTHER", "-1"), WITHOUT_A_LIMIT.replace("OTHER", "resource.RLIMIT_DATA")],
    ids=["no list of pages", "no limit of the address space", "no limit at all"],
)
def test_the_heap_is_bounded_whatever_the_system_tells_and_takes(tmp_path: Path, patch: str) -> None:
    """A source of half a gigabyte ends at the ceiling of the heap, and one that needs little is compiled.

    The caller is a small process: the most that was resident of a child begins, on Linux, with what its parent had.
    """
    (tmp_path / "small.star").write_text(END)
    (tmp_path / "large.star").write_text(GROWING + END)
    program = sandbox._PROGRAM.replace("from crucible", f"exec({patch!r});from crucible", 1)
    script = f"""
from crucible.compiler.frontend import sandbox
from crucible.compiler.pipeline import compile_file
sandbox._PROGRAM = {program!r}
for name in ("small", "large"):
    print([(each.code, each.message) for each in compile_file(f"{{name}}.star").diagnostics])
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    small, large = done.stdout.splitlines()
    assert small == "[]"
    assert large.startswith("[('limit-exceeded', ")
    assert "64 MiB" in large


def test_the_ceilings_travel_with_the_request(start: Start) -> None:
    """Those of the process are the first message, before anything of the pack."""
    limits = Limits(ticks=5, call_depth=6, constructed=7, value_depth=8, calls=9, elements=10, printed_lines=11)
    limits = limits._replace(text_bytes=12)
    assert evaluation_config(limits) == {
        "ticks": 5,
        "call_depth": 6,
        "constructed": 7,
        "calls": 9,
        "elements": 10,
        "text_bytes": 12,
        "printed": 12,
        "value_depth": 8,
    }
    with start("receive(); send(CEILINGS)", Limits(seconds=25, heap_bytes=9)) as child:
        assert child.ask({}) == {"seconds": 25, "heap_bytes": 9}

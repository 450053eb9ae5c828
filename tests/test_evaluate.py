"""The child's side of an evaluation, in this process: what it records, what it asks, how it reads errors.

That it holds its ceilings and can die without harm is shown by test_sandbox.py and the sources under
cases/ceilings.
"""

import _thread
import gc
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crucible.compiler.frontend import evaluate
from crucible.compiler.frontend.evaluate import Evaluator, _Closed, _locate, _plain, _whereabouts, _work
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.sandbox import evaluation_config
from crucible.compiler.frontend.vocabulary import constructors_of

MAKES = {name: row.makes for name, row in constructors_of(None).items()}


class Parent:
    """Stands at the other end of the channel: serves files by path, and keeps what it was sent."""

    def __init__(self, **files: str | None) -> None:
        self.files = files
        self.numbers: dict[str, int] = {}
        self.sent: list[Any] = []
        self._reply: Any = None

    def send(self, message: Any) -> None:
        """Take a message; answer a question."""
        self.sent.append(message)
        path = message.get("path", "")
        text = self.files.get(path.removesuffix(".star").removesuffix(".md"))
        if message.get("ask") == "prompt":
            self._reply = {} if text is None else {"text": text}
        elif message.get("ask") == "module":
            number = self.numbers.get(path) or len(self.numbers) + 1
            known = path in self.numbers
            self.numbers[path] = number
            self._reply = {} if text is None else {"file": number, **({} if known else {"text": text})}

    def receive(self) -> Any:
        """Give the answer."""
        return self._reply


class Outcome:
    """What loading and running a source gave."""

    def __init__(self, parent: Parent, text: str, **config: Any) -> None:
        request = {"text": text, "makes": MAKES, "params": config.pop("params", {}), **config.pop("request", {})}
        self.evaluator = Evaluator({**evaluation_config(LIMITS), **config})
        self.refusal = self.evaluator.load(request)
        self.parent = parent
        if self.refusal is None:
            self.run = self.evaluator.run()

    @property
    def calls(self) -> list[Any]:
        """Return what was recorded."""
        return self.run.calls


@pytest.fixture
def patch() -> Iterator[pytest.MonkeyPatch]:
    """Patch the channel for one test."""
    with pytest.MonkeyPatch.context() as context:
        yield context


@pytest.fixture
def run(patch: pytest.MonkeyPatch) -> Any:
    """Return what runs a source with modules and prompts by name."""

    def start(text: str, files: dict[str, str | None] | None = None, **config: Any) -> Outcome:
        parent = Parent(**(files or {}))
        patch.setattr(evaluate, "send", parent.send)
        patch.setattr(evaluate, "receive", parent.receive)
        return Outcome(parent, text, **config)

    return start


# Records


def test_calls_are_recorded_in_their_order_with_their_values(run: Any) -> None:
    """A handle is the number of the call that made it; the last statement's is told."""
    outcome = run(
        """\
a = command(name = "a", run = "x" + "y")
b = [agent(name = n, depends_on = (a, [a])) for n in ["b", "c"]]
workflow([a, b], result = None)
"""
    )
    assert outcome.calls == [
        ["command", [], [["name", "a"], ["run", "xy"]]],
        ["agent", [], [["name", "b"], ["depends_on", [{"call": 0}, [{"call": 0}]]]]],
        ["agent", [], [["name", "c"], ["depends_on", [{"call": 0}, [{"call": 0}]]]]],
        ["workflow", [[{"call": 0}, [{"call": 1}, {"call": 2}]]], [["result", None]]],
    ]
    assert (outcome.run.last, outcome.run.failure, outcome.run.limit) == (3, None, None)


@pytest.mark.parametrize(
    ("value", "recorded"),
    [
        ("None", None),
        ("True", True),
        ("-3", -3),
        ("1 << 1023", 1 << 1023),
        ("1 << 1024", {"odd": "a huge integer"}),
        ("2.5", 2.5),
        ("1e300 * 1e300", None),  # the evaluator gives an infinity so
        ("()", []),
        ("{'a': 1}", {"odd": "a dict"}),
        ("'é😀\\n'", "é😀\n"),
        ("[[], [1]]", [[], [1]]),
    ],
)
def test_values_arrive_as_json_can_carry_them(run: Any, value: str, recorded: Any) -> None:
    """What JSON has not becomes a one-key object."""
    assert run(f"session(name = {value})").calls[0][2] == [["name", recorded]]


def test_a_value_nested_too_deep_is_cut(run: Any) -> None:
    """128 levels pass, the next one is said to be deep."""
    for depth, deep in ((128, False), (129, True)):
        outcome = run(f"x = []\nfor i in range({depth - 1}):\n    x = [x]\nsession(name = x)\n")
        assert ("deep" in json.dumps(outcome.calls)) is deep


@pytest.mark.parametrize(
    ("value", "recorded"),
    [
        (float("inf"), {"odd": "a number that is not finite"}),
        (float("nan"), {"odd": "a number that is not finite"}),
        (b"", {"odd": "a bytes"}),
        ((1, (2,)), [1, [2]]),
    ],
)
def test_a_value_that_the_evaluator_does_not_give_today_has_a_form(value: Any, recorded: Any) -> None:
    """Another version of it may."""
    assert _plain(value, 5) == recorded


@pytest.mark.parametrize(
    ("last", "found"),
    [
        ("workflow([])", 0),
        ("x = workflow([])", None),
        ("workflow([])\n3", None),
        ("workflow([])\n'w'", None),
        ("w = workflow([])\nw", 0),
        ("[workflow([])]", None),
        ("len", None),
        ("lambda: 3", None),
        ("range(3)", None),
        ("", None),
        ("# nothing", None),
        ("command(name = 'a')", 0),
    ],
)
def test_the_last_statement_s_value_is_taken_by_identity(run: Any, last: str, found: int | None) -> None:
    """Only the value of an expression, and never a conversion of one."""
    assert run(last).run.last == found


def test_print_is_recorded_with_its_text(run: Any) -> None:
    """As the language's own str() shows the values."""
    outcome = run(
        "print('a', 1, [2.5, 'b', (None,)], {'k': True}, session(name = 's'))\nprint()\nprint('a', 'b', sep = '-')"
    )
    texts = [call[1] for call in outcome.calls if call[0] == "print"]
    assert texts == [['a 1 [2.5, "b", [None]] {"k": True} <opaque value>'], [""], ["a-b"]]


def test_print_of_a_deep_value_is_no_failure(run: Any) -> None:
    """As deep as values may come."""
    for deeper in ("[x]", "{1: x}"):
        outcome = run(f"x = []\nfor i in range(900):\n    x = {deeper}\nprint(x)\n")
        assert outcome.run.failure is None
        assert "…" in outcome.calls[0][1][0]


# Prompts and parameters


def test_a_prompt_is_asked_for_once(run: Any) -> None:
    """A refused one is asked for each time, so that each place is told, and gives an empty text."""
    outcome = run(
        """\
x = prompt_file("a.md") + prompt_file(path = "a.md")
y = prompt_file("none.md") + prompt_file("none.md")
z = prompt_file() + prompt_file(3)
session(name = x + y + z)
""",
        {"a": "A"},
    )
    assert outcome.calls[-1][2] == [["name", "AA"]]
    assert [(m["path"], m["call"]) for m in outcome.parent.sent] == [("a.md", 0), ("none.md", 2), ("none.md", 3)]


def test_parameters_have_the_values_that_were_given(run: Any) -> None:
    """An unknown one is empty; the parent says that it is unknown."""
    outcome = run("session(name = [param('n'), param(name = 'l'), param('none')])", params={"n": 3, "l": ["a"]})
    assert outcome.calls[-1][2] == [["name", [3, ["a"], ""]]]


# Modules


def test_modules_run_once_in_the_order_of_their_loads(run: Any) -> None:
    """Depth first, before the root, whatever the order of the statements."""
    outcome = run(
        'session(name = "root")\nload("a.star", "x")\nload("b.star", y = "x")\nload("a.star", z = "x")\n',
        {
            "a": 'load("c.star", "x")\nsession(name = "a")\nx = 1\n',
            "b": 'load("c.star", "x")\nsession(name = "b")\nx = 2\n',
            "c": 'session(name = "c")\nx = 3\n',
        },
    )
    assert [call[2][0][1] for call in outcome.calls] == ["c", "a", "b", "root"]
    assert [(m["path"], m["file"], m["load"]) for m in outcome.parent.sent] == [
        ("a.star", 0, 0),
        ("c.star", 1, 0),
        ("b.star", 0, 1),
        ("c.star", 3, 0),
        ("a.star", 0, 2),
    ]


def test_a_module_that_is_refused_ends_before_evaluating(run: Any) -> None:
    """The others are asked for all the same, so that all refusals come at once."""
    outcome = run('load("a.star", "x")\nload("b.star", "y")\nload("c.star", "z")\n', {"b": "y = 1"})
    assert outcome.refusal == {"kind": "load"}
    assert [m["path"] for m in outcome.parent.sent] == ["a.star", "b.star", "c.star"]


def test_a_circle_of_loads_is_told_as_its_chain(run: Any) -> None:
    """From the file that is loaded again back to itself."""
    files = {"a": 'load("b.star", "x")\n', "b": 'x = 1\nload("c.star", "x")\nload("a.star", "x")\n', "c": "x = 1"}
    outcome = run('load("a.star", "x")', files)
    assert outcome.refusal == {"kind": "cycle", "file": 2, "load": 1, "chain": [1, 2, 1]}


@pytest.mark.parametrize("symbol", ["_x", "agent", "print"])
def test_a_symbol_that_no_module_gives_ends_before_evaluating(run: Any, symbol: str) -> None:
    """A private one, and a constructor, which the evaluator itself would hand over."""
    outcome = run(f'load("a.star", x = "{symbol}")', {"a": "_x = 1"})
    assert outcome.refusal == {"kind": "symbols", "file": 0, "load": 0}


def test_a_symbol_that_is_not_there_fails_at_the_load(run: Any) -> None:
    """Re-exports are no symbols."""
    files = {"a": 'load("b.star", "y")\nx = y', "b": "y = 1"}
    for symbol in ("z", "y"):
        assert run(f'load("a.star", "{symbol}")', files).run.failure["place"][:2] == [0, 1]
    assert run('load("a.star", "x")', files).run.failure is None


# Errors


def test_a_syntax_error_has_its_place(run: Any) -> None:
    """In a module as well."""
    outcome = run("x = = 1")
    assert (outcome.refusal["kind"], outcome.refusal["place"]) == ("syntax", [0, 1, 5])
    outcome = run('load("a.star", "x")', {"a": "\nx = = 1"})
    assert (outcome.refusal["kind"], outcome.refusal["place"]) == ("syntax", [1, 2, 5])


def test_a_failure_has_its_message_its_place_and_its_callers(run: Any) -> None:
    """The width is that of what is underlined."""
    outcome = run("def f(n):\n    return g(n)\ndef g(n):\n    return n // 0\nx = f(1)\n")
    assert outcome.run.failure == {
        "kind": "error",
        "message": "Floor division by zero: 1 // 0",
        "place": [0, 4, 12],
        "width": 6,
        "frames": [[0, 5, "<module>"], [0, 2, "f"]],
    }


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "two\nlines\n",
        "error: y",
        "x\n --> 0:9:9\n  |\n9 | y\n  | ^\n",
        "Traceback (most recent call last):\n  * 0:9, in g\nerror: y\n --> 5:6:7\n",
        "  * 0:9, in g",
        "é😀\u2028\u0085",
        "",
    ],
)
def test_the_text_of_fail_changes_nothing_but_the_message(run: Any, text: str) -> None:
    """Lines that look like the evaluator's own are text."""
    failure = run(f"def f():\n    fail({json.dumps(text, ensure_ascii=False)})\nf()\n").run.failure
    assert failure["message"].removeprefix("fail:").removeprefix(" ") == text
    assert failure["place"] == [0, 2, 5]
    assert failure["frames"] == [[0, 3, "<module>"], [0, 2, "f"]]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("error: x\n --> 0:1:2\n  |\n1 | abc\n  |  ^^\n", ["x", [0, 1, 2], 2]),
        ("error: x\n --> 0:1:2\n", ["x", [0, 1, 2], 0]),
        ("something else", ["something else", None, 0]),
        ("", ["", None, 0]),
        ("Traceback\n  * 0:1, in f\nno error", ["no error", None, 0]),
        ("error: x\n  --> not:a:place", ["x\n  --> not:a:place", None, 0]),
    ],
)
def test_an_error_of_another_form_is_still_a_message(text: str, found: list[Any]) -> None:
    """Without a place, if none can be read."""
    read = _whereabouts(text, "error")
    assert [read["message"], read["place"], read["width"]] == found


# Ceilings that the evaluation counts itself


def test_ticks_are_counted(run: Any) -> None:
    """The ceiling and the measure are told."""
    outcome = run("x = [i for i in range(100000)]", ticks=5000)
    assert outcome.run.limit == ["evaluation ticks", 5000, 6000]
    assert outcome.run.failure is not None


def test_tasks_constructed_are_counted(run: Any) -> None:
    """Sessions and prompts are none."""
    text = "s = session(name = 's')\nx = [command(name = 'a') for i in range({})]\n"
    assert run(text.format(3), constructed=3).run.limit is None
    assert run(text.format(4), constructed=3).run.limit == ["tasks constructed", 3, 4]


def test_constructors_are_counted_and_what_is_printed_beyond_the_shown_lines_is_no_call(run: Any) -> None:
    """Neither in the records nor in the numbers of what comes behind."""
    text = "x = [print(i) for i in range(9)]\nx = [session(name = 's') for i in range({})]\n"
    outcome = run(text.format(3), calls=3, printed=2)
    assert ([call[0] for call in outcome.calls], outcome.run.limit) == (["print"] * 2 + ["session"] * 3, None)
    assert _locate(outcome.evaluator, [1, 2]) == [
        [[0, 1, 6], [[0, 1, "<module>"]]],
        [[0, 2, 6], [[0, 2, "<module>"]]],
    ]
    assert run(text.format(4), calls=3, printed=2).run.limit == ["calls of constructors", 3, 4]


def test_the_call_depth_is_bounded(run: Any) -> None:
    """As the configuration says."""
    text = "def f(n):\n    return n if n == 0 else f(n - 1)\nf({})\n"
    assert run(text.format(5), call_depth=10).run.failure is None
    assert run(text.format(50), call_depth=10).run.failure["message"] == "Starlark call stack overflow"


# Evaluating again


def test_calls_are_located_by_evaluating_again_up_to_them(run: Any) -> None:
    """With their callers; a call that does not come has no place. Nothing is asked for again."""
    outcome = run(
        """\
def f(n):
    return [
        session(name = n),
        command(name = prompt_file("a.md")),
    ]
x = f(1)
print(x)
""",
        {"a": "A"},
    )
    asked = len(outcome.parent.sent)
    places = _locate(outcome.evaluator, [0, 2, 3, 99])
    assert places == [
        [[0, 3, 9], [[0, 6, "<module>"], [0, 3, "f"]]],
        [[0, 4, 9], [[0, 6, "<module>"], [0, 4, "f"]]],
        [[0, 7, 1], [[0, 7, "<module>"]]],
        None,
    ]
    assert len(outcome.parent.sent) == asked


def test_of_calls_that_only_a_copy_can_place_so_many_are_told(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Always the same ones, however long they take."""
    monkeypatch.setattr(evaluate, "_MOST_COPIES", 2)
    outcome = run("x = [session(name = 's') for i in range(5)]")
    assert [place is None for place in _locate(outcome.evaluator, [1, 2, 3, 4])] == [False, False, True, True]


def test_other_values_of_the_parameters_hold_for_one_pass(run: Any) -> None:
    """Then those of the launch are back."""
    outcome = run("session(name = param('p'))", params={"p": "first"})
    names = [calls[-1][2][0][1] for calls in (outcome.evaluator.run_again({"p": "other"}).calls, outcome.calls)]
    assert names == ["other", "first"]
    assert outcome.evaluator.run().calls == outcome.calls


def test_a_trace_marks_what_is_reached(run: Any) -> None:
    """Under a name that no source has."""
    outcome = run("_at(0, 0)\nx = 1\n_at(0, 1)\nx = 1 // 0\n_at(0, 2)\n", request={"trace": "_at"})
    assert outcome.parent.sent == [{"at": [0, 0]}, {"at": [0, 1]}]


# The process


@pytest.fixture
def channel(patch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """Put the channel onto pipes; give the parent's ends, to write and to read."""
    request, to = os.pipe()
    from_, answer = os.pipe()
    patch.setattr(evaluate, "_REQUEST", request)
    patch.setattr(evaluate, "_ANSWER", answer)
    yield to, from_
    for descriptor in (request, from_, answer):
        os.close(descriptor)


def packed(*messages: Any) -> bytes:
    """Return messages as the channel has them."""
    found = b""
    for message in messages:
        data = json.dumps(message).encode()
        found += len(data).to_bytes(4, "big") + data
    return found


def unpacked(data: bytes) -> list[Any]:
    """Return the messages in bytes of the channel."""
    found = []
    while data:
        size = int.from_bytes(data[:4], "big")
        found.append(json.loads(data[4 : 4 + size]))
        data = data[4 + size :]
    return found


def test_requests_are_served_until_the_channel_closes(channel: tuple[int, int]) -> None:
    """Evaluations, places, patterns; a syntax error ends none of it."""
    to, from_ = channel
    request = {"config": evaluation_config(LIMITS), "makes": MAKES, "params": {}}
    os.write(
        to,
        packed(
            {"patterns": [["^a+$", "aa"], ["^a+$", "b"]]},
            {**request, "text": "x = = 1"},
            {**request, "text": "session(name = 's')\nworkflow([])\nworkflow([])[0]"},
            {"locate": [1]},
            {"again": {}},
        ),
    )
    os.close(to)
    with pytest.raises(_Closed):
        evaluate.serve()
    patterns, syntax, evaluated, places, again = unpacked(os.read(from_, 1 << 16))
    assert patterns == {"patterns": [True, False]}
    assert (syntax["error"]["kind"], syntax["calls"]) == ("syntax", [])
    assert len(evaluated["calls"]) == 3
    assert evaluated["error"]["place"] == [0, 3, 1]
    assert (evaluated["limit"], evaluated["last"]) == (None, None)
    assert places == {"places": [[[0, 2, 1], [[0, 2, "<module>"]]]]}
    assert again == {"error": evaluated["error"], "calls": evaluated["calls"]}


def test_a_message_may_come_in_pieces(channel: tuple[int, int]) -> None:
    """A pipe gives what it has."""
    to, _ = channel
    data = packed({"text": "x" * 3000})
    for piece in (data[:2], data[2:9], data[9:]):
        os.write(to, piece)
    assert evaluate.receive() == {"text": "x" * 3000}
    os.write(to, data[:9])
    os.close(to)
    with pytest.raises(_Closed):
        evaluate.receive()


def test_the_limits_of_the_system_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory above what is used already, processor time, no files, no core, and a clock that kills."""
    found: dict[int, tuple[int, int]] = {}
    timers: list[tuple[int, float]] = []
    monkeypatch.setattr(resource, "setrlimit", found.__setitem__)
    monkeypatch.setattr(signal, "setitimer", lambda which, seconds: timers.append((which, seconds)))
    evaluate.restrict({"seconds": 2.5, "heap_bytes": 1 << 20})
    assert timers == [(signal.ITIMER_REAL, 2.5)]
    assert found[resource.RLIMIT_NOFILE] == (0, 0)
    assert found[resource.RLIMIT_CORE] == (0, 0)
    assert found[resource.RLIMIT_CPU][0] == 3
    assert found[resource.RLIMIT_CPU][1] > 3
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    assert 0 <= found[resource.RLIMIT_AS][0] - (1 << 20) <= used + (1 << 26)


def test_where_the_system_tells_no_address_space_it_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """By trying which limit lets one page more be had."""
    space = 3 << 30
    found = {resource.RLIMIT_AS: (resource.RLIM_INFINITY, resource.RLIM_INFINITY)}

    def refuse(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError

    monkeypatch.setattr(resource, "setrlimit", found.__setitem__)
    monkeypatch.setattr(signal, "setitimer", lambda *_: None)
    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr(evaluate, "_has_room", lambda size: space + size <= found[resource.RLIMIT_AS][0])
    assert evaluate.restrict({"seconds": 2, "heap_bytes": 1 << 20}) is None
    assert 0 <= found[resource.RLIMIT_AS][0] - space - (1 << 20) <= 2 * resource.getpagesize()
    assert found[resource.RLIMIT_NOFILE] == (0, 0)


@pytest.mark.parametrize("failure", [None, ValueError])
def test_where_no_limit_of_memory_holds_the_evaluation_holds_it(
    monkeypatch: pytest.MonkeyPatch, failure: type[Exception] | None
) -> None:
    """Whether the system refuses the limit or takes it for nothing."""

    def limit(name: int, _: tuple[int, int]) -> None:
        if failure is not None and name in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
            raise failure

    monkeypatch.setattr(resource, "setrlimit", limit)
    monkeypatch.setattr(signal, "setitimer", lambda *_: None)
    monkeypatch.setattr(evaluate, "_told_space", lambda: None)
    resident = evaluate.restrict({"seconds": 2, "heap_bytes": 1 << 20})
    assert resident is not None
    assert resident > 1 << 20


def test_what_is_resident_is_held_where_it_has_to_be(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the status that tells of want of memory."""
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    run("x = [i for i in range(5000)]", resident=1 << 50)
    assert ended == []
    run("x = [i for i in range(5000)]", resident=1)
    assert set(ended) == {3}
    assert len(ended) > 2, "not at the end alone"


def test_a_caller_who_allows_less_processor_time_is_forestalled(monkeypatch: pytest.MonkeyPatch) -> None:
    """His limit kills without a word."""
    found: dict[int, tuple[int, int]] = {}
    timers: list[tuple[int, float]] = []
    allowed = {resource.RLIMIT_CPU: (7, 7)}
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda name: allowed.get(name, unlimited))
    monkeypatch.setattr(resource, "setrlimit", found.__setitem__)
    monkeypatch.setattr(signal, "setitimer", lambda which, seconds: timers.append((which, seconds)))
    monkeypatch.setattr(time, "process_time", lambda: 2.0)
    evaluate.restrict({"seconds": 7, "heap_bytes": 1 << 20})
    assert resource.RLIMIT_CPU not in found
    assert timers[0] == (signal.ITIMER_REAL, 7)
    assert timers[1][0] == signal.ITIMER_PROF
    assert 0 < timers[1][1] < 5


def test_the_clock_stands_still_while_nothing_is_asked(
    channel: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the parent does between two requests is no part of the evaluation."""
    to, _ = channel
    left = 7.0
    set_to: list[float] = []

    def timer(_: int, seconds: float) -> tuple[float, float]:
        nonlocal left
        set_to.append(seconds)
        before, left = left, seconds
        return before, 0.0

    monkeypatch.setattr(signal, "setitimer", timer)
    os.write(to, packed({"patterns": []}, {"patterns": []}))
    os.close(to)
    with pytest.raises(_Closed):
        evaluate.serve()
    assert set_to == [0, 7.0, 0, 7.0, 0]


class _Exit(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize(
    ("end", "status", "words"),
    [
        (_Closed(), 0, b""),
        (MemoryError(), 3, b""),
        (ValueError("x\nyz"), 4, b"ValueError: x\nyz"),
        (KeyboardInterrupt(), 4, b"KeyboardInterrupt: "),
    ],
)
def test_the_process_ends_with_a_status_and_a_word(
    monkeypatch: pytest.MonkeyPatch, end: BaseException, status: int, words: bytes
) -> None:
    """The parent reads both; want of memory has no breath for a word."""
    said: list[tuple[int, bytes]] = []
    ended: list[int] = []

    def serve(_: object) -> None:
        raise end

    def leave(code: int) -> None:
        ended.append(code)
        raise _Exit

    monkeypatch.setattr(evaluate, "receive", lambda: {"seconds": 1, "heap_bytes": 1})
    monkeypatch.setattr(evaluate, "restrict", lambda _: None)
    monkeypatch.setattr(evaluate, "serve", serve)
    monkeypatch.setattr(os, "write", lambda fd, data: said.append((fd, data)))
    monkeypatch.setattr(os, "_exit", leave)
    with pytest.raises(_Exit):
        _work()
    assert ended == [status]
    assert b"".join(data for _, data in said) == words


def test_the_child_works_on_a_large_stack_or_on_the_one_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no room for the large one, most sources need none."""
    done: list[str] = []

    class Blocked:
        """Stands for a lock that nobody opens."""

        def __enter__(self) -> None:
            done.append("waits")

        def __exit__(self, *_: object) -> None:
            pass

        def acquire(self) -> None:
            """Wait for ever."""
            raise _Exit

    def refuse(*_: object) -> int:
        raise RuntimeError

    def work(warm: bool) -> None:  # noqa: FBT001 - as _work() has it
        assert not warm
        done.append("works")
        raise _Exit

    monkeypatch.setattr(sys, "set_int_max_str_digits", lambda _: None)
    monkeypatch.setattr(gc, "disable", lambda: None)
    monkeypatch.setattr(_thread, "stack_size", lambda size: done.append(f"{size >> 20} MiB"))
    monkeypatch.setattr(_thread, "start_new_thread", lambda function, _: done.append(function.__name__))
    monkeypatch.setattr(_thread, "allocate_lock", Blocked)
    monkeypatch.setattr(evaluate, "_work", work)
    with pytest.raises(_Exit):
        evaluate.main()
    assert done == ["256 MiB", "work", "waits"]
    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    with pytest.raises(_Exit):
        evaluate.main()
    assert done[3:] == ["256 MiB", "works"]

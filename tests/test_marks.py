"""The marks of calls: one evaluation tells by them what it otherwise tells of one call by failing there."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packs import END, compiled, write

from crucible.compiler import explain
from crucible.compiler.frontend import evaluate
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.marks import MARK, WANTED, marked
from crucible.compiler.frontend.pool import Pool
from crucible.compiler.frontend.sandbox import Death, Sandbox
from crucible.compiler.frontend.source_file import SourceFile
from crucible.compiler.pipeline import Options, compile_source
from crucible.schemas.diagnostic import Diagnostic

NAMES = ("session", "command", "print")


def text(source: str, number: int = 0) -> str:
    """Return a source with its marks, which are shortened."""
    found = marked(SourceFile(number, "workflow.star", "workflow.star", source), NAMES)
    return found.replace(MARK, "@").replace(WANTED, "wanted")


def called(column: int) -> str:
    """Return the mark of a call inside of a function."""
    return f'["@0:1:{column}:", call_stack()] if wanted() else "@0:1:{column}:"'


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("session()", 'session("@0:1:1:<module>", )'),
        ("x = [session( # c\n  name = 1) for y in z]", 'x = [session("@0:1:6:<module>",  # c\n  name = 1) for y in z]'),
        ("'é'; session (1)", "'é'; session (\"@0:1:6:<module>\", 1)"),
        (
            "def f(): return command()",
            f"def f(): return command({called(17)}, )",
        ),
        (
            "f(lambda: session(command()))",
            f"f(lambda: session({called(11)}, command({called(19)}, )))",
        ),
        ("def f():\n  pass\nsession()", 'def f():\n  pass\nsession("@0:3:1:<module>", )'),
    ],
)
def test_a_direct_call_has_its_mark_in_front(source: str, expected: str) -> None:
    """Inside of a function one that tells who called it; the lines stay what they are."""
    assert text(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "f(1)",
        "x.session()",
        "(session)()",
        "s = session\ns()",
        "f(session = 1)",
        "def f(session):\n    session(1)",
        "session = 1\nsession()",
        "[session(1) for session in x]",
        "load('m.star', 'session')\nsession(1)",
        "f = lambda session: session(1)",
        "def call_stack(): pass\nsession()",
    ],
)
def test_what_may_be_another_function_has_none(source: str) -> None:
    """Nor has a constructor under another name."""
    assert text(source) == source


SOURCE = """\
load("lib.star", "made", "kept")
session(name = "a"); session(name = "b")
[session(name = "c%d" % i) for i in range(3)]
def inner(i):
    return [
        session(
            name = "d%d" % i),
        session (name = "e%d" % i) if i else made(i)]
def outer(i):
    return (lambda j: inner(j))(i)
x = [outer(i) for i in range(2)]
sorted([3, 1], key = lambda i: kept(i) if session(name = "f%d" % i) else 0)
other = session
[other(name = "g%d" % i) for i in range(3)]
def given(command = session(name = "h")):
    return command
given()
"""
LIBRARY = """\
def made(i):
    return session(name = "m%d" % i)

def kept(i):
    name = "k%d" % i
    session(name = name)
    return i

session(name = "l")
"""


def found(directory: Path, source: str, monkeypatch: pytest.MonkeyPatch, *, marks: bool) -> list[Diagnostic]:
    """Compile a source, with its marks or without any."""
    with monkeypatch.context() as patch:
        if not marks:
            patch.setattr(explain, "marked", lambda file, _: file.text)
        return compiled(directory, source, lib=LIBRARY).diagnostics


def test_a_mark_tells_what_a_failure_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Place and callers, in helpers, lambdas, modules and what is called by another name."""
    with_marks = found(tmp_path, SOURCE + END, monkeypatch, marks=True)
    assert with_marks == found(tmp_path, SOURCE + END, monkeypatch, marks=False)
    assert len(with_marks) == 18
    assert all(each.span for each in with_marks)


def test_a_mark_is_not_counted_by_any_ceiling(tmp_path: Path) -> None:
    """Those of ticks and calls are about the source as it is written."""
    source = f"def f(i):\n    return session(name = 's%d' % i)\n\n[f(i) for i in range(900)]\n{END}"
    for ticks in range(1_000, 20_000, 1_000):
        diagnostics = compiled(tmp_path, source, LIMITS._replace(ticks=ticks, calls=902)).diagnostics
        if not any(each.code == "limit-exceeded" for each in diagnostics):
            break
    assert {(each.code, each.span and each.span.begin) for each in diagnostics} == {("unbound-session", (2, 12))}


def test_who_is_told_the_callers_is_told_them_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The place itself is told in any case."""
    monkeypatch.setattr(evaluate, "_MOST_CALLERS", 100)
    marks = evaluate._Marks("@", "wanted", [0, 1])
    assert marks.wants_callers()
    stack = "Traceback\n  * 0:7, in <module>\n" + "x" * 100 + "\n  * 0:3, in f\n"
    assert marks.reach(0, (["@0:2:5:", stack], 1)) == (1,)
    assert not marks.wants_callers()
    with pytest.raises(evaluate._Stop):
        marks.reach(1, ("@0:2:5:",))
    assert marks.places == {0: [[0, 2, 5], [[0, 7, "<module>"], [0, 2, "f"]]], 1: [[0, 2, 5], []]}


@given(st.one_of(st.text(), st.lists(st.text()), st.none(), st.integers()), st.integers(0, 3))
def test_an_argument_that_is_no_mark_stays(argument: object, number: int) -> None:
    """Whatever it is."""
    marks = evaluate._Marks("\0@", "wanted", [4])
    assert marks.reach(number, (argument, 2)) == (argument, 2)
    assert marks.reach(number, ()) == ()
    assert marks.places == {}


def test_places_that_cannot_be_found_in_time_are_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No mistake loses its place in silence."""
    asking = Sandbox.ask

    def ask(self: Sandbox, request: dict[str, object]) -> dict[str, object]:
        if "locate" in request:
            raise Death("limit-exceeded", "too slow")
        return asking(self, request)

    monkeypatch.setattr(Sandbox, "ask", ask)
    source = f'session(name = "s")\n{END}'
    diagnostics = compiled(tmp_path, source).diagnostics
    assert [(each.code, each.span) for each in diagnostics] == [("limit-exceeded", None), ("unbound-session", None)]
    assert "not all mistakes have their places" in diagnostics[0].message


def test_no_state_stays_in_the_evaluation(tmp_path: Path) -> None:
    """Mistakes with marks, then lines of print() without, in one process."""
    source = "".join(f'print("p{i}")\nsession(name = "s{i}")\n' for i in range(5)) + END
    with Pool(1) as pool:
        path = write(tmp_path, {})
        results = [compile_source(source.encode(), str(path), Options(connect=pool.connect)) for _ in range(2)]
    assert results[0] == results[1]
    assert [line.split(":")[-2:] for line in results[0].printed] == [[str(2 * i + 1), f" p{i}"] for i in range(5)]
    assert [each.span and each.span.begin.line for each in results[0].diagnostics] == [2, 4, 6, 8, 10]

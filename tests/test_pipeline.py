"""The way of a source through the stages: what comes of each end, and that nothing an evaluation sends can hurt.

Which mistake is found where is written on the sources under cases/.
"""

import copy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packs import END, At, children, compiled, descriptors, shown, write

from crucible.compiler import explain, pipeline
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.pack import Pack, Refusal
from crucible.compiler.frontend.pool import Pool
from crucible.compiler.frontend.sandbox import Death, Sandbox
from crucible.compiler.pipeline import Compiled, Options, Unreadable, compile_file, compile_source
from crucible.schemas.canonical import dumps


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """Check that a compile leaves neither a process nor a descriptor."""
    before = descriptors(), children()
    yield
    assert (descriptors(), children()) == before


# Ends


def test_a_good_source_gives_a_workflow_and_what_it_used(tmp_path: Path) -> None:
    """The embedded prompts, the texts by name, and what print() wrote."""
    write(tmp_path, {"p.md": "Words.\n", "lib.star": 'text = prompt_file("p.md")\nprint("in", [1])\n'})
    source = """\
load("lib.star", "text")
print("a\\nb", text)
a = agent(name = "a", prompt = text)
workflow(type = "custom", tasks = [a])
"""
    result = compiled(tmp_path, source)
    root = str(tmp_path / "workflow.star")
    module = str(tmp_path / "lib.star")
    assert result.diagnostics == []
    assert result.workflow is not None
    assert result.prompts == (("p.md", 7),)
    assert result.printed == (
        f"{module}:2: in [1]",
        f"{root}:2: a",
        f"{root}:2: b Words.",
        f"{root}:2: ",
    )
    assert set(result.texts) == {root, module}


def test_at_most_a_hundred_lines_are_printed(tmp_path: Path) -> None:
    """The last one says that there are more."""
    for count, more in ((100, False), (101, True), (5000, True)):
        result = compiled(tmp_path, f"for i in range({count}):\n    print(i)\n{END}")
        assert result.diagnostics == []
        assert len(result.printed) == 100
        assert ("more" in result.printed[-1]) is more
    result = compiled(tmp_path, f'print("\\n" * 1000)\n{END}')
    assert len(result.printed) == 100


def test_what_was_printed_before_a_failure_is_shown(tmp_path: Path) -> None:
    """It may tell why."""
    result = compiled(tmp_path, 'print("here")\nfail("x")\n')
    assert [d.code for d in result.diagnostics] == ["evaluation-error"]
    assert [line.rpartition(": ")[2] for line in result.printed] == ["here"]


@pytest.mark.parametrize(
    ("data", "code", "place"),
    [
        (b"", "no-workflow", None),
        (b"x = '\xff'", "source-not-utf8", (1, 6)),
        (b"x = 1\nx\0", "nul-in-source", (2, 2)),
        (b"x = [" * 10, "syntax-error", (1, 5)),
        (b"[" + b"\nx," * 300, "syntax-error", (1, 1)),
        (b"def f():\n\tpass\n", "syntax-error", (2, 1)),
        (b"#" * (LIMITS.source_bytes + 1), "limit-exceeded", None),
    ],
)
def test_odd_bytes_are_one_diagnostic_at_their_place(
    tmp_path: Path, data: bytes, code: str, place: tuple[int, int] | None
) -> None:
    """As the first mistake, and without a workflow."""
    result = compiled(tmp_path, data)
    first = result.diagnostics[0]
    assert result.workflow is None
    assert first.code == code
    assert (first.span and tuple(first.span.begin)) == place
    assert {d.code for d in result.diagnostics} == {code}


def test_line_ends_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    """Neither the workflow nor the place of a mistake."""
    source = 'a = command(name = "a", run = """x\ny""")\nworkflow(type = "custom", tasks = [a])\n'
    other = b"\xef\xbb\xbf" + source.replace("\n", "\r\n").encode()
    assert compiled(tmp_path, other).workflow == compiled(tmp_path, source).workflow
    wrong = source.replace("command", "comand")
    other = b"\xef\xbb\xbf" + wrong.replace("\n", "\r\n").encode()
    assert compiled(tmp_path, other).diagnostics == compiled(tmp_path, wrong).diagnostics


def test_a_reformatted_source_gives_the_same_bytes(tmp_path: Path) -> None:
    """Blank lines, comments, and the order of arguments are no part of the workflow."""
    one = 'a = command(name = "a", run = "true", needs = "gpu")\nworkflow(type = "custom", tasks = [a], result = a)\n'
    two = """\
# A comment.

a = command(
    needs = 'gpu',  # another
    run   = "tr" + "ue",
    name  = "a",
)
workflow(result = "a", tasks = (a,), type = "custom")
"""
    first, second = compiled(tmp_path, one).workflow, compiled(tmp_path, two).workflow
    assert first is not None
    assert second is not None
    assert dumps(first) == dumps(second)


def test_a_path_without_a_directory_is_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pack is where the source stands."""
    write(tmp_path, {"p.md": "Words.\n", "w.star": 'workflow([agent(name = "a", prompt = prompt_file("p.md"))])\n'})
    monkeypatch.chdir(tmp_path)
    assert compile_file("w.star").prompts == (("p.md", 7),)


def test_what_cannot_be_read_is_no_input(tmp_path: Path) -> None:
    """A missing file, and a source in a directory that there is not."""
    with pytest.raises(Unreadable):
        compile_file(str(tmp_path / "none.star"))
    with pytest.raises(Unreadable):
        compile_source(b"", str(tmp_path / "none" / "w.star"))


# Modules that are refused


@pytest.mark.parametrize(
    ("module", "code", "at"),
    [
        (b"x = '\xff'", "source-not-utf8", (1, 6)),
        (b"x = 1\0", "nul-in-source", (1, 6)),
        (b"x = " + b"[" * 100_000 + b"]" * 100_000, "limit-exceeded", (1, 133)),
        (b"x = " + b"1 + " * 50_000 + b"1", "limit-exceeded", (1, 4003)),
        (b"if x:\n  pass\n" + b"elif x:\n  pass\n" * 10_000, "limit-exceeded", (2003, 1)),
    ],
)
def test_a_module_that_no_parser_may_see_is_located_and_nothing_follows(
    tmp_path: Path, module: bytes, code: str, at: tuple[int, int]
) -> None:
    """Its symbols are not missed, and it is said once however often it is loaded."""
    write(tmp_path, {"m.star": module})
    source = f'load("m.star", "x")\nload("./m.star", y = "x")\n{END}'
    (found,) = compiled(tmp_path, source).diagnostics
    assert found.code == code
    assert found.file == str(tmp_path / "m.star")
    assert found.span is not None
    assert tuple(found.span.begin) == at
    assert [r.message for r in found.related if r.file and r.file.endswith("workflow.star")] == ["loaded from here"]


def test_an_oversized_module_is_refused_at_the_load(tmp_path: Path) -> None:
    """It was not even read."""
    write(tmp_path, {"m.star": b"#" * (LIMITS.source_bytes + 1)})
    (found,) = shown(compiled(tmp_path, 'load("m.star", "x")\n' + END))
    assert (found.code, found.at) == ("limit-exceeded", At("workflow.star", 1, '"m.star"'))


def test_all_sources_together_have_a_ceiling(tmp_path: Path) -> None:
    """The one that passes it is told, with its load."""
    modules = {f"m{i}": f"x = {i}\n" + "#" * 1000 for i in range(3)}
    source = "".join(f'load("{name}.star", {name} = "x")\n' for name in modules) + END
    limits = LIMITS._replace(all_source_bytes=len(source) + 2500)
    (found,) = shown(compiled(tmp_path, source, limits, **modules))
    assert found.code == "limit-exceeded"
    assert "all sources together" in found.message
    assert found.related == (("loaded from here", At("workflow.star", 3, '"m2.star"')),)


def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list of the modules that are looked for from now on."""
    found: list[str] = []
    looking = Pack.module

    def look(pack: Pack, path: str) -> tuple[str, bytes] | Refusal:
        found.append(path)
        return looking(pack, path)

    monkeypatch.setattr(Pack, "module", look)
    return found


def test_what_is_refused_in_any_case_is_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The modules beyond the ceiling, those that nobody is told of, and a second time what is there."""
    read = reads(monkeypatch)
    modules = {f"m{i}": f"x = {i}\n" for i in range(5)}
    source = "".join(f'load("m{i}.star", a{i} = "x")\nload("./m{i}.star", b{i} = "x")\n' for i in range(5))
    found = compiled(tmp_path, source + END, LIMITS._replace(modules=3), **modules).diagnostics
    assert [(d.code, d.span and d.span.begin.line) for d in found] == [("limit-exceeded", n) for n in (7, 8, 9, 10)]
    assert read == ["m0.star", "m1.star", "m2.star"]
    read.clear()
    missing = "".join(f'load("n{i}.star", x{i} = "x")\n' for i in range(30))
    found = compiled(tmp_path, missing + END, LIMITS._replace(mistakes=9)).diagnostics
    assert Counter(d.code for d in found) == {"file-not-found": 9, "limit-exceeded": 1}
    assert len(read) == 10


@pytest.mark.parametrize("text", ["x = " + "[" * 200, "\0", "#" * 2_000])
def test_a_module_that_is_refused_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """However often it is loaded, and it counts as one of the modules."""
    read = reads(monkeypatch)
    source = "".join(f'load("{name}.star", {name}{i} = "x")\n' for i in range(3) for name in ("a", "b", "c")) + END
    limits = LIMITS._replace(modules=2, all_source_bytes=1_500)
    found = compiled(tmp_path, source, limits, a=text, b=text, c="x = 1\n").diagnostics
    assert read == ["a.star", "b.star"]
    assert [Path(d.file or "").name for d in found] == ["a.star", "b.star", *["workflow.star"] * 3]


def test_32_modules_are_loaded_and_one_more_is_refused(tmp_path: Path) -> None:
    """At its load; a module that is loaded again counts once."""
    modules = {f"m{i}": f"x = {i}\n" for i in range(33)}
    loads = [f'load("m{i}.star", m{i} = "x")\n' for i in range(33)]
    again = 'load("./m0.star", again = "x")\n'
    assert compiled(tmp_path, "".join(loads[:32]) + again + END, **modules).diagnostics == []
    (found,) = shown(compiled(tmp_path, "".join(loads) + END))
    assert (found.code, found.at) == ("limit-exceeded", At("workflow.star", 33, '"m32.star"'))
    assert "32" in found.message


# Legitimate giants


def test_a_real_pack_is_far_from_the_ceilings(tmp_path: Path) -> None:
    """128 tasks from a table, 200 KB of source, 60 prompts of 15 KB."""
    write(tmp_path, {f"p{i}.md": f"{i} " + "x" * 15_000 for i in range(60)})
    table = "".join(f'    ("task-{i}", "p{i % 60}.md", "{"y" * 1600}"),\n' for i in range(128))
    source = f"""\
table = [
{table}]
tasks = []
for name, path, words in table:
    tasks.append(agent(name = name, prompt = prompt_file(path) + words, depends_on = tasks[-3:]))
workflow(type = "custom", tasks = tasks)
"""
    assert len(source) > 200_000
    result = compiled(tmp_path, source)
    assert result.diagnostics == []
    assert result.workflow is not None
    assert len(result.workflow.task) == 128
    assert len(result.prompts) == 60


def test_the_product_has_a_ceiling(tmp_path: Path) -> None:
    """Many tasks may share one large text in the source, not in the JSON."""
    source = 'workflow(type = "custom", tasks = [command(name = "t%d" % i, run = "x" * 1000) for i in range(5)])\n'
    limits = LIMITS._replace(json_bytes=5000)
    result = compiled(tmp_path, source, limits)
    assert result.workflow is None
    (found,) = result.diagnostics
    assert (found.code, found.span) == ("limit-exceeded", None)
    assert "5,000" in found.message


def test_a_thousand_arms_and_terms_are_explained(tmp_path: Path) -> None:
    """What the ceilings allow must not be more than our own reading takes."""
    arms = "x = 3\nif x == 1:\n    pass\n" + "elif x == 2:\n    pass\n" * 999
    terms = "y = " + "[1] + " * 999 + "z\n"
    found = shown(compiled(tmp_path, arms + terms + END))
    assert [(d.code, d.at and d.at.text) for d in found] == [("unknown-name", "z")]


# An evaluation that is not what it should be


class Stub:
    """Stands for a sandbox: gives one answer to the request, another to all that follow."""

    def __init__(self, answer: Any, later: Any) -> None:
        self._answer = answer
        self._later = later

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def begin(self, _: Any) -> None:
        """Take the request."""

    def finish(self) -> Any:
        """Give the answer."""
        return self._answer

    def ask(self, _: Any) -> Any:
        """Give the other answer."""
        if isinstance(self._later, Exception):
            raise self._later
        return self._later


def answered(tmp_path: Path, source: str, answer: Any, later: Any) -> Compiled:
    """Compile with an evaluation that answers so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "Sandbox", lambda *_: Stub(answer, later))
        patch.setattr(explain, "Sandbox", lambda *_: Stub(answer, later))
        return compiled(tmp_path, source)


BROKEN = """\
load("module.star", "helper")
print("x")
a = command(name = "a", run = 3, depends_on = ["b", 4])
s = session(name = "s")
b = agent(name = "b", prompt = prompt_file("none.md"), session = "t")
c = helper(1, 2)
workflow(type = "custom", tasks = [a, b], result = c)
"""
MODULE = "def helper(n):\n    return [][n]\n"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """Return a pack, and what its evaluation really answers, to the request and to the question for places."""
    path = tmp_path_factory.mktemp("pack")
    kept: list[Any] = []
    finish, ask = Sandbox.finish, Sandbox.ask

    def keep(self: Sandbox) -> Any:
        answer = finish(self)
        kept.append(copy.deepcopy(answer))
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sandbox, "finish", keep)
        patch.setattr(Sandbox, "ask", ask)
        result = compiled(path, BROKEN, module=MODULE)
    assert len(result.diagnostics) > 3
    return path, kept[0], kept[1]


def test_an_answer_is_taken_apart_the_same_way_every_time(
    real: tuple[Path, dict[str, Any], dict[str, Any]],
) -> None:
    """The stand-in with the real answers gives a compile like any other."""
    path, answer, places = real
    result = answered(path, BROKEN, copy.deepcopy(answer), places)
    assert "wrong-type" in {d.code for d in result.diagnostics}
    assert result.workflow is None


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 60),
    st.just(1 << 70),
    st.floats(allow_nan=True),
    st.sampled_from(["", "x", "agent", "print", "workflow", "error", "load", "cycle", "symbols", "syntax", "call"]),
    st.just([]),
    st.just({}),
    st.just([[], []]),
    st.just({"call": -1}),
    st.just({"call": "x"}),
    st.just({"call": 3}),
    st.just({"odd": 3}),
    st.just([0, 1, 1]),
    st.just([7, 1, 1]),
    st.just([[0, 1, 1], []]),
    st.just({"kind": "error"}),
    st.just({"kind": "cycle", "file": 0, "load": 9, "chain": [0]}),
    st.just({"kind": "error", "message": "x", "place": [0, 900, 900], "width": -5, "frames": [[0, 800, "f"]]}),
)


@st.composite
def damaged(draw: st.DrawFn, value: Any) -> Any:
    """Generate what is left of a value when one of its parts is replaced, dropped or doubled."""
    root = [copy.deepcopy(value)]
    at: Any = root
    key: Any = 0
    while isinstance(at[key], (list, dict)) and at[key] and draw(st.integers(0, 4)):
        at = at[key]
        key = draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
    match draw(st.integers(0, 4)):
        case 0 if at is not root:
            del at[key]
        case 1 if isinstance(at, list) and at is not root:
            at.append(copy.deepcopy(at[key]))
        case _:
            at[key] = draw(JUNK)
    return root[0]


@settings(max_examples=150)
@given(st.data())
def test_no_answer_can_hurt(real: tuple[Path, dict[str, Any], dict[str, Any]], data: st.DataObject) -> None:
    """Whatever an evaluation sends, diagnostics or a workflow come of it, never an exception."""
    path, answer, places = real
    later = data.draw(st.just(places) | damaged(places) | st.just(Death("evaluator-crashed", "x")))
    if not isinstance(later, (dict, Exception)):
        later = {"places": later}
    first = data.draw(damaged(answer))
    if not isinstance(first, dict):
        first = {"calls": first, "error": None}
    result = answered(path, BROKEN, first, later)
    assert result.diagnostics or result.workflow is not None


_NOWHERE = {"kind": "error", "message": "x", "place": [], "width": 1, "frames": []}


@pytest.mark.parametrize("error", [None, {"kind": "load"}, {"kind": "symbols", "file": 0, "load": 0}, _NOWHERE])
def test_an_answer_without_anything_is_still_explained(tmp_path: Path, error: Any) -> None:
    """Something is wrong, so something is said."""
    result = answered(tmp_path, END, {"calls": [], "error": error}, {"places": []})
    assert result.workflow is None
    assert len(result.diagnostics) == 1


def test_a_death_is_a_diagnostic_of_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside what reading the tree finds."""

    def die(_: Sandbox) -> Any:
        raise Death("evaluator-crashed", "the evaluation process died: x")

    monkeypatch.setattr(Sandbox, "finish", die)
    source = 'a = command(name = "a", run = 3)\nworkflow(type = "custom", tasks = [a])\n'
    result = compiled(tmp_path, source)
    assert {(d.code, d.span is None) for d in result.diagnostics} == {
        ("evaluator-crashed", True),
        ("wrong-type", False),
    }


def test_a_death_after_the_answer_costs_the_places_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mistakes themselves are known, and that the places are missing is told."""

    def die(_: Sandbox, __: Any) -> Any:
        raise Death("evaluator-crashed", "x")

    monkeypatch.setattr(Sandbox, "ask", die)
    source = 'n = 3\nprint(n)\na = command(name = "a", run = n)\nworkflow(type = "custom", tasks = [a])\n'
    result = compiled(tmp_path, source)
    assert [(d.code, d.span) for d in result.diagnostics] == [("evaluator-crashed", None), ("wrong-type", None)]
    assert result.printed == (f"{tmp_path / 'workflow.star'}: 3",)


def test_a_judge_s_direction_is_asked_for_only_where_it_matters(tmp_path: Path) -> None:
    """The manifest is not read for a source without a direction."""
    asked: list[int] = []

    def direction() -> str | None:
        asked.append(1)
        return "higher"

    options = Options(judge_direction=direction)
    root = str(tmp_path / "w.star")
    compile_source(END.encode(), root, options)
    assert asked == []
    source = """\
p = propose(name = "p")
a = apply(name = "a", depends_on = [p])
e = evaluate(name = "e", run = "x", threshold = 1, direction = "lower", depends_on = [a])
g = grade(name = "g", score = e)
d = decide(name = "d", measurement = g)
workflow(tasks = [p, a, e, g, d], result = d)
"""
    (found,) = compile_source(source.encode(), root, options).diagnostics
    assert found.code == "direction-conflict"
    assert asked == [1]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ('load("m.star", "xs")\nxs.append(2)', "a module's values are frozen once it is loaded; build a new one"),
        ("ys = [1]\nfor y in ys:\n    ys.append(y)", "cannot be changed while a loop goes through it"),
        (
            "y = [1].foo",
            'a list has no method "foo"; the methods are append, clear, extend, index, insert, pop, remove',
        ),
        ('y = "a b".splt()', 'a string has no method "splt"; did you mean "split"?'),
        ("y = {}.itmes()", 'a dict has no method "itmes"; did you mean "items"?'),
        ("y = (1).foo", "Object of type `int` has no attribute `foo`"),
        ("y = z\nz = 1", '"z" is used before the line that binds it; move that line up'),
        ("def f():\n    y = z\n    z = 1\n\nf()", '"z" is used before the line that binds it; move that line up'),
        ('y = command(name = "y", run = "true").name', 'no attribute "name"; write the task itself'),
        ('y = command(name = "y", run = "true")\ny.name = "z"', "give every argument in the call that builds it"),
        ("def f(x):\n    pass\n\nf()", 'f() needs the argument "x"; give it in this call'),
        ("def f(*y, x):\n    pass\n\nf()", 'f() needs the argument "x"; give it in this call'),
        ("def f(x):\n    pass\n\nf(1, 2, 3)", "f() is given more arguments than it has parameters, 2 too many"),
        ("def f(x):\n    pass\n\nf(1, y = 2)", 'f() has no parameter "y"; take the argument out'),
        ("y = (lambda x: x)()", 'lambda() needs the argument "x"'),
    ],
)
def test_what_the_evaluator_says_is_said_so_that_it_helps(tmp_path: Path, statement: str, message: str) -> None:
    """Its words for what is frozen say no cure, and its guesses take what is not near."""
    write(tmp_path, {"m.star": "xs = [1]\n"})
    (diagnostic,) = compiled(tmp_path, f"{statement}\n{END}").diagnostics
    assert diagnostic.code == "evaluation-error"
    assert message in diagnostic.message


@pytest.mark.parametrize(
    ("call", "place", "message"),
    [
        ("f(nme = 1)", "4:3-4:6", 'f() has no argument "nme"; did you mean "name"?'),
        ("f(1, taks = 2)", "4:6-4:10", 'f() has no argument "taks"; did you mean "tasks"?'),
        ("f(other = 1)", None, ""),
        ('panel(name = "p", critic = [])', "4:19-4:25", 'panel() has no argument "critic"; did you mean "critics"?'),
        ("g(nme = 1)", "4:3-4:6", 'g() has no argument "nme"; did you mean "name"?'),
    ],
)
def test_a_misspelt_argument_of_a_def_is_told_at_its_name(
    tmp_path: Path, call: str, place: str | None, message: str
) -> None:
    """Its own, one of a module, and one of the standard library; what is near nothing is told as it was."""
    write(tmp_path, {"m.star": "def g(name, **rest):\n    return name\n"})
    head = 'load("@crucible//panel.star", "panel"); load("m.star", "g")\ndef f(name, tasks = []):\n    pass'
    source = f"{head}\n{call}\n{END}"
    (diagnostic,) = compiled(tmp_path, source).diagnostics
    if place is None:
        assert diagnostic.code == "evaluation-error"
        return
    assert (diagnostic.code, diagnostic.message) == ("unknown-argument", message)
    assert diagnostic.span is not None
    begin, end = diagnostic.span
    assert f"{begin.line}:{begin.column}-{end.line}:{end.column}" == place


@pytest.mark.parametrize("name", ["panel.star", "@crucible/panel.star", "lib/panel.star"])
def test_a_module_of_the_standard_library_is_guessed(tmp_path: Path, name: str) -> None:
    """By its own name, where the pack has none such."""
    (diagnostic,) = compiled(tmp_path, f'load("{name}", "panel")\n{END}').diagnostics
    assert diagnostic.message == f'"{name}" does not exist in the pack; did you mean "@crucible//panel.star"?'


@pytest.mark.parametrize("more", [[], [["command", [], []]], None])
def test_call_records_are_taken_only_while_the_evaluation_goes_on(tmp_path: Path, more: Any) -> None:
    """What is sent when a source is evaluated once more changes nothing of what it built."""
    refused: list[bool] = []

    class Late(Sandbox):
        def ask(self, request: Any) -> Any:
            answer = super().ask(request)
            if "again" in request:
                with pytest.raises(ValueError):  # noqa: PT011 - it has no words; the sandbox says what it means
                    self._serve({"more": more})
                refused.append(True)
            return answer

    source = 'params = {"u": {"type": "string", "default": "a, b"}}\n'
    source += 'workflow(type = "playbook", tasks = [agent(name = "a", prompt = param("u"))])\n'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "Sandbox", Late)
        assert compiled(tmp_path, source).workflow is not None
    assert refused


@pytest.mark.parametrize("more", [3, [3], [["agent", [], [["name", {"call": 1}]]]], [["agent", {}, []]]])
def test_records_that_are_none_end_the_evaluation(tmp_path: Path, more: Any) -> None:
    """Nothing that the evaluation tells on its way is trusted."""

    class Odd(Sandbox):
        def finish(self) -> Any:
            self._serve({"more": more})
            return super().finish()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "Sandbox", Odd)
        (diagnostic,) = compiled(tmp_path, END).diagnostics
    assert diagnostic.code == "evaluator-crashed"


@pytest.mark.parametrize("modules", [0, 3])
def test_tokens_are_counted_over_all_sources(tmp_path: Path, modules: int) -> None:
    """What our own reading would keep of them is bounded, whether or not there is anything else wrong."""
    lines = 12_000 if modules else 26_000
    write(tmp_path, {f"m{number}.star": "a = 1\n" * lines for number in range(modules)})
    loads = "".join(f'load("m{number}.star", a{number} = "a")\n' for number in range(modules))
    own = "" if modules else "a = 1\n" * lines
    (diagnostic,) = compiled(tmp_path, f"{loads}{own}{END}").diagnostics
    assert diagnostic.code == "limit-exceeded"
    assert "100,000" in diagnostic.message
    assert str(diagnostic.file).endswith(f"m{modules - 1}.star" if modules else "workflow.star")


def test_a_long_source_of_few_tokens_is_read(tmp_path: Path) -> None:
    """Prompts that are written out make a source long, not hard to read."""
    source = "".join(f'p{number} = """{"word " * 40_000}"""\n' for number in range(1))
    assert compiled(tmp_path, source + "# words\n" * 5_000 + END).workflow is not None


def test_a_second_look_does_not_wait_for_the_first(tmp_path: Path) -> None:
    """What lies behind a function that ended the evaluation is found all the same, in a pool of one, too."""
    source = 'a = command(name = "a", run = len, depends_on = ["zz"])\nworkflow(type = "custom", tasks = [a])\n'
    with Pool(1) as pool:
        result = compile_source(source.encode(), str(tmp_path / "workflow.star"), Options(connect=pool.connect))
    assert [diagnostic.code for diagnostic in result.diagnostics] == ["wrong-type", "unknown-task"]

"""Reading the tree: which names a place sees, what a file exports, what a call shows without evaluating.

What is found where in whole sources is written on those under cases/.
"""

import pytest

from crucible.compiler.frontend import tree
from crucible.compiler.frontend.names import Reading, bound_names, exports, loaded_names, read
from crucible.compiler.frontend.parse import parse
from crucible.schemas.span import Span


def reading(text: str, lane: str | None = "custom", **modules: str | None) -> Reading:
    """Read a source whose modules are given without their ``.star``, None for one that was refused."""
    trees = {f"{name}.star": None if module is None else parse(module) for name, module in modules.items()}
    return read(parse(text), lane, trees)


def unknown(text: str, lane: str | None = "custom") -> list[str]:
    """Return the names that nothing binds where they stand, in the order in which they are found."""
    lines = text.split("\n")
    found = reading(text, lane).names
    assert all(problem.code == "unknown-name" for problem in found)
    return [lines[p.span.begin.line - 1][p.span.begin.column - 1 : p.span.end.column - 1] for p in found]


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\ny = x",
        "y = x\nx = 1",  # bound in the file: the order is the evaluation's affair
        "def f(a, b = 1, *c, **d):\n    return [a, b, c, d, e, f]\ne = 1",
        "def f():\n    x = 1\n    def g():\n        return x\n    return g",
        "def f():\n    for x, (y, z) in []:\n        if x:\n            w = y\n    return [w, x, y, z]",
        "f = lambda a, b = 1, *c: [a, b, c, f]",
        "x = [a + b for a in [1] for b in [a] if a if b]",
        "x = {a: b for a, b in [[1, 2]]}",
        "for a in [1]:\n    b = a\nx = b",
        "if True:\n    a = 1\nelif a:\n    b = a\nelse:\n    c = b\nx = c",
        "a, [b, c] = 1, [2, 3]\nx = [a, b, c]",
        "a = {}\na['x'] = 1\na.x = 1\na += 1",
        "x = 1\nx += x",
        "x = len(sorted([True, None])) if False else print",
        "x = (agent, command, evaluate, session, prompt_file, workflow, propose, top_k)",
        "x = 'a'.join(y).strip[1:2:3]\ny = -x",
    ],
)
def test_what_is_bound_is_known(text: str) -> None:
    """By every kind of binding that the language has, within every scope."""
    assert unknown(text) == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x = y", ["y"]),
        ("x = [a for a in a]", ["a"]),  # the first iterable belongs to the scope around
        ("x = [a for b in [1] for a in c]", ["c"]),
        ("x = [a for a in [1]]\ny = a", ["a"]),
        ("def f(a):\n    b = a\nx = [a, b]", ["a", "b"]),
        ("def f(a = b):\n    b = a", ["b"]),
        ("f = lambda a = a: a", ["a"]),
        ("f = (lambda a: a)(a)", ["a"]),
        ("x += 1", ["x"]),  # an augmented assignment gives no first value
        ("def f():\n    y = 1\n    z += y", ["z"]),
        ("x[i] = 1", ["x", "i"]),
        ("x.y = 1", ["x"]),
        ("x.y.z(w)[v:u]", ["x", "w", "v", "u"]),
        ("[a, b.c] = d", ["d", "b"]),
        ("[[a], [b.c]] = d", ["d", "b"]),
        ("for a.b in c:\n    d", ["c", "a", "d"]),
        ("f(**g)(*h)", ["f", "g", "h"]),
        ("x = {k: v}", ["k", "v"]),
        ("x = a if b else c", ["a", "b", "c"]),
        ("x = not a and -b or c in d", ["a", "b", "c", "d"]),
        ("def f():\n    return\ndef g():\n    return h\n", ["h"]),
        ("if a:\n    pass\nelif b:\n    pass\nelse:\n    c", ["a", "b", "c"]),
    ],
)
def test_what_nothing_binds_there_is_unknown(text: str, names: list[str]) -> None:
    """Each occurrence by itself, in the order of the text."""
    assert sorted(unknown(text)) == sorted(names)


def test_a_long_chain_does_not_recurse() -> None:
    """A sum of 900 terms and 120 nested brackets are read like any other."""
    assert unknown("x = " + " + ".join(["y"] * 900)) == ["y"] * 900
    assert unknown("x = " + "[" * 120 + "y" + "]" * 120) == ["y"]


@pytest.mark.parametrize(
    ("lane", "names"),
    [
        ("custom", ["param"]),
        ("autoresearch", ["param"]),
        ("playbook", ["propose", "top_k"]),
        (None, []),
    ],
)
def test_a_lane_has_the_names_of_its_groups(lane: str | None, names: list[str]) -> None:
    """Those of all lanes while the lane is not known."""
    assert unknown("x = [agent, propose, top_k, param]", lane) == names


def test_a_name_of_another_lane_says_so() -> None:
    """It is no misspelling."""
    (problem,) = reading("x = measure(name = 'a')", "playbook").names
    assert (problem.message, problem.suggestion) == ('"measure" is not defined in the lane playbook', None)


def test_a_name_of_another_lane_may_be_a_misspelling_all_the_same() -> None:
    """What was meant is said instead."""
    (problem,) = reading("parm = 1\nx = param", "custom").names
    assert (problem.message, problem.suggestion) == ('"param" is not defined; did you mean "parm"?', "parm")


def test_only_direct_calls_of_the_lane_s_own_constructors_are_bound() -> None:
    """Neither an alias, nor what the file itself has given that name, nor a name of another lane."""
    assert reading("mk = agent\nx = mk(nme = 1)").arguments == []
    assert reading("def agent(nme):\n    pass\nx = agent(nme = 1, prompt = 'p')").arguments == []
    assert reading("x = [agent(nme = 1, prompt = 'p') for agent in []]").arguments == []
    assert reading("def f(agent):\n    return agent(nme = 1, prompt = 'p')").arguments == []
    assert reading("x = param(nme = 1)", "custom").arguments == []
    assert len(reading("x = [agent(nme = 1, prompt = 'p') for a in []]").arguments) == 1
    assert len(reading("f = lambda: agent(nme = 1, prompt = 'p')").arguments) == 1


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        ("name = 'a', run = x", []),
        ("name = 'a', **x", []),
        ("name = 1, **x", ["wrong-type"]),
        ("*x, run = 1", ["wrong-type"]),
        ("run = 'x'", ["missing-argument"]),
        ("name = 'a', run = prompt_file('x')", []),
        ("name = 'a', run = session(name = 's')", ["wrong-type"]),
        ("name = 'a', run = {}", ["wrong-type"]),
        ("name = 'a', run = -1", ["wrong-type"]),
        ("name = 'a', run = x, depends_on = [x, agent(name = 'b', prompt = 'p'), session(name = 's')]", ["wrong-type"]),
        ("name = 'a', run = x, depends_on = [x, (3, [None])]", ["wrong-type"] * 2),
        ("name = 'a', run = x, depends_on = agent(name = 'b', prompt = 'p')", ["wrong-type"]),
        ("name = 'a', run = x, depends_on = x", []),
        ("name = 'a', run = x, required = not x", []),
    ],
)
def test_literals_are_judged_and_nothing_else(arguments: str, codes: list[str]) -> None:
    """What has to be evaluated may be anything."""
    text = f"x = 3\ny = command({arguments})"
    found = [p.problem.code for p in reading(text).arguments]
    assert found == codes


def test_a_literal_that_is_not_finite_is_known_from_reading_alone() -> None:
    """The evaluator gives None for it; a minus sign does not help."""
    for literal in ("1e999", "-1e999"):
        (found,) = reading(f"x = evaluate(name = 'a', run = 'x', direction = 'lower', threshold = {literal})").arguments
        assert found.problem.code == "threshold-not-finite"
    assert reading("x = evaluate(name = 'a', run = 'x', direction = 'lower', threshold = -1)").arguments == []
    assert [f.problem.code for f in reading("x = command(name = 'a', run = -True)").arguments] == []


# Modules

MODULE = """\
load("other.star", "loaded", alias = "z")
a = 1
_private = 2
def b(inside):
    local = 1
for c, (d, e) in []:
    f = 1
if a:
    g = 1
else:
    h = 1
i = [hidden for hidden in []]
j, [k] = 1, [2]
l += 1
a[0] = m.n
"""


def test_a_file_binds_what_stands_at_its_top_level() -> None:
    """Arms and loops count, functions and comprehensions keep theirs; the first place is kept."""
    found = bound_names(parse(MODULE + "a = 3\n").statements)
    assert set(found) == {"loaded", "alias", "_private", *"abcdefghijk"}
    assert found["a"] == Span.of(2, 1, 2, 2)


def test_a_file_exports_what_it_binds_itself() -> None:
    """Not what it loaded, and not what begins with an underscore."""
    assert exports(parse(MODULE)) == set("abcdefghijk")
    assert loaded_names(parse(MODULE)) == {"loaded", "alias"}


def test_symbols_of_a_load_are_looked_up_in_its_module() -> None:
    """Each symbol that is not there is one mistake, at its string."""
    text = 'load("m.star", "a", "aa", "loaded", "agent", "len", "_private", "zz", x = "private")'
    found = reading(text, m="loaded_not = 1\na = 1\nload('o.star', 'loaded')\n").names
    assert [(p.code, p.suggestion) for p in found] == [
        ("unknown-symbol", None),
        ("unknown-symbol", None),
        ("unknown-symbol", None),
        ("unknown-symbol", None),
        ("private-symbol", None),
        ("unknown-symbol", None),
        ("unknown-symbol", None),
    ]
    assert found[0].message == '"m.star" does not define "aa"; the symbols are a, loaded_not'
    assert (
        found[1].message == '"loaded" is loaded by "m.star", not defined there; load it from the file that defines it'
    )
    assert found[2].message == '"m.star" does not define "agent"; it is part of the language and needs no load'
    assert found[4].span == Span.of(1, text.index('"_private"') + 1, 1, text.index('"_private"') + 11)


def test_a_symbol_near_another_suggests_it() -> None:
    """Only what the module exports."""
    (found,) = reading('load("m.star", "hlper")', m="helper = 1\n_hlper = 2").names
    assert found.suggestion == "helper"


def test_a_module_that_could_not_be_read_says_nothing_of_its_symbols() -> None:
    """Neither one that was refused, nor one with a syntax error, but for a private name."""
    assert reading('load("m.star", "a")', m=None).names == []
    assert reading('load("m.star", "a")', m="a = = 1").names == []
    assert [p.code for p in reading('load("m.star", a = "_a")', m=None).names] == ["private-symbol"]


def test_a_load_of_something_else_than_a_string_is_passed_over() -> None:
    """The parser has said what is wrong with it."""
    literal = tree.Literal(Span.of(1, 1, 1, 2), 3)
    load = tree.Load(literal.span, literal, ())
    assert read(tree.Source((load,), (), ()), "custom", {})[:2] == ([], [])

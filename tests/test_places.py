"""From a recorded call to the place in the text, and the places that explain how one got there.

The exact places of elements in whole sources are written on the sources under cases/elements.
"""

from pathlib import Path

import pytest
from packs import END, At, compiled, shown

from crucible.compiler.frontend import tree
from crucible.compiler.frontend.binding import Spot
from crucible.compiler.frontend.origins import InCall
from crucible.compiler.frontend.places import Places, call_at, frame_span, inner_span, node_at, spot_in, suspect
from crucible.compiler.frontend.source_file import SourceFile
from crucible.schemas.span import Position, Span


def source(text: str, path: str = "workflow.star") -> SourceFile:
    """Return a text as a file of a compile."""
    return SourceFile(0, path, path, text)


def call_in(file: SourceFile, name: str = "f") -> tree.Call:
    """Return the first call of a function in a file."""
    for node in tree.walk(*file.source.statements):
        if isinstance(node, tree.Call) and isinstance(node.function, tree.Name) and node.function.id == name:
            return node
    raise AssertionError(name)


# Text and trees


def test_the_text_of_a_span_is_cut_over_lines() -> None:
    """The begin is in the span, the end is not; a span beyond the text has no text."""
    file = source("ab\ncd\nef\n")
    assert file.cut(Span.of(1, 2, 1, 3)) == "b"
    assert file.cut(Span.of(1, 2, 3, 2)) == "b\ncd\ne"
    assert file.cut(Span.of(2, 1, 2, 1)) == ""
    assert file.cut(Span.of(9, 1, 9, 2)) == ""


def test_a_tree_is_parsed_once_and_its_loads_are_in_order() -> None:
    """Loads inside other statements are none."""
    file = source('load("b.star", "x")\ny = 1\nload("a.star", "z")\n')
    assert [load.path.value for load in file.loads] == ["b.star", "a.star"]
    assert file.source is file.source


def test_the_call_of_the_constructor_is_found_among_those_that_begin_together() -> None:
    """``agent(…)(…)`` has two."""
    file = source("x = agent(a = 1)(b = 2)\n")
    begin = Position(1, 5)
    inner = call_at(file, begin, "agent")
    outer = call_at(file, begin, "")
    assert inner is not None
    assert outer is not None
    assert file.cut(inner.span) == "agent(a = 1)"
    assert file.cut(outer.span) == "agent(a = 1)(b = 2)"
    assert call_at(file, Position(1, 6), "agent") is None


@pytest.mark.parametrize(
    ("text", "column", "width", "found"),
    [
        ("x = a.b.c + d", 5, 5, "a.b.c"),
        ("x = a.b.c + d", 5, 9, "a.b.c + d"),
        ("x = a.b.c + d", 5, 0, "a.b.c + d"),  # nothing is said: the widest
        ('x = "😀😀" + 3', 5, 6, '"😀😀"'),  # wide characters count twice there
        ("x = f(\n  3)", 5, 0, "f(\n  3)"),
        ("x = f(\n  3)", 5, 2, "f(\n  3)"),
        ("x = a.b(\n  3)", 5, 3, "a.b"),
        ("x = a", 40, 3, ""),
    ],
)
def test_the_expression_at_a_place_is_the_one_that_was_underlined(
    text: str, column: int, width: int, found: str
) -> None:
    """Without a fitting one the widest, without any the columns themselves."""
    file = source(text)
    span = node_at(file, Position(1, column), width)
    assert file.cut(span) == found
    if not found:
        assert span == Span.of(1, 40, 1, 43)


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("  y = [f(1), g(2)]", "g", "g"),
        ("y = a.f(1)", "f", "y = a.f(1)"),  # no call by that name: the line
        ("\ty = f(1)  ", "h", "y = f(1)"),
    ],
)
def test_a_frame_is_placed_at_the_call_on_its_line(text: str, name: str, found: str) -> None:
    """The evaluator knows the line alone."""
    file = source(f"if x:\n{text}\n")
    assert file.cut(frame_span(file, 2, name)) == found


def test_a_frame_beyond_the_text_has_a_place() -> None:
    """What the evaluation says is not trusted."""
    assert frame_span(source("x = 1\n"), 77, "f") == Span.of(77, 1, 77, 2)


@pytest.mark.parametrize(
    ("literal", "inner"),
    [
        ('"abc"', "abc"),
        ("'abc'", "abc"),
        ('r"a\\b"', "a\\b"),
        ('"""abc"""', "abc"),
        ('""', ""),
        ('"a\\x62c"', None),
        ('"""a\nb"""', None),
    ],
)
def test_the_text_between_the_quotes_is_known_without_escapes_and_line_ends(literal: str, inner: str | None) -> None:
    """Elsewhere the letters of the text are not those of the value."""
    file = source(f"x = {literal}\n")
    (assign,) = file.source.statements
    assert isinstance(assign, tree.Assign)
    assert isinstance(assign.value, tree.Literal)
    span = inner_span(file, assign.value)
    assert (span and file.cut(span)) == inner


# Spots in a call

RECORD = ["f", [["p", ["q", "r"]]], [["a", ["x", "y"]], ["b", ["x", "y", "z", "u"]]]]


@pytest.mark.parametrize(
    ("call", "spot", "found"),
    [
        ("f(a = 1)", Spot(), "f"),
        ("m.f(a = 1)", Spot(), "m.f"),
        ("f(a = 1)", Spot("a"), "1"),
        ("f(a = 1)", Spot("a", part="name"), "a"),
        ("f(a = 1, a = 2)", Spot("a", part="again"), "a"),
        ("f(1, 2)", Spot("#1"), "2"),
        ("f(1, *rest)", Spot("#1"), "*rest"),
        ("f(*rest, **more)", Spot("#0"), "*rest"),
        ("f(*rest, **more)", Spot("a"), "**more"),
        ("f(**more)", Spot("#0"), "f"),
        ("f(**more)", Spot(), "f"),
        ("f()", Spot("a"), "f"),
        ("f(p)", Spot("#0", (1, 0)), "p"),
        ("f([p, [q, r]])", Spot("#0", (1, 0)), "q"),
        ("f([p, s])", Spot("#0", (1, 0)), "s"),
        ("f(a = [x, y])", Spot("a", (1,)), "y"),
        ("f(a = (x, y))", Spot("a", (1,)), "y"),
        ("f(a = [x] + [y])", Spot("a", (1,)), "y"),
        ("f(b = s + [y] + [z, u])", Spot("b", (0,)), "s"),
        ("f(b = s + [y] + [z, u])", Spot("b", (1,)), "y"),
        ("f(b = s + [y] + [z, u])", Spot("b", (3,)), "u"),
        ("f(b = [x] + s + [u])", Spot("b", (3,)), "u"),
        ("f(b = [x] + s + [u])", Spot("b", (1,)), "s"),
        ("f(b = [x] + (s + t))", Spot("b", (2,)), "s + t"),
        ("f(b = [x] + (s + [u]))", Spot("b", (3,)), "u"),
        ("f(b = [x] + (s + [u]))", Spot("b", (2,)), "s"),
        ("f(a = [x] * 2)", Spot("a", (1,)), "[x] * 2"),
        ("f(a = [x])", Spot("a", (1,)), "[x]"),
        ("f(a = [e for e in s])", Spot("a", (1,)), "[e for e in s]"),
    ],
)
def test_a_spot_is_as_exact_as_reading_can_be(call: str, spot: Spot, found: str) -> None:
    """The element of a display or of a sum; otherwise the smallest expression that it comes out of."""
    file = source(f"v = {call}\n")
    node = next(node for node in tree.walk(*file.source.statements) if isinstance(node, tree.Call))
    span, _ = spot_in(file, node, spot, RECORD)
    assert file.cut(span) == found


def test_the_second_of_two_names_is_meant() -> None:
    """Both are spelled alike: the place tells them apart."""
    file = source("f(a = 1, a = 2)\n")
    assert spot_in(file, call_in(file), Spot("a", part="again"))[0] == Span.of(1, 10, 1, 11)


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("s = [x, y]", "y"),
        ("if x:\n    s = [x, y]", "y"),
        ("s = [x, y]\ns.append(z)\ns += [z]", "y"),
        ("s = [x]\ns.append(y)", "s"),
        ("s = [x, y]\ns.pop()", "s"),
        ("s = [x, y]\ns[0] = z", "s"),
        ("s = [x, y]\ns = [y, x]", "s"),
        ("s = [x, y]\ns *= 2", "s"),
        ("s = [x, y]\ns, t = 1, 2", "s"),
        ("s = [x, y]\nfor s in t:\n    pass", "s"),
        ("s = [x, y]\nt = [s for s in t]", "s"),
        ("s = [x, y]\ndef s():\n    pass", "s"),
        ("s = [x, y]\ng = lambda s: s", "s"),
        ('s = [x, y]\nload("a.star", "s")', "s"),
        ("s = g()", "s"),
        ("", "s"),
    ],
)
def test_a_name_is_followed_when_it_has_one_meaning(before: str, found: str) -> None:
    """A list that changes otherwise than by growing is not what its display says."""
    file = source(f"{before}\nf(a = s)\n")
    span, _ = spot_in(file, call_in(file), Spot("a", (1,)), RECORD)
    assert file.cut(span) == found


def test_a_list_that_grows_has_no_known_size() -> None:
    """In a sum its end is found from the other side."""
    file = source("s = [x]\ns.append(y)\nf(b = s + [z, u])\n")
    assert file.cut(spot_in(file, call_in(file), Spot("b", (2,)), RECORD)[0]) == "z"
    assert file.cut(spot_in(file, call_in(file), Spot("b", (1,)), RECORD)[0]) == "s"
    assert file.cut(spot_in(file, call_in(file), Spot("b", (1,)))[0]) == "s + [z, u]"


@pytest.mark.parametrize(
    ("call", "kind", "found"),
    [
        ("f(a = n, b = range(3))", "range", "range(3)"),
        ("f(a = n, b = len)", "function", "len"),
        ("f(a = len, b = range(3))", "range", "range(3)"),
        ("f(a = g, b = lambda: n)", "function", "lambda: n"),
        ("f(a = h, b = n)", "function", "h"),
        ("f(a = [n, [m, agent]], b = n)", "python_callable_value", "agent"),
        ("f(a = 'x' + 'y', b = n)", "function", "n"),
        ("f(a = agent(name = n), b = n)", "function", "n"),
        ("f(a = {}, b = {1: len})", "function", "{1: len}"),
        ("f(a = g(n), b = 3)", "range", "g(n)"),
        ("f(a = None, b = r)", "range", "r"),
        ("f(a = n, b = {r: 1})", "dict", "{r: 1}"),
        ("f(**n)", "range", "n"),
        ("f()", "range", "f"),
    ],
)
def test_the_value_that_no_argument_takes_is_guessed(call: str, kind: str, found: str) -> None:
    """The surest comes first: what is one by its text, then what may be one."""
    file = source(f"def h():\n    pass\nr = range(3)\nm = 'a'\n{call}\n")
    assert file.cut(suspect(file, call_in(file), kind).span) == found


# Recorded calls


def test_calls_are_asked_for_once_and_together() -> None:
    """Only those that there are."""
    file = source("f(a = 1)\nf(a = 2)\n")
    asked: list[list[int]] = []

    def locate(numbers: list[int]) -> list[object]:
        asked.append(numbers)
        return [[[0, number + 1, 1], []] for number in numbers]

    places = Places({0: file}, [["f", [], [["a", 1]]], ["f", [], [["a", 2]]]], locate)
    places.prepare([1, 0, 1, 9, -1])
    for number, text in ((0, "1"), (1, "2")):
        place = places.find(InCall(number, Spot("a")))
        assert place is not None
        assert file.cut(place.span) == text
    assert places.find(InCall(9)) is None
    assert asked == [[0, 1]]


def test_a_call_that_could_not_be_located_has_no_place() -> None:
    """And is not asked for again."""
    places = Places({0: source("f()\n")}, [["f", [], []]], lambda numbers: [None for _ in numbers])
    assert places.find(InCall(0)) is None


def test_a_place_without_a_call_is_that_character() -> None:
    """The evaluator and our own parser might disagree."""
    file = source("x = 1\n")
    places = Places({0: file}, [["f", [], []]], lambda _: [[[0, 1, 3], []]])
    place = places.find(InCall(0, Spot("a")))
    assert place is not None
    assert place.span == Span.of(1, 3, 1, 4)


def test_tasks_that_a_library_made_have_the_author_s_call_as_their_place() -> None:
    """The calls around it are related, those inside of the library are not."""
    root = source("def g():\n    return panel(3)\ng()\n")
    library = SourceFile(1, "@crucible//panel.star", "@crucible//panel.star", "def panel(n):\n    agent(name = n)\n")
    frames = [[0, 3, "<module>"], [0, 2, "g"], [1, 2, "panel"]]
    places = Places({0: root, 1: library}, [["agent", [], []]], lambda _: [[[1, 2, 5], frames]])
    place = places.find(InCall(0, Spot("name")))
    assert place is not None
    assert (place.file, root.cut(place.span)) == (root, "panel")
    assert [(r.message, r.span and root.cut(r.span)) for r in place.callers] == [("in g(), called here", "g")]


def test_a_library_that_nobody_called_has_no_author_s_place() -> None:
    """A task at the top level of a library's module."""
    library = SourceFile(0, "@crucible//panel.star", "@crucible//panel.star", "agent(name = 1)\n")
    places = Places({0: library}, [["agent", [], []]], lambda _: [[[0, 1, 1], [[0, 1, "<module>"]]]])
    assert places.find(InCall(0)) is None


# How one got there


def test_a_mistake_in_a_helper_shows_the_calls_that_led_there(tmp_path: Path) -> None:
    """The innermost first; a literal that reading finds as well is said once, with its calls."""
    text = """\
def inner(name):
    return command(name = name, run = 3)

def outer(name):
    return [inner(name)]

workflow(type = "custom", tasks = [outer("a")])
"""
    (found,) = shown(compiled(tmp_path, text))
    assert found.at == At("workflow.star", 2, "3")
    assert found.related == (
        ("in inner(), called here", At("workflow.star", 5, "inner")),
        ("in outer(), called here", At("workflow.star", 7, "outer")),
    )


def test_a_mistake_in_a_module_shows_the_loads_that_brought_it(tmp_path: Path) -> None:
    """Found by reading or by evaluating."""
    inner = 'n = 3\na = command(name = "a", run = n)\nb = command(name = "b", run = 3)\n'
    outer = 'load("inner.star", "a", "b")\nboth = [a, b]\n'
    text = 'load("outer.star", "both")\nworkflow(type = "custom", tasks = both)\n'
    found = shown(compiled(tmp_path, text, inner=inner, outer=outer))
    assert [d.at for d in found] == [At("inner.star", 2, "n"), At("inner.star", 3, "3")]
    for diagnostic in found:
        assert diagnostic.related == (
            ("loaded from here", At("outer.star", 1, '"inner.star"')),
            ("loaded from here", At("workflow.star", 1, '"outer.star"')),
        )


def test_a_mistake_in_a_function_of_a_module_shows_its_call(tmp_path: Path) -> None:
    """The call is nearer than the load."""
    module = "def mk(name):\n    return command(name = name, run = name)\n"
    text = 'load("module.star", "mk")\nworkflow(type = "custom", tasks = [mk("a"), mk(3)])\n'
    found = shown(compiled(tmp_path, text, module=module))
    assert [(d.code, d.at, d.related) for d in found] == [
        ("wrong-type", At("module.star", 2, "name"), (("in mk(), called here", At("workflow.star", 2, "mk")),))
    ] * 2


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("return fail('x')", "fail('x')"),
        ("return [][n]", "[][n]"),  # one expression: folded into the caller by the evaluator
        ('"""Divides."""\n    return n // 0', "n // 0"),
        ("m = n\n    return {}[m]", "{}[m]"),
        ("return len(n)", "len(n)"),
    ],
)
def test_a_failure_in_a_module_is_located_there(tmp_path: Path, body: str, text: str) -> None:
    """With the calls that led there, through a helper of the root."""
    module = f"def f(n): return n\ndef broken(n):\n    {body}\n"
    root = 'load("module.star", "broken", "f")\ndef helper(n):\n    return broken(f(n))\nx = helper(0)\n' + END
    (found,) = shown(compiled(tmp_path, root, module=module))
    assert found.code == "evaluation-error"
    assert found.at is not None
    assert (found.at.file, found.at.text) == ("module.star", text)
    assert found.related == (
        ("in broken(), called here", At("workflow.star", 3, "broken")),
        ("in helper(), called here", At("workflow.star", 4, "helper")),
    )


def test_a_failure_at_the_top_of_a_module_shows_its_load(tmp_path: Path) -> None:
    """Nobody called it."""
    (found,) = shown(compiled(tmp_path, 'load("module.star", "x")\n' + END, module="x = 1 // 0\n"))
    assert found.at == At("module.star", 1, "1 // 0")
    assert found.related == (("loaded from here", At("workflow.star", 1, '"module.star"')),)


def test_a_failure_in_a_lambda_is_in_a_lambda(tmp_path: Path) -> None:
    """It has no name."""
    (found,) = shown(compiled(tmp_path, "f = lambda: 1 // 0\nx = f()\n" + END))
    assert found.at == At("workflow.star", 1, "1 // 0")
    assert found.related == (("in a lambda, called here", At("workflow.star", 2, "x = f()")),)


def test_a_text_that_imitates_the_evaluator_s_own_lines_moves_nothing(tmp_path: Path) -> None:
    """The place is that of fail(), and the text arrives whole."""
    text = "x\nerror: y\n --> 0:1:1\n  |\n1 | z\n  | ^\n"
    quoted = text.replace("\n", "\\n")
    (found,) = shown(compiled(tmp_path, f'def f():\n    fail("{quoted}")\nf()\n' + END))
    assert found.message == text
    assert found.at == At("workflow.star", 2, f'fail("{quoted}")')


def test_a_function_s_name_is_said_without_the_file_s_number(tmp_path: Path) -> None:
    """The evaluator calls the third file 2."""
    for call, message in (
        ("f(1)", "f() is given more arguments than it has parameters, 1 too many; take out what is too many"),
        ("f(x = 1)", 'f() has no parameter "x"; take the argument out or name a parameter that its def has'),
    ):
        (found,) = shown(compiled(tmp_path, f"def f():\n    pass\n{call}\n" + END))
        assert found.message.endswith(message)


def test_a_hundred_mistakes_all_have_their_places(tmp_path: Path) -> None:
    """They are asked for in portions."""
    text = "".join(f'command(name = "t{i}", run = {i})\n' for i in range(100)) + END
    found = [d for d in shown(compiled(tmp_path, text)) if d.code == "dropped-task"]
    assert [d.at and d.at.line for d in found] == list(range(1, 101))


@pytest.mark.parametrize(
    ("source", "code", "at", "related"),
    [
        (
            'w = workflow([command(name = "a", run = "x")])\nworkflow([])\n',
            "second-workflow",
            At("workflow.star", 2, "workflow"),
            [At("workflow.star", 1, "workflow")],
        ),
        (
            'workflow([command(name = "a", run = "x")])\nx = 1\n',
            "code-after-workflow",
            At("workflow.star", 2, "x = 1"),
            [At("workflow.star", 1, "workflow")],
        ),
        (
            'a = command(name = "a", run = "x")\nworkflow([a,\n"a"])\n',
            "duplicate-task",
            At("workflow.star", 3, '"a"'),
            [At("workflow.star", 2, "a")],
        ),
        (
            'a = command(name = "a", run = "x")\nb = command(name = "a", run = "y")\nworkflow([a, b])\n',
            "duplicate-task",
            At("workflow.star", 2, "command"),
            [At("workflow.star", 1, "command")],
        ),
        (
            'def f():\n    return command(name = "a", run = "x")\ndef g():\n    return f()\ng()\nworkflow([])\n',
            "dropped-task",
            At("workflow.star", 2, "command"),
            [At("workflow.star", 4, "f"), At("workflow.star", 5, "g")],
        ),
        (
            "x = [\n  1,\n",
            "syntax-error",
            At("workflow.star", 1, "["),
            [At("workflow.star", 3, "")],
        ),
    ],
)
def test_the_other_place_of_a_mistake_is_related(
    tmp_path: Path, source: str, code: str, at: At, related: list[At]
) -> None:
    """Where the first one stands, what stopped the reading, or who called."""
    found = [d for d in shown(compiled(tmp_path, source)) if d.code == code]
    assert [(d.at, [place for _, place in d.related]) for d in found] == [(at, related)]

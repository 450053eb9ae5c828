"""Reading literals from tokens: the same values as the language has, exact places, no evaluation."""

import pytest
import starlark
from hypothesis import given
from hypothesis import strategies as st

from crucible.compiler.frontend.literal import Node, others, read_literal
from crucible.compiler.frontend.scan import tokens
from crucible.schemas.span import Span


def read(text: str) -> tuple[Node, int] | None:
    """Read a text as one expression."""
    return read_literal([token for token in tokens(text) if token.kind != "COMMENT"], 0)


def node_of(text: str) -> Node:
    """Read a text that is an expression."""
    result = read(text)
    assert result is not None
    return result[0]


def value_of(node: Node) -> object:
    """Return a node as the value that the language would compute."""
    if node.kind == "list":
        return [value_of(element) for element in node.value]
    if node.kind == "dict":
        return {value_of(key): value_of(value) for key, value in node.value}
    assert node.kind != "other"
    return node.value


def evaluate(text: str) -> object:
    """Return what the evaluator makes of an expression; its tuples arrive as lists."""
    dialect = starlark.Dialect.standard()
    dialect.enable_top_level_stmt = True
    return starlark.eval(starlark.Module(), starlark.parse("x.star", text, dialect), starlark.Globals.standard())


def quoted(text: str, quote: str) -> str:
    """Write a string literal in one of the forms of the language."""
    escaped = "".join(f"\\U{ord(c):08x}" if c in "\\\"'\n\r" or ord(c) < ord(" ") else c for c in text)
    return f"{quote}{escaped}{quote}"


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
STRINGS = st.one_of(
    st.builds(quoted, TEXTS, st.sampled_from(["'", '"', "'''", '"""'])),
    st.sampled_from(['r"\\n"', "r'''a\\\nb'''", '"""a\nb"""', r'"\q\101\x41\u00e9\"\'"', '"a\\\nb"', "r'\\''", "''"]),
)
NUMBERS = st.one_of(
    st.builds("{}{}".format, st.sampled_from(["", "-", "- "]), st.integers(0, 10**20)),
    st.builds("{}{:#x}".format, st.sampled_from(["", "-"]), st.integers(0, 10**20)),
    st.builds("0o{:o}".format, st.integers(0, 10**6)),
    st.builds("{!r}".format, st.floats(allow_nan=False, allow_infinity=False)),
    st.sampled_from(["1.", ".5", "1e5", "1E+3", "01.5", "1.5e-3", "0X1F", "0b101", "-0", "-.5"]),
)


def containers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Write lists, tuples, dicts and parentheses around other literals, with comments and line ends."""
    many = st.lists(inner, max_size=4)
    ends = st.sampled_from(["", ",", ", # , ] )\n ", "\n"])

    def sequence(opening: str, closing: str, items: list[str], end: str) -> str:
        comma = "," if opening == "(" and len(items) == 1 else ""
        return f"{opening}{', '.join(items)}{comma}{end if items and not comma else ''}{closing}"

    def mapping(items: list[str], end: str) -> str:
        return "{" + ", ".join(f'"k{at}": {item}' for at, item in enumerate(items)) + (end if items else "") + "}"

    return st.one_of(
        st.builds(sequence, st.just("["), st.just("]"), many, ends),
        st.builds(sequence, st.just("("), st.just(")"), many, ends),
        st.builds(mapping, many, ends),
        st.builds("({})".format, inner),
    )


LITERALS = st.recursive(
    st.one_of(STRINGS, NUMBERS, st.sampled_from(["True", "False", "None"])), containers, max_leaves=12
)


@given(LITERALS)
def test_a_literal_has_the_value_that_the_evaluator_gives_it(text: str) -> None:
    """Reading and evaluating agree, types included, and the whole text is read."""
    result = read(text)
    assert result is not None
    assert repr(value_of(result[0])) == repr(evaluate(text))
    assert tokens(text)[-2].kind == "NEWLINE"


@given(LITERALS)
def test_a_span_covers_its_own_text(text: str) -> None:
    """The text under a node's span reads as the same value."""
    lines = text.split("\n")

    def cut(span: Span) -> str:
        if span.begin.line == span.end.line:
            return lines[span.begin.line - 1][span.begin.column - 1 : span.end.column - 1]
        first, last = (
            lines[span.begin.line - 1][span.begin.column - 1 :],
            lines[span.end.line - 1][: span.end.column - 1],
        )
        return "\n".join([first, *lines[span.begin.line : span.end.line - 1], last])

    waiting = [node_of(text)]
    while waiting:
        node = waiting.pop()
        assert repr(value_of(node_of(cut(node.span)))) == repr(value_of(node))
        if node.kind == "list":
            waiting.extend(node.value)
        elif node.kind == "dict":
            waiting.extend(part for pair in node.value for part in pair)


@pytest.mark.parametrize(
    "marked",
    [
        "«x»",
        "[1, «f(2, [3])», 4]",
        '{"a": «"b" + "c"», "d": «x.y»}',
        '{«f()»: 1, "b": «-x»}',
        "«--1»",
        "«+1»",
        "«-True»",
        "[«-(1)»]",
        "«[y for y in z]»",
        '{"a": «["b" for c in d if e]», "f": 1}',
        "[1, «{k: v for k, v in z}», 2]",
        "[«lambda a, b = 1: a», 2]",
        "{1: «lambda: 3», 2: «[4][0]»}",
        "[«1 if a else 2», 3]",
        "«{} | {}»",
        "«1, 2»",
        "«[1], x»",
        "«1,»",
        "(«not True»)",
        "[«1 == 1», «not a in b», «not a not in b»]",
        "[«f\n(1)»]",
    ],
)
def test_an_expression_that_is_no_literal_is_covered_as_a_whole(marked: str) -> None:
    """Each of them is one node of kind "other"; what stands beside it is still read."""
    text, places = "", []
    for part in marked.replace("«", "»").split("»"):
        places.append(len(text))
        text += part
    found = [(node.span.begin, node.span.end) for node in others(node_of(text))]
    expected = []
    for begin, end in zip(places[1::2], places[2::2], strict=True):
        expected.append(tuple((text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)) for at in (begin, end)))
    assert found == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1, 2",
        "[1 2]",
        '"a" "b"',
        "{1, 2}",
        "{1: 2, 3}",
        "{1: }",
        "[,]",
        "[1,,2]",
        "(,)",
        "[1}",
        "[1 : 2]",
        "{1: 2: 3}",
        "00",
        "0777",
        "1_000",
        '"\\xzz"',
        '"abc',
        "x y",
        "x = 3",
        "1, 2 3",
        "[x = 1]",
        "f(1",
        ")",
        "x)",
        "1 for x in y",
        "[$]",
        "{**x}",
        "[" * 200,
    ],
)
def test_broken_text_is_left_to_the_parser(text: str) -> None:
    """Where the text is no Starlark there is no node, and never an exception."""
    assert read(text) is None


@given(st.text("[]{}()\"'\\,:;=-+.*#\n\t 0189xeEfor lambda,True,in"))
def test_no_text_raises(text: str) -> None:
    """Whatever the text, reading gives a node or None."""
    result = read(text)
    assert result is None or result[0].span.begin <= result[0].span.end


def test_the_statement_ends_at_a_semicolon() -> None:
    """What follows a semicolon belongs to the next statement."""
    result = read("[1]; x = 2")
    assert result is not None
    assert (value_of(result[0]), result[1]) == ([1], 3)


def test_depth_costs_no_stack() -> None:
    """A hundred thousand nested brackets are read without recursion."""
    depth = 100_000
    node = node_of("[" * depth + "x" + "]" * depth)
    assert len(others(node)) == 1


def test_a_number_that_python_would_not_read_is_still_a_number() -> None:
    """An int of five thousand digits is an int, larger than any field takes."""
    node = node_of("9" * 5000)
    assert node.kind == "int"
    assert node.value > 10**400

"""The scan: bytes to text, the ceilings that protect a parser, tokens, string values, the lane.

The evaluator's own parser is the reference: what it reads, and what would end it.
"""

import re
import subprocess
import sys
from collections.abc import Callable

import pytest
import starlark
from hypothesis import example, given
from hypothesis import strategies as st

from crucible.compiler.frontend import lexis
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.scan import Lane, decode, find_lane, guard, string_value, tokens
from crucible.schemas.span import Position, Span

DIALECT = starlark.Dialect.standard()
DIALECT.enable_top_level_stmt = True
DIALECT.enable_lambda = True


def evaluated(source: str) -> object:
    """Return the value of a source as the evaluator has it."""
    return starlark.eval(starlark.Module(), starlark.parse("s", source, DIALECT), starlark.Globals.standard())


# Bytes to text


def test_a_byte_order_mark_is_dropped_and_line_ends_become_lf() -> None:
    """Two spellings of one source are one text."""
    assert decode("\ufeffa = 'é'\r\nb\rc\n".encode(), LIMITS) == ("a = 'é'\nb\rc\n", None)


def test_a_source_of_the_size_of_the_ceiling_is_read_and_one_byte_more_is_not() -> None:
    """The ceiling and the measure are both named."""
    assert decode(b"#" * LIMITS.source_bytes, LIMITS)[1] is None
    text, fault = decode(b"#" * (LIMITS.source_bytes + 1), LIMITS)
    assert text == ""
    assert fault is not None
    assert (fault.code, fault.span) == ("limit-exceeded", None)
    assert "262145" in fault.message
    assert "262144" in fault.message


@pytest.mark.parametrize(("code", "data"), [("source-not-utf8", b"\xff"), ("nul-in-source", b"\0")])
def test_a_byte_that_is_no_text_is_located_in_code_points(code: str, data: bytes) -> None:
    """The offset counts bytes of the file, the place counts characters of the text."""
    text, fault = decode(b"\xef\xbb\xbfa\r\n'\xc3\xa9\xc3\xa9" + data + b"'", LIMITS)
    assert text == ""
    assert fault is not None
    assert (fault.code, fault.span) == (code, Span.of(2, 4, 2, 5))
    assert "offset 11" in fault.message


@given(st.binary(max_size=60))
def test_bytes_are_decoded_or_refused(data: bytes) -> None:
    """Never both, never an exception; what is decoded is what Python's decoder makes of it."""
    text, fault = decode(data, LIMITS)
    if fault is None:
        assert text == data.decode().removeprefix("\ufeff").replace("\r\n", "\n")
        assert "\0" not in text
    else:
        assert text == ""


# Ceilings: each family has one thing n times


def nested(opening: str, closing: str = "") -> Callable[[int], str]:
    """Return a family of expressions in each other."""
    return lambda count: "x = " + opening * count + "1" + closing * count


NESTS: dict[str, Callable[[int], str]] = {
    "lists": nested("[", "]"),
    "parentheses": nested("(", ")"),
    "dicts": nested("{1: ", "}"),
    "calls": nested("f(a = 1, b = ", ")"),
    "indices": nested("f[", "]"),
    "minus": nested("-"),
    "not": nested("not "),
    "lambdas": nested("lambda: "),
    "lambdas with parameters": nested("lambda a, b = 1, *c: "),
    "conditionals": nested("1 if a else "),
    "brackets and signs": lambda count: "x = " + "[-" * (count // 2) + "[" * (count % 2),
    "blocks": lambda count: "".join(f"{' ' * depth}if a:\n" for depth in range(count)) + " " * count + "pass",
    "blocks and brackets": lambda count: "if a:\n  if b:\n    x = " + "[" * (count - 2),
}

CHAINS: dict[str, Callable[[int], str]] = {
    "sums": lambda count: "x = " + " + ".join(["a"] * count),
    "ands": lambda count: "x = " + " and ".join(["a"] * count),
    "not ins": lambda count: "x = " + " not in ".join(["a"] * count),
    "across lines": lambda count: "x = (" + " |\n".join(["a"] * count) + ")",
    "attributes": lambda count: "x = a" + ".b" * (count - 1),
    "methods": lambda count: "x = a" + ".b(c = 1)" * (count - 1),
    "calls": lambda count: "x = a" + "()" * (count - 1),
    "indices": lambda count: "x = a" + "[1:2]" * (count - 1),
    "elifs": lambda count: "if a:\n  b\n" + "elif c:\n  d\n" * count,
    "fors": lambda count: "x = [1" + " for a in b" * count + "]",
    "ifs": lambda count: "x = [1 for a in b" + " if a and c" * (count - 1) + "]",
}


@pytest.mark.parametrize(
    ("family", "ceiling"),
    [pytest.param(make, LIMITS.nesting, id=f"nested {name}") for name, make in NESTS.items()]
    + [pytest.param(make, LIMITS.chain, id=f"chained {name}") for name, make in CHAINS.items()],
)
def test_a_ceiling_is_exact(family: Callable[[int], str], ceiling: int) -> None:
    """So many are fine and one more is not; the message names the ceiling and the measure."""
    assert guard(family(ceiling), LIMITS) is None
    fault = guard(family(ceiling + 1), LIMITS)
    assert fault is not None
    assert fault.code == "limit-exceeded"
    assert str(ceiling) in fault.message
    assert str(ceiling + 1) in fault.message


def test_a_ceiling_is_reported_where_it_is_passed() -> None:
    """The place is the bracket or the operator itself."""
    deep = guard("x = [\n" + "[" * 129, LIMITS)
    assert deep is not None
    assert deep.span == Span.of(2, 128, 2, 129)
    long = guard("x = 1" + " + 1" * 1000, LIMITS)
    assert long is not None
    assert long.span == Span.of(1, 4003, 1, 4004)


@pytest.mark.parametrize(
    "source",
    [
        "x = [" + "1 + 2, f(-a, b = not c)[0].d,\n" * 5000 + "]",
        "x = " + " + ".join(["f(a)(b).c"] * 1000),
        "x = " + " or ".join(["a == 1 and b != 2"] * 500),
        "x = {" + "'k': a if b + c else d + e,\n" * 5000 + "}",
        "if a:\n  b\nelif c:\n  d\n" * 3000,
        "x = [lambda a, b = 1 + 1: a + b, " * 100 + "1" + "]" * 100,
        "x = " + " if a else ".join(["b" + " + c" * 900] * 100),
        "x = 'a' # " + "[" * 500 + "\ny = '" + "(" * 500 + "'",
    ],
)
def test_what_stands_side_by_side_does_not_add_up(source: str) -> None:
    """A ceiling is about one nest and one chain: a long source of short ones is far from it."""
    assert guard(source, LIMITS) is None


@pytest.mark.parametrize("line", ["y = a + b\n", "f(a) + b\n", "if a + b:\n  c\n", "for a in b: c + d\n"])
def test_a_bracket_that_is_never_closed_makes_no_chain_of_what_follows(line: str) -> None:
    """It is a syntax error, and to be reported as one."""
    assert guard("x = [1\n" + line * 2000, LIMITS) is None


FATAL: dict[str, str] = {
    "sums nested at the left": "x = " + "(" * 120 + "a" + ("+ a" * 900 + ")") * 120,
    "many operators": "x = " + " + a - b | c ^ d or ".join(["e"] * 600),
    "methods nested at the left": "x = " + "(" * 2 + "a" + (".b()" * 900 + ")") * 2,
    "operators on both sides": "x = " + "a or a and a == a | a ^ a & a << a + a * [" * 127 + ("]" + " * a" * 8) * 127,
    "elif chains in each other": "".join(
        " " * depth + "if a:\n" + " " * depth + " a\n" + (" " * depth + "elif a:\n" + " " * depth + " a\n") * 400
        for depth in range(9)
    ),
}


@pytest.mark.parametrize("name", FATAL)
def test_depth_that_no_single_ceiling_sees_is_refused(name: str) -> None:
    """Chains within the ceiling, nested within the ceiling, are too much together."""
    fault = guard(FATAL[name], LIMITS)
    assert fault is not None
    assert "together" in fault.message


ARMS = "if a:\n a\n" + "elif a:\n a\n" * 999 + "elif a:\n "
EXTREMES = [family(LIMITS.nesting) for family in NESTS.values()] + [family(LIMITS.chain) for family in CHAINS.values()]
EXTREMES += [
    ARMS + "x = a" + " + a" * 380,
    ARMS + "x = " + "lambda: " * 120 + "a",
    ARMS + "x = " + "[a for a in " * 90 + "a" + "]" * 90,
    "x = " + "lambda: " * 127 + "a" + ".b()" * 999,
    "x = " + "a if a else " * 100 + "a" + " + a" * 999,
    "x = " + ("a" + "+ a" * 900 + " + [") * 120 + "]" * 120,
    "x = " + ("a or a and a == a | a ^ a & a << a + a * [") * 127 + "]" * 127,
    "x = " + ("a" + "()" * 900 + "(a = ") * 100 + "1" + ")" * 100,
    "x = " + " + a - ".join(["b"] * 1000) + " | a" * 300,
    "x = " + " or ".join(["a == 1 and b != 2"] * 590),
]


def test_what_passes_does_not_end_the_evaluator() -> None:
    """The worst that the guard lets through is parsed and compiled by a process that lives on."""
    program = """
import starlark, sys
dialect = starlark.Dialect.standard()
dialect.enable_top_level_stmt = True
dialect.enable_lambda = True
for source in eval(sys.stdin.read()):
    try:
        ast = starlark.parse("s", "a=1;b=1;c=1;d=1;e=1;f=1\\n" + source, dialect)
        starlark.eval(starlark.Module(), ast, starlark.Globals.standard())
    except starlark.StarlarkError:
        pass
print("alive")
"""
    assert [guard(source, LIMITS) for source in EXTREMES] == [None] * len(EXTREMES)
    done = subprocess.run(
        [sys.executable, "-c", program], input=repr(EXTREMES), capture_output=True, text=True, check=False
    )
    assert done.stdout == "alive\n", done.stderr[-500:]


# Tokens

WORD_LIST = """
a def if elif else for in not lambda load return while ( ) [ ] { } , : ; . = == + - ** -> ... 1 0x1F 1.5 .5e1 07
    's' "t" r'v' f'w' b'x' 'broken \\ é !
"""
WORDS = st.sampled_from([*WORD_LIST.split(), "'''u\n'''", "# c", "\t", "\r"])
LAYOUT = st.sampled_from(["", " ", "\n", "\n  ", "\n    ", "\n\t", "\\\n", "\n# c\n", "\r\n", "\n\n"])
ODD = st.one_of(
    st.text(max_size=40),
    st.lists(st.one_of(WORDS, LAYOUT), max_size=25).map("".join),
    st.lists(WORDS, max_size=25).map(" ".join),
)


def place(text: str, offset: int) -> Position:
    """Count lines and columns up to an offset."""
    lines = text[:offset].split("\n")
    return Position(len(lines), len(lines[-1]) + 1)


@given(ODD)
def test_tokens_hold_the_whole_text_in_order(text: str) -> None:
    """Every character is in one token or is a blank; each place is that of its offsets; blocks are balanced."""
    found = tokens(text)
    at, depth = 0, 0
    for token in found:
        assert token.text == text[token.begin : token.end]
        assert token.span == Span(place(text, token.begin), place(text, token.end))
        assert not text[at : token.begin].strip(" \t\r\n\\")
        assert at <= token.begin or token.begin == token.end
        at = max(at, token.end)
        depth += {"INDENT": 1, "DEDENT": -1}.get(token.kind, 0)
        assert depth >= 0
    assert depth == 0
    assert not text[at:].strip(" \t\r\n\\")
    assert [token.kind for token in found].index("END") == len(found) - 1


def kinds(text: str) -> str:
    """Return the kinds of the tokens of a text."""
    return " ".join(token.kind for token in tokens(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "END"),
        ("# c", "COMMENT END"),
        ("a = 1", "NAME OP INT NEWLINE END"),
        ("\n\n  # c\n\na\n\n", "COMMENT NAME NEWLINE END"),
        ("if a:\n  b\n# c\nd", "KEYWORD NAME OP NEWLINE INDENT NAME NEWLINE COMMENT DEDENT NAME NEWLINE END"),
        ("[\n  a,\n# c\n]\n", "OP NAME OP COMMENT OP NEWLINE END"),
        ("a\\\n  b", "NAME NAME NEWLINE END"),
        ("1..a 0b1.5 1e5e5", "FLOAT OP NAME INT FLOAT FLOAT NAME NEWLINE END"),
        ("r'a' R'a' f'a' ''''''", "STRING NAME STRING ERROR STRING NEWLINE END"),
        ("'''a", "ERROR NEWLINE END"),
        ("'a\nb", "ERROR NEWLINE NAME NEWLINE END"),
        ("'a\\\nb'", "STRING NEWLINE END"),
        ("class None", "KEYWORD NAME NEWLINE END"),
        ("if a:\n    b\n  c", "KEYWORD NAME OP NEWLINE INDENT NAME NEWLINE DEDENT ERROR NAME NEWLINE END"),
        ("if a:\n\tb", "KEYWORD NAME OP NEWLINE ERROR INDENT NAME NEWLINE DEDENT END"),
        ("a\tb", "NAME ERROR NAME NEWLINE END"),
        ("[\n\ta,\r\n\r]", "OP ERROR NAME OP ERROR OP NEWLINE END"),
        ("\t\n \t# c\n", "COMMENT END"),
    ],
)
def test_a_text_is_cut_as_the_evaluator_cuts_it(text: str, expected: str) -> None:
    """Layout, numbers and prefixes of strings are where lexers differ."""
    assert kinds(text) == expected


def test_statements_behind_an_unclosed_bracket_are_found() -> None:
    """A line in the first column that looks like a statement ends the bracket, and only an unclosed one."""
    assert kinds("x = [a\n  b = 1\nc = (2)\nd").count("NEWLINE") == 3
    assert kinds("x = f(\na = 1,\nb = (2),\n)\n").count("NEWLINE") == 1


# String values

ESCAPE_LIST = r"""
\n \\ \' \" \q \0 \18 \777 \x41 \x4 \u00e9 \ud800 \a\b\f\v\t\r \U0001F600 \U00110000 \ ' " é 😀 a 0 f
"""
ESCAPES = st.sampled_from([*ESCAPE_LIST.split(), "\\\n", "\\\r", "\r", "\n"])
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
LITERALS = st.builds(
    lambda prefix, quote, body: prefix + quote + body + quote,
    st.sampled_from(["", "r"]),
    st.sampled_from(["'", '"', "'''", '"""']),
    st.lists(st.one_of(ESCAPES, CHARACTERS), max_size=8).map("".join).map(lambda body: body.replace("\r\n", "\n")),
)


@given(LITERALS)
@example("'\\x\r41'")
@example(r"'\ud800'")
@example("'\\q\ra'")
@example(r"'\U00110000'")
@example("r'\\\\\\''")
def test_a_string_has_the_value_that_the_evaluator_gives_it(literal: str) -> None:
    """The value and the refusal of bad escapes, both prefixes, all quotes."""
    try:
        expected = evaluated(literal)
    except starlark.StarlarkError:
        expected = None
    if kinds(literal) == "STRING NEWLINE END":
        assert string_value(literal) == expected


# The lane


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ('workflow(type = "custom")', "custom"),
        ("workflow(tasks = [\n  f(type = 'no'),\n],\n  type = r'playbook',\n)", "playbook"),
        ('workflow(type = "anything")', "anything"),
        (r"workflow(type = 'a\x62c')", "abc"),
        ("workflow (type = '''custom''')", "custom"),
        ("workflow([a])", None),
        ("default_autoresearch()", None),
        ("", None),
        ('x.workflow(type = "custom")', None),
        ('def workflow(type = "custom"): pass', None),
        ('my_workflow(type = "custom")', None),
        ('workflow(tasks = f(type = "custom"))', None),
        ('workflow(a == type, kind = "custom")', None),
        (r"workflow(type = '\xzz')", None),
        ('# workflow(type = "custom")\nx = "workflow(type = \'custom\')"', None),
        ('workflow(type = "a")\nworkflow(type = "b")', "b"),
        ('def f():\n  x\n  return workflow(type = "a")\n', "a"),
        ('workflow(type = "b")\ndef f():\n  # c\n\n  return workflow(type = "a")\n', "b"),
        ('def f(): return workflow(type = "a")\nworkflow(type = "b")\ndef g(): return workflow(type = "c")', "b"),
        ('if a:\n  workflow(type = "b")\n', "b"),
        ('workflow(tasks = [workflow(type = "a")], type = "b")', "b"),
        ('workflow(type = "custom"', "custom"),
        ('x = [\nworkflow(type = "custom")', "custom"),
    ],
)
def test_the_lane_is_read_from_the_tokens(source: str, name: str | None) -> None:
    """It is that of the last call outside any def; its place is that of the literal."""
    lane = find_lane(source)
    assert (lane.name, lane.fault) == (name, None)
    if lane.span:
        begin, end = lane.span
        assert string_value(source.split("\n")[begin.line - 1][begin.column - 1 : end.column - 1]) == name


@pytest.mark.parametrize(
    "value",
    ["lane", '"cus" + "tom"', "f(1, [2])", '["custom"][0]', '("custom")', "f'custom'", "None", '"a" if b else "c"'],
)
def test_a_lane_that_is_no_literal_is_located_at_its_value(value: str) -> None:
    """Everything from behind the sign to the comma is the value."""
    lane = find_lane(f"workflow(tasks = [], type = {value}, result = a)")
    assert lane.fault is not None
    assert (lane.name, lane.span) == (None, None)
    assert (lane.fault.code, lane.fault.span) == ("lane-not-literal", Span.of(1, 29, 1, 29 + len(value)))


def test_a_module_has_no_lane_of_its_own() -> None:
    """The argument is refused wherever it stands, literal or not, and a call without it is not."""
    fault = find_lane('def f(t):\n  return workflow(type = "custom")\n', module=True).fault
    assert fault is not None
    assert (fault.code, fault.span) == ("lane-not-literal", Span.of(2, 26, 2, 34))
    assert find_lane("workflow(tasks = [])", module=True) == Lane()


# Whatever comes


@given(ODD)
def test_no_text_is_too_odd(text: str) -> None:
    """Each entrance takes any text and answers."""
    guard(text, LIMITS)
    find_lane(text)
    find_lane(text, module=True)


PIECES = (
    't = command(name = "a", run = """b\nc""", depends_on = [x, "y"])',
    "agent(\n    name = 'a', # why\n    prompt = prompt_file(\"p.md\"),\n\n)",
    "f(k = 0x1F, d = 1.5,)  # so",
    'workflow(tasks = [t], type = "custom")',
    'workflow(type = "playbook", tasks = [])',
    "x = workflow(t = a)",
    "def f(a = b):",
    "    return f(a = b)",
    "    workflow(type = 'custom')",
    "if a:",
    "elif f(a = b):",
    "f(type = a)",
    "f(a = b)(c)",
    "f(a = workflow('c'))",
    "x = g(a = [[b]])",
    "(",
    ")",
    "[",
    "]",
    "# no token",
    " # nor this",
    "\\",
    "'",
    '"""',
)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("\n".join), st.integers(4, 9))
def test_a_statement_that_is_passed_over_would_change_nothing(text: str, nesting: int) -> None:
    """The guard and the lane are the same when every statement is read token by token."""
    limits = LIMITS._replace(nesting=nesting, chain=nesting)
    passing_over = guard(text, limits), find_lane(text), find_lane(text, module=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexis, "_STATEMENTS", re.compile(r"(?!)"))
        assert passing_over == (guard(text, limits), find_lane(text), find_lane(text, module=True))

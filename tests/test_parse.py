"""The parser: the tree with exact places, and syntax errors that are told apart.

Two oracles stand beside it: Python's own parser, where the languages agree, gives every span and every
precedence; the evaluator's parser says which sources are faulty at all. In the sources of this file « »
stand around the place of a fault.
"""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import starlark
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from crucible.compiler.frontend import tree
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.parse import parse
from crucible.compiler.frontend.scan import decode, guard
from crucible.schemas.span import Position, Span

HERE = Path(__file__).parent
CASES = {
    path.relative_to(HERE / "cases").as_posix(): decode(path.read_bytes(), LIMITS)[0]
    for path in sorted(HERE.joinpath("cases").rglob("*.star"))
    if path.is_file()
}
CASES = {name: text for name, text in CASES.items() if guard(text, LIMITS) is None}
DIALECT = starlark.Dialect.standard()
DIALECT.enable_top_level_stmt = True
DIALECT.enable_lambda = True
DIALECT.enable_load = True
DIALECT.enable_load_reexport = False


def marked(source: str) -> tuple[str, list[Span]]:
    """Return a source without its marks, and the places that were marked."""
    begins: list[Position] = []
    ends: list[Position] = []
    text = ""
    for character in source:
        place = Position(text.count("\n") + 1, len(text) - text.rfind("\n"))
        if character == "«":
            begins.append(place)
        elif character == "»":
            ends.append(place)
        else:
            text += character
    return text, [Span(*pair) for pair in zip(begins, ends, strict=True)]


def cut(text: str, span: Span) -> str:
    """Return the text of a span."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    begin, end = (starts[place.line - 1] + place.column - 1 for place in span)
    return text[begin:end]


# The tree

EVERYTHING = '''\
"""A docstring."""
load("@crucible//critics.star", "panel", vote = "majority")

def pick(first, second = 1, *rest, **named):  # trailing
    for place, (name, value) in enumerate(rest):
        if name not in named and not value or place <= 3:
            continue
        elif place % 2 == 0: break
        else:
            named[name] += -value
    return [x for x in rest if x for y in x], {k: v for k, v in named.items()}

# alone
choose = lambda a, *b: a if b else 1.5e3
cut = "é"[1:], choose[:2], choose[::3], choose[1, 2], {}, {1: 2,}, (), (1,), []
choose(1, name = "a" + r'\\d', *cut, **{}).field; pass
'''


def kinds(node: tree.Node) -> set[str]:
    """Return the names of the kinds of nodes under a node."""
    return {type(found).__name__ for found in tree.walk(node)}


def test_every_kind_of_node_is_built() -> None:
    """One source has them all, and its comments are kept in order."""
    source = parse(EVERYTHING)
    assert source.faults == ()
    assert [comment.text for comment in source.comments] == [" trailing", " alone"]
    everything = set().union(*map(kinds, source.statements))
    expected = {
        name
        for name, kind in vars(tree).items()
        if isinstance(kind, type) and issubclass(kind, tree.Node) and kind is not tree.Node
    }
    assert everything == expected - {"Comment"}


def test_places_count_code_points() -> None:
    """A character outside the basic plane and a combining one are one column each."""
    (statement,) = parse("x = f('😀é', name = y)").statements
    (call,) = (node for node in tree.walk(statement) if isinstance(node, tree.Call))
    assert [argument.span for argument in call.arguments] == [Span.of(1, 7, 1, 11), Span.of(1, 13, 1, 21)]
    assert call.span == Span.of(1, 5, 1, 22)


def test_the_parts_of_a_call_have_their_own_places() -> None:
    """The function, an argument, its name, its value, and the elements of a list."""
    text = "x = lib.agent(\n    name = 'a',\n    depends_on = [b, ('c',)],\n    *more, **{'d': 1}\n)\n"
    (statement,) = parse(text).statements
    call = next(node for node in tree.walk(statement) if isinstance(node, tree.Call))
    name, depends, more, rest = call.arguments
    assert cut(text, call.span) == text[4:-1]
    assert cut(text, call.function.span) == "lib.agent"
    assert [cut(text, argument.span) for argument in call.arguments] == [
        "name = 'a'", "depends_on = [b, ('c',)]", "*more", "**{'d': 1}",
    ]  # fmt: skip
    assert name.name is not None
    assert cut(text, name.name.span) == "name"
    assert cut(text, name.value.span) == "'a'"
    assert isinstance(depends.value, tree.ListExpr)
    assert [cut(text, element.span) for element in depends.value.elements] == ["b", "('c',)"]
    assert (more.star, rest.star) == ("*", "**")


def test_symbols_of_a_load_have_places_and_values() -> None:
    """Without an alias both names stand at the string."""
    (load,) = parse('load("lib.star", "one", two = r"t\\wo")').statements
    assert isinstance(load, tree.Load)
    one, two = load.symbols
    assert (load.path.value, one.symbol.value, one.local.id, two.symbol.value, two.local.id) == (
        "lib.star", "one", "one", "t\\wo", "two",
    )  # fmt: skip
    assert one.symbol.span == one.local.span == Span.of(1, 18, 1, 23)
    assert (two.local.span, two.symbol.span) == (Span.of(1, 25, 1, 28), Span.of(1, 31, 1, 38))


def test_arms_of_an_if_stand_in_each_other() -> None:
    """An elif is an If alone in otherwise, whose place begins at the word and ends with the last arm."""
    text = "if a:\n  b\nelif c:\n  d\nelse:\n  e\n"
    (first,) = parse(text).statements
    assert isinstance(first, tree.If)
    (second,) = first.otherwise
    assert isinstance(second, tree.If)
    assert cut(text, first.span) == text.rstrip()
    assert cut(text, second.span) == "elif c:\n  d\nelse:\n  e"
    assert [cut(text, node.span) for node in (*first.body, *second.body, *second.otherwise)] == ["b", "d", "e"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x1F", 31), ("0o17", 15), ("0B11", 3), ("0", 0), ("12", 12), ("1.", 1.0), (".5e1", 5.0),
        ("1e999", float("inf")), ("True", True), ("None", None), (r"'\x41'", "A"), ("'''a\nb'''", "a\nb"),
        (r"r'\n'", r"\n"),
    ],
)  # fmt: skip
def test_a_literal_has_its_value(text: str, value: object) -> None:
    """Numbers in every base, constants, and decoded strings."""
    (statement,) = parse(text).statements
    assert isinstance(statement, tree.ExprStatement)
    assert isinstance(statement.value, tree.Literal)
    assert (statement.value.value, type(statement.value.value)) == (value, type(value))


@pytest.mark.parametrize("text", ["9" * 200_000, "0x" + "f" * 200_000])
def test_a_number_without_end_is_still_a_number_that_can_be_shown(text: str) -> None:
    """Python prints no integer of more than 4,300 digits, so a message must never hold one."""
    source = parse(f"x = {text}")
    assert source.faults == ()
    value = next(node.value for node in tree.walk(*source.statements) if isinstance(node, tree.Literal))
    assert len(str(value)) > 3000


def test_an_argument_that_is_given_twice_is_kept_twice() -> None:
    """Whether that is right is judged where arguments are bound."""
    source = parse("f(a = 1, a = 2)")
    assert source.faults == ()
    assert sum(isinstance(node, tree.Argument) for node in tree.walk(*source.statements)) == 2


def test_the_longest_chain_is_read_without_recursion() -> None:
    """Neither building nor walking goes as deep as the tree."""
    source = parse(
        "x = " + " + ".join(["a"] * 1000) + "\ny = a" + ".b(c)" * 999 + "\nif a:\n b\n" + "elif a:\n b\n" * 1000
    )
    assert source.faults == ()
    nodes = list(tree.walk(*source.statements))
    assert sum(isinstance(node, tree.Binary) for node in nodes) == 999
    assert sum(isinstance(node, tree.If) for node in nodes) == 1001


# Python's parser as the oracle of expressions: its spans leave parentheses out as ours do


OPERATORS = [
    "|",
    "^",
    "&",
    "<<",
    ">>",
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "and",
    "or",
    "==",
    "!=",
    "<",
    ">",
    "<=",
    ">=",
    "in",
]
FORMS = [
    *("E O E", "E O A O E", "E O E O E O E", "-E", "+E", "~E", "not E", "(E)", "(E)", "A.name", "A if A else E"),
    *("A[E]", "A[E:]", "A[:E:E]", "A[:]", "A[E, E]", "f()", "A(E)", "A(E, k = E)", "f(*A, **A)", "f(k = E, *A)"),
    *("[]", "[E]", "[E, E, E]", "(E, )", "(E,\n E)", "{}", "{E: E}", "{E: E, E: E}", "lambda: E"),
    *(
        "[E for a in A]",
        "[E for a, b in A if A if not A for c in A]",
        "{E: E for a in A}",
        "lambda a, b = A, *c, **d: E",
    ),
]


@st.composite
def larger(draw: st.DrawFn, smaller: st.SearchStrategy[str]) -> str:
    """Draw an expression around smaller ones: E, or A where only an operand may stand, and operators O."""

    def fill(match: re.Match[str]) -> str:
        if match[0] == "O":
            return draw(st.sampled_from([*OPERATORS, "not in"]))
        if match[0] == "E":
            return draw(smaller)
        return draw(st.one_of(LEAVES, smaller.map("({})".format)))

    return re.sub("[EAO]", fill, draw(st.sampled_from(FORMS)))


LEAVES = st.sampled_from(["a", "bc", "1", "2.5", "'s'", "None", "True", "()"])
EXPRESSIONS = st.recursive(LEAVES, larger, max_leaves=12)
PYTHON_NAMES = {
    "List": "ListExpr", "Tuple": "ListExpr", "Dict": "DictExpr", "Subscript": "Index", "UnaryOp": "Unary",
    "BinOp": "Binary", "Compare": "Binary", "IfExp": "Conditional", "ListComp": "Comprehension",
    "DictComp": "Comprehension", "Constant": "Literal",
}  # fmt: skip
SYMBOLS = {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "BitOr": "|", "BitXor": "^",
    "BitAnd": "&", "LShift": "<<", "RShift": ">>", "Eq": "==", "NotEq": "!=", "Lt": "<",
    "Gt": ">", "LtE": "<=", "GtE": ">=", "In": "in", "NotIn": "not in", "USub": "-", "UAdd": "+", "Invert": "~",
    "Not": "not",
}  # fmt: skip


def by_python(text: str) -> set[tuple[str, Span, str]]:
    """Return kind, place and detail of the nodes that Python finds in an expression.

    Chains of ``and`` and ``or`` are left out, because Python keeps no places of their parts, and so are
    tuples in an index, because it does not tell ``a[b, c]`` from ``a[(b, c)]``.
    """
    found: set[tuple[str, Span, str]] = set()
    nodes = list(ast.walk(ast.parse(text, mode="eval")))
    pairs = {id(node.slice) for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple)}
    for node in nodes:
        if (
            not isinstance(node, ast.expr)
            or isinstance(node, ast.BoolOp | ast.Slice | ast.Starred)
            or id(node) in pairs
        ):
            continue
        kind = PYTHON_NAMES.get(type(node).__name__, type(node).__name__)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        span = Span.of(node.lineno, node.col_offset + 1, node.end_lineno, node.end_col_offset + 1)
        detail: Any = ""
        match node:
            case ast.Name():
                detail = node.id
            case ast.Attribute():
                detail = node.attr
            case ast.Constant():
                detail = node.value
            case ast.UnaryOp() | ast.BinOp():
                detail = SYMBOLS[type(node.op).__name__]
            case ast.Compare():
                detail = SYMBOLS[type(node.ops[0]).__name__]
        found.add((kind, span, repr(detail)))
    return found


def by_us(text: str) -> set[tuple[str, Span, str]]:
    """Return the same of our tree."""
    found: set[tuple[str, Span, str]] = set()
    nodes = list(tree.walk(*parse(text).statements))
    left_out = {id(node.name) for node in nodes if isinstance(node, tree.Attribute | tree.Parameter)}
    left_out |= {id(node.name) for node in nodes if isinstance(node, tree.Argument)}
    for node in nodes:
        detail: Any = ""
        match node:
            case tree.ExprStatement() | tree.Argument() | tree.Parameter() | tree.Clause():
                continue
            case tree.Binary(op="and" | "or"):
                continue
            case tree.Index(parts=(tree.ListExpr(is_tuple=True) as pair,), is_slice=False):
                left_out.add(id(pair))
            case tree.Name():
                detail = node.id
            case tree.Attribute():
                detail = node.name.id
            case tree.Literal():
                detail = node.value
            case tree.Unary() | tree.Binary():
                detail = node.op
        if id(node) not in left_out:
            found.add((type(node).__name__, node.span, repr(detail)))
    return found


REPEATED = "repeated named argument"


def refused(source: str) -> str | None:
    """Return what the evaluator's parser says against a source."""
    try:
        starlark.parse("s", source, DIALECT)
    except starlark.StarlarkError as error:
        return str(error)
    return None


@settings(max_examples=500)
@given(EXPRESSIONS)
@example("(a + b) * -c.d[e, (f)](g, h = (i,)) - [j for k, l in m if not n]")
def test_expressions_have_the_structure_and_the_places_that_python_gives_them(text: str) -> None:
    """Every node, its place and its operator; only what both languages have is compared."""
    assume(refused(text) is None)
    assert by_us(text) == by_python(text)


@pytest.mark.parametrize(
    ("text", "left"),
    [("a or b and c", "a"), ("a and b or c", "a and b"), ("a or b or c", "a or b"), ("not a and b", "not a")],
)
def test_and_binds_closer_than_or(text: str, left: str) -> None:
    """Both from the left, and not closer than either."""
    (statement,) = parse(text).statements
    assert isinstance(statement, tree.ExprStatement)
    assert isinstance(statement.value, tree.Binary)
    assert cut(text, statement.value.left.span) == left


# Faults


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = «[»1,\n", '"[" is never closed'),
        ("f(a, «[»1, 2)", '"[" is never closed'),
        ("f«)»", 'unexpected ")"; no bracket is open here'),
        ("x = «'»abc\n", "this string is never closed"),
        ("x = «r'''»abc\n\ny", "this string is never closed; end it with '''"),
        ("x = «'a\\xg'»", "a bad escape"),
        ("x = «f'{y}'»", "f-strings are not allowed"),
        ("x = b«'y'»", '"b" is no prefix of a string'),
        ("x = 'a' «'b'»", "join them with +"),
        ("if a:\n«\t»b\n", "a tab; use spaces"),
        ("x «\t»= 1\n", "a tab; use spaces"),
        ("[\n«\t»a]\n", "a tab; use spaces"),
        ("x = 1«\r»", "carriage return"),
        ("x = «$»", 'unexpected "$"'),
        ("x = «\u00a0»1", "U+00A0"),
        ("x = «!»a", "write not"),
        ("x = 1 «\\» \n", "last character"),
        ("x = «...»", '"..." is not allowed'),
        ("x = «08»", "octal"),
        ("«while» a:\n  b\n", "loop with for"),
        ("«import» a", "load()"),
        ("a «is» b", "compare with =="),
        ("f(«as» = 1)", "choose another name"),
        ("  «x» = 1\n", "unexpected indentation"),
        ("if a:\n    b\n  «c»\n", "matches no block"),
        ("if a:\n«b»\n", "expected an indented block"),
        ("if a:\n  def f():\n«b»\n", "expected an indented block"),
        ("def f():\n«»", "expected an indented block"),
        ("def f()«»\n  a", 'unexpected end of the line; expected ":"'),
        ("x = a if b«»", 'expected "else"'),
        ("x = a +«»", "expected an expression"),
        ("f(a «b»)", 'unexpected "b"; expected "," or ")"'),
        ("x = [1 «2»]", 'expected "," or "]"'),
        ("x = {1«,» 2}", 'expected ":"'),
        ("a «b»", "expected an operator or the end of the line"),
        ("a «'''b\nc'''»", "unexpected \"'''b…\""),
        ("a.«if»", "expected a name"),
        ("load(«a», 'b')", "expected a string"),
        ("load('a', b«)»", 'expected "="'),
        ("a < b «<» c", "comparisons do not chain"),
        ("a «**» b", 'no operator "**"'),
        ("if a «=» b:\n  c", 'compare with "=="'),
        ("a = b «=» c", "assigns once"),
        ("a«:» int = 1", "type annotations"),
        ("def f() «->» int: pass", "type annotations"),
        ("«else»:\n  a", 'without an "if"'),
        ("if a:\n  b\nelse «if» c:\n  d", 'write "elif"'),
        ("a; «for» b in c: d", "a line of its own"),
        ("«return 1»", "outside a def"),
        ("for a in b:\n  def f():\n    «break»", "outside a for loop"),
        ("if a: «load('b', 'c')»", "top level"),
        ("load(«'b'»)", "names no symbol"),
        ("«f()» = 1", "cannot assign"),
        ("(a, [«1», b.c, d[0]]) = e", "cannot assign"),
        ("«a[1:]» = b", "cannot assign to a slice"),
        ("«a[1, 2]» = b", "cannot assign to a slice"),
        ("«a, b» += c", "one variable"),
        ("[a for «f()» in b]", "cannot assign"),
        ("for «-a» in b: c", "cannot assign"),
        ("def f(a, *«a»): pass", 'a second parameter named "a"'),
        ("lambda a = 1, «b»: c", "without a default"),
        ("def f(*a, «*b»): pass", "a second *"),
        ("def f(**a, «b»): pass", "behind **"),
        ("f(a = 1, «b»)", "behind a named one"),
        ("f(*a, «b»)", "behind a named one"),
        ("f(**a, «b = 1»)", "behind **"),
        ("f(*a, «*b»)", "once"),
        ("x = «\u200b»1", "zero width space (U+200B); it cannot be seen; delete it"),
        ("f(a = «\u00a0»1,\u00a0b = 2)", "no-break space (U+00A0); write a plain space"),
        ("def f():\n«\u00a0»\u00a0return 1", "no-break space"),
        ("x = «\u201c»a\u201d", 'write a plain "'),
        ("x = «\u2018»a\u2019", "write a plain '"),
        ("x = a «\u2212» 1", "write a plain -"),
        ("f(a«\uff0c» b)", "write a plain ,"),
        ("load «'a'», 'b'", 'load needs brackets; write load("…", "…")'),
        ("f(a = 10«**»2, b = 1)", 'no operator "**"'),
        ("f(«with» = 1)", "choose another name"),
        ("«with» a: b", "nothing is opened here"),
        ("«try»:\n  a", "test with if beforehand"),
        ("def f(a):\n«return» a\nreturn a", "indented block"),
    ],
)
def test_a_mistake_is_one_fault_at_its_place(source: str, message: str) -> None:
    """The message says what is wrong, then what is right; the evaluator refuses the same source."""
    text, spans = marked(source)
    faults = parse(text).faults
    assert [fault.span for fault in faults] == spans
    assert message in faults[0].message
    assert refused(text)


def bound(source: tree.Source) -> list[str]:
    """Return the names that the statements of a source bind, in order."""
    found = []
    for node in tree.walk(*source.statements):
        match node:
            case tree.Assign(target=tree.Name() as name) | tree.Def(name=name) | tree.For(target=tree.Name() as name):
                found.append(name.id)
            case tree.Assign(target=tree.ListExpr(elements=elements)):
                found += [element.id for element in elements if isinstance(element, tree.Name)]
            case tree.LoadSymbol(local=name) | tree.Parameter(name=name):
                found.append(name.id)
    return found


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("a = «[»1, 2\nb = f(3)\nc = «(»\n", "a b c"),
        ("a = f«(»1, 2]\nb = 3 «4»\n", "a b"),
        ("a = f(b «'x'», c = 1 «d» = 2)\ne = 3 «4»", "a e"),
        ("a = [1 «2», f(3 «4», 5),«,» 6]\nb = 1", "a b"),
        ("a = {'b' «1», 'c' «=» 2, 'd': 3 «'e'»: 4}\nb = 1", "a b"),
        ("a = f(b«:» 1, c«:» 2)\nd = 1", "a d"),
        ("a = f(«f'{b}'», c = «f'd'» + 1 «e»)\ng = 1", "a g"),
        ("a = f(some «words» that say something, b = 1 «2»)\nc = 1", "a c"),
        ("a = f(b «[c]», d = 1)".replace("«[c]»", "[c, d«,» e]") + "\ng = 1", "a g"),
        ("let «a» = 1\nb = a", "a b"),
        ("def a(b)«»\n    c = b\n    return c «d»\ne = a", "a b c e"),
        ("if a b:\n    c = 1\nd = 2".replace("a b", "a «b»"), "c d"),
        ("a = «'»(\nb = f(c = «'»[, d = 1)\ne = 1", "a b e"),
        ("def a():\n    b = 1\n   «c» = 2\n    d = 3\n   e = 4\ng = 5", "a b c d e g"),
        ("def a():\n     b = 1\n    «c» = 2\n    for d in b:\n        e = 1\n    g = 1\n", "a b c d e g"),
        ("a = «[»\n  1,\n\ndef b(c):\n  d = 2 «3»\n  e = 4\n", "a b c d e"),
        ("a = f(b = 1 «c» = 2,\n)\nd = $e = 5".replace("$", "1 «2»\n"), "a d e"),
        ("a = «'»x\nb = y «z»\nc = 1", "a b c"),
        ("f(a = «'»x\n  b = 'y')\nc = 1", "c"),
        ("a, b = 1 «2»; c = 3", "a b c"),
        ("def a(b, c = 1, *d «e»):\n  f = b\n", "a b c d f"),
        ("for a in «:»\n  b = 1 «2»\nc = 3", "a b c"),
        ("if a «=» 1:\n  b = 2\nelse:\n  c = 3 «4»\n", "b c"),
        ("«while» a:\n  b = 1\n  «class» c:\n    d = 2\ne = 3", "b d e"),
        ("load('x', 'a', b = 'c' «'d'»)\ne = 1", "a b d e".replace("d ", "")),
        ("  «a» = 1\nb = 2\n    «c» = 3\nd = 4", "a b c d"),
        ("«\t»a = 1 2\nb = 3", "a b"),
        ("if x:\n«\t»a = 1\n    b = 2\n«\t»c = 3\nd = 4", "a b c d"),
    ],
)
def test_reading_goes_on_behind_a_mistake(source: str, names: str) -> None:
    """Every mistake is reported, and what a faulty line would have bound is bound all the same."""
    text, spans = marked(source)
    found = parse(text)
    assert [fault.span for fault in found.faults] == spans
    assert [name for name in bound(found) if name in names.split()] == names.split()


def test_what_is_right_in_a_broken_line_is_read() -> None:
    """What is missing is put in, what is one too many is passed over; so names and arguments are found there."""
    text = "a = f(b 'x', c = [d e, g], h = {'i' j}, k: m, n = a wild guess, o = p)\n"
    nodes = list(tree.walk(*parse(text).statements))
    assert [node.name.id for node in nodes if isinstance(node, tree.Argument) and node.name] == list("bchkno")
    assert {node.id for node in nodes if isinstance(node, tree.Name)} >= set("degjmp")
    assert len(parse(text).faults) == 5


def test_a_line_has_not_more_faults_than_anybody_reads() -> None:
    """Each takes as long as the line, which may be the whole file."""
    assert len(parse(f"x = [{'a b, ' * 1_000}]").faults) < 50


def test_an_unclosed_bracket_says_where_reading_stopped() -> None:
    """At the next statement, at the end of the file, or at a bracket of another shape."""
    far = parse("x = [\n" + "  1,\n" * 300)
    assert [(fault.span, fault.related) for fault in far.faults] == [
        (Span.of(1, 5, 1, 6), ("the file ends here", Span.of(302, 1, 302, 1)))
    ]
    near = parse("x = [1\ny = 2\n" + "z = 3\n" * 300)
    assert [fault.related for fault in near.faults] == [("the next statement begins here", Span.of(2, 1, 2, 2))]
    other = parse("x = [1)\n")
    assert [fault.related for fault in other.faults] == [('")" stands where "]" belongs', Span.of(1, 7, 1, 8))]


# The evaluator's parser as the oracle of what is a fault at all

WORDS = """
( ) [ ] { } , : ; . = == + - * ** not in and or if else elif for def lambda load return pass break continue a f True 1
2.5 0x1 's' "t" '\'\'u\'\'\' r'v' \\ while class is ... -> ~ += < != | ! $ ' " f'x' b'x' é 007 1_0 |= % >> //
"""
LAYOUT = [
    "\n",
    "\n    ",
    "\n  ",
    "\n        ",
    " ",
    "\\\n",
    "\t",
    "\r",
    "#c\n",
    "\n\n",
    "\n# x\n",
    "\n\t",
    "'\\q'",
    "'\\x'",
]
PIECES = st.sampled_from([*WORDS.split(), *LAYOUT])
SEEDS = [EVERYTHING, *CASES.values()]


@st.composite
def mutants(draw: st.DrawFn) -> str:
    """Draw a sound source with a few characters replaced by something else."""
    text = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, len(text)))
        end = draw(st.sampled_from([begin, begin + 1, begin + 1, begin + 4]))
        text = text[:begin] + draw(st.one_of(PIECES, st.just(""))) + text[end:]
    return text


@settings(max_examples=1000)
@given(st.one_of(mutants(), st.lists(PIECES, max_size=10).map("".join), st.lists(PIECES, max_size=10).map(" ".join)))
@example("if a:\n  \\\n\nb")
@example("x = 1\n  \\\n")
def test_there_is_a_fault_exactly_where_the_evaluator_has_one(source: str) -> None:
    """In both directions, but for an argument that is given twice."""
    assume(guard(source, LIMITS) is None)
    reason = refused(source)
    assume(reason is None or REPEATED not in reason)
    assert bool(parse(source).faults) == bool(reason), reason


@given(st.text(max_size=60))
def test_no_text_is_too_odd_to_be_read(text: str) -> None:
    """There is always a tree, and its places lie in the text."""
    source = parse(text)
    lines = text.split("\n")
    spans = [node.span for node in (*tree.walk(*source.statements), *source.comments)]
    for span in (*spans, *(fault.span for fault in source.faults)):
        for place in span:
            assert 1 <= place.line <= len(lines)
            assert 1 <= place.column <= len(lines[place.line - 1]) + 1


@pytest.mark.parametrize("name", CASES)
def test_a_case_has_a_fault_exactly_when_the_evaluator_has_one(name: str) -> None:
    """Whatever else is wrong with a source is found by others, an argument that is given twice among it."""
    reason = refused(CASES[name])
    assert bool(parse(CASES[name]).faults) == (reason is not None and REPEATED not in reason), reason


def test_a_text_of_too_many_tokens_is_not_read() -> None:
    """Neither the compiler nor the editor keeps what it could not hold; the scan has its own word for it."""
    assert parse('"\n' * 60_000) == tree.Source((), (), ())
    assert parse("a = 1\n" * 20_000).statements


@pytest.mark.parametrize(
    "text", ["\u00a0\n", "\u00a0\u00a0\n  a = 1\n", "if a:\n\u00a0\u200b\nb\n", "\u200b", "\u00a0\\\n\n"]
)
def test_a_line_of_nothing_but_strange_blanks_is_one_mistake(text: str) -> None:
    """No word is left of it to read."""
    assert len(parse(text).faults) == 1

"""What the parser builds for each rule of starlark.lark: values of the parts in, nodes of tree.py out.

It has no state, so that a line can be taken back and read again.
"""

from typing import Any, Final

from crucible.compiler.frontend import tree
from crucible.compiler.frontend.leaf import Leaf
from crucible.schemas.span import Span

_LEVELS = {"|": 1, "^": 2, "&": 3, "<<": 4, ">>": 4, "+": 5, "-": 5, "*": 6, "/": 6, "//": 6, "%": 6}
_CONSTANTS = {"True": True, "False": False, "None": None}


class _Paren:
    """An expression in parentheses: the node keeps its own span, what stands around it takes theirs."""

    __slots__ = ("node", "span")

    def __init__(self, node: tree.Node, span: Span) -> None:
        self.node = node
        self.span = span


def _bare(value: Any) -> Any:
    return value.node if type(value) is _Paren else value


def _over(first: Any, last: Any) -> Span:
    return Span(first.span.begin, last.span.end)


def _list_among(parts: list[Any]) -> list[Any]:
    """Return the one list among the parts of a rule; empty when the rule has none."""
    return next((part for part in parts if type(part) is list), [])


def _name(leaf: Leaf) -> tree.Name:
    return tree.Name(leaf.span, leaf.text)


class _Builder:
    """What lark calls for each rule of the grammar, by the rule's name or alias; it has no state."""

    # Lists. Within a line they are Python lists; across lines (block, text) pairs, see unfold.

    def first(self, parts: list[Any]) -> list[Any]:
        return [parts[0]]

    def more(self, parts: list[Any]) -> list[Any]:
        parts[0].append(parts[-1])
        return parts[0]  # type: ignore[no-any-return]

    def two(self, parts: list[Any]) -> list[Any]:
        return [parts[0], parts[2]]

    def items(self, parts: list[Any]) -> list[Any]:
        return parts[0]  # type: ignore[no-any-return]

    target_items = parameters = items

    # Statements

    def nothing(self, _parts: list[Any]) -> None:
        return None

    def source(self, parts: list[Any]) -> Any:
        return parts[0]

    def first_of_block(self, parts: list[Any]) -> Any:
        return (None, parts[0])

    def more_of_block(self, parts: list[Any]) -> Any:
        return (parts[0], parts[1])

    def line(self, parts: list[Any]) -> list[tree.Node]:
        return parts[0]  # type: ignore[no-any-return]

    def short_suite(self, parts: list[Any]) -> tuple[tree.Node, ...]:
        return tuple(parts[1])

    def long_suite(self, parts: list[Any]) -> tuple[tree.Node, ...]:
        return unfold(parts[3])

    def first_arm(self, parts: list[Any]) -> Any:
        return (None, parts)

    def more_arms(self, parts: list[Any]) -> Any:
        return (parts[0], parts[1:])

    def if_(self, parts: list[Any]) -> tree.If:
        return _conditional_blocks(parts[0], ())

    def if_else(self, parts: list[Any]) -> tree.If:
        return _conditional_blocks(parts[0], parts[2])

    def loop(self, parts: list[Any]) -> list[Any]:
        return parts

    def for_(self, parts: list[Any]) -> tree.For:
        (word, target, _, value), body = parts
        return tree.For(_over(word, body[-1]), _bare(target), _bare(value), body)

    def signature(self, parts: list[Any]) -> list[Any]:
        return [parts[0], _name(parts[1]), tuple(_list_among(parts))]

    def def_(self, parts: list[Any]) -> tree.Def:
        (word, name, parameters), body = parts
        return tree.Def(_over(word, body[-1]), name, parameters, body)

    def expression(self, parts: list[Any]) -> tree.ExprStatement:
        return tree.ExprStatement(parts[0].span, _bare(parts[0]))

    def assign(self, parts: list[Any]) -> tree.Assign:
        target, op, value = parts
        return tree.Assign(_over(target, value), _bare(target), op.text, _bare(value))

    def return_(self, parts: list[Any]) -> tree.Return:
        return tree.Return(_over(parts[0], parts[-1]), _bare(parts[1]) if len(parts) > 1 else None)

    def keyword(self, parts: list[Any]) -> tree.Keyword:
        return tree.Keyword(parts[0].span, parts[0].text)

    def load(self, parts: list[Any]) -> tree.Load:
        path, *symbols = parts[2]
        return tree.Load(_over(parts[0], parts[-1]), self.literal([path]), tuple(symbols))

    def symbol(self, parts: list[Any]) -> tree.LoadSymbol:
        symbol = tree.Literal(parts[-1].span, parts[-1].value)
        local = _name(parts[0]) if len(parts) > 1 else tree.Name(symbol.span, parts[0].value)
        return tree.LoadSymbol(_over(parts[0], parts[-1]), symbol, local)

    def parameter(self, parts: list[Any]) -> tree.Parameter:
        if parts[0].type != "NAME":
            return tree.Parameter(_over(*parts), _name(parts[1]), None, parts[0].text)
        default = _bare(parts[2]) if len(parts) > 1 else None
        return tree.Parameter(_over(parts[0], parts[-1]), _name(parts[0]), default)

    # Expressions

    def bare_tuple(self, parts: list[Any]) -> tree.ListExpr:
        items = parts[0]
        return tree.ListExpr(_over(items[0], items[-1]), tuple(map(_bare, items)), is_tuple=True)

    def tuple_(self, parts: list[Any]) -> tree.ListExpr:
        return tree.ListExpr(_over(parts[0], parts[-1]), tuple(map(_bare, _list_among(parts))), is_tuple=True)

    def list_(self, parts: list[Any]) -> tree.ListExpr:
        items = _list_among(parts) or parts[1:-1]
        return tree.ListExpr(_over(parts[0], parts[-1]), tuple(map(_bare, items)))

    def paren(self, parts: list[Any]) -> _Paren:
        return _Paren(_bare(parts[1]), _over(parts[0], parts[-1]))

    def dict_(self, parts: list[Any]) -> tree.DictExpr:
        return tree.DictExpr(_over(parts[0], parts[-1]), tuple(_list_among(parts)))

    def entry(self, parts: list[Any]) -> tuple[tree.Node, tree.Node]:
        return _bare(parts[0]), _bare(parts[2])

    def comprehension(self, parts: list[Any]) -> tree.Comprehension:
        begin, value, clauses, end = parts
        made = value if type(value) is tuple else (_bare(value),)
        return tree.Comprehension(_over(begin, end), made, tuple(clauses))

    def clause(self, parts: list[Any]) -> tree.Clause:
        return tree.Clause(_over(parts[0], parts[-1]), _bare(parts[1]), _bare(parts[3]))

    def condition(self, parts: list[Any]) -> list[tree.Clause]:
        clauses: list[tree.Clause] = parts[0]
        clauses.append(tree.Clause(_over(parts[1], parts[2]), None, _bare(parts[2])))
        return clauses

    def name(self, parts: list[Any]) -> tree.Node:
        leaf = parts[0]
        if leaf.text in _CONSTANTS:
            return tree.Literal(leaf.span, _CONSTANTS[leaf.text])
        return _name(leaf)

    def literal(self, parts: list[Any]) -> tree.Literal:
        return tree.Literal(parts[0].span, parts[0].value)

    def attribute(self, parts: list[Any]) -> tree.Attribute:
        return tree.Attribute(_over(parts[0], parts[2]), _bare(parts[0]), _name(parts[2]))

    def call(self, parts: list[Any]) -> tree.Call:
        return tree.Call(_over(parts[0], parts[-1]), _bare(parts[0]), tuple(_list_among(parts)))

    def argument(self, parts: list[Any]) -> tree.Argument:
        span = _over(parts[0], parts[-1])
        match parts:
            case [star, value]:
                return tree.Argument(span, _bare(value), None, star.text)
            case [name, _, value]:
                return tree.Argument(span, _bare(value), _name(name))
        return tree.Argument(span, _bare(parts[0]))

    def index_(self, parts: list[Any]) -> tree.Index:
        value, _, (within, is_slice), end = parts
        return tree.Index(_over(value, end), _bare(value), within, is_slice)

    def index(self, parts: list[Any]) -> tuple[tuple[tree.Node, ...], bool]:
        return tuple(_bare(part) for part in parts[::2]), False

    def slice(self, parts: list[Any]) -> tuple[tuple[tree.Node, ...], bool]:
        return tuple(_bare(part) for part in parts[::2] if part is not None), True

    def part(self, parts: list[Any]) -> Any:
        return parts[0]

    no_part = nothing

    def conditional(self, parts: list[Any]) -> tree.Conditional:
        then, _, test, _, otherwise = parts
        return tree.Conditional(_over(then, otherwise), _bare(test), _bare(then), _bare(otherwise))

    def lambda_(self, parts: list[Any]) -> tree.Lambda:
        return tree.Lambda(_over(parts[0], parts[-1]), tuple(_list_among(parts)), _bare(parts[-1]))

    def binary(self, parts: list[Any]) -> tree.Binary:
        left, op, right = parts
        return tree.Binary(_over(left, right), op.text, _bare(left), _bare(right))

    def not_in(self, parts: list[Any]) -> tree.Binary:
        left, right = parts[0], parts[3]
        return tree.Binary(_over(left, right), "not in", _bare(left), _bare(right))

    def unary(self, parts: list[Any]) -> tree.Unary:
        return tree.Unary(_over(*parts), parts[0].text, _bare(parts[1]))

    def three(self, parts: list[Any]) -> list[Any]:
        return parts

    def two_more(self, parts: list[Any]) -> list[Any]:
        parts[0].extend(parts[1:])
        return parts[0]  # type: ignore[no-any-return]

    def arithmetic(self, parts: list[Any]) -> Any:
        """Give a flat chain of operands and operators its precedence; all of it is left-associative."""
        operands: list[Any] = []
        waiting: list[Leaf] = []
        for place, part in enumerate(parts[0]):
            if place % 2 == 0:
                operands.append(part)
                continue
            while waiting and _LEVELS[waiting[-1].text] >= _LEVELS[part.text]:
                operands[-2:] = [self.binary([operands[-2], waiting.pop(), operands[-1]])]
            waiting.append(part)
        while waiting:
            operands[-2:] = [self.binary([operands[-2], waiting.pop(), operands[-1]])]
        return operands[0]


setattr(_Builder, "def", _Builder.def_)  # a rule of the grammar has that name

BUILDER: Final = _Builder()


def unfold(pairs: Any) -> tuple[tree.Node, ...]:
    """Return the statements of a block that was folded into pairs, in order."""
    found: list[tree.Node] = []
    while pairs:
        pairs, last = pairs
        found.extend(reversed(last) if type(last) is list else [last])
    return tuple(reversed(found))


def _conditional_blocks(arms: Any, otherwise: tuple[tree.Node, ...]) -> tree.If:
    while True:
        arms, (word, test, body) = arms
        arm = tree.If(_over(word, (otherwise or body)[-1]), _bare(test), body, otherwise)
        if not arms:
            return arm
        otherwise = (arm,)

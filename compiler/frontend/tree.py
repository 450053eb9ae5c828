"""The syntax tree of a source: plain frozen nodes, each with its exact span.

parse.py builds it, everything that reads places uses it; no third-party type is in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from crucible.schemas.span import Span


class _Absent:
    """The type of ABSENT."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Node:
    """Anything with a place; the span ends behind its last character."""

    span: Span


# Expressions


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A name that is read or bound (True, False and None are literals)."""

    id: str


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A string, number, True, False or None, with its value; a string's text is decoded."""

    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class ListExpr(Node):
    """A list or tuple display; ``is_tuple`` tells which."""

    elements: tuple[Node, ...]
    is_tuple: bool = False


@dataclass(frozen=True, slots=True)
class DictExpr(Node):
    """A dict display of key and value pairs."""

    entries: tuple[tuple[Node, Node], ...]


@dataclass(frozen=True, slots=True)
class Argument(Node):
    """One argument of a call: ``name`` is set for ``name = value``, ``star`` is "", "*" or "**"."""

    value: Node
    name: Name | None = None
    star: str = ""


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A call; the span runs from the function to the closing bracket."""

    function: Node
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """``value.name``."""

    value: Node
    name: Name


@dataclass(frozen=True, slots=True)
class Index(Node):
    """``value[index]`` or a slice; absent parts of a slice are left out of ``parts``."""

    value: Node
    parts: tuple[Node, ...]
    is_slice: bool = False


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """``-x``, ``+x``, ``~x`` or ``not x``."""

    op: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """Two operands and an operator, "not in" included."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Conditional(Node):
    """``then if test else otherwise``."""

    test: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """A parameter of a def or lambda; ``star`` is "", "*" or "**"."""

    name: Name
    default: Node | None = None
    star: str = ""


@dataclass(frozen=True, slots=True)
class Lambda(Node):
    """``lambda parameters: body``."""

    parameters: tuple[Parameter, ...]
    body: Node


@dataclass(frozen=True, slots=True)
class Clause(Node):
    """``for target in value`` of a comprehension, or ``if value`` when ``target`` is None."""

    target: Node | None
    value: Node


@dataclass(frozen=True, slots=True)
class Comprehension(Node):
    """A list (one part) or dict (key and value parts) comprehension with its clauses in order."""

    parts: tuple[Node, ...]
    clauses: tuple[Clause, ...]


# Statements


@dataclass(frozen=True, slots=True)
class ExprStatement(Node):
    """An expression that stands as a statement."""

    value: Node


@dataclass(frozen=True, slots=True)
class Assign(Node):
    """``target op value`` with op "=", "+=" and the like."""

    target: Node
    op: str
    value: Node


@dataclass(frozen=True, slots=True)
class Def(Node):
    """A function definition."""

    name: Name
    parameters: tuple[Parameter, ...]
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class If(Node):
    """One arm: an elif is an If alone in ``otherwise``."""

    test: Node
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class For(Node):
    """A loop."""

    target: Node
    value: Node
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Return(Node):
    """``return`` with or without a value."""

    value: Node | None


@dataclass(frozen=True, slots=True)
class Keyword(Node):
    """``pass``, ``break`` or ``continue``."""

    word: str


@dataclass(frozen=True, slots=True)
class LoadSymbol(Node):
    """One symbol of a load: ``symbol`` is the string in the module, ``local`` the name it gets.

    For ``load(path, "x")`` both spans are that of the string.
    """

    symbol: Literal
    local: Name


@dataclass(frozen=True, slots=True)
class Load(Node):
    """``load(path, symbols)``."""

    path: Literal
    symbols: tuple[LoadSymbol, ...]


@dataclass(frozen=True, slots=True)
class Comment(Node):
    """A comment, without its ``#``."""

    text: str


@dataclass(frozen=True, slots=True)
class SyntaxFault:
    """Where the text is not Starlark: the place, what is wrong, and another place that explains it."""

    span: Span
    message: str
    related: tuple[str, Span] | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A whole source as far as it could be read: statements, comments, and syntax faults."""

    statements: tuple[Node, ...]
    comments: tuple[Comment, ...]
    faults: tuple[SyntaxFault, ...]


def children(node: Node) -> list[Node]:
    """Return the nodes right under a node, in the order of their fields."""
    found: list[Node] = []
    if type(node) not in (Name, Literal):
        fields: tuple[str, ...] = node.__match_args__
        for field in fields[1:]:  # all but the span
            value = getattr(node, field)
            if isinstance(value, tuple):
                for element in value:
                    found.extend(element if isinstance(element, tuple) else (element,))
            elif isinstance(value, Node):
                found.append(value)
    return found


def walk(*nodes: Node) -> Iterator[Node]:
    """Iterate over some nodes and all that is under them, each before its children; it does not recurse."""
    waiting = list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(children(node)))

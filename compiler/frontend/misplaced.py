"""What the grammar lets pass and the language does not: targets, orders, and statements in the wrong place.

Statements in, faults out. The evaluator's parser refuses the same, but for a repeated named argument,
which is left to the binding of arguments.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from crucible.compiler.frontend import tree

NAMED_BEFORE: Final = "a positional argument behind a named one; put it first, or name it"

_OUTSIDE: Final = " outside a "


def may_be_of_body(fault: tree.SyntaxFault) -> bool:
    """Tell whether a statement is only in the wrong place because the block around it is not indented."""
    return _OUTSIDE in fault.message


def misplaced(statements: tuple[tree.Node, ...]) -> Iterator[tree.SyntaxFault]:
    """Find what the grammar lets pass and the language does not, anywhere under some statements."""
    waiting: list[tuple[tree.Node, _Around]] = [
        (statement, _Around(top=True, function=False, loop=False)) for statement in statements
    ]
    while waiting:
        node, around = waiting.pop()
        kind = type(node)
        if kind in _CHECKS:
            yield from _CHECKS[kind](node, around)
        if kind is tree.Def:
            around = _Around(top=False, function=True, loop=False)
        elif kind is tree.For:
            around = around._replace(top=False, loop=True)
        elif kind is tree.If:
            around = around._replace(top=False)
        waiting.extend((child, around) for child in tree.children(node))


class _Around(NamedTuple):
    """What stands around a statement."""

    top: bool
    function: bool
    loop: bool


def _bad_return(node: tree.Return, around: _Around) -> Iterator[tree.SyntaxFault]:
    if not around.function:
        yield tree.SyntaxFault(node.span, f'"return"{_OUTSIDE}def')


def _bad_keyword(node: tree.Keyword, around: _Around) -> Iterator[tree.SyntaxFault]:
    if node.word != "pass" and not around.loop:
        yield tree.SyntaxFault(node.span, f'"{node.word}"{_OUTSIDE}for loop')


def _bad_load(node: tree.Load, around: _Around) -> Iterator[tree.SyntaxFault]:
    if not around.top:
        yield tree.SyntaxFault(node.span, '"load" inside a block; it stands at the top level')
    if not node.symbols:
        yield tree.SyntaxFault(node.path.span, 'load() names no symbol; write load(path, "symbol")')


def _bad_assign(node: tree.Assign, _around: _Around) -> Iterator[tree.SyntaxFault]:
    if node.op != "=" and isinstance(node.target, tree.ListExpr):
        yield tree.SyntaxFault(node.target.span, f'"{node.op}" changes one variable, not a list of them')
    else:
        yield from _bad_targets(node.target)


def _bad_loop(node: tree.For | tree.Clause, _around: _Around) -> Iterator[tree.SyntaxFault]:
    if node.target is not None:
        yield from _bad_targets(node.target)


def _bad_targets(target: tree.Node) -> Iterator[tree.SyntaxFault]:
    waiting = [target]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tree.ListExpr):
            waiting.extend(node.elements)
        elif isinstance(node, tree.Index):
            if node.is_slice or len(node.parts) > 1:
                yield tree.SyntaxFault(
                    node.span, "cannot assign to a slice; assign to a name, an index or an attribute"
                )
        elif not isinstance(node, tree.Name | tree.Attribute) and not _is_constant(node):
            yield tree.SyntaxFault(node.span, "cannot assign to this; assign to a name, an index or an attribute")


def _is_constant(node: tree.Node) -> bool:
    """Tell whether a node is True, False or None: names as far as the grammar is concerned."""
    return isinstance(node, tree.Literal) and (node.value is None or isinstance(node.value, bool))


def _bad_parameters(node: tree.Def | tree.Lambda, _around: _Around) -> Iterator[tree.SyntaxFault]:
    known: set[str] = set()
    stars = ""
    defaults = False
    for parameter in node.parameters:
        name, star = parameter.name, parameter.star
        if name.id in known:
            yield tree.SyntaxFault(name.span, f'a second parameter named "{name.id}"; rename one of them')
        known.add(name.id)
        if stars == "**":
            yield tree.SyntaxFault(parameter.span, "a parameter behind **; that one is the last")
        elif star == "*" and stars:
            yield tree.SyntaxFault(parameter.span, "a second * parameter; there is at most one")
        elif not star and not stars and defaults and parameter.default is None:
            yield tree.SyntaxFault(
                parameter.span, "a parameter without a default behind one that has one; put it first"
            )
        stars = star or stars
        defaults = defaults or parameter.default is not None


def _bad_arguments(node: tree.Call, _around: _Around) -> Iterator[tree.SyntaxFault]:
    named = False
    stars = ""
    for argument in node.arguments:
        if argument.star:
            if stars in (argument.star, "**"):
                yield tree.SyntaxFault(argument.span, f"{argument.star} behind {stars}; each comes once, * before **")
            stars = argument.star
        elif argument.name is not None:
            named = True
            if stars:
                yield tree.SyntaxFault(argument.span, f"a named argument behind {stars}; put it before")
        elif named or stars:
            yield tree.SyntaxFault(argument.span, NAMED_BEFORE)


_CHECKS: dict[type, Any] = {
    tree.Return: _bad_return,
    tree.Keyword: _bad_keyword,
    tree.Load: _bad_load,
    tree.Assign: _bad_assign,
    tree.For: _bad_loop,
    tree.Clause: _bad_loop,
    tree.Def: _bad_parameters,
    tree.Lambda: _bad_parameters,
    tree.Call: _bad_arguments,
}

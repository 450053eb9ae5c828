"""Which uses of a name mean the same thing: the scopes of a tree, one entry for each place of a name.

In: the tree of one file. Out: its uses in the order of their places. Across files a load connects two
names; that is view.py's affair.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from crucible.compiler.frontend import tree
from crucible.compiler.frontend.names import bound_names, own_statements
from crucible.schemas.span import Position, Span

FILE: Final = 0
NOWHERE: Final = -1


class Use(NamedTuple):
    """A place of a name: ``scope`` is FILE, the number of an inner scope, or NOWHERE; ``binds`` tells a binding."""

    span: Span
    name: str
    scope: int
    binds: bool = False


class _Scope(NamedTuple):
    number: int
    names: frozenset[str]
    around: "_Scope | None"

    def of(self, name: str) -> int:
        """Return the number of the scope that binds a name."""
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.number
            scope = scope.around
        return NOWHERE


def resolve(source: tree.Source) -> list[Use]:
    """Return every use of a name in a tree, in order."""
    resolver = _Resolver()
    resolver.block(source.statements, resolver.scope(bound_names(source.statements), None))
    return sorted(resolver.uses)


def use_at(uses: Iterable[Use], at: Position) -> Use | None:
    """Return the use at a position, or right before it."""
    return next((use for use in uses if use.span.begin <= at <= use.span.end), None)


def same(uses: Iterable[Use], name: str, scope: int) -> list[Use]:
    """Return the uses of a name of a scope."""
    return [use for use in uses if use.name == name and use.scope == scope]


def visible(source: tree.Source, at: Position) -> dict[str, tree.Node]:
    """Return the names that a statement at a position can read, each with the node that binds it first."""
    found: dict[str, tree.Node] = {}
    body: Sequence[tree.Node] = source.statements
    while True:
        bound: dict[str, tree.Node] = {}
        around: tree.Def | None = None
        for statement in own_statements(body):
            for name in _bound_by(statement):
                bound.setdefault(name, statement)
            if isinstance(statement, tree.Def) and statement.span.begin <= at <= statement.span.end:
                around = statement
        found |= bound
        if around is None:
            return found
        found |= {parameter.name.id: parameter for parameter in around.parameters}
        body = around.body


def _bound_by(statement: tree.Node) -> Iterable[str]:
    """Return the names that a statement binds, those of the statements inside it apart."""
    match statement:
        case tree.If():
            return ()
        case tree.For(span=span, target=target):
            return bound_names([tree.Assign(span, target, "=", target)])
        case _:
            return bound_names([statement])


class _Resolver:
    """Walks statements and expressions with their scopes; expressions and arms without recursion."""

    def __init__(self) -> None:
        self.uses: list[Use] = []
        self._scopes = 0

    def scope(self, names: Iterable[str], around: _Scope | None) -> _Scope:
        """Open a scope."""
        self._scopes += 1
        return _Scope(self._scopes - 1, frozenset(names), around)

    def block(self, statements: Iterable[tree.Node], scope: _Scope) -> None:
        """Read statements; the scan bounds how deep defs nest."""
        for statement in own_statements(statements):
            match statement:
                case tree.ExprStatement(value=value):
                    self._read(value, scope)
                case tree.Assign(target=target, op=op, value=value):
                    if op == "=":
                        self._target(target, scope)
                    else:
                        self._read(target, scope)
                    self._read(value, scope)
                case tree.For(target=target, value=value):
                    self._target(target, scope)
                    self._read(value, scope)
                case tree.If(test=test):
                    self._read(test, scope)
                case tree.Return(value=value) if value is not None:
                    self._read(value, scope)
                case tree.Load(symbols=symbols):
                    for symbol in symbols:
                        self._bind(symbol.local, scope)
                case tree.Def(name=name, parameters=parameters, body=body):
                    self._bind(name, scope)
                    inner = self._function(parameters, bound_names(body), scope)
                    self.block(body, inner)
                case _:
                    pass

    def _bind(self, name: tree.Name, scope: _Scope) -> None:
        self.uses.append(Use(name.span, name.id, scope.of(name.id), binds=True))

    def _target(self, target: tree.Node, scope: _Scope) -> None:
        """Read an assignment target: names are bound, anything else is an expression."""
        pending = [target]
        while pending:
            node = pending.pop()
            if isinstance(node, tree.Name):
                self._bind(node, scope)
            elif isinstance(node, tree.ListExpr):
                pending.extend(node.elements)
            else:
                self._read(node, scope)

    def _function(self, parameters: Sequence[tree.Parameter], names: Iterable[str], scope: _Scope) -> _Scope:
        """Read the parameters of a function; return its scope."""
        inner = self.scope({*names, *(parameter.name.id for parameter in parameters)}, scope)
        for parameter in parameters:
            self._bind(parameter.name, inner)
            if parameter.default is not None:
                self._read(parameter.default, scope)
        return inner

    def _read(self, root: tree.Node, scope: _Scope) -> None:
        pending = [(root, scope)]
        while pending:
            node, here = pending.pop()
            match node:
                case tree.Name(id=name):
                    self.uses.append(Use(node.span, name, here.of(name)))
                case tree.Call(function=function, arguments=arguments):
                    pending += [(function, here), *((argument.value, here) for argument in arguments)]
                case tree.Attribute(value=value):
                    pending.append((value, here))
                case tree.Lambda(parameters=parameters, body=body):
                    pending.append((body, self._function(parameters, (), here)))
                case tree.Comprehension(parts=parts, clauses=clauses):
                    bound = [clause.target for clause in clauses if clause.target is not None]
                    names = bound_names([tree.Assign(target.span, target, "=", target) for target in bound])
                    inner = self.scope(names, here)
                    for target in bound:
                        self._target(target, inner)
                    pending.append((clauses[0].value, here))
                    pending += [(each, inner) for each in (*(clause.value for clause in clauses[1:]), *parts)]
                case _:
                    pending += [(child, here) for child in tree.children(node)]

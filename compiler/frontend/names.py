"""Reads the tree for mistakes that need no evaluation: names, loads, arguments and literal values.

In: the tree of one file, the lane, and what the modules export. Out: problems with their places in
that file. Only used when something is wrong, and by lint and the editor.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from crucible.compiler.frontend import tree
from crucible.compiler.frontend.binding import NOT_FINITE, UNKNOWN, Given, Handle, Odd, Problem, bind
from crucible.compiler.frontend.vocabulary import BUILTINS, CONSTRUCTORS, Constructor, constructors_of
from crucible.schemas.ir import is_finite
from crucible.schemas.span import Span
from crucible.schemas.spelling import MOST_SEARCHED, distance, hint, nearest

_FAR: Final = 99
_MOST_STEPS: Final = 2  # that a suggestion may be away
_CONSTANTS: Final = frozenset({"False", "None", "True"})
_FUNCTIONS: Final = BUILTINS - _CONSTANTS


class NameProblem(NamedTuple):
    """A mistake at a place of the file; ``suggestion`` replaces the text of ``span``, quotes aside."""

    code: str
    message: str
    span: Span
    suggestion: str | None = None


class CallProblem(NamedTuple):
    """A mistake in the arguments of a call of the file."""

    call: tree.Call
    problem: Problem


class Block(NamedTuple):
    """The statements of a file or a function, and those of the names bound there that something reads."""

    statements: tuple[tree.Node, ...]
    read: set[str]


class Reading(NamedTuple):
    """What reading one tree found; the first of ``blocks`` is the file itself."""

    names: list[NameProblem]
    arguments: list[CallProblem]
    blocks: list[Block]


class _Scope:
    """The names of one function, comprehension or file, within the scope around it.

    ``functions`` are those of the names that can only be a ``def``, ``read`` those that something reads.
    """

    def __init__(self, names: set[str], around: "_Scope | None", functions: Collection[str] = ()) -> None:
        self.names = names
        self.around = around
        self.functions = functions
        self.read: set[str] = set()

    def binds(self, name: str) -> bool:
        """Tell whether the name is bound here or around."""
        scope: _Scope | None = self
        while scope:
            if name in scope.names:
                return True
            scope = scope.around
        return False

    def reads(self, name: str) -> bool:
        """Note that the name is read; tell whether it is bound here or around."""
        scope: _Scope | None = self
        while scope and name not in scope.names:
            scope = scope.around
        if scope is not None:
            scope.read.add(name)
        return scope is not None

    def is_function(self, name: str) -> bool:
        """Tell whether the name surely means a function that the file defines."""
        scope: _Scope | None = self
        while scope and name not in scope.names:
            scope = scope.around
        return scope is not None and name in scope.functions

    def all_names(self) -> set[str]:
        """Return every name that is visible here."""
        found: set[str] = set()
        scope: _Scope | None = self
        while scope:
            found |= scope.names
            scope = scope.around
        return found


def bound_names(statements: Iterable[tree.Node]) -> dict[str, Span]:
    """Return the names that statements bind in their own scope, with the place of the first binding.

    Arms and loops count, the insides of functions and comprehensions don't.
    """
    found: dict[str, Span] = {}
    for statement in own_statements(statements):
        names: list[tree.Name] = []
        if isinstance(statement, tree.For) or (isinstance(statement, tree.Assign) and statement.op == "="):
            names = list(_targets(statement.target))
        elif isinstance(statement, tree.Def):
            names = [statement.name]
        elif isinstance(statement, tree.Load):
            names = [symbol.local for symbol in statement.symbols]
        for name in names:
            found.setdefault(name.id, name.span)
    return found


def own_statements(statements: Iterable[tree.Node]) -> Iterator[tree.Node]:
    """Yield statements and those inside of their arms and loops, which bind names in the same scope."""
    pending = list(statements)
    pending.reverse()
    while pending:
        statement = pending.pop()
        yield statement
        if isinstance(statement, tree.For):
            pending.extend(reversed(statement.body))
        elif isinstance(statement, tree.If):
            pending.extend(reversed((*statement.body, *statement.otherwise)))


def _functions(statements: Iterable[tree.Node]) -> set[str]:
    """Return the names that statements bind by ``def`` alone."""
    statements = list(statements)
    others = bound_names(s for s in statements if not isinstance(s, tree.Def))
    return {s.name.id for s in statements if isinstance(s, tree.Def)} - others.keys()


def loaded_names(source: tree.Source) -> set[str]:
    """Return the local names that a file's loads bind."""
    return {
        symbol.local.id
        for statement in source.statements
        if isinstance(statement, tree.Load)
        for symbol in statement.symbols
    }


def exports(source: tree.Source) -> set[str]:
    """Return the names that other files may load from a file: those that it binds itself."""
    loaded = loaded_names(source)
    own = bound_names(s for s in source.statements if not isinstance(s, tree.Load))
    return {name for name in own if not name.startswith("_") and name not in loaded}


def _targets(target: tree.Node) -> Iterator[tree.Name]:
    """Yield the names that an assignment target binds."""
    pending = [target]
    while pending:
        node = pending.pop()
        if isinstance(node, tree.Name):
            yield node
        elif isinstance(node, tree.ListExpr):
            pending.extend(reversed(node.elements))


def read(source: tree.Source, lane: str | None, modules: Mapping[str, tree.Source | None]) -> Reading:
    """Find the mistakes of one file that its text alone shows.

    ``lane`` is None when the lane itself is unknown: then the names of all lanes are in scope.
    ``modules`` has the tree of each path that the file loads, None for one that could not be read.
    """
    reader = _Reader(lane)
    top = _Scope(set(bound_names(source.statements)), None, _functions(source.statements))
    for statement in source.statements:
        if isinstance(statement, tree.Load):
            top.names |= reader.load(statement, modules)
    reader.blocks.append(Block(source.statements, top.read))
    reader.block(source.statements, top)
    return Reading(reader.names, reader.arguments, reader.blocks)


class _Reader:
    """Walks statements and expressions with their scopes; expressions on an explicit stack."""

    def __init__(self, lane: str | None) -> None:
        self._lane = lane
        self._constructors = constructors_of(lane)
        self._meant: dict[tuple[str, _Scope, Collection[str]], str | None] = {}
        self._exports: dict[object, tuple[set[str], set[str]]] = {}  # of a path: what a load may name, what it loads
        self.names: list[NameProblem] = []
        self.arguments: list[CallProblem] = []
        self.blocks: list[Block] = []

    def block(self, statements: Iterable[tree.Node], scope: _Scope) -> None:
        """Read statements in order; nesting of blocks is bounded by the scan."""
        for statement in statements:
            match statement:
                case tree.ExprStatement(value=value):
                    self.expression(value, scope)
                case tree.Assign(target=target, op=op, value=value):
                    self.expression(value, scope)
                    if not isinstance(target, tree.Name) or op != "=":
                        self._target(target, scope, reads=op != "=")
                case tree.Def(parameters=parameters, body=body):
                    self._function(parameters, scope)
                    given = {p.name.id for p in parameters}
                    functions = _functions(body) - given
                    within = _Scope(given | set(bound_names(body)), scope, functions)
                    self.blocks.append(Block(body, within.read))
                    self.block(body, within)
                case tree.If():
                    self._arms(statement, scope)
                case tree.For(target=target, value=value, body=body):
                    self.expression(value, scope)
                    self._target(target, scope, reads=False)
                    self.block(body, scope)
                case tree.Return(value=value) if value is not None:
                    self.expression(value, scope)
                case _:
                    pass

    def _arms(self, arm: tree.If, scope: _Scope) -> None:
        """Read the arms of an if; there may be more than Python has frames."""
        while True:
            self.expression(arm.test, scope)
            self.block(arm.body, scope)
            match arm.otherwise:
                case (tree.If() as arm,):
                    continue
                case otherwise:
                    self.block(otherwise, scope)
                    return

    def _function(self, parameters: tuple[tree.Parameter, ...], scope: _Scope) -> None:
        for parameter in parameters:
            if parameter.default is not None:
                self.expression(parameter.default, scope)

    def _target(self, target: tree.Node, scope: _Scope, *, reads: bool) -> None:
        """Read what an assignment target reads: the parts of x[i] and x.y, and x of x += 1."""
        for node in [target] if not isinstance(target, tree.ListExpr) else list(target.elements):
            if isinstance(node, tree.ListExpr):
                self._target(node, scope, reads=reads)
            elif not isinstance(node, tree.Name) or reads:
                self.expression(node, scope)

    def expression(self, root: tree.Node, scope: _Scope) -> None:
        """Read an expression, however deep its chains."""
        pending: list[tuple[tree.Node, _Scope, Collection[str]]] = [(root, scope, _CONSTANTS)]
        while pending:
            node, here, builtins = pending.pop()
            inner: list[tuple[tree.Node, _Scope, Collection[str]]] = []
            match node:
                case tree.Name():
                    self._name(node, here, builtins)
                case tree.Call(function=function, arguments=arguments):
                    by_name = any(argument.name is not None or argument.star == "**" for argument in arguments)
                    inner.append((function, here, () if by_name else _FUNCTIONS))
                    inner.extend((argument.value, here, _CONSTANTS) for argument in arguments)
                    self._call(node, here)
                case tree.Lambda(parameters=parameters, body=body):
                    self._function(parameters, here)
                    inner.append((body, _Scope({p.name.id for p in parameters}, here), _CONSTANTS))
                case tree.Comprehension(parts=parts, clauses=clauses):
                    names = {n.id for c in clauses if c.target is not None for n in _targets(c.target)}
                    within = _Scope(names, here)
                    inner.append((clauses[0].value, here, _CONSTANTS))
                    inner.extend((clause.value, within, _CONSTANTS) for clause in clauses[1:])
                    inner.extend((part, within, _CONSTANTS) for part in parts)
                case tree.Attribute(value=value):
                    inner.append((value, here, _CONSTANTS))
                case _:
                    inner.extend((child, here, _CONSTANTS) for child in tree.children(node))
            pending.extend(reversed(inner))

    def _name(self, name: tree.Name, scope: _Scope, builtins: Collection[str]) -> None:
        """Report a name that nothing binds; ``builtins`` are those that it may have meant."""
        word = name.id
        if scope.reads(word) or word in self._constructors or word in BUILTINS:
            return
        key = (word, scope, builtins)
        if key not in self._meant and len(self._meant) < MOST_SEARCHED:
            self._meant[key] = self._nearest(word, scope, builtins)
        guess = self._meant.get(key)
        tail = f'; did you mean "{guess}"?' if guess else ""
        where = f" in the lane {self._lane}" if word in CONSTRUCTORS and not guess else ""
        self.names.append(NameProblem("unknown-name", f'"{word}" is not defined{where}{tail}', name.span, guess))

    def _nearest(self, word: str, scope: _Scope, builtins: Collection[str]) -> str | None:
        """Return what an unknown name most likely means: something visible, or a builtin that is nearer."""
        visible = scope.all_names() | set(self._constructors)
        guess = nearest(word, [name for name in visible if _may_be_near(word, name)])
        builtin = nearest(word, builtins)
        if builtin in _CONSTANTS and _steps(word, builtin):  # a value is only meant where nothing but the case differs
            builtin = None
        if builtin is not None and _steps(word, builtin) < (_steps(word, guess) if guess else _FAR):
            return builtin
        return guess

    def _call(self, call: tree.Call, scope: _Scope) -> None:
        """Check the arguments of a direct call of a constructor."""
        if not isinstance(call.function, tree.Name) or scope.binds(call.function.id):
            return
        constructor = self._constructors.get(call.function.id)
        if constructor is None:
            return
        for problem in check(call, constructor, self._lane, self._constructors, scope):
            self.arguments.append(CallProblem(call, problem))

    def load(self, load: tree.Load, modules: Mapping[str, tree.Source | None]) -> set[str]:
        """Check the symbols of one load; return the names that misspelt ones would have brought."""
        meant: set[str] = set()
        path = load.path.value
        module = modules.get(path) if isinstance(path, str) else None
        if path not in self._exports:
            self._exports[path] = (exports(module), loaded_names(module)) if module else (set(), set())
        known, brought = self._exports[path]
        for symbol in load.symbols:
            word = str(symbol.symbol.value)
            span = symbol.symbol.span
            if word.startswith("_"):
                self.names.append(
                    NameProblem("private-symbol", f'"{word}" begins with _ and belongs to "{path}" alone', span)
                )
            elif module is None or (module.faults and word not in brought):
                continue
            elif word in brought and word not in known:
                message = f'"{word}" is loaded by "{path}", not defined there; load it from the file that defines it'
                self.names.append(NameProblem("unknown-symbol", message, span))
            elif word not in known:
                if word in self._constructors or word in BUILTINS:
                    tail, guess = "; it is part of the language and needs no load", None
                else:
                    tail, guess = hint(word, known if len(self.names) < MOST_SEARCHED else (), "symbols")
                self.names.append(
                    NameProblem("unknown-symbol", f'"{path}" does not define "{word}"{tail}', span, guess)
                )
                if guess is not None and symbol.local.span == span:
                    meant.add(guess)
        return meant


def _may_be_near(word: str, name: str) -> bool:
    """Tell quickly whether a name is worth comparing: thousands may be visible, and few look alike."""
    return abs(len(word) - len(name)) <= _MOST_STEPS and (
        len(set(word) ^ set(name)) <= 2 * _MOST_STEPS or word.casefold() == name.casefold()
    )


def _steps(word: str, other: str) -> int:
    return 0 if word.casefold() == other.casefold() else distance(word, other, 2)


def check(
    call: tree.Call, constructor: Constructor, lane: str | None, constructors: Mapping[str, Constructor], scope: _Scope
) -> list[Problem]:
    """Bind what the tree tells of a call: literals by their value, functions as such, all else as UNKNOWN.

    A function or a range cannot even be handed over, so that the evaluation ends at the first of them.
    """
    kinds: list[str] = []

    def value_of(node: tree.Node) -> Any:
        match node:
            case tree.Literal(value=value):
                return NOT_FINITE if isinstance(value, float) and not is_finite(value) else value
            case tree.Unary(op="-", operand=tree.Literal(value=int() | float() as value)) if not isinstance(
                value, bool
            ):
                return -value if is_finite(value) else NOT_FINITE
            case tree.ListExpr(elements=elements):
                return [value_of(element) for element in elements]
            case tree.DictExpr():
                return Odd("a dict")
            case tree.Lambda():
                return Odd("a function")
            case tree.Call(function=tree.Name(id="range")) if not scope.binds("range"):
                return Odd("a range")
            case tree.Name(id=name) if scope.is_function(name) or (
                (name in constructors or name in BUILTINS) and not scope.binds(name)
            ):
                return Odd("a function")
            case tree.Call(function=tree.Name(id=name)) if name in constructors and not scope.binds(name):
                if constructors[name].makes == "text":
                    return UNKNOWN
                kinds.append(constructors[name].makes)
                return Handle(len(kinds) - 1)
            case _:
                return UNKNOWN

    given = []
    complete = True
    for argument in call.arguments:
        if argument.star:
            complete = False
        else:
            given.append(Given(argument.name.id if argument.name else None, value_of(argument.value)))
    return bind(constructor, given, lane, lambda handle: kinds[handle.call], complete=complete).problems

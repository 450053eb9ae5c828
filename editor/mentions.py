"""The calls of constructors in one file: what tasks and sessions they make, and which their strings name."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from crucible.compiler.frontend import tree
from crucible.compiler.frontend.vocabulary import CONSTRUCTORS, Constructor, Type
from crucible.editor.scopes import NOWHERE, Use

_NAMED: Final = {Type.TASKS: "task", Type.TASK: "task", Type.SESSION: "session"}


class Declared(NamedTuple):
    """A call that makes a task or a session under a name that is written there."""

    kind: str
    name: str
    literal: tree.Literal
    call: tree.Call
    constructor: Constructor


class Reference(NamedTuple):
    """A string that names a task or a session."""

    kind: str
    name: str
    literal: tree.Literal


class Called(NamedTuple):
    """A call of a constructor."""

    call: tree.Call
    constructor: Constructor


def calls(source: tree.Source, uses: Iterable[Use]) -> list[Called]:
    """Return the calls of constructors, those of names that the file binds itself apart."""
    free = {use.span for use in uses if use.scope == NOWHERE and use.name in CONSTRUCTORS}
    return [
        Called(node, CONSTRUCTORS[node.function.id])
        for node in tree.walk(*source.statements)
        if isinstance(node, tree.Call) and isinstance(node.function, tree.Name) and node.function.span in free
    ]


def declarations(called: Iterable[Called]) -> list[Declared]:
    """Return the tasks and sessions that are made under names that are literals."""
    found = []
    for call, constructor in called:
        for argument in call.arguments if constructor.makes in ("task", "session") else ():
            value = argument.value
            is_name = argument.name is not None and argument.name.id == "name"
            if is_name and isinstance(value, tree.Literal) and isinstance(value.value, str):
                found.append(Declared(constructor.makes, value.value, value, call, constructor))
    return found


def references(called: Iterable[Called]) -> list[Reference]:
    """Return the strings that name a task or a session in an argument that takes one."""
    found = []
    for call, constructor in called:
        for place, argument in enumerate(call.arguments):
            given = argument.name.id if argument.name else constructor.positional if place == 0 else ""
            row = None if argument.star else constructor.argument(given)
            kind = _NAMED.get(row.type) if row else None
            if kind is not None:
                found += [Reference(kind, str(literal.value), literal) for literal in _strings(argument.value)]
    return found


def _strings(root: tree.Node) -> Iterator[tree.Literal]:
    """Yield the strings of an expression that are no arguments of a call in it."""
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, tree.Literal) and isinstance(node.value, str):
            yield node
        elif not isinstance(node, tree.Call):
            pending.extend(tree.children(node))

"""unused-binding: a name that a file or a function binds and never reads.

What ``for`` and unpacking bind, parameters, names that begin with ``_``, and what other files may load
of a module are bound for other reasons than to be read there.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from crucible.compiler.analysis.lint.case import Edit, TreeCase, Warned
from crucible.compiler.analysis.lint.edits import without_statement
from crucible.compiler.frontend import tree
from crucible.compiler.frontend.names import Block, own_statements
from crucible.compiler.frontend.vocabulary import BUILTINS, CONSTRUCTORS
from crucible.schemas.span import Span

_EQUALS: Final = re.compile(r"\s*=[ \t]*")
_PARAMS: Final = "params"
_INERT: Final = (BUILTINS - {"fail", "print"}) | {n for n, row in CONSTRUCTORS.items() if row.makes == "text"}


def unused_binding(case: TreeCase) -> Iterator[Warned]:
    """Find bindings without a use; one that is all that is left of a dropped task or session is told with that."""
    for number, block in enumerate(case.reading.blocks):
        if number == 0 and not case.is_root:
            continue
        for statements in _blocks(block):
            for statement in statements:
                name = _bound(statement)
                if (
                    name is None
                    or name.id.startswith("_")
                    or name.id in block.read
                    or case.is_in_doubt(name.id, is_of_the_file=number == 0)
                ):
                    continue
                if (number == 0 and _is_params(case, statement)) or _is_told(case, statement):
                    continue
                message = f'"{name.id}" is bound and never used; remove it'
                yield Warned("unused-binding", message, name.span, _edit(case, statement, statements))


def _blocks(block: Block) -> Iterator[Sequence[tree.Node]]:
    """Yield the statements of a block, and those of its arms and loops, list by list."""
    yield block.statements
    for statement in own_statements(block.statements):
        if isinstance(statement, tree.If):
            yield from (statement.body, statement.otherwise)
        elif isinstance(statement, tree.For):
            yield statement.body


def _bound(statement: tree.Node) -> tree.Name | None:
    """Return the one name that a statement binds."""
    if isinstance(statement, tree.Assign) and statement.op == "=" and isinstance(statement.target, tree.Name):
        return statement.target
    return statement.name if isinstance(statement, tree.Def) else None


def _is_params(case: TreeCase, statement: tree.Node) -> bool:
    """Tell whether a statement declares the parameters of a playbook, or may: a mistake can hide the lane."""
    name = _bound(statement)
    is_first = any(each is statement for each in case.file.source.statements[:2])  # or second, behind a docstring
    return (case.lane == "playbook" or bool(case.errors)) and is_first and name is not None and name.id == _PARAMS


def _is_told(case: TreeCase, statement: tree.Node) -> bool:
    """Tell whether an error says already that what a statement binds is in no workflow."""
    begin, end = statement.span
    return any(
        each.code in ("dropped-task", "unbound-session", "no-workflow")
        and each.span is not None
        and begin <= each.span.begin < end
        for each in case.errors
    )


def _edit(case: TreeCase, statement: tree.Node, block: Sequence[tree.Node]) -> Edit | None:
    """Take out what does nothing; of what may do something only the name goes."""
    if isinstance(statement, tree.Def):
        return without_statement(case.file, statement, block)
    if not isinstance(statement, tree.Assign):
        return None
    calls = [node.function for node in tree.walk(statement.value) if isinstance(node, tree.Call)]
    if all(isinstance(function, tree.Name) and function.id in _INERT for function in calls):
        return without_statement(case.file, statement, block)
    between = Span(statement.target.span.end, statement.value.span.begin)
    if not _EQUALS.fullmatch(case.file.cut(between)):
        return None
    return Edit("", Span(statement.target.span.begin, statement.value.span.begin))

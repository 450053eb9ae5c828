"""The outline of a file: what it makes by constructors, and what it has helpers and comprehensions make.

The names of tasks that are computed are those of the last compiled workflow; which call made which is told by
reading how the names are put together.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from crucible.compiler.frontend import tree
from crucible.compiler.frontend.vocabulary import CONSTRUCTORS
from crucible.editor.script import Script
from crucible.editor.view import View, loaded_as
from crucible.schemas.span import Span

_DEEPEST: Final = 4  # helpers that call helpers
_MOST_CALLS: Final = 10_000
_MOST_GAPS: Final = 3
_HOLES: Final = re.compile(r"%[a-z]|\{\w*\}")

# A name in parts: a text, one of several texts, or None for what reading cannot tell.
_Part = str | tuple[str, ...] | None
_Parts = tuple[_Part, ...]
_UNKNOWN: Final[_Parts] = (None,)


class Symbol(NamedTuple):
    """An entry of an outline: "task", "session", "constant", "function" or "workflow", its place and its name's."""

    kind: str
    name: str
    detail: str
    span: Span
    name_span: Span


def outline(view: View) -> list[Symbol]:
    """Return tasks, sessions, constants, functions and the workflow of a file, in order."""
    script = view.script
    found = [
        Symbol(each.kind, each.name, each.constructor.name, each.call.span, each.literal.span)
        for each in script.declared
    ]
    for node in tree.walk(*script.tree.statements):
        if isinstance(node, tree.Def):
            parameters = ", ".join(parameter.star + parameter.name.id for parameter in node.parameters)
            found.append(Symbol("function", node.name.id, f"({parameters})", node.span, node.name.span))
        elif isinstance(node, tree.Call) and isinstance(node.function, tree.Name):
            name = node.function.id
            if name in CONSTRUCTORS and CONSTRUCTORS[name].makes == "workflow" and script.constructor_of(node):
                found.append(Symbol("workflow", name, script.lane or "", node.span, node.function.span))
    for statement in script.tree.statements:
        match statement:
            case tree.Assign(target=tree.Name(id=name, span=span), op="=", value=value) if _is_constant(script, value):
                found.append(Symbol("constant", name, "", statement.span, span))
    found += _Computed(view).symbols()
    return sorted(found, key=lambda symbol: symbol.span)


def _is_constant(script: Script, value: tree.Node) -> bool:
    """Tell whether an expression calls nothing, but for what gives a text."""
    for node in tree.walk(value):
        if isinstance(node, tree.Call):
            constructor = script.constructor_of(node)
            if constructor is None or constructor.makes != "text":
                return False
    return not isinstance(value, tree.Lambda)


class _Known(NamedTuple):
    """What the names of a file mean: functions, constants, and the values that loops go through."""

    functions: dict[str, tree.Def]
    constants: dict[str, tree.Node]
    loops: dict[str, tree.Node]


class _Computed:
    """Finds the calls of one file that made the tasks whose names are nowhere written at a constructor."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._known: dict[str, _Known] = {}
        self._calls = 0

    def symbols(self) -> Iterator[Symbol]:
        """Yield an entry for each task that a call of this file made."""
        workflow = self._view.workflow
        written = {each.name for _, each in self._view.declared if each.kind == "task"}
        left = dict.fromkeys(task.name for task in workflow.task if task.name not in written) if workflow else {}
        if not left:
            return
        script = self._view.script
        vague = []
        for call in _outside_of_functions(script.tree):
            if script.made_by(call) is not None:
                continue
            for parts in self._made(script, call, {}, 0):
                if None in parts or any(isinstance(part, tuple) for part in parts):
                    vague.append((call, parts))
                elif (name := "".join(str(part) for part in parts)) in left:
                    del left[name]
                    yield _symbol(call, name)
        for call, parts in sorted(vague, key=lambda each: each[1].count(None)):
            pattern = _pattern(parts)
            for name in [name for name in left if pattern and pattern.fullmatch(name)]:
                del left[name]
                yield _symbol(call, name)

    def _made(self, script: Script, call: tree.Call, given: Mapping[str, _Parts], depth: int) -> Iterator[_Parts]:
        """Yield the names of the tasks that a call makes, in parts."""
        self._calls += 1
        if depth > _DEEPEST or self._calls > _MOST_CALLS:
            return
        constructor = script.constructor_of(call)
        if constructor is not None:
            for argument in call.arguments if constructor.makes == "task" else ():
                if argument.name is not None and argument.name.id == "name":
                    yield self._parts(script, argument.value, given)
            return
        found = self._function(script, call.function)
        if found is None:
            return
        file, function = found
        inner = self._bind(script, call, function, given)
        for node in tree.walk(*function.body):
            if isinstance(node, tree.Call):
                yield from self._made(file, node, inner, depth + 1)

    def _bind(
        self, script: Script, call: tree.Call, function: tree.Def, given: Mapping[str, _Parts]
    ) -> dict[str, _Parts]:
        """Return what a function gets for its parameters."""
        bound = {parameter.name.id: _UNKNOWN for parameter in function.parameters}
        named = [parameter.name.id for parameter in function.parameters if not parameter.star]
        for place, argument in enumerate(call.arguments):
            if argument.star:
                break
            name = argument.name.id if argument.name else named[place] if place < len(named) else ""
            if name in bound:
                bound[name] = self._parts(script, argument.value, given)
        return bound

    def _parts(self, script: Script, node: tree.Node, given: Mapping[str, _Parts]) -> _Parts:
        """Return an expression of text in parts."""
        match node:
            case tree.Literal(value=str(text)):
                return (text,)
            case tree.Binary(op="+", left=left, right=right):
                return (*self._parts(script, left, given), *self._parts(script, right, given))
            case tree.Binary(op="%", left=tree.Literal(value=str(text)), right=right):
                values = right.elements if isinstance(right, tree.ListExpr) and right.is_tuple else (right,)
                return self._filled(script, text, values, given)
            case tree.Call(function=tree.Attribute(value=tree.Literal(value=str(text)), name=tree.Name(id="format"))):
                return self._filled(script, text, tuple(each.value for each in node.arguments), given)
            case tree.Call(function=tree.Name(id="str"), arguments=(argument,)):
                return self._parts(script, argument.value, given)
            case tree.Name(id=name) if name in given:
                return given[name]
            case tree.Name(id=name):
                known = self._of(script)
                if name in known.loops:
                    return (_texts(known.loops[name], known.constants),)
                constant = known.constants.get(name)
                return (str(constant.value),) if isinstance(constant, tree.Literal) else _UNKNOWN
            case _:
                return _UNKNOWN

    def _filled(self, script: Script, text: str, values: tuple[tree.Node, ...], given: Mapping[str, _Parts]) -> _Parts:
        """Return a text whose holes are filled: with as many values, or with what reading cannot tell."""
        first, *pieces = _HOLES.split(text)
        are_known = len(values) == len(pieces)
        parts: list[_Part] = [first]
        for place, piece in enumerate(pieces):
            parts += [*(self._parts(script, values[place], given) if are_known else _UNKNOWN), piece]
        return tuple(parts)

    def _function(self, script: Script, node: tree.Node) -> tuple[Script, tree.Def] | None:
        """Return the function that a name of a file means, and the file that has it."""
        if not isinstance(node, tree.Name):
            return None
        name = node.id
        function = self._of(script).functions.get(name)
        if function is not None:
            return script, function
        loaded = loaded_as(script.tree, name)
        module = self._view.module(loaded[0]) if loaded else None
        if module is None or loaded is None:
            return None
        function = self._of(module).functions.get(str(loaded[1].symbol.value))
        return (module, function) if function is not None else None

    def _of(self, script: Script) -> _Known:
        """Read the names of a file once."""
        known = self._known.get(script.path)
        if known is None:
            known = self._known[script.path] = _Known({}, {}, {})
            for statement in script.tree.statements:
                match statement:
                    case tree.Assign(target=tree.Name(id=name), op="=", value=value):
                        known.constants[name] = value
            for node in tree.walk(*script.tree.statements):
                match node:
                    case tree.Def():
                        known.functions.setdefault(node.name.id, node)
                    case tree.For(target=tree.Name(id=name), value=value):
                        known.loops[name] = value
                    case tree.Comprehension(clauses=clauses):
                        for clause in clauses:
                            if isinstance(clause.target, tree.Name):
                                known.loops[clause.target.id] = clause.value
        return known


def _texts(values: tree.Node, constants: Mapping[str, tree.Node]) -> _Part:
    """Return the texts of a list, None when some of it is no text that is written there."""
    if isinstance(values, tree.Name):
        values = constants.get(values.id, values)
    elements = values.elements if isinstance(values, tree.ListExpr) else ()
    texts = tuple(each.value for each in elements if isinstance(each, tree.Literal) and isinstance(each.value, str))
    return texts if texts and len(texts) == len(elements) else None


def _pattern(parts: _Parts) -> re.Pattern[str] | None:
    """Return what matches a name in parts, None for one of which too little is known."""
    if parts.count(None) > _MOST_GAPS or not any(parts):
        return None
    return re.compile(
        "".join(
            ".+"
            if part is None
            else re.escape(part)
            if isinstance(part, str)
            else f"(?:{'|'.join(re.escape(each) for each in part)})"
            for part in parts
        )
    )


def _outside_of_functions(source: tree.Source) -> Iterator[tree.Call]:
    """Yield the calls of a file that no function makes."""
    pending: list[tree.Node] = list(reversed(source.statements))
    while pending:
        node = pending.pop()
        if isinstance(node, tree.Call):
            yield node
        if not isinstance(node, (tree.Def, tree.Lambda)):
            pending.extend(reversed(tree.children(node)))


def _symbol(call: tree.Call, name: str) -> Symbol:
    """Return the entry of a task that a call made; the name is selected where it stands in the call."""
    literals = (
        argument.value.span
        for argument in call.arguments
        if isinstance(argument.value, tree.Literal) and argument.value.value == name
    )
    detail = call.function.id if isinstance(call.function, tree.Name) else ""
    return Symbol("task", name, detail, call.span, next(literals, call.function.span))

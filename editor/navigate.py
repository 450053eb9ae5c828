"""Where tasks, sessions and symbols are made and used, across loads."""

import os
from typing import NamedTuple

from crucible.compiler.frontend import tree
from crucible.editor.scopes import FILE, NOWHERE, Use, same, use_at
from crucible.editor.script import Script
from crucible.editor.view import Place, View, around, exported, loaded_as, loads
from crucible.schemas.span import Position, Span

_START = Span.of(1, 1, 1, 1)


class _Meant(NamedTuple):
    """What stands at a position: names of scopes of files, and names of tasks or sessions."""

    symbols: list[tuple[Script, str, int]]
    made: list[tuple[str, str]]


# Definitions


def definition(view: View, at: Position) -> list[Place]:
    """Return where what stands at a position is made."""
    script = view.script
    nodes = around(script.tree, at)
    if not nodes:
        return []
    node = nodes[-1]
    if isinstance(node, tree.Literal) and isinstance(node.value, str):
        return _of_string(view, node, nodes)
    use = use_at(script.uses, node.span.begin) if isinstance(node, tree.Name) else None
    return view.definition(script, use) if use else []


def _of_string(view: View, node: tree.Literal, nodes: list[tree.Node]) -> list[Place]:
    """Return what a string leads to: a module, a symbol of one, a prompt file, a task or a session."""
    script = view.script
    load = next((each for each in nodes if isinstance(each, tree.Load)), None)
    if load is not None:
        module = view.module(str(load.path.value))
        if module is None:
            return []
        return [Place(module, _START)] if node is load.path else exported(module, str(node.value))
    named = view.named(script, node)
    if named is not None:
        return view.origin(*named)
    call = next((each for each in reversed(nodes) if isinstance(each, tree.Call)), None)
    constructor = script.constructor_of(call)
    if constructor is not None and constructor.name == "prompt_file":
        text = view.prompt(str(node.value))
        if text is not None:
            return [Place(Script(os.path.normpath(os.path.join(view.folder, str(node.value))), text), _START)]
    return []


# References


def references_of(view: View, at: Position, *, with_definition: bool) -> list[Place]:
    """Return all places that mean what stands at a position, in the order of files and places."""
    meant = _meant(view, at)
    if meant is None:
        return []
    places: dict[tuple[str, Span], Place] = {}
    made: set[tuple[str, Span]] = set()
    for script in view.scripts:
        for kind, name, literal in [*script.references, *view.passed(script)]:
            if (kind, name) in meant.made:
                places[script.path, literal.span] = Place(script, literal.span)
        for file, name, scope in meant.symbols:
            for place, binds in _uses_in(view, script, (file, name, scope)):
                places[script.path, place.span] = place
                if binds:
                    made.add((script.path, place.span))
    for kind, name in meant.made:
        for place in view.origin(kind, name):
            key = place.script.path, place.span
            places[key] = place
            made.add(key)
    kept = (key for key in sorted(places) if with_definition or key not in made)
    return [places[key] for key in kept]


def _uses_in(view: View, script: Script, symbol: tuple[Script, str, int]) -> list[tuple[Place, bool]]:
    """Return the uses in a file of a name of a scope of a file, each with whether it is the binding."""
    file, name, scope = symbol
    if script.path == file.path:
        return [(Place(script, use.span), use.binds) for use in same(script.uses, name, scope)]
    if scope != FILE:
        return []
    found = []
    for load in loads(script.tree):
        module = view.module(str(load.path.value))
        if module is None or module.path != file.path:
            continue
        for each in load.symbols:
            if each.symbol.value == name:
                found.append((Place(script, each.symbol.span), False))
                found += [(Place(script, use.span), False) for use in same(script.uses, each.local.id, FILE)]
    return found


def _meant(view: View, at: Position) -> _Meant | None:
    """Tell what stands at a position."""
    script = view.script
    nodes = around(script.tree, at)
    node = nodes[-1] if nodes else None
    if isinstance(node, tree.Name):
        use = use_at(script.uses, node.span.begin)
        return None if use is None or use.scope == NOWHERE else _with_tasks(view, script, use)
    if not isinstance(node, tree.Literal) or not isinstance(node.value, str):
        return None
    named = view.named(script, node)
    if named is not None:
        return _with_variables(view, *named)
    load = next((each for each in nodes if isinstance(each, tree.Load)), None)
    module = view.module(str(load.path.value)) if load and node is not load.path else None
    if module is not None and exported(module, node.value):
        return _Meant([(module, node.value, FILE)], [])
    return None


def _with_tasks(view: View, script: Script, use: Use) -> _Meant:
    """Follow a name to the file that binds it, and take what it makes along."""
    file, name = script, use.name
    loaded = loaded_as(script.tree, use.name) if use.scope == FILE else None
    if loaded is not None:
        module = view.module(loaded[0])
        if module is not None:
            file, name = module, str(loaded[1].symbol.value)
    meant = view.value_of(script, use)
    made = view.made_by(*meant) if meant else None
    return _Meant([(file, name, use.scope)], [made] if made else [])


def _with_variables(view: View, kind: str, name: str) -> _Meant:
    """Take the names along that a task or session is bound to."""
    symbols = []
    for script in view.scripts:
        for statement in script.tree.statements:
            match statement:
                case tree.Assign(target=tree.Name(id=variable), op="=", value=value) if view.made_by(script, value) == (
                    kind,
                    name,
                ):
                    symbols.append((script, variable, FILE))
    return _Meant(symbols, [(kind, name)])

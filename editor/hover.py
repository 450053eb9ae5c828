"""What is said of the thing under the cursor: a constructor, an argument, a constant, a task as it was compiled."""

from typing import Any, Final, NamedTuple

from crucible.compiler.frontend import tree
from crucible.compiler.frontend.vocabulary import Constructor
from crucible.editor import documentation
from crucible.editor.scopes import NOWHERE, Use, use_at
from crucible.editor.script import Script
from crucible.editor.view import View, around, loaded_as
from crucible.schemas.canonical import write_value
from crucible.schemas.ir import to_plain
from crucible.schemas.span import Position, Span

_MOST_TEXT: Final = 400
_MOST_SHOWN: Final = 4_000


class Hover(NamedTuple):
    """Markdown about a span."""

    text: str
    span: Span


def hover(view: View, at: Position) -> Hover | None:
    """Say something of what stands at a position, None where there is nothing to say."""
    script = view.script
    nodes = around(script.tree, at)
    if not nodes:
        return None
    node = nodes[-1]
    call = next((each for each in reversed(nodes) if isinstance(each, tree.Call)), None)
    constructor = script.constructor_of(call)
    text = None
    if isinstance(node, tree.Name):
        text = _of_name(view, node, nodes, constructor)
    elif isinstance(node, tree.Literal) and isinstance(node.value, str):
        text = _of_string(view, node, constructor, nodes)
    return None if text is None else Hover(text, node.span)


def _of_name(view: View, name: tree.Name, nodes: list[tree.Node], constructor: Constructor | None) -> str | None:
    """Describe a name: of an argument, of a constructor, or bound by a source."""
    above = nodes[-2] if len(nodes) > 1 else None
    if isinstance(above, tree.Argument) and above.name is name:
        row = constructor.argument(name.id) if constructor else None
        return documentation.of_argument(constructor, row) if constructor and row else None
    use = use_at(view.script.uses, name.span.begin)
    if use is None:
        return None
    if use.scope == NOWHERE:
        known = view.constructors.get(name.id)
        return documentation.of_constructor(known) if known else None
    return of_use(view, view.script, use)


def of_use(view: View, script: Script, use: Use) -> str | None:
    """Describe what a name of a file is bound to, None where reading cannot tell."""
    meant = view.value_of(script, use)
    if meant is None:
        return None
    file, node = meant
    if isinstance(node, tree.Def):
        return _of_function(file, node)
    made = view.made_by(file, node)
    if made is not None:
        return of_made(view, *made)
    text = view.text_of(file, node)
    if text is not None:
        return _of_text(text)
    return documentation.block(file.cut(node.span), "python") if isinstance(node, tree.Literal) else None


def _of_function(script: Script, function: tree.Def) -> str:
    """Show the head of a function and its docstring."""
    head = script.cut(Span(function.span.begin, function.body[0].span.begin)).split(":\n", 1)[0].rstrip(" \n:")
    shown = documentation.block(_short(head), "python")
    match function.body[0]:
        case tree.ExprStatement(value=tree.Literal(value=str(text))):
            return f"{shown}\n{_short(text.strip())}"
        case _:
            return shown


def _of_string(view: View, node: tree.Literal, constructor: Constructor | None, nodes: list[tree.Node]) -> str | None:
    """Describe what a string names: a task, a session, a file of the pack, a symbol."""
    script = view.script
    named = view.named(script, node)
    if named is not None:
        return of_made(view, *named)
    if constructor is not None and constructor.name == "prompt_file":
        text = view.prompt(str(node.value))
        return None if text is None else _of_text(text)
    for symbol in nodes:
        if isinstance(symbol, tree.LoadSymbol):
            use = use_at(script.uses, symbol.local.span.begin)
            return of_use(view, script, use) if use and loaded_as(script.tree, use.name) else None
    return None


def of_made(view: View, kind: str, name: str) -> str | None:
    """Show a task as it was last compiled, or its call when it never was; of a session, its declaration."""
    if kind == "task" and view.workflow is not None:
        for plain in to_plain(view.workflow)["task"]:
            if plain["name"] == name:
                return documentation.block(_cut(write_value(_shortened(plain))), "json")
    for script, declared in view.declared:
        if (declared.kind, declared.name) == (kind, name):
            return documentation.block(_cut(script.cut(declared.call.span)), "python")
    return None


def _of_text(text: str) -> str:
    """Show a text, its beginning only when it is long, with its length."""
    length = f"{len(text):,} characters"
    return f"{documentation.block(_short(text))}\n{length}"


def _shortened(value: Any) -> Any:
    """Return plain data with its long strings cut."""
    if isinstance(value, str):
        return _short(value)
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    return [_shortened(item) for item in value] if isinstance(value, list) else value


def _short(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "…"


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…"

"""unused-load: a symbol that a file loads and never reads; nobody else can, for it is not exported again."""

from collections.abc import Iterator

from crucible.compiler.analysis.lint.case import TreeCase, Warned
from crucible.compiler.analysis.lint.edits import without_item, without_statement
from crucible.compiler.frontend import tree
from crucible.schemas.span import Span


def unused_load(case: TreeCase) -> Iterator[Warned]:
    """Find loaded symbols without a use; the last one of a load goes with it."""
    top = case.reading.blocks[0]
    for load in top.statements:
        if not isinstance(load, tree.Load):
            continue
        items = [load.path.span, *(_item(symbol) for symbol in load.symbols)]
        for index, symbol in enumerate(load.symbols, 1):
            name = symbol.local.id
            if name in top.read or case.is_in_doubt(name, is_of_the_file=True):
                continue
            if any(_is_wrong(case, span) for span in (load.path.span, items[index])):
                continue
            if len(load.symbols) > 1:
                edit = without_item(case.file, items, index)
            else:
                edit = without_statement(case.file, load, top.statements)
            message = f'"{name}" is loaded and never used; remove it'
            yield Warned("unused-load", message, symbol.symbol.span, edit)


def _is_wrong(case: TreeCase, span: Span) -> bool:
    """Tell whether an error is about a place: what cannot be loaded may be used under another name."""
    return any(
        each.span is not None and span.begin <= each.span.begin and each.span.end <= span.end for each in case.errors
    )


def _item(symbol: tree.LoadSymbol) -> Span:
    """Return the span of a symbol with the name that it gets, if it gets one of its own."""
    return Span(min(symbol.local.span.begin, symbol.symbol.span.begin), symbol.symbol.span.end)

"""Marks in the text of a source, by which each direct call of a constructor tells where it stands.

In: a file with its tree, and the names of the constructors. Out: the same text, line for line, with one argument more
in each such call. The evaluator itself tells the place of a call only by failing there, once in an evaluation; with
marks one evaluation tells that of all. A constructor that is called by another name has no mark.
"""

from bisect import bisect_right
from collections.abc import Collection
from typing import Final

from crucible.compiler.frontend import tree
from crucible.compiler.frontend.places import also_binds
from crucible.compiler.frontend.source_file import SourceFile
from crucible.schemas.span import Position

MARK: Final = "__crucible_call__ "  # in front of file, line and column of a call, and <module> outside of functions
WANTED: Final = "__crucible_wanted__"  # what is called for whether the calls around a call are told
_STACK: Final = "call_stack"


def marked(file: SourceFile, constructors: Collection[str]) -> str:
    """Return the text of a file with its marks."""
    nodes = list(tree.walk(*file.source.statements))
    bound = {name for node in nodes for name in _binds(node)}
    if _STACK in bound:
        return file.text
    within = _Within([node for node in nodes if isinstance(node, tree.Def | tree.Lambda)])
    lines = file.text.split("\n")
    calls = [node for node in nodes if isinstance(node, tree.Call) and _is_direct(node, constructors, bound)]
    for call in sorted(calls, key=lambda call: call.function.span.end, reverse=True):
        (line, column), (end, behind) = call.span.begin, call.function.span.end
        text = lines[end - 1]
        bracket = len(text) - len(text[behind - 1 :].lstrip(" \t"))
        if text[bracket : bracket + 1] == "(":
            place = f'"{MARK}{file.number}:{line}:{column}:'
            mark = f'{place}<module>"'
            if within.a_function(call.span.begin):
                mark = f'[{place}", {_STACK}()] if {WANTED}() else {place}"'
            lines[end - 1] = f"{text[: bracket + 1]}{mark}, {text[bracket + 1 :]}"
    return "\n".join(lines)


def _binds(node: tree.Node) -> Collection[str]:
    """Return the names that a node binds, in whatever scope."""
    if isinstance(node, tree.Assign) and isinstance(node.target, tree.Name):
        return (node.target.id,)
    return also_binds(node)


def _is_direct(call: tree.Call, constructors: Collection[str], bound: Collection[str]) -> bool:
    """Tell whether a call is one of a constructor by its own name, which nothing in the file binds."""
    name = call.function.id if isinstance(call.function, tree.Name) else ""
    return name in constructors and name not in bound


class _Within:
    """Tells whether a position is inside of a function; functions nest, they do not overlap."""

    def __init__(self, functions: list[tree.Node]) -> None:
        self._begins: list[Position] = []
        self._ends: list[Position] = []
        for begin, end in sorted(node.span for node in functions):
            if not self._ends or begin >= self._ends[-1]:
                self._begins.append(begin)
                self._ends.append(end)

    def a_function(self, position: Position) -> bool:
        """Tell whether one of the outermost functions holds the position."""
        index = bisect_right(self._begins, position) - 1
        return index >= 0 and position < self._ends[index]

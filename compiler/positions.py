"""Where the keys and values of a data file stand: a tree beside the data, filled by toml_text and json_text.

A path is a tuple of keys and list indexes, the same that lead to the value in the parsed data.
Nodes hold offsets; they become spans only when someone asks, for most places are never asked for, and
of a text without a mistake none.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from crucible.schemas.span import Position, Span

BYTE_ORDER_MARK = "\ufeff"

Path = tuple[str | int, ...]
_Range = tuple[int, int]


class Node:
    """One key or element: the offsets of its key, its value and its table header, and what is inside.

    ``is_list`` tells an array of tables that headers built; an array in brackets has a value.
    """

    __slots__ = ("children", "header", "is_list", "key", "value")

    def __init__(self) -> None:
        self.key: _Range | None = None
        self.value: _Range | None = None
        self.header: _Range | None = None
        self.is_list = False
        self.children: dict[str | int, Node] = {}

    @property
    def is_defined(self) -> bool:
        """Tell whether the text has given this node a value or a table."""
        return self.value is not None or self.header is not None or bool(self.children)


class Positions:
    """The places of one text, by path; 1-based, in code points, a byte-order mark not counted.

    ``root`` is the tree, or what finds it, which is called when the first place is asked for.
    """

    def __init__(self, text: str, root: Node | Callable[[], Node]) -> None:
        self._found = root
        self._text = text

    @cached_property
    def _root(self) -> Node:
        return self._found if isinstance(self._found, Node) else self._found()

    @cached_property
    def _line_starts(self) -> list[int]:
        first = 1 if self._text.startswith(BYTE_ORDER_MARK) else 0
        return [first, *(found.end() for found in re.finditer("\n", self._text))]

    def key(self, path: Path) -> Span | None:
        """Return the span of the key where the path's last step is written first."""
        node = self._node(path)
        return self._span_or_none(node.key if node else None)

    def value(self, path: Path) -> Span | None:
        """Return the span of a value, None for a table that headers or dotted keys build."""
        node = self._node(path)
        return self._span_or_none(node.value if node else None)

    def header(self, path: Path) -> Span | None:
        """Return the span of the TOML header that defines the table, brackets included."""
        node = self._node(path)
        return self._span_or_none(node.header if node else None)

    def table(self, path: Path) -> Span | None:
        """Return the header of a table, the opening bracket of an inline one, else the value or the key."""
        node = self._node(path)
        if node is None:
            return None
        if node.header is None and node.value and self._text[node.value[0]] in "{[":
            return self.span(node.value[0], node.value[0] + 1)
        return self._span_or_none(node.header or node.value or node.key)

    def at(self, offset: int) -> tuple[Path, Span] | None:
        """Return the innermost key whose name, value or header an offset is in or behind, and the span of its name."""
        found: tuple[Path, Span] | None = None
        least = len(self._text) + 1
        pending: list[tuple[Path, Node]] = [((), self._root)]
        while pending:
            path, node = pending.pop()
            for begin, end in filter(None, (node.key, node.value, node.header)):
                if begin <= offset <= end and end - begin < least:
                    least, found = end - begin, (path, self.span(*(node.key or (begin, end))))
            pending += [((*path, step), child) for step, child in node.children.items()]
        return found

    def paths(self) -> Iterator[Path]:
        """Yield the path of everything that the text gives a value or a table."""
        pending: list[tuple[Path, Node]] = [((), self._root)]
        while pending:
            path, node = pending.pop()
            yield path
            pending += [((*path, step), child) for step, child in node.children.items()]

    def last(self, keys: tuple[str, ...]) -> Path:
        """Return the path of the table that the keys of a header mean; of an array of tables that is its last."""
        path: Path = ()
        for key in keys:
            path = (*path, key)
            node = self._node(path)
            if node is not None and node.is_list:
                path = (*path, len(node.children) - 1)
        return path

    def span(self, begin: int, end: int) -> Span:
        """Turn two offsets of the text into a span."""
        return Span(self.position(begin), self.position(end))

    def position(self, offset: int) -> Position:
        """Turn an offset of the text into a position."""
        line = max(bisect_right(self._line_starts, offset), 1)
        return Position(line, max(offset - self._line_starts[line - 1], 0) + 1)

    def offset(self, line: int, column: int) -> int:
        """Turn a 1-based line and column into an offset of the text, clamped to it."""
        line = min(max(line, 1), len(self._line_starts))
        return min(self._line_starts[line - 1] + max(column, 1) - 1, len(self._text))

    def _node(self, path: Path) -> Node | None:
        node: Node | None = self._root
        for step in path:
            if node is None:
                return None
            node = node.children.get(step)
        return node

    def _span_or_none(self, offsets: _Range | None) -> Span | None:
        return self.span(*offsets) if offsets else None


def depth(data: Any) -> int:
    """Return how deep the lists and tables of plain data nest."""
    deepest, pending = 0, [(data, 1)]
    while pending:
        value, level = pending.pop()
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
        if items is not None:
            deepest = max(deepest, level)
            pending += [(item, level + 1) for item in items if isinstance(item, (dict, list))]
    return deepest

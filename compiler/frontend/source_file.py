"""One text of a compile, with the syntax tree that is parsed when somebody asks for it, and what loaded it."""

from collections.abc import Mapping

from crucible.schemas.diagnostic import Related
from crucible.schemas.span import Position, Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from crucible.compiler.frontend import tree


class SourceFile:
    """One text of the compile: its number on the channel, its path in the pack and in output.

    ``loaded_by`` is the file and the index of the load that first brought it, None for the root.
    """

    def __init__(self, number: int, path: str, shown: str, text: str, loaded_by: tuple[int, int] | None = None) -> None:
        self.number = number
        self.path = path
        self.shown = shown
        self.text = text
        self.loaded_by = loaded_by
        self._source: tree.Source | None = None
        self._lines: list[str] | None = None
        self.meanings: dict[tuple[str, bool], tree.Node | None] = {}  # what places.py has found names to stand for
        self._loads: list[tree.Load] | None = None
        self._calls: dict[Position, list[tree.Call]] | None = None

    @property
    def source(self) -> "tree.Source":
        """Return the syntax tree, parsed at the first use."""
        if self._source is None:
            from crucible.compiler.frontend.parse import parse

            self._source = parse(self.text)
        return self._source

    @property
    def parsed(self) -> "tree.Source | None":
        """Return the syntax tree if somebody has asked for it."""
        return self._source

    @property
    def loads(self) -> "list[tree.Load]":
        """Return the load statements in order."""
        if self._loads is None:
            from crucible.compiler.frontend import tree

            self._loads = [statement for statement in self.source.statements if isinstance(statement, tree.Load)]
        return self._loads

    @property
    def calls(self) -> "dict[Position, list[tree.Call]]":
        """Return the calls by the place where they begin, those around others first."""
        if self._calls is None:
            from crucible.compiler.frontend import tree

            self._calls = {}
            for node in tree.walk(*self.source.statements):
                if isinstance(node, tree.Call):
                    self._calls.setdefault(node.span.begin, []).append(node)
        return self._calls

    def cut(self, span: Span) -> str:
        """Return the text of a span."""
        if self._lines is None:
            self._lines = self.text.split("\n")
        (first, begin), (last, end) = span
        picked = self._lines[first - 1 : last]
        if not picked:
            return ""
        picked[-1] = picked[-1][: end - 1]
        picked[0] = picked[0][begin - 1 :]
        return "\n".join(picked)


def loaded_from(files: Mapping[int, SourceFile], file: SourceFile) -> tuple[Related, ...]:
    """Return the chain of loads that brought a file, the nearest first."""
    related = []
    while file.loaded_by is not None:
        number, index = file.loaded_by
        file = files[number]
        loads = file.loads
        if index < len(loads):
            related.append(Related("loaded from here", file.shown, loads[index].path.span))
    return tuple(related)

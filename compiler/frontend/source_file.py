"""One text of a compile, with the syntax tree that is parsed when somebody asks for it."""

from crucible.schemas.span import Span

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

    @property
    def source(self) -> "tree.Source":
        """Return the syntax tree, parsed at the first use."""
        if self._source is None:
            from crucible.compiler.frontend.parse import parse

            self._source = parse(self.text)
        return self._source

    @property
    def loads(self) -> "list[tree.Load]":
        """Return the load statements in order."""
        from crucible.compiler.frontend import tree

        return [statement for statement in self.source.statements if isinstance(statement, tree.Load)]

    def cut(self, span: Span) -> str:
        """Return the text of a span."""
        lines = self.text.split("\n")
        (first, begin), (last, end) = span
        picked = lines[first - 1 : last]
        if not picked:
            return ""
        picked[-1] = picked[-1][: end - 1]
        picked[0] = picked[0][begin - 1 :]
        return "\n".join(picked)

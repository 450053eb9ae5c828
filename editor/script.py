"""One text that is a source, with what can be read of it without evaluating; read when somebody asks.

A text that the scan refuses (its size, its bytes, its nesting) has no tree: no parser sees it.
"""

from functools import cached_property

from crucible.compiler.frontend import scan
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.parse import parse
from crucible.compiler.frontend.tree import Call, Source
from crucible.compiler.frontend.vocabulary import Constructor
from crucible.editor.mentions import Called, Declared, Reference, calls, declarations, references
from crucible.editor.positions import Lines
from crucible.editor.scopes import Use, resolve
from crucible.schemas.span import Position, Span

MANIFEST = "crucible.toml"
_NOTHING = Source((), (), ())


def is_manifest(path: str) -> bool:
    """Tell whether a path is that of a manifest."""
    return path.rpartition("/")[2] == MANIFEST


def encoded(text: str) -> bytes:
    """Return the bytes of a text as it would be saved; a lone surrogate gives bytes that are not UTF-8."""
    return text.encode("utf-8", "surrogatepass")


class Script:
    """A source at a path, as the editor or the disk has it; never changed."""

    def __init__(self, path: str, text: str) -> None:
        """Keep the text; nothing is read yet."""
        self.path = path
        self.text = text

    @property
    def is_manifest(self) -> bool:
        """Tell whether the text is a manifest."""
        return is_manifest(self.path)

    @cached_property
    def lines(self) -> Lines:
        """Return the lines of the text."""
        return Lines(self.text)

    @cached_property
    def plain(self) -> str:
        """Return the text as the compiler reads it, "" for one that is refused."""
        return scan.decode(encoded(self.text), LIMITS)[0]

    @cached_property
    def tokens(self) -> list[scan.Token]:
        """Return the tokens."""
        return scan.tokens(self.plain)

    @cached_property
    def tree(self) -> Source:
        """Return the syntax tree, an empty one for a text that is refused and for a manifest."""
        return _NOTHING if self.is_manifest or scan.guard(self.plain, LIMITS) else parse(self.plain)

    def take(self, tree: Source) -> None:
        """Take over the tree that a check has made of this very text."""
        self.__dict__.setdefault("tree", tree)

    @cached_property
    def uses(self) -> list[Use]:
        """Return where names are bound and read."""
        return resolve(self.tree)

    @cached_property
    def called(self) -> list[Called]:
        """Return the calls of constructors."""
        return calls(self.tree, self.uses)

    @cached_property
    def declared(self) -> list[Declared]:
        """Return the tasks and sessions that are made under a name that is written there."""
        return declarations(self.called)

    @cached_property
    def references(self) -> list[Reference]:
        """Return the strings that name a task or a session."""
        return references(self.called)

    def constructor_of(self, call: Call | None) -> Constructor | None:
        """Return the constructor that a call is one of, None for another call."""
        return self._constructors.get(id(call))

    def made_by(self, call: Call) -> Declared | None:
        """Return the task or session that a call of a constructor makes under a name that is written there."""
        return self._made.get(id(call))

    @cached_property
    def _constructors(self) -> dict[int, Constructor]:
        return {id(each.call): each.constructor for each in self.called}

    @cached_property
    def _made(self) -> dict[int, Declared]:
        return {id(each.call): each for each in self.declared}

    @cached_property
    def lane(self) -> str | None:
        """Return the lane that a root names, None for none."""
        return scan.find_lane(self.plain).name

    def offset(self, position: Position) -> int:
        """Return the offset of a position in the plain text."""
        return self._plain_lines.offset(position)

    def position(self, offset: int) -> Position:
        """Return the position of an offset in the plain text."""
        return self._plain_lines.position(offset)

    def cut(self, span: Span) -> str:
        """Return the text of a span."""
        return self.plain[self.offset(span.begin) : self.offset(span.end)]

    @cached_property
    def _plain_lines(self) -> Lines:
        return Lines(self.plain)

"""Places in TOML text: what stands where, which the standard library's reader does not tell.

The scanner does not judge: of text that tomllib accepts it knows every place, of other text those
before the mistake, where it ends. It neither recurses nor backtracks, whatever it is fed.
"""

import re
from typing import Any, NamedTuple

from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.positions import BYTE_ORDER_MARK, Node, Positions, depth
from crucible.schemas.diagnostic import Diagnostic
from crucible.schemas.span import Position, Span

_BLANKS = re.compile(r"[ \t]*")
_VOID = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"#[^\r\n]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
# A number, a boolean or a date; between a date and its time may stand one blank.
_SCALAR = re.compile(r"\d{4}-\d\d-\d\d[ ]\d\d:[0-9.:+\-Zz]*|[0-9A-Za-z+\-_.:]+")
_STRING_STEP = {
    '"': re.compile(r'\\.|["\n]'),
    "'": re.compile(r"['\n]"),
    '"""': re.compile(r'\\.|"""', re.DOTALL),
    "'''": re.compile(r"'''"),
}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_SIGN = re.compile(r"\r\n|.", re.DOTALL)
_SIGN_OR_ESCAPE = re.compile(
    r"\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[ \t]*\r?\n[ \t\r\n]*|.)|\r\n|.", re.DOTALL
)
_SHORT_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b"}
_LARGEST_CODE_POINT = 0x10FFFF
_LONG_NUMBER = re.compile(r"[0-9_]{640,}")  # the least that the interpreter's limit can be set to
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


class Statement(NamedTuple):
    """A table header or a key with its value: offsets of its first and behind its last character."""

    is_header: bool
    keys: tuple[str, ...]
    begin: int
    end: int


class Layout(NamedTuple):
    """What a text consists of: statements and comments in order, and the places of its data.

    ``too_deep``, ``repeated`` and ``unclosed`` are the first key or bracket of that kind.
    """

    text: str
    statements: list[Statement]
    comments: list[tuple[int, int]]
    positions: Positions
    too_deep: tuple[int, int] | None
    repeated: tuple[str, int, int] | None
    unclosed: tuple[int, int] | None


def scan(text: str, nesting: int = LIMITS.data_nesting) -> Layout:
    """Find all statements, comments and places; ends early where ``nesting`` is passed, and at a mistake."""
    scanner = _Scanner(text, nesting)
    scanner.run()
    return Layout(
        text,
        scanner.statements,
        scanner.comments,
        Positions(text, scanner.root),
        scanner.too_deep,
        scanner.repeated,
        scanner.unclosed,
    )


def locate(text: str) -> Positions:
    """Return the places of all keys, values and headers of a TOML text."""
    return scan(text).positions


def read(text: str, file: str) -> tuple[dict[str, Any] | None, Layout, list[Diagnostic]]:
    """Read a TOML text, a byte-order mark allowed; no data when a diagnostic says what is wrong.

    A line end inside a multi-line string is LF, whatever the file has.
    """
    import tomllib  # costs as much as the interpreter's own start

    layout = scan(text)
    place = layout.positions
    if layout.too_deep:
        message = f"brackets and keys nest at most {LIMITS.data_nesting} deep"
        return None, layout, [Diagnostic("toml-syntax", message, file, place.span(*layout.too_deep))]
    try:
        return tomllib.loads(text.removeprefix(BYTE_ORDER_MARK)), layout, []
    except ValueError as error:
        return None, layout, [_explain(str(error), file, layout)]


def read_data(text: str, file: str) -> tuple[dict[str, Any] | None, Positions, list[Diagnostic]]:
    """Read a TOML text as ``read`` does; one without a mistake is scanned when somebody asks for a place."""
    import tomllib

    try:
        data = tomllib.loads(text.removeprefix(BYTE_ORDER_MARK))
    except (ValueError, RecursionError):
        data = None
    if data is not None and depth(data) <= LIMITS.data_nesting:  # its lists of tables count as brackets: enough
        return data, Positions(text, lambda: _root(text)), []
    data, layout, diagnostics = read(text, file)
    return data, layout.positions, diagnostics


def _root(text: str) -> Node:
    scanner = _Scanner(text, LIMITS.data_nesting)
    scanner.run()
    return scanner.root


def _explain(complaint: str, file: str, layout: Layout) -> Diagnostic:
    """Turn a complaint of tomllib into a diagnostic at the place of the cause."""
    place, text = layout.positions, layout.text
    found = _PLACE.search(complaint)
    if found is None:
        # The one complaint without a place comes from the interpreter, about its own limit.
        long = _LONG_NUMBER.search(text)
        span = place.span(*long.span()) if long else None
        return Diagnostic("toml-syntax", "this number has more digits than any reader takes", file, span)
    what = _PLACE.sub("", complaint)
    at_end = found.group(1) is None
    broke = len(text) if at_end else place.offset(int(found.group(1)), int(found.group(2)))
    if layout.repeated and layout.repeated[1] <= broke:
        name, begin, end = layout.repeated
        message = f'"{name}" stands here a second time; a key stands once in its table'
        return Diagnostic("repeated-key", message, file, place.span(begin, end))
    if layout.unclosed and at_end:
        return Diagnostic("toml-syntax", "this is never closed", file, place.span(*layout.unclosed))
    what = what[:1].lower() + what[1:]
    spot = place.position(broke)
    width = 1 if text[broke : broke + 1].strip("\r\n") else 0
    span = Span(spot, Position(spot.line, spot.column + width))
    return Diagnostic("toml-syntax", f"this is not TOML: {what}", file, span)


def inside(token: str, index: int) -> tuple[int, int] | None:
    """Return where in a string, as it is written, a character of its text stands; of its end, the delimiter.

    None for what is no string, or too short.
    """
    quote = token[:1]
    if quote not in ('"', "'"):
        return None
    is_long = len(token) >= len(quote * 6) and token.startswith(quote * 3)
    size = len(quote * 3) if is_long else len(quote)
    begin, end = size, len(token) - size
    if is_long:
        begin += len(token[begin : begin + 2]) - len(token[begin : begin + 2].removeprefix("\r").removeprefix("\n"))
    at = 0
    for sign in (_SIGN if quote == "'" else _SIGN_OR_ESCAPE).finditer(token, begin, end):
        if sign.group()[0] == "\\" and sign.group()[1:].isspace() and quote == '"':
            continue  # a line end that is none, with the blanks behind it
        if at == index:
            return sign.span()
        at += 1
    return (end, end + 1) if at == index else None


class _Open(NamedTuple):
    """A bracket that is still open, with the node it stands for and how deep that is."""

    node: Node
    is_array: bool
    begin: int
    depth: int


class _Key(NamedTuple):
    """One part of a dotted key and its offsets."""

    name: str
    begin: int
    end: int


class _Scanner:
    """One walk through a text, from statement to statement."""

    def __init__(self, text: str, nesting: int) -> None:
        self._text = text
        self._at = 1 if text.startswith(BYTE_ORDER_MARK) else 0
        self._nesting = nesting
        self.root = Node()
        self.statements: list[Statement] = []
        self.comments: list[tuple[int, int]] = []
        self.too_deep: tuple[int, int] | None = None
        self.repeated: tuple[str, int, int] | None = None
        self.unclosed: tuple[int, int] | None = None

    def run(self) -> None:
        """Walk to the end of the text, or to what ends the walk early."""
        table, depth = self.root, 0
        self._skip_void()
        is_sound = True
        while is_sound and self._at < len(self._text) and not self.too_deep:
            begin = self._at
            is_header = self._text[begin] == "["
            if is_header:
                keys, table = self._header()
                depth = len(keys)
            else:
                keys = self._keys(depth)
                self._pair(table, keys, depth)
            if keys:
                names = tuple(key.name for key in keys)
                self.statements.append(Statement(is_header, names, begin, self._at))
            is_sound = self._is_at_line_end()
            self._skip_void()

    def _skip_void(self) -> None:
        """Pass blanks, line ends and comments."""
        while True:
            self._at = _VOID.match(self._text, self._at).end()  # type: ignore[union-attr]
            if not self._skip_comment():
                return

    def _skip_comment(self) -> bool:
        comment = _COMMENT.match(self._text, self._at)
        if comment:
            self.comments.append(comment.span())
            self._at = comment.end()
        return comment is not None

    def _is_at_line_end(self) -> bool:
        """Pass blanks and a comment; tell whether nothing else stands on the line, as in text that is TOML."""
        self._skip_blanks()
        self._skip_comment()
        return self._at >= len(self._text) or self._text.startswith(("\n", "\r\n"), self._at)

    def _skip_blanks(self) -> None:
        self._at = _BLANKS.match(self._text, self._at).end()  # type: ignore[union-attr]

    def _take(self, sign: str) -> bool:
        """Pass a sign and the blanks before it; tell whether it is there."""
        self._skip_blanks()
        there = self._text.startswith(sign, self._at)
        if there:
            self._at += len(sign)
        return there

    def _keys(self, depth: int) -> list[_Key]:
        """Pass a dotted key; it is empty where there is none."""
        keys: list[_Key] = []
        while True:
            self._skip_blanks()
            begin = self._at
            if self._text[begin : begin + 1] in ('"', "'"):
                self._string()
                name = _decode(self._text[begin : self._at])
            else:
                bare = _BARE_KEY.match(self._text, begin)
                if bare is None:
                    return []
                name, self._at = bare.group(), bare.end()
            keys.append(_Key(name, begin, self._at))
            if depth + len(keys) > self._nesting:
                self.too_deep = (begin, self._at)
                return []
            if not self._take("."):
                return keys

    def _header(self) -> tuple[list[_Key], Node]:
        """Pass a table header; return its keys and the node of its table."""
        begin = self._at
        brackets = 2 if self._text.startswith("[[", begin) else 1
        self._at += brackets
        keys = self._keys(0)
        if not keys or not self._take("]" * brackets):
            return [], Node()
        node = self._descend(self.root, keys[:-1])
        node = self._child(node, keys[-1])
        if brackets == 2:  # noqa: PLR2004 - [[ ]]
            if node.is_defined and not node.is_list:
                self._repeat(keys[-1])
            node.is_list = True
            node = node.children.setdefault(len(node.children), Node())
        elif node.header or node.value or node.is_list:
            self._repeat(keys[-1])
        node.header = node.header or (begin, self._at)
        return keys, node

    def _descend(self, node: Node, keys: list[_Key]) -> Node:
        """Return the table that dotted keys lead to; of an array of tables that is its last."""
        for key in keys:
            node = self._child(node, key)
            if node.is_list:
                node = node.children[len(node.children) - 1]
        return node

    def _child(self, node: Node, key: _Key) -> Node:
        child = node.children.get(key.name)
        if child is None:
            child = node.children[key.name] = Node()
            child.key = (key.begin, key.end)
        return child

    def _repeat(self, key: _Key) -> None:
        self.repeated = self.repeated or (key.name, key.begin, key.end)

    def _target(self, table: Node, keys: list[_Key]) -> Node:
        """Return the node that a key and its value fill."""
        node = self._child(self._descend(table, keys[:-1]), keys[-1])
        if node.is_defined:
            self._repeat(keys[-1])
            return Node()
        return node

    def _pair(self, table: Node, keys: list[_Key], depth: int) -> None:
        """Pass ``= value`` behind a key, with all that is inside the value."""
        if not keys or not self._take("="):
            return
        node, depth = self._target(table, keys), depth + len(keys)
        stack: list[_Open] = []
        self._skip_blanks()
        while self._value(node, stack, depth):
            following = self._next_inside(stack)
            if following is None:
                return
            node, depth = following

    def _value(self, node: Node, stack: list[_Open], depth: int) -> bool:
        """Pass a scalar or an opening bracket; tell whether there was one."""
        begin, sign = self._at, self._text[self._at : self._at + 1]
        if sign in ("[", "{"):
            if depth >= self._nesting:
                self.too_deep = (begin, begin + 1)
                return False
            self._at += 1
            stack.append(_Open(node, sign == "[", begin, depth))
            return True
        if sign in ('"', "'"):
            self._string()
        else:
            scalar = _SCALAR.match(self._text, begin)
            if scalar is None:
                return False
            self._at = scalar.end()
        node.value = (begin, self._at)
        return True

    def _next_inside(self, stack: list[_Open]) -> tuple[Node, int] | None:
        """Close what closes here, then return the next value's node; None when all is closed or broken."""
        while stack:
            inside = stack[-1]
            self._skip_void()
            while self._take(","):
                self._skip_void()
            if self._at >= len(self._text):
                self.unclosed = self.unclosed or (inside.begin, inside.begin + 1)
                return None
            if self._take("]" if inside.is_array else "}"):
                inside.node.value = (inside.begin, self._at)
                stack.pop()
            elif inside.is_array:
                return inside.node.children.setdefault(len(inside.node.children), Node()), inside.depth + 1
            else:
                keys = self._keys(inside.depth)
                if not keys or not self._take("="):
                    return None
                self._skip_void()
                return self._target(inside.node, keys), inside.depth + len(keys)
        return None

    def _string(self) -> None:
        """Pass a string of any kind; an unclosed one ends with its line or with the text."""
        begin, quote = self._at, self._text[self._at]
        delimiter = quote * 3 if self._text.startswith(quote * 3, begin) else quote
        step = _STRING_STEP[delimiter]
        self._at += len(delimiter)
        while True:
            found = step.search(self._text, self._at)
            if found is None:
                self.unclosed = self.unclosed or (begin, begin + len(delimiter))
                self._at = len(self._text)
                return
            if found.group() == "\n":
                self._at = found.start()
                return
            self._at = found.end()
            if found.group() == delimiter:
                break
        if len(delimiter) > 1:
            # One or two quotes may stand before the delimiter: they belong to the string.
            for _ in range(2):
                self._at += self._text.startswith(quote, self._at)


def _decode(token: str) -> str:
    """Return the text of a key in quotes."""
    inner = token[1:-1]
    return inner if token[0] == "'" or "\\" not in inner else _ESCAPE.sub(_unescape, inner)


def _unescape(found: re.Match[str]) -> str:
    digits = found.group(1) or found.group(2) or found.group(3)
    if digits is None:
        return _SHORT_ESCAPES.get(found.group(4), found.group(4))
    return chr(min(int(digits, 16), _LARGEST_CODE_POINT))

"""JSON text (RFC 8259) to data and the places of it, strictly and without recursion.

The standard library's reader tells no places and takes what is no JSON: repeated keys, NaN,
numbers beyond every float, halves of surrogate pairs.
"""

import json
import math
import re
from typing import Any, NamedTuple, NoReturn

from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.positions import BYTE_ORDER_MARK, Node, Positions, depth
from crucible.schemas.diagnostic import Diagnostic, Related

_BLANKS = re.compile(r"[ \t\r\n]*")
# Possessive: what could be given back again would be remembered, a hundred bytes for every escape.
_STRING_START = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_STRING = re.compile(f'{_STRING_START.pattern}"')
_SURROGATE = re.compile("[\ud800-\udfff]")
_HALVES = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")  # also of whole characters, and in what is no escape
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[^\s,:\[\]{}\"]+")
_WORDS = {"true": True, "false": False, "null": None}
_LONGEST_SHOWN = 20
_SURELY_FINITE = 300  # digits


class _Open(NamedTuple):
    """A container that is still open: its data, its places, and where its bracket stands."""

    data: dict[str, Any] | list[Any]
    node: Node
    begin: int


class _Broken(Exception):
    """The text is not JSON; carries the message and the two offsets of the place."""

    def __init__(self, message: str, begin: int, end: int) -> None:
        super().__init__(message)
        self.message, self.begin, self.end = message, begin, end


def read(text: str, file: str, nesting: int = LIMITS.data_nesting) -> tuple[Any, Positions, list[Diagnostic]]:
    """Read a JSON text, a byte-order mark allowed; the data is good only without a diagnostic.

    The first mistake of syntax ends the reading (``json-syntax``); of a key that is given twice
    (``repeated-key``, at the second) the first value counts.
    """
    reader = _Reader(text, file, nesting)
    try:
        reader.run()
    except _Broken as broken:
        span = reader.positions.span(broken.begin, broken.end)
        return None, reader.positions, [*reader.repeated, Diagnostic("json-syntax", broken.message, file, span)]
    return reader.result, reader.positions, reader.repeated


def read_data(text: str, file: str) -> tuple[Any, Positions, list[Diagnostic]]:
    """Read a JSON text as ``read`` does; one without a mistake is walked through when somebody asks for a place."""
    try:
        data = json.loads(
            text.removeprefix(BYTE_ORDER_MARK),
            object_pairs_hook=_once,
            parse_int=_finite_integer,
            parse_float=_finite,
            parse_constant=_refuse,
        )
        is_sure = depth(data) <= LIMITS.data_nesting and _HALVES.search(text) is None
    except (ValueError, RecursionError):
        is_sure = False
    return (data, Positions(text, lambda: _root(text)), []) if is_sure else read(text, file)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; raise ValueError when a key is given twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _finite(word: str) -> float:
    number = float(word)
    if not math.isfinite(number):
        raise ValueError
    return number


def _finite_integer(word: str) -> int:
    if len(word) > _SURELY_FINITE:
        raise ValueError
    return int(word)


def _refuse(_word: str) -> NoReturn:
    """Refuse NaN and the infinities, which are no JSON."""
    raise ValueError


def _root(text: str) -> Node:
    reader = _Reader(text, "", LIMITS.data_nesting)
    reader.run()
    return reader.root


class _Reader:
    """One walk through a text, from value to value."""

    def __init__(self, text: str, file: str, nesting: int) -> None:
        self._text = text
        self._file = file
        self._nesting = nesting
        self._at = 1 if text.startswith(BYTE_ORDER_MARK) else 0
        self.root = Node()
        self._node = self.root
        self._stack: list[_Open] = []
        self.positions = Positions(text, self.root)
        self.repeated: list[Diagnostic] = []
        self.result: Any = None

    def run(self) -> None:
        """Read the one value of the text; raises _Broken at the first mistake."""
        self._skip_blanks()
        place: _Open | None = None
        key: str | None = None
        self._skip_blanks()
        while True:
            value, is_open = self._value()
            if place is None:
                self.result = value
            elif isinstance(place.data, list):
                place.data.append(value)
            elif key is not None:
                place.data[key] = value
            if not self._to_next_value(is_open=is_open):
                break
            place = self._stack[-1]
            if isinstance(place.data, dict):
                key = self._member(place)
            else:
                self._node = place.node.children.setdefault(len(place.node.children), Node())
        if self._at < len(self._text):
            self._fail("the text goes on behind its one value", self._at)

    def _value(self) -> tuple[Any, bool]:
        """Pass a scalar or an opening bracket; the flag tells that a container was opened."""
        begin, sign = self._at, self._text[self._at : self._at + 1]
        if sign in ("{", "["):
            if len(self._stack) >= self._nesting:
                self._fail(f"brackets nest at most {self._nesting} deep", begin)
            data: dict[str, Any] | list[Any] = {} if sign == "{" else []
            self._stack.append(_Open(data, self._node, begin))
            self._node.value = (begin, begin + 1)
            self._at += 1
            return data, True
        value = self._string() if sign == '"' else self._word()
        self._node.value = (begin, self._at)
        return value, False

    def _to_next_value(self, *, is_open: bool) -> bool:
        """Close what closes here and stand before the next key or element; False at the end."""
        while self._stack:
            top = self._stack[-1]
            closer = "}" if isinstance(top.data, dict) else "]"
            self._skip_blanks()
            sign = self._text[self._at : self._at + 1]
            if sign == closer:
                self._at += 1
                top.node.value = (top.begin, self._at)
                self._stack.pop()
                is_open = False
                continue
            if not sign:
                self._fail("this is never closed", top.begin)
            if is_open:
                return True
            if sign != ",":
                self._fail(f'expected "," or "{closer}", not {self._shown()}', self._at)
            comma = self._at
            self._at += 1
            self._skip_blanks()
            if self._text[self._at : self._at + 1] == closer:
                self._fail(f'a "," stands between two values, not before "{closer}"', comma)
            return True
        self._skip_blanks()
        return False

    def _member(self, place: _Open) -> str | None:
        """Pass a key and its colon; None for a repeated key, whose value counts for nothing."""
        begin = self._at
        if self._text[begin : begin + 1] != '"':
            self._fail(f"expected a key in double quotes, not {self._shown()}", begin)
        key = self._string()
        end = self._at
        self._node = Node()
        first = place.node.children.get(key)
        if first is None:
            self._node.key = (begin, end)
            place.node.children[key] = self._node
        elif first.key is not None and len(self.repeated) <= LIMITS.mistakes:
            related = Related("the first stands here", self._file, self.positions.span(*first.key))
            message = f"{_quote(key)} stands here a second time; a key stands once in its object"
            span = self.positions.span(begin, end)
            self.repeated.append(Diagnostic("repeated-key", message, self._file, span, (related,)))
        self._skip_blanks()
        if self._text[self._at : self._at + 1] != ":":
            self._fail(f'expected ":" behind the key, not {self._shown()}', self._at)
        self._at += 1
        self._skip_blanks()
        return key if first is None else None

    def _string(self) -> str:
        begin = self._at
        found = _STRING.match(self._text, begin)
        if found is None:
            self._fail_in_string(begin)
        self._at = found.end()
        value: str = json.loads(found.group())
        half = _SURROGATE.search(value)
        if half:
            self._fail(f"U+{ord(half.group()):04X} is half of a character; write both halves", begin, self._at)
        return value

    def _fail_in_string(self, begin: int) -> NoReturn:
        good = _STRING_START.match(self._text, begin)
        at = good.end() if good else begin
        sign = self._text[at : at + 1]
        if not sign or sign == "\n" or self._text.startswith("\r\n", at):
            self._fail("this string is never closed", begin)
        if sign == "\\":
            self._fail(f"JSON has no escape {self._text[at : at + 2]}", at, at + 2)
        self._fail(f"a string holds no bare U+{ord(sign):04X}; write \\u{ord(sign):04x}", at)

    def _word(self) -> Any:
        """Pass a number, true, false or null."""
        begin = self._at
        found = _WORD.match(self._text, begin)
        word = found.group() if found else ""
        if word in _WORDS:
            self._at += len(word)
            return _WORDS[word]
        number = _NUMBER.fullmatch(word)
        if number is None:
            self._fail(f"expected a value, not {self._shown()}", begin, begin + max(len(word), 1))
        self._at += len(word)
        if not math.isfinite(float(word)):
            self._fail("this number is beyond every finite number", begin, self._at)
        is_integer = number.group(1) is None and number.group(2) is None
        return int(word) if is_integer else float(word)

    def _shown(self) -> str:
        """Show what stands here as a message does."""
        word = _WORD.match(self._text, self._at)
        text = word.group() if word else self._text[self._at : self._at + 1]
        if not text:
            return "the end of the text"
        return _quote(text[:_LONGEST_SHOWN] + ("…" if len(text) > _LONGEST_SHOWN else ""))

    def _skip_blanks(self) -> None:
        self._at = _BLANKS.match(self._text, self._at).end()  # type: ignore[union-attr]

    def _fail(self, message: str, begin: int, end: int | None = None) -> NoReturn:
        raise _Broken(message, begin, min(begin + 1 if end is None else end, len(self._text)))


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)

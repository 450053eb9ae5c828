"""The source before any parser: bytes to text, tokens, the lane: all that is read of it before evaluation.

Everything is a loop over the matches of one expression (lexis.py); nothing recurses and nothing raises,
whatever the input. What is held here and in ceilings.py makes it safe to hand the text to a parser.
"""

import re
import sys
from bisect import bisect_right
from typing import NamedTuple

from crucible.compiler.frontend.ceilings import guard
from crucible.compiler.frontend.lexis import (
    BROKEN,
    CLOSE,
    COMMENT,
    KEYWORDS,
    NAME,
    NEWLINE,
    OPEN,
    RESERVED,
    STRING,
    Fault,
    indentation,
    lead,
    matches,
    place,
    sparse_matches,
)
from crucible.compiler.frontend.limits import Limits
from crucible.schemas.span import Position, Span

__all__ = ["KEYWORDS", "RESERVED", "Fault", "Lane", "Token", "decode", "find_lane", "guard", "string_value", "tokens"]

_KINDS = ("", "STRING", "ERROR", "NAME", "FLOAT", "INT", "OP", "OP", "OP", "NEWLINE", "COMMENT", "ERROR")
_DEEPEST = 256  # brackets in broken strings that are counted; more of them make no sense
_OPENER = {")": "(", "]": "[", "}": "{"}


class Token(NamedTuple):
    """A token with its place; ``begin`` and ``end`` are offsets into the text.

    Kinds: NAME, INT, FLOAT, STRING, OP, KEYWORD, NEWLINE, INDENT, DEDENT, COMMENT, ERROR, END. The
    text of an ERROR is the offending character, the unfinished string or f-string, or "" for an
    indentation that matches no block; tabs are errors that a reader may skip like blanks.
    """

    kind: str
    text: str
    span: Span
    begin: int
    end: int


class Lane(NamedTuple):
    """The lane as written: its name and the literal's place, or what is wrong with it."""

    name: str | None = None
    span: Span | None = None
    fault: Fault | None = None


def decode(data: bytes, limits: Limits) -> tuple[str, Fault | None]:
    """Turn the bytes of a source into text: no byte-order mark, LF for CR LF (language.md §1).

    With a fault (``limit-exceeded``, ``source-not-utf8``, ``nul-in-source``) the text is empty.
    """
    if len(data) > limits.source_bytes:
        message = f"the source has {len(data)} bytes; the ceiling of one source file is {limits.source_bytes} bytes"
        return "", Fault("limit-exceeded", message, None)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = _normalise(data[: error.start].decode("utf-8"))
        message = f"byte {data[error.start]:#04x} at offset {error.start} is not UTF-8; save the file as UTF-8"
        return "", Fault("source-not-utf8", message, _next(before))
    nul = data.find(b"\0")
    if nul >= 0:
        before = _normalise(data[:nul].decode("utf-8"))
        return "", Fault("nul-in-source", f"a NUL byte at offset {nul}; remove it", _next(before))
    return _normalise(text), None


def _normalise(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _next(before: str) -> Span:
    """Return the place of the one character that follows a text."""
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return Span.of(line, column, line, column + 1)


def tokens(text: str) -> list[Token]:
    """Cut a text into tokens, END last.

    Inside brackets there is no NEWLINE, INDENT or DEDENT; but behind a bracket that is never closed,
    a line that looks like the beginning of a statement is one.
    """
    cutter = _Cutter(text, frozenset())
    cutter.cut()
    if cutter.stack:
        cutter = _Cutter(text, frozenset(begin for _, begin in cutter.stack))
        cutter.cut()
    return cutter.found


class _Cutter:
    """One pass over a text; ``unclosed`` has the offsets of the brackets known to stay open."""

    def __init__(self, text: str, unclosed: frozenset[int]) -> None:
        self.text = text
        self.unclosed = unclosed
        self.found: list[Token] = []
        self.stack: list[tuple[str, int]] = []  # the open brackets
        self.around: list[tuple[str, int]] = []  # those that were open where the line began
        self.blocks = [0]  # the indentations of the open blocks
        self.twin = (0, 0)  # how many blocks are open where a line matched none, and its indentation
        self.starts = [0, *(match.end() for match in re.finditer("\n", text)), len(text) + 1]
        self.line = 0  # that of the last token, counted from 0

    def cut(self) -> None:
        """Find the tokens."""
        text = self.text
        blank = lead(text)
        blank_end = len(blank)
        fresh = True  # whether nothing but blanks and comments has been on this line
        for match in matches(text):
            group = match.lastindex or 0
            begin = match.start(group) if group else len(text)
            end = match.end()
            # A backslash that joins lines is no blank: the evaluator's lexer takes the indentation there.
            if fresh and (group not in (0, NEWLINE, COMMENT) or (begin > match.start() and "\\" in match.group())):
                fresh = False
                self._indent(blank, blank_end, begin)
            if group == NEWLINE:
                blank, blank_end = match.group(NEWLINE), end
                self.around = list(self.stack)
                if self.stack and not self._restarts(end):
                    self._stray(blank, begin)
                    continue
                self.stack.clear()
                self.around.clear()
                if not fresh:
                    self._add("NEWLINE", begin, begin)
                fresh = True
            elif group == NAME:
                self._add("KEYWORD" if match.group(NAME) in KEYWORDS else "NAME", begin, end)
            elif group:
                if group == OPEN:
                    self.stack.append((text[begin], begin))
                elif group == CLOSE:
                    self._close(_OPENER[text[begin]], end)
                self._add(_KINDS[group], begin, end)
                if group == BROKEN:
                    self._reread(begin, end)
        if not fresh:
            self._add("NEWLINE", len(text), len(text))
        for kind in (*(["DEDENT"] * (len(self.blocks) - 1)), "END"):
            self._add(kind, len(text), len(text))

    def _add(self, kind: str, begin: int, end: int) -> None:
        starts, line = self.starts, self.line
        while starts[line + 1] <= begin:
            line += 1
        self.line = last = line
        if end >= starts[line + 1]:
            last = bisect_right(starts, end, line) - 1
        span = Span(Position(line + 1, begin - starts[line] + 1), Position(last + 1, end - starts[last] + 1))
        self.found.append(Token(kind, self.text[begin:end], span, begin, end))

    def _indent(self, blank: str, blank_end: int, begin: int) -> None:
        """Open or close blocks for a line that begins at an offset, behind these blanks."""
        tab = self.text.find("\t", blank_end - len(blank) + blank.rfind("\n") + 1, blank_end)
        if tab >= 0:
            self._add("ERROR", tab, tab + 1)
        width = indentation(blank)
        if width > self.blocks[-1] and self.twin != (len(self.blocks), width):
            self.blocks.append(width)
            self._add("INDENT", begin, begin)
            return
        while width < self.blocks[-1]:
            if self.twin == (len(self.blocks), width):
                return
            around, inner = self.blocks[-2:]
            if width - around > inner - width:  # it matches neither: a line of the nearer one, as deep as may follow
                self.twin = (len(self.blocks), width)
                self._add("ERROR", begin, begin)
                return
            self.blocks.pop()
            self._add("DEDENT", begin, begin)
        if width > self.blocks[-1] and self.twin != (len(self.blocks), width):
            self._add("ERROR", begin, begin)

    def _stray(self, blank: str, begin: int) -> None:
        """Report what is no blank among the blanks inside brackets."""
        if "\t" in blank or "\r" in blank:
            for stray in re.finditer(r"\t|\r(?!\n)", blank):
                self._add("ERROR", begin + stray.start(), begin + stray.end())

    def _reread(self, begin: int, end: int) -> None:
        """Count all brackets in the line of a string that is never closed: what of it is text is unclear."""
        text = self.text[begin:end].lstrip("fr")
        if "\n" in text or text[:3] in ('"""', "'''") or (len(text) > 1 and text[0] == text[-1]):
            return
        self.stack[:] = self.around
        for match in re.compile(r"[(\[{]|[)\]}]").finditer(self.text, self.starts[self.line], end):
            if match.group() in _OPENER:
                self._close(_OPENER[match.group()], match.end())
            elif len(self.stack) < _DEEPEST:
                self.stack.append((match.group(), match.start()))

    def _close(self, opener: str, end: int) -> None:
        """Close the innermost bracket of that shape, and with it those inside it.

        A stray closer closes nothing, or all when a statement seems to begin in the next line: it was to be of another
        shape.
        """
        if any(shape == opener for shape, _ in self.stack):
            while self.stack.pop()[0] != opener:
                pass
        elif self.stack and re.compile(rf"[ ]*(?:#[^\n]*)?\n{_STATEMENT}").match(self.text, end):
            self.stack.clear()

    def _restarts(self, begin: int) -> bool:
        """Tell whether a statement seems to begin at the offset, within an unclosed bracket.

        It does in the first column, and indented behind a header of a block that has the bracket.
        """
        if self.stack[-1][1] not in self.unclosed:
            return False
        line = self.starts[self.line]
        is_header = self.stack[0][1] >= line and re.compile(_HEADER).match(self.text, line, begin) is not None
        return is_header or re.compile(_STATEMENT).match(self.text, begin) is not None


_HEADER = r"[ ]*(?:def|for|if|elif)\b.*:[ ]*(?:#.*)?\r?\n[ ]"
_STATEMENT = (
    r"(?<![ \t])(?:(?:def|load)\b|(?:for|if)\b.*:[ ]*(?:#.*)?(?=\n|\Z)"
    r"|(?!(?:for|if|not)\b)[A-Za-z_][A-Za-z0-9_]*[ ]*(?:\(|=(?!=)))"
)


def string_value(literal: str) -> str | None:
    """Return the value of a string literal as written, prefix and quotes included; None for a bad escape."""
    raw = literal.startswith("r")
    body = literal[1:] if raw else literal
    quote = 3 if body[:3] in ("'''", '"""') else 1
    body = body[quote:-quote]
    if "\\" not in body:
        return body.replace("\r", "")
    return _raw_value(body) if raw else _escaped_value(body)


def _raw_value(body: str) -> str:
    """Keep every backslash but one before a quote; a carriage return stays only behind a backslash."""
    return re.sub(r"""\\(['"])|(\\.)|\r""", r"\1\2", body, flags=re.DOTALL)


_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\n": "", "\r\n": ""}
_SIMPLE.update({mark: mark for mark in "\\'\""})


_SURROGATES = range(0xD800, 0xE000)


def _escaped_value(body: str) -> str | None:
    pattern = r"\\([0-7]{1,3})|\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))|\\(\r\n|.)|\r"
    parts: list[str] = []
    done = 0
    for match in re.finditer(pattern, body, re.DOTALL):
        parts.append(body[done : match.start()])
        done = match.end()
        octal, *digits, other = match.groups()
        number = next(filter(None, digits), None)
        if octal:
            parts.append(chr(int(octal, 8)))
        elif number:
            code = int(number, 16)
            if code in _SURROGATES or code > sys.maxunicode:
                return None
            parts.append(chr(code))
        elif other:
            if other in "xuU\r":
                return None
            parts.append(_SIMPLE.get(other, "\\" + other))
    parts.append(body[done:])
    return "".join(parts)


class _Call:
    """A call of workflow() while it is being read; ``begin`` and ``end`` bound the value of its ``type``."""

    __slots__ = ("begin", "end", "kinds", "outside", "reading")

    def __init__(self, *, outside: bool) -> None:
        self.outside = outside
        self.begin = self.end = -1
        self.kinds: list[int] = []
        self.reading = False

    def take(self, match: re.Match[str], group: int) -> None:
        """Take a token of the value."""
        if not self.kinds:
            self.begin = match.start(group)
        self.kinds.append(group)
        self.end = match.end(group)


def find_lane(text: str, plain: dict[int, int] | None = None, *, module: bool = False) -> Lane:
    """Read the lane that a source declares, from its tokens alone (language.md §2).

    It is the string literal ``type = "…"`` of the last call of workflow() outside any def, or else of
    the last call. An unknown name is returned as it is. ``lane-not-literal`` stands at a value that is
    not a literal and, in a module, at every value. ``plain`` is what guard() kept of the same text.
    """
    calls = _workflow_calls(text, plain)
    if module:
        for call in calls:
            if call.kinds:
                message = "a module has the lane of the root file; leave type out of workflow() here"
                return Lane(fault=Fault("lane-not-literal", message, place(text, call.begin, call.end)))
        return Lane()
    last = next((call for call in reversed(calls) if call.outside), calls[-1] if calls else None)
    if last is None or not last.kinds:
        return Lane()
    span = place(text, last.begin, last.end)
    if last.kinds != [STRING]:
        return Lane(fault=Fault("lane-not-literal", 'the lane is not a string literal; write type = "custom"', span))
    name = string_value(text[last.begin : last.end])
    return Lane(name, span) if name is not None else Lane()


def _workflow_calls(text: str, plain: dict[int, int] | None) -> list[_Call]:
    """Return the calls of workflow() in the order in which they end."""
    calls: list[_Call] = []
    stack: list[_Call | None] = []
    fresh, blank = True, lead(text)
    function = -1  # the indentation of the def that we are in
    before = last = ""  # the two tokens before this one
    for match in sparse_matches(text, plain):
        group = match.lastindex or 0
        if group in (0, COMMENT):
            continue
        if group == NEWLINE:
            if not stack:
                fresh, blank = True, match.group(NEWLINE)
            continue
        word = match.group(group)
        if fresh:
            fresh, before, last = False, "", ""
            width = indentation(blank)
            if width <= function:
                function = -1
            if word == "def" and function < 0:
                function = width
        call = stack[-1] if stack else None
        if call and call.reading:
            if word == "," or group == CLOSE:
                call.reading = False
            else:
                call.take(match, group)
        elif call and word == "=" and last == "type" and before in ("(", ",") and not call.kinds:
            call.reading = True
        if group == OPEN:
            opens = word == "(" and last == "workflow" and before not in ("def", ".")
            stack.append(_Call(outside=function < 0) if opens else None)
        elif group == CLOSE and stack:
            closed, around = stack.pop(), stack[-1] if stack else None
            if closed:
                calls.append(closed)
            if around and around.reading:
                around.take(match, group)
        before, last = last, word
    calls.extend(call for call in reversed(stack) if call)
    return calls

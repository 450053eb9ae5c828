"""Reads a literal from tokens without evaluating anything: tokens in, plain nodes with places out.

Strings, numbers (a minus may stand before one), True, False, None, lists, tuples and dicts are
literals; every other expression becomes a node of kind "other" that covers it. It does not recurse,
and gives up with None where the text is no Starlark: the parser says what is wrong there.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from crucible.compiler.frontend.scan import Token, string_value
from crucible.schemas.span import Span

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_CONSTANTS = {"True": ("bool", True), "False": ("bool", False), "None": ("None", None)}
_OPERANDS = ("NAME", "INT", "FLOAT", "STRING")
_STOPS = (",", ":", ";", ")", "]", "}", "for")
_LINE_ENDS = ("NEWLINE", "INDENT", "DEDENT", "END")
# Python refuses to read a decimal of more than 4,300 digits; an int as long as that fits no field anyway.
_MOST_DIGITS = 600
_HUGE = 1 << 2000


class Node(NamedTuple):
    """One value of a literal.

    ``kind`` is "string", "int", "number", "bool", "None", "list" (a tuple is one too), "dict" or
    "other"; ``value`` is a tuple of nodes for a list, of pairs of nodes for a dict, None for
    "other".
    """

    kind: str
    value: Any
    span: Span


class _BrokenError(Exception):
    """The text is not Starlark here."""


class _Frame:
    """An open bracket with what was read inside it so far."""

    __slots__ = ("begin", "bracket", "commas", "items", "key")

    def __init__(self, bracket: str, begin: int) -> None:
        self.bracket = bracket
        self.begin = begin
        self.commas = 0
        self.items: list[Any] = []
        self.key: Node | None = None


def read_literal(tokens: Sequence[Token], begin: int) -> tuple[Node, int] | None:
    """Read the expression that starts at token ``begin`` and fills the rest of its statement.

    ``tokens`` has no comments and ends in END. Returns the node and the index of the token behind
    it, a NEWLINE, ";" or END; None where the text is no Starlark.
    """
    try:
        return _Reader(tokens, begin).statement_value()
    except _BrokenError:
        return None


def others(node: Node) -> list[Node]:
    """Return the nodes of kind "other" in a node, in source order."""
    found: list[Node] = []
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if current.kind == "other":
            found.append(current)
        elif current.kind == "list":
            waiting.extend(reversed(current.value))
        elif current.kind == "dict":
            waiting.extend(part for pair in reversed(current.value) for part in reversed(pair))
    return found


class _Reader:
    """Walks the tokens; the open brackets are an explicit stack."""

    def __init__(self, tokens: Sequence[Token], begin: int) -> None:
        self.tokens = tokens
        self.at = begin

    def statement_value(self) -> tuple[Node, int]:
        """Read a value and what is left of its statement."""
        begin = self.at
        node = self._value()
        while self._is(","):  # a tuple without parentheses is no form of ours
            self.at += 1
            if not self._ends():
                self._skip(self.at)
            node = self._other(begin)
        if not self._ends():
            raise _BrokenError
        return node, self.at

    def _value(self) -> Node:
        """Read one value with all that is nested in it."""
        frames: list[_Frame] = []
        while True:
            begin = self.at
            token = self.tokens[begin]
            if token.kind == "OP" and token.text in _CLOSING:
                frames.append(_Frame(token.text, begin))
                self.at += 1
                if not self._is(_CLOSING[token.text]):
                    continue
                node = self._close(frames.pop())
            else:
                node = self._scalar()
            while True:
                node = self._whole(node, begin)
                if not frames:
                    return node
                frame = frames[-1]
                if self._is("for"):  # a comprehension: the bracket as a whole is no literal
                    self._skip(frame.begin)
                    node, begin = self._other(frame.begin), frames.pop().begin
                elif self._add(frame, node):
                    node, begin = self._close(frame), frames.pop().begin
                else:
                    break

    def _add(self, frame: _Frame, node: Node) -> bool:
        """Put a node into its bracket; tell whether the bracket closes behind it."""
        if frame.bracket == "{" and frame.key is None:
            if not self._is(":"):
                raise _BrokenError
            frame.key = node
            self.at += 1
            return False
        frame.items.append(node if frame.key is None else (frame.key, node))
        frame.key = None
        if self._is(","):
            frame.commas += 1
            self.at += 1
        return self._is(_CLOSING[frame.bracket])

    def _close(self, frame: _Frame) -> Node:
        """Take the closing bracket and build the node; parentheses around one value are that value."""
        self.at += 1
        if frame.bracket == "(" and len(frame.items) == 1 and not frame.commas:
            inner: Node = frame.items[0]
            return inner
        return Node("dict" if frame.bracket == "{" else "list", tuple(frame.items), self._span(frame.begin))

    def _scalar(self) -> Node:
        """Read a string, a number or a constant; something else gives "other"."""
        begin = self.at
        token = self.tokens[begin]
        value: object
        minus = token.kind == "OP" and token.text == "-" and self.tokens[begin + 1].kind in ("INT", "FLOAT")
        if minus:
            self.at += 1
            token = self.tokens[self.at]
        if token.text in _CONSTANTS:
            kind, value = _CONSTANTS[token.text]
        elif token.kind == "STRING":
            kind, value = "string", string_value(token.text)
            if value is None:
                raise _BrokenError
        elif token.kind in ("INT", "FLOAT"):
            kind = "int" if token.kind == "INT" else "number"
            number = _number(token.text, kind)
            value = -number if minus else number
        else:
            self._skip(begin)
            return self._other(begin)
        self.at += 1
        return Node(kind, value, self._span(begin))

    def _whole(self, node: Node, begin: int) -> Node:
        """Return the node, or "other" when it is only the beginning of an expression."""
        token = self.tokens[self.at]
        if token.kind in _LINE_ENDS or token.text in _STOPS:
            return node
        self._skip(begin)
        return self._other(begin)

    def _skip(self, begin: int) -> None:
        """Move behind the expression that begins there; two operands side by side and an = are broken."""
        depth = lambdas = 0
        operand = False
        index = begin
        while True:
            token = self.tokens[index]
            text = token.text
            if token.kind in _LINE_ENDS or token.kind == "ERROR":
                if depth or token.kind == "ERROR":
                    raise _BrokenError
                break
            if not depth and text in _STOPS:
                if not lambdas or text not in (",", ":"):
                    break
                lambdas -= text == ":"
            if text in _CLOSING:
                depth += 1
            elif text in (")", "]", "}"):
                depth -= 1
            elif text == "lambda" and not depth:
                lambdas += 1
            is_operand = token.kind in _OPERANDS or text in _CONSTANTS
            if (operand and (is_operand or text == "{")) or (text == "=" and not depth and not lambdas):
                raise _BrokenError
            operand = is_operand or text in (")", "]", "}")
            index += 1
        if index == begin:
            raise _BrokenError
        self.at = index

    def _is(self, text: str) -> bool:
        """Tell whether the next token is this operator or keyword."""
        token = self.tokens[self.at]
        return token.text == text and token.kind in ("OP", "KEYWORD")

    def _ends(self) -> bool:
        """Tell whether the statement ends here."""
        return self.tokens[self.at].kind in _LINE_ENDS or self._is(";")

    def _span(self, begin: int) -> Span:
        """Return the span from a token to the last one taken."""
        return Span(self.tokens[begin].span.begin, self.tokens[self.at - 1].span.end)

    def _other(self, begin: int) -> Node:
        """Return the node for an expression that is no literal."""
        return Node("other", None, self._span(begin))


def _number(text: str, kind: str) -> int | float:
    """Return the value of a numeric literal without a sign."""
    if kind == "number":
        return float(text)
    if text[0] == "0" and text[1:].isdigit():
        raise _BrokenError
    return int(text, 0) if len(text) <= _MOST_DIGITS else _HUGE

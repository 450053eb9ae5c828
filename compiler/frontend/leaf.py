"""The tokens of scan.py as the grammar names them, each with the value that a literal stands for."""

from typing import Any

from crucible.compiler.frontend.scan import RESERVED, Token, string_value
from crucible.schemas.span import Span

_SIGNS = {
    "(": "LPAR", ")": "RPAR", "[": "LSQB", "]": "RSQB", "{": "LBRACE", "}": "RBRACE",
    ",": "COMMA", ":": "COLON", ";": "SEMICOLON", ".": "DOT", "=": "ASSIGN", "~": "TILDE",
    "+": "SIGN", "-": "SIGN", "*": "STAR", "**": "STAR2",
}  # fmt: skip
_TERMINALS = (
    _SIGNS
    | dict.fromkeys(("/", "//", "%", "<<", ">>", "&", "^", "|"), "ARITH")
    | dict.fromkeys(("==", "!=", "<", ">", "<=", ">="), "COMPARE")
    | dict.fromkeys(("+=", "-=", "*=", "/=", "//=", "%=", "<<=", ">>=", "&=", "^=", "|="), "AUGMENTED")
)
_MOST_DIGITS = 4_000
_HUGE = 1 << 13_000


class Leaf:
    """A token as lark takes it: ``type`` is the terminal, ``value`` what a literal stands for."""

    __slots__ = ("span", "text", "type", "value")

    def __init__(self, terminal: str, text: str, span: Span, value: Any = None) -> None:
        self.type = terminal
        self.text = text
        self.span = span
        self.value = value


def leaf_of(token: Token) -> Leaf:
    """Turn a token of scan.py into one of the grammar."""
    kind, text = token.kind, token.text
    value: Any = None
    if kind == "OP":
        kind = _TERMINALS.get(text, "ERROR")
    elif kind == "KEYWORD":
        kind = "RESERVED" if text in RESERVED else text.upper()
    elif kind == "STRING":
        value = string_value(text)
    elif kind == "FLOAT":
        value = float(text)
    elif kind == "INT":
        value = _integer(text)
    return Leaf(kind, text, token.span, value)


def _integer(text: str) -> int:
    """Return the value of an integer; one of more digits than Python would print is cut down."""
    base = {"x": 16, "o": 8, "b": 2}.get(text[1:2].lower(), 10)
    return int(text, base) if len(text) <= _MOST_DIGITS else _HUGE

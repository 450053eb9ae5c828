"""The words of syntax errors: what is wrong with a token, then what would be right."""

import unicodedata

from crucible.compiler.frontend.leaf import Leaf
from crucible.schemas.span import Position, Span

NO_BLOCK = "expected an indented block after the line that ends in :"
_INSTEAD = {
    "while": "loop with for over a range",
    "class": "there are no classes; use a dict or a def",
    "import": "bring names in with load()",
    "from": "bring names in with load()",
    "is": "compare with ==",
    "raise": "end with fail()",
    "assert": "end with fail() under an if",
    "try": "no failure can be caught; test with if beforehand",
    "except": "no failure can be caught; test with if beforehand",
    "finally": "no failure can be caught; test with if beforehand",
    "global": "a def cannot assign to a name outside it",
    "nonlocal": "a def cannot assign to a name outside it",
    "yield": "return a list",
    "with": "nothing is opened here; read and write files in what a task runs",
    "as": 'give a loaded name another one by load("…", new = "old")',
    "del": "a name stays; bind another one",
    "async": "tasks run side by side by themselves; order them by depends_on",
    "await": "tasks run side by side by themselves; order them by depends_on",
}
# Characters that look like a quote or a minus, by the plain one that they were to be.
_LOOKS_LIKE = {
    '"': "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb",
    "'": "\u2018\u2019\u201a\u201b\u2032\u2039\u203a\u00b4`",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
}


def reserved(word: str, *, names: bool) -> str:
    """Return the message for a word that Starlark keeps free; ``names`` tells whether it was to be a name."""
    other = "choose another name"
    return f'"{word}" is a reserved word; {other if names else _INSTEAD.get(word, other)}'


def broken(leaf: Leaf) -> tuple[Span, str]:
    """Return the place and the message for a token that no Starlark has."""
    text, span = leaf.text, leaf.span
    quote = text.lstrip("fr")[:3]
    if text == "\r":
        return span, "a lone carriage return; end lines with LF or CR LF"
    if text == "...":
        return span, '"..." is not allowed; use pass or None'
    if text == "->":
        return span, "type annotations are not allowed; leave them out"
    if text == "!":
        return span, 'unexpected "!"; write not'
    if text == "\\":
        return span, 'unexpected "\\"; to go on in the next line it must be the last character of this one'
    if quote[:1] in ("'", '"'):
        quote = quote if quote in ("'''", '"""') else quote[0]
        if text[0] == "f" and text.endswith(quote) and len(text.lstrip("fr")) > len(quote):
            return span, 'f-strings are not allowed; write "…" % x or "…".format(x)'
        begin, width = span.begin, text.index(quote) + len(quote)
        where = " in the same line" if len(quote) == 1 else ""
        opening = Span(begin, Position(begin.line, begin.column + width))
        return opening, f"this string is never closed; end it with {quote}{where}"
    return span, _stray(text)


def is_blank(text: str) -> bool:
    """Tell whether a token without meaning only looks like a blank, or like nothing at all."""
    return len(text) == 1 and unicodedata.category(text) in ("Zs", "Cf")


def _stray(text: str) -> str:
    """Say what a character is that has no meaning here, and which one it was to be."""
    number = f"U+{ord(text):04X}" if len(text) == 1 else ""
    if is_blank(text):
        kind = unicodedata.name(text, "character").lower()
        return f"unexpected {kind} ({number}); " + (
            "write a plain space" if unicodedata.category(text) == "Zs" else "it cannot be seen; delete it"
        )
    wrong = f'unexpected "{text}"' if text.isprintable() else f"unexpected character {number}"
    same = unicodedata.normalize("NFKC", text)
    plain = next((plain for plain, others in _LOOKS_LIKE.items() if text in others), same)
    if plain != text and plain.isascii() and plain.isprintable():
        return f"{wrong}; write a plain {plain}"
    return wrong


_MOST_SHOWN = 40
_SHOWN = {
    "COLON": '":"', "ELSE": '"else"', "IN": '"in"', "LPAR": '"("', "COMMA": '","', "RPAR": '")"', "RSQB": '"]"',
    "RBRACE": '"}"', "ASSIGN": '"="',
}  # fmt: skip


def message_for(read: list[Leaf], accepts: set[str]) -> str:
    """Say what is wrong with the last of the tokens that were read of a line, then what would be right."""
    last = read[-1]
    before = read[-2] if len(read) > 1 else Leaf("NEWLINE", "", last.span)
    wrong = "unexpected end of the line" if last.type == "NEWLINE" else f'unexpected "{_short(last.text)}"'
    if last.type == "STRING" and before.type == "STRING":
        return "two strings side by side; join them with +"
    if last.type == "STRING" and before.type == "NAME" and before.span.end == last.span.begin:
        return f'"{before.text}" is no prefix of a string; only r is'
    if last.type == "STRING" and before.type == "LOAD":
        return 'load needs brackets; write load("…", "…")'
    if last.type in ("ELSE", "ELIF") and len(read) == 1:
        return f'"{last.text}" without an "if" above it at this indentation'
    if last.type == "IF" and before.type == "ELSE":
        return f'{wrong}; write "elif"'
    if last.type in ("COMPARE", "IN", "NOT") and "AND" in accepts:
        return f'{wrong}; comparisons do not chain, join them with "and"'
    if last.type == "STAR2" and "AND" in accepts:
        return 'there is no operator "**"'
    if last.type == "ASSIGN" and read[0].type in ("IF", "ELIF"):
        return f'{wrong}; compare with "=="'
    if (
        last.type in ("ASSIGN", "AUGMENTED")
        and any(leaf.type in ("ASSIGN", "AUGMENTED") for leaf in read[:-1])
        and "NEWLINE" in accepts
    ):
        return f"{wrong}; a statement assigns once"
    if last.type == "COLON" and "ASSIGN" in accepts and "NEWLINE" in accepts:
        return f"{wrong}; type annotations are not allowed, leave them out"
    if last.type in ("DEF", "FOR", "IF", "LOAD") and len(read) > 1 and "INT" in accepts:
        return f"{wrong}; it begins a line of its own"
    return f"{wrong}; expected {_expected(accepts)}"


def _short(text: str) -> str:
    line = text.split("\n", 1)[0][:_MOST_SHOWN]
    return line if line == text else line + "…"


def _expected(accepts: set[str]) -> str:
    if "INT" in accepts:
        return "an expression"
    if "NEWLINE" in accepts:
        return "an operator or the end of the line"
    if "NAME" in accepts:
        return "a name"
    ended = "AND" in accepts  # an operand has just ended: what could go on with it is no news
    shown = [
        text
        for terminal, text in _SHOWN.items()
        if terminal in accepts and not (ended and terminal in ("IN", "LPAR", "ASSIGN"))
    ]
    return " or ".join(shown) if shown else "a string"

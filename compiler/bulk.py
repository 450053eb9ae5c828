"""How much a data file holds, counted in its text before any reader builds something from it.

In goes the text of a manifest or of IR that was written by hand, out comes the first ceiling that it
passes. One loop over the matches of one expression, which neither recurses nor backtracks: what stands
before the first mistake of syntax, in JSON or in TOML, is counted as their readers see it, and behind
it they read nothing.
"""

import re
import sys
from itertools import islice
from typing import Final, NamedTuple

from crucible.compiler.frontend.limits import LIMITS, Limits
from crucible.compiler.positions import BYTE_ORDER_MARK

_TOKEN: Final = re.compile(
    r"""(?:
    \#[^\n]*+
    |[^\s,=:.\[\]{}"'\#]++
    |[\[{]
    )
    |(\.)
    |(
    \"{3}(?:[^"\\]|\\[\s\S]|"(?!""))*+(?:\"{3,5})?
    |'{3}(?:[^']|'(?!''))*+(?:'{3,5})?
    |"(?:[^"\\\n]|\\.)*+"?
    |'[^'\n]*+'?
    )""",
    re.VERBOSE,
)
_DOT: Final = 1
_STRING: Final = 2
_BEYOND: Final = re.compile("[\U00010000-\U0010ffff]")
_HEAD: Final = 1024  # bytes of a string in memory that are none of its characters


class Excess(NamedTuple):
    """What passes a ceiling: the message, and the offsets of the place."""

    message: str
    begin: int
    end: int


def excess(text: str, limits: Limits = LIMITS) -> Excess | None:
    """Return the first ceiling that a text passes: characters that take much memory, lines, strings, parts, items."""
    if sys.getsizeof(text) > 2 * limits.json_bytes + _HEAD:
        found = _BEYOND.search(text)
        at = found.start() if found else 0
        most = limits.json_bytes // 2
        message = f"a text with characters beyond U+FFFF may have at most {most:,} characters; this has {len(text):,}"
        return Excess(message, at, at + 1)
    lines = text.count("\n")
    if lines > limits.data_lines:
        at = next(islice(re.finditer("\n", text), limits.data_lines, None)).start()
        return Excess(f"lines of one text may be at most {limits.data_lines:,}; this has {lines:,}", at, at)
    items = dots = 0
    is_dotted = False  # whether the last token was the dot of a key
    for token in _TOKEN.finditer(text, len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0):
        kind = token.lastindex
        if kind == _DOT:
            dots += 1
            is_dotted = True
            if dots > limits.data_nesting:
                message = f"parts of a dotted key may be at most {limits.data_nesting}; these are more"
                return Excess(message, *token.span())
            continue
        if not is_dotted:
            dots = 0
        is_dotted = False
        items += 1
        if items > limits.data_items:
            message = f"keys, values and comments of one text may be at most {limits.data_items:,}; this is one more"
            return Excess(message, token.start(), token.start() + 1)
        size = token.end() - token.start()
        if kind == _STRING and size > limits.data_string:
            message = f"one string may be at most {limits.data_string:,} characters as written; this is {size:,}"
            return Excess(message, token.start(), token.start() + 1)
    return None

"""What a token of Starlark is: one master expression that cuts a text as the evaluator's own lexer does.

A match begins with the blanks before the token; its last group tells the kind of token, no group the end.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from crucible.schemas.span import Position, Span

RESERVED: Final = frozenset({
    "as", "assert", "async", "await", "class", "del", "except", "finally", "from", "global", "import", "is", "nonlocal",
    "raise", "try", "while", "with", "yield",
})  # fmt: skip
KEYWORDS: Final = RESERVED | {
    "and", "break", "continue", "def", "elif", "else", "for", "if", "in", "lambda", "load", "not", "or", "pass",
    "return",
}  # fmt: skip

_STRING_BODY = (
    r"(?:'''[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+'''"
    r'|"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+"""'
    r"|'(?!'')[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'"
    r'|"(?!"")[^"\\\n]*+(?:\\.[^"\\\n]*+)*+")'
)

# The groups of TOKEN, in order.
STRING, BROKEN, NAME, FLOAT, INT, OPEN, CLOSE, OP, NEWLINE, COMMENT, OTHER = range(1, 12)

TOKEN = re.compile(
    r"(?: |\\\r?\n)*+(?:"
    rf"(r?{_STRING_BODY})"
    rf"|(fr?{_STRING_BODY}|f?r?(?:'''|\"\"\").*|f?r?['\"](?:[^\\\n]|\\.?)*+)"
    r"|([A-Za-z_][A-Za-z0-9_]*+)"
    r"|([0-9]++(?:\.[0-9]*+(?:[eE][-+]?[0-9]++)?|[eE][-+]?[0-9]++)|\.[0-9]++(?:[eE][-+]?[0-9]++)?)"
    r"|(0[xX][0-9a-fA-F]++|0[oO][0-7]++|0[bB][01]++|[0-9]++)"
    r"|([(\[{])"
    r"|([)\]}])"
    r"|(//=?|<<=?|>>=?|\*\*|->|\.\.\.|[-+*%&|^/=<>!]=|[-+*/%&|^~<>=,:;.])"
    r"|(\r?\n[ \t\r\n]*+)"
    r"|(#[^\n]*+)"
    r"|(.)"
    r"|\Z)",
    re.DOTALL,
)
BLANK: Final = " \t\r\n"

# Most of a workflow is `name = "value",`, which nests nothing and begins no chain: it is passed over with the
# blanks before a token, but for the one argument that is read here.
_WORD = r"[A-Za-z_][A-Za-z0-9_]*+"
_NUMBER = r"(?:0[xXoObB])?[0-9][0-9a-fA-F]*+(?:\.[0-9]*+)?"
_PLAIN_ARGUMENT = rf"(?: *+(?!type\b){_WORD} *+= *+(?:r?{_STRING_BODY}|[A-Za-z_]\w*+|{_NUMBER}) *+,)*+"
_SPARSE = re.compile(_PLAIN_ARGUMENT + TOKEN.pattern, re.DOTALL | re.ASCII)

# And most of its statements are calls of such arguments, flat lists and prompt_file("…") among them: whole
# statements in the first column, whose depth is that of this expression. A call of workflow() is none of them.
_GAP = r"(?:[ \n]|#[^\n]*+\n)*+"
_LINE_ENDS = r"(?: *+(?:#[^\n]*+)?\n)++"
_CALLED = rf"(?!workflow\b){_WORD}"
_LIST = rf"\[{_GAP}(?:(?:r?{_STRING_BODY}|{_WORD}){_GAP}(?:,{_GAP}|(?=\])))*+\]"
_VALUE = rf"(?:r?{_STRING_BODY}|{_CALLED}(?:\( *+r?{_STRING_BODY} *+\))?|{_NUMBER}|{_LIST})"
_STATEMENT = (
    rf"(?:{_WORD} *+= *+)?{_CALLED} *+\({_GAP}(?:(?!type\b){_WORD} *+= *+{_VALUE}{_GAP}(?:,{_GAP}|(?=\))))*+\)"
    rf"(?={_LINE_ENDS}(?:\S|\Z))"
)
_STATEMENTS = re.compile(rf"{_STATEMENT}(?:{_LINE_ENDS}{_STATEMENT})*+", re.DOTALL | re.ASCII)


class Fault(NamedTuple):
    """A diagnostic of this stage, before the file is known."""

    code: str
    message: str
    span: Span | None
    related: tuple[str, Span] | None = None


def place(text: str, begin: int, end: int) -> Span:
    """Return the span of ``text[begin:end]``."""
    first = Position(text.count("\n", 0, begin) + 1, begin - text.rfind("\n", 0, begin))
    last = Position(first.line + text.count("\n", begin, end), end - text.rfind("\n", 0, end))
    return Span(first, last)


def matches(text: str) -> Iterator[re.Match[str]]:
    """Iterate over the tokens of a text, behind the blanks that it begins with."""
    return TOKEN.finditer(text, len(lead(text)))


def count_tokens(text: str, most: int) -> int:
    """Return how many tokens a text has, at most one more than ``most``."""
    return sum(1 for _ in islice(matches(text), most + 1))


def sparse_matches(text: str, plain: dict[int, int] | None = None) -> Iterator[re.Match[str]]:
    """Iterate over the tokens as matches() does, but for what neither nests nor begins a chain.

    Passed over are named arguments whose value is one token and, outside brackets, statements made of them; the
    NEWLINE behind a statement is not. ``plain`` keeps for the next pass where such statements begin and end.
    """
    begin = len(lead(text))
    depth = 0
    known = {} if plain is None else plain
    while True:
        if not depth and (begin == 0 or text[begin - 1] == "\n"):
            if begin not in known and (statements := _STATEMENTS.match(text, begin)):
                known[begin] = statements.end()
            begin = known.get(begin, begin)
        for match in _SPARSE.finditer(text, begin):
            yield match
            group = match.lastindex
            if group == OPEN:
                depth += 1
            elif group == CLOSE:
                depth -= depth > 0
            elif group == NEWLINE and not depth:
                begin = match.end()
                break
        else:
            return


def indentation(blank: str) -> int:
    """Return the indentation of the line that a run of blanks leads to, a tab counting as 4, as it mostly shows."""
    line = blank[blank.rfind("\n") + 1 :]
    return line.count(" ") + 4 * line.count("\t")


def lead(text: str) -> str:
    """Return the blanks that a text begins with."""
    return text[: len(text) - len(text.lstrip(BLANK))]

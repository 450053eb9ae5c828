"""Grammars and their parse tables: the only owner of lark.

The table of the source language is walked by parse.py, over the tokens of scan.py. The small languages in
strings of a manifest, all in strings.lark, are read here: parts out, or what could not be read, and where.
"""

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

_WORDS = {"$END": "the end"}


class Table(NamedTuple):
    """lark's parse table as the reader walks it.

    ``rows`` is, for each state and symbol, the state to go to, or the rule to reduce by: its length, its
    origin and what builds its value (None where the value of the only part is kept).
    """

    rows: dict[Any, dict[str, Any]]
    start: Any
    end: Any


def source_table(builder: Any) -> Table:
    """Build the parse table of starlark.lark."""
    from lark import Lark
    from lark.lexer import Lexer
    from lark.parsers.lalr_analysis import Shift

    class Tokens(Lexer):
        """Stands for scan.py, whose tokens are fed one by one."""

        def __init__(self, _conf: object) -> None:
            pass

        def lex(self, data: Any) -> Iterator[Any]:  # type: ignore[override]
            return iter(data)

    parser = Lark.open(
        "starlark.lark", rel_to=__file__, parser="lalr", lexer=Tokens, start="source", maybe_placeholders=False,
        transformer=builder,
    )  # fmt: skip
    conf = parser.parse_interactive().parser_state.parse_conf
    rows: dict[Any, dict[str, Any]] = {}
    for state, actions in conf.states.items():
        row = rows[state] = {}
        for symbol, (action, rule) in actions.items():
            if action is Shift:
                row[str(symbol)] = rule  # a plain string: lark's own compare in Python
                continue
            keeps = rule.options.expand1 and not rule.alias and len(rule.expansion) == 1
            row[str(symbol)] = (len(rule.expansion), str(rule.origin.name), None if keeps else conf.callbacks[rule])
    return Table(rows, conf.start_state, conf.end_state)


class Part(NamedTuple):
    """A token of a small language: its name in the grammar, its text, and where that begins."""

    name: str
    text: str
    begin: int


class Misread(NamedTuple):
    """Where a text stops being one of its language, and what could stand there."""

    begin: int
    wanted: tuple[str, ...]


@functools.cache
def _small(language: str) -> Any:
    """Build the reader of a small language, once a process: it is never changed, so no call can see another."""
    from lark import Lark

    return Lark.open("strings.lark", rel_to=__file__, parser="lalr", start=language, maybe_placeholders=False)


def read(language: str, text: str) -> tuple[Part, ...] | Misread:
    """Read a text of a small language, a rule of strings.lark; names of what is wanted are in plain words."""
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

    try:
        tree = _small(language).parse(text)
    except UnexpectedInput as error:
        wanted = set(error.accepts or error.expected) if isinstance(error, UnexpectedToken) else set()
        if isinstance(error, UnexpectedCharacters):
            wanted = set(error.allowed or ())
        begin = error.pos_in_stream
        is_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
        return Misread(len(text) if is_end or begin is None else begin, tuple(sorted(map(_in_words, wanted))))
    return tuple(Part(str(token.type), str(token), token.start_pos) for token in tree.scan_values(lambda _: True))


def _in_words(symbol: str) -> str:
    """Return the name of a token as people say it: that of the grammar, in lower case."""
    return _WORDS.get(symbol) or symbol.strip("_").lower()

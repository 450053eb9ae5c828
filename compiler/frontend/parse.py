"""From a source to its syntax tree, with every syntax error that can be told apart.

Text in, tree.Source out; never an exception. The tokens are those of scan.py, the grammar stands in
starlark.lark. Inside brackets, reading goes on with what seems to be missing, or behind what is one too
many; a line that does not parse even so is replaced by the names that it would have bound: one mistake is
one fault. A source that compiles without a mistake is never brought here.
"""

import functools
import sys
from itertools import pairwise
from typing import Any

from crucible.compiler.frontend import tree
from crucible.compiler.frontend.build import BUILDER, unfold
from crucible.compiler.frontend.grammar import Table, source_table
from crucible.compiler.frontend.leaf import Leaf, leaf_of
from crucible.compiler.frontend.lexis import count_tokens
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.misplaced import may_be_of_body, misplaced
from crucible.compiler.frontend.scan import Token, tokens
from crucible.compiler.frontend.stand_in import bindings, made_up, parameters, stand_in
from crucible.compiler.frontend.syntax_message import NO_BLOCK, broken, is_blank, message_for, reserved
from crucible.schemas.span import Position, Span

_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_OPENING = ("LPAR", "LSQB", "LBRACE")
_CLOSING = ("RPAR", "RSQB", "RBRACE")
_TRIES = 20  # faults of one line, each of which takes as long as the line
_MOST_FAULTS = 2_000  # more than anybody is told of
_APART = 2  # tokens between two faults of a line, or the second is only a consequence


@functools.cache
def _table() -> Table:
    """Build the parse table, once a process: it is never changed, so no call can see another."""
    return source_table(BUILDER)


def parse(text: str) -> tree.Source:
    """Read a source that guard() has let pass; whatever is wrong with it is among the faults.

    The faults are those that the evaluator's parser has, but for a repeated named argument, in order of
    their places. A text of more tokens than all sources of a compile may have is not read: it has no statement.
    """
    if len(text) > LIMITS.tokens and count_tokens(text, LIMITS.tokens) > LIMITS.tokens:
        return tree.Source((), (), ())
    reader = _Reader()
    comments: list[tree.Comment] = []
    found: list[Token] = []
    for token in tokens(text):
        if token.kind == "COMMENT":
            comments.append(tree.Comment(token.span, token.text[1:]))
        else:
            found.append(token)
    statements = reader.read(found)
    known = {fault.span.begin for fault in reader.faults}  # what a line was read as is nobody's mistake
    others = [
        fault
        for fault in misplaced(statements)
        if fault.span.begin not in known and not (may_be_of_body(fault) and reader.bodiless < fault.span.begin)
    ]
    faults = sorted([*reader.faults, *others], key=lambda fault: fault.span)
    return tree.Source(statements, tuple(comments), tuple(faults))


def _open_in(leaves: list[Leaf]) -> list[str]:
    """Return the brackets that some tokens leave open, the outermost first."""
    inside: list[str] = []
    for leaf in leaves:
        if leaf.type in _OPENING:
            inside.append(leaf.type)
        elif leaf.type in _CLOSING:
            inside.pop()
    return inside


def _first(found: list[Token], at: int) -> Token:
    """Return the first token from there that is written out, or END."""
    while found[at].kind in ("INDENT", "DEDENT") or (found[at].kind == "ERROR" and not found[at].text):
        at += 1
    return found[at]


class _Stuck(Exception):
    """A token that does not fit: ends the reading of its line."""


class _Wrong(Exception):
    """A line that cannot be read on: ends the reading of that line."""

    def __init__(self, span: Span, message: str, related: tuple[str, Span] | None = None) -> None:
        super().__init__(message)
        self.fault = tree.SyntaxFault(span, message, related)


class _Reader:
    """Feeds the parser line by line; a line that fails is taken back and its names are fed instead."""

    def __init__(self) -> None:
        self.faults: list[tree.SyntaxFault] = []
        self.table = _table()
        self.states = [self.table.start]
        self.values: list[Any] = []
        self.skipped: list[bool] = []  # for each open INDENT, whether the parser has not seen it
        self.empty = False  # whether the innermost block has just begun
        self.tabbed = 0  # the last line with a tab
        self.spaced = 0  # the last line with a blank that is none
        self.header: list[Leaf] = []  # the last line
        self.bodiless = Position(sys.maxsize, 1)  # the first header without a body
        self.tabs = False  # whether a tab indents: how deep a line stands is then anyone's guess

    def read(self, found: list[Token]) -> tuple[tree.Node, ...]:
        """Read all tokens, comments apart."""
        at = 0
        while (token := found[at]).kind != "END":
            if token.kind == "INDENT":
                self._indent(_first(found, at))
            elif token.kind == "DEDENT":
                self._body_missing(_first(found, at))
                self._dedent(_first(found, at))
            elif token.kind == "ERROR" and not token.text:
                self._layout(_first(found, at), "this indentation matches no block above; indent as one of them is")
            elif token.kind == "ERROR" and token.text == "\t":
                self._tab(token.span)
                self.tabs = True
            else:
                begin = at
                while found[at].kind != "NEWLINE":
                    at += 1
                self._line(found[begin:at], found[at], found[at + 1 : at + 3])
            at += 1
        self._body_missing(token)
        return unfold(self._feed(Leaf("$END", "", token.span)))

    def _fault(self, span: Span, message: str, related: tuple[str, Span] | None = None) -> None:
        if span.begin.line != self.tabbed:  # a line with tabs gets its fault for them and no other for its layout
            self.faults.append(tree.SyntaxFault(span, message, related))

    def _layout(self, token: Token, message: str) -> None:
        if not self.tabs:
            self._fault(token.span, message)

    def _tab(self, span: Span) -> None:
        self._fault(span, "a tab; use spaces")
        self.tabbed = span.begin.line

    def _feed(self, leaf: Leaf) -> Any:
        """Take one token; the whole value for the last one. Raises _Stuck on one that does not fit."""
        states, values, rows = self.states, self.values, self.table.rows
        symbol = leaf.type
        while True:
            action = rows[states[-1]].get(symbol)
            if action is None:
                raise _Stuck
            if type(action) is not tuple:
                states.append(action)
                values.append(leaf)
                return None
            size, origin, build = action
            if build is None:
                states.pop()
            else:
                parts = values[len(values) - size :]
                del states[len(states) - size :], values[len(values) - size :]
                values.append(build(parts))
            states.append(rows[states[-1]][origin])
            if states[-1] == self.table.end:
                return values[-1]

    def _accepted(self) -> set[str]:
        """Return the terminals that would fit here."""
        return {symbol for symbol in self.table.rows[self.states[-1]] if symbol.isupper() and self._fits(symbol)}

    def _fits(self, *symbols: str) -> bool:
        """Tell whether these terminals would fit here, one after the other."""
        rows = self.table.rows
        states = list(self.states)
        for symbol in symbols:
            while type(action := rows[states[-1]].get(symbol)) is tuple:
                size, origin, _ = action
                del states[len(states) - size :]
                states.append(rows[states[-1]][origin])
            if action is None:
                return False
            states.append(action)
        return True

    def _wants_block(self) -> bool:
        return "INDENT" in self.table.rows[self.states[-1]]

    def _indent(self, token: Token) -> None:
        wanted = self._wants_block()
        self.skipped.append(not wanted)
        if wanted:
            self.empty = True
            self._feed(Leaf("INDENT", "", token.span))
        else:
            self._layout(token, "unexpected indentation; only a line after one that ends in : is indented further")

    def _dedent(self, token: Token) -> None:
        if self.skipped.pop():
            return
        if self.empty:  # nothing but a backslash stood there
            self._fault(token.span, NO_BLOCK)
            self._feed_all(made_up(token.span, "PASS", "NEWLINE"))
        self.empty = False
        self._feed(Leaf("DEDENT", "", token.span))

    def _body_missing(self, token: Token) -> None:
        """Put an empty block where one is missing in front of a token."""
        if self._wants_block():
            self._fault(token.span, NO_BLOCK)
            self._feed_all(made_up(token.span, "INDENT", "PASS", "NEWLINE", "DEDENT"))
            self.bodiless = min(self.bodiless, token.span.begin)
            if self.header and self.header[0].type == "DEF" and (names := bindings(parameters(self.header))):
                self._feed_all([*names, *made_up(token.span, "NEWLINE")])  # the body may follow, not indented

    def _feed_all(self, leaves: list[Leaf]) -> None:
        for leaf in leaves:
            self._feed(leaf)

    def _line(self, words: list[Token], newline: Token, behind: list[Token]) -> None:
        """Read one logical line; ``behind`` are the tokens that follow its end."""
        if not words:
            return
        if words[0].kind == "ERROR" and is_blank(words[0].text):  # how deep the line stands is anyone's guess
            self._fault(*broken(leaf_of(words[0])))
            self.tabbed = self.spaced = words[0].span.begin.line
        self._body_missing(words[0])
        self.empty = False
        kept = list(self.states), list(self.values)
        leaves = [leaf_of(word) for word in words]
        self.header = leaves
        opens = next((token.kind == "INDENT" for token in behind if token.text != "\t"), False)
        try:
            leaves = [leaf for leaf, behind_it in pairwise([*leaves, None]) if leaf and self._check(leaf, behind_it)]
            self._check_brackets(leaves, behind[0])
            if leaves and self._words([*leaves, Leaf("NEWLINE", "", newline.span)], opens=opens):
                return
        except _Wrong as wrong:
            self._fault(wrong.fault.span, wrong.fault.message, wrong.fault.related)
        self.states, self.values = kept
        # A line of nothing but strange blanks has no word left.
        self._feed_all(stand_in(leaves or made_up(newline.span, "PASS"), opens=opens))

    def _words(self, leaves: list[Leaf], *, opens: bool) -> bool:
        """Read the tokens of a line; where one does not fit, go on with what was meant, or behind it in its bracket."""
        since = _APART
        place = tries = 0
        while place < len(leaves):
            leaf = leaves[place]
            try:
                self._feed(leaf)
            except _Stuck:
                instead = None
                if since >= _APART:  # otherwise what was done about the last one did not help
                    if len(self.faults) < _MOST_FAULTS:
                        self._fault(leaf.span, message_for(leaves[: place + 1], self._accepted()))
                    instead = self._instead(leaves, place, opens=opens)
                if instead is None:
                    instead, place = self._behind(leaves, place)
                tries += 1
                if instead is None or tries > _TRIES:
                    return False
                self._feed_all(instead)
                since = 0
            place += 1
            since += 1
        return True

    def _instead(self, leaves: list[Leaf], place: int, *, opens: bool) -> list[Leaf] | None:
        """Return what was meant where a token does not fit: it behind what is missing, another one, or nothing."""
        leaf = leaves[place]
        if leaf.type == "STAR2" and self._fits("STAR"):
            return [Leaf("STAR", "*", leaf.span)]
        if leaf.type == "NEWLINE":
            return [Leaf("COLON", ":", leaf.span), leaf] if opens and self._fits("COLON", "NEWLINE") else None
        inside = _open_in(leaves[:place])
        if not inside:
            return None
        if leaf.type == "COMMA":
            return [] if leaves[place - 1].type in ("COMMA", *_OPENING) else None
        before = [each.type for each in leaves[place - 2 : place]]
        is_named = before in (["LPAR", "NAME"], ["COMMA", "NAME"]) and leaves[0].type != "DEF"
        if leaf.type == "COLON" and is_named and self._fits("ASSIGN"):
            return [Leaf("ASSIGN", "=", leaf.span)]
        if leaf.type == "ASSIGN" and inside[-1] == "LBRACE" and self._fits("COLON"):
            return [Leaf("COLON", ":", leaf.span)]
        tried = ["ASSIGN"] if is_named and leaves[place + 1].type != "ASSIGN" else []
        tried += ["COMMA", "COLON"] if inside[-1] == "LBRACE" else ["COMMA"]
        return next(([Leaf(each, "", leaf.span), leaf] for each in tried if self._fits(each, leaf.type)), None)

    def _behind(self, leaves: list[Leaf], place: int) -> tuple[list[Leaf] | None, int]:
        """Return how to go on at the next comma or at the end of the bracket, and which token that is."""
        inside, depth = _open_in(leaves[:place]), 0
        ends_list = leaves[place].type == "COMMA" or leaves[place - 1].type == "LSQB"
        if not inside or (inside[-1] == "LSQB" and ends_list):
            return None, place  # nothing is open, or what was read as an index is a list
        for index in range(place, len(leaves)):
            leaf = leaves[index]
            if depth == 0 and (leaf.type == "COMMA" or leaf.type in _CLOSING):
                if self._fits(leaf.type):
                    return [leaf], index
                if self._fits("NAME", leaf.type):
                    return [*made_up(leaf.span, "NAME"), leaf], index
                if leaf.type in _CLOSING:
                    break
            depth += (leaf.type in _OPENING) - (leaf.type in _CLOSING)
        return None, place

    def _check(self, leaf: Leaf, behind: Leaf | None) -> bool:
        """Report what is wrong with a token by itself; False when it is to be skipped."""
        if leaf.type == "ERROR" and leaf.text == "\t":
            self._tab(leaf.span)
            return False
        if leaf.type == "ERROR" and is_blank(leaf.text):
            if self.spaced != leaf.span.begin.line:
                self._fault(*broken(leaf))
            self.spaced = leaf.span.begin.line
            return False
        if leaf.type == "ERROR":
            wrong = _Wrong(*broken(leaf))
            if wrong.fault.span != leaf.span or leaf.text[0] != "f":
                raise wrong
            self._fault(*broken(leaf))  # an f-string is a string for the rest of its line
            leaf.type, leaf.value = "STRING", ""
        if leaf.type == "RESERVED":
            raise _Wrong(leaf.span, reserved(leaf.text, names=behind is not None and behind.type == "ASSIGN"))
        if leaf.type == "INT" and leaf.text[0] == "0" and leaf.text.isdecimal() and len(leaf.text) > 1:
            self._fault(leaf.span, "a number does not begin with 0; an octal one begins with 0o")
        if leaf.type == "STRING" and leaf.value is None:
            self._fault(leaf.span, 'a bad escape in this string; write \\\\ for a backslash, or r"…"')
            leaf.value = ""
        return True

    def _check_brackets(self, leaves: list[Leaf], behind: Token) -> None:
        """Report the brackets of a line that are not closed; ``behind`` is what follows the line."""
        stack: list[Leaf] = []
        for leaf in leaves:
            if leaf.type in _OPENING:
                stack.append(leaf)
            elif leaf.type in _CLOSING:
                if not stack:
                    raise _Wrong(leaf.span, f'unexpected "{leaf.text}"; no bracket is open here')
                last = stack.pop()
                if _CLOSERS[last.text] != leaf.text:
                    note = f'"{leaf.text}" stands where "{_CLOSERS[last.text]}" belongs'
                    raise _Wrong(last.span, f'"{last.text}" is never closed', (note, leaf.span))
        note = "the file ends here" if behind.kind == "END" else "the next statement begins here"
        for place, last in enumerate(stack):
            wrong = _Wrong(last.span, f'"{last.text}" is never closed', (note, behind.span))
            if place == len(stack) - 1:
                raise wrong
            self._fault(last.span, wrong.fault.message, wrong.fault.related)

"""From a source to its syntax tree, with every syntax error that can be told apart: the only owner of lark.

Text in, tree.Source out; never an exception. The tokens are those of scan.py, the grammar stands in
starlark.lark. A line that does not parse is replaced by the names that it would have bound, so that one
mistake is one fault. A source that compiles without a mistake is never brought here.
"""

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from crucible.compiler.frontend import tree
from crucible.compiler.frontend.scan import RESERVED, Token, string_value, tokens
from crucible.schemas.span import Position, Span

if TYPE_CHECKING:
    import lark

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
_LEVELS = {"|": 1, "^": 2, "&": 3, "<<": 4, ">>": 4, "+": 5, "-": 5, "*": 6, "/": 6, "//": 6, "%": 6}
_CONSTANTS = {"True": True, "False": False, "None": None}
_MOST_DIGITS = 4_000
_CLOSERS = {"(": ")", "[": "]", "{": "}"}


class _Leaf:
    """A token as lark takes it: ``type`` is the terminal, ``value`` what a literal stands for."""

    __slots__ = ("span", "text", "type", "value")

    def __init__(self, terminal: str, text: str, span: Span, value: Any = None) -> None:
        self.type = terminal
        self.text = text
        self.span = span
        self.value = value


class _Paren:
    """An expression in parentheses: the node keeps its own span, what stands around it takes theirs."""

    __slots__ = ("node", "span")

    def __init__(self, node: tree.Node, span: Span) -> None:
        self.node = node
        self.span = span


def _bare(value: Any) -> Any:
    return value.node if type(value) is _Paren else value


def _over(first: Any, last: Any) -> Span:
    return Span(first.span.begin, last.span.end)


def _name(leaf: _Leaf) -> tree.Name:
    return tree.Name(leaf.span, leaf.text)


class _Builder:
    """What lark calls for each rule of the grammar, by the rule's name or alias; it has no state."""

    # Lists. Within a line they are Python lists; across lines (block, text) pairs, see _unfold.

    def first(self, parts: list[Any]) -> list[Any]:
        return [parts[0]]

    def more(self, parts: list[Any]) -> list[Any]:
        parts[0].append(parts[-1])
        return parts[0]  # type: ignore[no-any-return]

    def two(self, parts: list[Any]) -> list[Any]:
        return [parts[0], parts[2]]

    def items(self, parts: list[Any]) -> list[Any]:
        return parts[0]  # type: ignore[no-any-return]

    target_items = parameters = items

    # Statements

    def nothing(self, _parts: list[Any]) -> None:
        return None

    def source(self, parts: list[Any]) -> Any:
        return parts[0]

    def first_of_block(self, parts: list[Any]) -> Any:
        return (None, parts[0])

    def more_of_block(self, parts: list[Any]) -> Any:
        return (parts[0], parts[1])

    def line(self, parts: list[Any]) -> list[tree.Node]:
        return parts[0]  # type: ignore[no-any-return]

    def short_suite(self, parts: list[Any]) -> tuple[tree.Node, ...]:
        return tuple(parts[1])

    def long_suite(self, parts: list[Any]) -> tuple[tree.Node, ...]:
        return _unfold(parts[3])

    def first_arm(self, parts: list[Any]) -> Any:
        return (None, parts)

    def more_arms(self, parts: list[Any]) -> Any:
        return (parts[0], parts[1:])

    def if_(self, parts: list[Any]) -> tree.If:
        return _conditional_blocks(parts[0], ())

    def if_else(self, parts: list[Any]) -> tree.If:
        return _conditional_blocks(parts[0], parts[2])

    def loop(self, parts: list[Any]) -> list[Any]:
        return parts

    def for_(self, parts: list[Any]) -> tree.For:
        (word, target, _, value), body = parts
        return tree.For(_over(word, body[-1]), _bare(target), _bare(value), body)

    def signature(self, parts: list[Any]) -> list[Any]:
        return [parts[0], _name(parts[1]), tuple(parts[3]) if len(parts) > 4 else ()]

    def def_(self, parts: list[Any]) -> tree.Def:
        (word, name, parameters), body = parts
        return tree.Def(_over(word, body[-1]), name, parameters, body)

    def expression(self, parts: list[Any]) -> tree.ExprStatement:
        return tree.ExprStatement(parts[0].span, _bare(parts[0]))

    def assign(self, parts: list[Any]) -> tree.Assign:
        target, op, value = parts
        return tree.Assign(_over(target, value), _bare(target), op.text, _bare(value))

    def return_(self, parts: list[Any]) -> tree.Return:
        return tree.Return(_over(parts[0], parts[-1]), _bare(parts[1]) if len(parts) > 1 else None)

    def keyword(self, parts: list[Any]) -> tree.Keyword:
        return tree.Keyword(parts[0].span, parts[0].text)

    def load(self, parts: list[Any]) -> tree.Load:
        path, *symbols = parts[2]
        return tree.Load(_over(parts[0], parts[-1]), path.symbol, tuple(symbols))

    def symbol(self, parts: list[Any]) -> tree.LoadSymbol:
        symbol = tree.Literal(parts[-1].span, parts[-1].value)
        local = _name(parts[0]) if len(parts) > 1 else tree.Name(symbol.span, parts[0].value)
        return tree.LoadSymbol(_over(parts[0], parts[-1]), symbol, local)

    def parameter(self, parts: list[Any]) -> tree.Parameter:
        if parts[0].type != "NAME":
            return tree.Parameter(_over(*parts), _name(parts[1]), None, parts[0].text)
        default = _bare(parts[2]) if len(parts) > 1 else None
        return tree.Parameter(_over(parts[0], parts[-1]), _name(parts[0]), default)

    # Expressions

    def bare_tuple(self, parts: list[Any]) -> tree.ListExpr:
        items = parts[0]
        return tree.ListExpr(_over(items[0], items[-1]), tuple(map(_bare, items)), is_tuple=True)

    def tuple_(self, parts: list[Any]) -> tree.ListExpr:
        items = parts[1] if len(parts) > 2 else []
        return tree.ListExpr(_over(parts[0], parts[-1]), tuple(map(_bare, items)), is_tuple=True)

    def list_(self, parts: list[Any]) -> tree.ListExpr:
        inside = parts[1] if len(parts) > 2 else []
        items = inside if type(inside) is list else [inside]
        return tree.ListExpr(_over(parts[0], parts[-1]), tuple(map(_bare, items)))

    def paren(self, parts: list[Any]) -> _Paren:
        return _Paren(_bare(parts[1]), _over(parts[0], parts[-1]))

    def dict_(self, parts: list[Any]) -> tree.DictExpr:
        return tree.DictExpr(_over(parts[0], parts[-1]), tuple(parts[1]) if len(parts) > 2 else ())

    def entry(self, parts: list[Any]) -> tuple[tree.Node, tree.Node]:
        return _bare(parts[0]), _bare(parts[2])

    def comprehension(self, parts: list[Any]) -> tree.Comprehension:
        begin, value, clauses, end = parts
        made = value if type(value) is tuple else (_bare(value),)
        return tree.Comprehension(_over(begin, end), made, tuple(clauses))

    def clause(self, parts: list[Any]) -> tree.Clause:
        return tree.Clause(_over(parts[0], parts[-1]), _bare(parts[1]), _bare(parts[3]))

    def condition(self, parts: list[Any]) -> list[tree.Clause]:
        clauses: list[tree.Clause] = parts[0]
        clauses.append(tree.Clause(_over(parts[1], parts[2]), None, _bare(parts[2])))
        return clauses

    def name(self, parts: list[Any]) -> tree.Node:
        leaf = parts[0]
        if leaf.text in _CONSTANTS:
            return tree.Literal(leaf.span, _CONSTANTS[leaf.text])
        return _name(leaf)

    def literal(self, parts: list[Any]) -> tree.Literal:
        return tree.Literal(parts[0].span, parts[0].value)

    def attribute(self, parts: list[Any]) -> tree.Attribute:
        return tree.Attribute(_over(parts[0], parts[2]), _bare(parts[0]), _name(parts[2]))

    def call(self, parts: list[Any]) -> tree.Call:
        arguments = tuple(parts[2]) if len(parts) > 3 else ()
        return tree.Call(_over(parts[0], parts[-1]), _bare(parts[0]), arguments)

    def argument(self, parts: list[Any]) -> tree.Argument:
        span = _over(parts[0], parts[-1])
        if len(parts) == 1:
            return tree.Argument(span, _bare(parts[0]))
        if len(parts) == 2:
            return tree.Argument(span, _bare(parts[1]), None, parts[0].text)
        return tree.Argument(span, _bare(parts[2]), _name(parts[0]))

    def index_(self, parts: list[Any]) -> tree.Index:
        value, _, (within, is_slice), end = parts
        return tree.Index(_over(value, end), _bare(value), within, is_slice)

    def index(self, parts: list[Any]) -> tuple[tuple[tree.Node, ...], bool]:
        return tuple(_bare(part) for part in parts[::2]), False

    def slice(self, parts: list[Any]) -> tuple[tuple[tree.Node, ...], bool]:
        return tuple(_bare(part) for part in parts[::2] if part is not None), True

    def part(self, parts: list[Any]) -> Any:
        return parts[0]

    no_part = nothing

    def conditional(self, parts: list[Any]) -> tree.Conditional:
        then, _, test, _, otherwise = parts
        return tree.Conditional(_over(then, otherwise), _bare(test), _bare(then), _bare(otherwise))

    def lambda_(self, parts: list[Any]) -> tree.Lambda:
        parameters = tuple(parts[1]) if len(parts) > 3 else ()
        return tree.Lambda(_over(parts[0], parts[-1]), parameters, _bare(parts[-1]))

    def binary(self, parts: list[Any]) -> tree.Binary:
        left, op, right = parts
        return tree.Binary(_over(left, right), op.text, _bare(left), _bare(right))

    def not_in(self, parts: list[Any]) -> tree.Binary:
        left, right = parts[0], parts[3]
        return tree.Binary(_over(left, right), "not in", _bare(left), _bare(right))

    def unary(self, parts: list[Any]) -> tree.Unary:
        return tree.Unary(_over(*parts), parts[0].text, _bare(parts[1]))

    def three(self, parts: list[Any]) -> list[Any]:
        return parts

    def two_more(self, parts: list[Any]) -> list[Any]:
        parts[0].extend(parts[1:])
        return parts[0]  # type: ignore[no-any-return]

    def arithmetic(self, parts: list[Any]) -> Any:
        """Give a flat chain of operands and operators its precedence; all of it is left-associative."""
        operands: list[Any] = []
        waiting: list[_Leaf] = []
        for place, part in enumerate(parts[0]):
            if place % 2 == 0:
                operands.append(part)
                continue
            while waiting and _LEVELS[waiting[-1].text] >= _LEVELS[part.text]:
                operands[-2:] = [self.binary([operands[-2], waiting.pop(), operands[-1]])]
            waiting.append(part)
        while waiting:
            operands[-2:] = [self.binary([operands[-2], waiting.pop(), operands[-1]])]
        return operands[0]


setattr(_Builder, "def", _Builder.def_)  # noqa: B010 - a rule of the grammar has that name


def _unfold(pairs: Any) -> tuple[tree.Node, ...]:
    """Return the statements of a block that was folded into pairs, in order."""
    found: list[tree.Node] = []
    while pairs:
        pairs, last = pairs
        found.extend(reversed(last) if type(last) is list else [last])
    return tuple(reversed(found))


def _conditional_blocks(arms: Any, otherwise: tuple[tree.Node, ...]) -> tree.If:
    while True:
        arms, (word, test, body) = arms
        arm = tree.If(_over(word, (otherwise or body)[-1]), _bare(test), body, otherwise)
        if not arms:
            return arm
        otherwise = (arm,)


@functools.cache
def _grammar() -> "lark.Lark":
    """Build the parser, once a process: an immutable table that no two calls can see change."""
    from lark import Lark
    from lark.lexer import Lexer

    class Tokens(Lexer):
        """Hands over what it is given: the tokens come from scan.py."""

        def __init__(self, _conf: object) -> None:
            pass

        def lex(self, data: Any) -> Iterator[Any]:  # type: ignore[override]
            return iter(data)

    return Lark.open(
        "starlark.lark", rel_to=__file__, parser="lalr", lexer=Tokens, start="source", maybe_placeholders=False,
        transformer=_Builder(),
    )  # fmt: skip


def parse(text: str) -> tree.Source:
    """Read a source that guard() has let pass; whatever is wrong with it is among the faults.

    The faults are those that the evaluator's parser has, but for a repeated named argument, in order of
    their places.
    """
    reader = _Reader()
    comments: list[tree.Comment] = []
    found: list[Token] = []
    for token in tokens(text):
        if token.kind == "COMMENT":
            comments.append(tree.Comment(token.span, token.text[1:]))
        else:
            found.append(token)
    statements = reader.read(found)
    faults = sorted([*reader.faults, *_misplaced(statements)], key=lambda fault: fault.span)
    return tree.Source(statements, tuple(comments), tuple(faults))


class _Wrong(Exception):  # noqa: N818 - never leaves this file
    """A line that cannot be read on: ends the reading of that line."""

    def __init__(self, span: Span, message: str, related: tuple[str, Span] | None = None) -> None:
        super().__init__(message)
        self.fault = tree.SyntaxFault(span, message, related)


class _Reader:
    """Feeds the parser line by line; a line that fails is taken back and its names are fed instead."""

    def __init__(self) -> None:
        self.faults: list[tree.SyntaxFault] = []
        self.parser = _grammar().parse_interactive()
        self.state = self.parser.parser_state
        self.skipped: list[bool] = []  # for each open INDENT, whether the parser has not seen it
        self.tabbed = 0  # the last line with a tab

    def read(self, found: list[Token]) -> tuple[tree.Node, ...]:
        """Read all tokens, comments apart."""
        at = 0
        while (token := found[at]).kind != "END":
            if token.kind == "INDENT":
                self._indent(token)
            elif token.kind == "DEDENT":
                self._body_missing(token)
                if not self.skipped.pop():
                    self._feed(_Leaf("DEDENT", "", token.span))
            elif token.kind == "ERROR" and not token.text:
                self._fault(token.span, "this indentation matches no block above; indent as one of them is")
            elif token.kind == "ERROR" and token.text == "\t":
                self._tab(token)
            else:
                begin = at
                while found[at].kind != "NEWLINE":
                    at += 1
                self._line(found[begin:at], found[at], found[at + 1 :at + 3])
            at += 1
        self._body_missing(token)
        return _unfold(self._feed(_Leaf("$END", "", token.span)))

    def _fault(self, span: Span, message: str, related: tuple[str, Span] | None = None) -> None:
        if span.begin.line != self.tabbed:  # a line with tabs gets its fault for them and no other for its layout
            self.faults.append(tree.SyntaxFault(span, message, related))

    def _tab(self, token: Token) -> None:
        self._fault(token.span, "a tab; use spaces")
        self.tabbed = token.span.begin.line

    def _feed(self, leaf: _Leaf) -> Any:
        return self.state.feed_token(leaf, leaf.type == "$END")  # type: ignore[arg-type]

    def _wants_block(self) -> bool:
        return "INDENT" in self.parser.choices()

    def _indent(self, token: Token) -> None:
        wanted = self._wants_block()
        self.skipped.append(not wanted)
        if wanted:
            self._feed(_Leaf("INDENT", "", token.span))
        else:
            self._fault(token.span, "unexpected indentation; only a line after one that ends in : is indented further")

    def _body_missing(self, token: Token) -> None:
        """Put an empty block where one is missing in front of a token."""
        if self._wants_block():
            self._fault(token.span, "expected an indented block after the line that ends in :")
            for terminal in ("INDENT", "PASS", "NEWLINE", "DEDENT"):
                self._feed(_Leaf(terminal, "pass", token.span))

    def _line(self, words: list[Token], newline: Token, behind: list[Token]) -> None:
        """Read one logical line; ``behind`` are the tokens that follow its end."""
        from lark.exceptions import UnexpectedToken

        if not words:
            return
        self._body_missing(words[0])
        state = self.state
        kept = list(state.state_stack), list(state.value_stack)
        leaves = [_leaf(word) for word in words]
        opens = next((token.kind == "INDENT" for token in behind if token.text != "\t"), False)
        read: list[_Leaf] = []
        try:
            leaves = [leaf for leaf in leaves if self._check(leaf)]
            self._check_brackets(leaves, behind[0])
            for leaf in [*leaves, _Leaf("NEWLINE", "", newline.span)]:
                read.append(leaf)
                self._feed(leaf)
            return
        except UnexpectedToken:
            self._fault(read[-1].span, _message(read, self.parser.accepts()))
        except _Wrong as wrong:
            self._fault(wrong.fault.span, wrong.fault.message, wrong.fault.related)
        state.state_stack[:], state.value_stack[:] = kept
        for leaf in _stand_in(leaves, opens=opens):
            self._feed(leaf)

    def _check(self, leaf: _Leaf) -> bool:
        """Report what is wrong with a token by itself; False when it is to be skipped."""
        if leaf.type == "ERROR":
            if leaf.text != "\t":
                raise _Wrong(*_broken(leaf))
            self._fault(leaf.span, "a tab; use spaces")
            self.tabbed = leaf.span.begin.line
            return False
        if leaf.type == "RESERVED":
            raise _Wrong(leaf.span, f'"{leaf.text}" is a reserved word; {_INSTEAD.get(leaf.text, _NO_NAME)}')
        if leaf.type == "INT" and leaf.text[0] == "0" and leaf.text.isdecimal() and len(leaf.text) > 1:
            self._fault(leaf.span, "a number does not begin with 0; an octal one begins with 0o")
        if leaf.type == "STRING" and leaf.value is None:
            self._fault(leaf.span, 'a bad escape in this string; write \\\\ for a backslash, or r"…"')
            leaf.value = ""
        return True

    def _check_brackets(self, leaves: list[_Leaf], behind: Token) -> None:
        """Report the brackets of a line that are not closed; ``behind`` is what follows the line."""
        stack: list[_Leaf] = []
        for leaf in leaves:
            if leaf.text in _CLOSERS and leaf.type in _SIGNS.values():
                stack.append(leaf)
            elif leaf.type in ("RPAR", "RSQB", "RBRACE"):
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


_NO_NAME = "choose another name"
_INSTEAD = {
    "while": "loop with for over a range",
    "class": "there are no classes; use a dict or a def",
    "import": "bring names in with load()",
    "from": "bring names in with load()",
    "is": "compare with ==",
    "raise": "end with fail()",
    "assert": "end with fail() under an if",
    "try": "there are no exceptions to catch",
    "except": "there are no exceptions to catch",
    "finally": "there are no exceptions to catch",
    "global": "a def cannot assign to a name outside it",
    "nonlocal": "a def cannot assign to a name outside it",
    "yield": "return a list",
}


def _leaf(token: Token) -> _Leaf:
    """Turn a token of scan.py into one of the grammar."""
    kind, text, value = token.kind, token.text, None
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
    return _Leaf(kind, text, token.span, value)


def _integer(text: str) -> int:
    """Return the value of an integer; one of very many digits, which Python would not print, is cut down."""
    if len(text) > _MOST_DIGITS:
        return 10**_MOST_DIGITS
    base = {"x": 16, "o": 8, "b": 2}.get(text[1:2].lower(), 10)
    return int(text, base)


def _broken(leaf: _Leaf) -> tuple[Span, str]:
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
        begin = span.begin
        first = Span(begin, Position(begin.line, begin.column + len(text) - len(text.lstrip("fr")) + len(quote)))
        return first, f"this string is never closed; end it with {quote}" + (" in the same line" if len(quote) == 1 else "")
    return span, f'unexpected "{text}"' if text.isprintable() else f"unexpected character U+{ord(text):04X}"


_SHOWN = {
    "COLON": '":"', "ELSE": '"else"', "IN": '"in"', "LPAR": '"("', "COMMA": '","', "RPAR": '")"', "RSQB": '"]"',
    "RBRACE": '"}"',
}  # fmt: skip


def _message(read: list[_Leaf], accepts: set[str]) -> str:
    """Say what is wrong with the last of the tokens that were read of a line, then what would be right."""
    last = read[-1]
    before = read[-2] if len(read) > 1 else _Leaf("NEWLINE", "", last.span)
    wrong = "unexpected end of the line" if last.type == "NEWLINE" else f'unexpected "{_short(last.text)}"'
    if last.type == "STRING" and before.type == "STRING":
        return "two strings side by side; join them with +"
    if last.type == "STRING" and before.type == "NAME" and before.span.end == last.span.begin:
        return f'"{before.text}" is no prefix of a string; only r is'
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
    if last.type == "COLON" and "ASSIGN" in accepts and "NEWLINE" in accepts:
        return f"{wrong}; type annotations are not allowed, leave them out"
    if last.type in ("DEF", "FOR", "IF", "LOAD") and len(read) > 1 and "INT" in accepts:
        return f'{wrong}; it begins a line of its own'
    return f"{wrong}; expected {_expected(accepts)}"


def _short(text: str) -> str:
    line = text.split("\n", 1)[0]
    return line if len(line) <= 40 and line == text else line[:39] + "…"


def _expected(accepts: set[str]) -> str:
    if "INT" in accepts:
        return "an expression"
    if "NEWLINE" in accepts:
        return "an operator or the end of the line"
    if "NAME" in accepts:
        return "a name"
    shown = [text for terminal, text in _SHOWN.items() if terminal in accepts]
    return " or ".join(shown) if shown else "a string"


_WORDS = {"NAME": "None", "STRING": '""', "PASS": "pass", "IF": "if", "ASSIGN": "="}


def _made(span: Span, *terminals: str) -> list[_Leaf]:
    return [_Leaf(terminal, _WORDS.get(terminal, ""), span, "") for terminal in terminals]


def _stand_in(leaves: list[_Leaf], *, opens: bool) -> list[_Leaf]:
    """Return a line that binds the names which a line that cannot be read seems to bind.

    ``opens`` tells whether an indented block follows, so that the stand-in is its header.
    """
    span = leaves[-1].span
    header: list[_Leaf] = []
    if leaves[0].type == "DEF" and len(leaves) > 1 and leaves[1].type == "NAME":
        header = [*leaves[:2], *_made(span, "LPAR"), *_parameters(leaves), *_made(span, "RPAR")]
    elif leaves[0].type == "FOR":
        header = [leaves[0], *(_leading_names(leaves[1:]) or _made(span, "NAME")), *_made(span, "IN", "NAME")]
    elif opens:
        header = _made(span, "IF", "NAME")
    if header:
        return header + (_made(span, "COLON", "NEWLINE") if opens else _made(span, "COLON", "PASS", "NEWLINE"))
    made: list[_Leaf] = []
    for small in _split(leaves):
        targets = _leading_names(small)
        if small[0].type == "LOAD":
            made += _load(small)
        elif targets and [leaf.type for leaf in small[len(targets) :][:1]] in (["ASSIGN"], ["COLON"]):
            made += [*targets, *_made(span, "ASSIGN", "NAME", "SEMICOLON")]
    return made + _made(span, "PASS", "NEWLINE")


def _parameters(leaves: list[_Leaf]) -> list[_Leaf]:
    """Return the names of the parameters of a def as plain parameters."""
    known: dict[str, _Leaf] = {}
    for before, leaf in zip(leaves[2:], leaves[3:], strict=False):
        if leaf.type == "NAME" and before.type in ("LPAR", "COMMA", "STAR", "STAR2"):
            known.setdefault(leaf.text, leaf)
    return [part for leaf in known.values() for part in (leaf, *_made(leaf.span, "COMMA"))]


def _leading_names(leaves: list[_Leaf]) -> list[_Leaf]:
    """Return the names between commas that a line begins with, with the commas between them."""
    found: list[_Leaf] = []
    for place, leaf in enumerate(leaves):
        if leaf.type != ("COMMA" if place % 2 else "NAME"):
            break
        found.append(leaf)
    return found[: len(found) - 1 + len(found) % 2] if found else []


def _split(leaves: list[_Leaf]) -> list[list[_Leaf]]:
    """Cut a line at its semicolons."""
    parts: list[list[_Leaf]] = [[]]
    for leaf in leaves:
        if leaf.type == "SEMICOLON":
            parts.append([])
        else:
            parts[-1].append(leaf)
    return [part for part in parts if part]


def _load(leaves: list[_Leaf]) -> list[_Leaf]:
    """Return a load statement of what can be recognised in a broken one, with a semicolon; [] if too little can."""
    symbols: list[_Leaf] = []
    strings = [place for place, leaf in enumerate(leaves) if leaf.type == "STRING"]
    for place in strings[1:]:
        alias = leaves[place - 2 : place] if [leaf.type for leaf in leaves[place - 2 : place]] == ["NAME", "ASSIGN"] else []
        symbols += [*_made(leaves[place].span, "COMMA"), *alias, leaves[place]]
    if not symbols:
        return []
    for place in strings:
        leaves[place].value = leaves[place].value or ""
    span = leaves[-1].span
    return [leaves[0], *_made(span, "LPAR"), leaves[strings[0]], *symbols, *_made(span, "RPAR", "SEMICOLON")]


def _misplaced(statements: tuple[tree.Node, ...]) -> Iterator[tree.SyntaxFault]:
    """Find what the grammar lets pass and the language does not, anywhere under some statements."""
    waiting: list[tuple[tree.Node, _Around]] = [(statement, _Around(True, False, False)) for statement in statements]
    while waiting:
        node, around = waiting.pop()
        yield from _faults_of(node, around)
        inside = around
        if isinstance(node, tree.Def):
            inside = _Around(False, True, False)
        elif isinstance(node, tree.For):
            inside = _Around(False, around.function, True)
        elif isinstance(node, tree.If):
            inside = around._replace(top=False)
        waiting.extend((child, inside) for child in tree.children(node))


class _Around(NamedTuple):
    """What stands around a statement."""

    top: bool
    function: bool
    loop: bool


def _faults_of(node: tree.Node, around: _Around) -> Iterator[tree.SyntaxFault]:
    match node:
        case tree.Return() if not around.function:
            yield tree.SyntaxFault(node.span, '"return" outside a def')
        case tree.Keyword(word=word) if word != "pass" and not around.loop:
            yield tree.SyntaxFault(node.span, f'"{word}" outside a for loop')
        case tree.Load():
            if not around.top:
                yield tree.SyntaxFault(node.span, '"load" inside a block; it stands at the top level')
            if not node.symbols:
                yield tree.SyntaxFault(node.path.span, "load() names no symbol; write load(path, \"symbol\")")
        case tree.Assign():
            if node.op != "=" and isinstance(node.target, tree.ListExpr):
                yield tree.SyntaxFault(node.target.span, f'"{node.op}" changes one variable, not a list of them')
            else:
                yield from _bad_targets(node.target)
        case tree.For() | tree.Clause() if node.target is not None:
            yield from _bad_targets(node.target)
        case tree.Def() | tree.Lambda():
            yield from _bad_parameters(node.parameters)
        case tree.Call():
            yield from _bad_arguments(node.arguments)


def _bad_targets(target: tree.Node) -> Iterator[tree.SyntaxFault]:
    waiting = [target]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tree.ListExpr):
            waiting.extend(node.elements)
        elif isinstance(node, tree.Index):
            if node.is_slice or len(node.parts) > 1:
                yield tree.SyntaxFault(node.span, "cannot assign to a slice; assign to a name, an index or an attribute")
        elif not isinstance(node, tree.Name | tree.Attribute) and not _is_constant(node):
            yield tree.SyntaxFault(node.span, "cannot assign to this; assign to a name, an index or an attribute")


def _is_constant(node: tree.Node) -> bool:
    """Tell whether a node is True, False or None: names as far as the grammar is concerned."""
    return isinstance(node, tree.Literal) and (node.value is None or isinstance(node.value, bool))


def _bad_parameters(parameters: tuple[tree.Parameter, ...]) -> Iterator[tree.SyntaxFault]:
    known: set[str] = set()
    stars = ""
    defaults = False
    for parameter in parameters:
        name, star = parameter.name, parameter.star
        if name.id in known:
            yield tree.SyntaxFault(name.span, f'a second parameter named "{name.id}"; rename one of them')
        known.add(name.id)
        if stars == "**":
            yield tree.SyntaxFault(parameter.span, "a parameter behind **; that one is the last")
        elif star == "*" and stars:
            yield tree.SyntaxFault(parameter.span, "a second * parameter; there is at most one")
        elif not star and not stars and defaults and parameter.default is None:
            yield tree.SyntaxFault(parameter.span, "a parameter without a default behind one that has one; put it first")
        stars = star or stars
        defaults = defaults or parameter.default is not None


def _bad_arguments(arguments: tuple[tree.Argument, ...]) -> Iterator[tree.SyntaxFault]:
    named = False
    stars = ""
    for argument in arguments:
        if argument.star:
            if argument.star == stars or stars == "**":
                yield tree.SyntaxFault(argument.span, f"{argument.star} behind {stars}; each comes once, * before **")
            stars = argument.star
        elif argument.name is not None:
            named = True
            if stars:
                yield tree.SyntaxFault(argument.span, f"a named argument behind {stars}; put it before")
        elif named or stars:
            yield tree.SyntaxFault(argument.span, "a positional argument behind a named one; put it first, or name it")

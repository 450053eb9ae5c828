"""The source before any parser: bytes to text, the ceilings that protect a parser, tokens, the lane.

One master expression cuts a text into tokens exactly as the evaluator's own lexer does; everything
here is a loop over its matches. Nothing recurses and nothing raises, whatever the input: what is
found here is what makes it safe to hand the text to parsers that do recurse.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from crucible.compiler.frontend.limits import Limits
from crucible.schemas.span import Position, Span


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


class Fault(NamedTuple):
    """A diagnostic of this stage, before the file is known."""

    code: str
    message: str
    span: Span | None
    related: tuple[str, Span] | None = None


class Lane(NamedTuple):
    """The lane as written: its name and the literal's place, or what is wrong with it."""

    name: str | None = None
    span: Span | None = None
    fault: Fault | None = None


RESERVED: Final = frozenset(
    "as assert async await class del except finally from global import is nonlocal raise try while with yield".split()
)
KEYWORDS: Final = RESERVED | frozenset(
    "and break continue def elif else for if in lambda load not or pass return".split()
)

_STRING_BODY = (
    r"(?:'''[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+'''"
    r'|"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+"""'
    r"|'(?!'')[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'"
    r'|"(?!"")[^"\\\n]*+(?:\\.[^"\\\n]*+)*+")'
)

# The groups of _TOKEN, in order.
_STRING, _BROKEN, _NAME, _FLOAT, _INT, _OPEN, _CLOSE, _OP, _NEWLINE, _COMMENT, _OTHER = range(1, 12)

_TOKEN = re.compile(
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
_KINDS = ("", "STRING", "ERROR", "NAME", "FLOAT", "INT", "OP", "OP", "OP", "NEWLINE", "COMMENT", "ERROR")
_OPENER = {")": "(", "]": "[", "}": "{"}
_BLANK = " \t\r\n"


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


def place(text: str, begin: int, end: int) -> Span:
    """Return the span of ``text[begin:end]``."""
    first = Position(text.count("\n", 0, begin) + 1, begin - text.rfind("\n", 0, begin))
    last = Position(first.line + text.count("\n", begin, end), end - text.rfind("\n", 0, end))
    return Span(first, last)


def _matches(text: str) -> Iterator[re.Match[str]]:
    """Iterate over the tokens of a text, behind the blanks that it begins with."""
    return _TOKEN.finditer(text, len(text) - len(text.lstrip(_BLANK)))


def _width(blank: str) -> int:
    """Return the indentation of the line that a run of blanks leads to; a tab counts as 8, as the lexer has it."""
    line = blank[blank.rfind("\n") + 1 :]
    return (
        len(line)
        if line.isspace() and "\t" not in line and "\r" not in line
        else line.count(" ") + 8 * line.count("\t")
    )


class _Level:
    """What the guard has counted in one bracket, or outside all of them.

    A *piece* is what stands between two commas, colons or line ends. ``run`` counts the unary operators
    in a row, ``postfix`` the calls, indices and attributes of the current operand, ``operators`` the
    binary operators and ``deep`` the lambdas and conditionals of the piece, ``pending`` its lambdas
    before their colon, ``clauses`` those of a comprehension. ``height``, ``tallest`` and ``best`` bound
    the height of the syntax tree under the operand, the piece and the bracket.
    """

    __slots__ = ("base", "best", "clauses", "deep", "height", "operators", "pending", "postfix", "run", "tallest")

    def __init__(self, base: int) -> None:
        self.base = base
        self.run = self.postfix = self.operators = self.deep = self.pending = self.clauses = 0
        self.height = self.tallest = self.best = 0

    def depth(self) -> int:
        """Return how many levels enclose what comes next."""
        return self.base + self.deep + self.run

    def next_operand(self) -> None:
        """End the current operand."""
        self.tallest = max(self.tallest, self.height + self.run + min(self.operators, _PRECEDENCES))
        self.height = self.run = self.postfix = 0

    def next_piece(self) -> None:
        """End the current piece."""
        self.next_operand()
        self.best = max(self.best, self.tallest + _LAMBDA * self.deep)
        self.tallest = self.operators = self.deep = self.pending = 0


# How much of the evaluator's stack one level takes, in levels of a binary operator (which are the
# smallest): rounded up from where each of them alone ends the process.
_LAMBDA, _ARM, _BRACKET = 3, 2, 2
_PRECEDENCES = 9  # of binary operators: so many of those before it may stand above an operand


class _Guard:
    """The state of guard(): feed it the tokens in order; each answer is a message or None."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.level = _Level(0)
        self.outer: list[_Level] = []
        self.blocks = [0]
        self.arms = [0]
        self.after = False  # whether an operand has just ended
        self.member = False  # whether that was, or the next is, the name behind a dot

    def statement(self, width: int) -> str | None:
        """Begin a statement that is indented so far."""
        self.after = self.member = False
        while width < self.blocks[-1]:
            self.blocks.pop()
            self.arms.pop()
        if width > self.blocks[-1]:
            self.blocks.append(width)
            self.arms.append(0)
        self.level = _Level(len(self.blocks) - 1)
        return self._deep()

    def end(self) -> str | None:
        """End a statement or a bracket."""
        level = self.level
        level.next_piece()
        height = level.best + level.clauses + level.base + _ARM * sum(self.arms)
        most = 2 * self.limits.chain + 3 * self.limits.nesting
        if height <= most:
            return None
        return f"chains and nesting add up to {height} levels here; the ceiling of both together is {most}"

    def operand(self) -> None:
        """Take a name or a literal."""
        if self.after:
            self.level.next_piece()  # two operands in a row: a syntax error, and what follows is new
        self.after, self.member = True, False

    def name(self) -> None:
        """Take a name that is no keyword."""
        if self.member and not self.after:
            self.after = True
        else:
            self.operand()

    def keyword(self, word: str, *, first: bool) -> str | None:
        """Take a keyword; ``first`` when it begins a line of its own."""
        level, after = self.level, self.after
        self.after = self.member = False
        if first and word not in ("elif", "else"):
            self.arms[-1] = 0
        if word in ("and", "or", "in"):
            return self._binary()
        if word == "not":
            if after:
                return None  # the first half of "not in"
            level.run += 1
            return self._deep()
        if word == "lambda":
            level.deep += 1
            level.pending += 1
            return self._deep()
        if self.outer and (word == "for" or (word == "if" and level.clauses)):
            level.next_piece()
            level.clauses += 1
            return self._flat(level.clauses, "clauses of one comprehension")
        if word == "if" and not first:
            level.next_operand()
            level.deep += 1
            return self._deep()
        if word == "elif" and first:
            self.arms[-1] += 1
            return self._flat(self.arms[-1], "elif arms of one if")
        if word == "else" and not first:
            level.next_operand()
        else:
            level.next_piece()
        return None

    def operator(self, word: str) -> str | None:
        """Take an operator, a comma or the like."""
        level, after = self.level, self.after
        self.after = False
        if word == ".":
            self.member = True
            return self._postfix()
        self.member = False
        if word == "..." or (word in ("*", "**") and not after):
            return None
        if word in ("+", "-", "~") and not after:
            level.run += 1
            return self._deep()
        if word in (",", ":", "=") and level.pending:
            level.pending -= word == ":"
            level.next_operand()
        elif word in _PIECE_ENDS:
            level.next_piece()
        else:
            return self._binary()
        return None

    def opening(self, bracket: str) -> str | None:
        """Take an opening bracket."""
        fault = None
        if self.after and bracket != "{":
            if self.member:
                self.level.height += 1  # a method call is one link of a chain
            else:
                fault = self._postfix()
        else:
            self.operand()
        self.outer.append(self.level)
        self.level = _Level(self.level.depth() + 1)
        self.after = self.member = False
        return fault or self._deep()

    def closing(self) -> str | None:
        """Take a closing bracket."""
        fault = None
        if self.outer:
            fault = self.end()
            inner = self.level.best + self.level.clauses
            self.level = self.outer.pop()
            self.level.height = max(self.level.height, inner + _BRACKET)
        self.after, self.member = True, False
        return fault

    def _binary(self) -> str | None:
        self.level.next_operand()
        self.level.operators += 1
        self.level.tallest += 1
        return self._flat(self.level.operators + 1, "terms in one chain of operators")

    def _postfix(self) -> str | None:
        self.level.height += 1
        self.level.postfix += 1
        return self._flat(self.level.postfix + 1, "terms in one chain of calls, indices and attributes")

    def _flat(self, count: int, what: str) -> str | None:
        return f"{count} {what}; the ceiling is {self.limits.chain}" if count > self.limits.chain else None

    def _deep(self) -> str | None:
        depth = self.level.depth()
        return (
            f"nested {depth} levels deep; the ceiling is {self.limits.nesting}" if depth > self.limits.nesting else None
        )


_PIECE_ENDS = frozenset(", : ; = += -= *= /= //= %= &= |= ^= <<= >>= ->".split())


def guard(text: str, limits: Limits) -> Fault | None:
    """Hold a source against the ceilings of language.md §8 that protect a parser which recurses.

    These are the depth of nesting (brackets, blocks, unary operators, lambdas and conditionals together)
    and the length of flat chains. The fault, ``limit-exceeded``, stands at the token that passed one.
    """
    state = _Guard(limits)
    fresh, blank = True, text[: len(text) - len(text.lstrip(_BLANK))]
    for match in _matches(text):
        group = match.lastindex or 0
        message = None
        if group == _COMMENT:
            continue
        if group == _NEWLINE:
            if state.outer:
                continue
            if not fresh:
                message = state.end()
            fresh, blank = True, match.group(_NEWLINE)
        else:
            first = fresh
            if fresh:
                fresh = False
                message = state.statement(_width(blank))
            if group == _NAME:
                word = match.group(_NAME)
                if word in KEYWORDS:
                    message = message or state.keyword(word, first=first)
                else:
                    state.name()
            elif group == _OP:
                message = message or state.operator(match.group(_OP))
            elif group == _OPEN:
                message = message or state.opening(match.group(_OPEN))
            elif group == _CLOSE:
                message = message or state.closing()
            elif group == _OTHER:
                continue
            elif group:
                state.operand()
            else:
                message = message or state.end()
        if message:
            begin = match.start(group)
            return Fault(
                "limit-exceeded", message, place(text, begin, match.end(group) if group != _NEWLINE else begin)
            )
    return None


def tokens(text: str) -> list[Token]:
    """Cut a text into tokens, END last.

    Inside brackets there is no NEWLINE, INDENT or DEDENT; but behind a bracket that is never closed,
    a line that looks like the beginning of a statement is one.
    """
    found, unclosed = _read(text, frozenset())
    return _read(text, frozenset(unclosed))[0] if unclosed else found


def _read(text: str, unclosed: frozenset[int]) -> tuple[list[Token], list[int]]:
    """Return the tokens and the offsets of the brackets that stay open, given those known to stay open."""
    found: list[Token] = []
    stack: list[tuple[str, int]] = []
    blocks = [0]
    fresh = True
    lead = len(text) - len(text.lstrip(_BLANK))
    blank, blank_end = text[:lead], lead
    starts = [0, *(match.end() for match in re.finditer("\n", text)), len(text) + 1]
    line = 0

    def add(kind: str, begin: int, end: int) -> None:
        nonlocal line
        while starts[line + 1] <= begin:
            line += 1
        first = Position(line + 1, begin - starts[line] + 1)
        last = Position(line + 1, end - starts[line] + 1)
        if end >= starts[line + 1]:
            last = place(text, begin, end).end
        found.append(Token(kind, text[begin:end], Span(first, last), begin, end))

    def indent(begin: int) -> None:
        width = _width(blank)
        tab = text.find("\t", blank_end - len(blank) + blank.rfind("\n") + 1, blank_end)
        if tab >= 0:
            add("ERROR", tab, tab + 1)
        if width > blocks[-1]:
            blocks.append(width)
            add("INDENT", begin, begin)
        while width < blocks[-1]:
            blocks.pop()
            add("DEDENT", begin, begin)
        if width > blocks[-1]:
            add("ERROR", begin, begin)

    for match in _TOKEN.finditer(text, lead):
        group = match.lastindex or 0
        begin = match.start(group) if group else len(text)
        end = match.end()
        if fresh and (group not in (0, _NEWLINE, _COMMENT) or (begin > match.start() and "\\" in match.group())):
            fresh = False
            indent(begin)
        if group == _NEWLINE:
            if stack:
                if stack[-1][1] in unclosed and _restarts(text, end):
                    stack.clear()
                else:
                    for stray in re.finditer(r"\t|\r(?!\n)", match.group(_NEWLINE)):
                        add("ERROR", begin + stray.start(), begin + stray.end())
                    continue
            if not fresh:
                add("NEWLINE", begin, begin)
            fresh, blank, blank_end = True, match.group(_NEWLINE), end
        elif group == _NAME:
            add("KEYWORD" if match.group(_NAME) in KEYWORDS else "NAME", begin, end)
        elif group:
            if group == _OPEN:
                stack.append((text[begin], begin))
            elif group == _CLOSE:
                _close(stack, _OPENER[text[begin]])
            add(_KINDS[group], begin, end)
        else:
            break
    size = len(text)
    if not fresh:
        add("NEWLINE", size, size)
    for _ in blocks[1:]:
        add("DEDENT", size, size)
    add("END", size, size)
    return found, [begin for _, begin in stack]


def _close(stack: list[tuple[str, int]], opener: str) -> None:
    """Close the innermost bracket of that shape, and with it those inside it; a stray closer closes nothing."""
    if any(shape == opener for shape, _ in stack):
        while stack.pop()[0] != opener:
            pass


def _restarts(text: str, begin: int) -> bool:
    """Tell whether a statement seems to begin at the offset, in the first column."""
    pattern = (
        r"(?<![ \t])(?:(?:def|load)\b|(?:for|if)\b.*:[ ]*(?:#.*)?$|(?!(?:for|if|not)\b)[A-Za-z_]\w*[ ]*(?:\(|=(?!=)))"
    )
    return re.compile(pattern, re.MULTILINE).match(text, begin) is not None


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
            if 0xD800 <= code < 0xE000 or code > 0x10FFFF:
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


def find_lane(text: str, *, module: bool = False) -> Lane:
    """Read the lane that a source declares, from its tokens alone (language.md §2).

    It is the string literal ``type = "…"`` of the last call of workflow() outside any def, or else of
    the last call. An unknown name is returned as it is. ``lane-not-literal`` stands at a value that is
    not a literal and, in a module, at every value.
    """
    calls = _workflow_calls(text)
    if module:
        for call in calls:
            if call.kinds:
                message = "a module has the lane of the root file; leave type out of workflow() here"
                return Lane(fault=Fault("lane-not-literal", message, place(text, call.begin, call.end)))
        return Lane()
    call = next((call for call in reversed(calls) if call.outside), calls[-1] if calls else None)
    if call is None or not call.kinds:
        return Lane()
    span = place(text, call.begin, call.end)
    if call.kinds != [_STRING]:
        return Lane(fault=Fault("lane-not-literal", 'the lane is not a string literal; write type = "custom"', span))
    name = string_value(text[call.begin : call.end])
    return Lane(name, span) if name is not None else Lane()


def _workflow_calls(text: str) -> list[_Call]:
    """Return the calls of workflow() in the order in which they end."""
    calls: list[_Call] = []
    stack: list[_Call | None] = []
    fresh, blank = True, text[: len(text) - len(text.lstrip(_BLANK))]
    function = -1  # the indentation of the def that we are in
    before = last = ""  # the two tokens before this one
    for match in _matches(text):
        group = match.lastindex or 0
        if group in (0, _COMMENT):
            continue
        if group == _NEWLINE:
            if not stack:
                fresh, blank = True, match.group(_NEWLINE)
            continue
        word = match.group(group)
        if fresh:
            fresh, before, last = False, "", ""
            width = _width(blank)
            if width <= function:
                function = -1
            if word == "def" and function < 0:
                function = width
        call = stack[-1] if stack else None
        if call and call.reading:
            if word == "," or group == _CLOSE:
                call.reading = False
            else:
                call.take(match, group)
        elif call and word == "=" and last == "type" and before in ("(", ",") and not call.kinds:
            call.reading = True
        if group == _OPEN:
            opens = word == "(" and last == "workflow" and before not in ("def", ".")
            stack.append(_Call(outside=function < 0) if opens else None)
        elif group == _CLOSE and stack:
            closed, around = stack.pop(), stack[-1] if stack else None
            if closed:
                calls.append(closed)
            if around and around.reading:
                around.take(match, group)
        before, last = last, word
    calls.extend(call for call in reversed(stack) if call)
    return calls

"""The ceilings that protect a parser which recurses, held without recursion (language.md §8).

Two bounds on a syntax tree that nobody has built yet: how deep a token stands in it, and how high it
grows over a token. Whatever passes can neither overflow the evaluator's parser nor our own readers.
"""

from crucible.compiler.frontend.lexis import (
    CLOSE,
    COMMENT,
    KEYWORDS,
    NAME,
    NEWLINE,
    OP,
    OPEN,
    OTHER,
    Fault,
    indentation,
    lead,
    place,
    sparse_matches,
)
from crucible.compiler.frontend.limits import Limits


class _Level:
    """What the guard has counted in one bracket, or outside all of them.

    A *piece* is what stands between two commas, colons or line ends. ``run`` counts the unary operators
    in a row, ``postfix`` the calls, indices and attributes of the current operand, ``operators`` each
    binary operator of the chain, ``deep`` the lambdas and conditionals of the piece, ``pending`` its lambdas
    before their colon, ``clauses`` those of a comprehension. ``height``, ``tallest`` and ``best`` bound
    the height of the syntax tree under the operand, the chain and the bracket.
    """

    __slots__ = ("base", "best", "clauses", "deep", "height", "operators", "pending", "postfix", "run", "tallest")
    operators: dict[str, int]

    def __init__(self, base: int) -> None:
        self.base = base
        self.run = self.postfix = self.deep = self.pending = self.clauses = 0
        self.operators = {}
        self.height = self.tallest = self.best = 0

    def depth(self) -> int:
        """Return how many levels enclose what comes next."""
        return self.base + self.deep + self.run

    def next_operand(self) -> None:
        """End the current operand."""
        before = min(sum(self.operators.values()), _PRECEDENCES)
        self.tallest = max(self.tallest, self.height + self.run + before)
        self.height = self.run = self.postfix = 0

    def next_chain(self) -> None:
        """End the current chain of operators: a conditional has a chain on each side of its words."""
        self.next_operand()
        self.best = max(self.best, self.tallest + _LAMBDA * self.deep)
        self.tallest = 0
        self.operators = {}

    def next_piece(self) -> None:
        """End the current piece."""
        self.next_chain()
        self.deep = self.pending = 0


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

    def statement(self, width: int, word: str) -> str | None:
        """Begin a statement that is indented so far with its first word."""
        self.after = self.member = False
        while width < self.blocks[-1]:
            self.blocks.pop()
            self.arms.pop()
        if width > self.blocks[-1]:
            self.blocks.append(width)
            self.arms.append(0)
        if word not in ("elif", "else"):
            self.arms[-1] = 0
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
        if word in ("and", "or", "in"):
            return self._binary(word)
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
            level.next_chain()
            level.deep += 1
            return self._deep()
        if word == "elif" and first:
            self.arms[-1] += 1
            return self._flat(self.arms[-1], "elif arms of one if")
        if word == "else" and not first:
            level.next_chain()
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
            if word == ":":
                level.clauses = 0  # behind one it is a syntax error, and what follows is new
        else:
            return self._binary(word)
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

    def _binary(self, word: str) -> str | None:
        self.level.next_operand()
        count = self.level.operators[word] = self.level.operators.get(word, 0) + 1
        self.level.tallest += 1
        return self._flat(count + 1, "terms in one chain of operators")

    def _postfix(self) -> str | None:
        self.level.height += 1
        self.level.postfix += 1
        return self._flat(self.level.postfix + 1, "terms in one chain of calls, indices and attributes")

    def _flat(self, count: int, what: str) -> str | None:
        return f"{count} {what}; the ceiling is {self.limits.chain}" if count > self.limits.chain else None

    def _deep(self) -> str | None:
        depth, most = self.level.depth(), self.limits.nesting
        return f"{depth} levels of nesting; the ceiling is {most}" if depth > most else None


_PIECE_ENDS = frozenset({
    ",", ":", ";", "=", "+=", "-=", "*=", "/=", "//=", "%=", "&=", "|=", "^=", "<<=", ">>=", "->",
})  # fmt: skip


def guard(text: str, limits: Limits, plain: dict[int, int] | None = None) -> Fault | None:
    """Hold a source against the ceilings of language.md §8 that protect a parser which recurses.

    These are the depth of nesting (brackets, blocks, unary operators, lambdas and conditionals together)
    and the length of flat chains. The fault, ``limit-exceeded``, stands at the token that passed one. ``plain`` is
    that of sparse_matches(), for who reads the same text again.
    """
    state = _Guard(limits)
    fresh, blank = True, lead(text)
    for match in sparse_matches(text, plain):
        group = match.lastindex or 0
        message = None
        if group == COMMENT:
            continue
        if group == NEWLINE:
            if state.outer:
                continue
            if not fresh:
                message = state.end()
            fresh, blank = True, match.group(NEWLINE)
        else:
            first = fresh
            if fresh:
                fresh = False
                message = state.statement(indentation(blank), match.group(group))
            if group == NAME:
                word = match.group(NAME)
                if word in KEYWORDS:
                    message = message or state.keyword(word, first=first)
                else:
                    state.name()
            elif group == OP:
                message = message or state.operator(match.group(OP))
            elif group == OPEN:
                message = message or state.opening(match.group(OPEN))
            elif group == CLOSE:
                message = message or state.closing()
            elif group == OTHER:
                continue
            elif group:
                state.operand()
            else:
                message = message or state.end()
        if message:
            begin = match.start(group)
            return Fault("limit-exceeded", message, place(text, begin, match.end(group) if group != NEWLINE else begin))
    return None

"""The text of a shell command as a tree of words, pipelines, lists and loops; nothing is run.

It stands apart from what the tree means (shell.py). A text that is not understood for certain, also because the
shells differ in it, is Unclear.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

_BLANK: Final = re.compile(r"(?:[^\S\n]|\\\n)+")
_OPERATOR: Final = re.compile(r"&&|\|\||;;|[;&|()\n]")
_REDIRECTION: Final = re.compile(r"(\d*)(<<<|<<-?|<>|<&|>&|>>|>\||<|>)")
_NAME: Final = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_ENDS_A_WORD: Final = " \t\r\f\v\n;&|()<>"
_OPENS: Final = ("if", "for", "while", "until", "case", "{", "!", "(")
_RESERVED: Final = (*_OPENS[:-1], "then", "else", "elif", "fi", "do", "done", "esac", "}", "in")
_OTHER_SHELLS: Final = ("function", "select", "coproc", "[[")
_DEPTH: Final = 20
_MOST_READ: Final = 10_000  # characters of a command whose meaning is asked; of a longer one, words alone
_MOST_LOOKED_AT: Final = 200_000
_MOST_WORDS: Final = 1_000
_ROUGHLY: Final = re.compile(r"[^\s;&|()<>'\"`$={}]+")


class Unclear(Exception):
    """What a text does cannot be told."""


class Word(NamedTuple):
    """A word as it was written, its text without quotes and without what the shell puts in.

    ``runs`` are the command substitutions in it. ``is_plain`` tells that the shell puts in nothing, ``can_stop`` that
    what it puts in may end the script.
    """

    raw: str
    text: str
    is_plain: bool = True
    runs: tuple[str, ...] = ()
    can_stop: bool = False

    @property
    def is_assignment(self) -> bool:
        """Tell whether the word, in front of a command, sets a variable."""
        return _ASSIGNMENT.match(self.raw) is not None


class Redirection(NamedTuple):
    """Where a command reads from or writes to."""

    sign: str
    target: Word
    number: str = ""

    @property
    def takes_output(self) -> bool:
        """Tell whether what goes to standard output goes elsewhere."""
        is_same = self.target.text in (("1",) if self.sign == ">&" else ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"))
        return self.sign in (">", ">>", ">|", ">&") and self.number in ("", "1") and not is_same


class Simple(NamedTuple):
    """A command with its arguments, or none, only assignments and redirections."""

    words: tuple[Word, ...]
    redirections: tuple[Redirection, ...]


class Group(NamedTuple):
    """A list in parentheses or braces, with redirections."""

    body: "Node"
    is_subshell: bool
    redirections: tuple[Redirection, ...]


class Not(NamedTuple):
    """A pipeline whose answer is turned round."""

    body: "Node"


class Pipe(NamedTuple):
    """Commands of which each reads what the one before it writes."""

    parts: "tuple[Node, ...]"


class AndOr(NamedTuple):
    """A pipeline and more of them, each behind its && or ||."""

    first: "Node"
    rest: "tuple[tuple[str, Node], ...]"


class Sequence(NamedTuple):
    """Commands one after the other; with True one that is not waited for."""

    items: "tuple[tuple[Node, bool], ...]"


class If(NamedTuple):
    """Conditions with what follows from them, and what follows from none."""

    branches: "tuple[tuple[Node, Node], ...]"
    otherwise: "Node | None"


class For(NamedTuple):
    """A list that is run for each of some words, None for the arguments of the script."""

    words: tuple[Word, ...] | None
    body: "Node"


class While(NamedTuple):
    """A list that is run as long as a condition holds, or until it does."""

    condition: "Node"
    body: "Node"
    until: bool


class Case(NamedTuple):
    """A word, and lists, each behind its patterns; the first that the word fits is run."""

    word: Word
    branches: "tuple[tuple[tuple[Word, ...], Node | None], ...]"


class Function(NamedTuple):
    """The definition of a function."""

    name: str
    body: "Node"


Node = Simple | Group | Not | Pipe | AndOr | Sequence | If | For | While | Case | Function
_Token = str | Word | Redirection


def parse(text: str) -> Sequence:
    """Return the tree of a script. Raises Unclear."""
    if len(text) > _MOST_READ:
        raise Unclear
    parser = _Parser(list(_tokens(text)))
    tree = parser.sequence(())
    if parser.sign is not None:
        raise Unclear
    return tree


def words(text: str) -> Iterator[str]:
    """Yield the words of a command without their quotes, and those of the commands within it."""
    yield from _words(text, _DEPTH)


def _words(text: str, depth: int) -> Iterator[str]:
    try:
        found = list(_tokens(text)) if len(text) <= _MOST_READ else None
    except Unclear:
        found = None
    if found is None:
        yield from islice(dict.fromkeys(match[0] for match in _ROUGHLY.finditer(text, 0, _MOST_LOOKED_AT)), _MOST_WORDS)
        return
    for each in found:
        word = each.target if isinstance(each, Redirection) else each
        if isinstance(word, str):
            continue
        yield word.text
        inner = [*word.runs, word.text.partition("=")[2], *([word.text] if re.search(r"\s", word.text) else [])]
        for run in inner if depth else ():
            yield from _words(run, depth - 1)


# Words


def _tokens(text: str) -> Iterator[_Token]:
    at, texts = 0, list[Redirection]()  # redirections whose texts follow on the next lines
    while at < len(text):
        if found := _BLANK.match(text, at):
            at = found.end()
        elif text[at] == "#":
            at = _index(text, "\n", at)
        elif text.startswith(("&>", "|&", ";&"), at):
            raise Unclear  # each shell reads them in its own way
        elif found := _OPERATOR.match(text, at):
            yield found.group()
            at = found.end()
            if found.group() == "\n":
                for each in texts:
                    at = _behind_text(text, at, each)
                texts = []
        elif found := _REDIRECTION.match(text, at):
            blank = _BLANK.match(text, found.end())
            target, at = _word(text, blank.end() if blank else found.end())
            redirection = Redirection(found.group(2), target, found.group(1))
            if not target.raw or (redirection.sign.endswith("&") and re.fullmatch(r"\d+|-", target.raw) is None):
                raise Unclear
            if redirection.sign in ("<<", "<<-"):
                texts.append(redirection)
            yield redirection
        else:
            word, at = _word(text, at)
            yield word


def _index(text: str, sign: str, at: int) -> int:
    found = text.find(sign, at)
    return len(text) if found < 0 else found


def _behind_text(text: str, at: int, redirection: Redirection) -> int:
    """Return where the lines end that a command reads from the script itself."""
    start = at
    while at < len(text):
        end = _index(text, "\n", at)
        line = text[at:end]
        if (line.lstrip("\t") if redirection.sign == "<<-" else line) == redirection.target.text:
            if redirection.target.raw == redirection.target.text and re.search(r"[`$]", text[start:at]):
                raise Unclear
            return end
        at = end + 1
    raise Unclear


def _word(text: str, at: int) -> tuple[Word, int]:
    """Read one word."""
    reader = _WordReader(text, at)
    reader.read(_ENDS_A_WORD)
    raw = text[at : reader.at]
    word = Word(raw, "".join(reader.found), reader.is_plain, tuple(reader.runs), reader.can_stop)
    return word, reader.at


class _WordReader:
    """Reads the marks of a word."""

    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self.at = at
        self.found: list[str] = []
        self.runs: list[str] = []
        self.is_plain, self.can_stop = True, False

    def read(self, ends: str) -> None:
        """Read to one of some marks: to the end of the word, or of what stands in double quotes."""
        is_quoted = ends == '"'
        while self.at < len(self._text) and (sign := self._text[self.at]) not in ends:
            self.at += 1
            if sign == "\\":
                self._escape(is_quoted=is_quoted)
            elif sign == "'" and not is_quoted:
                end = self._text.find("'", self.at)
                if end < 0:
                    raise Unclear
                self.found.append(self._text[self.at : end])
                self.at = end + 1
            elif sign == '"' and not is_quoted:
                self.read('"')
                if self.at >= len(self._text):
                    raise Unclear
                self.at += 1
            elif sign == "$":
                self._expansion(is_quoted=is_quoted)
            elif sign == "`":
                end = _closing(self._text, self.at, "`", 0)
                self.runs.append(re.sub(r"\\([\\`$])", r"\1", self._text[self.at : end]))
                self.is_plain, self.at = False, end + 1
            else:
                self.is_plain = self.is_plain and (is_quoted or sign not in "*?")
                self.found.append(sign)

    def _escape(self, *, is_quoted: bool) -> None:
        sign = self._text[self.at : self.at + 1]
        if not sign:
            raise Unclear
        if is_quoted and sign not in '$`"\\\n':
            self.found.append("\\")
        self.found.append("" if sign == "\n" else sign)
        self.at += 1

    def _expansion(self, *, is_quoted: bool) -> None:
        text, at = self._text, self.at
        if text.startswith("((", at):
            end = _closing(text, at + 2, ")", 0)
            if text[end : end + 2] != "))" or re.search(r"[`$]\(|`", text[at:end]):
                raise Unclear
            self.is_plain, self.can_stop, self.at = False, True, end + 2
        elif text.startswith("(", at):
            end = _closing(text, at + 1, ")", 0)
            self.runs.append(text[at + 1 : end])
            self.is_plain, self.at = False, end + 1
        elif text.startswith("{", at):
            end = _closing(text, at + 1, "}", 0)
            if re.search(r"\$\(|`", text[at:end]):
                raise Unclear
            self.can_stop = self.can_stop or re.search(r"[?=@]", text[at + 2 : end]) is not None
            self.is_plain, self.at = False, end + 1
        elif found := _NAME.match(text, at):
            self.is_plain, self.at = False, found.end()
        elif text.startswith(("'", '"'), at) and not is_quoted:
            raise Unclear
        else:
            self.found.append("$")


def _closing(text: str, at: int, end: str, depth: int) -> int:
    """Return where what was opened is closed again."""
    if depth > _DEPTH:
        raise Unclear
    is_command = end == ")"
    while at < len(text):
        if text[at] == end:
            return at
        if text[at] == "\\":
            at += 2
        elif text[at] == "'" and end not in '"`':
            at = _closing(text, at + 1, "'", depth + 1) + 1 if end != "'" else at + 1
        elif end in "'`":
            at += 1
        elif text[at] in '"`':
            at = _closing(text, at + 1, text[at], depth + 1) + 1
        elif text.startswith(("$(", "${"), at):
            at = _closing(text, at + 2, ")" if text[at + 1] == "(" else "}", depth + 1) + 1
        elif is_command and text[at] == "(":
            at = _closing(text, at + 1, ")", depth + 1) + 1
        elif is_command and (text[at] == "#" or text.startswith(("<<", "case"), at)):
            raise Unclear  # in a comment, a text or a pattern a parenthesis closes nothing
        else:
            at += 1
    raise Unclear


# Commands


class _Parser:
    """Goes through the tokens once, with the grammar of the shell."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = self._depth = 0

    @property
    def sign(self) -> str | None:
        """Return the next operator, or the next word as it was written, None at the end."""
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        if isinstance(token, Redirection):
            return token.sign
        return token.raw if isinstance(token, Word) else token

    def _take(self, *signs: str) -> str:
        """Go past one of some signs, before which there may be new lines; all but these must be there."""
        sign = self.sign
        if sign not in signs:
            raise Unclear
        self._at += 1
        return sign or ""

    def _skip(self, *signs: str) -> None:
        while self.sign in signs:
            self._at += 1

    def sequence(self, ends: tuple[str, ...]) -> Sequence:
        """Read commands up to one of some signs."""
        self._depth += 1
        if self._depth > _DEPTH:
            raise Unclear
        items: list[tuple[Node, bool]] = []
        self._skip(";", "\n")
        while self.sign is not None and self.sign not in ends:
            node = self._and_or()
            sign = self.sign
            items.append((node, sign == "&"))
            if sign not in (None, ";", "\n", "&", *ends):
                raise Unclear
            if sign in (";", "\n", "&"):
                self._at += 1
            self._skip("\n")
        if not items and ends:
            raise Unclear
        self._depth -= 1
        return Sequence(tuple(items))

    def _and_or(self) -> Node:
        first, rest = self._pipeline(), list[tuple[str, Node]]()
        while self.sign in ("&&", "||"):
            sign = self._take("&&", "||")
            self._skip("\n")
            rest.append((sign, self._pipeline()))
        return AndOr(first, tuple(rest)) if rest else first

    def _pipeline(self) -> Node:
        if self.sign == "!":
            self._at += 1
            if self.sign in ("!", "("):  # another shell reads a pattern
                raise Unclear
            return Not(self._pipeline())
        parts = [self._command()]
        while self.sign == "|":
            self._at += 1
            self._skip("\n")
            parts.append(self._command())
        return Pipe(tuple(parts)) if len(parts) > 1 else parts[0]

    def _command(self) -> Node:
        sign = self.sign
        if sign in _OPENS:
            self._at += 1
            node = self._compound(sign)
            redirections = self._redirections()
            if isinstance(node, Group):
                return node._replace(redirections=redirections)
            return Group(node, is_subshell=False, redirections=redirections) if redirections else node
        return self._simple()

    def _compound(self, sign: str | None) -> Node:
        if sign in ("(", "{"):
            if sign == "(" and self.sign == "(":
                raise Unclear
            close = ")" if sign == "(" else "}"
            body = self.sequence((close,))
            self._take(close)
            return Group(body, sign == "(", ())
        if sign == "if":
            return self._if()
        if sign in ("while", "until"):
            condition = self.sequence(("do",))
            return While(condition, self._loop(), sign == "until")
        return self._for() if sign == "for" else self._case()

    def _if(self) -> If:
        branches, otherwise, sign = list[tuple[Node, Node]](), None, "elif"
        while sign == "elif":
            condition = self.sequence(("then",))
            self._take("then")
            branches.append((condition, self.sequence(("elif", "else", "fi"))))
            sign = self._take("elif", "else", "fi")
        if sign == "else":
            otherwise = self.sequence(("fi",))
            self._take("fi")
        return If(tuple(branches), otherwise)

    def _loop(self) -> Sequence:
        self._take("do")
        body = self.sequence(("done",))
        self._take("done")
        return body

    def _for(self) -> For:
        if not _NAME.fullmatch(self.sign or "") or self._word() is None:
            raise Unclear
        self._skip("\n")
        found: list[Word] | None = None
        if self.sign == "in":
            self._at, found = self._at + 1, []
            while (word := self._word()) is not None:
                found.append(word)
            self._take(";", "\n")
        self._skip(";", "\n")
        return For(None if found is None else tuple(found), self._loop())

    def _case(self) -> Case:
        word = self._word()
        self._skip("\n")
        self._take("in")
        self._skip("\n")
        branches: list[tuple[tuple[Word, ...], Node | None]] = []
        while word is not None and self.sign != "esac":
            self._skip("(")
            patterns = [self._word()]
            while self.sign == "|":
                self._at += 1
                patterns.append(self._word())
            if any(each is None or each.runs or each.can_stop for each in patterns):
                raise Unclear
            self._take(")")
            self._skip("\n")
            body = None if self.sign in (";;", "esac") else self.sequence((";;", "esac"))
            branches.append((tuple(each for each in patterns if each is not None), body))
            if self.sign != "esac":
                self._take(";;")
            self._skip("\n")
        self._take("esac")
        if word is None:
            raise Unclear
        return Case(word, tuple(branches))

    def _word(self) -> Word | None:
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        if not isinstance(token, Word):
            return None
        self._at += 1
        return token

    def _redirections(self) -> tuple[Redirection, ...]:
        found = []
        while self._at < len(self._tokens) and isinstance(token := self._tokens[self._at], Redirection):
            found.append(token)
            self._at += 1
        return tuple(found)

    def _simple(self) -> Node:
        if self.sign in (*_RESERVED, *_OTHER_SHELLS):
            raise Unclear
        found, redirections = list[Word](), list[Redirection]()
        while True:
            redirections += self._redirections()
            word = self._word()
            if word is None:
                break
            found.append(word)
        if self.sign == "(" and len(found) == 1 and not redirections:
            self._at += 1
            self._take(")")
            self._skip("\n")
            if self.sign not in _OPENS or self.sign == "!" or not _NAME.fullmatch(found[0].raw):
                raise Unclear
            return Function(found[0].raw, self._command())
        if not found and not redirections:
            raise Unclear
        return Simple(tuple(found), tuple(redirections))

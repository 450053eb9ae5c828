"""How much the answer of a shell command counts: whether it can fail at all, and whether some failure in it is lost.

Words and operators are read, nothing is run. What is not understood counts as a command whose failure may be lost.
"""

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    r"""(?P<blank>[^\S\n]+|\\\n)
      | (?P<comment>\#[^\n]*)
      | (?P<operator>&&|\|\||\|&|;;|&(?!>)|[;|()\n])
      | (?P<word>(?:\\.|'[^']*'|"(?:\\.|[^"\\])*"|\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`|\$\{[^}]*\}
                  |[<>]&|&>|[^\s;&|()\\'"`])+)""",
    re.VERBOSE | re.DOTALL,
)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
_REDIRECTION: Final = re.compile(r"\d*(?:[<>]|&>).*", re.DOTALL)
_BARE_REDIRECTION: Final = re.compile(r"\d*(?:[<>]{1,2}|&>{1,2})")
_SYSTEM: Final = re.compile(r"/(?:usr/)?bin/")
_WITHOUT_FAILURE: Final = ("true", ":", "echo", "printf", "wait", "set", "export", "local", "umask", "trap")
_COPIES: Final = ("tee", "cat")
_IN_FRONT: Final = ("exec", "command", "builtin", "time", "nohup", "env")
_SHELLS: Final = ("sh", "bash", "dash", "ash", "zsh", "ksh")
_RESERVED: Final = ("if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac")
_HERE: Final = re.compile(r"(?<!<)<<-?[ \t]*(['\"]?)(\w+)\1")
_DEPTH: Final = 20


class Strictness(IntEnum):
    """What becomes of a failure: the command passes all the same, may pass, or fails with it."""

    NONE = 0
    LOSSY = 1
    SOUND = 2


class _Status(NamedTuple):
    """What may come of a command: a failure, a success, a failure that nobody hears of, the end of the script."""

    fails: bool
    passes: bool
    loses: bool = False
    ends: bool = False


_PASSES: Final = _Status(fails=False, passes=True)
_EITHER: Final = _Status(fails=True, passes=True)
_UNKNOWN: Final = _Status(fails=True, passes=True, loses=True)


def strictness(command: object) -> Strictness:
    """Return how much the answer of a shell command counts."""
    if not isinstance(command, str) or not command.strip():
        return Strictness.SOUND
    status = _of(command, 0)
    if not status.fails:
        return Strictness.NONE
    return Strictness.LOSSY if status.loses else Strictness.SOUND


def words(command: str) -> Iterator[str]:
    """Yield the plain words of a command, without their quotes."""
    for kind, text in _tokens(command) or ():
        if kind == "word":
            yield _plain(text)


def _tokens(text: str) -> list[tuple[str, str]] | None:
    """Return words and operators, None for what is not understood."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        if match.lastgroup in ("operator", "word"):
            found.append((match.lastgroup, match.group()))
        at = match.end()
    return found


def _plain(word: str) -> str:
    return re.sub(r"\\(.)|['\"]", lambda found: found.group(1) or "", word, flags=re.DOTALL)


def _of(text: str, depth: int) -> _Status:
    tokens = _tokens(_without_here(text))
    if tokens is None or depth > _DEPTH or any(word.startswith("<<") for _, word in tokens):
        return _UNKNOWN
    reader = _Reader(tokens, depth)
    status = reader.list_until(())
    return status if reader.at == len(tokens) else _UNKNOWN


def _without_here(text: str) -> str:
    """Return a script without the texts that stand in it as input."""
    if "<<" not in text:
        return text
    kept: list[str] = []
    ends: list[str] = []
    for line in text.split("\n"):
        if ends:
            ends = ends[1:] if line.strip() == ends[0] else ends
            continue
        ends = [found.group(2) for found in _HERE.finditer(line)]
        kept.append(_HERE.sub("", line))
    return "\n".join(kept)


class _Reader:
    """Goes through the words once, with the rules of the shell's lists."""

    def __init__(self, tokens: list[tuple[str, str]], depth: int) -> None:
        self._tokens, self._depth = tokens, depth
        self.at = 0
        self._stops = self._pipes = False  # set -e, set -o pipefail

    def _next(self) -> str | None:
        return self._tokens[self.at][1] if self.at < len(self._tokens) else None

    def list_until(self, ends: tuple[str, ...]) -> _Status:
        """Read commands one after the other: the answer is that of the last, and set -e hears all."""
        status, fails, loses = _PASSES, False, False
        while (sign := self._next()) is not None and sign not in ends:
            if sign in (";", "\n", ";;"):
                self.at += 1
                continue
            before = self.at
            if status.fails and not self._stops and not status.ends:
                loses = True
            fails = fails or (status.fails and (self._stops or status.ends))
            status = self._and_or(ends)
            if self.at == before:
                self.at += 1  # a parenthesis that closes nothing
                return _UNKNOWN
            if self._next() == "&":
                self.at += 1
                status = _Status(fails=False, passes=True, loses=True)
            loses = loses or status.loses
            if status.ends and not (status.fails and status.passes):
                break
        while (sign := self._next()) is not None and sign not in ends:
            self.at += 1  # nothing runs behind an exit
        return _Status(status.fails or fails, status.passes, loses, status.ends)

    def _and_or(self, ends: tuple[str, ...]) -> _Status:
        status = self._pipeline(ends)
        while (sign := self._next()) in ("&&", "||"):
            self.at += 1
            while self._next() == "\n":
                self.at += 1
            other = self._pipeline(ends)
            if sign == "&&":
                reached = status.passes
                fails, passes = status.fails or (reached and other.fails), reached and other.passes
                loses = status.loses or (reached and other.loses)
            else:
                reached = status.fails
                fails, passes = reached and other.fails, status.passes or (reached and other.passes)
                loses = status.loses or (reached and (other.loses or other.passes))
            status = _Status(fails, passes, loses, status.ends or (reached and other.ends))
        return status

    def _pipeline(self, ends: tuple[str, ...]) -> _Status:
        parts, is_copy = [self._command(ends)], False
        while self._next() in ("|", "|&"):
            self.at += 1
            while self._next() == "\n":
                self.at += 1
            is_copy = self._next() in _COPIES
            parts.append(self._command(ends))
        last = _PASSES if is_copy else parts[-1]
        if len(parts) == 1:
            return last
        lost = any(part.fails for part in parts[:-1])
        if self._pipes:
            return _Status(any(part.fails for part in parts), last.passes, any(part.loses for part in parts))
        return _Status(last.fails, last.passes, lost or last.loses)

    def _command(self, ends: tuple[str, ...]) -> _Status:
        sign = self._next()
        if sign in ("(", "{"):
            self.at += 1
            self._depth += 1
            if self._depth > _DEPTH:
                self.at = len(self._tokens)
                return _UNKNOWN
            close = ")" if sign == "(" else "}"
            status = self.list_until((close,))
            self.at += 1
            self._depth -= 1
            return status._replace(ends=False) if sign == "(" else status
        found: list[str] = []
        while self.at < len(self._tokens) and self._tokens[self.at][0] == "word" and self._next() not in ends:
            found.append(_plain(self._tokens[self.at][1]))
            self.at += 1
        if self._next() == "(":  # a function, or what is none
            self.at += 1
            self.list_until((")",))
            self.at += 1
            return _UNKNOWN
        return self._simple(found)

    def _simple(self, found: list[str]) -> _Status:
        rest: list[str] = []
        for number, word in enumerate(found):
            bare = number > 0 and _BARE_REDIRECTION.fullmatch(found[number - 1])
            if not bare and not _REDIRECTION.fullmatch(word) and (rest or not _ASSIGNMENT.fullmatch(word)):
                rest.append(word)
        while rest and (rest[0] in _IN_FRONT or (rest[0] != found[0] and _ASSIGNMENT.fullmatch(rest[0]))):
            rest = rest[1:]
        if not rest:
            return _PASSES
        if rest[0] in _RESERVED:
            start = next((number for number, word in enumerate(rest) if word not in _RESERVED), len(rest))
            inner = self._simple(rest[start:])
            return inner._replace(loses=inner.loses or inner.fails, ends=False)
        name = rest[0]
        if _SYSTEM.match(name):
            name = name.rpartition("/")[2]
        if name == "set":
            options = " ".join(rest[1:])
            self._stops = self._stops or re.search(r"-\w*e|-\w*o errexit", options) is not None
            self._pipes = self._pipes or "pipefail" in options
        if name in ("exit", "return"):
            code = rest[1] if len(rest) > 1 else "0"
            fails = code != "0"
            return _Status(fails, not fails or not code.isdigit(), ends=True)
        if name == "false":
            return _Status(fails=True, passes=False)
        if name == "!":
            return _PASSES if rest[1:] == ["false"] else _UNKNOWN
        if name in _SHELLS:
            at = next((number for number, word in enumerate(rest) if re.fullmatch(r"-\w*c", word)), None)
            script = rest[at + 1] if at is not None and at + 1 < len(rest) else None
            return _EITHER if script is None else _of(script, self._depth + 1)._replace(ends=False)
        if name == "eval":
            return _of(" ".join(rest[1:]), self._depth + 1)
        if name == "wait":
            return _EITHER if len(rest) > 1 else _PASSES
        return _PASSES if name in _WITHOUT_FAILURE else _EITHER

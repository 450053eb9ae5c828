"""What git ignores: the patterns of .gitignore files, in time that grows with pattern times path and no faster.

In: the bytes of such files. Out: whether they ignore a path. Git's own rules, byte for byte, as expressions
whose parts never give back what they took: the first place where a part fits is as good as any later one.
"""

import os
import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

_MARK: Final = b"\xef\xbb\xbf"
_MOST: Final = 4_096  # bytes of a pattern; no path is longer
_SPECIAL: Final = re.compile(r"[\\*?\[]")
_TOKEN: Final = re.compile(r"\\(.)|(?<![^/])\*\*+(/|\Z)|(\*+)|(\?)|(\[)|(.)", re.DOTALL)
_ESCAPED, _FOLDERS, _STAR, _ANY, _CLASS = 1, 2, 3, 4, 5
_POSIX: Final = re.compile(r"\[:([a-z]*):\]")
_CLASSES: Final = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "blank": r" \t", "cntrl": r"\x00-\x1f\x7f", "digit": "0-9",
    "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r" \t-\r", "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip


class Pattern(NamedTuple):
    """One pattern: what it fits, whether it takes back, is of folders alone, and looks at the last component only."""

    fits: Callable[[str], object]
    is_negated: bool
    is_of_folders: bool
    is_of_names: bool


def read(data: bytes) -> list[Pattern]:
    """Read a .gitignore; a line that git understands as no pattern is none."""
    text = data.removeprefix(_MARK).decode("latin-1")
    return [pattern for line in text.split("\n") for pattern in _read_line(line.removesuffix("\r"))]


def verdict(path: str, patterns: list[Pattern], *, is_folder: bool) -> bool | None:
    """Tell whether patterns ignore a path below their folder: the last that fits; None when none does."""
    path = os.fsencode(path).decode("latin-1")
    name = path.rpartition("/")[2]
    for fits, is_negated, is_of_folders, is_of_names in reversed(patterns):
        if (is_folder or not is_of_folders) and fits(name if is_of_names else path):
            return not is_negated
    return None


def _read_line(line: str) -> Iterator[Pattern]:
    """Yield the pattern of a line, if it is one."""
    if line.startswith("#"):
        return
    kept = line.rstrip(" ")
    if len(kept) < len(line) and (len(kept) - len(kept.rstrip("\\"))) % 2:
        kept += " "
    is_negated = kept.startswith("!")
    body = kept[is_negated:]
    is_of_folders = body.endswith("/")
    body = body.removesuffix("/")
    is_of_names = "/" not in body
    body = body.removeprefix("/")
    if not body or len(body) > _MOST:
        return
    special = _SPECIAL.search(body)
    if special is None:
        yield Pattern(body.__eq__, is_negated, is_of_folders, is_of_names)
        return
    # To git a "**" behind what is no wildcard stands at the beginning, whatever that is.
    expression = _expression(body[: special.start()], body[special.start() :])
    if expression is not None:
        yield Pattern(re.compile(expression, re.DOTALL).fullmatch, is_negated, is_of_folders, is_of_names)


def _expression(before: str, pattern: str) -> str | None:
    """Return the regular expression of a pattern, whose wildcards begin at its second half; None when nothing fits."""
    # Between two "**" stands a block of whole components, between two "*" a part of one.
    blocks: list[list[str]] = [[re.escape(before)]]
    at, is_open = 0, False  # whether "**" ends the pattern
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None:
            return None
        at, kind = token.end(), token.lastindex
        if kind == _FOLDERS:
            is_open = not token.group(_FOLDERS)
            blocks.append([""])
        elif kind == _STAR:
            blocks[-1].append("")
        elif kind == _CLASS:
            found = _class(pattern, at)
            if found is None:
                return None
            at = found[1]
            blocks[-1][-1] += found[0]
        elif kind == _ANY:
            blocks[-1][-1] += "[^/]"
        elif token.group() == "\\":
            return None
        else:
            blocks[-1][-1] += re.escape(token.group(kind or 0))
    if is_open:
        blocks[-1] = [".*"]
    blocks[-1][-1] += r"\Z"
    made = ["".join([first, *(f"(?>[^/]*?{part})" for part in others)]) for first, *others in blocks]
    return "".join([made[0], *(f"(?>(?:[^/]*+/)*?{block})" if block != r".*\Z" else block for block in made[1:])])


def _class(pattern: str, begin: int) -> tuple[str, int] | None:
    """Return the expression of a bracket's content and the offset behind it, None when it is never closed."""
    at = begin + (pattern[begin : begin + 1] in ("!", "^"))
    is_negated, first = at > begin, at
    inside, before = "", ""
    while at < len(pattern):
        sign = pattern[at]
        if sign == "]" and at > first:
            return rf"(?!/)[{'^' if is_negated else ''}{inside}]" if inside else "(?!)", at + 1
        named = _POSIX.match(pattern, at)
        if named:
            if named.group(1) not in _CLASSES:
                return None
            inside, before, at = inside + _CLASSES[named.group(1)], "", named.end()
            continue
        is_range = sign == "-" and before != "" and pattern[at + 1 : at + 2] not in ("", "]")
        at += is_range
        if pattern[at] == "\\":
            at += 1
            if at == len(pattern):
                return None
        sign = pattern[at]
        if is_range and before <= sign:
            inside += f"-{re.escape(sign)}"
        elif not is_range:
            inside += re.escape(sign)
        before = "" if is_range else sign
        at += 1
    return None

"""The scripts that a shell command runs from its working directory, as far as reading it tells for sure.

Not a warning of its own: script_not_in_pack.py and gate_editable.py judge what it finds.
"""

import re
from collections.abc import Iterator
from typing import Final

from crucible.compiler.analysis.rules.case import Case
from crucible.schemas.ir import CommandTask, EvaluateTask

_BETWEEN: Final = re.compile(r"[();<>|&]+")
# A blank, an operator, or a word; every part of a word is taken for good, so that no text is read twice.
_PART: Final = re.compile(
    r"""(?P<blank>[^\S\n]++)|[();<>|&]++|(?:[^\s'"\\();<>|&]++|\\.|'[^']*+'|"(?:[^"\\]++|\\.)*+")++"""
)
_QUOTED: Final = re.compile(r"""\\(.)|'([^']*+)'|"((?:[^"\\]++|\\.)*+)\"""")
_ESCAPED: Final = re.compile(r"""\\([\\"])""")
_SETTING: Final = re.compile(r"[A-Za-z_]\w*=")
# What a shell would still change, or what is no path of the workspace.
_CHANGED: Final = re.compile(r"[$`*?\[\]{}~\\\0]")
_INTERPRETERS: Final = re.compile(r"(?:ba|da|z|k)?sh|python[0-9.]*|node|ruby|perl")
_SCRIPT: Final = re.compile(r".+\.(?:sh|bash|py|js|mjs|rb|pl)")
_RUNNERS: Final = ("exec", "time", "nice", "env", "nohup", "command")
_MOVES: Final = ("cd", "pushd", "popd")
_MOST: Final = 10_000  # characters of a command that are read; a longer one is no list of scripts


def commands(case: Case) -> Iterator[tuple[int, str]]:
    """Yield the tasks that run a command, by index, with the command."""
    for index, task in enumerate(case.tasks):
        if isinstance(task, CommandTask | EvaluateTask):
            yield index, task.command


def scripts(command: str) -> list[str]:
    """Return the paths, below the workspace and without "./", of the scripts that a command runs; each once."""
    found: dict[str, None] = {}
    if len(command) > _MOST:
        command = command[: command.rfind("\n", 0, _MOST) + 1]
    for line in command.split("\n"):
        try:
            words = _words(line)
        except ValueError:  # a quote that ends on another line
            return list(found)
        begins = True
        for number, word in enumerate(words):
            if _BETWEEN.fullmatch(word):
                if "<<" in word:
                    return list(found)
                begins = not word.startswith(("<", ">"))
                continue
            if begins and (_SETTING.match(word) or word in _RUNNERS):
                continue
            if begins and word in _MOVES:
                return list(found)  # what follows runs elsewhere
            if begins:
                path = _path(word, words[number + 1 : number + 2])
                found |= {path: None} if path else {}
            begins = False
    return list(found)


def _words(line: str) -> list[str]:
    """Return the words and operators of a line without their quotes; raise ValueError where one does not end."""
    words = []
    at = 0
    while at < len(line):
        part = _PART.match(line, at)
        if part is None:
            raise ValueError(line)
        at = part.end()
        if part["blank"]:
            continue
        if part[0].startswith("#"):
            break
        words.append(_QUOTED.sub(_bare, part[0]))
    return words


def _bare(quoted: re.Match[str]) -> str:
    escaped, single, double = quoted.groups()
    return escaped or single or _ESCAPED.sub(r"\1", double or "")


def _path(word: str, behind: list[str]) -> str | None:
    """Return the path of the script that a word runs, itself or as an interpreter of the word behind it."""
    if _INTERPRETERS.fullmatch(word) and behind and _SCRIPT.fullmatch(behind[0]):
        word = f"./{behind[0].removeprefix('./')}"
    if not word.startswith("./") or _CHANGED.search(word):
        return None
    parts = [part for part in word.split("/") if part not in ("", ".")]
    return None if not parts or ".." in parts or word.endswith("/") or word.startswith(".//") else "/".join(parts)

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
_RUNNERS: Final = (
    "chronic", "command", "env", "exec", "ionice", "nice", "nohup", "setsid", "stdbuf", "taskset", "time", "timeout",
    "xargs",
)  # fmt: skip
# An option of a runner, or the number, time or setting that it takes.
_OF_RUNNER: Final = re.compile(r"-.*|\d+(?:\.\d+)?[smhd]?|[A-Za-z_]\w*=.*", re.DOTALL)
_KEYWORDS: Final = ("!", "{", "do", "elif", "else", "if", "then", "until", "while")
_SOURCES: Final = (".", "source")
_MOVES: Final = ("cd", "pushd", "popd")
_HERE: Final = (".", "./")
_TAKING: Final = ("-o", "+o", "-O", "-W", "-X")  # options of interpreters with a word behind them
# What is run is no file: the text of an option, or standard input.
_OTHER_TEXT: Final = {True: re.compile(r"-[A-Za-z]*c|-s|-"), False: re.compile(r"-[A-Za-z]*[cem]|-")}
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
        begins, is_run = True, False  # a command begins here; behind what runs it
        for number, word in enumerate(words):
            if _BETWEEN.fullmatch(word):
                if "<<" in word:
                    return list(found)
                begins, is_run = not word.startswith(("<", ">")), False
                continue
            if not begins or _SETTING.match(word) or word in _KEYWORDS or (is_run and _OF_RUNNER.fullmatch(word)):
                continue
            if word in _RUNNERS:
                is_run = True
                continue
            behind = words[number + 1 :]
            if word in _MOVES and behind[:1] not in ([each] for each in _HERE):
                return list(found)  # what follows runs elsewhere
            path = _path(word, behind)
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
    if word in _SOURCES and behind:
        word = behind[0]
    elif _INTERPRETERS.fullmatch(word):
        taken = {number + 1 for number, each in enumerate(behind) if each in _TAKING}
        words = (each for number, each in enumerate(behind) if number not in taken)
        is_text = _OTHER_TEXT[word.endswith("sh")].fullmatch
        given = next((each for each in words if not each.startswith("-") or is_text(each)), "")
        if given.startswith("./") or _SCRIPT.fullmatch(given):
            word = f"./{given.removeprefix('./')}"
    if not word.startswith("./") or _CHANGED.search(word):
        return None
    parts = [part for part in word.split("/") if part not in ("", ".")]
    return None if not parts or ".." in parts or word.endswith("/") or word.startswith(".//") else "/".join(parts)

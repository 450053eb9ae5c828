"""Diagnostics as GitHub shows them beside a change: a list of diagnostics becomes workflow commands (tooling.md §2).

Pure: whoever calls knows the repository and gives each file its name from the top of it. Of each level
GitHub shows ten a step, so the errors come first and what is left out is counted.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final

from crucible.compiler.output.report import harmless
from crucible.schemas.diagnostic import Diagnostic, Severity

_MOST: Final = 10
_IN_MESSAGE: Final = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTY: Final = {**_IN_MESSAGE, ":": "%3A", ",": "%2C"}
_COMMAND: Final = re.compile(r"^([^\S\n]*):(?=:)|##(?=\[)", re.MULTILINE)


def to_github(diagnostics: Iterable[Diagnostic], from_top: Callable[[str], str]) -> str:
    """Return the commands, a line each, errors first; nothing gives an empty text.

    ``from_top`` gives a file its name from the top of the repository, with / separators.
    """
    kept = list(diagnostics)
    lines: list[str] = []
    left_out: list[str] = []
    for level in Severity:
        of_level = [each for each in kept if each.severity is level]
        lines += [_annotation(each, from_top) for each in of_level[:_MOST]]
        more = len(of_level) - _MOST
        if more > 0:
            left_out.append(f"{more} more {level.value}{'s' if more > 1 else ''}")
    if left_out:  # of a level of its own, so that it takes the place of none
        lines.append(_command("notice", {"title": "crucible"}, f"… and {' and '.join(left_out)}; the log has them all"))
    return "".join(f"{line}\n" for line in lines)


def to_log(text: str) -> str:
    """Return a text for the log of a step in which nothing that others wrote is a command.

    A command begins with ``::``, behind nothing but blanks; the older form of one may stand anywhere.
    """
    return _COMMAND.sub(lambda found: f"{found.group()} ", text)


def _annotation(diagnostic: Diagnostic, from_top: Callable[[str], str]) -> str:
    properties: dict[str, str] = {}
    if diagnostic.file is not None:
        properties["file"] = from_top(diagnostic.file)
        if diagnostic.span is not None:
            begin, end = diagnostic.span
            properties |= {"line": str(begin.line), "endLine": str(end.line)}
            if begin.line == end.line:  # columns of an annotation that spans lines are refused
                properties |= {"col": str(begin.column), "endColumn": str(end.column)}
    properties["title"] = diagnostic.code
    return _command(diagnostic.severity.value, properties, diagnostic.message)


def _command(level: str, properties: dict[str, str], message: str) -> str:
    """Write one command."""
    shown = ",".join(f"{name}={_escape(value, _IN_PROPERTY)}" for name, value in properties.items())
    return f"::{level} {shown}::{_escape(message, _IN_MESSAGE)}"


def _escape(text: str, escapes: dict[str, str]) -> str:
    """Write a text as GitHub reads it back; what else could steer a terminal is shown."""
    return "".join(escapes.get(character) or harmless(character) for character in text)

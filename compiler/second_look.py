"""What lies behind a value that ended the evaluation: a text without it, and what evaluating that adds.

In: an attempt whose evaluation ended at a function given as an argument, and what is wrong with it. Out: the
root's text, each character at its place, and of the diagnostics of that text those to be added.
"""

from typing import Final

from crucible.compiler.attempt import Attempt
from crucible.compiler.failure_words import NOT_A_VALUE, cleaned
from crucible.schemas.diagnostic import Diagnostic

_BEYOND: Final = ("unknown-task", "unknown-session")


def without_functions(attempt: Attempt, found: list[Diagnostic]) -> str | None:
    """Return the root's text with blanks for values that could not even be handed over and ended the evaluation.

    None when something else ended it, or when one of them is the name of a task, which others may depend on.
    """
    error = (attempt.answer or {}).get("error") or {}
    if error.get("kind") != "error" or not NOT_A_VALUE.match(cleaned(error["message"])):
        return None
    root = attempt.files[0]
    spans = {d.span for d in found if d.code == "wrong-type" and d.file == root.shown and d.span is not None}
    lines = root.text.split("\n")
    for calls in root.calls.values():
        for argument in (argument for call in calls for argument in call.arguments):
            if argument.value.span not in spans or argument.star:
                continue
            (line, column), end = argument.value.span
            if (argument.name is not None and argument.name.id == "name") or end.line != line:
                return None
            width = end.column - column
            blank = ('""' if width > 1 else "0").ljust(width)
            lines[line - 1] = lines[line - 1][: column - 1] + blank + lines[line - 1][end.column - 1 :]
    text = "\n".join(lines)
    return None if text == root.text else text


def beyond(first: list[Diagnostic], second: list[Diagnostic]) -> list[Diagnostic]:
    """Return what a second evaluation of such a text found that the first did not come to."""
    known = {(d.file, d.span) for d in first}
    return [d for d in second if d.code in _BEYOND and (d.file, d.span) not in known]

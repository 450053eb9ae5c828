"""Patterns of launch parameters: searched as JSON Schema does, in the process that has ceilings."""

import re
import warnings


def search(pattern: str, text: str | None) -> bool | str:
    r"""Tell whether a pattern occurs in a text; say why for a pattern that is none.

    ``text`` None only asks whether the pattern is one. As in JSON Schema, ``$`` is the very end of
    the text, where Python's own also fits before a last newline, and ``\d``, ``\w``, ``\s`` and
    ``\b`` know ASCII only.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)  # first as written: the error then quotes what the author wrote
            compiled = re.compile(_with_strict_end(pattern), re.ASCII)
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        return str(error)
    return text is None or compiled.search(text) is not None


def _with_strict_end(pattern: str) -> str:
    r"""Write ``\Z`` for every ``$`` that is neither escaped nor in a character class."""
    written: list[str] = []
    in_class = False
    at = 0
    while at < len(pattern):
        step = 1
        if pattern[at] == "\\":
            step = 2
        elif in_class:
            in_class = pattern[at] != "]"
        elif pattern[at] == "[":
            in_class = True
            # a bracket right behind the opening stands for itself
            step = 2 if pattern[at + 1 : at + 2] != "^" else 3
            step = step if pattern[at + step - 1 : at + step] == "]" else step - 1
        part = pattern[at : at + step]
        written.append(r"\Z" if part == "$" and not in_class else part)
        at += step
    return "".join(written)

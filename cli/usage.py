"""What a command that was used wrongly most likely meant.

In: the sentence of argparse and the arguments. Out: the tail of a message, "" where there is nothing to guess.
"""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Final

from crucible.schemas.spelling import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_UNKNOWN: Final = re.compile(r"argument COMMAND: invalid choice: '([^']*)'")
_MISSING: Final = re.compile(r"the following arguments are required: (--file|--manifest)$")
_FILES: Final = (".star", ".toml", ".json")


def meant(message: str, words: Sequence[str], asked: argparse.ArgumentParser, top: argparse.ArgumentParser) -> str:
    """Return what follows a message: the commands there are, the one that was meant, or the option that a file lacks.

    ``asked`` is the parser that has the message, ``top`` the one with all commands.
    """
    unknown, missing = _UNKNOWN.search(message), _MISSING.search(message)
    guess = None
    if message.endswith(": COMMAND"):
        return f"; the commands are {', '.join(_inside(asked))}"
    if unknown:
        guess = _command(unknown[1], top)
    elif missing:
        bare = (word for before, word in zip(["", *words], words, strict=False) if not before.startswith("-"))
        file = next((word for word in bare if word.endswith(_FILES) and not word.startswith("-")), None)
        guess = file and f"{missing[1]} {file}"
    return f"; did you mean {guess}?" if guess else ""


def _command(word: str, top: argparse.ArgumentParser) -> str | None:
    """Return the whole name of the command that is called so or nearly so, on whichever level it is."""
    known = dict(_commands(top))
    name = word if word in known else nearest(word, known)
    return None if name is None else known[name]


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Give all commands by their last word, an outer one after those that are inside of another."""
    for word, inner in _inside(parser).items():
        yield from _commands(inner)
        yield word, inner.prog


def _inside(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """Return the commands of a command."""
    actions = parser._actions  # noqa: SLF001 - it has no other list of them
    found = (each for each in actions if isinstance(each, argparse._SubParsersAction))  # noqa: SLF001 - its only name
    return next((each.choices for each in found), {})

"""What a command that was used wrongly most likely meant.

In: the sentence of argparse and the arguments. Out: the tail of a message, "" where there is nothing to guess.
"""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Final

from crucible.schemas.spelling import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_UNKNOWN: Final = re.compile(r"argument COMMAND: invalid choice: '([^']*)'")
_MISSING: Final = re.compile(r"the following arguments are required: (--file|--manifest)$")
_FILES: Final = (".star", ".toml", ".json")


def meant(message: str, words: Sequence[str], top: argparse.ArgumentParser) -> str:
    """Return what follows a message: the command that another one has, or the option that a file lacks."""
    unknown, missing = _UNKNOWN.search(message), _MISSING.search(message)
    guess = None
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
    for action in parser._actions:  # noqa: SLF001 - it has no other list of them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - the only name that it has
            for word, inner in action.choices.items():
                yield from _commands(inner)
                yield word, inner.prog

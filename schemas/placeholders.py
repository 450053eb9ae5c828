"""The placeholders of a method file (contract §6): which there are, and those in a text that nobody fills.

The check of a pack and the loop that fills them ask the same question.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

PLACEHOLDERS: Final = ("GOAL", "STATUS", "STEER")
# Blanks inside are no part of a placeholder that is filled; what else stands in double braces is no word of ours.
_LIKE_ONE: Final = re.compile(r"\{\{([^\S\n]*)([A-Za-z_]\w*)([^\S\n]*)\}\}")


class Unfilled(NamedTuple):
    """Something like a placeholder that is none: the word in the braces, and its offsets, braces included."""

    word: str
    begin: int
    end: int


def unfilled(text: str) -> Iterator[Unfilled]:
    """Yield what looks like a placeholder and would reach the agent as it stands."""
    for found in _LIKE_ONE.finditer(text):
        before, word, behind = found.groups()
        if before or behind or word not in PLACEHOLDERS:
            yield Unfilled(word, *found.span())

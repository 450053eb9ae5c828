"""What a comparison finds: changes, each with its class and a sentence (tooling.md §5).

A sentence is kept with the names apart that others wrote, so that every kind of output can make them
harmless in its own way.
"""

import json
import re
from enum import StrEnum
from typing import Any, Final, NamedTuple

_PLAIN: Final = re.compile(r"[A-Za-z0-9._/:@+-]{1,40}")
_ROOM: Final = 40


class Class(StrEnum):
    """What a change does to what a run proves, gravest first."""

    WEAKENED = "weakened"
    REWIRED = "rewired"
    CHANGED = "changed"
    STRENGTHENED = "strengthened"
    COSMETIC = "cosmetic"


class Change(NamedTuple):
    """One difference between two workflows, or between the gates of their manifests.

    ``task`` is its name in the new workflow, or in the old one for a task that is gone, None for what is said of
    the whole. ``field`` is a field of the IR, "" for the task as a whole, a dotted key for the manifest. ``says`` has
    a ``{}`` in the place of each of ``names``; ``old`` and ``new`` are plain data, None for what is not there.
    ``edge`` are the names of a dependent and its dependency, for a change to an edge. ``launch`` are the names and
    texts of the launch under which it is one, empty where it needs none.
    """

    kind: Class
    task: str | None
    field: str
    says: str
    names: tuple[str, ...] = ()
    old: Any = None
    new: Any = None
    edge: tuple[str, str] | None = None
    launch: tuple[tuple[str, str], ...] = ()

    @property
    def sentence(self) -> str:
        """Return the sentence with its names in quotes, as they were written."""
        says = self.says.format(*(f'"{name}"' for name in self.names))
        return f"with {self.given}: {says}" if self.launch else says

    @property
    def given(self) -> str:
        """Return the launch in words, one that would be long cut short."""
        return ", ".join(f"{name} = {_shown(text)}" for name, text in self.launch)


def _shown(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    return json.dumps(text if len(text) <= _ROOM else f"{text[:_ROOM]}…", ensure_ascii=False)

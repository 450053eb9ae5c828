"""Diagnostics: what is wrong with an input, where, and what would be right.

A stage of the compiler that knows no file yields a Finding, whose places are abstract; who knows
the file turns it into a Diagnostic. The codes and their help stand in codes.py.
"""

from __future__ import annotations

from enum import StrEnum

from crucible.schemas.light import NamedTuple
from crucible.schemas.span import Position, Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final, Literal

_LONGEST: Final = 500  # characters of a message


class Severity(StrEnum):
    """How much a diagnostic weighs: an error fails the compile, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


class Related(NamedTuple):
    """Another place that explains a diagnostic, with its own message."""

    message: str
    file: str | None
    span: Span | None


class Suggestion(NamedTuple):
    """An edit that would mend the mistake: put ``replacement`` in the place of ``span``."""

    replacement: str
    file: str
    span: Span


class Diagnostic(NamedTuple):
    """One located message about an input (language.md §9).

    ``file`` and ``span`` are None when the diagnostic has no place.
    """

    code: str
    message: str
    file: str | None = None
    span: Span | None = None
    related: tuple[Related, ...] = ()
    suggestion: Suggestion | None = None
    severity: Severity = Severity.ERROR


class At(NamedTuple):
    """A place in a workflow, before anyone asks in which file that stands.

    ``task`` is the index in ``Workflow.task``, None for the workflow itself. ``field`` is a field
    of the IR ("" for the task or the workflow as a whole), ``param`` the name of one of the
    parameters that the field holds, ``index`` an element of a list, ``part`` "key" for the
    field's key instead of its value.
    """

    task: int | None = None
    field: str = ""
    index: int | None = None  # type: ignore[assignment]  # a place has no use for the method of tuples
    part: Literal["value", "key"] = "value"
    param: str | None = None


class Finding(NamedTuple):
    """A diagnostic of a workflow whose places are still abstract.

    ``suggestion`` is the text that would stand at the primary place.
    """

    code: str
    message: str
    at: At
    related: tuple[tuple[str, At], ...] = ()
    suggestion: str | None = None


def arrange(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Sort by file, place, code and message, and keep each diagnostic once."""
    start = Position(0, 0)

    def key(diagnostic: Diagnostic) -> tuple[str, Position, Position, str, str]:
        span = diagnostic.span or Span(start, start)
        return (diagnostic.file or "", span.begin, span.end, diagnostic.code, diagnostic.message)

    seen: set[tuple[str, str | None, Span | None, str]] = set()
    kept: list[Diagnostic] = []
    for diagnostic in sorted(diagnostics, key=key):
        identity = (diagnostic.code, diagnostic.file, diagnostic.span, diagnostic.message)
        if identity not in seen:
            seen.add(identity)
            kept.append(diagnostic)
    return kept


def at_most(diagnostics: list[Diagnostic], most: int, file: str) -> list[Diagnostic]:
    """Return as many diagnostics as anybody may want to read; of more, the first as ``arrange`` has them."""
    if len(diagnostics) > most and len(diagnostics := arrange(diagnostics)) > most:
        message = f"mistakes reported in one run may be at most {most:,}; there are more"
        return [*diagnostics[:most], Diagnostic("limit-exceeded", message, file)]
    return diagnostics


def brief(message: str) -> str:
    """Return a message, cut in the middle when it is longer than anybody may want to read."""
    if len(message) <= _LONGEST:
        return message
    return f"{message[: _LONGEST // 2]} … {message[-_LONGEST // 4 :]}"


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Tell whether any of the diagnostics is an error."""
    return any(diagnostic.severity is Severity.ERROR for diagnostic in diagnostics)

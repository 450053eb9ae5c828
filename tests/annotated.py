"""Sources that carry their own expectation, on lines that begin with ``#!``.

``ok`` means no error; ``expect CODE LINE:COLUMN`` an error that begins there (``*`` for any);
``suggest TEXT`` the suggestion of the expected diagnostic before it; ``only`` no other error.
"""

from typing import NamedTuple

from crucible.schemas.diagnostic import Diagnostic, Severity


class Expected(NamedTuple):
    """One expected error; None stands for any line or column."""

    code: str
    line: int | None
    column: int | None
    suggestion: str | None = None


class Expectation(NamedTuple):
    """What must come of a source."""

    ok: bool
    errors: tuple[Expected, ...]
    only: bool


def read(text: str) -> Expectation:
    """Read the annotation of a source."""
    ok, only = False, False
    errors: list[Expected] = []
    for line in text.splitlines():
        if not line.startswith("#!"):
            continue
        word, _, rest = line.removeprefix("#!").strip().partition(" ")
        if word == "ok":
            ok = True
        elif word == "only":
            only = True
        elif word == "suggest":
            errors[-1] = errors[-1]._replace(suggestion=rest)
        elif word == "expect":
            code, place = rest.split()
            row, column = (None if part == "*" else int(part) for part in place.split(":"))
            errors.append(Expected(code, row, column))
        else:
            message = f"unknown annotation {word!r}"
            raise ValueError(message)
    return Expectation(ok, tuple(errors), only)


def complaints(expectation: Expectation, diagnostics: list[Diagnostic]) -> list[str]:
    """Say in which way diagnostics differ from what was expected; nothing for a match."""
    found = [d for d in diagnostics if d.severity is Severity.ERROR]
    said = []
    matched: list[Diagnostic] = []
    for expected in expectation.errors:
        fits = [d for d in found if _fits(expected, d)]
        matched += fits
        if not fits:
            said.append(f"missing: {expected}")
    if expectation.ok or expectation.only:
        said += [f"not expected: {d.code} {d.span} {d.message}" for d in found if d not in matched]
    if not (expectation.ok or expectation.errors):
        said.append("the source expects nothing")
    return said


def _fits(expected: Expected, found: Diagnostic) -> bool:
    if found.code != expected.code:
        return False
    begin = found.span.begin if found.span else None
    if expected.line is not None and (begin is None or begin.line != expected.line):
        return False
    if expected.column is not None and (begin is None or begin.column != expected.column):
        return False
    suggestion = found.suggestion.replacement if found.suggestion else None
    return expected.suggestion is None or suggestion == expected.suggestion

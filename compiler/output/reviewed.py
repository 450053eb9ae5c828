"""A review for people, bots and programs: Markdown, annotations, text and JSON.

Pure. As in a diff, nothing that others wrote is markup, a mention or a command.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from crucible.compiler.change import Class
from crucible.compiler.output.changes import MEANINGS, code, images, plain, table
from crucible.compiler.output.changes import to_text as diff_to_text
from crucible.compiler.output.report import harmless, one_json_object
from crucible.compiler.output.report import to_json as diagnostics_to_json
from crucible.compiler.review import NEW, REMOVED, UNKNOWN, PackReview, Review
from crucible.schemas.diagnostic import Diagnostic, Severity

VERSION: Final = 1
_MEANINGS: Final[Mapping[str, str]] = {
    **MEANINGS,
    NEW: "there was no such pack",
    REMOVED: "the pack is gone, and with it all that it checks",
    UNKNOWN: "the two cannot be compared, so a run may prove less",
}


def to_markdown(review: Review, pictures: Mapping[str, Sequence[str]]) -> str:
    """Return the review as a bot posts it: the verdict in the first line, then pack by pack."""
    verdict = review.verdict
    count = sum(pack.verdict == verdict for pack in review.packs)
    if not review.packs:
        head = "**Unchanged:** the change touches no pack"
    else:
        head = f"**{verdict.capitalize()}:** {_MEANINGS[verdict]} ({count} of {_many(len(review.packs), 'pack')})"
    if review.has_errors:
        head += "; there are errors"
    parts = [head]
    for pack in review.packs:
        moved = f", which was {code(pack.was or '.')}" if pack.was is not None else ""
        parts.append(f"### {code(pack.path or '.')}{moved}")
        parts.append(f"**{pack.verdict.capitalize()}:** {_MEANINGS[pack.verdict]}")
        parts += table(pack.diff) if pack.diff is not None else []
        parts += ["\n".join(_line(each) for each in pack.diagnostics)] if pack.diagnostics else []
        parts += images(pictures.get(pack.path, ()))
    return "\n\n".join(parts) + "\n"


def _line(diagnostic: Diagnostic) -> str:
    place = ""
    if diagnostic.file is not None:
        place = diagnostic.file
        if diagnostic.span is not None:
            place += f":{diagnostic.span.begin.line}:{diagnostic.span.begin.column}"
        place = f" {code(place)}:"
    return f"- **{diagnostic.severity.value}** {code(diagnostic.code)}{place} {code(diagnostic.message)}"


def to_text(pack: PackReview) -> str:
    """Return what became of one pack for a terminal, without its diagnostics."""
    if pack.diff is not None:
        return diff_to_text(pack.diff, pack.was if pack.was is not None else pack.path or ".", pack.path or ".")
    return f"{pack.verdict}: {_MEANINGS[pack.verdict]} ({harmless(pack.path or '.')})\n"


def to_json(review: Review, pictures: Mapping[str, Sequence[str]]) -> str:
    """Return the review as one JSON object; it fits ``review.schema.json``."""
    return one_json_object(
        {
            "version": VERSION,
            "base": review.base,
            "head": review.head,
            "verdict": review.verdict,
            "packs": [_plain(pack, pictures.get(pack.path, ())) for pack in review.packs],
        }
    )


def _plain(pack: PackReview, pictures: Sequence[str]) -> dict[str, Any]:
    return {
        "path": pack.path,
        "was": pack.was,
        "verdict": pack.verdict,
        "changes": plain(pack.diff) if pack.diff is not None else [],
        "diagnostics": json.loads(diagnostics_to_json(pack.diagnostics, 1))["diagnostics"],
        "pictures": list(pictures),
    }


def to_diagnostics(review: Review, *, fail_on_weakened: bool) -> list[Diagnostic]:
    """Return the review as annotations: the diagnostics, and one for each weakening at the pack's root."""
    level = Severity.ERROR if fail_on_weakened else Severity.WARNING
    found: list[Diagnostic] = []
    for pack in review.packs:
        found += [
            Diagnostic(change.kind.value, change.sentence, pack.root, severity=level)
            for change in (pack.diff.changes if pack.diff is not None else ())
            if change.kind is Class.WEAKENED
        ]
        if pack.is_grave and pack.diff is None:
            message = f"{pack.path or '.'}: {_MEANINGS[pack.verdict]}"
            found.append(Diagnostic(pack.verdict, message, severity=level))
        found += pack.diagnostics
    return found


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"

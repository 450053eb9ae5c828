"""Comments that suppress a warning: ``# crucible: ignore[code]`` on its line or the line above (language.md §9).

In go the comments of a file and its diagnostics, out come those that are left, with an unused-suppression
for each code in such a comment that suppresses nothing.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from crucible.compiler.analysis.lint.edits import before, lines
from crucible.compiler.frontend.source_file import SourceFile
from crucible.schemas.codes import CODES
from crucible.schemas.diagnostic import Diagnostic, Severity, Suggestion
from crucible.schemas.span import Position, Span
from crucible.schemas.spelling import hint

UNUSED: Final = "unused-suppression"
_MARK: Final = re.compile(r"#\s*crucible:\s*ignore\b(?:\s*\[([^\]]*)\])?")
_CODE: Final = re.compile(r"[^,\s]+")


class _Suppression(NamedTuple):
    """One code in a comment: its place, the comment's, and the lines whose warnings it suppresses."""

    file: SourceFile
    code: str
    comment: Span
    codes: tuple[Span, ...]
    number: int
    lines: set[int]


def suppress(
    files: Iterable[SourceFile], diagnostics: Iterable[Diagnostic], judged: Collection[str] | None
) -> list[Diagnostic]:
    """Leave out the warnings that a comment suppresses, and report the comments that suppress none.

    ``judged`` are the codes whose warnings were looked for; None reports no comment at all.
    """
    found = [each for file in files for each in _read(file)]
    used: set[int] = set()
    at: dict[tuple[str | None, str, int], list[int]] = {}
    for number, each in enumerate(found):
        for line in each.lines:
            at.setdefault((each.file.shown, each.code, line), []).append(number)

    def is_suppressed(diagnostic: Diagnostic) -> bool:
        if diagnostic.severity is not Severity.WARNING or diagnostic.span is None:
            return False
        fits = at.get((diagnostic.file, diagnostic.code, diagnostic.span.begin.line), [])
        used.update(fits)
        return bool(fits)

    kept = [each for each in diagnostics if not is_suppressed(each)]
    if judged is None:
        return kept
    idle = [_unused(each) for number, each in enumerate(found) if number not in used and _may_say(each, judged)]
    kept += [each for each in idle if not is_suppressed(each)]
    return kept + [_unused(each) for number, each in enumerate(found) if number not in used and each.code == UNUSED]


def _may_say(suppression: _Suppression, judged: Collection[str]) -> bool:
    """Tell whether it is known that a suppression has nothing to suppress."""
    code = CODES.get(suppression.code)
    return suppression.code != UNUSED and (
        code is None or code.severity is Severity.ERROR or suppression.code in judged
    )


def _read(file: SourceFile) -> Iterator[_Suppression]:
    """Yield what the comments of a file suppress; one without a code suppresses the code ""."""
    lines_of_text = file.text.split("\n")
    below_comments = [*range(2, len(lines_of_text) + 2)]
    for number in range(len(lines_of_text) - 2, -1, -1):
        if lines_of_text[number + 1].lstrip().startswith("#"):
            below_comments[number] = below_comments[number + 1]
    for comment in file.source.comments:
        found = _MARK.search(f"#{comment.text}")
        if found is None:
            continue
        line, column = comment.span.begin
        # A comment that has its line for itself is about what follows, other such comments between them or not.
        below = () if before(file, comment.span.begin).strip() else (line + 1, below_comments[line - 1])
        codes = [(match.group(), match.start(), match.end()) for match in _CODE.finditer(found[1] or "")]
        shift = column + (found.start(1) if codes else 0)
        spans = tuple(Span(Position(line, shift + begin), Position(line, shift + end)) for _, begin, end in codes)
        for index, code in enumerate([code for code, *_ in codes] or [""]):
            yield _Suppression(file, code, comment.span, spans, index, {line, *below})


def _unused(suppression: _Suppression) -> Diagnostic:
    """Say why a suppression has no effect."""
    file, code, comment = suppression.file, suppression.code, suppression.comment
    known = CODES.get(code)
    guess = None
    if not code:
        why = "this names no code to ignore; write ignore[code]"
    elif known is None:
        tail, guess = hint(code, (name for name, row in CODES.items() if row.severity is Severity.WARNING))
        why = f'"{code}" is no code that can be ignored{tail}'
    elif known.severity is Severity.ERROR:
        why = f'"{code}" is an error, and only a warning can be ignored; mend it'
    else:
        why = f'there is no "{code}" to ignore here; remove the comment'
    edit = Suggestion(guess, file.shown, suppression.codes[suppression.number]) if guess else _removal(suppression)
    return Diagnostic(UNUSED, why, file.shown, comment, (), edit, Severity.WARNING)


def _removal(suppression: _Suppression) -> Suggestion | None:
    """Take out the code, or the comment when it says nothing else."""
    file, comment, codes = suppression.file, suppression.comment, suppression.codes
    text = file.cut(comment)
    if len(codes) > 1:
        index = suppression.number
        span = Span(codes[index - 1].end, codes[index].end) if index else Span(codes[0].begin, codes[1].begin)
        return Suggestion("", file.shown, span)
    found = _MARK.fullmatch(text.rstrip())
    if found is None:
        return None
    left = before(file, comment.begin)
    if not left.strip():
        return Suggestion("", file.shown, lines(file, comment))
    begin = Position(comment.begin.line, len(left.rstrip()) + 1)
    return Suggestion("", file.shown, Span(begin, comment.end))

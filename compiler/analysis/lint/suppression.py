"""Comments that suppress a warning: ``# crucible: ignore[code]`` on its line or the line above (language.md §9).

In go the comments of a file and its diagnostics, out come those that are left, with an unused-suppression
for each code in such a comment that suppresses nothing. What a misspelt one was meant to keep, nobody mends.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from crucible.compiler.analysis.lint.edits import before, lines
from crucible.compiler.frontend.source_file import SourceFile
from crucible.schemas.codes import CODES
from crucible.schemas.diagnostic import Diagnostic, Severity, Suggestion
from crucible.schemas.span import Position, Span
from crucible.schemas.spelling import hint, nearest

UNUSED: Final = "unused-suppression"
_MARK: Final = re.compile(r"#\s*crucible:\s*ignore\b(?:\s*\[([^\]]*)\])?")
_LIKE: Final = re.compile(r"#\s*+((\w{1,20})\b\s*+:?\s*+\b(\w{1,20}))\b\s*+(?=\[|$)")
_MEANT: Final = ("crucible", "ignore")
_CODE: Final = re.compile(r"[^,\s]+")


class _Suppression(NamedTuple):
    """One code in a comment: its place, the comment's, and the lines whose warnings it suppresses.

    Of a comment that suppresses nothing, however it is meant, ``why`` says so, and ``like`` is what to mend in it.
    """

    file: SourceFile
    code: str
    comment: Span
    codes: tuple[Span, ...]
    number: int
    lines: set[int]
    why: str = ""
    like: Span | None = None

    @property
    def is_void(self) -> bool:
        """Tell whether it names no code at all, whatever it was meant to."""
        return bool(self.why) or self.code not in CODES


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

    void = {(each.file.shown, line) for each in found if each.is_void for line in each.lines}

    def is_meant(diagnostic: Diagnostic) -> bool:
        is_warning = diagnostic.severity is Severity.WARNING and diagnostic.span is not None
        return is_warning and (diagnostic.file, diagnostic.span and diagnostic.span.begin.line) in void

    kept = [each for each in diagnostics if not is_suppressed(each)]
    kept = [each._replace(suggestion=None) if is_meant(each) else each for each in kept]
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
        text = f"#{comment.text}"
        found = _MARK.search(text)
        like = None if found else _misspelt(text)
        if not found and not like:
            continue
        line, column = comment.span.begin
        # A comment that has its line for itself is about what follows, other such comments between them or not.
        below = () if before(file, comment.span.begin).strip() else (line + 1, below_comments[line - 1])
        about = {line, *below}
        if not found:
            place = like and Span(Position(line, column + like[0]), Position(line, column + like[1]))
            why = f'this ignores no warning; did you mean "{": ".join(_MEANT)}"?'
            yield _Suppression(file, "", comment.span, (), 0, about, why, place)
            continue
        codes = [(match.group(), match.start(), match.end()) for match in _CODE.finditer(found[1] or "")]
        shift = column + (found.start(1) if codes else 0)
        spans = tuple(Span(Position(line, shift + begin), Position(line, shift + end)) for _, begin, end in codes)
        for index, code in enumerate([code for code, *_ in codes] or [""]):
            yield _Suppression(file, code, comment.span, spans, index, about)
        if _MARK.search(text, found.end()):
            why = "only the first ignore[…] of a line counts; write all codes in it, with commas between them"
            yield _Suppression(file, "", comment.span, (), 0, about, why)


def _misspelt(text: str) -> tuple[int, int] | None:
    """Return where a comment has what is nearly the mark of a suppression."""
    for found in _LIKE.finditer(text):
        pairs = list(zip((found[2], found[3]), _MEANT, strict=True))
        if all(word == meant or nearest(word, [meant]) for word, meant in pairs):
            is_marked = found[1].startswith("crucible:") or text[found.end() : found.end() + 1] == "["
            if is_marked:
                return found.span(1)
    return None


def _unused(suppression: _Suppression) -> Diagnostic:
    """Say why a suppression has no effect."""
    file, code, comment = suppression.file, suppression.code, suppression.comment
    known = CODES.get(code)
    guess = None
    if suppression.why:
        why = suppression.why
    elif not code:
        why = "this names no code to ignore; write ignore[code]"
    elif known is None:
        tail, guess = hint(code, (name for name, row in CODES.items() if row.severity is Severity.WARNING))
        why = f'"{code}" is no code that can be ignored{tail}'
    elif known.severity is Severity.ERROR:
        why = f'"{code}" is an error, and only a warning can be ignored; mend it'
    else:
        why = f'there is no "{code}" to ignore here; remove the comment'
    edit: Suggestion | None
    if suppression.like is not None:
        edit = Suggestion(": ".join(_MEANT), file.shown, suppression.like)
    elif guess:
        edit = Suggestion(guess, file.shown, suppression.codes[suppression.number])
    else:
        edit = None if suppression.is_void else _removal(suppression)
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

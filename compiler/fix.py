"""Applies suggestions to the bytes of sources until nothing changes, and keeps only what makes nothing worse.

In: how to read a file and how to judge the sources with some files changed. Out: the new bytes and what
was mended. Nothing is written here. Every byte outside of an edit stays, line ends and byte-order mark too.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from crucible.compiler.analysis.rules import RULES
from crucible.schemas.diagnostic import Diagnostic, Severity, Suggestion
from crucible.schemas.ir import Workflow
from crucible.schemas.span import Position

_ROUNDS: Final = 10
_TRIES: Final = 40  # enough to find a few bad suggestions among hundreds
_MARK: Final = "\ufeff"
# What has to go before the next stage looks at the source at all, each tuple before the next (language.md §9).
_STAGES: Final = (
    ("syntax-error", "nul-in-source", "source-not-utf8", "toml-syntax", "json-syntax"),
    ("unknown-name", "lane-not-literal", "load-cycle", "unknown-symbol", "private-symbol", "invalid-params"),
)
_NARROWED: Final = "redundant-dependency"  # the one suggestion for a warning that changes what is compiled
_UNSURE: Final = "unused-load"  # a module may declare sessions: only a compile tells that nothing came of them


class Verdict(NamedTuple):
    """What is said of some sources, and the workflow of each, None where there is an error."""

    diagnostics: list[Diagnostic]
    workflows: tuple[Workflow | None, ...]


class Mended(NamedTuple):
    """What came of it: the new bytes of each file that changed, the diagnostics that are gone, and what is left."""

    files: dict[str, bytes]
    fixed: list[Diagnostic]
    verdict: Verdict


def mend(read: Callable[[str], bytes | None], judge: Callable[[Mapping[str, bytes]], Verdict]) -> Mended:
    """Apply suggestions that do not overlap, round by round, at most ten times.

    ``read`` gives the bytes of a file as it is, None for one that may not be changed; ``judge`` judges the
    sources with the files that it is given in the place of those. Errors go first, for they hide others.
    """
    mending = _Mending(read, judge)
    for _ in range(_ROUNDS):
        if not any(mending.keep(mending.candidates(severity)) for severity in Severity):
            break
    return Mended(mending.files, mending.fixed, mending.verdict)


class _Mending:
    """The state of one mending: the files as they are by now, and what is said of them."""

    def __init__(self, read: Callable[[str], bytes | None], judge: Callable[[Mapping[str, bytes]], Verdict]) -> None:
        self._read = read
        self._judge = judge
        self._saved: dict[str, bytes | None] = {}
        self.files: dict[str, bytes] = {}
        self.fixed: list[Diagnostic] = []
        self.verdict = judge({})
        self._tries = _TRIES

    def _bytes(self, file: str) -> bytes | None:
        if file in self.files:
            return self.files[file]
        if file not in self._saved:
            self._saved[file] = self._read(file)
        return self._saved[file]

    def candidates(self, severity: Severity) -> list[Diagnostic]:
        """Return the diagnostics of a severity whose suggestions can be applied together, by their places."""
        found = [
            (each.suggestion.file, each.suggestion.span, number)
            for number, each in enumerate(self.verdict.diagnostics)
            if each.severity is severity
            and each.suggestion is not None
            and self._bytes(each.suggestion.file) is not None
        ]
        kept: list[Diagnostic] = []
        last: Suggestion | None = None
        for file, span, number in sorted(found):
            if last is None or file != last.file or (span.begin >= last.span.end and span != last.span):
                kept.append(self.verdict.diagnostics[number])
                last = kept[-1].suggestion
        return kept

    def keep(self, candidates: list[Diagnostic]) -> bool:
        """Apply all that can be kept: all at once, or else each half on its own; tell whether there was one."""
        if not candidates or not self._tries:
            return False
        self._tries -= 1
        files = self._with(candidates)
        if files is not None:
            verdict = self._judge(files)
            if _is_better(self.verdict, verdict, candidates):
                self.files, self.verdict = files, verdict
                self.fixed += candidates
                return True
        if len(candidates) == 1:
            return False
        middle = len(candidates) // 2
        # From the end, so that the places of the first half still hold in their files.
        later = self.keep(candidates[middle:])
        return self.keep(candidates[:middle]) or later

    def _with(self, candidates: list[Diagnostic]) -> dict[str, bytes] | None:
        """Return the files with suggestions applied, None when that changes nothing."""
        edits: dict[str, list[Suggestion]] = {}
        for each in candidates:
            if each.suggestion is not None:
                edits.setdefault(each.suggestion.file, []).append(each.suggestion)
        files = dict(self.files)
        changed = False
        for file, suggestions in edits.items():
            data = self._bytes(file)
            new = None if data is None else edited(data, suggestions)
            if new is not None and new != data:
                files[file] = new
                changed = True
        return files if changed else None


def _is_better(before: Verdict, after: Verdict, candidates: Iterable[Diagnostic]) -> bool:
    """Tell whether suggestions did what they should.

    Those for errors leave fewer of a stage and no more of those before it; behind it others may come to light, and
    of more than are reported as many as before.
    Those for warnings leave the errors as they are, and the workflows, but for a dependency that is implied.
    """
    codes = {each.code for each in candidates}
    if any(each.severity is Severity.ERROR for each in candidates):
        weights, former = _weights(after), _weights(before)
        return weights < former or (weights == former and any(code == "limit-exceeded" for code, _ in _errors(before)))
    if Counter(_errors(after)) - Counter(_errors(before)):
        return False
    if _UNSURE in codes and None in before.workflows:
        return False
    narrows = _NARROWED in codes
    pairs = zip(before.workflows, after.workflows, strict=True)
    return all(_bare(old, narrows=narrows) == _bare(new, narrows=narrows) for old, new in pairs)


def _errors(verdict: Verdict) -> list[tuple[str, str]]:
    return [(each.code, each.message) for each in verdict.diagnostics if each.severity is Severity.ERROR]


def _weights(verdict: Verdict) -> list[int]:
    """Count the errors of each stage, in the order of the stages; the rules of the graph come last."""
    counts = [0, 0, 0, 0]
    for code, _ in _errors(verdict):
        stage = next((number for number, codes in enumerate(_STAGES) if code in codes), 2)
        is_rule = code == "dropped-task" or (code in RULES and code != "unknown-task")
        counts[3 if stage == len(_STAGES) and is_rule else stage] += 1
    return counts


def _bare(workflow: Workflow | None, *, narrows: bool) -> Workflow | None:
    """Return a workflow to compare, without its dependencies when some may go."""
    if workflow is None or not narrows:
        return workflow
    return workflow.replace(task=tuple(task.replace(depends_on=()) for task in workflow.task))


def edited(data: bytes, suggestions: Iterable[Suggestion]) -> bytes | None:
    """Return the bytes of a text with edits that do not overlap; None when they are no text."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    starts = [len(_MARK) if text.startswith(_MARK) else 0]
    while (end := text.find("\n", starts[-1])) >= 0:
        starts.append(end + 1)

    def offset(at: Position) -> int:
        return min(starts[at.line - 1] + at.column - 1, len(text)) if at.line <= len(starts) else len(text)

    for each in sorted(suggestions, key=lambda each: each.span, reverse=True):
        text = text[: offset(each.span.begin)] + each.replacement + text[offset(each.span.end) :]
    return text.encode()

"""Diagnostics for code scanning: a list of diagnostics becomes one SARIF 2.1.0 log (tooling.md §2).

Pure: whoever calls knows the repository and gives each file its name from the top of it. A diagnostic
without a file, and one whose code no source can provoke, is a notification of the run: an upload refuses
a result that has no location.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from crucible.compiler.output.report import one_json_object
from crucible.schemas.codes import CODES, Code
from crucible.schemas.diagnostic import Diagnostic, Related, Severity, Suggestion
from crucible.schemas.span import Span

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT: Final = "SRCROOT"
_START: Final = Span.of(1, 1, 1, 1)
# Not every reader of JSON takes half a surrogate pair; what a file name holds for a byte that is no UTF-8 is one.
_HALVES: Final = re.compile("[\ud800-\udfff]")
_NO_BYTES: Final = re.compile("[\ud800-\udc7f\udd00-\udfff]")


def to_sarif(diagnostics: Iterable[Diagnostic], from_top: Callable[[str], str], version: str) -> str:
    """Return the log, one JSON object in a text that ends in a newline; results keep the order given.

    ``from_top`` gives a file its name from the top of the repository, with / separators, or its absolute path when
    it lies outside. ``version`` is that of the tool. The positions of a region are those of the diagnostic: columns
    from 1 in code points, the end behind the last character.
    """
    kept = list(diagnostics)
    results = [each for each in kept if each.file is not None and each.code in CODES]
    notifications = [each for each in kept if each.file is None or each.code not in CODES]
    used = {each.code for each in results}
    rules = [code for name, code in CODES.items() if name in used]
    places = _Places(from_top)
    run = {
        "tool": {"driver": {"name": "crucible", "version": version, "rules": [_rule(code) for code in rules]}},
        "invocations": [
            {
                "executionSuccessful": all(each.severity is not Severity.ERROR for each in notifications),
                "toolExecutionNotifications": [_notification(each) for each in notifications],
            }
        ],
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The top of the repository."}}},
        "columnKind": "unicodeCodePoints",
        "results": [places.result(each, rules.index(CODES[each.code])) for each in results],
    }
    return one_json_object({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(code: Code) -> dict[str, Any]:
    """Describe a code; its one sentence stands wherever a viewer may look for one."""
    return {
        "id": code.code,
        "shortDescription": {"text": code.help},
        "fullDescription": {"text": code.help},
        "help": {"text": f"{code.help}\n\nAn example: crucible plan explain {code.code}"},
        "defaultConfiguration": {"level": code.severity.value},
    }


def _notification(diagnostic: Diagnostic) -> dict[str, Any]:
    """Say what has no place in a file."""
    return {
        "descriptor": {"id": diagnostic.code},
        "level": diagnostic.severity.value,
        "message": {"text": _text("\n".join((diagnostic.message, *(each.message for each in diagnostic.related))))},
    }


def _text(text: str) -> str:
    return _HALVES.sub("\ufffd", text)


class _Places:
    """Writes what names a file."""

    def __init__(self, from_top: Callable[[str], str]) -> None:
        self._from_top = from_top

    def result(self, diagnostic: Diagnostic, index: int) -> dict[str, Any]:
        """Return one result; ``index`` is that of its rule."""
        placed = [each for each in diagnostic.related if each.file is not None]
        message = "\n".join((diagnostic.message, *(each.message for each in diagnostic.related if each.file is None)))
        result: dict[str, Any] = {
            "ruleId": diagnostic.code,
            "ruleIndex": index,
            "level": diagnostic.severity.value,
            "message": {"text": _text(message)},
            "locations": [{"physicalLocation": self._physical(diagnostic.file or "", diagnostic.span)}],
        }
        if placed:
            result["relatedLocations"] = [self._related(number, each) for number, each in enumerate(placed, 1)]
        if diagnostic.suggestion is not None:
            result["fixes"] = [self._fix(diagnostic.suggestion)]
        return result

    def _related(self, number: int, related: Related) -> dict[str, Any]:
        return {
            "id": number,
            "message": {"text": _text(related.message)},
            "physicalLocation": self._physical(related.file or "", related.span),
        }

    def _fix(self, suggestion: Suggestion) -> dict[str, Any]:
        action = f"Replace with {suggestion.replacement}" if suggestion.replacement else "Delete"
        replacement = {
            "deletedRegion": _region(suggestion.span),
            "insertedContent": {"text": _text(suggestion.replacement)},
        }
        change = {"artifactLocation": self._file(suggestion.file), "replacements": [replacement]}
        return {"description": {"text": _text(action)}, "artifactChanges": [change]}

    def _physical(self, file: str, span: Span | None) -> dict[str, Any]:
        # A file as a whole would be no region at all; an upload wants a line.
        return {"artifactLocation": self._file(file), "region": _region(span or _START)}

    def _file(self, file: str) -> dict[str, str]:
        from urllib.parse import quote

        name = self._from_top(file)
        uri = quote(_NO_BYTES.sub("\ufffd", name).encode(errors="surrogateescape"))
        return {"uri": f"file://{uri}"} if name.startswith("/") else {"uri": uri, "uriBaseId": _ROOT}


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.begin.line,
        "startColumn": span.begin.column,
        "endLine": span.end.line,
        "endColumn": span.end.column,
    }

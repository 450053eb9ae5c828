"""What ended an evaluation: the evaluator's error or the death of its process, at the innermost authored place.

In: an attempt whose evaluation did not come to its end. Out: one diagnostic. To find the place, the same files may
be evaluated once more with other texts, in a process of its own.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from crucible.compiler.attempt import Attempt
from crucible.compiler.failure_words import LACKING, NOT_A_VALUE, SURPLUS, cleaned, cured
from crucible.compiler.frontend import tree
from crucible.compiler.frontend.limits import Limits
from crucible.compiler.frontend.pack import Refusal
from crucible.compiler.frontend.places import Places, call_at, node_at, suspect
from crucible.compiler.frontend.sandbox import Death, Sandbox, heap_is_full
from crucible.compiler.frontend.source_file import SourceFile, loaded_from
from crucible.schemas.diagnostic import Diagnostic, Related, Suggestion
from crucible.schemas.span import Position, Span
from crucible.schemas.spelling import nearest

_ODD_KEY: Final = "TypeError: unhashable type"
_TWICE: Final = re.compile(r"Argument `(.*)` occurs more than once")
_TOO_DEEP: Final = ("Maximum depth of", "Cycle detected while converting")
_NO_MEMORY: Final = ("MemoryError", "PanicException: capacity overflow")
_TOO_MANY_CALLS: Final = "Starlark call stack overflow"
_TRACE: Final = "__crucible_statement__"
_APART: Final = "_ = 0; "
_AGAIN: Final = 1.5  # seconds of one more evaluation, which comes on top of those of the first


class Ended:
    """The end of one attempt's evaluation."""

    def __init__(self, attempt: Attempt, limits: Limits, places: Places) -> None:
        self._attempt = attempt
        self._limits = limits
        self._files = attempt.files
        self._places = places
        self._ended_by_clock = False

    def in_its_words(self, error: dict[str, Any]) -> Diagnostic:
        """Say in the evaluator's words what reading the tree did not find."""
        code = "syntax-error" if error["kind"] == "syntax" else "evaluation-error"
        file, span = self._error_place(error)
        return Diagnostic(code, cured(cleaned(error.get("message", "the source cannot be evaluated"))), file, span)

    def _unfolded(self, error: dict[str, Any]) -> dict[str, Any]:
        """Return an error with its place inside the function that raised it.

        The evaluator folds a module's function of one expression into its callers. A statement in
        front of the expression prevents that when we evaluate again.
        """
        place = error["place"]
        call = call_at(self._files[place[0]], Position(place[1], place[2]), "") if place else None
        if len(self._files) == 1 or call is None or not isinstance(call.function, tree.Name):
            return error
        texts, moved = {}, {}
        for file in self._files.values():
            lines = file.text.split("\n")
            for node in tree.walk(*file.source.statements) if file.number else ():
                if isinstance(node, tree.Def) and isinstance(node.body[-1], tree.Return):
                    line, column = node.body[-1].span.begin
                    lines[line - 1] = lines[line - 1][: column - 1] + _APART + lines[line - 1][column - 1 :]
                    moved[file.number, line] = column
            texts[file.number] = "\n".join(lines)
        try:
            again = (self._evaluate_again(texts) or {})["error"]
            found = checked([again["place"], again["frames"]], self._files)
            if found is None or again["message"] != error["message"]:
                return error
        except (LookupError, TypeError, ValueError):
            return error
        (number, line, column), frames = found
        if column > moved.get((number, line), column):
            column -= len(_APART)
        return {**error, "place": [number, line, column], "frames": frames}

    def _error_place(self, error: dict[str, Any]) -> tuple[str, Span | None]:
        place = error.get("place")
        if not place or place[0] not in self._files:
            return self._files[0].shown, None
        file = self._files[place[0]]
        return file.shown, node_at(file, Position(place[1], place[2]), error["width"])

    def at_its_place(self, error: dict[str, Any], limit: list[Any] | None) -> Diagnostic:
        """Say what ended the evaluation, at the innermost authored place, with the calls that led there."""
        message = cleaned(error["message"])
        error = self._unfolded(error)
        shown, span = self._error_place(error)
        related = self._places.callers(error["frames"], error["place"]) if span else ()
        author = self._places.author_of(error["frames"], error["place"]) if span else None
        if author is not None:
            shown, span, related = author.file.shown, author.span, author.callers
        elif span and not related:
            related = loaded_from(self._files, self._files[error["place"][0]])
        if limit is not None:
            what, most, measured = limit
            return Diagnostic(
                "limit-exceeded", f"{what} may be at most {most:,}; this is {measured:,}", shown, span, related
            )
        if message.startswith(_NO_MEMORY):
            return Diagnostic("limit-exceeded", heap_is_full(self._limits), shown, span, related)
        if message == _TOO_MANY_CALLS:
            most = self._limits.call_depth
            return Diagnostic(
                "limit-exceeded", f"call depth may be at most {most}; this is {most + 1}", shown, span, related[:1]
            )
        if message.startswith("fail:"):
            text = message.removeprefix("fail:").removeprefix(" ") or "fail() was called without a text"
            return Diagnostic("evaluation-error", text, shown, span, related)
        if NOT_A_VALUE.match(message) or message.startswith((*_TOO_DEEP, _ODD_KEY)) or _TWICE.match(message):
            return self._bad_argument(error, message, related)
        misnamed = self._misnamed(message, shown, span, related) if span else None
        return misnamed or Diagnostic("evaluation-error", cured(message), shown, span, related)

    def _misnamed(self, message: str, shown: str, span: Span, related: tuple[Related, ...]) -> Diagnostic | None:
        """Say which argument of a call of a def is misspelt; None when none is near a parameter that is not given."""
        lacking, surplus = LACKING.match(message), SURPLUS.match(message)
        match = lacking or surplus
        file = next((file for file in self._files.values() if file.shown == shown), None)
        call = None if match is None or file is None else call_at(file, span.begin, match[2])
        if match is None or call is None:
            return None
        nodes = (node for each in self._files.values() for node in tree.walk(*each.source.statements))
        defined = next((node for node in nodes if isinstance(node, tree.Def) and node.name.id == match[2]), None)
        known = [each.name.id for each in defined.parameters if not each.star] if defined else []
        given = {each.name.id: each.name for each in call.arguments if each.name is not None}
        unknown = [name for name in given if name not in known]
        wrong: str | None = match[1]
        meant = nearest(match[1], (name for name in known if name not in given))
        if lacking:
            wrong, meant = nearest(match[1], unknown), match[1]
        if wrong not in given or meant is None:
            return None
        at = given[wrong].span
        text = f'{match[2]}() has no argument "{wrong}"; did you mean "{meant}"?'
        return Diagnostic("unknown-argument", text, shown, at, related, Suggestion(meant, shown, at))

    def _bad_argument(self, error: dict[str, Any], message: str, related: tuple[Related, ...]) -> Diagnostic:
        """Place a value that could not even be handed to a constructor at the argument that has it."""
        number, line, column = error["place"]
        file = self._files[number]
        call = call_at(file, Position(line, column), "")
        name = call.function.id if call is not None and isinstance(call.function, tree.Name) else "a constructor"
        twice, odd, kind = _TWICE.match(message), NOT_A_VALUE.match(message), ""
        if twice:
            code, text = "repeated-argument", f'{name}() is given "{twice[1]}" twice; remove one of the two'
        elif odd or message.startswith(_ODD_KEY):
            kind = odd[1] if odd else "dict"
            shown = {"range": "range", "dict": "dict with a key that is no plain value"}.get(kind, "function")
            instead = "print str(…) of it" if name == "print" else "give plain values and tasks"
            code, text = "wrong-type", f"an argument of {name}() is a {shown}; {instead}"
        else:
            code, text = "value-too-deep", f"an argument is nested more than {self._limits.value_depth} levels deep"
        if call is None:
            return Diagnostic(code, text, file.shown, node_at(file, Position(line, column), error["width"]), related)
        if twice:
            span = next((argument.span for argument in call.arguments if argument.star == "**"), call.function.span)
        else:
            span = suspect(file, call, kind).span
        return Diagnostic(code, text, file.shown, span, related)

    def of_death(self, death: Death) -> Diagnostic:
        """Say that the process ended, and, where memory was the reason, at which statement."""
        root = self._files[0]
        if death.heap:
            found = self._trace()
            if found is not None:
                file, span = found
                return Diagnostic(death.code, death.message, file.shown, span)
        return Diagnostic(death.code, death.message, root.shown)

    def _trace(self) -> tuple[SourceFile, Span] | None:
        """Find the top-level statement that asked for too much, by evaluating with a mark before each."""
        statements: dict[tuple[int, int], Span] = {}
        texts: dict[int, str] = {}
        for file in self._files.values():
            lines = file.text.split("\n")
            for number, statement in reversed(list(enumerate(file.source.statements))):
                statements[file.number, number] = statement.span
                lines.insert(statement.span.begin.line - 1, f"{_TRACE}({file.number}, {number})")
            texts[file.number] = "\n".join(lines)

        if self._evaluate_again(texts, trace=_TRACE) is not None or self._ended_by_clock:
            return None  # it did not come to where the first one ended
        place = self._attempt.trace
        return None if place is None or place not in statements else (self._files[place[0]], statements[place])

    def _evaluate_again(self, texts: Mapping[int, str], **request: str) -> dict[str, Any] | None:
        """Evaluate the same files with other texts in a process of its own; None when that dies."""

        def serve(message: dict[str, Any]) -> dict[str, Any] | None:
            if "at" in message:
                self._attempt.trace = (int(message["at"][0]), int(message["at"][1]))
                return None
            if message["ask"] == "prompt":
                text = self._attempt.prompt(message["path"])
                return {} if isinstance(text, Refusal) else {"text": text}
            loads = self._files[int(message["file"])].loads
            found = self._attempt.file_of(str(loads[int(message["load"])].path.value))
            return {} if found is None else {"file": found.number, "text": texts[found.number]}

        limits = self._limits._replace(seconds=min(self._limits.seconds, _AGAIN))
        try:
            with Sandbox(limits, serve) as sandbox:
                return sandbox.ask({**self._attempt.request, "text": texts[0], **request})
        except Death as death:
            self._ended_by_clock = not death.heap
            return None


def checked(place: Any, files: Mapping[int, SourceFile]) -> Any:
    """Check the shape of a place that the evaluation sent; None stays None."""
    if place is None:
        return None
    (number, line, column), frames = place
    if number not in files or not isinstance(line, int) or not isinstance(column, int):
        return None
    kept = [[n, at, str(name)] for n, at, name in frames if n in files and isinstance(at, int)]
    return [[number, line, column], kept]

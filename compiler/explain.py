"""What is wrong with a source, each mistake at its exact place: used once something is.

In: one attempt to compile (files, what evaluating gave, findings with abstract places). Out:
diagnostics. Syntax and names come first; only without them do the mistakes of the evaluation and of
the graph count, and what is a consequence of another mistake is left out (language.md §9).
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any, Final

from crucible.compiler.attempt import Attempt
from crucible.compiler.ended import Ended, checked
from crucible.compiler.frontend import names, tree
from crucible.compiler.frontend.binding import Problem, Spot
from crucible.compiler.frontend.external import without_marks
from crucible.compiler.frontend.limits import Limits
from crucible.compiler.frontend.lower import is_placeholder, unknown_param
from crucible.compiler.frontend.marks import MARK, WANTED, marked
from crucible.compiler.frontend.misplaced import NAMED_BEFORE
from crucible.compiler.frontend.origins import CallFinding, InCall
from crucible.compiler.frontend.params import Problem as ParamProblem
from crucible.compiler.frontend.places import Places, inner_span, may_be_none, spot_in
from crucible.compiler.frontend.sandbox import Death, Sandbox
from crucible.compiler.frontend.scan import Fault, string_value
from crucible.compiler.frontend.source_file import SourceFile, loaded_from
from crucible.compiler.frontend.tears import Tears
from crucible.compiler.frontend.vocabulary import CONSTRUCTORS
from crucible.compiler.lane_in_scope import is_unfinished, lane_in_scope
from crucible.schemas.codes import CODES
from crucible.schemas.diagnostic import Diagnostic, Related, Suggestion, at_most, brief, has_errors
from crucible.schemas.span import Span

_AT_A_TIME: Final = 500
_TWICE_IN_A_LIST: Final = ("duplicate-task", "duplicate-dependency", "duplicate-field")
_BAD_ELEMENT: Final = ("unknown-task", "invalid-field")
_BRACKETS: Final = "[{}]"
_QUOTED: Final = re.compile("r?[\"']")


def explain(attempt: Attempt, limits: Limits, sandbox: Sandbox) -> list[Diagnostic]:
    """Return everything that is wrong with a source, as many mistakes as anybody may want to read."""
    root = attempt.files[0].shown
    diagnostics = at_most(_Explanation(attempt, limits, sandbox).run(), limits.mistakes, root)
    if attempt.unplaced is not None:
        message = f"{attempt.unplaced.message}; not all mistakes have their places"
        diagnostics.append(Diagnostic(attempt.unplaced.code, message, root))
    return diagnostics


def of_fault(file: SourceFile, fault: Fault, related: tuple[Related, ...] = ()) -> Diagnostic:
    """Return the diagnostic of a fault that the scan found."""
    own = () if fault.related is None else (Related(fault.related[0], file.shown, fault.related[1]),)
    return Diagnostic(fault.code, fault.message, file.shown, fault.span, own + related)


def of_param(file: SourceFile, problem: ParamProblem) -> Diagnostic:
    """Return the diagnostic of a mistake in the declarations or values of parameters."""
    related = () if problem.related is None else (Related(problem.related[0], file.shown, problem.related[1]),)
    suggestion = None
    if problem.suggestion is not None and problem.span is not None:
        suggestion = Suggestion(problem.suggestion, file.shown, problem.span)
    shown = file.shown if problem.span else None
    return Diagnostic(
        problem.code, problem.message, shown, problem.span, related, suggestion, CODES[problem.code].severity
    )


def places_of(attempt: Attempt, sandbox: Sandbox) -> Places:
    """Return what finds the places of an attempt's calls, by asking its evaluation where they stand."""
    marks: dict[str, Any] = {}

    def locate(numbers: list[int]) -> list[Any]:
        """Ask some at a time; nothing for those that the evaluation can no longer say."""
        places: list[Any] = []
        if not marks:
            names = {*attempt.request["makes"], "print"}
            texts = {number: marked(file, names) for number, file in attempt.files.items()}
            marks.update(mark=MARK, wanted=WANTED, texts=texts)
        try:
            for first in range(0, len(numbers), _AT_A_TIME):
                answer = sandbox.ask({"locate": numbers[first : first + _AT_A_TIME], "marks": marks})
                places += [checked(place, attempt.files) for place in answer["places"]]
        except Death as death:
            attempt.unplaced = death
        except (LookupError, TypeError, ValueError):
            pass
        return [*places, *[None] * len(numbers)][: len(numbers)]

    return Places(attempt.files, attempt.calls, locate)


def _edit(file: SourceFile, suggestion: str, span: Span, node: tree.Node | None) -> Suggestion | None:
    """Return the edit that a suggestion means at a place: quotes stay, "{}" is the text that is there."""
    text = file.cut(span)
    if text.startswith("*"):
        return None  # the argument itself is written elsewhere
    if suggestion.endswith(" = {}") and isinstance(node, tree.Binary) and node.op == "==":
        return None  # "=" was meant
    if suggestion == _BRACKETS or suggestion.endswith(" = {}"):
        return Suggestion(suggestion.replace("{}", text), file.shown, span)
    if node is None and _QUOTED.match(text):
        node = tree.Literal(span, string_value(text))
    if node is None:
        return Suggestion(suggestion, file.shown, span)
    inner = inner_span(file, node) if isinstance(node, tree.Literal) else None
    if inner is None or any(c in suggestion for c in "\"'\\\n\r"):
        return None  # the value comes from somewhere else, or its text is not what it says
    return Suggestion(suggestion, file.shown, inner)


class _Explanation:
    """The reading of one attempt."""

    def __init__(self, attempt: Attempt, limits: Limits, sandbox: Sandbox) -> None:
        self._attempt = attempt
        self._limits = limits
        self._sandbox = sandbox
        self._files = attempt.files
        self._loads: dict[int, tuple[Related, ...]] = {}
        self._places = places_of(attempt, sandbox)
        self._ended = Ended(attempt, limits, self._places)

    def run(self) -> list[Diagnostic]:
        """Say what reading shows, then, unless that forbids it, what evaluating and judging found."""
        self._read_modules()
        lanes = [d for d in self._lanes() if not self._is_broken(d)]
        odd = {(d.file, d.span) for d in lanes}  # a lane that is no literal is of the wrong type, too
        read = [d for d in islice(self._reading(), self._limits.mistakes + 1) if (d.file, d.span) not in odd]
        # Behind a named argument a positional one is no Starlark; of a constructor there is more to say.
        unnamed = {(d.file, d.span) for d in read if d.code == "positional-argument"}
        syntax = [d for d in self._syntax() if d.message != NAMED_BEFORE or (d.file, d.span) not in unnamed]
        diagnostics = [*syntax, *lanes, *read, *self._refused_loads()]
        answer = self._attempt.answer
        if (
            len(diagnostics) > self._limits.mistakes
            or any(d.code in ("syntax-error", "unknown-name", "lane-not-literal") for d in diagnostics)
            or self._attempt.broken_module
        ):
            return diagnostics
        if lane_in_scope(self._attempt) is None:
            return [*diagnostics, *(self._unbuilt() if is_unfinished(self._attempt) else ())]
        if self._attempt.death is not None:
            return [*diagnostics, self._ended.of_death(self._attempt.death)]
        if answer is None:
            return diagnostics
        if answer["error"] is not None and answer["error"]["kind"] != "error":
            return (
                diagnostics
                if has_errors(diagnostics) or self._attempt.refused_loads
                else [*diagnostics, self._ended.in_its_words(answer["error"])]
            )
        infinite = list(self._infinite()) if self._attempt.lowered is not None else []
        known = {(d.file, d.span) for d in (*read, *infinite) if d.code == "threshold-not-finite"}
        evaluated = [*infinite, *self._evaluated(known)]
        # What both find is kept as evaluated, with the calls that led there; a literal is judged by reading.
        said = {(d.code, d.file, d.span): d.message for d in read}
        kept = [d for d in evaluated if said.get((d.code, d.file, d.span), d.message) == d.message]
        words = {(d.code, d.message) for d in read}
        better = {(d.code, d.file, d.span, d.message) for d in kept}
        diagnostics = [d for d in diagnostics if (d.code, d.file, d.span, d.message) not in better]
        kept = [d for d in kept if d.span is not None or (d.code, d.message) not in words]
        without = self._without_a_value([*kept, *diagnostics])
        kept = [d for d in kept if not any(self._holds(d, file, span) for file, span in without)]
        diagnostics = [*kept, *diagnostics]
        if answer["error"] is not None:
            error = self._ended.at_its_place(answer["error"], answer.get("limit"))
            if not without and not any(_is_better(d, error) for d in diagnostics):
                diagnostics.append(error)
        elif self._attempt.lowered is not None and self._attempt.lowered.workflow is None:
            diagnostics += self._shape()
        return diagnostics

    def _without_a_value(self, diagnostics: list[Diagnostic]) -> list[tuple[str, Span]]:
        """Return the calls of param() that gave no value because of a mistake: what comes of that is no other."""
        wrong = {(d.file, d.span) for d in diagnostics}
        return [
            (file.shown, call.span)
            for file in self._files.values()
            for calls in file.calls.values()
            for call in calls
            if isinstance(call.function, tree.Name) and call.function.id == "param"
            for place in (call.function, *call.arguments)
            if (file.shown, place.span) in wrong
        ]

    def _holds(self, diagnostic: Diagnostic, file: str, span: Span) -> bool:
        """Tell whether a diagnostic is of a value that holds the one at a place."""
        found = diagnostic.span
        return found is not None and diagnostic.file == file and found.begin <= span.begin and span.end <= found.end

    # What reading shows

    def _read_modules(self) -> None:
        """Read the modules that the evaluation did not ask for, as when the root is not Starlark all through."""
        pending = list(self._files.values())
        while pending:
            file = pending.pop()
            broken = [fault.span.begin.line for fault in file.source.faults]
            for index, load in enumerate(file.loads):
                is_broken = bisect_left(broken, load.span.begin.line) < bisect_right(broken, load.span.end.line)
                if is_broken or (file.number, index) in self._attempt.served_loads:
                    continue
                before = set(self._files)
                self._attempt.module(str(load.path.value), file.number, index)
                pending += [self._files[number] for number in self._files.keys() - before]

    def _syntax(self) -> Iterator[Diagnostic]:
        for file in self._files.values():
            for fault in file.source.faults:
                related = () if fault.related is None else (Related(fault.related[0], file.shown, fault.related[1]),)
                yield Diagnostic(
                    "syntax-error", fault.message, file.shown, fault.span, related + self._loaded_from(file)
                )

    def _is_broken(self, lane: Diagnostic) -> bool:
        """Tell whether a lane is no literal only because the text is not Starlark there."""
        faults = [
            fault.span for file in self._files.values() if file.shown == lane.file for fault in file.source.faults
        ]
        return lane.span is not None and any(
            fault.begin <= lane.span.end and lane.span.begin <= fault.end for fault in faults
        )

    def _lanes(self) -> Iterator[Diagnostic]:
        faults = list(self._attempt.lane_faults)
        if self._attempt.lane_fault:
            faults.append((self._files[0], self._attempt.lane_fault))
        for file, fault in faults:
            yield of_fault(file, fault, self._loaded_from(file))

    def _reading(self) -> Iterator[Diagnostic]:
        """Read the tree of every file for names, arguments and literals."""
        lane = lane_in_scope(self._attempt)
        by_path = self._modules()
        for file in self._files.values():
            reading = names.read(file.source, lane, by_path)
            related = self._loaded_from(file)
            tears = Tears(file)
            for problem in reading.names:
                if problem.code == "unknown-name" and tears.reach(problem.span):
                    continue
                edit = None if problem.suggestion is None else _edit(file, problem.suggestion, problem.span, None)
                yield Diagnostic(problem.code, problem.message, file.shown, problem.span, related, edit)
            for call, argument in reading.arguments:
                found = self._argument(file, call, argument, related)
                if not tears.may_excuse(found, call):
                    yield found
            yield from self._unknown_params(file, related)

    def _unknown_params(self, file: SourceFile, related: tuple[Related, ...]) -> Iterator[Diagnostic]:
        """Find the names of parameters that are written out and not declared, once it is known which are."""
        if self._attempt.answer is None or self._attempt.lane != "playbook" or self._files[0].source.faults:
            return
        for calls in file.calls.values():
            for call in calls:
                match call:
                    case tree.Call(
                        function=tree.Name(id="param"),
                        arguments=(tree.Argument(value=tree.Literal(value=str(name)) as node),),
                    ):
                        if name not in (self._attempt.declared or ()):
                            message, guess = unknown_param(name, self._attempt.declared)
                            edit = None if guess is None else _edit(file, guess, node.span, node)
                            yield Diagnostic("unknown-param", message, file.shown, node.span, related, edit)

    def _modules(self) -> dict[str, tree.Source | None]:
        """Return the tree of every path that some load names."""
        refused = {(number, index) for number, index, _ in self._attempt.refused_loads}
        error = (self._attempt.answer or {}).get("error") or {}
        circle = error["chain"] if error.get("kind") == "cycle" else []
        found: dict[str, tree.Source | None] = {}
        for file in self._files.values():
            for index, load in enumerate(file.loads):
                path = str(load.path.value)
                module = self._attempt.file_of(path)
                known = module is not None and module.number not in circle and (file.number, index) not in refused
                found[path] = module.source if module is not None and known else None
        return found

    def _argument(
        self, file: SourceFile, call: tree.Call, problem: Problem, related: tuple[Related, ...]
    ) -> Diagnostic:
        span, node = spot_in(file, call, problem.spot)
        edit = None if problem.suggestion is None else _edit(file, problem.suggestion, span, node)
        return Diagnostic(problem.code, problem.message, file.shown, span, related, edit)

    def _loaded_from(self, file: SourceFile) -> tuple[Related, ...]:
        if file.number not in self._loads:
            self._loads[file.number] = loaded_from(self._files, file)
        return self._loads[file.number]

    def _refused_loads(self) -> Iterator[Diagnostic]:
        """Place every refused load, and a circle of loads, at its path."""
        for number, index, refusal in self._attempt.refused_loads:
            yield self._at_load(number, index, refusal.code, brief(refusal.message), refusal.suggestion)
        error = (self._attempt.answer or {}).get("error")
        if error is not None and error["kind"] == "cycle":
            chain = " -> ".join(self._files[number].path for number in error["chain"])
            yield self._at_load(
                error["file"], error["load"], "load-cycle", f"modules load each other in a circle: {chain}", None
            )

    def _at_load(self, number: int, index: int, code: str, message: str, suggestion: str | None) -> Diagnostic:
        file = self._files[number]
        loads = file.loads
        if index >= len(loads):
            return Diagnostic(code, message, file.shown)
        path = loads[index].path
        edit = None if suggestion is None else _edit(file, suggestion, path.span, path)
        return Diagnostic(code, message, file.shown, path.span, self._loaded_from(file), edit)

    # What evaluating and judging found

    def _evaluated(self, infinite: set[tuple[str | None, Span | None]]) -> list[Diagnostic]:
        """Place the findings of lowering and of the rules, and the refused prompts.

        ``infinite`` are the thresholds that are not finite; the evaluation saw None there.
        """
        lowered = self._attempt.lowered
        if lowered is None:
            return []
        findings = [f for f in lowered.findings if not (infinite and self._is_pair_of(f, infinite))]
        for number, refusal in self._attempt.refused_prompts:
            if not 0 <= number < len(self._attempt.calls):
                continue
            spot = "#0" if self._attempt.calls[number][1] else "path"
            findings.append(
                CallFinding(refusal.code, brief(refusal.message), InCall(number, Spot(spot)), (), refusal.suggestion)
            )
        for finding in self._attempt.findings:
            related = tuple((message, lowered.places.resolve(at)) for message, at in finding.related)
            findings.append(
                CallFinding(
                    finding.code, finding.message, lowered.places.resolve(finding.at), related, finding.suggestion
                )
            )
        findings = _without_echo([f for f in findings if not is_placeholder(f.message)])
        return list(islice(self._each_once(findings), self._limits.mistakes + 1))

    def _each_once(self, findings: list[CallFinding]) -> Iterator[Diagnostic]:
        """Place the findings; what several calls of a helper find unknown in one literal is one mistake.

        They differ in what could be meant: the tasks of a workflow but for the one that names another.
        """
        seen: set[tuple[str, str, Span]] = set()
        said: set[tuple[str, str, str | None, Span | None]] = set()
        calls = list(dict.fromkeys(p.call for f in findings for p in (f.place, *(place for _, place in f.related))))
        calls.reverse()
        for finding in findings:
            if calls and not self._places.is_prepared(finding.place.call):
                self._places.prepare([calls.pop() for _ in range(min(len(calls), _AT_A_TIME))])
            place = self._places.find(finding.place)
            if finding.code.startswith("unknown-") and place is not None and isinstance(place.node, tree.Literal):
                key = (finding.code, place.file.shown, place.span)
                if key in seen:
                    continue
                seen.add(key)
            placed = self._placed(finding)
            if (same := (placed.code, placed.message, placed.file, placed.span)) not in said:
                said.add(same)
                yield placed

    def _infinite(self) -> Iterator[Diagnostic]:
        """Refuse the thresholds that are None though their expression cannot mean it: infinities arrive so."""
        given = [
            number
            for number, (name, _, named) in enumerate(self._attempt.calls)
            if name == "evaluate" and any(key == "threshold" and value is None for key, value in named)
        ]
        self._places.prepare(given)
        for number in given:
            place = self._places.find(InCall(number, Spot("threshold")))
            if place is None or place.node is None:
                continue
            hidden = "threshold" if place.file.cut(place.span).startswith("*") else ""
            if not may_be_none(place.file, place.node, hidden):
                message = "threshold is a finite number, and this one is None, as a computed infinity is"
                yield self._placed(
                    CallFinding(
                        "threshold-not-finite", f"{message}; leave it out for none", InCall(number, Spot("threshold"))
                    )
                )

    def _is_pair_of(self, finding: CallFinding, infinite: set[tuple[str | None, Span | None]]) -> bool:
        """Tell whether a direction lacks its threshold only because that one is refused."""
        if finding.code != "threshold-needs-direction":
            return False
        place = self._places.find(InCall(finding.place.call, Spot("threshold")))
        return place is not None and (place.file.shown, place.span) in infinite

    def _placed(self, finding: CallFinding) -> Diagnostic:
        find = self._places.find_second if finding.code in _TWICE_IN_A_LIST else self._places.find
        place = find(finding.place)
        related = []
        for message, where in finding.related:
            other = self._places.find(where)
            if other is not None:
                related.append(Related(message, other.file.shown, other.span))
        if place is None:
            return Diagnostic(finding.code, finding.message, self._files[0].shown, None, tuple(related))
        edit = None
        if finding.suggestion is not None:
            edit = _edit(place.file, finding.suggestion, place.span, place.node)
        callers = place.callers or self._loaded_from(place.file)
        return Diagnostic(finding.code, finding.message, place.file.shown, place.span, (*related, *callers), edit)

    def _shape(self) -> Iterator[Diagnostic]:
        """Say why the last statement is no workflow, unless something else already does."""
        lowered = self._attempt.lowered
        root = self._files[0]
        last_call = (self._attempt.answer or {}).get("last")
        built = [
            n
            for n, call in enumerate(self._attempt.calls)
            if call[0] in CONSTRUCTORS and CONSTRUCTORS[call[0]].makes == "workflow"
        ]
        if lowered is None or len(built) > 1 or last_call in built:
            return
        statements = root.source.statements
        if not statements:
            yield Diagnostic("no-workflow", "the file has no statement; end it with workflow(...)", root.shown)
            return
        place = self._places.find(InCall(built[0])) if built else None
        for statement, behind in pairwise(statements):
            is_it = isinstance(statement, tree.ExprStatement) and place is not None and place.file is root
            if is_it and place is not None and statement.span.begin <= place.span.begin < statement.span.end:
                message = "a statement follows the workflow; the workflow is the last statement"
                yield Diagnostic(
                    "code-after-workflow",
                    message,
                    root.shown,
                    behind.span,
                    (Related("the workflow", root.shown, place.span),),
                )
                return
        if built:
            message = "the last statement is not the workflow; write it as an expression, workflow(...), at the end"
            yield Diagnostic("no-workflow", message, root.shown, statements[-1].span)
        else:
            yield from self._unbuilt()

    def _unbuilt(self) -> Iterator[Diagnostic]:
        """Say that the last statement builds no workflow."""
        root = self._files[0]
        message = "the last statement is not a workflow; end the file with workflow(...)"
        yield Diagnostic("no-workflow", message, root.shown, root.source.statements[-1].span)


def _without_echo(findings: list[CallFinding]) -> list[CallFinding]:
    """Return findings without those of what stands where a list belongs and would be no good element, either.

    Putting it in brackets is then no cure.
    """
    bare = {f.place for f in findings if f.code == "wrong-type" and f.suggestion == _BRACKETS}
    echoes = {f.place for f in findings if f.code in _BAD_ELEMENT and f.place in bare}
    return [
        f._replace(suggestion=None) if f.place in echoes else f
        for f in findings
        if f.place not in echoes or f.suggestion == _BRACKETS
    ]


def _is_better(found: Diagnostic, error: Diagnostic) -> bool:
    """Tell whether reading has said better what the evaluator says; its place of a load takes the alias in."""
    if error.span is None or found.span is None or found.file != error.file:
        return False
    if found.code in ("unknown-symbol", "private-symbol"):
        meant = found.suggestion.replacement if found.suggestion is not None else ""
        is_of_meant = bool(meant) and error.message.startswith(f"Variable `{meant}` not found")
        return is_of_meant or (error.span.begin <= found.span.begin and found.span.end <= error.span.end)
    return found.span == error.span


# What print() wrote


def printed_lines(attempt: Attempt, limits: Limits, sandbox: Sandbox) -> list[str]:
    """Return what print() wrote, a line each, behind its file and line; at most as many as the ceiling."""
    shown = [n for n, call in enumerate(attempt.calls) if call[0] == "print"][: limits.printed_lines + 1]
    try:
        places = [checked(place, attempt.files) for place in sandbox.ask({"locate": shown})["places"]]
    except (Death, KeyError, TypeError, ValueError):
        places = [None] * len(shown)
    lines = []
    for number, place in zip(shown, places, strict=False):
        where = attempt.files[0].shown if place is None else f"{attempt.files[place[0][0]].shown}:{place[0][1]}"
        text = without_marks(str(attempt.calls[number][1][0]))
        lines += [f"{where}: {line}" for line in text.split("\n")]
    if len(lines) > limits.printed_lines:
        lines[limits.printed_lines - 1 :] = ["… and more lines of print()"]
    return lines

"""What a syntax error leaves unclear: names and arguments beside it may only look like mistakes.

A file that was read in, an answer for each mistake out. It stands apart because the parser only says where the
text is not Starlark, and goes on with a guess.
"""

from bisect import bisect_left

from crucible.compiler.frontend import tree
from crucible.compiler.frontend.misplaced import NAMED_BEFORE
from crucible.compiler.frontend.source_file import SourceFile
from crucible.schemas.diagnostic import Diagnostic
from crucible.schemas.span import Position, Span


class Tears:
    """The places of a file where the text is not Starlark, and what stands there was only guessed."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        self._places = [fault.span.begin for fault in file.source.faults if fault.message != NAMED_BEFORE]
        self._calls: dict[int, list[Position]] = {}
        if self._places:
            self._find_calls()

    def _find_calls(self) -> None:
        """Find the innermost call around each tear: calls come in the order in which they begin."""
        calls = [node for node in tree.walk(*self._file.source.statements) if isinstance(node, tree.Call)]
        calls.reverse()
        around: list[tree.Call] = []
        for tear in self._places:
            while calls and calls[-1].span.begin <= tear:
                around.append(calls.pop())
            while around and around[-1].span.end <= tear:
                around.pop()
            if around:
                self._calls.setdefault(id(around[-1]), []).append(tear)

    def reach(self, span: Span) -> bool:
        """Tell whether a tear lies in a place, at its beginning, or right behind it but for blanks."""
        index = bisect_left(self._places, span.begin)
        if index == len(self._places) or self._places[index].line - span.end.line > 1:
            return False
        return self._places[index] <= span.end or not self._file.cut(Span(span.end, self._places[index])).strip()

    def may_excuse(self, found: Diagnostic, call: tree.Call) -> bool:
        """Tell whether a mistake in the arguments of a call may only come of a tear in it.

        An argument that is written as such and goes on to no tear is as it is.
        """
        if id(call) not in self._calls:
            return False
        for argument in call.arguments:
            (begin, end), name = argument.span, argument.name
            if found.span is None or not (begin <= found.span.begin and found.span.end <= end) or name is None:
                continue
            is_written = self._file.cut(Span(name.span.end, argument.value.span.begin)).strip() == "="
            behind = Span(Position(begin.line, begin.column + 1), end)  # a comma that is missing before it is no matter
            return not is_written or self.reach(behind)
        return True

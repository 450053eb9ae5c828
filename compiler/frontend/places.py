"""From a spot in a recorded call to its exact place in a text.

The evaluator says where the n-th call stands; the tree of that file then gives the exact spans of
its arguments. Only used when something is wrong.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, pairwise
from typing import Any, Final, NamedTuple

from crucible.compiler.frontend import tree
from crucible.compiler.frontend.binding import Spot
from crucible.compiler.frontend.names import bound_names
from crucible.compiler.frontend.origins import InCall
from crucible.compiler.frontend.pack import STANDARD_LIBRARY
from crucible.compiler.frontend.source_file import SourceFile
from crucible.compiler.frontend.vocabulary import BUILTINS, CONSTRUCTORS
from crucible.schemas.diagnostic import Related
from crucible.schemas.span import Position, Span

_NAMES_IN_A_ROW: Final = 8  # x = y; y = z; … is followed that far


class Place(NamedTuple):
    """A span in a file, the expression that stands there if it is one, and the calls that led to it."""

    file: SourceFile
    span: Span
    node: tree.Node | None = None
    callers: tuple[Related, ...] = ()


class Places:
    """Finds the places of recorded calls in the files of one compile."""

    def __init__(
        self, files: Mapping[int, SourceFile], calls: list[Any], locate: Callable[[list[int]], list[Any]]
    ) -> None:
        self._files = files
        self._calls = calls
        self._locate = locate
        self._found: dict[int, Any] = {}
        self._first: dict[tuple[int, str], dict[Any, tuple[int, ...]]] = {}

    def prepare(self, numbers: Iterable[int]) -> None:
        """Ask for the places of many calls at once."""
        wanted = sorted({n for n in numbers if n not in self._found and 0 <= n < len(self._calls)})
        if wanted:
            self._found.update(zip(wanted, self._locate(wanted), strict=False))

    def is_prepared(self, number: int) -> bool:
        """Tell whether the place of a call was asked for."""
        return number in self._found

    def find(self, place: InCall, *, by_name: bool = False) -> Place | None:
        """Return the place of a spot in a call, None when the evaluator could not say.

        ``by_name`` asks for the name of a list that is bound elsewhere, not for the element inside of it.
        """
        if place.call not in self._found:
            self.prepare([place.call])
        found = self._found.get(place.call)
        if found is None:
            return None
        (number, line, column), frames = found
        callers = self._callers(frames)
        if self._files[number].path.startswith(STANDARD_LIBRARY):
            return self._author_call(frames)
        file = self._files[number]
        call = call_at(file, Position(line, column), self._calls[place.call][0])
        if call is None:
            return Place(file, Span.of(line, column, line, column + 1), None, callers)
        span, node = spot_in(file, call, place.spot, self._calls[place.call], by_name=by_name)
        return Place(file, span, node, callers)

    def find_second(self, place: InCall) -> Place | None:
        """Return the place of an element that is in its list already; of a list that is named twice, the name."""
        found = self.find(place)
        if found is None or not place.spot.path:
            return found
        key = (place.call, place.spot.argument)
        if key not in self._first:
            self._first[key] = _first_paths(_recorded(self._calls[place.call], place.spot))
        value = _recorded(self._calls[place.call], place.spot)
        for index in place.spot.path:
            value = value[index]
        path = self._first[key].get(_key(value), place.spot.path)
        first = self.find(place._replace(spot=place.spot._replace(path=path)))
        is_same = path != place.spot.path and first is not None and first.span == found.span
        return self.find(place, by_name=True) if is_same else found

    def _author_call(self, frames: list[Any]) -> Place | None:
        """Return the author's call that led into the standard library."""
        for depth in range(len(frames) - 1, -1, -1):
            number, line, _ = frames[depth]
            file = self._files[number]
            if not file.path.startswith(STANDARD_LIBRARY):
                name = frames[depth + 1][2] if depth + 1 < len(frames) else ""
                return Place(file, frame_span(file, line, name), None, self._callers(frames[: depth + 1]))
        return None

    def _callers(self, frames: list[Any]) -> tuple[Related, ...]:
        """Return the calls around a call, the innermost first: frame i called the function of frame i + 1."""
        related = []
        for (number, line, _), (_, _, name) in pairwise(frames):
            file = self._files[number]
            if not file.path.startswith(STANDARD_LIBRARY):
                within = "a lambda" if name == "lambda" else f"{name}()"
                related.append(Related(f"in {within}, called here", file.shown, frame_span(file, line, name)))
        return tuple(reversed(related))

    def callers(self, frames: list[Any], place: list[int]) -> tuple[Related, ...]:
        """Return the calls around the place of an error.

        The evaluator has no frame for the function that an operator failed in, only for a call there.
        """
        return self._callers(self._completed(frames, place))

    def author_of(self, frames: list[Any], place: list[int]) -> Place | None:
        """Return the author's call that led to an error in the standard library, None for one that is elsewhere."""
        is_ours = self._files[place[0]].path.startswith(STANDARD_LIBRARY)
        return self._author_call(self._completed(frames, place)) if is_ours else None

    def _completed(self, frames: list[Any], place: list[int]) -> list[Any]:
        number, line, column = place
        if not frames or frames[-1][:2] == [number, line]:
            return frames
        return [*frames, [number, line, _function_at(self._files[number], Position(line, column))]]


def frame_span(file: SourceFile, line: int, name: str) -> Span:
    """Return the place of a call of a function on a line; the line's text when that is unclear."""
    for position, calls in file.calls.items():
        if position.line == line:
            for call in calls:
                if _callee(call) == name:
                    return call.function.span
    lines = file.text.split("\n")
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    begin = len(text) - len(text.lstrip()) + 1
    return Span.of(line, begin, line, max(len(text.rstrip()) + 1, begin + 1))


def _function_at(file: SourceFile, position: Position) -> str:
    """Return the name of the innermost function around a position, as a frame has it."""
    name = "lambda"
    for node in tree.walk(*file.source.statements):
        if isinstance(node, tree.Def) and node.span.begin <= position < node.span.end:
            name = node.name.id
    return name


def _callee(call: tree.Call) -> str | None:
    function = call.function
    return function.id if isinstance(function, tree.Name) else None


def call_at(file: SourceFile, begin: Position, constructor: str) -> tree.Call | None:
    """Return the call that begins at a position: that of the constructor, if several do."""
    calls = file.calls.get(begin, [])
    for call in calls:
        if _callee(call) == constructor:
            return call
    return calls[0] if calls else None


def node_at(file: SourceFile, begin: Position, width: int) -> Span:
    """Return the span of the expression that begins at a position.

    ``width`` is how many columns the evaluator underlined, 0 when it does not say.
    """
    spans = [
        node.span for node in tree.walk(*file.source.statements) if node.span.begin == begin and node.span.end > begin
    ]
    fitting = [span for span in spans if span.end.line == begin.line and span.end.column - begin.column == width]
    if fitting:
        return fitting[0]
    if width and not any(span.end.line > begin.line for span in spans):
        wide = [span for span in spans if span.end.column - begin.column <= width]
        spans = wide or spans
    return max(spans, key=lambda span: span.end) if spans else Span.of(*begin, begin.line, begin.column + max(width, 1))


def _key(element: Any) -> Any:
    """Return what tells a recorded element of a list from others."""
    return element if isinstance(element, str) else repr(element)


def _first_paths(value: Any) -> dict[Any, tuple[int, ...]]:
    """Return for each element of a nested list the path to the first one like it."""
    found: dict[Any, tuple[int, ...]] = {}
    pending: list[tuple[tuple[int, ...], Any]] = [((), value)]
    while pending:
        path, element = pending.pop()
        if isinstance(element, list):
            pending.extend(((*path, index), inner) for index, inner in reversed(list(enumerate(element))))
        else:
            found.setdefault(_key(element), path)
    return found


def spot_in(
    file: SourceFile | None, call: tree.Call, spot: Spot, record: Any = None, *, by_name: bool = False
) -> tuple[Span, tree.Node | None]:
    """Return the span of a spot in a call, and the expression there if it is a value.

    Of an argument that ``*`` or ``**`` hides it is the expression behind the stars.
    ``record`` has the values that were given, so that an element of a sum of lists can be found.
    """
    if not spot.argument:
        return call.function.span, None
    argument = _argument(call, spot)
    if argument is None:
        hidden = "*" if spot.argument.startswith("#") else "**"
        stars = [a for a in call.arguments if a.star == hidden]
        return (stars[-1].span, stars[-1].value) if stars else (call.function.span, None)
    if spot.part != "value" and argument.name is not None:
        return argument.name.span, None
    node = argument.value
    value = _recorded(record, spot)
    for index in spot.path:
        total = len(value) if isinstance(value, list) else None
        node, exact = _element(file, node, index, total, by_name=by_name)
        if not exact:
            break
        value = value[index] if isinstance(value, list) and index < len(value) else None
    return node.span, node


def _argument(call: tree.Call, spot: Spot) -> tree.Argument | None:
    """Return the argument that a spot names."""
    index = 0
    if spot.argument.startswith("#"):
        found = (a for a in call.arguments if not a.star and a.name is None)
        index = int(spot.argument[1:])
    else:
        found = (a for a in call.arguments if not a.star and a.name is not None and a.name.id == spot.argument)
        if spot.part == "again":
            return next(islice(found, 1, None), None) or _argument(call, spot._replace(part="value"))
    return next(islice(found, index, None), None)


def _recorded(record: Any, spot: Spot) -> Any:
    """Return the recorded value of a spot's argument."""
    if record is None:
        return None
    if spot.argument.startswith("#"):
        index = int(spot.argument[1:])
        return record[1][index] if index < len(record[1]) else None
    return next((value for name, value in record[2] if name == spot.argument), None)


def _follow(file: SourceFile | None, node: tree.Node, *, whole: bool = False) -> tree.Node:
    """Return the expression that a name stands for, when the file binds it in one place.

    A list that only grows keeps its first elements; ``whole`` asks for one that does not even grow.
    """
    if file is None or not isinstance(node, tree.Name):
        return node
    key = (node.id, whole)
    if key not in file.meanings:
        file.meanings[key] = _meaning(file, node, whole=whole)
    return file.meanings[key] or node


def _meaning(file: SourceFile, node: tree.Name, *, whole: bool) -> tree.Node | None:
    """Search a file for the one expression that a name is bound to."""
    found: list[tree.Assign] = []
    for other in tree.walk(*file.source.statements):
        match other:
            case tree.Assign(target=tree.Name(id=node.id), op=op):
                if op == "=":
                    found.append(other)
                elif whole or op != "+=":
                    return None
            case tree.Assign(target=tree.Index(value=tree.Name(id=node.id))):
                return None
            case tree.Attribute(value=tree.Name(id=node.id), name=method):
                if whole or method.id not in ("append", "extend"):
                    return None
            case _ if node.id in also_binds(other):
                return None
    return found[0].value if len(found) == 1 else None


def also_binds(node: tree.Node) -> set[str]:
    """Return the names that a node binds, but for that of a plain assignment."""
    match node:
        case tree.Parameter(name=name) | tree.Def(name=name) | tree.LoadSymbol(local=name):
            return {name.id}
        case tree.For(target=target) | tree.Clause(target=target) if target is not None:
            return set(bound_names([tree.Assign(target.span, target, "=", target)]))
        case tree.Assign(target=tree.ListExpr() as target):
            return set(bound_names([tree.Assign(target.span, target, "=", target)]))
        case _:
            return set()


def _element(
    file: SourceFile | None, node: tree.Node, index: int, total: int | None, *, by_name: bool
) -> tuple[tree.Node, bool]:
    """Return the expression of an element: of a display, or of a sum of lists where sizes are clear.

    False beside it means that reading cannot tell more than that the element comes out of it.
    """
    while True:
        meant = node if by_name else _follow(file, node)
        if isinstance(meant, tree.ListExpr) and index < len(meant.elements):
            return meant.elements[index], True
        if not isinstance(meant, tree.Binary) or meant.op != "+":
            return node, False
        left, right = _size(file, meant.left), _size(file, meant.right)
        if left is None and right is not None and total is not None:
            left = total - right
        if left is None:
            return node, False
        if index < left:
            node, total = meant.left, left
        else:
            node, index, total = meant.right, index - left, None if total is None else total - left


def _size(file: SourceFile | None, node: tree.Node) -> int | None:
    """Return how many elements an expression has, None when reading cannot tell."""
    node = _follow(file, node, whole=True)
    return len(node.elements) if isinstance(node, tree.ListExpr) else None


def suspect(file: SourceFile, call: tree.Call, kind: str) -> tree.Node:
    """Return the value or element in a call that is of a type that no argument takes.

    ``kind`` is "range", "dict" or that of something to call; the evaluator does not say which one it was.
    """
    defined = {s.name.id for s in tree.walk(*file.source.statements) if isinstance(s, tree.Def)}
    callables = (defined | CONSTRUCTORS.keys() | BUILTINS) - {"True", "False", "None"}
    is_callable = kind not in ("range", "dict")

    def weight(node: tree.Node) -> int:
        """Say how likely it is: 2 for surely, 1 for perhaps, 0 for no."""
        match _follow(file, node, whole=True):
            case tree.Lambda():
                return 2 * is_callable
            case tree.Call(function=tree.Name(id=name)):
                return 2 * (kind == "range") if name == "range" else name not in CONSTRUCTORS
            case tree.Name(id=name) if name in callables:
                return 2 * is_callable
            case tree.DictExpr() if kind == "dict":
                return 2
            case tree.DictExpr(entries=entries):
                return max((weight(value) for _, value in entries), default=0)
            case tree.Literal() | tree.ListExpr(elements=()):
                return 0
            case _:
                return 1

    parts = [part for argument in call.arguments for part in _parts(argument.value)]
    return max(parts, key=weight, default=call.function)


def _parts(node: tree.Node) -> Iterator[tree.Node]:
    """Yield the elements of a display, of nested ones, and of sums of them; anything else is its own part."""
    pending = [node]
    while pending:
        node = pending.pop()
        if isinstance(node, tree.ListExpr):
            pending.extend(reversed(node.elements))
        elif isinstance(node, tree.Binary) and node.op == "+":
            pending += [node.right, node.left]
        else:
            yield node


def may_be_none(file: SourceFile, node: tree.Node, hidden: str = "") -> bool:
    """Tell whether an author may have meant None by an expression; arithmetic never gives one.

    ``hidden`` names the argument that is meant when the expression stands behind ``**``: it has to
    be seen there.
    """
    for _ in range(_NAMES_IN_A_ROW):
        node = _follow(file, node, whole=bool(hidden))
    if hidden:
        return any(may_be_none(file, value) for value in _under(node, hidden))
    match node:
        case tree.Literal(value=value):
            return value is None
        case tree.Conditional(then=one, otherwise=other) | tree.Binary(op="or" | "and", left=one, right=other):
            return may_be_none(file, one) or may_be_none(file, other)
        case tree.Call(function=tree.Name(id="float" | "int" | "abs" | "len")):
            return False
        case _:
            return isinstance(node, (tree.Name, tree.Attribute, tree.Index, tree.Call))


def _under(node: tree.Node, key: str) -> Iterator[tree.Node]:
    """Yield the values that a display of a dict, or a call of dict(), has under a key."""
    match node:
        case tree.DictExpr(entries=entries):
            yield from (value for name, value in entries if isinstance(name, tree.Literal) and name.value == key)
        case tree.Call(function=tree.Name(id="dict"), arguments=arguments):
            yield from (each.value for each in arguments if each.name is not None and each.name.id == key)


def inner_span(file: SourceFile, node: tree.Literal) -> Span | None:
    """Return the span between the quotes of a string that stands on one line without escapes."""
    text = file.cut(node.span)
    body = text.removeprefix("r")
    quote = body[:3] if body[:3] in ('"""', "'''") else body[:1]
    head = len(text) - len(body) + len(quote)
    if node.value != text[head : len(text) - len(quote)] or "\n" in text:
        return None
    (line, begin), (_, end) = node.span
    return Span.of(line, begin + head, line, end - len(quote))

"""The golden packs as material for mistakes: their sources cut open, and a change to a text with what comes of it.

mistakes.py makes the mistakes; this file knows no kind of mistake. Offsets count characters of a text.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from crucible.compiler.frontend import tree
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.parse import parse
from crucible.compiler.frontend.scan import Token, decode, find_lane, tokens
from crucible.compiler.frontend.vocabulary import Argument, Constructor, Type, constructors_of
from crucible.compiler.pipeline import Compiled
from crucible.schemas.diagnostic import Diagnostic, Severity
from crucible.schemas.span import Position, Span

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
ROOT = "workflow.star"


class Want(NamedTuple):
    """A diagnostic that a mistake must cause.

    It begins between two offsets of the changed text, and ends at ``end`` if that is known; in another
    file, offsets are those of that file. ``mends`` demands a suggestion that gives the text back as it was.
    """

    code: str
    file: str
    first: int
    last: int
    end: int | None = None
    mends: bool = False


class Mutant(NamedTuple):
    """A source with one mistake: every error that it must cause, or why it is none.

    ``also`` are codes of which more may be said.
    """

    file: "Source"
    begin: int
    end: int
    new: str
    wants: tuple[Want, ...]
    also: frozenset[str] = frozenset()
    harmless: str = ""

    @property
    def text(self) -> str:
        """Return the changed text."""
        return self.file.text[: self.begin] + self.new + self.file.text[self.end :]

    def __str__(self) -> str:
        line = self.file.text.count("\n", 0, self.begin) + 1
        return (
            f"{self.file.pack.name}/{self.file.name}:{line}: {self.file.text[self.begin : self.end]!r} -> {self.new!r}"
        )


class Change:
    """A piece of a source that is replaced; makes the mutant once it is known what to expect."""

    def __init__(self, file: "Source", begin: int, end: int, new: str) -> None:
        self.file = file
        self.begin = begin
        self.end = end
        self.new = new

    def within(self, code: str, text: str = "", *, mends: bool = False) -> Want:
        """Expect a diagnostic at a piece of the new text, all of it without one."""
        begin = self.begin + self.new.index(text)
        return Want(code, self.file.name, begin, begin, begin + len(text or self.new), mends)

    def at(self, code: str, node: tree.Node, file: "Source | None" = None) -> Want:
        """Expect a diagnostic at a node of the unchanged source, or at what became of it."""
        begin, end = (file or self.file).offsets(node)
        if file is not None and file is not self.file:
            return Want(code, file.name, begin, begin, end)
        return Want(code, self.file.name, self._moved(begin), self._moved(begin), self._moved(end))

    def between(self, code: str, first: int, last: int) -> Want:
        """Expect a diagnostic that begins between two offsets of the unchanged source."""
        return Want(code, self.file.name, self._moved(first), self._moved(last))

    def _moved(self, offset: int) -> int:
        return offset + len(self.new) - (self.end - self.begin) if offset >= self.end else offset

    def mutant(self, *wants: Want, also: tuple[str, ...] = ()) -> Mutant:
        """Return the mutant that must cause these diagnostics and no other."""
        assert wants
        return Mutant(self.file, self.begin, self.end, self.new, wants, frozenset(also))

    def harmless(self, why: str) -> Mutant:
        """Return the mutant that is a sound source still."""
        return Mutant(self.file, self.begin, self.end, self.new, (), frozenset(), why)


class Given(NamedTuple):
    """One argument of a call of a constructor, with its row of the table."""

    call: tree.Call
    row: Constructor
    argument: tree.Argument
    of: Argument


class Source:
    """One file of a pack, cut open."""

    def __init__(self, pack: "Pack", name: str) -> None:
        self.pack = pack
        self.name = name
        self.text = decode((pack.directory / name).read_bytes(), LIMITS)[0]
        self.tree = parse(self.text)
        self._starts = [0, *(match.end() for match in re.finditer("\n", self.text))]

    def offset(self, position: Position) -> int:
        """Return the offset of a position."""
        return self._starts[position.line - 1] + position.column - 1

    def offsets(self, node: tree.Node) -> tuple[int, int]:
        """Return where a node begins and ends."""
        return self.offset(node.span.begin), self.offset(node.span.end)

    def cut(self, node: tree.Node) -> str:
        """Return the text of a node."""
        begin, end = self.offsets(node)
        return self.text[begin:end]

    def replace(self, node: tree.Node, new: str) -> Change:
        """Put a text in the place of a node."""
        return Change(self, *self.offsets(node), new)

    def insert(self, at: int, new: str) -> Change:
        """Put a text in front of an offset."""
        return Change(self, at, at, new)

    def remove(self, begin: int, end: int) -> Change:
        """Take a piece away."""
        return Change(self, begin, end, "")

    def remove_item(self, node: tree.Node) -> Change:
        """Take an argument or an element away, with the comma that belongs to it."""
        begin, end = self.offsets(node)
        behind = re.compile(r"\s*,[ ]*").match(self.text, end)
        if behind:
            return self.remove(begin, behind.end())
        before = re.compile(r",\s*$").search(self.text[:begin])
        return self.remove(before.start() if before else begin, end)

    @cached_property
    def tokens(self) -> list[Token]:
        """Return the tokens that are written out, comments apart."""
        return [token for token in tokens(self.text) if token.text and token.kind not in ("COMMENT", "NEWLINE")]

    @cached_property
    def nodes(self) -> list[tree.Node]:
        """Return all nodes, those around others first."""
        return list(tree.walk(*self.tree.statements))

    @cached_property
    def statements(self) -> list[tree.Node]:
        """Return every statement that stands on a line of its own, at whatever depth."""
        found: list[tree.Node] = []
        pending = list(reversed(self.tree.statements))
        while pending:
            node = pending.pop()
            found.append(node)
            match node:
                case tree.Def(body=body) | tree.For(body=body):
                    pending.extend(reversed(body))
                case tree.If(body=body, otherwise=otherwise):
                    pending.extend(reversed((*body, *otherwise)))
        return found

    @cached_property
    def calls(self) -> list[tuple[tree.Call, Constructor]]:
        """Return the calls of constructors in order."""
        known = constructors_of(self.pack.lane)
        return [
            (node, known[node.function.id])
            for node in self.nodes
            if isinstance(node, tree.Call) and isinstance(node.function, tree.Name) and node.function.id in known
        ]

    @cached_property
    def given(self) -> list[Given]:
        """Return the arguments of constructors that are written out, the positional one by its name too."""
        found = []
        for call, row in self.calls:
            for argument in call.arguments:
                name = row.positional if argument.name is None else argument.name.id
                if not argument.star:
                    found.append(Given(call, row, argument, row.rows[name]))
        return found

    def around(self, node: tree.Node, kind: type[tree.Node]) -> tree.Node | None:
        """Return the innermost node of a kind around a node."""
        found = None
        for other in self.nodes:
            if isinstance(other, kind) and other.span.begin <= node.span.begin and node.span.end <= other.span.end:
                found = other
        return found

    def add_argument(self, call: tree.Call, text: str) -> Change:
        """Write one more argument into a call, in front of the others; behind a positional one."""
        first = next((each for each in call.arguments if each.name is not None or each.star), None)
        if first is not None:
            return self.insert(self.offset(first.span.begin), text + ", ")
        return self.insert(self.offset(call.span.end) - 1, ", " + text if call.arguments else text)


class Pack:
    """A golden pack in a directory of its own: its sources, and the tasks that it compiles to."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.name = directory.name
        root = decode((directory / ROOT).read_bytes(), LIMITS)[0]
        self.lane = find_lane(root).name or "autoresearch"
        self.workflow: dict[str, Any] = json.loads((directory / "expected-workflow.json").read_bytes())
        self.tasks: dict[str, dict[str, Any]] = {task["name"]: task for task in self.workflow["task"]}
        self.sources = [Source(self, path.name) for path in sorted(directory.glob("*.star"))]
        self.root = next(source for source in self.sources if source.name == ROOT)

    @cached_property
    def builders(self) -> dict[str, tuple[Source, tree.Call]]:
        """Return the call that builds each task; tasks of the default loop are built by nobody."""
        found: dict[str, tuple[Source, tree.Call]] = {}
        calls = [(s, c, r) for s in self.sources for c, r in s.calls if r.makes == "task"]
        calls.sort(key=lambda each: not isinstance(value_of(each[1], "name"), tree.Literal))
        for source, call, row in calls:
            pattern = re.compile(_pattern(value_of(call, "name")))
            for name, task in self.tasks.items():
                if name not in found and row.name in (task["kind"], task.get("op")) and pattern.fullmatch(name):
                    found[name] = (source, call)
        return found

    def built_by(self, call: tree.Call) -> list[str]:
        """Return the names of the tasks that a call builds."""
        return [name for name, (_, builder) in self.builders.items() if builder is call]

    def meant(self, source: Source, node: tree.Node | None) -> set[str] | None:
        """Return the names of the tasks that an expression stands for; None when reading does not tell."""
        found: set[str] = set()
        match node:
            case tree.Literal(value=str(name)):
                return {name}
            case tree.Name(id=name):
                bound = [n.value for n in source.nodes if isinstance(n, tree.Assign) and _is_name(n.target, name)]
                return self.meant(source, bound[0]) if len(bound) == 1 else None
            case tree.Call(function=tree.Name(id=name)) if any(node is call for call, _ in source.calls):
                return set(self.built_by(node))
            case tree.Call(function=tree.Name(id=name), arguments=arguments):
                literals = {
                    str(a.value.value) for a in arguments if isinstance(a.value, tree.Literal)
                } & self.tasks.keys()
                return literals or self._built_in(name)
            case tree.ListExpr(elements=parts) | tree.Comprehension(parts=parts):
                pass
            case tree.Binary(op="+", left=left, right=right):
                parts = (left, right)
            case _:
                return None
        for part in parts:
            names = self.meant(source, part)
            if names is None:
                return None
            found |= names
        return found

    def _built_in(self, function: str) -> set[str] | None:
        """Return the tasks that are built in a function, or in one that it calls."""
        for source in self.sources:
            for node in source.nodes:
                if isinstance(node, tree.Def) and node.name.id == function:
                    inner = [c for c in tree.walk(*node.body) if isinstance(c, tree.Call)]
                    built = {name for call in inner for name in self.built_by(call)}
                    for call in inner:
                        if isinstance(call.function, tree.Name) and call.function.id != function:
                            built |= self._built_in(call.function.id) or set()
                    return built
        return None

    def ancestors(self, name: str, tasks: dict[str, dict[str, Any]] | None = None) -> set[str]:
        """Return the tasks that come before a task."""
        tasks = tasks or self.tasks
        found: set[str] = set()
        pending = [name]
        while pending:
            for other in tasks[pending.pop()]["depends_on"]:
                if other in tasks and other not in found:
                    found.add(other)
                    pending.append(other)
        return found


def _is_name(node: tree.Node, name: str) -> bool:
    return isinstance(node, tree.Name) and node.id == name


def value_of(call: tree.Call, name: str) -> tree.Node | None:
    """Return the value that a call gives an argument by name."""
    return next((a.value for a in call.arguments if a.name is not None and a.name.id == name), None)


def _pattern(node: tree.Node | None) -> str:
    """Return an expression for the strings that an expression may give."""
    match node:
        case tree.Literal(value=str(text)):
            return re.escape(text)
        case tree.Binary(op="%", left=tree.Literal(value=str(text))):
            return ".+".join(map(re.escape, re.split("%[sd]", text)))
        case tree.Binary(op="+", left=left, right=right):
            return _pattern(left) + _pattern(right)
        case _:
            return ".+"


def lists(source: Source) -> Iterator[tuple[Given, tree.ListExpr]]:
    """Yield the displays that stand in arguments which take a list, with their arguments."""
    for given in source.given:
        if given.of.type in (Type.TASKS, Type.FIELDS):
            pending = [given.argument.value]
            while pending:
                node = pending.pop()
                if isinstance(node, tree.ListExpr):
                    yield given, node
                elif isinstance(node, tree.Binary):
                    pending += [node.left, node.right]


def places(pack: Pack, source: Source) -> Iterator[tuple[tree.Node, str]]:
    """Yield the statements in front of which another may stand, with their indentation."""
    for statement in source.statements:
        behind_params = pack.lane != "playbook" or source.name != ROOT or statement in source.tree.statements[2:]
        if behind_params:
            yield statement, " " * (statement.span.begin.column - 1)


def task_calls(pack: Pack) -> Iterator[tuple[Source, tree.Call, set[str]]]:
    """Yield the calls that build tasks, with the names of these."""
    for source in pack.sources:
        for call, row in source.calls:
            if row.makes == "task":
                yield source, call, set(pack.built_by(call))


def misspelt(word: str, taken: Callable[[str], bool] = lambda _: False) -> str:
    """Return a word that is one edit away from another and not taken."""
    middle = len(word) // 2
    edits = [
        word[: middle - 1] + word[middle : middle + 1] + word[middle - 1 : middle] + word[middle + 1 :],
        word[:middle] + word[middle + 1 :],
        word[:middle] + word[middle : middle + 1] + word[middle:],
        word + word[-1:],
    ]
    return next(
        edit for edit in edits if edit != word and edit and edit.casefold() != word.casefold() and not taken(edit)
    )


def quoted(text: str) -> str:
    """Return the literal of a text."""
    return json.dumps(text, ensure_ascii=False)


# Judging what was said


def complaints(mutant: Mutant, result: Compiled) -> Iterator[str]:
    """Say in which way the diagnostics of a mutant are not what they must be."""
    found = [each for each in result.diagnostics if each.severity is Severity.ERROR]
    left = list(found)
    for want in mutant.wants:
        fitting = [each for each in found if _fits(want, each, result)]
        if not fitting:
            yield f"missing: {want.code} at {_shown(want, mutant)}"
        if want.mends and not any(_mended(each, mutant) for each in fitting):
            yield f"no suggestion gives back what it was: {[each.suggestion for each in fitting]}"
        left = [each for each in left if each not in fitting]
    for each in left:
        if each.code not in mutant.also:
            place = f"{Path(each.file or '').name}:{each.span and each.span.begin}"
            yield f"not expected: {each.code} at {place}: {each.message}"
    if (
        not mutant.wants
        and result.workflow is None
        and not found
        and not any(d.code == "param-without-example" for d in result.diagnostics)
    ):
        yield "neither a workflow nor an error"


def _shown(want: Want, mutant: Mutant) -> str:
    text = mutant.text if want.file == mutant.file.name else "?" * (want.last + 1)
    line = text.count("\n", 0, want.first) + 1
    column = want.first - text.rfind("\n", 0, want.first)
    return f"{want.file}:{line}:{column} {text[want.first : want.end or want.last]!r}"


def _offset(text: str, position: Position) -> int:
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: position.line - 1]) + position.column - 1


def _fits(want: Want, found: Diagnostic, result: Compiled) -> bool:
    if found.code != want.code or found.file is None or Path(found.file).name != want.file or found.span is None:
        return False
    text = result.texts[found.file]
    begin, end = (_offset(text, position) for position in found.span)
    return want.first <= begin <= want.last and want.end in (None, end)


def _mended(found: Diagnostic, mutant: Mutant) -> bool:
    edit = found.suggestion
    if edit is None:
        return False
    return applied(mutant.text, edit.span, edit.replacement) == mutant.file.text


def applied(text: str, span: Span, replacement: str) -> str:
    """Return a text with a replacement in the place of a span."""
    begin, end = (_offset(text, position) for position in span)
    return text[:begin] + replacement + text[end:]

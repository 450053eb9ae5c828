"""What can stand under the cursor: constructors, arguments, values, tasks, sessions, paths and symbols.

Where the cursor is, is read from the tokens alone: while somebody types, there is seldom a tree of that line.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from crucible.compiler.frontend import tree
from crucible.compiler.frontend.names import exports
from crucible.compiler.frontend.pack import STANDARD_LIBRARY, standard_library
from crucible.compiler.frontend.scan import Token
from crucible.compiler.frontend.vocabulary import BUILTINS, Argument, Constructor, Type
from crucible.compiler.output.reference import kind
from crucible.editor import documentation
from crucible.editor.scopes import visible
from crucible.editor.view import View, around
from crucible.schemas.span import Position, Span

_CLOSERS: Final = {")": "(", "]": "[", "}": "{"}
_QUOTES: Final = ("'''", '"""', "'", '"')
_MADE: Final = {Type.TASKS: "task", Type.TASK: "task", Type.SESSION: "session"}


class Item(NamedTuple):
    """Something that can be put in the place of ``span``.

    ``kind`` is "constructor", "argument", "value", "task", "session", "file", "folder", "symbol" or "builtin".
    """

    label: str
    kind: str
    insert: str
    span: Span
    detail: str = ""
    documentation: str = ""


class _Bracket:
    """An open bracket before the cursor, and what of its inside has been read."""

    def __init__(self, opener: str, callee: str) -> None:
        self.opener = opener
        self.callee = callee
        self.given: dict[str, str] = {}  # names of arguments, and the string that each begins with
        self.argument: str | None = None
        self.place = 0
        self.first = ""  # the first string, as a load has its path


class _Cursor(NamedTuple):
    """What the tokens tell of the cursor.

    ``prefix`` is what is typed of a word, or of the inside of a string, in which case ``in_string`` is
    true; it begins at the offset ``begin``. ``call`` is the innermost call around, None outside of any,
    and ``is_inner`` tells that another bracket stands between the two.
    """

    prefix: str
    begin: int
    in_string: bool
    call: _Bracket | None
    is_inner: bool


def complete(view: View, at: Position) -> list[Item]:
    """Return what can stand at a position."""
    offset = view.script.offset(at)
    cursor = _cursor(view.script.tokens, view.script.plain, offset)
    if cursor is None:
        return []
    span = Span(view.script.position(cursor.begin), at)
    return list(_Completion(view, cursor, span).items())


class _Completion:
    """One completion."""

    def __init__(self, view: View, cursor: _Cursor, span: Span) -> None:
        self._view = view
        self._cursor = cursor
        self._span = span

    def items(self) -> Iterator[Item]:
        """Yield what fits, the most special first."""
        call = self._cursor.call
        if call is None:
            if not self._cursor.in_string:
                yield from self._expressions()
            return
        constructor = self._view.constructors.get(call.callee)
        if call.callee == "load":
            yield from self._of_load(call)
        elif constructor is None:
            if not self._cursor.in_string:
                yield from self._parameters(call)
                yield from self._expressions()
        else:
            yield from self._of_constructor(call, constructor)

    def _of_constructor(self, call: _Bracket, constructor: Constructor) -> Iterator[Item]:
        """Yield names of arguments, or values of one."""
        name = call.argument
        if name is None and not self._cursor.is_inner and not self._cursor.in_string:
            for row in constructor.arguments:
                if row.name not in call.given:
                    text = documentation.of_argument(constructor, row)
                    yield self._item(row.name, "argument", f"{row.name} = ", kind(row), text)
        if name is None and call.place == 0:
            name = constructor.positional or None
        taken = constructor.argument(name) if name is not None else None
        if taken is None:
            if self._cursor.is_inner and not self._cursor.in_string:
                yield from self._expressions()
            return
        if constructor.name == "prompt_file":
            yield from self._paths(sources=False)
        elif constructor.name == "param":
            yield from self._strings(_declared_params(self._view), "value")
        yield from self._values(taken)
        if not self._cursor.in_string:
            yield from self._expressions(_MADE.get(taken.type, ""))

    def _values(self, row: Argument) -> Iterator[Item]:
        """Yield the values of an argument that takes few, and the names of what it takes."""
        yield from self._strings(row.choices, "value")
        if row.type is Type.BOOLEAN and not self._cursor.in_string:
            for word in ("True", "False"):
                yield self._item(word, "value", word)
        if row.type in _MADE:
            kind = _MADE[row.type]
            names = [name for name in self._view.names(kind) if not self._is_own(kind, name)]
            yield from self._strings(names, kind)

    def _is_own(self, kind: str, name: str) -> bool:
        """Tell whether a task is the one that is being made, which cannot come before itself."""
        call = self._cursor.call
        constructor = self._view.constructors.get(call.callee) if call else None
        own = call.given.get("name") if call else None
        return constructor is not None and kind == constructor.makes == "task" and name == own

    def _strings(self, values: Iterable[str], kind: str) -> Iterator[Item]:
        """Yield strings, with their quotes where there are none yet; what would need an escape is left out."""
        for value in values:
            if value.isprintable() and not any(character in value for character in "\"'\\"):
                text = value if self._cursor.in_string else f'"{value}"'
                yield self._item(text, kind, text)

    def _expressions(self, made: str = "") -> Iterator[Item]:
        """Yield names that are in scope, those first that are bound to what is wanted."""
        script, at = self._view.script, self._span.begin
        names = visible(script.tree, at)
        in_function = any(isinstance(each, tree.Def) for each in around(script.tree, at))
        for name, node in names.items():
            if not in_function and (node.span.end >= at or node.span.begin.line >= at.line):
                continue  # not bound yet
            value = node.value if isinstance(node, tree.Assign) else None
            what = self._view.made_by(script, value)
            kind = what[0] if what else "symbol"
            if (not made or kind == made or what is None) and not (made and what and self._is_own(*what)):
                yield self._item(name, kind, name, what[1] if what else "")
        for row in self._view.constructors.values():
            if row.name not in names and (not made or row.makes == made):
                text = documentation.of_constructor(row)
                yield self._item(row.name, "constructor", row.name, row.doc, text)
        if not made:
            for name in sorted(BUILTINS - names.keys()):
                yield self._item(name, "builtin", name)

    def _parameters(self, call: _Bracket) -> Iterator[Item]:
        """Yield the parameters of a function of the file."""
        if call.argument is not None or self._cursor.is_inner:
            return
        for node in tree.walk(*self._view.script.tree.statements):
            if isinstance(node, tree.Def) and node.name.id == call.callee:
                for parameter in node.parameters:
                    if not parameter.star and parameter.name.id not in call.given:
                        name = parameter.name.id
                        yield self._item(name, "argument", f"{name} = ", f"of {call.callee}()")

    def _of_load(self, call: _Bracket) -> Iterator[Item]:
        """Yield paths of modules, or the symbols of one."""
        if call.place == 0:
            yield from self._paths(sources=True)
            return
        module = self._view.module(call.first)
        if module is not None:
            yield from self._strings(sorted(exports(module.tree) - call.given.keys()), "symbol")

    def _paths(self, *, sources: bool) -> Iterator[Item]:
        """Yield files and folders of the pack, folder by folder; outside of a string those of its root."""
        prefix = self._cursor.prefix if self._cursor.in_string else ""
        folder = prefix.rpartition("/")[0]
        if sources and STANDARD_LIBRARY.startswith(prefix[: len(STANDARD_LIBRARY)]):
            yield from self._strings(standard_library(), "file")
        if prefix.startswith("/") or "\\" in prefix or "@" in prefix:
            return
        own = self._view.script.path
        for name, is_folder in self._view.entries(folder):
            path = f"{folder}/{name}" if folder else name
            if is_folder:
                yield from self._strings([f"{path}/"], "folder")
            elif name.endswith(".star") == sources and not own.endswith(f"/{path}"):
                yield from self._strings([path], "file")

    def _item(self, label: str, kind: str, insert: str, detail: str = "", text: str = "") -> Item:
        return Item(label, kind, insert, self._span, detail, text)


def _declared_params(view: View) -> list[str]:
    """Return the names of the parameters that the root declares."""
    for statement in view.root_script.tree.statements[:2] if view.root_script else ():
        match statement:
            case tree.Assign(target=tree.Name(id="params"), value=tree.DictExpr(entries=entries)):
                return [str(key.value) for key, _ in entries if isinstance(key, tree.Literal)]
    return []


def _cursor(tokens: list[Token], text: str, offset: int) -> _Cursor | None:
    """Read the tokens up to an offset, and behind it to the end of the call; None where nothing is completed."""
    stack: list[_Bracket] = []
    before = last = ""
    prefix, begin, in_string = "", offset, False
    behind = len(tokens)
    for at, token in enumerate(tokens):
        behind = at
        if token.begin >= offset:
            break
        if token.end >= offset and token.kind in ("NAME", "KEYWORD", "STRING", "ERROR", "COMMENT", "INT", "FLOAT"):
            if token.kind in ("COMMENT", "INT", "FLOAT"):
                return None
            inside = _inside(token, offset)
            if token.kind in ("NAME", "KEYWORD"):
                prefix, begin = text[token.begin : offset], token.begin
            elif inside is not None:
                prefix, begin, in_string = text[inside:offset], inside, True
            if prefix or in_string:
                behind += 1
                break
        _take(stack, token, before, last)
        before, last = last, token.text
    if last == "." or (not in_string and last == "def") or "\n" in prefix:
        return None
    place = next((n for n in range(len(stack) - 1, -1, -1) if stack[n].callee), None)
    if place is None:
        return _Cursor(prefix, begin, in_string, None, is_inner=bool(stack))
    call = stack[place]
    call.given |= _given_behind(tokens[behind:], len(stack) - place)
    return _Cursor(prefix, begin, in_string, call, is_inner=len(stack) - 1 > place)


def _inside(token: Token, offset: int) -> int | None:
    """Return where the inside of a string begins, None when the offset is not in it."""
    bare = token.text.removeprefix("r")
    quote = next((quote for quote in _QUOTES if bare.startswith(quote)), None)
    if quote is None:
        return None
    begin = token.begin + len(token.text) - len(bare) + len(quote)
    end = token.end - len(quote) if token.kind == "STRING" else token.end
    return begin if begin <= offset <= end else None


def _take(stack: list[_Bracket], token: Token, before: str, last: str) -> None:
    """Take one token before the cursor."""
    text = token.text
    if token.kind == "NEWLINE":
        stack.clear()
    elif token.kind == "OP" and text in "([{":
        is_call = text == "(" and (last == "load" or last.isidentifier()) and before != "def" and last not in _WORDS
        stack.append(_Bracket(text, last if is_call else ""))
    elif token.kind == "OP" and text in _CLOSERS:
        while stack and stack.pop().opener != _CLOSERS[text]:
            pass
    elif stack and stack[-1].callee:
        bracket = stack[-1]
        if text == "," and token.kind == "OP":
            bracket.argument = None
            bracket.place += 1
        elif text == "=" and token.kind == "OP" and before in ("(", ","):
            bracket.argument = last
            bracket.given.setdefault(last, "")
        elif token.kind == "STRING" and last == "=" and before in bracket.given:
            bracket.given[before] = _plain(text)
        elif token.kind == "STRING" and last == "(":
            bracket.first = _plain(text)


_WORDS: Final = frozenset({"and", "or", "not", "in", "if", "else", "elif", "for", "lambda", "return"})


def _plain(text: str) -> str:
    """Return the inside of a string."""
    return text.removeprefix("r").strip("\"'")


def _given_behind(tokens: list[Token], depth: int) -> dict[str, str]:
    """Return the names of the arguments that a call has behind the cursor, which is so deep in brackets inside it."""
    found: dict[str, str] = {}
    before = last = ""
    for token in tokens:
        if token.kind == "NEWLINE":
            break
        if token.kind == "OP" and token.text in "([{":
            depth += 1
        elif token.kind == "OP" and token.text in _CLOSERS:
            depth -= 1
            if depth == 0:
                break
        elif token.text == "=" and token.kind == "OP" and depth == 1 and before == ",":
            found.setdefault(last, "")
        elif token.kind == "STRING" and depth == 1 and last == "=" and before in found:
            found[before] = _plain(token.text)
        before, last = last, token.text
    return found

"""Mistakes in files, parameters, statements and the text itself (mistakes.py)."""

import re
from collections.abc import Iterator
from typing import Final

from mutations import Change, Mutant, Pack, Source, Want, misspelt, places, quoted

from crucible.compiler.frontend import tree
from crucible.compiler.frontend.vocabulary import Type

Mutants = Iterator[Mutant]


# Files


def misspelt_prompt(pack: Pack) -> Mutants:
    """Yield a prompt file that is not there."""
    for source in pack.sources:
        for _, row, argument, _ in source.given:
            for part in tree.walk(argument.value) if row.name == "prompt_file" else ():
                if isinstance(part, tree.Literal) and isinstance(part.value, str):
                    change = source.replace(part, quoted(part.value[:-1]))
                    mends = part is argument.value
                    yield change.mutant(change.at("file-not-found", argument.value)._replace(mends=mends))


def refused_prompt(pack: Pack) -> Mutants:
    """Yield a path that leaves the pack, or is no file of it."""
    for source in pack.sources:
        for _, row, argument, _ in source.given:
            for path in (
                ("", "/etc/hostname", "../secret", "prompts", "prompts\\a.md") if row.name == "prompt_file" else ()
            ):
                change = source.replace(argument.value, quoted(path))
                yield change.mutant(change.within("path-refused"))


def load_mistakes(pack: Pack) -> Mutants:
    """Yield a module, or a symbol of it, that is not there."""
    for source in pack.sources:
        for node in source.nodes:
            if not isinstance(node, tree.Load):
                continue
            path = str(node.path.value)
            change = source.replace(node.path, quoted(misspelt(path)))
            yield change.mutant(change.within("file-not-found", mends=True))
            for bad in ("", "/x.star", "../x.star", "prompts/draft.md"):
                change = source.replace(node.path, quoted(bad))
                yield change.mutant(change.within("path-refused"))
            for symbol in node.symbols:
                word = str(symbol.symbol.value)
                change = source.replace(symbol.symbol, quoted(misspelt(word)))
                yield change.mutant(change.within("unknown-symbol", mends=True))
                for other, code in (
                    ("_RULES", "private-symbol"),
                    ("agent", "unknown-symbol"),
                    ("unheard", "unknown-symbol"),
                ):
                    change = source.replace(symbol.symbol, f"{word} = {quoted(other)}")
                    yield change.mutant(change.within(code, quoted(other)))


# Parameters


def params_mistakes(pack: Pack) -> Mutants:
    """Yield a parameter that is not declared, and declarations that are none."""
    for source in pack.sources if pack.lane == "playbook" else ():
        declared = {
            str(key.value): (key, entry)
            for node in source.tree.statements
            if isinstance(node, tree.Assign) and isinstance(node.target, tree.Name) and node.target.id == "params"
            for key, entry in node.value.entries  # type: ignore[attr-defined]
        }
        used: dict[str, list[tree.Node]] = {}
        for _, row, argument, _ in source.given:
            if row.name == "param":
                used.setdefault(str(argument.value.value), []).append(argument.value)  # type: ignore[attr-defined]
                change = source.replace(argument.value, quoted(misspelt(argument.value.value)))  # type: ignore[attr-defined]
                yield change.mutant(change.within("unknown-param", mends=True))
        for name, (key, entry) in declared.items():
            change = source.replace(key, quoted(misspelt(name)))
            uses = [change.at("unknown-param", use) for use in used.get(name, [])]
            yield change.mutant(*uses) if uses else change.harmless("a parameter that nothing uses")
            for field, value in entry.entries:
                change = source.replace(field, quoted(misspelt(field.value)))
                yield change.mutant(change.within("invalid-params"), also=("invalid-params",))
                if field.value in ("type", "doc", "pattern", "choices", "required"):
                    change = source.replace(value, "3.5")
                    yield change.mutant(change.within("invalid-params"), also=("invalid-params",))
                change = source.replace(value, 'str("x")')
                yield change.mutant(change.within("invalid-params"))
        begin = source.offset(source.tree.statements[1].span.begin)
        change = source.insert(begin, "first = 1\n")
        yield change.mutant(change.at("invalid-params", source.tree.statements[1].target))  # type: ignore[attr-defined]


def external_text(pack: Pack) -> Mutants:
    """Yield what a launcher may write, anywhere but in a prompt."""
    for source in pack.sources if pack.lane == "playbook" else ():
        for _call, row, argument, of in source.given:
            if of.type is Type.TEXT and row.makes in ("task", "session") and of.name != "prompt" and not of.choices:
                change = source.replace(argument.value, '"x" + param("report_url")')
                yield change.mutant(change.within("external-text"))


# Statements


def failing_statement(pack: Pack) -> Mutants:
    """Yield a statement that fails, anywhere."""
    for source in pack.sources:
        for statement, indent in places(pack, source):
            for text in ('fail("no")', "1 // 0", "[][3]"):
                change = source.insert(source.offset(statement.span.begin), f"{text}\n{indent}")
                yield change.mutant(change.within("evaluation-error", text))


def code_after_the_workflow(pack: Pack) -> Mutants:
    """Yield a statement behind the last one."""
    source = pack.root
    end = source.offsets(source.tree.statements[-1])[1]
    for text in ("x = 1", "len([])", '"""The end."""', "def f():\n    pass", "for x in []:\n    pass"):
        change = source.insert(end, f"\n{text}")
        yield change.mutant(change.within("code-after-workflow", text))


def second_workflow(pack: Pack) -> Mutants:
    """Yield another workflow before the last statement, or behind it."""
    source = pack.root
    last = source.tree.statements[-1]
    assert isinstance(last, tree.ExprStatement)
    assert isinstance(last.value, tree.Call)
    for statement in source.tree.statements[2:]:
        change = source.insert(source.offset(statement.span.begin), "other = workflow(tasks = [])\n")
        yield change.mutant(change.at("second-workflow", last.value.function))
    change = source.insert(source.offsets(last)[1], f"\n{source.cut(last)}")
    yield change.mutant(change.within("second-workflow", last.value.function.id))  # type: ignore[attr-defined]


def no_workflow(pack: Pack) -> Mutants:
    """Yield a source that does not end in the workflow."""
    source = pack.root
    *others, last = source.tree.statements
    begin, end = source.offsets(last)
    change = source.insert(begin, "graph = ")
    yield change.mutant(change.between("no-workflow", begin - len(change.new), begin))
    change = source.remove(begin, end)
    yield change.mutant(change.at("no-workflow", others[-1]))
    change = source.insert(begin, "[")
    change = Change(source, begin, end, f"[{source.cut(last)}]")
    yield change.mutant(change.within("no-workflow"))


# Text

_OPENERS: Final = "([{"
_CLOSERS: Final = ")]}"


def bracket_dropped(pack: Pack) -> Mutants:
    """Yield a missing bracket: the other of the pair is never closed, or closes nothing."""
    for source in pack.sources:
        stack: list[int] = []
        for token in source.tokens:
            if token.text in _OPENERS and token.kind == "OP":
                stack.append(token.begin)
            elif token.text in _CLOSERS and token.kind == "OP":
                change = source.remove(token.begin, token.end)
                wants = [change.between("syntax-error", begin, begin) for begin in stack]
                opener = stack.pop()
                yield Mutant(*change.mutant(wants[0])[:4], (change.between("syntax-error", wants[0].first, opener),))
                change = source.remove(opener, opener + 1)
                first, last = min([opener, *stack]), _end_of_statement(source, opener)
                is_one_word = source.text[opener - 1 : opener + 2 : 2].isalpha()  # where it was, two names are one
                also = ("unknown-name",) if is_one_word else ()
                yield change.mutant(change.between("syntax-error", first, last), also=also)


def _end_of_statement(source: Source, at: int) -> int:
    """Return where the innermost statement of one line around an offset ends, or the header of a longer one."""
    ends = [end for node in source.statements for begin, end in [source.offsets(node)] if begin <= at <= end]
    return ends[-1]


def comma_dropped(pack: Pack) -> Mutants:
    """Yield a comma that is not there."""
    for source in pack.sources:
        for token, behind in zip(source.tokens, source.tokens[1:], strict=False):
            if token.text != "," or token.kind != "OP":
                continue
            change = source.remove(token.begin, token.end)
            if behind.text in _CLOSERS:
                yield change.harmless("a comma before a closing bracket is optional")
            elif behind.text in ("(", "["):
                first = source.tokens[source.tokens.index(token) - 1]
                yield change.mutant(change.between("evaluation-error", _start_of(source, first.end), behind.begin))
            elif behind.text in ("-", "+", "*"):
                before = source.tokens[source.tokens.index(token) - 1]
                yield change.mutant(change.between("evaluation-error", _start_of(source, before.end), behind.begin))
            else:
                yield change.mutant(change.between("syntax-error", behind.begin, behind.begin))


def _start_of(source: Source, end: int) -> int:
    """Return where the largest expression begins that ends at an offset and is no argument."""
    begins = [b for n in source.nodes if not isinstance(n, tree.Argument) for b, e in [source.offsets(n)] if e == end]
    return min(begins)


def quote_dropped(pack: Pack) -> Mutants:
    """Yield a quote that is not there: what stood in the string is code, or what stood behind it is text."""
    for source in pack.sources:
        for token in source.tokens:
            if token.kind == "STRING":
                for at in (token.begin, token.end - 1):
                    change = source.remove(at, at + 1)
                    first = min([token.begin, *(begin for begin in _open_at(source, token.begin))])
                    last = len(source.text) if token.text[:3] in ('"""', "'''") else source.text.index("\n", at)
                    yield change.mutant(change.between("syntax-error", first, last))


def _open_at(source: Source, at: int) -> list[int]:
    """Return the offsets of the brackets that are open at an offset."""
    stack: list[int] = []
    for token in source.tokens:
        if token.begin >= at:
            break
        if token.kind == "OP" and token.text in _OPENERS:
            stack.append(token.begin)
        elif token.kind == "OP" and token.text in _CLOSERS:
            stack.pop()
    return stack


def colon_dropped(pack: Pack) -> Mutants:
    """Yield a header, or an entry of a dict, without its colon."""
    for source in pack.sources:
        slices = {id(node): source.offsets(node) for node in source.nodes if isinstance(node, tree.Index)}
        for token, behind in zip(source.tokens, source.tokens[1:], strict=False):
            if token.text == ":" and not any(begin < token.begin < end for begin, end in slices.values()):
                change = source.remove(token.begin, token.end)
                first = token.end if source.text[token.end] == "\n" else behind.begin
                # Before a list it reads as an index, and what comes behind that is wrong.
                last = source.text.index("\n", first) if behind.text == "[" else first
                yield change.mutant(change.between("syntax-error", first, last))


def equals_dropped(pack: Pack) -> Mutants:
    """Yield a name and a value side by side."""
    for source in pack.sources:
        for node in source.nodes:
            if not isinstance(node, tree.Argument) or node.name is None:
                continue
            change = Change(source, source.offsets(node.name)[1], source.offsets(node.value)[0], " ")
            text = source.cut(node.value)
            at = source.offsets(node.value)[0]
            call = source.around(node, tree.Call)
            elements = node.value.elements if isinstance(node.value, tree.ListExpr) else ()
            if len(elements) > 2:
                comma = source.text.index(",", source.offsets(elements[1])[1])
                yield change.mutant(change.between("syntax-error", comma, comma))
            elif isinstance(node.value, tree.ListExpr) and not elements:
                yield change.mutant(change.between("syntax-error", at + 1, at + 1))
            elif text[0] in "([" and not any(call is each for each, _ in source.calls):
                assert isinstance(call, tree.Call)
                before = call.arguments[: call.arguments.index(node)]
                wants = [change.at("syntax-error", node.name)._replace(end=None)] if any(a.name for a in before) else []
                yield change.mutant(change.at("unknown-name", node.name), *wants)
            elif text[0] in "([-":
                begin, end = source.offsets(node)
                wants = [
                    Want(
                        "positional-argument",
                        source.name,
                        begin,
                        begin,
                        end + len(change.new) - (change.end - change.begin),
                    )
                ]
                yield change.mutant(change.at("unknown-name", node.name), *wants)
            else:
                yield change.mutant(change.between("syntax-error", at, at))


def indented_by_one(pack: Pack) -> Mutants:
    """Yield a line that stands one column further to the right than its neighbours."""
    for source in pack.sources:
        for statement in source.statements:
            change = source.insert(source.offset(statement.span.begin), " ")
            block = next((b for node in source.statements for b in _blocks(node) if statement in b), None)
            before, behind = _neighbours(block or source.tree.statements, statement)
            if block is not None and before is None:
                if behind is None:
                    yield change.harmless("the only line of a block may stand as deep as it likes")
                else:
                    at = source.offset(behind.span.begin)
                    yield change.mutant(change.between("syntax-error", at, at))
            else:
                yield change.mutant(change.at("syntax-error", statement)._replace(end=None))


def _blocks(node: tree.Node) -> tuple[tuple[tree.Node, ...], ...]:
    match node:
        case tree.Def(body=body) | tree.For(body=body):
            return (body,)
        case tree.If(body=body, otherwise=otherwise):
            return (body, otherwise)
    return ()


def _neighbours(block: tuple[tree.Node, ...], node: tree.Node) -> tuple[tree.Node | None, tree.Node | None]:
    at = block.index(node)
    return (block[at - 1] if at else None), (block[at + 1] if at + 1 < len(block) else None)


def tab_for_blanks(pack: Pack) -> Mutants:
    """Yield a tab where a line is indented by blanks."""
    for source in pack.sources:
        strings = [(t.begin, t.end) for t in source.tokens if t.kind == "STRING"]
        for match in re.finditer(r"(?m)^ {4,}(?=\S)", source.text):
            if not any(begin < match.start() < end for begin, end in strings):
                change = Change(source, match.start(), match.start() + 4, "\t")
                yield change.mutant(change.between("syntax-error", match.start(), match.start()))


def odd_bytes(pack: Pack) -> Mutants:
    """Yield a NUL, or a byte that is no text, at the beginning of any line."""
    for source in pack.sources:
        for match in re.finditer(r"(?m)^", source.text):
            for text, code in (("\0", "nul-in-source"), ("\udcff", "source-not-utf8")):
                change = source.insert(match.start(), text)
                yield change.mutant(Want(code, source.name, match.start(), match.start(), match.start() + 1))


def nested_too_deep(pack: Pack) -> Mutants:
    """Yield an expression in more brackets than anybody can read."""
    for source in pack.sources:
        for given in source.given:
            text = source.cut(given.argument.value)
            change = source.replace(given.argument.value, "(" * 130 + text + ")" * 130)
            yield change.mutant(Want("limit-exceeded", source.name, change.begin, change.begin + 130))

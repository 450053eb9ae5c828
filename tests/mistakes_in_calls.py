"""Mistakes in names, arguments and values: what reading a call shows (mistakes.py)."""

from collections.abc import Iterator
from typing import Final

from mutations import Change, Mutant, Pack, Source, Want, lists, misspelt, quoted, value_of

from crucible.compiler.frontend import tree
from crucible.compiler.frontend.vocabulary import BUILTINS, CONSTRUCTORS, Type, constructors_of

Mutants = Iterator[Mutant]


def _names(pack: Pack) -> set[str]:
    """Return every name that means something somewhere in a pack, without regard to case."""
    found = {node.id for source in pack.sources for node in source.nodes if isinstance(node, tree.Name)}
    return {name.casefold() for name in found | BUILTINS | constructors_of(pack.lane).keys()}


# Names


def misspelt_constructor(pack: Pack) -> Mutants:
    """Yield a constructor, or a builtin that is called, one edit away from what it is."""
    taken = _names(pack)
    known = constructors_of(pack.lane).keys() | BUILTINS
    for source in pack.sources:
        for node in source.nodes:
            if isinstance(node, tree.Call) and isinstance(node.function, tree.Name) and node.function.id in known:
                change = source.replace(node.function, misspelt(node.function.id, taken.__contains__))
                yield change.mutant(change.within("unknown-name", mends=True))


def misspelt_use(pack: Pack) -> Mutants:
    """Yield a name of the file's own, where it is read."""
    taken = _names(pack)
    known = constructors_of(pack.lane).keys() | BUILTINS
    for source in pack.sources:
        for node in _reads(source):
            if node.id not in known:
                change = source.replace(node, misspelt(node.id, taken.__contains__))
                yield change.mutant(change.within("unknown-name", mends=True))


def misspelt_binding(pack: Pack) -> Mutants:
    """Yield a name where it gets its meaning: every use of it is unknown then."""
    taken = _names(pack)
    for source in pack.sources:
        reads = _reads(source)
        for node, within in _bindings(source):
            change = source.replace(node, misspelt(node.id, taken.__contains__))
            inside = {id(each) for each in tree.walk(*within)}
            uses = [read for read in reads if read.id == node.id and id(read) in inside]
            loaded = [(s, n.symbol) for s in pack.sources for n in s.nodes if isinstance(n, tree.LoadSymbol)]
            loaded = [(s, symbol) for s, symbol in loaded if s is not source and symbol.value == node.id]
            if node.id == "params":
                called = [g.argument.value for g in source.given if g.row.name == "param"]
                yield change.mutant(*(change.at("unknown-param", value) for value in called))
            elif loaded or uses:
                wants = [change.at("unknown-symbol", symbol, owner) for owner, symbol in loaded]
                yield change.mutant(*wants, *(change.at("unknown-name", use) for use in uses))
            else:
                yield change.harmless("a name that nothing reads may have any spelling")


def _reads(source: Source) -> list[tree.Name]:
    """Return the names that are read, but for those that are called constructors' arguments or fields."""
    others: set[int] = set()
    for node in source.nodes:
        match node:
            case tree.Assign(target=target, op="="):
                others |= {id(each) for each in tree.walk(target)}
            case tree.For(target=target) | tree.Clause(target=target) if target is not None:
                others |= {id(each) for each in tree.walk(target)}
            case tree.Def(name=name) | tree.Parameter(name=name) | tree.Attribute(name=name):
                others.add(id(name))
            case tree.Argument(name=name) if name is not None:
                others.add(id(name))
            case tree.LoadSymbol(local=local):
                others.add(id(local))
    return [node for node in source.nodes if isinstance(node, tree.Name) and id(node) not in others]


def _bindings(source: Source) -> Iterator[tuple[tree.Name, tuple[tree.Node, ...]]]:
    """Yield the names that are bound once, with what can read them."""
    everything = source.tree.statements
    for node in source.nodes:
        function = source.around(node, tree.Def)
        match node:
            case tree.Assign(target=target, op="=") | tree.For(target=target):
                scope = everything if function is None else (function,)
                yield from ((name, scope) for name in tree.walk(target) if isinstance(name, tree.Name))
            case tree.Def(name=name, body=body, parameters=parameters):
                yield name, everything
                yield from ((parameter.name, body) for parameter in parameters)
            case tree.Comprehension(clauses=clauses):
                for clause in clauses:
                    if clause.target is not None:
                        yield from ((name, (node,)) for name in tree.walk(clause.target) if isinstance(name, tree.Name))


def misspelt_method(pack: Pack) -> Mutants:
    """Yield a method that no value has: found when it is evaluated."""
    for source in pack.sources:
        for node in source.nodes:
            if isinstance(node, tree.Call) and isinstance(node.function, tree.Attribute):
                name = node.function.name
                change = source.replace(name, misspelt(name.id))
                yield change.mutant(change.at("evaluation-error", node))


# Arguments


def misspelt_argument(pack: Pack) -> Mutants:
    """Yield an argument's name one edit away from what it is."""
    for source in pack.sources:
        for call, _row, argument, of in source.given:
            if argument.name is None:
                continue
            word = misspelt(of.name, lambda word: any(word in other.rows for other in CONSTRUCTORS.values()))
            change = source.replace(argument.name, word)
            if of.name == "k":  # of one letter nothing can be a misspelling
                wants = [change.within("unknown-argument"), change.at("missing-argument", call.function)]
                yield change.mutant(*wants)
            else:
                yield change.mutant(change.within("unknown-argument", mends=True))


def argument_of_another(pack: Pack) -> Mutants:
    """Yield an argument that only another constructor has."""
    for source in pack.sources:
        for call, row in source.calls:
            for name, value in (("evidence", "[]"), ("threshold", "1"), ("prompt", '""'), ("path", '"p"')):
                if name not in row.rows:
                    change = source.add_argument(call, f"{name} = {value}")
                    yield change.mutant(change.within("unknown-argument", name))


def argument_dropped(pack: Pack) -> Mutants:
    """Yield a required argument that is not there."""
    for source in pack.sources:
        for call, _row, argument, of in source.given:
            if of.required:
                change = source.remove_item(argument)
                yield change.mutant(change.at("missing-argument", call.function))


def argument_repeated(pack: Pack) -> Mutants:
    """Yield an argument that is there already, behind itself."""
    for source in pack.sources:
        for _, _, argument, of in source.given:
            if argument.name is not None:
                change = source.insert(source.offsets(argument)[1], f", {source.cut(argument)}")
                yield change.mutant(change.within("repeated-argument", of.name))


def argument_without_its_name(pack: Pack) -> Mutants:
    """Yield a value alone, where constructors take names."""
    for source in pack.sources:
        for call, row, argument, of in source.given:
            if argument.name is None:
                continue
            value = source.cut(argument.value)
            change = source.replace(argument, value)
            first = argument is call.arguments[0]
            only = sum(each.name is not None for each in call.arguments) == 1
            if row.positional == of.name and only:
                yield change.harmless("the one positional argument of this constructor")
            else:
                needed = [name for name in row.needed if name == of.name]
                yield change.mutant(change.within("positional-argument", mends=first and bool(needed)))


def one_too_many_by_place(pack: Pack) -> Mutants:
    """Yield a second value where one is taken without its name."""
    for source in pack.sources:
        for call, row in source.calls:
            if row.positional and call.arguments and call.arguments[0].name is None:
                change = source.insert(source.offsets(call.arguments[0])[1], ', "more"')
                yield change.mutant(change.within("positional-argument", '"more"'))


# Values

_WRONG: Final[dict[Type, tuple[str, ...]]] = {
    Type.TEXT: ("3", "True", '["x"]', "1.5", '{"a": 1}', "len"),
    Type.BOOLEAN: ('"True"', "1", "[]"),
    Type.INTEGER: ('"2"', "1.5", "True", "[2]"),
    Type.NUMBER: ('"1.5"', "True", "[1.5]"),
    Type.FIELDS: ('{"score": 1}', "3", "True", "range(3)"),
    Type.TASKS: ("3", "True", '{"a": 1}', "lambda: 1"),
    Type.TASK: ("3", "True", '["x"]'),
    Type.SESSION: ("3", "True", '["x"]'),
}


def wrong_type(pack: Pack) -> Mutants:
    """Yield a value of another type than the argument takes."""
    for source in pack.sources:
        for _call, row, argument, of in source.given:
            for value in _WRONG[of.type]:
                change = source.replace(argument.value, value)
                code = "lane-not-literal" if (row.name, of.name) == ("workflow", "type") else "wrong-type"
                yield change.mutant(change.within(code))


def none_for_a_required_argument(pack: Pack) -> Mutants:
    """Yield none is the same as leaving an optional argument out, and a wrong value for a required one."""
    for source in pack.sources:
        for _call, _row, argument, of in source.given:
            if of.required:
                change = source.replace(argument.value, "None")
                yield change.mutant(change.within("wrong-type"))


def bare_value_for_a_list(pack: Pack) -> Mutants:
    """Yield the only element of a list without the brackets."""
    for source in pack.sources:
        for _call, _row, argument, of in source.given:
            value = argument.value
            if of.type in (Type.TASKS, Type.FIELDS) and isinstance(value, tree.ListExpr) and len(value.elements) == 1:
                (element,) = value.elements
                change = source.replace(value, source.cut(element))
                names = [
                    n
                    for n in source.nodes
                    if isinstance(n, tree.Assign) and getattr(n.target, "id", "") == getattr(element, "id", None)
                ]
                if any(isinstance(name.value, (tree.ListExpr, tree.Comprehension)) for name in names):
                    yield change.harmless("the element is a list of tasks itself")
                else:
                    yield change.mutant(change.within("wrong-type", mends=True))


def unknown_value(pack: Pack) -> Mutants:
    """Yield a string that is not in the closed set of its argument."""
    for source in pack.sources:
        for _, _, argument, of in source.given:
            if of.choices and isinstance(argument.value, tree.Literal):
                word = misspelt(str(argument.value.value))
                change = source.replace(argument.value, quoted(word))
                yield change.mutant(change.within("unknown-value", mends=True))
                change = source.replace(argument.value, '"something"')
                yield change.mutant(change.within("unknown-value"))


def unknown_value_added(pack: Pack) -> Mutants:
    """Yield the same of an argument that was left to its default."""
    for source in pack.sources:
        for call, row in source.calls:
            given = {argument.name.id for argument in call.arguments if argument.name is not None}
            for name in {"join": "al", "stage": "epilog"}.items():
                if name[0] in row.rows and name[0] not in given:
                    change = source.add_argument(call, f'{name[0]} = "{name[1]}"')
                    yield change.mutant(change.within("unknown-value", f'"{name[1]}"'))


def out_of_range(pack: Pack) -> Mutants:
    """Yield a k that no list of candidates has."""
    for source in pack.sources:
        for _, _, argument, of in source.given:
            for value in ("0", "-1", "2147483648") if of.type is Type.INTEGER else ():
                change = source.replace(argument.value, value)
                yield change.mutant(change.within("out-of-range"))


def not_finite(pack: Pack) -> Mutants:
    """Yield a threshold that is no finite number."""
    for source in pack.sources:
        for _, _, argument, of in source.given:
            for value in ("1e999", "-1e999") if of.type is Type.NUMBER else ():
                change = source.replace(argument.value, value)
                yield change.mutant(change.within("threshold-not-finite"))


def half_of_a_pair(pack: Pack) -> Mutants:
    """Yield a threshold without its direction, or the reverse."""
    for source in pack.sources:
        for call, row, argument, of in source.given:
            other = {"threshold": "direction", "direction": "threshold"}.get(of.name)
            if row.name == "evaluate" and other is not None:
                value = value_of(call, other)
                assert value is not None
                change = source.remove_item(argument)
                yield change.mutant(change.at("threshold-needs-direction", value))


def text_of_a_task(pack: Pack) -> Mutants:
    """Yield the text form of a task, where its name was meant."""
    for source in pack.sources:
        for _call, row, argument, of in source.given:
            if of.type is Type.TEXT and not of.choices and row.makes == "task":
                built = 'str(command(name = "other", run = "true"))'
                change = source.replace(argument.value, built)
                yield change.mutant(
                    change.within("opaque-in-text"), change.within("dropped-task", "command"), also=("dropped-task",)
                )


def lane_not_literal(pack: Pack) -> Mutants:
    """Yield a lane that is not written as one string."""
    for source in pack.sources:
        for _, _row, argument, of in source.given:
            if of.name == "type":
                for value in ('"cus" + "tom"', "str(1)", 'False or "custom"'):
                    change = source.replace(argument.value, value)
                    yield change.mutant(change.within("lane-not-literal"))


# Lists of tasks and fields


def element_of_the_wrong_type(pack: Pack) -> Mutants:
    """Yield a number among tasks or fields."""
    for source in pack.sources:
        for _, display in lists(source):
            for element in display.elements:
                change = source.insert(source.offsets(element)[0], "3, ")
                yield change.mutant(change.within("wrong-type", "3"))
                change = source.replace(element, "False")
                codes = ("dropped-task", "unbound-session")
                yield change.mutant(change.within("wrong-type"), also=codes)


def element_duplicated(pack: Pack) -> Mutants:
    """Yield an element a second time, right behind the first."""
    for source in pack.sources:
        for given, display in lists(source):
            code = "duplicate-field" if given.of.type is Type.FIELDS else "duplicate-dependency"
            if given.row.makes == "workflow":
                code = "duplicate-task"
            for element in display.elements:
                text = source.cut(element)
                change = source.insert(source.offsets(element)[1], f", {text}")
                yield change.mutant(change.within(code, text))


def misspelt_dependency(pack: Pack) -> Mutants:
    """Yield the name of a task as a string, one edit away from what it is."""
    for source in pack.sources:
        for given, display in lists(source):
            if given.of.type is not Type.TASKS:
                continue
            for element in display.elements:
                names = pack.meant(source, element)
                if names is not None and len(names) == 1:
                    (name,) = names
                    change = source.replace(element, quoted(misspelt(name)))
                    mends = isinstance(element, tree.Literal)
                    yield change.mutant(change.within("unknown-task", mends=mends))


def misspelt_task(pack: Pack) -> Mutants:
    """Yield the same for the arguments that take one task."""
    for source in pack.sources:
        for _, _, argument, of in source.given:
            names = pack.meant(source, argument.value)
            if of.type is Type.TASK and names is not None and len(names) == 1:
                (name,) = names
                change = source.replace(argument.value, quoted(misspelt(name)))
                yield change.mutant(change.within("unknown-task"))


def invalid_field(pack: Pack) -> Mutants:
    """Yield a field that is no name."""
    for source in pack.sources:
        for given, display in lists(source):
            for element in display.elements if given.of.type is Type.FIELDS else ():
                for field in ("a b", "", "é", "x" * 65):
                    change = source.replace(element, quoted(field))
                    name = getattr(element, "value", "")
                    also = ("emits-omits-score",) if name == "score" else ()
                    yield change.mutant(change.within("invalid-field"), also=also)


def score_not_emitted(pack: Pack) -> Mutants:
    """Yield another field in the place of the score that somebody reads."""
    for source in pack.sources:
        for given, display in lists(source):
            for element in display.elements if given.of.type is Type.FIELDS else ():
                if getattr(element, "value", None) != "score":
                    continue
                change = source.replace(element, '"other"')
                wants = []
                if value_of(given.call, "threshold") is not None:
                    wants.append(change.at("emits-omits-score", display))
                wants += _readers(pack, change, set(pack.built_by(given.call)))
                if wants:
                    yield change.mutant(*wants)
                else:
                    yield change.harmless("nobody reads this score")


def _readers(pack: Pack, change: Change, names: set[str]) -> list[Want]:
    """Expect a diagnostic wherever a task ranks or takes the score of some tasks."""
    wants = []
    for source in pack.sources:
        for _call, row, argument, of in source.given:
            if (row.name, of.name) in (("top_k", "depends_on"), ("grade", "score"), ("grade", "tiebreak")):
                display = argument.value
                parts = display.elements if isinstance(display, tree.ListExpr) else (display,)
                wants += [
                    change.at("emits-omits-score", part, source)
                    for part in parts
                    if (pack.meant(source, part) or set()) & names
                ]
    return wants

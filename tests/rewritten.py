"""Rewrites a source so that it still means the same: what an author does who only tidies up.

The sources of the golden packs are Python as well, so Python's own parser finds what may be moved.
"""

import ast
import itertools
import random
from collections.abc import Callable

_Rewrite = Callable[[str, random.Random], str]


def rewrite(source: str, chance: random.Random) -> tuple[bytes, set[str]]:
    """Return the source in other words, and the names of the rewrites that changed it."""
    done: set[str] = set()
    chosen = chance.sample(list(_REWRITES), chance.randint(1, len(_REWRITES)))
    while not done:
        for name in chosen:
            after = _REWRITES[name](source, chance)
            if after != source:
                done.add(name)
                source = after
        chosen = list(_REWRITES)
    data = source.encode()
    if chance.random() < 0.3:
        data = data.replace(b"\n", b"\r\n")
        done.add("line ends")
    return data, done


def _comments(source: str, chance: random.Random) -> str:
    """Put comments before statements."""
    lines = source.split("\n")
    for statement in ast.parse(source).body[::-1]:
        if chance.random() < 0.5:
            lines.insert(statement.lineno - 1, '# About what follows: it\'s "quoted", [ ( and é.')
    return "\n".join(lines)


def _blank_lines(source: str, chance: random.Random) -> str:
    """Put blank lines between statements, and blanks behind them."""
    lines = source.split("\n")
    for statement in ast.parse(source).body[::-1]:
        if chance.random() < 0.5:
            lines.insert(statement.lineno - 1, chance.choice(["", "\n"]))
    return "\n".join(lines) + chance.choice(["", "\n"])


def _order(source: str, chance: random.Random) -> str:
    """Let two assignments change places that do not need each other."""
    body = ast.parse(source).body
    for one, two in sorted(itertools.pairwise(body), key=lambda _: chance.random()):
        if not (isinstance(one, ast.Assign) and isinstance(two, ast.Assign)):
            continue
        names = {node.id for node in ast.walk(two) if isinstance(node, ast.Name)}
        made = {node.id for target in one.targets for node in ast.walk(target) if isinstance(node, ast.Name)}
        makes_sessions = "session(" in ast.unparse(one) + ast.unparse(two)
        if not names & made and not makes_sessions and "params" not in made:
            first, second = _text(source, one), _text(source, two)
            return _replaced(source, [(two, first), (one, second)])
    return source


def _variables(source: str, _chance: random.Random) -> str:
    """Give the variables other names."""
    tree = ast.parse(source)
    parameters = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)} | {"params"}
    own = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id not in parameters
    }
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in own]
    return _replaced(source, [(node, f"{node.id}_again") for node in names])


def _helpers(source: str, chance: random.Random) -> str:
    """Make a value in a function that is called once."""
    body = [node for node in ast.parse(source).body if isinstance(node, ast.Assign)]
    for node in sorted(body, key=lambda _: chance.random()):
        target = node.targets[0]
        if isinstance(node.value, ast.Call) and isinstance(target, ast.Name) and f"make_{target.id}" not in source:
            helper = (
                f"def make_{target.id}():\n    return {_text(source, node.value)}\n\n{target.id} = make_{target.id}()"
            )
            return _replaced(source, [(node, helper)])
    return source


def _parameters(source: str, chance: random.Random) -> str:
    """Read a parameter into a variable, through a function, or in a comprehension."""
    reads = [
        (statement, node)
        for statement in ast.parse(source).body
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "param"
        if isinstance(node.args[0], ast.Constant)
    ]
    if not reads:
        return source
    statement, node = chance.choice(reads)
    name, number = _text(source, node.args[0]), source.count("param")
    before, value = chance.choice([
        (f"value_{number} = param({name})", f"value_{number}"),
        (f"def value_{number}(name):\n    return param(name)\n", f"value_{number}({name})"),
        (f"read_{number} = param", f"read_{number}({name})"),
        (f"values_{number} = [param(each) for each in [{name}]]", f"values_{number}[0]"),
        (f"values_{number} = {{each: param(each) for each in [{name}]}}", f"values_{number}[{name}]"),
    ])  # fmt: skip
    begin = _extent(source, statement)[0]
    data = _replaced(source, [(node, value)]).encode()
    return (data[:begin] + before.encode() + b"\n" + data[begin:]).decode()


def _arguments(source: str, chance: random.Random) -> str:
    """Let the first and the last named argument of a call change places."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda _: chance.random()):
        named = [keyword for keyword in call.keywords if keyword.arg is not None]
        if len(named) > 1 and not any(isinstance(node, ast.Call) for each in named for node in ast.walk(each)):
            first, last = named[0], named[-1]
            return _replaced(source, [(first, _text(source, last)), (last, _text(source, first))])
    return source


def _text(source: str, node: ast.expr | ast.stmt | ast.keyword) -> str:
    begin, end = _extent(source, node)
    return source.encode()[begin:end].decode()


def _replaced(source: str, edits: list[tuple[ast.expr | ast.stmt | ast.keyword, str] | tuple[ast.Name, str]]) -> str:
    """Return the source with other texts in the places of nodes that do not overlap."""
    data = source.encode()
    for node, text in sorted(edits, key=lambda edit: _extent(source, edit[0]), reverse=True):
        begin, end = _extent(source, node)
        data = data[:begin] + text.encode() + data[end:]
    return data.decode()


def _extent(source: str, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
    """Return where a node begins and ends, in bytes."""
    starts = [0]
    for line in source.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset


_REWRITES: dict[str, _Rewrite] = {
    "comments": _comments,
    "blank lines": _blank_lines,
    "order": _order,
    "variables": _variables,
    "helpers": _helpers,
    "parameters": _parameters,
    "arguments": _arguments,
}

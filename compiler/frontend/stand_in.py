"""What is read instead of a line that cannot be read: the names that it seems to bind.

Without them every later use of such a name would look like a mistake of its own.
"""

import re
from itertools import pairwise

from crucible.compiler.frontend.leaf import Leaf
from crucible.compiler.frontend.vocabulary import CONSTRUCTORS
from crucible.schemas.span import Span

_WORDS = {"NAME": "None", "STRING": '""', "PASS": "pass", "IF": "if", "ASSIGN": "=", "DEF": "def"}
_IN_EXPRESSION = frozenset({
    "LPAR", "LSQB", "DOT", "COMPARE", "ARITH", "SIGN", "STAR", "STAR2", "AND", "OR", "NOT", "IN", "IF", "ELSE", "COMMA",
    "RPAR", "RSQB", "RBRACE", "NEWLINE",
})  # fmt: skip


def made_up(span: Span, *terminals: str) -> list[Leaf]:
    """Return tokens that nobody wrote, for a place."""
    return [Leaf(terminal, _WORDS.get(terminal, ""), span, "") for terminal in terminals]


def stand_in(leaves: list[Leaf], *, opens: bool) -> list[Leaf]:
    """Return a line that binds the names which a line that cannot be read seems to bind.

    ``opens`` tells whether an indented block follows, so that the stand-in is its header.
    """
    span = leaves[-1].span
    header: list[Leaf] = []
    kinds = [leaf.type for leaf in leaves]
    if opens and kinds[:3] == ["NAME", "NAME", "LPAR"] and kinds[-2:] == ["RPAR", "COLON"]:
        leaves = [*made_up(leaves[0].span, "DEF"), *leaves[1:]]  # the def of another language
    if leaves[0].type == "DEF" and len(leaves) > 1 and leaves[1].type == "NAME":
        header = [*leaves[:2], *made_up(span, "LPAR"), *_as_parameters(leaves), *made_up(span, "RPAR")]
    elif leaves[0].type == "FOR":
        header = [leaves[0], *(_leading_names(leaves[1:]) or made_up(span, "NAME")), *made_up(span, "IN", "NAME")]
    if header:
        return header + (made_up(span, "COLON", "NEWLINE") if opens else made_up(span, "COLON", "PASS", "NEWLINE"))
    made: list[Leaf] = []
    for small in _split(leaves):
        if small[0].type == "LOAD":
            made += [*_load(small), *_words(small)]
        elif [leaf.type for leaf in small[:3]] == ["NAME", "NAME", "ASSIGN"]:  # as in `let x = 1`
            made += bindings(small[1:2])
        else:
            made += bindings(_assigned(small))
    made = (made or made_up(span, "PASS")) + made_up(span, "NEWLINE")
    return made + made_up(span, "IF", "NAME", "COLON", "NEWLINE") if opens else made


def bindings(names: list[Leaf]) -> list[Leaf]:
    """Return an assignment to each of some names, with a semicolon behind it."""
    return [part for name in names for part in (name, *made_up(name.span, "ASSIGN", "NAME", "SEMICOLON"))]


def _assigned(leaves: list[Leaf]) -> list[Leaf]:
    """Return the names that a broken statement begins with, those of every "=" for one that assigns twice.

    The name of a constructor is more likely a call without its bracket.
    """
    found: list[Leaf] = []
    while targets := _leading_names(leaves):
        kind = leaves[len(targets)].type if len(targets) < len(leaves) else "NEWLINE"
        if kind not in _IN_EXPRESSION:
            names = targets[::2]
            found += [name for name in names if kind in ("ASSIGN", "COLON") or name.text not in CONSTRUCTORS]
        if kind != "ASSIGN":
            break
        leaves = leaves[len(targets) + 1 :]
    return found


def parameters(leaves: list[Leaf]) -> list[Leaf]:
    """Return the names of the parameters of a def, each once."""
    known: dict[str, Leaf] = {}
    for before, leaf in pairwise(leaves[1:]):
        if leaf.type == "NAME" and before.type in ("NAME", "LPAR", "COMMA", "STAR", "STAR2"):
            known.setdefault(leaf.text, leaf)
    return list(known.values())


def _as_parameters(leaves: list[Leaf]) -> list[Leaf]:
    return [part for leaf in parameters(leaves) for part in (leaf, *made_up(leaf.span, "COMMA"))]


def _leading_names(leaves: list[Leaf]) -> list[Leaf]:
    """Return the names between commas that a line begins with, with the commas between them."""
    found: list[Leaf] = []
    for place, leaf in enumerate(leaves):
        if leaf.type != ("COMMA" if place % 2 else "NAME"):
            break
        found.append(leaf)
    return found[: len(found) - 1 + len(found) % 2] if found else []


def _split(leaves: list[Leaf]) -> list[list[Leaf]]:
    """Cut a line at its semicolons."""
    parts: list[list[Leaf]] = [[]]
    for leaf in leaves:
        if leaf.type == "SEMICOLON":
            parts.append([])
        else:
            parts[-1].append(leaf)
    return [part for part in parts if part]


def _words(leaves: list[Leaf]) -> list[Leaf]:
    """Return assignments to what may be a symbol of a load with a broken string: the words outside of whole ones."""
    broken = [leaf for leaf in leaves if leaf.type == "ERROR" and leaf.text[:1] in "\"'"]
    if not broken:
        return []
    words = [Leaf("NAME", word, leaf.span) for leaf in broken for word in re.findall(r"[A-Za-z_]\w*", leaf.text)]
    words += [leaf for leaf in leaves if leaf.type == "NAME"]
    return bindings(words)


def _load(leaves: list[Leaf]) -> list[Leaf]:
    """Return a load statement of what can be recognised in a broken one, with a semicolon; [] if too little can."""
    symbols: list[Leaf] = []
    strings = [place for place, leaf in enumerate(leaves) if leaf.type == "STRING"]
    for place in strings[1:]:
        alias = (
            leaves[place - 2 : place] if [leaf.type for leaf in leaves[place - 2 : place]] == ["NAME", "ASSIGN"] else []
        )
        symbols += [*made_up(leaves[place].span, "COMMA"), *alias, leaves[place]]
    if not symbols:
        return []
    for place in strings:
        leaves[place].value = leaves[place].value or ""
    span = leaves[-1].span
    return [leaves[0], *made_up(span, "LPAR"), leaves[strings[0]], *symbols, *made_up(span, "RPAR", "SEMICOLON")]

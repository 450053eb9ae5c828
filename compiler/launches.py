"""What a launch may ask of a playbook: its declared parameters, and which fields their values go to.

In go the texts of a source and its modules, out comes a Launch, and from two of them changes. A value
that goes to no argument that can be told goes anywhere.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from crucible.compiler.change import Change, Class
from crucible.compiler.frontend.params import read_block
from crucible.compiler.frontend.scan import Token, string_value, tokens

if TYPE_CHECKING:
    from crucible.compiler.frontend.params import Declaration

_LANE: Final = "playbook"
_ANYWHERE: Final = "what cannot be told"
# Arguments whose text says what is done, not what is proven.
_PLAIN: Final = ("prompt", "model", "harness", "effort", "name")
_OPEN, _CLOSE = ("(", "[", "{"), (")", "]", "}")
_FACTS: Final = ("type", "required", "default", "pattern", "min", "max", "choices", "example")


class Launch(NamedTuple):
    """The declarations by name, and for each name the arguments that its value goes to, with how often."""

    declared: "Mapping[str, Declaration]"
    goes: Mapping[str, Counter[str]]


NONE: Final = Launch({}, {})


def read(root: str, modules: Iterable[str]) -> Launch:
    """Read the parameters of a source from its text and those of the modules that it loads."""
    found = tokens(root)
    block, _ = read_block(found, _LANE)
    goes: dict[str, Counter[str]] = {}
    for each in (found, *map(tokens, modules)):
        for name, field in _uses(each):
            goes.setdefault(name, Counter())[field] += 1
    return Launch({row.name: row for row in block.rows} if block is not None else {}, goes)


def _uses(found: list[Token]) -> Iterator[tuple[str, str]]:
    """Yield the name of each parameter that is read, with the argument that its value goes to."""
    plain = [token for token in found if token.kind not in ("COMMENT", "NEWLINE", "INDENT", "DEDENT")]
    for at, token in enumerate(plain[:-2]):
        if token.text == "param" and plain[at + 1].text == "(":
            name = string_value(plain[at + 2].text) if plain[at + 2].kind == "STRING" else None
            yield name or "", _argument(plain, at)


def _argument(plain: list[Token], at: int) -> str:
    """Return the keyword whose value holds a place, walking backwards; texts may be put together on the way."""
    depth = 0
    for before in range(at - 1, 1, -1):
        text = plain[before].text
        if plain[before].kind == "STRING":
            continue
        if text in _CLOSE:
            depth += 1
        elif text in _OPEN and depth:
            depth -= 1
        elif text == "(" and plain[before - 1].kind == "NAME":
            if plain[before - 1].text != "str" and plain[before - 2].text != ".":
                return _ANYWHERE
        elif text == "=" and not depth:
            is_argument = plain[before - 1].kind == "NAME" and plain[before - 2].text in ("(", ",")
            return plain[before - 1].text if is_argument else _ANYWHERE
    return _ANYWHERE


def compare(old: Launch, new: Launch) -> Iterator[Change]:
    """Yield what a change of the parameters does to what a run proves, whatever it is launched with."""
    for name in dict.fromkeys([*old.declared, *new.declared]):
        before, after = old.declared.get(name), new.declared.get(name)
        was, now = (side.goes.get(name, Counter()) + side.goes.get("", Counter()) for side in (old, new))
        if after is None:
            yield Change(Class.CHANGED, None, "params", "{} is no parameter any more", (name,))
            continue
        matters = [field for field in now if field not in _PLAIN]
        fresh = [field for field in (now - was) if field not in _PLAIN]
        if before is None:
            kind = Class.WEAKENED if matters else Class.CHANGED
            says = "{} is a parameter now" + ("; a launch decides what it does to the checks" if matters else "")
            yield Change(kind, None, "params", says, (name,))
            continue
        if fresh:
            says = "a launch decides by the parameter {} now what was written: {}"
            yield Change(Class.WEAKENED, None, "params", says, (name, fresh[0]))
        for fact in _FACTS:
            one, other = _plain(getattr(before, fact)), _plain(getattr(after, fact))
            if one != other:
                kind = Class.WEAKENED if matters and _is_wider(fact, one, other) else Class.CHANGED
                yield Change(kind, None, "params", f"the parameter {{}} has another {fact}", (name,), one, other)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _is_wider(fact: str, before: Any, after: Any) -> bool:
    """Tell whether a launch may ask for something that it might not before."""
    if fact in ("example", "required"):
        return False
    if fact == "min" and before is not None:
        return after is None or bool(after < before)
    if fact == "max" and before is not None:
        return after is None or bool(after > before)
    if fact == "choices" and before:
        return not after or not set(after) <= set(before)
    return fact in ("type", "default") or (fact == "pattern" and before is not None)

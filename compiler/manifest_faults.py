"""What is wrong in a crucible.toml, in words and at its place: what the schema forbids, and what rules find beside it.

In go faults of the schema, out come diagnostics with what was meant.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from crucible.compiler import toml_text
from crucible.compiler.manifest_model import WORKFLOW
from crucible.compiler.positions import Path, Positions
from crucible.schemas import ir, registry
from crucible.schemas.diagnostic import Diagnostic, Related, Suggestion, brief
from crucible.schemas.span import Position, Span
from crucible.schemas.spelling import MOST_SEARCHED, hint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from crucible.schemas.registry import Fault

_MOST_SHOWN: Final = 60
TOP: Final = Span(Position(1, 1), Position(1, 1))  # where a table that is missing could stand


class Problems:
    """What is wrong, with its places."""

    def __init__(self, text: str, path: str, places: Positions) -> None:
        self.text = text
        self.path = path
        self.places = places
        self._searched = 0
        self.found: list[Diagnostic] = []

    def add(
        self,
        code: str,
        message: str,
        at: Path,
        *,
        key: bool = False,
        table: bool = False,
        suggestion: str | None = None,
        related: tuple[str, Path] | None = None,
    ) -> None:
        """Add a diagnostic at a value, at its key, or at the head of a table."""
        value = None if table else self.places.value(at)
        span = self.places.key(at) if key else value or self.places.table(at)
        edit = suggestion if key or suggestion is None else f'"{suggestion}"'
        self.add_at(
            code,
            message,
            span or TOP,
            None if edit is None or span is None else Suggestion(edit, self.path, span),
            () if related is None else (Related(related[0], self.path, self.places.table(related[1])),),
        )

    def add_inside(self, message: str, at: Path, index: int) -> None:
        """Add a diagnostic at a character of a string."""
        span = self.places.value(at)
        if span is not None:
            begin, end = self.places.offset(*span.begin), self.places.offset(*span.end)
            found = toml_text.inside(self.text[begin:end], index)
            if found is not None:
                span = self.places.span(begin + found[0], begin + found[1])
        self.add_at("invalid-string", message, span or TOP)

    def add_at(
        self,
        code: str,
        message: str,
        span: Span,
        suggestion: Suggestion | None = None,
        related: tuple[Related, ...] = (),
    ) -> None:
        """Add a diagnostic."""
        self.found.append(Diagnostic(code, brief(message), self.path, span, related, suggestion))

    @property
    def may_search(self) -> bool:
        """Tell whether it is still worth the time to find out what was meant."""
        return self._searched <= MOST_SEARCHED

    def hint(self, word: str, known: Collection[str], kind: str) -> tuple[str, str | None]:
        """Return the tail of a message about an unknown word, and what was meant; many are not searched for."""
        self._searched += 1
        return hint(word, known, kind) if self.may_search else ("", None)


# What the schema finds, in words


_KINDS: Final = {
    "string": "a string",
    "integer": "an integer",
    "boolean": "a boolean",
    "array": "a list",
    "object": "a table",
}


def tell(fault: "Fault", problems: Problems, document: Mapping[str, Any]) -> None:
    """Turn what the schema forbids into diagnostics."""
    path, schema, value = fault.path, fault.schema, fault.value
    name = _dotted(path)
    match fault.keyword:
        case "additionalProperties":
            _unknown(path, schema, value, problems, document)
        case "required":
            _missing(path, schema, value, problems)
        case "dependentRequired":
            meant = _meant(schema, value, problems)
            for key, partners in schema["dependentRequired"].items():
                if key in value and not all(each in value or each in meant for each in partners):
                    message = f"{key} goes with {' and '.join(partners)}; give both, or neither"
                    problems.add("incomplete-pair", message, (*path, key), key=True)
        case "not" | "oneOf" if isinstance(value, dict):
            parts = schema["oneOf"] if fault.keyword == "oneOf" else [schema["not"]]
            _choice([key for part in parts for key in part["required"]], path, value, problems)
        case "type" | "oneOf":
            parts = (registry.resolved(document, each) for each in schema.get("oneOf", ()))
            kinds = " or ".join(_KINDS[each["type"]] for each in ((schema,) if "type" in schema else parts))
            tail = ""
            if isinstance(value, dict) and len(path) > 1 and path[-2] in ("requires", "prefers"):
                tail = f'; a name with a dot is quoted: "{path[-1]}.{next(iter(value), "…")}"'
            problems.add("wrong-type", f"{name} is {kinds}, not {ir.kind_of(value)}{tail}", path)
        case "enum":
            if isinstance(value, str):
                tail, guess = problems.hint(value, schema["enum"], "values")
                problems.add("unknown-value", f'{name} has no value "{shown(value)}"{tail}', path, suggestion=guess)
            else:
                kind = ir.kind_of(value)
                problems.add("wrong-type", f"{name} is {' or '.join(schema['enum'])}, not {kind}", path)
        case "minimum" | "maximum":
            bounds = f"{schema['minimum']} to {schema['maximum']}"
            problems.add("out-of-range", f"{name} is a whole number from {bounds}", path)
        case "maxItems":
            problems.add("out-of-range", f"{name} has at most {schema['maxItems']:,} entries", path)
        case "maxLength":
            message = f"{name} has at most {schema['maxLength']} characters; this has {len(value)}"
            problems.add("invalid-string", message, path)
        case _ if fault.is_name:
            message = 'a variable of the environment has a name without "=" and NUL'
            problems.add("invalid-string", message, path, key=True)
        case _:
            what = "is blank; write something, or leave the key out"
            if value.strip():
                what = f"does not look like {' or '.join(schema.get('examples', ()))}"
            problems.add("invalid-string", f"{name} {what}", path)


def _unknown(
    path: Path, schema: Mapping[str, Any], value: Mapping[str, Any], problems: Problems, document: Mapping[str, Any]
) -> None:
    """Tell of every key that a table has not, with the one that was meant or the table that has it."""
    known = schema["properties"]
    for key in value:
        if key in known:
            continue
        if path[:1] == ("outputs",) and key == "target":
            message = f"{path[-1]} addresses nothing, so it takes a count and no target; remove it"
            problems.add("target-unexpected", message, (*path, key))
            continue
        tail, guess = problems.hint(key, [each for each in known if each not in value], "")
        tail = tail or problems.hint(key, known, "keys")[0]
        if guess is None and problems.may_search:
            homes = [home for home in _homes(document, key) if home != _table(path)]
            tail = f"; it is a key of {' or '.join(homes)}" if homes else tail
        problems.add(
            "unknown-key", f'{_table(path)} has no key "{shown(key)}"{tail}', (*path, key), key=True, suggestion=guess
        )


def _missing(path: Path, schema: Mapping[str, Any], value: Mapping[str, Any], problems: Problems) -> None:
    """Tell of every key that a table lacks, but for one that is misspelt, or whose partner says so."""
    meant = _meant(schema, value, problems)
    pairs = schema.get("dependentRequired", {})
    for key in schema["required"]:
        is_said = key in meant or any(key in partners and other in value for other, partners in pairs.items())
        if key not in value and not is_said:
            problems.add("missing-key", f'{_table(path)} needs the key "{key}"', path, table=True)


def _meant(schema: Mapping[str, Any], value: Mapping[str, Any], problems: Problems) -> set[str | None]:
    """Return the keys that a table lacks because they are misspelt."""
    known = schema["properties"]
    left = [key for key in known if key not in value]
    return {problems.hint(key, left, "")[1] for key in value if key not in known}


def _choice(keys: list[str], path: Path, value: Mapping[str, Any], problems: Problems) -> None:
    """Tell that of some keys none is there, or one too many."""
    there = [key for key in value if key in keys]
    if there:
        message = f"{_table(path)} has either {' or '.join(keys)}"
        first, second = there[:2]
        related = (f"{first} stands here", (*path, first))
        problems.add("exclusive-keys", message, (*path, second), key=True, related=related)
        return
    if not any(problems.hint(key, keys, "")[1] for key in value):
        problems.add("missing-key", f"{_table(path)} needs {' or '.join(keys)}", path, table=True)


def _homes(document: Mapping[str, Any], key: str) -> Iterator[str]:
    """Yield the tables that have a key."""
    pending: list[tuple[Path, Mapping[str, Any]]] = [((), document)]
    while pending:
        path, schema = pending.pop(0)
        for name, part in schema.get("properties", {}).items():
            inner = registry.resolved(document, part)
            if name == key and path[:1] != (WORKFLOW,):
                yield _table(path)
            pending.append(((*path, name), registry.resolved(document, inner.get("items", inner))))


def _table(path: Path) -> str:
    """Name a table as its header does; an entry of a list by its list."""
    names = [each for each in path if isinstance(each, str)]
    if not names:
        return "a manifest"
    is_entry = isinstance(path[-1], int)
    if names[-1] == "inject":
        return "an inject"
    dotted = _dotted(tuple(names))
    return f"[[{dotted}]]" if is_entry else f"[{dotted}]"


def _dotted(path: Path) -> str:
    return ".".join(shown(str(each)) for each in path if isinstance(each, str))


def shown(text: str) -> str:
    """Return a text of a manifest at a length that a message can bear."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"

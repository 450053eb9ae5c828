"""Launch parameters of a playbook: the ``params`` block, and the values of one launch (language.md §6).

Tokens in, declarations out, without evaluating the source; then texts of NAME=VALUE in, values out.
What is wrong comes back as problems. Patterns are not searched here, where nothing bounds them:
they come back as checks, for pattern.py in the evaluation process.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from crucible.compiler.frontend.external import MOST_PARAMETERS, mark
from crucible.compiler.frontend.literal import Node, others, read_literal
from crucible.compiler.frontend.param_types import LARGEST, SMALLEST, TYPES, Value, as_float, parse, refusal, shown
from crucible.compiler.frontend.scan import Token
from crucible.schemas.span import Span
from crucible.schemas.spelling import hint, nearest

_BLOCK = "params"
_LANE = "playbook"
_NAME_RULE = "1 to 64 ASCII letters, digits, '.', '_' or '-'"

# field: the types it fits
FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "type": tuple(TYPES),
    "required": tuple(TYPES),
    "default": tuple(TYPES),
    "doc": tuple(TYPES),
    "pattern": ("string",),
    "min": ("int", "number"),
    "max": ("int", "number"),
    "choices": ("string",),
    "example": tuple(TYPES),
}
_KINDS = {
    "string": "a string",
    "int": "an int",
    "number": "a float",
    "bool": "a boolean",
    "None": "None",
    "list": "a list",
    "dict": "a dict",
}


class Problem(NamedTuple):
    """A mistake in a source or a launch; ``suggestion`` is the text that would stand at ``span``.

    ``span`` and the span of ``related`` are places in the root file; None is no place.
    """

    code: str
    message: str
    span: Span | None = None
    related: tuple[str, Span] | None = None
    suggestion: str | None = None


class PatternCheck(NamedTuple):
    """A search that is still to be made; ``text`` None only asks whether the pattern is one.

    ``problem`` is what a failure means; the reason why a pattern is none comes behind its message.
    """

    pattern: str
    text: str | None
    problem: Problem


class Declaration(NamedTuple):
    """One parameter. ``default`` and ``example`` are None when absent: None is no value of any type.

    ``min`` and ``max`` have the type's own kind of number. ``spans`` holds the places of the key
    and the value of each field that was written.
    """

    name: str
    type: str
    name_span: Span
    spans: Mapping[str, tuple[Span, Span]]
    required: bool = False
    default: Value | None = None
    doc: str = ""
    pattern: str | None = None
    min: float | None = None
    max: float | None = None
    choices: tuple[str, ...] = ()
    example: Value | None = None

    @property
    def is_external(self) -> bool:
        """Tell whether a launcher may supply text that the author did not write."""
        return self.type in ("string", "list<string>") and not self.choices


class Declarations(NamedTuple):
    """The block: the sound declarations in order, and all names, those of malformed ones included."""

    rows: tuple[Declaration, ...]
    names: tuple[str, ...]
    checks: tuple[PatternCheck, ...]

    def get(self, name: str) -> Declaration | None:
        """Return the declaration of that name, None when there is no sound one."""
        for row in self.rows:
            if row.name == name:
                return row
        return None


class Bound(NamedTuple):
    """What a compile works with: values by name in declaration order, and what is wrong with them.

    ``supplied`` names the values that the launch really gave. A number is a float, a list a list.
    """

    values: dict[str, Any]
    supplied: frozenset[str]
    problems: list[Problem]
    checks: list[PatternCheck]


# The block


def read_block(tokens: Sequence[Token], lane: str | None) -> tuple[Declarations | None, list[Problem]]:
    """Read the ``params`` block of a root source in that lane.

    Nothing is declared in another lane, or where the statement is broken: the parser reports that
    then. A block that is not first is reported and read all the same, so that the names are known;
    without declarations but with problems nothing is known about the names.
    """
    if lane != _LANE:
        return None, []
    plain = [token for token in tokens if token.kind != "COMMENT"]
    starts = _statement_starts(plain)
    places = [at for at in starts if plain[at].text == _BLOCK and _is_op(plain[at + 1], "=")]
    if not places:
        return None, []
    first = starts[1] if _is_docstring(plain, starts[0]) else starts[0]
    problems = [
        Problem(
            "invalid-params",
            "params is the first statement of a playbook; only a docstring may stand before it"
            if number == 0
            else "params is assigned once, as the first statement of a playbook",
            plain[at].span,
        )
        for number, at in enumerate(places)
        if at != first
    ]
    literal = read_literal(plain, places[0] + 2)
    if literal is None:
        return None, problems
    block, _ = literal
    problems += [
        Problem("invalid-params", "params is read without evaluating the source; write a literal here", node.span)
        for node in others(block)
    ]
    if block.kind == "other":
        return None, problems
    if block.kind != "dict":
        problems.append(
            Problem("invalid-params", f"params is a dict of declarations, not {_KINDS[block.kind]}", block.span)
        )
        return None, problems
    reader = _BlockReader(problems)
    reader.read(block)
    return Declarations(tuple(reader.rows), tuple(reader.names), tuple(reader.checks)), problems


def _statement_starts(tokens: Sequence[Token]) -> list[int]:
    """Return the index of the first token of every statement at the top level, END excepted.

    What follows a def, if or for on its own line belongs to that statement.
    """
    starts: list[int] = []
    depth = 0
    begins = True
    compound = False
    for at, token in enumerate(tokens):
        if token.kind in ("INDENT", "DEDENT"):
            depth += 1 if token.kind == "INDENT" else -1
            begins = True
        elif token.kind == "NEWLINE":
            begins, compound = True, False
        elif _is_op(token, ";"):
            begins = not compound
        elif begins and token.kind != "END":
            begins = False
            if depth == 0:
                starts.append(at)
                compound = token.text in ("def", "if", "for", "else", "elif")
    return starts


def _is_docstring(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether the statement at that token is a string and nothing else."""
    behind = tokens[at + 1]
    return tokens[at].kind == "STRING" and (behind.kind in ("NEWLINE", "END") or _is_op(behind, ";"))


def _is_op(token: Token, text: str) -> bool:
    """Tell whether a token is that operator."""
    return token.kind == "OP" and token.text == text


class _BlockReader:
    """Collects the declarations of a block; ``problems`` is shared with the caller."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        self.rows: list[Declaration] = []
        self.names: list[str] = []
        self.checks: list[PatternCheck] = []

    def read(self, block: Node) -> None:
        """Read every entry of the block."""
        first: dict[str, Span] = {}
        for key, value in block.value:
            if key.kind == "other":
                continue
            if key.kind != "string" or not _is_name(key.value):
                self.bad(key.span, f"a parameter's name is {_NAME_RULE}")
            elif key.value in first:
                self.bad(key.span, f'"{key.value}" is declared twice', ("first declared here", first[key.value]))
            elif len(first) == MOST_PARAMETERS:
                self.bad(key.span, f"a playbook has at most {MOST_PARAMETERS} parameters")
            else:
                first[key.value] = key.span
                self.names.append(key.value)
                if value.kind == "dict":
                    self.declaration(key, value)
                elif value.kind != "other":
                    self.bad(value.span, f"a declaration is a dict of fields, not {_KINDS[value.kind]}")

    def bad(
        self, span: Span, message: str, related: tuple[str, Span] | None = None, suggestion: str | None = None
    ) -> None:
        """Add a problem of the block."""
        self.problems.append(Problem("invalid-params", message, span, related, suggestion))

    def declaration(self, name: Node, value: Node) -> None:
        """Read one declaration; it becomes a row only when nothing is wrong with it."""
        before = len(self.problems)
        fields = self.fields(name, value)
        if fields is None:
            return
        kind = self.type_of(fields.get("type"))
        sound: dict[str, Any] = {"type": kind or ""}
        for field, (key, node) in fields.items():
            if kind is not None and kind not in FIELDS[field]:
                self.bad(key.span, f'"{field}" fits {" and ".join(FIELDS[field])} only, not {kind}')
            elif field != "type" and node.kind != "other":
                sound[field] = self.value(field, kind, node)
        spans = {field: (key.span, node.span) for field, (key, node) in fields.items()}
        row = Declaration(name=name.value, name_span=name.span, spans=spans, **sound)
        self.check_values(row)
        self.checks += _block_checks(row)
        if len(self.problems) == before and not others(value):
            self.rows.append(row)

    def fields(self, name: Node, value: Node) -> dict[str, tuple[Node, Node]] | None:
        """Return the known fields by name; None when a key is no literal."""
        fields: dict[str, tuple[Node, Node]] = {}
        meant: set[str | None] = set()
        written = {key.value for key, _ in value.value if key.kind == "string"}
        for key, node in value.value:
            if key.kind == "other":
                return None
            if key.kind != "string":
                self.bad(key.span, f"a field's name is a string, not {_KINDS[key.kind]}")
            elif key.value not in FIELDS:
                tail, guess = hint(key.value, [field for field in FIELDS if field not in written], "fields")
                meant.add(guess)
                self.bad(
                    key.span, f"a parameter has no field {shown(key.value)}{tail}", suggestion=guess and f'"{guess}"'
                )
            elif key.value in fields:
                self.bad(name.span, f'"{name.value}" has the field "{key.value}" twice', ("the second one", key.span))
            else:
                fields[key.value] = (key, node)
        if "type" not in fields and "type" not in meant:
            self.bad(name.span, f'"{name.value}" has no type; give one of {", ".join(TYPES)}')
        if "required" in fields and "default" in fields and fields["required"][1].value is True:
            self.bad(name.span, f'"{name.value}" is required and has a default; give one of the two')
        elif not {"required", "default"} & (fields.keys() | meant):
            self.bad(name.span, f'"{name.value}" is neither required nor has a default; give one of the two')
        return fields

    def type_of(self, field: tuple[Node, Node] | None) -> str | None:
        """Return the declared type, None when it is not known."""
        if field is None or field[1].kind == "other":
            return None
        node = field[1]
        if node.kind == "string" and node.value in TYPES:
            return str(node.value)
        if node.kind == "string":
            tail, guess = hint(node.value, TYPES, "types")
            self.bad(node.span, f"there is no type {shown(node.value)}{tail}", suggestion=guess and f'"{guess}"')
        else:
            self.bad(node.span, f"a type is one of {', '.join(TYPES)}, as a string, not {_KINDS[node.kind]}")
        return None

    def value(self, field: str, kind: str | None, node: Node) -> object:
        """Return the value of one field, None for a bad one, which is reported."""
        if field == "required":
            if node.value is not True:
                self.bad(node.span, "required is True or left out; an optional parameter has a default")
            return True
        if field in ("doc", "pattern"):
            return self.text(field, node)
        if field == "choices":
            return self.choices(node)
        return None if kind is None else self.typed(field, kind, node)

    def choices(self, node: Node) -> tuple[str, ...]:
        """Return the choices, none when one of them is bad."""
        if node.kind != "list" or not node.value:
            self.bad(node.span, "choices is a list of at least one string")
            return ()
        found: dict[str, Span] = {}
        for element in node.value:
            text = None if element.kind == "other" else self.text("a choice", element)
            if text is None:
                continue
            if text in found:
                self.bad(element.span, f"the choice {shown(text)} stands twice", ("the first one", found[text]))
            else:
                found[text] = element.span
        return tuple(found) if len(found) == len(node.value) else ()

    def text(self, what: str, node: Node) -> str | None:
        """Return a literal as a string; report one that is none and return None."""
        value = self.typed(what, "string", node)
        return value if isinstance(value, str) else None

    def typed(self, what: str, kind: str, node: Node) -> Value | None:
        """Return a literal as a value of that type; report one that is none and return None."""
        if kind == "list<string>" and node.kind == "list":
            texts = [self.text(f"an element of {what}", element) for element in node.value if element.kind != "other"]
            return [text for text in texts if text is not None]
        if node.kind != kind and (kind, node.kind) != ("number", "int"):
            self.bad(node.span, f"{what} is {TYPES[kind].noun}, not {_KINDS[node.kind]}")
            return None
        value: Value = as_float(node.value) if kind == "number" else node.value
        reason = refusal(value)
        if reason:
            self.bad(node.span, f"{what} {reason}")
            return None
        return value

    def check_values(self, row: Declaration) -> None:
        """Report bounds in the wrong order, and a default or example that its own fields refuse."""
        if row.min is not None and row.max is not None and row.min > row.max:
            related = ("min stands here", row.spans["min"][1])
            self.bad(row.spans["max"][1], f"max is at least min; {row.max} is below {row.min}", related)
            return
        for field, value in (("default", row.default), ("example", row.example)):
            reason = _out_of_set(row, value)
            if reason:
                message, guess = reason
                self.bad(
                    row.spans[field][1],
                    f"{field} {message}",
                    suggestion=guess and json.dumps(guess, ensure_ascii=False),
                )


def _block_checks(row: Declaration) -> list[PatternCheck]:
    """Return the searches that the block itself asks for."""
    if row.pattern is None:
        return []
    problem = Problem("invalid-params", "the pattern is no regular expression", row.spans["pattern"][1])
    checks = [PatternCheck(row.pattern, None, problem)]
    for field, value in (("default", row.default), ("example", row.example)):
        if isinstance(value, str):
            message = f'{field} does not match the pattern "{row.pattern}"'
            checks.append(PatternCheck(row.pattern, value, Problem("invalid-params", message, row.spans[field][1])))
    return checks


# Values, of literals and of launches


def _is_name(name: str) -> bool:
    """Tell whether a name can be written before the = of NAME=VALUE and shown in a prompt."""
    return re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name) is not None


def _out_of_set(row: Declaration, value: Value | None) -> tuple[str, str | None] | None:
    """Say which field of its declaration refuses a value of the right type, with a suggestion."""
    if isinstance(value, str) and row.choices and value not in row.choices:
        tail, guess = hint(value, row.choices, "choices")
        return f"is one of the choices, not {shown(value)}{tail}", guess
    if isinstance(value, (int, float)):
        if row.min is not None and value < row.min:
            return f"is at least {row.min}, not {value}", None
        if row.max is not None and value > row.max:
            return f"is at most {row.max}, not {value}", None
    return None


def bind(declarations: Declarations | None, given: Sequence[tuple[str, str]] | None) -> Bound:
    """Give every parameter its value.

    ``given`` are the names and texts of a launch, in which a parameter takes its text or its
    default; None is no launch: a required parameter takes its example then, and without one is
    left out with a warning. A parameter whose value is refused is left out as well.
    """
    known = declarations or Declarations((), (), ())
    if given is None:
        return _bind_without_launch(known)
    problems: list[Problem] = []
    checks: list[PatternCheck] = []
    texts, meant = _sort_out(known, given, problems)
    values: dict[str, Any] = {}
    for row in known.rows:
        related = ("declared here", row.name_span)
        if row.name not in texts:
            if not row.required:
                values[row.name] = row.default
            elif row.name not in meant:
                message = f'the parameter "{row.name}" has no value; give --param {row.name}=VALUE'
                problems.append(Problem("missing-param", message, None, related))
            continue
        value = parse(row.type, texts[row.name])
        reason = _misread(row, value, texts[row.name])
        if reason is not None:
            problems.append(Problem("invalid-param", f'the parameter "{row.name}" {reason}', None, related))
            continue
        values[row.name] = value
        if row.pattern is not None and isinstance(value, str):
            message = f'the parameter "{row.name}" matches the pattern "{row.pattern}"; {shown(value)} does not'
            checks.append(PatternCheck(row.pattern, value, Problem("invalid-param", message, None, related)))
    return Bound(values, frozenset(texts.keys() & values.keys()), problems, checks)


def _bind_without_launch(known: Declarations) -> Bound:
    """Give every parameter its default or its example."""
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for row in known.rows:
        value = row.example if row.required else row.default
        if value is None:
            message = f'"{row.name}" is required and has no example; without a launch the source is not evaluated'
            problems.append(Problem("param-without-example", message, row.name_span))
        else:
            values[row.name] = value
    return Bound(values, frozenset(), problems, [])


def _sort_out(
    known: Declarations, given: Sequence[tuple[str, str]], problems: list[Problem]
) -> tuple[dict[str, str], set[str | None]]:
    """Return the texts of declared parameters, and the names that misspelt ones probably meant."""
    texts: dict[str, str] = {}
    meant: set[str | None] = set()
    twice: set[str] = set()
    free = set(known.names).difference(name for name, _ in given)
    for name, text in given:
        if name not in known.names:
            tail, _ = hint(name, free, "parameters")
            tail = tail if known.names else "; the source declares none"
            meant.add(nearest(name, free))
            problems.append(Problem("unknown-param", f"there is no parameter {shown(name)}{tail}"))
        elif name not in texts:
            texts[name] = text
        elif name not in twice:
            twice.add(name)
            row = known.get(name)
            related = ("declared here", row.name_span) if row else None
            problems.append(
                Problem("invalid-param", f'the parameter "{name}" is given twice; give it once', None, related)
            )
    return texts, meant


def _misread(row: Declaration, value: Value | None, text: str) -> str | None:
    """Say why a launch cannot give that value, which was read from that text; None for a good one."""
    if value is None:
        return f"is {TYPES[row.type].noun}, written as {TYPES[row.type].written}, not {shown(text)}"
    for element in value if isinstance(value, list) else [value]:
        reason = refusal(element)
        if reason:
            return reason
    message, _ = _out_of_set(row, value) or (None, None)
    return message


def refused_patterns(checks: Sequence[PatternCheck], verdicts: Iterable[bool | str]) -> list[Problem]:
    """Return the problems of the checks, given what pattern.search said to each of them.

    A pattern that is none is reported once, where it was written.
    """
    problems: list[Problem] = []
    for check, verdict in zip(checks, verdicts, strict=True):
        if verdict is False:
            problems.append(check.problem)
        elif isinstance(verdict, str) and check.text is None:
            problems.append(check.problem._replace(message=f"{check.problem.message}: {verdict}"))
    return problems


# What others make of the values


def marked(declarations: Declarations, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values as ``param()`` gives them to a source: external text stands between marks.

    There is a value for every declaration; with problems in the block nothing is evaluated.
    """
    given: dict[str, Any] = {}
    for index, row in enumerate(declarations.rows):
        value = values[row.name]
        if row.is_external:
            value = [mark(index, text) for text in value] if isinstance(value, list) else mark(index, value)
        given[row.name] = value
    return given


def json_schema(declarations: Declarations | None) -> dict[str, Any]:
    """Return the JSON Schema of a launch's values, the empty object for a source without parameters.

    It accepts exactly what ``bind`` accepts, an int's 32 bits included.
    """
    rows = declarations.rows if declarations else ()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "required": [row.name for row in rows if row.required],
        "properties": {row.name: _property(row) for row in rows},
    }


def _property(row: Declaration) -> dict[str, Any]:
    """Return the JSON Schema of one parameter."""
    is_int = row.type == "int"
    schema: dict[str, Any] = {
        **TYPES[row.type].schema,
        "description": row.doc or None,
        "default": row.default,
        "pattern": row.pattern,
        "minimum": SMALLEST if is_int and row.min is None else row.min,
        "maximum": LARGEST if is_int and row.max is None else row.max,
        "enum": list(row.choices) or None,
        "examples": None if row.example is None else [row.example],
    }
    return {key: value for key, value in schema.items() if value is not None}

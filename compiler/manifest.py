"""crucible.toml and its ``[workflow]`` block: found in the text, read with places, written in place.

A manifest belongs to its author: only the lines of the block change, so they are spliced as text
and tomlkit, which would rearrange what it writes, only proves what came out. IR that people write
by hand, in TOML or JSON, is read here too, for its findings want the places of that text.
"""

import json
import os
import re
from collections.abc import Iterable
from itertools import islice
from typing import Any, Literal, NamedTuple

from crucible.compiler import bulk, json_text, toml_text
from crucible.compiler.frontend.pack import normalise
from crucible.compiler.positions import BYTE_ORDER_MARK, Positions
from crucible.schemas import ir
from crucible.schemas.canonical import format_float
from crucible.schemas.codes import CODES
from crucible.schemas.diagnostic import At, Diagnostic, Finding, Related, Suggestion
from crucible.schemas.ir import Workflow
from crucible.schemas.span import Position, Span
from crucible.schemas.spelling import MOST_SEARCHED, hint, nearest

TABLE = "workflow"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_GENERATED_FROM, _GENERATED_BY = "# Generated from ", " by crucible plan compile-workflow; edit that file instead."
_MOST_OF_TOMLKIT = 65_536  # characters
_OF_A_REFERENCE = ("type", "file")
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_ESCAPED = re.compile('[\x00-\x1f\x7f"\\\\]')
# In a multi-line string line feeds, tabs and quotes stand as themselves, but for a third quote in a row.
_ESCAPED_IN_LINES = re.compile('[\x00-\x08\x0b-\x1f\x7f\\\\]|(?<="")"')
_SHORT_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


class Reference(NamedTuple):
    """A ``[workflow]`` that names its source: a playbook with parameters, compiled at launch (language.md §6).

    ``file`` is relative to the manifest's directory.
    """

    file: str
    type: str = "playbook"


class Materialised(NamedTuple):
    """What ``materialise`` makes: the new text, or None and the diagnostics that say why.

    ``notes`` names each comment inside the old block, which the new text no longer has.
    """

    text: str | None
    diagnostics: list[Diagnostic]
    notes: list[str]


class Places(NamedTuple):
    """The places of a workflow in the text it was read from; ``base`` is the path of its table."""

    positions: Positions
    base: tuple[str | int, ...]
    kind: Literal["toml", "json"]

    def resolve(self, at: At) -> Span | None:
        """Return where a place of the workflow stands; what is not written has the place of its table.

        A task as a whole is its name, the workflow its header or opening brace (codes.md).
        """
        path = self._path(at)
        if at.part == "key":
            found = self.positions.key(path)
        elif not at.field:
            found = None if at.task is None else self.positions.value((*path, "name"))
        else:
            found = self.positions.value(path) or self.positions.table(path)
            if found is None and at.index is not None:
                return self.resolve(at._replace(index=None))
        if found is None and at.task is not None and at.field:
            return self.resolve(At(at.task))
        return found or self.table(at)

    def table(self, at: At) -> Span | None:
        """Return the header of the task's or the workflow's table, or its opening brace."""
        found = self.positions.table((*self.base, "task", at.task)) if at.task is not None else None
        return found or self.positions.table(self.base)

    def quote(self, text: str, at: At) -> str:
        """Return a suggestion as it would stand in the text at that place."""
        if self.kind == "json":
            return json.dumps(text, ensure_ascii=False)
        return _key(text) if at.part == "key" else _string(text)

    def _path(self, at: At) -> tuple[str | int, ...]:
        path: list[str | int] = list(self.base)
        if at.task is not None:
            path += ["task", at.task]
        if at.field:
            path.append(at.field)
        if at.param is not None:
            path.append(at.param)
        if at.index is not None:
            path.append(at.index)
        return tuple(path)


# The block as text


def render_block(content: Workflow | Reference, source_name: str, newline: str = "\n") -> str:
    r"""Return the lines of the block, the generated comment first, without a final line end (ir.md §2).

    ``newline`` is the line end of the file; with ``\r\n`` every string stands on one line.
    """
    comment = f"{_GENERATED_FROM}{_UNPRINTABLE.sub('?', source_name)}{_GENERATED_BY}"
    lines = [comment, f"[{TABLE}]", f"type = {_string(content.type)}"]
    if isinstance(content, Reference):
        return newline.join([*lines, f"file = {_string(content.file)}"])
    if content.result is not None:
        lines.append(f"result = {_string(content.result)}")
    if content.params is not None:
        lines += ["", f"[{TABLE}.params]"]
        lines += [f"{_key(name)} = {_value(value)}" for name, value in content.params.items()]
    for task in content.task:
        lines += ["", f"[[{TABLE}.task]]"]
        for name, value in ir.task_to_plain(task).items():
            if name == "prompt" and "\n" in value and newline == "\n":
                lines.append(f"{name} = {_lines(value)}")
            elif value is not None:
                lines.append(f"{name} = {_value(value)}")
    return newline.join(lines)


def _value(value: Any) -> str:
    """Write a plain value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return _string(value)
    return f"[{', '.join(_value(element) for element in value)}]"


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _string(name)


def _string(text: str) -> str:
    """Write a string on one line."""
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _lines(text: str) -> str:
    """Write a string over several lines; the line end behind the opening quotes is not part of it."""
    return f'"""\n{_ESCAPED_IN_LINES.sub(_escape, text)}"""'


def _escape(found: re.Match[str]) -> str:
    sign = found.group()
    return _SHORT_ESCAPES.get(sign) or f"\\u{ord(sign):04X}"


# The block in its file


class _Block(NamedTuple):
    """The lines of an existing block: offsets of its first and behind its last character.

    ``first`` is the offset of its first header; a generated comment above it belongs to the block.
    """

    begin: int
    first: int
    end: int


def read_manifest(text: str, file: str) -> tuple[dict[str, Any] | None, list[Diagnostic]]:
    """Read a whole manifest as plain data, None with what keeps it from being TOML."""
    data, _layout, diagnostics = toml_text.read(text, file)
    return data, diagnostics


def is_generated(text: str, source_name: str) -> bool:
    """Tell whether a manifest says that its block was generated from the source of that name."""
    return f"{_GENERATED_FROM}{source_name}{_GENERATED_BY}" in text


def generated_from(text: str) -> str | None:
    """Return the name of the source that a manifest says its block was generated from."""
    found = re.search(f"^{re.escape(_GENERATED_FROM)}(.*){re.escape(_GENERATED_BY)}", text, re.MULTILINE)
    name = normalise(found.group(1)) if found else None
    return name if isinstance(name, str) else None


def decode(data: bytes, file: str) -> tuple[str | None, list[Diagnostic]]:
    """Return the text of a file, its byte-order mark kept.

    Bytes that are no UTF-8, and more of anything than a reader is given, are a diagnostic at their place.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        spot = _spot(before, len(before))
        message = f"this is not UTF-8: byte {error.start} of the file cannot be read"
        return None, [Diagnostic("source-not-utf8", message, file, Span(spot, spot._replace(column=spot.column + 1)))]
    found = bulk.excess(text)
    if found is None:
        return text, []
    span = Span(_spot(text, found.begin), _spot(text, found.end))
    return None, [Diagnostic("limit-exceeded", found.message, file, span)]


def _spot(text: str, offset: int) -> Position:
    """Return a position without a list of all lines, which may be millions."""
    begin = text.rfind("\n", 0, offset) + 1
    begin += begin == 0 and text.startswith(BYTE_ORDER_MARK)
    return Position(text.count("\n", 0, offset) + 1, max(offset - begin, 0) + 1)


def materialise(text: str, file: str, content: Workflow | Reference, source_name: str) -> Materialised:
    """Put a workflow into the text of a manifest: in the place of its block, or behind all else.

    Every other character stays. Raises RuntimeError when what came out does not read back as it
    must, which is a fault of the compiler and not of the manifest.
    """
    data, layout, diagnostics = toml_text.read(text, file)
    if data is None:
        return Materialised(None, diagnostics, [])
    block, odd = _find(layout, file)
    if odd is not None:
        return Materialised(None, [odd], [])
    newline = _line_end(text)
    rendered = render_block(content, source_name, newline)
    if block is None:
        new = text + _gap(text, newline) + rendered + newline
        notes = []
    else:
        new = text[: block.begin] + rendered + text[block.end :]
        notes = [
            f"{file}:{layout.positions.position(begin).line}: this comment stands inside the generated [{TABLE}] "
            f"and is lost; above it, it would stay: {text[begin:end]}"
            for begin, end in layout.comments
            if block.first <= begin < block.end
        ]
    if new != text:
        _prove(text, new, content)
    return Materialised(new, [], notes)


def stale(text: str, file: str, content: Workflow | Reference, source_name: str) -> tuple[list[Diagnostic], str]:
    """Tell whether ``materialise`` would change a manifest, and show how, as a unified diff."""
    made = materialise(text, file, content, source_name)
    if made.text is None or made.text == text:
        return made.diagnostics, ""
    layout = toml_text.scan(text)
    header = next((each for each in layout.statements if each.is_header and each.keys[0] == TABLE), None)
    if header is None:
        span, what = None, f"there is no [{TABLE}] yet"
    else:
        span, what = layout.positions.span(header.begin, header.end), f"[{TABLE}] is not what {source_name} compiles to"
    message = f"{what}; run crucible plan compile-workflow with --manifest"
    return [Diagnostic("stale-workflow", message, file, span)], _unified_diff(text, made.text, file)


def _unified_diff(old: str, new: str, file: str) -> str:
    import difflib  # only a stale manifest needs it

    # str.splitlines would also split inside the strings of the file.
    before, after = ([*re.findall("[^\n]*\n|[^\n]+", text)] for text in (old, new))
    lines = difflib.unified_diff(before, after, file, f"{file} (compiled)")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _find(layout: toml_text.Layout, file: str) -> tuple[_Block | None, Diagnostic | None]:
    """Find the one run of headers below ``workflow``; a diagnostic when it is written otherwise."""
    table: str | None = None
    first: toml_text.Statement | None = None
    last: toml_text.Statement | None = None
    between: toml_text.Statement | None = None
    for each in layout.statements:
        if each.is_header:
            table = each.keys[0]
        elif table is None and each.keys[0] == TABLE:
            how = "dotted keys" if len(each.keys) > 1 else "one value"
            return None, _odd(layout, file, each, f"{TABLE} is written as {how}")
        if table != TABLE:
            between = between or (each if last else None)
        elif between:
            shown = layout.text[between.begin : between.end]
            return None, _odd(layout, file, each, f"{shown} interrupts the tables of {TABLE}", between)
        else:
            first, last = first or each, each
    if first is None or last is None:
        return None, None
    line_end = re.compile(r"\r?\n|\Z").search(layout.text, last.end)
    end = line_end.start() if line_end else len(layout.text)
    return _Block(_begin_with_comment(layout, first.begin), first.begin, end), None


def _begin_with_comment(layout: toml_text.Layout, header: int) -> int:
    """Return where the header's line begins, or the line above when that is a generated comment."""
    text = layout.text
    begin = _line_begin(text, header)
    above = _line_begin(text, begin - 1) if begin > 1 else begin
    for start, end in layout.comments:
        is_alone = above <= start < begin and not text[above:start].strip()
        if is_alone and text.startswith(_GENERATED_FROM, start) and text[start:end].rstrip().endswith(_GENERATED_BY):
            return above
    return begin


def _line_begin(text: str, offset: int) -> int:
    begin = text.rfind("\n", 0, offset) + 1
    return 1 if begin == 0 and text.startswith(BYTE_ORDER_MARK) else begin


def _odd(
    layout: toml_text.Layout,
    file: str,
    statement: toml_text.Statement,
    why: str,
    between: toml_text.Statement | None = None,
) -> Diagnostic:
    """Make a diagnostic at the first line of a form that cannot be replaced as one block."""
    place = layout.positions
    first_line = layout.text[statement.begin : statement.end].partition("\n")[0].rstrip("\r")
    span = place.span(statement.begin, statement.begin + len(first_line))
    message = f"{why}; write it as [{TABLE}] and [[{TABLE}.task]] tables that follow each other"
    related = (Related("the other table stands here", file, place.span(between.begin, between.end)),) if between else ()
    return Diagnostic("workflow-not-a-block", message, file, span, related)


def _line_end(text: str) -> str:
    """Return the line end of a file: that of its first line."""
    return "\r\n" if text.partition("\n")[0].endswith("\r") and "\n" in text else "\n"


def _gap(text: str, newline: str) -> str:
    """Return what separates an appended block from the text before it: one blank line."""
    body = text.removeprefix(BYTE_ORDER_MARK)
    if not body:
        return ""
    if not body.endswith("\n"):
        return newline * 2
    last_line = body.removesuffix("\n").removesuffix("\r").rpartition("\n")[2]
    return newline if last_line.strip() else ""


def _prove(before: str, after: str, content: Workflow | Reference) -> None:
    """Raise RuntimeError unless both texts agree outside the table and the new one holds the content."""
    old, new = (_proof(text.removeprefix(BYTE_ORDER_MARK)) for text in (before, after))
    old.pop(TABLE, None)
    table = new.pop(TABLE, None)
    # As text, for a manifest may hold nan, which equals nothing.
    if repr(old) != repr(new):
        message = "the manifest would change outside its [workflow] block"
        raise RuntimeError(message)
    is_equal = table == content._asdict() if isinstance(content, Reference) else ir.read(table) == (content, [])
    if not is_equal:
        message = "the [workflow] block would not read back as the workflow"
        raise RuntimeError(message)


def _proof(text: str) -> dict[str, Any]:
    """Read a text with another reader: tomlkit, which of a long text needs a thousand times the memory and the time."""
    if len(text) > _MOST_OF_TOMLKIT:
        import tomllib

        return tomllib.loads(text)
    import tomlkit  # only a write needs the proof

    return tomlkit.parse(text).unwrap()


# The workflow as data


def read_workflow(
    text: str, file: str, kind: Literal["toml", "json"]
) -> tuple[Workflow | Reference | None, list[Diagnostic], Places | None]:
    """Read the ``[workflow]`` table of a manifest, or a canonical JSON, with the places of its parts.

    None without a diagnostic is a manifest that has no such table. A Reference stands for a
    playbook that is compiled at launch. Without places the text could not be read at all.
    """
    data, positions, diagnostics = parse(text, file, kind)
    if diagnostics:
        return None, diagnostics, None
    content, findings, places = find_workflow(data, positions, kind)
    return content, to_diagnostics(findings, places, file), places


def parse(text: str, file: str, kind: Literal["toml", "json"]) -> tuple[Any, Positions, list[Diagnostic]]:
    """Read a text as plain data with its places; the data is good only without a diagnostic."""
    return json_text.read_data(text, file) if kind == "json" else toml_text.read_data(text, file)


def find_workflow(
    data: Any, positions: Positions, kind: Literal["toml", "json"]
) -> tuple[Workflow | Reference | None, list[Finding], Places]:
    """Read the ``[workflow]`` of a manifest, or a canonical JSON, from its plain data; None when there is no table."""
    places = Places(positions, (TABLE,) if kind == "toml" else (), kind)
    if kind == "toml":
        if TABLE not in data:
            return None, [], places
        data = data[TABLE]
    content: Workflow | Reference | None
    if kind == "toml" and isinstance(data, dict) and _is_reference(data):
        content, findings = _read_reference(data)
    else:
        content, findings = ir.read(data)
    return content, findings, places


def _is_reference(table: dict[str, Any]) -> bool:
    """Tell whether a ``[workflow]`` names its source in place of tasks, be it by a misspelt key."""
    if "file" in table or "task" in table:
        return "file" in table
    left = [key for key in (*ir.WORKFLOW_KEYS, "file") if key not in table]
    others = (key for key in table if key not in ir.WORKFLOW_KEYS)
    return any(nearest(key, left) == "file" for key in islice(others, MOST_SEARCHED))


def _read_reference(table: dict[str, Any]) -> tuple[Reference | None, list[Finding]]:
    """Read a ``[workflow]`` that names its source in place of tasks."""
    findings = []
    keys = list(table)
    meant: set[str | None] = set()
    for key in keys:
        if key == "task":
            second = max(key, "file", key=keys.index)
            message = "[workflow] has either tasks or the file to compile them from"
            findings.append(Finding("exclusive-keys", message, At(None, second, part="key")))
        elif key not in _OF_A_REFERENCE:
            left = [each for each in _OF_A_REFERENCE if each not in table]
            tail, guess = hint(key, left)
            tail = tail or f"; the keys are {', '.join(sorted(_OF_A_REFERENCE))}"
            message = f'a [workflow] that names a file has no key "{key[: ir.MOST_IN_A_WORD]}"{tail}'
            findings.append(Finding("unknown-key", message, At(None, key, part="key"), suggestion=guess))
            meant.add(guess)
    for key in _OF_A_REFERENCE:
        if key not in table and key in meant:
            continue
        if key not in table:
            findings.append(Finding("missing-key", f'a [workflow] that names a file needs the key "{key}"', At()))
        elif not isinstance(table[key], str):
            message = f"{key} is a string, not {ir.kind_of(table[key])}"
            findings.append(Finding("wrong-type", message, At(None, key)))
        elif key == "type" and table[key] != "playbook":
            message = f'only a playbook is compiled at launch; type is "playbook", not "{table[key]}"'
            findings.append(Finding("unknown-value", message, At(None, key), suggestion="playbook"))
    return (None if findings else Reference(table["file"])), findings


def to_diagnostics(findings: Iterable[Finding], places: Places, file: str) -> list[Diagnostic]:
    """Give findings about a workflow the places of the text that it was read from."""
    diagnostics = []
    for finding in findings:
        # A task lacks a key in its table; all else that is said of a task stands at its name.
        span = places.table(finding.at) if finding.code == "missing-key" else places.resolve(finding.at)
        suggestion = None
        if finding.suggestion is not None and span is not None:
            suggestion = Suggestion(places.quote(finding.suggestion, finding.at), file, span)
        related = tuple(Related(message, file, places.resolve(at)) for message, at in finding.related)
        severity = CODES[finding.code].severity
        diagnostics.append(Diagnostic(finding.code, finding.message, file, span, related, suggestion, severity))
    return diagnostics


def judge_direction(data: dict[str, Any]) -> str | None:
    """Return ``[judge].direction`` of a manifest, None when it has none that is a string."""
    judge = data.get("judge")
    direction = judge.get("direction") if isinstance(judge, dict) else None
    return direction if isinstance(direction, str) else None


def refer(source: str, manifest: str) -> tuple[Reference | None, list[Diagnostic]]:
    """Return a reference from a manifest to a source, both given as paths, or ``path-refused``."""
    name = name_below(source, manifest)
    if name is None:
        why = f"{source} lies outside the directory of {manifest}"
    elif not ir.is_text(name):
        why = f"the name of {source} is not UTF-8"
    else:
        path = normalise(name)
        if isinstance(path, str):
            return Reference(path), []
        why = path.message
    return None, [Diagnostic("path-refused", f"{why}; the manifest names the source of a playbook with parameters")]


def name_below(source: str, manifest: str) -> str | None:
    """Return the path of a source below the manifest's directory, with / separators, None when outside.

    It is UTF-8 whatever the locale; bytes that are none become lone surrogates.
    """
    directory = os.path.realpath(os.path.dirname(manifest))
    path = os.path.relpath(os.path.join(os.path.realpath(os.path.dirname(source)), os.path.basename(source)), directory)
    if path.split(os.sep)[0] == os.pardir:
        return None
    return os.fsencode(path).decode(errors="surrogateescape").replace(os.sep, "/")

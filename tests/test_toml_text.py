"""What toml_text finds: the place of every key, value and header, and of every mistake."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import toml_parts

from crucible.compiler import toml_text
from crucible.compiler.positions import Path
from crucible.schemas.span import Span

MANIFEST = """\
# [workflow]
title = "[workflow]" # not a table
[workflow]
type = "custom"

[[ "workflow" . task ]]
name = "a"
depends_on = []

[[workflow.'task']]
name = 'b'
depends_on = [ # of b
    "a",
    "é😀",  "c" ]
  [workflow.task.more]
  x.y = {p = 1, q.r = [2]}
"""


def lines(text: str) -> list[str]:
    """Split a text at line feeds alone, as positions count lines."""
    return text.removeprefix("\ufeff").split("\n")


def cut(text: str, span: Span | None) -> str:
    """Return what stands in a span."""
    assert span is not None
    (line, column), (end_line, end_column) = span
    rows = lines(text)[line - 1 : end_line]
    rows[-1] = rows[-1][: end_column - 1]
    rows[0] = rows[0][column - 1 :]
    return "\n".join(rows)


def walk(data: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    """List every path in plain data with its value."""
    found = [(path, data)]
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, value in items:
        found += walk(value, (*path, step))
    return found


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("title",), '"[workflow]"'),
        (("workflow", "type"), '"custom"'),
        (("workflow", "task", 0, "depends_on"), "[]"),
        (("workflow", "task", 1, "name"), "'b'"),
        (("workflow", "task", 1, "depends_on", 1), '"é😀"'),
        (("workflow", "task", 1, "depends_on", 2), '"c"'),
        (("workflow", "task", 1, "more", "x", "y", "p"), "1"),
        (("workflow", "task", 1, "more", "x", "y", "q", "r", 0), "2"),
    ],
)
def test_a_value_is_found_by_its_path(path: Path, value: str) -> None:
    """The path that leads to a value in the data leads to its place in the text."""
    assert cut(MANIFEST, toml_text.locate(MANIFEST).value(path)) == value


@pytest.mark.parametrize(
    ("path", "header"),
    [
        (("workflow",), "[workflow]"),
        (("workflow", "task", 0), '[[ "workflow" . task ]]'),
        (("workflow", "task", 1), "[[workflow.'task']]"),
        (("workflow", "task", 1, "more"), "[workflow.task.more]"),
    ],
)
def test_a_header_is_found_by_the_path_of_its_table(path: Path, header: str) -> None:
    """A table has its header; one of an array of tables has that of its row."""
    assert cut(MANIFEST, toml_text.locate(MANIFEST).header(path)) == header


def test_a_key_is_the_last_part_of_what_is_written() -> None:
    """Of a dotted key each part is the key of its own table."""
    positions = toml_text.locate(MANIFEST)
    row = ("workflow", "task", 1, "more")
    assert cut(MANIFEST, positions.key((*row, "x"))) == "x"
    assert positions.key((*row, "x", "y")) == Span.of(16, 5, 16, 6)
    assert positions.key((*row, "x", "y", "q", "r")) == Span.of(16, 19, 16, 20)


def test_columns_count_code_points() -> None:
    """A character beyond the first plane is one column, and a byte-order mark is none."""
    text = '\ufeffa = ["😀", "b"]\r\nc = 1\r\n'
    positions = toml_text.locate(text)
    assert positions.value(("a", 1)) == Span.of(1, 11, 1, 14)
    assert positions.key(("c",)) == Span.of(2, 1, 2, 2)


def test_what_is_not_there_has_no_place() -> None:
    """A path that leads nowhere is no fault: many fields are left out."""
    positions = toml_text.locate(MANIFEST)
    assert positions.value(("workflow", "task", 7, "name")) is None
    assert positions.key(("title", "deeper")) is None
    assert positions.header(("title",)) is None
    assert positions.value(("workflow",)) is None


@given(toml_parts(), st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "\ufeff"]))
def test_every_value_stands_where_its_place_says(parts: list[str], newline: str, mark: str) -> None:
    """The text in a value's span reads back to the value, and each key's span to the key."""
    text = mark + "".join(parts).replace("\n", newline)
    data = tomllib.loads(text.removeprefix(mark))
    positions = toml_text.locate(text)
    for path, value in walk(data)[1:]:
        span = positions.value(path)
        if span is not None:
            assert repr(tomllib.loads(f"x = {cut(text, span)}\n")["x"]) == repr(value)
        else:
            assert isinstance(value, dict | list)
        if isinstance(path[-1], str):
            assert list(tomllib.loads(f"{cut(text, positions.key(path))} = 1")) == [path[-1]]


@given(toml_parts())
def test_statements_and_comments_cover_the_text(parts: list[str]) -> None:
    """What is neither a statement nor a comment is blank."""
    text = "".join(parts)
    layout = toml_text.scan(text)
    left = list(text)
    for begin, end in [*((each.begin, each.end) for each in layout.statements), *layout.comments]:
        left[begin:end] = [""] * (end - begin)
    assert "".join(left).strip() == ""


@given(
    st.text(st.sampled_from("ab.=[]{}\"'\\#,\n\r\t 1\ufeff"), max_size=60)
    | toml_parts().map("".join)
    | st.builds(lambda deep, inside: f"{'a.' * deep}a = {'[' * inside}{']' * inside}\n", *[st.integers(0, 70)] * 2)
    | st.integers(60, 70).map(lambda deep: f"[[{'.'.join('a' * deep)}]]\n")
)
def test_what_looks_only_when_asked_finds_the_same(text: str) -> None:
    """Data, mistakes and places are those of the reader that looks at once."""
    data, layout, diagnostics = toml_text.read(text, "crucible.toml")
    later = toml_text.read_data(text, "crucible.toml")
    assert later[2] == diagnostics
    assert repr(later[0]) == repr(data)
    for path, _ in walk(data or {}):
        assert later[1].value(path) == layout.positions.value(path)
        assert later[1].key(path) == layout.positions.key(path)
        assert later[1].table(path) == layout.positions.table(path)


@given(st.text(st.sampled_from("ab.=[]{}\"'\\#,\n\r\t 1\ufeff"), max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """What is no TOML has one diagnostic with a place inside the text; nothing raises."""
    data, _, diagnostics = toml_text.read(text, "crucible.toml")
    assert (data is None) == bool(diagnostics)
    rows = lines(text)
    for diagnostic in diagnostics:
        assert diagnostic.span is not None
        for position in diagnostic.span:
            assert 1 <= position.line <= len(rows)
            assert 1 <= position.column <= len(rows[position.line - 1]) + 1


@pytest.mark.parametrize(
    ("text", "code", "place", "shown"),
    [
        ("a = 1\na = 2\n", "repeated-key", (2, 1), "a"),
        ("[a]\nb.c = 1\nb.c = 2", "repeated-key", (3, 3), "c"),
        ("[a]\n[b]\n[ 'a' ]\n", "repeated-key", (3, 3), "'a'"),
        ("x = {a = 1, a = 2}\n", "repeated-key", (1, 13), "a"),
        ("[[a]]\n[a]\n", "repeated-key", (2, 2), "a"),
        ("a = [1]\n[[a]]\n", "repeated-key", (2, 3), "a"),
        ("a = \n", "toml-syntax", (1, 5), ""),
        ("ok = 1\nx = [1,\n  [2, 3]\n", "toml-syntax", (2, 5), "["),
        ("x = 1\ny = '''\nabc\n", "toml-syntax", (2, 5), "'''"),
        ('x = "abc\n', "toml-syntax", (1, 9), ""),
        ("a b = 1\n", "toml-syntax", (1, 3), "b"),
        ("a = 1\nb = 2\rc = 3\n", "toml-syntax", (2, 6), ""),
        ('a = "\0"\n', "toml-syntax", (1, 6), "\0"),
        ("a = 1 2\na = 3\n", "toml-syntax", (1, 7), "2"),
        ("é = 1\n", "toml-syntax", (1, 1), "é"),
    ],
)
def test_a_mistake_is_shown_where_it_is(text: str, code: str, place: tuple[int, int], shown: str) -> None:
    """Each mistake of syntax has its place; a repeated key that of the second, an open bracket its own."""
    for variant in (text, "\ufeff" + text.replace("\n", "\r\n")):
        _, _, [diagnostic] = toml_text.read(variant, "crucible.toml")
        assert (diagnostic.code, diagnostic.file) == (code, "crucible.toml")
        assert diagnostic.span is not None
        assert diagnostic.span.begin == place
        assert cut(variant, diagnostic.span) == shown


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 10_000 + "]" * 10_000,
        "x = " + "[" * 10_000,
        "x = " + "{a=" * 10_000 + "1" + "}" * 10_000,
        "x = " + "{'a'.b=" * 10_000,
        ".".join("a" * 10_000) + " = 1",
        "[" + ".".join("a" * 10_000) + "]",
        "[x." + ".".join("a" * 60) + "]\n" + ".".join("b" * 60) + " = 1",
        "x = " + "[" * 64 + "]" * 64,
        "x = " + "{a=" * 64 + "1" + "}" * 64,
        ".".join("a" * 65) + " = 1",
    ],
)
def test_deep_nesting_is_refused_without_recursion(text: str) -> None:
    """Brackets and keys that no reader could take are refused where they pass the ceiling."""
    data, _, [diagnostic] = toml_text.read(text, "crucible.toml")
    assert data is None
    assert (diagnostic.code, diagnostic.message) == ("toml-syntax", "brackets and keys nest at most 64 deep")


@pytest.mark.parametrize(
    "text",
    ["x = " + "[" * 63 + "]" * 63, ".".join("a" * 64) + " = 1", "x = " + "{a=" * 63 + "1" + "}" * 63],
)
def test_nesting_up_to_the_ceiling_is_read(text: str) -> None:
    """What is not over the ceiling is data."""
    data, _, diagnostics = toml_text.read(text, "crucible.toml")
    assert diagnostics == []
    assert data is not None


def test_a_number_beyond_every_reader_is_a_mistake_of_syntax() -> None:
    """The interpreter's own limit for long integers raises nothing through us."""
    _, _, [diagnostic] = toml_text.read(f"a = 1\nx = {'9' * 5000}", "crucible.toml")
    assert (diagnostic.code, diagnostic.span) == ("toml-syntax", Span.of(2, 5, 2, 5005))

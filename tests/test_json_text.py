"""What json_text reads and refuses, and the places that it tells."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import floats, strings

from crucible.compiler import json_text
from crucible.schemas.span import Position, Span

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(10**20), 10**20), floats(), strings())
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(strings(), inner, max_size=3)),
    max_leaves=12,
)
INDENTS = st.sampled_from([None, 0, 1, "\t"])


def cut(text: str, span: Span | None) -> str:
    """Return what stands in a span; lines end at line feeds."""
    assert span is not None
    rows = text.removeprefix("\ufeff").split("\n")[span.begin.line - 1 : span.end.line]
    rows[-1] = rows[-1][: span.end.column - 1]
    rows[0] = rows[0][span.begin.column - 1 :]
    return "\n".join(rows)


def walk(data: Any, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    """List every path in plain data with its value."""
    found = [(path, data)]
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, value in items:
        found += walk(value, (*path, step))
    return found


@given(
    data=DOCUMENTS,
    indent=INDENTS,
    ascii_only=st.booleans(),
    newline=st.sampled_from(["\n", "\r\n"]),
    mark=st.sampled_from(["", "\ufeff"]),
)
def test_every_value_is_read_and_stands_where_its_place_says(
    *, data: Any, indent: int | str | None, ascii_only: bool, newline: str, mark: str
) -> None:
    """What the standard library wrote is read equal, and the text in a span reads back to its value."""
    text = mark + json.dumps(data, indent=indent, ensure_ascii=ascii_only).replace("\n", newline)
    found, positions, diagnostics = json_text.read(text, "plan.json")
    assert diagnostics == []
    assert repr(found) == repr(data)
    for path, value in walk(data):
        assert repr(json.loads(cut(text, positions.value(path)))) == repr(value)
        if path and isinstance(path[-1], str):
            assert json.loads(cut(text, positions.key(path))) == path[-1]


@given(st.text(st.sampled_from('{}[],:"\\u0d8 \n\r\ttrue-1.5e9\ufeff'), max_size=40))
def test_any_text_is_read_as_the_standard_library_would_or_refused(text: str) -> None:
    """Nothing raises; nothing is accepted that json refuses, and nothing refused but by our own rules."""
    data, _, diagnostics = json_text.read(text, "plan.json")
    try:
        expected = json.loads(text.removeprefix("\ufeff"))
    except ValueError:
        assert diagnostics
        return
    strict = all(
        each.code == "repeated-key" or "finite" in each.message or "half" in each.message for each in diagnostics
    )
    assert strict if diagnostics else repr(data) == repr(expected)


@given(
    st.text(st.sampled_from('{}[],:"\\u0d8 \n\r\ttrue-1.5e9\ufeff'), max_size=40)
    | DOCUMENTS.map(json.dumps)
    | st.builds(str.__add__, DOCUMENTS.map(json.dumps), st.sampled_from(["", " ", ",", "]", "\ufeff"]))
    | st.sampled_from(["[1e999]", f"[{'9' * 400}]", '["\\ud800"]', '["\\ud83d\\ude00"]', '{"a": 1, "a": 2}', "[NaN]"])
    | st.integers(60, 70).map(lambda deep: "[" * deep + "]" * deep)
)
def test_what_looks_only_when_asked_finds_the_same(text: str) -> None:
    """Data, mistakes and places are those of the reader that looks at once."""
    data, positions, diagnostics = json_text.read(text, "plan.json")
    later = json_text.read_data(text, "plan.json")
    assert later[2] == diagnostics
    if not diagnostics:
        assert repr(later[0]) == repr(data)
        for path, _ in walk(data):
            assert later[1].value(path) == positions.value(path)
            assert later[1].key(path) == positions.key(path)


@pytest.mark.parametrize(
    ("text", "place", "shown", "message"),
    [
        ("", (1, 1), "", "expected a value, not the end of the text"),
        (" \n", (2, 1), "", "expected a value, not the end of the text"),
        ('{"a": 1,\n}', (1, 8), ",", 'a "," stands between two values, not before "}"'),
        ("[1, ]", (1, 3), ",", 'a "," stands between two values, not before "]"'),
        ("[,]", (1, 2), ",", 'expected a value, not ","'),
        ("[1,,2]", (1, 4), ",", 'expected a value, not ","'),
        ("[1 2]", (1, 4), "2", 'expected "," or "]", not "2"'),
        ('{"a" 1}', (1, 6), "1", 'expected ":" behind the key, not "1"'),
        ("{a: 1}", (1, 2), "a", 'expected a key in double quotes, not "a"'),
        ("{'a': 1}", (1, 2), "'", "expected a key in double quotes, not \"'a'\""),
        ('{"a": }', (1, 7), "}", 'expected a value, not "}"'),
        ('{"a": 1]', (1, 8), "]", 'expected "," or "}", not "]"'),
        ('{\n  "a": [1,\n  2', (2, 8), "[", "this is never closed"),
        ("{", (1, 1), "{", "this is never closed"),
        ('{"a"', (1, 5), "", 'expected ":" behind the key, not the end of the text'),
        ('{"a": 1} x', (1, 10), "x", "the text goes on behind its one value"),
        ("[NaN]", (1, 2), "NaN", 'expected a value, not "NaN"'),
        ("[-Infinity]", (1, 2), "-Infinity", 'expected a value, not "-Infinity"'),
        ("[1e999]", (1, 2), "1e999", "this number is beyond every finite number"),
        (f"[{'9' * 400}]", (1, 2), "9" * 400, "this number is beyond every finite number"),
        ("[01]", (1, 2), "01", 'expected a value, not "01"'),
        ("[1.]", (1, 2), "1.", 'expected a value, not "1."'),
        ("[+1]", (1, 2), "+1", 'expected a value, not "+1"'),
        ("[\u0661]", (1, 2), "\u0661", 'expected a value, not "\u0661"'),
        ("[True]", (1, 2), "True", 'expected a value, not "True"'),
        (f"[{'x' * 30}]", (1, 2), "x" * 30, f'expected a value, not "{"x" * 20}…"'),
        ('["a\nb"]', (1, 2), '"', "this string is never closed"),
        ('["a\r\nb"]', (1, 2), '"', "this string is never closed"),
        ('["a', (1, 2), '"', "this string is never closed"),
        ('["a\tb"]', (1, 4), "\t", "a string holds no bare U+0009; write \\u0009"),
        ('["é\\x41"]', (1, 4), "\\x", "JSON has no escape \\x"),
        ('["\\u12g4"]', (1, 3), "\\u", "JSON has no escape \\u"),
        ('["\\ud800"]', (1, 2), '"\\ud800"', "U+D800 is half of a character; write both halves"),
        ('{"\\udc00": 1}', (1, 2), '"\\udc00"', "U+DC00 is half of a character; write both halves"),
        ("[1, // no\n2]", (1, 5), "//", 'expected a value, not "//"'),
        ("\xa0[]", (1, 1), "\xa0", 'expected a value, not "\xa0"'),
    ],
)
def test_a_mistake_is_shown_where_it_is(text: str, place: tuple[int, int], shown: str, message: str) -> None:
    """Each mistake ends the reading with one diagnostic at its place; a byte-order mark moves nothing."""
    for variant in (text, "\ufeff" + text):
        data, _, [diagnostic] = json_text.read(variant, "plan.json")
        assert data is None
        assert (diagnostic.code, diagnostic.file, diagnostic.message) == ("json-syntax", "plan.json", message)
        assert diagnostic.span is not None
        assert diagnostic.span.begin == place
        assert cut(variant, diagnostic.span) == shown


def test_a_repeated_key_is_shown_at_the_second() -> None:
    """All of them are reported, each with the first beside it, and what follows is still read."""
    text = '{"a": 1, "b": {"c": 2,\n "c": [3]}, "\\u0061": {"b": 4}}'
    data, positions, diagnostics = json_text.read(text, "plan.json")
    assert [(each.code, each.span) for each in diagnostics] == [
        ("repeated-key", Span.of(2, 2, 2, 5)),
        ("repeated-key", Span.of(2, 13, 2, 21)),
    ]
    assert [each.related[0].span for each in diagnostics] == [Span.of(1, 16, 1, 19), Span.of(1, 2, 1, 5)]
    assert data == {"a": 1, "b": {"c": 2}}
    assert positions.value(("b", "c")) == Span.of(1, 21, 1, 22)


def test_a_repeated_key_before_a_mistake_is_reported_too() -> None:
    """The mistake of syntax comes last."""
    _, _, diagnostics = json_text.read('{"a": 1, "a": 2,}', "plan.json")
    assert [each.code for each in diagnostics] == ["repeated-key", "json-syntax"]


@pytest.mark.parametrize(
    ("text", "column"), [("[" * 10_000 + "]" * 10_000, 65), ('{"a":' * 10_000, 321), ("[" * 65 + "]" * 65, 65)]
)
def test_deep_nesting_is_refused_without_recursion(text: str, column: int) -> None:
    """The bracket that passes the ceiling is named."""
    _, _, [diagnostic] = json_text.read(text, "plan.json")
    assert diagnostic.message == "brackets nest at most 64 deep"
    assert diagnostic.span is not None
    assert diagnostic.span.begin == Position(1, column)


def test_nesting_up_to_the_ceiling_is_read() -> None:
    """What is not over the ceiling is data."""
    assert json_text.read("[" * 64 + "]" * 64, "plan.json")[2] == []


def test_what_is_not_there_has_no_place() -> None:
    """A path that leads nowhere is no fault."""
    _, positions, _ = json_text.read('{"a": [1]}', "plan.json")
    assert positions.value(("a", 1)) is None
    assert positions.value(("a", 0, "b")) is None
    assert positions.key(("b",)) is None
    assert positions.table(("a", 2)) is None

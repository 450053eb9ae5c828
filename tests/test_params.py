"""Launch parameters: every mistake of a block at its exact place, and what a launch makes of it.

In the sources of this file « » stand around the primary place and ⟦ ⟧ around the related one.
"""

import json
import math
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.compiler.frontend.external import mark
from crucible.compiler.frontend.params import (
    FIELDS,
    Bound,
    Declarations,
    Problem,
    bind,
    json_schema,
    marked,
    read_block,
    refused_patterns,
)
from crucible.compiler.frontend.pattern import search
from crucible.compiler.frontend.scan import tokens
from crucible.schemas.codes import CODES
from crucible.schemas.diagnostic import Severity
from crucible.schemas.span import Position, Span

REQUIRED = '"required": True'


def places(source: str) -> tuple[str, list[Span], list[Span]]:
    """Return a source without its marks, the primary places and the related ones."""
    found: dict[str, list[Position]] = {mark: [] for mark in "«»⟦⟧"}
    line, column, text = 1, 1, ""
    for character in source:
        if character in found:
            found[character].append(Position(line, column))
            continue
        text += character
        line, column = (line + 1, 1) if character == "\n" else (line, column + 1)
    primary, related = zip(found["«"], found["»"], strict=True), zip(found["⟦"], found["⟧"], strict=True)
    return text, [Span(*pair) for pair in primary], [Span(*pair) for pair in related]


def read(source: str, lane: str | None = "playbook") -> tuple[Declarations | None, list[Problem]]:
    """Read the block of a source, patterns judged."""
    declarations, problems = read_block(tokens(source), lane)
    checks = declarations.checks if declarations else ()
    verdicts = [search(check.pattern, check.text) for check in checks]
    return declarations, problems + refused_patterns(checks, verdicts)


def declare(fields: str, name: str = "p") -> Declarations:
    """Return sound declarations of one parameter."""
    declarations, problems = read(f'params = {{"{name}": {{{fields}}}}}')
    assert declarations is not None
    assert problems == []
    return declarations


def launch(declarations: Declarations | None, *given: str) -> Bound:
    """Bind NAME=VALUE texts, patterns judged."""
    bound = bind(declarations, [(name, text) for name, _, text in (argument.partition("=") for argument in given)])
    verdicts = [search(check.pattern, check.text) for check in bound.checks]
    return bound._replace(problems=bound.problems + refused_patterns(bound.checks, verdicts))


def quoted(text: str) -> str:
    """Return a text as messages show it."""
    return json.dumps(text, ensure_ascii=False)


FIELD_MISTAKES = [
    # a missing or doubled field: the parameter's name
    ('"default": 3', '"p" has no type; give one of string, int, number, bool, list<string>'),
    ('"type": "int"', '"p" is neither required nor has a default; give one of the two'),
    (f'"type": "int", {REQUIRED}, "default": 3', '"p" is required and has a default; give one of the two'),
]
WHOLE_MISTAKES = [
    ('params = {«"p"»: {"type": "int", "default": 3, ⟦"type"⟧: "bool"}}', '"p" has the field "type" twice'),
    ('params = {⟦"p"⟧: {"type": "int", "default": 3}, «"p"»: 3}', '"p" is declared twice'),
    ('params = {«""»: {}}', "a parameter's name is 1 to 64 ASCII letters, digits, '.', '_' or '-'"),
    ('params = {«"a=b"»: {}}', "a parameter's name is 1 to 64 ASCII letters, digits, '.', '_' or '-'"),
    (f'params = {{«"{"x" * 65}"»: {{}}}}', "a parameter's name is 1 to 64 ASCII letters, digits, '.', '_' or '-'"),
    ('params = {«"a\\n"»: {}}', "a parameter's name is 1 to 64 ASCII letters, digits, '.', '_' or '-'"),
    ("params = {«3»: {}}", "a parameter's name is 1 to 64 ASCII letters, digits, '.', '_' or '-'"),
    ('params = {"p": «"int"»}', "a declaration is a dict of fields, not a string"),
    ('params = {"p": «None»}', "a declaration is a dict of fields, not None"),
    ('params = «["p"]»', "params is a dict of declarations, not a list"),
    ("params = «()»", "params is a dict of declarations, not a list"),
    ('params = {"p": {"type": "int", "default": 3, «4»: 5}}', "a field's name is a string, not an int"),
    # not first, or not once
    ("x = 1\n«params» = {}", "params is the first statement of a playbook; only a docstring may stand before it"),
    (
        'load("a.star", "b")\n«params» = {}',
        "params is the first statement of a playbook; only a docstring may stand before it",
    ),
    ('x = "doc"\n«params» = {}', "params is the first statement of a playbook; only a docstring may stand before it"),
    ('"a"\n"b"\n«params» = {}', "params is the first statement of a playbook; only a docstring may stand before it"),
    ('"a".strip()\n«params» = {}', "params is the first statement of a playbook; only a docstring may stand before it"),
    ("x = 1; «params» = {}", "params is the first statement of a playbook; only a docstring may stand before it"),
    (
        "def f():\n  pass\n«params» = {}",
        "params is the first statement of a playbook; only a docstring may stand before it",
    ),
    ("params = {}\n«params» = {}", "params is assigned once, as the first statement of a playbook"),
]
NOT_LITERAL = "params is read without evaluating the source; write a literal here"
NO_LITERALS = [
    "params = «f()»",
    "params = «{} | {}»",
    "params = «dict(a = 3)»",
    "params = «{}, {}»",
    "params = «{k: {} for k in names}»",
    'params = {«x»: {"type": "int", "default": 3}}',
    'params = {"p": «common»}',
    'params = {"p": «{"type": "int"} | {"default": 3}»}',
    'params = {"p": {"type": "int", "default": «1 + 2»}}',
    'params = {"p": {"type": "int", "default": «+2»}}',
    'params = {"p": {"type": «INT», "default": 3}}',
    'params = {"p": {"type": "int", «x»: 3}}',
    'params = {"p": {"type": "string", "default": "a", "choices": ["a", «b»]}}',
    'params = {"p": {"type": "list<string>", "default": ["a", «b»]}}',
    'params = {"p": {"type": "string", "default": «"a" + "b"», "doc": «"c".upper()»}}',
]
VALUE_MISTAKES = [
    # a field that does not fit the type: its key
    ('"type": "int", "default": 3, «"pattern"»: "a"', '"pattern" fits string only, not int'),
    ('"type": "list<string>", "default": [], «"pattern"»: "a"', '"pattern" fits string only, not list<string>'),
    ('"type": "int", "default": 3, «"choices"»: [3]', '"choices" fits string only, not int'),
    ('"type": "string", "default": "", «"min"»: 3', '"min" fits int and number only, not string'),
    ('"type": "bool", "default": True, «"max"»: 3', '"max" fits int and number only, not bool'),
    # an unknown field: its key
    ('"type": "int", «"defualt"»: 3', 'a parameter has no field "defualt"; did you mean "default"?'),
    ('«"Type"»: "int", "default": 3', 'a parameter has no field "Type"; did you mean "type"?'),
    ('"type": "int", «"requird"»: True', 'a parameter has no field "requird"; did you mean "required"?'),
    (
        '"type": "int", "default": 3, «"colour"»: 3',
        'a parameter has no field "colour"; the fields are choices, doc, example, max, min, pattern, required',
    ),
    # a bad value: the value
    (
        '"type": «"text"», "default": 3',
        'there is no type "text"; the types are bool, int, list<string>, number, string',
    ),
    ('"type": «"String"», "default": 3, "min": 3', 'there is no type "String"; did you mean "string"?'),
    ('"type": «None», "default": 3', "a type is one of string, int, number, bool, list<string>, as a string, not None"),
    ('"type": "int", "required": «False»', "required is True or left out; an optional parameter has a default"),
    (
        '"type": "int", "required": «False», "default": 3',
        "required is True or left out; an optional parameter has a default",
    ),
    ('"type": "int", "required": «1»', "required is True or left out; an optional parameter has a default"),
    ('"type": "int", "default": «None»', "default is an int, not None"),
    ('"type": "int", "default": «5.0»', "default is an int, not a float"),
    ('"type": "int", "default": «True»', "default is an int, not a boolean"),
    ('"type": "int", "default": «"3"»', "default is an int, not a string"),
    ('"type": "int", "default": «2147483648»', "default lies between -2147483648 and 2147483647"),
    ('"type": "int", "default": «-2147483649»', "default lies between -2147483648 and 2147483647"),
    ('"type": "int", "default": 3, "min": «-0x80000001»', "min lies between -2147483648 and 2147483647"),
    ('"type": "int", "default": 3, "min": «2.0»', "min is an int, not a float"),
    ('"type": "number", "default": «1e999»', "default is a finite number"),
    (f'"type": "number", "default": «{"9" * 5000}»', "default is a finite number"),
    ('"type": "number", "default": 3, "max": «1e999»', "max is a finite number"),
    ('"type": "number", "default": «False»', "default is a number, not a boolean"),
    ('"type": "number", "default": 3, "max": «"4"»', "max is a number, not a string"),
    ('"type": "bool", "default": «"true"»', "default is True or False, not a string"),
    ('"type": "bool", "default": «0»', "default is True or False, not an int"),
    ('"type": "string", "default": «3»', "default is a string, not an int"),
    ('"type": "string", "default": «["a"]»', "default is a string, not a list"),
    ('"type": "list<string>", "default": «"a"»', "default is a list of strings, not a string"),
    ('"type": "list<string>", "default": «{}»', "default is a list of strings, not a dict"),
    ('"type": "list<string>", "default": ["a", «3», "b"]', "an element of default is a string, not an int"),
    ('"type": "list<string>", "default": [«["a"]»]', "an element of default is a string, not a list"),
    ('"type": "int", "default": 3, "doc": «3»', "doc is a string, not an int"),
    ('"type": "string", "default": "", "pattern": «3»', "pattern is a string, not an int"),
    ('"type": "string", "default": "a", "choices": «[]»', "choices is a list of at least one string"),
    ('"type": "string", "default": "a", "choices": «"a"»', "choices is a list of at least one string"),
    ('"type": "string", "default": "a", "choices": ["b", «3»]', "a choice is a string, not an int"),
    ('"type": "string", "default": "a", "choices": [⟦"a"⟧, "b", «"a"»]', 'the choice "a" stands twice'),
    (
        '"type": "string", "default": «"fats"», "choices": ["fast", "slow"]',
        'default is one of the choices, not "fats"; did you mean "fast"?',
    ),
    (
        '"type": "string", "required": True, "example": «"c"», "choices": ["a", "b"]',
        'example is one of the choices, not "c"; the choices are a, b',
    ),
    ('"type": "int", "default": «3», "min": 4', "default is at least 4, not 3"),
    ('"type": "number", "default": «3», "max": 2.5', "default is at most 2.5, not 3.0"),
    ('"type": "int", "required": True, "max": 2, "example": «3»', "example is at most 2, not 3"),
    ('"type": "int", "required": True, "example": «"3"»', "example is an int, not a string"),
    ('"type": "int", "default": 3, "example": «None»', "example is an int, not None"),
    ('"type": "int", "default": 3, "min": ⟦4⟧, "max": «3»', "max is at least min; 3 is below 4"),
    ('"type": "string", "default": «"abc\\n"», "pattern": "^[a-z]+$"', 'default does not match the pattern "^[a-z]+$"'),
    ('"type": "string", "required": True, "pattern": "a", "example": «"b"»', 'example does not match the pattern "a"'),
    (
        '"type": "string", "default": «"\\U00100000"»',
        "default contains a private-use character that is reserved for marking external text",
    ),
    (
        '"type": "string", "default": "a", "choices": ["a", «"\\U001007ff"»]',
        "a choice contains a private-use character that is reserved for marking external text",
    ),
    (
        '"type": "list<string>", "default": [«"\\U00100000"»]',
        "an element of default contains a private-use character that is reserved for marking external text",
    ),
]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        *((f'params = {{«"p"»: {{{fields}}}}}', message) for fields, message in FIELD_MISTAKES),
        *((f'"""doc"""\nparams = {{  # é\n  "p": {{{fields}}},\n}}\n', message) for fields, message in VALUE_MISTAKES),
        *((source, NOT_LITERAL) for source in NO_LITERALS),
        *WHOLE_MISTAKES,
    ],
)
def test_each_mistake_of_a_block_has_its_place(source: str, message: str) -> None:
    """One mistake is one problem, or one a mark, at the place that codes.md gives it, and at no other."""
    text, primary, related = places(source)
    _, problems = read(text)
    assert [problem.span for problem in problems] == primary
    assert {(problem.code, problem.message) for problem in problems} == {("invalid-params", message)}
    assert [problem.related[1] for problem in problems if problem.related] == related


@pytest.mark.parametrize(
    ("fields", "replacement"),
    [
        ('"type": "int", «"defualt"»: 3', '"default"'),
        ('"type": «"sting"», "default": "x"', '"string"'),
        ('"type": "string", "default": «"fats"», "choices": ["fast"]', '"fast"'),
        ('"type": "int", "default": 3, «"colour"»: 3', None),
    ],
)
def test_a_suggestion_replaces_the_literal_at_its_place(fields: str, replacement: str | None) -> None:
    """The replacement is a literal as well, so that putting it there mends the source."""
    source, (span,), _ = places(f'params = {{"p": {{{fields}}}}}')
    _, (problem,) = read(source)
    assert problem.suggestion == replacement
    if replacement:
        mended = source[: span.begin.column - 1] + replacement + source[span.end.column - 1 :]
        assert read(mended)[1] == []


def test_a_bad_pattern_is_reported_once_at_its_value() -> None:
    """What cannot be searched for is not missed in the default as well."""
    source, (span,), _ = places('params = {"p": {"type": "string", "default": "a", "pattern": «"a("»}}')
    _, (problem,) = read(source)
    assert (problem.code, problem.span) == ("invalid-params", span)
    assert problem.message.startswith("the pattern is no regular expression: missing )")


def test_independent_mistakes_are_all_reported() -> None:
    """One reading finds every mistake of the block, and the sound parameter beside them."""
    source, primary, _ = places(
        """params = {
        "a": {"type": «"itn"», "default": 3, «"mni"»: 1},
        "b": {"type": "string", "default": «f()», «"min"»: 1, "example": «5»},
        "good": {"type": "int", "default": 3},
        «"c"»: {"min": 3, "required": True},
        "d": {"type": "int", "default": «"x"», "min": 3, "max": «2»},
        "e": {"type": "string", "default": «"b"», "pattern": "a", "doc": «3»},
        }"""
    )
    declarations, problems = read(source)
    assert sorted(problem.span for problem in problems if problem.span) == primary
    assert declarations is not None
    assert [row.name for row in declarations.rows] == ["good"]
    assert declarations.names == ("a", "b", "good", "c", "d", "e")


def test_the_names_of_a_misplaced_block_are_known() -> None:
    """A block that is not first still says which parameters were meant."""
    declarations, (problem,) = read('x = 1\nparams = {"p": {"type": "int", "default": 3}}\n')
    assert declarations is not None
    assert declarations.names == ("p",)
    assert problem.span == Span.of(2, 1, 2, 7)


def test_more_parameters_than_there_are_marks_are_refused() -> None:
    """The 1,025th parameter has no marks left."""
    block = ", ".join(f'"p{number}": {{"type": "int", "default": 3}}' for number in range(1025))
    declarations, (problem,) = read(f"params = {{{block}}}")
    assert declarations is not None
    assert len(declarations.rows) == 1024
    assert problem.message == "a playbook has at most 1024 parameters"


@pytest.mark.parametrize(
    "source",
    [
        "",
        "x = 1",
        "# only a comment",
        '"""doc"""',
        "print(params)",
        "params",
        "params += {}",
        "def f():\n  params = 3\n",
        "def f(): x = 3; params = 4\n",
        "f(params = 3)",
        "x = {\n  1: params\n}",
    ],
)
def test_a_playbook_may_have_no_block(source: str) -> None:
    """A local or an argument of that name declares nothing."""
    assert read(source) == (None, [])


@pytest.mark.parametrize("lane", ["autoresearch", "custom", None, "unknown"])
def test_in_other_lanes_params_is_an_ordinary_name(lane: str | None) -> None:
    """Nothing is declared and nothing is wrong."""
    assert read("x = 1\nparams = f(3)", lane) == (None, [])


@pytest.mark.parametrize(
    "source",
    [
        "params = {",
        "params = ",
        'params = {"a" "b"}',
        'params = {"a": {"type": "int" 3}}',
        "params = {} {}",
        "params = {1, 2}",
        "params = x = 3",
    ],
)
def test_a_broken_block_is_left_to_the_parser(source: str) -> None:
    """Where the text is no Starlark the parser says so; a second message would only repeat it."""
    assert read(source) == (None, [])


@pytest.mark.parametrize("before", ["", "\n\n", '"""doc"""\n', "# c\n'doc' # c\n\n# c\n", "'doc'; "])
@pytest.mark.parametrize("behind", ["", "\n", "; x = 3", "  # c\nx = 3", "\nprint(params)"])
def test_a_block_is_found_where_it_may_stand(before: str, behind: str) -> None:
    """Comments, blank lines and one docstring may stand before it."""
    declarations, problems = read(f'{before}params = {{"p": {{"type": "int", "default": 3}}}}{behind}')
    assert problems == []
    assert declarations is not None
    assert [row.name for row in declarations.rows] == ["p"]


def test_a_declaration_has_everything_that_was_written() -> None:
    """Values are those of their type, with the place of every key and value."""
    source = '''params = {
        "n": {"type": "number", "required": True, "min": -1, "max": 1e3, "example": (5), "doc": """A
number.""",},
        "s": {"type": "string", "default": r"a\\b", "pattern": "b", "choices": ("a\\\\b", "b")},
        "l": {"type": "list<string>", "default": ("a", "b")},
    }'''
    declarations, problems = read(source)
    assert problems == []
    assert declarations is not None
    number, string, many = declarations.rows
    assert (number.min, number.max, number.example, number.doc) == (-1.0, 1000.0, 5.0, "A\nnumber.")
    assert {type(value) for value in (number.min, number.max, number.example)} == {float}
    assert number.spans["max"] == (Span.of(2, 62, 2, 67), Span.of(2, 69, 2, 72))
    assert number.name_span == Span.of(2, 9, 2, 12)
    assert (string.default, string.choices, string.pattern) == ("a\\b", ("a\\b", "b"), "b")
    assert many.default == ["a", "b"]
    assert [row.is_external for row in declarations.rows] == [False, False, True]
    assert declarations.get("s") == string
    assert declarations.get("x") is None


@pytest.mark.parametrize(
    ("fields", "text", "value"),
    [
        ('"type": "int"', "0", 0),
        ('"type": "int"', "-0", 0),
        ('"type": "int"', "007", 7),
        ('"type": "int"', "-2147483648", -(2**31)),
        ('"type": "int"', "2147483647", 2**31 - 1),
        ('"type": "int", "min": 3, "max": 3', "3", 3),
        ('"type": "number"', "3", 3.0),
        ('"type": "number"', "-0", 0.0),
        ('"type": "number"', "-1.50E+2", -150.0),
        ('"type": "bool"', "true", True),
        ('"type": "bool"', "false", False),
        ('"type": "int"', "-0000000000002147483648", -(2**31)),
        ('"type": "string"', "", ""),
        ('"type": "string"', "a=b\n ü", "a=b\n ü"),
        ('"type": "string", "choices": ["a", "b"]', "b", "b"),
        ('"type": "string", "pattern": "b$"', "ab", "ab"),
        ('"type": "list<string>"', "[]", []),
        ('"type": "list<string>"', ' ["a", "\\u00e9\\ud83d\\ude00"] ', ["a", "é😀"]),
    ],
)
def test_a_launch_reads_its_texts(fields: str, text: str, value: object) -> None:
    """Each type has its one written form."""
    bound = launch(declare(f"{fields}, {REQUIRED}"), f"p={text}")
    assert bound.problems == []
    assert repr(bound.values) == repr({"p": value})
    assert bound.supplied == {"p"}


@pytest.mark.parametrize(
    ("fields", "text", "message"),
    [
        *(
            (
                '"type": "int"',
                text,
                f"is an int, written as ASCII digits with an optional minus, not {quoted(text)}",
            )
            for text in ("", "-", "+1", "1.0", "1e3", " 1", "1\n", "1_0", "٣", "²", "0x1", "--1", "True")
        ),
        *(
            ('"type": "int"', text, "lies between -2147483648 and 2147483647")
            for text in ("2147483648", "-2147483649", "9" * 5000, "00009999999999")
        ),
        *(
            (
                '"type": "number"',
                text,
                f"is a number, written as a JSON number, not {quoted(text)}",
            )
            for text in ("", "01", ".5", "1.", "+1", "NaN", "Infinity", "-inf", "1_0", "0x1", " 1", "1\n", "٣", "1e")
        ),
        *(('"type": "number"', text, "is a finite number") for text in ("1e999", "-1e999", "9" * 5000)),
        *(
            ('"type": "bool"', text, f'is True or False, written as true or false, not "{text}"')
            for text in ("", "True", "1", "yes", "true ")
        ),
        *(
            (
                '"type": "list<string>"',
                text,
                f"is a list of strings, written as a JSON array of strings, not {json.dumps(text)}",
            )
            for text in (
                "",
                "a",
                '"a"',
                "{}",
                "null",
                "[1]",
                "[null]",
                '["a",]',
                '["a"] x',
                "['a']",
                '["a\n"]',
                '[["a"]]',
                "[NaN]",
            )
        ),
        ('"type": "list<string>"', '["\\ud800"]', "is not valid Unicode text"),
        ('"type": "string"', "\udcff", "is not valid Unicode text"),
        ('"type": "int", "min": 3', "2", "is at least 3, not 2"),
        ('"type": "number", "max": 3', "3.5", "is at most 3.0, not 3.5"),
        (
            '"type": "string", "choices": ["fast", "slow"]',
            "fats",
            'is one of the choices, not "fats"; did you mean "fast"?',
        ),
        ('"type": "string", "pattern": "^a$"', "a\n", 'matches the pattern "^a$"; "a\\n" does not'),
        ('"type": "string", "pattern": "^a$"', "é" * 100, f'matches the pattern "^a$"; "{"é" * 60}…" does not'),
        *(
            (f'"type": "{kind}"', text, "contains a private-use character that is reserved for marking external text")
            for kind, text in (
                ("string", "a\U00100000"),
                ("list<string>", '["a", "\U001007ff"]'),
                ("list<string>", '["\\udbc0\\udc00"]'),
            )
        ),
    ],
)
def test_a_launch_refuses_a_value(fields: str, text: str, message: str) -> None:
    """The problem names the parameter, has no place and points to the declaration."""
    bound = launch(declare(f"{fields}, {REQUIRED}"), f"p={text}")
    assert bound.problems == [
        Problem("invalid-param", f'the parameter "p" {message}', None, ("declared here", Span.of(1, 11, 1, 14)))
    ]
    bound.problems[0].message.encode()


@pytest.mark.parametrize("depth", [500, 100_000])
def test_a_deeply_nested_list_is_a_refused_value(depth: int) -> None:
    """A launcher's brackets cannot exhaust the stack."""
    (problem,) = launch(declare(f'"type": "list<string>", {REQUIRED}'), "p=" + "[" * depth + "]" * depth).problems
    assert problem.code == "invalid-param"


BLOCK = """params = {
    "issue": {"type": "string", "required": True, "example": "PROJ-1"},
    "depth": {"type": "int", "default": 3},
    "mode": {"type": "string", "default": "fast", "choices": ["fast", "slow"]},
    "labels": {"type": "list<string>", "default": ["a", "b"]},
}
"""


def block() -> Declarations:
    """Return the declarations of BLOCK."""
    declarations, problems = read(BLOCK)
    assert declarations is not None
    assert problems == []
    return declarations


def messages(bound: Bound) -> list[tuple[str, str, Span | None]]:
    """Return code, message and related place of the problems of a launch, which have no place."""
    assert all(problem.span is None for problem in bound.problems)
    return [
        (problem.code, problem.message, problem.related[1] if problem.related else None) for problem in bound.problems
    ]


def test_values_are_in_declaration_order() -> None:
    """What was given and what was not come in one order, whatever the order of the launch."""
    bound = launch(block(), "depth=5", "issue=X")
    assert list(bound.values.items()) == [("issue", "X"), ("depth", 5), ("mode", "fast"), ("labels", ["a", "b"])]
    assert bound.supplied == {"issue", "depth"}
    assert bound.problems == []


def test_a_launch_needs_what_is_required() -> None:
    """A launch never takes an example."""
    bound = launch(block())
    assert messages(bound) == [
        ("missing-param", 'the parameter "issue" has no value; give --param issue=VALUE', Span.of(2, 5, 2, 12))
    ]
    assert "issue" not in bound.values


def test_a_misspelt_parameter_is_not_missing_as_well() -> None:
    """What is only a consequence of the spelling is not reported."""
    assert messages(launch(block(), "isue=X")) == [
        ("unknown-param", 'there is no parameter "isue"; did you mean "issue"?', None)
    ]


def test_a_parameter_that_is_given_already_is_no_suggestion() -> None:
    """The candidates are those that are free, and are listed when none is near."""
    assert messages(launch(block(), "issue=X", "isue=Y")) == [
        ("unknown-param", 'there is no parameter "isue"; the parameters are depth, labels, mode', None)
    ]


def test_a_source_without_parameters_takes_none() -> None:
    """The same holds for a lane that has no parameters."""
    assert messages(launch(None, "x=1")) == [
        ("unknown-param", 'there is no parameter "x"; the source declares none', None)
    ]
    assert launch(None) == bind(None, None) == Bound({}, frozenset(), [], [])


def test_a_parameter_is_given_once() -> None:
    """Repeating it is a problem, said once, even with the same value."""
    bound = launch(block(), "issue=X", "issue=X", "issue=Y")
    assert messages(bound) == [
        ("invalid-param", 'the parameter "issue" is given twice; give it once', Span.of(2, 5, 2, 12))
    ]


def test_a_malformed_parameter_is_declared_all_the_same() -> None:
    """A launch that gives it is told nothing more: the block's own mistake comes first."""
    declarations, _ = read('params = {"p": {"type": "itn", "default": 3}}')
    assert messages(launch(declarations, "p=1")) == []
    assert messages(launch(declarations, "p=1", "p=2")) == [
        ("invalid-param", 'the parameter "p" is given twice; give it once', None)
    ]


def test_without_a_launch_examples_and_defaults_stand_in() -> None:
    """Nothing counts as supplied then."""
    bound = bind(block(), None)
    assert bound.values == {"issue": "PROJ-1", "depth": 3, "mode": "fast", "labels": ["a", "b"]}
    assert (bound.supplied, bound.problems, bound.checks) == (frozenset(), [], [])


def test_a_required_parameter_without_example_is_a_warning_where_nothing_is_launched() -> None:
    """It stands at the parameter's name, and the value is left out."""
    source, (span,), _ = places(
        'params = {«"p"»: {"type": "int", "required": True}, "q": {"type": "int", "default": 1}}'
    )
    declarations, _ = read(source)
    bound = bind(declarations, None)
    assert [(problem.code, problem.span) for problem in bound.problems] == [("param-without-example", span)]
    assert bound.values == {"q": 1}


def test_only_text_that_a_launcher_may_supply_is_marked() -> None:
    """Every element of a list is, choices and numbers are not, and a number keeps its type."""
    declarations = block()
    values = bind(declarations, None).values
    assert marked(declarations, values) == {
        "issue": mark(0, "PROJ-1"),
        "depth": 3,
        "mode": "fast",
        "labels": [mark(3, "a"), mark(3, "b")],
    }


def test_the_schema_says_what_the_block_says() -> None:
    """Every field of a declaration has its keyword."""
    declarations, _ = read(
        """params = {
        "n": {"type": "number", "required": True, "min": 0, "max": 2, "doc": "How much.", "example": 1},
        "i": {"type": "int", "default": 0, "min": -1},
        "s": {"type": "string", "default": "a", "pattern": "^a", "choices": ["a", "ab"]},
        "b": {"type": "bool", "default": False},
        "l": {"type": "list<string>", "required": True},
        "j": {"type": "int", "default": 0, "max": 1},
        }"""
    )
    assert json.dumps(json_schema(declarations)) == json.dumps(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "additionalProperties": False,
            "required": ["n", "l"],
            "properties": {
                "n": {"type": "number", "description": "How much.", "minimum": 0.0, "maximum": 2.0, "examples": [1.0]},
                "i": {"type": "integer", "default": 0, "minimum": -1, "maximum": 2147483647},
                "s": {"type": "string", "default": "a", "pattern": "^a", "enum": ["a", "ab"]},
                "b": {"type": "boolean", "default": False},
                "l": {"type": "array", "items": {"type": "string"}},
                "j": {"type": "integer", "default": 0, "minimum": -2147483648, "maximum": 1},
            },
        }
    )
    assert json_schema(None)["properties"] == {}


def literal(value: object) -> str:
    """Write a value as a literal of the language."""
    return repr(value) if isinstance(value, bool) else json.dumps(value)


TEXTS = st.text("ab-é9", max_size=3)
INTS = st.integers(-(2**32), 2**32) | st.integers(-5, 5)
NUMBERS = INTS | st.floats(-10, 10)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXTS,
    "int": INTS,
    "number": NUMBERS,
    "bool": st.booleans(),
    "list<string>": st.lists(TEXTS, max_size=3),
}


@st.composite
def declared(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a type and the fields of a declaration of that type, which may be a bad one."""
    kind = draw(st.sampled_from(list(VALUES)))
    fields: dict[str, Any] = {"type": kind}
    drawn = {
        "pattern": st.sampled_from(["a", "^b", "9$", "^[ab]*$"]),
        "min": VALUES[kind],
        "max": VALUES[kind],
        "choices": st.lists(TEXTS, max_size=4, unique=True),
        "default": VALUES[kind],
        "example": VALUES[kind],
    }
    for field, values in drawn.items():
        if kind in FIELDS[field] and draw(st.integers(0, 2)) == 0:
            fields[field] = draw(values)
    if "default" not in fields:
        fields["required"] = True
    return kind, ", ".join(f'"{field}": {literal(value)}' for field, value in fields.items())


@given(declared(), st.one_of(*VALUES.values()), st.booleans())
def test_the_schema_accepts_what_a_launch_accepts(declaration: tuple[str, str], value: object, absent: bool) -> None:  # noqa: FBT001
    """For every sound block, a value is refused by both or by neither, and defaults and examples fit."""
    kind, fields = declaration
    declarations, problems = read(f'params = {{"p": {{{fields}}}}}')
    assert declarations is not None
    if problems:
        return
    schema = json_schema(declarations)
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    if absent:
        assert validator.is_valid({}) == (not launch(declarations).problems)
    else:
        bound = launch(declarations, f"p={value if kind == 'string' and isinstance(value, str) else json.dumps(value)}")
        if not (kind == "string" and not isinstance(value, str)) and not (kind == "int" and isinstance(value, float)):
            assert validator.is_valid({"p": value}) == (not bound.problems)
        if not bound.problems:
            assert validator.is_valid(bound.values)
    for text in (*schema["properties"]["p"].get("examples", ()), schema["properties"]["p"].get("default")):
        assert text is None or validator.is_valid({"p": text})
    assert not validator.is_valid({"p": value, "q": 1})


@given(declared())
def test_without_a_launch_every_sound_block_binds(declaration: tuple[str, str]) -> None:
    """What stands in is what a launch would accept; without an example there is the one warning."""
    declarations, problems = read(f'params = {{"p": {{{declaration[1]}}}}}')
    assert declarations is not None
    if problems:
        return
    bound = bind(declarations, None)
    if bound.problems:
        (problem,) = bound.problems
        assert CODES[problem.code].severity is Severity.WARNING
        return
    value = bound.values["p"]
    again = launch(declarations, f"p={value if isinstance(value, str) else json.dumps(value)}")
    assert again.problems == []
    assert again.values == bound.values
    assert not isinstance(value, float) or math.copysign(1, value) == 1 or value < 0


@given(st.text("{}[]():,'\"\n #=params0tyeinrqudTf\\", max_size=30))
def test_no_source_raises(text: str) -> None:
    """Whatever the text, reading the block ends with problems or without."""
    for source in (text, f"params = {text}", f'params = {{"p": {{{text}}}}}'):
        read(source)


@given(st.lists(st.tuples(st.text(), st.text())))
def test_no_launch_raises(arguments: list[tuple[str, str]]) -> None:
    """Whatever the texts, binding ends with problems that can be written."""
    for problem in bind(block(), arguments).problems:
        problem.message.encode()

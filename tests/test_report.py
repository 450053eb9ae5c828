"""The report of diagnostics: whole texts, carets under the right columns, and JSON that any reader takes."""

import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.compiler.output import report
from crucible.schemas.diagnostic import Diagnostic, Related, Severity, Suggestion
from crucible.schemas.span import Position, Span

SOURCE = """\
solver = session(name = "solver")

# a comment
candidate = agent(
    name = "candidate",
    prompt = "p",
    depend_on = [solver],
)
"""


def text(diagnostic: Diagnostic, source: str | None = SOURCE, *, colour: bool = False, width: int | None = None) -> str:
    """Render one diagnostic against one source."""
    return report.to_text([diagnostic], lambda _: source, colour=colour, width=width)


def at(line: int, column: int, end_line: int, end_column: int) -> Diagnostic:
    """Make a diagnostic of which only the place matters."""
    return Diagnostic("wrong-type", "m", "w.star", Span.of(line, column, end_line, end_column))


def underlined(source: str, span: Span, width: int | None = None) -> tuple[str, str]:
    """Return the shown source line and the line of carets below it, without their gutters."""
    lines = text(at(*span.begin, *span.end), source, width=width).splitlines()
    bar = lines[2].index("|")
    assert lines[3][bar] == lines[4][bar] == "|"
    return lines[3][bar + 2 :], lines[4][bar + 2 :]


def on_line(source: str, begin: int, end: int, width: int | None = None) -> tuple[str, str]:
    """Underline a span of the first line, in code points from 0."""
    return underlined(source, Span.of(1, begin + 1, 1, end + 1), width)


def test_a_diagnostic_is_shown_with_its_line() -> None:
    """Header, arrow, gutter, source line, carets under the whole span, and the way to its help."""
    diagnostic = Diagnostic(
        "unknown-argument",
        'agent() has no argument "depend_on"; did you mean "depends_on"?',
        "packs/kernel/workflow.star",
        Span.of(14, 9, 14, 18),
        suggestion=Suggestion("depends_on", "packs/kernel/workflow.star", Span.of(14, 9, 14, 18)),
    )
    source = "\n" * 13 + "        depend_on = [candidate],\n"
    assert text(diagnostic, source) == (
        'error[unknown-argument]: agent() has no argument "depend_on"; did you mean "depends_on"?\n'
        "  --> packs/kernel/workflow.star:14:9\n"
        "   |\n"
        "14 |         depend_on = [candidate],\n"
        "   |         ^^^^^^^^^\n"
        "   |\n"
        "   = help: crucible plan explain unknown-argument\n"
    )


def test_related_places_follow_as_notes() -> None:
    """In the same form, their gutters aligned with that of the diagnostic, in other files too."""
    diagnostic = Diagnostic(
        "duplicate-session",
        'a session "solver" is declared already',
        "w.star",
        Span.of(10, 1, 10, 4),
        (
            Related("the first declaration", "lib.star", Span.of(1, 1, 1, 7)),
            Related("loaded from here", "w.star", Span.of(2, 1, 2, 5)),
            Related("and a file as a whole", "other.star", None),
            Related("and nothing at all", None, None),
        ),
        severity=Severity.WARNING,
    )
    sources = {"w.star": "a\nload()\n" + "\n" * 7 + "bad\n", "lib.star": SOURCE}
    assert report.to_text([diagnostic], sources.get) == (
        'warning[duplicate-session]: a session "solver" is declared already\n'
        "  --> w.star:10:1\n"
        "   |\n"
        "10 | bad\n"
        "   | ^^^\n"
        "   |\n"
        "   = help: crucible plan explain duplicate-session\n"
        "note: the first declaration\n"
        "  --> lib.star:1:1\n"
        "   |\n"
        ' 1 | solver = session(name = "solver")\n'
        "   | ^^^^^^\n"
        "   |\n"
        "note: loaded from here\n"
        "  --> w.star:2:1\n"
        "   |\n"
        " 2 | load()\n"
        "   | ^^^^\n"
        "   |\n"
        "note: and a file as a whole\n"
        "  --> other.star\n"
        "note: and nothing at all\n"
    )


def test_the_gutter_is_as_wide_as_the_longest_number() -> None:
    """That of a related place counts."""
    diagnostic = at(9, 1, 9, 2)._replace(related=(Related("r", "w.star", Span.of(10, 1, 10, 2)),))
    lines = text(diagnostic, "\n" * 8 + "x\ny\n").splitlines()
    assert [lines[1], lines[3], lines[10]] == ["  --> w.star:9:1", " 9 | x", "10 | y"]


def test_a_diagnostic_without_a_place_has_a_header_and_its_help() -> None:
    """With the file when that is all that is known."""
    assert text(Diagnostic("no-tasks", "m")) == "error[no-tasks]: m\n  = help: crucible plan explain no-tasks\n"
    assert text(Diagnostic("no-tasks", "m", "w.star")) == (
        "error[no-tasks]: m\n --> w.star\n  = help: crucible plan explain no-tasks\n"
    )


def test_a_place_whose_line_cannot_be_shown_is_named() -> None:
    """A source that cannot be had, and a line behind the end of the text."""
    expected = "error[wrong-type]: m\n --> w.star:9:1\n  = help: crucible plan explain wrong-type\n"
    assert text(at(9, 1, 9, 2), None) == expected
    assert text(at(9, 1, 9, 2), "x\n") == expected


def test_diagnostics_are_parted_by_an_empty_line() -> None:
    """In the order given; none at all is an empty text, so that nothing is printed for it."""
    none = report.to_text([], lambda _: None)
    two = report.to_text([Diagnostic("no-tasks", "b"), Diagnostic("no-tasks", "a")], lambda _: None)
    assert none == ""
    assert two == (
        "error[no-tasks]: b\n  = help: crucible plan explain no-tasks\n\n"
        "error[no-tasks]: a\n  = help: crucible plan explain no-tasks\n"
    )


def test_a_source_is_asked_for_once() -> None:
    """However many diagnostics point into it."""
    asked = []

    def sources(name: str) -> str:
        asked.append(name)
        return SOURCE

    report.to_text([at(1, 1, 1, 2), at(2, 1, 2, 1), at(99, 1, 99, 1)], sources)
    assert asked == ["w.star"]


@pytest.mark.parametrize(
    ("source", "begin", "end", "shown", "carets"),
    [
        ("x = agnt()", 4, 8, "x = agnt()", "    ^^^^"),
        ("x = agnt()", 4, 4, "x = agnt()", "    ^"),
        ("x", 1, 1, "x", " ^"),
        ("", 0, 0, "", "^"),
        ("\tx = bad", 5, 8, "    x = bad", "        ^^^"),
        ("a\tb\tc", 4, 5, "a    b    c", "          ^"),
        ("\tx", 0, 1, "    x", "^^^^"),
        ("'中文' bad", 5, 8, "'中文' bad", "       ^^^"),
        ("'中文' bad", 1, 3, "'中文' bad", " ^^^^"),
        ("\uff46\uff55 bad", 3, 6, "\uff46\uff55 bad", "     ^^^"),
        ("😀😀 = agnt", 5, 9, "😀😀 = agnt", "       ^^^^"),
        ("e\u0301e\u0301 bad", 5, 8, "e\u0301e\u0301 bad", "   ^^^"),
        ("e\u0301 bad", 1, 2, "e\u0301 bad", "^"),
        ("中\u0301\u0302 bad", 2, 3, "中\u0301\u0302 bad", "^^"),
        ("e\u0301 bad", 1, 1, "e\u0301 bad", " ^"),
        ("\u0301 bad", 0, 1, "\u0301 bad", "^"),
        ("a\u200bb bad", 1, 2, "a\\u200bb bad", " ^^^^^^"),
        ("a\u00adb bad", 4, 7, "a\\xadb bad", "       ^^^"),
        ("a\ufeffb", 2, 3, "a\\ufeffb", "       ^"),
        ("म\u200dम bad", 4, 7, "म\u200dम bad", "   ^^^"),
        ("👨\u200d👩 bad", 4, 7, "👨\u200d👩 bad", "     ^^^"),
        ("\u1112\u1161\u11ab bad", 4, 7, "\u1112\u1161\u11ab bad", "   ^^^"),
        ("\ud7b0\ud7cb bad", 3, 6, "\ud7b0\ud7cb bad", " ^^^"),
        ("é bad", 2, 5, "é bad", "  ^^^"),
        ("'\x1b[31m' bad", 8, 11, "'\\x1b[31m' bad", "           ^^^"),
        ("'\u202e' bad", 4, 7, "'\\u202e' bad", "         ^^^"),
        ("'\x9b2J' bad", 6, 9, "'\\x9b2J' bad", "         ^^^"),
        ("a\rb", 2, 3, "a\\rb", "   ^"),
        ("a\x00b", 1, 2, "a\\x00b", " ^^^^"),
        ("a\u2028b\x0cc\x85d", 6, 7, "a\\u2028b\\x0cc\\x85d", "                 ^"),
        ("a\udc80b", 2, 3, "a\\udc80b", "       ^"),
    ],
)
def test_carets_stand_under_the_columns_that_a_terminal_gives(
    source: str, begin: int, end: int, shown: str, carets: str
) -> None:
    """Tabs are four blanks, wide characters two columns, combining ones none, and steering ones an escape."""
    assert on_line(source, begin, end) == (shown, carets)


def test_lines_end_at_lf_alone() -> None:
    """CR LF is an end too, and no other character that Python splits at."""
    assert underlined("a\r\nbad\r\nc", Span.of(2, 1, 2, 4)) == ("bad", "^^^")
    assert underlined("a\u2028b\x0b\x0c\x1c\x85\nbad\n", Span.of(2, 1, 2, 4)) == ("bad", "^^^")


def test_a_byte_order_mark_is_no_column() -> None:
    """The parser never saw it."""
    assert underlined("\ufeffbad", Span.of(1, 1, 1, 4)) == ("bad", "^^^")


def test_the_end_of_a_text_can_be_shown() -> None:
    """A parser that wanted more points behind the last character."""
    assert underlined("x = [\n", Span.of(1, 6, 1, 6)) == ("x = [", "     ^")
    assert underlined("x = [\n", Span.of(2, 1, 2, 1)) == ("", "^")


def test_a_span_of_several_lines_is_underlined_to_the_end_of_the_first() -> None:
    """Without the blanks that nobody sees."""
    assert underlined("x = agent(  \n    name)\n", Span.of(1, 5, 2, 10)) == ("x = agent(", "    ^^^^^^")
    assert underlined("ab\ncd\n", Span.of(1, 3, 2, 1)) == ("ab", "  ^")


def test_a_span_beyond_its_line_is_drawn_back_to_it() -> None:
    """A wrong place is shown as near as there is text; nothing fails."""
    assert on_line("abc", 50, 60) == ("abc", "   ^")
    assert on_line("abc", 1, 60) == ("abc", " ^^")
    assert underlined("abc\nx", Span.of(1, 3, 1, 2)) == ("abc", "  ^")
    assert on_line("a" * 900, 500, 1)[1].lstrip() == "^"


def test_a_line_of_a_hundred_columns_is_shown_whole() -> None:
    """It is cut from the hundred and first."""
    assert on_line("x" * 100, 99, 100) == ("x" * 100, " " * 99 + "^")
    shown, carets = on_line("x" * 101, 0, 1)
    assert (shown, carets) == ("x" * 98 + "…", "^")


def test_a_long_line_is_cut_around_the_span() -> None:
    """With as much before it as behind it where there is both."""
    line = "a" * 300 + " bad " + "z" * 300
    shown, carets = on_line(line, 301, 304)
    assert shown == "…" + "a" * 46 + " bad " + "z" * 47 + "…"
    assert carets == " " * 48 + "^^^"
    shown, carets = on_line("a" * 300 + " bad", 301, 304)
    assert shown == "…" + "a" * 94 + " bad"
    assert carets == " " * 96 + "^^^"


def test_a_long_span_is_shown_from_its_beginning() -> None:
    """Its carets end with what is shown of it."""
    shown, carets = on_line("(" + "a" * 500 + ")", 1, 501)
    assert shown == "…" + "a" * 98 + "…"
    assert carets == " " + "^" * 98


def test_the_width_of_the_terminal_bounds_the_whole_line() -> None:
    """Gutter included, down to a width that still shows something."""
    lines = text(at(1, 301, 1, 304), "a" * 300 + "bad" + "z" * 300, width=50).splitlines()
    assert len(lines[3]) == 50
    assert "bad" in lines[3]
    shown, _ = on_line("a" * 300 + "bad", 300, 303, width=1)
    assert len(shown) == 19
    assert shown.endswith("bad")


def test_wide_characters_are_never_cut_in_half() -> None:
    """What does not come out even before the span goes to what stands behind it."""
    shown, carets = on_line("中" * 300, 150, 151, width=50)
    assert shown == "…" + "中" * 22 + "…"
    assert carets == " " * 21 + "^^"
    assert on_line("中" * 300, 150, 151, width=49)[0] == "…" + "中" * 21 + "…"


def test_a_cut_takes_a_character_with_its_marks() -> None:
    """A mark whose character is cut off would sit on the sign of the cut."""
    line = "e\u0301" * 200 + "bad" + "e\u0301" * 200
    shown, carets = on_line(line, 400, 403)
    assert shown == "…" + "e\u0301" * 47 + "bad" + "e\u0301" * 48 + "…"
    assert carets == " " * 48 + "^^^"


def test_what_others_wrote_cannot_steer_a_terminal() -> None:
    """Messages and file names stay on their line and hold no control, direction or surrogate characters."""
    diagnostic = Diagnostic(
        "unknown-name",
        "a\nb\r\tc\x1b[2J\x9b\u202e\udcff\u2029",
        "w\n\x1b\udcff.star",
        Span.of(1, 1, 1, 2),
        (Related("r\n\x1b", "x\n", None),),
    )
    assert text(diagnostic, "x") == (
        "error[unknown-name]: a\\nb\\r\\tc\\x1b[2J\\x9b\\u202e\\udcff\\u2029\n"
        " --> w\\n\\x1b\\udcff.star:1:1\n"
        "  |\n"
        "1 | x\n"
        "  | ^\n"
        "  |\n"
        "  = help: crucible plan explain unknown-name\n"
        "note: r\\n\\x1b\n"
        " --> x\\n\n"
    )


ANY_TEXT = st.text(st.characters(), max_size=30) | st.text("a\t\r\n\x1b中\u0301\u202e😀", max_size=300)
ANY_SPAN = st.builds(
    Span,
    st.builds(Position, st.integers(1, 4), st.integers(1, 320)),
    st.builds(Position, st.integers(1, 4), st.integers(1, 320)),
)


@given(ANY_TEXT, ANY_SPAN, ANY_TEXT, st.none() | st.integers(0, 60))
def test_any_text_and_span_give_lines_that_fit(source: str, span: Span, message: str, width: int | None) -> None:
    """No failure, no steering character, no line wider than allowed, and one caret at least."""
    rendered = text(Diagnostic("wrong-type", message, "f", span), source, width=width)
    for line in rendered.split("\n"):
        assert not any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in line)
        assert "\u202e" not in line
    lines = rendered.split("\n")
    if len(lines) > 4:
        room = 100 if width is None else max(20, width - 4)
        shown, carets = lines[3][4:], lines[4][4:]
        assert _columns(shown) <= room
        assert re.fullmatch(r" *\^+", carets)
        assert len(carets) <= room + 1


@given(ANY_TEXT.map(lambda source: source.replace("\n", "")), st.integers(0, 300), st.integers(1, 5))
def test_the_carets_are_as_wide_as_what_is_above_them(source: str, begin: int, length: int) -> None:
    """Up to the first caret stands what comes before the span, and under it as many carets as columns."""
    source = "a" + source.replace("\r", "").ljust(begin + length, ".")
    shown, carets = on_line(source, begin + 1, begin + 1 + length, width=4000)
    before, under = visible(source[: begin + 1]), visible(source[begin + 1 : begin + 1 + length])
    assert shown.startswith((before + under).rstrip())
    if _columns(under) == 0:  # marks alone: they are seen on the last character before them
        last = max(number for number in range(begin + 1) if _columns(visible(source[number])))
        before, under = visible(source[:last]), visible(source[last])
    assert carets == " " * _columns(before) + "^" * max(1, _columns(under))


def visible(text: str) -> str:
    """Return a text of one line as it is shown."""
    text = re.sub("[\u00ad\u180e\u200b\u2060-\u2064\ufeff]", lambda found: ascii(found.group())[1:-1], text)
    return report.harmless(text.replace("\t", "    "))


def _columns(text: str) -> int:
    """Count columns as the tests' alphabet needs them: wide ones two, combining and invisible ones none."""
    return sum(
        0
        if unicodedata.category(c) in ("Mn", "Me", "Cf") or "\u1160" <= c <= "\u11ff" or "\ud7b0" <= c <= "\ud7ff"
        else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


def test_colour_adds_nothing_but_colour() -> None:
    """Only when asked; without its sequences the text is the plain one, and every one of them is closed."""
    diagnostic = at(7, 5, 7, 14)._replace(related=(Related("r", "w.star", Span.of(1, 1, 1, 7)),))
    plain, coloured = text(diagnostic), text(diagnostic, colour=True)
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    for line in coloured.split("\n"):
        assert len(re.findall(r"\x1b\[[1-9][0-9;]*m", line)) == line.count("\x1b[0m")
    assert coloured.startswith("\x1b[1;31merror[wrong-type]\x1b[0m")
    assert text(diagnostic._replace(severity=Severity.WARNING), colour=True).startswith("\x1b[1;33mwarning[")


@pytest.mark.parametrize(
    ("errors", "warnings", "files", "line"),
    [
        (1, 2, 3, "3 files: 1 error, 2 warnings"),
        (2, 1, 1, "1 file: 2 errors, 1 warning"),
        (0, 1, 1, "1 file: 1 warning"),
        (1, 0, 0, "0 files: 1 error"),
        (0, 0, 2, "2 files: no problems"),
    ],
)
def test_the_summary_counts(errors: int, warnings: int, files: int, line: str) -> None:
    """What there is none of is not counted."""
    diagnostics = [Diagnostic("a", "m")] * errors + [Diagnostic("b", "m", severity=Severity.WARNING)] * warnings
    assert report.summary(diagnostics, files) == line


def test_the_json_report_is_one_object() -> None:
    """Every key is there, a place or an edit that is none is null, and the order is kept."""
    span = Span.of(14, 9, 14, 18)
    diagnostics = [
        Diagnostic(
            "unknown-argument",
            "did you mean “depends_on”?",
            "é/w.star",
            span,
            (Related("r", None, None),),
            Suggestion("depends_on", "é/w.star", span),
        ),
        Diagnostic("param-without-example", "m", severity=Severity.WARNING),
    ]
    place = {"begin": {"line": 14, "column": 9}, "end": {"line": 14, "column": 18}}
    written = report.to_json(diagnostics, 3)
    assert json.loads(written) == {
        "version": 1,
        "diagnostics": [
            {
                "code": "unknown-argument",
                "severity": "error",
                "message": "did you mean “depends_on”?",
                "file": "é/w.star",
                "span": place,
                "related": [{"message": "r", "file": None, "span": None}],
                "suggestion": {"replacement": "depends_on", "file": "é/w.star", "span": place},
            },
            {
                "code": "param-without-example",
                "severity": "warning",
                "message": "m",
                "file": None,
                "span": None,
                "related": [],
                "suggestion": None,
            },
        ],
        "summary": {"files": 3, "errors": 1, "warnings": 1},
    }
    assert "“depends_on”" in written
    assert written.endswith("}\n")
    assert list(json.loads(written)) == ["version", "diagnostics", "summary"]


def test_an_empty_report_is_a_report() -> None:
    """Nothing to say is said in the same form."""
    assert json.loads(report.to_json([], 0)) == {
        "version": 1,
        "diagnostics": [],
        "summary": {"files": 0, "errors": 0, "warnings": 0},
    }


@given(ANY_TEXT, ANY_TEXT)
def test_any_text_survives_the_json_report(message: str, file: str) -> None:
    """It reads back as it was, encodes in UTF-8, and holds nothing that steers a terminal, surrogates included."""
    written = report.to_json([Diagnostic("wrong-type", message, file)], 1)
    back = json.loads(written.encode())["diagnostics"][0]
    # Two halves of a pair that stood apart in the text are one character to any reader of JSON.
    whole = [value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") for value in (message, file)]
    assert [back["message"], back["file"]] == whole
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029\u2066-\u2069]", written)

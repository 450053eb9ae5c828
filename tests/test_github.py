"""Workflow commands: escaping such that they read back, ten of a level, and none that others wrote."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.compiler.output.github import to_github, to_log
from crucible.schemas.diagnostic import Diagnostic, Severity
from crucible.schemas.span import Span

FILE = "packs/kernel/workflow.star"
ERROR = Diagnostic("unknown-argument", 'no argument "depend_on"', FILE, Span.of(14, 9, 14, 18))
WARNING = Diagnostic("param-without-example", "m", FILE, Span.of(2, 1, 2, 4), severity=Severity.WARNING)


def commands(*diagnostics: Diagnostic) -> list[str]:
    """Return the commands, of which each stands on a line."""
    written = to_github(diagnostics, lambda file: file)
    assert written == "" or written.endswith("\n")
    return written.split("\n")[:-1]


def test_a_diagnostic_is_a_command() -> None:
    """With its file, its place and its code."""
    assert commands(ERROR) == [
        f"::error file={FILE},line=14,endLine=14,col=9,endColumn=18,title=unknown-argument::{ERROR.message}"
    ]
    assert commands(WARNING) == [
        f"::warning file={FILE},line=2,endLine=2,col=1,endColumn=4,title=param-without-example::m"
    ]


def test_a_place_of_several_lines_has_no_columns() -> None:
    """They are refused there."""
    assert commands(ERROR._replace(span=Span.of(3, 9, 5, 2), message="m")) == [
        f"::error file={FILE},line=3,endLine=5,title=unknown-argument::m"
    ]


def test_a_diagnostic_says_no_more_than_it_knows() -> None:
    """A file without a place, and no file at all."""
    assert commands(Diagnostic("no-tasks", "m", "w.star"), Diagnostic("no-tasks", "m")) == [
        "::error file=w.star,title=no-tasks::m",
        "::error title=no-tasks::m",
    ]


def test_files_are_named_from_the_top() -> None:
    """By the function that knows it."""
    assert to_github([Diagnostic("no-tasks", "m", "w.star")], lambda file: f"packs/{file}") == (
        "::error file=packs/w.star,title=no-tasks::m\n"
    )


def test_properties_and_messages_are_escaped() -> None:
    """Each by its own rule; what would steer a terminal is shown."""
    odd = "50%: a,b\r\n::error::x\x1b[31m\u202e\udcff"
    file = "50%25%3A a%2Cb%0D%0A%3A%3Aerror%3A%3Ax\\x1b[31m\\u202e\\udcff"
    message = "50%25: a,b%0D%0A::error::x\\x1b[31m\\u202e\\udcff"
    assert commands(Diagnostic("no-tasks", odd, odd)) == [f"::error file={file},title=no-tasks::{message}"]


def test_nothing_to_say_is_an_empty_text() -> None:
    """No command at all."""
    assert commands() == []


def test_errors_come_first() -> None:
    """And keep their order."""
    written = commands(WARNING, ERROR, WARNING._replace(message="n"), ERROR._replace(message="z"))
    assert [line.split(" ")[0] + line.rpartition(":")[2] for line in written] == [
        '::errorno argument "depend_on"',
        "::errorz",
        "::warningm",
        "::warningn",
    ]


@pytest.mark.parametrize(
    ("errors", "warnings", "more"),
    [
        (10, 10, None),
        (11, 0, "… and 1 more error; the log has them all"),
        (0, 12, "… and 2 more warnings; the log has them all"),
        (200, 11, "… and 190 more errors and 1 more warning; the log has them all"),
    ],
)
def test_ten_of_a_level_are_shown_and_the_others_counted(errors: int, warnings: int, more: str | None) -> None:
    """A page shows no more; the count takes the place of none of them."""
    written = commands(*[WARNING] * warnings, *[ERROR] * errors)
    levels = [line.split(" ")[0] for line in written]
    assert levels.count("::error") == min(errors, 10)
    assert levels.count("::warning") == min(warnings, 10)
    assert [line for line in written if line.startswith("::notice")] == (
        [f"::notice title=crucible::{more}"] if more else []
    )
    assert more is None or written[-1].endswith(more)


def test_no_line_of_a_log_is_a_command() -> None:
    """The older form may stand anywhere in a line."""
    assert to_log("1 | x = '##[stop-commands]y'\n") == "1 | x = '## [stop-commands]y'\n"
    assert to_log("::stop-commands::x\n \t::y\n\n\u3000::z::\na::b\n") == (
        ": :stop-commands::x\n \t: :y\n\n\u3000: :z::\na::b\n"
    )


@given(st.text(st.characters(), max_size=30) | st.text("%,:\r\n=0AD25", max_size=30))
def test_every_text_reads_back(text: str) -> None:
    """A command is one line, and undoing the escapes gives what was said."""
    text = re.sub(
        "[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", "", text
    )
    (line,) = commands(Diagnostic("no-tasks", text, text or "f"))
    found = re.fullmatch("::error file=([^,:]*),title=no-tasks::(.*)", line)
    assert found
    file, message = found.groups()
    for escape, character in (("%3A", ":"), ("%2C", ","), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        file = file.replace(escape, character)
        if character not in ":,":
            message = message.replace(escape, character)
    assert (file, message) == (text or "f", text)

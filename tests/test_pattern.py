"""Patterns: searched as JSON Schema does, and a bad pattern is a sentence, not an exception."""

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.compiler.frontend.pattern import search


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("b", "abc", True),
        ("^b", "abc", False),
        ("^abc$", "abc", True),
        ("^abc$", "abc\n", False),
        ("(^a|b$)", "xb\n", False),
        (r"a\$", "a$", True),
        (r"\\$", "\\", True),
        (r"\\$", "\\\n", False),
        (r"\.$", ".\n", False),
        ("^[^a]$", "b\n", False),
        ("^[^]a]$", "b\n", False),
        ("[]a]$", "a\n", False),
        ("[$]", "$", True),
        ("[^$]", "$", False),
        ("[]$]", "$", True),
        ("[^]$]", "$", False),
        (r"[\]$]x", "$x", True),
        ("[a]$", "a\n", False),
        (r"^\d$", "٣", False),
        (r"^\w$", "é", False),
        ("^é$", "é", True),
        ("", "", True),
        ("anything", None, True),
    ],
)
def test_a_pattern_is_searched_as_json_schema_does(pattern: str, text: str | None, expected: object) -> None:
    """A dollar is the very end, a class is ASCII, and nothing is anchored by itself."""
    assert search(pattern, text) is expected


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "missing ), unterminated subpattern"),
        ("[", "unterminated character set"),
        ("*", "nothing to repeat at position 0"),
        ("a{2,1}", "min repeat greater than max repeat"),
        ("\\", "bad escape (end of pattern)"),
        (r"\p{L}", r"bad escape \p"),
        ("(?u)a", "incompatible"),
        ("a{99999999999}", "too large"),
        ("(" * 5000 + ")" * 5000, "recursion"),
    ],
)
def test_a_bad_pattern_is_explained(pattern: str, reason: str) -> None:
    """The reason comes back as text, with and without something to search."""
    for text in (None, "a"):
        verdict = search(pattern, text)
        assert isinstance(verdict, str)
        assert reason in verdict


def test_a_doubtful_pattern_does_not_warn() -> None:
    """Python's warning about nested sets would reach the standard error of the process."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert search("[[a]", "[") is True


@given(st.text(r"ab$^[]\.-|()?*d", max_size=8), st.text("ab$[]^d", max_size=5))
def test_a_text_without_a_line_end_is_searched_as_python_does(pattern: str, text: str) -> None:
    """The strict end changes nothing where the two meanings agree."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = re.search(pattern, text) is not None
        except re.error:
            assert isinstance(search(pattern, text), str)
            return
    assert search(pattern, text) is expected

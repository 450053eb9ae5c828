"""Diagnostics: their order, each once, and the registry of their codes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.schemas.codes import CODES
from crucible.schemas.diagnostic import Diagnostic, Related, Severity, arrange, has_errors
from crucible.schemas.span import Span

FIRST = Span.of(1, 9, 1, 10)
SORTED = [
    Diagnostic("b", "no file"),
    Diagnostic("b", "no place", "a.star"),
    Diagnostic("b", "m", "a.star", FIRST),
    Diagnostic("b", "m", "a.star", Span.of(1, 9, 1, 11)),
    Diagnostic("b", "m", "a.star", Span.of(1, 10, 1, 11)),
    Diagnostic("a", "m", "a.star", Span.of(2, 1, 2, 2)),
    Diagnostic("b", "l", "a.star", Span.of(2, 1, 2, 2)),
    Diagnostic("b", "m", "a.star", Span.of(2, 1, 2, 2)),
    Diagnostic("b", "m", "a.star", Span.of(10, 1, 10, 2)),
    Diagnostic("a", "m", "b.star", FIRST),
]


@given(st.permutations(SORTED), st.lists(st.sampled_from(SORTED)))
def test_diagnostics_are_sorted_and_each_is_kept_once(shuffled: list[Diagnostic], again: list[Diagnostic]) -> None:
    """By file, place, code and message, numbers as numbers, whatever the order in which they were found."""
    assert arrange([*shuffled, *again]) == SORTED


def test_the_first_of_two_that_say_the_same_is_kept() -> None:
    """Two stages that find one mistake report it once, though one of them knew more."""
    known = Diagnostic("b", "m", "a.star", FIRST, (Related("r", "a.star", FIRST),))
    assert arrange([known, known._replace(related=())]) == [known]


def test_only_an_error_is_an_error() -> None:
    """A warning fails nothing."""
    warning = Diagnostic("b", "m", severity=Severity.WARNING)
    assert not has_errors([])
    assert not has_errors([warning])
    assert has_errors([warning, Diagnostic("b", "m")])


@pytest.mark.parametrize("code", CODES)
def test_a_code_is_a_kebab_case_word_with_one_sentence_of_help(code: str) -> None:
    """It is registered under its own name; the sentence ends in its only full stop that a blank could follow."""
    entry = CODES[code]
    assert entry.code == code
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code)
    assert re.fullmatch(r"[^.].*[^.]\.", entry.help)
    assert ". " not in entry.help


def test_all_but_the_listed_codes_are_errors() -> None:
    """A warning is one on purpose."""
    assert {code for code, entry in CODES.items() if entry.severity is Severity.WARNING} == {
        "confusable-name",
        "derive-layer-compiled",
        "derive-layer-registry",
        "gate-editable",
        "param-without-example",
        "redundant-dependency",
        "result-unreachable",
        "score-undeclared",
        "script-not-in-pack",
        "selftest-missing",
        "unused-binding",
        "unused-load",
        "unused-prompt",
        "unused-suppression",
    }

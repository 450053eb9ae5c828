"""Sources with more mistakes than anybody reads: the answer is complete up to a ceiling, and each has its place."""

from collections import Counter
from pathlib import Path

import pytest
from packs import END, compiled

from crucible.compiler.frontend.limits import LIMITS
from crucible.schemas.diagnostic import Diagnostic

MOST = LIMITS.mistakes
PATIENT = LIMITS._replace(seconds=60)


def codes(diagnostics: list[Diagnostic]) -> Counter[str]:
    """Count the codes."""
    return Counter(d.code for d in diagnostics)


@pytest.mark.parametrize(
    ("source", "code"),
    [
        pytest.param("".join(f"x{i} = agnt{i}\n" for i in range(MOST + 9)), "unknown-name", id="names"),
        pytest.param("x = 1 +\n" * (MOST + 9), "syntax-error", id="syntax"),
        pytest.param("".join(f"session(name = {i})\n" for i in range(MOST + 9)) + END, "wrong-type", id="literals"),
        pytest.param(f"[session(name = 's%d' % i) for i in range({MOST + 9})]\n" + END, "unbound-session", id="calls"),
        pytest.param(
            f'a = command(name = "a", run = "x", depends_on = ["u%d" % i for i in range({MOST + 9})])\n'
            'workflow(type = "custom", tasks = [a])\n',
            "unknown-task",
            id="rules",
        ),
    ],
)
def test_of_too_many_mistakes_the_rest_is_left_out_and_that_is_said(tmp_path: Path, source: str, code: str) -> None:
    """Whichever stage finds them."""
    diagnostics = compiled(tmp_path, source, PATIENT).diagnostics
    assert codes(diagnostics) == {code: MOST, "limit-exceeded": 1}
    assert [d.message for d in diagnostics if d.span is None] == [
        f"mistakes reported in one run may be at most {MOST:,}; there are more"
    ]


def test_as_many_mistakes_as_may_be_are_all_reported_with_their_places(tmp_path: Path) -> None:
    """Also those that a helper made: the calls around each are told."""
    source = f"""\
def made(i):
    return command(name = "t%d" % i, run = "x")

def outer(i):
    return made(i)

x = [outer(i) for i in range({MOST})]
{END}"""
    diagnostics = compiled(tmp_path, source, PATIENT).diagnostics
    assert codes(diagnostics) == {"dropped-task": MOST}
    assert {(d.span and d.span.begin, tuple(r.span and r.span.begin for r in d.related)) for d in diagnostics} == {
        ((2, 12), ((5, 12), (7, 6)))
    }


def test_what_thousands_of_calls_do_wrong_at_one_place_is_one_mistake(tmp_path: Path) -> None:
    """However many they are, another mistake behind them is found."""
    source = f'x = [session(nme = 1) for _ in range({MOST + 9})]\nfor y in [1]:\n    session(name = "s%d" % y)\n{END}'
    diagnostics = compiled(tmp_path, source, PATIENT).diagnostics
    assert [(d.code, d.span and d.span.begin.line) for d in diagnostics] == [
        ("unknown-argument", 1),
        ("unbound-session", 3),
    ]


def test_a_name_that_is_wrong_everywhere_has_its_suggestion_everywhere(tmp_path: Path) -> None:
    """It is searched for once."""
    source = "".join(f'x{i} = agnt(name = "a")\n' for i in range(MOST)) + END
    diagnostics = compiled(tmp_path, source).diagnostics
    assert Counter(d.suggestion and d.suggestion.replacement for d in diagnostics) == {"agent": MOST}


def test_an_evaluator_that_searches_for_what_a_name_means_is_not_waited_for(tmp_path: Path) -> None:
    """It takes minutes for names of such lengths, and the name itself is what is wrong."""
    source = f"{'a' * 100_000} = 1\nx = {'b' * 100_000}\n"
    diagnostics = compiled(tmp_path, source, LIMITS._replace(seconds=600)).diagnostics
    assert [(d.code, d.span and d.span.begin) for d in diagnostics] == [("unknown-name", (2, 5))]


def test_lines_of_print_beyond_those_shown_cost_nothing(tmp_path: Path) -> None:
    """They are not even handed over, and the calls behind them keep their numbers."""
    source = f'[print(i) for i in range(50000)]\nx = session(name = "s")\n{END}'
    result = compiled(tmp_path, source)
    assert len(result.printed) == LIMITS.printed_lines
    assert result.printed[-1] == "… and more lines of print()"
    assert [(d.code, d.span and d.span.begin) for d in result.diagnostics] == [("unbound-session", (2, 5))]


def test_a_value_that_takes_all_memory_on_its_way_out_names_the_heap(tmp_path: Path) -> None:
    """The source holds it in little; a list of its own for each use does not fit."""
    source = (
        'a = ["x"]\nfor _ in [1]:\n    pass\n\ndef f(a):\n    for _ in range(30):\n        a = [a, a]\n    return a\n\n'
    )
    source += 'command(name = "a", run = "x", depends_on = f(a))\n'
    (diagnostic,) = compiled(tmp_path, source + END).diagnostics
    assert (diagnostic.code, diagnostic.message) == (
        "limit-exceeded",
        "the Starlark heap may have 64 MiB; the evaluation asked for more",
    )
    assert diagnostic.span is not None
    assert diagnostic.span.begin == (10, 1)

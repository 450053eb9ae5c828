"""What a glob names, and what it leaves alone."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.schemas.glob import pattern

ROWS = [
    ("measure.sh", ["measure.sh", "measure.sh/below"], ["measure-sh", "a/measure.sh", "measure.sh2"]),
    ("tools", ["tools", "tools/a.py", "tools/deep/a.py"], ["tools2", "my/tools"]),
    ("tools/*.py", ["tools/a.py", "tools/.py"], ["tools/a/b.py", "tools/a.pyc"]),
    ("tools/?", ["tools/a", "tools/a/b"], ["tools/ab", "tools/"]),
    ("**/a", ["x/a", "x/y/a", "x/a/b"], ["x/b"]),
    ("[ab].txt", ["a.txt", "b.txt"], ["c.txt", "/.txt"]),
    ("[!ab].txt", ["c.txt"], ["a.txt"]),
    ("[b-a]", [], ["a", "b", "-"]),
    ("[^a]", ["^", "a"], ["b"]),
    ("[]a]", ["]", "a"], ["[]a]"]),
    ("[a", ["[a"], ["a"]),
    ("a\nb*", ["a\nb", "a\nb\n"], ["a"]),
    ("(x|y)+", ["(x|y)+"], ["x", "xy"]),
    ("", ["anything", "at/all"], []),
]


@pytest.mark.parametrize(("glob", "named", "other"), ROWS, ids=[repr(row[0]) for row in ROWS])
def test_a_glob_names_paths(glob: str, named: list[str], other: list[str]) -> None:
    """A star stays within its component, two do not, and a folder brings what is below it."""
    fits = pattern(glob).fullmatch
    assert [path for path in named if not fits(path)] == []
    assert [path for path in other if fits(path)] == []


@given(st.text("ab*?/", max_size=9), st.text("ab/", max_size=9))
def test_taking_the_first_place_loses_nothing(glob: str, path: str) -> None:
    """A glob fits what its plain translation fits, which tries every way."""
    plain = re.sub(r"\*+", lambda stars: "[^/]*" if len(stars[0]) == 1 else ".*", glob.replace("?", "[^/]"))
    expected = re.fullmatch(f"(?:{plain})(?:/.*)?" if glob else ".*", path)
    assert bool(pattern(glob).fullmatch(path)) == bool(expected)


def test_many_stars_are_matched_at_once() -> None:
    """Globs that would try all ways to share a long path among their stars."""
    path = "a" * 4_000
    assert not pattern("*a" * 300 + "b").fullmatch(path)
    assert not pattern("**a" * 300 + "b").fullmatch(path)
    assert not pattern("**/a/" * 300 + "b").fullmatch("a/" * 2_000)


@given(st.text("ab*?[]!-\\^/.\n", max_size=12))
def test_every_text_is_a_glob(glob: str) -> None:
    """Whatever an author writes can be read; without a sign it names itself."""
    try:
        fits = pattern(glob)
    except re.error as error:
        pytest.fail(f"{glob!r}: {error}")
    assert set(glob) & set("*?[") or not glob or fits.fullmatch(glob)

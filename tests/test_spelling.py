"""The only did-you-mean: distances, what fits, and what a message says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.schemas.spelling import distance, hint, nearest

# Few letters, so that words are often near each other.
WORDS = st.text("abc", max_size=7) | st.text("abA_", max_size=7)


def reference(left: str, right: str) -> int:
    """Count the steps with the whole table of Lowrance and Wagner, without a limit."""
    last_row: dict[str, int] = {}
    far = len(left) + len(right)
    table = {(i, -1): far for i in range(-1, len(left) + 1)} | {(-1, j): far for j in range(-1, len(right) + 1)}
    table |= {(i, 0): i for i in range(len(left) + 1)} | {(0, j): j for j in range(len(right) + 1)}
    for i, a in enumerate(left, 1):
        last_column = 0
        for j, b in enumerate(right, 1):
            k, m = last_row.get(b, 0), last_column
            if a == b:
                last_column = j
            table[i, j] = min(
                table[i - 1, j] + 1,
                table[i, j - 1] + 1,
                table[i - 1, j - 1] + (a != b),
                table[k - 1, m - 1] + (i - k) + (j - m) - 1,
            )
        last_row[a] = i
    return table[len(left), len(right)]


def fits(word: str, candidate: str) -> bool:
    """Say the rule of what may be suggested in its own words."""
    if word == candidate:
        return False
    if word.lower() == candidate.lower():
        return True
    longer, shorter = sorted((len(word), len(candidate)), reverse=True)
    third_rounded_up = next(number for number in range(longer + 1) if 3 * number >= longer)
    steps = reference(word, candidate)
    return steps <= 2 and steps <= third_rounded_up and steps < shorter


@pytest.mark.parametrize(
    ("left", "right", "steps"),
    [
        ("", "", 0),
        ("", "ab", 2),
        ("agent", "agent", 0),
        ("agnt", "agent", 1),
        ("agent", "agnt", 1),
        ("agemt", "agent", 1),
        ("agetn", "agent", 1),
        ("ca", "abc", 2),
        ("xca", "xabc", 2),
        ("abc", "ca", 2),
        ("ba", "ab", 1),
        ("badc", "abcd", 2),
        ("kitten", "sitting", 3),
        ("depend_on", "depends_on", 1),
        ("aé", "éa", 1),
    ],
)
def test_a_step_inserts_deletes_replaces_or_swaps(left: str, right: str, steps: int) -> None:
    """Each kind of mistake in typing is one step, a swap of neighbours too, whatever is edited between them."""
    assert distance(left, right, 4) == steps


@given(WORDS, WORDS, st.integers(0, 4))
def test_the_distance_is_that_of_the_whole_table(left: str, right: str, limit: int) -> None:
    """Leaving out cells and ending early changes no count up to the limit, and gives the limit plus one above it."""
    assert distance(left, right, limit) == min(reference(left, right), limit + 1)


@given(WORDS, st.lists(st.tuples(st.sampled_from("idrs"), st.integers(0, 7), st.sampled_from("abx")), max_size=2))
def test_as_many_edits_are_at_most_as_many_steps(word: str, edits: list[tuple[str, int, str]]) -> None:
    """A word that was edited twice is at most two steps away."""
    edited = word
    for kind, place, letter in edits:
        head, tail = edited[:place], edited[place:]
        edited = {
            "i": head + letter + tail,
            "d": head + tail[1:],
            "r": head + letter + tail[1:] if tail else edited,
            "s": head + tail[1::-1] + tail[2:],
        }[kind]
    assert distance(word, edited, 2) <= len(edits)


@given(WORDS, WORDS, WORDS)
def test_the_distance_is_a_metric(one: str, two: str, three: str) -> None:
    """It is nothing only between equal words, the same both ways, and never longer by a detour."""
    assert (distance(one, two, 7) == 0) is (one == two)
    assert distance(one, two, 7) == distance(two, one, 7)
    assert distance(one, three, 20) <= distance(one, two, 20) + distance(two, three, 20)


@pytest.mark.parametrize(
    ("word", "candidate"),
    [
        ("agnt", "agent"),
        ("depend_on", "depends_on"),
        ("biuld", "build"),
        ("abcd", "abXX"),
        ("AGENT", "agent"),
        ("K", "k"),
        ("ab", "ac"),
        ("abc", "abcd"),
        ("é", "É"),
    ],
)
def test_what_is_near_fits(word: str, candidate: str) -> None:
    """Two steps in a word of four, one in a shorter one, and any difference of case."""
    assert nearest(word, [candidate]) == candidate


@pytest.mark.parametrize(
    ("word", "candidate"),
    [
        ("bad", "max"),
        ("agent", "agent"),
        ("abc", "aXX"),
        ("a", "b"),
        ("a", "ab"),
        ("x", ""),
        ("", "x"),
        ("solver", "so1v3r5"),
        ("propose", "purpoose2"),
    ],
)
def test_what_is_far_does_not_fit(word: str, candidate: str) -> None:
    """Three steps, more than a third, as many steps as letters, or the word itself: better no guess."""
    assert nearest(word, [candidate]) is None


@given(WORDS, st.lists(WORDS, max_size=6))
def test_the_nearest_that_fits_is_suggested(word: str, candidates: list[str]) -> None:
    """A difference of case alone comes first, then fewer steps, then the alphabet; the order given means nothing."""
    fitting = [candidate for candidate in candidates if fits(word, candidate)]
    best = min(
        fitting,
        key=lambda candidate: (0 if candidate.lower() == word.lower() else reference(word, candidate), candidate),
        default=None,
    )
    assert nearest(word, candidates) == best
    assert nearest(word, reversed(candidates)) == best


def test_ties_are_broken_alphabetically() -> None:
    """The same source gets the same guess, whatever the order of the names."""
    assert nearest("gat", ["gate", "cat", "gab"]) == "cat"


def test_a_hint_asks_for_what_is_near() -> None:
    """The tail of the message and the text of the quick fix are the same word."""
    assert hint("agnt", ["command", "agent"], "constructors") == ('; did you mean "agent"?', "agent")


def test_a_hint_lists_the_candidates_when_nothing_is_near_and_they_are_few() -> None:
    """Up to eight are listed in alphabetical order, each once, and nothing is suggested."""
    few = ["h", "b", "c", "d", "e", "f", "g", "a", "a"]
    assert hint("solver", few, "sessions") == ("; the sessions are a, b, c, d, e, f, g, h", None)
    assert hint("solver", [*few, "i"], "sessions") == ("", None)
    assert hint("solver", [], "sessions") == ("", None)
    assert hint("solver", ["a"]) == ("", None)

"""The only did-you-mean: the nearest of some candidates to a word (language.md §9)."""

from collections.abc import Iterable

_MOST_STEPS = 2
_MOST_LISTED = 8


def distance(left: str, right: str, limit: int) -> int:
    """Count Damerau-Levenshtein steps between two words; above ``limit`` the count is ``limit + 1``.

    A transposition of neighbours is one step (optimal string alignment).
    """
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[int] = []
    previous = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        current = [i]
        for j, b in enumerate(right, 1):
            steps = min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and b == left[i - 2]:
                steps = min(steps, before[j - 2] + 1)
            current.append(steps)
        if min(current) > limit and (not previous or min(previous) > limit):
            return limit + 1
        before, previous = previous, current
    return min(previous[-1], limit + 1)


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that the writer of ``word`` most likely meant, or None.

    A candidate fits when its distance is at most 2, at most a third of the longer word's length
    (rounded up) and smaller than the shorter word's length; a case-only difference always fits.
    Ties are broken alphabetically.
    """
    best: tuple[int, str] | None = None
    for candidate in candidates:
        if candidate == word:
            continue
        if candidate.casefold() == word.casefold():
            steps = 0
        else:
            longer, shorter = max(len(word), len(candidate)), min(len(word), len(candidate))
            steps = distance(word, candidate, _MOST_STEPS)
            if steps > min(_MOST_STEPS, -(-longer // 3)) or steps >= shorter:
                continue
        if best is None or (steps, candidate) < best:
            best = (steps, candidate)
    return best[1] if best else None


def hint(word: str, candidates: Iterable[str], kind: str = "") -> tuple[str, str | None]:
    """Return the tail of a message about an unknown word, and the suggestion.

    Something near gives ``; did you mean "x"?``; nothing near lists the candidates when there are
    at most eight of them, and is empty otherwise. ``kind`` names what is listed, in the plural.
    """
    known = sorted(set(candidates))
    guess = nearest(word, known)
    if guess is not None:
        return f'; did you mean "{guess}"?', guess
    if kind and 0 < len(known) <= _MOST_LISTED:
        return f"; the {kind} are {', '.join(known)}", None
    return "", None

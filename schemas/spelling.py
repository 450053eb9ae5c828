"""The only did-you-mean: the nearest of some candidates to a word (language.md §9)."""

from collections.abc import Iterable

_MOST_STEPS = 2
_MOST_WORK = 20_000  # more than it takes to look among 128 names of 128 characters, or 800 of five
_EACH = 20  # what a candidate costs beside the characters of the word
_MOST_LISTED = 8

# So many unknown words of one kind are searched for what they mean; the search for more could outlast the reader.
MOST_SEARCHED = 100


def distance(left: str, right: str, limit: int) -> int:
    """Count Damerau-Levenshtein steps between two words; above ``limit`` the count is ``limit + 1``.

    A step inserts, deletes or replaces a character or swaps two neighbours. Only the cells within
    ``limit`` of the diagonal are filled, so the work grows with the length of the words alone.
    """
    far = limit + 1
    # A step changes the length by one at most, and the set of characters by two.
    if abs(len(left) - len(right)) > limit or len(set(left) ^ set(right)) > 2 * limit:
        return far
    # What both begin or end with costs nothing.
    while left and right and left[0] == right[0]:
        left, right = left[1:], right[1:]
    while left and right and left[-1] == right[-1]:
        left, right = left[:-1], right[:-1]
    if min(len(left), len(right)) <= 1:
        shorter, longer = sorted((left, right), key=len)
        return min(len(longer) - (bool(shorter) and shorter in longer), far)
    rows = [{j: j for j in range(min(limit, len(right)) + 1)}]
    floor = 0
    for i, a in enumerate(left, 1):
        row: dict[int, int] = {}
        for j in range(max(0, i - limit), min(i + limit, len(right)) + 1):
            steps = min(rows[-1].get(j, far), row.get(j - 1, far)) + 1
            if j > 0:
                b = right[j - 1]
                steps = min(steps, rows[-1].get(j - 1, far) + (a != b))
                # Two neighbours swapped, and what stands between them in one of the words deleted or inserted.
                for k in range(max(1, i - limit), i):
                    for m in range(max(1, j - limit), j):
                        if left[k - 1] == b and right[m - 1] == a:
                            steps = min(steps, rows[k - 1 - i].get(m - 1, far) + (i - k) + (j - m) - 1)
            row[j] = steps
        # A later row is reached from this one, or by a swap from an older one, which costs a step a row.
        floor = min(floor + 1, *row.values())
        if floor > limit:
            return far
        rows = [*rows, row][-limit - 1 :]
    return min(rows[-1][len(right)], far)


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that the writer of ``word`` most likely meant, or None.

    A candidate fits when its distance is at most 2, at most a third of the longer word's length
    (rounded up) and smaller than the shorter word's length; a case-only difference always fits.
    Ties are broken alphabetically. Among more candidates than can be searched in a moment none is.
    """
    best: tuple[int, str] | None = None
    candidates = tuple(candidates)
    if (len(word) + _EACH) * len(candidates) > _MOST_WORK:
        return None
    for candidate in candidates:
        if candidate == word:
            continue
        if candidate.casefold() == word.casefold():
            steps = 0
        else:
            longer, shorter = max(len(word), len(candidate)), min(len(word), len(candidate))
            most = min(_MOST_STEPS, -(-longer // 3), shorter - 1, best[0] if best else _MOST_STEPS)
            steps = distance(word, candidate, most)
            if steps > most:
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

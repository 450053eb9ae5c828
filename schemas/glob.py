"""The globs of [[workspace.inject]] (contract §1), as everybody reads them: the lint, the diff and the run.

``*``, ``?`` and ``[...]`` stay within one component of a path, ``**`` does not; what a glob names brings
everything below it, so a folder's name is one for its files.
"""

import fnmatch
import re


def pattern(glob: str) -> re.Pattern[str]:
    """Return what fits the paths that a glob names, and those below them; an empty one names everything.

    Between two stars the first place that fits is taken for good: from there the second star reaches whatever it
    reaches from any other. So matching never tries all ways to share a path among many stars.
    """
    pieces = [""]  # what stands between the stars
    stars: list[str] = []
    at = 0
    while at < len(glob):
        sign = glob[at]
        end = glob.find("]", at + 2) if sign == "[" else -1
        if sign == "*":
            behind = len(glob) - len(glob[at:].lstrip("*"))
            stars.append("[^/]*" if behind == at + 1 else ".*")
            pieces.append("")
            at = behind - 1
        elif sign == "?":
            pieces[-1] += "[^/]"
        elif end > 0:
            pieces[-1] += f"(?!/){fnmatch.translate(glob[at : end + 1]).rpartition(')')[0]})"
            at = end
        else:
            pieces[-1] += re.escape(sign)
        at += 1
    inner = [f"(?>{star}?{piece})" for star, piece in zip(stars[:-1], pieces[1:], strict=False)]
    last = [stars[-1] + pieces[-1]] if stars else []
    begin = pieces[0] if glob else ".*"
    return re.compile(f"{begin}{''.join(inner + last)}(?:/.*)?", re.DOTALL)

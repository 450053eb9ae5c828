"""The globs of [[workspace.inject]] (contract §1), as everybody reads them: the lint, the diff and the run.

``*``, ``?`` and ``[...]`` stay within one component of a path, ``**`` does not; what a glob names brings
everything below it, so a folder's name is one for its files.
"""

import fnmatch
import re


def pattern(glob: str) -> re.Pattern[str]:
    """Return what fits the paths that a glob names, and those below them; an empty one names everything."""
    out: list[str] = [] if glob else [".*"]
    at = 0
    while at < len(glob):
        sign = glob[at]
        end = glob.find("]", at + 2) if sign == "[" else -1
        if glob.startswith("**", at):
            out.append(".*")
            at += 1
        elif sign in "*?":
            out.append("[^/]*" if sign == "*" else "[^/]")
        elif end > 0:
            out.append(fnmatch.translate(glob[at : end + 1]).rpartition(")")[0] + ")")
            at = end
        else:
            out.append(re.escape(sign))
        at += 1
    return re.compile(f"{''.join(out)}(?:/.*)?", re.DOTALL)

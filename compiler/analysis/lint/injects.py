"""Which of the manifest's injects bring a file into the workspace (contract §1).

Not a warning of its own: script_not_in_pack.py and gate_editable.py ask it.
"""

import re
from collections.abc import Iterable

from crucible.compiler.analysis.lint.case import Inject


def provides(injects: Iterable[Inject], path: str, *, frozen: bool = False) -> bool:
    """Tell whether a file of the workspace comes from an inject; with ``frozen`` from one that puts it back."""
    return any((each.frozen or not frozen) and _brings(each, path) for each in injects)


def _brings(inject: Inject, path: str) -> bool:
    """Tell whether one entry brings the file: by its name, as one of a pattern's, or below a directory."""
    if inject.to is not None:
        to = _clean(inject.to)
        return to in ("", path) or path.startswith(f"{to}/")
    return re.fullmatch(f"{_pattern(_clean(inject.source))}(?:/.*)?", path) is not None


def _clean(path: str) -> str:
    """Return a path without empty and "." components."""
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def _pattern(glob: str) -> str:
    """Return a glob as a regular expression; ``*`` and ``?`` stay within one component, ``**`` does not."""
    if not glob:
        return ".*"
    out = []
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
            inside = glob[at + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            out.append(f"[{'^' + inside[1:] if inside.startswith('!') else inside}]")
            at = end
        else:
            out.append(re.escape(sign))
        at += 1
    return "".join(out)

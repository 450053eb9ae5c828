"""Which of the manifest's injects bring a file into the workspace (contract §1).

Not a warning of its own: script_not_in_pack.py and gate_editable.py ask it.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final

from crucible.compiler.analysis.lint.case import Inject
from crucible.schemas.glob import pattern

_SPECIAL: Final = re.compile(r"[*?[]")


def provides(injects: Iterable[Inject], path: str, has: Callable[[str], bool], *, frozen: bool = False) -> bool:
    """Tell whether a file of the workspace comes from an inject; with ``frozen`` from one that puts it back.

    ``has`` tells whether the pack has a file; what lies outside of it may be there.
    """
    found = [each for each in injects if _brings(each, path, has)]
    return bool(found) and (found[-1].frozen or not frozen)  # of two for one path the last wins


def _brings(inject: Inject, path: str, has: Callable[[str], bool]) -> bool:
    """Tell whether one entry brings the file: by its name, as one of a pattern's, or below a directory."""
    source = inject.source
    if inject.to is None:
        return has(path) and pattern(_clean(source)).fullmatch(path) is not None
    to = _clean(inject.to)
    if to == path:
        return True
    if to and not path.startswith(f"{to}/"):
        return False
    if source.startswith(("/", "../")):
        return True
    base = source[: special.start()].rpartition("/")[0] if (special := _SPECIAL.search(source)) else source
    return has(_clean(f"{base}/{path.removeprefix(to)}"))


def _clean(path: str) -> str:
    """Return a path without empty and "." components."""
    return "/".join(part for part in path.split("/") if part not in ("", "."))

"""Which of the manifest's injects bring a file into the workspace (contract §1).

Not a warning of its own: script_not_in_pack.py and gate_editable.py ask it.
"""

from collections.abc import Iterable

from crucible.compiler.analysis.lint.case import Inject
from crucible.schemas.glob import pattern


def provides(injects: Iterable[Inject], path: str, *, frozen: bool = False) -> bool:
    """Tell whether a file of the workspace comes from an inject; with ``frozen`` from one that puts it back."""
    return any((each.frozen or not frozen) and _brings(each, path) for each in injects)


def _brings(inject: Inject, path: str) -> bool:
    """Tell whether one entry brings the file: by its name, as one of a pattern's, or below a directory."""
    if inject.to is not None:
        to = _clean(inject.to)
        return to in ("", path) or path.startswith(f"{to}/")
    return pattern(_clean(inject.source)).fullmatch(path) is not None


def _clean(path: str) -> str:
    """Return a path without empty and "." components."""
    return "/".join(part for part in path.split("/") if part not in ("", "."))

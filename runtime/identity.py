"""The identity of a run: the scores of two runs can be compared only when theirs is the same (contract §7).

A hash of hashes over what is worked on and what judges it; equal parts, equal identity.
"""

from __future__ import annotations

import json

from crucible.runtime import careful
from crucible.schemas.hashes import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Final

_VERSION: Final = "v1"


def parts(
    *,
    repo: tuple[str | None, str | None] = (None, None),
    base: str | None = None,
    manifest: str,
    injects: Iterable[tuple[str, str]] = (),
    measure_cmd: str | None = None,
    direction: str | None = None,
) -> dict[str, str]:
    """Return the digests of what makes the identity of a run with one component, by what they are of.

    ``repo`` is a url and a path, ``base`` the pristine commit of the workspace, ``manifest`` the text that holds,
    ``injects`` their paths in the workspace with the digests of their sources.
    """
    found = {
        "repository": [[None, *repo, base]],
        "manifest": manifest,
        "injects": sorted(injects),
        "measure_cmd": measure_cmd,
        "direction": direction,
    }
    return {name: _digest(part) for name, part in found.items()}


def identity(**given: Any) -> str:
    """Return the identity of a run with one component, of what ``parts`` takes."""
    return whole(parts(**given))


def whole(found: Mapping[str, str]) -> str:
    """Return the identity of a run with these parts."""
    return f"{_VERSION}:{_digest(list(found.values()))}"


def digest_of(path: str) -> str:
    """Return the digest of an inject's source, "" when it cannot be read."""
    try:
        return sha256(careful.read(path, follows=True))
    except OSError:
        return ""


def _digest(value: object) -> str:
    return sha256(json.dumps(value).encode())

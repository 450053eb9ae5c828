"""The identity of a run: two runs whose identities differ cannot be compared (contract §7).

A hash of hashes over everything that decides what is run and what judges it; equal parts, equal identity.
"""

import json
from collections.abc import Iterable
from typing import Final

from crucible.schemas.hashes import sha256

_VERSION: Final = "v1"


def identity(
    *,
    workflow: str,
    repo: tuple[str | None, str | None] = (None, None),
    base: str | None = None,
    manifest: str | None = None,
    injects: Iterable[tuple[str, str]] = (),
) -> str:
    """Return the identity: ``workflow`` is a digest, ``base`` a commit, ``injects`` are targets with digests."""
    parts = [workflow, *repo, base, manifest and sha256(manifest.encode()), sorted(injects)]
    return f"{_VERSION}:{sha256(json.dumps(parts).encode())}"

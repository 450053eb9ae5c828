"""The manifest that holds: that of its workspace's base commit where it lies inside (contract §1, frozen loading).

In go a manifest as it stands and the state directory of its runs, out come the bytes that hold, and what is to be said.
"""

import argparse
import os
from typing import TYPE_CHECKING, NamedTuple

from crucible.cli.output import Usage, relative, remark_printed

if TYPE_CHECKING:
    from collections.abc import Callable

    from crucible.compiler.check import Checked
    from crucible.compiler.manifest_model import Manifest


class Frozen(NamedTuple):
    """The manifest of the base commit, None where the file as it is holds, and a note for who should know."""

    data: bytes | None
    note: str = ""


def frozen(manifest: "Manifest", state: str) -> Frozen:
    """Return what holds; raise Usage where nobody can tell. ``state`` is the state directory of its runs."""
    from crucible.runtime.prepare import RECORD, recorded

    known = recorded(state)
    path = os.path.realpath(manifest.path)
    # Where an earlier run knows the workspace, the file has no say in whether it lies there.
    if known is None or not path.startswith(os.path.join(known.workspace, "")):
        if not manifest.is_inside_workspace():
            return Frozen(None)
        folder = os.path.realpath(os.path.join(manifest.folder, manifest.workspace.dir))
        base = known.commit if known is not None and known.workspace == folder else None
    else:
        folder, base = known
    found = None if base is None else _at_base(folder, base, path, os.path.join(state, RECORD))
    if found is None:
        note = (
            f"{manifest.path} lies in the workspace that it is for, which has no base commit with it yet; "
            "this run trusts the file as it is"
        )
        return Frozen(None, note)
    if manifest.text.encode() == found:
        return Frozen(found)
    note = (
        f"{manifest.path} lies in the workspace that it is for and differs from that of the base commit "
        f"{base}, which holds; to trust the file as it is, remove {relative(os.path.join(state, RECORD))}"
    )
    return Frozen(found, note)


def as_held(look: "Callable[..., Checked]", arguments: argparse.Namespace) -> "Checked":
    """Look at the manifest that ``--manifest`` names, or at the one that a run would hold to; say so."""
    path = relative(arguments.manifest)
    if not path.endswith(".toml"):
        message = f"a manifest is a .toml file, which {path} is not by its name"
        raise Usage(message)
    checked = look(path)
    if checked.manifest is None:
        return checked
    held = frozen(checked.manifest, state_of(arguments, checked.manifest))
    if held.note:
        remark_printed([f"warning: {held.note}"])
    return checked if held.data is None or not held.note else look(path, held.data)


def state_of(arguments: argparse.Namespace, manifest: "Manifest") -> str:
    """Return the state directory of the runs of a manifest."""
    return os.path.abspath(arguments.state_dir or os.path.join(manifest.folder, "state"))


def _at_base(folder: str, base: str, path: str, record: str) -> bytes | None:
    """Return a file of the workspace at its base commit, None where that does not have it; raise Usage."""
    from crucible.compiler.revisions import NoRevision, Repository

    try:
        with Repository(folder) as repository:
            return repository.tree(base).read(repository.prefix + os.path.relpath(path, folder))
    except NoRevision as error:
        message = (
            f"the manifest of the base commit {base} holds, and that cannot be read in {folder}: {error}; "
            f"remove {relative(record)} if the file as it is may be trusted"
        )
        raise Usage(message) from None

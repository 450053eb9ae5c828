"""The [workflow] of a manifest and the source beside it: the block is the authority, and the source is compared.

A check that somebody wrote into the source is never dropped silently: a block that says something else is stale.
"""

import os
from typing import Final, NamedTuple

from crucible.compiler import manifest, toml_text
from crucible.compiler.pipeline import Compiled, Options, compile_file
from crucible.schemas.diagnostic import Diagnostic, has_errors
from crucible.schemas.ir import Workflow

SOURCE: Final = "workflow.star"
_WRITE: Final = "run crucible plan compile-workflow with --manifest"


class Compared(NamedTuple):
    """What came of a comparison: the stale block, None for one that is not, and what became of the source."""

    stale: Diagnostic | None
    source: Compiled


def source_of(text: str, path: str) -> str | None:
    """Return the path of the usual source, or else of the one that a manifest says it was compiled from.

    In this order: what a manifest says of itself hides no check that stands in workflow.star.
    """
    folder = os.path.dirname(path)
    usual = os.path.join(folder, SOURCE)
    if os.path.lexists(usual):  # what is no file there is said, not passed over
        return usual
    names = (manifest.generated_from(text),)
    return next((at for name in names if name and os.path.isfile(at := os.path.join(folder, name))), None)


def absent(path: str, source: str) -> Diagnostic:
    """Say that a manifest has no block yet for the source beside it."""
    message = f"there is no [{manifest.TABLE}] yet for {_name(source, path)}; {_WRITE}"
    return Diagnostic("stale-workflow", message, path)


def compare(block: Workflow, text: str, path: str, source: str, options: Options) -> Compared:
    """Compile the source beside a manifest and hold the block against it.

    Raises Unreadable when the source cannot be read at all.
    """
    compiled = compile_file(source, options._replace(params=None, admit=None))
    name = _name(source, path)
    if has_errors(compiled.diagnostics):
        message = f"[{manifest.TABLE}] cannot be compared with {name}, which does not compile"
    elif compiled.declares_params or compiled.workflow != block:
        message = f"[{manifest.TABLE}] is not what {name} compiles to; {_WRITE}"
    else:
        return Compared(None, compiled)
    span = toml_text.locate(text).table((manifest.TABLE,))
    return Compared(Diagnostic("stale-workflow", message, path, span), compiled)


def _name(source: str, path: str) -> str:
    return os.path.relpath(source, os.path.dirname(path) or os.curdir)

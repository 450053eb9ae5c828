"""Running the drawing program: DOT in, SVG, PNG or the layout as JSON out.

graphviz-pure, which pip installs, brings its fonts with it and draws the same bytes everywhere; CRUCIBLE_DOT
names another program. It stands apart because the program is young and may be missing or broken: all that can
go wrong with it ends here, as one exception with what helps.
"""

import math
import os
import re
import sys
from typing import Final

from crucible.compiler.output import gist
from crucible.compiler.output.report import harmless

PROGRAM: Final = "graphviz-pure"
CHOICE: Final = "CRUCIBLE_DOT"
MOST_PIXELS: Final = 16_000
DPI: Final = 96
_SECONDS: Final = 60.0
_MOST_AREA: Final = 30_000_000  # pixels; the drawing program takes eight bytes for each
_WHOLE: Final = {"svg": (b"<?xml", b"</svg>"), "png": (b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"), "json": (b"{", b"}")}
# What the fonts of graphviz-pure have: Latin, Greek, Cyrillic, Hebrew, punctuation, some symbols.
_SHAPES: Final = re.compile(
    "[\x00-\u052f\u0590-\u05ff\u1e00-\u1fff\u2000-\u20bf\u2100-\u2195\u2200-\u2265\u2500-\u25ff]*"
)


class Undrawable(Exception):
    """The drawing program is missing or broken; the text says which and what helps."""


def find_program() -> str:
    """Return the path of the drawing program. Raises Undrawable when there is none."""
    import shutil

    chosen = os.environ.get(CHOICE)
    if chosen:
        found = shutil.which(chosen)
        if found is None:
            raise Undrawable(f"{CHOICE} names {chosen!r}, which is no program; install Graphviz, or unset it")
        return found
    # pip puts it beside the interpreter, which need not be on the PATH.
    beside = os.path.join(os.path.dirname(sys.executable), PROGRAM)
    found = beside if os.access(beside, os.X_OK) else shutil.which(PROGRAM)
    if found is None:
        message = f"the drawing program {PROGRAM} is not installed; pip install {PROGRAM}, or set {CHOICE} to a dot"
        raise Undrawable(message)
    return found


def run(dot: str, style: str, *options: str) -> bytes:
    """Run the drawing program over DOT and return what it drew. Raises Undrawable when that is no whole picture."""
    import signal
    import subprocess

    program = find_program()
    try:
        child = subprocess.Popen(  # noqa: S603 - the program that the user chose, without a shell
            [program, "-Kdot", f"-T{style}", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C"},
            start_new_session=True,
        )
    except OSError as error:
        raise Undrawable(f"{program} cannot be started: {error.strerror}") from None
    with child:
        try:
            data, errors = child.communicate(dot.encode(), timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            raise Undrawable(f"{program} did not finish within {_SECONDS:.0f} seconds") from None
        finally:
            if child.returncode is None:
                os.killpg(child.pid, signal.SIGKILL)
    begin, end = _WHOLE[style]
    if child.returncode or not data.startswith(begin) or not data.rstrip().endswith(end):
        said = errors.decode(errors="replace").strip().rpartition("\n")[2]
        why = f"exit code {child.returncode}" if child.returncode else "what it wrote is no whole picture"
        raise Undrawable(f"{program} failed: {why}" + (f"; it says: {gist.cut(harmless(said), 200)}" if said else ""))
    return data


def dots_per_inch(svg: str) -> float:
    """Return the resolution at which the drawing program can hold the picture in memory."""
    found = re.search(r'<svg width="([0-9.]+)pt" height="([0-9.]+)pt"', svg)
    area = float(found.group(1)) * float(found.group(2)) * (DPI / 72) ** 2 if found else 0.0
    return DPI * min(1.0, math.sqrt(_MOST_AREA / max(area, 1.0)))


def has_shapes(text: str) -> bool:
    """Tell whether a PNG shows every character of a text; another program takes the fonts of the machine."""
    return CHOICE in os.environ or _SHAPES.fullmatch(text) is not None

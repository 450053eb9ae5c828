"""Running the drawing program: DOT in, SVG, PNG or the layout as JSON out.

graphviz-pure, which pip installs, brings its fonts with it and draws the same bytes everywhere; CRUCIBLE_DOT
names another program. It stands apart because the program is young and may be missing or broken: all that can
go wrong with it ends here, as one exception with what helps.
"""

import contextlib
import math
import os
import re
import signal
import sys
import time
from typing import Final

from crucible.compiler.output import gist
from crucible.compiler.output.report import harmless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subprocess import Popen

PROGRAM: Final = "graphviz-pure"
CHOICE: Final = "CRUCIBLE_DOT"
MOST_PIXELS: Final = 16_000
DPI: Final = 96
_SECONDS: Final = 60.0
_GRACE: Final = 1.0  # seconds for reading the rest of what an ended program wrote
_MOST_DRAWN: Final = 64 << 20  # bytes of a picture
_MOST_SAID: Final = 8 << 10  # bytes of its last messages
_AT_ONCE: Final = 1 << 16
_PAUSE: Final = 0.05  # seconds between looks whether it has ended
_MOST_AREA: Final = 30_000_000  # pixels; the drawing program takes eight bytes for each
_WHOLE: Final = {"svg": (b"<?xml", b"</svg>"), "png": (b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"), "json": (b"{", b"}")}
# What the fonts of graphviz-pure have: Latin, Greek, Cyrillic, Hebrew, punctuation, some symbols.
SHAPES: Final = re.compile(
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
            data, errors = _converse(child, dot.encode(), program)
        finally:
            if child.returncode is None:
                _end(child)
    begin, end = _WHOLE[style]
    if child.returncode or not data.startswith(begin) or not data.rstrip().endswith(end):
        said = errors.decode(errors="replace").strip().rpartition("\n")[2]
        why = f"exit code {child.returncode}" if child.returncode else "what it wrote is no whole picture"
        raise Undrawable(f"{program} failed: {why}" + (f"; it says: {gist.cut(harmless(said), 200)}" if said else ""))
    return data


def _converse(child: "Popen[bytes]", text: bytes, program: str) -> tuple[bytes, bytes]:
    """Give the program its input and return what it draws and says, within bounds of size and time.

    Once the program itself has ended, nothing that it started can keep us waiting.
    """
    import selectors
    import subprocess

    stdin, out, err = (pipe.fileno() for pipe in (child.stdin, child.stdout, child.stderr) if pipe is not None)
    rest, drawn, said = bytearray(text), bytearray(), bytearray()
    late = f"{program} did not finish within {_SECONDS:.0f} seconds"
    until, has_ended = time.monotonic() + _SECONDS, False
    with selectors.DefaultSelector() as selector:
        for descriptor, buffer in ((stdin, rest), (out, drawn), (err, said)):
            os.set_blocking(descriptor, False)
            selector.register(descriptor, selectors.EVENT_READ if buffer is not rest else selectors.EVENT_WRITE, buffer)
        while selector.get_map().keys() - {stdin}:
            if not has_ended and child.poll() is not None:
                has_ended, until = True, time.monotonic() + _GRACE
                _end(child)
            ready = [key for key, _ in selector.select(0 if has_ended else _PAUSE)]
            is_late = time.monotonic() > until
            if has_ended and (is_late or all(key.fd == stdin for key in ready)):
                break
            if is_late:
                raise Undrawable(late)
            for key in ready:
                if key.fd != stdin and not _take(key.fd, key.data):
                    selector.unregister(key.fd)
                if key.fd == stdin and not _give(stdin, rest) and child.stdin is not None:
                    selector.unregister(stdin)
                    child.stdin.close()
            if len(drawn) > _MOST_DRAWN:
                raise Undrawable(f"{program} wrote more than {_MOST_DRAWN >> 20} MiB, which is no picture")
            del said[:-_MOST_SAID]
    try:
        child.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise Undrawable(late) from None
    return bytes(drawn), bytes(said)


def _give(descriptor: int, rest: bytearray) -> bool:
    """Write what fits of the input; False when there is no more, or nobody who reads it."""
    try:
        del rest[: os.write(descriptor, rest[:_AT_ONCE])]
    except BrokenPipeError:
        return False
    return bool(rest)


def _take(descriptor: int, into: bytearray) -> bool:
    """Read what is there; False at the end."""
    data = os.read(descriptor, _AT_ONCE)
    into += data
    return bool(data)


def _end(child: "Popen[bytes]") -> None:
    """End the program with all that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody is left
        os.killpg(child.pid, signal.SIGKILL)


def dots_per_inch(svg: str) -> float:
    """Return the resolution at which the drawing program can hold the picture in memory."""
    found = re.search(r'<svg width="([0-9.]+)pt" height="([0-9.]+)pt"', svg)
    area = float(found.group(1)) * float(found.group(2)) * (DPI / 72) ** 2 if found else 0.0
    return DPI * min(1.0, math.sqrt(_MOST_AREA / max(area, 1.0)))


def has_shapes(text: str) -> bool:
    """Tell whether a PNG shows every character of a text; another program takes the fonts of the machine."""
    return CHOICE in os.environ or SHAPES.fullmatch(text) is not None

"""How commands speak: the product on standard output, everything else on standard error."""

import os
import sys
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from crucible.schemas.diagnostic import Diagnostic


class Usage(Exception):
    """The command was used wrongly, or a file could not be read; the text says how."""


class Input(NamedTuple):
    """A source as it was named: its bytes when they came from standard input, and its path."""

    path: str
    data: bytes | None


def named_input(file: str, stdin_filename: str | None) -> Input:
    """Return what --file (or a lint argument) names; raise Usage for a wrong combination."""
    if file != "-":
        if stdin_filename is not None:
            message = "--stdin-filename goes with a file of -"
            raise Usage(message)
        return Input(file, None)
    if stdin_filename is None:
        message = "a source on standard input needs --stdin-filename, which names its pack"
        raise Usage(message)
    return Input(stdin_filename, sys.stdin.buffer.read())


def product(text: str) -> None:
    """Write the product of a command to standard output, as UTF-8 whatever the locale."""
    sys.stdout.flush()
    _write(1, text)


def remark(text: str) -> None:
    """Write lines that are no product to standard error."""
    _write(2, text)


def _write(descriptor: int, text: str) -> None:
    data = memoryview(text.encode(errors="surrogateescape"))
    while data:
        data = data[os.write(descriptor, data) :]


def failed(message: str, style: str, *, to_stdout: bool) -> int:
    """Say that a command could not start its work, in the format that was asked for; exit code 2."""
    if style == "json":
        from crucible.compiler.output.report import to_json

        (product if to_stdout else remark)(to_json([Diagnostic("file-not-found", message)], 0))
        if not to_stdout:
            return 2
    remark(f"crucible: {message}\n")
    return 2


def report_text(diagnostics: Iterable[Diagnostic], texts: Mapping[str, str], descriptor: int) -> str:
    """Return diagnostics as a person reads them, with colour on a terminal."""
    from crucible.compiler.output.report import to_text

    is_terminal = os.isatty(descriptor)
    colour = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    width = os.get_terminal_size(descriptor).columns if is_terminal else None
    return to_text(diagnostics, texts.get, colour=colour, width=width)


def relative(path: str) -> str:
    """Return a path relative to the working directory where it lies below it."""
    if not os.path.isabs(path):
        return path
    try:
        here = os.getcwd()
    except OSError:
        return path
    return os.path.relpath(path, here) if os.path.commonpath((here, os.path.abspath(path))) == here else path


def fault_report(line: str) -> None:
    """Write the one object of --format json for a fault of ours."""
    from crucible.compiler.output.report import to_json

    product(to_json([Diagnostic("internal-fault", line)], 0))

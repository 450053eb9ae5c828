"""How commands speak: the product on standard output, everything else on standard error."""

from __future__ import annotations

import os

from crucible.cli import VERSION
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.pack import STANDARD_LIBRARY, Refusal, over
from crucible.schemas.diagnostic import Diagnostic
from crucible.schemas.light import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Final

# What a report says where no input is wrong; no source provokes these, so the registry of codes has them not.
WRONG_USAGE: Final = "wrong-usage"
SYSTEM_ERROR: Final = "system-error"
FAULT: Final = "internal-fault"

UNREADABLE: Final = "file-not-found"


class Usage(Exception):
    """The command was used wrongly; the text says how."""


class Input(NamedTuple):
    """A source as it was named: what standard input gave when it came from there, and its path."""

    path: str
    data: bytes | Refusal | None


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
    by_hand = stdin_filename.endswith((".toml", ".json"))
    return Input(stdin_filename, _standard_input(LIMITS.json_bytes if by_hand else LIMITS.source_bytes))


def _standard_input(most: int) -> bytes | Refusal:
    """Read standard input to its end, or to where it passes the ceiling."""
    data = bytearray()
    while len(data) <= most:
        try:
            block = os.read(0, 1 << 16)
        except OSError as error:
            error.filename = "standard input"
            raise
        if not block:
            return bytes(data)
        data += block
    return over("standard input", most, len(data))


def product(text: str | bytes) -> None:
    """Write the product of a command to standard output, a text as UTF-8 whatever the locale."""
    try:
        _write(1, text)
    except OSError as error:
        error.filename = "standard output"
        raise


def remark(text: str) -> None:
    """Write lines that are no product to standard error; when nobody can read them, the exit code still speaks."""
    try:  # noqa: SIM105 - contextlib is not loaded for this
        _write(2, as_log(text))
    except OSError:
        pass


def remark_printed(lines: Iterable[str]) -> None:
    """Write the lines of print(); what would steer a terminal or a log is shown, but for tabs."""
    from crucible.compiler.output.github import to_log
    from crucible.compiler.output.report import harmless

    remark(to_log("".join("\t".join(map(harmless, line.split("\t"))) + "\n" for line in lines)))


def as_log(text: str) -> str:
    """Return a text for people, for a log of GitHub where it goes to one: a line of that may be a command."""
    if "GITHUB_ACTIONS" not in os.environ:
        return text
    from crucible.compiler.output.github import to_log

    return to_log(text)


def _write(descriptor: int, text: str | bytes) -> None:
    data = memoryview(text if isinstance(text, bytes) else text.encode(errors="surrogateescape"))
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:  # whoever started us shares a descriptor that does not wait
            import select

            select.select([], [descriptor], [])


def failed(code: str, message: str, style: str, *, to_stdout: bool) -> int:
    """Say that a command could not do its work, in the format that was asked for; exit code 2.

    The report is the product of lint alone, ``to_stdout``.
    """
    diagnostics = [Diagnostic(code, message)]
    if style in ("json", "sarif", "github"):
        (product if to_stdout else remark)(for_programs(diagnostics, 0, style))
    if style in ("json", "sarif"):
        return 2
    from crucible.schemas.codes import CODES  # a command that does its work needs none of them

    if code in CODES:
        remark(report_text(diagnostics, {}, 2))
    else:
        from crucible.compiler.output.report import harmless

        remark(f"crucible: {harmless(message)}\n")
    return 2


def for_programs(diagnostics: Iterable[Diagnostic], files: int, style: str) -> str:
    """Return diagnostics as programs read them, in the format that was asked for."""
    if style == "json":
        from crucible.compiler.output.report import to_json

        return to_json(diagnostics, files)
    from crucible.cli.repository import from_top

    if style == "sarif":
        from crucible.compiler.output.sarif import to_sarif

        return to_sarif(diagnostics, from_top(), VERSION)
    from crucible.compiler.output.github import to_github

    return to_github(diagnostics, from_top())


def unreadable(name: str, reason: object, usual: str = "workflow.star") -> str:
    """Say that a named file cannot be read, and which was likely meant: one near it, or the usual one below it."""
    message = f"cannot read {name}: {reason}"
    below = os.path.join(name, usual)
    if os.path.isfile(below):
        return f'{message}; did you mean "{below}"?'
    if os.path.lexists(name):
        return message
    from crucible.schemas.spelling import nearest

    folder, last = os.path.split(name)
    try:
        meant = nearest(last, os.listdir(folder or "."))
    except (OSError, ValueError):
        return message
    return f'{message}; did you mean "{os.path.join(folder, meant)}"?' if meant else message


def report_text(diagnostics: Iterable[Diagnostic], texts: Mapping[str, str], descriptor: int) -> str:
    """Return diagnostics as a person reads them, with colour on a terminal."""
    from crucible.compiler.output.report import to_text

    is_terminal = os.isatty(descriptor)
    colour = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    width = (os.get_terminal_size(descriptor).columns or None) if is_terminal else None
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


def number_of_files(names: Iterable[str]) -> int:
    """Return how many of the files that were read are the user's, at least one: the standard library's are not."""
    return sum(not name.startswith(STANDARD_LIBRARY) for name in names) or 1

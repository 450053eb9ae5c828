"""The last line of a log, or the last that begins an object: read as JSON, or a sentence why it is none.

In: the path of a log of any length. Out: the value or the fault, in bounded memory. Lines end at LF only; of a
line that a carriage return began anew only what follows counts; escape sequences of terminals and a byte-order
mark are no part of it.
"""

from __future__ import annotations

import json
import os

from crucible.runtime import careful
from crucible.schemas.ir import is_finite
from crucible.schemas.light import NamedTuple, pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

LIMIT: Final = 1 << 20  # bytes of a last line
LEVELS: Final = 500
EMPTY: Final = "it printed nothing"
_HOW: Final = "; print the result as one JSON value on one line, last, and what is for people on standard error (>&2)"
_SHOWN: Final = 200
_SHOWN_LINE: Final = 500
_STEP: Final = 4096
_TAIL: Final = 64 << 10
_LOOKED_AT: Final = 10_000  # earlier lines, for a hint
_TRIES: Final = 100
_TOO_DEEP: Final = f"is nested more than {LEVELS} levels deep"
_OPENING: Final = (b"{", b"[", b'"')
_PAIRS: Final = {b"}": b"{", b"]": b"["}
_MARK: Final = b"\xef\xbb\xbf"
_ESCAPE: Final = pattern(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours and cursors: CSI
    rb"|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles and links: OSC and its like, up to BEL or ST
    rb"|[ -/]*[0-Z\\^-~])"  # all others
)
# A line that begins with "{", or what follows its last carriage return.
_OBJECT: Final = pattern(rb"(?:\A|[\n\r])(?:\xef\xbb\xbf)?(\{[^\n\r]*+)\r*+(?=\n|\Z)")
_INDENTED: Final = pattern(rb"(?:\A|\n)[ \t]+\{")
_ENDS: Final = 2  # bytes around a line: its own end and that of the line before
_CONTROLS: Final = dict.fromkeys((*range(9), *range(10, 32), *range(127, 160)))


class LastLine(NamedTuple):
    """The value of a last line with a remark on it, or the ``fault`` that says why it has none."""

    value: Any = None
    fault: str | None = None
    note: str = ""


class _NoJson(Exception):
    """What is wrong with a text that was to be JSON, as what is said of it."""


class _Text(_NoJson):
    """Said of what is no JSON from its first character."""


def read(path: str, size: int | None = None) -> LastLine:
    """Read the last line of a log that is not blank, taking no more of it than its first ``size`` bytes."""
    if size == 0:
        return LastLine(fault=EMPTY)
    try:
        with open(path, "rb", buffering=0, opener=careful.opener) as file:
            end = os.fstat(file.fileno()).st_size
            return _read(file.fileno(), end if size is None else min(size, end))
    except OSError as error:  # whoever writes a log can remove it, too
        return LastLine(fault=f"its output cannot be read: {error.strerror}")


def read_object(path: str, size: int | None = None) -> LastLine:
    """Read the last line that begins with "{" of the first ``size`` bytes of a log, whatever stands behind it.

    Numbers that are not finite are taken: what they mean is for the reader to say.
    """
    try:
        with open(path, "rb", buffering=0, opener=careful.opener) as file:
            end = os.fstat(file.fileno()).st_size
            return _read_object(file.fileno(), end if size is None else min(size, end))
    except OSError as error:
        return LastLine(fault=f"its output cannot be read: {error.strerror}")


def parse(data: bytes, what: str) -> LastLine:
    """Read a whole text as strictly as a last line; ``what`` is the subject of the fault."""
    try:
        return LastLine(_parse(data.strip().removeprefix(_MARK)))
    except _NoJson as bad:
        return LastLine(fault=f"{what} {bad}")


def tail(path: str, lines: int = 20) -> str:
    """Return the last lines of a log for a note: without controls, each of bounded length; "" when there are none."""
    try:
        with open(path, "rb", buffering=0, opener=careful.opener) as file:
            end = os.fstat(file.fileno()).st_size
            data = os.pread(file.fileno(), _TAIL, max(0, end - _TAIL))
    except OSError:
        return ""
    rows = _ESCAPE.sub(b"", data).rstrip().split(b"\n")[-lines:]
    texts = [_shown(row, _SHOWN_LINE) for row in rows]
    return "\n".join(texts).strip("\n")


def _read(file: int, end: int) -> LastLine:
    """Find the last line that is not blank before ``end``, and read it."""
    while True:
        # One byte more than the limit, so that the line before a line of that length is seen to end.
        start = max(0, end - LIMIT - 1)
        window = os.pread(file, end - start, start)
        trimmed = _trimmed(window)
        if trimmed == len(window) or (trimmed and not start):
            break
        if not trimmed and not start:
            return LastLine(fault=EMPTY)
        end = start + trimmed
    text = _ESCAPE.sub(b"", window[:trimmed])
    if not text.removeprefix(_MARK):
        return LastLine(fault=EMPTY)
    *earlier, line = text.split(b"\n")
    after = line.rpartition(b"\r")[2]
    if (start or trimmed > LIMIT) and not earlier and after == line:
        return LastLine(fault=_too_long(file, start, start + trimmed))
    shown = after.strip().removeprefix(_MARK)
    try:
        value = _parse(shown)
    except _NoJson as bad:
        plain = _HOW if isinstance(bad, _Text) else ""
        return LastLine(fault=f"the last line {bad}{_hint(earlier, shown, start, file) or plain}")
    is_coloured = _ESCAPE.search(window, window.rfind(b"\n", 0, trimmed) + 1) is not None
    return LastLine(value, note="escape sequences were removed from the last line" if is_coloured else "")


def _read_object(file: int, end: int) -> LastLine:
    """Look for the line from the end, and read it."""
    fault = EMPTY
    while end:
        start = max(0, end - LIMIT - _ENDS)
        window = os.pread(file, end - start, start)
        if not window:
            break
        begin = window.find(b"\n") + 1 if start else 0  # what began before is the next to be looked at
        is_whole = begin < len(window) and (begin > 0 or not start)
        # What a line shows that is longer than all of this may still be: what follows its last carriage return.
        text = _ESCAPE.sub(b"", window[begin:]) if is_whole else b"." + _ESCAPE.sub(b"", window)
        found = None
        for each in _OBJECT.finditer(text):
            found = each
        if found is not None and len(found[1]) > LIMIT:
            return _no_object(len(found[1]))
        if found is not None:
            return _taken(found[1].strip(), text[found.start(1) :])
        if fault == EMPTY and window.strip():
            fault = 'no line of its output begins with "{"'
        if _INDENTED.search(text):
            fault = 'no line of its output begins with "{"; one does behind blanks: print it without them'
        if is_whole:
            end = start + begin
            continue
        close = end - window.endswith(b"\n")
        end = _line_start(file, close)
        if b"\r" not in text.rstrip() and os.pread(file, _STEP, end).removeprefix(_MARK).startswith(b"{"):
            return _no_object(close - end)
    return LastLine(fault=fault)


def _no_object(length: int) -> LastLine:
    return LastLine(fault=f'the last line that begins with "{{" has {length} bytes, and at most {LIMIT} are read')


def _taken(line: bytes, rest: bytes) -> LastLine:
    """Read a line that begins with "{"; ``rest`` is all from there on."""
    try:
        return LastLine(_parse(line, is_strict=False))
    except _NoJson as bad:
        whole = rest[: rest.rfind(b"\n}") + 2].strip()
        hint = "; the JSON stands on several lines: print it on one" if _is_json(whole) else ""
        return LastLine(fault=f'the last line that begins with "{{" {bad}{hint}')


def _line_start(file: int, end: int) -> int:
    """Return where the line begins that ends at a byte of a log."""
    while end:
        before = max(0, end - LIMIT)
        at = os.pread(file, end - before, before).rfind(b"\n")
        if at >= 0:
            return before + at + 1
        end = before
    return 0


def _trimmed(window: bytes) -> int:
    """Return the length of a text without the blanks and escape sequences at its end."""
    end = len(window)
    while True:
        while end and window[end - 1 : end].isspace():
            before = max(0, end - _STEP)  # a copy of all of it for each escape sequence would take for ever
            end = before + len(window[before:end].rstrip())
        escape = window.rfind(b"\x1b", 0, end)
        if window[escape:end] == b"\x1b\\":  # ends one that began before
            escape = window.rfind(b"\x1b", 0, escape)
        if escape < 0 or _ESCAPE.fullmatch(window, escape, end) is None:
            return end
        end = escape


def _too_long(file: int, start: int, end: int) -> str:
    """Say how long a line is that reaches from before ``start`` to ``end``."""
    start = _line_start(file, start)
    return f"the last line has {end - start} bytes, and at most {LIMIT} are read"


def _parse(data: bytes, *, is_strict: bool = True) -> Any:
    """Read JSON; raise what is wrong with it, numbers that are not finite included when it is to be strict."""
    constant, number = (_constant, _float) if is_strict else (float, float)
    try:
        text = data.decode()
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=constant, parse_float=number)
    except UnicodeDecodeError as error:
        raise _NoJson(f"is not UTF-8 at byte {error.start + 1}: {_shown(data, _SHOWN)}") from None
    except RecursionError:
        raise _NoJson(_TOO_DEEP) from None
    except json.JSONDecodeError as error:
        if not data.startswith(_OPENING):
            raise _Text(f"is not JSON: {_shown(data, _SHOWN)}") from None
        quotes = "; JSON has double quotes" if data.startswith(b"{'") else ""
        raise _NoJson(f"is not JSON (character {error.pos + 1}): {_shown(data, _SHOWN)}{quotes}") from None
    except ValueError:
        raise _NoJson("holds an integer with more digits than can be read") from None
    # json's own bound depends on who calls it, and on the release of Python.
    if data.count(b"[") + data.count(b"{") > LEVELS and _is_deep(value):
        raise _NoJson(_TOO_DEEP)
    return value


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(LEVELS + 1):
        level = [
            item
            for outer in level
            if isinstance(outer, (dict, list))
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(level)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for index, name in enumerate(names) if name in names[:index])
        raise _NoJson(f"has the key {_shown(json.dumps(twice).encode(), _SHOWN)} twice")
    return made


def _constant(name: str) -> float:
    raise _NoJson(f"is not JSON: {name} is no number there")


def _float(text: str) -> float:
    value = float(text)
    if not is_finite(value):
        raise _NoJson(f"holds {_shown(text.encode(), _SHOWN)}, which is not finite")
    return value


def _hint(earlier: list[bytes], line: bytes, start: int, file: int) -> str:
    """Say what to do about a bad last line when those before it tell."""
    closes = _PAIRS.get(line[:1])
    rows = [row.rpartition(b"\r")[2].removeprefix(_MARK) for row in earlier[-_LOOKED_AT:]]
    begun = [index for index, row in enumerate(rows) if row.startswith(closes or b"{")]
    for index in begun[: -_TRIES - 1 : -1]:
        if closes and _is_json(b"\n".join([*rows[index:], line])):
            return "; the JSON stands on several lines: print it on one"
        if not closes and _is_json(rows[index]):
            number = _line_number(file, start) + len(earlier) - len(rows) + index
            return f"; line {number} would have been: print it last"
    return ""


def _is_json(data: bytes) -> bool:
    try:
        _parse(data)
    except _NoJson:
        return False
    return True


def _line_number(file: int, at: int) -> int:
    """Return the number of the line that holds a byte of a log, from 1."""
    count = 1
    for start in range(0, at, LIMIT):
        count += os.pread(file, min(LIMIT, at - start), start).count(b"\n")
    return count


def _shown(line: bytes, length: int) -> str:
    """Return a line as a note shows it."""
    text = line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace").translate(_CONTROLS)
    return text if len(text) <= length else text[: length - 1] + "…"

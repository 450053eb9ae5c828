"""The last line of a log, on its own: logs of bytes, the value or the sentence beside them."""

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.runtime import last_line
from crucible.runtime.last_line import EMPTY, LIMIT, LastLine

REMARK = "escape sequences were removed from the last line"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the path of a log."""
    return tmp_path / "log"


def read(log: Path, data: bytes) -> LastLine:
    """Write a log and read its last line."""
    log.write_bytes(data)
    return last_line.read(str(log))


GOOD: dict[str, tuple[bytes, Any]] = {
    "a log before it": (b'building\n{"score": 1}\n', {"score": 1}),
    "no line end": (b'{"score": 1}', {"score": 1}),
    "blank lines behind it": (b'{"score": 1}\n\n \t\n\r\n', {"score": 1}),
    "CR LF": (b'log\r\n{"score": 1}\r\n', {"score": 1}),
    "progress on the same line": (b'10%\r50%\r{"score": 1}\n', {"score": 1}),
    "progress ended by a carriage return": (b'50%\r{"score": 1}\r', {"score": 1}),
    "any value": (b"log\n[1, null, true]\n", [1, None, True]),
    "a number": (b"-0.5e1\n", -5.0),
    "null": (b"null\n", None),
    "a byte-order mark": (b'\xef\xbb\xbf{"score": 1}\n', {"score": 1}),
    "what other readers take for line ends": (
        '{"note": "a\u2028b\u2029c\u0085d"}\n'.encode(),
        {"note": "a\u2028b\u2029c\u0085d"},
    ),
    "VT and FF between lines": (b'log\x0b\x0c\n{"score": 1}\x0b\x0c\n', {"score": 1}),
    "broken UTF-8 elsewhere": (b'\xff\xfe\x80 log\n{"score": 1}\n', {"score": 1}),
    "NUL bytes elsewhere": (b'\0\0\n{"score": 1}\n', {"score": 1}),
    "escaped controls": (b'{"note": "\\u001b[31m\\n"}\n', {"note": "\x1b[31m\n"}),
    "a lone surrogate": (b'{"note": "\\ud800"}\n', {"note": "\ud800"}),
    "a large integer": (b"123456789012345678901234567890\n", 123456789012345678901234567890),
    "500 levels": (b"[" * 500 + b"]" * 500, json.loads("[" * 500 + "]" * 500)),
}


@pytest.mark.parametrize(("data", "value"), GOOD.values(), ids=GOOD)
def test_json_on_the_last_line_is_its_value(log: Path, data: bytes, value: Any) -> None:
    """The last line that is not blank is read, whatever stands around it."""
    assert read(log, data) == LastLine(value)


ESCAPED: dict[str, bytes] = {
    "colours": b'log\n\x1b[32m{"score": 1}\x1b[0m\n',
    "a reset behind the line end": b'{"score": 1}\n\x1b[0m',
    "colours inside": b'{\x1b[1;38;5;9m"score"\x1b[m: 1}\n',
    "an erased line": b'50%\r\x1b[2K\x1b[?25h{"score": 1}\n',
    "a title": b'\x1b]0;build\x07{"score": 1}\n',
    "a link": b'\x1b]8;;http://x/\x1b\\{"score": 1}\x1b]8;;\x1b\\\n',
    "a character set": b'\x1b(B{"score": 1}\x1b=\n',
    "a byte-order mark behind": b'\x1b[0m\xef\xbb\xbf{"score": 1}\n',
}


@pytest.mark.parametrize("data", ESCAPED.values(), ids=ESCAPED)
def test_escape_sequences_are_removed_and_remarked_on(log: Path, data: bytes) -> None:
    """Escape sequences are no part of the line, and the note says that they were there."""
    assert read(log, data) == LastLine({"score": 1}, note=REMARK)


def test_escape_sequences_of_earlier_lines_are_no_remark(log: Path) -> None:
    """Colours in the log before the line are nobody's business."""
    assert read(log, b'\x1b[32mok\x1b[0m\n{"score": 1}\n') == LastLine({"score": 1})


PLAIN = "; print the result as one JSON value on one line, last, and what is for people on standard error (>&2)"
BAD: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", EMPTY),
    "only blanks": (b"\n \n\t\r\n", EMPTY),
    "only escape sequences": (b"\x1b[0m\n\x1b[K\n", EMPTY),
    "only a byte-order mark": (b"\xef\xbb\xbf\n", EMPTY),
    "text": (b"done in 3s\n", f"the last line is not JSON: done in 3s{PLAIN}"),
    "a log line behind the JSON": (
        b'{"score": 1}\ndone in 3s\n',
        "the last line is not JSON: done in 3s; line 1 would have been: print it last",
    ),
    "several log lines behind the JSON": (
        b'log\nlog\n{"score": 1}\nmore\ndone\n',
        "the last line is not JSON: done; line 3 would have been: print it last",
    ),
    "pretty-printed": (
        b'log\n{\n  "a": {\n    "b": [\n      1\n    ]\n  }\n}\n',
        "the last line is not JSON: }; the JSON stands on several lines: print it on one",
    ),
    "a pretty-printed list": (
        b"[\n  1,\n  2\n]\n",
        "the last line is not JSON: ]; the JSON stands on several lines: print it on one",
    ),
    "a comma too many": (b'{"a": 1,}\n', 'the last line is not JSON (character 9): {"a": 1,}'),
    "two values": (b'{"a": 1} {"b": 2}\n', 'the last line is not JSON (character 10): {"a": 1} {"b": 2}'),
    "Python": (b"{'score': 1}\n", "the last line is not JSON (character 2): {'score': 1}; JSON has double quotes"),
    "NaN": (b'{"score": NaN}\n', "the last line is not JSON: NaN is no number there"),
    "Infinity": (b'{"score": -Infinity}\n', "the last line is not JSON: -Infinity is no number there"),
    "a number beyond all floats": (b'{"score": 1e999}\n', "the last line holds 1e999, which is not finite"),
    "a key twice": (b'{"a": 1, "b": {"c": 1, "c": 2}}\n', 'the last line has the key "c" twice'),
    "2,000 levels": (b"[" * 2000 + b"]" * 2000, "the last line is nested more than 500 levels deep"),
    "501 levels": (b'{"a": ' * 501 + b"1" + b"}" * 501, "the last line is nested more than 500 levels deep"),
    "100,000 levels": (b"[" * 100_000, "the last line is nested more than 500 levels deep"),
    "an endless integer": (b"1" * 5000, "the last line holds an integer with more digits than can be read"),
    "broken UTF-8": (
        b'log\n{"a": "\xff"}\n',
        'the last line is not UTF-8 at byte 8: {"a": "\N{REPLACEMENT CHARACTER}"}',
    ),
    "progress behind the JSON": (b'{"score": 1}\r100%\n', f"the last line is not JSON: 100%{PLAIN}"),
    "a control character": (b'{"a": "\x01"}\n', 'the last line is not JSON (character 8): {"a": ""}'),
    "a long line": (b"x" * 1000, f"the last line is not JSON: {'x' * 199}…{PLAIN}"),
}


@pytest.mark.parametrize(("data", "fault"), BAD.values(), ids=BAD)
def test_a_last_line_that_is_no_json_is_said_plainly(log: Path, data: bytes, fault: str) -> None:
    """The fault names what is wrong, and what to do where earlier lines tell."""
    assert read(log, data) == LastLine(fault=fault)


def test_only_the_part_that_was_there_is_read(log: Path) -> None:
    """What is written behind the size does not count."""
    log.write_bytes(b'{"score": 1}\nserver stopped\n')
    assert last_line.read(str(log), 13).value == {"score": 1}
    assert last_line.read(str(log), 0) == LastLine(fault=EMPTY)
    assert last_line.read(str(log), 1000).fault is not None


@pytest.mark.parametrize(
    "make",
    [lambda _: None, os.mkfifo, os.mkdir, lambda path: os.symlink(__file__, path)],
    ids=["nothing", "pipe", "folder", "link"],
)
def test_a_log_that_is_no_file_is_a_fault(log: Path, make: Any) -> None:
    """Who writes a log can put anything in its place: that hangs nobody and is followed nowhere."""
    make(log)
    line = last_line.read(str(log))
    assert line.fault is not None
    assert line.fault != EMPTY
    assert last_line.tail(str(log)) == ""


def test_a_line_of_the_limit_is_read(log: Path) -> None:
    """A last line may have exactly the limit, blanks behind it not counted."""
    text = b'"' + b"x" * (LIMIT - 2) + b'"'
    assert read(log, text).value == "x" * (LIMIT - 2)
    assert read(log, b"log\n" + text + b"\n" * 5).value == "x" * (LIMIT - 2)
    fault = f"the last line has {LIMIT + 1} bytes, and at most {LIMIT} are read"
    assert read(log, b"log\n " + text + b"\n") == LastLine(fault=fault)
    assert read(log, b"log\n" + b"%\r" * LIMIT + text + b"\n").value == "x" * (LIMIT - 2)


def test_a_huge_log_needs_little_memory(log: Path) -> None:
    """A line without end before, in or behind the last line costs no memory of its length."""
    huge = 300_000_000
    with log.open("wb") as file:
        file.truncate(huge)  # NUL bytes that take no room
        file.seek(huge)
        file.write(b'\n{"score": 1}\n')
    tracemalloc.start()
    assert last_line.read(str(log)).value == {"score": 1}
    fault = f"the last line has {huge} bytes, and at most {LIMIT} are read"
    assert last_line.read(str(log), huge).fault == fault
    with log.open("r+b") as file:
        file.seek(huge)
        file.write(b"\nlog\n".ljust(14))
    hint = last_line.read(str(log)).fault
    assert hint == f"the last line is not JSON: log{PLAIN}"
    assert last_line.tail(str(log)).endswith("log")
    assert tracemalloc.get_traced_memory()[1] < 10 << 20
    tracemalloc.stop()


def test_the_tail_of_a_log_is_fit_for_a_note(log: Path) -> None:
    """The last lines without controls, blank lines at the end, and more of a line than fits."""
    log.write_bytes(
        b"".join(b"%d\n" % n for n in range(30)) + b"\x1b[31m10%\rfail\xff\x07\ted\x1b[0m\r\n" + b"y" * 600 + b"\n\n"
    )
    lines = last_line.tail(str(log)).split("\n")
    assert lines == [*map(str, range(12, 30)), "fail\N{REPLACEMENT CHARACTER}\ted", "y" * 499 + "…"]
    assert last_line.tail(str(log), 1) == "y" * 499 + "…"


def test_a_whole_text_is_read_as_strictly() -> None:
    """A text of several lines may be one value, and is held to the same."""
    assert last_line.parse(b'\xef\xbb\xbf{\n "a": 1\n}\n', "it") == LastLine({"a": 1})
    assert last_line.parse(b'{"a": 1, "a": 2}', "it").fault == 'it has the key "a" twice'
    assert last_line.parse(b"", "it").fault == "it is not JSON: "


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
_LINES = st.lists(
    st.sampled_from([b"", b"log", b"50%\r", b"\xff", b"\x1b[0m", b"{", b'{"a": 1}', b"x" * 40]), max_size=8
)


@given(value=_VALUES, before=_LINES, blanks=st.lists(st.sampled_from([b"", b" ", b"\r", b"\x1b[0m"]), max_size=5))
def test_every_value_comes_back(
    tmp_path_factory: pytest.TempPathFactory, value: Any, before: list[bytes], blanks: list[bytes]
) -> None:
    """Every JSON value on the last line is read back, whatever lines stand before it and whatever blank ones behind."""
    log = tmp_path_factory.getbasetemp() / "every-value"
    text = json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")
    line = read(log, b"\n".join([*before, text, *blanks]))
    assert line.fault is None
    assert line.value == value


@given(lines=_LINES, limit=st.integers(16, 64))
def test_every_window_gives_the_same(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], limit: int) -> None:
    """Every log reads the same through any window that its last line fits in."""
    log = tmp_path_factory.getbasetemp() / "every-window"
    whole = read(log, b"\n".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(last_line, "LIMIT", limit)
        through = last_line.read(str(log))
    kept = [line for line in lines if line.replace(b"\x1b[0m", b"").strip()]
    if not kept or len(kept[-1]) <= limit:
        assert (through.value, through.fault is None) == (whole.value, whole.fault is None)
        assert through.fault is None or through.fault.partition(";")[0] == (whole.fault or "").partition(";")[0]
    else:
        assert through.fault == f"the last line has {len(kept[-1])} bytes, and at most {limit} are read"


@given(lines=_LINES, limit=st.integers(16, 64))
def test_every_window_finds_the_same_object(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], limit: int
) -> None:
    """The last line that begins with a brace is the same through any window, and as a naive reader finds it."""
    log = tmp_path_factory.getbasetemp() / "every-object"
    log.write_bytes(b"\n".join(lines))
    shown = [line.replace(b"\x1b[0m", b"").rstrip(b"\r").rpartition(b"\r")[2] for line in lines]
    begun = [line for line in shown if line.startswith(b"{")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(last_line, "LIMIT", limit)
        found = last_line.read_object(str(log))
    if not begun:
        assert found.value is None
        assert found.fault in {EMPTY, 'no line of its output begins with "{"'}
    elif begun[-1] == b"{":
        assert found.fault is not None
        assert "is not JSON" in found.fault
    else:
        assert found == LastLine({"a": 1})


@pytest.mark.parametrize("around", [0, 1, 2, 3])
def test_an_object_of_the_greatest_length_is_read(log: Path, around: int) -> None:
    """One byte more is too long, wherever the windows fall."""
    text = b'{"a": "' + b"x" * (LIMIT - 9) + b'"}'
    log.write_bytes(b"l\n" * around + text + b"\n" * around)
    assert last_line.read_object(str(log)).fault is None
    log.write_bytes(b"l\n" * around + text.replace(b"x", b"xx", 1) + b"\nlog" * around)
    assert (
        last_line.read_object(str(log)).fault
        == f'the last line that begins with "{{" has {LIMIT + 1} bytes, and at most {LIMIT} are read'
    )


def test_a_long_line_that_is_no_object_is_passed_over(log: Path) -> None:
    """So is one whose end, behind a carriage return, is not."""
    for long in (b"x" * 3 * LIMIT, b"{" * 3 * LIMIT + b"\rx", b"x\r" * 2 * LIMIT):
        log.write_bytes(b'{"a": 1}\n' + long + b"\n")
        assert last_line.read_object(str(log)) == LastLine({"a": 1})
    log.write_bytes(b"x" * 3 * LIMIT + b'\r{"a": 2}\n')
    assert last_line.read_object(str(log)) == LastLine({"a": 2})


def test_an_object_beyond_a_size_is_not_read(log: Path) -> None:
    """What was printed later is no part of it."""
    log.write_bytes(b'{"a": 1}\n{"a": 2}\n')
    assert last_line.read_object(str(log), 9) == LastLine({"a": 1})
    assert last_line.read_object(str(log), 0).fault == EMPTY
    assert (
        last_line.read_object(str(log.parent / "none")).fault == "its output cannot be read: No such file or directory"
    )

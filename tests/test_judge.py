"""The judge: the measure protocol by real commands, and the decide rule against a second one, written naively."""

import os
import sys
from collections.abc import Generator, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from contract import contract
from hypothesis import given
from hypothesis import strategies as st

from crucible.runtime.injects import Entry, Stock, expand
from crucible.runtime.judge import (
    GATE_CHANGED,
    Best,
    Decision,
    Measured,
    Reading,
    decide,
    decimal,
    environment,
    measure,
    numbers,
)
from crucible.runtime.process import Command, Exit, Processes


@pytest.fixture
def processes() -> Iterator[Processes]:
    """Give a place for children."""
    with Processes() as running:
        yield running


class Bench:
    """A folder to measure in."""

    def __init__(self, folder: Path, processes: Processes) -> None:
        self.folder = folder / "workspace"
        self.folder.mkdir()
        self._logs = (str(folder / "out"), str(folder / "err"))
        self._processes = processes

    def __call__(
        self, command: str, variables: Mapping[str, str] | None = None, stock: Stock | None = None
    ) -> Measured:
        """Measure with a command."""
        environ = environment(os.environ, (str(self.folder),), variables or {})
        return drive(self._processes, measure(command, str(self.folder), environ, self._logs, stock))

    def printing(self, text: str | bytes, then: str = "") -> Measured:
        """Measure with a command that prints a text."""
        (self.folder / "text").write_bytes(text if isinstance(text, bytes) else text.encode())
        return self(f"cat text; {then}")


def drive(processes: Processes, steps: Generator[Command, Exit, Measured]) -> Measured:
    """Do what a measurement asks for, to its end."""
    try:
        command = next(steps)
        while True:
            command = steps.send(processes.run(command))
    except StopIteration as end:
        found: Measured = end.value
        return found


@pytest.fixture
def bench(tmp_path: Path, processes: Processes) -> Bench:
    """Return a folder to measure in."""
    return Bench(tmp_path, processes)


LINE = '{"valid": true, "score": 12.5, "solved": false, "note": "p99=12.5ms", "detail": { } }'
FULL = Reading(valid=True, score=12.5, note="p99=12.5ms", detail={})
PLAIN = Reading(valid=True, score=1)
ONE = '{"valid": true, "score": 1}'
READ: dict[str, tuple[str | bytes, Reading]] = {
    "the sample of the contract": (LINE, FULL),
    "a log before it": (f"building\n[1]\n{LINE}\n", FULL),
    "a log behind it": (f"{ONE}\nbye\n", PLAIN),
    "a log without end behind it": (f"{ONE}\n" + "x" * 3_000_000, PLAIN),
    "three million lines behind it": (f"{ONE}\n" + "a\n" * 3_000_000, PLAIN),
    "the last of several": (f'{{"valid": false}}\n{{"valid": true, "score": 7}}\n{ONE}\n', PLAIN),
    "an object in an indented line behind it": (f'{ONE}\n  {{"valid": false}}\n', PLAIN),
    "an object behind other text": (f'{ONE}\nresult: {{"valid": false}}\n', PLAIN),
    "CR LF": (f"log\r\n{ONE}\r\nlog\r\n", PLAIN),
    "progress on the same line": (f"50%\r{ONE}\n100%", PLAIN),
    "an object that progress has overwritten": (f'{ONE}\n{{"valid": false}}\rdone\n', PLAIN),
    "colours": (f"\x1b[32m{ONE}\x1b[0m\n", PLAIN),
    "a byte-order mark": (b"\xef\xbb\xbf" + ONE.encode(), PLAIN),
    "broken UTF-8 elsewhere": (b"\xff{\n" + ONE.encode() + b"\n\xfe", PLAIN),
    "other keys": ('{"valid": true, "score": 1, "pass": false, "unit": "ms"}', PLAIN),
    "a note of any characters": (
        '{"valid": true, "score": 1, "note": "a\u2028b\\nc"}',
        PLAIN._replace(note="a\u2028b\nc"),
    ),
    "a tiebreak": ('{"valid": true, "score": 1, "tiebreak": -2.5}', PLAIN._replace(tiebreak=-2.5)),
    "solved": ('{"valid": true, "score": 1, "solved": true}', PLAIN._replace(solved=True)),
    "solved and invalid": ('{"valid": false, "score": 1, "solved": true}', Reading(valid=False, score=1, solved=True)),
    "nothing but valid: false": ('{"valid": false}', Reading(valid=False)),
    "null for all that is optional": (
        '{"valid": true, "score": 1, "tiebreak": null, "solved": null, "note": null, "detail": null}',
        PLAIN,
    ),
    "detail": ('{"valid": true, "score": 1, "detail": {"total": 3}}', PLAIN._replace(detail={"total": 3})),
    "no score": ('{"valid": true}', Reading(valid=False, note="there is no score")),
    "a score of null": ('{"valid": true, "score": null, "note": "n"}', Reading(valid=False, note="score is null; n")),
    "a score that is a boolean": (
        '{"valid": true, "score": true}',
        Reading(valid=False, note="score is a number, not a boolean"),
    ),
    "a score that is a string": (
        '{"valid": true, "score": "1"}',
        Reading(valid=False, note="score is a number, not a string"),
    ),
    "NaN": ('{"valid": true, "score": NaN}', Reading(valid=False, note="score is not finite")),
    "Infinity": ('{"valid": true, "score": -Infinity}', Reading(valid=False, note="score is not finite")),
    "1e999": ('{"valid": true, "score": 1e999}', Reading(valid=False, note="score is not finite")),
    "an integer beyond floats": (
        '{"valid": true, "score": 1' + "0" * 400 + "}",
        Reading(valid=False, note="score is not finite"),
    ),
    "a score of zero": ('{"valid": true, "score": 0}', PLAIN._replace(score=0)),
}


@contract("§3", "the engine reads the last line that starts with { and parses it")
@contract("§3", "score (number|null): the fitness. null/absent ⇒ treated as invalid.")
@contract("§3", "tiebreak (number, optional)")
@contract("§3", "solved (bool, optional, default false)")
@contract("§3", "note (string, optional)")
@contract("§3", "detail (object, optional)")
@pytest.mark.parametrize(("text", "reading"), READ.values(), ids=READ)
def test_the_last_line_that_begins_an_object_is_the_reading(bench: Bench, text: str | bytes, reading: Reading) -> None:
    """Whatever stands around it; a score that is no finite number makes it invalid, which is no fault."""
    found = bench.printing(text)
    assert (found.reading, found.fault) == (reading, None)


_WHAT = "a measure command prints a JSON object on a line of its own: "
UNREADABLE: dict[str, tuple[str, str]] = {
    "nothing": ("", f"{_WHAT}it printed nothing"),
    "blanks": (" \n\n", f"{_WHAT}it printed nothing"),
    "a number": ("12\n", f'{_WHAT}no line of its output begins with "{{"'),
    "an indented object": (
        f" {ONE}\n",
        f'{_WHAT}no line of its output begins with "{{"; one does behind blanks: print it without them',
    ),
    "several lines": (
        '{\n "valid": true,\n "score": 1\n}\ndone\n',
        "is not JSON (character 2): {; the JSON stands on several lines: print it on one",
    ),
    "no JSON": ("{'valid': True}\n", "JSON has double quotes"),
    "a broken one behind a good one": (f"{ONE}\n{{oops\n", "is not JSON (character 2): {oops"),
    "two on a line": (f"{ONE} {ONE}", "is not JSON (character 29)"),
    "a key twice": ('{"valid": true, "valid": true, "score": 1}', 'has the key "valid" twice'),
    "too deep": ('{"valid": true, "score": 1, "detail": ' + '{"a": ' * 600 + "1" + "}" * 601, "nested more than 500"),
    "far too deep": ('{"a": ' * 100_000, "nested more than 500 levels deep"),
    "too long": (
        '{"valid": true, "score": 1, "note": "' + "x" * 2_000_000 + '"}\nlog\n',
        'begins with "{" has 2000039 bytes, and at most 1048576 are read',
    ),
    "no valid": ('{"score": 1}', 'the reading has no "valid", which is required: true or false'),
    "valid null": ('{"valid": null}', "valid is true or false, not null"),
    "valid a number": ('{"valid": 1, "score": 1}', "valid is true or false, not an integer"),
    "valid a string": ('{"valid": "true", "score": 1}', "valid is true or false, not a string"),
    "tiebreak a boolean": ('{"valid": true, "score": 1, "tiebreak": true}', "tiebreak is a number, not a boolean"),
    "tiebreak not finite": ('{"valid": true, "score": 1, "tiebreak": NaN}', "tiebreak is not finite"),
    "solved a number": ('{"valid": true, "score": 1, "solved": 0}', "solved is true or false, not an integer"),
    "note a number": ('{"valid": true, "score": 1, "note": 5}', "note is a string, not an integer"),
    "detail a list": ('{"valid": true, "score": 1, "detail": []}', "detail is an object, not a list"),
    "detail not finite": ('{"valid": true, "score": 1, "detail": {"a": [1e999]}}', "detail is not finite"),
}


@contract("§3", "valid (bool, REQUIRED)")
@pytest.mark.parametrize(("text", "fault"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_no_reading_is_said_plainly(bench: Bench, text: str, fault: str) -> None:
    """There is no reading then, and the fault says what is wrong and what is right."""
    found = bench.printing(text)
    assert found.reading is None
    assert found.fault is not None
    assert fault in found.fault
    assert len(found.fault) < 500


@contract("§3", "nonzero ⇒ the reading is forced valid:false regardless of stdout")
@pytest.mark.parametrize(
    ("command", "reading", "fault"),
    [
        (f"echo '{ONE}'; exit 3", Reading(valid=False, score=1, note="exit 3"), "exit 3"),
        (f"echo '{ONE}'; echo bad >&2; exit 1", Reading(valid=False, score=1, note="exit 1: bad"), "exit 1: bad"),
        (
            """echo '{"valid": true, "score": 1, "solved": true}'; exit 1""",
            Reading(valid=False, score=1, solved=True, note="exit 1"),
            "exit 1",
        ),
        ("exit 1", Reading(valid=False, note="exit 1"), "exit 1"),
        (f"echo '{ONE}'; kill -9 $$", Reading(valid=False, score=1, note="ended by SIGKILL"), "ended by SIGKILL"),
    ],
)
def test_an_exit_that_is_not_zero_makes_the_reading_invalid(
    bench: Bench, command: str, reading: Reading, fault: str
) -> None:
    """Whatever it printed; how it ended is the fault."""
    found = bench(command)
    assert (found.reading, found.fault) == (reading, fault)


def test_a_command_that_is_not_there_is_named(bench: Bench) -> None:
    """The end of standard error stands in the fault."""
    found = bench("./measure.sh")
    assert found.reading == Reading(valid=False, note=found.fault or "")
    assert found.fault is not None
    assert found.fault.startswith("exit 127: it was not found\n")
    assert "measure.sh" in found.fault


def test_what_a_leftover_prints_is_no_part_of_it(bench: Bench) -> None:
    """A process that outlives the command has no say, and is ended."""
    found = bench(f"(trap '' TERM; sleep 0.3; echo '{{\"valid\": false}}'; sleep 1) & echo '{ONE}'")
    assert found.reading == PLAIN


@contract("§3", "cwd = the agent workspace")
def test_it_runs_in_the_workspace(bench: Bench) -> None:
    """A path of the workspace is one of the command."""
    (bench.folder / "n").write_text("4")
    (bench.folder / "measure.sh").write_text('echo "{\\"valid\\": true, \\"score\\": $(cat n)}"\n')
    (bench.folder / "measure.sh").chmod(0o755)
    assert bench("./measure.sh").reading == PLAIN._replace(score=4)


def test_standard_input_is_empty(bench: Bench) -> None:
    """A command that reads does not wait."""
    assert bench(f"cat; echo '{ONE}'").reading == PLAIN


# The environment


SHOW = (
    'echo "{\\"valid\\": false, \\"note\\": \\"${CRUCIBLE_BASELINE_SCORE-none} ${CRUCIBLE_BASELINE_TOTAL-none} '
    '${CRUCIBLE_BEST_SCORE-none} ${CRUCIBLE_ITERATION-none}\\"}"'
)


@contract("§3", "absent on the baseline measurement; present thereafter")
def test_the_numbers_are_absent_until_there_is_a_baseline(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when a loop around ours has set its own."""
    for name in ("BASELINE_SCORE", "BASELINE_TOTAL", "BEST_SCORE", "ITERATION"):
        monkeypatch.setenv(f"CRUCIBLE_{name}", "99")
    assert numbers(None, None) == {}
    assert bench(SHOW).reading == Reading(valid=False, note="none none none 0")
    baseline = Reading(valid=True, score=5, detail={"total": 7})
    assert bench(SHOW, numbers(baseline, 4.5)).reading == Reading(valid=False, note="5 7 4.5 0")
    baseline = Reading(valid=True, score=5, detail={"total": "many"})
    assert bench(SHOW, numbers(baseline, 1e-7)).reading == Reading(valid=False, note="5 none 0.0000001 0")


@contract("§3", "Values are the engine's current numbers as decimal strings.")
@pytest.mark.parametrize(
    ("number", "text"),
    [
        (12, "12"),
        (12.0, "12"),
        (0.1, "0.1"),
        (-2.50, "-2.5"),
        (1e-7, "0.0000001"),
        (1e21, "1" + "0" * 21),
        (100, "100"),
    ],
)
def test_a_number_is_a_decimal_string(number: float, text: str) -> None:
    """Without an exponent, which no shell reads."""
    assert decimal(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**30), 10**30))
def test_every_number_comes_back(number: float) -> None:
    """The string means the same number."""
    text = decimal(number)
    assert type(number)(text if isinstance(number, int) else float(text)) == number
    assert set(text) <= set("-0123456789.")


@contract("§3", "PATH inherited, so a command may be a bare installed tool")
def test_a_bare_tool_is_found_but_none_that_the_agent_could_have_written(tmp_path: Path) -> None:
    """Of PATH stay the absolute entries that lead out of the workspaces, by whatever name."""
    workspace = tmp_path / "workspace"
    (workspace / "bin").mkdir(parents=True)
    (tmp_path / "link").symlink_to(workspace / "bin")
    (tmp_path / "workspaces").mkdir()
    entries = ["/usr/bin", "", ".", "bin", str(workspace), str(workspace / "bin"), str(tmp_path / "link"), "/bin"]
    path = os.pathsep.join([*entries, str(tmp_path / "workspaces")])
    found = environment({"PATH": path, "A": "1", "GIT_DIR": "x"}, (str(workspace),), {})
    assert found["PATH"].split(os.pathsep) == ["/usr/bin", "/bin", str(tmp_path / "workspaces")]
    assert found["A"] == "1"
    assert "GIT_DIR" not in found
    assert environment({"PATH": "."}, (), {})["PATH"] == os.defpath
    assert "PATH" not in environment({}, (), {})


# Frozen files


def stock(tmp_path: Path, *, frozen: bool = True) -> Stock:
    """Return a stock with one file in a folder."""
    (tmp_path / "gate.sh").write_text(f"echo '{ONE}'\n")
    found, faults = expand([Entry("gate.sh", "judge/gate.sh", frozen)], str(tmp_path))
    assert faults == []
    return Stock(found, str(tmp_path))


@contract("§1", "so a candidate can't edit the gate")
def test_a_frozen_file_is_put_back_before_every_measurement(bench: Bench, tmp_path: Path) -> None:
    """Whatever somebody has made of it."""
    with stock(tmp_path) as held:
        assert bench("sh judge/gate.sh", stock=held).reading == PLAIN
        (bench.folder / "judge" / "gate.sh").write_text('echo \'{"valid": true, "score": 99}\'')
        assert bench("sh judge/gate.sh").reading == PLAIN._replace(score=99)
        assert bench("sh judge/gate.sh", stock=held).reading == PLAIN


CHANGES = ("echo >> judge/gate.sh", "rm judge/gate.sh", "chmod 777 judge/gate.sh", "mv judge j; ln -s j judge",
           "rm judge/gate.sh; mkdir judge/gate.sh", "ln judge/gate.sh twin")  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_gate_that_changes_while_it_measures_is_invalid(bench: Bench, tmp_path: Path, change: str) -> None:
    """Also when it went on to print a good reading."""
    with stock(tmp_path) as held:
        found = bench(f"{change}; echo '{ONE}'", stock=held)
        assert (found.reading, found.fault) == (PLAIN._replace(valid=False, note=GATE_CHANGED), GATE_CHANGED)
        assert bench(f"echo '{ONE}'", stock=held).reading == PLAIN


def test_a_file_that_is_not_frozen_may_change(bench: Bench, tmp_path: Path) -> None:
    """It is neither put back nor compared."""
    with stock(tmp_path, frozen=False) as held:
        assert bench(f"mkdir judge; echo > judge/gate.sh; echo '{ONE}'", stock=held).reading == PLAIN


# Deciding


def naive(reading: Reading, best: Best | None, direction: str, tiebreak_direction: str | None) -> tuple[bool, bool]:
    """Decide as the contract writes it, with the worst value in place of a tiebreak that was not recorded."""
    sign = {"lower": -1, "higher": 1}
    if not reading.valid or reading.score is None:
        return False, reading.solved
    if best is None:
        return True, reading.solved
    is_better = sign[direction] * reading.score > sign[direction] * best.score
    tiebreak_better = False
    if reading.tiebreak is not None:
        by = sign[tiebreak_direction if tiebreak_direction is not None else direction]
        recorded = by * best.tiebreak if best.tiebreak is not None else float("-inf")
        tiebreak_better = by * reading.tiebreak > recorded
    return is_better or (reading.score == best.score and tiebreak_better) or reading.solved, reading.solved


_DIRECTIONS = ("lower", "higher")
_NUMBERS = (None, 0, 1, 1.0, 2)


@contract("§4", "solved implies keep.")
@contract("§4", "The first valid reading sets the baseline")
@contract("§4", "A reading without a tiebreak ties exactly as before: discard.")
def test_every_combination_is_decided_as_the_contract_writes_it() -> None:
    """Readings, bests and directions, all of them against a second rule."""
    bests = [None, *(Best(score, tiebreak) for score in (0, 1, 2.5) for tiebreak in _NUMBERS)]
    count = 0
    for valid, score, tiebreak, solved in product((True, False), _NUMBERS, _NUMBERS, (True, False)):
        reading = Reading(valid, score, tiebreak, solved)
        for best, direction, other in product(bests, _DIRECTIONS, (None, *_DIRECTIONS)):
            expected = naive(reading, best, direction, other)
            assert tuple(decide(reading, best, direction, other)) == expected, (reading, best, direction, other)
            count += 1
    assert count == 100 * 16 * 6


_FINITE = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-3, 3)


@given(
    reading=st.tuples(st.booleans(), st.none() | _FINITE, st.none() | _FINITE, st.booleans()).map(
        lambda facts: Reading(*facts)
    ),
    best=st.none() | st.tuples(_FINITE, st.none() | _FINITE).map(Best._make),
    direction=st.sampled_from(_DIRECTIONS),
    other=st.none() | st.sampled_from(_DIRECTIONS),
)
def test_any_numbers_are_decided_as_the_contract_writes_it(
    reading: Reading, best: Best | None, direction: str, other: str | None
) -> None:
    """Numbers of any size, against the same second rule."""
    assert tuple(decide(reading, best, direction, other)) == naive(reading, best, direction, other)


@contract("§4", "solved never rescues an invalid reading.")
@contract("§4", "a best with no recorded tiebreak counts as the worst value")
@pytest.mark.parametrize(
    ("reading", "best", "keep"),
    [
        (Reading(valid=True, score=1), None, True),
        (Reading(valid=True, score=1), Best(2), True),
        (Reading(valid=True, score=2), Best(2), False),
        (Reading(valid=True, score=3), Best(2), False),
        (Reading(valid=True, score=2, solved=True), Best(2), True),
        (Reading(valid=True, score=3, solved=True), Best(2), True),
        (Reading(valid=False, score=1, solved=True), Best(2), False),
        (Reading(valid=False, score=1), None, False),
        (Reading(valid=True, score=2, tiebreak=9), Best(2), True),
        (Reading(valid=True, score=2, tiebreak=1), Best(2, 2), True),
        (Reading(valid=True, score=2, tiebreak=2), Best(2, 2), False),
        (Reading(valid=True, score=2), Best(2, 2), False),
    ],
)
def test_the_sentences_of_the_rule(reading: Reading, best: Best | None, keep: bool) -> None:  # noqa: FBT001 - an expectation
    """Lower is better, in each of them."""
    assert decide(reading, best, "lower") == Decision(keep, reading.solved)


def test_memory_is_bounded_whatever_is_printed(bench: Bench) -> None:
    """A hundred megabytes of log take no more than the window they are read through."""
    import tracemalloc

    writer = "import sys\nfor _ in range(100): sys.stdout.write('{x' * 500_000)\nprint(); print('log')"
    tracemalloc.start()
    found = bench(f'{sys.executable} -c "{writer}"')
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.fault is not None
    assert "has 100000000 bytes" in found.fault
    assert peak < 20_000_000


def test_a_reading_tells_its_total() -> None:
    """Only a finite number is one."""
    totals: list[Any] = [3, 2.5, True, "3", None, float("inf")]
    assert [Reading(valid=True, detail={"total": each}).total for each in totals] == [3, 2.5, None, None, None, None]
    assert Reading(valid=True).total is None

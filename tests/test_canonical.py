"""The canonical JSON: its exact bytes, and that it reads back as what was written."""

import hashlib
import json
import math
import struct
from decimal import Decimal
from typing import Any

import pytest
from compiled import compiled_workflows
from hypothesis import given
from hypothesis import strategies as st
from strategies import floats, workflows

from crucible.schemas import canonical, ir

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)

GOLDEN = """\
{
  "type": "custom",
  "result": "décide",
  "task": [
    {
      "name": "build",
      "kind": "command",
      "command": "printf 'é 😀 \u2028 \x7f \\t' \\\\\\n\\"x\\"\\r\\u0000\\b\\f\\u001b",
      "depends_on": [],
      "needs": "any",
      "required": true,
      "isolation": null,
      "join": "all"
    },
    {
      "name": "speed",
      "kind": "evaluate",
      "command": "./bench.sh",
      "threshold": 12.0,
      "direction": "lower",
      "depends_on": [
        "build"
      ],
      "needs": "gpu",
      "required": false,
      "isolation": "worktree",
      "join": "passed",
      "stage": "epilogue",
      "emits": [
        "score",
        "pass"
      ]
    },
    {
      "name": "ask",
      "kind": "agent",
      "prompt": "",
      "harness": null,
      "model": "large",
      "effort": null,
      "depends_on": [],
      "session": "solver",
      "needs": "any",
      "required": true,
      "isolation": null,
      "join": "all"
    },
    {
      "name": "best",
      "kind": "top_k",
      "k": 2,
      "direction": "higher",
      "depends_on": [],
      "needs": "any",
      "required": true,
      "isolation": null,
      "join": "passed"
    },
    {
      "name": "décide",
      "kind": "engine",
      "op": "grade",
      "source": "speed",
      "tiebreak": "speed",
      "depends_on": [],
      "needs": "any",
      "required": true,
      "isolation": null,
      "join": "all"
    }
  ]
}
"""


def test_the_whole_text_is_canonical() -> None:
    """Every field stands in its place, absent ones are left out, and characters are escaped only where JSON must."""
    workflow = ir.Workflow(
        type="custom",
        result="décide",
        task=(
            ir.CommandTask(name="build", command="printf 'é 😀 \u2028 \x7f \t' \\\n\"x\"\r\x00\b\f\x1b"),
            ir.EvaluateTask(
                name="speed",
                command="./bench.sh",
                threshold=12.0,
                direction="lower",
                depends_on=("build",),
                needs="gpu",
                required=False,
                isolation="worktree",
                join="passed",
                stage="epilogue",
                emits=("score", "pass"),
            ),
            ir.AgentTask(name="ask", prompt="", model="large", session="solver"),
            ir.TopKTask(name="best", k=2, direction="higher", join="passed"),
            ir.EngineTask(name="décide", op="grade", source="speed", tiebreak="speed"),
        ),
    )
    assert canonical.dumps(workflow) == GOLDEN


def test_parameters_keep_their_order_and_types() -> None:
    """Bound values stand before the tasks in declaration order; a list of none is written on one line."""
    params = {"z": "text", "a": 3, "n": -0.0, "f": 3.0, "yes": True, "list": ["x"], "none": []}
    text = canonical.dumps(ir.Workflow(type="playbook", params=params, task=()))
    assert text == (
        '{\n  "type": "playbook",\n  "params": {\n    "z": "text",\n    "a": 3,\n    "n": 0.0,\n    "f": 3.0,\n'
        '    "yes": true,\n    "list": [\n      "x"\n    ],\n    "none": []\n  },\n  "task": []\n}\n'
    )
    assert '"params": {},' in canonical.dumps(ir.Workflow(type="playbook", params={}, task=()))


def test_the_digest_is_that_of_the_bytes() -> None:
    """The identity of a workflow is the sha256 of its canonical text in UTF-8."""
    workflow = ir.Workflow(type="custom", result="é", task=())
    written = b'{\n  "type": "custom",\n  "result": "\xc3\xa9",\n  "task": []\n}\n'
    assert canonical.digest(workflow) == hashlib.sha256(written).hexdigest()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "0.0"),
        (5.0, "5.0"),
        (12.0, "12.0"),
        (12.5, "12.5"),
        (-12.5, "-12.5"),
        (0.1, "0.1"),
        (0.30000000000000004, "0.30000000000000004"),
        (0.00001, "0.00001"),
        (0.000012, "0.000012"),
        (0.0001, "0.0001"),
        (1e-6, "1e-6"),
        (9.99e-6, "9.99e-6"),
        (-1.5e-7, "-1.5e-7"),
        (1e15, "1000000000000000.0"),
        (123456789012345.6, "123456789012345.6"),
        (9007199254740993.0, "9007199254740992.0"),
        (9999999999999998.0, "9999999999999998.0"),
        (1e16, "1e16"),
        (1.2345e16, "1.2345e16"),
        (1e22, "1e22"),
        (1.5e300, "1.5e300"),
        (1.7976931348623157e308, "1.7976931348623157e308"),
        (5e-324, "5e-324"),
        (2.2250738585072014e-308, "2.2250738585072014e-308"),
    ],
)
def test_a_float_has_one_text(value: float, text: str) -> None:
    """Plain for a decimal exponent from -5 to 15, otherwise an exponent without plus sign or padding."""
    assert canonical.format_float(value) == text


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_has_no_text(value: float) -> None:
    """JSON has no infinity; writing one is a fault of ours, not an output."""
    with pytest.raises(ValueError, match="not a finite number"):
        canonical.format_float(value)


@given(floats() | st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0]))
def test_a_float_reads_back_from_the_shortest_digits(value: float) -> None:
    """The text reads back to the same float, has no needless digit, and keeps the rule on the exponent."""
    if not math.isfinite(value):
        return
    text = canonical.format_float(value)
    assert isinstance(json.loads(text), float)
    assert json.loads(text) == value
    if value == 0:
        assert text == "0.0"
        return
    mantissa, _, exponent = text.removeprefix("-").partition("e")
    assert len(_significant(text)) == len(_significant(repr(value)))
    first_digit_exponent = Decimal(text).adjusted()
    assert bool(exponent) is not (-5 <= first_digit_exponent < 16)
    if exponent:
        assert exponent == str(int(exponent)) == str(first_digit_exponent)
        assert "." not in mantissa or not mantissa.endswith("0")
    else:
        assert "." in mantissa


@pytest.mark.parametrize("value", [b"x", (1,), {1}, 1j])
def test_what_is_not_plain_data_has_no_text(value: object) -> None:
    """A value that another reader could not give back is a fault of ours."""
    with pytest.raises(TypeError, match="not plain data"):
        canonical.write_value({"x": [value]})


def _significant(text: str) -> str:
    return text.lower().partition("e")[0].lstrip("-").replace(".", "").strip("0")


@given(VALUES)
def test_plain_data_reads_back_equal_and_in_order(value: object) -> None:
    """Any JSON reader gets back the value, its types and the order of its keys."""
    text = canonical.write_value(value)
    assert _with_types(json.loads(text)) == _with_types(value)
    assert "\r" not in text
    assert [line for line in text.split("\n") if line != line.rstrip(" ")] == []


def _with_types(value: object) -> object:
    """Return a value that tells 1 from 1.0 and True, and one order of keys from another."""
    if isinstance(value, dict):
        return [(key, _with_types(item)) for key, item in value.items()]
    if isinstance(value, list):
        return ["list", *map(_with_types, value)]
    return (type(value), value)


@given(st.text(st.characters(max_codepoint=0x9F)))
def test_control_characters_are_escaped_in_the_short_form(text: str) -> None:
    """Below U+0020 only escapes occur, the short one where JSON has it; all else stands as itself."""
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    expected = "".join(short.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in text)
    assert canonical.write_value(text) == f'"{expected}"'


@given(workflows())
def test_a_workflow_reads_back_equal(workflow: ir.Workflow) -> None:
    """The canonical JSON of any workflow, read by any JSON reader, is the workflow that was written."""
    text = canonical.dumps(workflow)
    assert ir.read(json.loads(text)) == (workflow, [])
    assert text.encode().decode() == text
    assert text.endswith("}\n")


@given(compiled_workflows())
def test_what_is_written_is_taken_as_canonical(workflow: ir.Workflow) -> None:
    """The strict reader finds nothing missing and nothing needless in what the writer wrote."""
    assert ir.read(json.loads(canonical.dumps(workflow)), canonical=True) == (workflow, [])


@given(VALUES)
def test_the_layout_is_two_blanks_a_level(value: object) -> None:
    """The standard library's writer, where both write the same numbers, gives the same text."""
    same_numbers = json.loads(json.dumps(value), parse_float=lambda _: 0.5)
    assert canonical.write_value(same_numbers) == json.dumps(same_numbers, indent=2, ensure_ascii=False)

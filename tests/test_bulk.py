"""The ceilings of data files: what a text holds is counted before anything is built from it."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.compiler import bulk, json_text, toml_text
from crucible.compiler.facts import ManifestFacts
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.manifest import decode
from crucible.compiler.pipeline import compile_source
from crucible.compiler.positions import Node
from crucible.schemas import ir
from crucible.schemas.diagnostic import At, Diagnostic
from crucible.schemas.span import Span

TASK = {"name": "a", "kind": "command", "command": "true"}


def custom(*tasks: dict[str, Any], **keys: Any) -> str:
    """Return IR in JSON."""
    return json.dumps({"type": "custom", **keys, "task": tasks})


def found(text: str, name: str = "workflow.json") -> list[Diagnostic]:
    """Return what a compile of a text says."""
    return compile_source(text.encode(), name).diagnostics


PASSED = {
    "lists": ("[" + "{}," * 200_000, "keys, values and comments of one text may be at most 100,000", (1, 299_999)),
    "names": ('["a"' + ',"b"' * 200_000, "keys, values and comments", (1, 399_998)),
    "keys": ("a=1\n" * 60_000, "keys, values and comments", (50_001, 1)),
    "headers": ("[[a]]\n" * 100_000, "keys, values and comments", (33_334, 2)),
    "comments": ("\ufeff#\n" + "#\n" * 100_000, "keys, values and comments", (100_001, 1)),
    "comments behind a mark": ("\ufeffx=1 " + "#\n" * 100_000, "keys, values and comments", (99_999, 1)),
    "parts": ("é" + ".a" * 65 + "=1", "parts of a dotted key may be at most 64", (1, 130)),
    "parts in quotes": ("x=1\n[" + " 'é' . " * 65 + "a]", "parts of a dotted key", (2, 455)),
    "one string": ('x="' + "a" * (4 << 20), "one string may be at most 4,194,304 characters as written", (1, 3)),
    "one text": ("x='''" + "a\n" * (2 << 17) + "''''" + "a" * (4 << 20), None, None),
    "a long text": ("x='''" + "a\n\n" * (1 << 18) + "a'''", None, None),
    "lines": ("\n" * 524_289, "lines of one text may be at most 524,288; this has 524,289", (524_289, 1)),
    "wide": (" \U0001f600" + " " * ((1 << 23) + 300), "characters beyond U+FFFF may have at most 8,388,608", (1, 2)),
}


@pytest.mark.parametrize(("text", "message", "place"), PASSED.values(), ids=PASSED)
def test_what_passes_a_ceiling_is_told_at_its_place(
    text: str, message: str | None, place: tuple[int, int] | None
) -> None:
    """By whoever reads the bytes of a data file, before a reader has them."""
    read, diagnostics = decode(text.encode(), "crucible.toml")
    if message is None:
        assert (read, diagnostics) == (text, [])
        return
    assert read is None
    (diagnostic,) = diagnostics
    assert diagnostic.code == "limit-exceeded"
    assert diagnostic.message.startswith(message) or message in diagnostic.message
    assert diagnostic.span is not None
    assert diagnostic.span.begin == place


def test_what_people_and_compilers_write_passes() -> None:
    """A thousand tasks with all elements that a source may have; sixteen times the prompts of a source."""
    tasks = [{**TASK, "name": f"t{n}", "depends_on": [f"t{other}" for other in range(n - 65, n)]} for n in range(1_000)]
    every = ir.to_plain(ir.read({"type": "custom", "task": tasks})[0] or pytest.fail("no workflow"))
    assert bulk.excess(json.dumps(every, indent=2)) is None
    prompt = "a line\n" * (LIMITS.prompt_bytes // 7)
    assert bulk.excess(json.dumps([prompt] * 60)) is None
    quoted = "".join(f'p{n} = """\n{prompt}"""\n' for n in range(4))
    assert bulk.excess(quoted) is None


def count(node: Node) -> int:
    """Count the nodes of a tree."""
    return 1 + sum(map(count, node.children.values()))


SIGNS = st.sampled_from([
    *"abc1.-_= \n\t,:#'\"\\[]{}é", '"""', "'''", "\r\n", "[[a]]\n", "a.b = 1\n", '"a":1,', "\\u0041", "x = ", " # ",
    "2000-01-01 10:00:00", "null", '""""', "'' ", '""',
])  # fmt: skip


@given(text=st.lists(SIGNS, max_size=40).map("".join), least=st.integers(0, 12))
def test_no_reader_keeps_more_than_was_counted(*, text: str, least: int) -> None:
    """Of whatever text, sound or broken: nodes, statements and comments stay below the ceiling that it passed."""
    if bulk.excess(text, LIMITS._replace(data_items=least)) is not None:
        return
    layout = toml_text.scan(text)
    assert count(layout.positions._root) - 1 <= least
    assert len(layout.statements) + len(layout.comments) <= least
    assert count(json_text.read(text, "f")[1]._root) - 1 <= least


def test_a_string_of_nothing_but_escapes_is_read_in_little_memory() -> None:
    """A million of them; to remember each would take a hundred times the text."""
    resource = pytest.importorskip("resource")
    text = json.dumps("\n" * 1_500_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert json_text.read(text, "f")[0] == "\n" * 1_500_000
    unit = 1 if sys.platform == "darwin" else 1024
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit < 60 * len(text) / 2


MANY = {
    "wrong elements": custom({**TASK, "depends_on": [1] * 5_000}),
    "unknown tasks": custom({**TASK, "depends_on": [f"u{n}" for n in range(5_000)]}),
    "keys of a task": custom({**TASK, **{f"k{n}": 1 for n in range(5_000)}}),
    "keys of a workflow": custom(TASK, **{f"k{n}": 1 for n in range(5_000)}),
    "parameters": custom(TASK, params={f"k{n}": None for n in range(5_000)}),
    "tasks": custom(*[{}] * 1_001),
    "repeated keys": '{"a":1' + ',"a":1' * 5_000 + "}",
}


@pytest.mark.parametrize("text", MANY.values(), ids=MANY)
def test_a_thousand_mistakes_are_reported(text: str) -> None:
    """The first ones, and that there are more."""
    diagnostics = found(text)
    assert len(diagnostics) == LIMITS.mistakes + 1
    message = "mistakes reported in one run may be at most 1,000; there are more"
    assert diagnostics[-1] == Diagnostic("limit-exceeded", message, "workflow.json")
    assert "limit-exceeded" not in {each.code for each in diagnostics[:-1]}


def test_reading_stops_where_nobody_reads_on() -> None:
    """Findings are made as far as they are reported, not for all that is wrong."""
    for keys in ({"depends_on": [1] * 5_000}, {"k": 1, "l": 1}, {f"k{n}": 1 for n in range(5_000)}):
        rows = [{**TASK, **keys}] * ir.MOST_TASKS
        workflow, findings = ir.read({"type": "custom", "task": rows})
        assert workflow is None
        assert len(findings) <= 2 * ir.MOST_FINDINGS + 2


def test_more_tasks_than_anybody_writes_are_refused() -> None:
    """At the first that is too many."""
    tasks = [{**TASK, "name": f"t{n}"} for n in range(1_025)]
    assert found(custom(*tasks[:-1])) == []
    text = json.dumps({"type": "custom", "task": tasks}, indent=None)
    (diagnostic,) = found(text)
    message = "tasks written by hand may be at most 1,024; these are 1,025"
    assert (diagnostic.code, diagnostic.message) == ("limit-exceeded", message)
    begin = text.index('{"name": "t1024"') + 1
    assert diagnostic.span is not None
    assert diagnostic.span.begin == (1, begin)


LONG = "x" * 300
WORDS = {
    "name": ({"name": LONG}, "invalid-name", At(0, "name")),
    "dependency": ({"depends_on": ["b", LONG]}, "limit-exceeded", At(0, "depends_on", 1)),
    "needs": ({"needs": LONG}, "limit-exceeded", At(0, "needs")),
    "join": ({"join": LONG}, "limit-exceeded", At(0, "join")),
    "kind": ({"kind": LONG}, "limit-exceeded", At(0, "kind")),
}


@pytest.mark.parametrize(("keys", "code", "at"), WORDS.values(), ids=WORDS)
def test_a_word_has_an_end(keys: dict[str, Any], code: str, at: At) -> None:
    """Its value is left out, so that no other message repeats it; prompts, commands and parameters are no words."""
    plain = {"type": "playbook", "params": {"p": LONG, "q": [LONG]}, "task": [{**TASK, "command": LONG, **keys}]}
    workflow, findings = ir.read(plain)
    assert [(each.code, each.at) for each in findings] == [(code, at)]
    assert workflow is not None
    assert LONG not in [workflow.task[0].name, *workflow.task[0].depends_on, workflow.task[0].needs]


def test_no_message_repeats_a_text_without_end() -> None:
    """Neither of a key nor of a value."""
    long = "x" * 100_000
    text = custom({**TASK, long: 1, "name": long}, **{long: 1, "result": long, "params": {long: None}})
    diagnostics = found(text)
    assert {each.code for each in diagnostics} == {"unknown-key", "invalid-name", "limit-exceeded", "wrong-type"}
    assert max(len(each.message) for each in diagnostics) < 1_000


def test_the_facts_of_a_manifest_keep_the_ceilings(tmp_path: Path) -> None:
    """It is none, beside whatever source it stands; so is one whose keys have parts without end."""
    manifest = tmp_path / "crucible.toml"
    for text in ("x=1\n" * 100_000, ".".join(["a"] * 30_000) + "=1\n"):
        manifest.write_text('[judge]\ndirection = "lower"\n[x]\n' + text)
        assert ManifestFacts(str(manifest)).judge_direction() is None
    manifest.write_text('[judge]\ndirection = "lower"\n')
    assert ManifestFacts(str(manifest)).judge_direction() == "lower"


def test_a_place_behind_a_mark_is_counted_without_it() -> None:
    """In the first line alone."""
    limits = Span.of(1, 5, 1, 6)
    text = "\ufeffa = '" + "x" * LIMITS.data_string + "'"
    assert decode(text.encode(), "f")[1][0].span == limits

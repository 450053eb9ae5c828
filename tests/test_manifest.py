"""The manifest: its block is written in place, all else stays, and IR by hand has places."""

import json
from itertools import product
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import toml_parts, workflows

from crucible.compiler import manifest
from crucible.compiler.manifest import Reference, materialise, read_workflow, stale
from crucible.schemas.canonical import dumps
from crucible.schemas.diagnostic import At, Diagnostic, Finding
from crucible.schemas.ir import AgentTask, CommandTask, EvaluateTask, Workflow
from crucible.schemas.span import Span

ONE = Workflow(type="custom", result="new", task=(CommandTask(name="new", command="true"),))
GENERATED = "# Generated from workflow.star by crucible plan compile-workflow; edit that file instead.\n"
BLOCK = (
    GENERATED
    + """\
[workflow]
type = "custom"
result = "new"

[[workflow.task]]
name = "new"
kind = "command"
command = "true"
depends_on = []
needs = "any"
required = true
join = "all"
"""
)


def made(text: str, content: Workflow | Reference = ONE) -> str:
    """Materialise a workflow into a text that must take it."""
    result = materialise(text, "crucible.toml", content, "workflow.star")
    assert result.diagnostics == []
    assert result.text is not None
    return result.text


# The form of the block


def test_every_field_has_its_place_and_its_form() -> None:
    """Fields stand in the order of the IR, null ones are left out, a prompt of several lines stays readable."""
    workflow = Workflow(
        type="playbook",
        result="judge",
        params={"url": "x", "two words": 1, "some": ["a", "b"], "share": 0.5, "dry": False},
        task=(
            AgentTask(name="solve", prompt='Say "hi".\n\tThen\\stop.\n', model="m", session="s", required=False),
            AgentTask(name="apart", prompt="one line", isolation="worktree", stage="epilogue", emits=("a", "b")),
            EvaluateTask(
                name="judge",
                command="a\nb",
                threshold=1e16,
                direction="lower",
                depends_on=("solve", "apart"),
                needs="gpu",
                join="passed",
            ),
        ),
    )
    assert manifest.render_block(workflow, "w.star") == (
        """\
# Generated from w.star by crucible plan compile-workflow; edit that file instead.
[workflow]
type = "playbook"
result = "judge"

[workflow.params]
url = "x"
"two words" = 1
some = ["a", "b"]
share = 0.5
dry = false

[[workflow.task]]
name = "solve"
kind = "agent"
prompt = \"\"\"
Say "hi".
	Then\\\\stop.
\"\"\"
model = "m"
depends_on = []
session = "s"
needs = "any"
required = false
join = "all"

[[workflow.task]]
name = "apart"
kind = "agent"
prompt = "one line"
depends_on = []
needs = "any"
required = true
isolation = "worktree"
join = "all"
stage = "epilogue"
emits = ["a", "b"]

[[workflow.task]]
name = "judge"
kind = "evaluate"
command = "a\\nb"
threshold = 1e16
direction = "lower"
depends_on = ["solve", "apart"]
needs = "gpu"
required = true
join = "passed\""""
    )


def test_a_playbook_with_parameters_is_a_reference() -> None:
    """What depends on a launch is not compiled ahead of it: the block names the source."""
    reference = Reference("flows/workflow.star")
    text = made("", reference)
    assert text == GENERATED + '[workflow]\ntype = "playbook"\nfile = "flows/workflow.star"\n'
    assert read_workflow(text, "crucible.toml", "toml")[:2] == (reference, [])


def test_a_source_name_cannot_break_out_of_its_comment() -> None:
    """A file may have any name; the comment is one line of text."""
    text = manifest.render_block(ONE, 'a\n[b]\x00\udc80"é.star')
    assert text.splitlines()[0].startswith('# Generated from a?[b]??"é.star by ')


@given(workflows(), st.sampled_from(["\n", "\r\n"]))
def test_toml_reads_back_equal(workflow: Workflow, newline: str) -> None:
    """Every string survives byte for byte and every number is the same, in files of either line end."""
    text = made(f"# {newline}", workflow)
    assert text.count("\n") == text.count(newline)
    assert read_workflow(text, "crucible.toml", "toml")[:2] == (workflow, [])


@given(workflows())
def test_json_reads_back_equal(workflow: Workflow) -> None:
    """The canonical JSON is read without loss."""
    assert read_workflow(dumps(workflow), "w.json", "json")[:2] == (workflow, [])


@pytest.mark.parametrize(
    "prompt",
    ['"', '""', '"""', '""""""', "'''\n", '\n"', '\n""', 'a\n"""', 'a\n""""', "\n", "\r\n", "a\r", "\\\n", " \n \n"],
)
def test_quotes_and_line_ends_survive(prompt: str) -> None:
    """A prompt cannot close its own string or lose a character at either end of it."""
    workflow = Workflow(type="custom", task=(AgentTask(name="a", prompt=prompt),))
    for text, newline in ((made("", workflow), "\n"), (made("\r\n", workflow), "\r\n")):
        assert text.count("\n") == text.count(newline)
        assert read_workflow(text, "crucible.toml", "toml")[0] == workflow


# The block in its place

OLD = """\
# top comment
[repo]            # keep me
path = "."

# about the workflow
[workflow]
type = "custom"
result = "old"
[[workflow.task]]
name = "old"
kind = "command"
command = "true"

# about the budget
[budget]
usd = 5.0
"""


def test_only_the_block_changes() -> None:
    """What stands before and behind stays, the author's comment above included, and a second run changes nothing."""
    before, _, rest = OLD.partition("[workflow]")
    after = rest.partition("\n\n# about the budget")
    assert made(OLD) == before + BLOCK.rstrip("\n") + "".join(after[1:])
    assert made(made(OLD)) == made(OLD)


@pytest.mark.parametrize(
    ("old", "before"),
    [
        ("", ""),
        ("a = 1", "a = 1\n\n"),
        ("a = 1\n", "a = 1\n\n"),
        ("a = 1\n\n", "a = 1\n\n"),
        ("a = 1\n \t\n", "a = 1\n \t\n"),
        ("\n", "\n"),
        ("# [workflow]\n", "# [workflow]\n\n"),
        ("a = '''\n[workflow]\n'''\n", "a = '''\n[workflow]\n'''\n\n"),
        ("[a]\nworkflow.type = 1\n", "[a]\nworkflow.type = 1\n\n"),
        ("[a.workflow]\n[workflows]\n", "[a.workflow]\n[workflows]\n\n"),
        ("\ufeff", "\ufeff"),
        ("\ufeffa = 1", "\ufeffa = 1\n\n"),
        ("a = 1\r\n", "a = 1\r\n\r\n"),
        ("a = 1\r\n\r\n", "a = 1\r\n\r\n"),
        ("\ufeffa = 1\r\nb = 2", "\ufeffa = 1\r\nb = 2\r\n\r\n"),
        ("a = 1\nb = 2\r\n", "a = 1\nb = 2\r\n\n"),
    ],
)
def test_a_manifest_without_the_block_gets_it_at_its_end(old: str, before: str) -> None:
    """One blank line stands before it, in the line end of the file's first line."""
    newline = "\r\n" if "\r\n" in before.partition("\n")[0] + "\n" else "\n"
    assert made(old) == before + BLOCK.replace("\n", newline)
    assert made(made(old)) == made(old)


@pytest.mark.parametrize(
    "old",
    [
        "[workflow]",
        '["workflow"]\ntype = "custom"',
        "  [ 'workflow' ] # mine\n",
        '["work\\u0066low"]',
        "[[ \"workflow\" . 'task' ]]\nname = 'x'\n\n# gone\n[workflow]\ntype = 'custom'",
        "[workflow]\ntask = [\n  {name = 'x'}, # gone\n]\n[workflow.x]\n[workflow.x.y]\na.b = '''\n[budget]\n'''",
        "[[workflow]]\n[[workflow]]",
        GENERATED + "[workflow]",
        GENERATED.replace("workflow.star", "another file.star") + "[workflow]",
        GENERATED.rstrip("\n") + "  \n[workflow]",
    ],
)
def test_the_block_is_replaced_where_it_stands(old: str) -> None:
    """However its headers are spelled, the run of them is the block, and one generated comment leads it."""
    befores = ("", "# mine\n", "a = 1\n\n# mine\n\n", "[a]\nb = '''\n" + GENERATED + "'''\n")
    afters = ("", "\n", "\n\n# behind\n", "\n\n# about\n[budget]\nusd = nan", "\n[c.workflow]\n")
    for before, after, mark, newline in product(befores, afters, ("", "\ufeff"), ("\n", "\r\n")):
        text = mark + (before + old.rstrip("\n") + after).replace("\n", newline)
        wanted = mark + (before + BLOCK.rstrip("\n") + after).replace("\n", newline)
        if "\n" not in text:
            wanted = wanted.replace("\r\n", "\n")
        assert made(text) == wanted
        assert made(wanted) == wanted


def test_a_generated_comment_that_is_not_directly_above_is_an_authors() -> None:
    """What somebody moved away is his, and so is one behind a value."""
    for before in (GENERATED + "\n", "a = 1 " + GENERATED):
        assert made(before + "[workflow]\n") == before + BLOCK


@st.composite
def manifests(draw: st.DrawFn) -> tuple[str, str, str]:
    """Give a manifest in three parts: what precedes the block, an old block or none, what follows it."""
    parts = draw(toml_parts())
    place = draw(st.integers(1, len(parts)))
    old = draw(st.sampled_from(["", "[workflow]", "[ 'workflow' ]\ntype = 'x' # y\n\n[[workflow.task]]\na = '''\n'''"]))
    comment = draw(st.sampled_from(["", "# mine\n"]))
    before, after = "".join(parts[:place]) + comment, ("\n" if old else "") + "".join(parts[place:])
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    if draw(st.booleans()):
        after = after.removesuffix("\n")
    mark = draw(st.sampled_from(["", "\ufeff"]))
    return mark + before.replace("\n", newline), old.replace("\n", newline), after.replace("\n", newline)


@given(manifests(), workflows())
def test_every_character_outside_the_block_stays(parts: tuple[str, str, str], workflow: Workflow) -> None:
    """Whatever a manifest holds and wherever its block stands, nothing else changes, once and twice."""
    before, old, after = parts
    text = before + old + after
    new = made(text, workflow)
    newline = "\r\n" if "\r" in text else "\n"
    block = manifest.render_block(workflow, "workflow.star", newline)
    if old:
        assert new == before + block + after
    else:
        assert new.startswith(text)
        assert new.endswith(block + newline)
        assert not new[len(text) : -len(block + newline)].strip()
    assert made(new, workflow) == new


def test_comments_that_the_block_loses_are_named() -> None:
    """Who wrote into the generated lines is told what goes, with the line; comments above and behind stay."""
    text = "# above\n" + BLOCK.replace('name = "new"', '# inside\nname = "new" # beside') + "# behind\n"
    result = materialise(text, "p/crucible.toml", ONE, "workflow.star")
    assert result.text == "# above\n" + BLOCK + "# behind\n"
    assert [note.partition(": ")[0] for note in result.notes] == ["p/crucible.toml:8", "p/crucible.toml:9"]
    assert [note.rpartition(": ")[2] for note in result.notes] == ["# inside", "# beside"]
    assert materialise(result.text, "p/crucible.toml", ONE, "workflow.star").notes == []


@pytest.mark.parametrize(
    ("text", "span", "shown"),
    [
        ('\n  workflow.type = "custom" # x\n', Span.of(2, 3, 2, 27), "dotted keys"),
        ('"workflow".task = [\n]\n', Span.of(1, 1, 1, 20), "dotted keys"),
        ('a = 1\r\nworkflow = { type = "custom" }\r\n', Span.of(2, 1, 2, 31), "one value"),
        ("[workflow]\n[budget]\n# c\n[[workflow.task]]\n", Span.of(4, 1, 4, 18), "[budget] interrupts"),
    ],
)
def test_a_form_that_is_no_block_is_refused_at_its_line(text: str, span: Span, shown: str) -> None:
    """What cannot be replaced as one piece of text is left to its author."""
    result = materialise(text, "crucible.toml", ONE, "workflow.star")
    assert result.text is None
    [diagnostic] = result.diagnostics
    assert (diagnostic.code, diagnostic.file, diagnostic.span) == ("workflow-not-a-block", "crucible.toml", span)
    assert shown in diagnostic.message
    assert stale(text, "crucible.toml", ONE, "workflow.star") == (result.diagnostics, "")


def test_a_manifest_that_is_no_toml_is_refused() -> None:
    """A broken manifest gets a place and no block."""
    result = materialise("[repo\n", "crucible.toml", ONE, "workflow.star")
    assert result.text is None
    assert [diagnostic.code for diagnostic in result.diagnostics] == ["toml-syntax"]


def test_nesting_that_the_reader_takes_the_proof_takes_too() -> None:
    """The ceiling of nesting lies below what any of the libraries can recurse."""
    deep = f"x = {'[' * 63}{']' * 63}\ny = {'{a=' * 63}1{'}' * 63}\n{'.'.join('k' * 64)} = 1\n[{'.'.join('h' * 64)}]\n"
    assert made(deep) == deep + "\n" + BLOCK


# --check


def test_a_current_manifest_is_not_stale() -> None:
    """What materialising would leave alone is fine."""
    assert stale(made(OLD), "crucible.toml", ONE, "workflow.star") == ([], "")


def test_a_stale_manifest_is_shown_at_its_header_with_a_diff() -> None:
    """The diagnostic stands at the header; the diff is what a run would change."""
    text = "[repo]\n" + BLOCK.replace('"true"', '"false"').removesuffix("\n")
    [diagnostic], diff = stale(text, "p/crucible.toml", ONE, "workflow.star")
    assert (diagnostic.code, diagnostic.file) == ("stale-workflow", "p/crucible.toml")
    assert diagnostic.span == Span.of(3, 1, 3, 11)
    assert diff == (
        "--- p/crucible.toml\n+++ p/crucible.toml (compiled)\n@@ -7,7 +7,7 @@\n [[workflow.task]]\n"
        ' name = "new"\n kind = "command"\n-command = "false"\n+command = "true"\n depends_on = []\n'
        ' needs = "any"\n required = true\n'
    )


def test_a_diff_splits_at_line_feeds_alone() -> None:
    """What only looks like a line end to some readers stays inside its line."""
    text = "a = '\u2028 \x85'\r\n" + BLOCK.replace("\n", "\r\n") + "[z]\r\n"
    diff = stale(text, "crucible.toml", ONE, "w.star")[1]
    assert diff.split("\n")[3] == " a = '\u2028 \x85'\r"


def test_a_manifest_without_a_block_is_stale_without_a_place() -> None:
    """What is not there has no header to point at."""
    [diagnostic], diff = stale("a = 1", "crucible.toml", ONE, "workflow.star")
    assert (diagnostic.code, diagnostic.file, diagnostic.span) == ("stale-workflow", "crucible.toml", None)
    assert "-a = 1\n\\ No newline at end of file\n+a = 1\n" in diff


# The workflow as data

BY_HAND = """\
[workflow]
type = "custom"
results = "b"
[[workflow.task]]
name = "a"
kind = "command"
command = "true"
depends_on = ["x", 3]
[[workflow.task]]
kind = "command"
nmae = "b"
"""
BY_HAND_JSON = """\
{
  "results": "b",
  "task": [
    {"name": "a", "kind": "command", "command": "true", "depends_on": ["x", 3]},
    {"kind": "command", "nmae": "b"}
  ]
}
"""


def places_of(text: str, kind: Literal["toml", "json"]) -> manifest.Places:
    """Return the places of a workflow that need not be right."""
    places = read_workflow(text, "f", kind)[2]
    assert places is not None
    return places


@pytest.mark.parametrize(
    ("at", "toml", "json_"),
    [
        (At(), Span.of(1, 1, 1, 11), Span.of(1, 1, 1, 2)),
        (At(None, "results", part="key"), Span.of(3, 1, 3, 8), Span.of(2, 3, 2, 12)),
        (At(None, "results"), Span.of(3, 11, 3, 14), Span.of(2, 14, 2, 17)),
        (At(None, "result"), Span.of(1, 1, 1, 11), Span.of(1, 1, 1, 2)),
        (At(0), Span.of(5, 8, 5, 11), Span.of(4, 14, 4, 17)),
        (At(0, "depends_on"), Span.of(8, 14, 8, 22), Span.of(4, 71, 4, 79)),
        (At(0, "depends_on", 1), Span.of(8, 20, 8, 21), Span.of(4, 77, 4, 78)),
        (At(0, "depends_on", 9), Span.of(8, 14, 8, 22), Span.of(4, 71, 4, 79)),
        (At(0, "join"), Span.of(5, 8, 5, 11), Span.of(4, 14, 4, 17)),
        (At(1), Span.of(9, 1, 9, 18), Span.of(5, 5, 5, 6)),
        (At(1, "nmae", part="key"), Span.of(11, 1, 11, 5), Span.of(5, 25, 5, 31)),
        (At(None, "task", 1), Span.of(9, 1, 9, 18), Span.of(5, 5, 5, 37)),
        (At(None, "task"), Span.of(4, 12, 4, 16), Span.of(3, 11, 6, 4)),
    ],
)
def test_a_place_of_a_workflow_is_a_span(at: At, toml: Span, json_: Span) -> None:
    """A field is its value, a task its name or its header, and what is not written its table."""
    assert places_of(BY_HAND, "toml").resolve(at) == toml
    assert places_of(BY_HAND_JSON, "json").resolve(at) == json_


def summary(diagnostics: list[Diagnostic]) -> list[tuple[str, Span | None, str | None]]:
    """Return code, place and suggestion of each diagnostic."""
    return [(each.code, each.span, each.suggestion and each.suggestion.replacement) for each in diagnostics]


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        (
            BY_HAND,
            "toml",
            [
                ("unknown-key", Span.of(3, 1, 3, 8), "result"),
                ("wrong-type", Span.of(8, 20, 8, 21), None),
                ("unknown-key", Span.of(11, 1, 11, 5), "name"),
                ("missing-key", Span.of(9, 1, 9, 18), None),
            ],
        ),
        (
            BY_HAND_JSON,
            "json",
            [
                ("unknown-key", Span.of(2, 3, 2, 12), '"result"'),
                ("wrong-type", Span.of(4, 77, 4, 78), None),
                ("unknown-key", Span.of(5, 25, 5, 31), '"name"'),
                ("missing-key", Span.of(5, 5, 5, 6), None),
            ],
        ),
        (
            "[workflow]\n[[workflow.task]]\nname = 'a'\nkind = 'command'\n",
            "toml",
            [("missing-key", Span.of(2, 1, 2, 18), None)],
        ),
        ('{"task": [{"name": "a", "kind": "command"}]}', "json", [("missing-key", Span.of(1, 11, 1, 12), None)]),
        ("[workflow]\ntype = 'custon'\ntask = []\n", "toml", [("unknown-value", Span.of(2, 8, 2, 16), '"custom"')]),
        ("workflow = 3\n", "toml", [("wrong-type", Span.of(1, 12, 1, 13), None)]),
        ("workflow.type = 'custom'\n", "toml", [("missing-key", Span.of(1, 1, 1, 9), None)]),
        ("[[workflow]]\n", "toml", [("wrong-type", Span.of(1, 3, 1, 11), None)]),
        ("[workflow]\ntask = [3]", "toml", [("wrong-type", Span.of(2, 9, 2, 10), None)]),
        ("[]", "json", [("wrong-type", Span.of(1, 1, 1, 2), None)]),
        ("[workflow\n", "toml", [("toml-syntax", Span.of(1, 10, 1, 10), None)]),
        ('{"a": 1,}', "json", [("json-syntax", Span.of(1, 8, 1, 9), None)]),
    ],
)
def test_ir_by_hand_is_judged_at_its_places(
    text: str, kind: Literal["toml", "json"], expected: list[tuple[str, Span, str | None]]
) -> None:
    """Every finding has the place that codes.md gives it, and a suggestion that fits the text there."""
    _, diagnostics, _ = read_workflow(text, "f", kind)
    assert [entry for entry in summary(diagnostics) if entry in expected] == expected


def test_a_manifest_without_a_workflow_is_no_mistake() -> None:
    """The default loop stands in for it; that is for others to say."""
    workflow, diagnostics, places = read_workflow("[repo]\n", "crucible.toml", "toml")
    assert (workflow, diagnostics) == (None, [])
    assert places is not None


def test_findings_of_the_rules_become_diagnostics() -> None:
    """A finding and what is related to it get their spans in the one file."""
    places = places_of(BY_HAND, "toml")
    finding = Finding("unknown-task", "no", At(0, "depends_on", 0), (("see", At(1)),), "a")
    [diagnostic] = manifest.to_diagnostics([finding], places, "crucible.toml")
    assert diagnostic.span == Span.of(8, 15, 8, 18)
    assert diagnostic.suggestion == ('"a"', "crucible.toml", diagnostic.span)
    assert diagnostic.related == (("see", "crucible.toml", Span.of(9, 1, 9, 18)),)


@pytest.mark.parametrize(
    ("table", "code", "span"),
    [
        ("file = 'w.star'", "missing-key", Span.of(1, 1, 1, 11)),
        ("type = 'custom'\nfile = 'w.star'", "unknown-value", Span.of(2, 8, 2, 16)),
        ("type = 'playbook'\nfile = 3", "wrong-type", Span.of(3, 8, 3, 9)),
        ("type = 'playbook'\nfile = 'w.star'\nresult = 'x'", "unknown-key", Span.of(4, 1, 4, 7)),
        ("type = 'playbook'\nfile = 'w.star'\ntask = []", "exclusive-keys", Span.of(4, 1, 4, 5)),
        ("type = 'playbook'\ntask = []\nfile = 'w.star'", "exclusive-keys", Span.of(4, 1, 4, 5)),
    ],
)
def test_a_reference_has_a_type_and_a_file_and_nothing_else(table: str, code: str, span: Span) -> None:
    """What is compiled at launch has no tasks beside it."""
    content, diagnostics, _ = read_workflow(f"[workflow]\n{table}\n", "crucible.toml", "toml")
    assert content is None
    assert [(each.code, each.span) for each in diagnostics] == [(code, span)]


@pytest.mark.parametrize(
    ("data", "direction"),
    [
        ({"judge": {"direction": "lower"}}, "lower"),
        ({"judge": {"direction": 3}}, None),
        ({"judge": 3}, None),
        ({}, None),
    ],
)
def test_the_judges_direction_is_read(data: dict[str, Any], direction: str | None) -> None:
    """Only the text of it counts; whether it is a direction at all is not asked here."""
    assert manifest.judge_direction(data) == direction


def test_bytes_that_are_no_text_have_a_place() -> None:
    """The byte is named by its offset and shown in its line."""
    assert manifest.decode("\ufeffé".encode(), "crucible.toml") == ("\ufeffé", [])
    text, [diagnostic] = manifest.decode("\ufeff\n é".encode() + b"\xff", "crucible.toml")
    assert (text, diagnostic.code, diagnostic.span) == (None, "source-not-utf8", Span.of(2, 3, 2, 4))
    assert "byte 7" in diagnostic.message


def test_a_source_is_referred_to_by_its_path_below_the_manifest(tmp_path: Path) -> None:
    """However both are spelled, the reference is the same; a source outside is refused."""
    (tmp_path / "pack" / "flows").mkdir(parents=True)
    (tmp_path / "link").symlink_to("pack")
    path = str(tmp_path / "pack" / "crucible.toml")
    for source in ("pack/flows/w.star", "link/flows/../flows/w.star"):
        assert manifest.refer(str(tmp_path / source), path) == (Reference("flows/w.star"), [])
    for source in ("w.star", "packs/w.star"):
        reference, [diagnostic] = manifest.refer(str(tmp_path / source), path)
        assert (reference, diagnostic.code, diagnostic.span) == (None, "path-refused", None)


def test_a_fault_of_ours_is_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that would not read back, or that would change what is around it, is never written."""
    for broken in ('[workflow]\ntype = "custom"\ntask = []', BLOCK + "[budget]\nusd = 1"):
        monkeypatch.setattr(manifest, "render_block", lambda *_, broken=broken: broken)
        with pytest.raises(RuntimeError, match="workflow"):
            made("a = 1\n")


def test_a_block_is_valid_json_data_too() -> None:
    """TOML and JSON of one workflow hold the same data but for nulls."""
    table = manifest.read_manifest(made(""), "crucible.toml")[0]
    assert table is not None
    plain = json.loads(dumps(ONE))
    assert table["workflow"]["task"] == [{k: v for k, v in task.items() if v is not None} for task in plain["task"]]

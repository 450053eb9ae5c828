"""What a run gets from the compiler: a workflow that it may run, its budget, and the facts of a manifest."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
import tomlkit
from compiled import compiled_workflows
from hypothesis import given
from hypothesis import strategies as st
from packs import write

from crucible.compiler import launch, manifest_model, manifest_reading
from crucible.compiler.frontend.pack import Refusal
from crucible.compiler.launch import CannotRead, Launch
from crucible.compiler.manifest import render_block
from crucible.compiler.pipeline import compile_source
from crucible.schemas import ir
from crucible.schemas.canonical import digest, dumps
from crucible.schemas.diagnostic import Diagnostic, has_errors

ONE = ir.CommandTask(name="one", command="true")
TWO = ir.CommandTask(name="two", command="true", depends_on=("one",))
BOTH = ir.Workflow(type="custom", task=(ONE, TWO))
PLAN = 'version = 1\nreason = "why"\n[budget]\nusd = 0.3\n[[task]]\nname = "one"\nkind = "command"\ncommand = "true"\n'
SOURCE = """\
one = command(name = "one", run = "true")
two = command(name = "two", run = "true", depends_on = [one])
workflow(type = "custom", tasks = [one, two])
"""
PLAYBOOK = """\
params = {"topic": {"type": "string", "required": True, "example": "tides"}}
workflow(type = "playbook", tasks = [agent(name = "a", prompt = "Write about " + param("topic"))])
"""
BLOCK = """\
# Generated from workflow.star by crucible plan compile-workflow; edit that file instead.
[workflow]
type = "custom"

[[workflow.task]]
name = "one"
kind = "command"
command = "true"

[[workflow.task]]
name = "two"
kind = "command"
command = "true"
depends_on = ["one"]
"""
SESSION = ir.Workflow(type="custom", task=(ir.AgentTask(name="a", prompt="p", session="s"),))


def here(diagnostic: Diagnostic) -> tuple[str, str | None]:
    """Show a diagnostic: its code and where it begins, file:line:column."""
    if diagnostic.file is None:
        return diagnostic.code, None
    where = "" if diagnostic.span is None else ":{}:{}".format(*diagnostic.span.begin)
    return diagnostic.code, Path(diagnostic.file).name + where


def said(found: Launch) -> list[tuple[str, str | None]]:
    """Show all that is wrong; a launch with an error has no workflow and no other has none."""
    assert (found.workflow is None) == has_errors(found.diagnostics)
    return [here(each) for each in found.diagnostics]


def read(folder: Path, name: str, text: str | bytes, **options: object) -> Launch:
    """Write a file into a folder and read it for a run."""
    write(folder, {name: text})
    return launch.read(str(folder / name), **options)  # type: ignore[arg-type]


# A canonical JSON


@given(compiled_workflows())
def test_every_canonical_json_is_what_the_compiler_makes_of_it(workflow: ir.Workflow) -> None:
    """The short way agrees with the long one wherever it does not leave the answer to it."""
    data = dumps(workflow).encode()
    found = launch.read("w.json", data)
    compiled = compile_source(data, "w.json")
    if found.workflow is None:
        assert found.diagnostics
    else:
        assert found.workflow == workflow
        assert found.digest == digest(workflow) == hashlib.sha256(data).hexdigest()
        assert (found.diagnostics, found.budget, found.manifest) == ([], None, None)
        assert compiled.workflow in (workflow, None)


def test_a_canonical_json_starts_without_what_a_compile_needs(tmp_path: Path) -> None:
    """Nothing that costs milliseconds is imported, with a manifest neither but for the reader of TOML."""
    write(tmp_path, {"w.json": dumps(BOTH), "crucible.toml": '[repo]\npath = "."\n'})
    script = """\
import sys
from crucible.compiler import launch
manifest = sys.argv[2] if len(sys.argv) > 2 else None
assert launch.read(sys.argv[1], manifest=manifest).workflow is not None
print(*sorted(sys.modules))
"""
    heavy = {"networkx", "jsonschema", "tomlkit", "starlark", "lark", "subprocess", "dataclasses", "pathlib", "logging"}
    heavy |= {"asyncio", "tempfile", "inspect", "shutil", "crucible.compiler.pipeline", "crucible.compiler.manifest"}
    for names in (["w.json"], ["w.json", "crucible.toml"]):
        done = subprocess.run([sys.executable, "-c", script, *names], cwd=tmp_path, capture_output=True, check=True)
        loaded = set(done.stdout.decode().split())
        assert loaded & heavy == set()
        assert ("typing" in loaded) == (len(names) == 2)
        assert ("tomllib" in loaded) == (len(names) == 2)


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([ONE, ONE], [("duplicate-task", "w.json:15:15")]),
        ([TWO], [("unknown-task", "w.json:9:9")]),
        ([ONE, TWO.replace(depends_on=("two",))], [("self-dependency", "w.json:19:9")]),
        ([ONE.replace(depends_on=("two",)), TWO], [("dependency-cycle", "w.json:5:15")]),
        ([TWO, ONE], []),
        ([ONE.replace(name="a[b]")], [("invalid-name", "w.json:5:15")]),
        ([ONE, TWO.replace(depends_on=("one", "one"))], [("duplicate-dependency", "w.json:20:9")]),
    ],
)
def test_names_edges_and_cycles_are_checked(
    tmp_path: Path, tasks: list[ir.Task], expected: list[tuple[str, str]]
) -> None:
    """Each mistake is told at its place, as in everything that is written by hand."""
    assert said(read(tmp_path, "w.json", dumps(BOTH.replace(task=tuple(tasks))))) == expected


def test_a_result_that_nobody_bears_is_found(tmp_path: Path) -> None:
    """Also in what looks canonical."""
    assert said(read(tmp_path, "w.json", dumps(BOTH.replace(result="three")))) == [("unknown-task", "w.json:3:13")]


@pytest.mark.parametrize("form", ["compact", "sorted", "marked", "crlf", "defaults left out"])
def test_another_form_of_the_same_json_is_the_same_workflow(tmp_path: Path, form: str) -> None:
    """It takes the long way, and has the same digest."""
    plain = json.loads(dumps(BOTH))
    for task in plain["task"]:
        if form == "defaults left out":
            del task["needs"], task["required"]
    text = {
        "compact": json.dumps(plain),
        "sorted": json.dumps(plain, sort_keys=True, indent=2),
        "marked": "\ufeff" + dumps(BOTH),
        "crlf": dumps(BOTH).replace("\n", "\r\n"),
    }.get(form, json.dumps(plain))
    found = read(tmp_path, "w.json", text)
    assert (said(found), found.workflow, found.digest) == ([], BOTH, digest(BOTH))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ("json-syntax", "w.json:1:1")),
        ("{", ("json-syntax", "w.json:1:1")),
        ("[" * 100_000, ("json-syntax", "w.json:1:65")),
        (b"\xff", ("source-not-utf8", "w.json:1:1")),
        (dumps(BOTH).replace('"type"', '"typ"'), ("unknown-key", "w.json:2:3")),
        (dumps(BOTH).replace('"all"', '"any"', 1), ("unknown-value", "w.json:12:15")),
        (dumps(BOTH).replace("true,", '"yes",', 1), ("wrong-type", "w.json:10:19")),
        (dumps(BOTH).replace('"type"', '"type": "custom",\n  "type"'), ("repeated-key", "w.json:3:3")),
        (dumps(BOTH).replace('"needs": "any"', '"needs": NaN', 1), ("json-syntax", "w.json:9:16")),
    ],
)
def test_what_is_no_workflow_is_told_where(tmp_path: Path, text: str | bytes, expected: tuple[str, str]) -> None:
    """With the place in the file, and never by an exception."""
    assert expected in said(read(tmp_path, "w.json", text))


@given(st.integers(0, 400), st.integers(0, 9), st.binary(max_size=5))
def test_every_text_near_a_canonical_json_is_read_or_refused(begin: int, length: int, other: bytes) -> None:
    """A change of bytes anywhere."""
    data = dumps(BOTH).encode()
    found = launch.read("w.json", data[:begin] + other + data[begin + length :])
    assert (found.workflow is None) == bool(found.diagnostics)


# What the plan runner does not run


def test_an_autoresearch_workflow_is_refused_and_told_where_it_runs(tmp_path: Path) -> None:
    """Its lane and each of its operations are missing; the message names the command that has them."""
    found = read(tmp_path, "workflow.star", "default_autoresearch([])\n")
    assert [code for code, _ in said(found)] == ["missing-capability"] * 5
    assert all(each.message.endswith("; the scored loop does (crucible run)") for each in found.diagnostics)
    assert launch.read("w.json", dumps(_compiled(tmp_path)).encode()).workflow is None


def _compiled(folder: Path) -> ir.Workflow:
    workflow = compile_source((folder / "workflow.star").read_bytes(), str(folder / "workflow.star")).workflow
    assert workflow is not None
    return workflow


@pytest.mark.parametrize("name", ["plan.toml", "w.json"])
def test_an_engine_task_is_refused_in_any_lane(tmp_path: Path, name: str) -> None:
    """At the task, whatever the file."""
    task = ir.EngineTask(name="x", op="propose")
    text = dumps(ir.Workflow(type="custom", task=(task,)))
    if name == "plan.toml":
        text = PLAN.replace('"command"', '"engine"').replace('command = "true"', 'op = "propose"')
    assert said(read(tmp_path, name, text)) == [
        ("missing-capability", f"{name}:6:8" if name == "plan.toml" else "w.json:5:15")
    ]


@pytest.mark.parametrize("name", ["w.json", "plan.toml"])
def test_a_session_needs_agents_that_go_on_with_a_conversation(tmp_path: Path, name: str) -> None:
    """What the command says stands above the manifest; without either they can."""
    text = dumps(SESSION)
    if name == "plan.toml":
        text = PLAN.replace('"command"', '"agent"').replace('command = "true"', 'prompt = "p"\nsession = "s"')
    assert said(read(tmp_path, name, text)) == []
    assert [code for code, _ in said(read(tmp_path, name, text, persist=False))] == ["missing-capability"]
    for agent, admitted in (
        ('backend = "local"', True),
        ('harness = "hermes"', False),
        ('backend = "command"', True),
        ('backend = "command"\nharness = "hermes"', True),
    ):
        write(tmp_path, {"crucible.toml": f'[repo]\npath = "."\n[agent]\n{agent}\n'})
        manifest = str(tmp_path / "crucible.toml")
        assert (said(read(tmp_path, name, text, manifest=manifest)) == []) is admitted
        assert said(read(tmp_path, name, text, manifest=manifest, persist=True)) == []


# The other forms


def test_a_plan_file_brings_its_budget(tmp_path: Path) -> None:
    """In micro-dollars; the digest is that of the canonical JSON of its tasks."""
    found = read(tmp_path, "plan.toml", PLAN)
    assert (said(found), found.budget, found.reason) == ([], 300_000, "why")
    assert found.workflow == ir.Workflow(type="custom", task=(ONE,))
    assert found.digest == digest(found.workflow)
    piped = launch.read("plan.toml", PLAN.encode())
    assert piped == found._replace(path="plan.toml", texts=piped.texts)
    assert said(read(tmp_path, "plan.toml", PLAN.replace("0.3", "0"))) == [("out-of-range", "plan.toml:4:7")]


def test_a_source_is_compiled_and_what_it_prints_is_kept(tmp_path: Path) -> None:
    """As everywhere; its mistakes have their places."""
    found = read(tmp_path, "workflow.star", 'print("hello")\n' + SOURCE)
    assert (said(found), found.workflow, found.digest) == ([], BOTH, digest(BOTH))
    assert [line.rpartition("/")[2] for line in found.printed] == ["workflow.star:1: hello"]
    found = read(tmp_path, "workflow.star", SOURCE.replace("depends_on", "depend_on"))
    assert said(found) == [("unknown-argument", "workflow.star:2:43")]
    assert found.texts[str(tmp_path / "workflow.star")].startswith("one = ")


def test_a_launch_binds_parameters_and_takes_no_example(tmp_path: Path) -> None:
    """A value, a missing one, one that nobody declared; what is compiled has none to bind."""
    found = read(tmp_path, "workflow.star", PLAYBOOK, params=[("topic", "moons")])
    assert said(found) == []
    assert found.workflow is not None
    assert found.workflow.params == {"topic": "moons"}
    assert [code for code, _ in said(read(tmp_path, "workflow.star", PLAYBOOK))] == ["missing-param"]
    found = read(tmp_path, "workflow.star", PLAYBOOK, params=[("topic", "a"), ("x", "b")])
    assert [code for code, _ in said(found)] == ["unknown-param"]
    assert [code for code, _ in said(read(tmp_path, "w.json", dumps(BOTH), params=[("x", "b")]))] == ["unknown-param"]


def test_a_manifest_runs_by_its_block(tmp_path: Path) -> None:
    """With its source beside it, or without; a playbook is compiled for the launch."""
    assert read(tmp_path, "crucible.toml", BLOCK).workflow == BOTH
    write(tmp_path, {"workflow.star": SOURCE})
    assert read(tmp_path, "crucible.toml", BLOCK).workflow == BOTH
    write(tmp_path, {"workflow.star": PLAYBOOK})
    reference = '[workflow]\ntype = "playbook"\nfile = "workflow.star"\n'
    found = read(tmp_path, "crucible.toml", reference, params=[("topic", "moons")])
    assert said(found) == []
    assert found.workflow is not None
    assert found.workflow.params == {"topic": "moons"}


@pytest.mark.parametrize(
    ("source", "block", "expected"),
    [
        (SOURCE.replace("true", "false", 1), BLOCK, [("stale-workflow", "crucible.toml:2:1")]),
        (SOURCE.replace("true", "false", 1), BLOCK.partition("\n")[2], [("stale-workflow", "crucible.toml:1:1")]),
        (SOURCE.replace("run", "ran", 1), BLOCK, [("stale-workflow", "crucible.toml:2:1"), ("unknown-argument", "")]),
        (SOURCE, '[repo]\npath = "."\n', [("stale-workflow", "crucible.toml")]),
        (PLAYBOOK, BLOCK, [("stale-workflow", "crucible.toml:2:1")]),
        (None, '[repo]\npath = "."\n', [("missing-capability", "crucible.toml")]),
        (SOURCE, BLOCK.replace("kind", "knd", 1), [("unknown-key", "crucible.toml:7:1")]),
    ],
)
def test_a_block_that_its_source_has_left_behind_is_not_run(
    tmp_path: Path, source: str | None, block: str, expected: list[tuple[str, str]]
) -> None:
    """A check that somebody wrote is never dropped silently; without either it is the default loop."""
    if source is not None:
        write(tmp_path, {"workflow.star": source})
    found = said(read(tmp_path, "crucible.toml", block))
    assert len(found) >= len(expected)
    assert [(code, place) for code, place in found if (code, place) in expected or (code, "") in expected]
    assert {code for code, _ in found} >= {code for code, _ in expected}
    assert expected[0] in found


def test_a_block_does_not_stand_for_a_source_with_parameters(tmp_path: Path) -> None:
    """Even when it is what the examples give: the source is compiled for each launch."""
    write(tmp_path, {"workflow.star": PLAYBOOK})
    block = render_block(_compiled(tmp_path), "workflow.star")
    assert said(read(tmp_path, "crucible.toml", block)) == [("stale-workflow", "crucible.toml:2:1")]


def test_a_block_is_held_against_the_source_that_it_names(tmp_path: Path) -> None:
    """Not only against one of the usual name, and not against a path that leads elsewhere."""
    write(tmp_path, {"flows/main.star": SOURCE.replace("true", "false", 1)})
    block = BLOCK.replace("workflow.star", "flows/main.star")
    assert said(read(tmp_path, "crucible.toml", block)) == [("stale-workflow", "crucible.toml:2:1")]
    write(tmp_path, {"workflow.star": SOURCE})
    assert said(read(tmp_path, "crucible.toml", BLOCK.replace("workflow.star", "../x.star"))) == []


@pytest.mark.parametrize("name", ["none.star", "none.json", "plan.toml", "folder.toml"])
def test_a_file_that_cannot_be_read_is_no_diagnostic(tmp_path: Path, name: str) -> None:
    """Nor is a manifest; which of the two it was is told."""
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(CannotRead) as raised:
        launch.read(str(tmp_path / name))
    assert raised.value.path == str(tmp_path / name)
    write(tmp_path, {"w.json": dumps(BOTH)})
    with pytest.raises(CannotRead) as raised:
        launch.read(str(tmp_path / "w.json"), manifest=str(tmp_path / name))
    assert raised.value.path == str(tmp_path / name)


def test_a_source_that_is_too_large_is_a_diagnostic() -> None:
    """From standard input as from a file."""
    found = launch.read("workflow.star", Refusal("limit-exceeded", "too large"))
    assert said(found) == [("limit-exceeded", "workflow.star")]
    with pytest.raises(CannotRead):
        launch.read("no/such/folder/workflow.star", SOURCE.encode())


# The manifest that sets a run up

MANIFEST = """\
[repo]
url = "https://example.org/x.git"
ref = "main"

[workspace]
dir = "ws"
setup_cmd = "make setup"
inject = [
  "measure.sh",
  "tools/*.py",
  { src = "../judges/a.go", dst = "pkg/a.go" },
  { src = "seed.json", frozen = false },
]

[agent]
backend = "command"
agent_cmd = "./stand-in"
harness = "claude"
model = "large"
effort = "high"

[agent.env]
PROJECT = "p"

[[agent.relay]]
src = "kubeconfig"
dst = ".kube/config"

[judge]
objective = "latency"
measure_cmd = "./measure.sh"
direction = "lower"

[[capabilities.secret]]
name = "TOKEN"
context = "broker"
system = "tracker"
scope = "read"
"""


def facts(folder: Path, text: str | bytes, workflow: ir.Workflow = BOTH) -> Launch:
    """Read a workflow with a manifest."""
    write(folder, {"w.json": dumps(workflow), "crucible.toml": text})
    return launch.read(str(folder / "w.json"), manifest=str(folder / "crucible.toml"))


def test_the_facts_of_a_manifest_are_as_written(tmp_path: Path) -> None:
    """In their order, with the defaults of the contract, and with their places for whoever finds more."""
    found = facts(tmp_path, MANIFEST)
    assert said(found) == []
    manifest = found.manifest
    assert manifest is not None
    assert manifest.folder == str(tmp_path)
    assert manifest.repo == manifest_model.Repo("https://example.org/x.git", None, "main")
    workspace = manifest.workspace
    assert (workspace.dir, workspace.setup_cmd) == ("ws", "make setup")
    assert manifest.judge == manifest_model.Judge("./measure.sh", "lower", "lower", "latency", None)
    assert [each[:4] for each in workspace.injects] == [
        ("measure.sh", None, True, 0),
        ("tools/*.py", None, True, 1),
        ("../judges/a.go", "pkg/a.go", True, 2),
        ("seed.json", None, False, 3),
    ]
    assert manifest.agent == manifest_model.Agent(
        "command",
        "./stand-in",
        "claude",
        "large",
        "high",
        env={"PROJECT": "p"},
        relays=(manifest_model.Relay("kubeconfig", ".kube/config", 0),),
    )
    assert manifest.secrets == (manifest_model.Secret("TOKEN", "broker", "tracker", "read", 0),)
    place = manifest.place("workspace", "inject", 2)
    assert place is not None
    assert place.begin == (11, 3)
    assert manifest.place("nothing") is None


def test_a_manifest_that_says_little_has_the_defaults(tmp_path: Path) -> None:
    """Those of the contract."""
    manifest = facts(tmp_path, '[repo]\npath = "."\n').manifest
    assert manifest is not None
    assert manifest.workspace == manifest_model.Workspace("workspace", None, ())
    assert (manifest.judge, manifest.world, manifest.search, manifest.outputs) == (
        None,
        manifest_model.World(),
        manifest_model.Search(0, (), "top-k", 1),
        {},
    )
    assert manifest.agent == manifest_model.Agent("local")
    assert manifest.secrets == ()
    assert not manifest.is_inside_workspace()


@pytest.mark.parametrize(
    ("where", "inside"), [(".", True), ("", True), ("ws", False), ("cruc", False), ("..", True), ("../x", False)]
)
def test_a_manifest_in_its_own_workspace_is_told(tmp_path: Path, where: str, *, inside: bool) -> None:
    """There an agent could edit it; then the bytes of the base commit can be given in its place."""
    found = facts(tmp_path, f'[repo]\npath = "."\n[workspace]\ndir = "{where}"\n')
    assert found.manifest is not None
    assert found.manifest.is_inside_workspace() is inside
    path = str(tmp_path / "crucible.toml")
    text = f'[repo]\npath = "frozen"\n{BLOCK}'
    again = launch.read(path, manifest=path, manifest_data=text.encode())
    assert again.manifest is not None
    assert again.manifest.repo == manifest_model.Repo(None, "frozen", None)
    assert again.workflow == BOTH


WRONG = {
    "both": ('url = "https://example.org/x.git"', 'url = "u"\npath = "."', ("exclusive-keys", "3:1")),
    "neither": ('url = "https://example.org/x.git"\n', "", ("missing-key", "1:1")),
    "a url of another type": ('"https://example.org/x.git"', "3", ("wrong-type", "2:7")),
    "a misspelt key": ("ref =", "rev =", ("unknown-key", "3:1")),
    "a NUL": ('"main"', '"ma\\u0000in"', ("invalid-string", "3:10")),
    "a folder of another type": ('dir = "ws"', "dir = 3", ("wrong-type", "6:7")),
    "a list that is none": ('"claude"\nmodel', '["claude"]\nmodel', ("wrong-type", "18:11")),
    "an inject of another type": ('"measure.sh"', "3", ("wrong-type", "9:3")),
    "an inject from outside": ('"measure.sh"', '"../measure.sh"', ("path-refused", "9:3")),
    "an inject from the root": ('"measure.sh"', '"/measure.sh"', ("path-refused", "9:3")),
    "a target outside": ('"pkg/a.go"', '"pkg/../../a.go"', ("path-refused", "11:35")),
    "a target at the root": ('"pkg/a.go"', '"/a.go"', ("path-refused", "11:35")),
    "a source outside without a target": ('"seed.json"', '"../seed.json"', ("path-refused", "12:11")),
    "a thaw of another type": ("frozen = false", 'frozen = "no"', ("wrong-type", "12:33")),
    "a misspelt thaw": ("frozen = false", "frozn = false", ("unknown-key", "12:24")),
    "an inject from nowhere": ('src = "seed.json", ', "", ("missing-key", "12:3")),
    "another backend": ('"command"', '"comand"', ("unknown-value", "16:11")),
    "a variable of another type": ('PROJECT = "p"', "PROJECT = 3", ("wrong-type", "23:11")),
    "a variable that is none": ("PROJECT =", '"A=B" =', ("invalid-string", "23:1")),
    "a relay of another type": ('"kubeconfig"', "3", ("wrong-type", "26:7")),
    "a secret without a name": ('name = "TOKEN"\n', "", ("missing-key", "34:1")),
    "a secret without a context": ('context = "broker"\n', "", ("missing-key", "34:1")),
    "a secret of another context": ('"broker"', '"brokre"', ("unknown-value", "36:11")),
    "a broker's secret for the agent": ("PROJECT", "TOKEN", ("uncovered-capability", "23:1")),
    "a broker's secret as a relay": ('"kubeconfig"', '"TOKEN"', ("uncovered-capability", "25:1")),
    "a misspelt table": ("[judge]\nobjective", "[judges]\nobjective", ("unknown-key", "29:2")),
    "a judge that measures nothing": ('measure_cmd = "./measure.sh"\n', "", ("missing-key", "29:1")),
    "a judge that is none": ("[judge]\nobjective = ", "[[judge]]\nobjective = ", ("wrong-type", "29:3")),
    "what is no TOML": ("[judge]", "[judge", ("toml-syntax", "29:7")),
    "a key twice": ('ref = "main"', 'ref = "main"\nref = "x"', ("repeated-key", "4:1")),
}


@pytest.mark.parametrize(("old", "new", "expected"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_in_a_manifest_is_told_where(
    tmp_path: Path, old: str, new: str, expected: tuple[str, str]
) -> None:
    """Before anything runs by it, whether a run reads the key or not."""
    assert MANIFEST.count(old) == 1
    found = said(facts(tmp_path, MANIFEST.replace(old, new)))
    assert found == [(expected[0], f"crucible.toml:{expected[1]}")]


def test_a_secret_of_the_agent_may_reach_it(tmp_path: Path) -> None:
    """Only what belongs to the broker stays there."""
    text = MANIFEST.replace("PROJECT", "TOKEN").replace('"broker"', '"agent"')
    assert said(facts(tmp_path, text)) == []


def test_only_a_playbook_runs_without_a_repository(tmp_path: Path) -> None:
    """All others are about one (contract §1)."""
    playbook = BOTH.replace(type="playbook")
    assert said(facts(tmp_path, "[workspace]\n", playbook)) == []
    assert said(facts(tmp_path, "[workspace]\n")) == [("missing-key", "crucible.toml:1:1")]


def test_mistakes_of_a_manifest_and_of_what_is_run_are_told_together(tmp_path: Path) -> None:
    """Each in its file, with its text."""
    write(tmp_path, {"crucible.toml": MANIFEST.replace('"command"', "3")})
    found = read(tmp_path, "plan.toml", PLAN.replace("0.3", "0"), manifest=str(tmp_path / "crucible.toml"))
    assert said(found) == [("wrong-type", "crucible.toml:16:11"), ("out-of-range", "plan.toml:4:7")]
    assert {Path(name).name for name in found.texts} == {"crucible.toml", "plan.toml"}
    assert said(facts(tmp_path, b"\xff")) == [("source-not-utf8", "crucible.toml:1:1")]
    assert said(facts(tmp_path, "\ufeff" + MANIFEST)) == []


VALUES = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "x", "../x", "a\0", "broker", "command", "TOKEN"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["src", "dst", "frozen", "name", "context", "env", "relay", "inject", "dir", "secret", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
TABLES = st.dictionaries(st.sampled_from(["repo", "workspace", "agent", "judge", "capabilities", "x"]), VALUES)


@given(TABLES)
def test_every_manifest_is_read_and_none_raises(tables: dict[str, object]) -> None:
    """Whatever its values: what is wrong has a place."""
    found, problems = manifest_reading.read(tomlkit.dumps(tables), "crucible.toml")
    assert found is not None
    assert all(each.span is not None for each in problems)


@given(st.integers(0, len(MANIFEST)), st.integers(0, 12), st.text('[]{}"=.,\n\\#aé\0 1', max_size=6))
def test_every_text_near_a_manifest_is_read_and_none_raises(begin: int, length: int, other: str) -> None:
    """A change anywhere."""
    found, problems = manifest_reading.read(MANIFEST[:begin] + other + MANIFEST[begin + length :], "crucible.toml")
    assert found is not None or problems
    assert all(each.span is not None for each in problems)

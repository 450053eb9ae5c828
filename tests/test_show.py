"""plan show and plan render: every format of whatever --file names, what-if, and files written whole or not at all."""

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packs import write

from crucible.cli import main
from crucible.compiler.output.gist import cut, fold, width
from crucible.compiler.output.mermaid import to_mermaid
from crucible.compiler.output.table import grid, to_text
from crucible.schemas.ir import CommandTask, Workflow

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
LADDER = GOLDEN / "measurement-ladder"
PNG = b"\x89PNG\r\n\x1a\n"

Crucible = Callable[..., tuple[int, str, str]]


@pytest.fixture
def crucible(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Crucible:
    """Return a function that runs a command in a copy of the ladder: exit code, standard output, standard error."""
    folder = tmp_path / "ladder"
    shutil.copytree(LADDER, folder)
    monkeypatch.chdir(folder)

    def run(*arguments: str) -> tuple[int, str, str]:
        return main.main(["plan", *arguments]), *capfd.readouterr()

    return run


SHOW = ("show", "--file", "workflow.star")

ASSUMED = "every need taken as met (bench-host); --cap says what there is"
HEAD = [
    "autoresearch workflow, 10 tasks",
    "result  keep",
    "digest  3da35b275f9ff2f5b6c9ba8c077217a9cda52fc6d8437ad7f374836f17b7273b",
]


def test_the_table_is_in_dependency_order_with_the_verdict(crucible: Crucible) -> None:
    """Without --cap every need is taken as met, and a line says so; with it only what is named is there."""
    status, out, err = crucible(*SHOW)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[:3] == HEAD
    assert [line.split()[1] for line in lines[5:15]] == [
        *(
            "plan-change",
            "build",
            "answers",
            "quick-bench",
            "full-bench",
            "plan-size",
            "memory",
            "soak",
            "grade",
            "keep",
        )
    ]
    assert lines[-2:] == [ASSUMED, "every task can run"]
    verdict = 'with --cap gpu: truncated, nothing would run: required and impossible "full-bench"; missing: bench-host'
    assert crucible(*SHOW, "--cap", "gpu")[1].splitlines()[-1] == verdict
    assert crucible(*SHOW, "--cap", "bench-host")[1].splitlines()[-1] == "with --cap bench-host: every task can run"


def test_failures_are_played_without_running_anything(crucible: Crucible) -> None:
    """--fail says what would be blocked and whether the run would be valid, in text, JSON and the picture."""
    out = crucible(*SHOW, "--fail", "quick-bench")[1]
    assert 'blocked: the required task "quick-bench" did not pass' in out
    assert out.endswith("if quick-bench failed, the run would be invalid (short_circuit)\n")
    answer = json.loads(crucible(*SHOW, "--fail", "quick-bench", "--format", "json")[1])["what_if"]
    assert (answer["failed"], answer["valid"]) == (["quick-bench"], False)
    assert ">BLOCKED</text>" in crucible(*SHOW, "--fail", "quick-bench", "--format", "svg")[1]
    out = crucible(*SHOW, "--fail", "memory", "--fail", "soak")[1]
    assert out.endswith("if memory and soak failed, the run would be valid\n")


def test_every_single_failure_is_a_table(crucible: Crucible) -> None:
    """--fail each has a line, or an object, for each task; it makes no picture."""
    status, out, _ = crucible(*SHOW, "--fail", "each")
    assert status == 0
    assert out.splitlines()[0].startswith("if this fails  the run is ")
    assert out.splitlines()[11:] == ["", ASSUMED]
    assert len(crucible(*SHOW, "--fail", "each", "--cap", "bench-host")[1].splitlines()) == 11
    table = json.loads(crucible(*SHOW, "--fail", "each", "--format", "json")[1])["what_if"]
    assert [answer["valid"] for answer in table].count(True) == 3
    for arguments in (("--fail", "each", "--format", "svg"), ("--fail", "each", "--fail", "soak")):
        status, out, err = crucible(*SHOW, *arguments)
        assert (status, out) == (2, "")
        assert "--fail each stands alone" in err


@pytest.mark.parametrize("capabilities", [(), ("--cap", "gpu"), ("--cap", "bench-host")])
def test_table_verdict_what_if_and_data_agree(capabilities: tuple[str, ...], crucible: Crucible) -> None:
    """One rule says which needs are met: no run is truncated in one place and valid in another."""
    is_truncated = "gpu" in capabilities
    out = crucible(*SHOW, "--fail", "soak", *capabilities)[1]
    rest = out.partition("\n\n")[2].partition("\n\n")
    assert ("truncated" in rest[0]) is is_truncated
    assert ("truncated, nothing would run" in rest[2]) is is_truncated
    assert rest[2].endswith(f"the run would be {'invalid (truncated)' if is_truncated else 'valid'}\n")
    assert (ASSUMED in out) is (not capabilities)
    content = json.loads(crucible(*SHOW, "--fail", "soak", "--format", "json", *capabilities)[1])
    assert (content["truncated"], content["what_if"]["valid"]) == (is_truncated, not is_truncated)
    assert content["capabilities"] == (list(capabilities[1:]) or None)
    each = json.loads(crucible(*SHOW, "--fail", "each", "--format", "json", *capabilities)[1])
    assert each["what_if"][7] == content["what_if"]
    assert each["capabilities"] == content["capabilities"]
    drawn = crucible(*SHOW, "--fail", "soak", "--format", "svg", *capabilities)[1]
    assert ("every need taken as met" in drawn) is (not capabilities)


def test_a_task_that_is_called_each_goes_before_the_table(crucible: Crucible) -> None:
    """It fails alone or with others, and in a picture."""
    source = 'workflow(type = "custom", tasks = [command(name = n, run = "x") for n in ("each", "b")])\n'
    Path("workflow.star").write_text(source, encoding="utf-8")
    assert "if each failed, the run would be" in crucible(*SHOW, "--fail", "each")[1]
    assert "if each and b failed" in crucible(*SHOW, "--fail", "each", "--fail", "b")[1]
    assert crucible(*SHOW, "--fail", "each", "--format", "dot")[0] == 0


def test_what_cannot_run_is_greyed(crucible: Crucible) -> None:
    """With --cap a picture tells what would not run; without, it judges nothing."""
    assert "grey: would not run" in crucible(*SHOW, "--format", "svg", "--cap", "gpu")[1]
    for arguments in ((), ("--cap", "bench-host")):
        assert "grey" not in crucible(*SHOW, "--format", "svg", *arguments)[1]


@pytest.mark.parametrize("style", ["text", "json", "mermaid", "dot", "svg", "png"])
def test_focus_is_a_task_with_what_is_before_and_after_it(style: str, crucible: Crucible) -> None:
    """Other tasks are left out of every format; the digest is that of the whole workflow."""
    status, _, err = crucible(*SHOW, "--format", style, "--focus", "memory", "--output", "out")
    assert (status, err) == (0, "")
    data = Path("out").read_bytes()
    if style == "png":
        assert data.startswith(PNG)
        return
    assert b"answers" in data
    assert b"plan-size" not in data.replace(b"ties by plan-size", b"").replace(b'"tiebreak": "plan-size"', b"")
    assert style == "mermaid" or b"3da35b275f9f" in data


def test_a_result_that_is_left_out_is_not_named(crucible: Crucible) -> None:
    """The data of a part has a result only when that is among its tasks."""
    source = 'workflow(type = "custom", result = "b", tasks = [command(name = n, run = "x") for n in ("a", "b")])\n'
    Path("workflow.star").write_text(source, encoding="utf-8")
    for name, expected in (("a", None), ("b", "b")):
        content = json.loads(crucible(*SHOW, "--focus", name, "--format", "json")[1])
        assert content["workflow"].get("result") == expected


@pytest.mark.parametrize("option", ["--focus", "--fail"])
def test_an_unknown_task_is_wrong_usage(option: str, crucible: Crucible) -> None:
    """The message says which task was likely meant."""
    status, out, err = crucible(*SHOW, option, "plan-siz")
    assert (status, out) == (2, "")
    assert err == f'crucible: {option}: there is no task "plan-siz"; did you mean "plan-size"?\n'


def test_json_holds_the_workflow_and_its_order(crucible: Crucible) -> None:
    """The canonical workflow stands in it unchanged, beside its digest, order, edges and the verdict."""
    content = json.loads(crucible(*SHOW, "--format", "json")[1])
    assert content["workflow"] == json.loads((LADDER / "expected-workflow.json").read_text(encoding="utf-8"))
    assert content["order"][:3] == ["plan-change", "build", "answers"]
    assert {"from": "build", "to": "answers", "join": "all"} in content["edges"]
    assert (content["capabilities"], content["truncated"], content["what_if"]) == (None, False, None)


def test_all_that_file_may_name_is_drawn(crucible: Crucible, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source, its manifest, its canonical JSON and standard input give one table."""
    tables = {
        crucible("show", "--file", name)[1] for name in ("workflow.star", "crucible.toml", "expected-workflow.json")
    }
    assert len(tables) == 1
    source = Path("workflow.star").read_bytes()
    monkeypatch.setattr(os, "read", reader(source))
    assert crucible("show", "--file", "-", "--stdin-filename", "workflow.star")[1] in tables


def reader(data: bytes) -> Callable[[int, int], bytes]:
    """Return an os.read whose standard input has some data."""
    real, rest = os.read, io.BytesIO(data)
    return lambda descriptor, size: rest.read(size) if descriptor == 0 else real(descriptor, size)


def test_a_pack_without_a_workflow_shows_the_default_loop(
    crucible: Crucible, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A manifest alone has propose, apply, measure and decide; one with a source beside it has to be compiled."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"crucible.toml": '[judge]\nmeasure_cmd = "./m.sh"\n'})
    status, out, err = crucible("show", "--file", "crucible.toml")
    assert (status, err) == (0, "")
    assert [line.split()[1] for line in out.splitlines()[5:9]] == ["propose", "apply", "measure", "decide"]
    write(tmp_path, {"workflow.star": 'workflow(type = "custom", tasks = [command(name = "a", run = "x")])\n'})
    assert crucible("show", "--file", "crucible.toml")[0] == 1


def test_mistakes_are_reported_and_nothing_is_written(crucible: Crucible) -> None:
    """Diagnostics go to standard error, exit code 1; the old picture stays."""
    Path("workflow.star").write_text('command(name = "a", run = "x")\n', encoding="utf-8")
    Path("WORKFLOW.png").write_bytes(b"old")
    for arguments in (SHOW, ("render", "--file", "workflow.star"), (*SHOW, "--format", "json")):
        status, out, err = crucible(*arguments)
        assert (status, out) == (1, "")
        assert "no-workflow" in err
    assert Path("WORKFLOW.png").read_bytes() == b"old"
    assert crucible("render", "--file", "missing.star")[0] == 2
    assert crucible("show", "--file", "-")[0] == 2


def test_render_writes_the_picture_beside_the_source(crucible: Crucible, tmp_path: Path) -> None:
    """WORKFLOW.png by default, the same bytes again; --output names another place, and .svg another format."""
    assert crucible("render", "--file", "workflow.star") == (0, "", "wrote WORKFLOW.png\n")
    first = Path("WORKFLOW.png")
    assert first.read_bytes().startswith(PNG)
    before = first.stat().st_mtime_ns, first.read_bytes()
    assert crucible("render", "--file", "workflow.star")[0] == 0
    assert (first.stat().st_mtime_ns, first.read_bytes()) == before
    assert crucible("render", "--file", "workflow.star", "--output", str(tmp_path / "x.svg"))[0] == 0
    assert (tmp_path / "x.svg").read_bytes().startswith(b"<?xml")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ladder", "x.svg"]


@pytest.mark.parametrize("name", ["x.svg", "x.DOT", "x.png", "-"])
def test_the_ending_of_a_name_chooses_the_format(name: str, tmp_path: Path) -> None:
    """Of a picture; - is standard output."""
    begin = {"x.svg": b"<?xml", "x.DOT": b"digraph"}.get(name, PNG)
    command = [
        sys.executable,
        "-P",
        "-m",
        "crucible.cli.main",
        "plan",
        "render",
        "--file",
        str(LADDER / "workflow.star"),
    ]
    path = name if name == "-" else str(tmp_path / name)
    done = subprocess.run([*command, "--output", path], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.startswith(begin) if name == "-" else (tmp_path / name).read_bytes().startswith(begin)
    assert os.listdir(tmp_path) == [name] * (name != "-")


@pytest.mark.parametrize(
    "arguments",
    [
        ("render", "--output", ""),
        ("render", "--output", "x.jpg"),
        ("render", "--output", "x"),
        ("render", "--output", "x.json"),
        ("render", "--output", ".png"),
        ("show", "--output", ""),
        ("show", "--format", "png", "--output", "x.svg"),
        ("show", "--format", "svg", "--output", "x.PNG"),
        ("show", "--output", "x.dot"),
    ],
)
def test_a_name_that_says_another_format_is_wrong_usage(crucible: Crucible, arguments: tuple[str, ...]) -> None:
    """Nothing is written, least of all beside the source."""
    before = sorted(os.listdir())
    status, out, err = crucible(*arguments, "--file", "workflow.star")
    assert (status, out) == (2, "")
    assert "--output" in err
    assert sorted(os.listdir()) == before


def test_a_broken_drawing_program_leaves_the_old_picture(
    crucible: Crucible, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2 and a plain message; compiling, the table and the DOT need no such program."""
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\nprintf '\\211PNG\\r\\n\\032\\nhalf'\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("CRUCIBLE_DOT", str(program))
    Path("WORKFLOW.png").write_bytes(b"old")
    for arguments in (("render", "--file", "workflow.star"), (*SHOW, "--format", "png", "--output", "WORKFLOW.png")):
        status, out, err = crucible(*arguments)
        assert (status, out) == (2, "")
        assert err == f"crucible: {program} failed: what it wrote is no whole picture\n"
    assert Path("WORKFLOW.png").read_bytes() == b"old"
    for style in ("text", "json", "mermaid", "dot"):
        assert crucible(*SHOW, "--format", style)[0] == 0
    assert crucible("compile-workflow", "--file", "workflow.star")[0] == 0


def test_a_flood_is_wrong_usage_and_no_failure_of_ours(
    crucible: Crucible, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A drawing program without end is ended; exit code 2, and nothing is written."""
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\nyes x\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("CRUCIBLE_DOT", str(program))
    message = f"crucible: {program} wrote more than 64 MiB, which is no picture\n"
    assert crucible("render", "--file", "workflow.star") == (2, "", message)
    assert not Path("WORKFLOW.png").exists()


def test_a_link_that_leaves_the_directory_is_not_followed(crucible: Crucible, tmp_path: Path) -> None:
    """The picture replaces no file that a link in the pack leads to."""
    (tmp_path / "elsewhere").write_bytes(b"mine")
    Path("WORKFLOW.png").symlink_to(tmp_path / "elsewhere")
    assert crucible("render", "--file", "workflow.star")[0] == 2
    assert (tmp_path / "elsewhere").read_bytes() == b"mine"


def test_a_png_goes_into_a_pipe_as_it_is() -> None:
    """Standard output carries the bytes of the picture and nothing else."""
    arguments = [sys.executable, "-m", "crucible.cli.main", "plan", "show", "--format", "png", "--file"]
    done = subprocess.run([*arguments, str(LADDER / "workflow.star")], capture_output=True, check=True)
    assert done.stdout.startswith(PNG)
    assert done.stderr == b""


def test_a_splice_is_judged_without_the_loop(crucible: Crucible) -> None:
    """The loop's propose, which its tasks may name, is no task of the splice and has passed."""
    source = str(GOLDEN / "splice" / "workflow.star")
    assert crucible("show", "--file", source)[1].endswith("\n\nevery task can run\n")
    assert "blocked" in crucible("show", "--file", source, "--fail", "lint")[1]


# The texts


@given(st.text(), st.integers(4, 40))
def test_folded_lines_are_the_text_and_fit(text: str, columns: int) -> None:
    """Folding loses nothing and keeps to the columns; cutting keeps to them too."""
    lines = fold(text, columns)
    assert "".join(lines) == text
    assert all(width(line) <= columns for line in lines)
    assert width(cut(text, columns)) <= columns


def test_columns_stand_under_each_other() -> None:
    """Wide characters take two columns, and long names are cut."""
    assert grid([("task", "after"), ("日本", "x"), ("n" * 50, "")]) == [
        "task" + " " * 38 + "after",
        "日本" + " " * 38 + "x",
        "n" * 39 + "…",
    ]


def test_nothing_steers_a_terminal() -> None:
    """Control characters of a command are shown as escapes in the table."""
    workflow = Workflow(type="custom", task=(CommandTask(name="a", command="x\x1b[31m\ny"),))
    assert "x\\x1b[31m\\ny" in to_text(workflow, workflow, {}, {}, ["done"])


def test_a_chart_shows_marks_as_they_are() -> None:
    """What Mermaid would read as quotes, Markdown, HTML or an entity is written as a number."""
    workflow = Workflow(
        type="custom",
        task=(
            CommandTask(name='say "hi"', command="# <b>`x`</b>", required=False),
            CommandTask(name="b", command="y", depends_on=('say "hi"',), join="passed"),
        ),
        result="b",
    )
    assert to_mermaid(workflow, {}, {"b": "skipped"}).splitlines() == [
        "flowchart TB",
        '  t0["command · advisory<br/>say #34;hi#34;<br/>#35; #60;b#62;#96;x#96;#60;/b#62;"]',
        '  t1["command<br/>b<br/>y<br/>skipped"]',
        "  t0 -.-> t1",
        "  classDef advisory stroke-dasharray:5 3",
        "  class t0 advisory",
        "  classDef result stroke-width:4px",
        "  class t1 result",
        "  classDef dead fill:#eeeeee,color:#777777",
        "  class t1 dead",
    ]

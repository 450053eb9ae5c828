"""lint as a process: every mistake of every named source."""

import re
from pathlib import Path

from process import COMPILE, MISTAKE, SOURCE, codes, crucible, pack, report


def test_a_source_without_a_mistake_has_no_problems(tmp_path: Path) -> None:
    """The summary is the product."""
    done = crucible("lint", "workflow.star", cwd=pack(tmp_path))
    assert (done.status, done.out, done.err) == (0, b"1 file: no problems\n", b"")


def test_the_diagnostics_are_the_product(tmp_path: Path) -> None:
    """Standard output has what a compile says on standard error, and a summary."""
    done = crucible("lint", "workflow.star", cwd=pack(tmp_path, workflow=MISTAKE))
    said = crucible(*COMPILE, cwd=tmp_path).err
    assert (done.status, done.out, done.err) == (1, said + b"\n1 file: 1 error\n", b"")


def test_both_formats_and_both_commands_say_the_same(tmp_path: Path) -> None:
    """One compiler, the same diagnostics."""
    source = (
        SOURCE.replace("depends_on", "depend_on").replace('"higher"', '"up"').replace("result = gate", "result = gat")
    )
    pack(tmp_path, workflow=source)
    linted = crucible("lint", "workflow.star", "--format", "json", cwd=tmp_path)
    compiled = crucible(*COMPILE, "--format", "json", cwd=tmp_path)
    assert report(linted.out) == compiled.report
    assert len(codes(compiled.report)) == 3
    text = crucible("lint", "workflow.star", cwd=tmp_path).out.decode()
    assert re.findall(r"^error\[(.*?)\]", text, re.MULTILINE) == codes(compiled.report)


def test_all_sources_are_linted_in_the_order_of_their_names(tmp_path: Path) -> None:
    """However the files are named on the command line, each once, whatever the names end in."""
    pack(tmp_path / "b", workflow=MISTAKE)
    pack(tmp_path / "a", workflow=MISTAKE)
    (tmp_path / "c").write_text(MISTAKE)
    (tmp_path / "good").write_text(SOURCE)
    names = ["good", "c", "b/workflow.star", "a/workflow.star", "c"]
    done = crucible("lint", *names, cwd=tmp_path)
    assert done.status == 1
    assert re.findall(r"--> (.*?):", done.out.decode()) == ["a/workflow.star", "b/workflow.star", "c"]
    assert done.out.endswith(b"\n\n4 files: 3 errors\n")
    told = report(crucible("lint", *names, "--format", "json", cwd=tmp_path).out)
    assert told["summary"] == {"files": 4, "errors": 3, "warnings": 0}


def test_modules_count_as_files_and_are_reported_once(tmp_path: Path) -> None:
    """A mistake in a module that two sources load is one mistake."""
    pack(tmp_path, workflow='load("lib.star", "x")\n' + SOURCE)
    (tmp_path / "other.star").write_text('load("lib.star", "x")\n' + SOURCE)
    (tmp_path / "lib.star").write_text("x = agnt\n")
    done = crucible("lint", "workflow.star", "other.star", "--format", "json", cwd=tmp_path)
    told = report(done.out)
    assert {each["file"] for each in told["diagnostics"]} == {"lib.star"}
    assert told["summary"]["files"] == 3


def test_a_file_that_cannot_be_read_hides_no_mistake(tmp_path: Path) -> None:
    """The others are linted, the missing one is named, and the exit code says that it was missing."""
    pack(tmp_path, workflow=MISTAKE)
    done = crucible("lint", "missing.star", "workflow.star", "--format", "json", cwd=tmp_path)
    assert (done.status, done.err) == (2, b"")
    assert codes(report(done.out)) == ["file-not-found", "unknown-argument"]
    assert report(done.out)["summary"] == {"files": 1, "errors": 2, "warnings": 0}


def test_standard_input_is_linted_beside_files(tmp_path: Path) -> None:
    """An editor's unsaved text has the name that it will have."""
    pack(tmp_path / "pack", p="prompt")
    stdin = (
        'a = agent(name = "a", prompt = prompt_file("prompts/p.md"), nme = 1)\nworkflow(tasks = [a], type = "custom")\n'
    )
    line = ("lint", "-", "pack/workflow.star", "--stdin-filename", "pack/new.star", "--format", "json")
    done = crucible(*line, cwd=tmp_path, stdin=stdin.encode())
    told = report(done.out)
    assert (done.status, codes(told), told["diagnostics"][0]["file"]) == (1, ["unknown-argument"], "pack/new.star")
    assert told["summary"]["files"] == 2


def test_the_manifest_beside_a_source_is_asked(tmp_path: Path) -> None:
    """A contradiction between the two is found by lint as by a compile; what is no manifest is not asked."""
    source = """\
p = propose(name = "p")
a = apply(name = "a", depends_on = [p])
s = evaluate(name = "s", run = "true", depends_on = [a], threshold = 1, direction = "lower")
g = grade(name = "g", score = s)
d = decide(name = "d", measurement = g)
workflow(tasks = [p, a, s, g, d], result = d)
"""
    pack(tmp_path, workflow=source, manifest='[judge]\ndirection = "higher"\n')
    done = crucible("lint", "workflow.star", "--format", "json", cwd=tmp_path)
    assert codes(report(done.out)) == codes(crucible(*COMPILE, "--format", "json", cwd=tmp_path).report)
    assert codes(report(done.out)) == ["direction-conflict"]
    for text in (
        "[judge]\ndirection = 3\n",
        "judge = 3\n",
        "[[[",
        b"\xff",
        f"x = {'[' * 100_000}",
        "",
        b"\xef\xbb\xbf",
    ):
        pack(tmp_path, workflow=source, manifest=text)
        assert crucible("lint", "workflow.star", cwd=tmp_path).status == 0
        assert crucible(*COMPILE, cwd=tmp_path).status == 0


def test_print_goes_to_standard_error(tmp_path: Path) -> None:
    """It is no diagnostic, so the report stays one object."""
    pack(tmp_path, workflow='print("hello")\n' + MISTAKE)
    for style in ("text", "json"):
        done = crucible("lint", "workflow.star", "--format", style, cwd=tmp_path)
        assert done.err == b"workflow.star:1: hello\n"
    assert codes(report(done.out)) == ["unknown-argument"]


def test_a_warning_fails_nothing(tmp_path: Path) -> None:
    """It is shown and counted."""
    source = 'params = {"x": {"type": "string", "required": True}}\n'
    source += 'workflow(type = "playbook", tasks = [agent(name = "a", prompt = param("x"))])\n'
    done = crucible("lint", "workflow.star", cwd=pack(tmp_path, workflow=source))
    assert done.status == 0
    assert done.out.startswith(b"warning[param-without-example]: ")
    assert done.out.endswith(b"\n\n1 file: 1 warning\n")


def test_lint_writes_nothing(tmp_path: Path) -> None:
    """Not even into a pack that may not be written."""
    pack(tmp_path, workflow=MISTAKE, manifest="")
    before = sorted(tmp_path.rglob("*"))
    crucible("lint", "workflow.star", cwd=tmp_path)
    assert sorted(tmp_path.rglob("*")) == before

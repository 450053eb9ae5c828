"""lint as a process: every mistake of every named source."""

import json
import re
from pathlib import Path

import pytest
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
    assert [(each["file"], each["code"]) for each in told["diagnostics"]] == [
        ("lib.star", "unknown-name"),
        ("other.star", "unused-load"),
        ("workflow.star", "unused-load"),
    ]
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


# Directories


def test_the_working_directory_is_searched(tmp_path: Path) -> None:
    """Without a path; each file once, however often it is named and found."""
    pack(tmp_path / "a", workflow=MISTAKE)
    pack(tmp_path / "b")
    done = crucible("lint", cwd=tmp_path)
    assert (done.status, done.err) == (1, b"")
    assert re.findall(r"--> (.*?):", done.out.decode()) == ["a/workflow.star"]
    assert done.out.endswith(b"\n2 files: 1 error\n")
    again = crucible("lint", "a", "./a//workflow.star", tmp_path / "a", ".", cwd=tmp_path)
    assert (again.status, again.out) == (1, done.out)


@pytest.mark.parametrize("style", ["text", "json", "sarif", "github"])
def test_nothing_to_lint_is_2(tmp_path: Path, style: str) -> None:
    """A bot that looks in the wrong place must not be content."""
    (tmp_path / "workflow.txt").touch()
    done = crucible("lint", "--format", style, cwd=tmp_path)
    assert done.status == 2
    assert b"there is no workflow.star and no crucible.toml below the working directory" in done.out + done.err
    assert (done.err == b"") == (style in ("json", "sarif"))
    if style == "json":
        assert codes(report(done.out)) == ["file-not-found"]


def test_a_file_is_linted_once_whatever_way_leads_to_it(tmp_path: Path) -> None:
    """Through other folders, linked ones or the folder above; .. behind a link is where the link leads."""
    pack(tmp_path / "a" / "b", workflow=MISTAKE)
    (tmp_path / "link").symlink_to("a/b")
    names = [
        "a/b/workflow.star",
        "a/../a/b/workflow.star",
        "a/b",
        "a/../a/b",
        f"../{tmp_path.name}/a",
        "link",
        "a/b/..",
    ]
    first = crucible("lint", "a/b", cwd=tmp_path)
    assert first.out.endswith(b"\n1 file: 1 error\n")
    assert crucible("lint", *names, cwd=tmp_path).out == first.out
    assert crucible("lint", names[4], names[1], cwd=tmp_path).out == first.out
    assert crucible("lint", "link/../b/workflow.star", "a/b", cwd=tmp_path).out.count(b"error[") == 1
    assert b"--> ../workflow.star" in crucible("lint", "../workflow.star", ".", cwd=_below(tmp_path / "a" / "b")).out


def _below(folder: Path) -> Path:
    (folder / "deep").mkdir()
    return folder / "deep"


@pytest.mark.parametrize("name", ["workflow.star", "crucible.toml"])
def test_a_link_that_stands_for_a_source_is_told(tmp_path: Path, name: str) -> None:
    """Whoever put it there meant a pack; the others are linted all the same."""
    pack(tmp_path / "a", workflow=MISTAKE)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / name).symlink_to("gone")
    done = crucible("lint", ".", "b", "--format", "json", cwd=tmp_path)
    found = report(done.out)["diagnostics"]
    assert (done.status, [each["code"] for each in found]) == (2, ["file-not-found", "unknown-argument"])
    assert found[0]["message"] == f"b/{name} is a link, and a search follows none; name the file that it leads to"


REPO = '[repo]\npath = "."\n'
GENERATED = "# Generated from workflow.star by crucible plan compile-workflow; edit that file instead.\n"
STALE = (
    '[workflow]\ntype = "custom"\nresult = "gone"\n[[workflow.task]]\nname = "a"\nkind = "command"\ncommand = "true"\n'
)


@pytest.mark.parametrize(
    ("manifest", "found"),
    [
        (REPO + GENERATED + STALE, []),
        (REPO + STALE, ["unknown-task"]),
        (STALE, ["missing-key", "unknown-task"]),
        (REPO + "ref = 3\n" + GENERATED + STALE, ["wrong-type"]),
        ('[workflow]\ntype = "playbook"\nfile = "workflow.star"\n', []),
        (REPO, []),
        ("[[[", ["toml-syntax"]),
        (b"\xff", ["source-not-utf8"]),
        ("", []),
    ],
)
def test_a_manifest_that_is_found_is_linted_for_what_is_its_own(
    tmp_path: Path, manifest: str | bytes, found: list[str]
) -> None:
    """What was generated from the source beside it is linted there."""
    pack(tmp_path, manifest=manifest)
    done = crucible("lint", "--format", "json", cwd=tmp_path)
    assert codes(report(done.out)) == found
    assert report(done.out)["summary"]["files"] == 2


def test_a_manifest_alone_is_a_pack(tmp_path: Path) -> None:
    """With a workflow by hand, or with none: then it has the default loop."""
    pack(tmp_path, manifest=REPO + GENERATED + STALE)
    (tmp_path / "workflow.star").unlink()
    assert codes(report(crucible("lint", "--format", "json", cwd=tmp_path).out)) == ["unknown-task"]
    (tmp_path / "crucible.toml").write_text(REPO)
    assert crucible("lint", cwd=tmp_path).out == b"1 file: no problems\n"
    assert crucible("lint", "crucible.toml", cwd=tmp_path).out == b"1 file: no problems\n"
    (tmp_path / "crucible.toml").write_text("[workspace]\n")
    assert codes(report(crucible("lint", "--format", "json", cwd=tmp_path).out)) == ["missing-key"]


def test_many_packs_give_what_each_of_them_gives(tmp_path: Path) -> None:
    """Side by side or one by one, in one order."""
    for number in range(12):
        pack(tmp_path / f"p{number:02}", workflow=[SOURCE, MISTAKE, "idle = 1\n" + SOURCE][number % 3])
    together = report(crucible("lint", "--format", "json", cwd=tmp_path).out)
    each = [
        diagnostic
        for number in range(12)
        for diagnostic in report(crucible("lint", f"p{number:02}", "--format", "json", cwd=tmp_path).out)["diagnostics"]
    ]
    assert together["diagnostics"] == each
    assert together["summary"] == {"files": 12, "errors": 4, "warnings": 4}


# Warnings


IDLE = "idle = 1\n" + SOURCE


@pytest.mark.parametrize(
    ("denied", "status"),
    [
        ((), 0),
        (("warnings",), 1),
        (("unused-binding",), 1),
        (("unused-load",), 0),
        (("unused-load", "unused-binding"), 1),
    ],
)
def test_a_denied_warning_is_an_error(tmp_path: Path, denied: tuple[str, ...], status: int) -> None:
    """It is shown as one and fails the command; the others stay what they are."""
    arguments = [word for code in denied for word in ("--deny", code)]
    done = crucible("lint", *arguments, cwd=pack(tmp_path, workflow=IDLE))
    assert done.status == status
    assert done.out.startswith(b"error[unused-binding]" if status else b"warning[unused-binding]")
    assert done.out.endswith(b"1 file: 1 error\n" if status else b"1 file: 1 warning\n")


def test_a_warning_that_there_is_not_cannot_be_denied(tmp_path: Path) -> None:
    """A typing error in a bot's settings would switch a check off."""
    done = crucible("lint", "--deny", "unused-bindings", cwd=pack(tmp_path))
    assert done.status == 2
    assert b'did you mean "unused-binding"?' in done.err


def test_what_two_sources_of_a_pack_share_is_judged_by_both(tmp_path: Path) -> None:
    """A prompt that one of them embeds is used, and a comment that one of them needs is none too many."""
    one = 'load("lib.star", "c")\nworkflow(type = "custom", tasks = [c("a", 1)])\n'
    lib = (
        'def c(name, kind):\n    script = "true" if kind == 1 else "./gone.sh"\n'
        "    # crucible: ignore[script-not-in-pack]\n"
        "    return command(name = name, run = script)\n"
    )
    pack(tmp_path, workflow=one, used="p")
    (tmp_path / "lib.star").write_text(lib)
    other = one.replace('[c("a", 1)]', '[c("a", 2), agent(name = "b", prompt = prompt_file("prompts/used.md"))]')
    (tmp_path / "other.star").write_text(other)
    assert crucible("lint", "workflow.star", "other.star", cwd=tmp_path).out == b"3 files: no problems\n"
    (tmp_path / "other.star").unlink()
    alone = report(crucible("lint", "--format", "json", cwd=tmp_path).out)
    assert codes(alone) == ["unused-prompt", "unused-suppression"]


# Formats


def test_github_gets_annotations_and_the_log_the_text(tmp_path: Path) -> None:
    """Standard output has the commands, standard error what a person reads."""
    done = crucible("lint", "--format", "github", cwd=pack(tmp_path, workflow="idle = 1\n" + MISTAKE))
    assert sorted(line.split(b" ")[0] for line in done.out.splitlines()) == [b"::error", b"::warning"]
    assert b"file=workflow.star,line=1," in done.out
    assert done.err == crucible("lint", cwd=tmp_path).out


def test_sarif_is_one_object_whatever_happens(tmp_path: Path) -> None:
    """Also where the command was used wrongly."""
    for arguments, status in (
        (("lint",), 1),
        (("lint", "--deny", "x"), 2),
        (("lint", "--no-such"), 2),
        (("lint", "no"), 2),
    ):
        done = crucible(*arguments, "--format", "sarif", cwd=pack(tmp_path, workflow=MISTAKE))
        assert done.status == status
        assert json.loads(done.out)["version"] == "2.1.0"
        assert done.err == b""


def test_so_many_warnings_are_told_and_no_more(tmp_path: Path) -> None:
    """A thousand, and that there are more."""
    (tmp_path / "x.star").write_text("".join(f"a{n} = 1\n" for n in range(1_500)))
    names = ", ".join(f'"a{n}"' for n in range(1_500))
    (tmp_path / "workflow.star").write_text(f'load("x.star", {names})\n{SOURCE}')
    done = crucible("lint", "--format", "json", "workflow.star", cwd=tmp_path)
    codes = [each["code"] for each in json.loads(done.out)["diagnostics"]]
    assert codes.count("unused-load") == 1_000
    assert codes.count("limit-exceeded") == 1


def test_modules_of_the_standard_library_are_no_files_of_the_user(tmp_path: Path) -> None:
    """What was looked at is what they wrote."""
    source = (
        'load("@crucible//matrix.star", "matrix")\n'
        'def cell(name, **axes):\n    return command(name = name, run = "true")\n'
        'cells = matrix("c", {"os": ["a", "b"]}, cell)\n'
        'workflow(type = "custom", tasks = cells, result = cells[0])\n'
    )
    (tmp_path / "workflow.star").write_text(source)
    assert crucible("lint", "workflow.star", cwd=tmp_path).out.splitlines()[-1].startswith(b"1 file: ")

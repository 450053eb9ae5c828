"""lint --fix: what is suggested is done, nothing else is touched, and nothing gets worse."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packs import write
from process import SOURCE, codes, crucible, pack, report

from crucible.cli import main
from crucible.compiler.fix import Verdict, edited, mend
from crucible.schemas.diagnostic import Diagnostic, Severity, Suggestion
from crucible.schemas.ir import CommandTask, Workflow
from crucible.schemas.span import Position, Span

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
TYPING = SOURCE.replace("depends_on", "depend_on").replace('"higher"', '"highr"')


def everything(directory: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a directory."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


# Edits


@st.composite
def texts_and_edits(draw: st.DrawFn) -> tuple[str, list[Suggestion]]:
    """Draw a text, and edits of it that do not overlap."""
    lines = draw(st.lists(st.text("ab é😀", max_size=5), min_size=1, max_size=6))
    places = [Position(row, column) for row, line in enumerate(lines, 1) for column in range(1, len(line) + 2)]
    ends = sorted(draw(st.sets(st.sampled_from(places), max_size=8)))
    spans = [Span(begin, end) for begin, end in zip(ends[::2], ends[1::2], strict=False)]
    return "\n".join(lines), [Suggestion(draw(st.text("xyz", max_size=3)), "f", span) for span in spans]


@given(texts_and_edits(), st.sampled_from([b"", b"\xef\xbb\xbf"]), st.sampled_from([b"\n", b"\r\n"]), st.randoms())
def test_every_byte_outside_of_the_edits_stays(
    drawn: tuple[str, list[Suggestion]], mark: bytes, end: bytes, chance: Random
) -> None:
    """Whatever the line ends, and with or without a byte-order mark; the order of the edits means nothing."""
    text, edits = drawn
    lines = text.split("\n")
    parts: list[str] = []
    at = Position(1, 1)
    for edit in edits:
        parts += [_cut(lines, at, edit.span.begin), edit.replacement]
        at = edit.span.end
    parts.append(_cut(lines, at, Position(len(lines), len(lines[-1]) + 1)))
    chance.shuffle(edits)
    done = edited(mark + text.encode().replace(b"\n", end), edits)
    assert done == mark + "".join(parts).encode().replace(b"\n", end)


def _cut(lines: list[str], begin: Position, end: Position) -> str:
    picked = lines[begin.line - 1 : end.line]
    picked[-1] = picked[-1][: end.column - 1]
    picked[0] = picked[0][begin.column - 1 :]
    return "\n".join(picked)


def test_a_place_behind_the_text_is_its_end() -> None:
    """A suggestion may take the last line, which has no line behind it."""
    assert edited(b"a\nb", [Suggestion("", "f", Span.of(2, 1, 3, 1))]) == b"a\n"
    assert edited(b"\xff", [Suggestion("", "f", Span.of(1, 1, 1, 2))]) is None


# What is kept


def mended(text: str, judge: Mapping[str, list[tuple[str, str, int]]], **workflows: Workflow) -> str:
    """Mend a one-line file by a judge that knows what it says of each text: code, replacement, column."""

    def verdict(files: Mapping[str, bytes]) -> Verdict:
        now = files.get("f", text.encode()).decode()
        said = [
            Diagnostic(
                code,
                f"{code} {column}",
                "f",
                _at(column),
                (),
                Suggestion(replacement, "f", _at(column)),
                _severity(code),
            )
            for code, replacement, column in judge.get(now, [])
        ]
        return Verdict(said, (workflows.get(now),))

    done = mend(lambda file: text.encode() if file == "f" else None, verdict)
    return done.files.get("f", text.encode()).decode()


def _at(column: int) -> Span:
    return Span.of(1, column, 1, column + 1)


def _severity(code: str) -> Severity:
    return Severity.WARNING if code in ("unused-binding", "unused-load", "redundant-dependency") else Severity.ERROR


def task(name: str, *after: str) -> Workflow:
    """Return a workflow of one task."""
    return Workflow(type="custom", task=(CommandTask(name=name, command="true", depends_on=after),))


def test_suggestions_are_applied_together_and_again_until_nothing_is_left() -> None:
    """Errors go first: they hide others."""
    judge = {
        "abc": [("unknown-name", "x", 1), ("unused-binding", "w", 2), ("wrong-type", "z", 3)],
        "xbz": [("unused-binding", "y", 2)],
    }
    assert mended("abc", judge) == "xyz"


def test_at_most_ten_rounds_are_made() -> None:
    """A suggestion that is never content ends, too."""
    judge = {"a" * n: [("unused-binding", "aa", 1)] for n in range(1, 20)}
    assert mended("a", judge) == "a" * 11


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        (["wrong-type"], [], "b"),
        (["wrong-type"], ["syntax-error"], "a"),
        (["wrong-type"], ["unknown-name"], "a"),
        (["wrong-type"], ["unknown-value", "unknown-value"], "a"),
        (["wrong-type"], ["wrong-type"], "a"),
        (["unknown-name"], ["wrong-type", "dependency-cycle"], "b"),
        (["syntax-error"], ["unknown-name", "unknown-name"], "b"),
        (["unknown-task"], ["dependency-cycle"], "b"),
        (["unused-binding"], ["wrong-type"], "a"),
        (["unused-binding"], ["unused-binding"], "b"),
        (["unused-load"], [], "a"),
    ],
)
def test_what_makes_it_worse_is_not_kept(before: list[str], after: list[str], left: str) -> None:
    """A mend may bring to light what it hid, never a mistake of its own or an earlier stage."""
    judge = {"a": [(before[0], "b", 1)], "b": [(code, "b", 1) for code in after]}
    assert mended("a", judge) == left


def test_one_bad_suggestion_does_not_keep_the_good_ones_out() -> None:
    """They are tried half by half."""
    judge = {
        text: [("wrong-type", "x", n) for n in (1, 3, 5) if text[n - 1] != "x"]
        for text in ("a.b.c", "x.b.c", "a.b.x", "x.b.x")
    }
    judge |= {text: [("syntax-error", "x", 1)] for text in ("a.x.c", "x.x.c", "a.x.x", "x.x.x")}
    assert mended("a.b.c", judge) == "x.b.x"


@pytest.mark.parametrize(
    ("code", "before", "after", "left"),
    [
        ("unused-load", task("t"), task("t"), "b"),
        ("unused-load", task("t"), task("u"), "a"),
        ("unused-binding", task("t", "a"), task("t"), "a"),
        ("redundant-dependency", task("t", "a"), task("t"), "b"),
        ("redundant-dependency", task("t", "a"), task("u"), "a"),
    ],
)
def test_a_warning_is_mended_without_changing_what_is_compiled(
    code: str, before: Workflow, after: Workflow, left: str
) -> None:
    """But for the dependency that is implied."""
    judge = {"a": [(code, "b", 1)]}
    assert mended("a", judge, a=before, b=after) == left


# The command


def test_what_is_mended_is_told_and_what_is_left_is_reported(tmp_path: Path) -> None:
    """Standard output has the report of what is left, standard error a line for each mend."""
    source = TYPING.replace("result = gate", 'result = "nothing"') + "\n"
    done = crucible("lint", "--fix", "workflow.star", "--format", "json", cwd=pack(tmp_path, workflow=source))
    assert (done.status, codes(report(done.out))) == (1, ["unknown-task"])
    lines = done.err.decode().splitlines()
    assert [line.partition("]")[0] for line in lines] == ["fixed[unknown-argument", "fixed[unknown-value"]
    assert lines[0].endswith("(workflow.star:2:51)")
    assert (tmp_path / "workflow.star").read_text() == SOURCE.replace("result = gate", 'result = "nothing"') + "\n"


def test_line_ends_and_a_byte_order_mark_stay(tmp_path: Path) -> None:
    """They are bytes that nobody asked to change."""
    text = f"idle = 1\n# a\n\n{TYPING}".replace("\n", "\r\n")
    pack(tmp_path, workflow=b"\xef\xbb\xbf" + text.encode())
    assert crucible("lint", "--fix", cwd=tmp_path).status == 0
    after = f"# a\n\n{SOURCE}".replace("\n", "\r\n").encode()
    assert (tmp_path / "workflow.star").read_bytes() == b"\xef\xbb\xbf" + after


def test_a_module_is_mended_where_it_stands(tmp_path: Path) -> None:
    """Below the pack, once for all sources that load it, and only where they agree."""
    lib = (
        'load("deep/more.star", "unused")\n\ndef c(name):\n    idle = 1\n    return comand(name = name, run = "true")\n'
    )
    root = 'load("lib.star", "c")\nworkflow(type = "custom", tasks = [c("{}")])\n'
    write(tmp_path, {"workflow.star": root.format("a"), "other.star": root.format("b"), "lib.star": lib})
    write(tmp_path, {"deep/more.star": "unused = 1\n"})
    done = crucible("lint", "--fix", "workflow.star", "other.star", cwd=tmp_path)
    assert (done.status, done.out) == (0, b"3 files: no problems\n")
    assert (tmp_path / "lib.star").read_text() == '\ndef c(name):\n    return command(name = name, run = "true")\n'
    assert (tmp_path / "workflow.star").read_text() == root.format("a")


def test_a_load_that_declares_a_session_stays(tmp_path: Path) -> None:
    """Nothing of it is read, and yet without it the source means something else."""
    root = (
        'load("lib.star", "writer")\n'
        'workflow(type = "custom", tasks = [agent(name = "a", prompt = "p", session = "writer")])\n'
    )
    pack(tmp_path, workflow=root)
    (tmp_path / "lib.star").write_text('writer = session(name = "writer", model = "m")\n')
    done = crucible("lint", "--fix", cwd=tmp_path)
    assert done.out.endswith(b"2 files: 1 warning\n")
    assert (tmp_path / "workflow.star").read_text() == root


@pytest.mark.parametrize("which", ["root", "module", "folder"])
def test_nothing_is_mended_through_a_link(tmp_path: Path, which: str) -> None:
    """What a link leads to may belong to somebody else."""
    elsewhere, home = tmp_path / "elsewhere", tmp_path / "home"
    files = {"workflow.star": 'load("lib.star", "x")\nidle = 1\nworkflow(type = "custom", tasks = [x])\n'}
    files["lib.star"] = 'x = comand(name = "x", run = "true")\n'
    write(elsewhere, files)
    if which == "folder":
        home.symlink_to(elsewhere)
        assert crucible("lint", "--fix", "home/workflow.star", cwd=tmp_path).status == 0
        return  # who names a folder by a link means what is in it
    write(home, files)
    name = "workflow.star" if which == "root" else "lib.star"
    (home / name).unlink()
    (home / name).symlink_to(elsewhere / name)
    before = everything(elsewhere)
    assert crucible("lint", "--fix", "home/workflow.star", cwd=tmp_path).status == int(which == "module")
    assert everything(elsewhere) == before
    assert (home / name).is_symlink()


def test_what_is_left_of_a_linked_file_is_what_is_written(tmp_path: Path) -> None:
    """The file that it leads to was mended in the meantime, in its own pack or here."""
    pack(tmp_path / "a", workflow="idle = 1\n" + TYPING)
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "other.star").symlink_to(tmp_path / "a" / "workflow.star")
    done = crucible("lint", "--fix", "a/other.star", "b/other.star", "a", cwd=tmp_path)
    assert (done.status, done.out) == (0, b"3 files: no problems\n")
    assert (tmp_path / "a" / "workflow.star").read_text() == SOURCE


@pytest.mark.parametrize(
    "source",
    [
        (
            'STYLE = "s"\ndef helper(t):\n    return [t]\nb = agent(name = "b", prompt = \'don\'t do it. \' + STYLE,'
            ' depends_on = helper(1))\nworkflow(type = "custom", tasks = [b])\n'
        ),
        'a = command(name = "a", run = "true")\nworkflow(type = "custom")\n',
        'a = command(name = "a", run = "true")\nworkflow(type = "custom", tasks = 3)\n',
        (
            'draft = agent(name = "d", prompt = "p")\n'
            'workflow(type = "custom", tasks = [agent(name = "e", prompt = "p", depends_on = [sketch])])\n'
        ),
        'load("lib.star", "crtic")\nworkflow(type = "custom", tasks = [command(name = "c", run = "true")])\n',
        f"# crucible: ignore\nidle = 1\n{SOURCE}",
        f"idle = 1  # crucible: ignore[gone]\n{SOURCE}",
        f"idle = 1  # a word of the author\n{SOURCE}",
    ],
)
def test_what_may_be_good_stays(tmp_path: Path, source: str) -> None:
    """Beside a mistake that may hide its use, or with a comment."""
    pack(tmp_path, workflow=source)
    (tmp_path / "lib.star").write_text("x = 1\n")
    crucible("lint", "--fix", "workflow.star", cwd=tmp_path)
    assert (tmp_path / "workflow.star").read_text() == source


def test_a_suppression_is_spelt_right_before_its_line_is_mended(tmp_path: Path) -> None:
    """Then there is nothing to mend there."""
    pack(tmp_path, workflow=f"idle = 1  # crucible: ingore[unused-bindng]\n{SOURCE}")
    assert crucible("lint", "--fix", "workflow.star", cwd=tmp_path).out == b"1 file: no problems\n"
    assert (tmp_path / "workflow.star").read_text() == f"idle = 1  # crucible: ignore[unused-binding]\n{SOURCE}"


def test_standard_input_is_printed_as_it_is_mended(tmp_path: Path) -> None:
    """No file is written, not even one of that name; what is left is reported on standard error."""
    pack(tmp_path, workflow=TYPING)
    line = ("lint", "--fix", "-", "--stdin-filename", "workflow.star")
    done = crucible(*line, cwd=tmp_path, stdin=TYPING.encode())
    assert (done.status, done.out.decode()) == (0, SOURCE)
    assert done.err.endswith(b"\n1 file: no problems\n")
    assert (tmp_path / "workflow.star").read_text() == TYPING
    for stdin in (b"\xff\r\n", b"", b"x = (\n", SOURCE.encode()):
        done = crucible(*line, "--format", "json", cwd=tmp_path, stdin=stdin)
        assert (done.status, done.out) == (int(stdin != SOURCE.encode()), stdin)
        assert report(done.err)["summary"]["files"] == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_a_file_that_may_not_be_written_is_2(tmp_path: Path) -> None:
    """It is named, and nothing is said to be fixed."""
    pack(tmp_path, workflow=TYPING)
    (tmp_path / "workflow.star").chmod(0o444)
    done = crucible("lint", "--fix", cwd=tmp_path)
    assert done.status == 2
    assert b"fixed" not in done.err
    assert b"workflow.star: Permission denied" in done.err


def test_a_manifest_by_hand_is_mended_too(tmp_path: Path) -> None:
    """The suggestion stands there, so the mend does."""
    task = '[[workflow.task]]\nname = "a"\nkind = "comand"\ncommand = "true"\n'
    block = f'[repo]\npath = "."\n\n[workflow]\ntype = "custom"\n{task}'
    (tmp_path / "crucible.toml").write_bytes(block.replace("\n", "\r\n").encode())
    assert crucible("lint", "--fix", cwd=tmp_path).status == 0
    assert (tmp_path / "crucible.toml").read_bytes() == block.replace("comand", "command").replace(
        "\n", "\r\n"
    ).encode()


def test_linting_changes_nothing_and_fixing_twice_equals_fixing_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Over every pack there is, right or wrong."""
    home = shutil.copytree(GOLDEN, tmp_path / "golden")
    monkeypatch.chdir(home)
    before = everything(home)
    main.main(["lint"])
    assert everything(home) == before
    capfd.readouterr()
    main.main(["lint", "--fix"])
    once = everything(home)
    changed = {name for name in before if before[name] != once[name]}
    assert before.keys() == once.keys()
    assert len(changed) > 10
    assert all(name.startswith("failing/") for name in changed)
    said = capfd.readouterr()
    main.main(["lint", "--fix"])
    assert everything(home) == once
    again = capfd.readouterr()
    assert again.out == said.out
    assert "fixed[" in said.err
    assert "fixed[" not in again.err

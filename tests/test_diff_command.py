"""crucible plan diff as a process: what can be compared, exit codes, formats and pictures."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from process import MISTAKE, SOURCE, crucible, pack
from repositories import commit, git, repository, state

from crucible.schemas import registry

WEAKER = SOURCE.replace("threshold = 12", "threshold = 11")
OTHER = SOURCE.replace('"make"', '"make all"')
MANIFEST = '[judge]\nmeasure_cmd = "./m.sh"\ndirection = "lower"\n[workspace]\ninject = ["m.sh"]\n'
DIFF = ("plan", "diff")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """Give a repository with a pack that was committed, and is weaker now."""
    top = repository(tmp_path / "r")
    commit(top, {"pack/workflow.star": SOURCE, "pack/crucible.toml": MANIFEST, "pack/m.sh": "echo {}\n"})
    (top / "pack" / "workflow.star").write_text(WEAKER, encoding="utf-8")
    return top


def test_a_revision_and_a_file_are_compared(top: Path) -> None:
    """From the top as git has it, or with ./ from where we are."""
    expected = b'  weakened      "gate" has a looser threshold: 12.0 -> 11.0\n'
    for old, new, cwd in (
        ("HEAD:pack/workflow.star", "pack/workflow.star", top),
        ("HEAD:./workflow.star", "workflow.star", top / "pack"),
        ("HEAD:pack/workflow.star", "workflow.star", top / "pack"),
    ):
        done = crucible(*DIFF, old, new, cwd=cwd)
        assert (done.status, done.err) == (0, b"")
        assert done.out == f"weakened: a run proves less than before ({old} -> {new})\n".encode() + expected


def test_all_forms_of_a_workflow_can_be_compared(top: Path) -> None:
    """A source, the canonical JSON of it, and the manifest that holds it."""
    compiled = crucible(
        "plan", "compile-workflow", "--file", "workflow.star", "--manifest", "crucible.toml", cwd=top / "pack"
    )
    (top / "workflow.json").write_bytes(compiled.out)
    for name in ("pack/workflow.star", "pack/crucible.toml", "workflow.json"):
        done = crucible(*DIFF, "pack/workflow.star", name, "--fail-on", "changed", cwd=top)
        assert (done.status, done.err) == (0, b"")
        assert done.out.startswith(b"unchanged: ")


def test_a_manifest_without_a_workflow_is_the_default_loop(tmp_path: Path) -> None:
    """Where no source stands beside it."""
    (tmp_path / "crucible.toml").write_text(MANIFEST, encoding="utf-8")
    (tmp_path / "loop.star").write_text("default_autoresearch()\n", encoding="utf-8")
    assert crucible(*DIFF, "crucible.toml", "loop.star", cwd=tmp_path).out.startswith(b"unchanged: ")


@pytest.mark.parametrize(
    ("new", "option", "status"),
    [
        (WEAKER, None, 0),
        (WEAKER, "weakened", 1),
        (WEAKER, "changed", 1),
        (OTHER, "weakened", 0),
        (OTHER, "changed", 1),
        (SOURCE.replace("[build, gate]", "[gate, build]"), "changed", 0),
        (SOURCE, "changed", 0),
    ],
)
def test_the_exit_code_is_what_fail_on_names(tmp_path: Path, new: str, option: str | None, status: int) -> None:
    """Without it a difference is no failure; what is weakened is changed as well, another order is not."""
    for name, text in (("old.star", SOURCE), ("new.star", new)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    options = () if option is None else ("--fail-on", option)
    assert crucible(*DIFF, "old.star", "new.star", *options, cwd=tmp_path).status == status


def test_a_pack_that_lost_its_manifest_lost_its_gate(top: Path) -> None:
    """The same pack is asked for its frozen files; another source elsewhere has none to lose."""
    (top / "pack" / "crucible.toml").unlink()
    assert (
        b'"m.sh" is not injected any more'
        in crucible(*DIFF, "HEAD:pack/workflow.star", "pack/workflow.star", cwd=top).out
    )
    (top / "other.star").write_text(SOURCE, encoding="utf-8")
    assert b"m.sh" not in crucible(*DIFF, "HEAD:pack/workflow.star", "other.star", cwd=top).out


@pytest.mark.parametrize("spelling", ["pack/workflow.star", "./pack/workflow.star", "{}/pack/workflow.star"])
def test_the_spelling_of_a_path_hides_no_lost_manifest(top: Path, spelling: str) -> None:
    """Relative or absolute, it is the same pack."""
    (top / "pack" / "crucible.toml").unlink()
    done = crucible(*DIFF, "HEAD:pack/workflow.star", spelling.format(top), cwd=top)
    assert b'"m.sh" is not injected any more' in done.out


PARAMETER = {"type": "number", "default": 5, "min": 1, "max": 9}
TITLE = {"type": "string", "default": "x", "choices": ["x", "y"]}


def playbook(threshold: str, **parameters: object) -> str:
    """Return a playbook with a check and some parameters; the title is what its agent is told."""
    block = f"params = {json.dumps(parameters)}\n" if parameters else ""
    return block.replace("true", "True") + (
        f'a = agent(name = "a", prompt = "Do " + {"param" if "t" in parameters else "str"}("t"))\n'
        f'e = evaluate(name = "e", run = "./e.sh", threshold = {threshold}, direction = "lower", depends_on = [a])\n'
        'workflow(type = "playbook", tasks = [a, e])\n'
    )


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        (playbook('param("n")', n=PARAMETER), playbook('param("n")', n={**PARAMETER, "max": 99}), "weakened"),
        (playbook('param("n")', n=PARAMETER), playbook('param("n")', n={**PARAMETER, "min": 0}), "changed"),
        (playbook('param("n")', n=PARAMETER), playbook('param("n")', n={**PARAMETER, "max": 8}), "changed"),
        (playbook('param("n")', n=PARAMETER), playbook('param("n")', n={"type": "number", "default": 5}), "weakened"),
        (playbook('param("n")', n=PARAMETER), playbook('param("n")', n={**PARAMETER, "doc": "x"}), "unchanged"),
        (playbook("5"), playbook('param("n")', n=PARAMETER), "weakened"),
        (playbook("5", n=PARAMETER, t=TITLE), playbook('param("n")', n=PARAMETER, t=TITLE), "weakened"),
        (playbook('param("n")', n=PARAMETER), playbook("5"), "changed"),
        (playbook("5"), "N = 5\n" + playbook("N"), "unchanged"),
        (playbook("5", t=TITLE), playbook("5", t={**TITLE, "choices": ["x", "y", "z"]}), "changed"),
        (playbook("5", t=TITLE), playbook("5", t={"type": "string", "default": "x"}), "changed"),
        (
            playbook("5", t=TITLE).replace('param("t")', '", ".join(["%s: %d" % (param("t"), 1)])'),
            playbook("5", t={**TITLE, "choices": ["x", "z"]}).replace(
                'param("t")', '", ".join(["%s: %d" % (param("t"), 1)])'
            ),
            "changed",
        ),
        (
            playbook("T", n=PARAMETER).replace("\n", '\nT = param("n")\n', 1),
            playbook("T", n={**PARAMETER, "max": 10}).replace("\n", '\nT = param("n")\n', 1),
            "weakened",
        ),
    ],
)
def test_what_a_launch_may_ask_for_is_part_of_what_a_run_proves(
    tmp_path: Path, old: str, new: str, verdict: str
) -> None:
    """The values of one launch are not all that a parameter may be."""
    for name, text in (("old.star", old), ("new.star", new)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = crucible(*DIFF, "old.star", "new.star", cwd=tmp_path)
    assert done.err == b""
    assert done.out.decode().partition(":")[0] == verdict


def test_injects_from_outside_are_the_same_where_nothing_changed(top: Path) -> None:
    """On the disk and at a revision; and their content counts."""
    manifest = '[workspace]\ninject = [{ src = "../shared", dst = "s" }, { src = "x/../../shared/m", dst = "m" }]\n'
    commit(top, {"pack/workflow.star": SOURCE, "pack/crucible.toml": manifest, "shared/m": "1", "shared/n/o": "2"})
    done = crucible(*DIFF, "HEAD:pack/workflow.star", "pack/workflow.star", cwd=top)
    assert done.out.startswith(b"unchanged: ")
    (top / "shared" / "n" / "o").write_text("3", encoding="utf-8")
    done = crucible(*DIFF, "HEAD:pack/workflow.star", "pack/workflow.star", cwd=top)
    assert b'the content of the injected "s/n/o" changed' in done.out


def test_a_side_that_does_not_compile_is_1_with_its_diagnostics(top: Path) -> None:
    """Nothing is printed as the product then."""
    commit(top, {"pack/workflow.star": MISTAKE})
    (top / "pack" / "workflow.star").write_text(SOURCE, encoding="utf-8")
    done = crucible(*DIFF, "HEAD:pack/workflow.star", "pack/workflow.star", cwd=top)
    assert (done.status, done.out) == (1, b"")
    assert done.err.startswith(b"error[unknown-argument]")
    assert b"--> HEAD:pack/workflow.star:2:" in done.err
    done = crucible(*DIFF, "HEAD:pack/workflow.star", "pack/workflow.star", "--format", "json", cwd=top)
    assert (done.status, done.out) == (1, b"")
    assert [each["file"] for each in done.report["diagnostics"]] == ["HEAD:pack/workflow.star"]


def test_a_broken_manifest_is_no_manifest_without_a_gate(top: Path) -> None:
    """What cannot be read may have let anything through."""
    (top / "pack" / "crucible.toml").write_text("x = [", encoding="utf-8")
    done = crucible(*DIFF, "HEAD:pack/workflow.star", "pack/workflow.star", cwd=top)
    assert (done.status, done.out) == (1, b"")
    assert b"error[toml-syntax]" in done.err


@pytest.mark.parametrize(
    ("old", "words"),
    [
        ("nowhere:pack/workflow.star", b'there is no revision "nowhere"'),
        ("-x:pack/workflow.star", b""),
        ("HEAD:pack/workflow.sta", b"is no source, manifest, plan file or canonical JSON"),
        ("HEAD:pack", b'did you mean "HEAD:pack/workflow.star"?'),
        ("HEAD:pack/nothing.star", b"cannot read HEAD:pack/nothing.star"),
        ("HEAD:../../x.star", b"cannot read HEAD:../../x.star"),
        (":workflow.star", b"names no revision"),
        ("nothing.star", b"cannot read nothing.star"),
        ("pack/workflow.stra", b"is no source"),
    ],
)
def test_what_cannot_be_read_is_2(top: Path, old: str, words: bytes) -> None:
    """With the reason."""
    done = crucible(*DIFF, old, "pack/workflow.star", cwd=top)
    assert (done.status, done.out) == (2, b"")
    assert words in done.err


def test_outside_of_a_repository_there_are_no_revisions(tmp_path: Path) -> None:
    """Files can be compared all the same."""
    pack(tmp_path / "p")
    done = crucible(
        *DIFF, "HEAD:workflow.star", "workflow.star", cwd=tmp_path / "p", env={"GIT_CEILING_DIRECTORIES": str(tmp_path)}
    )
    assert done.status == 2
    assert b"not a git repository" in done.err
    assert crucible(*DIFF, "workflow.star", "workflow.star", cwd=tmp_path / "p").status == 0


def test_the_report_is_the_same_twice_and_fits(top: Path) -> None:
    """In two processes, under other seeds and locales."""
    found = {
        crucible(
            *DIFF, "HEAD:pack/workflow.star", "pack/workflow.star", "--format", "json", cwd=top,
            env={"PYTHONHASHSEED": seed, "LC_ALL": locale},
        ).out
        for seed, locale in (("1", "C"), ("2", "C.UTF-8"), ("3", "POSIX"))
    }  # fmt: skip
    assert len(found) == 1
    assert registry.errors("diff", json.loads(found.pop())) == []


def test_pictures_are_drawn_whole_and_twice_the_same(top: Path) -> None:
    """Two files, which the Markdown shows."""
    for folder in ("one", "a b/two"):
        done = crucible(
            *DIFF, "HEAD:pack/workflow.star", "pack/workflow.star", "--format", "markdown", "--render", folder, cwd=top
        )
        assert (done.status, done.err) == (0, b"")
        assert done.out.startswith(b"**Weakened:** ")
        assert f"]({folder.replace(' ', '%20')}/before.png)".encode() in done.out
    assert sorted(os.listdir(top / "one")) == ["after.png", "before.png"]
    for name in ("after.png", "before.png"):
        data = (top / "one" / name).read_bytes()
        assert data.startswith(b"\x89PNG")
        assert data == (top / "a b" / "two" / name).read_bytes()


@pytest.mark.parametrize("folder", ["pack/workflow.star", "/dev/null/x"])
def test_pictures_that_cannot_be_written_are_2(top: Path, folder: str) -> None:
    """The verdict is printed all the same, and nothing is left."""
    before = state(top / "pack")
    options = (*DIFF, "HEAD:pack/workflow.star", "pack/workflow.star", "--render", folder)
    done = crucible(*options, cwd=top)
    assert (done.status, done.out) == (2, crucible(*options[:-2], cwd=top).out)
    assert folder.encode() in done.err
    assert crucible(*options, "--fail-on", "changed", cwd=top).status == 1
    assert state(top / "pack") == before


def test_comparing_touches_nothing(top: Path, tmp_path: Path) -> None:
    """Work tree, index and refs are as before, and no temporary file is left."""
    git(top, "status")
    (tmp_path / "t").mkdir()
    before = state(top)
    crucible(*DIFF, "HEAD:pack/workflow.star", "pack/workflow.star", cwd=top, env={"TMPDIR": str(tmp_path / "t")})
    assert state(top) == before
    assert os.listdir(tmp_path / "t") == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_temporary_folder(top: Path, tmp_path: Path, number: signal.Signals) -> None:
    """Whoever ends the comparison finds nothing of it."""
    (tmp_path / "t").mkdir()
    (tmp_path / "bin").mkdir()
    real = shutil.which("git")
    # Objects are asked for when the folder is there.
    script = f'#!/bin/sh\ncase "$*" in *cat-file*) kill -{number.value} $PPID; sleep 1;; esac\nexec {real} "$@"\n'
    (tmp_path / "bin" / "git").write_text(script, encoding="utf-8")
    (tmp_path / "bin" / "git").chmod(0o700)
    environment = {"TMPDIR": str(tmp_path / "t"), "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    done = crucible(*DIFF, "HEAD:pack/workflow.star", "pack/workflow.star", cwd=top, env=environment)
    assert done.status == 128 + number
    assert os.listdir(tmp_path / "t") == []


def test_what_cannot_be_drawn_is_2(top: Path) -> None:
    """Who asks for pictures wants them, but the verdict comes first; no folder is made without them."""
    options = ("HEAD:pack/workflow.star", "pack/workflow.star", "--render", "pictures")
    done = crucible(*DIFF, *options, cwd=top, env={"CRUCIBLE_DOT": "/nowhere/dot"})
    assert done.status == 2
    assert done.out.startswith(b"weakened: ")
    assert b"/nowhere/dot" in done.err
    assert not (top / "pictures").exists()


def test_a_manifest_that_is_named_is_missed_on_the_other_side(tmp_path: Path) -> None:
    """Its frozen injects and its judge are gone: whoever names a manifest means what it holds."""
    pack = Path(__file__).resolve().parent.parent / "golden" / "measurement-dag"
    shutil.copytree(pack, tmp_path / "old")
    shutil.copytree(pack, tmp_path / "new")
    (tmp_path / "new" / "crucible.toml").unlink()
    line = ("plan", "diff", "old/crucible.toml", "new/workflow.star", "--fail-on", "weakened")
    done = crucible(*line, cwd=tmp_path)
    assert (done.status, done.out.split(b" ")[0]) == (1, b"weakened:"), done

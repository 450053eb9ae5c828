"""Links in a pack: what a search found, or a pack names, is read through none; what a person names may be one."""

import os
import shutil
from pathlib import Path

import pytest
from process import COMPILE, MISTAKE, codes, crucible, pack, report

from crucible.cli.discover import MANIFEST, SOURCE
from crucible.compiler.facts import ManifestFacts
from crucible.compiler.frontend.pack import Unreadable, open_found, read_found
from crucible.compiler.pipeline import Options, compile_file, compile_source

TEXT = "secret: of the machine\nanother line\n"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Return a file outside every pack."""
    (tmp_path / "outside").mkdir()
    path = tmp_path / "outside" / "secret.txt"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize("style", ["text", "json", "sarif", "github"])
@pytest.mark.parametrize("name", [SOURCE, MANIFEST])
def test_lint_prints_nothing_of_what_a_link_leads_to(tmp_path: Path, secret: Path, name: str, style: str) -> None:
    """A stranger's change must not put a machine's files into a log, nor tell which there are."""
    home = pack(tmp_path / "home")
    (home / "sub").mkdir()
    (home / "sub" / name).symlink_to(secret)
    there = crucible("lint", ".", "--format", style, cwd=home)
    assert there.status == 2
    assert b"secret:" not in there.out + there.err
    secret.unlink()
    gone = crucible("lint", ".", "--format", style, cwd=home)
    assert (gone.out, gone.err) == (there.out, there.err)
    message = f"sub/{name} is a link, and a search follows none; name the file that it leads to"
    assert message.encode() in there.out + there.err


def test_a_named_link_is_followed(tmp_path: Path) -> None:
    """Who names it means what it leads to."""
    pack(tmp_path / "a", workflow=MISTAKE)
    (tmp_path / "b.star").symlink_to("a/workflow.star")
    assert codes(report(crucible("lint", "b.star", "--format", "json", cwd=tmp_path).out)) == ["unknown-argument"]


@pytest.mark.parametrize("command", [["lint"], ["lint", "crucible.toml"], ["plan", "show", "--file", "crucible.toml"]])
def test_the_source_that_a_manifest_names_is_no_link(tmp_path: Path, secret: Path, command: list[str]) -> None:
    """Its path is one of the pack's."""
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / MANIFEST).write_text('[workflow]\ntype = "playbook"\nfile = "x.star"\n')
    (tmp_path / "p" / "x.star").symlink_to(secret)
    done = crucible(*command, cwd=tmp_path / "p")
    assert done.status != 0
    assert b"secret:" not in done.out + done.err
    assert b"symbolic link" in done.out + done.err


def test_a_diff_prints_nothing_of_a_linked_manifest(tmp_path: Path, secret: Path) -> None:
    """The sources are named, what stands beside them is not."""
    for name in ("a", "b"):
        pack(tmp_path / name)
        (tmp_path / name / MANIFEST).symlink_to(secret)
    done = crucible("plan", "diff", "a/workflow.star", "b/workflow.star", cwd=tmp_path)
    assert b"secret:" not in done.out + done.err


def test_facts_are_read_through_no_link(tmp_path: Path) -> None:
    """Neither of a manifest beside a named source, nor of one below a searched directory."""
    (tmp_path / "real.toml").write_text('[judge]\ndirection = "lower"\n')
    (tmp_path / "p").mkdir()
    link = tmp_path / "p" / MANIFEST
    link.symlink_to("../real.toml")
    (tmp_path / "q").symlink_to("p")
    for root in (None, str(tmp_path)):
        assert ManifestFacts(str(link), root=root).judge_direction() is None
    link.unlink()
    shutil.copy(tmp_path / "real.toml", link)
    assert ManifestFacts(str(link), root=str(tmp_path)).judge_direction() == "lower"
    assert ManifestFacts(str(tmp_path / "q" / MANIFEST)).judge_direction() == "lower"
    assert ManifestFacts(str(tmp_path / "q" / MANIFEST), root=str(tmp_path)).judge_direction() is None


@pytest.mark.parametrize("part", ["a", "a/b", "a/b/workflow.star"])
def test_what_is_put_in_place_of_a_found_path_is_not_followed(tmp_path: Path, part: str) -> None:
    """Between the search and the reading, at whatever part of the path; nor is a prompt read from there."""
    source = 'workflow(type = "custom", tasks = [agent(name = "a", prompt = prompt_file("p.md"))])\n'
    found, elsewhere = tmp_path / "root" / "a" / "b" / SOURCE, tmp_path / "elsewhere" / "a" / "b" / SOURCE
    for path in (found, elsewhere):
        path.parent.mkdir(parents=True)
        path.write_text(source)
        (path.parent / "p.md").write_text(str(path))
    root = str(tmp_path / "root")
    compiled = compile_file(str(found), Options(root=root))
    assert compiled.prompt_texts == {"p.md": str(found)}
    swapped = tmp_path / "root" / part
    swapped.rename(tmp_path / "old")
    swapped.symlink_to(tmp_path / "elsewhere" / part)
    with pytest.raises(Unreadable):
        read_found(str(found), root, 1_000)
    with pytest.raises(Unreadable):
        compile_file(str(found), Options(root=root))
    if part != "a/b/workflow.star":
        with pytest.raises(OSError, match=r"directory|symbolic"):
            open_found(str(found.parent), root)
        with pytest.raises(Unreadable):
            compile_source(source.encode(), str(found), Options(root=root))
    assert compile_file(str(found)).workflow is not None, "a person may name it"


@pytest.mark.parametrize("here", ["", "root", "root/a"])
def test_a_found_path_is_read_from_wherever_the_search_began(
    tmp_path: Path, here: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The working directory, one below it or above, or an absolute one."""
    path = tmp_path / "root" / "a" / SOURCE
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x")
    monkeypatch.chdir(tmp_path / here)
    for root in (tmp_path, tmp_path / "root", path.parent):
        assert read_found(str(path), str(root), 9) == b"x"
        relative = os.path.relpath(root)
        assert read_found(os.path.relpath(path), "" if relative == "." else relative, 9) == b"x"


def runs(command: str) -> str:
    """Return a source that runs a command."""
    return f'workflow(type = "custom", tasks = [command(name = "a", run = "{command}")])\n'


def script_missing(home: Path) -> bool:
    """Tell whether lint warns of a script that nothing brings into the workspace."""
    return b"script-not-in-pack" in crucible("lint", cwd=home).out


def test_no_warning_tells_whether_a_file_exists_on_the_machine(tmp_path: Path, secret: Path) -> None:
    """Through a link, one on the way, or a repository elsewhere."""
    (tmp_path / ".git").mkdir()
    for number, link in enumerate(("./x.sh", "./d/secret.txt")):
        home = pack(tmp_path / str(number), workflow=runs(link))
        (home / MANIFEST).write_text("[judge]\n")
        assert script_missing(home)
        (home / "x.sh").symlink_to(secret)
        (home / "d").symlink_to(secret.parent)
        assert not script_missing(home)
        (home / "x.sh").unlink()
        (home / "x.sh").symlink_to("nowhere")
        (home / "d").unlink()
        (home / "d").symlink_to("nowhere")
        assert not script_missing(home)
    for place in (str(secret.parent), "../../outside"):
        for name in ("secret.txt", "no.txt"):
            home = pack(tmp_path / "repo" / "p", workflow=runs(f"./{name}"))
            (tmp_path / "repo" / ".git").mkdir(exist_ok=True)
            (home / MANIFEST).write_text(f'[repo]\npath = "{place}"\n')
            assert not script_missing(home), "of another repository nothing is said"
    (tmp_path / "repo" / "ours").mkdir()
    (home / MANIFEST).write_text('[repo]\npath = "../ours"\n')
    assert script_missing(home)
    (tmp_path / "repo" / "ours" / "no.txt").touch()
    assert not script_missing(home)


def test_a_compile_of_a_pack_with_a_linked_manifest_goes_on_without_it(tmp_path: Path, secret: Path) -> None:
    """It is a file of the pack like others; named by --manifest it is one that a person named."""
    home = pack(tmp_path / "home")
    (home / MANIFEST).symlink_to(secret)
    done = crucible(*COMPILE, cwd=home)
    assert (done.status, done.err) == (0, b"")

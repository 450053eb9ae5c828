"""Packs at a revision: compiled as they were, by the same policy of paths, and without touching anything."""

import os
import shutil
from pathlib import Path

import pytest
from repositories import commit, git, repository, state
from weaker import GOLDEN

from crucible.compiler import side
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.pipeline import Unreadable
from crucible.compiler.revisions import NoRevision, Repository
from crucible.compiler.side import Side

PROMPT = 'a = agent(name = "a", prompt = prompt_file("{}"))\nworkflow(type = "custom", tasks = [a])\n'
LOAD = 'load("lib.star", "made")\nworkflow(type = "custom", tasks = [made])\n'
MADE = 'made = command(name = "made", run = "true")\n'
OUTSIDE = "what the machine has"


def at(top: Path, revision: str, path: str) -> Side:
    """Compile a file as it was."""
    folder, _, name = path.rpartition("/")
    with Repository(str(top)) as repo, side.at_revision(repo.tree(revision), folder, folder or ".") as files:
        return side.read(files, name)


def on_disk(top: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> Side:
    """Compile a file as it is."""
    monkeypatch.chdir(top)
    folder, _, name = path.rpartition("/")
    return side.read(side.OnDisk(folder), name)


@pytest.mark.parametrize("pack", sorted(path.parent.name for path in GOLDEN.glob("*/workflow.star")))
@pytest.mark.parametrize("name", ["workflow.star", "crucible.toml", "expected-workflow.json"])
def test_a_golden_pack_is_compiled_as_on_the_disk(
    tmp_path: Path, pack: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Modules, prompts, the manifest and what it injects."""
    top = repository(tmp_path / "r")
    shutil.copytree(GOLDEN / pack, top / "packs" / pack)
    commit(top)
    path = f"packs/{pack}/{name}"
    here = on_disk(top, path, monkeypatch)
    shutil.rmtree(top / "packs")
    there = at(top, "HEAD", path)
    assert here.workflow is not None
    assert (there.workflow, there.gate, there.reads) == (here.workflow, here.gate, here.reads)


def test_each_revision_has_its_own_files(tmp_path: Path) -> None:
    """Source, module and prompt of a revision come from that revision, whatever stands on the disk."""
    top = repository(tmp_path)
    source = 'load("lib.star", "name")\na = agent(name = name, prompt = prompt_file("p.md"))\n'
    source += 'workflow(type = "custom", tasks = [a])\n'
    old = commit(top, {"workflow.star": source, "lib.star": 'name = "one"\n', "p.md": "first"})
    commit(top, {"lib.star": 'name = "two"\n', "p.md": "second"})
    (top / "p.md").write_text("third", encoding="utf-8")
    found = [at(top, revision, "workflow.star").workflow for revision in (old, "HEAD")]
    assert [(each.task[0].name, getattr(each.task[0], "prompt", "")) for each in found if each is not None] == [
        ("one", "first"),
        ("two", "second"),
    ]


ODD: dict[str, dict[str, str | bytes]] = {
    "a prompt that is not there": {"workflow.star": PROMPT.format("q.md"), "p.md": "x"},
    "a prompt that is a folder": {"workflow.star": PROMPT.format("d"), "d/p.md": "x"},
    "a prompt behind a file": {"workflow.star": PROMPT.format("p.md/x"), "p.md": "x"},
    "a prompt of another case": {"workflow.star": PROMPT.format("P.md"), "p.md": "x"},
    "a prompt outside": {"workflow.star": PROMPT.format("../p.md")},
    "a prompt that is too large": {"workflow.star": PROMPT.format("p.md"), "p.md": "x" * (LIMITS.prompt_bytes + 5)},
    "a prompt that is no text": {"workflow.star": PROMPT.format("p.md"), "p.md": b"\xff\x00"},
    "a prompt of carriage returns": {"workflow.star": PROMPT.format("p.md"), "p.md": b"\xef\xbb\xbfa\r\nb\rc"},
    "a prompt with an odd name": {"workflow.star": PROMPT.format("é 😀.md"), "é 😀.md": "x"},
    "a module that is too large": {"workflow.star": LOAD, "lib.star": MADE + "#" * LIMITS.source_bytes},
    "a module that is not there": {"workflow.star": LOAD, "lob.star": MADE},
    "a source that is too large": {"workflow.star": "#" * (LIMITS.source_bytes + 1)},
    "a source that is empty": {"workflow.star": ""},
    "a manifest that is none": {"workflow.star": LOAD, "lib.star": MADE, "crucible.toml": "x = ["},
}


@pytest.mark.parametrize("what", ODD)
def test_a_revision_is_refused_what_the_disk_is(tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same diagnostics in the same words."""
    top = repository(tmp_path)
    commit(top, {f"pack/{name}": content for name, content in ODD[what].items()})
    here, there = on_disk(top, "pack/workflow.star", monkeypatch), at(top, "HEAD", "pack/workflow.star")
    assert there.compiled.diagnostics == here.compiled.diagnostics
    assert there.workflow == here.workflow


LINKS = {
    "a prompt": ("pack/p.md", "real.md"),
    "a prompt out of the repository": ("pack/p.md", "../../secret/p.md"),
    "a prompt on the machine": ("pack/p.md", "{secret}/p.md"),
    "the folder of a prompt": ("pack/folder", "{secret}"),
    "a module": ("pack/lib.star", "../other/lib.star"),
}


@pytest.mark.parametrize("what", LINKS)
def test_a_link_is_refused_as_on_the_disk(tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path of a pack goes through none, wherever it leads."""
    top = repository(tmp_path / "r")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "p.md").write_text(OUTSIDE, encoding="utf-8")
    link, target = LINKS[what]
    prompt = "folder/p.md" if "folder" in what else "p.md"
    source = LOAD if "module" in what else PROMPT.format(prompt)
    (top / "pack").mkdir()
    (top / link).symlink_to(target.format(secret=tmp_path / "secret"))
    commit(top, {"pack/workflow.star": source, "pack/real.md": "x", "other/lib.star": MADE})
    here, there = on_disk(top, "pack/workflow.star", monkeypatch), at(top, "HEAD", "pack/workflow.star")
    assert [each.code for each in there.compiled.diagnostics] == ["path-refused"]
    assert there.compiled.diagnostics == here.compiled.diagnostics


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("pack/workflow.star", "{secret}/workflow.star"),
        ("pack/workflow.star", "../../secret/workflow.star"),
        ("pack/workflow.star", "../there/../../secret/workflow.star"),
        ("pack", "{secret}"),
        ("pack", "../secret"),
        ("pack/workflow.star", "workflow.star"),
    ],
)
def test_nothing_outside_of_the_repository_is_read(tmp_path: Path, link: str, target: str) -> None:
    """A link of a tree that leads out of it leads nowhere, whatever the machine has there."""
    top = repository(tmp_path / "r")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "workflow.star").write_text(f"# {OUTSIDE}\n{MADE}\n", encoding="utf-8")
    (top / "there").symlink_to(".")
    (top / link).parent.mkdir(exist_ok=True)
    (top / link).symlink_to(target.format(secret=tmp_path / "secret"))
    commit(top)
    with pytest.raises(Unreadable):
        at(top, "HEAD", "pack/workflow.star")


def test_a_source_and_a_folder_may_be_links_inside(tmp_path: Path) -> None:
    """What a person names may be a link, as on the disk, as long as it stays in the tree."""
    top = repository(tmp_path)
    (top / "current").symlink_to("packs/one")
    (top / "packs").mkdir()
    (top / "packs" / "one").mkdir()
    (top / "packs" / "one" / "workflow.star").symlink_to("../shared.star")
    commit(top, {"packs/shared.star": PROMPT.format("p.md"), "packs/one/p.md": "x"})
    assert at(top, "HEAD", "current/workflow.star").workflow is not None


def tree_of(top: Path, *rows: tuple[str, str, bytes]) -> str:
    """Write a tree object as nobody's git would, and return its name."""
    data = b"".join(f"{mode} ".encode() + name + b"\0" + bytes.fromhex(oid) for mode, oid, name in rows)
    return git(top, "hash-object", "-t", "tree", "--literally", "-w", "--stdin", stdin=data)


def test_a_hostile_tree_writes_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names with .. in them, a link and a folder of one name: nothing is made outside of our own directory."""
    top = repository(tmp_path / "r")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "t"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "t").mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    blob = git(top, "hash-object", "-w", "--stdin", stdin=MADE.encode())
    link = git(top, "hash-object", "-w", "--stdin", stdin=str(outside).encode())
    inner = tree_of(top, ("100644", blob, b"evil"))
    tree = tree_of(
        top,
        ("40000", inner, b".."),
        ("120000", link, b"a"),
        ("40000", inner, b"a"),
        ("100644", blob, b"../../up"),
        ("100644", blob, str(outside / "absolute").encode()),
        ("100644", blob, b"workflow.star"),
    )
    with Repository(str(top)) as repo, repo.tree(tree).directory("") as directory:
        made = sorted(str(path.relative_to(directory)) for path in Path(directory).rglob("*"))
        assert made == [".git", "a", "a/evil", "workflow.star"]
    assert list(outside.iterdir()) == []
    assert list((tmp_path / "t").iterdir()) == []


def test_looking_at_a_revision_touches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work tree, index, refs and objects stay, uncommitted work included, and no temporary file is left."""
    top = repository(tmp_path / "r")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "t"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "t").mkdir()
    commit(top, {"workflow.star": PROMPT.format("p.md"), "p.md": "x"})
    (top / "p.md").write_text("uncommitted", encoding="utf-8")
    (top / "staged.md").write_text("staged", encoding="utf-8")
    git(top, "add", "staged.md")
    before = state(top)
    assert at(top, "HEAD", "workflow.star").workflow is not None
    assert state(top) == before
    assert list((tmp_path / "t").iterdir()) == []


@pytest.mark.parametrize("revision", ["nowhere", "", "--all", "-h", "HEAD^{blob}", "main..HEAD", "HEAD:pack", "a b\n"])
def test_what_is_no_revision_is_refused(tmp_path: Path, revision: str) -> None:
    """Nor is it ever an option of git."""
    top = repository(tmp_path)
    commit(top, {"pack/workflow.star": MADE})
    with Repository(str(top)) as repo:
        with pytest.raises(NoRevision, match="there is no revision"):
            repo.commit(revision)
        if revision != "HEAD:pack":
            with pytest.raises(NoRevision, match="there is no revision"):
                repo.tree(revision)


def test_where_there_is_no_repository(tmp_path: Path) -> None:
    """Git says so."""
    with pytest.raises(NoRevision, match="not a git repository"):
        Repository(str(tmp_path))


def test_where_there_is_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain message."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoRevision, match="git cannot be run"):
        Repository(str(tmp_path))


def test_a_submodule_is_an_empty_folder(tmp_path: Path) -> None:
    """What it holds is in another repository."""
    top = repository(tmp_path / "r")
    commit(top, {"workflow.star": PROMPT.format("sub/p.md")})
    git(top, "update-index", "--add", "--cacheinfo", f"160000,{git(top, 'rev-parse', 'HEAD')},sub")
    git(top, "commit", "-q", "-m", "sub")
    assert [each.code for each in at(top, "HEAD", "workflow.star").compiled.diagnostics] == ["file-not-found"]


def test_a_bare_repository_will_do(tmp_path: Path) -> None:
    """As a bot has it."""
    top = repository(tmp_path / "r")
    commit(top, {"pack/workflow.star": LOAD, "pack/lib.star": MADE})
    git(tmp_path, "clone", "-q", "--bare", str(top), str(tmp_path / "bare"))
    assert at(tmp_path / "bare", "HEAD", "pack/workflow.star").workflow is not None


def test_names_that_are_no_utf8_do_no_harm(tmp_path: Path) -> None:
    """They are carried as they are."""
    top = repository(tmp_path / "r")
    (Path(os.fsdecode(os.fsencode(top) + b"/\xff\xfe.md"))).write_text("x", encoding="utf-8")
    commit(top, {"workflow.star": LOAD, "lib.star": MADE})
    assert at(top, "HEAD", "workflow.star").workflow is not None

"""The review of a change: which packs it touches, what is said of each, and what a bot makes of it."""

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from process import COMMAND, MISTAKE, SOURCE, Done, crucible
from repositories import commit, git, repository, state

from crucible.compiler.pipeline import Options
from crucible.compiler.review import review as in_process
from crucible.compiler.revisions import Repository
from crucible.schemas import registry

ROOT = Path(__file__).resolve().parent.parent
PLAYBOOK = """\
params = {"what": {"type": "string", "required": True}}
workflow(type = "playbook", tasks = [agent(name = "a", prompt = "Do " + param("what"))])
"""
PROMPTED = """\
load("lib.star", "after")
a = agent(name = "a", prompt = prompt_file("prompts/a.md"))
workflow(type = "custom", tasks = [a, after(a)])
"""
LIBRARY = 'def after(task):\n    return command(name = "b", run = "./m.sh", depends_on = [task])\n'
MANIFEST = '[workspace]\ninject = ["m.sh"]\n'
WEAKER = SOURCE.replace("threshold = 12", "threshold = 11")


def full(pack: str, source: str = SOURCE) -> dict[str, str]:
    """Return the files of a pack whose manifest holds what its source compiles to."""
    return {f"{pack}/workflow.star": source}


def review(top: Path, *options: str) -> Done:
    """Review what main has changed since the tag base."""
    return crucible("review", "--base", "base", "--head", "main", *options, cwd=top)


def packs(top: Path, *options: str) -> dict[str, Any]:
    """Return the packs of a review by their paths."""
    done = review(top, "--format", "json", *options)
    value = json.loads(done.out)
    assert registry.errors("review", value) == []
    return {pack["path"]: pack for pack in value["packs"]}


def changed(top: Path, before: Mapping[str, str | None], after: Mapping[str, str | bytes | None]) -> Path:
    """Commit files, tag that as the base, commit a change of them, and return the repository."""
    repository(top)
    commit(top, before)
    git(top, "tag", "base")
    commit(top, after)
    return top


KERNEL = {
    "k/workflow.star": PROMPTED, "k/lib.star": LIBRARY, "k/prompts/a.md": "Do.", "k/m.sh": "true",
    "k/README.md": "", "k/other.md": "",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"k/workflow.star": PROMPTED + "\n"}, "unchanged"),
        ({"k/lib.star": LIBRARY.replace("./m.sh", "true")}, "weakened"),
        ({"k/lib.star": LIBRARY.replace("./m.sh", "./n.sh")}, "changed"),
        ({"k/prompts/a.md": "Do it."}, "changed"),
        ({"k/prompts/a.md": None}, "unknown"),
        ({"k/crucible.toml": MANIFEST}, "strengthened"),
        ({"k/m.sh": "exit 0"}, "changed"),
        ({"k/prompts/unused.md": ""}, "unchanged"),
        ({"k/expected.png": "x"}, "changed"),
        ({"k/README.md": "x"}, None),
        ({"k/other.star": "x"}, None),
        ({"README.md": "x"}, None),
    ],
)
def test_a_pack_is_touched_by_what_it_is_made_of(
    tmp_path: Path, change: dict[str, str | None], verdict: str | None
) -> None:
    """Its sources, modules, prompts and manifest, and nothing else below its folder."""
    found = packs(changed(tmp_path, KERNEL, change))
    assert {path: pack["verdict"] for path, pack in found.items()} == ({} if verdict is None else {"k": verdict})


MEASURED = '[judge]\nmeasure_cmd = "./measure.sh"\n'
OUTSIDE = '[workspace]\ninject = [{ src = "../shared/measure.sh", dst = "measure.sh" }]\n'
AGENT = 'workflow(type = "custom", tasks = [agent(name = "a", prompt = "Do.")])\n'
WITH_TESTS = AGENT.replace("])", ', command(name = "t", run = "./tests.sh")])')


@pytest.mark.parametrize(
    ("before", "change", "verdict"),
    [
        (
            {"k/workflow.star": "@../shared/w.star", "shared/w.star": WITH_TESTS},
            {"shared/w.star": WITH_TESTS.replace("./tests.sh", "true")},
            "weakened",
        ),
        (
            {"k/workflow.star": SOURCE, "k/crucible.toml": "@../shared/c.toml", "shared/c.toml": MEASURED},
            {"shared/c.toml": MEASURED.replace("./measure.sh", "true")},
            "weakened",
        ),
        (
            {"k/workflow.star": SOURCE, "k/crucible.toml": OUTSIDE, "shared/measure.sh": "./x"},
            {"shared/measure.sh": "true"},
            "changed",
        ),
        (
            {"k/workflow.star": SOURCE, "k/crucible.toml": OUTSIDE.replace("/measure.sh", "", 1), "shared/m": "./x"},
            {"shared/m": "true"},
            "changed",
        ),
        (
            {
                "k/workflow.star": SOURCE, "k/crucible.toml": '[workflow]\ntype = "playbook"\nfile = "other.star"\n',
                "k/other.star": PLAYBOOK.replace('"required": True', '"default": "x"'),
            },
            {"k/other.star": PLAYBOOK.replace('"required": True', '"default": "x"').replace("Do ", "Don't ")},
            "changed",
        ),
        (
            {"k/workflow.star": SOURCE, "k/crucible.toml": '[repo]\npath = "."\n' + MEASURED, "k/measure.sh": "./x"},
            {"k/measure.sh": "true"},
            "changed",
        ),
        (
            {
                "k/workflow.star": SOURCE, "k/crucible.toml": '[repo]\npath = "../r"\n' + MEASURED,
                "r/measure.sh": "./x",
            },
            {"r/measure.sh": "true"},
            "changed",
        ),
        (
            {"k/workflow.star": SOURCE, "k/crucible.toml": '[repo]\npath = "."\n' + MEASURED, "k/lib.sh": "./x"},
            {"k/lib.sh": "true"},
            "changed",
        ),
        ({"k/workflow.star": SOURCE, "k/crucible.toml": OUTSIDE, "shared/measure.sh": "./x"}, {"x": "y"}, None),
    ],
)  # fmt: skip
def test_a_pack_is_touched_by_what_it_names_elsewhere(
    tmp_path: Path, before: dict[str, str], change: dict[str, str | bytes | None], verdict: str | None
) -> None:
    """Behind links, injects, a named source and the repository that is worked on; @ is where a link leads."""
    repository(tmp_path)
    for name, text in before.items():
        if text.startswith("@"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).symlink_to(text[1:])
    commit(tmp_path, {name: text for name, text in before.items() if not text.startswith("@")})
    git(tmp_path, "tag", "base")
    commit(tmp_path, change)
    assert {path: pack["verdict"] for path, pack in packs(tmp_path).items()} == (
        {} if verdict is None else {"k": verdict}
    )


def told(top: Path) -> dict[str, tuple[str, list[str]]]:
    """Return verdict and sentences of each pack, found without a process of its own."""
    with Repository(str(top)) as found:
        packs = in_process(found, "base", "main", Options()).packs
    return {
        pack.path: (pack.verdict, [change.sentence for change in pack.diff.changes] if pack.diff is not None else [])
        for pack in packs
    }


def runs(command: str) -> str:
    """Return a source that runs a command."""
    return f'workflow(type = "custom", tasks = [evaluate(name = "e", run = {json.dumps(command)})])\n'


IN_REPOSITORY = '[repo]\npath = "{}"\n'


@pytest.mark.parametrize("manifest", [None, IN_REPOSITORY.format("."), IN_REPOSITORY.format("..")])
@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("./gate.sh", "gate.sh"),
        ("make check", "Makefile"),
        ("bash -c './gate.sh --all'", "gate.sh"),
        ("cd lib && ./run.sh", "lib/run.sh"),
        ("pytest tests", "tests/test_it.py"),
        ("python -m lib.check", "lib/check.py"),
        ("$PWD/gate.py", "gate.py"),
        ("./gate --rules=rules.json", "rules.json"),
    ],
)
def test_what_a_command_reaches_is_no_unchanged_pack(
    tmp_path: Path, command: str, file: str, manifest: str | None
) -> None:
    """However indirectly it does, where the files of the repository are the workspace."""
    before = {"k/workflow.star": runs(command), f"k/{file}": "false"}
    before |= {} if manifest is None else {"k/crucible.toml": manifest}
    verdict, says = told(changed(tmp_path, before, {f"k/{file}": "exit 0"}))["k"]
    assert verdict == "changed"
    assert any(f'{file}"' in sentence for sentence in says)


@pytest.mark.parametrize(
    ("before", "change", "verdict"),
    [
        ({"k/workflow.star": AGENT, "k/x.sh": "1"}, {"k/x.sh": "2"}, None),
        ({"k/workflow.star": runs("./x.sh"), "k/x.sh": "1", "k/README.md": "1"}, {"k/README.md": "2"}, None),
        (
            {
                "k/workflow.star": runs("make"), "k/Makefile": "1",
                "k/crucible.toml": '[repo]\nurl = "https://example.org/r"\n',
            },
            {"k/Makefile": "2"},
            None,
        ),
        (
            {
                "k/workflow.star": runs("make"), "k/Makefile": "1", "k/gate/Makefile": "3",
                "k/crucible.toml": IN_REPOSITORY.format(".")
                + '[workspace]\ninject = [{ src = "gate/Makefile", dst = "Makefile" }]\n',
            },
            {"k/Makefile": "2"},
            None,
        ),
    ],
)  # fmt: skip
def test_what_no_command_reaches_touches_no_pack(
    tmp_path: Path, before: dict[str, str], change: dict[str, str | bytes | None], verdict: str | None
) -> None:
    """Nothing runs, nothing could run it, it is not in the workspace, or something else stands in its place there."""
    found = told(changed(tmp_path, before, change))
    assert {path: says[0] for path, says in found.items()} == ({} if verdict is None else {"k": verdict})


def test_a_gate_that_may_not_be_executed_any_more_is_a_change(tmp_path: Path) -> None:
    """Its permissions are injected, too."""
    top = changed(tmp_path, {**full("k", runs("./m.sh")), "k/crucible.toml": MANIFEST, "k/m.sh": "x"}, {})
    (top / "k" / "m.sh").chmod(0o755)
    commit(top)
    assert told(top)["k"] == ("changed", ['the injected "m.sh" may be executed now'])
    git(top, "tag", "-f", "base")
    (top / "k" / "m.sh").chmod(0o644)
    commit(top)
    assert told(top)["k"] == ("changed", ['the injected "m.sh" may not be executed any more'])


MANAGED = """\
[agent]
model = "small"
method_prompt = "method.txt"
goal_file = "../goals/goal.txt"
toolbox_dir = "tools"
[agent.env]
LEVEL = "1"
[search]
wide = 2
approaches = ["a", "b"]
"""


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"k/method.txt": "y"}, 'the content of "method.txt", which agents are told or given, changed'),
        ({"goals/goal.txt": "y"}, 'the content of "../goals/goal.txt", which agents are told or given, changed'),
        ({"k/tools/a/SKILL.md": "y"}, 'the content of "tools/a/SKILL.md", which agents are told or given, changed'),
        ({"k/tools/b.md": "y"}, 'agents are told or given "tools/b.md" now'),
        ({"k/tools/a/SKILL.md": None}, 'agents are told or given "tools/a/SKILL.md" no more'),
        ({"k/crucible.toml": MANAGED.replace("small", "large")}, '"agent.model" of the manifest changed'),
        ({"k/crucible.toml": MANAGED.replace('"1"', '"2"')}, '"agent.env.LEVEL" of the manifest changed'),
        ({"k/crucible.toml": MANAGED.replace("wide = 2", "wide = 1")}, '"search.wide" of the manifest changed'),
        ({"k/crucible.toml": f"{MANAGED}[budget]\ncost = 5\n"}, '"budget.cost" of the manifest is new'),
    ],
)  # fmt: skip
def test_what_agents_are_told_and_run_with_is_named(
    tmp_path: Path, change: dict[str, str | bytes | None], sentence: str
) -> None:
    """As a prompt that changed is."""
    before = {
        **full("k", AGENT), "k/crucible.toml": MANAGED, "k/method.txt": "x", "goals/goal.txt": "x",
        "k/tools/a/SKILL.md": "x",
    }  # fmt: skip
    assert told(changed(tmp_path, before, change)) == {"k": ("changed", [sentence])}


def test_the_values_of_an_environment_are_not_repeated(tmp_path: Path) -> None:
    """They may be what nobody should post."""
    before = {**full("k", AGENT), "k/crucible.toml": MANAGED}
    top = changed(tmp_path, before, {"k/crucible.toml": MANAGED.replace('"1"', '"hidden"')})
    assert b"hidden" not in review(top).out


def test_the_block_of_the_manifest_is_what_runs(tmp_path: Path) -> None:
    """One that was loosened beside a source that was not is weaker, and one that is only stale is not."""
    top = repository(tmp_path)
    commit(top, {**full("k"), "k/crucible.toml": "# mine\n"})
    crucible("plan", "compile-workflow", "--file", "workflow.star", "--manifest", "crucible.toml", cwd=top / "k")
    commit(top)
    git(top, "tag", "base")
    manifest = (top / "k" / "crucible.toml").read_text(encoding="utf-8")
    commit(top, {"k/crucible.toml": manifest.replace("threshold = 12.0", "threshold = 11.0")})
    verdict, says = told(top)["k"]
    assert (verdict, says) == ("weakened", ['in [workflow] of the manifest: "gate" has a looser threshold'])
    commit(top, {"k/crucible.toml": manifest, **full("k", SOURCE.replace('"make"', '"make all"'))})
    assert told(top)["k"] == ("changed", ['"build" runs another command'])


def test_nothing_that_a_repository_says_of_itself_hides_a_change(tmp_path: Path) -> None:
    """Neither what .gitmodules ignores, nor attributes, nor settings of git."""
    top = repository(tmp_path)
    commit(
        top,
        {
            "k/workflow.star": runs("make"),
            "k/crucible.toml": IN_REPOSITORY.format("."),
            "k/Makefile": "1",
            ".gitattributes": "* -diff binary export-ignore\n",
            ".gitmodules": '[submodule "t"]\n\tpath = k/tools\n\turl = ./t\n\tignore = all\n',
        },
    )
    for setting in ("diff.ignoreSubmodules=all", "core.fileMode=false", "diff.external=true", "core.quotePath=true"):
        git(top, "config", *setting.split("="))
    for tag, number in (("base", "1"), ("later", "2")):
        git(top, "update-index", "--add", "--cacheinfo", f"160000,{number * 40},k/tools")
        git(top, "commit", "-q", "--allow-empty", "-m", tag)
        git(top, "tag", tag)
    assert told(top) == {"k": ("changed", ['files changed that the commands may run or read: "tools"'])}


def test_a_shallow_clone_is_told_what_it_lacks(tmp_path: Path) -> None:
    """What the base branch did is not blamed on the change."""
    top = changed(tmp_path / "r", full("one"), full("one", WEAKER))
    git(top, "checkout", "-q", "-B", "other", "base")
    commit(top, full("two"))
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", "--no-single-branch", f"file://{top}", str(clone))
    for head, base in (("origin/main", "origin/other"), ("origin/main", "base~1")):
        done = crucible("review", "--base", base, "--head", head, cwd=clone)
        assert (done.status, done.out) == (2, b"")
        assert b"fetch-depth: 0" in done.err
    git(clone, "fetch", "-q", "--unshallow")
    done = crucible("review", "--base", "origin/other", "--head", "origin/main", "--format", "json", cwd=clone)
    assert [pack["path"] for pack in json.loads(done.out)["packs"]] == ["one"]


def test_a_submodule_that_moved_is_a_change(tmp_path: Path) -> None:
    """What is injected out of it is another thing."""
    repository(tmp_path)
    commit(tmp_path, {"k/workflow.star": SOURCE, "k/crucible.toml": '[workspace]\ninject = ["tools"]\n'})
    for tag, number in (("base", "1"), ("later", "2")):
        git(tmp_path, "update-index", "--add", "--cacheinfo", f"160000,{number * 40},k/tools")
        git(tmp_path, "commit", "-q", "-m", tag)
        git(tmp_path, "tag", tag)
    assert packs(tmp_path)["k"]["verdict"] == "changed"


def test_pictures_that_cannot_be_written_are_2(tmp_path: Path) -> None:
    """As for a diff; the review is printed all the same, and its own exit code goes before."""
    top = changed(tmp_path, full("k"), full("k", WEAKER))
    said = review(top)
    for folder in ("k/workflow.star", "/dev/null/x", "x" * 300):
        done = review(top, "--render", folder)
        assert (done.status, done.out) == (2, said.out)
        assert folder.encode() in done.err
        assert review(top, "--render", folder, "--fail-on", "weakened").status == 1


def test_every_pack_has_pictures_of_its_own(tmp_path: Path) -> None:
    """However long its path is, and whatever it has for other marks."""
    folders = ["a b", "a+b", "a-b", *("/".join(["x" * 120, "y" * 120, last]) for last in ("z" * 100, "z" * 99))]
    top = changed(tmp_path, {"x": ""}, {f"{folder}/workflow.star": SOURCE for folder in folders})
    pictures = [name for pack in packs(top, "--render", "p").values() for name in pack["pictures"]]
    assert len(set(pictures)) == len(folders)
    assert sorted(pictures) == sorted(f"p/{name}" for name in os.listdir(top / "p"))


@pytest.mark.parametrize("style", ["markdown", "github", "json"])
def test_no_line_of_a_review_is_a_command(tmp_path: Path, style: str) -> None:
    """Whatever a pack prints and runs, and however its folder is called; what is meant as one has our form."""
    source = SOURCE.replace('"make"', '"make ##[add-mask]g"')
    prints = 'print("::add-mask::x")\nprint(" ::add-mask::y")\nprint("##[add-mask]z")\n'
    after = prints + source.replace("threshold = 12", "threshold = 11").replace("]g", "]h")
    top = changed(tmp_path, {}, {"::stop-commands::tok/workflow.star": source})
    git(top, "tag", "-f", "base")
    commit(top, {"::stop-commands::tok/workflow.star": after})
    options = ("review", "--base", "base", "--head", "main", "--format", style)
    done = crucible(*options, cwd=top, env={"GITHUB_ACTIONS": "true"})
    assert done.status == 0
    said = done.err if style == "json" else done.out + b"\n" + done.err
    assert b"add-mask" in done.err
    lines = [line.strip() for line in said.decode().splitlines()]
    assert not [line for line in lines if line.startswith("::") and not line.startswith("::warning ")]
    assert not [line for line in lines if "##[" in line and not line.startswith("::warning ")]


def test_a_source_that_is_a_link_to_nowhere_is_named(tmp_path: Path) -> None:
    """It is what is wrong, and not the manifest that is missing beside it."""
    top = changed(tmp_path, full("k"), {})
    (top / "k" / "workflow.star").unlink()
    (top / "k" / "workflow.star").symlink_to("/etc/passwd")
    commit(top, {})
    pack = packs(top)["k"]
    assert pack["verdict"] == "unknown"
    assert [each["message"].partition(" ")[0] for each in pack["diagnostics"]] == ["k/workflow.star"]


def test_the_file_that_is_injected_is_part_of_the_gate(tmp_path: Path) -> None:
    """What it holds now is another judge."""
    found = packs(changed(tmp_path, {**KERNEL, "k/crucible.toml": MANIFEST}, {"k/m.sh": "exit 0"}))
    assert [(each["class"], each["field"]) for each in found["k"]["changes"]] == [("changed", "workspace.inject")]


def test_new_removed_and_renamed_packs_are_reviewed(tmp_path: Path) -> None:
    """Each with its own verdict; a pack that moved is compared with what it was."""
    lonely = 'workflow(type = "custom", tasks = [command(name = "z", run = "./z.sh")])\n'
    before = {**full("gone", lonely), **full("moved", WEAKER), "moved/x.md": "x"}
    after: dict[str, str | None] = {"gone/workflow.star": None, "moved/workflow.star": None, "moved/x.md": None}
    after |= {**full("fresh", "x = \n"), **full("there/now", WEAKER.replace("11", "10")), "there/now/x.md": "x"}
    found = packs(changed(tmp_path, before, after))
    assert {path: (pack["verdict"], pack["was"]) for path, pack in found.items()} == {
        "fresh": ("unknown", None),
        "gone": ("removed", None),
        "there/now": ("weakened", "moved"),
    }


def test_a_pack_at_the_top_and_one_below_it_are_apart(tmp_path: Path) -> None:
    """What the inner one is made of is no concern of the outer one, unless that embeds it."""
    before = {"workflow.star": PROMPTED.replace("prompts/a.md", "inner/prompts/a.md"), "lib.star": LIBRARY}
    before |= {"inner/workflow.star": SOURCE, "inner/prompts/a.md": "x"}
    top = changed(tmp_path, before, {"inner/workflow.star": WEAKER})
    assert {path: pack["verdict"] for path, pack in packs(top).items()} == {"inner": "weakened"}
    git(top, "tag", "-f", "base")
    commit(top, {"inner/prompts/a.md": "y"})
    assert {path: pack["verdict"] for path, pack in packs(top).items()} == {"": "changed", "inner": "unchanged"}


def test_what_the_base_branch_did_meanwhile_is_not_the_changes_doing(tmp_path: Path) -> None:
    """A change is compared with where it left the branch."""
    top = changed(tmp_path, {**full("one"), **full("two", WEAKER)}, full("one", WEAKER))
    git(top, "checkout", "-q", "-B", "other", "base")
    git(top, "tag", "start")
    commit(top, full("two"))
    git(top, "tag", "-f", "base")
    assert set(packs(top)) == {"one"}


def test_histories_without_a_common_commit_are_compared_as_they_are(tmp_path: Path) -> None:
    """As they never met, all is the change's doing."""
    top = changed(tmp_path, full("one"), full("one"))
    git(top, "checkout", "-q", "--orphan", "lonely")
    commit(top, full("one", WEAKER))
    git(top, "branch", "-f", "main")
    assert packs(top)["one"]["verdict"] == "weakened"


@pytest.mark.parametrize(
    ("after", "options", "status"),
    [
        (full("k", SOURCE.replace("make test", "make tests")), ("--fail-on", "weakened"), 0),
        (full("k", WEAKER), (), 0),
        (full("k", WEAKER), ("--fail-on", "weakened"), 1),
        ({"k/workflow.star": None}, ("--fail-on", "weakened"), 1),
        (full("k", MISTAKE), (), 1),
        ({"k/crucible.toml": "x = ["}, (), 1),
        ({"k/crucible.toml": MANIFEST.replace('"m.sh"', "")}, (), 1),
        (full("k", PLAYBOOK), (), 0),
        (full("k", PLAYBOOK), ("--fail-on", "weakened"), 1),
        ({"x": "y"}, ("--fail-on", "weakened"), 0),
    ],
)
def test_the_exit_code_is_1_for_errors_and_for_what_fail_on_names(
    tmp_path: Path, after: dict[str, str | None], options: tuple[str, ...], status: int
) -> None:
    """A stale manifest is an error; what cannot be compared may have become weaker."""
    top = changed(tmp_path, full("k"), after)
    assert review(top, *options).status == status


@pytest.mark.parametrize("style", ["markdown", "github", "json"])
def test_the_format_is_no_matter_of_the_exit_code(tmp_path: Path, style: str) -> None:
    """A bot may ask for any."""
    top = changed(tmp_path, full("k"), full("k", WEAKER))
    assert review(top, "--format", style, "--fail-on", "weakened").status == 1


def test_a_stale_manifest_has_its_place(tmp_path: Path) -> None:
    """The one at the head: whoever changed the source alone is told so."""
    top = repository(tmp_path)
    commit(top, {**full("k"), "k/crucible.toml": "# mine\n"})
    crucible("plan", "compile-workflow", "--file", "workflow.star", "--manifest", "crucible.toml", cwd=top / "k")
    commit(top)
    git(top, "tag", "base")
    commit(top, full("k", SOURCE.replace('"make"', '"make all"')))
    (found,) = packs(top)["k"]["diagnostics"]
    assert (found["code"], found["file"], found["span"]["begin"]["line"]) == ("stale-workflow", "k/crucible.toml", 4)


def test_a_base_that_did_not_compile_is_said_so(tmp_path: Path) -> None:
    """As a warning, for the change has mended it."""
    top = changed(tmp_path, full("k", MISTAKE), full("k"))
    found = packs(top)["k"]
    assert found["verdict"] == "unknown"
    assert {each["severity"] for each in found["diagnostics"]} == {"warning"}
    assert review(top).status == 0


@pytest.mark.parametrize("option", ["--base", "--head"])
def test_unknown_revisions_and_no_repository_are_2(tmp_path: Path, option: str) -> None:
    """With the reason."""
    top = changed(tmp_path / "r", full("k"), full("k", WEAKER))
    done = review(top, option, "nowhere")
    assert (done.status, done.out) == (2, b"")
    assert b'there is no revision "nowhere"' in done.err
    (tmp_path / "empty").mkdir()
    done = crucible(
        "review", "--base", "a", "--head", "b", cwd=tmp_path / "empty", env={"GIT_CEILING_DIRECTORIES": str(tmp_path)}
    )
    assert (done.status, done.out) == (2, b"")
    assert b"not a git repository" in done.err


def test_markdown_begins_with_the_verdict(tmp_path: Path) -> None:
    """Then pack by pack: a table, and the pictures where they were asked for."""
    top = changed(tmp_path, {**full("k"), **full("l")}, {**full("k", WEAKER), "l/workflow.star": SOURCE + "\n"})
    text = review(top, "--render", "pictures").out.decode()
    assert text.startswith("**Weakened:** a run proves less than before (1 of 2 packs)\n\n### `k`\n")
    assert "| **weakened** | `gate` has a looser threshold | `12.0` | `11.0` |" in text
    shown = re.findall(r"\]\((.*)\)", text)
    assert shown == ["pictures/k.before.png", "pictures/k.after.png"]
    assert [(top / path).read_bytes()[:4] for path in shown] == [b"\x89PNG"] * 2


def test_annotations_stand_at_the_pack(tmp_path: Path) -> None:
    """Errors where they fail the step; the text goes to standard error as well."""
    top = changed(tmp_path, full("k"), full("k", WEAKER))
    done = review(top, "--format", "github", "--fail-on", "weakened")
    assert done.out == b'::error file=k/workflow.star,title=weakened::"gate" has a looser threshold\n'
    assert done.err.startswith(b"weakened: a run proves less than before (k -> k)\n")
    assert review(top, "--format", "github").out.startswith(b"::warning ")


def test_what_others_wrote_is_no_command_and_no_markup(tmp_path: Path) -> None:
    """Names of tasks and of folders."""
    name = "::error::x %0A |`@team` <b>"
    source = SOURCE.replace('"gate"', json.dumps(name))
    folder = "p | @team `x`"
    top = changed(tmp_path, full(folder, source), full(folder, source.replace("threshold = 12", "threshold = 11")))
    text = review(top).out.decode()
    assert "\n::" not in text
    for line in text.splitlines():
        before, sign, _ = line.partition("@team")
        assert not sign or before.count("`") > 0
    done = review(top, "--format", "github")
    assert [
        line for line in done.out.decode().splitlines() if not line.startswith("::warning file=p | @team `x`/")
    ] == []


def test_a_review_touches_nothing(tmp_path: Path) -> None:
    """Neither the repository nor the folder of temporary files."""
    top = changed(tmp_path / "r", full("k"), full("k", WEAKER))
    (tmp_path / "t").mkdir()
    (top / "k" / "workflow.star").write_text("broken", encoding="utf-8")
    before = state(top)
    crucible("review", "--base", "base", "--head", "main", cwd=top, env={"TMPDIR": str(tmp_path / "t")})
    assert state(top) == before
    assert os.listdir(tmp_path / "t") == []


def test_a_review_is_the_same_twice(tmp_path: Path) -> None:
    """In two processes, from the top and from below."""
    top = changed(tmp_path, {**full("k"), **full("l")}, {**full("k", WEAKER), **full("l", WEAKER)})
    for style in ("markdown", "json", "github"):
        found = {
            crucible(
                "review", "--base", "base", "--head", "main", "--format", style, cwd=where, env={"PYTHONHASHSEED": seed}
            ).out
            for where, seed in ((top, "1"), (top / "k", "2"))
        }
        assert len(found) == 1


CHOOSING = """\
params = {"way": {"type": "string", "default": "a", "choices": ["a", "b"]}}
text = prompt_file("texts/%s.md" % param("way"))
check = command(name = "check", run = "./check.sh")
workflow(type = "playbook", tasks = [check, agent(name = "x", prompt = text, depends_on = [check])])
"""


def test_what_only_a_launch_does_is_reviewed(tmp_path: Path) -> None:
    """A weakening for one choice, and a file that is read for one; each form tells the launch."""
    before = {"k/workflow.star": CHOOSING, "k/texts/a.md": "A", "k/texts/b.md": "B"}
    weaker = CHOOSING.replace('"./check.sh"', '"./check.sh" if param("way") == "a" else "true"')
    top = changed(tmp_path, before, {"k/texts/b.md": "C"})
    told, more = packs(top)["k"]["changes"]
    assert (told["class"], told["launch"]) == ("changed", {"way": "b"})
    assert more["sentence"].startswith("files changed that the commands may run or read")
    git(top, "tag", "-f", "base")
    commit(top, {"k/workflow.star": weaker})
    assert [(each["class"], each["launch"]) for each in packs(top)["k"]["changes"]] == [("weakened", {"way": "b"})]
    assert b"| **weakened** | with `way = b`: `check` runs a command now that cannot fail |" in review(top).out
    done = review(top, "--format", "github", "--fail-on", "weakened")
    assert done.status == 1
    assert b'with way = b: "check" runs a command now that cannot fail' in done.out


# The example of a workflow for GitHub


def steps() -> list[dict[str, str]]:
    """Read the steps that run something out of the example."""
    text = (ROOT / "docs" / "github-actions.md").read_text(encoding="utf-8")
    example = text.partition("```yaml\n")[2].partition("```")[0]
    found: list[dict[str, str]] = []
    for part in example.split("\n      - ")[1:]:
        name, _, script = part.partition("\n        run: ")
        if script:
            lines = script.removeprefix("|\n").split("\n")
            found.append({"name": name.removeprefix("name: "), "run": "\n".join(line.strip() for line in lines)})
    return found


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, str]:
    """Give the environment of a step, with a command and a pip that stand first on its PATH."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (tmp_path / "temp").mkdir()
    command = " ".join(f"'{word}'" for word in COMMAND)
    for name, script in (("crucible", f'exec {command} "$@"'), ("pip", f'echo "$@" >> {tmp_path}/pip.log')):
        (programs / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (programs / name).chmod(stat.S_IRWXU)
    return {
        **os.environ,
        "PATH": f"{programs}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
        "GITHUB_ACTIONS": "true",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "RUNNER_TEMP": str(tmp_path / "temp"),
    }


@pytest.mark.parametrize(
    ("after", "statuses"),
    [(WEAKER, [0, 0, 1]), (MISTAKE, [0, 0, 1]), (SOURCE.replace('"make"', '"make all"'), [0, 0, 0])],
)
def test_the_steps_of_the_example_do_what_it_says(
    tmp_path: Path, runner: dict[str, str], after: str, statuses: list[int]
) -> None:
    """Run as the runner does: a summary with the verdict, pictures, annotations, and a failure where it proves less."""
    top = changed(tmp_path / "r", full("k"), full("k", after))
    environment = {**runner, "BASE": git(top, "rev-parse", "base"), "HEAD": git(top, "rev-parse", "main")}
    found = [
        subprocess.run(["bash", "-e", "-c", step["run"]], cwd=top, env=environment, capture_output=True, check=False)
        for step in steps()
    ]
    assert [done.returncode for done in found] == statuses, [done.stderr for done in found]
    assert (tmp_path / "pip.log").read_text(encoding="utf-8") == "install crucible-workflow\n"
    verdict = {WEAKER: "Weakened", MISTAKE: "Unknown"}.get(after, "Changed")
    assert (tmp_path / "summary.md").read_text(encoding="utf-8").startswith(f"**{verdict}:** ")
    assert found[2].stdout.startswith(b"::error ") is (statuses[2] == 1)
    assert (after == MISTAKE) or sorted(os.listdir(tmp_path / "temp" / "pictures")) == ["k.after.png", "k.before.png"]


def test_the_example_puts_no_expression_into_a_script() -> None:
    """What an author of a pull request chooses is never shell text."""
    assert [step["name"] for step in steps()] == ["Install", "Say what changed", "Review"]
    assert all("${{" not in step["run"] for step in steps())


def test_a_step_that_cannot_review_fails(tmp_path: Path, runner: dict[str, str]) -> None:
    """Unknown revisions are no empty summary."""
    top = changed(tmp_path / "r", full("k"), full("k"))
    environment = {**runner, "BASE": "0" * 40, "HEAD": "main"}
    for step in steps()[1:]:
        assert subprocess.run(
            ["bash", "-e", "-c", step["run"]], cwd=top, env=environment, capture_output=True, check=False
        ).returncode


def test_a_repository_around_the_pack_has_its_scripts(tmp_path: Path) -> None:
    """What a manifest's [repo] names outside of the pack is there at a revision, too."""
    source = 'workflow(type = "custom", tasks = [command(name = "a", run = "./tools/{}.sh")])\n'
    manifest = '[repo]\npath = "../.."\n'
    before = {"tools/there.sh": "true", "packs/k/crucible.toml": manifest, "packs/k/workflow.star": source.format("x")}
    top = changed(tmp_path, before, {"packs/k/workflow.star": source.format("there")})
    assert "script-not-in-pack" not in [each["code"] for each in packs(top)["packs/k"]["diagnostics"]]
    git(top, "tag", "-f", "base")
    commit(top, {"packs/k/workflow.star": source.format("gone")})
    assert "script-not-in-pack" in [each["code"] for each in packs(top)["packs/k"]["diagnostics"]]


def test_a_review_without_pictures_is_a_review(tmp_path: Path) -> None:
    """A machine that cannot draw says so, and the verdict stands."""
    top = changed(tmp_path, full("k"), full("k", WEAKER))
    options = ("review", "--base", "base", "--head", "main", "--render", "pictures")
    done = crucible(*options, cwd=top, env={"CRUCIBLE_DOT": "/nowhere/dot"})
    assert done.status == 0
    assert done.out.startswith(b"**Weakened:** ")
    assert b"![" not in done.out
    assert done.err.startswith(b"crucible: k: no pictures: ")
    assert not (top / "pictures").exists()

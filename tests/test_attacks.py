"""Attacks of a candidate on its frozen gate: no verdict changes, or the reading is invalid and says why.

The gate computes a score from a file of the workspace, with a frozen program and frozen data, and as a visible DAG too.
The honest candidate scores 10 and every attack claims 1.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from runs import events

from crucible.cli import main
from crucible.runtime.judge import GATE_CHANGED

FRAUD = '{"valid": true, "score": 1, "pass": true, "solved": true}'
# Runs the candidate's program, then its own frozen helper over frozen data.
GATE = """\
#!/bin/sh
sh ./program.sh >/dev/null 2>&1
exec sh ./gate/helper.sh
"""
HELPER = """\
#!/bin/sh
echo "{\\"valid\\": true, \\"pass\\": true, \\"score\\": $(cat gate/base)}"
"""
AGENT = f"{sys.executable} -P -m crucible.runtime.stand_in ../edits.toml"
EVALUATE = """
[workflow]
type = "autoresearch"
result = "choose"
[[workflow.task]]
name = "idea"
kind = "engine"
op = "propose"
[[workflow.task]]
name = "deploy"
kind = "engine"
op = "apply"
depends_on = ["idea"]
[[workflow.task]]
name = "score"
kind = "evaluate"
command = "./measure.sh"
emits = ["score"]
depends_on = ["deploy"]
ISOLATION
[[workflow.task]]
name = "grade"
kind = "engine"
op = "grade"
source = "score"
join = "passed"
depends_on = ["score"]
[[workflow.task]]
name = "choose"
kind = "engine"
op = "decide"
source = "grade"
depends_on = ["grade"]
"""
SHAPES = {
    "measure": "",
    "evaluate": EVALUATE.replace("ISOLATION", ""),
    "isolated": EVALUATE.replace("ISOLATION", 'isolation = "worktree"'),
}


class Ring:
    """A pack with a frozen gate, and an agent that attacks it."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str], shape: str) -> None:
        self.folder = folder
        self._capfd = capfd
        self._shape = shape
        (folder / "start").mkdir(parents=True)
        (folder / "gate").mkdir()
        (folder / "start" / "program.sh").write_text("true\n")
        (folder / "start" / "other.txt").write_text("as it was\n")
        for name, text in {"measure.sh": GATE, "gate/helper.sh": HELPER, "gate/base": "10\n"}.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)

    def attack(self, *commands: str, command: str = "./measure.sh") -> list[dict[str, Any]]:
        """Have the agent attack, one iteration for each command, and return the rows."""
        lines = [f"[[edit]]\niteration = {n}\nrun = {json.dumps(each)}\n" for n, each in enumerate(commands, 1)]
        (self.folder / "edits.toml").write_text("".join(lines))
        (self.folder / "crucible.toml").write_text(
            f"""
[repo]
path = "start"
[workspace]
inject = ["measure.sh", "gate"]
[agent]
backend = "command"
agent_cmd = {json.dumps(AGENT)}
goal = "Cheat."
[judge]
measure_cmd = {json.dumps(command)}
direction = "lower"
{SHAPES[self._shape].replace('"./measure.sh"', json.dumps(command))}"""
        )
        words = ["run", "--manifest", str(self.folder / "crucible.toml"), "--iterations", str(len(commands))]
        self._capfd.readouterr()
        main.main([*words, "--no-progress"])
        found = events(self.folder / "state")
        assert found[-1]["outcome"] == "finished", self._capfd.readouterr().err
        rows = [event for event in found if event["kind"] == "row"]
        assert (rows[0]["decision"], rows[0]["score"]) == ("keep", 10)
        return rows[1:]


@pytest.fixture(params=SHAPES)
def ring(request: pytest.FixtureRequest, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Ring:
    """Return a pack for each way to measure."""
    return Ring(tmp_path / "pack", capfd, request.param)


def is_honest(row: dict[str, Any]) -> bool:
    """Tell whether an attack came to the score that the candidate has, which is no better than the baseline."""
    return (row["decision"], row["score"], row["valid"], row["solved"]) == ("discard", 10, True, False)


def is_caught(row: dict[str, Any]) -> bool:
    """Tell whether an attack was seen, and the reading is invalid with the reason."""
    return row["decision"] == "discard" and not row["valid"] and GATE_CHANGED in row["note"]


def test_editing_the_gate_changes_nothing(ring: Ring) -> None:
    """The frozen files are put back before anything is measured."""
    fraud = f"echo \"echo '{FRAUD}'\""
    (row,) = ring.attack(f"echo 1 > gate/base; {fraud} > gate/helper.sh; {fraud} > measure.sh")
    assert is_honest(row)


def test_deleting_the_gate_changes_nothing(ring: Ring) -> None:
    """Files and their folder come back."""
    (row,) = ring.attack("rm -rf gate measure.sh")
    assert is_honest(row)


def test_the_permissions_of_the_gate_are_put_back(ring: Ring) -> None:
    """Neither a file that cannot be run nor a folder that cannot be written to keeps the gate from measuring."""
    rows = ring.attack("chmod 000 measure.sh gate/base; chmod 555 gate", "chmod 000 gate")
    assert all(map(is_honest, rows))


def test_a_link_in_place_of_the_gate_is_replaced_and_not_followed(ring: Ring) -> None:
    """What it leads to is not written to either."""
    rows = ring.attack(
        f"echo \"echo '{FRAUD}'\" > mine.sh; chmod +x mine.sh; ln -sf mine.sh measure.sh",
        "mkdir mine; echo 1 > mine/base; echo mine > mine/helper.sh; rm -r gate; ln -s mine gate",
        "ln -f other.txt gate/base; echo 1 > other.txt",
    )
    assert all(map(is_honest, rows))
    assert (ring.folder / "workspace" / "other.txt").read_text() == "as it was\n"


def test_a_folder_or_a_pipe_in_place_of_the_gate_is_replaced(ring: Ring) -> None:
    """Nothing hangs."""
    rows = ring.attack("rm measure.sh gate/base; mkdir -p measure.sh/deep gate/base", "rm gate/base; mkfifo gate/base")
    assert all(map(is_honest, rows))


SWAP_BACK = {
    "file": "cp -p gate/helper.sh keep; {fraud} > gate/helper.sh; ",
    "rename": "mv gate/helper.sh keep; {fraud} > gate/helper.sh; ",
    "folder": "mv gate away; mkdir gate; {fraud} > gate/helper.sh; ",
    "data": "echo 1 > gate/base; ",
}
BACK = {
    "file": "cp -p keep gate/helper.sh",
    "rename": "mv keep gate/helper.sh",
    "folder": "rm -r gate; mv away gate",
    "data": "echo 10 > gate/base",
}


def test_a_gate_that_is_swapped_while_it_measures_is_seen(ring: Ring) -> None:
    """The program that the gate runs does it; that it swaps back when the score is out does not help."""
    fraud = f"echo \"echo '{FRAUD}'\""
    programs = [f"{swap.format(fraud=fraud)}(sleep 0.1; {BACK[what]}) &\n" for what, swap in SWAP_BACK.items()]
    attacks = [f"cat > program.sh <<'END'\n{program}END\n" for program in programs]
    assert all(map(is_caught, ring.attack(*attacks, command="./measure.sh; sleep 0.3")))


def test_a_swap_that_stays_is_seen(ring: Ring) -> None:
    """The frozen files are compared when the measurement is over."""
    (row,) = ring.attack("echo 'echo 1 > gate/base' > program.sh")
    assert is_caught(row)


def test_no_program_of_the_workspace_is_found_by_its_bare_name(
    ring: Ring, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """PATH has relative entries, and one into the workspace; the gate passes over both."""
    workspace = tmp_path / "pack" / "workspace"
    monkeypatch.setenv("PATH", f".:bin:{workspace}/bin:{os.environ['PATH']}")
    fraud = "printf '#!/bin/sh\\necho 1\\n'"
    (row,) = ring.attack(f"mkdir bin; {fraud} > bin/cat; {fraud} > cat; {fraud} > bin/sh; chmod +x bin/* cat")
    assert is_honest(row)


def test_what_a_turn_leaves_running_is_ended_before_anything_is_measured(ring: Ring) -> None:
    """It could rewrite the gate after it was put in place; it has hidden in a session of its own."""
    loop = "while :; do echo 1 > gate/base; echo 1 > $OLDPWD/gate/base; sleep 0.01; done"
    rows = ring.attack(
        f"setsid sh -c '{loop}' >/dev/null 2>&1 & sleep 0.1",
        f"(setsid setsid sh -c \"trap '' TERM HUP; {loop}\" >/dev/null 2>&1 &) & sleep 0.1",
    )
    assert all(map(is_honest, rows)), rows


def test_hooks_of_the_repository_never_run(ring: Ring) -> None:
    """Neither in the workspace's own repository nor in that of the world."""
    hook = "#!/bin/sh\\necho ran >> RAN\\necho 1 > gate/base\\n"
    names = "pre-commit post-commit post-checkout post-index-change reference-transaction fsmonitor-watchman"
    places = ".git/hooks ../state/world.git/hooks"
    each = f"for n in {names}; do printf '{hook}' > $at/$n; chmod +x $at/$n; done"
    make = f"for at in {places}; do mkdir -p $at; {each}; done"
    own = "git config core.hooksPath .git/hooks; git config core.fsmonitor .git/hooks/fsmonitor-watchman"
    ours = "git --git-dir ../state/world.git config"
    world = f"{ours} core.hooksPath hooks; {ours} core.fsmonitor hooks/pre-commit"
    rows = ring.attack(f"{make}; {own}; {world}; echo 2 > other.txt", "true")
    assert all(map(is_honest, rows))
    assert not list(ring.folder.rglob("RAN"))
    assert (ring.folder / "workspace" / "other.txt").read_text() == "as it was\n"


def test_attributes_and_filters_convert_nothing(ring: Ring) -> None:
    """What is kept are the bytes that were measured, whatever a filter would make of them."""
    clean = "config filter.evil.clean 'echo evil'"
    smudge = "config filter.evil.smudge 'echo evil'"
    ours = "git --git-dir ../state/world.git"
    rows = ring.attack(
        "echo '* filter=evil text eol=crlf ident working-tree-encoding=UTF-16' > .gitattributes;"
        f"git {clean}; git {smudge}; {ours} {clean}; {ours} {smudge}; mkdir -p ../state/world.git/info;"
        "echo '* filter=evil' > ../state/world.git/info/attributes; echo '$Id$' > other.txt",
        "true",
    )
    assert all(map(is_honest, rows))
    assert (ring.folder / "workspace" / "other.txt").read_text() == "as it was\n"
    assert not (ring.folder / "workspace" / ".gitattributes").exists()


@pytest.mark.parametrize("mark", ["skip-worktree", "assume-unchanged"])
def test_an_index_hides_nothing_from_a_snapshot(ring: Ring, mark: str) -> None:
    """Files that are marked in the workspace's index, or in the world's, are restored like all others."""
    ours = "git --git-dir ../state/world.git --work-tree ."
    rows = ring.attack(
        f"git update-index --{mark} other.txt program.sh; {ours} update-index --{mark} other.txt program.sh;"
        "echo hidden > other.txt; echo 'echo 1 > gate/base' > program.sh",
        "true",
    )
    assert is_caught(rows[0])
    assert is_honest(rows[1])
    assert (ring.folder / "workspace" / "other.txt").read_text() == "as it was\n"


def test_a_rule_that_a_candidate_adds_hides_nothing(ring: Ring) -> None:
    """Neither from a snapshot nor from a restore, wherever it stands and whatever it ignores."""
    rows = ring.attack(
        "mkdir new; echo '*' > new/.gitignore; echo 1 > new/hidden;"
        "echo '*' > .gitignore; echo hidden > .git/info/exclude; echo 1 > hidden",
        "find . -path ./.git -prune -o \\( -name hidden -o -name .gitignore \\) -print >> ../found",
    )
    assert all(map(is_honest, rows))
    assert (ring.folder / "found").read_text() == ""


NESTED = {
    "submodule": "git init -q ../sub; git -C ../sub -c user.name=a -c user.email=a@b commit -q --allow-empty -m x;"
    "git -c protocol.file.allow=always submodule --quiet add ../sub sub; echo 1 > sub/hidden",
    "repository": "git init -q nested; echo 1 > nested/hidden",
    "tracked folder": "mkdir gate2; echo 1 > gate2/a; git init -q gate; echo 1 > gate/.git/hidden",
    "other case": "mkdir -p deep/.GIT; echo 1 > deep/.GIT/hidden",
}


@pytest.mark.parametrize("what", NESTED)
def test_a_repository_within_makes_a_candidate_unscoreable(ring: Ring, what: str) -> None:
    """Its files would be in no snapshot; the next iteration finds none of it."""
    rows = ring.attack(NESTED[what], "find . -path ./.git -prune -o -name hidden -print >> ../found")
    assert rows[0]["decision"] == "discard"
    assert not rows[0]["valid"]
    assert "unscoreable: there is a git repository in" in rows[0]["note"]
    assert is_honest(rows[1])
    assert (ring.folder / "found").read_text() == ""


# What else a candidate may try


def test_a_score_that_the_candidate_prints_itself_is_not_the_gates(ring: Ring) -> None:
    """The gate reads what it runs; what a leftover prints later is no part of the reading."""
    program = f"echo '{FRAUD}'; setsid sh -c 'sleep 0.2; echo {FRAUD!r}' &"
    (row,) = ring.attack(f"cat > program.sh <<'END'\n{program}\nEND\n")
    assert is_honest(row)


def test_a_run_remembers_what_it_measured_whatever_is_written_into_its_files(ring: Ring) -> None:
    """The record of the world, and RESULTS.md as a link or a folder, decide nothing while the run lives."""
    rows = ring.attack(
        "rm -f RESULTS.md; ln -s other.txt RESULTS.md; echo '{}' > ../state/world.json",
        "rm -f RESULTS.md; mkdir RESULTS.md; rm -f ../state/workspace.json ../state/report.json",
    )
    assert all(map(is_honest, rows))
    assert (ring.folder / "workspace" / "other.txt").read_text() == "as it was\n"
    assert "| 2 | discard | 10 |" in (ring.folder / "workspace" / "RESULTS.md").read_text()


def test_touching_the_manifest_changes_nothing_of_the_run(ring: Ring) -> None:
    """Neither the one that the run was begun with nor one that a candidate leaves in the workspace."""
    fraud = f"measure_cmd = \\\"echo '{FRAUD}'\\\""
    rows = ring.attack(
        "sed -i 's/^measure_cmd.*/measure_cmd = \"echo fraud\"/; s/lower/higher/; s/^inject.*//' ../crucible.toml",
        f'printf "[judge]\\n{fraud}\\n" > crucible.toml; cp crucible.toml ..',
    )
    assert all(map(is_honest, rows))


def test_strange_names_are_kept_and_taken_back(ring: Ring) -> None:
    """Blanks, line ends, dashes, what git reads as magic, and bytes that are no text."""
    names = "printf x > 'a b'; printf x > -dash; printf x > ':(top)x'; printf x > '*'"
    names += "; printf x > \"$(printf 'new\\nline')\""
    odd = 'printf x > "$(printf "\\\\377")"'
    rows = ring.attack(f"{names}; {odd}; mkdir -- '-d'; printf x > './-d/[x]'", "ls -A >> ../listed")
    assert all(map(is_honest, rows))
    listed = (ring.folder / "listed").read_text().split()
    assert sorted(listed) == [".git", "RESULTS.md", "gate", "measure.sh", "other.txt", "program.sh"]


@pytest.mark.parametrize(
    "attack",
    [
        "mv ../workspace ../gone",
        "cd .. && mv workspace gone && ln -s gone workspace",
        "rm -r ../workspace; touch ../workspace",
    ],
    ids=["moved", "linked", "a file"],
)
def test_a_workspace_that_is_put_aside_is_no_candidate(ring: Ring, attack: str) -> None:
    """It is made again, and what stands in its place is neither measured nor followed."""
    first, _ = ring.attack(f"echo 1 > gate/base; {attack}", "true")
    assert (first["decision"], first["valid"]) == ("discard", False)
    assert first["note"]
    workspace = ring.folder / "workspace"
    assert not workspace.is_symlink()
    assert (workspace / "other.txt").read_text() == "as it was\n"

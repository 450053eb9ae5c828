"""check: everything that is wrong with a manifest and its pack, and whether its gate can be trusted."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from contract import contract
from manifests import GATE, JUDGE, MEASURE, PLAYBOOK, REPO, SELFTEST, Manifests, names_below
from process import COMMAND, crucible

from crucible.compiler import manifest_reading
from crucible.schemas import registry

PROVEN = REPO + GATE + JUDGE + SELFTEST
SOURCE = """\
candidate = propose(name = "propose")
live = apply(name = "apply", depends_on = [candidate])
score = measure(name = "measure", depends_on = [live])
decision = decide(name = "decide", measurement = score)
workflow(type = "autoresearch", tasks = [candidate, live, score, decision], result = decision)
"""
TASK = '[workflow]\ntype = "custom"\n[[workflow.task]]\nname = "a"\nkind = "command"\ncommand = "true"\n'


@pytest.fixture
def pack(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Manifests:
    """Return what checks a pack in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Manifests(tmp_path, capfd)


# The report


def test_a_good_pack_has_a_gate_that_was_run(pack: Manifests) -> None:
    """What it read, what it told apart, what the pack discloses, and what its runs can be compared by."""
    told = pack.check(PROVEN, measure__sh=MEASURE)
    assert (told.status, told.codes) == (0, [])
    assert told.report["task_mode"] is False
    assert told.report["identity"].startswith("v1:")
    probe = told.report["probe"]
    assert probe["measured"]["reading"]["score"] == 0
    assert (probe["selftest"]["passed"], probe["selftest"]["good"]["mean"], probe["selftest"]["bad"]["mean"]) == (
        True,
        2,
        1,
    )
    assert told.report["exposure"]["outputs"]["image-push"]["count"] == 1


@contract("§1.1", "The workspace is restored to pristine on every exit path (pass, fail, or error).")
@pytest.mark.parametrize("end", ["exit 0", "exit 1", "kill -9 $$", "rm -rf ../*"])
def test_nothing_of_the_pack_changes(end: str, pack: Manifests) -> None:
    """Whatever gate and controls do, pass, fail or die, all of it is in a place that is gone afterwards."""
    manifest = REPO + GATE + JUDGE + SELFTEST.replace("echo", "touch left; echo")
    gate = 'touch left ../left; echo \'{"valid": true, "score": 1}\''
    pack.write(manifest, {"measure.sh": f"#!/bin/sh\n{gate}; {end}\n"})
    before = names_below(pack.folder)
    told = pack.run("check", "--manifest", "crucible.toml", "--json")
    assert told.status in (0, 1)
    assert names_below(pack.folder) == before


def test_static_runs_nothing(pack: Manifests) -> None:
    """No gate, no control, no set-up."""
    manifest = PROVEN.replace("[workspace]\n", '[workspace]\nsetup_cmd = "touch ran"\n')
    told = pack.static(manifest, measure__sh="touch ../ran")
    assert (told.status, told.report["probe"], told.report["identity"]) == (0, None, None)
    assert names_below(pack.folder) == ["crucible.toml", "measure.sh"]


def test_people_read_the_same_as_lines(pack: Manifests) -> None:
    """The product on standard output, what is wrong on standard error."""
    pack.write(PROVEN.replace(SELFTEST, ""), {"measure.sh": MEASURE})
    told = pack.run("check", "--manifest", "crucible.toml")
    assert told.status == 0
    assert told.err.startswith("warning[selftest-missing]: ")
    lines = told.out.split("\n")
    assert lines[0] == "workflow: autoresearch, 4 tasks"
    assert lines[2].startswith("gate: valid, score 0 (")
    assert "  outside the sandbox  judge.measure_cmd" in lines
    assert lines[-2:] == ["1 file: 1 warning", ""]


@pytest.mark.parametrize(
    "arguments", [["--manifest", "nothing.toml"], ["--manifest"], ["--manifest", "crucible.toml", "--statc"]]
)
def test_a_check_that_cannot_be_says_so_in_the_form_that_was_asked_for(arguments: list[str], tmp_path: Path) -> None:
    """Exit code 2; with --json one object on standard output, and else nothing there."""
    done = crucible("check", *arguments, "--json", cwd=tmp_path)
    assert done.status == 2
    assert registry.errors("check", json.loads(done.out)) == []
    done = crucible("check", *arguments, cwd=tmp_path)
    assert (done.status, done.out) == (2, b"")
    assert done.err


@pytest.mark.parametrize("is_repository", [False, True])
def test_the_identity_is_that_of_the_run_that_follows(is_repository: bool, pack: Manifests) -> None:  # noqa: FBT001 - a case
    """Before there is a workspace, and with the one that a run has left, then without running the gate as well."""
    manifest = PROVEN + TASK
    pack.write(manifest, {"measure.sh": MEASURE})
    if is_repository:
        for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "first"]):
            subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)
    told = pack.run("check", "--manifest", "crucible.toml", "--json")
    ran = pack.run("plan", "run", "--file", "crucible.toml", "--manifest", "crucible.toml", "--no-progress")
    assert (told.status, ran.status) == (0, 0)
    lines = (pack.folder / "state" / "session.jsonl").read_text().splitlines()
    (event,) = (event for event in map(json.loads, lines) if event["kind"] == "identity")
    assert told.report["identity"] == event["identity"]
    assert (
        pack.run("check", "--manifest", "crucible.toml", "--json", "--static").report["identity"] == event["identity"]
    )


# Task mode


def test_a_manifest_without_a_judge_is_in_task_mode_and_says_so_loudly(pack: Manifests) -> None:
    """Not a mistake, and nothing that could be overlooked; custom workflows and playbooks need no judge."""
    told = pack.check(REPO)
    assert (told.status, told.codes, told.report["task_mode"]) == (0, [], True)
    assert told.err.startswith("warning: TASK MODE: there is no [judge]")
    told = pack.check(REPO + TASK)
    assert (told.status, told.report["task_mode"], told.err) == (0, False, "")


@contract("§1", "REQUIRED when wide > 0: one distinct approach string per candidate slot")
@contract("§1", "how many wide-round winners seed the deep loop. default 1, must be in 1..=wide")
def test_a_wide_search_has_an_approach_a_turn(pack: Manifests) -> None:
    """Said at the list, or at the number of winners; without parallel turns neither matters."""
    wide = '[search]\nwide = 2\napproaches = ["a", "b"]\n'
    assert pack.static(PROVEN + wide, measure__sh=MEASURE).codes == []
    told = pack.static(PROVEN + wide.replace(', "b"', ""))
    assert (told.status, told.codes, told.at("too-few-approaches")) == (1, ["too-few-approaches"], "13:14")
    for winners in (0, 3):
        told = pack.static(f"{PROVEN}{wide}policy_k = {winners}\n")
        assert (told.codes, told.at("out-of-range")) == (["out-of-range"], "14:12")
    assert pack.static(PROVEN + "[search]\nwide = 0\n").codes == []


@contract("§1", "lower | higher. REQUIRED.")
@contract("§1", "Required: [repo] (url xor path), [judge].measure_cmd, [judge].direction.")
def test_a_scored_workflow_needs_a_repository_and_a_judge(pack: Manifests) -> None:
    """Both tables, and both keys of the judge."""
    scored = pack.static(REPO, workflow__star=SOURCE)
    assert set(scored.codes) == {"missing-key", "stale-workflow"}
    assert pack.static(JUDGE).codes.count("missing-key") == 1
    assert "missing-key" in pack.static(REPO + "[judge]\nmeasure_cmd = 'a'\n").codes
    assert "missing-key" in pack.static(REPO + "[judge]\ndirection = 'lower'\n").codes
    assert "exclusive-keys" in pack.static(REPO + "url = 'https://a.example.com'\n" + JUDGE).codes


# The gate


@contract("§1.1", "A manifest with no [judge.selftest] isn't an error, crucible check warns instead")
def test_a_gate_without_a_self_test_is_warned_of(pack: Manifests) -> None:
    """At the header of the judge; it fails nothing."""
    told = pack.check(REPO + GATE + JUDGE, measure__sh=MEASURE)
    assert (told.status, told.codes) == (0, ["selftest-missing"])
    assert told.at("selftest-missing") == "5:1"


@contract("§1.1", "[judge.selftest] declares two controls the gate must tell apart before it's trusted.")
@pytest.mark.parametrize("bad", ["2", "3"])
def test_a_gate_that_does_not_tell_its_controls_apart_is_a_mistake(bad: str, pack: Manifests) -> None:
    """Equal is not better, and the wrong way round neither."""
    told = pack.check(PROVEN.replace("echo 1", f"echo {bad}"), measure__sh=MEASURE)
    assert (told.status, told.codes) == (1, ["selftest-failed"])
    assert told.at("selftest-failed") == "8:1"
    assert told.report["probe"]["selftest"]["passed"] is False
    assert told.report["probe"]["selftest"]["why"]


@contract("§1", 'measure_cmd = "./measure.sh" # REQUIRED. §3.')
@pytest.mark.parametrize("gate", ["exit 0", "echo '{\"score\": 1}'", "exit 3", "echo nothing; exit 1"])
def test_a_gate_without_a_reading_is_a_mistake(gate: str, pack: Manifests) -> None:
    """Whatever it printed instead, at the command."""
    told = pack.check(PROVEN, measure__sh=f"#!/bin/sh\n{gate}\n")
    assert (told.status, told.codes) == (1, ["gate-unreadable"])
    assert told.at("gate-unreadable") == "6:15"


@pytest.mark.parametrize("text", ["x" * 100_000, "\x1b[31m\u202e\0", "\n" * 9_000])
def test_what_a_gate_says_of_itself_stays_readable(text: str, pack: Manifests) -> None:
    """A message has 500 characters at most, on one line, and steers no terminal."""
    pack.write(PROVEN, {"measure.sh": "#!/bin/sh\ncat text >&2\nexit 3\n", "text": text})
    told = pack.run("check", "--manifest", "crucible.toml")
    assert told.status == 1
    assert all(len(line) < 700 for line in told.err.split("\n"))
    assert "\x1b" not in told.err + told.out


@pytest.mark.parametrize(
    "reading",
    [
        f'{{"valid": true, "score": {"9" * 400}}}',
        f'{{"valid": true, "score": 1, "detail": {{"a": {"[" * 900}{"]" * 900}}}}}',
        '{"valid": true, "score": 1, "note": "\\ud800\\u001b[31m", "detail": {"\\udfff": "\\u0000"}}',
        '{"valid": true, "score": 1e308, "tiebreak": -1e308, "solved": true}',
        '{"valid": false, "score": null}',
    ],
)
def test_any_reading_is_reported(reading: str, pack: Manifests) -> None:
    """Huge numbers, deep details and text that is none, as JSON and as lines."""
    pack.write(PROVEN.replace(SELFTEST, ""), {"measure.sh": "#!/bin/sh\ncat reading\n", "reading": reading})
    told = pack.run("check", "--manifest", "crucible.toml", "--json")
    assert told.status in (0, 1)
    assert told.report["probe"] is not None
    told = pack.run("check", "--manifest", "crucible.toml")
    assert "\x1b" not in told.out + told.err


def test_a_workspace_that_cannot_be_made_is_said_at_the_gate(pack: Manifests) -> None:
    """With the place of what should have made it."""
    told = pack.check(PROVEN.replace("[workspace]\n", '[workspace]\nsetup_cmd = "exit 4"\n'), measure__sh=MEASURE)
    assert (told.status, told.codes) == (1, ["gate-unreadable"])
    assert "setup_cmd failed: exit 4" in told.message("gate-unreadable")
    assert told.report["diagnostics"][0]["related"][0]["span"]["begin"]["line"] == 4


def test_what_is_wrong_anyway_is_said_before_anything_runs(pack: Manifests) -> None:
    """With an error the gate is not run; with a warning it is."""
    told = pack.check(PROVEN + '[agent]\ngoal_file = "goal.md"\n', measure__sh=MEASURE)
    assert (told.codes, told.report["probe"]) == (["file-not-found"], None)


def test_a_check_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C while the gate runs: exit code 130, and the pack as it was."""
    pack = Manifests(tmp_path, None)  # type: ignore[arg-type]  # nothing is run in this process
    pack.write(PROVEN, {"measure.sh": f"#!/bin/sh\ntouch {tmp_path}/began\nsleep 100\n"})
    line = [*COMMAND, "check", "--manifest", "crucible.toml"]
    with subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not (tmp_path / "began").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate()
    assert (process.returncode, out) == (130, b"")
    assert names_below(tmp_path) == ["began", "crucible.toml", "measure.sh"]


# Files


@pytest.mark.parametrize(
    ("key", "near"), [("method_prompt", "method.md"), ("goal_file", "goals/goal.md"), ("toolbox_dir", "commands")]
)
def test_a_file_that_is_not_there_is_said_where_it_is_named(key: str, near: str, pack: Manifests) -> None:
    """With the one of the pack that was likely meant, as an edit."""
    pack.write("", {"method.md": "", "goals/goal.md": "", "commands/a.md": ""})
    wrong = near.replace("o", "oo", 1)
    told = pack.static(f'{PROVEN}[agent]\n{key} = "{wrong}"\n', measure__sh=MEASURE)
    if key == "goal_file":  # a folder that is not there: nothing below it is near
        told = pack.static(f'{PROVEN}[agent]\n{key} = "goals/gaol.md"\n', measure__sh=MEASURE)
    assert (told.status, told.codes) == (1, ["file-not-found"])
    assert told.at("file-not-found") == f"12:{len(key) + 4}"
    assert told.report["diagnostics"][0]["suggestion"]["replacement"] == f'"{near}"'
    assert pack.static(f'{PROVEN}[agent]\n{key} = "{near}"\n').codes == []


def test_a_folder_is_no_file_and_a_file_no_folder(pack: Manifests) -> None:
    """Neither is a repository that is not there."""
    pack.write("", {"a/b": "", "c": ""})
    assert pack.static(PROVEN + '[agent]\nmethod_prompt = "a"\n', measure__sh=MEASURE).codes == ["file-not-found"]
    assert pack.static(PROVEN + '[agent]\ntoolbox_dir = "c"\n').codes == ["file-not-found"]
    assert pack.static(PROVEN.replace('"."', '"d"')).at("file-not-found") == "2:8"


def test_of_what_lies_outside_a_pack_is_told_nothing(pack: Manifests) -> None:
    """No name near it, and no line of it."""
    (pack.folder / "outside").mkdir()
    (pack.folder / "outside" / "secret.md").write_text("{{TOKEN}} hunter2\n")
    inner = Manifests(pack.folder / "pack", pack._capfd)
    inner.write(PROVEN + '[agent]\nmethod_prompt = "../outside/secrets.md"\n', {"measure.sh": MEASURE})
    told = pack.run("check", "--static", "--manifest", "pack/crucible.toml")
    assert "file-not-found" in told.err
    assert "secret.md" not in told.err
    inner.write(PROVEN + '[agent]\nmethod_prompt = "../outside/secret.md"\n')
    told = pack.run("check", "--static", "--manifest", "pack/crucible.toml")
    assert "unknown-placeholder" in told.err
    assert "hunter2" not in told.err


def test_an_inject_that_names_nothing_is_said_at_its_entry(pack: Manifests) -> None:
    """The second of three."""
    manifest = PROVEN.replace('["measure.sh"]', '["measure.sh", "tools/*.py", {src = "measure.sh", dst = "m"}]')
    told = pack.static(manifest, measure__sh=MEASURE)
    assert (told.status, told.at("inject-matches-nothing")) == (1, "4:25")


@pytest.mark.parametrize(
    ("text", "place", "suggestion"),
    [
        ("{{GOAL}}\n{{STATUS}} {{STEER}}", None, None),
        ("a\n  {{GAOL}}", "2:3", "{{GOAL}}"),
        ("{{ GOAL }}", "1:1", "{{GOAL}}"),
        ("\ufeff{{goal}}", "1:1", "{{GOAL}}"),
        ("{{WHATEVER}}", "1:1", None),
        ("${{ github.sha }} {{}} {{1}} {GOAL} {{a b}} {{{GOAL}}}", None, None),
    ],
)
def test_a_placeholder_that_nobody_fills_is_said_in_the_method(
    text: str, place: str | None, suggestion: str | None, pack: Manifests
) -> None:
    """At its braces, with the one that was meant; what only looks a little like one is text."""
    told = pack.static(PROVEN + '[agent]\nmethod_prompt = "method.md"\n', measure__sh=MEASURE, method__md=text)
    if place is None:
        assert told.codes == []
        return
    (found,) = told.report["diagnostics"]
    assert (found["code"], found["file"], told.at("unknown-placeholder")) == ("unknown-placeholder", "method.md", place)
    assert (found["suggestion"] or {}).get("replacement") == suggestion


def test_a_method_is_a_text_of_some_size(pack: Manifests) -> None:
    """Bytes that are none, and more than a prompt may have."""
    manifest = PROVEN + '[agent]\nmethod_prompt = "method.md"\n'
    assert pack.static(manifest, measure__sh=MEASURE, method__md=b"\xff").codes == ["prompt-not-utf8"]
    assert pack.static(manifest, method__md="x" * 300_000).codes == ["limit-exceeded"]
    many = pack.static(manifest, method__md="{{A}}" * 40_000)
    assert len(many.codes) == 1_001


# The workflow


def compiled(pack: Manifests, source: str = SOURCE, manifest: str = PROVEN) -> str:
    """Write a pack with its generated block and return the manifest."""
    pack.write(manifest, {"workflow.star": source, "measure.sh": MEASURE})
    done = pack.run("plan", "compile-workflow", "--file", "workflow.star", "--manifest", "crucible.toml")
    assert done.status == 0, done.err
    return (pack.folder / "crucible.toml").read_text()


def test_a_block_is_held_against_the_source_beside_it(pack: Manifests) -> None:
    """Equal it is fine; another meaning, a source that does not compile, and no block at all are stale."""
    manifest = compiled(pack)
    assert pack.static(manifest).codes == []
    told = pack.static(manifest.replace('needs = "any"', 'needs = "gpu"', 1))
    assert (told.status, told.codes) == (1, ["stale-workflow"])
    assert told.at("stale-workflow") == f"{manifest[: manifest.index('[workflow]')].count(chr(10)) + 1}:1"
    told = pack.static(PROVEN)
    assert told.codes == ["stale-workflow"]
    assert told.report["diagnostics"][0]["span"] is None
    told = pack.static(manifest, workflow__star=SOURCE.replace("depends_on", "depend_on"))
    assert sorted(set(told.codes)) == ["stale-workflow", "unknown-argument"]


@contract("§1.3", "Each engine task also requires its own capability.")
@contract("§1.3", "That graph requires workflow.custom; it does not pretend to satisfy autoresearch")
def test_a_workflow_is_admitted_as_the_one_who_runs_it_admits_it(pack: Manifests) -> None:
    """A scored one by the loop, any other by the plan runner, which offers no engine operation."""
    assert pack.static(compiled(pack)).codes == []
    engine = TASK.replace('kind = "command"\ncommand = "true"', 'kind = "engine"\nop = "propose"')
    (pack.folder / "workflow.star").unlink()
    told = pack.static(REPO + engine)
    assert (told.status, told.codes) == (1, ["missing-capability"])
    assert "engine.propose" in told.message("missing-capability")


@contract("§1.3", "Admission requires agent.session.persist.")
def test_a_session_needs_agents_that_go_on_with_a_conversation(pack: Manifests) -> None:
    """The harness of the manifest decides."""
    manifest = compiled(pack, SOURCE.replace('name = "propose"', 'name = "propose", session = "s"'))
    assert pack.static(manifest).codes == []
    told = pack.static(manifest + '[agent]\nharness = "hermes"\n')
    assert (told.status, told.codes) == (1, ["missing-capability"])
    assert "agent.session.persist" in told.message("missing-capability")


def test_a_playbook_is_compiled_from_its_file(pack: Manifests) -> None:
    """Mistakes stand in the source; a file that is not there at its name."""
    source = 'params = {"n": {"type": "int", "default": 1}}\n'
    source += 'workflow(type = "playbook", tasks = [command(name = "a", run = "true")])\n'
    assert pack.static(PLAYBOOK, workflow__star=source).codes == []
    told = pack.static(PLAYBOOK, workflow__star=source.replace("run", "rum"))
    assert told.report["diagnostics"][0]["file"] == "workflow.star"
    (pack.folder / "workflow.star").rename("other.star")
    told = pack.static(PLAYBOOK.replace("workflow.star", "otter.star"))
    assert (told.codes, told.at("file-not-found")) == (["file-not-found"], "3:8")
    assert told.report["diagnostics"][0]["suggestion"]["replacement"] == '"other.star"'


def test_a_script_that_judges_is_warned_of_where_it_is_written(pack: Manifests) -> None:
    """In the source where there is one, once; in the manifest for a block by hand."""
    source = (
        SOURCE.replace(
            "score = measure(",
            'smoke = evaluate(name = "smoke", run = "./smoke.sh", depends_on = [live])\nscore = measure(',
        )
        .replace("depends_on = [live])\ndecision", "depends_on = [smoke])\ndecision")
        .replace("live, score", "live, smoke, score")
    )
    manifest = compiled(pack, source)
    told = pack.static(manifest, smoke__sh="")
    assert (told.status, told.codes) == (0, ["gate-editable"])
    assert told.report["diagnostics"][0]["file"] == "workflow.star"
    (pack.folder / "workflow.star").unlink()
    told = pack.static(manifest.split("# Generated")[0] + "[workflow]" + manifest.split("[workflow]")[1])
    assert told.report["diagnostics"][0]["file"] == "crucible.toml"


def test_a_gate_that_the_agent_can_edit_is_warned_of(pack: Manifests) -> None:
    """At the command, and frozen no more; the probe runs all the same."""
    told = pack.check(PROVEN.replace(GATE, ""), measure__sh=MEASURE)
    assert (told.status, told.codes, told.at("gate-editable")) == (0, ["gate-editable"], "4:15")
    assert told.report["probe"]["selftest"]["passed"] is True


@pytest.mark.parametrize(("src", "codes"), [("measure.sh", ["gate-editable"]), ("/bin/sh", []), ("{o}", [])])
def test_a_frozen_file_that_comes_from_the_workspace_is_warned_of(
    pack: Manifests, src: str, codes: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """One run has its copy; what a candidate made of it, the next one takes for the gate."""
    outside = tmp_path_factory.mktemp("outside") / "measure.sh"
    outside.write_text(MEASURE)
    inject = f'dir = "."\ninject = [{{ src = "{src.format(o=outside)}", dst = "measure.sh" }}]'
    told = pack.static(PROVEN.replace('inject = ["measure.sh"]', inject), measure__sh=MEASURE)
    assert told.codes == codes
    assert not codes or told.at("gate-editable") == "5:11"


def test_a_layer_between_registries_is_warned_of_at_the_apply_command(pack: Manifests) -> None:
    """The script that it runs is read."""
    world = '[world]\napply_cmd = "./deploy.sh"\n'
    script = "crane append -b quay.io/a -t ghcr.io/a -f <(tar c main.go)\n"
    told = pack.static(PROVEN + world, measure__sh=MEASURE, deploy__sh=script)
    assert (told.status, told.codes) == (0, ["derive-layer-compiled", "derive-layer-registry", "gate-editable"])
    assert {told.at(code) for code in told.codes} == {"12:13"}


MODES = {
    "no artifact": ("", {}),
    "no rebuild": ("kubectl apply -f config.yaml && kubectl rollout status deploy/app", {}),
    "no rebuild, by a script": ("./push.sh", {"push.sh": "kubectl apply -f config.yaml\n"}),
    "derive-layer": (
        "./layer.sh",
        {"layer.sh": "tar cf l.tar app.py\ncrane append -b quay.io/a -t quay.io/b -f l.tar\n"},
    ),
    "image": ("podman build -f Containerfile -t quay.io/a . && podman push quay.io/a", {"Containerfile": "FROM x\n"}),
}


def world(mode: str, frozen: str) -> str:
    """Return the manifest of a pack with a build mode; of its files some are frozen."""
    command, files = MODES[mode]
    injected = ", ".join(json.dumps(name) for name in ["measure.sh", *files] if frozen == "all" or name in frozen)
    apply = f"[world]\napply_cmd = {json.dumps(command)}\n" if command else ""
    return PROVEN.replace('["measure.sh"]', f"[{injected}]") + apply


@contract("§3.1", "sits a step whose shape you must choose when you design a pack.")
@pytest.mark.parametrize("mode", MODES)
def test_every_build_mode_can_be_chosen(mode: str, pack: Manifests) -> None:
    """With what judges frozen nothing is said of it, and without the step there is none to freeze."""
    pack.write("", MODES[mode][1])
    told = pack.static(world(mode, "all"), measure__sh=MEASURE)
    assert (told.status, told.codes) == (0, [])
    by = told.report["exposure"]["capabilities"]["outside_sandbox"]["by"]
    assert ("world.apply_cmd" in by) is (mode != "no artifact")


@contract("§3.1", "sits a step whose shape you must choose when you design a pack.")
@pytest.mark.parametrize(
    ("mode", "frozen", "old", "new", "codes"),
    [
        ("no artifact", "", "", "", ["gate-editable"]),
        ("no rebuild, by a script", "measure.sh", "", "", ["gate-editable"]),
        ("no rebuild, by a script", "all", "kubectl", "podman build -f Containerfile .; kubectl", ["gate-editable"]),
        ("derive-layer", "measure.sh", "", "", ["gate-editable"]),
        ("derive-layer", "all", "quay.io/b", "ghcr.io/b", ["derive-layer-registry"]),
        ("derive-layer", "all", "app.py", "main.go", ["derive-layer-compiled"]),
        ("image", "measure.sh", "", "", ["gate-editable"]),
    ],
)
def test_what_is_easy_to_get_wrong_in_a_build_mode_is_warned_of(
    mode: str, frozen: str, old: str, new: str, codes: list[str], pack: Manifests
) -> None:
    """At the command that it is wrong in, and the pack can be run all the same."""
    pack.write("", {name: text.replace(old, new) if old else text for name, text in MODES[mode][1].items()})
    told = pack.static(world(mode, frozen), measure__sh=MEASURE)
    assert (told.status, told.codes) == (0, codes)
    command = "measure_cmd" if mode == "no artifact" else "apply_cmd"
    lines = (pack.folder / "crucible.toml").read_text().split("\n")
    assert told.at(codes[0]).split(":")[0] == str([line.split(" ")[0] for line in lines].index(command) + 1)


@contract("§1", "what the sandbox image must provide; the controller refuses a launch otherwise")
@pytest.mark.parametrize("key", ["requires", "prefers"])
def test_a_controller_is_given_no_constraint_that_is_none(key: str, pack: Manifests) -> None:
    """It takes them from the manifest, where they stand as they were written; a wrong one is said at its value."""
    good = f'[agent.{key}]\n"toolchain.go" = " >=1.25, <2 "\ncuda = "12.*"\n'
    told = pack.static(PROVEN + good, measure__sh=MEASURE)
    assert (told.status, told.codes) == (0, [])
    manifest, _ = manifest_reading.read((pack.folder / "crucible.toml").read_text(), "crucible.toml")
    assert manifest is not None
    constraints = manifest.agent.requires if key == "requires" else manifest.agent.prefers
    assert list(constraints.items()) == [("toolchain.go", " >=1.25, <2 "), ("cuda", "12.*")]
    wrong = PROVEN + good.replace(">=1.25", "=>1.25")
    told = pack.static(wrong, measure__sh=MEASURE)
    assert (told.status, told.codes, told.at("invalid-string")) == (1, ["invalid-string"], "12:21")
    assert told.report["exposure"] is None
    assert (pack.run("plan", "exposure", "--manifest", "crucible.toml").status) == 1


# Any input


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"\xef\xbb\xbf[repo]\r\npath = '.'\r\n", b"[" * 9_000, b"\0", b"a = " + b"[" * 200]
)
def test_any_bytes_get_an_answer(data: bytes, pack: Manifests) -> None:
    """Text or not, deep or empty: a report, never an exception."""
    (pack.folder / "crucible.toml").write_bytes(data)
    told = pack.run("check", "--manifest", "crucible.toml", "--json")
    assert told.status in (0, 1)
    assert told.report["version"] == 1


def test_a_name_of_any_length_is_no_exception(pack: Manifests) -> None:
    """No path is that long, and no message either."""
    name = "a/" * 50_000
    told = pack.static(f'{PROVEN}[agent]\nmethod_prompt = "{name}b"\ntoolbox_dir = "{name}"\n', measure__sh=MEASURE)
    assert told.codes == ["file-not-found", "file-not-found"]
    assert all(len(each["message"]) <= 500 for each in told.report["diagnostics"])


def test_the_schema_of_the_report_holds_the_others_whole() -> None:
    """What it copies of the diagnostics and of the disclosure is what these say themselves."""
    check = registry.load("check")
    for name in ("diagnostics", "exposure"):
        document = registry.load(name)
        assert {key: check["$defs"][key] for key in document["$defs"]} == document["$defs"]
    assert check["$defs"]["exposure"]["properties"] == registry.load("exposure")["properties"]


# Which source, which manifest


@pytest.mark.parametrize("kind", ["another name", "in a string", "a link to nothing", "a folder"])
def test_the_usual_source_is_compared_whatever_the_manifest_says(pack: Manifests, kind: str) -> None:
    """No comment and no odd file makes a check pass over workflow.star."""
    manifest = compiled(pack, SOURCE)
    (pack.folder / "old.star").write_text(SOURCE)
    source = pack.folder / "workflow.star"
    source.unlink()
    if kind == "a link to nothing":
        source.symlink_to("nowhere")
    elif kind == "a folder":
        source.mkdir()
    else:
        source.write_text("what is this")
    named = "# Generated from old.star by crucible plan compile-workflow; edit that file instead."
    if kind == "in a string":
        manifest = f'{manifest}\n[deploy]\nx = """\n{named}\n"""\n'
    else:
        manifest = manifest.replace("workflow.star by", "old.star by")
    told = pack.static(manifest)
    assert told.status != 0


def test_what_a_run_would_hold_to_is_what_is_checked_and_disclosed(pack: Manifests) -> None:
    """A manifest in its own workspace holds as its base commit has it; who looks at another one is told."""
    leak = '[agent.env]\nLEAK = "x"\n'
    manifest = REPO + '[workspace]\ndir = "."\n' + leak + TASK.replace('"custom"', '"playbook"')
    pack.write(manifest)
    line = "git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -qm x"
    subprocess.run(["sh", "-c", line], check=True)
    assert pack.run("plan", "run", "--file", "crucible.toml", "--manifest", "crucible.toml").status == 0
    told = pack.exposure(manifest.replace(leak, ""))
    assert told.data["capabilities"]["env"] == ["LEAK"]
    assert "differs from that of the base commit" in told.err
    told = pack.static(manifest.replace(leak, ""))
    assert told.report["exposure"]["capabilities"]["env"] == ["LEAK"]
    assert "differs from that of the base commit" in told.err


@pytest.mark.parametrize(
    "reading", ['{"valid": false}', '{"valid": true}', '{"valid": true, "score": "1"}', '{"valid": true, "score": NaN}']
)
def test_a_gate_that_was_never_seen_to_measure_is_warned_of(pack: Manifests, reading: str) -> None:
    """An invalid reading of the untouched workspace proves nothing; a self-test that passes does."""
    told = pack.check(REPO + GATE + JUDGE, measure__sh=f"#!/bin/sh\necho '{reading}'\n")
    assert (told.status, sorted(told.codes)) == (0, ["gate-unreadable", "selftest-missing"])


def test_a_gate_without_end_is_ended(pack: Manifests) -> None:
    """By --max-time; nothing is left."""
    pack.write(PROVEN, {"measure.sh": "#!/bin/sh\nsleep 600\n"})
    told = pack.run("check", "--manifest", "crucible.toml", "--max-time", "1s")
    assert (told.status, "ended by --max-time" in told.err) == (1, True)
    assert sorted(path.name for path in pack.folder.iterdir()) == ["crucible.toml", "measure.sh"]


@pytest.mark.parametrize("command", ["check", "plan exposure"])
def test_a_manifest_is_a_toml_file_by_its_name(pack: Manifests, command: str) -> None:
    """Any other would be read as something else."""
    pack.write(PROVEN, {"measure.sh": MEASURE, "other.conf": PROVEN})
    told = pack.run(*command.split(), "--manifest", "other.conf")
    assert (told.status, "is a .toml file" in told.err) == (2, True)


def test_a_workspace_that_is_a_file_is_refused(pack: Manifests) -> None:
    """At the key."""
    told = pack.static(PROVEN.replace("[workspace]", '[workspace]\ndir = "measure.sh"'), measure__sh=MEASURE)
    assert (told.status, "path-refused" in told.codes) == (1, True)

"""The packs under golden/: what they compile to, byte for byte, and what the failing ones are told.

`make golden` writes the expected files again.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_snapshot.plugin import Snapshot

from crucible.cli import main
from crucible.compiler import manifest
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.pipeline import compile_file

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
FAILING = sorted(path for path in (GOLDEN / "failing").iterdir() if path.is_dir())
# Of the packs that build their tasks in calls of the standard library no test makes others.
LIBRARY = GOLDEN / "library"
PACKS = sorted(path for path in GOLDEN.iterdir() if path.is_dir() and path not in {GOLDEN / "failing", LIBRARY})
PACKS += sorted(LIBRARY.iterdir())

SOURCE, MANIFEST, EXPECTED = "workflow.star", "crucible.toml", "expected-workflow.json"
COMPILE = f"plan compile-workflow --file {SOURCE}"

Crucible = Callable[[Path, str], tuple[int, str, str]]


@pytest.fixture
def crucible(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Crucible:
    """Return a function that runs a command inside a pack: exit code, standard output, standard error."""

    def run(pack: Path, command: str) -> tuple[int, str, str]:
        monkeypatch.chdir(pack)
        return main.main(shlex.split(command)), *capfd.readouterr()

    return run


def each(packs: list[Path]) -> pytest.MarkDecorator:
    """Run a test once for each pack."""
    return pytest.mark.parametrize("pack", packs, ids=lambda path: path.name)


# Complete packs


@each(PACKS)
def test_a_pack_compiles_to_its_golden_bytes(pack: Path, crucible: Crucible, snapshot: Snapshot) -> None:
    """The canonical JSON is what the pack says, and there is nothing to complain about."""
    status, out, err = crucible(pack, COMPILE)
    assert (status, err) == (0, "")
    snapshot.snapshot_dir = pack
    snapshot.assert_match(out.encode(), EXPECTED)


@each(PACKS)
def test_a_pack_holds_its_own_materialised_workflow(
    pack: Path, crucible: Crucible, snapshot: Snapshot, tmp_path: Path
) -> None:
    """Compiling into the manifest of a pack changes none of its bytes and prints the same JSON."""
    copy = shutil.copytree(pack, tmp_path / pack.name)
    status, out, err = crucible(copy, f"{COMPILE} --manifest {MANIFEST}")
    assert (status, err) == (0, "")
    assert out.encode() == (pack / EXPECTED).read_bytes()
    snapshot.snapshot_dir = pack
    snapshot.assert_match((copy / MANIFEST).read_bytes(), MANIFEST)


@each(PACKS)
def test_a_manifest_without_its_block_gets_it_back(pack: Path, crucible: Crucible, tmp_path: Path) -> None:
    """What is written by hand stays where it is; the block comes behind it, a blank line between."""
    before, block, after = parts_of((pack / MANIFEST).read_bytes())
    assert block
    copy = shutil.copytree(pack, tmp_path / pack.name)
    (copy / MANIFEST).write_bytes(before + after)
    assert crucible(copy, f"{COMPILE} --manifest {MANIFEST}")[0] == 0
    newline = b"\r\n" if b"\r\n" in block else b"\n"
    rest = before + after if after else before.removesuffix(newline)
    assert (copy / MANIFEST).read_bytes() == rest + newline + block


def parts_of(text: bytes) -> tuple[bytes, bytes, bytes]:
    """Cut a manifest into what stands before its generated block, the block, and what stands behind."""
    begin = text.index(b"# Generated from ")
    tail = re.compile(rb"^\r?\n((#.*\n)*\[(?!\[?workflow\b))", re.MULTILINE).search(text, begin)
    end = tail.start() if tail else len(text)
    return text[:begin], text[begin:end], text[end:]


@each(PACKS)
def test_both_forms_of_a_pack_read_back_equal(pack: Path) -> None:
    """The JSON and, but for a playbook that is compiled at its launch, the TOML hold one workflow."""
    path = str(pack / SOURCE)
    compiled = compile_file(path)
    assert compiled.diagnostics == []
    as_json, as_toml = ((pack / name).read_bytes().decode() for name in (EXPECTED, MANIFEST))
    assert manifest.read_workflow(as_json, EXPECTED, "json")[:2] == (compiled.workflow, [])
    in_manifest = manifest.Reference(SOURCE) if compiled.declares_params else compiled.workflow
    assert manifest.read_workflow(as_toml, MANIFEST, "toml")[:2] == (in_manifest, [])


@each(PACKS)
def test_a_pack_has_the_scripts_that_it_runs(pack: Path) -> None:
    """A command that names a script of the pack finds it there, executable, and injected from there."""
    table = tomllib.loads((pack / MANIFEST).read_bytes().decode().removeprefix("\ufeff"))
    tasks = json.loads((pack / EXPECTED).read_bytes())["task"]
    commands = [task["command"] for task in tasks if "command" in task]
    commands += [value for key in ("judge", "world") for value in table.get(key, {}).values() if isinstance(value, str)]
    scripts = {word for command in commands for word in command.split()[:1] if word.startswith("./")}
    entries = [entry for entry in table.get("workspace", {}).get("inject", []) if isinstance(entry, str)]
    injected = {path for entry in entries for path in pack.glob(entry)}
    assert all(os.access(pack / script, os.X_OK) for script in scripts)
    assert {pack / script for script in scripts} <= injected


@each(PACKS)
def test_a_pack_embeds_all_its_prompts(pack: Path) -> None:
    """A prompt file that nothing reads teaches nobody anything."""
    embedded = {name for name, _ in compile_file(str(pack / SOURCE)).prompts}
    assert {f"prompts/{path.name}" for path in pack.glob("prompts/*")} <= embedded


# Failing packs


@each(FAILING)
def test_a_failing_pack_is_told_what_is_wrong(pack: Path, crucible: Crucible, snapshot: Snapshot) -> None:
    """The rendered diagnostics are what the pack says, and its own code is among them."""
    command = pack / "command"
    status, out, err = crucible(pack, command.read_text(encoding="utf-8") if command.exists() else COMPILE)
    assert status == 1
    assert f"[{code_of(pack)}]: " in out + err
    snapshot.snapshot_dir = pack
    snapshot.assert_match((out + err).encode(), "expected.txt")


def code_of(pack: Path) -> str:
    """Return the code that a failing pack is about; what follows a dot tells which side of it is shown."""
    return pack.name.partition(".")[0]


@each(FAILING)
def test_a_failing_pack_is_small(pack: Path) -> None:
    """One mistake, to be seen at a glance: a screenful, far from every ceiling of the compiler."""
    texts = [path.read_bytes() for path in pack.rglob("*") if path.is_file() and path.name != "expected.txt"]
    assert sum(text.count(b"\n") for text in texts) <= 60
    assert sum(map(len, texts)) < LIMITS.source_bytes // 100


# The golden files themselves


def test_a_pack_without_its_golden_file_fails(tmp_path: Path) -> None:
    """A missing golden file is no success."""
    missing = Snapshot(False, False, tmp_path)  # noqa: FBT003 - its signature
    with pytest.raises(AssertionError, match=f"{EXPECTED} doesn't exist"):
        missing.assert_match(b"{}", EXPECTED)


def test_line_ends_count() -> None:
    """A golden file that differs in its line ends alone differs."""
    kept = Snapshot(False, False, GOLDEN / "odd-values")  # noqa: FBT003 - its signature
    text = (GOLDEN / "odd-values" / EXPECTED).read_bytes()
    kept.assert_match(text, EXPECTED)
    with pytest.raises(AssertionError):
        kept.assert_match(text.replace(b"\n", b"\r\n"), EXPECTED)


def test_golden_files_are_not_written_in_ci() -> None:
    """With CI set, --snapshot-update is refused before any test runs."""
    command = [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", "--snapshot-update", __file__]
    done = subprocess.run(command, env={**os.environ, "CI": "true"}, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "refused when CI is set" in done.stderr

"""The plugin `pytest --crucible`, in runs of pytest of its own: what it collects, says and writes."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from packs import END, write

SOURCE, EXPECTED = "workflow.star", "expected-workflow.json"
PACK: Final = Path(__file__).resolve().parent.parent / "golden" / "critic-panel"
LIBRARIES: Final = ("graphviz", "jsonschema", "lark", "networkx", "pygls", "starlark", "tomlkit")
OTHER: Final = 'workflow(type = "custom", tasks = [command(name = "end", run = "false")])\n'


class Done(NamedTuple):
    """What came of a run of pytest."""

    code: int
    out: str

    def lines(self, part: str) -> list[str]:
        """Return the lines of the output that hold a text."""
        return [line for line in self.out.splitlines() if part in line]


Pytest = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path) -> Pytest:
    """Return a function that runs pytest in the test's own directory, which has no configuration above it."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")

    def run(*arguments: str, **environment: str) -> Done:
        command = [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", "--color=no", *arguments]
        environment = {**{key: value for key, value in os.environ.items() if key != "CI"}, **environment}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return Done(done.returncode, done.stdout + done.stderr)

    return run


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """Return a pack with its golden file, below the directory in which pytest runs."""
    return Path(shutil.copytree(PACK, tmp_path / "packs" / "panel"))


# The door


def test_the_plugin_imports_nothing_without_its_option(tmp_path: Path, run: Pytest) -> None:
    """A run of pytest that never heard of packs loads the door and nothing behind it."""
    write(tmp_path, {"test_it.py": "import sys\n\ndef test_it():\n    print(sorted(sys.modules))\n", SOURCE: END})
    done = run("-s")
    assert done.code == pytest.ExitCode.OK
    loaded = {name for name in done.out.split("'") if name.partition(".")[0] in {"crucible", *LIBRARIES}}
    assert loaded == {"crucible", "crucible.cli", "crucible.cli.pytest_plugin"}


def test_packs_are_collected_only_with_the_option(pack: Path, run: Pytest) -> None:
    """Without it there is nothing to test here."""
    assert run(str(pack)).code == pytest.ExitCode.NO_TESTS_COLLECTED


def test_without_the_library_the_option_says_what_to_install(pack: Path, run: Pytest) -> None:
    """pytest-snapshot is an extra of the package."""
    done = run("--crucible", "-p", "no:snapshot", str(pack))
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert "pip install 'crucible-workflow[golden]'" in done.out


# What is collected


def test_a_pack_that_is_what_its_golden_file_says_passes(pack: Path, run: Pytest) -> None:
    """One pack is one test, named after its golden file."""
    done = run("--crucible", "-v")
    assert done.code == pytest.ExitCode.OK
    assert [line.split()[:2] for line in done.lines("PASSED")] == [[f"packs/panel/{SOURCE}::{EXPECTED}", "PASSED"]]
    assert "= crucible =" not in done.out
    assert run("--crucible", "-v", f"{pack.relative_to(pack.parent.parent)}/{SOURCE}").lines("PASSED")


def test_packs_stand_beside_other_tests(tmp_path: Path, pack: Path, run: Pytest) -> None:
    """The option adds packs, and takes nothing away."""
    write(tmp_path, {"test_it.py": "def test_it():\n    pass\n"})
    assert run("--crucible").lines("2 passed")
    assert run("--crucible", "packs").lines("1 passed")
    assert pack.is_dir()


def test_what_lint_passes_over_is_passed_over(tmp_path: Path, pack: Path, run: Pytest) -> None:
    """Hidden folders, environments and what .gitignore names hold no packs of the repository's."""
    (tmp_path / ".git").mkdir()
    write(tmp_path, {".gitignore": "made/\n", "env/pyvenv.cfg": ""})
    for folder in (".hidden", "env/lib", "packs/made"):
        write(tmp_path / folder, {SOURCE: END})
    done = run("--crucible", "-v")
    assert (done.code, len(done.lines(EXPECTED))) == (pytest.ExitCode.OK, 1)
    assert pack.is_dir()


def test_who_names_an_ignored_pack_means_it(tmp_path: Path, run: Pytest) -> None:
    """A file or a folder that is named is tested."""
    (tmp_path / ".git").mkdir()
    write(tmp_path, {".gitignore": "made/\n"})
    write(tmp_path / "made", {SOURCE: END})
    assert run("--crucible", "made").code == pytest.ExitCode.TESTS_FAILED
    assert run("--crucible", f"made/{SOURCE}").code == pytest.ExitCode.TESTS_FAILED


def test_a_pack_that_pytest_passes_over_is_named(tmp_path: Path, pack: Path, run: Pytest) -> None:
    """Folders called build are not entered by pytest; whoever has a pack there is told."""
    write(tmp_path / "packs" / "build", {SOURCE: END})
    done = run("--crucible")
    assert done.code == pytest.ExitCode.OK
    assert done.lines("pytest passed over") == [
        f"pytest passed over packs/build/{SOURCE}: norecursedirs, --ignore or collect_ignore names it"
    ]
    assert pack.is_dir()


def test_a_run_without_a_pack_says_so(tmp_path: Path, run: Pytest) -> None:
    """Nobody takes it for a proof."""
    write(tmp_path, {"test_it.py": "def test_it():\n    pass\n"})
    assert run("--crucible").lines(f"no {SOURCE} was tested")


# What is said


def test_a_pack_that_changed_fails_with_the_difference(pack: Path, run: Pytest) -> None:
    """What it means, then the lines of both texts in the form of a patch."""
    source = pack / SOURCE
    text = source.read_text(encoding="utf-8").replace("./check-links.sh", "./check-all.sh")
    source.write_text(text, encoding="utf-8")
    before = (pack / EXPECTED).read_bytes()
    done = run("--crucible")
    assert done.code == pytest.ExitCode.TESTS_FAILED
    assert f"packs/panel/{SOURCE} no longer compiles to packs/panel/{EXPECTED}" in done.out
    meaning, _, text = done.out.partition("@@")
    assert "runs another command" in meaning
    assert text.index('-      "command": "./check-links.sh') < text.index('+      "command": "./check-all.sh')
    assert "Traceback" not in done.out
    assert (pack / EXPECTED).read_bytes() == before


def test_a_pack_without_a_golden_file_fails(tmp_path: Path, run: Pytest) -> None:
    """It is told how to get one."""
    write(tmp_path / "pack", {SOURCE: END})
    done = run("--crucible")
    assert done.code == pytest.ExitCode.TESTS_FAILED
    message = f"pack/{SOURCE} has no {EXPECTED} beside it; pytest --crucible --snapshot-update writes it"
    assert done.lines(message)


@pytest.mark.parametrize("ending", [b"\r\n", b"\r"])
def test_a_difference_in_line_endings_alone_says_so(pack: Path, run: Pytest, ending: bytes) -> None:
    """Instead of two texts that look alike."""
    golden = pack / EXPECTED
    golden.write_bytes(golden.read_bytes().replace(b"\n", ending))
    done = run("--crucible")
    assert done.code == pytest.ExitCode.TESTS_FAILED
    assert f"packs/panel/{EXPECTED} differs in its line endings alone" in done.out
    assert "@@" not in done.out


def test_a_pack_that_does_not_compile_fails_with_its_diagnostics(tmp_path: Path, run: Pytest) -> None:
    """As the command line shows them; its golden file, if it has one, is left alone."""
    write(tmp_path / "pack", {SOURCE: END.replace("run", "rum"), EXPECTED: "{}\n"})
    done = run("--crucible", "--snapshot-update")
    assert done.code == pytest.ExitCode.TESTS_FAILED
    assert not done.lines(f"no {SOURCE} was tested")
    assert 'error[unknown-argument]: command() has no argument "rum"; did you mean "run"?' in done.out
    assert f"--> pack/{SOURCE}:1:" in done.out
    assert (tmp_path / "pack" / EXPECTED).read_bytes() == b"{}\n"


def test_a_playbook_that_only_a_launch_completes_says_what_is_missing(tmp_path: Path, run: Pytest) -> None:
    """A parameter without an example has no value in a test."""
    source = 'params = {"issue": {"type": "string"}}\n' + END.replace('"custom"', '"playbook"')
    write(tmp_path / "pack", {SOURCE: source})
    done = run("--crucible")
    assert done.code == pytest.ExitCode.TESTS_FAILED
    assert done.lines("error[")


def test_a_golden_file_that_cannot_be_read_is_a_failure(tmp_path: Path, run: Pytest) -> None:
    """Whatever stands in its place."""
    write(tmp_path / "pack", {SOURCE: END, f"{EXPECTED}/x": ""})
    done = run("--crucible", "--snapshot-update")
    assert done.code == pytest.ExitCode.TESTS_FAILED
    assert f"pack/{EXPECTED}" in done.out
    assert "Traceback" not in done.out


@pytest.mark.parametrize("name", [SOURCE, EXPECTED])
def test_nothing_of_what_a_link_leads_to_is_shown(tmp_path: Path, pack: Path, run: Pytest, name: str) -> None:
    """Neither in place of a source nor of a golden file, which an update does not write through a link either."""
    secret = tmp_path / "secret.txt"
    secret.write_text("secret: of the machine\n", encoding="utf-8")
    (pack / name).unlink()
    (pack / name).symlink_to(secret)
    for options in ([], ["--snapshot-update"]):
        done = run("--crucible", *options, "packs")
        assert done.code in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
        assert "secret:" not in done.out
    assert secret.read_text(encoding="utf-8") == "secret: of the machine\n"


def test_a_golden_file_cannot_steer_the_terminal(tmp_path: Path, run: Pytest) -> None:
    """What stands in it is shown, and not obeyed."""
    write(tmp_path / "pack", {SOURCE: END, EXPECTED: "\x1b]0;title\x07{\n"})
    done = run("--crucible")
    assert "-\\x1b]0;title" in done.out
    assert "\x1b]" not in done.out


# What is written


def test_an_update_writes_and_lists_what_changed(tmp_path: Path, pack: Path, run: Pytest) -> None:
    """New and changed golden files are listed; one that is right is not touched."""
    write(tmp_path / "new", {SOURCE: END})
    write(tmp_path / "changed", {SOURCE: OTHER, EXPECTED: "{}\n"})
    before = (pack / EXPECTED).stat().st_mtime_ns
    done = run("--crucible", "--snapshot-update")
    assert done.code == pytest.ExitCode.OK
    assert done.lines("wrote ") == [f"wrote changed/{EXPECTED}", f"wrote new/{EXPECTED}"]
    assert (pack / EXPECTED).stat().st_mtime_ns == before
    again = run("--crucible", "--snapshot-update")
    assert (again.code, again.lines("wrote ")) == (pytest.ExitCode.OK, [])
    assert run("--crucible").code == pytest.ExitCode.OK


def test_an_update_is_refused_in_ci(tmp_path: Path, run: Pytest) -> None:
    """There golden files are compared, never made."""
    write(tmp_path / "pack", {SOURCE: END})
    done = run("--crucible", "--snapshot-update", CI="true")
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert "--snapshot-update is refused when CI is set" in done.out
    assert not (tmp_path / "pack" / EXPECTED).exists()
    assert run("--crucible", CI="true").code == pytest.ExitCode.TESTS_FAILED

"""The installed package: that it is what tests run against, and that it is whole."""

import importlib
import subprocess
import sys
import sysconfig
import tomllib
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS = {folder: name for name, folder in PROJECT["tool"]["setuptools"]["package-dir"].items()}
INSTALLED = Path(sysconfig.get_path("purelib")) / "crucible"
OWNERS = tomllib.loads((ROOT / "tests" / "layers.toml").read_text(encoding="utf-8"))["owners"]
SHIPPED = {".py", ".lark", ".md", ".sh", ".star", ".json", ".toml", ".txt", ".typed"}


def shipped_files(root: Path) -> dict[str, bytes]:
    """Return path and bytes of every file under the package's folders that belongs to the package."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for folder in FOLDERS
        for path in (root / folder).rglob("*")
        if path.suffix in SHIPPED and path.relative_to(root).parts[:2] != ("editor", "vscode")
    }


@pytest.mark.parametrize("name", FOLDERS.values())
def test_tests_import_the_installed_package(name: str) -> None:
    """An import finds the regular install, not the checkout."""
    module = importlib.import_module(name)
    assert Path(str(module.__file__)).is_relative_to(INSTALLED)


def test_the_install_has_every_file_and_no_other() -> None:
    """No file is forgotten in the tables of pyproject.toml, none is stale, none is left of an old build."""
    ours, theirs = shipped_files(ROOT), shipped_files(INSTALLED)
    assert sorted(theirs) == sorted(ours)
    assert [path for path in ours if ours[path] != theirs[path]] == []


def test_every_package_is_typed() -> None:
    """Type checkers look for the mark in each part, since `crucible` itself has no folder."""
    assert [folder for folder in FOLDERS if not (INSTALLED / folder / "py.typed").is_file()] == []


def test_the_install_is_compiled() -> None:
    """Start-up needs the byte code of every module, whoever forbids Python to write it later."""
    sources = list(INSTALLED.rglob("*.py"))
    assert sources
    tag = sys.implementation.cache_tag
    missing = [path for path in sources if not (path.parent / "__pycache__" / f"{path.stem}.{tag}.pyc").is_file()]
    assert missing == []


def test_the_command_tells_the_version_of_the_package() -> None:
    """The version that the command line prints, without reading metadata, is the one that was installed."""
    command = Path(sysconfig.get_path("scripts")) / "crucible"
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"crucible {version('crucible-workflow')}\n"


def test_pytest_finds_the_plugin() -> None:
    """It is an entry point of the package, and bringing it in loads nothing but its folder."""
    assert PROJECT["project"]["entry-points"]["pytest11"] == {"crucible": "crucible.cli.pytest_plugin"}
    (found,) = entry_points(group="pytest11", name="crucible")
    ours = {"crucible", "crucible.cli", found.value}
    assert loaded_by(f"import {found.value}") - loaded_by("pass") == ours


def test_the_command_line_starts_without_what_is_slow() -> None:
    """Nobody who asks for the version waits for a library, or for a slow part of the standard library."""
    slow = {"importlib.metadata", "inspect", "logging", "pathlib", "subprocess", *OWNERS}
    assert loaded_by("import crucible.cli.main") & slow - loaded_by("pass") == set()


def loaded_by(statement: str) -> set[str]:
    """Return the names of the modules that a fresh interpreter has loaded after a statement."""
    program = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())

"""The architecture as a test: the sources, read with ast, against the tables of layers.toml."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
TABLES = tomllib.loads((ROOT / "tests" / "layers.toml").read_text(encoding="utf-8"))
FOLDERS = [folder for floor in TABLES["floors"] for folder in floor]
SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.py"))
}
PREFIX = "crucible."
DYNAMIC = ("__import__", "import_module")
PRINTS = {"stdout", "stderr", "__stdout__", "__stderr__"}
EXITS = {("sys", "exit"), ("os", "_exit"), ("os", "abort")}


class Import(NamedTuple):
    """One imported name: a dotted module, or a module and what follows it, and whether a call runs it."""

    name: str
    line: int
    in_function: bool
    for_types: bool


def imports_of(source: str) -> list[Import]:
    """List all imports of a source, those of functions and of TYPE_CHECKING included."""
    found: list[Import] = []

    def visit(node: ast.AST, *, in_function: bool, for_types: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend(Import(alias.name, node.lineno, in_function, for_types) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            found.extend(Import(f"{base}.{alias.name}", node.lineno, in_function, for_types) for alias in node.names)
        elif isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).endswith(DYNAMIC):
            found.append(Import(f".{ast.unparse(node)}", node.lineno, in_function, for_types))
        in_function |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for_types |= isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for child in ast.iter_child_nodes(node):
            visit(child, in_function=in_function, for_types=for_types)

    visit(ast.parse(source), in_function=False, for_types=False)
    return found


def file_of(name: str) -> str | None:
    """Return the file that an imported name of the project stands for, None if there is none."""
    path = name.removeprefix(PREFIX).replace(".", "/")
    parent = path.rpartition("/")[0]
    tries = (f"{path}.py", f"{path}/__init__.py", f"{parent}.py", f"{parent}/__init__.py")
    return next((file for file in tries if file in SOURCES), None)


def allowed_for(file: str) -> list[str] | None:
    """Return the patterns of what a file may import, None for a file that no line lists."""
    table: dict[str, list[str]] = TABLES["files"]
    line = file if file in table else next((key for key in table if fnmatchcase(file, key)), None)
    if line is None:
        return None
    return table[line] + ([] if fits(file, [TABLES["ground"]]) else [TABLES["ground"]])


def fits(file: str, patterns: list[str]) -> bool:
    """Tell whether one of the patterns fits; `*` fits slashes as well."""
    return any(fnmatchcase(file, pattern) for pattern in patterns)


def floor_of(file: str) -> int:
    """Return the number of the floor that a file stands on, 0 being the ground."""
    folder = file.partition("/")[0]
    return next(number for number, floor in enumerate(TABLES["floors"]) if folder in floor)


def faults_of_imports(file: str, source: str) -> Iterator[str]:
    """Yield what is wrong with the imports of one file."""
    allowed = allowed_for(file)
    if allowed is None:
        yield f"{file}: not listed in tests/layers.toml"
        return
    for name, line, in_function, for_types in imports_of(source):
        place, top = f"{file}:{line}", name.partition(".")[0]
        if top in sys.stdlib_module_names:
            continue
        if name.startswith(PREFIX):
            target = file_of(name)
            if target is None:
                yield f"{place}: {name} is no file"
            elif target != file and not fits(target, allowed):
                yield f"{place}: may not import {target}"
        elif not top.isidentifier():
            yield f"{place}: write the import in full, as a statement"
        elif TABLES["owners"].get(top) != file:
            yield f"{place}: {top} belongs to {TABLES['owners'].get(top, 'nobody')}"
        elif not in_function and not for_types and top not in TABLES["eager"]:
            yield f"{place}: import {top} inside the function that needs it"


def faults_of_the_rim(file: str, source: str) -> Iterator[str]:
    """Yield each place where a file prints or ends the process and may not."""
    prints, exits = (not fits(file, TABLES["rim"][key]) for key in ("prints", "exits"))
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                bad = (prints and module == "sys" and name in PRINTS) or (exits and (module, name) in EXITS)
            case ast.ImportFrom(module="sys" | "os" as module, names=names):
                bad = any(
                    (prints and module == "sys" and alias.name in PRINTS) or (exits and (module, alias.name) in EXITS)
                    for alias in names
                )
            case ast.Name(id="print"):
                bad = prints
            case ast.Name(id="exit" | "quit" | "SystemExit"):
                bad = exits
            case _:
                continue
        if bad:
            yield f"{file}:{node.lineno}: {ast.unparse(node)} belongs to the rim (cli/)"


def targets_of(file: str) -> set[str]:
    """Return the files of the project that one file imports."""
    names = (name for name, *_ in imports_of(SOURCES[file]) if name.startswith(PREFIX))
    return {target for name in names if (target := file_of(name)) not in {None, file}}


@pytest.mark.parametrize("file", SOURCES)
def test_a_file_imports_what_the_table_allows(file: str) -> None:
    """Every import of a file is listed, and a library is imported by its owner only, where it is needed."""
    assert list(faults_of_imports(file, SOURCES[file])) == []


@pytest.mark.parametrize("file", SOURCES)
def test_a_file_keeps_to_its_floor_and_room(file: str) -> None:
    """No line of the table may allow what the floors and the rooms forbid."""
    for target in targets_of(file):
        same_folder = target.partition("/")[0] == file.partition("/")[0]
        assert same_folder or floor_of(target) < floor_of(file), f"{file} may not reach up or across to {target}"
        for rooms in TABLES["apart"]:
            here, there = ([room for room in rooms if fnmatchcase(side, room)] for side in (file, target))
            assert here == there or not (here and there), f"{file} and {target} stand in rooms that keep apart"


@pytest.mark.parametrize("file", SOURCES)
def test_only_the_rim_prints_and_exits(file: str) -> None:
    """All else returns what it has to say."""
    assert list(faults_of_the_rim(file, SOURCES[file])) == []


def test_no_file_imports_itself_by_a_detour() -> None:
    """The imports of the project have no cycle."""
    TopologicalSorter({file: targets_of(file) for file in SOURCES}).prepare()


def test_every_line_of_the_table_fits_a_file() -> None:
    """A line for a file that is gone would allow an import to the next file of that name."""
    lines = {*TABLES["files"], *(pattern for line in TABLES["files"].values() for pattern in line)}
    assert [line for line in sorted(lines) if not any(fnmatchcase(file, line) for file in SOURCES)] == []


HEAD = "compiler/frontend/limits.py"


@pytest.mark.parametrize(
    ("file", "source", "fault"),
    [
        (HEAD, "from crucible.compiler.frontend.tree import Node", "may not import compiler/frontend/tree.py"),
        (HEAD, "import crucible.compiler.frontend.tree", "may not import compiler/frontend/tree.py"),
        (HEAD, "from crucible.compiler.frontend import tree", "may not import compiler/frontend/tree.py"),
        (HEAD, "def f():\n    import crucible.cli", "may not import cli/__init__.py"),
        (HEAD, "if TYPE_CHECKING:\n    from crucible.cli import x", "may not import cli/__init__.py"),
        (HEAD, "import crucible.nowhere.at_all", "crucible.nowhere.at_all is no file"),
        (HEAD, "from . import tree", "write the import in full"),
        (HEAD, "from ..frontend import tree", "write the import in full"),
        (HEAD, "importlib.import_module('crucible.cli')", "write the import in full"),
        (HEAD, "__import__('lark')", "write the import in full"),
        (HEAD, "def f():\n    import lark", "lark belongs to compiler/frontend/grammar.py"),
        (HEAD, "def f():\n    from yaml import load", "yaml belongs to nobody"),
        ("compiler/frontend/grammar.py", "import lark", "inside the function"),
        ("compiler/frontend/unheard_of.py", "", "not listed"),
    ],
)
def test_a_forbidden_import_is_found(file: str, source: str, fault: str) -> None:
    """The reader of imports sees every way to write one."""
    assert [fault for found in faults_of_imports(file, source) if fault in found] == [fault]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        (HEAD, "import os, json\nfrom crucible.schemas.span import Span"),
        ("compiler/frontend/scan.py", "from crucible.compiler.frontend.limits import LIMITS"),
        ("compiler/frontend/grammar.py", "def f():\n    from lark.lexer import Token"),
        ("compiler/frontend/grammar.py", "if TYPE_CHECKING:\n    import lark"),
    ],
)
def test_an_allowed_import_is_no_fault(file: str, source: str) -> None:
    """The reader of imports finds nothing in what the tables allow."""
    assert list(faults_of_imports(file, source)) == []


@pytest.mark.parametrize(
    "source",
    [
        "print(1)",
        "log = print",
        "sys.stdout.write('')",
        "from sys import stderr",
        "sys.exit(1)",
        "from os import _exit",
        "os._exit(0)",
        "raise SystemExit",
        "exit()",
    ],
)
def test_printing_and_exiting_are_found(source: str) -> None:
    """Each way to print or to leave is a fault in the middle of the house and none at its rim."""
    assert len(list(faults_of_the_rim(HEAD, source))) == 1
    assert list(faults_of_the_rim("cli/main.py", source)) == []

"""The extension for VS Code, as far as it can be read: its files fit together, its names are the language's."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crucible.compiler.frontend.lexis import KEYWORDS, RESERVED
from crucible.compiler.frontend.vocabulary import BUILTINS, CONSTRUCTORS

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "editor" / "vscode"
LANGUAGE = "crucible-workflow"


def read(name: str) -> Any:
    """Return a JSON file of the extension."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


PACKAGE = read("package.json")
GRAMMAR = read(f"syntaxes/{LANGUAGE}.tmLanguage.json")
RULES = GRAMMAR["repository"]


def rules(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of the grammar."""
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from rules(each)


def words(*names: str) -> set[str]:
    """Return the words that some rules list."""
    found: set[str] = set()
    for name in names:
        listed = re.match(r"\\b\(\?:([A-Za-z_|]+)\)\\b", RULES[name]["match"])
        assert listed, name
        found |= set(listed[1].split("|"))
    return found


def test_the_files_that_the_package_names_are_there() -> None:
    """But for the bundle, which is built."""
    contributed = PACKAGE["contributes"]
    named = [contributed["languages"][0]["configuration"], contributed["grammars"][0]["path"]]
    assert [name for name in named if not (FOLDER / name).is_file()] == []
    assert f"--outfile={PACKAGE['main'].removeprefix('./')}" in PACKAGE["scripts"]["bundle"]


def test_the_language_is_that_of_workflow_star() -> None:
    """One language, with its grammar, that wakes the extension."""
    (language,), (grammar,) = PACKAGE["contributes"]["languages"], PACKAGE["contributes"]["grammars"]
    assert (language["id"], language["filenames"], language["extensions"]) == (LANGUAGE, ["workflow.star"], [".star"])
    assert (grammar["language"], grammar["scopeName"]) == (LANGUAGE, GRAMMAR["scopeName"])
    assert PACKAGE["activationEvents"] == [f"onLanguage:{LANGUAGE}", "workspaceContains:**/crucible.toml"]
    assert f'LANGUAGE = "{LANGUAGE}"' in (FOLDER / "src" / "extension.ts").read_text(encoding="utf-8")


def test_the_command_can_be_set_and_not_by_a_stranger() -> None:
    """It is `crucible` on the PATH without a setting; a workspace that nobody trusts cannot name another."""
    settings = PACKAGE["contributes"]["configuration"]["properties"]
    assert settings.keys() == {"crucible.command"}
    assert settings["crucible.command"]["default"] == "crucible"
    assert PACKAGE["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"] == ["crucible.command"]


def test_every_command_of_the_palette_is_registered() -> None:
    """And none of them has the name of one of the server's, which the client library registers itself."""
    source = (FOLDER / "src" / "extension.ts").read_text(encoding="utf-8")
    commands = [each["command"] for each in PACKAGE["contributes"]["commands"]]
    assert commands == re.findall(r'registerCommand\("([^"]+)"', source)
    assert "crucible.graph" not in commands


def test_the_version_and_the_license_are_those_of_the_project() -> None:
    """Both are released together."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (PACKAGE["version"], PACKAGE["license"]) == (project["version"], project["license"])


def test_the_lock_fits_the_package_and_names_no_registry() -> None:
    """Whoever builds it gets the same packages, from wherever theirs come."""
    lock = read("package-lock.json")
    root = lock["packages"][""]
    assert [root[key] for key in ("dependencies", "devDependencies")] == [
        PACKAGE[key] for key in ("dependencies", "devDependencies")
    ]
    assert lock["version"] == PACKAGE["version"]
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
    assert [name for name, package in lock["packages"].items() if name and "integrity" not in package] == []


def test_the_configuration_of_the_language_is_well_formed() -> None:
    """Its pairs are pairs, its expressions compile, and a word is a name of the language."""
    configuration = read("language-configuration.json")
    assert configuration["comments"] == {"lineComment": "#"}
    pairs = [(each["open"], each["close"]) for each in configuration["autoClosingPairs"]]
    assert {tuple(pair) for pair in configuration["brackets"]} < set(pairs)
    opens, leaves = (rule["beforeText"] for rule in configuration["onEnterRules"])
    assert re.fullmatch(opens, "def f(a):  # x")
    assert not re.match(opens, "d = {")
    assert re.match(leaves, "    return x")
    assert re.fullmatch(configuration["wordPattern"], "depends_on")


@pytest.mark.parametrize("rule", list(rules(GRAMMAR)))
def test_a_rule_of_the_grammar_is_well_formed(rule: dict[str, Any]) -> None:
    """Its expressions compile, its scopes are ours, and what it includes exists."""
    for key in ("match", "begin", "end"):
        re.compile(rule.get(key, ""))
    assert ("begin" in rule) == ("end" in rule)
    name = rule.get("name", "")
    assert name == GRAMMAR["name"] or not name or re.fullmatch(rf"[a-z-]+(\.[a-z-]+)*\.{LANGUAGE}", name)
    assert rule.get("include", "#code").removeprefix("#") in RULES


def test_the_grammar_reads_a_name_in_no_second_list() -> None:
    """Its constructors, builtins and keywords are those of the compiler's own tables."""
    assert words("constructor") == CONSTRUCTORS.keys()
    assert words("builtin", "constant") == BUILTINS
    assert words("reserved") == RESERVED
    assert words("keyword", "word-operator", "storage", "load") == KEYWORDS - RESERVED


def test_every_rule_of_the_grammar_is_used() -> None:
    """And the whole of a text is code."""
    used = {rule["include"].removeprefix("#") for rule in rules(GRAMMAR) if "include" in rule}
    assert used == RULES.keys()
    assert GRAMMAR["patterns"] == [{"include": "#code"}]

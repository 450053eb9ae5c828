"""The documentation is true: sources compile, commands print what is shown, pictures are drawn, links lead somewhere.

Each page has a folder of its own, in which its blocks are worked through from the first to the last.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from doc_blocks import DOCS, PICTURE, PICTURES, ROOT, Block, Command, Page, anchor, commands, matches, pages
from packs import write
from process import COMMAND, crucible
from pytest_snapshot.plugin import Snapshot

from crucible.cli import main
from crucible.schemas.codes import CODES
from crucible.schemas.spelling import nearest

GENERATED = ("docs/benchmarks.md", "docs/reference/", "docs/truth-table.md", "docs/contract-coverage.md")
PAGES = pages()
WRITTEN = [page for page in PAGES if not page.name.startswith(GENERATED)]
# What no test of ours can run, and why.
NOT_TRIED = {
    "yaml": "the files of other programs; the commands in them are parsed",
    "lua": "the settings of an editor",
    "elisp": "the settings of an editor",
    "text": "what is no program",
}
KNOWN = {"crucible.toml": ("lint",), "plan.toml": ("plan", "compile-workflow", "--file")}
PROGRAMS = {".sh", ".py"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Return what the commands of a page run with: the programs of this installation, a home, an author."""
    folder = tmp_path_factory.mktemp("bin")
    plugin = [] if entry_points(group="pytest11", name="crucible") else ["-p", "crucible.cli.pytest_plugin"]
    programs = {
        "crucible": COMMAND,
        "pytest": [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", *plugin],
        "python3": [sys.executable],
    }
    for name, line in programs.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {shlex.join(line)} "$@"\n')
        (folder / name).chmod(0o755)
    author = {f"GIT_{who}_{what}": "a@b.example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "NO_COLOR": "1", "COLUMNS": "100"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "CI", "GIT_"))}
    return {**kept, **author, **settings, "HOME": str(folder), "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def of_page(found: list[Page]) -> pytest.MarkDecorator:
    """Run a test once for each page."""
    return pytest.mark.parametrize("page", found, ids=lambda page: page.name)


@of_page([page for page in WRITTEN if page.blocks])
def test_every_block_of_a_page_is_compiled_run_or_drawn(
    page: Page, tmp_path: Path, environment: Mapping[str, str], snapshot: Snapshot
) -> None:
    """In order, in one folder; `make golden` draws the pictures again."""
    snapshot.snapshot_dir = PICTURES
    for block in page.blocks:
        where = f"{page.name}:{block.line}"
        if block.language == "console":
            for command in commands(block):
                _run(command, tmp_path, environment, where)
        elif block.language == "sh":
            _run(Command(f"set -e\n{block.text}", ""), tmp_path, environment, where)
        elif block.language == PICTURE:
            _compare(block.title, _drawn(block.title, tmp_path, where), snapshot)
        elif block.language == "starlark" or (block.title and not block.title.startswith("~")):
            _lay(block, tmp_path, where)
        elif block.language == "toml":
            tomllib.loads(block.text)
        else:
            assert block.language in NOT_TRIED, f"{where}: nothing tries a block of {block.language!r}"


def _run(command: Command, folder: Path, environment: Mapping[str, str], where: str) -> None:
    """Run a command of a page; one that fails has to show what it says then."""
    line = ["sh", "-c", command.line]
    null, pipe, same = subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT
    done = subprocess.run(line, cwd=folder, env=environment, stdin=null, stdout=pipe, stderr=same, check=False)
    printed = done.stdout.decode()
    assert matches(command.shown, printed), f"{where}: $ {command.line}\n{printed}"
    assert done.returncode == 0 or command.shown, f"{where}: $ {command.line} failed and shows nothing"


def _drawn(name: str, folder: Path, where: str) -> bytes:
    """Return the picture of the pack under golden/ that it is named after, else of the source above it."""
    pack = ROOT / "golden" / Path(name).stem
    output = folder / f"drawn{Path(name).suffix}"
    source = (pack if pack.is_dir() else folder) / "workflow.star"
    done = crucible("plan", "render", "--file", source, "--output", output)
    assert done.status == 0, f"{where}:\n{done.err.decode()}"
    return output.read_bytes()


def _compare(name: str, drawn: bytes, snapshot: Snapshot) -> None:
    """Hold a picture to the one that is shown, by what is written in it."""
    kept = PICTURES / name
    if not kept.exists() or texts(kept.read_bytes()) != texts(drawn):
        try:
            snapshot.assert_match(drawn, name)
        except AssertionError as error:
            message = f"docs/pictures/{name} is stale; `make golden` mends it"
            raise AssertionError(message) from error


def texts(picture: bytes) -> list[str]:
    """Return all that is written in a picture, sorted: where it stands is up to the version of the drawing program."""
    return sorted(re.findall(r"<(?:title|text)[^>]*>([^<]*)<", picture.decode()))


def _lay(block: Block, folder: Path, where: str) -> None:
    """Write the file that a block is; a source compiles, and lint has nothing to say of it."""
    name = block.title or "workflow.star"
    assert Path(name).name in KNOWN or Path(name).suffix in {*PROGRAMS, ".star", ".md", ".json"}, f"{where}: {name}"
    write(folder, {name: block.text})
    path = folder / name
    if path.suffix in PROGRAMS:
        path.chmod(0o755)
    if path.suffix == ".star" and re.search(r"^(workflow|default_autoresearch)\(", block.text, re.MULTILINE):
        done = crucible("lint", name, "--deny", "warnings", cwd=folder)
        assert done.status == 0, f"{where}:\n{done.out.decode()}"
    if name in KNOWN:
        done = crucible(*KNOWN[name], name, cwd=folder)
        assert done.status == 0, f"{where}:\n{(done.out + done.err).decode()}"


@of_page(PAGES)
def test_every_link_leads_somewhere(page: Page) -> None:
    """To a file of the project, and to a heading of it where one is named."""
    known = {other.name: other for other in PAGES}
    folder = (ROOT / page.name).parent
    for link in page.links:
        if re.match(r"[a-z]+://", link):
            continue
        path, _, place = link.partition("#")
        target = (folder / path).resolve() if path else ROOT / page.name
        assert target.is_relative_to(ROOT), link
        assert target.exists(), link
        if page.name.startswith("docs/"):
            assert target.is_relative_to(DOCS), f"{link} leads out of the site"
        if place:
            assert place in known[target.relative_to(ROOT).as_posix()].anchors, link


@of_page(PAGES)
def test_every_code_that_a_page_names_is_one(page: Page) -> None:
    """In brackets, behind explain, and where something between backticks looks like one that is misspelt."""
    named = re.findall(r"\b(?:error|warning|fixed|ignore)\[([\w-]+)\]|plan explain ([a-z][a-z0-9-]{2,})", page.text)
    found = {first or second for first, second in named} - {"code"}
    looks = {span for span in page.spans if re.fullmatch(r"[a-z]+(?:-[a-z]+)+", span) and nearest(span, CODES)}
    assert {code for code in found | looks if code not in CODES} == set()


@of_page(WRITTEN)
def test_every_command_that_a_page_names_can_be_parsed(page: Page, capsys: pytest.CaptureFixture[str]) -> None:
    """Where one stands in a line of its own or behind a `$ ` or `run: `; in a sentence it may leave arguments out."""
    lines = re.findall(r"^(?: +|\$ |.*run: )(crucible [^#\n]*)", page.text, re.MULTILINE)
    for words in map(_words, lines):
        try:
            main.parser(words).parse_args(words)
        except SystemExit as left:
            said = capsys.readouterr().err
            assert left.code == 0, f"{words}\n{said}"  # noqa: PT017 - argparse leaves so
    for span in page.spans:
        if not span.startswith("crucible "):
            continue
        inner, words = main.parser(), _words(span)
        while words and words[0] in _inside(inner):
            inner, words = _inside(inner)[words[0]], words[1:]
        options = {option for action in inner._actions for option in action.option_strings}
        assert not _inside(inner) or words in ([], ["--version"], ["COMMAND"]), words
        assert [word for word in words if word.startswith("-") and word not in options] == []


def _inside(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """Return the commands inside of a command."""
    found = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return next((action.choices for action in found), {})


def _words(line: str) -> list[str]:
    """Return the arguments of a command, up to where the shell has something else to do."""
    line = re.split(r" (?:[|<&]|2?>)|;|\n", line.removeprefix("crucible"))[0]
    return shlex.split(line.removesuffix("`"), comments=True)


@of_page(PAGES)
def test_every_file_that_a_page_names_is_there(page: Page) -> None:
    """Tests, benchmarks and packs of this project."""
    named = [span for span in page.spans if re.match(r"(tests|benchmarks|golden|docs)/[\w./-]*$", span)]
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_figures_of_the_readme_are_those_that_were_measured() -> None:
    """They stand on the page that the benchmarks have written."""
    (line,) = (line for line in (ROOT / "README.md").read_text(encoding="utf-8").split("\n") if "| doit, " in line)
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    measured = dict(re.findall(r"^\| 1,000 tasks \| \**([\d.]+) x ([\w ]+?)\** \|", page, re.MULTILINE))
    peers = {name: figure for figure, name in measured.items()}
    assert re.findall(r"\b\d\.\d+\b", line) == [peers[name] for name in ("doit", "luigi", "snakemake")]


@of_page(PAGES)
def test_a_page_installs_what_there_is(page: Page) -> None:
    """The name of this package, with extras that it has."""
    for name, extra in re.findall(r"pip install '?(crucible[\w-]*)(?:\[(\w+)\])?", page.text):
        assert name == PROJECT["name"]
        assert not extra or extra in PROJECT["optional-dependencies"]


def test_every_picture_is_shown() -> None:
    """None is left over."""
    shown = {block.title for page in PAGES for block in page.blocks if block.language == PICTURE}
    assert {path.name for path in PICTURES.iterdir()} == shown


def test_every_page_is_on_the_menu() -> None:
    """Once, and the menu names no other."""
    site = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    assert sorted(_leaves(site["nav"])) == sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def test_the_first_page_leads_to_every_other() -> None:
    """Whoever reads the files and no site has no menu."""
    (index,) = (page for page in PAGES if page.name == "docs/index.md")
    linked = {(DOCS / link.partition("#")[0]).resolve() for link in index.links}
    assert {path for path in DOCS.rglob("*.md") if path.name != "index.md"} - linked == set()


def _leaves(menu: object) -> Iterator[str]:
    if isinstance(menu, str):
        yield menu
    elif isinstance(menu, dict):
        for value in menu.values():
            yield from _leaves(value)
    elif isinstance(menu, list):
        for value in menu:
            yield from _leaves(value)


# The reader itself

PAGE = """\
# A `first` page: of two

See [the end](#the-end) and `[no](link)`.

```starlark title="workflow.star"
a = 1
```

    [no](link)

```console
$ cat <<end
> a
> end
a
$ date
... 2026
```

![drawn](pictures/a.svg)

## The end
"""


def test_the_reader_finds_blocks_commands_links_and_pictures() -> None:
    """Links in code are none, and a command goes on behind a >."""
    page = Page("a.md", PAGE)
    assert [(block.language, block.title, block.line) for block in page.blocks] == [
        ("starlark", "workflow.star", 5),
        ("console", "", 11),
        ("picture", "a.svg", 20),
    ]
    assert commands(page.blocks[1]) == [("cat <<end\na\nend", "a\n"), ("date", "... 2026\n")]
    assert page.links == ["#the-end", "pictures/a.svg"]
    assert page.anchors == {"a-first-page-of-two", "the-end"}
    assert anchor("error\\[x\\] and top_k") == "errorx-and-top_k"


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\n", "a\nb\n", False),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\nd\n", "a\nd\n", True),
        ("took ... s\n", "took 0.1 s\n", True),
        ("took ... s\n", "took 0.1 s\nb\n", False),
        ("", "a\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_what_is_shown_is_compared_whole(shown: str, printed: str, *, expected: bool) -> None:
    """But for the dots."""
    assert matches(shown, printed) is expected

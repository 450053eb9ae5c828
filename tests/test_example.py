"""The examples of plan explain: what fails fails by its code alone, what passes passes, and a mend lies between.

`make golden` writes what the failing ones are told again.
"""

import difflib
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fixture import NOT_SHOWN, as_json
from pytest_snapshot.plugin import Snapshot

from crucible.cli import main
from crucible.compiler.output.example import Example, File, Side, explained, parse, read
from crucible.schemas.codes import CODES
from crucible.schemas.diagnostic import Severity

FOLDER = Path(__file__).resolve().parent.parent / "compiler" / "output" / "examples"

WITH_AN_EXAMPLE = sorted(CODES.keys() - NOT_SHOWN.keys())

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Return a function that runs the command of a side in its pack: exit code, standard output, standard error."""

    def run(side: Side, *, json: bool = False) -> tuple[int, str, str]:
        for name, file in {**side.own, **side.shared}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.data())
        monkeypatch.chdir(tmp_path)
        line = shlex.split(side.command)
        return main.main(as_json(line) if json else line), *capfd.readouterr()

    return run


def told(command: Command, side: Side) -> tuple[int, list[dict[str, Any]]]:
    """Return the exit code of a side, and the diagnostics that it gets."""
    status, *streams = command(side, json=True)
    return status, json.loads(streams[0 if is_lint(side) or side.command.startswith("check ") else 1])["diagnostics"]


def is_lint(side: Side) -> bool:
    """Tell whether the diagnostics are the product of the command."""
    return side.command.startswith("lint ")


def example_of(code: str) -> Example:
    """Return the example of a code that has one."""
    example = read(code)
    assert example is not None
    return example


@pytest.mark.parametrize("code", WITH_AN_EXAMPLE)
def test_what_fails_is_told_its_code_and_nothing_else(code: str, command: Command, snapshot: Snapshot) -> None:
    """One diagnostic, in the words that the example shows."""
    path = FOLDER / f"{code}.txt"
    written = path.read_text(encoding="utf-8")
    fails = parse(written).fails
    status, diagnostics = told(command, fails)
    assert [each["code"] for each in diagnostics] == [code]
    assert status == (1 if CODES[code].severity is Severity.ERROR else 0)
    _, *streams = command(fails)
    # The last line that lint says is its summary, an empty one before it.
    text = "\n".join(streams[0].split("\n")[:-3]) + "\n" if is_lint(fails) else streams[1]
    snapshot.snapshot_dir = FOLDER
    snapshot.assert_match((written[: written.index("=== says\n")] + "=== says\n" + text).encode(), path.name)


@pytest.mark.parametrize("code", WITH_AN_EXAMPLE)
def test_what_passes_is_told_nothing(code: str, command: Command) -> None:
    """Not even a warning."""
    assert told(command, example_of(code).passes) == (0, [])


@pytest.mark.parametrize("code", WITH_AN_EXAMPLE)
def test_what_passes_is_worth_copying(code: str, command: Command) -> None:
    """Whatever its command is, lint has nothing to say of it either."""
    passes = example_of(code).passes
    files = {**passes.own, **passes.shared}
    name = next(name for name in ("workflow.star", "workflow.json", "crucible.toml") if name in files)
    assert told(command, passes._replace(command=f"lint {name}")) == (0, [])


@pytest.mark.parametrize("code", WITH_AN_EXAMPLE)
def test_a_mend_lies_between_what_fails_and_what_passes(code: str) -> None:
    """The command, or few lines of the same files: whoever compares the two sees what to do."""
    fails, _, passes = example_of(code)
    assert fails.own.keys() == passes.own.keys()
    changed = [line for name in fails.own for line in _changed(fails.own[name].text, passes.own[name].text)]
    assert (fails.command != passes.command) != bool(changed)
    assert len(changed) <= 8


def _changed(before: str, after: str) -> list[str]:
    """Return the lines that were taken away and those that came."""
    found = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line for line in found if line[0] in "-+" and line[2:].strip()]


@pytest.mark.parametrize("code", WITH_AN_EXAMPLE)
def test_following_the_suggestion_gives_what_passes(code: str, command: Command) -> None:
    """Where a diagnostic has an edit to offer, that is the mend."""
    fails, _, passes = example_of(code)
    suggestion = told(command, fails)[1][0]["suggestion"]
    if suggestion is not None:
        before = fails.own[suggestion["file"]].text
        begin, end = (_offset(before, suggestion["span"][side]) for side in ("begin", "end"))
        assert before[:begin] + suggestion["replacement"] + before[end:] == passes.own[suggestion["file"]].text


def _offset(text: str, position: dict[str, int]) -> int:
    """Return how many characters stand before a position."""
    before = text.split("\n")[: position["line"] - 1]
    return sum(len(line) + 1 for line in before) + position["column"] - 1


@pytest.mark.parametrize("code", WITH_AN_EXAMPLE)
def test_an_example_is_seen_at_a_glance(code: str) -> None:
    """What fails is a dozen lines or two, none wider than a page."""
    fails = example_of(code).fails
    lines = [line for file in {**fails.own, **fails.shared}.values() for line in file.text.split("\n")]
    assert len(lines) <= 32
    assert max(map(len, lines)) <= 100


def test_every_code_has_an_example_or_a_reason() -> None:
    """And no example is left over."""
    assert {path.stem for path in FOLDER.iterdir()} == set(WITH_AN_EXAMPLE)
    assert NOT_SHOWN.keys() <= CODES.keys()


@pytest.mark.parametrize("code", NOT_SHOWN)
def test_a_code_without_an_example_has_its_sentence(code: str) -> None:
    """That is all there is to say."""
    assert read(code) is None
    assert explained(CODES[code], None) == f"error[{code}]\n\n{CODES[code].help}\n"


def test_an_explanation_shows_both_sides() -> None:
    """What people read, from the severity to the mend."""
    assert explained(CODES["dropped-task"], example_of("dropped-task")) == (
        "error[dropped-task]\n"
        "\n"
        "A task that is built and not listed in workflow(tasks = …) would never run; list it or delete it.\n"
        "\n"
        "This fails:\n"
        "\n"
        '    build = command(name = "build", run = "make")\n'
        '    test = command(name = "test", run = "make test", depends_on = [build])\n'
        "\n"
        '    workflow(type = "custom", tasks = [build])\n'
        "\n"
        "It is told:\n"
        "\n"
        '    error[dropped-task]: "test" is built and not listed in workflow(tasks = …); list it or delete it\n'
        "     --> workflow.star:2:8\n"
        "      |\n"
        '    2 | test = command(name = "test", run = "make test", depends_on = [build])\n'
        "      |        ^^^^^^^\n"
        "      |\n"
        "      = help: crucible plan explain dropped-task\n"
        "\n"
        "This passes:\n"
        "\n"
        '    build = command(name = "build", run = "make")\n'
        '    test = command(name = "test", run = "make test", depends_on = [build])\n'
        "\n"
        '    workflow(type = "custom", tasks = [build, test])\n'
    )


def test_all_codes_are_listed_a_line_each(capfd: pytest.CaptureFixture[str]) -> None:
    """With severity and sentence, in columns, for people who look for one."""
    assert main.main(["plan", "explain"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [[code, CODES[code].severity.value] for code in CODES]
    assert [line.split(None, 2)[2] for line in lines] == [each.help for each in CODES.values()]
    assert len({line.index(line.split(None, 2)[2]) for line in lines}) == 1


SEVERAL = """\
=== both $ lint workflow.star
=== passes $ lint workflow.star --deny warnings
=== both prompts/review.md
Say why.
=== fails workflow.star
a = 1

b = 2
=== fails escaped data.bin
\\xff\\x00
=== passes workflow.star
a = 2
=== says
told
"""


def test_files_are_named_where_there_are_several() -> None:
    """And the command where it is not the usual one; what both sides have is shown once."""
    example = parse(SEVERAL)
    assert explained(CODES["dropped-task"], example).partition("This fails:\n\n")[2] == (
        "    $ crucible lint workflow.star\n\n"
        "    --- workflow.star\n    a = 1\n\n    b = 2\n\n"
        "    --- data.bin\n    \\xff\\x00\n\n"
        "    --- prompts/review.md\n    Say why.\n\n"
        "It is told:\n\n    told\n\n"
        "This passes:\n\n"
        "    $ crucible lint workflow.star --deny warnings\n\n"
        "    --- workflow.star\n    a = 2\n"
    )


def test_an_example_is_read_as_it_is_written() -> None:
    """Every file ends as it does there, and an escaped one holds bytes that no text does."""
    fails, says, passes = parse(SEVERAL)
    assert fails == Side(
        "lint workflow.star",
        {
            "workflow.star": File("a = 1\n\nb = 2\n", is_escaped=False),
            "data.bin": File("\\xff\\x00\n", is_escaped=True),
        },
        {"prompts/review.md": File("Say why.\n", is_escaped=False)},
    )
    assert (says, passes.own["workflow.star"].data()) == ("told\n", b"a = 2\n")
    assert fails.own["data.bin"].data() == b"\xff\x00\n"


def test_the_examples_of_this_package_are_those_of_the_checkout() -> None:
    """They are data of the package, found wherever it is installed."""
    for code in WITH_AN_EXAMPLE:
        assert read(code) == parse((FOLDER / f"{code}.txt").read_text(encoding="utf-8"))

"""The reference is what the tables say, its samples compile, and its pages under docs/ are written again by make."""

from pathlib import Path

import pytest
import reference_pages
from packs import write
from pytest_snapshot.plugin import Snapshot

from crucible.cli import main
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.vocabulary import CONSTRUCTORS, GROUPS, KNOBS
from crucible.compiler.output import reference
from crucible.schemas import registry
from crucible.schemas.codes import CODES

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs" / "reference"
SAMPLES = ROOT / "compiler" / "output" / "samples"
PAGES = {
    "language.md": reference.language,
    "codes.md": reference.codes,
    "library.md": reference_pages.library,
    "command-line.md": reference_pages.command_line,
    "schemas.md": reference_pages.schemas,
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_reference_is_what_it_is_made_of(name: str, snapshot: Snapshot) -> None:
    """The page that people read is made again; `make golden` writes it."""
    snapshot.snapshot_dir = DOCS
    try:
        snapshot.assert_match(PAGES[name]().encode(), name)
    except AssertionError as error:
        message = f"docs/reference/{name} is stale; `make golden` mends it"
        raise AssertionError(message) from error


def test_the_command_prints_the_language_and_the_codes(capfd: pytest.CaptureFixture[str]) -> None:
    """Both pages, one behind the other, and nothing else."""
    assert main.main(["plan", "dsl-reference"]) == 0
    pages = [(DOCS / name).read_text(encoding="utf-8") for name in ("language.md", "codes.md")]
    assert capfd.readouterr() == ("\n".join(pages), "")


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_a_sample_compiles_without_a_word_and_uses_its_constructor(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Lint has nothing to say of it either."""
    sample = reference.sample(name)
    assert f"{name}(" in sample
    prompts = {"prompts/draft.md": "Draft it.\n"} if "prompts/draft.md" in sample else {}
    source = write(tmp_path, {"workflow.star": sample, **prompts})
    assert main.main(["plan", "compile-workflow", "--file", str(source)]) == 0
    assert main.main(["lint", str(source), "--deny", "warnings"]) == 0
    assert capfd.readouterr().err == ""


def test_every_constructor_has_a_sample() -> None:
    """And none is left over."""
    assert {path.stem for path in SAMPLES.iterdir()} == CONSTRUCTORS.keys()


def test_every_ceiling_has_its_words() -> None:
    """In the order of the table."""
    assert list(reference.CEILINGS) == list(LIMITS._fields)


def test_the_language_has_every_constructor_argument_lane_and_default() -> None:
    """Each constructor in a section of its own, with a row for each argument."""
    page = reference.language()
    for row in CONSTRUCTORS.values():
        section = page.partition(f"\n### {row.name}\n")[2].partition("\n#")[0]
        assert section.startswith(f"\n```starlark\n{row.name}(")
        rows = [line for line in section.split("\n") if line.startswith("| `")]
        assert [line.split("`")[1] for line in rows] == [argument.name for argument in row.arguments]
        assert all(
            argument.type.value in line or argument.choices for line, argument in zip(rows, row.arguments, strict=True)
        )
        lanes = [lane for lane, groups in GROUPS.items() if row.group in groups]
        assert [lane for lane in GROUPS if f"`{lane}`" in section.partition("Lanes: ")[2].partition("\n")[0]] == lanes


def test_five_arguments_govern_how_a_task_runs() -> None:
    """They are those of the contract, and agent, command and evaluate have them all."""
    assert [argument.name for argument in KNOBS] == ["needs", "required", "isolated", "join", "stage"]
    assert "These five go with `agent`, `command` and `evaluate`," in reference.language()


def test_every_code_has_a_section() -> None:
    """Once, with its sentence, under its severity."""
    page = reference.codes()
    headings = [line.removeprefix("### ") for line in page.split("\n") if line.startswith("### ")]
    assert headings == list(CODES)
    assert all(reference.escaped(code.help) in page for code in CODES.values())


def test_every_command_and_option_is_on_its_page() -> None:
    """What --help shows, from the same parser."""
    page = reference_pages.command_line()
    for line in (
        "## crucible plan compile-workflow",
        "## crucible lint",
        "`[--fail-on weakened\\|changed]`",
        "`--base REV`",
    ):
        assert line in page


def test_every_key_of_a_schema_is_on_its_page() -> None:
    """Of the document, of its definitions, and of what stands inside of them."""
    page = reference_pages.schemas()
    for name in registry.names():
        assert f"\n## {name}\n" in page
        for key in registry.load(name).get("properties", {}):
            assert f"`{key}`" in page

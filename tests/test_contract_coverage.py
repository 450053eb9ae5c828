"""Every sentence of the contract that demands something is held by a test, and the page says which."""

from pathlib import Path

from contract_table import holds, page, quotes, sentences
from pytest_snapshot.plugin import Snapshot

DOCS = Path(__file__).resolve().parent.parent / "docs"


def test_every_sentence_has_a_test_or_a_reason() -> None:
    """A demand that no test quotes is one that nobody checks; a reason beside a test has outlived itself."""
    found = quotes()
    held = {sentence: any(holds(quote, sentence) for quote in found) for sentence in sentences()}
    assert [each.text for each, is_held in held.items() if not is_held and not each.elsewhere] == []
    assert [each.text for each, is_held in held.items() if is_held and each.elsewhere] == []


def test_every_quote_says_enough_to_be_found() -> None:
    """Three words at least, of a section that is called as the contract calls it."""
    assert [each for each in quotes() if len(each.text.split()) < 3 or not each.section.startswith("§")] == []


def test_the_published_table_is_what_the_tests_quote(snapshot: Snapshot) -> None:
    """The page is made again; `make golden` writes it."""
    snapshot.snapshot_dir = DOCS
    try:
        snapshot.assert_match(page().encode(), "contract-coverage.md")
    except AssertionError as error:
        message = "docs/contract-coverage.md is not what the tests quote; `make golden` mends it"
        raise AssertionError(message) from error

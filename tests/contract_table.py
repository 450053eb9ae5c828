"""The table of the contract's sentences and the tests that hold them, read from contract.toml and from the marks."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
MARK = "contract"
HEAD = """\
# Which sentence of the contract is held by which test

The sentences that demand something of a manifest, a workflow or a disclosure, and the tests that quote them. A test is
marked by `@contract(section, sentence)` (`tests/contract.py`), the sentences stand in `tests/contract.toml`, and
`make golden` writes this page again.
"""


class Sentence(NamedTuple):
    """A sentence of a section; ``elsewhere`` says why no test can be here, "" where one has to."""

    section: str
    text: str
    elsewhere: str = ""


class Quote(NamedTuple):
    """What a test quotes of a section, and the test."""

    section: str
    text: str
    test: str


def sentences() -> list[Sentence]:
    """Return the sentences in the order of the contract."""
    found = tomllib.loads((HERE / "contract.toml").read_text(encoding="utf-8"))
    return [Sentence(**each) for each in found["sentence"]]


def quotes() -> list[Quote]:
    """Return what the tests quote, in the order of the files; a mark that is no literal is a mistake."""
    return [
        quote
        for path in sorted(HERE.glob("test_*.py"))
        for quote in _of(path.name, ast.parse(path.read_text(encoding="utf-8")))
    ]


def _of(name: str, tree: ast.Module) -> Iterator[Quote]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for mark in function.decorator_list:
                if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == MARK:
                    section, text = (ast.literal_eval(argument) for argument in mark.args)
                    yield Quote(section, text, f"{name}::{function.name}")


def holds(quote: Quote, sentence: Sentence) -> bool:
    """Tell whether a quote is of a sentence: its words, or words of it, of the same section."""
    ours, theirs = _plain(quote.text), _plain(sentence.text)
    return quote.section == sentence.section and (ours in theirs or theirs in ours)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".")


def page() -> str:
    """Return the page: for each section its sentences, then what else of it, and of other sections, is quoted."""
    known, found = sentences(), quotes()
    lines = [HEAD]
    sections = list(dict.fromkeys([*(each.section for each in known), *sorted({each.section for each in found})]))
    for section in sections:
        lines += [f"## {section}", "", "| sentence | test |", "| --- | --- |"]
        left = {quote: None for quote in found if quote.section == section}
        for sentence in known:
            if sentence.section != section:
                continue
            tests = [quote for quote in found if holds(quote, sentence)]
            left = {quote: None for quote in left if quote not in tests}
            lines.append(_row(sentence.text, [each.test for each in tests], sentence.elsewhere))
        texts = dict.fromkeys(quote.text for quote in left)
        lines += [_row(text, [quote.test for quote in left if quote.text == text]) for text in texts]
        lines.append("")
    return "\n".join(lines)


def _row(text: str, tests: list[str], elsewhere: str = "") -> str:
    cells = [f"`{test}`" for test in dict.fromkeys(tests)] or [f"not here: {elsewhere}" if elsewhere else "**none**"]
    return f"| {_cell(text)} | {'<br>'.join(cells)} |"


def _cell(text: str) -> str:
    """Write a text so that Markdown shows it as it is; in the words between backticks a star needs nothing."""
    parts = text.replace("|", "\\|").replace("<", "&lt;").split("`")
    return "`".join(part.replace("*", "\\*") if number % 2 == 0 else part for number, part in enumerate(parts))

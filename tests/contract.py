"""Marks the tests that hold a sentence of the contract: docs/contract-coverage.md is made of the marks."""

from collections.abc import Callable
from typing import TypeVar

_Test = TypeVar("_Test", bound=Callable[..., object])


def contract(section: str, sentence: str) -> Callable[[_Test], _Test]:
    """Record on a test that it holds a sentence, or the words of it that it quotes, of a section such as "§1.9"."""

    def mark(test: _Test) -> _Test:
        test.__dict__.setdefault("contract", []).append((section, sentence))
        return test

    return mark

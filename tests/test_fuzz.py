"""Every input that once broke something, and a handful of new ones, against what must hold of all."""

from collections.abc import Iterator
from pathlib import Path

import fuzzed
import pytest
from fuzzed import CORPUS, Bench
from hypothesis import settings


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """Share one pool."""
    with fuzzed.bench() as at:
        yield at


@pytest.mark.parametrize(
    "file",
    sorted(path for path in CORPUS.rglob("*") if path.is_file()),
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_what_was_found_stays_mended(file: Path, bench: Bench) -> None:
    """The corpus: small files, each named after what it showed."""
    if file.parent.name == "source":
        fuzzed.check_source(file.read_bytes(), bench)
    else:
        fuzzed.check_ir(file.read_bytes(), file.suffix[1:], bench)


@pytest.mark.parametrize("name", ["source", "starlark", "ir"])
def test_no_input_can_hurt(name: str, bench: Bench) -> None:
    """A short run of each target of ``make fuzz``."""
    settings(fuzzed.UNTIMED, max_examples=50)(fuzzed.TARGETS[name].test(bench))()

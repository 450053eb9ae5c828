"""Whole sources with the right answer written on them."""

from pathlib import Path

import annotated
import pytest

from crucible.compiler.pipeline import compile_source

_CASES = Path(__file__).parent / "cases"
_SOURCES = sorted(_CASES.rglob("*.star"))
_PACK = _CASES / "pack"


@pytest.mark.parametrize(
    "source", [s for s in _SOURCES if "#!" in s.read_text()], ids=lambda s: str(s.relative_to(_CASES).with_suffix(""))
)
def test_a_source_gives_what_is_written_on_it(source: Path) -> None:
    """Each expected error is found at its place, and nothing that is not expected."""
    home = _PACK if source.parent == _CASES else source.parent
    compiled = compile_source(source.read_bytes(), str(home / source.name))
    assert annotated.complaints(annotated.read(source.read_text()), compiled.diagnostics) == []

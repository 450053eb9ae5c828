"""Every kind of mistake at every place of every golden pack: what is said of it, and where (mistakes.py).

A part of the mutants, the same ones always, is tried by `make test`; all of them by `make torture`.
"""

import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from fuzzed import check_compiled
from mistakes import KINDS
from mutations import GOLDEN, ROOT, Mutant, Pack, complaints

from crucible.compiler.frontend.pool import Pool
from crucible.compiler.pipeline import Compiled, Options, compile_source

ONE_IN = 8  # mutants of a kind, beside the first of each pack


class Bench(NamedTuple):
    """The packs, each in a directory of its own, and what compiles them."""

    packs: list[Pack]
    pool: Pool

    def compile(self, mutant: Mutant) -> Compiled:
        """Compile the pack of a mutant with its text; a module is written for that, and put back."""
        pack = mutant.file.pack
        root, path = pack.directory / ROOT, pack.directory / mutant.file.name
        sound = path.read_bytes()
        try:
            path.write_bytes(mutant.text.encode(errors="surrogateescape"))
            return compile_source(root.read_bytes(), str(root), Options(connect=self.pool.connect))
        finally:
            path.write_bytes(sound)

    def wrong(self, mutant: Mutant) -> list[str]:
        """Say what is not as it must be with a mutant."""
        result = self.compile(mutant)
        check_compiled(result)
        return [f"{mutant}: {complaint}" for complaint in complaints(mutant, result)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Give the golden packs and a pool."""
    directory = tmp_path_factory.mktemp("packs")
    golden = sorted(path.parent for path in GOLDEN.glob(f"*/{ROOT}"))
    with Pool(1) as pool:
        yield Bench([Pack(shutil.copytree(pack, directory / pack.name)) for pack in golden], pool)


def some(kind: Callable[[Pack], Iterator[Mutant]], pack: Pack) -> Iterator[Mutant]:
    """Yield the first mutant of a pack and one in so many of the others."""
    for number, mutant in enumerate(kind(pack)):
        if number == 0 or zlib.crc32(str(mutant).encode(errors="replace")) % ONE_IN == 0:
            yield mutant


each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


@each_kind
def test_a_mistake_is_reported_at_its_place(kind: Callable[[Pack], Iterator[Mutant]], bench: Bench) -> None:
    """With its code, the right suggestion where one letter is wrong, and without an echo."""
    tried = [mutant for pack in bench.packs for mutant in some(kind, pack)]
    assert tried
    assert [complaint for mutant in tried for complaint in bench.wrong(mutant)] == []


@pytest.mark.whole
@each_kind
def test_a_mistake_is_reported_wherever_it_is_made(kind: Callable[[Pack], Iterator[Mutant]], bench: Bench) -> None:
    """The same at every possible place."""
    assert [complaint for pack in bench.packs for mutant in kind(pack) for complaint in bench.wrong(mutant)] == []


def test_what_is_expected_is_not_there_without_the_mistake(bench: Bench) -> None:
    """Each sound pack compiles, so that each mutant of it that wants something is told from it."""
    for pack in bench.packs:
        for source in pack.sources:
            unchanged = Mutant(source, 0, 0, "", (), harmless="nothing is changed")
            assert bench.wrong(unchanged) == []
        for kind in KINDS:
            mutant = next((mutant for mutant in kind(pack) if not mutant.harmless), None)
            if mutant is not None:
                sound = bench.compile(mutant._replace(new=mutant.file.text[mutant.begin : mutant.end]))
                assert sum("missing" in complaint for complaint in complaints(mutant, sound)) == len(mutant.wants)


def test_mistakes_are_made_everywhere(bench: Bench) -> None:
    """Thousands of mutants of more than fifty kinds, and few of them sound: those say by which rule."""
    made = {kind.__name__: [mutant for pack in bench.packs for mutant in kind(pack)] for kind in KINDS}
    assert all(made.values())
    assert len(made) > 50
    mutants = [mutant for found in made.values() for mutant in found]
    assert len(mutants) > 8_000
    assert all(bool(mutant.wants) != bool(mutant.harmless) for mutant in mutants)
    assert sum(bool(mutant.harmless) for mutant in mutants) < len(mutants) // 40


def test_a_golden_pack_has_a_call_for_each_of_its_tasks(bench: Bench) -> None:
    """What is expected of a mutant rests on knowing which call builds which task."""
    for pack in bench.packs:
        made_for_the_author = set(pack.tasks) - set(pack.builders)
        assert made_for_the_author <= {"propose", "apply", "measure", "decide"}, pack.name
        assert all(Path(source.name).suffix == ".star" for source, _ in pack.builders.values())

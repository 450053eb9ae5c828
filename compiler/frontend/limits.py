"""The ceilings of language.md §8, in one frozen value that is handed in, never switched."""

from __future__ import annotations

from crucible.schemas.light import NamedTuple

KIB = 1024
MIB = 1024 * KIB


class Limits(NamedTuple):
    """Every ceiling of the compiler; sizes in bytes, times in seconds."""

    source_bytes: int = 256 * KIB
    all_source_bytes: int = MIB
    modules: int = 32
    tokens: int = 100_000  # of all sources together: what our own reading keeps of them
    nesting: int = 128
    chain: int = 1_000
    tasks: int = 128
    constructed: int = 1_024
    calls: int = 4_096
    elements: int = 65_536
    text_bytes: int = 32 * MIB  # of all arguments together, as they lie in memory; what print() shows counts
    prompt_bytes: int = 256 * KIB
    all_prompt_bytes: int = MIB
    json_bytes: int = 16 * MIB
    ticks: int = 1_000_000
    heap_bytes: int = 64 * MIB
    call_depth: int = 64
    seconds: float = 10.0
    value_depth: int = 128
    printed_lines: int = 100
    data_nesting: int = 64
    data_items: int = 100_000  # keys, values and comments of a manifest or of IR by hand
    ignore_bytes: int = 64 * KIB  # of the .gitignore files that hold at one place
    data_lines: int = 524_288
    data_string: int = 4 * MIB  # characters
    mistakes: int = 1_000


LIMITS = Limits()

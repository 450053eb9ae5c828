"""The table of benchmarks: what is read of the lines that they print, and that the page has no other figures."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_SPEC = importlib.util.spec_from_file_location("table", ROOT / "benchmarks" / "table.py")
assert _SPEC is not None
assert _SPEC.loader is not None
table = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(table)

PRINTED = """\
Python 3.11.7, 2 cores, 25 rounds; medians

pass                  11.6 ms   10.1 MiB

cold compile                0.97 x import networkx (at most 1.50)
largest process             34.9 MiB (at most 60)
lint of 500 packs in one call                 149.1 packs/s (at least 60.0)
plan render of 24 tasks, beside compiling and drawing          20.5 ms (at most 50.0; 31.2 ms on the clock)
1,000 tasks             1.97 x bare loop (at most 1.60)
"""


def test_a_figure_is_a_line_that_is_held_to_something() -> None:
    """Others are passed over."""
    found = [(each.what, each.value, each.unit, each.bound, each.most, each.is_met) for each in table.figures(PRINTED)]
    assert found == [
        ("cold compile", 0.97, "x import networkx", "at most", 1.5, True),
        ("largest process", 34.9, "MiB", "at most", 60, True),
        ("lint of 500 packs in one call", 149.1, "packs/s", "at least", 60, True),
        ("plan render of 24 tasks, beside compiling and drawing", 20.5, "ms", "at most", 50, True),
        ("1,000 tasks", 1.97, "x bare loop", "at most", 1.6, False),
    ]


def test_the_page_says_what_is_not_met() -> None:
    """In bold, beside the machine and the versions."""
    page = table.page({"Running": table.figures(PRINTED)[4:]}, {"machine": "2 cores"})
    assert "* machine: 2 cores\n\n## Running\n" in page
    assert page.endswith("| 1,000 tasks | **1.97 x bare loop** | at most 1.6 |\n")


def test_the_page_has_every_benchmark() -> None:
    """What docs/ has was written by the script, not by hand."""
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == list(table._PARTS.values())
    assert page.startswith(table._HEAD)
    assert {path.name for path in (ROOT / "benchmarks").glob("*.py")} == {"table.py", *table._PARTS}

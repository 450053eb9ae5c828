"""Sources that mean no good: each is answered, by a workflow or by diagnostics, and the compiling process lives on.

How long an answer may take is no more than the timeout of a test here; what the ceilings allow is printed by
``make bench`` and told by ``python tests/hostile.py COUNT SEED DIRECTORY``.
"""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hostile
import pytest
from packs import END, compiled, shown, write
from process import COMMAND

from crucible.compiler.frontend.lexis import count_tokens
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.pool import Pool
from crucible.compiler.pipeline import Options, compile_source
from crucible.schemas.codes import CODES

pytestmark = pytest.mark.torture

MOST_MEBIBYTES = 200


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """Share one pool."""
    with Pool(1) as shared:
        yield shared


def run(directory: Path, count: int, seed: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Compile hostile sources in a process of its own; return what became of each, and what was left."""
    line = [sys.executable, "-P", str(Path(hostile.__file__)), str(count), str(seed), str(directory)]
    done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    *rows, end = map(json.loads, done.stdout.splitlines())
    return rows, end


@pytest.mark.parametrize(
    ("count", "seed"), [(140, 1), pytest.param(5_000, 7, marks=[pytest.mark.whole, pytest.mark.timeout(3600)])]
)
def test_whatever_a_source_says_there_is_an_answer(tmp_path: Path, count: int, seed: int) -> None:
    """A workflow or an error with a known code and a place inside a text; no crash, and the memory stays bounded."""
    rows, end = run(tmp_path, count, seed)
    assert len(rows) == count
    assert {row["kind"] for row in rows} == {kind.__name__ for kind in hostile.KINDS}
    for row in rows:
        assert row["fits"], row
        assert row["places"], row
        assert set(row["codes"]) <= CODES.keys(), row
        assert "evaluator-crashed" not in row["codes"], row
        assert row["mebibytes"] < MOST_MEBIBYTES, row
        assert row["seconds"] < LIMITS.seconds + 2, row
    assert end["children"] == 0
    assert end["descriptors"] <= 8


# Each way to nest, and each way to go on for ever, at both sides of its ceiling


@pytest.mark.parametrize(("before", "middle", "after"), hostile.NESTED)
def test_nesting_without_measure_is_refused_by_the_scan(
    tmp_path: Path, pool: Pool, before: str, middle: str, after: str
) -> None:
    """No parser sees it; the place is the token that went too deep."""
    for count in (400, 3_000, 20_000):
        source = f"x = {before * count}{middle}{after * count}\n{END}"[: LIMITS.source_bytes]
        result = compile_source(source.encode(), str(tmp_path / "workflow.star"), Options(connect=pool.connect))
        assert result.workflow is None
        assert {each.code for each in result.diagnostics} <= {"limit-exceeded", "syntax-error"}
        assert result.diagnostics[0].span is not None


@pytest.mark.parametrize("link", hostile.CHAINS)
def test_chains_without_end_hurt_nobody(tmp_path: Path, pool: Pool, link: str) -> None:
    """Flat ones up to the whole size of a source: refused, or read by parsers that survive them."""
    for count in (999, 1_500, 20_000, 200_000):
        source = f"x = 1{link * count}\n"[: LIMITS.source_bytes - 100]
        result = compile_source(source.encode(), str(tmp_path / "workflow.star"), Options(connect=pool.connect))
        assert result.workflow is None
        assert result.diagnostics
        assert not any(each.code == "evaluator-crashed" for each in result.diagnostics)


# The cases that were known before: what each must say

DOUBLING = "x0 = ['aaaaaaaaaaaaaaaa']\n" + "".join(f"x{n} = x{n - 1} + x{n - 1}\n" for n in range(1, 41))
CEILINGS = [
    (DOUBLING, "64 MiB"),
    ("x = 'a' * 1000000000\n", "64 MiB"),
    ("x = list(range(725995110))\n", "64 MiB"),
    ("x = [1]\nx.extend(range(600000000))\n", "64 MiB"),
    ("x = [0 for a in range(1000) for b in range(1000) for c in range(1000)]\n", ""),
    ("t = [command(name = 't%d' % n, run = 'x') for n in range(10000)]\n", "1,024"),
    (
        "def f():\n    n = 0\n    for i in range(2000):\n        for j in range(2000):\n            n += j\n\nf()\n",
        "1,000,000",
    ),
]


@pytest.mark.parametrize(("source", "words"), CEILINGS, ids=range(len(CEILINGS)))
def test_a_ceiling_is_named_with_what_was_measured_and_where(tmp_path: Path, source: str, words: str) -> None:
    """Memory by doubling and at once, loops inside loops, tasks without end, ticks."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (diagnostic,) = shown(compiled(tmp_path, source + END))
    assert diagnostic.code == "limit-exceeded"
    assert words in diagnostic.message
    assert diagnostic.at is not None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEBIBYTES * 1024


@pytest.mark.parametrize("line", ['"', "$", "load('a', 'b')"])
@pytest.mark.parametrize("command", [["plan", "compile-workflow", "--file"], ["lint"]], ids=["compile", "lint"])
def test_a_mistake_a_line_leaves_the_command_small(tmp_path: Path, command: list[str], line: str) -> None:
    """As many mistakes as there can be tokens, in the process that a person starts."""
    a_line = count_tokens(f"{line}\n" * 1_000, LIMITS.tokens) // 1_000
    path = write(tmp_path, {"workflow.star": f"{line}\n" * ((LIMITS.tokens - 1) // a_line)})
    status, mebibytes = measured(path, command)
    assert status == 1
    assert mebibytes < MOST_MEBIBYTES


# One wide character makes a whole text take four bytes a character, and the same text can be given often.
WIDE = 's = "\U0001f600" + "a" * {length}\n'
LISTED = 'workflow(type = "custom", tasks = t)\n'
TEXTS = [
    ("t = [agent(name = 't%d' % n, prompt = s, model = s) for n in range(90)]\n", 290_000, 1),
    ("t = [command(name = 't%d' % n, run = 'a' + s) for n in range(126)]\n", 125_000, 1),
    ("t = [command(name = 't%d' % n, run = 'a') for n in range(126)]\n[print(s) for n in range(99)]\n", 290_000, 1),
    ("t = [command(name = 'a', run = 'b', depends_on = [s] * 200, emits = [s] * 90, session = s)]\n", 100_000, 1),
    ("t = [command(name = 'a', run = 'b', **{s[n:]: 1 for n in range(100)}) for n in range(9)]\n", 100_000, 1),
    ("t = [command(name = s + str(n), run = 'b', depends_on = ['u'] * 99) for n in range(9)]\n", 99_999, 1),
    ("fail(s)\n", 3_000_000, 1),
    ("t = [command(*range(60000))]\n", 1, 1),
    ("t = [command(**{'k%d' % n: 1 for n in range(12000)})]\n", 1, 1),
    ("t = [prompt_file(s + 'a\\\\' * 40000 + '%d.md' % n) for n in range(4000)]\n", 1, 1),
    ("t = [command(name = 'a%d' % n, run = 'b', join = s + '%d' % n) for n in range(900)]\n", 8_000, 1),
    ("t = [command(name = 't%d' % n, run = './' + 'a' * 130000) for n in range(126)]\n", 1, 0),
    ("t = [command(name = 't%d' % n, run = './a ' * 31000) for n in range(126)]\n", 1, 0),
]  # fmt: skip


@pytest.mark.parametrize(("source", "length", "status"), TEXTS, ids=range(len(TEXTS)))
@pytest.mark.parametrize("command", [["plan", "compile-workflow", "--file"], ["lint"]], ids=["compile", "lint"])
def test_text_that_is_made_leaves_the_command_small(
    tmp_path: Path, command: list[str], source: str, length: int, status: int
) -> None:
    """Texts of every width in every argument, printed, failed with, and made until a ceiling or just below it."""
    path = write(tmp_path, {"workflow.star": WIDE.format(length=length) + source + LISTED})
    found, mebibytes = measured(path, command)
    assert found == status
    assert mebibytes < MOST_MEBIBYTES


# A process begins with the memory of the one that starts it: a small one stands between.
MEASURE = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
"""


def measured(path: Path, command: list[str]) -> tuple[int, float]:
    """Run a command on a source; return its exit code and the most memory it had, in MiB."""
    line = [sys.executable, "-c", MEASURE, *COMMAND, *command, str(path)]
    status, mebibytes = subprocess.run(line, capture_output=True, check=True).stdout.split()
    return int(status), float(mebibytes)


def test_what_only_the_clock_ends_is_ended_by_it(tmp_path: Path) -> None:
    """One instruction that runs for a minute in little memory: the ceiling of ten seconds, as it is."""
    source = "def power(n):\n    x = 3\n    for i in range(n):\n        x = x * x\n    return x\n\n"
    source += "power(24) // power(23)\n"
    (diagnostic,) = shown(compiled(tmp_path, source + END))
    assert diagnostic.code == "limit-exceeded"
    assert "10 s" in diagnostic.message


def test_a_list_wrapped_200_000_times_is_too_deep(tmp_path: Path) -> None:
    """Located at the argument; with Starlark loops of a thousand each, for the ticks."""
    source = """\
def wrap():
    x = []
    for n in range(200000):
        x = [x]
    return x

t = command(name = "t", run = "true", depends_on = wrap())
workflow(type = "custom", tasks = [t])
"""
    found = shown(compiled(tmp_path, source))
    assert [each.code for each in found] == ["value-too-deep"]
    assert found[0].at is not None
    assert found[0].at.text == "wrap()"


def _pack(directory: Path) -> Path:
    """Write a pack with everything that a path could wrongly name."""
    root = write(directory / "pack", {"prompts/x.md": "Read it.\n", "lib.star": "y = agnt(name = 'q', prompt = 'p')\n"})
    write(directory, {"s.md": "secret", "x.star": "x = 1\n"})
    os.mkfifo(root.parent / "pipe")
    (root.parent / "zero").symlink_to("/dev/zero")
    with (root.parent / "sparse.md").open("wb") as file:
        file.truncate(10 << 30)
    return root


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../s.md", "path-refused"),
        ("/etc/passwd", "path-refused"),
        ("", "path-refused"),
        ("a\\\\..\\\\..\\\\b", "path-refused"),
        ("C:x", "path-refused"),
        ("prompts//x.md", None),
        ("./prompts/x.md", None),
        ("prompts/X.md", "path-refused"),
        ("prompts", "path-refused"),
        ("pipe", "path-refused"),
        ("zero", "path-refused"),
        ("sparse.md", "limit-exceeded"),
    ],
)
def test_a_prompt_outside_or_odd_is_refused_at_its_string(tmp_path: Path, path: str, code: str | None) -> None:
    """But for the two spellings of the file that is there."""
    root = _pack(tmp_path)
    source = f'a = agent(name = "a", prompt = prompt_file("{path}"))\nworkflow(type = "custom", tasks = [a])\n'
    result = compile_source(source.encode(), str(root))
    if code is None:
        assert result.diagnostics == []
        assert result.prompts == (("prompts/x.md", 9),)
        return
    (diagnostic,) = shown(result)
    assert diagnostic.code == code
    assert diagnostic.at is not None
    assert diagnostic.at.text == f'"{path}"'


def test_a_mistake_in_a_module_is_told_there(tmp_path: Path) -> None:
    """With a suggestion, and the load that led there."""
    (diagnostic,) = shown(compile_source(b'load("lib.star", "y")\n' + END.encode(), str(_pack(tmp_path))))
    assert diagnostic.code == "unknown-name"
    assert diagnostic.at is not None
    assert tuple(diagnostic.at) == ("lib.star", 1, "agnt")
    assert '"agent"' in diagnostic.message
    assert [at and at.line for _, at in diagnostic.related] == [1]


@pytest.mark.parametrize("path", ["../x.star", "//x", "/x.star", "zero", "pipe"])
def test_a_module_outside_is_refused(tmp_path: Path, path: str) -> None:
    """Like a prompt, at its string."""
    (diagnostic,) = shown(compile_source(f'load("{path}", "x")\n{END}'.encode(), str(_pack(tmp_path))))
    assert diagnostic.code == "path-refused"
    assert diagnostic.at is not None
    assert diagnostic.at.text == f'"{path}"'


# What is large and means well


def test_suggestions_for_everything_are_not_searched_for_ever(tmp_path: Path) -> None:
    """Long names that differ at both ends, and thousands of unknown names beside thousands of known ones."""
    long = "n" * 60_000
    source = (
        f"t = [command(name = 'a{long}%d' % n, run = 'x') for n in range(64)]\n"
        f"workflow(type = 'custom', tasks = t + ['b{long}%d' % n for n in range(64)])\n"
    )
    assert "unknown-task" in {each.code for each in compiled(tmp_path, source).diagnostics}
    many = "".join(f"nmaa{n}x = {n}\nnmab{n}x\n" for n in range(3_000))
    result = compiled(tmp_path, many + END)
    assert [each.code for each in result.diagnostics] == ["limit-exceeded", *["unknown-name"] * LIMITS.mistakes]

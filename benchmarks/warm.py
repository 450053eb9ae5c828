"""Measure what isolation costs a process that compiles often, as ratios of neighbours in one run: `make bench`.

Every round does each thing once, in turn: a compile through a pool, the same compile with its evaluation in
this process, and a reference workload, parsing and evaluating the source with nothing of ours around it.
The milliseconds are held as they were asked for, whatever the machine. The reference says how to read one that
is missed: a slow machine slows it as well, a slow program does not.
"""

import argparse
import gc
import json
import os
import statistics
import sys
import tempfile
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import starlark

from crucible.compiler import pipeline
from crucible.compiler.frontend import evaluate
from crucible.compiler.frontend.limits import LIMITS
from crucible.compiler.frontend.pool import Pool
from crucible.compiler.pipeline import Compiled, Options
from crucible.schemas.canonical import dumps

if TYPE_CHECKING:
    from collections.abc import Callable

_SIZES = (24, 128, 1_000)
_MANY = LIMITS._replace(tasks=2_000)
_MOST_ISOLATION = 2.5  # ms for 24 tasks
_MOST_WARM = {24: 4.0, 128: 8.0}  # ms
_MOST_GROWTH = 1.2  # cost of a task among 1,000 over one among 128
_MOST_SHARE = 1.0


class Figure(NamedTuple):
    """One line of the table: what was measured, how it is written, and the most it may be."""

    what: str
    measured: float
    unit: str
    most: float


def main() -> int:
    """Print the table; exit code 1 when a figure is above what it may be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as pack, Pool() as pool:
        times = _rounds(os.path.join(pack, "workflow.star"), pool, rounds)
        figures = _figures(times)
        shares = _giant(pack, pool)
    sys.stdout.write(f"{os.cpu_count()} cores, {rounds} rounds; medians in ms\n\n")
    sys.stdout.write(f"{'tasks':>6} {'isolated':>9} {'in process':>11} {'reference':>10}\n")
    for size in _SIZES:
        row = [statistics.median(times[what, size]) for what in ("isolated", "inside", "reference")]
        sys.stdout.write(f"{size:6} {row[0]:9.2f} {row[1]:11.2f} {row[2]:10.2f}\n")
    sys.stdout.write("\n")
    fits = True
    for figure in figures:
        fits &= figure.measured <= figure.most
        sys.stdout.write(f"{figure.what:44} {figure.measured:6.2f} {figure.unit} (at most {figure.most:.2f})\n")
    sys.stdout.write("\na legitimate giant: 128 tasks from a table, 60 prompts; its share of each ceiling\n")
    for name, share in shares.items():
        fits &= share <= _MOST_SHARE
        sys.stdout.write(f"{name:44} {share:6.1%}\n")
    return 0 if fits else 1


def _source(tasks: int) -> str:
    """Write a source in which every task is a call record of its own."""
    lines = [
        f't{n} = command(name = "t-{n}", run = "./run.sh {n}", depends_on = [{f"t{n - 1}" if n else ""}])\n'
        for n in range(tasks)
    ]
    listed = ", ".join(f"t{n}" for n in range(tasks))
    return "".join(lines) + f'workflow(type = "custom", tasks = [{listed}])\n'


def _rounds(path: str, pool: Pool, rounds: int) -> dict[tuple[str, int], list[float]]:
    """Take the times of all that is measured, in milliseconds, by what and how many tasks."""
    options = Options(_MANY, connect=pool.connect)
    work: dict[tuple[str, int], Callable[[], Any]] = {}
    for size in _SIZES:
        text = _source(size)
        work["isolated", size] = partial(_compile, text.encode(), path, options)
        work["inside", size] = partial(_compile_inside, text.encode(), path)
        work["reference", size] = partial(_reference, text)
    times: dict[tuple[str, int], list[float]] = {key: [] for key in work}
    for _ in range(3):
        for do in work.values():
            do()
    for _ in range(rounds):
        for key, do in work.items():
            gc.collect()
            begin = time.perf_counter()
            do()
            times[key].append((time.perf_counter() - begin) * 1_000)
    return times


def _compile(data: bytes, path: str, options: Options) -> None:
    """Compile a source that has no mistake."""
    _sound(pipeline.compile_source(data, path, options))


def _sound(result: Compiled) -> None:
    """Take a result that has no mistake."""
    if result.workflow is None:
        raise RuntimeError(result.diagnostics[0].message)


def _reference(text: str) -> None:
    """Parse and evaluate a source with the library alone; a task is nothing but None."""
    dialect = starlark.Dialect.standard()
    dialect.enable_top_level_stmt = True
    module = starlark.Module()
    for name in ("command", "workflow"):
        module.add_callable(name, lambda **_: None)
    starlark.eval(module, starlark.parse("reference", text, dialect), starlark.Globals.standard())


def _figures(times: dict[tuple[str, int], list[float]]) -> list[Figure]:
    """Return what is asked for; a difference or quotient is taken within each round."""
    median = {key: statistics.median(taken) for key, taken in times.items()}
    pairs = zip(times["isolated", 24], times["inside", 24], strict=True)
    isolation = statistics.median(isolated - inside for isolated, inside in pairs)
    rows = zip(times["isolated", 1_000], times["isolated", 128], strict=True)
    growth = statistics.median((many / 1_000) / (few / 128) for many, few in rows)
    return [
        Figure("isolation of a warm compile of 24 tasks", isolation, "ms", _MOST_ISOLATION),
        *(Figure(f"warm isolated compile of {size} tasks", median["isolated", size], "ms", most)
          for size, most in _MOST_WARM.items()),
        Figure("a task among 1,000 over one among 128", growth, "x ", _MOST_GROWTH),
    ]  # fmt: skip


class _Inside:
    """A stand-in for the sandbox: the evaluation happens in this process, its messages written and read."""

    def __init__(self, *_: object) -> None:
        self._request: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def begin(self, request: dict[str, Any]) -> None:
        """Take a request."""
        self._request = json.loads(json.dumps(request))

    def finish(self) -> dict[str, Any]:
        """Evaluate."""
        evaluator = evaluate.Evaluator(self._request["config"])
        if evaluator.load(self._request) is not None:
            raise RuntimeError("the source does not load")
        run = evaluator.run()
        answer: dict[str, Any] = {"error": run.failure, "limit": run.limit, "calls": run.calls, "last": run.last}
        return dict(json.loads(json.dumps(answer)))


def _compile_inside(data: bytes, path: str) -> None:
    """Compile without a process for the evaluation."""
    isolated = vars(pipeline)["Sandbox"]
    setattr(pipeline, "Sandbox", _Inside)  # noqa: B010 - a checker would have it subclass the sandbox
    try:
        _compile(data, path, Options(_MANY))
    finally:
        setattr(pipeline, "Sandbox", isolated)  # noqa: B010


def _giant(pack: str, pool: Pool) -> dict[str, float]:
    """Compile a pack as large as an honest one gets; return its share of each ceiling."""
    prompts = [f"{n} " + "Read the candidate and name its worst flaw.\n" * 340 for n in range(60)]
    for n, text in enumerate(prompts):
        with open(os.path.join(pack, f"p{n}.md"), "w", encoding="utf-8") as file:
            file.write(text)
    words = "and say it in a few words " * 60
    table = "".join(f'    ("task-{n}", "p{n % 60}.md", "{words}"),\n' for n in range(128))
    source = (
        f"table = [\n{table}]\ntasks = []\nfor name, path, words in table:\n"
        "    tasks.append(agent(name = name, prompt = prompt_file(path) + words, depends_on = tasks[-3:]))\n"
        'workflow(type = "custom", tasks = tasks)\n'
    ).encode()
    begin = time.perf_counter()
    result = pipeline.compile_source(source, os.path.join(pack, "workflow.star"), Options(connect=pool.connect))
    seconds = time.perf_counter() - begin
    _sound(result)
    return {
        f"one source file: {len(source):,} bytes": len(source) / LIMITS.source_bytes,
        "one prompt file": max(map(len, prompts)) / LIMITS.prompt_bytes,
        "all prompt files together": sum(map(len, prompts)) / LIMITS.all_prompt_bytes,
        "tasks in the workflow": 128 / LIMITS.tasks,
        "tasks constructed": 128 / LIMITS.constructed,
        "the canonical JSON": len(dumps(result.workflow)) / LIMITS.json_bytes if result.workflow else 1,
        "Starlark heap": _least(source, pack, pool, "heap_bytes") / LIMITS.heap_bytes,
        "evaluation ticks": _least(source, pack, pool, "ticks") / LIMITS.ticks,
        "wall clock": seconds / LIMITS.seconds,
    }


def _least(source: bytes, pack: str, pool: Pool, ceiling: str) -> int:
    """Search for the least value of a ceiling under which a source still compiles, to a hundredth of the ceiling."""
    most = getattr(LIMITS, ceiling)
    low, high = 0, 100
    while low < high:
        middle = (low + high) // 2
        options = Options(LIMITS._replace(**{ceiling: most * middle // 100}), connect=pool.connect)
        if pipeline.compile_source(source, os.path.join(pack, "workflow.star"), options).workflow is None:
            low = middle + 1
        else:
            high = middle
    return int(most * high // 100)


if __name__ == "__main__":
    sys.exit(main())

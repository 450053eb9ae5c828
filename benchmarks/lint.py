"""Measure lint where many packs, or one file again and again, are linted: `make bench`.

500 packs in one call of the command, its start and its report included; and one source of 24 tasks, with its
warnings, through a pool, as an editor has it. Both are held as they were asked for, whatever the machine.
"""

import argparse
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time

from crucible.compiler import pipeline
from crucible.compiler.facts import ManifestFacts
from crucible.compiler.frontend.pool import Pool
from crucible.compiler.pipeline import Options

_PACKS = 500
_LEAST_RATE = 60.0  # packs a second
_MOST_WARM = 20.0  # ms for 24 tasks
_MANIFEST = """\
[repo]
url = "https://git.example.com/tools/scan.git"

[workspace]
inject = ["run.sh"]

[judge]
measure_cmd = "./run.sh"
direction = "lower"
"""


def main() -> int:
    """Print both figures; exit code 1 when one is not what it has to be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        _write(os.path.join(folder, "one"), 24)
        for number in range(_PACKS):
            _write(os.path.join(folder, "packs", f"{number:03}"), 8)
        warm = _warm(os.path.join(folder, "one", "workflow.star"), rounds)
        rate = max(_rate(os.path.join(folder, "packs")) for _ in range(2))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    sys.stdout.write(f"{cores} cores, {rounds} rounds\n\n")
    sys.stdout.write(f"{f'lint of {_PACKS} packs in one call':44} {rate:6.1f} packs/s (at least {_LEAST_RATE:.1f})\n")
    sys.stdout.write(f"{'warm lint of 24 tasks':44} {warm:6.2f} ms (at most {_MOST_WARM:.2f})\n")
    return 0 if rate >= _LEAST_RATE and warm <= _MOST_WARM else 1


def _write(pack: str, tasks: int) -> None:
    """Write a pack whose tasks follow each other, with a prompt, a script, a manifest and a suppressed warning."""
    os.makedirs(os.path.join(pack, "prompts"))
    lines = [
        f't{n} = evaluate(name = "t-{n}", run = "./run.sh {n}", depends_on = [{f"t{n - 1}" if n else "draft"}])\n'
        for n in range(1, tasks)
    ]
    files = {
        "crucible.toml": _MANIFEST,
        "run.sh": "#!/bin/sh\n",
        "prompts/draft.md": "Draft it.\n",
        "workflow.star": 'draft = agent(name = "draft", prompt = prompt_file("prompts/draft.md"))\n'
        't0 = command(name = "t-0", run = "./run.sh 0", depends_on = [draft])\n'
        + "".join(lines)
        + "seconds = 600  # crucible: ignore[unused-binding]\n"
        + f'workflow(type = "custom", tasks = [draft, {", ".join(f"t{n}" for n in range(tasks))}])\n',
    }
    for name, text in files.items():
        with open(os.path.join(pack, name), "w", encoding="utf-8") as file:
            file.write(text)


def _warm(path: str, rounds: int) -> float:
    """Return the median milliseconds of a lint of one source."""
    times = []
    with Pool(1) as pool:
        for number in range(rounds + 3):
            gc.collect()
            begin = time.perf_counter()
            facts = ManifestFacts(os.path.join(os.path.dirname(path), "crucible.toml"))
            options = Options(judge_direction=facts.judge_direction, lint=facts.workspace, connect=pool.connect)
            result = pipeline.compile_file(path, options)
            if number >= 3:
                times.append((time.perf_counter() - begin) * 1_000)
            if result.workflow is None or result.diagnostics:
                raise RuntimeError(result.diagnostics)
    return statistics.median(times)


def _rate(folder: str) -> float:
    """Return how many packs a second one call of the command lints."""
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "crucible.cli.main", "lint", folder], capture_output=True, check=True
    )
    seconds = time.perf_counter() - begin
    if not done.stdout.endswith(b": no problems\n"):
        raise RuntimeError(done.stdout.decode())
    return _PACKS / seconds


if __name__ == "__main__":
    sys.exit(main())

"""Measure what a start costs, as ratios of neighbours in one run: `make bench`.

Every round starts each command once, in turn, as a whole process of the installed package; a ratio
is the median over the rounds of one command's time over another's in the same round. Times are
never compared between runs or machines.
"""

import argparse
import os
import statistics
import sys
import sysconfig
import tempfile
import time
from typing import NamedTuple

_PACK = """\
base = [command(name = "prepare-%d" % i, run = "./prepare.sh %d" % i) for i in range(4)]
critics = [
    agent(name = "critic-%d" % i, prompt = prompt_file("prompts/critic.md"), isolated = True, depends_on = base)
    for i in range(10)
]
scores = [
    evaluate(name = "score-%d" % i, run = "./score.sh", depends_on = critics, join = "passed", isolated = True)
    for i in range(8)
]
fold = command(name = "fold", run = "./fold.sh", depends_on = scores)
publish = command(name = "publish", run = "./publish.sh", depends_on = [fold])
workflow(type = "custom", tasks = [base, critics, scores, fold, publish], result = publish)
"""


class Ratio(NamedTuple):
    """One line of the table: a command's time over another's, and the most it may be."""

    what: str
    command: str
    base: str
    most: float


class Sample(NamedTuple):
    """One process: seconds on the clock, and the largest resident set of it and its children in MiB."""

    seconds: float
    mebibytes: float


_RATIOS = (
    Ratio("cold compile of 24 tasks", "compile", "import networkx", 1.0),
    Ratio("crucible --version", "version", "pass", 2.5),
    Ratio("crucible --help", "help", "pass", 2.5),
)
_MOST_MEBIBYTES = 45.0


def main() -> int:
    """Print the table; exit code 1 when a ratio is above what it may be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    rounds = parser.parse_args().rounds
    crucible = os.path.join(sysconfig.get_path("scripts"), "crucible")
    with tempfile.TemporaryDirectory() as pack:
        _write(os.path.join(pack, "workflow.star"), _PACK)
        os.mkdir(os.path.join(pack, "prompts"))
        _write(os.path.join(pack, "prompts", "critic.md"), "Read the candidate and name its worst flaw.\n" * 20)
        commands = {
            "pass": [sys.executable, "-c", "pass"],
            "import networkx": [sys.executable, "-c", "import networkx"],
            "compile": [crucible, "plan", "compile-workflow", "--file", os.path.join(pack, "workflow.star")],
            "version": [crucible, "--version"],
            "help": [crucible, "--help"],
        }
        for command in commands.values():
            _run(command)
        samples: dict[str, list[Sample]] = {name: [] for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                samples[name].append(_run(command))
    return _report(samples, rounds)


def _report(samples: dict[str, list[Sample]], rounds: int) -> int:
    version = ".".join(str(part) for part in sys.version_info[:3])
    sys.stdout.write(f"Python {version}, {os.cpu_count()} cores, {rounds} rounds; medians\n\n")
    for name, taken in samples.items():
        seconds = statistics.median(sample.seconds for sample in taken)
        largest = max(sample.mebibytes for sample in taken)
        sys.stdout.write(f"{name:18} {seconds * 1000:7.1f} ms {largest:6.1f} MiB\n")
    sys.stdout.write("\n")
    fits = True
    for ratio in _RATIOS:
        pairs = zip(samples[ratio.command], samples[ratio.base], strict=True)
        measured = statistics.median(one.seconds / other.seconds for one, other in pairs)
        fits &= measured <= ratio.most
        sys.stdout.write(f"{ratio.what:26} {measured:5.2f} x {ratio.base} (at most {ratio.most:.2f})\n")
    largest = max(sample.mebibytes for sample in samples["compile"])
    fits &= largest <= _MOST_MEBIBYTES
    sys.stdout.write(f"{'largest process':26} {largest:5.1f} MiB (at most {_MOST_MEBIBYTES:.0f})\n")
    return 0 if fits else 1


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _run(command: list[str]) -> Sample:
    """Run a command with its output thrown away and wait for it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        begin = time.perf_counter()
        pid = os.posix_spawn(command[0], command, environment, file_actions=[(os.POSIX_SPAWN_DUP2, sink, 1)])
        _, status, usage = os.wait4(pid, 0)
        seconds = time.perf_counter() - begin
    finally:
        os.close(sink)
    if status:
        message = f"{' '.join(command)} failed with status {status}"
        raise RuntimeError(message)
    return Sample(seconds, usage.ru_maxrss / (1024 if sys.platform == "linux" else 1024 * 1024))


if __name__ == "__main__":
    sys.exit(main())

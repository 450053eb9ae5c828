"""Measure what running a plan costs, as ratios of neighbours in one run: `make bench`.

1,000 commands that do `true`, one after another, as whole processes: `crucible plan run` against a bare loop that
spawns the same shell lines and waits, and against other runners (the extra `bench`; what is not installed is named and
skipped). Eight isolated tasks against as many plain clones, two at a time. Times are never compared between runs.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

_TASKS = 1_000
_CLONES = 8
_FILES = 2_000
_BARE = """\
import os
for _ in range(%d):
    os.waitpid(os.posix_spawnp("sh", ("sh", "-c", "true"), os.environ), 0)
"""
_DOIT = """\
def task_all():
    for number in range(%d):
        yield {"name": str(number), "actions": ["true"], "task_dep": ["all:%%d" %% (number - 1)] if number else []}
"""
_LUIGI = """\
import subprocess
import luigi

class Each(luigi.Task):
    number = luigi.IntParameter()
    def requires(self):
        return [Each(self.number - 1)] if self.number else []
    def output(self):
        return luigi.LocalTarget(f"out/{self.number}")
    def run(self):
        subprocess.run(["sh", "-c", "true"], check=True)
        self.output().makedirs()
        open(self.output().path, "w").close()

# With more than one worker each task gets a process of its own, as here; with one it runs within luigi.
luigi.build([Each(%d - 1)], local_scheduler=True, workers=2, log_level="ERROR")
"""
_SNAKEMAKE = """\
rule all:
    input: expand("out/{number}", number=range(%d))
rule each:
    output: touch("out/{number}")
    shell: "true"
"""


class Sample(NamedTuple):
    """One process: seconds on the clock, and the largest resident set of it in MiB."""

    seconds: float
    mebibytes: float


class Ratio(NamedTuple):
    """One line of the table: a command's time over another's, and the most it may be."""

    what: str
    command: str
    base: str
    most: float


_RATIOS = (
    Ratio("fixed cost of a run", "one task", "pass", 4.7),  # 40 ms where an empty Python takes 8.5
    Ratio("1,000 tasks", "crucible", "bare loop", 1.6),
    Ratio("1,000 tasks", "crucible", "doit", 0.7),
    Ratio("1,000 tasks", "crucible", "luigi", 0.15),
    Ratio("1,000 tasks", "crucible", "snakemake", 0.06),
    Ratio("eight isolated tasks", "isolated", "clones", 1.2),
)
_MOST_MEBIBYTES = 40.0
_SLOW = ("luigi", "snakemake")  # measured once, since they take long


def main() -> int:
    """Print the table; exit code 1 when a ratio is above what it may be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--crucible", default=os.path.join(sysconfig.get_path("scripts"), "crucible"))
    parser.add_argument(
        "--peers", default=sysconfig.get_path("scripts"), help="where doit and the others are installed"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        # Tens of thousands of files of clones are written out for seconds after, beside whoever comes next:
        # each group has rounds of its own.
        samples = _measured({**_chains(folder, arguments.crucible), **_peers(folder, Path(arguments.peers))}, arguments)
        samples |= _measured(_isolated(folder, arguments.crucible), arguments)
    return _report(samples, arguments.rounds)


def _measured(commands: dict[str, Callable[[], Sample]], arguments: argparse.Namespace) -> dict[str, list[Sample]]:
    """Measure commands in turn, as often as there are rounds."""
    samples: dict[str, list[Sample]] = {name: [] for name in commands}
    for number in range(arguments.rounds + 1):
        for name, measure in commands.items():
            if name not in _SLOW or number == 0:
                sample = measure()
                if number or name in _SLOW:  # the first round warms up
                    samples[name].append(sample)
    return samples


def _chains(folder: Path, crucible: str) -> dict[str, Callable[[], Sample]]:
    """Return what tells the cost of shared tasks, one after another."""
    many, one = folder / "many", folder / "one"
    for place, count in ((many, _TASKS), (one, 1)):
        place.mkdir()
        _write_plan(place, [{"name": f"t{n}", "depends_on": [f"t{n - 1}"] if n else []} for n in range(count)])
    python = [sys.executable, "-c"]
    return {
        "pass": lambda: _run([*python, "pass"], folder),
        "one task": lambda: _plan_run(one, crucible),
        "bare loop": lambda: _run([*python, _BARE % _TASKS], folder),
        "crucible": lambda: _plan_run(many, crucible),
    }


def _isolated(folder: Path, crucible: str) -> dict[str, Callable[[], Sample]]:
    """Return what tells the cost of tasks with a clone each."""
    repository = folder / "repository"
    repository.mkdir()
    for number in range(_FILES):
        place = repository / f"d{number % 50}"
        place.mkdir(exist_ok=True)
        (place / f"f{number}").write_text(f"{number}\n" * 100)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "first"]):
        subprocess.run([*git, *words], cwd=repository, check=True)
    _write_plan(repository, [{"name": f"t{n}", "depends_on": [], "isolation": "worktree"} for n in range(_CLONES)])
    return {
        "isolated": lambda: _plan_run(repository, crucible, "--jobs", "2"),
        "clones": lambda: _clones(repository, folder / "clones"),
    }


def _peers(folder: Path, scripts: Path) -> dict[str, Callable[[], Sample]]:
    """Return the other runners that are installed; say which are not."""
    found: dict[str, Callable[[], Sample]] = {}
    for name, file, text, line in (
        ("doit", "dodo.py", _DOIT, [str(scripts / "doit"), "--verbosity", "0"]),
        ("luigi", "tasks.py", _LUIGI, [str(scripts / "python"), "tasks.py"]),
        ("snakemake", "Snakefile", _SNAKEMAKE, [str(scripts / "snakemake"), "--cores", "1", "--quiet", "all"]),
    ):
        if not (scripts / name).exists():
            sys.stdout.write(
                f"{name} is not installed and is skipped; pip install 'crucible-workflow[bench]' brings it\n"
            )
            continue
        place = folder / name
        place.mkdir()
        (place / file).write_text(text % _TASKS)

        def measure(line: list[str] = line, place: Path = place) -> Sample:
            for left in ("out", ".snakemake", ".doit.db", ".doit.db.db"):
                path = place / left
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
            return _run(line, place)

        found[name] = measure
    return found


def _write_plan(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Write a canonical JSON."""
    tasks = [
        {
            "name": row["name"],
            "kind": "command",
            "command": "true",
            "depends_on": row["depends_on"],
            "needs": "any",
            "required": True,
            "isolation": row.get("isolation"),
            "join": "all",
        }
        for row in rows
    ]
    text = json.dumps({"type": "custom", "task": tasks}, indent=2)
    (folder / "plan.json").write_text(text + "\n")


def _clones(repository: Path, folder: Path) -> Sample:
    """Clone a repository, with checkout, as often as there are isolated tasks, two at a time."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    begin = perf_counter()
    running: list[subprocess.Popen[bytes]] = []
    for number in range(_CLONES):
        if len(running) == 2:
            running.pop(0).wait()
        line = ["git", "clone", "--quiet", "--local", str(repository), str(folder / str(number))]
        running.append(subprocess.Popen(line))
    for process in running:
        process.wait()
    return Sample(perf_counter() - begin, 0.0)


def _plan_run(folder: Path, crucible: str, *options: str) -> Sample:
    """Run the plan of a folder there."""
    return _run([crucible, "plan", "run", "--file", "plan.json", *options], folder)


def _run(command: list[str], folder: Path) -> Sample:
    """Run a command in a folder with its output thrown away and wait for it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    sink = os.open(os.devnull, os.O_WRONLY)
    here = os.getcwd()
    os.chdir(folder)
    try:
        begin = perf_counter()
        actions = [(os.POSIX_SPAWN_DUP2, sink, number) for number in (1, 2)]
        pid = os.posix_spawn(command[0], command, environment, file_actions=actions)
        _, status, usage = os.wait4(pid, 0)
        seconds = perf_counter() - begin
    finally:
        os.chdir(here)
        os.close(sink)
    if status:
        message = f"{' '.join(command)} failed with status {status}"
        raise SystemExit(message)
    per_mebibyte = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return Sample(seconds, usage.ru_maxrss / per_mebibyte)


def _report(samples: dict[str, list[Sample]], rounds: int) -> int:
    version = ".".join(str(part) for part in sys.version_info[:3])
    sys.stdout.write(f"Python {version}, {os.cpu_count()} cores, {rounds} rounds; medians\n\n")
    for name, taken in samples.items():
        seconds = statistics.median(sample.seconds for sample in taken)
        largest = max(sample.mebibytes for sample in taken)
        sys.stdout.write(f"{name:18} {seconds * 1000:8.1f} ms {largest:6.1f} MiB\n")
    sys.stdout.write("\n")
    fits = True
    for ratio in _RATIOS:
        if ratio.base not in samples:
            continue
        ours, others = samples[ratio.command], samples[ratio.base]
        if ratio.base in _SLOW:
            measured = statistics.median(each.seconds for each in ours) / others[0].seconds
        else:
            measured = statistics.median(one.seconds / other.seconds for one, other in zip(ours, others, strict=True))
        fits &= measured <= ratio.most
        sys.stdout.write(f"{ratio.what:22} {measured:5.2f} x {ratio.base} (at most {ratio.most:.2f})\n")
    largest = max(sample.mebibytes for sample in samples["crucible"])
    fits &= largest <= _MOST_MEBIBYTES
    sys.stdout.write(f"{'largest process':22} {largest:5.1f} MiB (at most {_MOST_MEBIBYTES:.0f})\n")
    return 0 if fits else 1


if __name__ == "__main__":
    sys.exit(main())

"""Measure what `plan render` costs beside compiling and the drawing program's own time: `make bench`.

Each round starts the processes after one another; of each the fastest counts, for whatever else the machine does only
makes one slower. What is judged is processor time, which a busy machine hardly changes; the time on the clock stands
beside it, for it has the waiting, too.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

from crucible.compiler.output import picture
from crucible.compiler.output.drawing import find_program
from crucible.compiler.pipeline import compile_file

_MOST = 50.0  # ms
_SIZES = (24, 128)
_COMMAND = [sys.executable, "-P", "-m", "crucible.cli.main", "plan"]


def main() -> int:
    """Print the cost for each size; exit code 1 when one is too much."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    costs = []
    with tempfile.TemporaryDirectory() as folder:
        for tasks in _SIZES:
            path = os.path.join(folder, f"{tasks}.star")
            with open(path, "w", encoding="utf-8") as file:
                file.write(_source(tasks))
            workflow = compile_file(path).workflow
            if workflow is None:
                raise RuntimeError(path)
            dot = picture.to_dot(workflow).encode()
            # A large picture is measured before it is drawn.
            styles = ("png",) if tasks == _SIZES[0] else ("svg", "png")
            commands = [
                ([*_COMMAND, "render", "--file", path], b""),
                ([*_COMMAND, "compile-workflow", "--file", path], b""),
                *(([find_program(), "-Kdot", f"-T{style}"], dot) for style in styles),
            ]
            times = [[_times(*command) for command in commands] for _ in range(rounds)]
            cost, waited = (_beyond([[both[which] for both in row] for row in times]) for which in (0, 1))
            what = f"plan render of {tasks} tasks, beside compiling and drawing"
            print(f"{what:60} {cost:6.1f} ms (at most {_MOST:.1f}; {waited:.1f} ms on the clock)")
            costs.append(cost)
    return 0 if max(costs) <= _MOST else 1


def _source(tasks: int) -> str:
    """Return a source whose tasks follow each other in three strands."""
    lines = [
        f't{n} = evaluate(name = "t-{n}", run = "./x.sh {n}", depends_on = [{f"t{n - 3}" if n > 2 else ""}])'
        for n in range(tasks)
    ]
    return "\n".join([*lines, f'workflow(type = "custom", tasks = [{", ".join(f"t{n}" for n in range(tasks))}])\n'])


def _beyond(times: list[list[float]]) -> float:
    """Return by how much the first of some commands is slower than the others together."""
    first, *others = (min(row[number] for row in times) for number in range(len(times[0])))
    return first - sum(others)


def _times(command: list[str], data: bytes) -> tuple[float, float]:
    """Return the processor time of a process with all that it started, and the time on the clock, in milliseconds."""
    begin, spent = time.perf_counter(), _spent()
    subprocess.run(command, input=data, capture_output=True, check=True)
    return (_spent() - spent) * 1_000, (time.perf_counter() - begin) * 1_000


def _spent() -> float:
    """Return the processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())

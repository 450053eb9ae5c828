"""The gate: is the answer right, and how much processor time does it take? Prints one reading.

The program runs as a child whose output is read and compared, so nothing that it prints is taken for a score. The score
is the least time of several runs, in units of a loop of the gate's own that is timed between them: what slows the
machine down slows both. What is not clearly faster than the best so far counts as equally fast.
"""

import json
import os
import random
import resource
import subprocess
import sys
import time
from collections import Counter

_RUNS = 7
_LEAST_RUNS = 2
_NOISE = 0.25
_TARGET = 4_000


def main() -> None:
    known = os.environ.get("CRUCIBLE_BEST_SCORE")
    best = None if known is None else float(known)
    dice = random.Random(7)
    times, units = [], []
    for _ in range(_RUNS):
        numbers = [dice.randrange(_TARGET) for _ in range(1_500)]
        units.append(unit())
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-I", "pairs.py"],
            input=" ".join(map(str, [_TARGET, *numbers])),
            capture_output=True,
            text=True,
            timeout=60,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        if done.returncode != 0:
            return tell(
                False, None, f"pairs.py failed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}"
            )
        if done.stdout.strip() != str(expected(numbers)):
            return tell(False, None, "pairs.py gives a wrong answer")
        if best is not None and len(times) >= _LEAST_RUNS and min(times) > 2 * best * min(units):
            break  # more runs would not save it
    score = round(min(times) / min(units), 2)
    note = f"{score} units, {min(times) * 1_000:.0f} ms"
    if best is not None and abs(score - best) <= _NOISE * best:
        return tell(True, best, f"{note}, which is not faster")
    tell(True, score, note)


def unit() -> float:
    """Time a loop like that of the program as it was."""
    begin = time.process_time()
    found = 0
    for number in range(200_000):
        if number + found == -1:
            found += 1
    return time.process_time() - begin


def expected(numbers: list[int]) -> int:
    seen: Counter[int] = Counter()
    found = 0
    for number in numbers:
        found += seen[_TARGET - number]
        seen[number] += 1
    return found


def tell(valid: bool, score: float | None, note: str) -> None:
    print(json.dumps({"valid": valid, "score": score, "note": note}))


main()

"""The gate: is the answer right, and how much processor time does it take? Prints one reading.

The program runs as a child whose output is read and compared, so nothing that it prints is taken for a score. What is
not much faster than the best so far counts as equally fast: a clock is not that good.
"""

import json
import os
import random
import resource
import subprocess
import sys
from collections import Counter

_RUNS = 5
_NOISE = 0.4


def main() -> None:
    dice = random.Random(7)
    times = []
    for _ in range(_RUNS):
        numbers = [dice.randrange(4_000) for _ in range(2_400)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-I", "pairs.py"],
            input=" ".join(map(str, [4_000, *numbers])),
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
        if done.stdout.strip() != str(expected(4_000, numbers)):
            return tell(False, None, "pairs.py gives a wrong answer")
    score = round(min(times) * 1_000, 1)
    best = os.environ.get("CRUCIBLE_BEST_SCORE")
    if best is not None and abs(score - float(best)) <= _NOISE * float(best):
        return tell(True, float(best), f"{score} ms, which is not faster")
    tell(True, score, f"{score} ms")


def expected(target: int, numbers: list[int]) -> int:
    seen: Counter[int] = Counter()
    found = 0
    for number in numbers:
        found += seen[target - number]
        seen[number] += 1
    return found


def tell(valid: bool, score: float | None, note: str) -> None:
    print(json.dumps({"valid": valid, "score": score, "note": note}))


main()

"""A small test suite, of which one test fails now and then: it takes the order of a set for granted."""

import json
import random
import sys


def test_sum(dice: random.Random) -> bool:
    return sum(range(10)) == 45


def test_sorted(dice: random.Random) -> bool:
    numbers = dice.sample(range(100), 10)
    return sorted(numbers)[0] == min(numbers)


def test_first(dice: random.Random) -> bool:
    names = ["ada", "bob", "eve", "joe"]
    dice.shuffle(names)  # what a set does
    return names[0] != "joe"


seed = sys.argv[1]
tests = {name: test for name, test in globals().items() if name.startswith("test_")}
print(
    json.dumps(
        {"seed": seed, "failed": [name for name, test in tests.items() if not test(random.Random(f"{seed}{name}"))]}
    )
)

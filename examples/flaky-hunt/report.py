"""Says which tests failed in some rounds and not in others, and how often."""

import collections
import json
import os

with open(os.environ["CRUCIBLE_INPUTS_FILE"], encoding="utf-8") as file:
    rounds = [each for name, each in json.load(file).items() if name.startswith("round-")]
failures = collections.Counter(name for each in rounds for name in each["failed"])
flaky = {name: count for name, count in failures.items() if count < len(rounds)}
print(
    json.dumps({"rounds": len(rounds), "flaky": flaky, "broken": [n for n, c in failures.items() if c == len(rounds)]})
)

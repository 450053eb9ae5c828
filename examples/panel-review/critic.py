"""Stands in for an agent that reviews: does what its prompt asks for, and answers in PLAN_TASK_RESULT.json."""

import json
import os
import re

_LOOKS = {
    "security": (r"\beval\(", "eval runs what a file says"),
    "errors": (r"except:", "a bare except hides every mistake"),
    "types": (r"def \w+\([^:)]+\)", "the arguments have no types"),
}

with open(os.environ["CRUCIBLE_PROMPT_FILE"], encoding="utf-8") as file:
    prompt = file.read()
with open("change.py", encoding="utf-8") as file:
    lines = file.read().splitlines()
with open(os.environ["CRUCIBLE_INPUTS_FILE"], encoding="utf-8") as file:
    inputs = json.load(file)
if "verdict" in prompt:
    remarks = [each for name, found in inputs.items() if name != "params" for each in found["remarks"]]
    answer = {"approve": not remarks, "remarks": sorted(remarks)}
else:
    pattern, why = next(look for name, look in _LOOKS.items() if name in prompt)
    answer = {"remarks": [f"line {n}: {why}" for n, line in enumerate(lines, 1) if re.search(pattern, line)]}
with open("PLAN_TASK_RESULT.json", "w", encoding="utf-8") as file:
    json.dump(answer, file)

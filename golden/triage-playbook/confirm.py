#!/usr/bin/env python3
"""Run the reproduction as often as the launch asks for, and say whether it showed the fault every time."""

import json
import os
import subprocess

with open(os.environ["CRUCIBLE_INPUTS_FILE"], encoding="utf-8") as file:
    inputs = json.load(file)

script = inputs["reproduce"]["script"]
runs = inputs["params"]["attempts"]
seen = sum(subprocess.run(["sh", script], check=False).returncode == 1 for _ in range(runs))
print(json.dumps({"reproduced": seen == runs, "runs": runs, "seen": seen}))

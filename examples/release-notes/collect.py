"""Collects the commits of a range, as the parameters say, by the area that each begins with."""

import json
import os
import subprocess

with open(os.environ["CRUCIBLE_INPUTS_FILE"], encoding="utf-8") as file:
    params = json.load(file)["params"]
revisions = [f"{params['since']}..{params['until']}"]
log = subprocess.run(
    ["git", "log", "--reverse", "--format=%s", *revisions, "--"], capture_output=True, text=True, check=True
)
areas: dict[str, list[str]] = {}
for subject in log.stdout.splitlines():
    area, _, change = subject.partition(": ")
    areas.setdefault(area if change else "other", []).append(change or subject)
print(json.dumps({"areas": areas}))

#!/usr/bin/env python3
"""Usage: find-change.py --path DIRECTORY. Name the change below a directory that brought the fault, if it is sure enough."""

import json
import os
import subprocess
import sys

with open(os.environ["CRUCIBLE_INPUTS_FILE"], encoding="utf-8") as file:
    inputs = json.load(file)

if not inputs["confirm"]["reproduced"]:
    sys.exit("nothing to bisect: the fault was not reproduced")

directory = sys.argv[2]
commits = subprocess.check_output(["git", "rev-list", "HEAD", "--", directory], text=True).split()
good, bad = len(commits), 0
while good - bad > 1:
    middle = (good + bad) // 2
    subprocess.run(["git", "checkout", "--quiet", commits[middle]], check=True)
    if subprocess.run(["sh", "reproduce.sh"], check=False).returncode == 1:
        bad = middle
    else:
        good = middle
subprocess.run(["git", "checkout", "--quiet", "-"], check=True)
confidence = inputs["confirm"]["seen"] / inputs["confirm"]["runs"]
sure = confidence >= inputs["params"]["confidence"]
print(json.dumps({"change": commits[bad] if sure else None, "confidence": confidence}))

"""Writes NOTES.md from what was collected."""

import json
import os

with open(os.environ["CRUCIBLE_INPUTS_FILE"], encoding="utf-8") as file:
    inputs = json.load(file)
lines = [f"# {inputs['params']['title']}", ""]
for area, changes in sorted(inputs["collect"]["areas"].items()):
    lines += [f"## {area}", "", *(f"* {change}" for change in changes), ""]
with open("NOTES.md", "w", encoding="utf-8") as notes:
    notes.write("\n".join(lines))
print(json.dumps({"file": "NOTES.md", "areas": len(inputs["collect"]["areas"])}))

#!/bin/sh
# Files the report as a draft of the release notes.
set -eu
mkdir -p notes
jq --raw-output '"# \(.report.title)\n\n\(.report.body)"' "$CRUCIBLE_INPUTS_FILE" >notes/next.md
echo '{"file": "notes/next.md"}'

#!/bin/sh
# The judge of last resort: the graph in workflow.star grades; this one number is for `crucible check`.
set -eu
./latency.sh | jq --compact-output '{valid: true, score: .score}'

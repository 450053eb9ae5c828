#!/bin/sh
# One number for `crucible check`: what the full benchmark grades by.
set -eu
./rungs/bench.sh 1200 | jq --compact-output '{valid: true, score: .score}'

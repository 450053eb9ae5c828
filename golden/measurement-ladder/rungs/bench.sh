#!/bin/sh
# Usage: bench.sh COUNT. The score is how many times faster than the baseline COUNT queries ran (geometric mean).
set -eu
./build/bench --queries "$1" --against baseline.json --format json |
    jq --compact-output '{score: .speedup, slowest: .slowest.query}'

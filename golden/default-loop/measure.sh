#!/bin/sh
# The judge: seconds to resolve the dependencies of the largest project in the corpus.
set -eu
python3 bench/resolve.py --project corpus/largest.lock --repeat 5 |
    jq --compact-output '{valid: true, score: .median_seconds, note: "\(.packages) packages"}'

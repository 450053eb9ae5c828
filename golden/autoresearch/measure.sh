#!/bin/sh
# The judge: the median of eleven runs over a warm file, in milliseconds.
set -eu
timings=$(mktemp)
trap 'rm -f "$timings"' EXIT
hyperfine --warmup 3 --runs 11 --export-json "$timings" 'logscan-preview --count ERROR testdata/large.log' >&2
jq --compact-output '{valid: true, score: (.results[0].median * 1000)}' "$timings"

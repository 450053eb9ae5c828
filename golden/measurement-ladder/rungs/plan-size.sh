#!/bin/sh
# Plans that are no larger are easier to read: the mean number of operators, relative to the baseline.
set -eu
./build/shell --explain corpus/*.sql | ./build/count-operators --against baseline.json --format json |
    jq --compact-output '{score: .ratio}'

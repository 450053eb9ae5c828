#!/bin/sh
# The score is the time relative to the last release; 0.95 is five per cent less.
set -eu
make --silent test >&2
new=$(make --silent bench)
old=$(cat bench/release.txt)
jq --null-input --compact-output --argjson new "$new" --argjson old "$old" '{score: ($new / $old)}'

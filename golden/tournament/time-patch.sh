#!/bin/sh
# Usage: time-patch.sh TASK. Applies the patch that TASK gave and times the search, in milliseconds.
set -eu
patch=$(mktemp)
trap 'rm -f "$patch"' EXIT
jq --raw-output --arg task "$1" '.[$task].patch' "$CRUCIBLE_INPUTS_FILE" >"$patch"
git apply --whitespace=nowarn "$patch"
make --silent test >&2
score=$(make --silent bench)
jq --null-input --compact-output --argjson score "$score" --rawfile patch "$patch" '{score: $score, patch: $patch}'

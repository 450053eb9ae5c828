#!/bin/sh
# Twenty minutes of mixed load without an error in the server's log.
set -eu
./build/soak --minutes 20 --log soak.log >&2
errors=$(grep -c ERROR soak.log || true)
echo "{\"pass\": $([ "$errors" -eq 0 ] && echo true || echo false), \"errors\": $errors}"

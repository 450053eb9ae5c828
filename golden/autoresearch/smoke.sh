#!/bin/sh
# Builds the candidate and counts the lines of a sample whose answer is known.
set -eu
make --silent logscan
found=$(./logscan --count ERROR testdata/sample.log)
if [ "$found" != 128 ]; then
    echo "expected 128 matching lines, found $found" >&2
    exit 1
fi
echo '{"pass": true}'

#!/bin/sh
# The race detector is slow and now and then finds what was always there: advisory evidence.
set -eu
if go test -race -count=1 ./... >&2; then
    echo '{"pass": true}'
else
    echo '{"pass": false, "note": "the race detector complained"}'
fi

#!/bin/sh
# Replays a recorded session and compares every answer.
set -eu
go build -o cached ./cmd/cached
if go run ./cmd/replay -server ./cached -session testdata/session.jsonl >&2; then
    echo '{"pass": true}'
else
    echo '{"pass": false, "note": "an answer differs from the recorded session"}'
fi

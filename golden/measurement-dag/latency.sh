#!/bin/sh
# Thirty seconds of load; the score is the 99th percentile in milliseconds.
set -eu
go build -o cached ./cmd/cached
go run ./cmd/load -server ./cached -rate 2000 -duration 30s -json |
    jq --compact-output '{score: .p99_ms, p50: .p50_ms, p99: .p99_ms}'

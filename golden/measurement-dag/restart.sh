#!/bin/sh
# Builds the candidate and restarts the staging server with it.
set -eu
go build -o cached ./cmd/cached
systemctl --user restart cached-staging

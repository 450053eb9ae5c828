#!/bin/sh
# Formats the candidate in place, so that no later diff shows what a formatter would have done.
set -eu
ruff format --quiet .
echo '{}'

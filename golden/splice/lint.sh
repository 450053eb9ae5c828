#!/bin/sh
# Refuses a candidate that the linter refuses; the loop then never builds it.
set -eu
npx --no-install eslint --max-warnings 0 src >&2
echo '{}'

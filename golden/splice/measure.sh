#!/bin/sh
# The judge: the size of the bundle in bytes.
set -eu
npx --no-install esbuild src/main.js --bundle --minify --outfile=bundle.js >&2
printf '{"valid": true, "score": %d}\n' "$(wc -c <bundle.js)"

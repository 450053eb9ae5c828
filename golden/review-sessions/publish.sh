#!/bin/sh
# Builds the book with the new chapter in it.
set -eu
mdbook build --dest-dir site >&2
echo '{"site": "site/index.html"}'

#!/bin/sh
# Usage: check-links.sh FILE. Every relative link of a document points at a file of the repository.
set -eu
missing=0
for target in $(grep -o '](\.\{0,2\}/\{0,1\}[A-Za-z][^)#:]*)' "$1" | tr -d '()]'); do
    if [ ! -e "$target" ]; then
        echo "$1 links to $target, which does not exist" >&2
        missing=$((missing + 1))
    fi
done
echo "{\"missing\": $missing}"
[ "$missing" -eq 0 ]

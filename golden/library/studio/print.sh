#!/bin/sh
# Prints the poster in a size and a colour.
exec ./tools/print --size "$1" --colour "$2" >&2

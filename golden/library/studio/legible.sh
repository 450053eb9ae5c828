#!/bin/sh
# Prints one JSON object with a score: how legible the treatment is.
exec ./tools/legible --json "$CRUCIBLE_INPUTS_FILE"

#!/bin/sh
# The gate: its last line says whether the candidate can be scored, and how good it is.
lines=0
if [ -f answer.txt ]; then
    lines=$(grep -c '' answer.txt)
fi
echo "{\"valid\": true, \"score\": $((lines)), \"note\": \"$((lines)) lines\"}"

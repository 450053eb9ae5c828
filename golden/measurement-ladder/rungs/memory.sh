#!/bin/sh
# Peak memory of the quick benchmark stays below 512 MiB.
set -eu
peak=$(./build/bench --queries 40 --report peak-kib)
if [ "$peak" -le 524288 ]; then
    echo "{\"pass\": true, \"peak_kib\": $peak}"
else
    echo "{\"pass\": false, \"peak_kib\": $peak}"
fi

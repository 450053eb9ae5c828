#!/bin/sh
# Prints one JSON object with a score.
exec make -s size

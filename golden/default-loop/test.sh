#!/bin/sh
# The unit tests; what they print is the agent's first hint.
set -eu
python3 -m pytest --quiet --maxfail 5 >&2
echo '{"pass": true}'

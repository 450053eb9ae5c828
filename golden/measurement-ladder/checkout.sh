#!/bin/sh
# Usage: checkout.sh DIRECTORY. A shallow clone; the history of this repository is large.
set -eu
git clone --quiet --depth 1 --branch release-4 https://git.example.com/db/planner.git "$1"

#!/bin/sh
# Lays the posters side by side, best first, on one sheet for the client.
set -eu
order=$(jq --raw-output '.curate.order[]' "$CRUCIBLE_INPUTS_FILE")
set --
for name in $order; do
    rsvg-convert --width 1000 --output "posters/$name.png" "posters/$name.svg"
    set -- "$@" "posters/$name.png"
done
montage "$@" -tile x1 -geometry +40+40 contact-sheet.png
jq --null-input --compact-output --args '{sheet: "contact-sheet.png", posters: $ARGS.positional}' "$@"

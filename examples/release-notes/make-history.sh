#!/bin/sh
# Makes a repository with two releases, the same commits every time.
set -eu
rm -rf "$1"
git init -q -b main "$1"
cd "$1"
commit() {
    echo "$1" >>history.txt
    git add -A
    GIT_AUTHOR_DATE="@$n +0000" GIT_COMMITTER_DATE="@$n +0000" \
        git -c user.name=Ada -c user.email=ada@example.com -c commit.gpgSign=false commit -q -m "$1"
    n=$((n + 60))
}
n=1700000000
commit "parser: read numbers with a point"
git tag v1
commit "parser: say where a string ends"
commit "cli: --quiet"
commit "docs: a page on errors"
commit "cli: exit code 2 for wrong usage"
git tag v2

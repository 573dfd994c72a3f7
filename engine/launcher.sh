#!/bin/sh
# SWI-Prolog of this package. Of another SWI-Prolog's settings none must reach it: they name that one's files.
here=${0%/*}
[ "$here" != "$0" ] || here=.
unset SWI_HOME_DIR SWIPL
for program in "$here"/../home/bin/*/swipl; do :; done
exec "$program" "$@"

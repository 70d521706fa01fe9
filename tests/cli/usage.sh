#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage.sh: what wrong command lines get, in full: usage.stderr.exact has each command, its answer and its exit status. Nothing goes
# to standard output. Then the form of help.
set -eu
. tests/lib/lib.sh

commands() {
    local line status
    while read -r line; do
        echo "\$ nojit $line" >&2
        status=0
        "$BUILD/nojit" $line || status=$?
        echo "exit status $status" >&2
    done
}

# An unknown name, a missing value or argument, a value that is none; several faults have a line each.
exact commands <<'END'
distil
quantize
convert
help trin
eval x
init --out none
init --preset nojit-tiny
init --preset nojit-tinny --out none
init --preset tiny --out none
init
hlep
tokenize --model none --data none
eval --data none
eval --model none
export --type q3_k
distill --student none --data none --out none
distill --student none
train --learning-rat 1
train --teacher x
train --lr
train --lr abc
train --lr nan
train --learning_rate abc
train --steps 1.5
train --batch-size 0
eval --batch-size auto
distill --beta 1.5
distill --beta 0.99999999999
train --lr-schedule step
train --packing tight
distill --student-dtype int8
distill --teacher-dtype int4
train --lr abc --stpes 1 --optim sgd
END
blank=$(for c in distill train eval generate tokenize merge init models plan doctor report version; do "$BUILD/nojit" help "$c" | grep -n ' $' || true; done)
if [ -z "$blank" ]; then ok "help has no trailing blanks"; else not_ok "help has no trailing blanks" "$blank"; fi
twice=$(for c in distill train eval generate tokenize merge init models plan doctor report version; do "$BUILD/nojit" help "$c" | grep -E '^[A-Z][^.]*:$' | sort | uniq -d; done)
ok_if "no heading stands twice in a command's help" "$twice" [ -z "$twice" ]
finish

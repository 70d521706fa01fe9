#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bench_start.sh: bench/start.sh on the CPU with small models: what it measures adds up; a row that fails is said.
set -eu
. tests/lib/lib.sh
export WORK=$scratch/work DEVICE=cpu RUNS=2 PAIR='nojit-tiny nojit-tiny' PAIR7='nojit-small nojit-tiny'
mkdir -p "$WORK/text"
head -c 20000 LICENSE >"$WORK/text/text.txt"
number_of() { awk -v row="$1" -v n="$2" '$1 == row { print $n }' "$scratch/log"; } # ROW COLUMN
holds() { awk "BEGIN { exit !($1) }"; }

got=0
ROWS='distill:2x32 big:2x32' bench/start.sh --seed 3 >"$scratch/log" 2>&1 || got=$?
ok_if "start.sh ends with 0 where all rows ran" "$(tail -n 5 "$scratch/log")" [ "$got" = 0 ]
for r in distill:2x32 big:2x32; do
    sum="$(number_of $r 4) + $(number_of $r 5) + $(number_of $r 6) - $(number_of $r 3)"
    ok_if "loading, step and the rest of $r add up to the first step" "$sum" holds "($sum) ^ 2 < 0.02 ^ 2"
    ok_if "start.sh gives the rates of $r" "$(grep "^$r" "$scratch/log")" holds "$(number_of $r 7) > 0 && $(number_of $r 8) >= 0 && $(number_of $r 9) >= 0"
done
bytes=$(cat "$WORK/nojit-small-2/model.safetensors" "$WORK/nojit-tiny-1/model.safetensors" | wc -c)
ok_if "start.sh gives the bytes of both models" "$(number_of big:2x32 2)" holds "($(number_of big:2x32 2) - $bytes * 1e-9) ^ 2 < 0.01 ^ 2"

got=0
ROWS='distill:2x9999999 distill:2x32' KEEP=no bench/start.sh >"$scratch/log" 2>&1 || got=$?
ok_if "start.sh says which row failed" "$(cat "$scratch/log")" grep -q 'FAILED: distill:2x9999999: .*must lie between' "$scratch/log"
ok_if "start.sh ends with 1 where a row failed" "$got" [ "$got" = 1 ]
ok_if "start.sh goes on with the other rows where one failed" "$(cat "$scratch/log")" [ -n "$(number_of distill:2x32 3)" ]
ok_if "start.sh removes models that no later row needs" "$(ls "$WORK")" [ ! -e "$WORK/nojit-tiny-1" ]
refuses "start.sh refuses RUNS of 0" 2 'RUNS=0: give a number from 1 on' env RUNS=0 bench/start.sh
refuses "start.sh refuses a row of no kind" 2 'ROWS: eval:2x32 is not' env ROWS=eval:2x32 bench/start.sh
finish

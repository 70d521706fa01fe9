#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bench_defaults.sh: bench/defaults.sh on the CPU with small models: it goes through its rounds, goes on where it was ended,
# compares each setting at the learning rate that was best for it, and ranks by the mean over pairs.
set -eu
. tests/lib/lib.sh
export WORK=$scratch/work DEVICE=cpu PAIRS='nojit-demo-teacher:nojit-tiny nojit-demo-teacher:0,2' RATES='1e-3 1e-2' LAYER_RATES='1e-3 1e-2' \
    TEMPERATURES='1 2' RATIOS='0.5 1' BETAS=1 SEEDS='1 2' KEEP=1 ALWAYS='2,0.5,0' TEACHER_STEPS=20 STEPS=6 BATCH=2 SEQ=32
results=$WORK/results.tsv
check() { # NAME CONDITION...
    local name=$1
    shift
    if "$@"; then ok "$name"; else not_ok "$name" "$(tail -n 25 "$scratch/log")"; fi
}
refuses "defaults.sh refuses a Python without tokenizers" 2 'PYTHON=false does not import tokenizers' env PYTHON=false bench/defaults.sh
refuses "defaults.sh refuses a GPU that is not there" 2 '^defaults.sh: .*doctor' env PYTHON=true DEVICE=cuda NOJIT_CUBLASLT=/absent bench/defaults.sh
if [ -e "$WORK" ]; then not_ok "a refused defaults.sh makes nothing" "$(ls "$WORK")"; else ok "a refused defaults.sh makes nothing"; fi

mkdir -p "$WORK"
"$BUILD/nojit" init --preset nojit-tiny --out "$scratch/tiny" >"$scratch/log"
head -c 60000 LICENSE >"$scratch/train.txt"
head -c 3000 CONTRIBUTING.md >"$scratch/held-out.txt"
for side in train held-out; do
    "$BUILD/nojit" tokenize --model "$scratch/tiny" --data "$scratch/$side.txt" --out "$WORK/$side.bin" >"$scratch/log" 2>&1
done
bench/defaults.sh >"$scratch/log" 2>&1 && got=0 || got=$?
check "defaults.sh goes through all rounds" [ "$got" = 0 ]
# The grid; the other rate of the winner and of ALWAYS; two of the other divergence; the other seed of two or, if that is best, three.
check "defaults.sh tries every temperature and ratio for every pair" [ "$(awk '$2 ~ /,0$/ && $3 == "1e-3" && $4 == 1' "$results" | wc -l)" = 8 ]
check "defaults.sh tries the other divergence at every rate" [ "$(awk '$2 ~ /,1$/ && $4 == 1' "$results" | wc -l)" = 4 ]
check "defaults.sh runs each setting once" [ -z "$(cut -f1-4 "$results" | sort | uniq -d)" ]
check "each run of defaults.sh has a loss, a divergence and an agreement" [ "$(grep -cE '(	[0-9.]+(e-[0-9]+)?){3}$' "$results")" = "$(wc -l <"$results")" ]
check "defaults.sh tries the other seed at the best rate" [ "$(awk -F'\t' '
    $4 == 1 && (!(($1, $2) in low) || $5 < low[$1, $2]) { low[$1, $2] = $5; rate[$1, $2] = $3 }
    $4 == 2 { n++; bad += $3 != rate[$1, $2] } END { print (n >= 2 && !bad) }' "$results")" = 1 ]
tables() { sed -n '/^nojit-demo-teacher:nojit-tiny$/,/^ *[0-9]* s  results/p' "$scratch/log" | sed '$d'; }
tables >"$scratch/whole"
cp "$results" "$scratch/results.tsv"

head -n 3 "$scratch/results.tsv" >"$results"
LIMIT_S=0 bench/defaults.sh >"$scratch/log" 2>&1 && got=0 || got=$?
check "defaults.sh begins no run after LIMIT_S" [ "$got:$(wc -l <"$results")" = 0:3 ]
check "defaults.sh says which runs LIMIT_S left out" grep -q '^ended after LIMIT_S=0 s: [0-9]* runs were left out' "$scratch/log"
bench/defaults.sh >"$scratch/log" 2>&1 && got=0 || got=$?
tables >"$scratch/again"
check "defaults.sh that goes on ends at the same results" cmp "$results" "$scratch/results.tsv"
check "defaults.sh that goes on prints the same tables" cmp "$scratch/whole" "$scratch/again"

# Results with a known order: rates are chosen by the first seed, settings by the mean over pairs, with what every pair has.
a=${PAIRS% *} b=${PAIRS#* }
row() { printf '%s\t%s\t%s\t%s\t%s\t%s\t0.5\n' "$@"; }
{
    row "$a" 1,0.5,0 1e-3 1 2.0 0.5
    row "$a" 1,0.5,0 1e-2 1 1.8 0.4
    row "$a" 1,0.5,0 1e-2 2 2.2 0.6
    row "$a" 2,0.5,0 1e-3 1 1.9 0.3
    row "$b" 1,0.5,0 1e-3 1 3.0 0.9
    row "$b" 2,0.5,0 1e-3 1 3.2 0.9
    row "$a" 4,1,0 1e-3 1 1.0 0.1
} >"$results"
LIMIT_S=0 bench/defaults.sh >"$scratch/log" 2>&1 && got=0 || got=$?
tables | tr -s ' ' >"$scratch/known"
check "defaults.sh prints the mean over seeds at the best rate" grep -q '^1,0.5,0 1e-2 2 2.0000 0.2828 0.5000 ' "$scratch/known"
check "defaults.sh prints the best settings first" [ "$(grep -nE '^4,1,0 |^2,0.5,0 1e-3 1 1.9|^1,0.5,0 1e-2' "$scratch/known" | cut -d: -f2 | cut -d' ' -f1 | paste -sd' ')" = '4,1,0 2,0.5,0 1,0.5,0' ]
check "defaults.sh ranks settings over all pairs" [ "$(sed -n '/^all pairs/,$p' "$scratch/known" | sed -n '3,4p' | paste -sd';')" = '1,0.5,0 3 0.5000 0.2000;2,0.5,0 2 0.5500 0.1000' ]
finish

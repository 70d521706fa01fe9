#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bench_objectives.sh: bench/objectives.sh on the CPU with small models: it measures each objective once for each seed, from the same weights,
# continues where it ended, and compares seed by seed.
set -eu
. tests/lib/lib.sh
export WORK=$scratch/work DEVICE=cpu FOLDERS='docs base' TEACHER='' STUDENT='' TEACHER_STEPS=6 STEPS=3 BATCH=2 SEQ=64 PROMPTS=4 WRITTEN=16 \
    SEEDS='1 2' OBJECTIVES='forward=--beta 0;again=--beta 1;reverse=--beta 1' AGAINST=again
results=$WORK/results.tsv
check() { # NAME CONDITION...
    local name=$1
    shift
    if "$@"; then ok "$name"; else not_ok "$name" "$(tail -n 25 "$scratch/log")"; fi
}
refuses "objectives.sh refuses a GPU that is not there" 2 '^objectives.sh: .*doctor' env DEVICE=cuda NOJIT_CUBLASLT=/absent bench/objectives.sh
if [ -e "$WORK" ]; then not_ok "a refused objectives.sh makes nothing" "$(ls "$WORK")"; else ok "a refused objectives.sh makes nothing"; fi

bench/objectives.sh >"$scratch/log" 2>&1 && got=0 || got=$?
check "objectives.sh runs every objective" [ "$got" = 0 ]
check "objectives.sh measures each objective once for each seed" [ "$(cut -f1,2 "$results" | sort -u | wc -l) $(wc -l <"$results")" = "6 6" ]
check "each run of objectives.sh has six numbers" [ "$(grep -cE '(	[0-9.]+(e-[0-9]+)?){6}$' "$results")" = 6 ]
check "objectives.sh starts all objectives of a seed from the same weights" \
    [ "$(sed -n 's/^again	//p' "$results")" = "$(sed -n 's/^reverse	//p' "$results")" ]
check "objectives.sh finds no difference where there is none" grep -qE '^reverse +(  \+0\.0000 \+- 0\.0000 \(0\)){6}$' "$scratch/log"
sed -i '$d' "$results"
bench/objectives.sh >"$scratch/log" 2>&1 && got=0 || got=$?
check "objectives.sh continues where it ended" [ "$got $(grep -c '(.* s)$' "$scratch/log") $(wc -l <"$results")" = "0 1 6" ]
finish

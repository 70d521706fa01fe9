#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# thread_limit.sh: a run on the CPU ends, with the same losses, where OMP_THREAD_LIMIT allows fewer threads than OpenMP would start:
# OpenBLAS would wait for the others for ever.
set -eu
. tests/lib/lib.sh
needs adamw.f32
nojit=$BUILD/nojit
"$nojit" init --preset nojit-tiny --out "$scratch/model" >/dev/null
head -c 3000 LICENSE >"$scratch/text.txt"
losses() { sed -E 's/.*"loss": ([^,]+),.*/\1/' "$scratch/$1/metrics.jsonl"; }
train() { # OUT SETTING=VALUE...
    local out=$1
    shift
    env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT "$@" timeout -s KILL 30 "$nojit" train --student "$scratch/model" --data "$scratch/text.txt" \
        --seq-len 128 --batch-size 4 --steps 3 --device cpu --out "$scratch/$out" >"$scratch/log" 2>&1
}
train free OMP_NUM_THREADS=1
for limit in 1 2; do
    if train "limit-$limit" OMP_NUM_THREADS=4 OMP_THREAD_LIMIT=$limit && [ "$(losses "limit-$limit")" = "$(losses free)" ]; then
        ok "a run with OMP_THREAD_LIMIT=$limit ends with the same losses"
    else
        not_ok "a run with OMP_THREAD_LIMIT=$limit ends with the same losses" "exit status $?: $(tail -n 1 "$scratch/log")"
    fi
done
finish

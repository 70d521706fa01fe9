#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_cached.sh: on simulated GPUs, in bfloat16 and float16, a cached teacher teaches bit for bit as itself, in micro-batches of another
# size than those in which its hidden states were computed.
set -eu
. tests/lib/lib.sh
. tests/lib/simulated.sh
head -c 700 LICENSE >"$d/text.txt"
"$nojit" init --preset nojit-tiny --out "$d/student" >"$scratch/out"
"$nojit" init --preset nojit-tiny --seed 2 --out "$d/teacher" >"$scratch/out"
texts=(--data "$d/text.txt" --seq-len 32 --device cuda --gemm-table none)
distill() { # TEACHER
    rm -rf "$d/run"
    "$nojit" distill --teacher "$1" --student "$d/student" "${texts[@]}" --batch-size 3 --grad-accum 2 --seed 7 --steps 2 --lr 1e-3 \
        --out "$d/run" >"$scratch/out" 2>&1 || tail -n 1 "$scratch/out" >&2
    sed -E 's/.*"loss": ([^,]+),.*"grad_norm": ([^,]+),.*/\1 \2/' "$d/run/metrics.jsonl"
    cksum <"$d/run/model.safetensors"
}
for gpu in h100:90 rtx4090:89 t4:75; do
    [[ $held == *" sm_${gpu#*:}"* ]] || continue
    export NOJIT_SIM_DEVICE=${gpu%:*}
    rm -rf "$d/cache"
    succeeds "a cache is made on ${gpu%:*}" "$nojit" cache --teacher "$d/teacher" "${texts[@]}" --batch-size 4 --out "$d/cache"
    ok_if "making a cache on ${gpu%:*} leaves nothing behind" "$(counted)" clean
    want=$(distill "$d/teacher")
    got=$(distill "$d/cache")
    ok_if "a cached teacher teaches bit for bit as itself" "${gpu%:*}: got '$got', expected '$want'" [ "$got" = "$want" ]
    wanted=BF16
    if [ "${gpu%:*}" = t4 ]; then wanted=F16; fi
    ok_if "a cache made on ${gpu%:*} has the type of its runs" "$(grep dtype "$d/cache/cache.json")" grep -q "\"$wanted\"" "$d/cache/cache.json"
done
finish

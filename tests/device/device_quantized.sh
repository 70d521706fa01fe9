#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_quantized.sh: on simulated GPUs, a Q4_K_M file teaches what a folder with its expanded weights does, to the last bit, and needs less
# memory.
set -eu
. tests/lib/lib.sh
needs sm_89 dequantize.lp.type10
. tests/lib/simulated.sh
head -c 900 /usr/share/common-licenses/LGPL-3 >"$d/text.txt"
"$nojit" init --preset nojit-tiny-llama --hidden-size 256 --dtype float32 --seed 3 --out "$d/model" >"$scratch/out"
"$nojit" init --preset nojit-tiny --seed 4 --out "$d/student" >"$scratch/out"
"$nojit" export --model "$d/model" --out "$d/model.gguf" --type q4_k_m >"$scratch/out" 2>&1
"$nojit" export --model "$d/model.gguf" --out "$d/expanded" --type hf >"$scratch/out" 2>&1
distill() { # GPU TEACHER
    rm -rf "$d/run"
    NOJIT_SIM_DEVICE=$1 "$nojit" distill --teacher "$2" --student "$d/student" --data "$d/text.txt" --seq-len 32 --batch-size 2 --grad-accum 2 \
        --steps 2 --lr 1e-3 --device cuda --dtype bfloat16 --gemm-table none --out "$d/run" >"$scratch/out" 2>&1 || tail -n 1 "$scratch/out" >&2
    sed -E 's/.*"loss": ([^,]+),.*"grad_norm": ([^,]+),.*/\1 \2/' "$d/run/metrics.jsonl"
}
for gpu in rtx4090 gb10; do
    got=$(distill $gpu "$d/model.gguf")
    types=$(sed -nE 's/.*"teacher_dtype": "([^"]+)".*/\1/p' "$d/run/receipt.json")
    want=$(distill $gpu "$d/expanded")
    if [ -n "$got" ] && [ "$got" = "$want" ]; then ok "a Q4_K_M teacher teaches as its expanded weights do"; else not_ok "a Q4_K_M teacher teaches as its expanded weights do" "$gpu: got '$got', expected '$want'"; fi
    if [[ $types == *Q4_K* ]]; then ok "the receipt names Q4_K for a Q4_K_M teacher"; else not_ok "the receipt names Q4_K for a Q4_K_M teacher" "$types"; fi
done
finish

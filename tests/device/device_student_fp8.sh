#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_student_fp8.sh: a student with FP8 GEMMs on simulated GPUs: on an H100 near the same in 16 bits, with and without CUDA graphs the same;
# refused where cuBLASLt has none. GPUs whose GEMMs take no scale per row: device_fp8_scales.sh.
set -eu
. tests/lib/lib.sh
needs sm_75 sm_90a glu_bwd_quantize.lp.act0
. tests/lib/simulated.sh
head -c 3000 /usr/share/common-licenses/LGPL-3 >"$d/text.txt"
# One layer whose gate and up have 2^22 elements: those that are multiplied so on a GPU. Then a head with as many and no such layer; 8,200 is no
# multiple of 16.
created() { "$nojit" init --preset nojit-tiny --hidden-size 512 --num-layers 1 --heads 2 --kv-heads 1 --head-dim 64 --out "$d/$1" "${@:2}" >"$scratch/out"; }
created model --intermediate-size 4096
created wide --intermediate-size 512 --vocab-size 8200
created long --hidden-size 128 --intermediate-size 128 --vocab-size 32776
created teacher --hidden-size 128 --intermediate-size 128 --vocab-size 32776 --seed 5
trained() { # OUT OPTION...
    NOJIT_SIM_DEVICE=h100 "$nojit" "${command:-train}" --student "$d/${model:-model}" --data "$d/text.txt" --tokenizer bytes --device cuda --batch-size 1 \
        --seq-len 32 --steps 2 --lr 1e-3 --gemm-table none --out "$d/$1" "${@:2}" >"$scratch/out" 2>&1 || tail -n 1 "$scratch/out" >&2
}
loss() { sed -nE 's/.*"loss": ([0-9.e-]+).*/\1/p' "$d/$1/metrics.jsonl" | tail -n 1; }
near() { # NAME OUT OTHER
    if awk -v a="$(loss "$2")" -v b="$(loss "$3")" 'BEGIN { exit !(a > 0 && a != b && a < b + 0.02 && b < a + 0.02) }'; then
        ok "$1"
    else
        not_ok "$1" "$(loss "$2") and $(loss "$3")"
    fi
}
trained plain
trained f8 --student-dtype fp8
if grep -q "student's layers: gate_up$" "$scratch/out" && clean; then ok "gate and up projections are in FP8 where they are large"; else not_ok "gate and up projections are in FP8 where they are large" "$(cat "$scratch/out"); $(counted)"; fi
near "the loss with FP8 GEMMs is near that in 16 bits, and another" f8 plain
NOJIT_GRAPH=0 trained eager --student-dtype fp8
if cmp -s "$d/f8/model.safetensors" "$d/eager/model.safetensors"; then ok "FP8 without CUDA graphs gives the same weights"; else not_ok "FP8 without CUDA graphs gives the same weights" "$(cat "$scratch/out")"; fi
model=wide trained head_plain
model=wide trained head --student-dtype fp8
if grep -q "FP8 GEMMs in the LM head: logits$" "$scratch/out" && clean; then ok "logits are in FP8 where the vocabulary is large"; else not_ok "logits are in FP8 where the vocabulary is large" "$(cat "$scratch/out"); $(counted)"; fi
near "the loss with FP8 logits is near that in 16 bits, and another" head head_plain
# 160 rows of the teacher's logits hold the operands of the head's gradients.
pair=(--teacher "$d/teacher" --batch-size 1 --seq-len 160)
command=distill model=long trained long_plain "${pair[@]}"
command=distill model=long trained long_f8 "${pair[@]}" --student-dtype fp8
if grep -q "FP8 GEMMs in the LM head: logits and gradients$" "$scratch/out" && clean; then ok "gradients of the LM head are in FP8 where they fit"; else not_ok "gradients of the LM head are in FP8 where they fit" "$(cat "$scratch/out"); $(counted)"; fi
near "with them the loss is near, and another, too" long_f8 long_plain
NOJIT_SIM_DEVICE=t4 refuses "--student-dtype fp8 on a GPU without FP8 GEMMs is refused" 2 'from sm_89 on, and .* is sm_75; leave --student-dtype out' \
    "$nojit" train --student "$d/model" --data "$d/text.txt" --tokenizer bytes --device cuda --out "$d/x" --student-dtype fp8
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_fp8_scales.sh: FP8 GEMMs work on simulated GPUs whose cuBLASLt takes no scale per row, with one for all rows on sm_89 and
# blocks of 32 columns on sm_120 and sm_121: student and teacher in FP8 are near the same in 16 bits.
set -eu
. tests/lib/lib.sh
needs sm_89 sm_120 sm_121 glu_bwd_quantize.lp.act0
. tests/lib/simulated.sh
head -c 700 /usr/share/common-licenses/LGPL-3 >"$d/text.txt"
created() { "$nojit" init --preset nojit-tiny --num-layers 1 --out "$d/$1" "${@:2}" >"$scratch/out"; }
# Gate and up, and the head, have 2^22 elements: those that are multiplied so on a GPU.
wide=(--hidden-size 128 --heads 1 --kv-heads 1 --head-dim 64)
created student "${wide[@]}" --intermediate-size 16384 --vocab-size 32768
created teacher "${wide[@]}" --intermediate-size 128 --vocab-size 32768 --seed 5
created narrow "${wide[@]}" --intermediate-size 16384
created small "${wide[@]}" --intermediate-size 256 --seed 5
created odd --hidden-size 528 --heads 2 --kv-heads 1 --head-dim 64 --intermediate-size 4096
distilled() { # OUT TEACHER STUDENT OPTION...
    NOJIT_SIM_DEVICE=$gpu "$nojit" distill --teacher "$d/$2" --student "$d/$3" --data "$d/text.txt" --tokenizer bytes --device cuda --batch-size 1 --seq-len 128 \
        --lr 1e-3 --gemm-table none --out "$d/$1" "${@:4}" >"$scratch/out" 2>&1 || tail -n 1 "$scratch/out" >&2
}
loss() { sed -nE 's/.*"loss": ([0-9.e-]+).*/\1/p' "$d/$1/metrics.jsonl" | tail -n 1; }
near() { # NAME OUT OTHER DISTANCE
    ok_if "$1" "$(loss "$2") and $(loss "$3")" awk -v a="$(loss "$2")" -v b="$(loss "$3")" -v e="$4" 'BEGIN { exit !(a > 0 && a != b && a < b + e && b < a + e) }'
}
gpu=rtx4090
distilled plain small narrow --steps 2
distilled wide-plain teacher student --seq-len 160 --steps 1
for gpu in rtx4090 rtx5090 gb10; do
    echo "on $gpu:"
    NOJIT_SIM_DEVICE=$gpu "$BUILD/tests/test_fp8_scales" >"$d/log" 2>&1 && status=0 || status=$?
    ok_if "a student with FP8 GEMMs runs where scales are not per row" "$(grep -m 1 -i error "$d/log")" [ "$status" = 0 ]
    distilled "$gpu" small narrow --steps 2 --student-dtype fp8 --teacher-dtype fp8
    ok_if "with both models in FP8 no module is loaded after start-up" "$(counted)" clean
    near "losses with both models in FP8 are near those in 16 bits, and others" "$gpu" plain 0.002
done
for set in "rtx4090 logits and gradients" "rtx5090 logits"; do
    gpu=${set%% *}
    distilled "wide-$gpu" teacher student --seq-len 160 --steps 1 --student-dtype fp8
    ok_if "the GEMMs of the LM head that are in FP8 are said" "$(cat "$scratch/out")" grep -q "layers: gate_up; in the LM head: ${set#* }$" "$scratch/out"
    near "the loss with an LM head in FP8 is near that in 16 bits, and another" "wide-$gpu" wide-plain 0.01
done
NOJIT_SIM_DEVICE=rtx5090 refuses "FP8 for a width that is not whole blocks is refused" 1 'multiples of 32, and this student has one of .* x 528; leave --student-dtype out' \
    "$nojit" train --student "$d/odd" --data "$d/text.txt" --device cuda --out "$d/x" --batch-size 1 --seq-len 32 --student-dtype fp8
finish

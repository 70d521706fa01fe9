#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_gemm_check.sh: runs with a cuBLASLt that lies or refuses, on a simulated GPU: an algorithm that lies changes no weight and is
# counted; GEMMs that no FP8 algorithm does run in 16 bits, are named, and leave the others in FP8; what is reported of a version is said.
set -eu
. tests/lib/lib.sh
needs sm_120 glu_bwd_quantize.lp.act0
. tests/lib/simulated.sh
export NOJIT_SIM_DEVICE=rtx5090
head -c 700 /usr/share/common-licenses/LGPL-3 >"$d/text.txt"
created() { "$nojit" init --preset nojit-tiny --num-layers 1 --hidden-size 128 --heads 1 --kv-heads 1 --head-dim 64 --out "$d/$1" "${@:2}" >"$scratch/out"; }
created small --intermediate-size 384
created teacher --intermediate-size 256 --seed 5
# Gate and up, and the head, have 2^22 elements or more: those that a student multiplies in FP8. No two shapes are alike.
created student --intermediate-size 16384 --vocab-size 32784
run() { # COMMAND OUT SETTING=VALUE... -- OPTION...
    local command=$1 out=$2 settings=()
    shift 2
    while [ "$1" != -- ]; do
        settings+=("$1")
        shift
    done
    shift
    env "${settings[@]}" "$nojit" "$command" --data "$d/text.txt" --tokenizer bytes --device cuda --batch-size 1 --seq-len 32 --steps 1 --lr 1e-3 \
        --out "$d/$out" "$@" >"$scratch/out" 2>&1
}
distilled() { run distill "$@" --teacher "$d/teacher" --student "$d/small"; }
trained() { run train "$@" --student "$d/student" --gemm-table none; }
loss() { sed -nE 's/.*"loss": ([0-9.e-]+).*/\1/p' "$d/$1/metrics.jsonl" | tail -n 1; }
near() { # OUT OTHER: near each other, and not the same
    awk -v a="$(loss "$1")" -v b="$(loss "$2")" 'BEGIN { exit !(a > 0 && a != b && a < b + 0.01 && b < a + 0.01) }'
}
receipt() { grep -qE -- "$2" "$d/$1/receipt.json"; }
said() { grep -qE -- "$1" "$scratch/out"; }
same() { cmp -s "$d"/{"$1","$2"}/model.safetensors; }

distilled plain -- --gemm-table none || cat "$scratch/out"
distilled lied NOJIT_SIM_LT_WRONG=2:64 -- --gemm-table "$d/table" || cat "$scratch/out"
lied() {
    said 'GEMM N.* 1 of 3 algorithms gave a wrong result, please report it \(algorithm 2: element' && receipt lied '"wrong": [1-9]' && receipt plain '"wrong": 0' &&
        same plain lied && clean
}
ok_if "an algorithm that lies changes no weight, and the receipt counts it" "$(head -n 5 "$scratch/out"); $(counted)" lied

# left_out OUT WHOSE GEMMS: what is said of GEMMs that are refused in FP8, and what the run came to.
left_out() {
    said "FP8: cuBLASLt 13.1.0 has no right algorithm on Simulated NVIDIA GeForce RTX 5090 for these GEMMs of the $2, which run in 16 bits: $3\$" &&
        receipt "$1" "\"$2_fp8_refused\": \"$3\"" && clean
}
distilled f8 -- --gemm-table none --teacher-dtype fp8 || cat "$scratch/out"
teacher() { left_out "$1" teacher "$1" && near "$1" plain && near "$1" f8; }
for shape in down:128:256 qkv:192:128 o:128:64 gate_up:512:128 logits:272:128; do
    name="so it is of the teacher's ${shape%%:*}"
    [ "${shape%%:*}" != down ] || name="a teacher's GEMM that is refused in FP8 runs in 16 bits, the others in FP8"
    distilled "${shape%%:*}" "NOJIT_SIM_LT_NO_F8=0:${shape#*:}" -- --gemm-table none --teacher-dtype fp8 || true
    ok_if "$name" "$(cat "$scratch/out"); losses $(loss "${shape%%:*}") $(loss plain) $(loss f8); $(counted)" teacher "${shape%%:*}"
done

trained large-plain -- || cat "$scratch/out"
trained large-f8 -- --student-dtype fp8 || cat "$scratch/out"
trained large-gate_up NOJIT_SIM_LT_NO_F8=0:32768:128 -- --student-dtype fp8 || true
student() {
    left_out "large-$1" student gate_up && said "FP8 GEMMs in the LM head: logits\$" && near "large-$1" large-plain && near "large-$1" large-f8
}
ok_if "a student's GEMM that is refused in FP8 runs in 16 bits, the others in FP8" "$(cat "$scratch/out"); $(counted)" student gate_up
trained large-dx NOJIT_SIM_LT_NO_F8=32:128:32768 -- --student-dtype fp8 || true
dx() { left_out large-dx student gate_up && same large-dx large-gate_up; }
ok_if "where a gradient's GEMM is refused in FP8, that of the forward pass is in 16 bits, too" "$(cat "$scratch/out"); $(counted)" dx

# none WHOSE RUN: of its GEMMs none is done in FP8.
none() {
    local status=0
    "$2" "none-$1" NOJIT_SIM_LT_NO_F8=0:0:0 -- "--$1-dtype" fp8 || status=$?
    [ $status = 1 ] && said "--$1-dtype fp8: cuBLASLt has no FP8 algorithm for any of this $1's GEMMs on this GPU; leave --$1-dtype out" &&
        [ ! -e "$d/none-$1/receipt.json" ]
}
both() { none student trained && none teacher distilled; }
ok_if "a student and a teacher of whose GEMMs none is done in FP8 are refused" "$(cat "$scratch/out")" both

reported='cuBLASLt 13.5.1 on sm_120: reported: errors of memory on GeForce RTX 50'
reports() {
    NOJIT_SIM_LT_VERSION=130501 "$nojit" doctor >"$scratch/doctor" && grep -q "^reports   $reported" "$scratch/doctor" &&
        NOJIT_SIM_LT_VERSION=130501 "$nojit" doctor --json | grep -q "\"gemm_reports\": \"$reported" && ! "$nojit" doctor | grep -q '^reports' &&
        distilled reported NOJIT_SIM_LT_VERSION=130501 -- --gemm-table none && said "$reported" && receipt reported "\"gemm_reports\": \"$reported"
}
touch "$scratch/doctor"
ok_if "doctor, a run and its receipt say what is reported of the version of cuBLASLt" "$(cat "$scratch/doctor" "$scratch/out")" reports
finish

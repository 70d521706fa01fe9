#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_gemm_check.sh: runs with a cuBLASLt that lies or refuses, on simulated GPUs: an algorithm that lies changes no weight and is
# counted; GEMMs that no FP8 algorithm does run in 16 bits, are named, and leave the others in FP8; what is reported of a version is said.
set -eu
. tests/lib/lib.sh
needs sm_120 glu_bwd_quantize.lp.act0
. tests/lib/simulated.sh
export NOJIT_SIM_DEVICE=rtx5090
head -c 700 /usr/share/common-licenses/LGPL-3 >"$d/text.txt"
created() { "$nojit" init --preset nojit-tiny --num-layers 1 --hidden-size 128 --heads 1 --kv-heads 1 --head-dim 64 --out "$d/$1" "${@:2}" >"$scratch/out"; }
# Gate and up, and the head, have 2^22 elements or more: those that a student multiplies in FP8. No two shapes are alike.
created student --intermediate-size 16384 --vocab-size 32784
created teacher --intermediate-size 256 --vocab-size 32784 --seed 5
distilled() { # OUT SETTING=VALUE... -- OPTION...
    local out=$1 settings=()
    shift
    while [ "$1" != -- ]; do
        settings+=("$1")
        shift
    done
    shift
    env "${settings[@]}" "$nojit" distill --teacher "$d/teacher" --student "$d/student" --data "$d/text.txt" --tokenizer bytes --device cuda --batch-size 1 \
        --seq-len 32 --steps 1 --lr 1e-3 --out "$d/$out" "$@" >"$scratch/out" 2>&1
}
loss() { sed -nE 's/.*"loss": ([0-9.e-]+).*/\1/p' "$d/$1/metrics.jsonl" | tail -n 1; }
near() { # OUT OTHER: near each other, and not the same
    awk -v a="$(loss "$1")" -v b="$(loss "$2")" 'BEGIN { exit !(a > 0 && a != b && a < b + 0.01 && b < a + 0.01) }'
}
receipt() { grep -qE -- "$2" "$d/$1/receipt.json"; }
said() { grep -qE -- "$1" "$scratch/out"; }

distilled plain -- --gemm-table none || cat "$scratch/out"
distilled lied NOJIT_SIM_LT_WRONG=2:64 -- --gemm-table "$d/table" || cat "$scratch/out"
lied() {
    said 'GEMM N.* 1 of 3 algorithms gave a wrong result, please report it \(algorithm 2: element' && receipt lied '"wrong": [1-9]' && receipt plain '"wrong": 0' &&
        cmp -s "$d"/{plain,lied}/model.safetensors && clean
}
ok_if "an algorithm that lies changes no weight, and the receipt counts it" "$(head -n 5 "$scratch/out"); $(counted)" lied

# refused NAME OUT SHAPE WHOSE GEMMS STILL: what is said of those left out, and what of the student is in FP8 still.
refused() {
    distilled "$2" "NOJIT_SIM_LT_NO_F8=$3" -- --gemm-table none --student-dtype fp8 --teacher-dtype fp8 || true
    checked() {
        said "FP8: cuBLASLt 13.1.0 has no algorithm on Simulated NVIDIA GeForce RTX 5090 for these GEMMs of the $4, which run without it: $5\$" &&
            said "FP8 GEMMs $6\$" && receipt "$2" "\"$4_fp8_refused\": \"$5\"" && near "$2" plain && near "$2" f8 && clean
    }
    ok_if "$1" "$(cat "$scratch/out"); losses $(loss "$2") $(loss plain) $(loss f8); $(counted)" checked "$@"
}
distilled f8 -- --gemm-table none --student-dtype fp8 --teacher-dtype fp8 || cat "$scratch/out"
all="in each of the student's layers: gate_up; in the LM head: logits"
refused "a student's GEMM that is refused in FP8 runs in 16 bits, the others in FP8" gate_up 0:32768:128 student gate_up "in the LM head: logits"
refused "a teacher's GEMM that is refused in FP8 runs in 16 bits, the others in FP8" teacher_down 0:128:256 teacher down "$all"
for shape in qkv:192:128 o:128:64 gate_up:512:128; do
    refused "so it is of the teacher's ${shape%%:*}" "teacher_${shape%%:*}" "0:${shape#*:}" teacher "${shape%%:*}" "$all"
done
refused "so it is of the gradient of a student's input" dx 32:128:32768 student gate_up "in the LM head: logits"

# none WHOSE: of its GEMMs none is done in FP8.
none() {
    local status=0
    distilled "none-$1" NOJIT_SIM_LT_NO_F8=0:0:0 -- --gemm-table none "--$1-dtype" fp8 || status=$?
    [ $status = 1 ] && said "--$1-dtype fp8: cuBLASLt has no FP8 algorithm for any of this $1's GEMMs on this GPU; leave --$1-dtype out" &&
        [ ! -e "$d/none-$1/receipt.json" ]
}
both() { none student && none teacher; }
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

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# student_dtype.sh: --student-dtype fp8 on the CPU is said, recorded, resumed, planned and, where it cannot be, refused.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive

"$nojit" init --preset nojit-tiny-llama --dtype float32 --out "$d/teacher" >/dev/null
"$nojit" init --preset nojit-tiny --seed 2 --dtype float32 --out "$d/student" >/dev/null
head -c 40000 /usr/share/common-licenses/GPL-3 >"$d/text.txt"
pair=(--teacher "$d/teacher" --student "$d/student" --seq-len 64 --batch-size 2)
distill() { "$nojit" distill "${pair[@]}" --device cpu --data "$d/text.txt" --steps 6 --lr 1e-2 "$@" >"$scratch/out" 2>&1; }
field() { sed -nE "s/.*\"$1\": \"?([^\",]+).*/\1/p" "$2" | tail -n 1; }
loss() { sed -nE 's/.*"loss": ([0-9.e-]+).*/\1/p' "$d/$1/metrics.jsonl" | tail -n 1; }

is() { # NAME GOT WANTED
    if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', expected '$3'"; fi
}

distill --student-dtype fp8 --save-every 3 --out "$d/f8"
if grep -qE "^FP8 GEMMs in each of the student's layers: qkv o gate_up down; in the LM head: logits and gradients$" "$scratch/out"; then ok "train says which GEMMs of the student are in FP8"; else not_ok "train says which GEMMs of the student are in FP8" "$(cat "$scratch/out")"; fi
distill --out "$d/plain"
if ! grep -q FP8 "$scratch/out"; then ok "without --student-dtype nothing is said of FP8"; else not_ok "without --student-dtype nothing is said of FP8" "$(cat "$scratch/out")"; fi
if awk -v a="$(loss f8)" -v b="$(loss plain)" 'BEGIN { exit !(a != b && a < b + 0.05 && b < a + 0.05) }'; then
    ok "--student-dtype fp8 gives a loss near that without it, and another"
else
    not_ok "--student-dtype fp8 gives a loss near that without it, and another" "$(loss f8) and $(loss plain)"
fi

# FLOPs of all matrices are FP8; attention's are not.
sum() { awk -v a="$(field student_flops "$d/$1/receipt.json")" -v b="$(field student_fp8_flops "$d/$1/receipt.json")" 'BEGIN { printf "%.0f", a + b }'; }
is "the receipt counts operations once with --student-dtype" "$(sum f8)" "$(sum plain)"
is "the receipt of a run without --student-dtype has no operations of FP8" "$(field student_fp8_flops "$d/plain/receipt.json")" 0
if [ "$(field student_fp8_flops "$d/f8/receipt.json")" -gt 0 ]; then ok "the receipt counts operations of FP8"; else not_ok "the receipt counts operations of FP8" "$(cat "$d/f8/receipt.json")"; fi

cp -r "$d/f8" "$d/again"
rm -r "$d/again/model.safetensors" "$d/again/checkpoint-6"
distill --student-dtype fp8 --out "$d/again" --resume auto
if cmp -s "$d/f8/model.safetensors" "$d/again/model.safetensors"; then ok "a run with --student-dtype is resumed bit for bit"; else not_ok "a run with --student-dtype is resumed bit for bit" "$(cat "$scratch/out")"; fi
rm "$d/again/model.safetensors"
refuses "resuming with another --student-dtype is refused" 2 "student-dtype" "$nojit" distill "${pair[@]}" --device cpu \
    --data "$d/text.txt" --steps 6 --lr 1e-2 --out "$d/again" --resume auto

refuses "--student-dtype for small matrices is refused" 1 "are faster without FP8; leave --student-dtype out" "$nojit" plan "${pair[@]}" --student-dtype fp8
refuses "--student-dtype with tokens that GEMMs cannot add up is refused" 1 "needs a multiple of 16 tokens per micro-batch" "$nojit" distill "${pair[@]}" --device cpu \
    --data "$d/text.txt" --steps 1 --seq-len 12 --batch-size 1 --out "$d/x" --student-dtype fp8
finish

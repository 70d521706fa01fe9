#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# teacher_dtype.sh: --teacher-dtype on the CPU is said, its divergence measured and recorded, resumed, planned, evaluated and,
# where it cannot be, refused.
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
says() { # NAME REGEX
    if grep -qE -- "$2" "$scratch/out"; then ok "$1"; else not_ok "$1" "$(cat "$scratch/out")"; fi
}
field() { sed -nE "s/.*\"$1\": \"?([^\",]+).*/\1/p" "$2" | tail -n 1; }

distill --teacher-dtype fp8 --save-every 3 --out "$d/f8"
says "the cost is said" 'fp8 teacher: KL\(float32 \|\| fp8\) 0\.[0-9]+ nats/token, [0-9.]+ % top-1 agreement, on [0-9]+ tokens$'
kl=$(field kl "$d/f8/receipt.json")
if awk -v k="$kl" 'BEGIN { exit !(k > 1e-7 && k < 0.05) }'; then ok "the receipt has the divergence of a rounded teacher"; else not_ok "the receipt has the divergence of a rounded teacher" "$(cat "$d/f8/receipt.json")"; fi
head -c 200 "$d/text.txt" >"$d/short.txt"
"$nojit" distill "${pair[@]}" --batch-size 1 --device cpu --data "$d/short.txt" --steps 1 --teacher-dtype fp8 --out "$d/short" >"$scratch/out" 2>&1
says "a short text is measured once" 'top-1 agreement, on 192 tokens$'
if [ "$(field teacher_dtype "$d/f8/receipt.json")" = fp8 ]; then ok "the receipt names the --teacher-dtype"; else not_ok "the receipt names the --teacher-dtype" "$(cat "$d/f8/receipt.json")"; fi

distill --out "$d/plain"
if ! grep -q "fp8" "$scratch/out" && [ "$(field kl "$d/plain/receipt.json")" = "" ]; then
    ok "without --teacher-dtype no divergence is measured"
else
    not_ok "without --teacher-dtype no divergence is measured" "$(cat "$scratch/out")"
fi
if cmp -s "$d/f8/model.safetensors" "$d/plain/model.safetensors"; then not_ok "--teacher-dtype fp8 teaches another student" "the students are equal"; else ok "--teacher-dtype fp8 teaches another student"; fi

# Measuring takes no tokens from the run: from checkpoint 3 the same model comes out.
cp -r "$d/f8" "$d/again"
rm -r "$d/again/model.safetensors" "$d/again/checkpoint-6"
distill --teacher-dtype fp8 --out "$d/again" --resume auto
if cmp -s "$d/f8/model.safetensors" "$d/again/model.safetensors"; then ok "a run with --teacher-dtype is resumed bit for bit"; else not_ok "a run with --teacher-dtype is resumed bit for bit" "$(cat "$scratch/out")"; fi
rm "$d/again/model.safetensors"
refuses "resuming with another --teacher-dtype is refused" 2 "teacher-dtype" "$nojit" distill "${pair[@]}" --device cpu \
    --data "$d/text.txt" --steps 6 --lr 1e-2 --out "$d/again" --resume auto

"$nojit" distill "${pair[@]}" --device cpu --data "$d/text.txt" --steps 6 --teacher-dtype fp8 --dry-run >"$scratch/out" 2>&1
if ! grep -q "nats/token" "$scratch/out"; then ok "a dry run measures no divergence of a rounded teacher"; else not_ok "a dry run measures no divergence of a rounded teacher" "$(cat "$scratch/out")"; fi
weights() { "$nojit" plan "${pair[@]}" --device cpu --json "$@" | sed -E 's/.*"teacher.weights": ([0-9]+).*/\1/'; }
if [ "$(weights --teacher-dtype fp8)" -lt $(($(weights) / 2)) ]; then ok "a plan with --teacher-dtype fp8 is smaller"; else not_ok "a plan with --teacher-dtype fp8 is smaller" "$(weights --teacher-dtype fp8), $(weights)"; fi
kd() { "$nojit" eval --model "$d/teacher" --teacher "$d/teacher" --device cpu --json --seq-len 64 --data "$d/text.txt" "$@" | sed -E 's/.*"kd_loss": ([^,]+),.*/\1/'; }
if awk -v a="$(kd)" -v b="$(kd --teacher-dtype fp8)" 'BEGIN { exit !(a < 1e-7 && b > 1e-6 && b < 0.05) }'; then
    ok "eval measures the divergence of a rounded teacher"
else
    not_ok "eval measures the divergence of a rounded teacher" "$(kd) and $(kd --teacher-dtype fp8)"
fi

# ---- quantized on loading, and quantized files
distill --teacher-dtype q4_k --save-every 3 --out "$d/q4"
says "the cost of quantizing is reported" 'q4_k teacher: KL\(float32 \|\| q4_k\) 0\.[0-9]+ nats/token, '
is() { # NAME GOT WANTED
    if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', expected '$3'"; fi
}
q4=$(field kl "$d/q4/receipt.json")
if awk -v k="$q4" 'BEGIN { exit !(k > 1e-7 && k < 0.05) }'; then ok "the receipt has the divergence of a rounded teacher"; else not_ok "the receipt has the divergence of a rounded teacher" "$(cat "$d/q4/receipt.json")"; fi
is "the receipt names --teacher-dtype q4_k" "$(field teacher_dtype "$d/q4/receipt.json")" q4_k
"$BUILD/gguf-of" "$d/teacher" "$d/q4.gguf" q4_k_m
folder=("${pair[@]}")
pair=(--teacher "$d/q4.gguf" "${pair[@]:2}")
distill --out "$d/file"
if cmp -s "$d/q4/model.safetensors" "$d/file/model.safetensors"; then ok "a GGUF file of the same blocks teaches the same"; else not_ok "a GGUF file of the same blocks teaches the same" "$(cat "$scratch/out")"; fi
is "the receipt names the types of a GGUF teacher" "$(sed -nE 's/.*"teacher_dtype": "([^"]+)".*/\1/p' "$d/file/receipt.json")" "Q8_0, Q5_0, Q4_K, Q6_K"
is "no divergence is measured of a GGUF teacher" "$(field kl "$d/file/receipt.json")" ""
file=$(weights)
refuses "--teacher-dtype for a GGUF file is refused" 1 "quantized already; leave --teacher-dtype out" "$nojit" eval --model "$d/student" "${pair[@]:0:2}" \
    --device cpu --data "$d/text.txt" --teacher-dtype q8_0
pair=("${folder[@]}")
is "a plan with --teacher-dtype q4_k is that of the GGUF file" "$(weights --teacher-dtype q4_k)" "$file"
if [ "$file" -lt $(($(weights) / 4)) ]; then ok "a plan with --teacher-dtype q4_k is smaller than a quarter"; else not_ok "a plan with --teacher-dtype q4_k is smaller than a quarter" "$file, $(weights)"; fi
for t in q5_k q6_k q8_0; do
    k=$(kd --teacher-dtype $t)
    if awk -v a="$k" -v b="$q4" 'BEGIN { exit !(a > 0 && a <= b * 2) }'; then ok "eval measures the divergence of a teacher in $t"; else not_ok "eval measures the divergence of a teacher in $t" "$k, with q4_k $q4"; fi
done
mkdir "$d/config"
cp "$d/teacher/config.json" "$d/config"
pair=(--teacher "$d/config" "${pair[@]:2}")
is "a plan with --teacher-dtype needs no weights" "$(weights --teacher-dtype q4_k)" "$file"
pair=("${folder[@]}")
"$nojit" plan "${pair[@]}" --device cpu --memory-budget 0.001 >"$scratch/out" 2>&1 || true
says "quantizing is proposed where a run does not fit" '^  --teacher-dtype q4_k  '
"$nojit" plan "${pair[@]}" --device cpu --memory-budget 0.001 --teacher-dtype q8_0 >"$scratch/out" 2>&1 || true
if ! grep -q -- "--teacher-dtype q4_k" "$scratch/out"; then ok "--teacher-dtype is not advised where it is given"; else not_ok "--teacher-dtype is not advised where it is given" "$(cat "$scratch/out")"; fi

refuses "--teacher-dtype without --teacher is refused" 2 "needs --teacher" "$nojit" eval --model "$d/student" --device cpu --data "$d/text.txt" --teacher-dtype fp8
refuses "--teacher-dtype bf16 beside float32 is refused" 2 "in float32" "$nojit" distill "${pair[@]}" --device cpu --data "$d/text.txt" --out "$d/x" --teacher-dtype bf16
sed -i 's/"hidden_size": 128/"hidden_size": 136/' "$d/teacher/config.json"
refuses "--teacher-dtype fp8 for a width that FP8 does not take is refused" 1 "multiples of 16" "$nojit" plan "${pair[@]}" --teacher-dtype fp8
finish

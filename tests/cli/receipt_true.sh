#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# receipt_true.sh: receipt.json holds what was applied, read back, and hashes of what was used; metrics.jsonl a row per step.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
"$nojit" init --preset nojit-tiny --seed 2 --out "$d/teacher" >/dev/null
head -c 20000 LICENSE >"$d/text.txt"
head -c 20000 LICENSE | tr a b >"$d/other.txt"
distil() { # NAME TEACHER DATA OPTION...
    local name=$1 teacher=$2 data=$3
    shift 3
    "$nojit" distill --teacher "$teacher" --student "$d/student" --data "$data" --out "$d/$name" --device cpu "$@" \
        >/dev/null 2>&1
}
field() { sed -nE "s/^ *\"$2\": (\"([^\"]*)\"|([^,]*)),?$/\2\3/p" "$d/$1/receipt.json" | tail -n 1; }
is() { # NAME RUN FIELD PATTERN
    if [[ "$(field "$2" "$3")" =~ ^($4)$ ]]; then ok "$1"; else not_ok "$1" "$3 is '$(field "$2" "$3")', expected $4"; fi
}
differs() { # NAME FIELD: of the runs a and b
    if [ -n "$(field a "$2")" ] && [ "$(field a "$2")" != "$(field b "$2")" ]; then ok "$1"; else not_ok "$1" "$(field a "$2")"; fi
}

distil a "$d/teacher" "$d/text.txt" --steps 3 --batch-size 3 --seq-len 24 --grad-accum 2 --lr 5e-4 --min-lr-ratio 0.25 --weight-decay 0.125 \
    --beta1 0.75 --beta2 0.5 --eps 0.0625 --max-grad-norm 0.375 --temperature 3 --kd-ratio 0.625 --objective kl --beta 0.5 --lr-schedule linear \
    --optimizer-state bf16 --warmup-steps 1 --lora-r 4 --lora-alpha 8 --lora-dropout 0.25 --seed 7 --head-chunk 8 --recompute mlp --sample-temperature 0.5 --sample-min-p 0.25 \
    --virtual-ranks 2 --merge
applied() { # NAME: of run a
    sed -n '/^  "applied": {$/,/^  }/s/^    "'"$1"'": "\?\([^",]*\)"\?,\?$/\1/p' "$d/a/receipt.json"
}
wanted="steps:3 batch_size:3 seq_len:24 grad_accum:2 min_lr_ratio:0.25 weight_decay:0.125 beta1:0.75 beta2:0.5 eps:0.0625
    max_grad_norm:0.375 temperature:3.0 kd_ratio:0.625 objective:kl beta:0.5 lr_schedule:linear optimizer_state:bf16
    warmup_steps:1 lora_r:4 lora_alpha:8.0 lora_dropout:0.25 seed:7 head_chunk:8 recompute:mlp
    sample_temperature:0.5 sample_min_p:0.25 gpus:2 reduce_dtype:f32 teacher_shard:false writer:student kv_dtype:auto
    router_aux_loss_coef:-1.0"
for pair in $wanted; do
    if [[ "$(applied "${pair%%:*}")" =~ ^(${pair#*:})$ ]]; then ok "the receipt has ${pair%%:*} as it was applied"; else not_ok "the receipt has ${pair%%:*} as it was applied" "'$(applied "${pair%%:*}")', expected ${pair#*:}"; fi
done
is "the receipt has lr as it was applied" a lr '0.0005|0.00049999[0-9]*|0.000500000[0-9]*'
# Rows of the option table that name a field of the engine's options, for a command that trains.
named=$(sed -n '/^OPTION/,$p' trainer/options/*.def | tr '\n' ' ' | sed 's/OPTION[A-Z_]*(/\n&/g' |
    sed -nE '/(CMD_DISTILL|CMD_TRAIN|TRAINING|LEARNING)[, ].*\.applied = /s/.*\.name = "([^"]*)".*/\1/p' | tr - _ | sort)
missing=$(comm -23 <(echo "$named") <(tr -s ' ' '\n' <<<"$wanted lr" | cut -d: -f1 | sort))
if [ "$(wc -w <<<"$named")" -gt 20 ] && [ -z "$missing" ]; then ok "the receipt leaves out no option"; else not_ok "the receipt leaves out no option" "${missing:-$named}"; fi
is "the receipt has dtype as it was applied" a dtype float32
is "the receipt names device and backend" a backend cpu
is "the receipt names the compiler of the kernels" a toolkit 'ptxas .*'
if [ "$(grep -c '"step": .*"kd_loss"' "$d/a/metrics.jsonl")" = 3 ]; then ok "metrics.jsonl has a row per step"; else not_ok "metrics.jsonl has a row per step" "$(cat "$d/a/metrics.jsonl")"; fi

distil b "$d/a/merged" "$d/other.txt" --steps 1 --batch-size 1 --seq-len 24 --objective tvd
differs "the hash of the data in the receipt is of their content" data_hash
differs "the hash of the teacher in the receipt is of its weights" teacher_hash
if grep -q '^    "objective": "tvd",\?$' "$d/b/receipt.json"; then ok "the receipt names the objective"; else not_ok "the receipt names the objective" "$(grep objective "$d/b/receipt.json")"; fi
is "the hash of the student is that of the same weights" b student_hash "$(field a student_hash)"
cp "$nojit" "$d/nojit-other"
printf x >>"$d/nojit-other"
nojit=$d/nojit-other
rm -r "$d/b"
distil b "$d/teacher" "$d/text.txt" --steps 1 --batch-size 1 --seq-len 24
differs "the hash of the binary in the receipt is of the one that ran" binary_hash
is "the same teacher has the same hash" b teacher_hash "$(field a teacher_hash)"
is "the same data have the same hash" b data_hash "$(field a data_hash)"
finish

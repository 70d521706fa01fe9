#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# teacher_shard.sh: a teacher of which each rank keeps a slice of each layer: the same bits as one that is whole on all, on the CPU and on simulated GPUs, where
# one stream does its work at once and the others late. What ranks that stop early, or have no batch, owe to the others.
set -eu
. tests/lib/lib.sh
. tests/lib/ranks.sh
. tests/lib/plant_nan.sh
. tests/lib/shards.sh
"$nojit" init --preset nojit-tiny --seed 3 --num-layers 1 --out "$d/single" >/dev/null

# ---- the same bits. The held-out text is nine batches: in the last round one of two ranks has none.
parts "a sharded teacher on two processes teaches as a whole one" 2 0 --device cpu --teacher "$d/deep"
parts "a sharded teacher on three processes teaches as a whole one" 3 0 --device cpu --teacher "$d/deep"
parts "a sharded teacher of one layer teaches as a whole one" 2 0 --device cpu --teacher "$d/single"
parts "a sharded teacher that every rank reads teaches as a whole one" 2 0 --device cpu --teacher "$d/deep" --every-rank-reads
for eager in 0 1 2; do parts "a sharded teacher on GPUs teaches as a whole one" 3 $eager --device cuda --teacher "$d/deep"; done
if grep -q '"teacher_shard": true' "$d/parts/receipt.json"; then ok "the receipt has --teacher-shard"; else not_ok "the receipt has --teacher-shard" "$(grep shard "$d/parts/receipt.json")"; fi

# ---- resuming, with and without
distill straight "${few[@]}" --teacher "$d/deep" --device cpu --gpus 2
distill parted "${few[@]}" --teacher "$d/deep" --device cpu --gpus 2 --teacher-shard --steps 2
distill parted "${few[@]}" --teacher "$d/deep" --device cpu --gpus 2 --resume auto
same "a run with --teacher-shard is resumed without it" straight parted

# ---- what a rank takes
region() { "$nojit" plan --student "$d/student" --teacher "$d/deep" --batch-size 2 --seq-len 24 --device cpu --gpus 2 --json "${@:2}" | sed -nE "s/.*\"$1\": ([0-9]+).*/\1/p"; }
all=$(region teacher.weights) kept=$(region teacher.weights --teacher-shard) slots=$(region teacher.layers --teacher-shard)
if [ $((4 * (all - kept))) = $((5 * slots)) ]; then ok "--teacher-shard plans half of five layers and two slots"; else not_ok "--teacher-shard plans half of five layers and two slots" "$all, $kept, $slots"; fi
dry() { "$nojit" distill "${models[@]}" --teacher "$d/deep" --device cpu --steps 4 --dry-run --gpus 2 --teacher-shard | sed -nE 's/^teacher.layers +([0-9.]+ [KM]iB).*/\1/p'; }
if [ "$(dry)" = "$((slots / 1024)).00 KiB" ]; then ok "--dry-run plans the slots of --teacher-shard"; else not_ok "--dry-run plans the slots of --teacher-shard" "$(dry), not $slots"; fi
"$nojit" plan --student "$d/student" --teacher "$d/deep" --batch-size 2 --seq-len 24 --device cpu --gpus 3 --memory-budget 0.002 >"$d/advice" 2>&1 || true
if grep -q '^  --teacher-shard ' "$d/advice"; then ok "plan advises --teacher-shard"; else not_ok "plan advises --teacher-shard" "$(cat "$d/advice")"; fi

# ---- refusals
refuses "--teacher-shard for one process is refused" 2 '^nojit distill: --teacher-shard needs several ranks that are processes' "$nojit" distill "${few[@]}" --device cpu \
    --virtual-ranks 2 --teacher-shard --out "$d/x"
refuses "--teacher-shard in a plan for one GPU is refused" 2 '^nojit plan: --teacher-shard needs several ranks' "$nojit" plan --student "$d/student" --teacher "$d/deep" \
    --seq-len 24 --teacher-shard
refuses "--teacher-shard without --teacher is refused" 2 '^nojit plan: --teacher-shard needs --teacher$' "$nojit" plan --student "$d/student" --seq-len 24 --gpus 2 --teacher-shard
one_shard() { # RANK COMMAND...
    if [ "$1" = 1 ]; then torchrun "$@" --teacher-shard; else torchrun "$@"; fi
}
launched one_shard one "${few[@]}" --device cpu
if [ $status1 = 2 ] && grep -q "rank 1: 'teacher-shard true' here, but 'teacher-shard false' on rank 0" "$d/one.err" "$d/one.1.err"; then
    ok "--teacher-shard on one rank only is refused"
else
    not_ok "--teacher-shard on one rank only is refused" "$status0 $status1 $(cat "$d/one.err" "$d/one.1.err")"
fi

# ---- weights that are no numbers: of the teacher, and of the student for a token that only one micro-batch holds. A pass of the teacher, which is
# wide, is one micro-batch, so the rank that stops at its first leaves the others waiting for layers.
"$nojit" init --preset nojit-tiny-qwen3 --dtype float32 --hidden-size 512 --head-dim 64 --out "$d/sound" >/dev/null
"$nojit" init --preset nojit-tiny-qwen3 --dtype float32 --out "$d/planted" >/dev/null
plant_nan "$d/planted" 126
{ head -c 200 LICENSE && printf '~' && tail -c 1000 LICENSE; } >"$d/tilde.txt"
tilde=(--data "$d/tilde.txt" --batch-size 2 --seq-len 24 --grad-accum 6 --seed 5 --device cpu --gpus 3 --teacher-shard --out "$d/y")
refuses "a sharded teacher that is not finite is refused" 1 'tensor model.embed_tokens.weight holds NaN' "$nojit" distill --student "$d/sound" --teacher "$d/planted" "${tilde[@]}"
rm -rf "$d/y"
refuses "a loss that is not finite on one rank ends ranks with a sharded teacher" 1 'rank 1: step 1: weight of the student model.embed_tokens.weight is not finite, in micro-batch 2 of 6' \
    timeout 60 "$nojit" distill --student "$d/planted" --teacher "$d/sound" "${tilde[@]}"
finish

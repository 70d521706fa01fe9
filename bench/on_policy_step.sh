#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# on_policy_step.sh: time of a step of `nojit distill --on-policy 1`, random weights, on a GPU: ROWS prompts of PROMPT tokens, answers of
# ANSWER tokens, reverse KL. Prompt and answer tokens that are trained on per second, and the part of a step that goes into writing.
# With TORCH=python3, a Python that has transformers, beside the same step in PyTorch (bench/torch_on_policy.py).
#   TEACHER=qwen2.5-1.5b STUDENT=qwen2.5-0.5b   ROWS=256 PROMPT=80 ANSWER=512   STEPS=6   WORK=build/on-policy-step
#   DISTILL='--teacher-dtype fp8'               further options of the run
set -eu
: "${BUILD:=build}" "${WORK:=$BUILD/on-policy-step}" "${DEVICE:=cuda}" "${TEACHER:=qwen2.5-1.5b}" "${STUDENT:=qwen2.5-0.5b}"
: "${ROWS:=256}" "${PROMPT:=80}" "${ANSWER:=512}" "${STEPS:=6}" "${TORCH:=}" "${DISTILL:=}"
nojit=$BUILD/nojit
. bench/lib.sh
begin "$@"

# row NAME TOKENS WRITING TRAINING
row() {
    [ $# = 4 ] || refuse "$1: $(tail -n 1 "$WORK/log")"
    awk -v n="$1" -v t="$2" -v w="$3" -v s="$4" 'BEGIN { printf "%-8s %9d %10.3f %10.3f %9.1f %% %10.0f\n", n, t, w, s, 100 * w / (w + s), t / (w + s) }'
}

for model in "$TEACHER" "$STUDENT"; do
    "$nojit" init --preset "$model" --out "$WORK/$model" >/dev/null 2>&1
done
prompts "$ROWS" "$PROMPT" "$PROMPT" "$ANSWER" "$ANSWER" >"$WORK/prompts.jsonl"
printf '%-8s %9s %10s %10s %11s %10s\n' what tokens 'writing s' 'training s' 'writing' tokens/s
# Two answers to a sequence, 16 sequences at a time.
"$nojit" distill --teacher "$WORK/$TEACHER" --student "$WORK/$STUDENT" --prompts "$WORK/prompts.jsonl" --on-policy 1 --max-new "$ANSWER" \
    --seq-len $((2 * (PROMPT + ANSWER))) --batch-size 8 --grad-accum $((ROWS / 16)) --beta 1 --steps "$STEPS" --lr 1e-6 --seed 1 \
    --device "$DEVICE" --out "$WORK/run" $DISTILL >"$WORK/log" 2>&1 || refuse "$(tail -n 1 "$WORK/log")"
# Means over the steps but the first two.
row nojit $(awk -v prompt="$PROMPT" -v rows="$ROWS" '
    function field(name) { match($0, "\"" name "\": *[0-9.e+-]+"); x = substr($0, RSTART, RLENGTH); sub(/.*:/, "", x); return x + 0 }
    NR > 2 { n++; tokens += field("rollout_tokens") + rows * prompt; writing += field("rollout_seconds"); training += field("step_ms") / 1000 }
    END { if (n) print tokens / n, writing / n, training / n }' "$WORK/run/metrics.jsonl")
if [ -n "$TORCH" ]; then
    row PyTorch $("$TORCH" bench/torch_on_policy.py "$WORK/$STUDENT" "$WORK/$TEACHER" "$WORK/prompts.jsonl" "$ANSWER" 8 2>>"$WORK/log")
fi

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# distill.sh: a 1.5B teacher into a 0.5B student (Qwen2.5 shapes, random weights, text of this machine) on one GPU:
# tokens a second, and the ratio to a PyTorch script in the same run.
# Arguments go to nojit: bench/distill.sh --teacher-dtype fp8
#   STEPS=50 BATCH=8 SEQ=1024   TORCH="python3 script.py ..." prints JSON with "tok_s"   WORK=DIR keeps the models
set -eu
: "${BUILD:=build}" "${STEPS:=50}" "${BATCH:=8}" "${SEQ:=1024}" "${WORK:=$BUILD/bench}" "${TORCH:=}"
nojit=$BUILD/nojit
mkdir -p "$WORK/text"
[ -n "$(ls -A "$WORK/text")" ] || for f in /usr/share/common-licenses/* /usr/share/doc/*/copyright; do
    [ -f "$f" ] && cp "$f" "$WORK/text/$(echo "$f" | tr / _).txt"
done
[ -f "$WORK/student/config.json" ] || "$nojit" init --preset qwen2.5-0.5b --seed 1 --out "$WORK/student"
[ -f "$WORK/teacher/config.json" ] || "$nojit" init --preset qwen2.5-1.5b --seed 2 --out "$WORK/teacher"
rm -rf "$WORK/out"
started=$(date +%s%N)
"$nojit" distill --teacher "$WORK/teacher" --student "$WORK/student" --data "$WORK/text" --out "$WORK/out" \
    --device cuda --steps "$STEPS" --batch-size "$BATCH" --seq-len "$SEQ" --lr 1e-4 --warmup-steps 5 "$@"
echo "whole run: $((($(date +%s%N) - started) / 1000000)) ms"
ours=$(sed -E 's/.*"tokens_per_second": ([0-9.]+).*/\1/' "$WORK/out/metrics.jsonl" | tail -n +6 | sort -g |
    awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')
echo "nojit: $ours tokens/s (median of steps 6 to $STEPS)"
if [ -n "$TORCH" ]; then
    theirs=$($TORCH | sed -nE 's/.*"tok_s": ([0-9.]+).*/\1/p')
    echo "PyTorch: $theirs tokens/s; ratio $(awk -v a="$ours" -v b="$theirs" 'BEGIN { printf "%.3f", a / b }')"
fi

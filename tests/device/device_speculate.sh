#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_speculate.sh: speculative decoding on simulated GPUs counts in float32 what a CPU counts; in 16 bits the rate is about
# the same, and a teacher accepts all of its own drafts.
set -eu
. tests/lib/lib.sh
. tests/lib/simulated.sh

"$nojit" init --preset nojit-demo-student --out "$d/student" >/dev/null
"$nojit" init --preset nojit-demo-teacher --out "$d/teacher" >/dev/null
for prompt in 12+30= a 'some more words' 7 xyz; do echo "{\"prompt\": \"$prompt\"}"; done >"$d/prompts.jsonl"
counts() { # STUDENT ARGUMENTS...
    "$nojit" eval --model "$d/$1" --teacher "$d/teacher" --acceptance --prompts "$d/prompts.jsonl" --max-tokens 14 --gemm-table none --json \
        "${@:2}" 2>"$d/err" || tail -n 1 "$d/err"
}
whole() { grep -oE '"(texts|tokens|turns|drafted|tested|accepted)": [0-9]+' <<<"$1" | paste -sd,; }
rate() { sed -nE 's/.*"acceptance": ([0-9.]+).*/\1/p' <<<"$1"; }
cpu=$(counts student --device cpu)

wide=
narrow=
own=
for p in $profiles; do
    arch=${p#*:}
    [[ $held == *" sm_$arch "* || $held == *" sm_${arch}a "* ]] || continue
    export NOJIT_SIM_DEVICE=${p%:*}
    got=$(counts student --device cuda --dtype float32)
    [ "$(whole "$got")" = "$(whole "$cpu")" ] || wide+=" $NOJIT_SIM_DEVICE: $got;"
    got=$(counts student --device cuda)
    awk -v a="$(rate "$got")" -v b="$(rate "$cpu")" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 0.02 ^ 2) }' || narrow+=" $NOJIT_SIM_DEVICE: $got;"
    got=$(counts teacher --device cuda)
    [[ $got == *'"tested": 55, "accepted": 55,'* ]] || own+=" $NOJIT_SIM_DEVICE: $got;"
    unset NOJIT_SIM_DEVICE
done
if [ -z "$wide" ]; then ok "acceptance counted in float32 is that of a CPU"; else not_ok "acceptance counted in float32 is that of a CPU" "$cpu, but $wide"; fi
if [ -z "$narrow" ]; then ok "acceptance counted in 16 bits is about that of a CPU"; else not_ok "acceptance counted in 16 bits is about that of a CPU" "$cpu, but $narrow"; fi
if [ -z "$own" ]; then ok "a teacher accepts all of its own drafts in 16 bits"; else not_ok "a teacher accepts all of its own drafts in 16 bits" "$own"; fi
finish

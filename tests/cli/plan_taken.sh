#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# plan_taken.sh: what the device's free memory falls by is the plan, within 2 %, with the context and the libraries' code measured before and told
# apart (receipt.json). On a simulated GPU; DEVICE=cuda: on the GPU that the driver finds, in three sizes, two of them above 1 GiB; SHAPES takes
# some of tiny, base, half-billion.
set -eu
. tests/lib/lib.sh
: "${DEVICE:=simulated}"
nojit=$BUILD/nojit
export XDG_CACHE_HOME=$scratch/cache OMP_WAIT_POLICY=passive
if [ "$DEVICE" = simulated ]; then
    needs sm_89
    export LD_LIBRARY_PATH=$BUILD/sim NOJIT_CUBLASLT=$BUILD/sim NOJIT_SIM_DEVICE=rtx4090
    export NOJIT_SIM_CODE=50000000
    : "${SHAPES:=tiny}"
fi
: "${SHAPES:=tiny base half-billion}"
cat LICENSE LICENSE >"$scratch/text.txt"
bytes() { sed -nE "s/^ *\"$1\": ([0-9]+),?$/\1/p" "$scratch/run/receipt.json"; }
# within A B: A is B, but for 2 % and the 2 MiB in which a driver gives memory.
within() { awk -v a="$1" -v b="$2" 'BEGIN { d = a > b ? a - b : b - a; exit !(d <= 0.02 * b || d < 2097152) }'; }
wrong=""
try() { # SHAPE PRESET BATCH SEQ: distils a model into itself
    [[ " $SHAPES " == *" $1 "* ]] || return 0
    rm -rf "$scratch/run"
    [ -d "$scratch/$2" ] || "$nojit" init --preset "$2" --out "$scratch/$2" >/dev/null
    if ! "$nojit" distill --teacher "$scratch/$2" --student "$scratch/$2" --data "$scratch/text.txt" --tokenizer bytes --batch-size "$3" --seq-len "$4" --steps 2 \
        --device cuda --allow-self-distillation --out "$scratch/run" >"$scratch/out" 2>&1; then
        wrong+="$1: $(tail -n 1 "$scratch/out"); "
        return
    fi
    rm "$scratch/run/model.safetensors"
    plan=$(bytes plan_bytes) taken=$(bytes allocated_bytes) library=$(bytes library_bytes) context=$(bytes context_bytes)
    during=$(($(bytes used_bytes) - library))
    figures="$1: plan $plan, taken $taken, with graphs $during; beside it libraries $library, context $context bytes"
    echo "     $figures"
    # Graphs and what a driver takes at a launch may be more than 2 % of a small plan.
    if ! within "$taken" "$plan" || [ "$context" = 0 ] || { [ "$plan" -gt $((1 << 30)) ] && ! within "$during" "$plan"; }; then
        wrong+="$figures; "
    fi
    tried=$((${tried:-0} + 1))
}
try tiny nojit-tiny 1 16
try base nojit-base 8 1024
try half-billion qwen2.5-0.5b 4 1024
if [ -z "$wrong" ] && [ "${tried:-0}" -gt 0 ]; then
    ok "free memory falls by the plan within 2 %"
else
    not_ok "free memory falls by the plan within 2 %" "${wrong:-no shape of '$SHAPES'}"
fi
if [ "$DEVICE" = simulated ]; then # where it is known to the byte
    before=$("$nojit" doctor --device cuda --json | sed -E 's/.*"memory_bytes": ([0-9]+), "budget_bytes": ([0-9]+),.*/\1 - \2/')
    if [ "$plan $during $library $context" = "$taken $taken $NOJIT_SIM_CODE $((before))" ]; then
        ok "the receipt tells context and libraries apart"
    else
        not_ok "the receipt tells context and libraries apart" "$figures"
    fi
fi
finish

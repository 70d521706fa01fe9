#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_training.sh: distillations of Qwen2, Llama and Qwen3 form on a T4, an RTX 4090, an H100, an RTX 5090 and a GB10, simulated:
# the figures are those of the CPU but for what 16 bits round, and a model does not diverge from itself. With EVERY=1 PyTorch's
# numbers (tests/golden) too, in both precisions.
set -eu
. tests/lib/lib.sh
: "${EVERY:=0}"
. tests/lib/simulated.sh

for form in tiny tiny-llama tiny-qwen3; do
    "$nojit" init --preset nojit-$form --out "$d/$form" >/dev/null
    "$nojit" init --preset nojit-$form --seed 2 --out "$d/$form-teacher" >/dev/null
done
head -c 3000 LICENSE >"$d/text.txt"
distill() { # FORM OUT OPTION...
    local form=$1 out=$2 accumulated=2
    if [ "$form" = tiny ]; then accumulated=1; fi # then logits lie in gradients
    shift 2
    rm -rf "$out"
    "$nojit" distill --teacher "$d/$form-teacher" --student "$d/$form" --data "$d/text.txt" --seq-len 24 --batch-size 2 \
        --grad-accum $accumulated --lr 1e-3 --steps 4 --gemm-table none --out "$out" "$@" >"$d/log" 2>&1
}
figures() { sed -E 's/.*"loss": ([^,]+), "kd_loss": ([^,]+), "ce_loss": ([^,]+),.*"grad_norm": ([^,]+),.*/\1 \2 \3 \4/' "$1/metrics.jsonl"; }
# A loss is a mean over rows of numbers whose 16-bit parts were rounded by u at most: it moves by less than u of its size
# (2^-9 for bfloat16, 2^-12 for float16); divergences and norms are differences and squares: by less than 8 u.
close() { # U A B
    paste -d' ' "$2" "$3" | awk -v u="$1" '
        function far(a, b, bound) { a += 0; b += 0; return !(a - b <= bound * b && b - a <= bound * b) }
        { if (NF != 8 || far($1, $5, u) || far($3, $7, u) || far($2, $6, 8 * u) || far($4, $8, 8 * u)) { print NR ": " $0; bad = 1 } }
        END { exit bad || NR != 4 }'
}
for form in tiny tiny-llama tiny-qwen3; do
    distill $form "$d/cpu" --device cpu
    figures "$d/cpu" >"$d/$form.cpu"
done
distillation() { # PROFILE ARCH FORM
    local u
    u=$(awk -v f16="$([[ $2 != 75 ]] || echo 1)" 'BEGIN { print f16 ? 2 ^ -12 : 2 ^ -9 }')
    if ! NOJIT_SIM_DEVICE=$1 distill "$3" "$d/run" --device cuda || ! clean; then
        not_ok "$3 on $1 has the figures of the CPU" "$(tail -n 1 "$d/log"); $(counted)"
        return
    fi
    figures "$d/run" >"$d/figures"
    if close "$u" "$d/figures" "$d/$3.cpu" >"$d/far"; then ok "$3 on $1 has the figures of the CPU"; else not_ok "$3 on $1 has the figures of the CPU" "not those of the CPU: $(cat "$d/far")"; fi
}
# Student and teacher go through the same kernels: not one bit of their logits differs. An H100 has kernels of its own for what they
# could do differently; products of 64 channels, as the tiny models have, would hide it.
itself() {
    "$nojit" init --preset nojit-small --out "$d/small" >/dev/null
    if NOJIT_SIM_DEVICE=h100 "$nojit" distill --teacher "$d/small" --student "$d/small" --allow-self-distillation --data "$d/text.txt" \
        --device cuda --seq-len 64 --batch-size 2 --steps 1 --gemm-table none --out "$d/itself" >"$d/log" 2>&1 &&
        grep -q '"kd_loss": 0, .*"agreement": 1, ' "$d/itself/metrics.jsonl"; then
        ok "a model does not diverge from itself"
    else
        not_ok "a model does not diverge from itself" "$(tail -n 1 "$d/log"); $(tail -n 1 "$d/itself/metrics.jsonl")"
    fi
}
tested=0
for p in $profiles; do
    name=${p%:*} arch=${p#*:}
    [[ $held != *" sm_${arch}a "* ]] || arch=${arch}a
    [[ $held == *" sm_$arch "* ]] || continue
    tested=$((tested + 1))
    for form in tiny tiny-llama tiny-qwen3; do distillation "$name" "$arch" $form; done
    [ "$name" != h100 ] || itself
    [ "$EVERY" = 1 ] || continue
    for dtype in float32 16-bit; do
        for t in test_golden:"PyTorch's numbers" test_golden_families:"PyTorch's numbers of every family"; do
            if NOJIT_SIM_DEVICE=$name GOLDEN_DEVICE=cuda GOLDEN_DTYPE=$dtype "$BUILD/tests/${t%%:*}" >"$d/log" 2>&1; then
                ok "${t#*:} hold in $dtype on $name"
            else
                not_ok "${t#*:} hold in $dtype on $name" "$(grep -E '^(ERROR|\[  FAILED)' "$d/log" | head -n 3)"
            fi
        done
    done
done
if [ $tested = 0 ]; then not_ok "this build has code for a simulated GPU" "none of $profiles has code here:$held"; fi

# With graphs, without, and with products chosen by timing: the same bits.
name=${name:-gb10}
export NOJIT_SIM_DEVICE=$name
distill tiny "$d/graph" --device cuda && NOJIT_GRAPH=0 distill tiny "$d/plain" --device cuda
if [ "$(figures "$d/graph")" = "$(figures "$d/plain")" ] && cmp "$d/graph/model.safetensors" "$d/plain/model.safetensors" >"$d/log" 2>&1; then
    ok "training with and without CUDA graphs gives the same bits"
else
    not_ok "training with and without CUDA graphs gives the same bits" "$(cat "$d/log")"
fi
finish

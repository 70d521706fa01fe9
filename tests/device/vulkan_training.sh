#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# vulkan_training.sh: the Vulkan backend on whatever GPU Vulkan finds here, of which Debian's mesa-vulkan-drivers brings one that
# runs on the CPU: distillations beside those of the CPU, and what it refuses. Two steps of short sequences; with EVERY=1 four of longer
# ones.
set -eu
: "${EVERY:=0}"
if [ "$EVERY" = 1 ]; then steps=4 length=48; else steps=2 length=24; fi
. tests/lib/lib.sh
. tests/lib/vulkan.sh
export OMP_NUM_THREADS=2

refuses "doctor says that there is no Vulkan driver" 1 '^nojit doctor: --device vulkan: no Vulkan driver can be used|: Vulkan (is not here|sees no GPU)' \
    env VK_ICD_FILENAMES="$d/none.json" VK_DRIVER_FILES="$d/none.json" "$nojit" doctor --device vulkan
ok_if "doctor names the GPU" "$(cat "$d/doctor")" grep -qE '^gpu .*, by Vulkan' "$d/doctor"
ok_if "doctor lists the GPUs" "$(cat "$d/doctor")" grep -qE '^  0: .*, Vulkan 1\.[0-9]+: (can be used|refused, as .+)$' "$d/doctor"
ok_if "doctor counts the shaders" "$(cat "$d/doctor")" \
    grep -q "^shaders   $(wc -l <"$BUILD/pack/shaders.txt"), translated by the driver in" "$d/doctor"

head -c 6000 LICENSE >"$d/text.txt"
for form in tiny tiny-llama tiny-qwen3; do
    "$nojit" init --preset nojit-$form --out "$d/$form" >/dev/null
    "$nojit" init --preset nojit-$form --seed 2 --out "$d/$form-teacher" >/dev/null
done
distill() { # FORM OUT OPTION...: with $settings of the Vulkan driver (tests/vkfault)
    local form=$1 out=$2
    shift 2
    rm -rf "$out"
    disturbed "${settings:-}" "$nojit" distill --teacher "$d/$form-teacher" --student "$d/$form" --data "$d/text.txt" --seq-len $length --batch-size 2 \
        --grad-accum 2 --lr 1e-3 --steps $steps --out "$out" "$@" >"$d/log" 2>&1
}
figures() { sed -E 's/.*"loss": ([^,]+), "kd_loss": ([^,]+), "ce_loss": ([^,]+),.*"grad_norm": ([^,]+),.*/\1 \2 \3 \4/' "$1/metrics.jsonl"; }
# Sums of float32 in another order: a relative 1e-4 is ten times what the GEMMs of these sizes round.
close() { # A B [BOUND]
    paste -d' ' <(figures "$1") <(figures "$2") | awk -v bound="${3:-1e-4}" -v steps=$steps '
        { for (i = 1; i <= 4; i++) { x = $i + 0; y = $(i + 4) + 0; if (!(x - y <= bound * y && y - x <= bound * y)) bad = 1 } }
        END { exit bad || NR != steps }'
}
beside_cpu() { # NAME FORM
    distill "$2" "$d/cpu-$2" --device cpu
    if distill "$2" "$d/run-$2" --device vulkan; then
        ok_if "$1" "$(paste <(figures "$d/run-$2") <(figures "$d/cpu-$2"))" close "$d/run-$2" "$d/cpu-$2"
    else
        not_ok "$1" "$(tail -n 1 "$d/log")"
    fi
}
beside_cpu "losses and gradients of Qwen2's form are those of the CPU" tiny
beside_cpu "losses and gradients of Llama's form are those of the CPU" tiny-llama
beside_cpu "losses and gradients of Qwen3's form are those of the CPU" tiny-qwen3

# Weights and activations as bfloat16 in memory, arithmetic in float32: within the 2^-8 that bfloat16 rounds by at most, and not as
# near as float32 is.
bf16=$d/bf16
of_bf16() { # NAME BESIDE OPTION...: a distillation in bfloat16 beside one by the CPU in float32
    local name=$1 beside=$2
    shift 2
    [ -e "$beside" ] || distill tiny "$beside" --device cpu "$@"
    if distill tiny "$bf16" --device vulkan --dtype bfloat16 "$@" && close "$bf16" "$beside" 0.00390625; then
        ok_if "$name" "they are float32's" eval '! close "$bf16" "$beside" 1e-6'
    else
        not_ok "$name" "$(tail -n 1 "$d/log"); $(paste <(figures "$bf16") <(figures "$beside"))"
    fi
}
of_bf16 "LoRA with Jensen-Shannon divergence in bfloat16 is near the CPU" "$d/cpu-lora" --lora-r 4 --beta 0.5
of_bf16 "a quantized teacher, recomputation and bf16 moments in bfloat16 are near the CPU" "$d/cpu-q8" --teacher-dtype q8_0 --recompute block \
    --optimizer-state bf16
of_bf16 "losses and gradients in bfloat16 are near the CPU" "$d/cpu-tiny"
ok_if "the receipt says bfloat16" "$(cat "$bf16/receipt.json")" grep -q '"dtype": "bfloat16"' "$bf16/receipt.json"
written() { disturbed "" "$nojit" generate --model "$bf16" --device "$1" --dtype "$2" --prompt 'The licence' --max-tokens 24 2>"$d/err"; }
in_bf16=$(written vulkan bfloat16)
in_f32=$(written cpu float32)
ok_if "the likeliest text in bfloat16 is that of float32" "$in_bf16 | $in_f32" [ "$in_bf16" = "$in_f32" ]
option() { # NAME OPTION...: a distillation with these options beside the CPU's
    local name=$1
    shift
    distill tiny "$d/cpu-option" --device cpu "$@"
    if distill tiny "$d/run-option" --device vulkan "$@" && close "$d/run-option" "$d/cpu-option"; then
        ok "$name"
    else
        not_ok "$name" "$(tail -n 1 "$d/log"); $(paste <(figures "$d/run-option") <(figures "$d/cpu-option"))"
    fi
}
option "generalised Jensen-Shannon divergence on Vulkan is that of the CPU" --beta 0.5
option "total variation distance on Vulkan is that of the CPU" --objective tvd
option "LoRA with dropout on Vulkan is that of the CPU" --lora-r 4 --lora-dropout 0.1
# Also above, in bfloat16; a driver that runs on the CPU is slow at what these kernels do.
[ "$EVERY" = 0 ] || option "a teacher that stays quantized on Vulkan is that of the CPU" --teacher-dtype q8_0

# Train with --device auto where CUDA has no GPU, and timestamps of the Vulkan driver (tests/vkfault) make it faster than the CPU.
auto() {
    settings=dispatch=1 NOJIT_VULKAN_DEVICE=0 CUDA_VISIBLE_DEVICES=-1 distill tiny "$d/auto" --device auto &&
        close "$d/auto" "$d/cpu-tiny" && [ "$(grep -c '^running on .* by Vulkan: .*GFLOP/s, the CPU at ' "$d/log")" = 1 ] &&
        grep -q '"backend": "vulkan"' "$d/auto/receipt.json" && grep -q '"fallbacks": 1' "$d/auto/receipt.json" &&
        grep -q '"fallback": ".*; Vulkan: .*GFLOP/s, the CPU at' "$d/auto/receipt.json"
}
auto && good=yes || good=no
ok_if "auto without CUDA takes Vulkan, with the gradients of the CPU" "$(grep '^running\|^nojit' "$d/log")" [ $good = yes ]

again() { distill tiny "$d/again" --device vulkan && cmp "$d/again/model.safetensors" "$d/run-tiny/model.safetensors"; }
succeeds "the same run again is bitwise identical" again
says() { disturbed "" "$nojit" generate --model "$d/run-tiny" --device "$1" --prompt 'The licence' --max-tokens 24 --temperature 0.8 --top-p 0.9; }
by_vulkan=$(says vulkan 2>"$d/err")
by_cpu=$(says cpu 2>"$d/err")
ok_if "a text is that of the CPU" "$by_vulkan | $by_cpu" [ "$by_vulkan" = "$by_cpu" ]
compiled() { tr -d '\n' <"$d/run-tiny/receipt.json" | sed -nE 's/.*"compilations": \{ *"at_start": ([0-9]+), *"in_steps": ([0-9]+),.*/\1 \2/p'; }
ok_if "the receipt counts the pipelines that were compiled at the start, and none in the steps" "$(compiled)" [ "$(compiled)" = "$(wc -l <"$BUILD/pack/shaders.txt") 0" ]
ok_if "the receipt names the backend" "$(cat "$d/run-tiny/receipt.json")" grep -q '"backend": "vulkan"' "$d/run-tiny/receipt.json"
refuses "float16 is refused" 2 '^nojit distill: --dtype float16: the Vulkan backend stores bfloat16' \
    "$nojit" distill --teacher "$d/tiny-teacher" --student "$d/tiny" --data "$d/text.txt" --device vulkan --dtype float16 --out "$d/refused"
refuses "several GPUs are refused" 1 '^nojit distill: --gpus: the Vulkan backend uses one GPU' \
    "$nojit" distill --teacher "$d/none" --student "$d/none" --data "$d/none" --device vulkan --gpus 2 --out "$d/refused"
refuses "a cache of bytes is refused" 2 '^nojit generate: --kv-dtype int8: the Vulkan backend has no cache of bytes' \
    "$nojit" generate --model "$d/none" --device vulkan --kv-dtype int8 --prompt 'ab' --max-tokens 4
refuses "FP8 is refused" 2 '^nojit distill: --teacher-dtype fp8: the Vulkan backend has no FP8 GEMMs' \
    "$nojit" distill --teacher "$d/none" --student "$d/none" --data "$d/none" --device vulkan --teacher-dtype fp8 --out "$d/refused"
finish

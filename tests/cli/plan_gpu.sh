#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# plan_gpu.sh: `nojit plan --gpu NAME` plans for a GPU that is not here: its memory is the budget, its types are those that a run there has,
# and the time is estimated (test_estimate compares the estimate with what was measured). Presets need no folder; sizes may have units.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
plan() { "$nojit" plan --student qwen2.5-0.5b --teacher qwen2.5-1.5b "$@"; }
field() { grep -oE "\"$1\": [^,}]+" | head -n 1 | cut -d' ' -f2-; }

# ---- presets, and folders that hold a configuration alone
"$nojit" init --preset nojit-base --num-layers 1 --out "$d/small" >"$scratch/out"
mkdir "$d/shape"
cp "$d/small/config.json" "$d/shape/"
same_plan() { cmp <("$nojit" plan --student "$d/small" --gpu h100 --json) <("$nojit" plan --student "$d/shape" --gpu h100 --json); }
succeeds "a folder that holds config.json alone is planned as the whole model" same_plan
preset_is_its_folder() {
    "$nojit" init --preset nojit-tiny --out "$d/tiny" && cmp <("$nojit" plan --student "$d/tiny" --seq-len 64 --json --memory-budget 1) \
        <("$nojit" plan --preset nojit-tiny --seq-len 64 --json --memory-budget 1)
}
succeeds "a preset is planned as the folder that init makes of it" preset_is_its_folder
by_name() { cmp <(plan --gpu h100 --json) <("$nojit" plan --student-preset qwen2.5-0.5b --teacher-preset qwen2.5-1.5b --gpu h100 --json); }
succeeds "--student-preset and --teacher-preset name presets, too" by_name
q4_takes_less() {
    [ "$(plan --gpu h100 --teacher-dtype q4_k --json | field teacher.weights)" -lt "$(plan --gpu h100 --json | field teacher.weights)" ]
}
succeeds "--teacher-dtype q4_k counts for a teacher that is a preset" q4_takes_less
refuses "prompts need a tokenizer, which a preset has not" 2 'the preset qwen2.5-0.5b has no tokenizer; name a model' \
    plan --on-policy 1 --prompts /dev/null --gpu h100
refuses "a name that is neither a preset nor a folder" 1 'qwen9: no such folder' "$nojit" plan --student qwen9 --gpu h100

# ---- the GPU
succeeds "names are taken in any case, with spaces and dashes" cmp <(plan --gpu 'RTX 4090' --json) <(plan --gpu rtx-4090 --json)
refuses "an unknown GPU: the known ones are listed" 2 "^nojit plan: --gpu rtx9090: not one of t4, .*, rtx4090, .*, gb10; for another GPU give its memory" plan --gpu rtx9090
"$nojit" plan --gpu list >"$scratch/list"
succeeds "--gpu list prints a row for each" [ "$(wc -l <"$scratch/list")" -ge 15 ]
listed() { # each name of the list can be planned for
    local name
    for name in $(sed 1d "$scratch/list" | cut -d' ' -f1); do
        "$nojit" plan --student nojit-tiny --seq-len 64 --gpu "$name" --json | grep -q "\"name\": \"$name\"" || return 1
    done
}
succeeds "each GPU of the list can be planned for" listed
plan --gpu rtx4090 --steps 100 >"$scratch/plan"
succeeds "the budget is what an idle GPU of that name has" grep -qE '^budget +23\.00 GiB  \(of 24\.0 GiB of an idle RTX 4090\)$' "$scratch/plan"
succeeds "a smaller --memory-budget counts" grep -q '"budget_bytes": 20000000000,' <(plan --gpu rtx4090 --memory-budget 20GB --json)
succeeds "a larger --memory-budget does not" grep -q '"budget_bytes": 24696061952,' <(plan --gpu rtx4090 --memory-budget 90GB --json)
refuses "a run that does not fit" 3 'the run needs .* GiB, and the budget is 14.00 GiB \(of 15.0 GiB of an idle T4\)' plan --gpu t4
largest_fits() {
    local batch
    batch=$(plan --gpu rtx4090 --batch-size auto --json 2>/dev/null | field batch_size) && [ "$batch" -gt 8 ] &&
        plan --gpu rtx4090 --batch-size "$batch" --json >/dev/null
}
succeeds "--batch-size auto takes the largest that fits there" largest_fits
if grep -q '^sm_89' "$BUILD/gen/archs.txt"; then
    succeeds "code for it in this binary is named" grep -qE '^gpu +RTX 4090  \(sm_89; this binary has its code: sm_89\)$' "$scratch/plan"
fi
if ! grep -q '^sm_80' "$BUILD/gen/archs.txt"; then
    succeeds "a GPU without code in this binary: the command that makes it" grep -qE '^gpu +A100  \(sm_80; this binary has no code for it: make ARCHS=sm_80\)$' <(plan --gpu a100)
fi
refuses "a type that the GPU has not" 2 '^nojit plan: --dtype bfloat16: T4 \(sm_75\) has no bfloat16' plan --gpu t4 --dtype bfloat16
refuses "FP8 before sm_89" 2 '^nojit plan: --student-dtype fp8: .* A100 is sm_80' plan --gpu a100 --student-dtype fp8
refuses "another device than CUDA" 2 'plans for CUDA; leave --device out' plan --gpu h100 --device cpu

# ---- its time
estimated() { # NAME: of the line
    grep -qE "^$1, estimated +[0-9.]+(h|m|s| s| ms)?.*  \([0-9.]+.* to [0-9.]+.*\)$" "$scratch/plan"
}
succeeds "the time of a step is estimated, with a range" estimated step
succeeds "tokens per second are estimated, with a range" estimated tokens/s
succeeds "the time of all steps is estimated, with a range" estimated '100 steps'
succeeds "a GPU that was never measured is called so" grep -q '^estimated from the shapes; never measured on this GPU' "$scratch/plan"
succeeds "a GPU that was measured has the error" grep -q '^estimated from the shapes; each step measured on this GPU is in the range' <(plan --gpu h200)
succeeds "without a length the time of the run is unknown" grep -qE '^time of the run +unknown  \(give --steps, or --data-tokens for --epochs\)$' <(plan --gpu h200)
whole() { # 2 epochs of 1e6 tokens in steps of 8 x 1024: 244.1
    plan --gpu h200 --epochs 2 --data-tokens 1e6 --json >"$scratch/json" && [ "$(field steps <"$scratch/json")" = 245 ] &&
        awk -v t="$(field seconds <"$scratch/json")" -v s="$(field step_seconds <"$scratch/json")" 'BEGIN { exit !(t > 244.9 * s && t < 245.1 * s) }'
}
succeeds "--epochs and --data-tokens give the steps of the run" whole
ordered() { # the range is around the estimate
    awk -v l="$(field step_seconds_low <"$scratch/json")" -v s="$(field step_seconds <"$scratch/json")" -v h="$(field step_seconds_high <"$scratch/json")" \
        'BEGIN { exit !(0 < l && l < s && s < h) }'
}
succeeds "--json has the estimate between its bounds" ordered
if command -v python3 >/dev/null; then succeeds "--json is JSON" python3 -m json.tool "$scratch/json"; fi
shared() { # two GPUs, a micro-batch each, make twice the tokens in the time of one
    awk -v a="$(plan --gpu h100 --json | field tokens_per_second)" -v b="$(plan --gpu h100 --gpus 2 --json | field tokens_per_second)" \
        'BEGIN { exit !(b > 1.95 * a && b < 2.1 * a) }'
}
succeeds "GPUs that share a step are counted" shared
succeeds "a plan for several GPUs says that it leaves out their exchange" grep -q 'without what the GPUs exchange$' <(plan --gpu h100 --gpus 2)
succeeds "on-policy training has no estimate, and a line says why" grep -q '^time is not estimated with --on-policy' <(plan --gpu h100 --on-policy 1 --max-new 8)
refuses "--data-tokens without a GPU" 2 'name a GPU by --gpu' plan --data-tokens 5
refuses "--data-tokens beside --steps" 2 'leave one of them out' plan --gpu h100 --data-tokens 5 --steps 5

# ---- units of sizes
budget() { "$nojit" plan --preset nojit-tiny --seq-len 64 --json "$@" | field budget_bytes; }
is() { # WANT SIZE
    [ "$(budget --memory-budget "$2")" = "$1" ]
}
succeeds "a number alone is in GiB" is 25769803776 24
succeeds "GB is 10^9 bytes" is 24000000000 24GB
succeeds "GiB is 2^30 bytes, and may stand behind a space" is 25769803776 '24 GiB'
succeeds "units are taken in any case" is 800000000 800mb
succeeds "a size may have a fraction" is 1649267441664 1.5TiB
printf 'memory-budget: 24GB\n' >"$d/run.yaml"
succeeds "a --config file may have units" [ "$(budget --config "$d/run.yaml")" = 24000000000 ]
refuses "a unit that is none" 2 '^nojit plan: --memory-budget 24XB: a size is a number, alone or before B, KB, ' plan --memory-budget 24XB
refuses "a unit where an option has none" 2 '--lr 5GB: not a number' plan --lr 5GB
"$nojit" init --preset nojit-tiny --max-shard-size 100KB --out "$d/shards" >"$scratch/out"
succeeds "--max-shard-size takes units" [ -s "$d/shards/model-00002-of-00002.safetensors" -o -s "$d/shards/model.safetensors.index.json" ]
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# plan_text.sh: what `nojit plan` and `nojit init --preset list` print, in full. If it fails, people and scripts read other words, rows or
# numbers than before; whether the numbers are true, plan_fit.sh and test_fit.c say.
set -eu
. tests/lib/lib.sh
mkdir "$scratch/half"
# The proportions of Qwen2.5-0.5B: config.json is all that a plan reads.
cat >"$scratch/half/config.json" <<'JSON'
{"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
 "num_key_value_heads": 2, "vocab_size": 151936, "max_position_embeddings": 32768, "rms_norm_eps": 1e-6,
 "rope_theta": 1000000.0, "tie_word_embeddings": true, "hidden_act": "silu"}
JSON
nojit=$(realpath "$BUILD/nojit")
commands() (
    cd "$scratch"
    while read -r line; do
        echo "\$ nojit $line"
        echo "\$ nojit $line" >&2
        "$nojit" $line || echo "exit status $?"
    done
)

# A student alone; what would help where a run does not fit; several ranks; answers; JSON.
exact commands <<'END'
plan --student half --device cpu --memory-budget 16 --batch-size 4
plan --student half --teacher half --seq-len 2048 --device cpu --memory-budget 16 --batch-size 8
plan --student half --teacher half --device cpu --memory-budget 24 --gpus 2 --teacher-shard
plan --student half --teacher half --device cpu --memory-budget 24 --on-policy 1 --max-new 128 --rollout-batch 4
plan --student half --device cpu --memory-budget 16 --lora-r 16 --json
init --preset list
END
finish

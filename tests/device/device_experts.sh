#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_experts.sh: a model with experts, quantized as Q4_K_M, teaches what its expanded weights do, to the last bit: on a CPU, and on
# simulated GPUs, a GB10 among them. Its experts stay in blocks when it writes text, which is that of the expanded weights, by as many
# kernels in a step: none expands experts.
set -eu
. tests/lib/lib.sh
needs expert_gemv_down_blocks.lp.type10
. tests/lib/simulated.sh
head -c 600 /usr/share/common-licenses/LGPL-3 >"$d/text.txt"
mkdir "$d/shape"
cat >"$d/shape/config.json" <<'END'
{"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "head_dim": 64, "intermediate_size": 256, "moe_intermediate_size": 256, "num_experts": 8,
 "num_experts_per_tok": 2, "norm_topk_prob": true, "vocab_size": 320, "max_position_embeddings": 512, "rms_norm_eps": 1e-6,
 "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": false, "eos_token_id": 256}
END
"$nojit" init --like "$d/shape" --dtype float32 --seed 3 --out "$d/model" >"$scratch/out"
"$nojit" init --preset nojit-tiny --vocab-size 320 --seed 4 --out "$d/student" >"$scratch/out"
"$nojit" export --model "$d/model" --out "$d/model.gguf" --type q4_k_m >"$scratch/out" 2>&1
"$nojit" export --model "$d/model.gguf" --out "$d/expanded" --type hf >"$scratch/out" 2>&1
"$nojit" init --like "$d/model.gguf" --layers 0,1 --dtype float32 --out "$d/floats" >"$scratch/out"

distill() { # TEACHER OPTION...
    rm -rf "$d/run"
    "$nojit" distill --teacher "$1" --student "$d/student" --data "$d/text.txt" --seq-len 32 --batch-size 2 --grad-accum 2 --steps 2 --lr 1e-3 \
        --gemm-table none --out "$d/run" "${@:2}" >"$scratch/out" 2>&1 || tail -n 1 "$scratch/out" >&2
    sed -E 's/.*"loss": ([^,]+),.*"grad_norm": ([^,]+),.*/\1 \2/' "$d/run/metrics.jsonl"
}
same() { # NAME GOT WANT
    if [ -n "$2" ] && [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', expected '$3'"; fi
}
# Print the text after a prompt, and how many kernels further tokens took.
text() { # MODEL
    local tokens launches=()
    for tokens in 2 12; do
        "$nojit" generate --model "$1" --prompt 'The licence' --max-tokens $tokens --device cuda --gemm-table none 2>"$scratch/err" ||
            tail -n 1 "$scratch/err" >&2
        launches+=("$(counted | grep -oE '[0-9]+ launches')")
    done
    echo "$((${launches[1]% *} - ${launches[0]% *})) kernels"
}

same "quantized experts teach as their expanded weights do, on a CPU" "$(distill "$d/model.gguf" --device cpu)" "$(distill "$d/floats" --device cpu)"
for p in h100:90 gb10:121; do
    arch=${p#*:}
    [[ $held == *" sm_$arch "* || $held == *" sm_${arch}a "* ]] || continue
    export NOJIT_SIM_DEVICE=${p%:*}
    gpu=(--device cuda --dtype bfloat16)
    same "quantized experts teach as their expanded weights do, on a GPU" "$(distill "$d/model.gguf" "${gpu[@]}")" "$(distill "$d/expanded" "${gpu[@]}")"
    same "quantized experts write the text of their expanded weights, in as many kernels" "$(text "$d/model.gguf")" "$(text "$d/expanded")"
done
finish

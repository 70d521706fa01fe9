#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# model_shapes.sh: shapes of published models with two layers (SmolLM2-135M: 9 heads of 64 on 3, tied; Mistral: heads of
# 128, untied): trained, saved with everything that a model folder has, and read back.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
head -c 3000 LICENSE >"$d/text.txt"

act() { sed -nE 's/.*"hidden_act": "([a-z_]+)".*/\1/p' "$d/$1/config.json"; }
shape() { # NAME: config.json on standard input, and the files that published folders have beside it
    mkdir "$d/$1"
    cat >"$d/$1/config.json"
    "$nojit" init --like "$d/$1" --out "$d/$1-random" --dtype float32 >/dev/null
    if [ "$(act "$1")" = "$(act "$1-random")" ]; then ok "init --like keeps the activation of $1"; else not_ok "init --like keeps the activation of $1" "$(act "$1-random")"; fi
    cp "$d/$1/config.json" "$d/$1-random/config.json"
    printf '{"bos_token_id": 1, "eos_token_id": [2, 5], "temperature": 0.6}\n' >"$d/$1-random/generation_config.json"
    cp tests/golden/tokenizer-gpt2.json "$d/$1-random/tokenizer.json"
    for f in tokenizer_config.json special_tokens_map.json added_tokens.json; do echo '{}' >"$d/$1-random/$f"; done
    for f in vocab.json merges.txt chat_template.jinja tokenizer.model; do echo "$f of $1" >"$d/$1-random/$f"; done
}
check() { # NAME MODEL-TYPE
    local from=$d/$1-random to=$d/$1-trained f
    if ! "$nojit" distill --teacher "$from" --student "$from" --allow-self-distillation --data "$d/text.txt" --out "$to" \
        --seq-len 32 --batch-size 1 --steps 2 --lr 1e-4 --device cpu >"$d/log" 2>&1; then
        not_ok "$1 trains" "$(tail -n 1 "$d/log")"
        return
    fi
    ok "$1 trains"
    for f in "$from"/*; do
        case ${f##*/} in
        config.json | model.safetensors) [ -s "$to/${f##*/}" ] || not_ok "the trained $1 has all files of its folder" "${f##*/} is missing" ;;
        *) cmp -s "$f" "$to/${f##*/}" || not_ok "the trained $1 has all files of its folder" "${f##*/} is not the student's" ;;
        esac
    done
    if cmp -s "$from/model.safetensors" "$to/model.safetensors"; then not_ok "training $1 changes its weights" "the weights are the same"; else ok "training $1 changes its weights"; fi
    # Every field of the student's own config.json but the dtype is as it was.
    if diff <(tr -d ' \n' <"$from/config.json" | tr ',{}' '\n\n\n' | grep -v dtype | sort -u) \
        <(tr -d ' \n' <"$to/config.json" | tr ',{}' '\n\n\n' | grep -v dtype | sort -u) >"$d/diff" && grep -q "\"model_type\": \"$2\"" "$to/config.json"; then
        ok "the trained $1 keeps its config.json"
    else
        not_ok "the trained $1 keeps its config.json" "$(cat "$d/diff")"
    fi
    if "$nojit" generate --model "$to" --prompt "The" --max-tokens 4 --device cpu >"$d/log" 2>&1; then ok "the trained $1 writes a text"; else not_ok "the trained $1 writes a text" "$(cat "$d/log")"; fi
}

shape smollm2 <<'JSON'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 576,
 "intermediate_size": 1536, "num_hidden_layers": 2, "num_attention_heads": 9, "num_key_value_heads": 3,
 "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 100000, "rope_scaling": null,
 "rope_interleaved": false, "tie_word_embeddings": true, "bos_token_id": 0, "eos_token_id": 0, "vocab_size": 4096,
 "torch_dtype": "bfloat16"}
JSON
check smollm2 llama
shape mistral <<'JSON'
{"architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_act": "silu", "hidden_size": 512,
 "intermediate_size": 1792, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 1,
 "max_position_embeddings": 32768, "rms_norm_eps": 1e-5, "rope_theta": 1000000, "sliding_window": null,
 "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2, "vocab_size": 4096, "torch_dtype": "bfloat16"}
JSON
check mistral mistral
shape gelu <<'JSON'
{"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_act": "gelu_new", "hidden_size": 576,
 "intermediate_size": 1536, "num_hidden_layers": 2, "num_attention_heads": 9, "num_key_value_heads": 3,
 "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 100000, "rope_scaling": null,
 "tie_word_embeddings": true, "bos_token_id": 0, "eos_token_id": 0, "vocab_size": 4096, "torch_dtype": "bfloat16"}
JSON
check gelu qwen2
mkdir "$d/silu"
sed 's/gelu_new/silu/' "$d/gelu/config.json" >"$d/silu/config.json"
planned() { "$nojit" plan --student "$d/$1" --teacher "$d/$1" --seq-len 512 --json | sed "s|$d/$1|MODEL|g"; }
if [ -n "$(planned gelu)" ] && [ "$(planned gelu)" = "$(planned silu)" ]; then
    ok "the plan does not depend on the activation"
else
    not_ok "the plan does not depend on the activation" "$(diff <(planned gelu) <(planned silu) | head -n 4)"
fi
# The same weights as a Llama model have the same loss: the family changes names only.
cp -r "$d/mistral-random" "$d/as-llama"
sed -i 's/"mistral"/"llama"/; s/"sliding_window": null, *//' "$d/as-llama/config.json"
loss() { "$nojit" eval --model "$d/$1" --data "$d/text.txt" --seq-len 32 --batch-size 1 --device cpu --json 2>/dev/null; }
if [ -n "$(loss as-llama)" ] && [ "$(loss as-llama)" = "$(loss mistral-random)" ]; then ok "mistral computes as llama"; else not_ok "mistral computes as llama" "$(loss as-llama) $(loss mistral-random)"; fi
full=$(loss mistral-random)
sed -i 's/"sliding_window": null/"sliding_window": 32/' "$d/mistral-random/config.json"
if [ "$(loss mistral-random)" = "$full" ]; then ok "a window as long as the sequence changes nothing"; else not_ok "a window as long as the sequence changes nothing" "$(loss mistral-random)"; fi
sed -i 's/"sliding_window": 32/"sliding_window": 31/' "$d/mistral-random/config.json"
if [ -n "$(loss mistral-random)" ] && [ "$(loss mistral-random)" != "$full" ]; then ok "a shorter one hides keys"; else not_ok "a shorter one hides keys" "$(loss mistral-random)"; fi
finish

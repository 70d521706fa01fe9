#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# llama_sentence.sh: a model that has learnt a paragraph, exported: llama.cpp continues a prompt with the text that nojit gives, which is
# the paragraph's. Needs packages of PyPI (tests/lib/llama.sh).
set -eu
. tests/lib/lib.sh
. tests/lib/llama.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d" "$d/shape"
sed -n '/The licenses for most/,/^$/p' /usr/share/common-licenses/GPL-3 | tr -s ' \n' ' ' | cut -c 2- >"$d/text.txt"
prompt=$(cut -c 1-21 "$d/text.txt")
for family in llama qwen2 qwen3; do
    printf '{"model_type": "%s", "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 2,
"num_key_value_heads": 1, "vocab_size": 1280, "tie_word_embeddings": true, "eos_token_id": 1256}' "$family" >"$d/shape/config.json"
    cp tests/golden/tokenizer-qwen2.json "$d/shape/tokenizer.json"
    "$nojit" init --like "$d/shape" --dtype float32 --out "$d/$family" >/dev/null
    "$nojit" train --student "$d/$family" --data "$d/text.txt" --device cpu --seq-len 192 --batch-size 1 --steps 200 --lr 5e-3 \
        --out "$d/$family-run" --export f32 >"$scratch/out" 2>&1 || cat "$scratch/out"
    file=$d/$family-run/model-f32.gguf
    "$nojit" generate --model "$file" --device cpu --prompt "$prompt" --max-tokens 40 --temperature 0 >"$d/ours" 2>"$scratch/err" ||
        tail -n 1 "$scratch/err"
    llama_cpp continue "$file" "$prompt" 40 >"$d/theirs" 2>"$scratch/err" || tail -n 1 "$scratch/err"
    if [ -s "$d/ours" ] && cmp "$d/ours" "$d/theirs" >"$scratch/out" 2>&1; then ok "llama.cpp writes nojit's text with the exported $family model"; else not_ok "llama.cpp writes nojit's text with the exported $family model" "$(cat "$scratch/out")"; fi
    case $(cat "$d/text.txt") in
    "$(cat "$d/ours")"*) ok "the exported $family model has learnt its paragraph" ;;
    *) not_ok "the exported $family model has learnt its paragraph" "$(cat "$d/ours")" ;;
    esac
done
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# llama_tokens.sh: ids of a text are llama.cpp's, for a GGUF file of each pre-tokenizer, and those of the tokenizer.json that it was
# made of. Needs packages of PyPI (tests/lib/llama.sh).
set -eu
. tests/lib/lib.sh
. tests/lib/llama.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
ids() { # MODEL: without the end of text
    "$nojit" tokenize --model "$1" --data "$text" --out "$d/ids.bin" >"$scratch/out" || cat "$scratch/out"
    count=$(sed -n 's/^\([0-9]*\) tokens .*/\1/p' "$scratch/out")
    od -An -v -t d4 -w4 -j1024 -N $((4 * (count - 1))) "$d/ids.bin" | tr -d ' '
    rm "$d/ids.bin"
}

# In NFC: llama.cpp does not normalise texts. Its pattern for tekken differs from that of the models where letters have combining marks.
{
    cat docs/*.md
    printf "it's 1234 12345678 WE'LL \004 the\013 \r\n\r \t \302\240x \303\251t\303\251 \320\242\320\265\320\272\321\201\321\202 \346\274\242\345\255\227 "
    printf '\331\243\331\244 \360\237\221\251\342\200\215\360\237\222\273 <|endoftext|>a<|im_start|> <|eot_id|><tool>   \n'
} >"$d/tekken.txt"
cat "$d/tekken.txt" tests/golden/make_tokenizers.py >"$d/any.txt"
for pre in qwen2:qwen2 llama-bpe:llama3 smaug-bpe:llama3 smollm:gpt2 gpt-2:gpt2 tekken:llama3 qwen35:qwen2 gpt-4o:llama3 olmo:gpt2 \
    deepseek-v3:gpt2 deepseek-coder:gpt2 minicpm5:llama3 superbpe:gpt2 gemma4:gemma; do
    folder=$d/${pre%:*}
    file=$folder.gguf
    ends=1256,1257
    [ "${pre#*:}" != gemma ] || ends=1,2
    mkdir "$d/shape"
    printf '{"model_type": "llama", "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 1,
"num_key_value_heads": 1, "vocab_size": 1280, "tie_word_embeddings": true, "eos_token_id": %d, "bos_token_id": %d}' "${ends%,*}" "${ends#*,}" >"$d/shape/config.json"
    "$nojit" init --like "$d/shape" --out "$folder" >/dev/null
    rm -r "$d/shape"
    llama_cpp tokenizer "${pre%:*}" "tests/golden/tokenizer-${pre#*:}.json" "$folder/tokenizer.json"
    "$BUILD/gguf-of" "$folder" "$file"
    text=$d/any.txt
    case ${pre%:*} in tekken | gpt-4o) text=$d/tekken.txt ;; esac
    ids "$file" >"$d/got"
    ids "$folder" >"$d/json"
    llama_cpp tokens "$file" "$text" >"$d/want" 2>"$scratch/err" || tail -n 1 "$scratch/err"
    if cmp "$d/got" "$d/want" >"$scratch/out" 2>&1 && [ -s "$d/want" ]; then ok "ids of a ${pre%:*} GGUF file are llama.cpp's"; else not_ok "ids of a ${pre%:*} GGUF file are llama.cpp's" "$(cat "$scratch/out")"; fi
    if cmp "$d/got" "$d/json" >"$scratch/out" 2>&1; then ok "ids of a ${pre%:*} GGUF file are those of its tokenizer.json"; else not_ok "ids of a ${pre%:*} GGUF file are those of its tokenizer.json" "$(cat "$scratch/out")"; fi
done

# Its letters are escaped in the table, so that no tokenizer.json is written under this name.
llama_cpp rename "$d/superbpe.gguf" "$d/deepseek-llm.gguf" deepseek-llm
ids "$d/deepseek-llm.gguf" >"$d/got"
llama_cpp tokens "$d/deepseek-llm.gguf" "$d/any.txt" >"$d/want" 2>"$scratch/err" || tail -n 1 "$scratch/err"
ok_if "ids of a deepseek-llm GGUF file are llama.cpp's" "$(cmp "$d/got" "$d/want" 2>&1 | tail -n 1)" cmp -s "$d/got" "$d/want"
finish

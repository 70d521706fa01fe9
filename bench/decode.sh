#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# decode.sh: speed of `nojit generate` on a GPU. Rows of its table:
#   rows     256 prompts and answers of 100 to 1,024 tokens each, all at once: the benchmark of nano-vllm
#   steady   a step with 256 sequences of about 512 tokens: what 128 more tokens each take
#   few      eight and 16 sequences, 512 tokens after 64
#   one      one sequence, 1,000 tokens after 24
# With TORCH=python3, a Python that has transformers, beside what model.generate() does there with the prompts of `rows`
# (static cache; COMPILE=1 compiles it), all padded to the longest, until the longest answer is there; only tokens asked for count.
#   PRESETS='qwen2.5-0.5b qwen3-0.6b'   presets, with random weights, or models (folders, GGUF files)
#   ROWS='rows steady few one'   WORK=build/decode
#   GENERATE='--kv-dtype int8'          further options of every run
set -eu
: "${BUILD:=build}" "${WORK:=$BUILD/decode}" "${DEVICE:=cuda}" "${PRESETS:=qwen2.5-0.5b qwen3-0.6b}" "${ROWS:=rows steady few one}"
: "${TORCH:=}" "${GENERATE:=}" "${COMPILE:=}"
nojit=$BUILD/nojit
. bench/lib.sh
begin "$@"

# write MODEL FILE OPTION...: "TOKENS SECONDS" of the answers
write() {
    "$nojit" generate --model "$1" --prompts "$2" --device "$DEVICE" --ignore-eos --temperature 1 "${@:3}" $GENERATE 2>&1 >/dev/null |
        tee -a "$WORK/log" | sed -nE 's/.* texts?, ([0-9]+) tokens in ([0-9.]+) s.*/\1 \2/p'
}
# row NAME WHAT TOKENS SECONDS
row() {
    [ $# = 4 ] || refuse "$1, $2: $(tail -n 1 "$WORK/log")"
    awk -v n="$1" -v w="$2" -v t="$3" -v s="$4" 'BEGIN { printf "%-14s %-18s %9d %9.3f %11.0f\n", n, w, t, s, t / s }'
}

prompts 256 100 1024 100 1024 >"$WORK/rows.jsonl"
prompts 256 384 384 64 64 >"$WORK/short.jsonl"
prompts 256 384 384 192 192 >"$WORK/long.jsonl"
for n in 8 16; do
    prompts $n 64 64 512 512 >"$WORK/$n.jsonl"
done
prompts 1 24 24 1000 1000 >"$WORK/one.jsonl"
printf '%-14s %-18s %9s %9s %11s\n' model what tokens seconds tokens/s
for preset in $PRESETS; do
    model=$preset preset=${preset##*/}
    if ! [ -e "$model" ]; then
        model=$WORK/$preset
        "$nojit" init --preset "$preset" --out "$model" >/dev/null 2>&1
    fi
    for what in $ROWS; do
        case $what in
        rows) row "$preset" "256 rows" $(write "$model" "$WORK/rows.jsonl" --batch-size 256) ;;
        few)
            for n in 8 16; do
                row "$preset" "$n rows" $(write "$model" "$WORK/$n.jsonl" --batch-size $n)
            done
            ;;
        one) row "$preset" "one row" $(write "$model" "$WORK/one.jsonl") ;;
        steady)
            read -r short_tokens short <<<"$(write "$model" "$WORK/short.jsonl" --batch-size 256)"
            read -r long_tokens long <<<"$(write "$model" "$WORK/long.jsonl" --batch-size 256)"
            row "$preset" "steady, 256 rows" $((long_tokens - short_tokens)) "$(awk "BEGIN { print $long - $short }")"
            ;;
        esac
    done
    if [ -n "$TORCH" ]; then
        "$TORCH" bench/torch_generate.py "$model" "$WORK/rows.jsonl" ${COMPILE:+--compile} 2>>"$WORK/log" | while read -r tokens seconds; do
            row "$preset" "256 rows, PyTorch" "$tokens" "$seconds"
        done
    fi
    rm -rf "${WORK:?}/$preset" # a model of the user stays
done

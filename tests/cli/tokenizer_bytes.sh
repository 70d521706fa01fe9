#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tokenizer_bytes.sh: `--tokenizer bytes`: a model without a tokenizer, whose vocabulary is not one of bytes, reads bytes in every command
# where its user says so, and nowhere else.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
head -c 2000 /usr/share/common-licenses/GPL-3 >"$d/a.txt"
printf '{"prompt": "GNU"}\n' >"$d/prompts.jsonl"
for i in 1 2; do "$nojit" init --preset nojit-tiny --num-layers 1 --vocab-size 1000 --seed $i --out "$d/$i" >/dev/null; done

refuses "text for a vocabulary that is not one of bytes is refused without --tokenizer bytes" 1 "$d/1: no tokenizer.json, and a vocabulary of 1000 tokens is not one of bytes; .* or give --tokenizer bytes" \
    "$nojit" tokenize --model "$d/1" --data "$d/a.txt" --out "$d/no.bin"
succeeds "tokenize takes --tokenizer bytes" "$nojit" tokenize --model "$d/1" --tokenizer bytes --data "$d/a.txt" --out "$d/a.bin"
od -An -v -t u4 -w4 -j1024 "$d/a.bin" | head -n 2000 | awk '{ printf "%c", $1 }' >"$d/read"
ok_if "with --tokenizer bytes the ids of a text are its bytes" "$(head -c 100 "$d/read")" cmp -s "$d/read" "$d/a.txt"
ok_if "with --tokenizer bytes id 256 ends a text" "$(tail -c 8 "$d/a.bin" | od -t u4)" [ "$(od -An -t u4 -j $((1024 + 8000)) -N 4 "$d/a.bin" | tr -d ' ')" = 256 ]

small=(--device cpu --batch-size 1 --seq-len 64)
loss() { "$nojit" eval --model "$d/1" --data "$1" "${@:2}" --device cpu --seq-len 64 --json | sed -n 's/.*"ce_loss": *\([0-9.]*\).*/\1/p'; }
text=$(loss "$d/a.txt" --tokenizer bytes) tokens=$(loss "$d/a.bin")
ok_if "eval with --tokenizer bytes has the loss of the token file" "$text and $tokens" [ "x$text" = "x${tokens:-none}" ]
succeeds "train takes --tokenizer bytes" "$nojit" train --student "$d/1" --tokenizer bytes --data "$d/a.txt" "${small[@]}" --steps 1 --out "$d/train"
succeeds "distill takes --tokenizer bytes" "$nojit" distill --student "$d/1" --teacher "$d/2" --tokenizer bytes --data "$d/a.txt" "${small[@]}" --steps 1 --out "$d/distill"
succeeds "generate takes --tokenizer bytes" "$nojit" generate --model "$d/1" --tokenizer bytes --prompt GNU --max-tokens 2 --device cpu
succeeds "plan takes --tokenizer bytes" "$nojit" plan --student "$d/1" --teacher "$d/2" --tokenizer bytes --prompts "$d/prompts.jsonl" --on-policy 0.5 --max-new 8 --seq-len 64 --device cpu

cp tests/golden/tokenizer-gpt2.json "$d/2/tokenizer.json"
refuses "--tokenizer bytes is refused for a model with a tokenizer" 2 "--tokenizer bytes is for models without a tokenizer, and $d/2 has tokenizer.json; leave the option out" \
    "$nojit" tokenize --model "$d/2" --tokenizer bytes --data "$d/a.txt" --out "$d/no.bin"
mkdir "$d/narrow"
echo '{"vocab_size": 128}' >"$d/narrow/config.json"
refuses "--tokenizer bytes is refused for a vocabulary of fewer than 256 tokens" 2 "--tokenizer bytes needs 256 tokens, and the vocabulary of $d/narrow has 128" \
    "$nojit" tokenize --model "$d/narrow" --tokenizer bytes --data "$d/a.txt" --out "$d/no.bin"
finish

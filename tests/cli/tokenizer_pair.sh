#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tokenizer_pair.sh: pairs whose tokenizers agree but for added tokens at the end of one: restricted to the common
# tokens, which is said once; data beyond them and tokens that differ are refused by name. The same with GGUF files.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d" "$d/shape"
golden=tests/golden/tokenizer-qwen2.json
more='{"id":1264,"content":"<think>","special":false},{"id":1265,"content":"</think>","special":false}'

cat >"$d/shape/config.json" <<'JSON'
{"model_type": "qwen2", "hidden_size": 64, "intermediate_size": 192, "num_hidden_layers": 2, "num_attention_heads": 1,
 "num_key_value_heads": 1, "vocab_size": 1280, "tie_word_embeddings": true, "eos_token_id": 1256}
JSON
"$nojit" init --like "$d/shape" --out "$d/short" >/dev/null
"$nojit" init --like "$d/shape" --seed 2 --out "$d/long" >/dev/null
"$nojit" init --like "$d/shape" --seed 3 --out "$d/other" >/dev/null
cp $golden "$d/short/tokenizer.json"
sed "s|\],\"normalizer\"|,$more&|" $golden >"$d/long/tokenizer.json"
sed 's/<|im_start|>/<|in_start|>/' $golden >"$d/other/tokenizer.json"
head -c 6000 LICENSE >"$d/text.txt"
(head -c 3000 LICENSE && echo '<think>' && head -c 3000 LICENSE) >"$d/think.txt"
distill() { # STUDENT TEACHER TEXT OPTION...
    "$nojit" distill --student "$d/$1" --teacher "$d/$2" --data "$d/$3" --seq-len 32 --batch-size 2 --steps 2 --device cpu "${@:4}"
}
said() { # NAME COUNTS
    if [ "$(grep -c restricted "$d/log")" = 1 ] && grep -q "$2.*restricted to the first 1264" "$d/log"; then ok "$1"; else not_ok "$1" "$(cat "$d/log")"; fi
}

distill short long text.txt --out "$d/one" >"$d/log"
said "a teacher with more tokens is restricted to the common ones" "1264 (student) and 1266 (teacher)"
distill long short text.txt --out "$d/two" >"$d/log"
said "a student with more tokens is restricted to the common ones" "1266 (student) and 1264 (teacher)"
if grep -qx 'vocab 1264' <(distill long short text.txt --out "$d/three" --save-every 1 >/dev/null && cat "$d/three/checkpoint-2/settings.txt"); then
    ok "settings.txt of a restricted run has the common vocabulary"
else
    not_ok "settings.txt of a restricted run has the common vocabulary" "$(cat "$d/three/checkpoint-2/settings.txt")"
fi
refuses "text with a token beyond the common ones is refused" 1 'think.txt: token [0-9]+ is 1264, the vocabulary of this run ends at 1263' \
    distill long short think.txt --out "$d/four"
"$nojit" tokenize --model "$d/long" --data "$d/think.txt" --out "$d/think.bin" >/dev/null
refuses "a token file with a token beyond the common ones is refused" 1 'think.bin: token [0-9]+ is 1264, the vocabulary of this run ends at 1263' \
    distill short long think.bin --out "$d/four"
"$nojit" train --student "$d/long" --data "$d/think.txt" --seq-len 32 --batch-size 2 --steps 2 --device cpu --out "$d/five" >"$d/log"
if grep -q restricted "$d/log"; then not_ok "a student alone has all its tokens" "$(cat "$d/log")"; else ok "a student alone has all its tokens"; fi
entropy() { # MODEL TEACHER: of the teacher's distribution
    "$nojit" eval --model "$d/$1" --teacher "$d/$2" --data "$d/text.txt" --seq-len 32 --batch-size 2 --device cpu --json 2>"$d/log" |
        sed -E 's/.*"teacher_entropy": ([^,}]+).*/\1/'
}
restricted=$(entropy long short)
said "eval restricts models to the common tokens" "1266 (student) and 1264 (teacher)"
cp -r "$d/long" "$d/same"
cp $golden "$d/same/tokenizer.json"
# The teacher's weights are random, its distribution is nearly even: over 1264 tokens instead of 1280 its entropy is
# lower by log(1280 / 1264) = 0.01258.
whole=$(entropy same short)
if awk -v a="$whole" -v b="$restricted" 'BEGIN { exit !(a - b > 0.011 && a - b < 0.014) }'; then
    ok "tokens beyond the common ones and padding take no part in the loss"
else
    not_ok "tokens beyond the common ones and padding take no part in the loss" "entropy $whole, restricted $restricted"
fi
refuses "a token that differs between the models is refused" 1 "token 1257 is '<.in_start.>' for the student and '<.im_start.>' for the teacher" \
    distill other long text.txt --out "$d/six"

# ---- GGUF files
same_files() { # NAME A B
    if cmp "$2" "$3" >"$scratch/out" 2>&1; then ok "$1"; else not_ok "$1" "$(cat "$scratch/out")"; fi
}
mkdir "$d/bare"
cp "$d/short/config.json" "$d/short/model.safetensors" "$d/bare"
for m in short long other bare; do "$BUILD/gguf-of" "$d/$m" "$d/$m.gguf"; done
distill short long.gguf text.txt --out "$d/seven" >"$d/log"
said "a GGUF teacher with more tokens is restricted to the common ones" "1264 (student) and 1266 (teacher)"
same_files "a GGUF teacher with more tokens teaches the student of its folder" "$d/seven/model.safetensors" "$d/one/model.safetensors"
got=$(entropy long.gguf short)
said "eval restricts a GGUF file to the common tokens" "1266 (student) and 1264 (teacher)"
if [ "$got" = "$restricted" ]; then ok "eval of a restricted GGUF file gives the figures of its folder"; else not_ok "eval of a restricted GGUF file gives the figures of its folder" "$got, not $restricted"; fi
refuses "a token of a GGUF file that differs is refused" 1 "token 1257 is '<.im_start.>' for the student and '<.in_start.>' for the teacher" \
    distill long other.gguf text.txt --out "$d/eight"
refuses "a GGUF teacher without a tokenizer is refused" 1 'bare.gguf: the teacher has no tokenizer in its metadata and so reads bytes, .* convert that model again' \
    distill long bare.gguf text.txt --out "$d/eight"
LC_ALL=C sed 's/\(tokenizer.ggml.pre............\)qwen2/\1qwen9/' "$d/long.gguf" >"$d/unknown.gguf"
refuses "a GGUF student whose texts are cut in an unknown way is refused" 1 "unknown.gguf: tokenizer.ggml.pre is 'qwen9', and qwen2, .* are supported" \
    distill unknown.gguf short text.txt --out "$d/eight"
distill short unknown.gguf text.txt --out "$d/nine" >"$d/log"
if [ "$(grep -c "tokens of the two models are not compared: .*'qwen9'" "$d/log")" = 1 ]; then
    ok "a GGUF teacher whose texts are cut in an unknown way is not compared and said"
else
    not_ok "a GGUF teacher whose texts are cut in an unknown way is not compared and said" "$(cat "$d/log")"
fi
"$nojit" tokenize --model "$d/long.gguf" --data "$d/think.txt" --out "$d/file.bin" >/dev/null
same_files "a GGUF file gives the tokens of its folder" "$d/file.bin" "$d/think.bin"
"$nojit" train --student "$d/long.gguf" --data "$d/think.txt" --seq-len 32 --batch-size 2 --steps 2 --device cpu --out "$d/ten" >"$d/log"
same_files "a GGUF student trains as its folder does" "$d/ten/model.safetensors" "$d/five/model.safetensors"
"$nojit" tokenize --model "$d/ten" --data "$d/think.txt" --out "$d/folder.bin" >/dev/null
same_files "a GGUF student leaves a tokenizer.json" "$d/folder.bin" "$d/think.bin"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tokenizer_pair.sh: pairs whose tokenizers agree but for added tokens at the end of one: restricted to the common
# tokens, which is said once; data beyond them and tokens that differ are refused by name.
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
said "a teacher with more tokens" "1264 (student) and 1266 (teacher)"
distill long short text.txt --out "$d/two" >"$d/log"
said "a student with more tokens" "1266 (student) and 1264 (teacher)"
if grep -qx 'vocab 1264' <(distill long short text.txt --out "$d/three" --save-every 1 >/dev/null && cat "$d/three/checkpoint-2/settings.txt"); then
    ok "a resumed run must repeat it"
else
    not_ok "a resumed run must repeat it" "$(cat "$d/three/checkpoint-2/settings.txt")"
fi
refuses "text with a further token" 1 'think.txt: token [0-9]+ is 1264, the vocabulary of this run ends at 1263' \
    distill long short think.txt --out "$d/four"
"$nojit" tokenize --model "$d/long" --data "$d/think.txt" --out "$d/think.bin" >/dev/null
refuses "a token file with one" 1 'think.bin: token [0-9]+ is 1264, the vocabulary of this run ends at 1263' \
    distill short long think.bin --out "$d/four"
"$nojit" train --student "$d/long" --data "$d/think.txt" --seq-len 32 --batch-size 2 --steps 2 --device cpu --out "$d/five" >"$d/log"
if grep -q restricted "$d/log"; then not_ok "alone, the student has them all" "$(cat "$d/log")"; else ok "alone, the student has them all"; fi
entropy() { # MODEL TEACHER: of the teacher's distribution
    "$nojit" eval --model "$d/$1" --teacher "$d/$2" --data "$d/text.txt" --seq-len 32 --batch-size 2 --device cpu --json 2>"$d/log" |
        sed -E 's/.*"teacher_entropy": ([^,}]+).*/\1/'
}
restricted=$(entropy long short)
said "eval" "1266 (student) and 1264 (teacher)"
cp -r "$d/long" "$d/same"
cp $golden "$d/same/tokenizer.json"
# The teacher's weights are random, its distribution is nearly even: over 1264 tokens instead of 1280 its entropy is
# lower by log(1280 / 1264) = 0.01258.
whole=$(entropy same short)
if awk -v a="$whole" -v b="$restricted" 'BEGIN { exit !(a - b > 0.011 && a - b < 0.014) }'; then
    ok "further tokens and padding take no part"
else
    not_ok "further tokens and padding take no part" "entropy $whole, restricted $restricted"
fi
refuses "a token that differs" 1 "token 1257 is '<.in_start.>' for the student and '<.im_start.>' for the teacher" \
    distill other long text.txt --out "$d/six"
finish

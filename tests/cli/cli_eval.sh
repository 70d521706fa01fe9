#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cli_eval.sh: eval says in words what it says as JSON; init lists its presets and takes another model's shape; what does not go
# together is refused before anything is read.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
"$nojit" init --preset nojit-tiny --seed 2 --out "$d/teacher" >/dev/null
head -c 3000 LICENSE >"$d/text.txt"
eval_of() { "$nojit" eval --model "$d/student" --data "$d/text.txt" --seq-len 64 --device cpu "$@" 2>/dev/null; }
value() { sed -nE "s/.*\"$1\": ([-0-9.e+]+).*/\1/p" "$scratch/json"; } # FIELD: of the JSON
# line NAME REGEX FIELD...: the text has a line of this form, whose numbers are those of the fields.
line() {
    local name=$1 regex=$2 words i=0
    shift 2
    words=$(grep -E -- "$regex" "$scratch/text" | grep -oE '[ (][0-9]+(\.[0-9]+)?' | tr -d ' (' || true)
    for field; do
        i=$((i + 1))
        if awk -v a="$(echo "$words" | sed -n ${i}p)" -v b="$(value "$field")" \
            'BEGIN { exit !(a != "" && b != "" && (a - b) ^ 2 <= 1e-8 + 1e-8 * b * b) }'; then
            ok "$name: $field"
        else
            not_ok "$name: $field" "$(value "$field"), in: $(cat "$scratch/text")"
        fi
    done
}

eval_of --json >"$scratch/json"
eval_of >"$scratch/text"
line "alone" '^class_loss' class_loss
line "alone" '^perplexity' perplexity
line "alone" '^tokens' tokens
if [ "$(wc -l <"$scratch/text")" = 3 ]; then ok "no word of a teacher"; else not_ok "no word of a teacher" "$(cat "$scratch/text")"; fi
eval_of --json --teacher "$d/teacher" >"$scratch/json"
eval_of --teacher "$d/teacher" >"$scratch/text"
line "with a teacher" '^class_loss' class_loss
line "with a teacher" '^teacher' teacher_class_loss teacher_perplexity teacher_entropy
line "with a teacher" '^kd_loss' kd_loss
line "with a teacher" '^agreement' agreement
sed -i -E 's/p([0-9]+) /\1:/g' "$scratch/text"
sed -i -E '/by token/s/(50|90|99)://g' "$scratch/text"
line "by token" 'by token' kd_p50 kd_p90 kd_p99 kd_max

cp -r "$d/student" "$d/short"
sed -i 's/"max_position_embeddings": [0-9]*/"max_position_embeddings": 96/' "$d/short/config.json"
short() { "$nojit" eval --json --model "$1" --teacher "$2" --data "$d/text.txt" --device cpu "${@:3}"; }
takes_96() { # NAME MODEL TEACHER
    if [ "$(short "$d/$2" "$d/$3")" = "$(short "$d/$2" "$d/$3" --seq-len 96)" ]; then ok "$1"; else not_ok "$1" "other figures"; fi
}
takes_96 "a short teacher" student short
takes_96 "a short model" short student
refuses "longer than the model takes" 2 'pass --seq-len 96 or less' short "$d/short" "$d/short" --seq-len 97

cp -r "$d/student" "$d/nan"
printf '\0\0\300\177' | dd of="$d/nan/model.safetensors" bs=1 conv=notrunc status=none \
    seek=$(($(stat -c %s "$d/nan/model.safetensors") - 4))
broken() { "$nojit" eval --model "$1" --data "$d/text.txt" --seq-len 64 --device cpu "${@:2}"; }
refuses "weights that are not finite" 1 'not finite: weight of the student [a-z0-9._]+ contains NaN or infinity' broken "$d/nan" --json
if [ -s "$scratch/out" ]; then not_ok "no figures of it" "$(cat "$scratch/out")"; else ok "no figures of it"; fi
refuses "a teacher that is not finite" 1 'weight of the teacher [a-z0-9._]+ contains NaN or infinity' broken "$d/student" --teacher "$d/nan"

"$nojit" train --student "$d/student" --data "$d/text.txt" --eval-data "$d/text.txt" --out "$d/diverged" --steps 6 --seq-len 64 --lr 3 \
    --device cpu >"$scratch/log" 2>&1
if tail -n 3 "$scratch/log" | grep -qE 'held out at step 6: ce [0-9.]+  perplexity [0-9.]+e\+[0-9]+$'; then
    ok "a large perplexity in a few digits"
else
    not_ok "a large perplexity in a few digits" "$(tail -n 3 "$scratch/log")"
fi

"$nojit" init --preset list >"$scratch/presets"
if grep -qE '^nojit-tiny +[0-9.]+M parameters' "$scratch/presets"; then ok "presets"; else not_ok "presets" "$(cat "$scratch/presets")"; fi
"$nojit" init --like "$d/student" --seed 9 --out "$d/like" >"$scratch/said"
if diff <(grep -v dtype "$d/student/config.json") <(grep -v dtype "$d/like/config.json") >/dev/null &&
    ! cmp -s "$d/student/model.safetensors" "$d/like/model.safetensors"; then
    ok "--like: the shape, other weights"
else
    not_ok "--like" "$(diff "$d/student/config.json" "$d/like/config.json" | head -3)"
fi
refuses "unknown preset" 2 '--preset nojit-tinny: unknown; .nojit init --preset list' "$nojit" init --preset nojit-tinny --out "$d/x"
refuses "no preset" 2 '--preset or --like is needed' "$nojit" init --out "$d/x"
refuses "no folder" 2 '--out is needed' "$nojit" init --preset nojit-tiny
refuses "no model" 2 '--model is needed' "$nojit" eval --data "$d/text.txt"
refuses "no text" 2 '--data is needed' "$nojit" eval --model "$d/student"
train() { "$nojit" train --student "$d/student" --data "$d/text.txt" --out "$d/run" --seq-len 32 --steps 1 --device cpu "$@"; }
refuses "two ranks" 2 'brings its own rank; leave --lora-r out' train --adapter "$d/none" --lora-r 4
if [ -e "$d/run" ] || [ -e "$d/x" ]; then not_ok "nothing is written" "$(ls "$d")"; else ok "nothing is written"; fi
finish

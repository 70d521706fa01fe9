#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cli_eval.sh: `nojit eval` says in words what it says as JSON, takes as long sequences as its models do, and refuses weights that are
# not finite. Acceptance: cli_acceptance.sh.
set -eu
. tests/lib/lib.sh
. tests/lib/eval_text.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
"$nojit" init --preset nojit-tiny --seed 2 --out "$d/teacher" >/dev/null
head -c 3000 LICENSE >"$d/text.txt"
eval_of() { "$nojit" eval --model "$d/student" --data "$d/text.txt" --seq-len 64 --device cpu "$@" 2>/dev/null; }

eval_of --json >"$scratch/json"
eval_of >"$scratch/text"
line "line about a model alone" '^ce_loss' ce_loss
line "line about a model alone" '^perplexity' perplexity
line "line about a model alone" '^tokens' tokens
if [ "$(wc -l <"$scratch/text")" = 3 ]; then ok "eval of a model alone says nothing of a teacher"; else not_ok "eval of a model alone says nothing of a teacher" "$(cat "$scratch/text")"; fi
eval_of --json --teacher "$d/teacher" >"$scratch/json"
eval_of --teacher "$d/teacher" >"$scratch/text"
line "line about model and teacher" '^ce_loss' ce_loss
line "line about model and teacher" '^teacher' teacher_ce_loss teacher_perplexity teacher_entropy
line "line about model and teacher" '^kd_loss' kd_loss
line "line about model and teacher" '^agreement' agreement
sed -i -E 's/p([0-9]+) /\1:/g' "$scratch/text"
sed -i -E '/by token/s/(50|90|99)://g' "$scratch/text"
line "line about tokens" 'by token' kd_p50 kd_p90 kd_p99 kd_max

cp -r "$d/student" "$d/short"
sed -i 's/"max_position_embeddings": [0-9]*/"max_position_embeddings": 96/' "$d/short/config.json"
short() { "$nojit" eval --json --model "$1" --teacher "$2" --data "$d/text.txt" --device cpu "${@:3}"; }
takes_96() { # NAME MODEL TEACHER
    if [ "$(short "$d/$2" "$d/$3")" = "$(short "$d/$2" "$d/$3" --seq-len 96)" ]; then ok "$1"; else not_ok "$1" "other figures"; fi
}
takes_96 "eval takes the sequence length of a shorter teacher" student short
takes_96 "eval takes the sequence length of a shorter model" short student
refuses "eval refuses a --seq-len beyond what the model takes" 2 'pass --seq-len 96 or less' short "$d/short" "$d/short" --seq-len 97

cp -r "$d/student" "$d/nan"
printf '\0\0\300\177' | dd of="$d/nan/model.safetensors" bs=1 conv=notrunc status=none \
    seek=$(($(stat -c %s "$d/nan/model.safetensors") - 4))
broken() { "$nojit" eval --model "$1" --data "$d/text.txt" --seq-len 64 --device cpu "${@:2}"; }
refuses "eval refuses weights that are not finite" 1 'not finite: weight of the student [a-z0-9._]+ contains NaN or infinity' broken "$d/nan" --json
ok_if "NaN is said when a model is loaded" "$(cat "$scratch/err")" grep -qE "^nojit eval: $d/nan: tensor [a-z0-9._]+ contains NaN or infinity: runs and exports of this model will fail" "$scratch/err"
if [ -s "$scratch/out" ]; then not_ok "eval prints no figures of weights that are not finite" "$(cat "$scratch/out")"; else ok "eval prints no figures of weights that are not finite"; fi
refuses "eval refuses a teacher that is not finite" 1 'weight of the teacher [a-z0-9._]+ contains NaN or infinity' broken "$d/student" --teacher "$d/nan"
finish

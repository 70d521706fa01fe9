#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cli_samples.sh: --sample-prompt writes samples when it is due, as generate would write them, and training does not notice; a
# resumed run has the same.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive

"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
"$nojit" init --preset nojit-tiny --seed 2 --out "$d/teacher" >/dev/null
head -c 1500 /usr/share/common-licenses/GPL-3 >"$d/text.txt"
head -c 3000 /usr/share/common-licenses/LGPL-3 | tail -c 1500 >"$d/held.txt"
run=("$nojit" distill --teacher "$d/teacher" --student "$d/student" --data "$d/text.txt" --eval-data "$d/held.txt"
    --seq-len 32 --batch-size 4 --steps 120 --eval-every 20 --lr 2e-2 --lr-schedule constant --kd-ratio 0.1 --device cpu)
with=(--sample-prompt "The GNU" "a, \"b\"" --sample-prompt=--c --sample-tokens 12)
losses() { sed -E 's/"(tokens_per_second|step_ms)": [^,]+, //g' "$1/metrics.jsonl"; }
steps() { sed -nE 's/^\{"step": ([0-9]+), "prompt": .*\}$/\1/p' "$1/samples.jsonl" | uniq -c | tr -s ' \n' ' '; }
text() { sed -nE "s/^\{\"step\": $2, \"prompt\": \"$3\", \"text\": \"(.*)\"\}\$/\1/p" "$1/samples.jsonl"; }

"${run[@]}" --out "$d/plain" >/dev/null 2>&1
"${run[@]}" --out "$d/a" "${with[@]}" >"$d/log" 2>&1
ok_if "no samples are written unless asked for" "samples.jsonl is there" test ! -e "$d/plain/samples.jsonl"
ok_if "a run with --sample-prompt has the losses of one without" "they differ" cmp -s <(losses "$d/plain") <(losses "$d/a")
ok_if "a run with --sample-prompt has the weights of one without" "they differ" cmp -s "$d/plain/model.safetensors" "$d/a/model.safetensors"
ok_if "samples.jsonl has a row for each prompt and measurement" "$(steps "$d/a")" test "$(steps "$d/a")" = " 3 0 3 20 3 40 3 60 3 80 3 100 3 120 "
ok_if "a sample has a line in the terminal" "$(tail -n 4 "$d/log")" grep -q "^sample at step 120: 'a, \"b\"' continues '" "$d/log"
ok_if "prompts of samples keep commas, quotes and dashes" "$(tail -n 3 "$d/a/samples.jsonl")" \
    test -n "$(text "$d/a" 120 'a, \\"b\\"')" -a -n "$(text "$d/a" 120 --c)"
ok_if "the receipt has the prompts of samples" "$(grep sample "$d/a/receipt.json")" \
    grep -q '"sample-prompt": \[ "The GNU", "a, \\"b\\"", "--c" \]' <(tr -s ' \n' ' ' <"$d/a/receipt.json")

# In the row, bytes that are not UTF-8 are replaced and control characters are escaped; both sides are compared without them.
want=$("$nojit" generate --device cpu --model "$d/a" --prompt "The GNU" --max-tokens 12 | iconv -c -f UTF-8 -t UTF-8 |
    tr -d '\000-\037' | sed -e 's/^The GNU//' -e 's/[\"]/\\&/g')
row=$(text "$d/a" 120 "The GNU" | sed -E -e 's/\xef\xbf\xbd//g' -e 's/\\(u00[01].|[bfnrt])//g')
ok_if "the last sample is what the model generates" "$row, expected $want" test "$row" = "$want"

# At temperature 0 the likeliest token is taken: as `nojit generate` does.
"${run[@]}" --out "$d/cold" --steps 20 --sample-prompt "The GNU" --sample-tokens 12 --sample-temperature 0 >/dev/null 2>&1
likeliest() { "$nojit" generate --device cpu --model "$d/cold" --prompt "The GNU" --max-tokens 12 --temperature "$1" | od -c; }
wanted=$(likeliest 0)
ok_if "--sample-temperature 0 takes the likeliest" "$(text "$d/cold" 20 "The GNU")" \
    test "$(printf 'The GNU%b\n' "$(text "$d/cold" 20 "The GNU" | sed 's/\\"/"/g')" | od -c)" = "$wanted" -a "$wanted" != "$(likeliest 0.8)"

# A run that ended after step 70, whose last checkpoint is that of step 50.
"${run[@]}" --out "$d/b" "${with[@]}" --steps 70 --save-every 50 >/dev/null 2>&1
rm "$d/b/config.json" "$d/b/model.safetensors"
"${run[@]}" --out "$d/b" "${with[@]}" --resume auto >/dev/null 2>&1
ok_if "a resumed run has the same samples" "$(diff "$d/a/samples.jsonl" "$d/b/samples.jsonl" | head -n 5)" cmp -s "$d/a/samples.jsonl" "$d/b/samples.jsonl"
mkdir "$d/c"
echo '{"step": 0, "prompt": "", "text": "of a run that died before its first checkpoint"}' >"$d/c/samples.jsonl"
echo '{"step": 0, "eval_loss": 0}' >"$d/c/metrics.jsonl"
"${run[@]}" --steps 20 --out "$d/c" "${with[@]}" --resume auto >/dev/null 2>&1
ok_if "a run that starts again leaves no samples of the one before" "$(head -n 1 "$d/c/samples.jsonl")" cmp -s <(head -n 6 "$d/a/samples.jsonl") "$d/c/samples.jsonl"
ok_if "a run that starts again leaves no metrics of the one before" "$(head -n 1 "$d/c/metrics.jsonl")" cmp -s <(head -n 1 "$d/a/metrics.jsonl") <(head -n 1 "$d/c/metrics.jsonl")

# A file of options; no held-out data; a text that fills the sequence; bytes that are not UTF-8.
printf 'sample-prompt: ["one, two", "\\x1b[31m and a prompt that is long"]\nsample-temperature: 0\n' >"$d/options.yaml"
train=("$nojit" train --student "$d/a" --data "$d/text.txt" --seq-len 32 --batch-size 4 --steps 2 --lr 0 --device cpu)
"${train[@]}" --out "$d/e" --config "$d/options.yaml" >"$d/log" 2>&1
ok_if "without held-out data samples are taken at the end" "$(steps "$d/e")" test "$(steps "$d/e")" = " 2 2 "
ok_if "a comma in a prompt of --config parts nothing" "$(cat "$d/e/samples.jsonl")" test "$(text "$d/e" 2 "one, two" | sed 's/\\n/ /g' | wc -c)" = 25
ok_if "samples send no escape to the terminal" "$(grep -c $'\x1b' "$d/log")" test "$(grep -c $'\x1b' "$d/log")" = 0
"${train[@]}" --out "$d/f" --sample-prompt $'caf\xe9 \xc3\xa9' "" >"$d/log" 2>&1
ok_if "bytes of a prompt that are not UTF-8 are replaced" "$(cat "$d/f/samples.jsonl")" grep -q $'"prompt": "caf\xef\xbf\xbd \xc3\xa9"' "$d/f/samples.jsonl"
ok_if "an empty --sample-prompt begins a text" "$(cat "$d/f/samples.jsonl")" grep -q '"prompt": ""' "$d/f/samples.jsonl"
ok_if "the report has both samples" "none" test "$("$nojit" report "$d/f" --out "$d/page.html" >/dev/null && grep -o '"prompt":"' "$d/page.html" | wc -l)" = 2

refuses "a sample prompt without room in --seq-len is refused" 2 "32 tokens leave no room in --seq-len 32" "${train[@]}" --out "$d/x" --sample-prompt "$(head -c 32 "$d/text.txt" | tr '\n ' __)"
ok_if "a refused sample prompt leaves nothing" "$d/x is there" test ! -e "$d/x"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# receipt_fields.sh: receipt.json says what ran: times, counters, hashes, options as applied, and docs/receipt.md and
# docs/metrics.md name every field.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
head -c 4000 LICENSE >"$d/text.txt"
for i in 1 2 3 4 5 6 7 8; do echo "{\"prompt\": \"What is $i and $i?\", \"completion\": \"It is twice $i.\"}"; done >"$d/pairs.jsonl"
run() { # OUT OPTION...
    "$nojit" train --student "$d/student" --out "$d/$1" --seq-len 32 --batch-size 2 --device cpu "${@:2}" >"$d/log" 2>&1
}
field() { # RUN NAME
    sed -nE "s/^ *\"$2\": \"?([^\",]*)\"?,?$/\1/p" "$d/$1/receipt.json"
}
read_by() { field "$1" tokenizer | tail -n 1; } # RUN: the option of that name stands before it
is() { # NAME GOT WANTED
    if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "'$2', expected '$3'"; fi
}

before=$(date -u +%Y-%m-%dT%H:%M:%SZ)
run one --data "$d/text.txt" --steps 4 --save-every 2 --warmup-ratio 0.5 --lr 0.25
after=$(date -u +%Y-%m-%dT%H:%M:%SZ)
is "receipt.json ends with a newline" "$(tail -c 1 "$d/one/receipt.json" | od -An -c | tr -d ' ')" '\n'
if [[ ! "$before" > "$(field one started)" && ! "$(field one started)" > "$(field one ended)" && ! "$(field one ended)" > "$after" ]]; then
    ok "the receipt has the times of start and end"
else
    not_ok "the receipt has the times of start and end" "$before $(field one started) $(field one ended) $after"
fi
if awk -v s="$(field one seconds)" 'BEGIN { exit !(s > 0 && s < 600) }'; then ok "the receipt has the seconds of the run"; else not_ok "the receipt has the seconds of the run" "$(field one seconds)"; fi
is "the receipt has the bytes of the weights that were read" "$(field one load_bytes)" "$((2 * $(field one student_parameters)))"
if awk -v s="$(field one load_seconds)" 'BEGIN { exit !(s > 0 && s < 600) }'; then ok "the receipt has the seconds of reading weights"; else not_ok "the receipt has the seconds of reading weights" "$(field one load_seconds)"; fi
is "the receipt counts the targets that were trained" "$(field one trained_tokens) $(field one trained_targets)" "256 256"
losses=$(grep -oE '"loss": [^,]+' "$d/one/metrics.jsonl" | cut -d' ' -f2)
is "the receipt has the losses of the first and last step" "$(field one initial_loss) $(field one final_loss)" "$(head -n 1 <<<"$losses") $(tail -n 1 <<<"$losses")"
is "the receipt has the first step and the steps that were done" "$(field one first_step) $(field one steps_done)" "0 4"
is "the receipt has what the run decided itself" "$(field one warmup_steps) $(field one head_chunk) $(field one vocab) $(field one dtype | tail -n 1)" "2 64 264 float32"
is "the receipt has what was asked for" "$(field one warmup-ratio) $(field one lr | tail -n 1)" "0.5 0.25"
is "the receipt has no fall-back where the CPU was asked for" "$(field one fallbacks)$(field one fallback)" 0
# 64 tokens a step in rows of 32; 2 layers of 1 head of 64.
is "the receipt has the operations of a step" "$(field one student_flops) $(field one teacher_flops) $(field one teacher_f8_flops)" \
    "$((3 * (2 * 64 * $(field one student_parameters) + 64 * 2 * 2 * 1 * 64 * 33))) 0 0"
"$nojit" init --preset nojit-tiny-qwen3 --out "$d/teacher" >/dev/null # untied; 2 layers of 2 heads of 64
distil() { # OUT OPTION...
    "$nojit" distill --teacher "$d/teacher" --student "$d/student" --out "$d/$1" --seq-len 32 --batch-size 2 --device cpu --data \
        "$d/text.txt" --steps 1 "${@:2}" >"$d/log" 2>&1
}
distil plain
distil rounded --teacher-dtype fp8
once=$((2 * 64 * ($(field plain teacher_parameters) - 264 * 128))) scores=$((64 * 2 * 2 * 2 * 64 * 33))
is "the receipt has the bytes of both models' weights" "$(field plain load_bytes)" "$((2 * ($(field plain student_parameters) + $(field plain teacher_parameters))))"
is "the receipt has a teacher's operations" "$(field plain teacher_flops) $(field plain teacher_f8_flops)" "$((once + scores)) 0"
is "the receipt has operations in e4m3 apart" "$(field rounded teacher_flops) $(field rounded teacher_f8_flops)" "$scores $once"
rm "$d/one/config.json" "$d/one/model.safetensors" "$d/one/receipt.json"
rm -r "$d/one/checkpoint-4"
run one --data "$d/text.txt" --steps 4 --resume auto --warmup-ratio 0.5 --lr 0.25
is "the receipt of a resumed run counts its own steps" "$(field one first_step) $(field one steps_done) $(field one trained_tokens)" "2 4 128"

run two --data "$d/pairs.jsonl" --steps 2
if [ "$(field two trained_targets)" -lt "$(field two trained_tokens)" ] && [ "$(field two trained_targets)" -gt 0 ]; then
    ok "the receipt counts no targets in prompts"
else
    not_ok "the receipt counts no targets in prompts" "$(field two trained_targets) of $(field two trained_tokens)"
fi
is "the same tokenizer has the same hash" "$(read_by two) $(field two tokenizer_hash)" "bytes $(field one tokenizer_hash)"
sed 's/"vocab_size": 264/"vocab_size": 1264/' "$d/student/config.json" >"$d/config.json"
mkdir "$d/shape" && cp "$d/config.json" "$d/shape"
rm -r "$d/student"
"$nojit" init --like "$d/shape" --out "$d/student" >/dev/null
cp tests/golden/tokenizer-qwen2.json "$d/student/tokenizer.json"
run three --data "$d/text.txt" --steps 1
sed -i 's/<|im_start|>/<|in_start|>/' "$d/student/tokenizer.json"
run four --data "$d/text.txt" --steps 1
is "the same ids have the same hash of the data" "$(field three data_hash)" "$(field four data_hash)"
if [ "$(read_by three)" = bpe ] && [ "$(field three tokenizer_hash)" != "$(field four tokenizer_hash)" ]; then
    ok "another tokenizer has another hash"
else
    not_ok "another tokenizer has another hash" "$(field three tokenizer_hash)"
fi

bad=$d/$(printf 'a\377').txt # a name that is not UTF-8
cp "$d/text.txt" "$bad"
run five --data "$bad" "$d/text.txt" --data-weights 1,2 --steps 1
is "the receipt lists a source of any name" "$(field five path)" "$d/a$(printf '\357\277\275').txt"$'\n'"$d/text.txt"

# Lists keep the borders of what is in them, so that the run can be repeated.
items() { # RUN NAME: a list, as its items one after the other
    awk -v name="$2" '$0 ~ "^ *\"" name "\": \\[" { on = 1; next } on && /^ *\]/ { exit } on' "$d/$1/receipt.json" | sed -E 's/^ *//; s/,$//' | tr '\n' '|'
}
run lists --data "$d/text.txt" --steps 1 --sample-prompt 'two words' 'a "quote"' --sample-tokens 1 --lr 0.25
is "the receipt has an option with several values as a list" "$(items lists sample-prompt)" '"two words"|"a \"quote\""|'
is "the receipt has a list of one value as a list" "$(items lists data)" "\"$d/text.txt\"|"
is "the receipt has an empty list as a list" "$(grep -c '"eval-data": \[\]' "$d/lists/receipt.json")" 1
is "the receipt has the command line word by word" "$(items lists command_line | sed 's/.*"--steps"/"--steps"/')" \
    '"--steps"|"1"|"--sample-prompt"|"two words"|"a \"quote\""|"--sample-tokens"|"1"|"--lr"|"0.25"|'
is "the command line in the receipt begins with the program" "$(items lists command_line | cut -d'|' -f1-3)" '"nojit"|"train"|"--student"'

"$nojit" distill --help >"$d/help"
for name in $(sed -nE '/^  "(options)"/,/^  }/d; s/^ *"([a-z0-9_]+)":.*/\1/p' "$d/four/receipt.json"); do
    if grep -q "\`$name\`" docs/receipt.md || grep -q -- "^  --${name//_/-}\b" "$d/help"; then
        ok "a page of docs names $name"
    else
        not_ok "a page of docs names $name" "$name is missing"
    fi
done
# A row of each kind, with all that it has.
run six --data "$d/text.txt" --eval-data "$d/text.txt" --steps 1
for name in $(grep -oE '"[a-z_]+":' "$d/six/metrics.jsonl" | tr -d '":' | sort -u); do
    if grep -q "\`$name\`" docs/metrics.md; then ok "a page of docs names $name"; else not_ok "a page of docs names $name" "$name is missing"; fi
done
finish

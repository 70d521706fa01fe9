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
is() { # NAME GOT WANTED
    if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "'$2', expected '$3'"; fi
}

before=$(date -u +%Y-%m-%dT%H:%M:%SZ)
run one --data "$d/text.txt" --steps 4 --save-every 2 --warmup-ratio 0.5 --lr 0.25
after=$(date -u +%Y-%m-%dT%H:%M:%SZ)
is "ends with a newline" "$(tail -c 1 "$d/one/receipt.json" | od -An -c | tr -d ' ')" '\n'
if [[ ! "$before" > "$(field one started)" && ! "$(field one started)" > "$(field one ended)" && ! "$(field one ended)" > "$after" ]]; then
    ok "started and ended"
else
    not_ok "started and ended" "$before $(field one started) $(field one ended) $after"
fi
if awk -v s="$(field one seconds)" 'BEGIN { exit !(s > 0 && s < 600) }'; then ok "seconds"; else not_ok "seconds" "$(field one seconds)"; fi
is "bytes of the weights" "$(field one load_bytes)" "$((2 * $(field one student_parameters)))"
if awk -v s="$(field one load_seconds)" 'BEGIN { exit !(s > 0 && s < 600) }'; then ok "their seconds"; else not_ok "their seconds" "$(field one load_seconds)"; fi
is "all positions have a target but where a text ends" "$(field one trained_tokens) $(field one trained_targets)" "256 256"
losses=$(grep -oE '"loss": [^,]+' "$d/one/metrics.jsonl" | cut -d' ' -f2)
is "losses of the first and last step" "$(field one initial_loss) $(field one final_loss)" "$(head -n 1 <<<"$losses") $(tail -n 1 <<<"$losses")"
is "steps" "$(field one first_step) $(field one steps_done)" "0 4"
is "what the run decided" "$(field one warmup_steps) $(field one head_chunk) $(field one vocab) $(field one dtype | tail -n 1)" "2 64 264 float32"
is "what was asked for" "$(field one warmup-ratio) $(field one lr | tail -n 1)" "0.5 0.25"
is "no fall-back where the CPU was asked for" "$(field one fallbacks)$(field one fallback)" 0
# 64 tokens a step in rows of 32; 2 layers of 1 head of 64.
is "operations of a step" "$(field one student_flops) $(field one teacher_flops) $(field one teacher_f8_flops)" \
    "$((3 * (2 * 64 * $(field one student_parameters) + 64 * 2 * 2 * 1 * 64 * 33))) 0 0"
"$nojit" init --preset nojit-tiny-qwen3 --out "$d/teacher" >/dev/null # untied; 2 layers of 2 heads of 64
distil() { # OUT OPTION...
    "$nojit" distill --teacher "$d/teacher" --student "$d/student" --out "$d/$1" --seq-len 32 --batch-size 2 --device cpu --data \
        "$d/text.txt" --steps 1 "${@:2}" >"$d/log" 2>&1
}
distil plain
distil rounded --teacher-dtype fp8
once=$((2 * 64 * ($(field plain teacher_parameters) - 264 * 128))) scores=$((64 * 2 * 2 * 2 * 64 * 33))
is "bytes of a teacher's weights, too" "$(field plain load_bytes)" "$((2 * ($(field plain student_parameters) + $(field plain teacher_parameters))))"
is "a teacher's operations" "$(field plain teacher_flops) $(field plain teacher_f8_flops)" "$((once + scores)) 0"
is "those in e4m3 are apart" "$(field rounded teacher_flops) $(field rounded teacher_f8_flops)" "$scores $once"
rm "$d/one/config.json" "$d/one/model.safetensors" "$d/one/receipt.json"
rm -r "$d/one/checkpoint-4"
run one --data "$d/text.txt" --steps 4 --resume auto --warmup-ratio 0.5 --lr 0.25
is "a resumed run counts its own steps" "$(field one first_step) $(field one steps_done) $(field one trained_tokens)" "2 4 128"

run two --data "$d/pairs.jsonl" --steps 2
if [ "$(field two trained_targets)" -lt "$(field two trained_tokens)" ] && [ "$(field two trained_targets)" -gt 0 ]; then
    ok "prompts have no target"
else
    not_ok "prompts have no target" "$(field two trained_targets) of $(field two trained_tokens)"
fi
is "one tokenizer, one hash" "$(field two tokenizer) $(field two tokenizer_hash)" "bytes $(field one tokenizer_hash)"
sed 's/"vocab_size": 264/"vocab_size": 1264/' "$d/student/config.json" >"$d/config.json"
mkdir "$d/shape" && cp "$d/config.json" "$d/shape"
rm -r "$d/student"
"$nojit" init --like "$d/shape" --out "$d/student" >/dev/null
cp tests/golden/tokenizer-qwen2.json "$d/student/tokenizer.json"
run three --data "$d/text.txt" --steps 1
sed -i 's/<|im_start|>/<|in_start|>/' "$d/student/tokenizer.json"
run four --data "$d/text.txt" --steps 1
is "the same ids" "$(field three data_hash)" "$(field four data_hash)"
if [ "$(field three tokenizer)" = bpe ] && [ "$(field three tokenizer_hash)" != "$(field four tokenizer_hash)" ]; then
    ok "another table, another hash"
else
    not_ok "another table, another hash" "$(field three tokenizer_hash)"
fi

bad=$d/$(printf 'a\377').txt # a name that is not UTF-8
cp "$d/text.txt" "$bad"
run five --data "$bad" "$d/text.txt" --data-weights 1,2 --steps 1
is "a source of any name is listed" "$(field five path)" "$d/a$(printf '\357\277\275').txt"$'\n'"$d/text.txt"

# Lists keep the borders of what is in them, so that the run can be repeated.
items() { # RUN NAME: a list, as its items one after the other
    awk -v name="$2" '$0 ~ "^ *\"" name "\": \\[" { on = 1; next } on && /^ *\]/ { exit } on' "$d/$1/receipt.json" | sed -E 's/^ *//; s/,$//' | tr '\n' '|'
}
run lists --data "$d/text.txt" --steps 1 --sample-prompt 'two words' 'a "quote"' --sample-tokens 1 --lr 0.25
is "a list of options is a list" "$(items lists sample-prompt)" '"two words"|"a \"quote\""|'
is "a list of one is a list" "$(items lists data)" "\"$d/text.txt\"|"
is "an empty list is a list" "$(grep -c '"eval-data": \[\]' "$d/lists/receipt.json")" 1
is "the command line, word by word" "$(items lists command_line | sed 's/.*"--steps"/"--steps"/')" \
    '"--steps"|"1"|"--sample-prompt"|"two words"|"a \"quote\""|"--sample-tokens"|"1"|"--lr"|"0.25"|'
is "from the program on" "$(items lists command_line | cut -d'|' -f1-3)" '"nojit"|"train"|"--student"'

"$nojit" distill --help >"$d/help"
for name in $(sed -nE '/^  "(options)"/,/^  }/d; s/^ *"([a-z0-9_]+)":.*/\1/p' "$d/four/receipt.json"); do
    if grep -q "\`$name\`" docs/receipt.md || grep -q -- "^  --${name//_/-}\b" "$d/help"; then
        ok "docs: $name"
    else
        not_ok "docs/receipt.md" "$name is missing"
    fi
done
# A row of each kind, with all that it has.
run six --data "$d/text.txt" --eval-data "$d/text.txt" --steps 1
for name in $(grep -oE '"[a-z_]+":' "$d/six/metrics.jsonl" | tr -d '":' | sort -u); do
    if grep -q "\`$name\`" docs/metrics.md; then ok "docs: $name"; else not_ok "docs/metrics.md" "$name is missing"; fi
done
finish

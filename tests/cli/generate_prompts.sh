#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# generate_prompts.sh: `nojit generate` answers files of prompts in their order and with their ids, draws tokens as its options
# say, ends texts where they end, and refuses what it cannot.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1

# A model that has learnt some text, so that it writes letters.
"$nojit" init --preset nojit-tiny --seed 1 --dtype float32 --out "$d/new" >/dev/null
head -c 4000 /usr/share/common-licenses/GPL-3 >"$d/text.txt"
"$nojit" train --student "$d/new" --data "$d/text.txt" --seq-len 64 --batch-size 8 --steps 40 --lr 1e-2 --device cpu --out "$d/model" >/dev/null 2>&1
generate() { "$nojit" generate --model "${model:-$d/model}" --device cpu --max-tokens 12 "$@" 2>"$d/err"; }
cat >"$d/prompts.jsonl" <<END
{"prompt": "The GNU General", "id": "first"}
{"prompt": "a", "id": 17, "max_tokens": 3}

{"prompt": ""}
{"prompt": "License for software and other kinds of works", "id": -2.5, "max_tokens": 30}
{"prompt": "The GNU General", "id": null}
END
mkdir "$d/folder"
cp "$d/prompts.jsonl" "$d/folder/b.jsonl"
echo '{"prompt": "of the folder", "id": "first of all"}' >"$d/folder/a.jsonl"
column() { grep -oE "\"$1\": (\"([^\"\\]|\\\\.)*\"|[^,}]+)" | cut -d' ' -f2-; } # of standard input

# ---- lines
generate --prompts "$d/prompts.jsonl" >"$d/all"
ok_if "generate --prompts writes a line per prompt, in their order, with their ids" "$(column id <"$d/all" | tr '\n' ' ')" \
    test "$(column id <"$d/all" | tr '\n' ' ')" = '"first" 17 2 -2.5 4 '
ok_if "a line of generate --prompts counts the tokens of its prompt" "$(column prompt_tokens <"$d/all" | tr '\n' ' ')" test "$(column prompt_tokens <"$d/all" | tr '\n' ' ')" = "15 1 1 45 15 "
ok_if "max_tokens of a line takes precedence over --max-tokens" "$(column tokens <"$d/all" | tr '\n' ' ')" test "$(column tokens <"$d/all" | tr '\n' ' ')" = "12 3 12 30 12 "
ok_if "texts that --max-tokens cuts say so" "$(column end <"$d/all" | tr '\n' ' ')" test "$(column end <"$d/all" | sort -u)" = '"length"'
ok_if "generate --prompts says its rate" "$(cat "$d/err")" grep -qE '^5 texts, 69 tokens in [0-9.]+ s: [0-9]+ tokens/s$' "$d/err"
ok_if "prompts that are equal get different texts" "$(cat "$d/all")" test "$(sed -n 1p "$d/all" | column text)" != "$(sed -n 5p "$d/all" | column text)"
ok_if "generate --prompts reads the files of a folder by their names" "$(generate --prompts "$d/folder" | head -n 2)" \
    test "$(generate --prompts "$d/folder" | column id | head -n 2 | tr '\n' ' ')" = '"first of all" "first" '
ok_if "nothing is said of a folder of prompts alone" "$(cat "$d/err")" test -z "$(grep 'skipped' "$d/err")"
printf '%s\n' '{"prompt": "a", "id": "x\u0000y", "max_tokens": 1}' '{"prompt": "b", "id": 2, "max_tokens": 1}' >"$d/nul.jsonl"
ok_if "an id with NUL comes back, and so do those after it" "$(cat "$d/err")" test "$(generate --prompts "$d/nul.jsonl" | column id | tr '\n' ' ')" = '"x\u0000y" 2 '
for name in README.md notes.md LICENSE .hidden; do echo text >"$d/folder/$name"; done
generate --prompts "$d/folder" >"$d/beside"
ok_if "other files of a folder are skipped, and said" "$(cat "$d/err")" grep -qx '3 files skipped (without an ending 1, \.md 2)' "$d/err"
ok_if "prompts beside files that are skipped are read" "$(cat "$d/beside")" test "$(column id <"$d/beside" | wc -l)" = 6
for rows in 1 2 3 5 auto; do
    ok_if "--batch-size $rows changes no text" "$(diff "$d/all" <(generate --prompts "$d/prompts.jsonl" --batch-size $rows))" \
        cmp -s "$d/all" <(generate --prompts "$d/prompts.jsonl" --batch-size $rows)
done
ok_if "generate with the same seed writes the same texts" "" cmp -s "$d/all" <(generate --prompts "$d/prompts.jsonl" --seed 1)
ok_if "generate with another seed writes other texts" "$(cat "$d/all")" test "$(generate --prompts "$d/prompts.jsonl" --seed 2 | column text)" != "$(column text <"$d/all")"
ok_if "a file's first text is that of --prompt" "$(sed -n 1p "$d/all")" test "The GNU General$(printf '%b' "$(sed -n 1p "$d/all" | column text | sed 's/^"//; s/"$//')")" = "$(generate --prompt "The GNU General")"

# ---- several texts for a prompt
generate --prompts "$d/prompts.jsonl" --num-return-sequences 3 >"$d/three"
ok_if "--num-return-sequences 3 writes three lines per prompt, with their index" "$(column index <"$d/three" | tr '\n' ' ')" \
    test "$(column id <"$d/three" | uniq -c | tr -s ' \n' ' ') $(column index <"$d/three" | tr -d '\n')" = ' 3 "first" 3 17 3 2 3 -2.5 3 4  012012012012012'
ok_if "the texts for a prompt differ" "$(head -n 3 "$d/three")" test "$(head -n 3 "$d/three" | column text | sort -u | wc -l)" = 3
ok_if "the first of several texts is the one text" "$(head -n 1 "$d/three")" test "$(head -n 1 "$d/three" | column text)" = "$(head -n 1 "$d/all" | column text)"
ok_if "one text per prompt has no index" "" test -z "$(column index <"$d/all")"
refuses "several texts by greedy decoding are refused" 2 '--num-return-sequences 3: with --temperature 0 all of them are the same' \
    "$nojit" generate --model "$d/model" --prompts "$d/prompts.jsonl" --num-return-sequences 3 --temperature 0
refuses "several texts without a file of prompts are refused" 2 '--num-return-sequences is for --prompts' "$nojit" generate --model "$d/model" --prompt a --num-return-sequences 3

# ---- sampling
greedy() { generate --prompts "$d/prompts.jsonl" "$@"; }
greedy --temperature 0 >"$d/greedy"
ok_if "--temperature 0 writes other texts than sampling" "$(cat "$d/greedy")" test "$(column text <"$d/greedy")" != "$(column text <"$d/all")"
greedy --temperature 1e-44 >"$d/cold"
ok_if "a temperature of 1e-44 is greedy decoding" "$(diff "$d/greedy" "$d/cold")" cmp -s "$d/greedy" "$d/cold"
ok_if "a --temperature close to 0 draws nothing" "$(cat "$d/greedy")" test "$(sed -n 1p "$d/greedy" | column text)" = "$(sed -n 5p "$d/greedy" | column text)"
for one in "--top-k 1" "--top-p 1e-6" "--min-p 1" "--top-k 300 --top-p 0.0001" "--top-k 1 --min-p 0.1"; do
    ok_if "$one takes the most probable token alone" "$(diff "$d/greedy" <(greedy $one))" cmp -s "$d/greedy" <(greedy $one)
done
for every in "--top-k 264" "--top-k 100000" "--top-p 1" "--min-p 0" "--top-k 0"; do
    ok_if "$every leaves every token" "$(diff "$d/all" <(greedy $every))" cmp -s "$d/all" <(greedy $every)
done
# First tokens after the same prompt: how many there are.
yes '{"prompt": "The", "max_tokens": 1}' | head -n 200 >"$d/many.jsonl" || true
kinds() { generate --prompts "$d/many.jsonl" --temperature 2 "$@" | column text | sort -u | wc -l; }
all=$(kinds) k3=$(kinds --top-k 3) k9=$(kinds --top-k 9)
ok_if "--top-k draws from as many tokens as it says" "$k3 of 3, $k9 of 9, $all" test "$k3" -le 3 -a "$k3" -gt 1 -a "$k9" -le 9 -a "$k9" -gt "$k3" -a "$all" -gt "$k9"
low=$(kinds --top-p 0.3) high=$(kinds --top-p 0.7)
ok_if "--top-p draws from more tokens the larger it is" "$low, $high, $all" test "$low" -lt "$high" -a "$high" -lt "$all"
low=$(kinds --min-p 0.5) high=$(kinds --min-p 0.02)
ok_if "--min-p draws from fewer tokens the larger it is" "$low, $high, $all" test "$low" -lt "$high" -a "$high" -lt "$all"
ok_if "--top-p cuts the tokens that --top-k leaves" "$(kinds --top-k 9 --top-p 0.5)" test "$(kinds --top-k 9 --top-p 0.5)" -lt "$k9"

# ---- where texts stop
cp -r "$d/model" "$d/stops"
first=$(head -c 1 <(sed -n 4p "$d/greedy" | column text | tr -d '"')) # of the likeliest text: it stops in others, too
id=$(printf '%s' "$first" | od -An -tu1 | tr -d ' ')
echo "{\"eos_token_id\": [256, $id]}" >"$d/stops/generation_config.json"
model=$d/stops greedy --temperature 0 >"$d/stopped"
ok_if "a stop token of generation_config.json ends a text" "$(sed -n 4p "$d/stopped")" \
    grep -q '"text": "", "prompt_tokens": 45, "tokens": 1, "end": "stop"' <(sed -n 4p "$d/stopped")
why=$(paste -d'\n' "$d/greedy" "$d/stopped" | column text | sed 's/^"//; s/"$//' | paste -d'\t' - - | awk -F'\t' -v stop="$first" '
    { at = index($1, stop); want = at > 0 ? substr($1, 1, at - 1) : $1 }
    want != $2 { print "\"" $2 "\", expected \"" want "\"" }')
ok_if "each text ends at its first stop token, which is left out" "$why" test -z "$why"
ok_if "--ignore-eos goes on behind a stop token" "$(model=$d/stops greedy --temperature 0 --ignore-eos | diff "$d/greedy" -)" cmp -s "$d/greedy" <(model=$d/stops greedy --temperature 0 --ignore-eos)
ok_if "generate --prompt ends at a stop token" "$(model=$d/stops generate --temperature 0 --prompt "License for software and other kinds of works")" \
    test "$(model=$d/stops generate --temperature 0 --prompt "License for software and other kinds of works")" = "License for software and other kinds of works"

sed 's/"prompt"/"question"/; s/"id"/"key"/' "$d/prompts.jsonl" >"$d/renamed.jsonl"
ok_if "--fields names the columns of a file of prompts" "" cmp -s "$d/all" <(generate --prompts "$d/renamed.jsonl" --fields prompt=question,id=key)
refuses "--fields without a file of prompts is refused" 2 'fields names columns of --prompts' "$nojit" generate --model "$d/model" --device cpu --prompt a --fields prompt=b

# ---- texts that end what is written
generate --prompts "$d/prompts.jsonl" --max-tokens 40 >"$d/long"
said=$(sed -n 1p "$d/long" | column text | sed 's/^"//; s/"$//')
part=${said:9:3} # over the borders of tokens, which are bytes
before=${said%%"$part"*}
generate --prompts "$d/prompts.jsonl" --max-tokens 40 --stop "no such text" "$part" >"$d/cut"
ok_if "a text ends just before --stop" "$(sed -n 1p "$d/cut"), cut before \"$part\" of \"$said\"" test "$(sed -n 1p "$d/cut" | column text)" = "\"$before\""
ok_if "a line says which --stop ended its text, after how many tokens" "$(sed -n 1p "$d/cut")" \
    grep -qF "\"tokens\": $((${#before} + 3)), \"end\": \"stop\", \"stop\": \"$part\"" <(sed -n 1p "$d/cut")
ok_if "texts without --stop in them stay" "$(diff "$d/long" "$d/cut")" \
    test "$(grep -vF "$part" "$d/long" | column text)" = "$(grep -v '"stop": ' "$d/cut" | column text)"
ok_if "--prompt is cut before --stop, too" "$(generate --prompt 'The GNU General' --max-tokens 40 --stop "$part")" \
    test "$(generate --prompt 'The GNU General' --max-tokens 40 --stop "$part")" = "The GNU General$before"
ok_if "a text that only begins like --stop is printed whole" "$(generate --prompt 'The GNU General' --stop "${said:10:2}zzz")" \
    test "$(generate --prompt 'The GNU General' --stop "${said:10:2}zzz")" = "$(generate --prompt 'The GNU General')"
refuses "an empty --stop is refused" 2 '--stop: a text is empty' "$nojit" generate --model "$d/model" --device cpu --prompt a --stop ""

# ---- repetition
letters() { column text | sed 's/^"//; s/"$//' | head -n 1 | fold -w 1 | sort -u | wc -l; }
few=$(greedy --temperature 0 --max-tokens 30 | letters) many=$(greedy --temperature 0 --max-tokens 30 --repetition-penalty 3 | letters)
ok_if "--repetition-penalty: tokens come that have not been there" "$few letters, $many with it" test "$many" -gt "$few"
ok_if "--repetition-penalty 1 changes nothing" "" cmp -s "$d/all" <(generate --prompts "$d/prompts.jsonl" --repetition-penalty 1)
generate --prompts "$d/prompts.jsonl" --repetition-penalty 1.3 >"$d/penalized"
ok_if "a penalized text does not depend on --batch-size" "$(cat "$d/penalized")" \
    cmp -s "$d/penalized" <(generate --prompts "$d/prompts.jsonl" --repetition-penalty 1.3 --batch-size 1)

# ---- conversations
"$nojit" init --preset nojit-tiny --tie-embeddings false --vocab-size 1264 --seed 3 --out "$d/chat" >/dev/null
cp tests/golden/tokenizer-qwen2.json "$d/chat/tokenizer.json"
if model=$d/chat generate --chat --prompt "Who are you?" --temperature 0 >"$d/said"; then
    echo '{"messages": [{"role": "user", "content": "Who are you?"}]}' >"$d/turns.jsonl"
    model=$d/chat generate --prompts "$d/turns.jsonl" --temperature 0 >"$d/turned"
    ok_if "--chat writes the prompt of a conversation" "$(cat "$d/turned")" \
        test "$(iconv -c -f UTF-8 -t UTF-8 <"$d/said")" = "$(printf '%b' "$(column text <"$d/turned" | sed 's/^"//; s/"$//; s/\xef\xbf\xbd//g')")" -a "$(column prompt_tokens <"$d/turned")" = 20
    ok_if "--chat does not print the prompt" "$(cat "$d/said")" test -z "$(grep 'Who are you' "$d/said")"
    ok_if "--chat continues another text than --prompt alone" "$(cat "$d/said")" test "$(cat "$d/said")" != "$(model=$d/chat generate --prompt "Who are you?" --temperature 0)"
else
    not_ok "--chat writes a text" "$(cat "$d/err")"
fi
mkdir -p "$d/run/checkpoint-20" "$d/run/checkpoint-100"
refuses "a missing checkpoint is refused with the names of those present" 1 'run/checkpoint-40: no such folder; .*/run has checkpoint-20, checkpoint-100$' \
    "$nojit" generate --model "$d/run/checkpoint-40" --device cpu --prompt x
refuses "--chat of a model without tokens for it is refused" 1 "^nojit generate: $d/model: it has no chat template, and its tokenizer has neither the tokens of ChatML" \
    "$nojit" generate --model "$d/model" --device cpu --chat --prompt x

# ---- what is left out
generate --prompts "$d/prompts.jsonl" --max-tokens 9 --seq-len 74 --skip-unusable >"$d/most"
ok_if "--skip-unusable: prompts without room are left out, and others keep their numbers" "$(cat "$d/most")" test "$(column id <"$d/most" | tr '\n' ' ')" = '"first" 17 2 4 '
ok_if "unusable prompts are counted, and the first is named by its line" "$(cat "$d/err")" \
    grep -qE "^1 of 5 rows could not be used and was left out; the first: $d/prompts.jsonl:5: the prompt and --max-tokens make 75 tokens, more than --seq-len 74; " "$d/err"
{ cat "$d/prompts.jsonl"; echo '{"text": "no prompt"}'; } >"$d/mixed.jsonl"
generate --prompts "$d/mixed.jsonl" --skip-unusable >"$d/most"
ok_if "--skip-unusable: a line without a prompt is left out" "$(cat "$d/err")" \
    test "$(wc -l <"$d/most")" = 5 -a -n "$(grep "^1 of 6 rows could not be used and was left out; the first: $d/mixed.jsonl:7: the object has neither prompt nor messages" "$d/err")"

# ---- what is refused
no() { # NAME STATUS REGEX OPTION...
    local name=$1 status=$2 pattern=$3
    shift 3
    refuses "$name" "$status" "^nojit generate: $pattern" "$nojit" generate --model "$d/model" --device cpu "$@"
}
no "generate with --prompt and --prompts is refused" 2 '--prompt and --prompts: give one of them$' --prompt a --prompts "$d/prompts.jsonl"
no "--chat with --prompts is refused" 2 '--chat is for --prompt; conversations in --prompts are lines with messages$' --chat --prompts "$d/prompts.jsonl"
no "prompts beyond --seq-len are refused" 2 "$d/prompts.jsonl:5: the prompt and --max-tokens make 75 tokens, more than --seq-len 74; shorten it, lower --max-tokens or max_tokens of the line, or leave such prompts out by --skip-unusable\$" --prompts "$d/prompts.jsonl" --max-tokens 9 --seq-len 74
no "prompts beyond what the model takes are refused" 2 "$d/prompts.jsonl:1: the prompt and --max-tokens make 515 tokens, more than the model's max_position_embeddings 512; shorten it, .*" \
    --prompts "$d/prompts.jsonl" --max-tokens 500
no "--prompts of a text file is refused" 1 "$d/text.txt: prompts are read from .jsonl and .parquet files; write each as a line" --prompts "$d/text.txt"
no "--prompts of a file that is not there is refused" 1 "$d/none.jsonl: .*" --prompts "$d/none.jsonl"
echo '{"text": "a"}' >"$d/bad.jsonl"
no "a line of --prompts without a prompt is refused" 1 "$d/bad.jsonl:1: the object has neither prompt nor messages" --prompts "$d/bad.jsonl"
echo '{"prompt": "a", "max_tokens": 0}' >"$d/bad.jsonl"
no "a line of --prompts with max_tokens of 0 is refused" 1 "$d/bad.jsonl:1: max_tokens must be a whole number, at least 1" --prompts "$d/bad.jsonl"
: >"$d/empty.jsonl"
no "an empty file of --prompts is refused" 1 "$d/empty.jsonl: there is no prompt in it; write each as a line" --prompts "$d/empty.jsonl"
no "a --top-p above 1 is refused" 2 '--top-p 1.5: must lie between 1e-06 and 1' --prompt a --top-p 1.5
status=0
generate --prompts "$d/prompts.jsonl" >/dev/full || status=$?
ok_if "generate --prompts into a full device says so" "$status: $(cat "$d/err")" test $status = 1 -a -n "$(grep '^nojit generate: standard output: cannot be written: No space left on device' "$d/err")"
finish

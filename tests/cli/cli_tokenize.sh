#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cli_tokenize.sh: `nojit tokenize` writes token files that hold what the text does, whole or not at all, and training on them is
# training on the text.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch
data=$d/data
mkdir "$d/qwen2" "$data"
cp tests/golden/tokenizer-qwen2.json "$d/qwen2/tokenizer.json"
head -c 20000 /usr/share/common-licenses/GPL-3 >"$data/a.txt"
for i in 1 2 3; do
    echo '{"prompt": "Say the number '$i'.", "completion": " '$i' it is, and no other."}'
done >"$data/b.jsonl"

if "$nojit" tokenize --model "$d/qwen2" --data "$data" --out "$d/q.bin" >"$d/said" 2>&1 &&
    grep -qE '^[0-9]+ tokens \([1-9][0-9]* not trained\) of 2 files' "$d/said"; then
    ok "tokenize counts text and JSON lines"
else
    not_ok "tokenize counts text and JSON lines" "$(head -c 300 "$d/said")"
fi
tokens=$(cut -d' ' -f1 "$d/said")
if [ "$(stat -c %s "$d/q.bin")" = $((1024 + 4 * tokens + (tokens + 7) / 8)) ]; then
    ok "a token file has a header, ids and a bit for each"
else
    not_ok "a token file has a header, ids and a bit for each" "$(stat -c %s "$d/q.bin") bytes for $tokens tokens"
fi
"$nojit" tokenize --model "$d/qwen2" --data "$d/q.bin" --out "$d/again.bin" >/dev/null
if cmp -s "$d/q.bin" "$d/again.bin"; then ok "tokenize of a token file gives the same file"; else not_ok "tokenize of a token file gives the same file" "they differ"; fi
OMP_NUM_THREADS=3 "$nojit" tokenize --model "$d/qwen2" --data "$data" --out "$d/three.bin" >/dev/null
if cmp -s "$d/q.bin" "$d/three.bin"; then ok "three threads write the same token file"; else not_ok "three threads write the same token file" "they differ"; fi

refuses "tokenize refuses an --out that exists" 1 "q.bin: exists" "$nojit" tokenize --model "$d/qwen2" --data "$data" --out "$d/q.bin"
refuses "tokenize without --out is refused" 2 '--out or --show is needed' "$nojit" tokenize --model "$d/qwen2" --data "$data"
sed 's/"type":"BPE"/"type":"Unigram"/' "$d/qwen2/tokenizer.json" >"$d/unigram.json"
mkdir "$d/unigram"
mv "$d/unigram.json" "$d/unigram/tokenizer.json"
refuses "tokenize refuses a tokenizer of another kind" 1 'tokenizer.json: model.type is "Unigram"' "$nojit" tokenize --model "$d/unigram" --data "$data" --out "$d/u.bin"
echo '{"text": 1}' >>"$data/b.jsonl"
refuses "tokenize refuses a bad line" 1 'b.jsonl:4: text must be a string' "$nojit" tokenize --model "$d/qwen2" --data "$data" --out "$d/u.bin"
sed -i '$d' "$data/b.jsonl"
if ls "$d"/u.bin* >/dev/null 2>&1; then not_ok "a failed tokenize leaves nothing" "$(ls "$d")"; else ok "a failed tokenize leaves nothing"; fi

# In a container the next process may have the number of one that was killed: what that left is in nobody's way.
for command in "tokenize --model $d/qwen2 --data $data --out $d/killed" "init --preset nojit-tiny --out $d/killed"; do
    rm -rf "$d/killed"*
    # shellcheck disable=SC2016,SC2086 # of the shell that becomes nojit
    sh -c 'mkdir "$0.tmp-$$" && echo theirs >"$0.tmp-$$/left" && exec "$@"' "$d/killed" "$nojit" $command >"$d/said" 2>&1 || true
    if [ -e "$d/killed" ] && [ "$(cat "$d"/killed.tmp-*/left)" = theirs ]; then
        ok "${command%% *} replaces what a killed process left"
    else
        not_ok "${command%% *} replaces what a killed process left" "$(cat "$d/said"; ls "$d")"
    fi
done

# However it ends, the file is whole or not there, and nothing else is.
mkdir "$d/made"
disturbed() { # VARIABLE...: a run whose calls are counted; a shell's background ignores SIGINT
    env --default-signal=HUP,INT "LD_PRELOAD=$(realpath "$BUILD")/interrupt.so" "INTERRUPT_IN=$(realpath "$d/made")" "INTERRUPT_LOG=$d/calls" "$@" \
        "$nojit" tokenize --model "$d/qwen2" --data "$data" --out "$d/made/t.bin" >/dev/null 2>&1
}
if disturbed && [ "$(cut -f 3 "$d/calls" | tail -n 3 | tr '\n' ' ')" = "link remove flush " ] && [ "$(tail -n 1 "$d/calls" | cut -f 4)" = "$(realpath "$d/made")" ]; then
    ok "the folder of a token file is flushed"
else
    not_ok "the folder of a token file is flushed" "$(tail -n 3 "$d/calls")"
fi
cp "$d/made/t.bin" "$d/whole.bin"
last=$(wc -l <"$d/calls")
for signal in 1 2 15; do
    for ((at = 2; at <= last; at++)); do
        rm -f "$d/made/t.bin"
        status=0
        { disturbed INTERRUPT_AT=$at INTERRUPT_WITH=$signal || status=$?; } 2>/dev/null
        left=$(ls "$d/made")
        [ $status = $((128 + signal)) ] && { [ -z "$left" ] || { [ "$left" = t.bin ] && cmp -s "$d/whole.bin" "$d/made/t.bin"; }; } || break
    done
    if ((at > last)); then ok "a tokenize ended by signal $signal leaves nothing"; else not_ok "a tokenize ended by signal $signal leaves nothing" "status $status, call $at of $last: $left"; fi
done

# Bytes: the same losses from the text and from its token file.
"$nojit" init --preset nojit-tiny --out "$d/model" >/dev/null
"$nojit" tokenize --model "$d/model" --data "$data" --out "$d/bytes.bin" >/dev/null
for source in "$data" "$d/bytes.bin"; do
    "$nojit" eval --model "$d/model" --data "$source" --seq-len 64 --device cpu --json
done >"$d/losses"
if [ "$(sort -u "$d/losses" | grep -c ce_loss)" = 1 ] && [ "$(grep -c ce_loss "$d/losses")" = 2 ]; then
    ok "training on a token file has the losses of training on its text"
else
    not_ok "training on a token file has the losses of training on its text" "$(cat "$d/losses")"
fi

# A SentencePiece tokenizer adds no space between a prompt and its completion, and the answers of a conversation are found.
mkdir "$d/llama2"
cp tests/golden/tokenizer-llama2.json "$d/llama2/tokenizer.json"
echo '{"eos_token_id": 2}' >"$d/llama2/config.json"
echo '{"chat_template": "{% for m in messages %}{{ m.role + m.content + eos_token }}{% endfor %}", "eos_token": "<tool>"}' >"$d/llama2/tokenizer_config.json"
echo '{"text": "the house of the wise"}' >"$d/whole.jsonl"
echo '{"prompt": "the house", "completion": " of the wise"}' >"$d/parts.jsonl"
echo '{"messages": [{"role": "user", "content": "the <tool> house"}, {"role": "assistant", "content": "of the wise"}]}' >"$d/chat.jsonl"
for f in whole parts; do "$nojit" tokenize --model "$d/llama2" --data "$d/$f.jsonl" --out "$d/$f.ids" >"$scratch/out" 2>&1; done
ids() { od -An -t d4 -j1024 -N $(($(od -An -t d4 -j16 -N4 "$1") * 4)) "$1"; }
ok_if "a completion gets no space of its own before it" "$(ids "$d/parts.ids") and $(ids "$d/whole.ids")" [ "$(ids "$d/parts.ids")" = "$(ids "$d/whole.ids")" ]
shown=$("$nojit" tokenize --model "$d/llama2" --data "$d/chat.jsonl" --show 1 2>&1) || true
ok_if "the answers of a conversation are found where the tokenizer puts spaces before texts" "$shown" grep -qF -- '-] assistantof the wise<tool>[-' <<<"$shown"
head -c 30000 /dev/zero | tr '\0' Q >"$d/long.txt"
echo next >"$d/next.txt"
for packing in wrapped bfd; do
    "$nojit" tokenize --model "$d/model" --data "$d/long.txt" "$d/next.txt" --show 2 --seq-len 1024 --packing $packing >"$d/shown" 2>"$d/said" || true
    ok_if "--show writes a part of a long document, and says how much it leaves out, $packing" "$(tr -s Q <"$d/shown") $(cat "$d/said")" \
        test "$(tr -cd Q <"$d/shown" | wc -c) $(grep -c '^(28001 more tokens of document 1)$' "$d/shown") $(grep -c '^document 2: ' "$d/shown")" = "2000 1 1"
done

echo '{"eos_token_id": 5000}' >"$d/llama2/config.json"
refuses "an eos_token_id beyond the tokenizer is named, not the data" 1 'texts end with eos_token_id of the model.s config.json, 5000, and the vocabulary ends at 1004; correct' \
    "$nojit" tokenize --model "$d/llama2" --data "$d/whole.jsonl" --out "$d/no.bin"

# A student without the teacher's tokens has nothing to compare.
cp -r "$d/model" "$d/teacher"
cp "$d/qwen2/tokenizer.json" "$d/teacher/"
refuses "a student without the teacher's tokenizer is refused" 1 "$d/model: the student has no tokenizer.json and so reads bytes, while the teacher has a tokenizer of [0-9]+ tokens; copy" \
    "$nojit" eval --model "$d/model" --teacher "$d/teacher" --data "$d/bytes.bin" --seq-len 64 --device cpu
refuses "a teacher without the student's tokenizer is refused" 1 "$d/model: the teacher has no tokenizer.json and so reads bytes, while the student has a tokenizer of" \
    "$nojit" eval --model "$d/teacher" --teacher "$d/model" --data "$d/bytes.bin" --seq-len 64 --device cpu
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cli_rows.sh: rows of prompts, answers and texts are read from files, columns and splits as told; what is too long or cannot be
# used is counted and said, written down, and asked of a run that goes on. `nojit tokenize --show` prints what is trained.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive

"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
train() { # OUT, options...
    local out=$d/$1
    shift
    "$nojit" train --student "$d/student" --out "$out" --seq-len 32 --batch-size 2 --device cpu "$@" >"$scratch/said" 2>&1
}
tokens() { # OUT, options...
    local out=$d/$1
    shift
    rm -f "$out"
    "$nojit" tokenize --model "$d/student" --out "$out" "$@" >"$scratch/said" 2>&1
}
says() { # NAME REGEX
    if grep -qE -- "$2" "$scratch/said"; then ok "$1"; else not_ok "$1" "no '$2' in: $(cat "$scratch/said")"; fi
}
holds() { # NAME FILE LINE-REGEX
    if grep -qE -- "$3" "$d/$2"; then ok "$1"; else not_ok "$1" "no '$3' in: $(cat "$d/$2")"; fi
}
equal() { # NAME FILE FILE
    if cmp -s "$d/$2" "$d/$3"; then ok "$1"; else not_ok "$1" "$2 and $3 differ: $(cat "$scratch/said")"; fi
}

# ---- columns
for i in 1 2 3 4 5 6; do
    echo '{"question": "What is '$i'? ", "answer": "It is '$i'.", "id": '$i'}'
done >"$d/named.jsonl"
sed 's/question/prompt/; s/answer/completion/' "$d/named.jsonl" >"$d/plain.jsonl"
tokens named.bin --data "$d/named.jsonl" --fields prompt=question,completion=answer
says "columns that are not read are said" '^columns not read: id$'
tokens plain.bin --data "$d/plain.jsonl"
equal "--fields reads columns by other names" named.bin plain.bin
refuses "--fields with a column that the row lacks names it, and those that are there" 1 'named.jsonl:1: there is no column anser; the row has question, answer, id$' \
    "$nojit" tokenize --model "$d/student" --data "$d/named.jsonl" --out "$d/bad.bin" --fields prompt=question,completion=anser
"$nojit" train --student "$d/student" --data "$d/named.jsonl" --eval-data "$d/named.jsonl" --fields prompt=question,completion=answer --seq-len 32 \
    --batch-size 2 --device cpu --dry-run >"$scratch/said" 2>&1 || true
ok_if "columns that are read of neither text are said once" "$(cat "$scratch/said")" test "$(grep -c '^columns not read: id$' "$scratch/said")" = 1
refuses "--fields for a field that does not exist is refused" 2 '--fields query=question: there is no such name' \
    "$nojit" tokenize --model "$d/student" --data "$d/named.jsonl" --out "$d/bad.bin" --fields query=question

# ---- files
gzip -c "$d/plain.jsonl" >"$d/plain.jsonl.gz"
tokens packed.bin --data "$d/plain.jsonl.gz"
equal "a file of gzip holds the same" packed.bin plain.bin
cp tests/golden/parquet/small_groups.parquet tests/golden/parquet/rows.jsonl "$d"
for form in small_groups.parquet rows.jsonl; do tokens $form.bin --data "$d/$form" --fields text=text; done
equal "a Parquet file holds what its rows as JSON lines do" small_groups.parquet.bin rows.jsonl.bin

# ---- packing and length
train chat --steps 2 --data "$d/plain.jsonl"
says "--packing bfd keeps prompts with answers whole" '^packing bfd: 6 sequences of 32 tokens per epoch'
if grep -q longer "$scratch/said"; then not_ok "nothing is said of long documents where all fit" "$(cat "$scratch/said")"; else ok "nothing is said of long documents where all fit"; fi
echo '{"prompt": "What is a very long one? ", "completion": "It is this one."}' >>"$d/plain.jsonl"
long='^1 of 7 documents is longer than a sequence of 32: 1 cut at its end; 8 trained tokens are lost; --seq-len 40 holds the longest$'
train long --dry-run --data "$d/plain.jsonl"
says "--dry-run says what is cut" "$long"
train cut --steps 2 --data "$d/plain.jsonl"
says "a run says what is cut" "$long"
holds "the receipt counts documents that were cut" cut/receipt.json '"cut": 1'
holds "the receipt counts targets that were lost by a cut" cut/receipt.json '"lost_targets": 8'
train dropped --steps 2 --data "$d/plain.jsonl" --overlong drop
says "--overlong drop leaves out documents that are too long" '1 left out; 16 trained tokens are lost'
holds "the receipt counts documents that were left out" dropped/receipt.json '"dropped": 1'
train split --steps 2 --data "$d/plain.jsonl" --overlong split
says "--overlong split loses nothing" ': 1 split over several; --seq-len'
refuses "--overlong with wrapped sequences is refused" 2 '--overlong says what becomes of .* add --packing bfd' \
    "$nojit" train --student "$d/student" --out "$d/bad" --steps 1 --device cpu --seq-len 32 --data "$d/plain.jsonl" --packing wrapped --overlong drop

# ---- what is trained
trained() { sed -n 's/.*"trained_targets": \([0-9]*\).*/\1/p' "$d/$1/receipt.json"; }
train prompts --steps 2 --data "$d/plain.jsonl" --train-on-prompts --save-every 1
if [ "$(trained prompts)" -gt "$(trained chat)" ]; then ok "--train-on-prompts trains on more tokens"; else not_ok "--train-on-prompts trains on more tokens" "$(trained prompts), $(trained chat)"; fi
refuses "resuming with another --train-on-prompts is refused" 2 'with train-on-prompts true, this run has train-on-prompts false' \
    "$nojit" train --student "$d/student" --out "$d/again" --seq-len 32 --batch-size 2 --device cpu --steps 3 --data "$d/plain.jsonl" --resume "$d/prompts/checkpoint-1"

# ---- rows that cannot be used
{ cat "$d/plain.jsonl"; echo '{"prompt": 1, "completion": "x"}'; echo '{'; } >"$d/torn.jsonl"
refuses "a row that cannot be used is refused" 1 'torn.jsonl:8: prompt and completion must be both strings' \
    "$nojit" train --student "$d/student" --out "$d/bad" --steps 1 --device cpu --seq-len 32 --data "$d/torn.jsonl"
train torn --steps 2 --data "$d/torn.jsonl" --skip-unusable
says "--skip-unusable counts rows that cannot be used" '^2 of 9 rows could not be used and were left out; the first: .*torn.jsonl:8: prompt and'
holds "the receipt counts the rows" torn/receipt.json '"data_rows": 9'
holds "the receipt counts rows that could not be used" torn/receipt.json '"unusable_rows": 2'

# ---- splits
mkdir "$d/set"
cp "$d/plain.jsonl" "$d/set/train-00000-of-00001.jsonl"
head -n 2 "$d/plain.jsonl" >"$d/set/test-00000-of-00001.jsonl"
train splits --steps 2 --data "$d/set" --eval-data "$d/set"
says "training takes the split for training and says so" 'set: the split train is read \(1 file\); not read: test \(1 file\)$'
says "--eval-data takes the split for tests and says so" 'set: the split test is read \(1 file\); not read: train \(1 file\)$'
refuses "eval of a folder with several splits is refused" 1 'set: holds splits that are not read together: train \(1 file\), test \(1 file\); choose one by --split' \
    "$nojit" eval --model "$d/student" --data "$d/set" --device cpu --seq-len 32
"$nojit" eval --model "$d/student" --data "$d/set" --split test --device cpu --seq-len 32 >"$scratch/said" 2>&1
says "--split chooses in eval" 'the split test is read'
tokens set.bin --data "$d/set" --split train
tokens plain.bin --data "$d/plain.jsonl"
equal "--split chooses in tokenize" set.bin plain.bin

# ---- epochs of few rows
train few --data "$d/named.jsonl" --fields prompt=question,completion=answer --batch-size 8
says "a step of more rows than an epoch has is said" '^a step takes 8 sequences and an epoch has 6, so 1 step makes 1.33 epochs where --epochs is 1$'

# ---- documents on the screen
"$nojit" tokenize --model "$d/student" --data "$d/plain.jsonl" --show 2 --seq-len 32 >"$d/shown" 2>"$scratch/said"
printf '%s\n' '---- sequence 1 of 7: 19 of 32 positions' 'document 1: 20 tokens, 9 trained' '[-What is 1? -]It is 1.<|endoftext|>' \
    '---- sequence 2 of 7: 19 of 32 positions' 'document 2: 20 tokens, 9 trained' '[-What is 2? -]It is 2.<|endoftext|>' >"$d/expected"
equal "--show prints documents, what is trained of them, and sequences" shown expected
"$nojit" tokenize --model "$d/student" --data "$d/plain.bin" --show 2 --seq-len 32 >"$d/shown" 2>/dev/null
equal "--show reads token files" shown expected
"$nojit" tokenize --model "$d/student" --data "$d/plain.jsonl" --show 9 --seq-len 32 --packing wrapped >"$scratch/said" 2>&1
says "--packing wrapped shows where documents are cut" '^\(the sequence ends within the document\)$'
"$nojit" tokenize --model "$d/student" --data "$d/plain.jsonl" --show 9 --seq-len 32 --overlong drop >"$scratch/said" 2>&1
says "--show shows what --overlong does" '1 left out'
refuses "--show with --out is refused" 2 '--show prints documents and --out writes them' \
    "$nojit" tokenize --model "$d/student" --data "$d/plain.jsonl" --show 1 --out "$d/bad.bin"
refuses "tokenize --seq-len without --show is refused" 2 '--seq-len needs --show' \
    "$nojit" tokenize --model "$d/student" --data "$d/plain.jsonl" --seq-len 8 --out "$d/bad.bin"
if [ -e "$d/bad" ] || [ -e "$d/bad.bin" ]; then not_ok "refused commands on rows leave nothing" "$(ls "$d")"; else ok "refused commands on rows leave nothing"; fi
finish

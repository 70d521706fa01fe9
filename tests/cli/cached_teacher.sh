#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cached_teacher.sh: a run whose teacher is a cache of hidden states is bit for bit the run with the teacher itself, with another seed and
# batch size than any other; a cache that is killed while it is made continues; what does not fit is refused by name.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
"$nojit" init --preset nojit-tiny --seed 2 --hidden-size 128 --out "$d/teacher" >/dev/null
"$nojit" init --preset nojit-tiny --seed 3 --hidden-size 128 --out "$d/other" >/dev/null
"$nojit" init --preset nojit-tiny --seed 4 --tie-embeddings false --out "$d/untied" >/dev/null
head -c 6000 LICENSE >"$d/text.txt"
tail -c 900 LICENSE >"$d/held.txt"
for i in 1 2 3 4 5 6 7 8 9; do
    echo "{\"prompt\": \"What is $i times $i?\", \"completion\": \"It is $((i * i)), which has ${#i} digit.\"}"
done >"$d/rows.jsonl"
texts=(--data "$d/text.txt" --eval-data "$d/held.txt" --seq-len 64)
rows=(--data "$d/rows.jsonl" --seq-len 96)

cache() { # TEACHER OUT ARGUMENTS...
    "$nojit" cache --teacher "$d/$1" --out "$d/$2" --device cpu "${@:3}"
}
distill() { # TEACHER RUN ARGUMENTS...
    rm -rf "${d:?}/$2"
    "$nojit" distill --teacher "$d/$1" --student "$d/student" --out "$d/$2" --device cpu --lr 1e-2 "${@:3}"
}
# What a run computed: its rows of metrics without times, memory and speeds, and its weights.
result_of() { # RUN
    sed -E 's/"(step_ms|[a-z_]*(second|mfu|memory)[a-z_]*)": [^,}]*,? ?//g' "$d/$1/metrics.jsonl"
    cksum <"$d/$1/model.safetensors"
}
files_of() { (cd "$d/$1" && cksum ./*); }
# alike NAME TEACHER CACHE ARGUMENTS...: the two teach the same.
alike() {
    local name=$1 teacher=$2 cached=$3
    shift 3
    if distill "$teacher" live "$@" >"$scratch/out" 2>&1 && distill "$cached" stored "$@" >"$scratch/out" 2>&1; then
        ok_if "$name" "$(diff <(result_of live) <(result_of stored) | head -n 4)" [ "$(result_of live)" = "$(result_of stored)" ]
    else
        not_ok "$name" "$(tail -n 2 "$scratch/out")"
    fi
}

# ---- the same bits
cache teacher none "${texts[@]}" --dry-run >"$scratch/dry"
ok_if "cache --dry-run writes nothing" "$(ls "$d")" [ ! -e "$d/none" ]
cache teacher texts "${texts[@]}" --batch-size 4 --shard-bytes 200KB >"$scratch/said"
ok_if "cache --dry-run says what is computed" "$(cat "$scratch/dry" "$scratch/said")" [ "$(cat "$scratch/dry")" = "$(head -n 1 "$scratch/said")" ]
ok_if "cache says how many files it wrote" "$(cat "$scratch/said")" \
    grep -q " in $(find "$d/texts" -name 'hidden-*' | wc -l) files, in " "$scratch/said"
alike "a cached teacher teaches bit for bit as itself" teacher texts "${texts[@]}" --steps 24 --eval-every 8
ok_if "the receipt names the model behind a cache, and its hash" "$(cat "$d/stored/receipt.json")" \
    [ "$(grep -A 1 teacher_cache "$d/stored/receipt.json" | grep -c "$d/teacher") $(grep teacher_hash "$d/stored/receipt.json")" = "1 $(grep teacher_hash "$d/live/receipt.json")" ]
alike "a cached teacher does so with another seed, batch size and objective" teacher texts "${texts[@]}" --steps 9 --eval-every 4 \
    --seed 5 --batch-size 3 --grad-accum 2 --objective tvd --temperature 2
alike "a cached teacher does so with several ranks" teacher texts "${texts[@]}" --steps 4 --batch-size 2 --grad-accum 4 --virtual-ranks 2
alike "a cached teacher does so in several processes" teacher texts "${texts[@]}" --steps 4 --batch-size 2 --grad-accum 2 --gpus 2
cache teacher rows "${rows[@]}" --packing bfd --store hidden >"$scratch/said"
targets=$(sed -nE 's/^([0-9]+) hidden states to compute.*/\1/p' "$scratch/said")
ok_if "prompts take nothing in a cache" "$targets hidden states" [ "$targets" -lt 400 ]
alike "a cached teacher does so for answers behind prompts, packed" teacher rows "${rows[@]}" --packing bfd --steps 8 --seed 3 --batch-size 2
distill teacher live "${rows[@]}" --packing none --steps 1 >/dev/null || true
distill rows stored "${rows[@]}" --packing none --steps 1 >/dev/null || true
loss_of() { sed -nE 's/.*"loss": ([^,]+).*/\1/p' "$d/$1/metrics.jsonl"; }
ok_if "documents that are packed otherwise find their hidden states, which differ by rounding" "$(loss_of live) $(loss_of stored)" \
    awk -v a="$(loss_of live)" -v b="$(loss_of stored)" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 1e-12 * a * a) }'
cache untied untied-cache "${texts[@]}" >"$scratch/said"
alike "a cached teacher does so with a head of its own" untied untied-cache "${texts[@]}" --steps 4
"$nojit" export --model "$d/teacher" --out "$d/teacher.gguf" --type q8_0 >"$scratch/out" 2>&1
cache teacher.gguf quantized "${texts[@]}" >"$scratch/said"
alike "a cached teacher does so for a quantized one" teacher.gguf quantized "${texts[@]}" --steps 4
cache teacher texts "${texts[@]}" >"$scratch/said"
ok_if "what a cache has is not computed again" "$(cat "$scratch/said")" grep -q '^0 hidden states to compute' "$scratch/said"
for teacher in teacher texts; do
    "$nojit" eval --model "$d/student" --teacher "$d/$teacher" --data "$d/held.txt" --seq-len 64 --device cpu --json >"$scratch/eval.$teacher"
done
ok_if "eval measures the divergence from a cached teacher" "$(diff "$scratch"/eval.*)" cmp -s "$scratch"/eval.*

# ---- several processes, and processes that are killed
cache teacher parts "${texts[@]}" --part 1/2 >/dev/null &
cache teacher parts "${texts[@]}" --part 2/2 >/dev/null
wait $!
alike "processes with --part fill one cache" teacher parts "${texts[@]}" --steps 2
cache teacher killed "${texts[@]}" --shard-bytes 20KB --batch-size 2 >/dev/null
files_of killed >"$scratch/whole"
rm -r "$d/killed"
kills=0 after=0 done=
while [ -z "$done" ] && [ $kills -lt 200 ]; do
    after=$(awk -v a="$after" 'BEGIN { print a + .004 }')
    "$nojit" cache --teacher "$d/teacher" --out "$d/killed" --device cpu "${texts[@]}" --shard-bytes 20KB --batch-size 2 >/dev/null 2>&1 &
    sleep "$after"
    kill -KILL $! 2>/dev/null || true
    if wait $!; then done=1; else kills=$((kills + 1)); fi
done 2>/dev/null
rm -rf "$d"/killed.tmp-*
files_of killed >"$scratch/continued"
ok_if "a cache that was killed again and again has the files of one that was not" "$kills kills: $(diff "$scratch/whole" "$scratch/continued" | head -n 4)" \
    cmp -s "$scratch/whole" "$scratch/continued"

# ---- what others read
if "${PYTHON:-python3}" -c 'import numpy, safetensors' 2>/dev/null; then
    succeeds "Python reads a shard" "${PYTHON:-python3}" - "$d"/rows/hidden-*.safetensors <<'PY'
import sys
import safetensors
with safetensors.safe_open(sys.argv[1], "np") as f:
    t = {name: f.get_tensor(name) for name in f.keys()}
assert sorted(t) == ["check", "first_row", "first_token", "hidden", "ids", "key", "place"], sorted(t)
rows, tokens = t["first_row"].astype(int), t["first_token"].astype(int)
assert len(t["key"]) == len(t["check"]) == len(rows) - 1 == len(tokens) - 1 == 9
assert t["hidden"].shape == (rows[-1], 128) and len(t["place"]) == rows[-1] and len(t["ids"]) == tokens[-1]
for i in range(9):  # the first state predicts the first byte of the answer, the last one the end of it
    place, ids = t["place"][rows[i]:rows[i + 1]], bytes(t["ids"][tokens[i]:tokens[i + 1]].tolist()).decode()
    assert list(place) == list(range(place[0], len(ids))) and ids[place[0] + 1:].startswith("It is"), (place, ids)
PY
else
    skip "Python reads a shard" "no safetensors here"
fi

"$nojit" plan --student "$d/student" --teacher "$d/texts" --seq-len 64 --device cpu --json >"$scratch/cached.plan"
"$nojit" plan --student "$d/student" --teacher "$d/teacher" --seq-len 64 --device cpu --json >"$scratch/live.plan"
weights_in() { sed -nE 's/.*"teacher.weights": ([0-9]+).*/\1/p' "$1"; }
ok_if "a plan with a cached teacher has its LM head alone" "$(weights_in "$scratch/cached.plan") of $(weights_in "$scratch/live.plan")" \
    [ "$(weights_in "$scratch/cached.plan")" = "$((264 * 128 * 4))" ]

# ---- refusals
tail -c 3000 "$d/text.txt" >"$d/more.txt"
more=(--data "$d/text.txt" "$d/more.txt" --seq-len 64)
refuses "passages that a cache lacks are counted" 2 'lacks [0-9]+ of [0-9]+ passages of the data; add them: nojit cache --teacher ' \
    distill texts run "${more[@]}"
eval "$(sed -nE "s,.*add them: nojit (.*),\"$nojit\" \1 --device cpu,p" "$scratch/err")" >/dev/null
alike "the command of that refusal adds them" teacher texts "${more[@]}" --steps 3
refuses "a cache of another teacher is not added to" 2 'is a cache of .*/teacher, made with another teacher' cache other texts "${texts[@]}"
refuses "a folder that is no cache is not written to" '*' 'student' cache teacher student "${texts[@]}"
cp -r "$d/texts" "$d/changed"
refuses "a cache is no student" 2 'it can be a --teacher only' \
    "$nojit" train --student "$d/texts" --data "$d/text.txt" --out "$d/run" --device cpu
sed -i 's/"dtype": "F32"/"dtype": "BF16"/' "$d/changed/cache.json"
rm "$d"/changed/hidden-*
refuses "a cache of another type is refused" 2 'hidden states are bfloat16 and this run computes in float32' distill changed run "${texts[@]}"
cp "$d/texts/cache.json" "$d/changed"
sed -i 's/"rms_norm_eps": [^,]*/"rms_norm_eps": 0.01/' "$d/changed/config.json"
refuses "a config.json that was changed is refused" '*' 'not the one that the cache was made with' distill changed run "${texts[@]}"
cp "$d/texts"/* "$d/changed"
printf '\x55' | dd of="$d/changed/model.safetensors" bs=1 seek=9000 conv=notrunc status=none
refuses "a damaged head is refused" '*' 'model.safetensors: it is damaged' distill changed run "${texts[@]}"
cp "$d/texts"/* "$d/changed"
for shard in "$d"/changed/hidden-*; do
    printf '\x55\x55\x55\x55' | dd of="$shard" bs=1 seek=$(($(stat -c %s "$shard") - 4000)) conv=notrunc status=none
done
refuses "a damaged shard is refused" '*' 'hidden-[0-9a-f]*.safetensors: it is damaged: .*; remove this file' distill changed run "${texts[@]}"
cp "$d/texts"/* "$d/changed"
shard=$(find "$d/changed" -name 'hidden-*' | sort | head -n 1)
truncate -s -1 "$shard"
refuses "a shard that is cut short is refused" '*' "$(basename "$shard"): .*remove this file" distill changed run "${texts[@]}"
rm "$shard"
cache teacher changed "${texts[@]}" >/dev/null
alike "what was removed is made again" teacher changed "${texts[@]}" --steps 2
for option in '--teacher-dtype q8_0' '--teacher-shard --gpus 2' "--on-policy 0.5 --prompts $d/rows.jsonl"; do
    # shellcheck disable=SC2086
    refuses "a cached teacher with ${option%% *} is refused" 2 "leave ${option%% *} out, or name the model" distill texts run "${texts[@]}" $option
done
refuses "--part is a number of parts" 2 '--part 3/2: give the number of a part' cache teacher none "${texts[@]}" --part 3/2
finish

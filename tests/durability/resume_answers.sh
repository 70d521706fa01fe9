#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# resume_answers.sh: runs with --on-policy, resumed from each of their checkpoints: bitwise the model, the state and the rows of the run left alone.
# What such a run may not change, and answers.bin where it is damaged.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1

"$nojit" init --preset nojit-tiny --seed 1 --dtype float32 --out "$d/student" >/dev/null
"$nojit" init --preset nojit-tiny-llama --seed 2 --dtype float32 --out "$d/teacher" >/dev/null
head -c 6000 /usr/share/common-licenses/GPL-3 >"$d/text.txt"
for i in 1 2 3 4 5 6 7; do
    printf '{"prompt": "%s is", "teacher_prompt": "%s, briefly: %s is"}\n' "$(head -c $i <<<GPLtext)" "Answer" "$i"
done >"$d/prompts.jsonl"
sed 's/ is/ was/' "$d/prompts.jsonl" >"$d/other.jsonl"
base=(distill --student "$d/student" --teacher "$d/teacher" --prompts "$d/prompts.jsonl" --device cpu --seq-len 64 --batch-size 2 --steps 7
    --lr 5e-3 --max-new 14)
rows() { sed -E 's/"(tokens_per_second|step_ms|mfu_student|mfu_teacher|rollout_seconds|rollout_tokens_per_second)": [^,]+, //g' "$1/metrics.jsonl"; }
bits() { (cd "$1" && cat ./*model.safetensors checkpoint-7/{*model.safetensors,state.bin} $([ ! -f checkpoint-7/answers.bin ] || echo checkpoint-7/answers.bin) | cksum); }

shown() { sed -nE "s/^\{\"step\": ([0-9]+), .*/\1&/p" "$1/samples.jsonl" 2>/dev/null | awk -F'{' -v after="$2" '$1 > after' || true; }
resumes() { # NAME OPTION...: from each checkpoint, in another folder
    local name=$1 k bad=
    shift
    rm -rf "$d/whole"
    if ! "$nojit" "${base[@]}" "$@" --save-every 1 --keep 7 --out "$d/whole" >"$scratch/out" 2>&1; then
        not_ok "$name" "$(tail -n 1 "$scratch/out")"
        return
    fi
    for k in 1 2 3 4 5 6; do
        rm -rf "$d/run"
        if ! "$nojit" "${base[@]}" "$@" --save-every 1 --keep 7 --out "$d/run" --resume "$d/whole/checkpoint-$k" >"$scratch/out" 2>&1; then
            bad="$bad $k: $(tail -n 1 "$scratch/out");"
        elif [ "$(bits "$d/whole")" != "$(bits "$d/run")" ] || ! cmp -s <(rows "$d/whole" | tail -n $((7 - k))) <(rows "$d/run") ||
            ! cmp -s <(shown "$d/whole" $k) <(shown "$d/run" 0); then
            bad="$bad $k: other weights, states, rows or samples;"
        fi
    done
    if [ -z "$bad" ]; then ok "$name"; else not_ok "$name" "from checkpoint$bad"; fi
}
resumes "answers alone" --on-policy 1
resumes "with text, in several micro-batches" --on-policy 0.5 --data "$d/text.txt" --grad-accum 2
resumes "packed text" --on-policy 0.5 --data "$d/text.txt" --packing bfd --batch-size 3
resumes "answers used again" --on-policy 1 --reuse 3
resumes "answers used again, with text, in several micro-batches" --on-policy 0.5 --data "$d/text.txt" --reuse 3 --grad-accum 2
resumes "several answers per prompt, growing" --on-policy 1 --group 3 --horizon 2
resumes "adapters" --on-policy 0.5 --data "$d/text.txt" --reuse 2 --lora-r 4 --lora-dropout 0.2
resumes "16-bit state" --on-policy 1 --optimizer-state bf16
resumes "an FP8 teacher" --on-policy 0.5 --data "$d/text.txt" --teacher-dtype fp8 --reuse 3
resumes "a quantised teacher that writes" --on-policy 1 --teacher-dtype q8_0 --writer teacher
resumes "a teacher's context" --on-policy 1 --reuse 2 --teacher-prompt $'Two lines\nof context. '

# ---- a run that stopped, in its own folder
rm -rf "$d/whole"
reused=("$nojit" "${base[@]}" --on-policy 0.5 --data "$d/text.txt" --reuse 3)
"${reused[@]}" --save-every 1 --keep 7 --out "$d/whole" >/dev/null 2>&1
copy() { # up to checkpoint 5
    rm -rf "$d/run"
    cp -r "$d/whole" "$d/run"
    rm -r "$d/run"/{model.safetensors,config.json,receipt.json,checkpoint-6,checkpoint-7}
}
again() { "${reused[@]}" --save-every 1 --keep 7 --out "$d/run" --resume auto "$@"; }
copy
again >"$scratch/out" 2>&1 || true
if [ "$(bits "$d/whole")" = "$(bits "$d/run")" ] && cmp -s <(rows "$d/whole") <(rows "$d/run") && cmp -s {"$d/whole","$d/run"}/samples.jsonl; then ok "a run that stopped"; else not_ok "a run that stopped" "$(tail -n 1 "$scratch/out")"; fi
"${reused[@]}" --save-every 1 --keep 2 --out "$d/few" >"$scratch/out" 2>&1
if [ "$(cd "$d/few" && echo checkpoint-*)" = "checkpoint-6 checkpoint-7" ]; then ok "old checkpoints are removed"; else not_ok "old checkpoints are removed" "$(tail -n 3 "$scratch/out")"; fi

# ---- what may not change, and what may
changed() { # NAME REGEX OPTION...
    local name=$1 pattern=$2
    shift 2
    copy
    refuses "$name" 2 "^nojit distill: $d/run/checkpoint-5 was made with $pattern; repeat the options of the run" again "$@"
}
changed "another share" 'on-policy 0.5, this run has on-policy 0.25' --on-policy 0.25
changed "other prompts" 'prompts [0-9a-f]+, this run has prompts [0-9a-f]+ \(the tokens of --prompts or --teacher-prompt differ\)' --prompts "$d/other.jsonl"
changed "another teacher's context" 'prompts [0-9a-f]+, this run has prompts [0-9a-f]+ .*' --prompts "$d/other.jsonl" --teacher-prompt "x"
changed "longer answers" 'max-new 14, this run has max-new 15' --max-new 15
changed "another reuse" 'reuse 3, this run has reuse 2' --reuse 2
changed "another writer" 'writer student, this run has writer teacher' --writer teacher
copy
refuses "no answers any more" 2 "^nojit distill: $d/run/checkpoint-5 was made with on-policy 0.5, this run has on-policy 0; repeat the options" \
    "$nojit" distill --student "$d/student" --teacher "$d/teacher" --device cpu --seq-len 64 --batch-size 2 --steps 7 --lr 5e-3 --data "$d/text.txt" --kd-ratio 1 --out "$d/run" --resume auto
"$nojit" distill --student "$d/student" --teacher "$d/teacher" --device cpu --seq-len 64 --batch-size 2 --steps 7 --lr 5e-3 --data "$d/text.txt" --kd-ratio 1 --save-every 5 \
    --out "$d/plain" >/dev/null 2>&1
if ! grep -qE '^(on-policy|max-new|prompts) ' "$d/plain/checkpoint-5/settings.txt"; then ok "other runs do not have its settings"; else not_ok "other runs do not have its settings" "$(cat "$d/plain/checkpoint-5/settings.txt")"; fi
refuses "answers only now" 2 "checkpoint-5 was made with on-policy 0, this run has on-policy 0.5; repeat the options" \
    "${reused[@]}" --out "$d/x" --resume "$d/plain/checkpoint-5"
copy
again --rollout-batch 1 >"$scratch/out" 2>&1 || true
if [ "$(bits "$d/whole")" = "$(bits "$d/run")" ]; then ok "other answers at a time"; else not_ok "other answers at a time" "$(tail -n 1 "$scratch/out")"; fi

# ---- answers.bin
file=$d/run/checkpoint-5/answers.bin
another="another one is --resume $d/run/checkpoint-4"
copy
truncate -s -1 "$file"
refuses "answers cut short" 1 "^nojit distill: $file: not the whole answers of a step; take another checkpoint; $another$" again
copy
printf '\377' | dd of="$file" bs=1 seek=100 conv=notrunc status=none
refuses "answers damaged" 1 "^nojit distill: $file: not the whole answers of a step; take another checkpoint; $another$" again
copy
rm "$file"
refuses "no answers" 1 "^nojit distill: $file: .*; $another$" again
copy
rm "$d/run/checkpoint-5/answers.bin" && mkfifo "$file"
refuses "answers that are a pipe" 1 "^nojit distill: $file: .*; $another$" again
copy
rm -r "$d/run"/checkpoint-[45] # step 4 writes answers of its own, so those of checkpoint 3 are not read
rm "$d/run/checkpoint-3/answers.bin"
again >"$scratch/out" 2>&1 || true
if [ "$(bits "$d/whole")" = "$(bits "$d/run")" ]; then ok "answers that no step uses again"; else not_ok "answers that no step uses again" "$(tail -n 1 "$scratch/out")"; fi
finish

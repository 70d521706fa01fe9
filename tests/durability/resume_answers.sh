#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# resume_answers.sh: runs with --on-policy, resumed from each of their checkpoints, reach bitwise the model, the state and the
# rows of the run left alone; what such a run may not change is refused, and so is a damaged answers.bin.
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
resumes "a run of answers alone is resumed from each checkpoint" --on-policy 1
resumes "a run of answers and text in several micro-batches is resumed from each checkpoint" --on-policy 0.5 --data "$d/text.txt" --grad-accum 2
resumes "a run of answers and packed text is resumed from each checkpoint" --on-policy 0.5 --data "$d/text.txt" --packing bfd --batch-size 3
resumes "a run that uses answers again is resumed from each checkpoint" --on-policy 1 --reuse 3
resumes "a run that uses answers again beside text is resumed from each checkpoint" --on-policy 0.5 --data "$d/text.txt" --reuse 3 --grad-accum 2
resumes "a run of several growing answers per prompt is resumed from each checkpoint" --on-policy 1 --group 3 --horizon 2
resumes "an on-policy run of adapters is resumed from each checkpoint" --on-policy 0.5 --data "$d/text.txt" --reuse 2 --lora-r 4 --lora-dropout 0.2
resumes "an on-policy run with a 16-bit state is resumed from each checkpoint" --on-policy 1 --optimizer-state bf16
resumes "an on-policy run with an FP8 teacher is resumed from each checkpoint" --on-policy 0.5 --data "$d/text.txt" --teacher-dtype fp8 --reuse 3
resumes "an on-policy run with a quantized teacher that writes is resumed from each checkpoint" --on-policy 1 --teacher-dtype q8_0 --writer teacher
resumes "an on-policy run with a teacher's context is resumed from each checkpoint" --on-policy 1 --reuse 2 --teacher-prompt $'Two lines\nof context. '

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
if [ "$(bits "$d/whole")" = "$(bits "$d/run")" ] && cmp -s <(rows "$d/whole") <(rows "$d/run") && cmp -s {"$d/whole","$d/run"}/samples.jsonl; then ok "an on-policy run that stopped is resumed in its folder"; else not_ok "an on-policy run that stopped is resumed in its folder" "$(tail -n 1 "$scratch/out")"; fi
"${reused[@]}" --save-every 1 --keep 2 --out "$d/few" >"$scratch/out" 2>&1
if [ "$(cd "$d/few" && echo checkpoint-*)" = "checkpoint-6 checkpoint-7" ]; then ok "an on-policy run keeps two checkpoints with --keep 2"; else not_ok "an on-policy run keeps two checkpoints with --keep 2" "$(tail -n 3 "$scratch/out")"; fi

# ---- what may not change, and what may
changed() { # NAME REGEX OPTION...
    local name=$1 pattern=$2
    shift 2
    copy
    refuses "$name" 2 "^nojit distill: $d/run/checkpoint-5 was made with $pattern; repeat the options of the run" again "$@"
}
changed "resuming with another --on-policy is refused" 'on-policy 0.5, this run has on-policy 0.25' --on-policy 0.25
changed "resuming with other prompts is refused" 'prompts [0-9a-f]+, this run has prompts [0-9a-f]+ \(the tokens of --prompts or --teacher-prompt differ\)' --prompts "$d/other.jsonl"
changed "resuming with another --teacher-prompt is refused" 'prompts [0-9a-f]+, this run has prompts [0-9a-f]+ .*' --prompts "$d/other.jsonl" --teacher-prompt "x"
changed "resuming with another --max-new is refused" 'max-new 14, this run has max-new 15' --max-new 15
changed "resuming with another --reuse is refused" 'reuse 3, this run has reuse 2' --reuse 2
changed "resuming with another --writer is refused" 'writer student, this run has writer teacher' --writer teacher
copy
refuses "resuming an on-policy run without --on-policy is refused" 2 "^nojit distill: $d/run/checkpoint-5 was made with on-policy 0.5, this run has on-policy 0; repeat the options" \
    "$nojit" distill --student "$d/student" --teacher "$d/teacher" --device cpu --seq-len 64 --batch-size 2 --steps 7 --lr 5e-3 --data "$d/text.txt" --kd-ratio 1 --out "$d/run" --resume auto
"$nojit" distill --student "$d/student" --teacher "$d/teacher" --device cpu --seq-len 64 --batch-size 2 --steps 7 --lr 5e-3 --data "$d/text.txt" --kd-ratio 1 --save-every 5 \
    --out "$d/plain" >/dev/null 2>&1
if ! grep -qE '^(on-policy|max-new|prompts) ' "$d/plain/checkpoint-5/settings.txt"; then ok "settings.txt of other runs has no on-policy settings"; else not_ok "settings.txt of other runs has no on-policy settings" "$(cat "$d/plain/checkpoint-5/settings.txt")"; fi
refuses "resuming a run of text with --on-policy is refused" 2 "checkpoint-5 was made with on-policy 0, this run has on-policy 0.5; repeat the options" \
    "${reused[@]}" --out "$d/x" --resume "$d/plain/checkpoint-5"
copy
again --rollout-batch 1 >"$scratch/out" 2>&1 || true
if [ "$(bits "$d/whole")" = "$(bits "$d/run")" ]; then ok "a run resumed with another --rollout-batch is the same run"; else not_ok "a run resumed with another --rollout-batch is the same run" "$(tail -n 1 "$scratch/out")"; fi

# ---- answers.bin
file=$d/run/checkpoint-5/answers.bin
another="another one is --resume $d/run/checkpoint-4"
copy
truncate -s -1 "$file"
refuses "an answers.bin that is cut short is refused" 1 "^nojit distill: $file: not the whole answers of a step; take another checkpoint; $another$" again
copy
printf '\377' | dd of="$file" bs=1 seek=100 conv=notrunc status=none
refuses "a damaged answers.bin is refused" 1 "^nojit distill: $file: not the whole answers of a step; take another checkpoint; $another$" again
copy
rm "$file"
refuses "a missing answers.bin is refused" 1 "^nojit distill: $file: .*; $another$" again
copy
rm "$d/run/checkpoint-5/answers.bin" && mkfifo "$file"
refuses "an answers.bin that is a pipe is refused" 1 "^nojit distill: $file: .*; $another$" again
copy
rm -r "$d/run"/checkpoint-[45] # step 4 writes answers of its own, so those of checkpoint 3 are not read
rm "$d/run/checkpoint-3/answers.bin"
again >"$scratch/out" 2>&1 || true
if [ "$(bits "$d/whole")" = "$(bits "$d/run")" ]; then ok "an answers.bin that no step uses again may be missing"; else not_ok "an answers.bin that no step uses again may be missing" "$(tail -n 1 "$scratch/out")"; fi
finish

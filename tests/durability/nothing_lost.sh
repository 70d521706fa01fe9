#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# nothing_lost.sh: however a run ends (interrupts, a full disk, numbers that are not finite, a damaged checkpoint; kills: resume_killed.sh),
# what was saved is whole, and going on reaches the bits of a run left alone.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive

"$nojit" init --preset nojit-demo-teacher --dtype float32 --out "$d/student" >/dev/null
"$nojit" init --preset nojit-tiny --seed 2 --dtype float32 --out "$d/teacher" >/dev/null
head -c 4000 /usr/share/common-licenses/GPL-3 >"$d/text.txt"
head -c 2000 /usr/share/common-licenses/LGPL-3 | tail -c 500 >"$d/held.txt"
steps=16
run=("$nojit" distill --teacher "$d/teacher" --student "$d/student" --data "$d/text.txt" --eval-data "$d/held.txt"
    --seq-len 64 --batch-size 2 --grad-accum 2 --steps $steps --lr 2e-2 --warmup-steps 2 --eval-every 3 --device cpu
    --save-every 2 --keep 2 --keep-best)

. tests/lib/compare_runs.sh
. tests/lib/plant_nan.sh
ends_with() { # NAME STATUS PID
    local status=0
    wait "$3" || status=$?
    if [ "$status" = "$2" ]; then ok "$1"; else not_ok "$1" "exit status $status, expected $2: $(tail -n 2 "$scratch/out")"; fi
}

"${run[@]}" --out "$d/whole" >/dev/null
if [ "$(rows "$d/whole" | grep -c '"loss"')" = $steps ] && [ "$(ls -d "$d"/whole/checkpoint-* | wc -l)" = 2 ] &&
    [ -f "$d/whole/best/state.bin" ]; then
    ok "a run left alone has its rows, checkpoints and best model"
else
    not_ok "a run left alone has its rows, checkpoints and best model" "$(ls "$d/whole")"
fi

# ---- Ctrl-C
interrupt() { # NAME FOLDER: a run that an interrupt ends after step 5
    "${run[@]}" --out "$2" >"$scratch/out" 2>&1 &
    until_true $! row_of_step "$2" 5 && kill -INT $! || true
    ends_with "$1" 130 $!
    at=$(newest "$2")
}
interrupt "an interrupt ends with 130" "$d/once"
if grep -q "interrupted: ${at##*/} is saved; continue with --resume auto" "$scratch/out" && whole_checkpoints "$d/once" >"$scratch/err" &&
    [ "${at##*-}" -lt $steps ]; then
    ok "an interrupted run has saved and says so"
else
    not_ok "an interrupted run has saved and says so" "$(tail -n 1 "$scratch/out") $(cat "$scratch/err")"
fi
finish_run "an interrupted run reaches the same end" "$d/once"

for try in 1 2 3 4 5 6 7 8; do # a busy machine may be too late for the save
    rm -rf "$d/twice"
    "${run[@]}" --out "$d/twice" --save-every 4 >"$scratch/out" 2>&1 &
    pid=$!
    until_true $pid row_of_step "$d/twice" 5 || true
    sum=$(cat "$d"/twice/checkpoint-4/* | cksum)
    kill -INT $pid || true
    until_true $pid saving "$d/twice" && kill -INT $pid || true
    ends_with "a second interrupt within the save ends with 130 (try $try)" 130 $pid
    grep -q "interrupted: .* is saved" "$scratch/out" || break
done
if [ "$(newest "$d/twice")" = "$d/twice/checkpoint-4" ] && [ "$(cat "$d"/twice/checkpoint-4/* | cksum)" = "$sum" ] &&
    ! grep -q "interrupted: .* is saved" "$scratch/out"; then
    ok "a second interrupt ends the run at once with the checkpoint before as it was"
else
    not_ok "a second interrupt ends the run at once with the checkpoint before as it was" "$(ls "$d/twice")"
fi
finish_run "a run interrupted within a save reaches the same end" "$d/twice"

# An interrupt that comes while a row waits for its reader.
mkfifo "$d/pipe"
"$nojit" init --preset nojit-tiny --out "$d/tiny" >/dev/null
"$nojit" train --student "$d/tiny" --data "$d/text.txt" --seq-len 8 --batch-size 1 --steps 1000000 --device cpu --json \
    --out "$d/piped" >"$d/pipe" 2>"$scratch/out" &
pid=$!
exec 3<"$d/pipe"
waits() { # no row came for half a second
    local before
    before=$(wc -l <"$d/piped/metrics.jsonl") && sleep 0.5 && [ "$before" -gt 100 ] && [ "$before" = "$(wc -l <"$d/piped/metrics.jsonl")" ]
} 2>/dev/null
until_true $pid waits || true
kill -INT $pid || true
sleep 0.1
cat <&3 >"$d/piped.jsonl"
exec 3<&-
ends_with "an interrupt while the reader is slow ends with 130" 130 $pid
if cmp "$d/piped.jsonl" "$d/piped/metrics.jsonl" >"$scratch/err" 2>&1; then ok "an interrupt while the reader is slow loses no row"; else not_ok "an interrupt while the reader is slow loses no row" "$(cat "$scratch/err")"; fi

# ---- the disk is full: while weights are written, while the state is
interrupt "an interrupted run that is to fill a disk ends with 130" "$d/full"
for kib in 2000 8000; do
    full() { (ulimit -f $kib && trap '' XFSZ && "${run[@]}" --out "$d/full" --resume auto); }
    sum=$(cat "$at"/* "$d"/full/best/* | cksum)
    refuses "a disk full after $kib KiB ends the run" 1 "$d/full/.*(File too large|free space)" full
    if [ "$(cat "$at"/* "$d"/full/best/* | cksum)" = "$sum" ] && ! saving "$d/full"; then
        ok "a disk full after $kib KiB leaves what was saved as it was"
    else
        not_ok "a disk full after $kib KiB leaves what was saved as it was" "$(ls "$d/full")"
    fi
done
finish_run "a run that a full disk ended reaches the same end" "$d/full"
# The same on a file system that is full, where one may be mounted: there is room for three checkpoints, a fourth fails.
mkdir "$d/disk"
small_disk() {
    unshare -rm bash -c 'mount -t tmpfs -o size=55m none "$0" && shift && { "$@"; s=$?; cp -r "$0/run" "$0.left"; exit $s; }' \
        "$d/disk" x "${run[@]}" --keep 9 --out "$d/disk/run"
}
full_state() { # the weights have room, the state has not
    unshare -rm bash -c 'mount -t tmpfs -o size=10m none "$0" && "$@"' "$d/disk" "${run[@]}" --out "$d/disk/run"
}
no_room() { # for the final model, without checkpoints
    unshare -rm bash -c 'mount -t tmpfs -o size=3m none "$0" && shift && { "$@"; s=$?; ls -A "$0" >"$0.left"; exit $s; }' \
        "$d/disk" x "${run[@]}" --keep-best false --save-every 0 --out "$d/disk/run"
}
if unshare -rm mount -t tmpfs none "$d/disk" 2>/dev/null; then
    refuses "a file system without space for the state ends the run" 1 'state.bin: writing failed: No space left on device; free space, then continue with --resume auto$' full_state
    rm -rf "$d/disk.left"
    refuses "a file system without space for the final model is refused" 1 '/disk/run: 4 MiB are needed, [0-3] MiB are free' no_room
    if [ ! -s "$d/disk.left" ]; then ok "a lack of space for the final model is said before the first step"; else not_ok "a lack of space for the final model is said before the first step" "$(cat "$d/disk.left")"; fi
    rm -f "$d/disk.left"
    refuses "a full file system ends the run" 1 "$d/disk/run/.*(No space left|free space)" small_disk
    if whole_checkpoints "$d/disk.left" >"$scratch/err" && ! saving "$d/disk.left" && [ "$(newest "$d/disk.left")" != "" ]; then
        ok "a full file system leaves whole checkpoints"
    else
        not_ok "a full file system leaves whole checkpoints" "$(ls "$d/disk.left") $(cat "$scratch/err")"
    fi
    finish_run "a run that a full file system ended reaches the same end elsewhere" "$d/disk.left"
fi

# ---- damaged checkpoints: said, not passed over; the one that is named leads to the same end
"${run[@]}" --out "$d/damaged" >/dev/null
go_on() { "${run[@]}" --out "$d/damaged" --resume "$@"; }
state=$d/damaged/checkpoint-$steps/state.bin
before=$d/damaged/checkpoint-$((steps - 2))
size=$(stat -c %s "$state")
printf '\377' | dd of="$state" bs=1 seek=$((size / 2)) conv=notrunc status=none
refuses "a state with a flipped byte is refused" 1 "$state: the .* are damaged; take another checkpoint; another one is --resume $before\$" go_on auto
truncate -s $((size - 1)) "$state"
refuses "a state that is cut short is refused" 1 "$state: .*; another one is --resume $before\$" go_on auto
rm "$state"
refuses "a state that is gone is refused" 1 "$state: No such file.*; another one is --resume $before\$" go_on auto
if go_on "$before" >"$scratch/out" 2>&1 && grep -q 'set aside as \*.old: 1' "$scratch/out" && [ -d "$d/damaged/checkpoint-$steps.old" ]; then
    same_end "a run goes on from the checkpoint before a damaged one to the same end" "$d/damaged"
else
    not_ok "a run goes on from the checkpoint before a damaged one to the same end" "$(tail -n 1 "$scratch/out")"
fi
rm "$d"/damaged/checkpoint-*/state.bin
refuses "--resume auto is refused where no checkpoint is whole" 1 "; another one is --resume $before" go_on auto
rm -r "$before"
refuses "--resume auto is refused where no checkpoint is left" 1 'holds none, so start again in another folder' go_on auto
"${run[@]}" --out "$d/branch" --resume "$d/whole/checkpoint-$steps" --steps $((steps + 2)) >"$scratch/out" 2>&1 || true
if [ -f "$d/branch/model.safetensors" ] && [ -d "$d/branch/checkpoint-$((steps + 2))" ] && [ -f "$d/whole/model.safetensors" ]; then
    ok "a new folder may go on from a run's checkpoint"
else
    not_ok "a new folder may go on from a run's checkpoint" "$(tail -n 1 "$scratch/out")"
fi
refuses "--resume into a folder that holds a model is refused" 2 'holds a model already' \
    "${run[@]}" --out "$d/branch" --resume "$d/whole/checkpoint-$steps" --steps $((steps + 2))

# ---- a start over, with rows of the run before it
mkdir "$d/again"
head -n 4 "$d/whole/metrics.jsonl" >"$d/again/metrics.jsonl"
"${run[@]}" --out "$d/again" --resume auto >/dev/null
same_end "a run killed before its first checkpoint starts over" "$d/again"

# ---- numbers that are not finite: the rate blows the weights up
interrupt "an interrupted run that is to burst ends with 130" "$d/burst"
burst() { "${run[@]}" --out "$d/burst" --resume auto --lr 1e3 --weight-decay 1e3 --max-grad-norm 0 "$@"; }
cp -r "$d/burst" "$d/burst2"
refuses "weights that become infinite end the run" 1 \
    '^nojit distill: step [0-9]+: .*model\.[a-z0-9_.]+ is not finite, in micro-batch [12] of 2, which begins with window [0-9]+ of epoch [0-9]+; the weights were not changed: .*; checkpoint-[0-9]+ was saved; continue with --resume auto$' burst
sed 's/.*step \([0-9]*\): //' "$scratch/err" >"$d/said"
good=$d/burst/$(sed 's/.*; \(checkpoint-[0-9]*\) .*/\1/' "$scratch/err")
if [ "$good" = "$(newest "$d/burst")" ] && whole_checkpoints "$d/burst" >"$scratch/err"; then ok "the checkpoint that is named when weights become infinite is whole"; else not_ok "the checkpoint that is named when weights become infinite is whole" "$good"; fi
rm -rf "$d/burst"
mv "$d/burst2" "$d/burst"
(export NOJIT_GRAPH=0 && burst >/dev/null 2>"$scratch/err") || true
if sed 's/.*step \([0-9]*\): //' "$scratch/err" | cmp -s - "$d/said"; then ok "weights that become infinite are said alike without CUDA graphs"; else not_ok "weights that become infinite are said alike without CUDA graphs" "$(cat "$scratch/err")"; fi
if "${run[@]}" --out "$d/burst" --resume "$at" >"$scratch/out" 2>&1; then
    same_end "a run whose weights became infinite reaches the same end with the rate as it was" "$d/burst"
else
    not_ok "a run whose weights became infinite reaches the same end with the rate as it was" "$(tail -n 1 "$scratch/out")"
fi

# One weight that is no number, of a token that only one batch holds: the sentence names both. Seed 0 keeps the order
# of the text, and step 2 of 2 x 2 windows has windows 5 to 8.
"$nojit" init --preset nojit-tiny-qwen3 --dtype float32 --out "$d/planted" >/dev/null
plant_nan "$d/planted" 126
{ head -c 200 "$d/text.txt" && printf '~' && tail -c 1000 "$d/text.txt"; } >"$d/tilde.txt"
planted() {
    "$nojit" train --student "$d/planted" --data "$d/tilde.txt" --out "$d/nan" --seed 0 --seq-len 32 --batch-size 2 \
        --grad-accum 2 --steps 4 --save-every 1 --device cpu "$@"
}
for graph in 1 0; do
    rm -rf "$d/nan"
    NOJIT_GRAPH=$graph refuses "a planted NaN ends the run and is named (NOJIT_GRAPH=$graph)" 1 \
        '^nojit train: step 2: weight of the student model.embed_tokens.weight is not finite, in micro-batch 2 of 2, which begins with window 7 of epoch 1; .*; checkpoint-1 is good$' planted
done
sum=$(cat "$d"/nan/checkpoint-1/* | cksum)
refuses "a planted NaN ends a resumed run again" 1 '^nojit train: step 2: weight of the student .*window 7 of epoch 1' planted --resume auto
if [ "$(cat "$d"/nan/checkpoint-1/* | cksum)" = "$sum" ]; then ok "a resumed run that a planted NaN ends leaves the checkpoint as it was"; else not_ok "a resumed run that a planted NaN ends leaves the checkpoint as it was" "it differs"; fi
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rank_faults.sh: what happens to a run of several processes when one of them is killed, stopped, hung, out of memory or disk, late or told to stop:
# one sentence, the end of all, and a checkpoint from which the run goes on.
set -eu
. tests/lib/lib.sh
. tests/lib/ranks.sh
long=("${models[@]}" --lr-schedule constant --steps 4000 --save-every 20 --log-every 100000 --device cpu)

# ---- ranks that end
children() { pgrep -P "$1" | sort -n; }
# A run of three by --gpus that has saved; its pid in $pid, those of its ranks in $rank.
begun() { # OUT
    rm -rf "${d:?}/$1"
    # whatever ignores a hang-up where the tests run
    env --default-signal=HUP "$nojit" distill "${long[@]}" --gpus 3 --out "$d/$1" >"$d/$1.log" 2>"$d/$1.err" &
    pid=$!
    until_true $pid row_of_step "$d/$1" 24 || true
    mapfile -t rank < <(children $pid)
}
gone() { # NAME OUT STATUS SENTENCE: the run ended so, with all its processes, and goes on
    local status=0 p
    wait "$pid" || status=$?
    for p in "${rank[@]}"; do
        ! kill -0 "$p" 2>/dev/null || { not_ok "$1" "process $p is still there" && return; }
    done
    if [ $status != "$3" ] || [ "$(wc -l <"$d/$2.err")" -gt 1 ] || ! grep -qE -- "$4" "$d/$2.err" "$d/$2.log"; then
        not_ok "$1" "status $status: $(tail -n 3 "$d/$2.log") $(cat "$d/$2.err")"
    elif ! distill "$2" "${long[@]}" --gpus 3 --resume auto --steps 1 2>"$d/err" && ! grep -q 'past the 1 step' "$d/$2.err"; then
        not_ok "$1" "does not go on: $(cat "$d/$2.err")"
    else
        ok "$1"
    fi
}
for i in 0 1 2; do
    begun killed-$i
    kill -KILL "${rank[$i]}"
    gone "a rank that is killed ends the run" killed-$i 1 "^nojit distill: rank $i: its process ${rank[$i]} was ended by signal 9 .*--resume auto$"
done
# Whichever is told, all stop after the same step.
begun told
kill -TERM "${rank[2]}"
gone "a signal to one rank saves and ends the run" told 130 'interrupted: checkpoint-[0-9]+ is saved; continue with --resume auto$'
begun told
kill -TERM $pid "${rank[@]}"
gone "a signal to all processes saves and ends the run" told 130 'interrupted: checkpoint-[0-9]+ is saved; continue with --resume auto$'
begun parent
kill -KILL $pid
status=0
wait $pid || status=$?
left() { ! kill -0 "${rank[0]}" 2>/dev/null && ! kill -0 "${rank[1]}" 2>/dev/null && ! kill -0 "${rank[2]}" 2>/dev/null || { sleep 0.01 && false; }; }
if until_true $$ left; then ok "ranks end where their supervisor is killed"; else not_ok "ranks end where their supervisor is killed" "ranks are left"; fi
kill -KILL "${rank[@]}" 2>/dev/null || true
for signal in TERM HUP; do
    begun stopped
    kill -$signal $pid
    gone "a signal to the supervisor saves and ends the run" stopped 130 'interrupted: checkpoint-[0-9]+ is saved; continue with --resume auto$'
done
NOJIT_SILENCE_TIMEOUT=3 begun silent
kill -STOP "${rank[1]}"
gone "a rank that is stopped ends the run" silent 1 '^nojit distill: rank 1 has been silent for 3 s: its process is stopped'
NOJIT_SILENCE_TIMEOUT=2 begun suspended
sleep 3 # no condition to wait for: longer than a rank may be silent
kill -STOP $pid "${rank[@]}"
sleep 3
kill -CONT "${rank[@]}" $pid
kill -TERM $pid
gone "a run that is suspended goes on" suspended 130 'interrupted: checkpoint-[0-9]+ is saved; continue with --resume auto$'
# Ranks that are stopped save nothing between the two.
begun twice
kill -STOP "${rank[@]}"
taken() { kill -TERM $pid && until_true $pid grep -q '^ShdPnd:.0*$' /proc/$pid/status; }
taken && taken && kill -CONT "${rank[@]}" 2>/dev/null || true
status=0
wait $pid || status=$?
if [ $status = 130 ] && [ ! -s "$d/twice.err" ] && ! grep -q 'is saved' "$d/twice.log"; then
    ok "a second signal to the supervisor ends the run at once"
else
    not_ok "a second signal to the supervisor ends the run at once" "$status $(cat "$d/twice.err" "$d/twice.log")"
fi

# ---- GPUs and links that hang: all processes live
# A busy machine may not be where it hangs when the shortest limit is over.
hangs() { # NAME REGEX SETTING...
    local limit settings=("${@:3}")
    for limit in 1 5 20; do
        rm -rf "$d/hung"
        if env NOJIT_SIM_NCCL_WAIT=60 NOJIT_SILENCE_TIMEOUT=10 "${settings[@]/LIMIT/$limit}" timeout 50 "$nojit" distill "${few[@]}" \
            --device cuda --gpus 2 --first-step-timeout $limit --out "$d/hung" >"$d/hung.log" 2>"$d/hung.err"; then
            not_ok "$1" "did not fail" && return
        fi
        if [ "$(wc -l <"$d/hung.err")" = 1 ] && grep -qE "^nojit distill: $2" "$d/hung.err"; then ok "$1" && return; fi
    done
    not_ok "$1" "$(cat "$d/hung.err")"
}
at_it='no progress for [0-9]+ s on any rank: a GPU hangs, or a link between GPUs; .* or allow more time with'
# The transfers of a rank: 2 that connect, 3 of models, 5 of an evaluation, 4 of a step, one of each array of a checkpoint.
hangs "a link that hangs from the start ends the run" "connecting the GPUs: $at_it NOJIT_CONNECT_TIMEOUT$" \
    NOJIT_CONNECT_TIMEOUT=LIMIT NOJIT_SIM_NCCL_FAULT=1:1:hang
hangs "a link that hangs while models are sent ends the run" "loading the models: $at_it --first" NOJIT_SIM_NCCL_FAULT=1:4:hang
hangs "a link that hangs in an evaluation ends the run" "the evaluation at step 0: $at_it --first" NOJIT_SIM_NCCL_FAULT=1:7:hang
hangs "a link that hangs in the first step ends the run" "step 1: $at_it --first" NOJIT_SIM_NCCL_FAULT=1:12:hang
hangs "a link that hangs in a later step ends the run" "step 2: $at_it --first" NOJIT_SIM_NCCL_FAULT=0:22:hang
hangs "a link that hangs while a checkpoint is collected ends the run" "collecting a checkpoint or model: $at_it --first" \
    NOJIT_SIM_NCCL_FAULT=1:37:hang
# One of the GPUs, in a kernel.
one_hangs() { # RANK COMMAND...
    if [ "$1" = 1 ]; then torchrun 1 env NOJIT_SIM_FAIL=launch:300:hang "${@:2}"; else torchrun 0 "${@:2}"; fi
}
# All is said once, by the rank that knows.
one_says() { # NAME OUT REGEX
    if [ $status0 != 0 ] && [ $status1 != 0 ] && [ "$(spoken "$d/$2.err" "$d/$2.1.err" | wc -l)" = 1 ] && grep -qhE "^nojit distill: $3" "$d/$2.err" "$d/$2.1.err"; then
        ok "$1"
    else
        not_ok "$1" "$status0 $status1 $(cat "$d/$2.err" "$d/$2.1.err")"
    fi
}
for limit in 2 20; do
    launched one_hangs kernel "${few[@]}" --device cuda --first-step-timeout $limit
    grep -qh 'loading the models' "$d/kernel.err" "$d/kernel.1.err" || break
done
one_says "a kernel that hangs on one GPU ends the run" kernel "rank 0: step [12]: $at_it"

# ---- memory and disks
one_lacks() { # RANK COMMAND...
    if [ "$1" = 1 ]; then torchrun 1 env NOJIT_SIM_STOP=1000000 "${@:2}"; else torchrun 0 "${@:2}"; fi
}
launched one_lacks memory "${few[@]}" --device cuda
one_says "memory that runs out on one rank ends the run" memory "rank 1: .*memory"
# Room for one checkpoint.
mkdir "$d/disk"
small_disk() {
    unshare -rm bash -c 'mount -t tmpfs -o size=4m none "$0" && { "$@"; s=$?; cp -r "$0/run" "$0.left"; exit $s; }' "$d/disk" \
        "$nojit" distill "${long[@]}" --save-every 2 --keep 9 --gpus 3 --out "$d/disk/run"
}
if unshare -rm mount -t tmpfs none "$d/disk" 2>/dev/null; then
    refuses "a full disk of rank 0 ends the run" 1 "^nojit distill: $d/disk/run/.*(No space left|free space)" small_disk
    if [ "$(wc -l <"$scratch/err")" = 1 ] && whole_checkpoints "$d/disk.left" >"$d/lacks" && ! saving "$d/disk.left" && [ "$(newest "$d/disk.left")" != "" ]; then
        ok "checkpoints saved before a full disk of rank 0 are whole"
    else
        not_ok "checkpoints saved before a full disk of rank 0 are whole" "$(cat "$scratch/err" "$d/lacks"; ls "$d/disk.left")"
    fi
    saved=$(newest "$d/disk.left")
    if distill disk.left "${long[@]}" --steps $((${saved##*-} + 1)) --gpus 3 --resume auto; then ok "a run that a full disk ended goes on elsewhere"; else not_ok "a run that a full disk ended goes on elsewhere" "$(cat "$d/disk.left.err")"; fi
else
    skip "a full disk of rank 0 ends the run" "no tmpfs can be mounted here"
fi

# ---- data that become shorter under a run
"$nojit" tokenize --model "$d/student" --data "$d/text.txt" --out "$d/whole.bin" >/dev/null
cp "$d/whole.bin" "$d/tokens.bin"
long+=(--data "$d/tokens.bin")
begun cut
truncate -s 3000 "$d/tokens.bin"
status=0
wait $pid || status=$?
cp "$d/whole.bin" "$d/tokens.bin"
saved=$(newest "$d/cut")
if [ $status = 1 ] && [ "$(wc -l <"$d/cut.err")" = 1 ] &&
    grep -qE "^nojit distill: $d/tokens.bin: cannot read byte .*; ${saved##*/} was saved; repair the data and continue with --resume auto$" "$d/cut.err"; then
    ok "data cut under a run of several ranks end it with a checkpoint"
else
    not_ok "data cut under a run of several ranks end it with a checkpoint" "$status $(cat "$d/cut.err")"
fi
if distill cut "${long[@]}" --gpus 3 --resume auto --steps $((${saved##*-} + 1)); then
    ok "the checkpoint of data that were cut has the bits of a run left alone"
else
    not_ok "the checkpoint of data that were cut has the bits of a run left alone" "$saved $(cat "$d/cut.err")"
fi

# ---- an end within a checkpoint
for i in 0 1; do
    begun within
    until_true $pid saving_of "$d/within" "${rank[0]}" && kill -KILL "${rank[$i]}" || true
    gone "rank $i killed within a checkpoint ends the run" within 1 "^nojit distill: rank $i: its process .* signal 9"
    if whole_checkpoints "$d/within" >"$d/lacks"; then ok "checkpoints are whole where rank $i was killed within one"; else not_ok "checkpoints are whole where rank $i was killed within one" "$(cat "$d/lacks")"; fi
done
saved=$(newest "$d/within")
last=$((${saved##*-} + 2))
distill within "${long[@]}" --steps $last --gpus 3 --resume auto || true
distill alone "${long[@]}" --steps $last --virtual-ranks 3 || true
if cmp "$d/alone/model.safetensors" "$d/within/model.safetensors" >"$d/diff" 2>&1; then
    ok "a run of which ranks were killed goes on to the bits of a run left alone"
else
    not_ok "a run of which ranks were killed goes on to the bits of a run left alone" "$(cat "$d/diff" "$d/within.err")"
fi

# ---- a port on which another run waits for a rank that is late
waits() { # OUT RANK
    torchrun "$2" "$nojit" distill "${few[@]}" --device cpu --out "$d/$1" >"$d/$1.$2.log" 2>"$d/$1.$2.err"
}
listening() { grep -qhE "^ *[0-9]+: [0-9A-F]+:$(printf %04X $((port + 1))) [0-9A-F:]+ 0A" /proc/net/tcp /proc/net/tcp6 || { sleep 0.01 && false; }; }
distill virtual "${few[@]}" --device cpu --virtual-ranks 2
free_port
waits late 0 &
pid=$!
until_true $pid listening || true
refuses "a MASTER_PORT that is taken is refused" 1 "^nojit distill: rank 0: cannot listen on port $((port + 1)): .*; set MASTER_PORT to a free one$" \
    torchrun 0 "$nojit" distill "${few[@]}" --device cpu --out "$d/second"
refuses "a rank that meets another run on its port is refused" 2 '^nojit distill: rank 1: another run listens on this port, or this process was given another --out' \
    torchrun 1 "$nojit" distill "${few[@]}" --device cpu --out "$d/second"
waits late 1 || true
wait $pid || true
if cmp "$d/virtual/model.safetensors" "$d/late/model.safetensors" >"$d/diff" 2>&1; then
    ok "a rank that is late is waited for"
else
    not_ok "a rank that is late is waited for" "$(cat "$d/diff" "$d"/late.[01].err)"
fi
# One that comes when rank 0 has given up.
free_port
export NOJIT_CONNECT_TIMEOUT=1
refuses "a rank that is too late ends the run" 1 '^nojit distill: rank 0: 1 of 2 ranks did not connect within 1 s, rank 1 is the first; check its output' \
    torchrun 0 "$nojit" distill "${few[@]}" --device cpu --out "$d/gone"
refuses "a rank that finds no rank 0 ends" 1 '^nojit distill: rank 1: rank 1 did not reach rank 0 at 127.0.0.1 port .* within 1 s' \
    torchrun 1 "$nojit" distill "${few[@]}" --device cpu --out "$d/gone"
if [ ! -e "$d/gone" ]; then ok "ranks that do not meet write nothing"; else not_ok "ranks that do not meet write nothing" "$(ls -A "$d/gone")"; fi
finish

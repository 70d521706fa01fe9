#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# runs_at_once.sh: two and three runs with one --out: one of them writes, the others are told which one that is and leave nothing behind.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1
. tests/lib/compare_runs.sh

"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
head -c 600 LICENSE >"$d/text.txt"
run=("$nojit" train --student "$d/student" --data "$d/text.txt" --seq-len 32 --batch-size 1 --device cpu)
busy="--out $d/[a-z0-9]*: locked by process [0-9]+ on [^ ]+; wait for that run to finish or choose another folder\$"
has_rows() { [ -s "$1/metrics.jsonl" ] || { sleep 0.01 && false; }; }
state() { (cd "$1" && find . -type f ! -name metrics.jsonl -exec cksum {} + | sort); }

# ---- a second run while one is under way, of every kind
"${run[@]}" --steps 100000 --save-every 100000 --out "$d/one" >"$scratch/log" 2>&1 &
pid=$!
until_true $pid has_rows "$d/one" || true
before=$(state "$d/one")
refuses "a new run in the folder of a running one is refused" 1 "^nojit train: $busy" "${run[@]}" --steps 2 --out "$d/one"
refuses "a resumed run in the folder of a running one is refused" 1 "^nojit train: $busy" "${run[@]}" --steps 2 --out "$d/one" --resume auto
refuses "a dry run in the folder of a running one is refused" 1 "^nojit train: $busy" "${run[@]}" --steps 2 --out "$d/one" --dry-run
refuses "a refused second run names process and host of the first" 1 "locked by process $pid on $(hostname);" "${run[@]}" --steps 2 --out "$d/one"
if unshare -rpf true 2>/dev/null; then # a process of that number is unknown there
    refuses "a second run from another container is refused" 1 "locked by process $pid on .*;" unshare -rpf "${run[@]}" --steps 2 --out "$d/one" --resume auto
fi
if [ "$(state "$d/one")" = "$before" ] && kill -0 $pid; then ok "refused second runs leave the folder as it was"; else not_ok "refused second runs leave the folder as it was" "$(ls "$d/one")"; fi

# ---- killed: the file stays and locks nothing
kill -KILL $pid
wait $pid 2>/dev/null || true
if [ -f "$d/one/lock" ]; then ok "a killed run leaves its lock"; else not_ok "a killed run leaves its lock" "$(ls "$d/one")"; fi
if "${run[@]}" --steps 2 --out "$d/one" --resume auto >"$scratch/log" 2>&1 && [ ! -e "$d/one/lock" ]; then
    ok "the lock of a killed run is taken and removed by the next"
else
    not_ok "the lock of a killed run is taken and removed by the next" "$(tail -n 1 "$scratch/log")"
fi
mkdir "$d/early"
echo "nojit run: process 1 on elsewhere" >"$d/early/lock"
if "${run[@]}" --steps 2 --out "$d/early" >"$scratch/log" 2>&1 && [ ! -e "$d/early/lock" ]; then
    ok "the lock of a killed run is taken by a new run"
else
    not_ok "the lock of a killed run is taken by a new run" "$(tail -n 1 "$scratch/log")"
fi

# ---- what a run of another container has written partially stays while that run has the lock
if unshare -rpf true 2>/dev/null; then
    unshare -rpf --kill-child "${run[@]}" --steps 100000 --out "$d/theirs" >"$scratch/log" 2>&1 &
    pid=$!
    until_true $pid has_rows "$d/theirs" || true
    mkdir "$d/theirs/checkpoint-7.tmp-4194000"
    refuses "a run in the folder of a container that trains is refused" 1 "^nojit train: $busy" "${run[@]}" --steps 2 --out "$d/theirs" --resume auto
    if [ -d "$d/theirs/checkpoint-7.tmp-4194000" ]; then ok "a temporary folder of a container that trains stays"; else not_ok "a temporary folder of a container that trains stays" "$(ls "$d/theirs")"; fi
    kill -KILL $pid # unshare itself does not heed SIGTERM
    wait $pid 2>/dev/null || true
fi

# ---- three at the same moment
for round in 1 2 3; do
    pids=() good=0 bad=""
    for seed in 1 2 3; do
        "${run[@]}" --steps 60 --save-every 20 --out "$d/o$round" --seed $seed >"$scratch/log$seed" 2>&1 &
        pids+=($!)
    done
    for seed in 1 2 3; do
        status=0
        wait "${pids[seed - 1]}" || status=$?
        if [ $status = 0 ]; then
            good=$((good + 1)) winner=$seed
        else # one that comes too late finds the model, or what was there before it
            grep -qE -- "$busy|locked by another process|holds a model already|already contains metrics.jsonl|holds checkpoints" "$scratch/log$seed" || bad+="$(tail -n 1 "$scratch/log$seed"); "
        fi
    done
    seed=$(sed -nE 's/.*"seed": "([0-9]+)".*/\1/p' "$d/o$round/receipt.json")
    if [ $good = 1 ] && [ -z "$bad" ] && [ "$seed" = "$winner" ] && [ "$(wc -l <"$d/o$round/metrics.jsonl")" = 60 ] && [ ! -e "$d/o$round/lock" ]; then
        ok "one of three runs at once trains, round $round"
    else
        not_ok "one of three runs at once trains, round $round" "$good ended well, $(wc -l <"$d/o$round/metrics.jsonl") rows, seed $seed of $winner; $bad"
    fi
done

# ---- a run that is refused leaves nothing
refuses "a run refused for another reason exits with its own status" 2 "no such folder" "${run[@]}" --steps 2 --out "$d/new/er" --resume "$d/nowhere"
if [ ! -e "$d/new" ]; then ok "a run refused for another reason leaves no folder and no lock"; else not_ok "a run refused for another reason leaves no folder and no lock" "$(find "$d/new")"; fi
finish

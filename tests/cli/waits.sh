#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# waits.sh: whatever takes longer than a few seconds says what it is: a device that is opened, weights, held-out text, a rank that another one
# waits for; what does not, says nothing.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
head -c 4000 LICENSE >"$d/text.txt"
options=(--student "$d/student" --data "$d/text.txt" --seq-len 32 --batch-size 2 --device cpu)

NOJIT_WAIT_SECONDS=1e-4 "$nojit" train "${options[@]}" --eval-data "$d/text.txt" --steps 2 --save-every 1 --log "$d/lines" --out "$d/run" >"$d/log" 2>&1
for what in 'measuring held-out text at step 0' 'saving the state of step 1' 'writing the model'; do
    ok_if "a word is said about $what" "$(cat "$d/log")" grep -qE "^$what \([0-9]+ s so far\)\$" "$d/log"
done
grep -v '^nojit train: starting ' "$d/log" >"$d/begun" # what is said before the file is open is not in it
ok_if "--log has the words, too" "$(diff "$d/begun" "$d/lines")" cmp -s "$d/begun" "$d/lines"
NOJIT_WAIT_SECONDS=600 "$nojit" train "${options[@]}" --eval-data "$d/text.txt" --steps 2 --out "$d/quick" >"$d/log" 2>&1
ok_if "a short wait prints nothing" "$(cat "$d/log")" test "$(grep -c 'so far' "$d/log")" = 0
NOJIT_WAIT_SECONDS=1e-4 "$nojit" doctor --device cpu >"$d/log" 2>"$d/err"
ok_if "words about a device that is opened are no part of the results" "$(cat "$d/log")" test "$(grep -c 'so far' "$d/log")" = 0

# A rank that is stopped: the other one says that its step does not end.
NOJIT_WAIT_SECONDS=0.3 "$nojit" train "${options[@]}" --gpus 2 --steps 1000000 --log-every 1000000 --out "$d/ranks" >"$d/log" 2>&1 &
run=$!
said() { # REGEX: within a minute
    for _ in $(seq 300); do
        ! grep -qE "$1" "$d/log" || return 0
        sleep 0.2
    done
    return 1
}
for _ in $(seq 300); do
    [ ! -s "$d/ranks/metrics.jsonl" ] || break
    sleep 0.1
done
rank=$(pgrep -P $run | tail -n 1)
kill -STOP "$rank"
ok_if "a rank that waits for another one says so" "$(tail -n 3 "$d/log")" said '^step [0-9]+(: rank 1 has not begun it)? \([0-9]+ s so far\)$'
kill -CONT "$rank"
kill -TERM $run
wait $run || true
finish

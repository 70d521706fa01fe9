#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# unfinished.sh: a signal at any call with which a command writes (tests/tools/interrupt.c) leaves what was asked for, whole, or nothing; limits of
# file size, CPU time and stack end commands with a sentence, and runs with a checkpoint.
set -eu
. tests/lib/lib.sh
. tests/lib/compare_runs.sh
nojit=$BUILD/nojit
d=$(realpath "$scratch")/work
mkdir "$d"
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1
"$nojit" init --preset nojit-tiny --out "$d/model" >/dev/null
head -c 4000 LICENSE >"$d/text.txt"
printf '{"context": "one two", "choices": [" three", " four"], "answer": 0}\n' >"$d/quiz.jsonl"

disturbed() { # VARIABLE... -- COMMAND...: whose calls on files in $d/made are counted; a shell's background ignores SIGINT
    local set=()
    while [ "$1" != -- ]; do set+=("$1") && shift; done
    env --default-signal=INT,XCPU "LD_PRELOAD=$(realpath "$BUILD")/interrupt.so" "INTERRUPT_IN=$d/made" "INTERRUPT_LOG=$d/calls" "${set[@]}" "$nojit" "${@:2}" >"$d/said" 2>&1
}
leaves_nothing() { # NAME OUT COMMAND...: a name in $d/made
    local at last status left signal named
    rm -rf "$d/made" && mkdir "$d/made"
    disturbed -- "${@:3}" || { not_ok "$1" "$(cat "$d/said")" && return; }
    last=$(wc -l <"$d/calls")
    named=$(awk -F'\t' '$3 == "rename" || $3 == "link" || $3 == "write" { at = $1 } END { print at }' "$d/calls")
    # All calls but some of the many writes.
    for at in $(awk -F'\t' '$3 != "write" || $1 < 5 || $1 % 40 == 0 { print $1 }' "$d/calls"); do
        signal=$((at % 2 ? 2 : 24))
        rm -rf "$d/made" && mkdir "$d/made"
        status=0
        { disturbed INTERRUPT_AT="$at" INTERRUPT_WITH=$signal -- "${@:3}" || status=$?; } 2>/dev/null # bash reports a job that was killed
        left=$(ls "$d/made")
        if [ $status != $((128 + signal)) ] || { [ -n "$left" ] && { [ "$left" != "$2" ] || [ "$at" -lt "$named" ]; }; }; then
            not_ok "$1" "status $status, call $at of $last, named in $named: $left" && return
        fi
    done
    ok "$1"
}
leaves_nothing "init ended by a signal leaves all or nothing" new init --preset nojit-tiny --out "$d/made/new"
leaves_nothing "export to GGUF ended by a signal leaves all or nothing" m.gguf export --model "$d/model" --out "$d/made/m.gguf"
leaves_nothing "export to a folder ended by a signal leaves all or nothing" hf export --model "$d/model" --type hf --out "$d/made/hf"
leaves_nothing "an evaluation with a log ended by a signal leaves all or nothing" log eval --model "$d/model" --tasks "$d/quiz.jsonl" --device cpu --task-log "$d/made/log"

run=("$nojit" train --student "$d/model" --data "$d/text.txt" --seq-len 16 --batch-size 1 --device cpu)
# ---- a file that may not grow: blocks of 1024 bytes
limited() { (ulimit -f 300 && exec "$@"); }
refuses "a checkpoint beyond the limit of file size ends the run" 1 'File too large' limited "${run[@]}" --steps 2 --save-every 1 --out "$d/large"
refuses "an export beyond the limit of file size ends with an error" 1 'File too large' eval '(ulimit -f 20 && exec "$nojit" export --model "$d/model" --out "$d/large.gguf")'
ok_if "an export beyond the limit of file size leaves nothing" "$(ls "$d")" eval '! ls "$d"/large.gguf* 2>/dev/null'

# ---- CPU time: the kernel sends SIGXCPU every second from the limit on
env --default-signal=XCPU "${run[@]}" --steps 100000000 --log-every 100000 --out "$d/timed" >"$d/said" 2>&1 &
pid=$!
until_true $pid row_of_step "$d/timed" 3 || true
for _ in 1 2 3; do kill -XCPU $pid 2>/dev/null || true; done
status=0
wait $pid || status=$?
at=$(newest "$d/timed")
ok_if "a run beyond its CPU time saves and ends" "status $status: $(tail -n 2 "$d/said")" [ "$status" = 130 ]
succeeds "a run that its CPU time ended goes on" "${run[@]}" --steps $((${at##*-} + 1)) --resume auto --out "$d/timed"

# ---- the stack
small() { (ulimit -s 128 && exec "$@"); }
refuses "a stack that is too small is refused" 3 '^nojit: the stack may have 128 KiB \(ulimit -s\); 1024 are needed$' small "${run[@]}" --steps 1 --out "$d/small"
ok_if "a stack that may grow is let grow" "$(cat "$d/said")" eval '(ulimit -Ss 128 && exec "${run[@]}" --steps 1 --out "$d/grown") >"$d/said" 2>&1'
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# resume_killed.sh: a run that is killed again and again, at random moments of its start, its steps and its saves, and goes on each time, ends
# as a run left alone: rows, weights and states, bit for bit. On the CPU and on a simulated GPU; DEVICE=cpu or cuda: there alone, where cuda is
# the GPU that the driver finds. SEED makes the moments, STEPS (48) is the length of the run.
set -eu
. tests/lib/lib.sh
: "${DEVICE:=}" "${SEED:=7}" "${STEPS:=48}"
nojit=$BUILD/nojit
export OMP_WAIT_POLICY=passive XDG_CACHE_HOME=$scratch/cache
unset NOJIT_GRAPH
. tests/lib/compare_runs.sh

"$nojit" init --preset nojit-tiny --out "$scratch/student" >/dev/null
"$nojit" init --preset nojit-tiny --seed 2 --out "$scratch/teacher" >/dev/null
head -c 3000 LICENSE >"$scratch/text.txt"
head -c 100 LICENSE >"$scratch/held.txt"

a_part_of() { awk -v r=$RANDOM -v seconds="$1" 'BEGIN { print r / 32768 * seconds }'; }
seconds_since() { awk -v from="$1" -v to="$EPOCHREALTIME" 'BEGIN { print to - from }'; }
wait_for() { # MOMENT STEP PID: fails where the run ends before
    case $1 in
    start) sleep "$(a_part_of "$start_seconds")" ;;
    step) until_true "$3" row_of_step "$d/killed" "$2" && sleep "$(a_part_of 0.02)" ;;
    save) until_true "$3" row_of_step "$d/killed" "$2" && until_true "$3" saving_of "$d/killed" "$3" ;;
    esac
}

kills_on() { # DEVICE: kills in eight parts of a run
    local started part=0 kills=0 within=0 status pid moment bad=""
    d=$scratch/on-$1
    mkdir "$d"
    run=("$nojit" distill --teacher "$scratch/teacher" --student "$scratch/student" --data "$scratch/text.txt" --eval-data "$scratch/held.txt"
        --seq-len 16 --batch-size 1 --grad-accum 2 --lr 1e-2 --steps "$STEPS" --save-every 2 --keep 2 --eval-every 8 --keep-best --device "$1")
    started=$EPOCHREALTIME
    "${run[@]}" --out "$d/whole" >"$scratch/out" 2>&1 &
    pid=$!
    until_true $pid row_of_step "$d/whole" 1 || true
    start_seconds=$(seconds_since "$started")
    wait $pid || not_ok "a run left alone runs to its end" "$(tail -n 1 "$scratch/out")"
    for moment in step save start save step save step save; do
        "${run[@]}" --out "$d/killed" --resume auto >"$scratch/out" 2>&1 &
        pid=$!
        wait_for $moment $((part++ * STEPS / 9 + RANDOM % (STEPS / 9) + 1)) $pid || true
        kill -KILL $pid 2>/dev/null || true
        status=0
        wait $pid 2>/dev/null || status=$?
        kills=$((kills + (status == 137)))
        ! saving_of "$d/killed" $pid || within=$((within + 1))
        [ ! -d "$d/killed" ] || whole_checkpoints "$d/killed" >"$scratch/err" || bad="after kill $kills: $(cat "$scratch/err")"
    done
    echo "     on $(sed -nE 's/^device (.*\)),.*/\1/p' "$scratch/out"): $kills kills, $within within a save; SEED=$SEED"
    # A run that nothing disturbed would show nothing.
    if [ $kills -ge 4 ] && [ $within -ge 1 ]; then ok "kills come in steps and in saves"; else not_ok "kills come in steps and in saves" "$kills of 8, $within within a save"; fi
    if [ -z "$bad" ]; then ok "a kill leaves whole checkpoints"; else not_ok "a kill leaves whole checkpoints" "$bad"; fi
    finish_run "a run killed at random moments reaches the same end" "$d/killed"
}
RANDOM=$SEED
case $DEVICE in
"")
    kills_on cpu
    needs sm_89
    export LD_LIBRARY_PATH=$BUILD/sim NOJIT_CUBLASLT=$BUILD/sim NOJIT_SIM_DEVICE=rtx4090
    kills_on cuda
    ;;
*) kills_on "$DEVICE" ;;
esac
finish

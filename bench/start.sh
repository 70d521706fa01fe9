#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# start.sh: how long a run takes from the start of the process to the end of its first step, with weights in the page cache and a GEMM table, and at what
# rate it loads them, beside what reading the page cache alone gives. `make` builds what it needs: nojit alone. A row that fails is said, the others go
# on, and the exit status is 1; what cannot run at all is refused before anything is made, with 2. Arguments go to every run of nojit.
#
#   ROWS='distill:8x1024 big:8x1024'   KIND:BATCHxTOKENS, as in gpu.sh: 1.5B -> 0.5B and 7B -> 0.5B; so are PAIR, PAIR7, ..., KEEP
#   RUNS=5                      of which the median counts      DEVICE=cuda   BUILD=build   WORK=BUILD/bench   LIMIT=300 seconds for a run
set -u
: "${BUILD:=build}" "${DEVICE:=cuda}" "${WORK:=$BUILD/bench}" "${LIMIT:=300}" "${RUNS:=5}" "${ROWS=distill:8x1024 big:8x1024}"
STEPS=2 # one of them warms up
nojit=$BUILD/nojit
extra=("$@")
failed=0
trap 'exit 130' INT
. bench/lib.sh
. bench/rows.sh
give_help "$@"
[[ $RUNS =~ ^[1-9][0-9]*$ ]] || refuse "RUNS=$RUNS: give a number from 1 on"
before
mkdir -p "$WORK/text" "$WORK/logs" && rm -f "$WORK"/logs/start-* || exit 1

weights() { # ROW: the files of its models
    local m
    for m in $(models_of "${1%%:*}"); do find "$WORK/$m" -name '*.safetensors'; done
}
# Seconds that a command takes.
seconds_of() {
    local started
    started=$(date +%s%N)
    "$@"
    echo $(($(date +%s%N) - started)) | awk '{ printf "%.3f", $1 * 1e-9 }'
}
# By one reader, and by one on each core, 64 MiB at a time.
read_once() { weights "$1" | xargs cat >/dev/null; }
read_by_all() {
    local f bytes piece
    for f in $(weights "$1"); do
        bytes=$(stat -c %s "$f")
        for ((piece = 0; piece << 26 < bytes; piece++)); do echo "$f $((piece * 64))"; done
    done | xargs -P "$(nproc)" -L 1 sh -c 'exec dd if="$1" skip="$2" count=64 bs=1M of=/dev/null status=none' sh
}
rate() { awk -v bytes="$1" -v s="${2:-0}" 'BEGIN { if (s > 0) printf "%.2f", bytes * 1e-9 / s; else print "-" }'; } # BYTES SECONDS: GB/s

row() { # KIND:BATCHxTOKENS
    local log=$WORK/logs/start-${1/:/-} shape=${1#*:} receipt=$WORK/run/receipt.json n first bytes one all loaded step command torch_pair
    make_models "$1"
    command_of "${1%%:*}"
    bytes=$(weights "$1" | xargs stat -c %s 2>/dev/null | awk '{ s += $1 } END { printf "%.0f", s }')
    [ "$bytes" != 0 ] || return
    read_once "$1"
    one=$(seconds_of read_once "$1")
    all=$(seconds_of read_by_all "$1")
    rm -f "$log".*
    for ((n = 0; n <= RUNS; n++)); do # the first times GEMMs
        if ! first=$(run "$log" $STEPS "${shape%x*}" "${shape#*x}"); then
            fails "$1" "$log"
            return
        fi
        [ "$n" != 0 ] || continue
        echo "$first" >>"$log.first"
        number load_seconds "$receipt" >>"$log.load"
        number step_ms "$WORK/run/metrics.jsonl" >>"$log.step"
    done
    loaded=$(median_of <"$log.load") first=$(median_of <"$log.first") step=$(median_of <"$log.step")
    awk -v f="%-18s %9s %9.2f %9.3f %9.3f %9.3f %9s %9s %9s\n" -v row="$1" -v first="$first" -v load="$loaded" -v step="$step" \
        -v gb="$(rate "$bytes" 1)" -v rate="$(rate "$(number load_bytes "$receipt")" "$loaded")" -v one="$(rate "$bytes" "$one")" \
        -v all="$(rate "$bytes" "$all")" 'BEGIN { printf f, row, gb, first, load, step / 1000, first - load - step / 1000, rate, one, all }' \
        >>"$WORK/logs/start-rows"
    note "$1: $first s"
}

prepare
# shellcheck disable=SC2206 # words
later=($ROWS)
for r in $ROWS; do
    row "$r"
    later=("${later[@]:1}")
    drop_models "${later[@]}"
done
printf '\n%s, %s cores\n\n' "$(text name "$WORK/run/receipt.json")" "$(nproc)"
printf '%-18s %9s %9s %9s %9s %9s %9s %9s %9s\n' row GB 'first s' 'load s' 'step s' 'other s' 'load GB/s' 'one GB/s' 'all GB/s'
cat "$WORK/logs/start-rows" 2>/dev/null
cat <<TEXT

GB: weights of both models. first s: from the start of the process to the end of the first step, median of $RUNS runs; of it load s: reading, hashing,
  converting and copying the weights, step s: the step, other s: the device, its kernels, GEMMs of the table, memory, data.
load, one, all: the rate of loading, and of reading the same files from the page cache by one reader and by one on each core.
$SECONDS s in all$([ "$failed" = 0 ] || echo "; FAILED: $failed")
TEXT
rm -rf "$WORK/run"
[ "$failed" = 0 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh TARGET...: $FUZZ_SECONDS of libFuzzer for each target, $JOBS (the processors) at a time, from tests/fuzz/corpus on. What it
# found stays in $BUILD/fuzz/found; what grew there serves as a start the next time. Prints executions; ends with 1 if anything was found.
# An input may take two minutes: a template that runs until its steps are spent takes 0.3 s, and sixty times that as it is instrumented here.
set -u
export LC_ALL=C
: "${BUILD:=build-fuzz}" "${FUZZ_SECONDS:=30}" "${JOBS:=$(nproc)}"
found=$BUILD/fuzz/found
mkdir -p "$found"

fuzz() { # TARGET
    local grown=$BUILD/fuzz/corpus/$1 log=$BUILD/fuzz/$1.log status=0
    mkdir -p "$grown"
    OMP_NUM_THREADS=1 "$BUILD/fuzz/$1" -max_total_time="$FUZZ_SECONDS" -timeout=120 -rss_limit_mb=4096 -max_len=16384 \
        -print_final_stats=1 -artifact_prefix="$found/$1-" "$grown" "tests/fuzz/corpus/$1" >"$log" 2>&1 || status=1
    printf '%-14s %10s executions%s\n' "$1" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)" \
        "$([ "$status" = 0 ] || echo "; FOUND SOMETHING: the input's path is at the end of $log")"
    return "$status"
}
export -f fuzz
export BUILD FUZZ_SECONDS found
printf '%s\n' "$@" | xargs -P "$JOBS" -I{} bash -c 'fuzz {}'

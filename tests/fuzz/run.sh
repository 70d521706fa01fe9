#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh TARGET...: $FUZZ_SECONDS of libFuzzer for each target, from tests/fuzz/corpus on. What it found stays in $BUILD/fuzz/found;
# what grew there serves as a start the next time. Prints executions; ends with 1 if anything was found.
set -u
export LC_ALL=C
: "${BUILD:=build-fuzz}" "${FUZZ_SECONDS:=30}"
found=$BUILD/fuzz/found
mkdir -p "$found"
failed=0
for t in "$@"; do
    grown=$BUILD/fuzz/corpus/$t
    mkdir -p "$grown"
    log=$BUILD/fuzz/$t.log
    if ! OMP_NUM_THREADS=1 "$BUILD/fuzz/$t" -max_total_time="$FUZZ_SECONDS" -timeout=20 -rss_limit_mb=4096 -max_len=16384 \
        -print_final_stats=1 -artifact_prefix="$found/$t-" "$grown" "tests/fuzz/corpus/$t" >"$log" 2>&1; then
        failed=$((failed + 1))
        echo "$t: FOUND SOMETHING; the input's path is at the end of $log"
    fi
    printf '%-12s %10s executions\n' "$t" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)"
done
[ "$failed" = 0 ]

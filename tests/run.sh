#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh units|quick|all|long: runs the test programs and the corpus of damaged files (units), every test program and
# script (all; quick: those of under two minutes together), or what takes long: scripts with EVERY=1. Adds up what they count, and ends with `N passed, N failed`. A test that dies or counts nothing is a failure.
# $BUILD is the build folder; $BUILD/test-results records each check, for contractcheck.
set -u
export LC_ALL=C
tier=${1:-all}
: "${BUILD:=build}"
export BUILD OMP_WAIT_POLICY=passive # threads that wait leave the cores to others
log=$BUILD/test-logs
results=$BUILD/test-results
mkdir -p "$log"
: >"$results"
passed=0
failed=0

# count NAME STATUS: adds the counts found in NAME's log; prints the log of a failure.
count() {
    local name=$1 status=$2 p f
    p=$(grep -oE '[0-9]+ passed, [0-9]+ failed' "$log/$name" | tail -n 1)
    if [ -z "$p" ]; then # cmocka
        p="$(sed -nE 's/^\[  PASSED  \] ([0-9]+) test.*/\1/p' "$log/$name" | tail -n 1) passed"
        p="$p, $(sed -nE 's/^\[  FAILED  \] ([0-9]+) test.*/\1/p' "$log/$name" | tail -n 1) failed"
    fi
    f=$(echo "$p" | sed -nE 's/.*, ([0-9]+) failed/\1/p')
    p=$(echo "$p" | sed -nE 's/^([0-9]+) passed.*/\1/p')
    f=${f:-0}
    p=${p:-0}
    if [ "$status" != 0 ] && [ "$f" = 0 ]; then f=1; fi
    if [ "$status" = 0 ] && [ "$p" = 0 ]; then f=1; fi
    passed=$((passed + p))
    failed=$((failed + f))
    if [ "$f" != 0 ]; then
        grep -vE '^(\[ +(OK|RUN) |ok )' "$log/$name" | tail -n 40
        echo "RERUN BUILD=$BUILD $3"
    fi
    awk -v program="$name" -f tests/lib/results.awk "$log/$name" >>"$results"
    printf '%s\t%s\t\n' "$([ "$f" = 0 ] && echo passed || echo failed)" "$name" >>"$results"
    printf '%-28s %4d passed %3d failed  %3d s\n' "$name" "$p" "$f" $((SECONDS - started))
}

run() { # NAME COMMAND...
    local name=$1
    shift
    started=$SECONDS
    "$@" >"$log/$name" 2>&1 </dev/null
    count "$name" $? "$*"
}

if [ "$tier" = long ]; then
    export EVERY=1
    for t in $(grep -l '^: "${EVERY:=0}"' tests/{cli,device,build,durability,claims}/*.sh); do run "$(basename "$t" .sh)" bash "$t"; done
    echo "$passed passed, $failed failed"
    exit $((failed != 0))
fi
for t in "$BUILD"/tests/test_*; do
    if [ -x "$t" ] && [ -f "tests/unit/$(basename "$t").c" ]; then run "$(basename "$t")" "$t"; fi
done
run fuzz_corpus bash tests/fuzz/fuzz_corpus.sh
if [ "$tier" = units ]; then
    echo "$passed passed, $failed failed"
    exit $((failed != 0))
fi
run harness "$BUILD/harness" --device cpu
run harness-selftest "$BUILD/harness" --self-test
for t in tests/{cli,device,build,durability,claims}/*.sh; do
    if [ "$tier" = quick ] && grep -q '^# tier: all' "$t"; then continue; fi
    run "$(basename "$t" .sh)" bash "$t"
done
contracts=(--gpu "$BUILD/check-gpu.results" --tree "$(tests/lib/treehash.sh)")
if [ "$tier" = all ]; then contracts+=(--results "$results"); fi # else not every test ran
run contracts "$BUILD/contractcheck" "${contracts[@]}"
echo "$(grep -c '^needs a GPU: ' "$log/contracts") claims need a GPU, $(grep -c '^open: ' "$log/contracts") are open; $BUILD/contractcheck prints them"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]

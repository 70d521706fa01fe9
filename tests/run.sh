#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh units|quick-units|threads|quick|test|all|long|changed [COMMIT]: runs tests side by side, those that took longest in tests/record.txt first.
# units: the unit tests and the corpus of damaged files. quick-units: the quick ones of them. threads: those of them that start threads. quick, test, all: these, the harness, and the scripts of the tier
# (tests/tiers.txt). long: what takes hours, by itself, with EVERY=1. changed: the tests of what changed since COMMIT (HEAD).
# Each test has a folder and a cache of its own. Prints a line per test as it ends, what was skipped, where the time went, and
# `N passed, N failed, N skipped`. A test that dies, or has no verdict, is a failure.
# $BUILD is the build folder: test-logs/NAME is what a test printed, test-results the verdict of each check, test-times the CPU seconds
# and seconds of each test, test-junit.xml the results for forges. $JOBS is the number of tests at a time (one more than the processors, as some wait); each takes its share of
# the processors as OMP_NUM_THREADS, but for the harness, which takes all.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit
tier=${1:-test}
: "${BUILD:=build}" "${JOBS:=$(($(nproc) + 1))}"
export BUILD OMP_WAIT_POLICY=passive # threads that wait leave the cores to others
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$((($(nproc) + JOBS - 1) / JOBS))}
if [ "$tier" = all ]; then export MOST_FLOPS=1e9; fi # device_kernels.sh
log=$BUILD/test-logs
results=$BUILD/test-results
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$log"
rm -f "$log"/*
. tests/lib/select.sh

# counted WORD SUMMARY LOG: the last count of that word in what a script says, or in cmocka's summary.
counted() {
    local n
    n=$(grep -oE '[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?' "$3" | tail -n 1)
    if [ -n "$n" ]; then
        n=$(sed -nE "s/.*\b([0-9]+) $1.*/\1/p" <<<"$n")
    else
        n=$(sed -nE "s/^\[  $2 \] ([0-9]+) test.*/\1/p" "$3" | tail -n 1)
    fi
    echo "${n:-0}"
}

# judge NAME STATUS SECONDS CPU COMMAND: prints the line of a test that has ended, with the end of its log if it failed, and keeps its verdicts.
judge() {
    local name=$1 status=$2 p f s verdict=passed
    p=$(counted passed 'PASSED ' "$log/$name")
    f=$(counted failed 'FAILED ' "$log/$name")
    s=$(counted skipped SKIPPED "$log/$name")
    if [ "$f" = 0 ]; then
        if [ "$status" != 0 ] || [ $((p + s)) = 0 ]; then f=1; fi
    fi
    {
        if [ "$f" != 0 ]; then
            verdict=failed
            grep -vE '^(\[ +(OK|RUN) |ok )' "$log/$name" | tail -n 40
            echo "RERUN BUILD=$BUILD $5"
        elif [ "$p" = 0 ]; then
            verdict=skipped
        fi
        printf '%-28s %4d passed %3d failed %3d skipped %6.1f s %6.1f CPU s\n' "$name" "$p" "$f" "$s" "$3" "$4"
    } >"$work/said/$name"
    {
        awk -v program="$name" -f tests/lib/results.awk "$log/$name"
        printf '%s\t%s\t\n' $verdict "$name"
    } >"$work/results/$name"
    echo "$p $f $s $3 $4" >"$work/counts/$name"
    flock "$work" cat "$work/said/$name"
}

# run NAME COMMAND...: runs one test in a folder and with a cache of its own.
run() {
    local name=$1 status=0 real user sys TIMEFORMAT='%R %U %S'
    shift
    TMPDIR=$(mktemp -d "$work/tmp/XXXXXX") # without the test's name: a script may look for one of its words in messages
    export TMPDIR XDG_CACHE_HOME=$TMPDIR/cache
    mkdir "$XDG_CACHE_HOME"
    { time "$@" >"$log/$name" 2>&1 </dev/null || echo $? >"$work/times/$name.status"; } 2>"$work/times/$name"
    status=$(cat "$work/times/$name.status" 2>/dev/null || echo 0)
    read -r real user sys < <(tail -n 1 "$work/times/$name")
    judge "$name" "$status" "$real" "$(awk "BEGIN { print $user + $sys }")" "$*"
    rm -rf "$TMPDIR"
}

# run_all: runs the tests on standard input, lines `NAME COMMAND`, JOBS at a time.
run_all() {
    local name command
    while read -r name command; do
        while [ "$(jobs -pr | wc -l)" -ge "$JOBS" ]; do wait -n; done
        run "$name" $command &
    done
    wait
}

# junit: prints the results as JUnit's XML.
junit() {
    awk -F'\t' '
        function text(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); gsub(/"/, "\\&quot;", s); return s }
        BEGIN { print "<?xml version=\"1.0\"?>\n<testsuites>" }
        $2 != suite { if (suite != "") print "</testsuite>"; suite = $2; printf "<testsuite name=\"%s\">\n", text(suite) }
        {
            printf "<testcase classname=\"%s\" name=\"%s\">", text($2), text($3 == "" ? "(whole)" : $3)
            if ($1 == "failed") printf "<failure/>"
            if ($1 == "skipped") printf "<skipped/>"
            print "</testcase>"
        }
        END { if (suite != "") print "</testsuite>"; print "</testsuites>" }' "$results"
}

# finish: prints what was skipped, the ten longest tests and the totals.
finish() {
    awk -F'\t' '$1 == "skipped" && $3 != "" { print "skipped: " $2 " " $3 }' "$results"
    echo "longest: $(sort -k2nr "$BUILD/test-times" | awk 'NR <= 10 { printf "%s%s %.0f s", (NR > 1 ? ", " : ""), $1, $2 }')"
    cat "$work"/counts/* | awk -v wall=$SECONDS -v jobs="$JOBS" '
        { passed += $1; failed += $2; skipped += $3; real += $4; cpu += $5 }
        END {
            printf "%d s for tests of %d s (%d CPU s), %d at a time\n", wall, real, cpu, jobs
            printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
            exit (failed > 0 || passed == 0)
        }'
}

mkdir "$work"/{tmp,times,said,results,counts}
if [ "$tier" = long ]; then export EVERY=1; fi
select_tests "$tier" "${2-HEAD}" >"$work/selected" || exit
longest_first <"$work/selected" | run_all
cat "$work"/results/* >"$results"
for counts in "$work"/counts/*; do echo "$(basename "$counts") $(cut -d' ' -f5 "$counts") $(cut -d' ' -f4 "$counts")"; done >"$BUILD/test-times"
junit >"$BUILD/test-junit.xml"
if [[ $tier =~ ^(quick|test|all)$ ]]; then
    contracts=(--gpu "$BUILD/check-gpu.results" --tree "$(tests/lib/treehash.sh)")
    if [ "$tier" = all ]; then contracts+=(--results "$results"); fi # else not every test ran
    run contracts "$BUILD/contractcheck" "${contracts[@]}"
    echo "$(grep -c '^needs a GPU: ' "$log/contracts") claims need a GPU, $(grep -c '^open: ' "$log/contracts") are open; $BUILD/contractcheck prints them"
    cat "$work/results/contracts" >>"$results"
fi
finish

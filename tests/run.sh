#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh units|quick|all|long: runs the test programs and the corpus of damaged files (units), those and the scripts of a tier
# (quick, all; tests/tiers.txt), or what takes long, by itself. Adds up the verdicts, and ends with `N passed, N failed, N skipped`.
# A test that dies, or has no verdict, is a failure. $BUILD is the build folder; $BUILD/test-results records each check.
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
skipped=0

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

# count NAME STATUS COMMAND: adds the counts found in NAME's log; prints the log of a failure.
count() {
    local name=$1 status=$2 p f s verdict=passed
    p=$(counted passed 'PASSED ' "$log/$name")
    f=$(counted failed 'FAILED ' "$log/$name")
    s=$(counted skipped SKIPPED "$log/$name")
    if [ "$f" = 0 ]; then
        if [ "$status" != 0 ] || [ $((p + s)) = 0 ]; then f=1; fi
    fi
    passed=$((passed + p))
    failed=$((failed + f))
    skipped=$((skipped + s))
    if [ "$f" != 0 ]; then
        verdict=failed
        grep -vE '^(\[ +(OK|RUN) |ok )' "$log/$name" | tail -n 40
        echo "RERUN BUILD=$BUILD $3"
    elif [ "$p" = 0 ]; then
        verdict=skipped
    fi
    awk -v program="$name" -f tests/lib/results.awk "$log/$name" >>"$results"
    printf '%s\t%s\t\n' $verdict "$name" >>"$results"
    printf '%-28s %4d passed %3d failed %3d skipped  %3d s\n' "$name" "$p" "$f" "$s" $((SECONDS - started))
}

run() { # NAME COMMAND...
    local name=$1
    shift
    started=$SECONDS
    "$@" >"$log/$name" 2>&1 </dev/null
    count "$name" $? "$*"
}

# Scripts of the folders, those of a tier: one that tests/tiers.txt does not name is quick.
scripts() {
    awk -v tier="$1" '
        FNR == NR { if ($1 !~ /^#/) tiers[$1] = " " $0 " "; next }
        {
            name = $0; sub(/.*\//, "", name); sub(/\.sh$/, "", name)
            known[name] = 1
            own = name in tiers ? tiers[name] : " quick "
            if (index(own, " " tier " ") || (tier == "all" && index(own, " quick "))) print
        }
        END { for (name in tiers) if (!(name in known)) { print "tests/tiers.txt names " name ", which is no test" >"/dev/stderr"; exit 1 } }
        ' tests/tiers.txt <(printf '%s\n' tests/{cli,device,build,durability,claims}/*.sh)
}
run_scripts() {
    local t list
    list=$(scripts "$1") || failed=$((failed + 1))
    for t in $list; do run "$(basename "$t" .sh)" bash "$t"; done
}

finish() {
    awk -F'\t' '$1 == "skipped" && $3 != "" { print "skipped: " $2 " " $3 }' "$results"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
    exit
}

rm -f "$log"/*
if [ "$tier" = long ]; then
    export EVERY=1
    run_scripts long
    finish
fi
for t in "$BUILD"/tests/test_*; do
    if [ -x "$t" ] && [ -f "tests/unit/$(basename "$t").c" ]; then run "$(basename "$t")" "$t"; fi
done
run fuzz_corpus bash tests/fuzz/fuzz_corpus.sh
if [ "$tier" = units ]; then finish; fi
run harness "$BUILD/harness" --device cpu
run harness-selftest "$BUILD/harness" --self-test
run_scripts "$tier"
contracts=(--gpu "$BUILD/check-gpu.results" --tree "$(tests/lib/treehash.sh)")
if [ "$tier" = all ]; then contracts+=(--results "$results"); fi # else not every test ran
run contracts "$BUILD/contractcheck" "${contracts[@]}"
echo "$(grep -c '^needs a GPU: ' "$log/contracts") claims need a GPU, $(grep -c '^open: ' "$log/contracts") are open; $BUILD/contractcheck prints them"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gpu_self_test.sh: the self-test on a real GPU, in one command: a first start takes it (and how long), a second does not, `nojit doctor
# --self-test` passes with a report, and a start with NOJIT_SELF_TEST=off is as fast as one that has passed. tests/gpu.sh calls it.
# Leaves the report in BUILD/self-test.json.
set -u
: "${BUILD:=build}"
export DEVICE=cuda
. tests/lib/lib.sh
unset NOJIT_SELF_TEST
export XDG_CACHE_HOME=$scratch/cache
nojit=$BUILD/nojit
d=$scratch
took() { # NAME COMMAND...: its output is in $d/NAME, and its milliseconds in $ms
    local from
    from=$(date +%s%N)
    status=0
    "${@:2}" >"$d/$1" 2>&1 || status=$?
    ms=$((($(date +%s%N) - from) / 1000000))
    echo "     $1: $ms ms: $(grep '^self-test' "$d/$1")"
}
doctor=("$nojit" doctor --device cuda)
took warm "${doctor[@]}" # the files of driver and library are in memory from here on
rm -rf "$XDG_CACHE_HOME"
took first "${doctor[@]}"
ok_if "a first start takes the self-test" "exit status $status: $(tail -n 3 "$d/first")" grep -q '^self-test passed now, in ' "$d/first"
took second "${doctor[@]}"
ok_if "a second start does not take the self-test" "$(cat "$d/second")" grep -q '^self-test passed on ' "$d/second"
second=$ms
took off env NOJIT_SELF_TEST=off XDG_CACHE_HOME="$d/none" "${doctor[@]}"
ok_if "a start without a self-test says so" "$(cat "$d/off")" grep -qx 'self-test switched off by NOJIT_SELF_TEST=off' "$d/off"
echo "     a kept result costs $((second - ms)) ms more than none"
took at-will "${doctor[@]}" --self-test --verbose --report "$BUILD/self-test.json"
ok_if "doctor --self-test passes" "exit status $status: $(grep ' failed' "$d/at-will")" [ "$status" = 0 ]
ok_if "the report of the self-test has a row for each kernel and GEMM" "$(head -n 5 "$BUILD/self-test.json")" \
    [ "$(grep -c '"case": ' "$BUILD/self-test.json")" = "$(grep -cE '^  .* \[.*\] (passed|not in this library)' "$d/at-will")" ]
echo "     the longest:"
sed -nE 's/^(  .*\]) passed, .* in ([0-9.]+) ms$/\2\1/p' "$d/at-will" | sort -rn | head -n 12 | sed 's/^/     /'
echo "     the worst of their bounds:"
sed -nE 's/^  (.*\]) passed, error ([0-9.e+-]+) of ([0-9.e+-]+), .*/\1 \2 \3/p' "$d/at-will" |
    awk '{ share = $NF > 0 ? $(NF - 1) / $NF : 0; print share, $0 }' | sort -gr | head -n 8 | sed 's/^/     /'
grep -E 'not in this library|second set' "$d/at-will" | sed 's/^/     /'
finish

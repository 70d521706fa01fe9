#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run_one.sh PROGRAM [CHECK]: runs one test by the name that contracts give it (gpu-PROGRAM: on a GPU). Exit status 0 if the check passed; whatever
# else happens, a crash or a check that does not exist, is a failure, and the log is shown. $BUILD is the build folder.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit
: "${BUILD:=build}"
export BUILD OMP_WAIT_POLICY=passive
program=${1:?usage: run_one.sh PROGRAM [CHECK]} check=${2-}
case $program in
harness) run=("$BUILD/harness" --device cpu --filter "${check:-*}.*") ;;
harness-selftest) run=("$BUILD/harness" --self-test) ;;
test_*) run=("$BUILD/tests/$program" ${check:+"$check"}) ;;
gpu-harness) run=("$BUILD/harness" --device cuda --filter "${check:-*}.*") ;;
gpu-*check)
    run=(compute-sanitizer --tool "${program#gpu-}" --error-exitcode 9 "$BUILD/harness" --device cuda --filter "${check:-*}.*")
    ;;
gpu-test_*) run=(env REQUIRE_GPU=1 "$BUILD/tests/${program#gpu-}" ${check:+"$check"}) ;;
gpu-run) run=(bash tests/gpu.sh run) ;;
gpu-*) run=(env DEVICE=cuda bash tests/*/"${program#gpu-}.sh") ;;
*) run=(env -u DEVICE bash tests/*/"$program.sh") ;; # mutants.sh has a DEVICE of its own
esac
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
"${run[@]}" >"$log" 2>&1 </dev/null || status=$?
if [ -n "$check" ]; then
    awk -v program="$program" -v status="$status" -f tests/lib/results.awk "$log" | awk -F'\t' -v check="$check" '
        $3 == check { n[$1]++ } END { exit !(n["passed"] && !n["failed"]) }' && status=0 || status=1
fi
[ "$status" = 0 ] || tail -n 40 "$log"
exit "$status"

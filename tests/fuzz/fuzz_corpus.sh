#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# fuzz_corpus.sh: every file of tests/fuzz/corpus through its parser: valid* is accepted, what is named after a defect is refused
# with a sentence, and nothing crashes. Every target has a folder and every folder a target. $EMULATOR runs programs of
# another machine.
set -u
export LC_ALL=C
: "${BUILD:=build}" "${EMULATOR:=}"
mkdir -p "$BUILD/test-logs"
passed=0
failed=0
for folder in tests/fuzz/corpus/*/; do
    t=$(basename "$folder")
    log=$BUILD/test-logs/fuzz-$t
    $EMULATOR "$BUILD/fuzz/$t" "$folder" >"$log" 2>&1 </dev/null || { echo "$t:"; tail -n 30 "$log"; }
    counts=$(grep -oE '^[0-9]+ passed, [0-9]+ failed' "$log" || echo "0 passed, 1 failed")
    passed=$((passed + ${counts%% *}))
    counts=${counts#*, }
    failed=$((failed + ${counts%% *}))
done
for t in "$BUILD"/fuzz/*; do
    [ ! -f "$t" ] || [ ! -x "$t" ] || [ -d "tests/fuzz/corpus/$(basename "$t")" ] || { echo "$t has no corpus"; failed=$((failed + 1)); }
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# mutants_work.sh: mutants.sh tells mutants that are killed, also by hanging, from those that survive or do not build.
# With real mutants of one small test program.
set -eu
. tests/lib/lib.sh
tree=$scratch/tree
build=$(realpath "$BUILD")
mkdir -p "$tree"
tar -c --exclude=./.git --exclude='./build*' . | tar -x -C "$tree"
mutant() { # ID TEST REPLACE WITH
    printf "  - id: %s\n    claim: x\n    test: %s\n    mutant: {file: trainer/state/schedule.c, replace: '%s', with: '%s'}\n" "$@"
}
{
    printf 'system: self\nsummary: of this test\nfalsifiers:\n'
    mutant M-KILLED "test_schedule no_schedule_rises_after_its_warmup" 'return 1.0 - x;' 'return 1.0 + x;'
    mutant M-HANGS "test_schedule a_warmup_ratio_is_a_number_of_steps" 'return (int64_t)ceil(' 'for (;;) {} return (int64_t)ceil('
    mutant M-SURVIVES "test_schedule a_warmup_ratio_is_a_number_of_steps" 'return 1.0 - x;' 'return 2.0 - x;'
    mutant M-BROKEN "test_schedule no_schedule_rises_after_its_warmup" 'return 1.0 - x;' 'return 1.0 -'
} >"$tree/contracts/system/self.yaml"

tried() { # NAME STATUS LAST-LINE GLOB
    local got=0
    (cd "$tree" && BUILD="$build" RECORD="$scratch/record" LIMIT=5 JOBS=2 tests/mutants.sh "$4") >"$scratch/out" 2>&1 || got=$?
    if [ "$got" = "$2" ] && [ "$(tail -n 1 "$scratch/out")" = "$3" ]; then ok "$1"; else not_ok "$1" "$got: $(cat "$scratch/out")"; fi
}
tried "mutants.sh kills a mutant and one that hangs" 0 "2 killed of 2" 'M-[KH]*'
tried "mutants.sh tells mutants that survive or do not build" 1 "1 killed of 3" 'M-[KSB]*'
for line in "^killed +M-KILLED" "^survived +M-SURVIVES" "^untried +M-BROKEN .*it does not build"; do
    if grep -qE "$line" "$scratch/out"; then ok "the record of mutants.sh has a line $line"; else not_ok "the record of mutants.sh has a line $line" "$(cat "$scratch/out")"; fi
done
tried "mutants.sh refuses a claim that is not there" 1 "mutants: no claim of cpu matches 'M-NONE'" M-NONE
finish

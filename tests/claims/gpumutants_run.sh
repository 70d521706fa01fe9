#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gpumutants_run.sh: gpumutants.sh run tells faulty programs that their tests notice from those that survive, hang, or whose test fails
# without the fault. With programs that only say what a harness would.
set -eu
. tests/lib/lib.sh
d=$scratch/prepared
harness() { # FOLDER CASES: a harness whose ops pass, but for what CASES (of a shell) do
    mkdir -p "$d/$1"
    printf '#!/bin/sh\nop=${4%%%%.*}\ncase $op in\n%s\nesac\necho "$op f32 1 cases, worst error 0.00e+00 of 1.00e-05"\n' "$2" >"$d/$1/harness"
    chmod +x "$d/$1/harness"
}
fails='echo "FAIL $op.f32 [N=1]: y[0]: got 1, want 2"; echo "$op f32 1 cases, worst error 1.00e+00 of 1.00e-05"; exit 1 ;;'
harness sound "broken) $fails"
harness faulty "add) $fails
hangs) exec sleep 60 ;;
crashes) kill -SEGV \$\$ ;;"
list() { # OP...
    for op; do printf 'M-%s\tfaulty\tgpu-harness\t%s\n' "$op" "$op"; done >"$d/list"
}
tried() { # NAME STATUS LAST-LINE [PLACE]
    local got=0
    RECORD="$scratch/record" LIMIT=2 JOBS=4 tests/gpumutants.sh run "${4:-$d}" >"$scratch/out" 2>&1 || got=$?
    if [ "$got" = "$2" ] && [ "$(tail -n 1 "$scratch/out")" = "$3" ]; then ok "$1"; else not_ok "$1" "$got: $(cat "$scratch/out")"; fi
}
list add hangs crashes
tried "gpumutants kills a program that is wrong, one that hangs and one that crashes" 0 "3 killed of 3"
tar -C "$d" -cJf "$scratch/prepared.tar.xz" .
tried "gpumutants runs from its archive" 0 "3 killed of 3" "$scratch/prepared.tar.xz"
list add colsum broken
tried "gpumutants tells programs that survive or fail without the fault" 1 "1 killed of 3"
for line in $'killed\tM-add' $'survived\tM-colsum' $'untried\tM-broken'; do
    if grep -qxF "$line" "$scratch/record"; then ok "the record of gpumutants says ${line/$'\t'/ }"; else not_ok "the record of gpumutants says ${line/$'\t'/ }" "$(cat "$scratch/record")"; fi
done
# A test that measures free memory runs when all others have ended.
list hangs
printf 'M-plan\tfaulty\tgpu-plan_taken\tfree memory falls by the plan\n' | cat - "$d/list" >"$scratch/list"
cp "$scratch/list" "$d/list"
tried "a program that is not there was not tried" 1 "1 killed of 2"
if [ "$(tail -n 1 "$scratch/record")" = $'untried\tM-plan' ]; then ok "the last line of gpumutants counts the mutants"; else not_ok "the last line of gpumutants counts the mutants" "$(cat "$scratch/record")"; fi
mkdir "$scratch/kept"
echo text >"$scratch/kept/file"
refuses "gpumutants does not replace a folder of something else" 2 'kept exists and holds no list' tests/gpumutants.sh prepare "$scratch/kept"
refuses "gpumutants does not replace a file" 2 'file exists and holds no list' tests/gpumutants.sh prepare "$scratch/kept/file"
if [ "$(cat "$scratch/kept/file")" = text ]; then ok "a refused gpumutants leaves the folder as it was"; else not_ok "a refused gpumutants leaves the folder as it was" "$(ls -l "$scratch/kept")"; fi
refuses "gpumutants prepare without claims is refused" 2 '^usage: ' tests/gpumutants.sh prepare
refuses "gpumutants refuses a claim that is not there" 2 "no claim of cuda matches .F-NONE" env MUTANTS=F-NONE tests/gpumutants.sh prepare "$scratch/new"
refuses "gpumutants refuses a folder without a list" 2 'kept holds no list of mutants' tests/gpumutants.sh run "$scratch/kept"
refuses "gpumutants run without an archive is refused" 2 'file is no archive' tests/gpumutants.sh run "$scratch/kept/file"
refuses "gpumutants refuses an archive that is not there" 2 'absent holds no list of mutants' tests/gpumutants.sh run "$scratch/absent"
finish

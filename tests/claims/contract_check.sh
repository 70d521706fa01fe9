#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# contract_check.sh: contractcheck passes contracts whose claims are held, and names file, line and fault of any other; it plants
# mutants. In a small tree with one op, one test program and one script.
set -eu
. tests/lib/lib.sh
check=$(realpath "$BUILD/contractcheck")
good=$scratch/good
mkdir -p "$good"/contracts/{kernels,system} "$good"/tests/{unit,cli} "$good/src"
printf 'int scale(int x)\n{\n    return 2 * x;\n}\n' >"$good/src/scale.c"
echo 'static void doubles(void **state)' >"$good/tests/unit/test_scale.c"
echo 'refuses "a bad word" 2 x y' >"$good/tests/cli/scale_bad.sh"
cat >"$good/contracts/kernels/scale.yaml" <<'EOF'
op: scale
falsifiers:
  - id: F-SCALE-001
    claim: it doubles
    test: test_scale doubles
    mutant:
      file: src/scale.c
      replace: '2 * x'
      with: '3 * x'
EOF
cat >"$good/contracts/system/words.yaml" <<'EOF'
system: words
summary: Bad words are refused.
falsifiers:
  - {id: F-WORD-001, claim: one is refused, test: scale_bad a bad word, mutant: {file: src/scale.c, replace: return, with: ''}}
  - {id: F-WORD-002, claim: all are refused, open: who knows them all}
  - {id: F-WORD-003, claim: it doubles on a GPU, test: gpu-test_scale doubles, mutant: {file: src/scale.c, replace: return, with: ''}}
EOF
printf 'passed\ttest_scale\tdoubles\npassed\tscale_bad\ta bad word\npassed\ttest_scale\t\n' >"$good/results"
printf 'killed\tF-SCALE-001\nkilled\tF-WORD-001\nkilled\tF-WORD-003\n' >"$good/mutants"
printf 'tree\tabc\npassed\tgpu-test_scale\tdoubles\npassed\tgpu-test_scale\t\n' >"$good/gpu"

run() { # ARGUMENT...: in $scratch/tree
    (cd "$scratch/tree" && "$check" "$@")
}
fresh() { rm -rf "$scratch/tree" && cp -r "$good" "$scratch/tree"; }
says() { # NAME PATTERN ARGUMENT...
    local name=$1 pattern=$2
    shift 2
    if run "$@" >"$scratch/out" 2>&1 && grep -qE -- "$pattern" "$scratch/out"; then ok "$name"; else not_ok "$name" "$(cat "$scratch/out")"; fi
}
bad() { # NAME FILE SED-SCRIPT REGEX: after the edit of that file contractcheck fails in those words
    fresh
    sed -i "$3" "$scratch/tree/$2"
    refuses "$1" 1 "$4" run --results results --mutants mutants
}

fresh
says "contractcheck passes claims that are held" '^contracts: 2 passed, 0 failed, 0 skipped, 1 need a GPU, 1 open$' --results results
says "contractcheck says which claims are open" '^open: F-WORD-002: who knows them all$'
says "contractcheck counts killed mutants" '^3 killed of 3$' --mutants mutants
says "contractcheck counts killed mutants without a GPU" '^2 killed of 2$' --device cpu --mutants mutants
says "contractcheck --only chooses claims" '^contracts: 1 passed, 0 failed, 0 skipped, 0 need a GPU, 0 open$' --only 'F-SCALE*'
says "contractcheck says which claims need a GPU" '^needs a GPU: F-WORD-003: it doubles on a GPU \(gpu-test_scale doubles\)$'
says "a run on a GPU holds a claim that needs one" '^contracts: 3 passed, 0 failed, 0 skipped, 0 need a GPU, 1 open$' --gpu gpu --tree abc
says "a run on a GPU of another tree holds no claim" '^contracts: 2 passed, 0 failed, 0 skipped, 1 need a GPU, 1 open$' --gpu gpu --tree abd
sed 's/^passed\tscale_bad/skipped\tscale_bad/' "$good/results" >"$scratch/tree/skipped"
says "contractcheck counts skipped claims apart" '^contracts: 1 passed, 0 failed, 1 skipped, 1 need a GPU, 1 open$' --results skipped
says "contractcheck names skipped claims" '^skipped: F-WORD-001: one is refused \(scale_bad a bad word\)$' --results skipped
says "a run on a GPU that is not there holds no claim" '^contracts: 2 passed, 0 failed, 0 skipped, 1 need a GPU, 1 open$' --gpu none --tree abc
says "contractcheck lists the mutants that need a GPU" $'^F-WORD-003\tsrc/scale.c\tgpu-test_scale\tdoubles$' --device cuda --list
says "contractcheck lists mutants" $'^F-WORD-001\tsrc/scale.c\tscale_bad\ta bad word$' --list

kernel=contracts/kernels/scale.yaml system=contracts/system/words.yaml
bad "contractcheck names an op without a claim" $kernel '/^falsifiers/,$d' "^$kernel:1: no claim of this op is bound"
bad "contractcheck names an op with open claims only" $kernel '5,9d;4a\    open: later' "^$kernel:1: no claim of this op is bound"
bad "contractcheck names an id twice" $system 's/F-WORD-001/F-SCALE-001/' "^$system:4: F-SCALE-001 is in $kernel:3 already"
bad "contractcheck names a claim without a test" $system 's/test: [^,]*, //' "^$system:4: a falsifier lacks the field 'test'"
bad "contractcheck names a program that does not exist" $kernel 's/test_scale/test_skale/' "^$kernel:3: F-SCALE-001 names .*no tests/./test_skale.c"
bad "contractcheck names a check that does not exist" $kernel 's/ doubles/ double/' "^$kernel:3: F-SCALE-001 .*test_scale.c holds no 'double'"
bad "contractcheck names a test that did not run" results '/doubles/d' "^$kernel:3: .*'test_scale doubles' did not run .*tests/run_one.sh test_scale 'doubles'"
bad "contractcheck names a test that failed" results '1s/passed/failed/' "^$kernel:3: .*'test_scale doubles' failed"
bad "contractcheck names a mutant that survived" mutants 's/killed\(.F-SCALE\)/survived\1/' "^$kernel:7: F-SCALE-001: its mutant survives"
bad "contractcheck names a mutant that was not tried" mutants '/SCALE/d' "^$kernel:7: F-SCALE-001: its mutant was not tried"
bad "contractcheck names code that has changed" src/scale.c 's/2 \* x/x + x/' "^$kernel:7: .*no longer holds '2 \* x'; the code has changed"
bad "contractcheck names text that is there twice" src/scale.c '1s|$| // 2 * x|' "^$kernel:7: .*src/scale.c holds '2 \* x' 2 times"
bad "contractcheck names a mutant that changes nothing" $kernel 's/3 \*/2 */' "^$kernel:7: F-SCALE-001: the mutant changes nothing"
bad "contractcheck names a file that is not there" $kernel 's/scale.c/skale.c/' "^$kernel:7: .*src/skale.c cannot be read"
bad "contractcheck names a file outside of the tree" $kernel 's|src/|../tree/src/|' "^$kernel:7: .*must be a path in the tree"
bad "contractcheck names a field of another name" $system '2s/summary/sumary/' "^$system:2: unknown field 'sumary'; did you mean 'summary'"
refuses "contractcheck refuses a record that is not there" 1 '^none: cannot be read: .*make test writes it' run --results none
rm -r "$scratch/tree/contracts"
refuses "contractcheck refuses a tree without contracts" 1 '^contracts/kernels/\*.yaml: there is no such file here' run
refuses "contractcheck refuses an unknown option" 2 'usage: contractcheck' run --frobnicate
refuses "contractcheck refuses an unknown device" 2 'usage: contractcheck' run --device tpu

# ---- records of a GPU
fresh
on_gpu() { run --gpu gpu --tree abc; }
sed -i '/doubles/s/passed/failed/' "$scratch/tree/gpu"
refuses "contractcheck names a claim whose test failed on a GPU" 1 "^$system:6: .*'gpu-test_scale doubles' failed \(gpu\)" on_gpu
sed -i '/doubles/d' "$scratch/tree/gpu"
refuses "contractcheck names a claim whose test did not run on a GPU" 1 "^$system:6: .*'gpu-test_scale doubles' did not run \(gpu\)" on_gpu
sed -i '$s/passed/skipped/' "$scratch/tree/gpu"
says "a claim without its tool on the GPU machine is counted as needing a GPU" '^contracts: 2 passed, 0 failed, 0 skipped, 1 need a GPU, 1 open$' --gpu gpu --tree abc

fresh
run --plant F-SCALE-001
if [ "$(diff "$good/src/scale.c" "$scratch/tree/src/scale.c")" = $'3c3\n<     return 2 * x;\n---\n>     return 3 * x;' ]; then
    ok "planting a mutant edits one place"
else
    not_ok "planting a mutant edits one place" "$(cat "$scratch/tree/src/scale.c")"
fi
refuses "planting a mutant twice is refused" 1 "no longer holds" run --plant F-SCALE-001
refuses "planting an open claim is refused" 2 'no claim F-WORD-002 with a mutant' run --plant F-WORD-002
finish

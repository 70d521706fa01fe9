#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# mutants.sh [GLOB]: plants the mutant of every claim whose id matches, one at a time, in a copy of the tree and of its build, and
# runs the claim's test there: it must fail. Before that the test must pass without the mutant. A mutant that does not build was not
# tried, and counts as such. Ends with `N killed of M`; fails unless they are equal. DEVICE=cuda takes the claims that need a GPU, which
# must be here (else tests/gpumutants.sh) or, for gpu-harness, simulated (NOJIT_SIM_DEVICE). $BUILD is the build folder, RECORD (default
# BUILD/mutants, BUILD/mutants-cuda) what was found, JOBS (default: the processors; 1 on a GPU) the number of copies, LIMIT (default 120)
# the seconds a test may take: one that hangs has failed.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
: "${LIMIT:=120}" "${DEVICE:=cpu}"
: "${JOBS:=$([ "$DEVICE" = cpu ] && nproc || echo 1)}" # a test on a GPU measures free memory, so it runs alone
. tests/lib/plant_mutants.sh
: "${RECORD:=$BUILD/mutants$([ "$DEVICE" = cpu ] || echo "-$DEVICE")}"
only=${1:-*}
claims=("$check" --only "$only" --device "$DEVICE")
scratch=$(mktemp -d)
mkdir "$scratch/sound"
trap 'rm -rf "$scratch"' EXIT
unset MAKEFLAGS MAKELEVEL MFLAGS CI # a mutant may leave something unused
export FLIPS=10 # of blobcheck_damage: no claim is about them
export OMP_NUM_THREADS=$((($(nproc) + JOBS - 1) / JOBS))

"${claims[@]}" --list >"$scratch/list"
[ -s "$scratch/list" ] || {
    echo "mutants: no claim of $DEVICE matches '$only'" >&2
    exit 1
}

simulation=(build/sim/{libcuda.so.1,libcublasLt.so.13,libnccl.so.2,libnvidia-ml.so.1,ptx.txt})
# targets PROGRAM: what make has to bring up to date.
targets() {
    case $1 in
    harness* | gpu-harness | gpu-*check) echo build/harness ${NOJIT_SIM_DEVICE:+"${simulation[@]}"} ;;
    test_* | gpu-test_*) echo "build/tests/${1#gpu-}" ;;
    gpu-run) echo build/nojit build/cupti_modules.so ;;
    device_fp8_scales) echo build/nojit build/tests/test_fp8_scales "${simulation[@]}" ;;
    device_*) echo build/nojit build/gguf-of build/harness build/sim/proc.so "${simulation[@]}" ;;
    kbench*) echo build/kbench ;;
    gen_*) echo build/gen-bin/gen ;;
    vulkan_*) echo build/nojit build/harness build/vkfault/libvulkan.so.1 ;;
    fuzz_corpus) for t in tests/fuzz/corpus/*/; do echo "build/fuzz/$(basename "$t")"; done ;;
    *) echo build/nojit build/blobcheck build/damage build/gguf-of build/apr-of build/contractcheck build/gen-bin/gen build/pack-bin/pack build/pack-bin/pack-shaders ;;
    esac
}
test_in() { # TREE BUILD PROGRAM CHECK
    BUILD=$2 timeout -k 5 "$LIMIT" bash "$1/tests/run_one.sh" "$3" "$4"
}
# Does a test pass without a mutant? Found out once.
sound() { # PROGRAM CHECK LOG
    local known=$scratch/sound/${1}_${2//\//_}
    [ -e "$known" ] || { test_in . "$BUILD" "$1" "$2" >"$3" 2>&1 && touch "$known"; }
}
verdict() { # ID WORD TEST [LOG]
    printf '%s\t%s\n' "$2" "$1" >>"$scratch/record"
    printf '%-9s %-36s %s (%d s)\n' "$2" "$1" "$3" $((SECONDS - started))
    if [ -n "${4-}" ]; then tail -n 8 "$4" | sed 's/^/    /'; fi
}
try() { # TREE ID FILE PROGRAM CHECK
    local tree=$1 id=$2 name="$4${5:+ $5}" log=$1.log
    local started=$SECONDS
    if ! sound "$4" "$5" "$log"; then
        verdict "$id" "untried" "$name fails without the mutant" "$log"
        return
    fi
    if ! plant "$tree" "$id" >"$log" 2>&1 ||
        ! make --no-print-directory -C "$tree" B=build $(targets "$4") >"$log" 2>&1; then
        verdict "$id" "untried" "it does not build" "$log"
    elif test_in "$tree" build "$4" "$5" >"$log" 2>&1; then
        verdict "$id" "survived" "$name"
    else
        verdict "$id" "killed" "$name"
    fi
    restore "$tree"
}
work() { # JOB: every JOBS-th claim
    local tree=$scratch/tree$1 n=0 id file program name
    copy_tree "$tree"
    while IFS=$'\t' read -r id file program name; do
        if [ $((n++ % JOBS)) = "$1" ]; then try "$tree" "$id" "$file" "$program" "$name"; fi
    done <"$scratch/list"
}

for ((job = 0; job < JOBS; job++)); do work $job & done
wait
mv "$scratch/record" "$RECORD"
"${claims[@]}" --mutants "$RECORD" | tail -n 1

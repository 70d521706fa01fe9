#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# mutants.sh [GLOB]: plants the mutant of every claim whose id matches, one at a time, in a copy of the tree and of its build, and
# runs the claim's test there: it must fail. Before that the test must pass without the mutant. A mutant that does not build was not
# tried, and counts as such. Ends with `N killed of M`; fails unless they are equal. $BUILD is the build folder, RECORD (default BUILD/mutants) what was found, JOBS (default: the
# processors) the number of copies, LIMIT (default 120) the seconds a test may take: one that hangs has failed.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${BUILD:=build}" "${JOBS:=$(nproc)}" "${LIMIT:=120}"
BUILD=$(realpath "$BUILD")
: "${RECORD:=$BUILD/mutants}"
only=${1:-*}
check=$BUILD/contractcheck
scratch=$(mktemp -d)
mkdir "$scratch/sound"
trap 'rm -rf "$scratch"' EXIT
unset MAKEFLAGS MAKELEVEL MFLAGS CI # a mutant may leave something unused
export FLIPS=10 # of blobcheck_damage: no claim is about them
export OMP_NUM_THREADS=$((($(nproc) + JOBS - 1) / JOBS))

"$check" --only "$only" --list >"$scratch/list"
[ -s "$scratch/list" ] || {
    echo "mutants: no claim matches '$only'" >&2
    exit 1
}

# targets PROGRAM: what make has to bring up to date.
targets() {
    case $1 in
    harness*) echo build/harness ;;
    kbench*) echo build/kbench ;;
    test_*) echo "build/tests/$1" ;;
    gen_*) echo build/gen-bin/gen ;;
    *) echo build/nojit build/blobcheck build/damage build/contractcheck build/gen-bin/gen build/pack-bin/pack ;;
    esac
}
test_in() { # TREE BUILD PROGRAM CHECK
    BUILD=$2 timeout -k 5 "$LIMIT" bash "$1/tests/one.sh" "$3" "$4"
}
# Does a test pass without a mutant? Found out once.
sound() { # PROGRAM CHECK LOG
    local known=$scratch/sound/${1}_${2//\//_}
    [ -e "$known" ] || { test_in . "$BUILD" "$1" "$2" >"$3" 2>&1 && touch "$known"; }
}
# What changed in the copy since the mark becomes what it was: contents and times.
restore() {
    local f from
    while IFS= read -r f; do
        from=${f#"$1"/}
        case $from in build/*) from=$BUILD/${from#build/} ;; esac
        if [ -e "$from" ]; then cp -p "$from" "$f"; else rm -f "$f"; fi
    done < <(find "$1" -newer "$1.mark" ! -type d)
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
    touch -d '2 seconds ago' "$tree.mark"
    if ! (cd "$tree" && "$check" --plant "$id") >"$log" 2>&1 ||
        ! make --no-print-directory -C "$tree" B=build $(targets "$4") >"$log" 2>&1; then
        verdict "$id" "untried" "it does not build" "$log"
    elif test_in "$tree" build "$4" "$5" >"$log" 2>&1; then
        verdict "$id" "survived" "$name"
    else
        verdict "$id" "killed" "$name"
    fi
    restore "$tree"
}
work() { # JOB: every JOBS-th claim. posix: tar's own format cuts times to seconds, and make would rebuild kernels
    local tree=$scratch/tree$1 n=0 id file program name
    mkdir -p "$tree/build"
    tar -c --format=posix --exclude=./.git --exclude='./build*' . | tar -x -C "$tree"
    tar -C "$BUILD" -c --format=posix --exclude=./{demo,foreign,harness,kbench,test-logs,tests} . | tar -x -C "$tree/build"
    while IFS=$'\t' read -r id file program name; do
        if [ $((n++ % JOBS)) = "$1" ]; then try "$tree" "$id" "$file" "$program" "$name"; fi
    done <"$scratch/list"
}

for ((job = 0; job < JOBS; job++)); do work $job & done
wait
mv "$scratch/record" "$RECORD"
"$check" --only "$only" --mutants "$RECORD" | tail -n 1

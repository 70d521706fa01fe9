#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# build_settings.sh: what make does with its settings and with touched files, in a copy of the tree and build folders of
# its own (three small ops). JOBS (default 32) and ROUNDS (default 3): builds from nothing that must give the same bytes.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
: "${JOBS:=32}" "${ROUNDS:=3}"
apart

b=$scratch/b
pack=$b/pack/MANIFEST
small=(ONLY='add colsum cast_*_lp' ARCHS="sm_75 sm_90" CFLAGS=-O0)
made() { env -u V make --no-print-directory "$@" >"$scratch/made" 2>&1; }

# makes NAME PTX CC ARGUMENT...: make succeeds, with so many lines of PTX and CC.
makes() {
    local name=$1 ptx=$2 cc=$3 got=0
    shift 3
    made "$@" || got=$?
    local counts
    counts=$(awk -v got=$got '{ n[$1]++ } END { printf "exit status %d, %d PTX, %d CC", got, n["PTX"], n["CC"] }' "$scratch/made")
    if [ "$counts" = "exit status 0, $ptx PTX, $cc CC" ]; then
        ok "$name"
    else
        not_ok "$name" "$counts, expected $ptx and $cc: $(tail -n 3 "$scratch/made")"
    fi
}
# holds NAME PAIRS REGEX: the manifest has so many pairs, all of which match.
holds() {
    if [ "$(grep -c '^[^#].* sm_' "$pack")" = "$2" ] && [ "$(grep -cE "$3" "$pack")" = "$2" ]; then ok "$1"; else not_ok "$1" "$(cat "$pack")"; fi
}

refuses "make refuses unknown ARCHS and lists the known" 2 'sm_999.*sm_121' make B="$b" ARCHS=sm_999 "$pack"
refuses "make refuses ARCHS that shadow each other" 2 'sm_90a' make B="$b" ARCHS="sm_90 sm_90a" "$pack"
refuses "make refuses an unknown SAN" 2 'SAN=memory is unknown' make SAN=memory all
refuses "make refuses an unknown CC" 2 'CC=no-such-cc: there is no such compiler' make B="$b" CC=no-such-cc all

made B="$b" "${small[@]}" "$pack" || true
holds "make ONLY ARCHS packs what was asked" 8 '^(add|colsum|cast_to_lp)\.(lp|f32) sm_(75|90) '
makes "make has nothing to do the second time" 0 0 B="$b" "${small[@]}" "$pack"
touch kernels/add.cu
makes "touching one .cu rebuilds its units only" 2 0 B="$b" "${small[@]}" "$pack"
sed -i 's/- {n: 1}/- {n: 3}/' contracts/kernels/add.yaml
if cmp -s contracts/kernels/add.yaml "$OLDPWD/contracts/kernels/add.yaml"; then not_ok "the contract of another test shape is edited" "no shape was edited"; fi
makes "another test shape rebuilds no kernel" 0 0 B="$b" "${small[@]}" "$pack"
for f in contracts/kernels/add.yaml kernels/add.cu kernels/ref/add.c; do sed 's/\badd\b/aaa/g;s/F-ADD/F-AAA/' $f >"${f/add/aaa}"; done
makes "a contract in front builds its own units only" 2 0 B="$b" "${small[@]}" ONLY='aaa add colsum cast_*_lp' "$pack"
makes "make with another ARCHS and ONLY needs no clean" 1 0 B="$b" "${small[@]}" ONLY=colsum ARCHS=sm_120f "$pack"
holds "make with another ARCHS and ONLY packs nothing else" 2 '^colsum\..* sm_120f(-O1)? '
makes "make with the former ARCHS and ONLY compiles nothing" 0 0 B="$b" "${small[@]}" "$pack"
rm contracts/kernels/aaa.yaml

# Reference and launcher objects follow CFLAGS too, kernels do not.
refs="$b/obj/ref32/add.o $b/obj/gen/ops.o"
made B="$b" "${small[@]}" $refs
touch "$scratch/mark"
sleep 1
made B="$b" "${small[@]}" CFLAGS=-O1 $refs "$pack"
if [ -z "$(find $refs ! -newer "$scratch/mark")" ] && ! grep -q '^  PTX' "$scratch/made"; then
    ok "another CFLAGS rebuilds C and no kernel"
else
    not_ok "another CFLAGS rebuilds C and no kernel" "$(cat "$scratch/made")"
fi
ln -s "$CUDA_HOME" "$scratch/cuda"
makes "the same CUDA by another name rebuilds nothing" 0 0 B="$b" "${small[@]}" CFLAGS=-O1 CUDA_HOME="$scratch/cuda" "$pack"
mkdir -p "$scratch/other-cuda/bin"
for f in nvcc ptxas fatbinary; do printf '#!/bin/sh\nexec %s/bin/%s "$@"\n' "$CUDA_HOME" $f >"$scratch/other-cuda/bin/$f"; done
chmod +x "$scratch"/other-cuda/bin/*
makes "another CUDA_HOME rebuilds all kernels" 6 0 B="$b" "${small[@]}" CFLAGS=-O1 CUDA_HOME="$scratch/other-cuda" "$pack"

# From nothing, many jobs, another folder each time.
same=
for ((i = 1; i <= ROUNDS; i++)); do
    r=$scratch/round$i/b
    if ! made -j"$JOBS" B="$r" "${small[@]}" all || ! strip -o "$r/stripped" "$r/nojit"; then
        same="round $i: $(tail -n 3 "$scratch/made")"
        break
    fi
    if made B="$r" "${small[@]}" all && [ -s "$scratch/made" ]; then same="make spoke the second time: $(cat "$scratch/made")"; fi
    for f in pack/blobs.bin pack/index.bin pack/MANIFEST stripped; do
        cmp "$scratch/round1/b/$f" "$r/$f" >"$scratch/out" 2>&1 || same=$(cat "$scratch/out")
    done
    diff -r "$scratch/round1/b/gen" "$r/gen" >"$scratch/out" || same=$(head -n 3 "$scratch/out")
done
[ -z "$same" ] && ok "$ROUNDS builds from nothing by $JOBS jobs give the same bytes" || not_ok "$ROUNDS builds from nothing by $JOBS jobs give the same bytes" "$same"
finish

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
    if [ "$(grep -c ' sm_' "$pack")" = "$2" ] && [ "$(grep -cE "$3" "$pack")" = "$2" ]; then ok "$1"; else not_ok "$1" "$(cat "$pack")"; fi
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

# An arch that asks for a newer ptxas: of the toolkit where that is new enough, else that of ASSEMBLER. Assemblers that say which release
# they are and are the toolkit's own.
assembler() { # FOLDER RELEASE
    mkdir -p "$scratch/$1/bin"
    printf '#!/bin/sh\n[ "$1" = --version ] && echo "tools, release, V%s" && exit\necho "$*" >>%s/%s.log\nexec %s/bin/ptxas "$@"\n' \
        "$2" "$scratch" "$1" "$CUDA_HOME" >"$scratch/$1/bin/ptxas"
    for f in nvcc fatbinary; do printf '#!/bin/sh\nexec %s/bin/%s "$@"\n' "$CUDA_HOME" $f >"$scratch/$1/bin/$f"; done
    chmod +x "$scratch/$1"/bin/*
    : >"$scratch/$1.log"
}
chosen() { # NAME WANTED LEAST FOLDER...
    local got
    got=$(cd "$scratch" && sh "$tree/tools/assembler.sh" "${@:3}")
    ok_if "$1" "$got, expected $2" [ "$got" = "$2" ]
}
assembler old 13.0.88
assembler asked 13.3.73
assembler newer 13.10.1
chosen "a toolkit that is new enough assembles by itself" "asked 13.3.73" 13.3.73 asked newer
chosen "the numbers of a release are compared as numbers" "newer 13.10.1" 13.9.5 asked newer
chosen "an older ptxas is passed over" "newer 13.10.1" 13.3.73 old none "" newer
chosen "no ptxas is named where none is new enough" "" 13.3.73 old none
mk() { # ASSEMBLER CUDA_DIR: tools/nojit.mk, as another project uses it
    make --no-print-directory -f tools/nojit.mk NJ_BUILD="$scratch/own" NJ_CONTRACTS=contracts/kernels NJ_KERNELS=kernels \
        NJ_INCLUDE="runtime runtime/selftest" NJ_GEN="$b/gen-bin/gen" NJ_PACK="$b/pack-bin/pack" NJ_PACK_SHADERS="$b/pack-bin/pack-shaders" \
        NJ_ARCHS_YAML=contracts/archs.yaml CUDA_DIR="$scratch/$2" ASSEMBLER="$1" ONLY=add ARCHS="sm_90 sm_120" "$scratch/own/pack/MANIFEST" \
        >"$scratch/made" 2>&1 || tail -n 3 "$scratch/made"
}
count() { grep -c -- "-arch=$2 " "$scratch/$1.log" || true; }
calls() { # NAME "OF OLD sm_90, sm_120; OF NEWER sm_90, sm_120"
    local got
    got="$(count old sm_90) $(count old sm_120) $(count newer sm_90) $(count newer sm_120)"
    ok_if "$1" "calls: $got, expected $2: $(tail -n 3 "$scratch/made")" [ "$got" = "$2" ]
    : >"$scratch/old.log"
    : >"$scratch/newer.log"
}
mk "$scratch/newer" old
calls "an arch is assembled by the ptxas that it asks for" "2 0 0 4"
ok_if "a newer ptxas that is there is not asked for" "$(cat "$scratch/made")" [ -z "$(grep 'older than archs.yaml' "$scratch/made")" ]
mk "$scratch/newer" old
calls "the same assemblers assemble nothing anew" "0 0 0 0"
mk toolkit old
calls "another assembler of an arch makes its code anew and no other" "0 4 0 0"
ok_if "the toolkit's ptxas that was asked for is taken without a word" "$(cat "$scratch/made")" [ -z "$(grep 'older than archs.yaml' "$scratch/made")" ]
rm "$scratch/own/pack/MANIFEST"
mk "" old
calls "the toolkit's ptxas stands in where there is no newer one" "0 0 0 0"
ok_if "a missing newer ptxas is said" "$(cat "$scratch/made")" grep -q "the ptxas of $scratch/old is older than archs.yaml asks for sm_120; set ASSEMBLER to the folder of a newer CUDA (13.3.73) or to 'toolkit'" "$scratch/made"
mk "$scratch/newer" old
calls "a newer ptxas that came later is taken" "0 0 0 4"
sed -i 's/ptxas: 13.3.73, //' contracts/archs.yaml
mk "$scratch/newer" old
calls "an arch that no longer asks is assembled by the toolkit" "0 4 0 0"

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

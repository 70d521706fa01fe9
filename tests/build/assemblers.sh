#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# assemblers.sh: which ptxas assembles an architecture that asks for a newer one: the toolkit's where that is new enough, else that of
# ASSEMBLER; another one makes the code of that architecture anew and no other. tools/nojit.mk makes the kernels of one op, as another project would,
# with assemblers that say which release they are and are the toolkit's own.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
unset MAKEFLAGS MAKELEVEL MFLAGS ASSEMBLER # of a make that runs this
cuda=$(sed -n 's/^CUDA_DIR := //p' "$BUILD/setup.mk")
cp contracts/archs.yaml "$scratch/archs.yaml"

assembler() { # FOLDER RELEASE
    mkdir -p "$scratch/$1/bin"
    printf '#!/bin/sh\n[ "$1" = --version ] && echo "tools, release, V%s" && exit\necho "$*" >>%s/%s.log\nexec %s/bin/ptxas "$@"\n' \
        "$2" "$scratch" "$1" "$cuda" >"$scratch/$1/bin/ptxas"
    for f in nvcc fatbinary; do printf '#!/bin/sh\nexec %s/bin/%s "$@"\n' "$cuda" $f >"$scratch/$1/bin/$f"; done
    chmod +x "$scratch/$1"/bin/*
    : >"$scratch/$1.log"
}
chosen() { # NAME WANTED LEAST FOLDER...
    local got tree=$PWD
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

pack() { # ASSEMBLER
    make --no-print-directory -f tools/nojit.mk NJ_BUILD="$scratch/own" NJ_CONTRACTS=contracts/kernels NJ_KERNELS=kernels \
        NJ_INCLUDE=". runtime runtime/selftest" NJ_GEN="$BUILD/gen-bin/gen" NJ_PACK="$BUILD/pack-bin/pack" NJ_PACK_SHADERS="$BUILD/pack-bin/pack-shaders" \
        NJ_ARCHS_YAML="$scratch/archs.yaml" CUDA_DIR="$scratch/old" ASSEMBLER="$1" ONLY=add ARCHS="sm_90 sm_120" "$scratch/own/pack/MANIFEST" \
        >"$scratch/made" 2>&1 || tail -n 3 "$scratch/made"
}
count() { grep -c -- "-arch=$2 " "$scratch/$1.log" || true; }
calls() { # NAME COUNTS: of the old ptxas for sm_90 and sm_120, and of the newer one
    local got
    got="$(count old sm_90) $(count old sm_120) $(count newer sm_90) $(count newer sm_120)"
    ok_if "$1" "calls: $got, expected $2: $(tail -n 3 "$scratch/made")" [ "$got" = "$2" ]
    : >"$scratch/old.log"
    : >"$scratch/newer.log"
}
silent() { ! grep -q 'nojit.mk: ' "$scratch/made"; }
# Two keys, and for sm_120 their spare code.
pack "$scratch/newer"
calls "an arch is assembled by the ptxas that it asks for" "2 0 0 4"
ok_if "nothing is said of a newer ptxas that is there" "$(cat "$scratch/made")" silent
pack "$scratch/newer"
calls "the same assemblers assemble nothing anew" "0 0 0 0"
pack toolkit
calls "another assembler of an arch makes its code anew and no other" "0 4 0 0"
ok_if "nothing is said of a toolkit's ptxas that was asked for" "$(cat "$scratch/made")" silent
rm "$scratch/own/pack/MANIFEST"
pack ""
calls "the toolkit's ptxas stands in where there is no newer one" "0 0 0 0"
ok_if "a newer ptxas that is not there is said" "$(cat "$scratch/made")" grep -qF "nojit.mk: the ptxas of $scratch/old is older than archs.yaml asks for sm_120; set \
ASSEMBLER to the folder of a newer CUDA (13.3.73) or to 'toolkit'" "$scratch/made"
pack "$scratch/newer"
calls "a newer ptxas that came later is taken" "0 0 0 4"
sed -i 's/ptxas: 13.3.73, //' "$scratch/archs.yaml"
pack "$scratch/newer"
calls "an arch that no longer asks is assembled by the toolkit" "0 4 0 0"
sed -i 's/spare: true, //' "$scratch/archs.yaml"
pack "$scratch/newer"
ok_if "an arch that no longer asks for spare code has none" "$(cat "$scratch/own/pack/MANIFEST")" [ "$(grep -c '^add' "$scratch/own/pack/MANIFEST")" = 4 ]
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# setup_ptxas.sh: which ptxas set-up finds for architectures that ask for a newer one than the toolkit's: the toolkit's own where it is
# new enough, that of $ASSEMBLER, one that lies there, else the pinned wheel; and what it says where that cannot be fetched. With a CUDA and a
# python3 of its own: nothing is fetched.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
unset CI SETUP CC ASSEMBLER CUDA_HOME
ONIG_SRC=$(sed -n 's/^ONIG_SRC := //p' "$BUILD/setup.mk")
export ONIG_SRC
least=$(sed -n 's/^nvidia-cuda-nvcc==\([0-9.]*\) .*/\1/p' scripts/ptxas-wheel.txt)
cuda() { # FOLDER RELEASE
    local f
    mkdir -p "$scratch/$1/bin"
    for f in nvcc ptxas fatbinary; do printf '#!/bin/sh\necho "Cuda compilation tools, release 13.0, V%s"\n' "$2" >"$scratch/$1/bin/$f"; done
    chmod +x "$scratch/$1"/bin/*
}
cuda old 13.0.88
cuda new "$least"
cuda newest 13.99.1
mkdir "$scratch/bin"
# pip has a version, and a download that fails or, with WHEEL, leaves a wheel there; zipfile makes what such a wheel holds.
cat >"$scratch/bin/python3" <<'P'
#!/bin/sh
case "$*" in
*--version) ;;
*download*) [ -n "${WHEEL:-}" ] || exit 1; while [ "$1" != -d ]; do shift; done; : >"$2/x.whl" ;;
*zipfile*) mkdir -p "$5/nvidia/cu13" && cp -r "$WHEEL/bin" "$5/nvidia/cu13" && cp "$WHEEL/bin/ptxas" "$5/nvidia/cu13/bin/cicc" ;;
*) exit 9 ;;
esac
P
chmod +x "$scratch/bin/python3"
setup() { # CUDA [SETTING...]
    env PATH="$scratch/bin:$PATH" CUDA_HOME="$scratch/$1" "${@:2}" scripts/setup.sh "$scratch/b"
}
finds() { # NAME WANTED CUDA [SETTING...]: the folder in setup.mk
    local got
    setup "${@:3}" 2>"$scratch/err" || true
    got=$(sed -n 's/^ASSEMBLER := //p' "$scratch/b/setup.mk")
    ok_if "$1" "$got: $(tail -n 1 "$scratch/err")" [ "$got" = "$2" ]
    rm -f "$scratch/b/setup.mk"
}
refuses "a ptxas that cannot be fetched is named with the remedies" 1 \
    "^setup: ptxas $least could not be fetched or its hash differs .*set ASSEMBLER to the folder of CUDA .* or newer, or to 'toolkit'" setup old
ok_if "a set-up that failed leaves no settings" "$(ls "$scratch/b")" [ ! -e "$scratch/b/setup.mk" ]
finds "set-up with ASSEMBLER=toolkit needs no newer ptxas" toolkit old ASSEMBLER=toolkit
finds "set-up takes a toolkit that is new enough" "$scratch/new" new
finds "set-up takes the ptxas of ASSEMBLER" "$scratch/newest" old ASSEMBLER="$scratch/newest"
finds "set-up unpacks the ptxas of the wheel" "$scratch/b/ptxas/$least" old WHEEL="$scratch/new"
ok_if "set-up keeps two programs of the wheel" "$(find "$scratch/b")" [ "$(ls "$scratch/b/ptxas/$least/bin" | tr '\n' ' ')" = "fatbinary ptxas " ]
finds "set-up finds the ptxas that it unpacked" "$scratch/b/ptxas/$least" old
finds "set-up passes over an ASSEMBLER that is too old" "$scratch/b/ptxas/$least" old ASSEMBLER="$scratch/old"
ok_if "an ASSEMBLER that is too old is said" "$(cat "$scratch/err")" grep -q "ASSEMBLER=$scratch/old holds no ptxas of release $least or newer: using $scratch/b/ptxas/$least" "$scratch/err"
rm -r "$scratch/b"
unset MAKEFLAGS MAKELEVEL MFLAGS B # of a make that runs this
made() { # NAME WANTED [SETTING...]: the folder in setup.mk after make with that in its environment
    local got
    env PATH="$scratch/bin:$PATH" CUDA_HOME="$scratch/old" "${@:3}" make B="$scratch/m" "$scratch/m/gen-bin/gen" >"$scratch/made" 2>&1 || true
    got=$(sed -n 's/^ASSEMBLER := //p' "$scratch/m/setup.mk")
    ok_if "$1" "$got: $(tail -n 2 "$scratch/made")" [ "$got" = "$2" ]
}
made "make sets up with the ASSEMBLER of its environment" "$scratch/newest" ASSEMBLER="$scratch/newest"
made "make keeps the ptxas that set-up found" "$scratch/newest"
made "make with ASSEMBLER=toolkit sets up anew" toolkit ASSEMBLER=toolkit
made "make without ASSEMBLER=toolkit sets up anew" "$scratch/m/ptxas/$least" WHEEL="$scratch/new"
refuses "a wheel that does not run here is said" 1 "^setup: the unpacked ptxas in $scratch/b/ptxas does not run here" setup old WHEEL="$scratch/old"
asked() { # of every arch
    local r
    for r in $(sed -n 's/.*ptxas: \([0-9.]*\).*/\1/p' contracts/archs.yaml | sort -u); do
        [ "$(printf '%s\n' "$r" "$least" | sort -V | tail -n 1)" = "$least" ] || { echo "$r" && return 1; }
    done && [ -n "$r" ]
}
succeeds "the wheel of set-up is as new as every arch asks for" asked
finish

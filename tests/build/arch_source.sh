#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# arch_source.sh: kernels/ARCH/OP.cu stands in for the common source on that arch alone, from when it is there until it is gone;
# in a copy of the tree, with one op.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
apart
# builds NAME PTX: make succeeds and compiles these.
builds() {
    local got
    got=$(env -u V make --no-print-directory B="$scratch/b" ONLY=add ARCHS="sm_75 sm_90" CFLAGS=-O0 "$scratch/b/pack/MANIFEST" 2>&1) ||
        got="make failed: $got"
    got=$(sed -n 's/^  PTX *//p; /failed/,$p' <<<"$got" | sort | tr '\n' ' ')
    if [ "$got" = "$2" ]; then ok "$1"; else not_ok "$1" "$got, expected $2"; fi
}
builds "the common source is compiled for all archs" "add.t256.sm_75 add.t256.sm_90 "
mkdir kernels/sm_90
printf '// SPDX-License-Identifier: Apache-2.0\n#include "../add.cu"\n' >kernels/sm_90/add.cu
builds "a source of one arch rebuilds the keys of that arch" "add.t256.sm_90 "
users=$(cd "$scratch/b/unit" && grep -l 'kernels/sm_90/add.cu' ./*.d | tr '\n' ' ')
if [ "$users" = "./add.t256.sm_90.d " ]; then ok "a source of one arch is used for that arch alone"; else not_ok "a source of one arch is used for that arch alone" "it is in $users"; fi
rm -r kernels/sm_90
builds "the common source is back when that of an arch is gone" "add.t256.sm_90 "
finish

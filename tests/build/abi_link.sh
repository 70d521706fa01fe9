#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# abi_link.sh: a program or a kernel table that was compiled against the nojit.h of another ABI does not link with the library.
set -eu
. tests/lib/lib.sh
cat >"$scratch/program.c" <<'C'
#include "nojit.h"
int main(void)
{
    nj_context *ctx;
    return nj_context_create(&ctx, NULL);
}
C
# Print what the linker misses with a header whose ABI is $1; the kernel table is always among it.
missing() {
    sed "s/_abi_[0-9]*\$/_abi_$1/" runtime/nojit.h >"$scratch/nojit.h"
    "${CC:-cc}" -I"$scratch" -o "$scratch/program" "$scratch/program.c" "$BUILD/libnojit.a" 2>&1 | grep -o 'nj_[a-z_]*_abi_[0-9]*' | sort -u
}
abi=$(sed -n 's/^#define nj_kernels nj_kernels_abi_//p' runtime/nojit.h)
said=$(missing "$abi")
ok_if "the library takes a kernel table of its own ABI alone" "$said" [ "$said" = "nj_kernels_abi_$abi" ]
said=$(missing 0)
ok_if "a program of another ABI does not link" "$said" grep -qx nj_context_create_abi_0 <<<"$said"
finish

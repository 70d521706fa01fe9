#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# openblas_kernels.sh: numbers hold whichever kernels OpenBLAS picks. It picks them by the processor, and they add in orders of
# their own: the harness, with several seeds, and the unit tests that compare numbers pass with those of every kind that this
# processor can run. If it fails, a tolerance was right for one processor.
set -eu
. tests/lib/lib.sh
export OMP_WAIT_POLICY=passive

# Names of OpenBLAS's kernels on x86-64, and a flag that the processor must have for them.
kinds='Nehalem sse4_2
Sandybridge avx
Haswell avx2
Zen avx2
SkylakeX avx512f
Cooperlake avx512_bf16'

# picks KIND: OpenBLAS takes these kernels when it is told to; elsewhere than on x86-64 it does not.
picks() {
    OPENBLAS_CORETYPE=$1 "$BUILD/nojit" doctor --device cpu 2>/dev/null | grep -q "OpenBLAS .* $1 "
}

# Programs whose source compares numbers within a bound.
programs() {
    grep -lE 'fabs|1e-[0-9]|assert_(float|double)' tests/unit/test_*.c | sed 's|.*/||; s|\.c$||'
}

# holds NAME COMMAND...: with the kernels of $kind.
holds() {
    local name=$1
    shift
    succeeds "$name, with the kernels of $kind" env OPENBLAS_CORETYPE="$kind" "$@"
}

tried=0
while read -r kind flag; do
    if ! grep -qw "$flag" /proc/cpuinfo || ! picks "$kind"; then
        skip "the kernels of $kind" "this processor or this OpenBLAS has none"
        continue
    fi
    tried=$((tried + 1))
    for seed in 1 2 3 4 5 6; do
        holds "harness, seed $seed" "$BUILD/harness" --device cpu --seed $seed
    done
    for program in $(programs); do
        holds "$program" "$BUILD/tests/$program"
    done
done <<<"$kinds"
[ "$(uname -m)" != x86_64 ] || ok_if "four kinds of kernels were tried" "$tried" [ $tried -ge 4 ]
finish

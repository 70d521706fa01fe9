#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# address_space.sh: where `ulimit -v` leaves too little address space for OpenBLAS's buffers, a command ends with a sentence. OpenBLAS
# would ask for them for ever, before main().
set -eu
. tests/lib/lib.sh
needs adamw.f32
export OMP_NUM_THREADS=1
limited() { # MIB COMMAND...
    (
        ulimit -v $(($1 * 1024))
        shift
        exec timeout -s KILL 60 "$BUILD/nojit" "$@"
    )
}
refuses "a command that has no room for OpenBLAS says so" 1 \
    '^nojit: the limit of 150 MiB on address space \(ulimit -v\) has no room for the 128 MiB that OpenBLAS .* OMP_NUM_THREADS' limited 150 version
succeeds "a command that computes nothing needs no room for products" limited 250 version
"$BUILD/nojit" init --preset nojit-tiny --out "$scratch/model" >/dev/null
head -c 3000 LICENSE >"$scratch/text.txt"
refuses "a run on the CPU that has no room for its products says so" 3 \
    'address space \(ulimit -v\) has no room for the 128 MiB that OpenBLAS .*; raise the limit, or set OMP_NUM_THREADS' \
    limited 250 eval --model "$scratch/model" --data "$scratch/text.txt" --seq-len 48 --device cpu
finish

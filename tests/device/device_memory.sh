#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_memory.sh: where memory comes from and how much there is: on a GPU of its own the driver's answer, on a GB10 the
# host's MemAvailable whatever cuMemGetInfo says, from managed memory, which goes on where cuMemAlloc stops; NOJIT_MEMORY
# changes the kind. On simulated GPUs, with a /proc/meminfo of this script. And what a CPU is called.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
export LD_LIBRARY_PATH=$BUILD/sim NOJIT_CUBLASLT=$BUILD/sim XDG_CACHE_HOME=$scratch/cache NOJIT_SIM_LOG=$scratch/sim.log
needs sm_89 sm_121
export LD_PRELOAD=$PWD/$BUILD/sim/proc.so NOJIT_SIM_PROC=$scratch/proc
mkdir "$NOJIT_SIM_PROC"
[ -f "$LD_PRELOAD" ] || LD_PRELOAD=$BUILD/sim/proc.so
meminfo() { # GIB of MemTotal, MemFree, MemAvailable
    printf 'MemTotal: %d kB\nMemFree: %d kB\nMemAvailable: %d kB\n' $(($1 << 20)) $(($2 << 20)) $(($3 << 20)) >"$NOJIT_SIM_PROC/meminfo"
}
says() { # NAME REGEX SETTING=VALUE...: doctor says so
    local name=$1 pattern=$2
    shift 2
    if env "$@" "$nojit" doctor --device cuda >"$scratch/out" 2>&1 && grep -qE -- "$pattern" "$scratch/out"; then
        ok "$name"
    else
        not_ok "$name" "no '$pattern' in: $(grep -vE '^(binary|libraries)' "$scratch/out" | head -c 400)"
    fi
}
meminfo 120 3 100
says "a GB10 has MemAvailable less a sixteenth, not MemFree" \
    '^memory +119.70 GiB, 92.50 GiB may be used; arenas in managed memory' NOJIT_SIM_DEVICE=gb10
says "a GPU of its own has the memory that the driver says" '23.64 GiB, 23.24 GiB may be used; arenas in device memory' NOJIT_SIM_DEVICE=rtx4090
says "a GPU that does not tell which it is gets device memory" 'does not report whether it shares memory with the host: arenas are in device memory' \
    NOJIT_SIM_DEVICE=gb10 NOJIT_SIM_FAIL=cuDeviceGetAttribute:4:1
if [ "$(grep -c 'does not report whether' "$scratch/out")" = 1 ] && grep -q 'arenas in device memory$' "$scratch/out"; then
    ok "a GPU that does not tell which it is, is said once"
else
    not_ok "a GPU that does not tell which it is, is said once" "$(cat "$scratch/out")"
fi

"$nojit" init --preset nojit-tiny --out "$scratch/model" >/dev/null
head -c 3000 LICENSE >"$scratch/text.txt"
train() { # SETTING=VALUE...
    rm -rf "$scratch/run"
    env "$@" "$nojit" train --student "$scratch/model" --data "$scratch/text.txt" --seq-len 16 --batch-size 1 --steps 1 \
        --device cuda --gemm-table none --out "$scratch/run"
}
trains() { # NAME SETTING=VALUE...
    local name=$1
    shift
    if train "$@" >"$scratch/out" 2>&1; then ok "$name"; else not_ok "$name" "$(tail -n 1 "$scratch/out")"; fi
}
# The plan of this run is 35 MiB or so, 32 of them workspace; products are tried with as much again.
trains "managed memory goes on where cuMemAlloc stops" NOJIT_SIM_DEVICE=gb10 NOJIT_SIM_STOP=20000000
refuses "device memory ends where cuMemAlloc stops" 3 'bytes of device memory: CUDA_ERROR_OUT_OF_MEMORY' \
    train NOJIT_SIM_DEVICE=gb10 NOJIT_SIM_STOP=20000000 NOJIT_MEMORY=device
refuses "a GPU that is too small is refused" 3 'GiB|MiB|bytes' train NOJIT_SIM_DEVICE=rtx4090 NOJIT_SIM_MEMORY=20000000
meminfo 120 100 7
refuses "a GB10 on a host without memory left is refused" 3 'GiB|MiB|bytes' train NOJIT_SIM_DEVICE=gb10
trains "a GPU of its own trains on a host without memory left" NOJIT_SIM_DEVICE=rtx4090

for line in 'model name : Some CPU @ 1 GHz' 'CPU implementer : 0x41'; do
    printf 'processor : 0\n%s\n' "$line" >"$NOJIT_SIM_PROC/cpuinfo"
    "$nojit" doctor --device cpu | sed -n 's/^cpu *\([^,]*\),.*/\1/p' >>"$scratch/names"
done
if printf 'Some CPU @ 1 GHz\n%s CPU\n' "$(uname -m)" | diff - "$scratch/names" >"$scratch/out"; then
    ok "a CPU has its name, or that of its architecture"
else
    not_ok "a CPU has its name, or that of its architecture" "$(cat "$scratch/out")"
fi
finish

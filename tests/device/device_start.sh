#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_start.sh: what start-up decides on a GPU, on the simulated driver and cuBLASLt: the JIT is forbidden before the
# driver starts, every embedded kernel that is for the GPU is loaded, the kind of memory follows the chip or NOJIT_MEMORY.
set -eu
. tests/lib/lib.sh
. tests/lib/relink.sh
nojit=$BUILD/nojit
sim=$BUILD/sim
export NOJIT_SIM_STRICT=1

# says NAME PATTERN SETTING=VALUE...: doctor, with a GPU of an arch that this binary holds, says so.
arch=$("$nojit" version | grep -oE 'sm_[0-9]+' | tail -n 1)
says() {
    local name=$1 pattern=$2
    shift 2
    if env -u CUDA_DISABLE_PTX_JIT -u CUDA_CACHE_DISABLE -u CUDA_FORCE_PRELOAD_LIBRARIES -u NOJIT_MEMORY LD_LIBRARY_PATH="$sim" \
        NOJIT_CUBLASLT="$sim" NOJIT_SIM_DEVICE="$arch" "$@" "$nojit" doctor --device cuda >"$scratch/out" 2>&1 &&
        grep -qE -- "$pattern" "$scratch/out"; then
        ok "$name"
    else
        not_ok "$name" "no '$pattern' in: $(grep -vE '^(binary|libraries)' "$scratch/out" | head -c 400)"
    fi
}

says "the JIT is forbidden before the driver starts" 'ready to train on the GPU' CUDA_DISABLE_PTX_JIT=0
says "the release of a driver may be unknown" '^driver +(release unknown|[0-9.]+), supports CUDA 13\.0$'
keys=$("$nojit" version | sed -nE 's/.*: ([0-9]+) kernels for.*/\1/p')
here=$(keys_of "$("$nojit" version | grep -oE 'sm_[0-9]+[af]?' | tail -n 1)" | wc -l)
says "every embedded kernel is loaded" "^kernels +$here of $keys loaded from $here modules"
says "a GPU of its own gets device memory" 'arenas in device memory'
says "a GPU that shares the host's memory gets managed memory" 'arenas in managed memory' NOJIT_SIM_DEVICE="$arch-shared"
says "NOJIT_MEMORY=managed wins" 'arenas in managed memory' NOJIT_MEMORY=managed
says "NOJIT_MEMORY=device wins" 'arenas in device memory' NOJIT_MEMORY=device NOJIT_SIM_DEVICE="$arch-shared"
refuses "an unknown NOJIT_MEMORY is refused" 2 'NOJIT_MEMORY=half: must be device or managed' env LD_LIBRARY_PATH="$sim" \
    NOJIT_CUBLASLT="$sim" NOJIT_MEMORY=half "$nojit" doctor --device cuda
finish

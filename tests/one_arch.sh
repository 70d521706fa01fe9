#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tier: all
#
# one_arch.sh: an op for one arch alone, whose kernel takes tensor maps and runs in clusters (tests/one_arch), beside one for all, in a
# project that uses an installed nojit: what is built, what blobcheck says of it, and what a launch does on that arch, on others and on the
# CPU. OUT is a folder that gets the program and the harness; on a GPU of sm_90 the one says `copied`, the other passes.
set -eu
cd "$(dirname "$0")/.."
. tests/lib.sh
unset MAKEFLAGS MAKELEVEL MFLAGS B # of a make that runs this
cuda=$(sed -n 's/^CUDA_DIR := //p' "$BUILD/setup.mk")
prefix=$scratch/prefix
project=$scratch/project
make --no-print-directory B="$BUILD" PREFIX="$prefix" install >"$scratch/log" 2>&1 || tail -n 3 "$scratch/log"
cp -r examples/own-kernel "$project"
mkdir "$project/kernels/sm_90a"
cp tests/one_arch/main.c "$project"
cp tests/one_arch/tiled_copy.yaml "$project/contracts"
cp tests/one_arch/tiled_copy.c "$project/kernels/ref"
cp tests/one_arch/tiled_copy.cu "$project/kernels/sm_90a"

builds() { # FOLDER ARCHS [GOAL...]
    PKG_CONFIG_PATH=$prefix/lib/pkgconfig CUDA_HOME=$cuda make -C "$project" B="$1" ARCHS="$2" \
        CC="${CC:-cc} -Wl,--wrap=nj_launch" CFLAGS="-std=c11 -O1 -Wall -Wextra -Werror -I$PWD/tests" "${@:3}" >"$scratch/log" 2>&1
}
is() { # NAME GOT WANT
    if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', want '$3'"; fi
}
says() { # FOLDER SETTING [cpu]: what the program prints on that device
    env LD_LIBRARY_PATH="$BUILD/sim" NOJIT_CUBLASLT="$BUILD/sim" NOJIT_SIM_LOG=/dev/null NOJIT_SIM_DEVICE="$2" \
        "$project/$1/own-kernel" "${@:3}" || true
}
harness() { # SETTING FILTER
    env LD_LIBRARY_PATH="$BUILD/sim" NOJIT_CUBLASLT="$BUILD/sim" NOJIT_SIM_LOG=/dev/null NOJIT_SIM_DEVICE="$1" \
        "$project/a/harness" --device cuda --filter "$2" || true
}
[[ $BUILD == /* ]] || BUILD=$PWD/$BUILD
built=$BUILD

if builds a "sm_75 sm_90a"; then ok "it builds"; else not_ok "it builds" "$(tail -n 5 "$scratch/log")"; fi
is "excluded by gen and by blobcheck" "$(grep '^excluded' "$scratch/log")" "excluded: tiled_copy.lp on sm_75 (only sm_90a)
excluded: tiled_copy.lp on sm_75, its contract asks for sm_90a alone"
is "counted" "$(grep -o '[0-9]* of [0-9]* present, [0-9]* excluded' "$scratch/log")" "5 of 5 present, 1 excluded"
is "kernels of it" "$(cd "$project/a/cubin" && echo tiled_copy.*.cubin)" tiled_copy.lp.sm_90a.cubin
is "parameters where the kernel has them" "$(grep -P '^tiled_copy.lp\t' "$project/a/gen/keys.txt" | cut -f5-)" \
    "sm_90a	304	0:8,8:8,16:8,24:4,28:4,48:128,176:128"
is "the instance" "$(grep -E -A 2 "__global__|tiles.cuh" "$project/a/gen/inst/tiled_copy.lp.cu" | tr -s ' \n' ' ')" \
    '#include "tiles.cuh" #include "tiled_copy.cu" extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128) nj_tiled_copy_lp(lp *y, const lp *x, const lp *z, int32_t N, int32_t C, const __grid_constant__ nj_tiles x_tiles, const __grid_constant__ nj_tiles z_tiles) '
if grep -q '^\.explicitcluster' "$project/a/ptx/tiled_copy.lp.sm_90a.ptx" && grep -q '^\.reqnctapercluster 2' "$project/a/ptx/tiled_copy.lp.sm_90a.ptx"; then
    ok "its clusters"
else
    not_ok "its clusters" "the PTX does not ask for clusters of 2"
fi
refused='tiled_copy: the grid is a multiple of the cluster of 2 blocks does not hold (T=lp, N=32, C=72)'
maps='grid 2 x 1 x 1
x: its address, 33 x 72, rows of 144 bytes, tiles of 32 x 64'
is "maps on an H100" "$(says a h100 | head -n 8)" "available 1
$refused
$maps
z: its address, 66 x 80, rows of 160 bytes, tiles of 64 x 64
$maps
z: none"
elsewhere="available 0
$refused
grid 2 x 1 x 1
x: none
z: none
grid 2 x 1 x 1
x: none
z: none
tiled_copy.lp is for sm_90a alone; Simulated"
is "a launch on a T4" "$(says a t4)" "$elsewhere Tesla T4 runs code of sm_75"
is "a launch on the CPU" "$(says a h100 cpu)" "available 0
$refused
grid 2 x 1 x 1
grid 2 x 1 x 1
tiled_copy.lp: the CPU runs float32 kernels only; choose dtype f32"
# The harness over these keys.
if builds a "sm_75 sm_90a" a/obj/gen/cases.o a/obj/ref64/{softcap,tiled_copy}.o &&
    "${CC:-cc}" -o "$project/a/harness" "$BUILD"/obj/tests/harness*.o "$project"/a/obj/{gen/ops,gen/cases,blobs,ref{32,64}/softcap,ref{32,64}/tiled_copy}.o \
        $(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --libs nojit) 2>"$scratch/log"; then
    ok "the harness of it"
else
    not_ok "the harness of it" "$(tail -n 5 "$scratch/log")"
fi
is "left out by the harness on a T4" "$(harness t4 '*' | grep -oE '1 keys not on this GPU|^2 of 3 keys')" "1 keys not on this GPU
2 of 3 keys"
is "run by the harness on an H100" "$(harness h100 'tiled*' | tail -n 1 | grep -o '^1 of 1 keys')" "1 of 1 keys"
BUILD=$project/a
. tests/relink.sh
is "keys for another machine's code" "$(keys_of sm_90) / $(keys_of sm_90a)" "softcap.f32
softcap.lp / softcap.f32
softcap.lp
tiled_copy.lp"
BUILD=$built

if builds b "sm_75 sm_90"; then ok "without its arch it builds"; else not_ok "without its arch it builds" "$(tail -n 5 "$scratch/log")"; fi
is "the same GPU with code of sm_90" "$(says b h100)" "$elsewhere NVIDIA H100 80GB HBM3 runs code of sm_90"
if [ -n "${OUT:-}" ]; then mkdir -p "$OUT" && cp "$project/a/own-kernel" "$project/a/harness" "$OUT"; fi

# The arch that should have it lacks it: an error when the GPU is opened, as for any kernel.
"$BUILD/damage" entry-emptied "$project/a/own-kernel" "$project/a/emptied" tiled_copy.lp
chmod +x "$project/a/emptied"
mv "$project/a/emptied" "$project/a/own-kernel"
is "missing where it should be" "$(says a h100)" "tiled_copy.lp has no machine code for sm_90; build it with: make ARCHS=sm_90"
refuses "and blobcheck finds it" 1 'tiled_copy.lp sm_90a: missing: no machine code' "$prefix/lib/nojit/bin/blobcheck" "$project/a/own-kernel"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# install_example.sh: an installed nojit builds examples/own-kernel, a project of its own, whose blobcheck passes and
# which runs; uninstall leaves nothing.
set -eu
. tests/lib/lib.sh
unset MAKEFLAGS MAKELEVEL MFLAGS B # of a make that runs this
prefix=$scratch/prefix
cuda=$(sed -n 's/^CUDA_DIR := //p' "$BUILD/setup.mk")
if make --no-print-directory B="$BUILD" PREFIX="$prefix" install >"$scratch/log" 2>&1 && [ -x "$prefix/bin/nojit" ] &&
    [ -f "$prefix/share/man/man1/nojit.1" ] && [ -f "$prefix/share/bash-completion/completions/nojit" ]; then
    ok "make install installs"
    if grep -qF "is in $prefix: $prefix/bin/nojit" "$scratch/log"; then ok "make install says where"; else not_ok "make install says where" "$(tail -n 1 "$scratch/log")"; fi
else
    not_ok "make install installs" "$(tail -n 3 "$scratch/log")"
fi
cp -r examples/own-kernel "$scratch/project"
if PKG_CONFIG_PATH=$prefix/lib/pkgconfig CUDA_HOME=$cuda make -C "$scratch/project" ARCHS="sm_75 sm_90 sm_121" run >"$scratch/log" 2>&1 &&
    grep -q 'softcap on .*: worst error' "$scratch/log"; then
    ok "examples/own-kernel builds, passes blobcheck and runs"
else
    not_ok "examples/own-kernel builds, passes blobcheck and runs" "$(tail -n 5 "$scratch/log")"
fi
cp -r examples/own-kernel "$scratch/of-the-page"
sed -n '/^```c$/,/^```$/p' docs/library.md | grep -v '^```' >"$scratch/of-the-page/main.c"
if PKG_CONFIG_PATH=$prefix/lib/pkgconfig CUDA_HOME=$cuda make -C "$scratch/of-the-page" ARCHS=sm_90 CFLAGS='-std=c11 -O2 -Wall -Wextra -Werror' run >"$scratch/said" 2>&1 &&
    grep -qFx "$(sed -n 's/^It prints `\(.*\)` without a GPU.$/\1/p' docs/library.md)" "$scratch/said"; then
    ok "the program of docs/library.md builds and runs"
else
    not_ok "the program of docs/library.md builds and runs" "$(tail -n 5 "$scratch/said")"
fi
if grep -q '2 keys x 3 archs' "$scratch/log"; then ok "blobcheck sees the keys of examples/own-kernel"; else not_ok "blobcheck sees the keys of examples/own-kernel" "$(tail -n 5 "$scratch/log")"; fi

own() { PKG_CONFIG_PATH=$prefix/lib/pkgconfig CUDA_HOME=$cuda make -C "$scratch/project" ARCHS="sm_75 sm_90 sm_121" "$@" >"$scratch/log" 2>&1; }
sed -i 's/\[n >= 1\]/[n >= 1, "row_bytes(0, n) > 0"]/' "$scratch/project/contracts/softcap.yaml" # with a header of its own
if own check && grep -qE '^softcap .*cases, worst error' "$scratch/log"; then
    ok "the harness holds examples/own-kernel to its reference"
else
    not_ok "the harness holds examples/own-kernel to its reference" "$(tail -n 5 "$scratch/log")"
fi
if own build/kbench && "$scratch/project/build/kbench" --device cpu --shape n=5000 >"$scratch/log" 2>&1 && grep -q '^softcap\.f32 ' "$scratch/log"; then
    ok "kbench times examples/own-kernel"
else
    not_ok "kbench times examples/own-kernel" "$(tail -n 5 "$scratch/log")"
fi
# Its .cu on a simulated T4, which knows no tanh and finds the PTX by a table beside the project; then with a fault in it.
sed -i 's/tanhf\?(/(/' "$scratch/project/kernels/softcap.cu" "$scratch/project/kernels/ref/softcap.c"
on_t4() {
    own build/harness && "$BUILD/sim/ptx_table" project/build/ptx "$scratch"/project/build/cubin/*.cubin >"$scratch/ptx.txt" &&
        env LD_LIBRARY_PATH="$BUILD/sim" NOJIT_CUBLASLT="$BUILD/sim" NOJIT_SIM_DEVICE=t4 NOJIT_SIM_PTX="$scratch/ptx.txt" \
            "$scratch/project/build/harness" --device cuda >"$scratch/log" 2>&1
}
if on_t4; then ok "examples/own-kernel is rebuilt after its .cu"; else not_ok "examples/own-kernel is rebuilt after its .cu" "$(tail -n 5 "$scratch/log")"; fi
sed -i 's#/ cap)#/ (cap + 1))#' "$scratch/project/kernels/softcap.cu"
if ! on_t4 && grep -q '^FAIL softcap' "$scratch/log"; then ok "examples/own-kernel with a wrong .cu fails"; else not_ok "examples/own-kernel with a wrong .cu fails" "$(tail -n 5 "$scratch/log")"; fi

# Beside it an op for one arch alone, whose kernel takes a tensor map and runs in clusters.
project=$scratch/one-arch
cp -r examples/own-kernel "$project"
mkdir "$project/kernels/sm_90a"
tiled() { sed -e 's/softcap/tiled/' "${@:3}" "$project/$1" >"$project/$2"; }
tiled kernels/softcap.cu kernels/sm_90a/tiled.cu -e 's/float cap)/float cap, const nj_tiles \&)/'
tiled kernels/ref/softcap.c kernels/ref/tiled.c
tiled contracts/softcap.yaml contracts/tiled.yaml -e '1s/$/\nonly: sm_90a/; s/\[lp, f32\]/[lp]/; s/, f32: 4e-6//; s/{threads/{cluster: 8, threads/' \
    -e '/name: x/s/\[n\], align: 16/[1, n], align: 16, tile: 1/; s/^tests:/tests: [{n: 2000}]/; /^  - {n: 1/d; /^bench/d'
sed -i 's/nj_softcap(s, NJ_F32, &(struct nj_softcap)/nj_tiled(s, NJ_LP, \&(struct nj_tiled)/' "$project/main.c"
says() { # NAME ARCHS SENTENCE: the project with code for ARCHS says so on a simulated H100; ARCHS are built and checked
    if PKG_CONFIG_PATH=$prefix/lib/pkgconfig CUDA_HOME=$cuda make -C "$project" ARCHS="$2" >"$scratch/log" 2>&1; then
        refuses "$1" 1 "^own-kernel: tiled$3" env LD_LIBRARY_PATH="$BUILD/sim" NOJIT_CUBLASLT="$BUILD/sim" "$project/build/own-kernel"
    else
        not_ok "$1" "$(tail -n 5 "$scratch/log")"
    fi
}
says "the launcher of an op with clusters asks for whole clusters" "sm_75 sm_90a" ": the grid is a multiple of the cluster of 8 blocks does not hold"
if grep -q '5 of 5 present, 1 excluded' "$scratch/log" && grep -q '^\.reqnctapercluster 8' "$project/build/ptx/tiled.lp.sm_90a.ptx"; then
    ok "examples/own-kernel is built for the arch that is asked for"
else
    not_ok "examples/own-kernel is built for the arch that is asked for" "$(tail -n 5 "$scratch/log")"
fi
sed -i 's/cluster: 8/cluster: 4/' "$project/contracts/tiled.yaml"
says "an op for sm_90a alone is refused where code of sm_90 runs" "sm_75 sm_90" ".lp is for sm_90a alone; Simulated NVIDIA H100 .* runs code of sm_90\$"

if echo '#include "nojit.h"' | "${CC:-cc}" -std=c11 -Wall -Werror -I"$prefix/include" -fsyntax-only -x c - &&
    echo '#include "nojit.h"' | g++ -Wall -Werror -I"$prefix/include" -fsyntax-only -x c++ -; then
    ok "the installed header stands alone in C and C++"
else
    not_ok "the installed header stands alone in C and C++" "see above"
fi
if ldd "$prefix/bin/nojit" | grep -qiE 'cuda|cublas|nvidia|openblas|jansson'; then
    not_ok "the installed nojit loads no CUDA library at start" "$(ldd "$prefix/bin/nojit")"
else
    ok "the installed nojit loads no CUDA library at start"
fi
make --no-print-directory B="$BUILD" PREFIX="$prefix" uninstall >"$scratch/log" 2>&1
if [ -z "$(find "$prefix" -type f)" ]; then ok "make uninstall leaves nothing"; else not_ok "make uninstall leaves nothing" "$(find "$prefix" -type f)"; fi
finish

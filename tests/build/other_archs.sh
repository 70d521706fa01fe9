#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# other_archs.sh: an architecture that `make` builds only by ARCHS=: all kernels are compiled and assembled for it, blobcheck passes the
# binary, and a simulated GPU distils in 16 bits and, from sm_89 on, in FP8. OTHER='sm_100' (b200) is the list; sm_103 (b300), sm_110 (thor)
# and sm_88 take as long each. WORK is where their machine code is built, and found again.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
needs sm_120 glu_bwd_quantize.lp.act0
: "${OTHER:=sm_100}" "${WORK:=$scratch}"
CUDA_HOME=$(sed -n 's/^CUDA_DIR := //p' "$BUILD/setup.mk")
ONIG_SRC=$(sed -n 's/^ONIG_SRC := //p' "$BUILD/setup.mk")
export CUDA_HOME ONIG_SRC
unset MAKEFLAGS MAKELEVEL MFLAGS V
sim=$(realpath "$BUILD")/sim
export LD_LIBRARY_PATH=$sim NOJIT_CUBLASLT=$sim XDG_CACHE_HOME=$scratch/cache OMP_WAIT_POLICY=passive NOJIT_SIM_LOG=$scratch/sim.log
named() { case $1 in sm_100) echo b200 ;; sm_103) echo b300 ;; sm_110) echo thor ;; *) echo "$1" ;; esac }
"$BUILD/nojit" init --preset nojit-tiny --num-layers 1 --out "$scratch/teacher" >"$scratch/out"
# Gate and up are its only matrices with 2^22 elements, the least for which FP8 is used.
"$BUILD/nojit" init --preset nojit-tiny --num-layers 1 --hidden-size 128 --heads 1 --kv-heads 1 --head-dim 64 --intermediate-size 16384 --out "$scratch/student" >"$scratch/out"
head -c 700 LICENSE >"$scratch/text.txt"
distilled() { # OUT OPTION...
    "$b/nojit" distill --teacher "$scratch/teacher" --student "$scratch/student" --data "$scratch/text.txt" --device cuda --batch-size 1 --seq-len 64 --steps 2 \
        --lr 1e-3 --gemm-table none --out "$b/$1" "${@:2}"
}
loss() { sed -nE 's/.*"loss": ([0-9.e-]+).*/\1/p' "$b/$1/metrics.jsonl" | tail -n 1; }
near() { awk -v a="$(loss "$1")" -v b="$(loss "$2")" 'BEGIN { exit !(a > 0 && a != b && (a - b) ^ 2 < 0.002 ^ 2) }'; } # OUT OTHER
body() { sed -E '/^\.target /d; s/_INTERNAL_[0-9a-f]{8}_/_INTERNAL_/g' "$1"; } # of PTX: without the target and what is a hash of it
same_ptx() { # ARCH: kernels whose PTX is that for sm_120
    local f n=0
    for f in "$b/ptx/"*".$1.ptx"; do
        if cmp -s <(body "$f") <(body "$BUILD/ptx/$(basename "$f" ".$1.ptx").sm_120.ptx"); then n=$((n + 1)); fi
    done
    echo $n
}
for arch in $OTHER; do
    b=$WORK/$arch
    rm -rf "$b/plain" "$b/f8"
    succeeds "every kernel is assembled for an architecture that is not built by default" make --no-print-directory -s B="$b" ARCHS="$arch" "$b/obj/blobs.o"
    succeeds "a program with that machine code is linked" make --no-print-directory -s B="$BUILD" BLOBS="$b/obj/blobs.o" NOJIT="$b/nojit" "$b/nojit"
    succeeds "blobcheck passes it" "$BUILD/blobcheck" "$b/nojit" --quiet
    echo "     $arch: the PTX of $(same_ptx "$arch") of $(cd "$b/ptx" && ls -- *."$arch".ptx | wc -l) kernels is that for sm_120"
    (cd "$b" && "$sim/ptx_table" ptx cubin/*.cubin >ptx.txt)
    NOJIT_SIM_DEVICE=$(named "$arch")
    export NOJIT_SIM_DEVICE NOJIT_SIM_PTX=$b/ptx.txt
    succeeds "doctor accepts a simulated GPU of it" "$b/nojit" doctor --device cuda
    succeeds "a distillation on it ends" distilled plain
    if [ "${arch//[!0-9]/}" -ge 100 ]; then
        succeeds "a distillation with FP8 models on it ends" distilled f8 --student-dtype fp8 --teacher-dtype fp8
        ok_if "the loss with FP8 models is near that in 16 bits, and another" "$(loss f8) and $(loss plain)" near f8 plain
    else
        refuses "FP8 on an architecture without it is refused" 2 'from sm_89 on' distilled f8 --student-dtype fp8
    fi
done
finish

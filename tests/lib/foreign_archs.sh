#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# foreign_archs.sh TARGET ARCH...: harness and trainer with the PTX of other archs, assembled for TARGET (for example sm_90), so
# that their code paths run on the GPU at hand: BUILD/foreign/ARCH/{harness,nojit}. The PTX of a newer arch has its .target line
# changed; what ptxas makes for the arch itself stays unproven without that GPU. Keys for one arch alone are left out.
set -eu
export LC_ALL=C
: "${BUILD:=build}"
. tests/lib/relink.sh
target=$1
shift
cuda=$(sed -n 's/^CUDA_DIR := //p' "$BUILD/setup.mk")
for arch in "$@"; do
    dir=$BUILD/foreign/$arch
    rm -rf "$dir"
    mkdir -p "$dir/cubin"
    f16=$(awk -F'\t' -v a="$arch" '$1 == a { print $5 }' "$BUILD/gen/archs.txt")
    shared=$(awk -F'\t' -v a="$arch" '$1 == a { print $4 }' "$BUILD/gen/archs.txt")
    for key in $(keys_of "$arch"); do
        sed "s/^\.target .*/.target $target/" "$BUILD/ptx/$key.$arch.ptx" >"$dir/cubin/$key.ptx"
        "$cuda/bin/ptxas" -v -arch="$target" -o "$dir/cubin/$key.$target.cubin" "$dir/cubin/$key.ptx" \
            2>"$dir/cubin/$key.$target.log"
    done
    relink "$dir" "$target" "$(printf '%s\t%s\t-\t%s\t%s' "$target" "${target#sm_}" "$shared" "$f16")" \
        HARNESS="$dir/harness" NOJIT="$dir/nojit" "$dir/harness" "$dir/nojit"
    echo "$dir: harness, nojit"
done

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# foreign.sh TARGET ARCH...: harness and trainer with the PTX of other archs, assembled for TARGET (for example sm_90), so
# that their code paths run on the GPU at hand: BUILD/foreign/ARCH/{harness,nojit}. The PTX of a newer arch has its .target line
# changed; what ptxas makes for the arch itself stays unproven without that GPU.
set -eu
: "${BUILD:=build}"
target=$1
shift
sm=${target#sm_}
cuda=$(sed -n 's/^CUDA_DIR := //p' "$BUILD/setup.mk")
for arch in "$@"; do
    dir=$BUILD/foreign/$arch
    rm -rf "$dir"
    mkdir -p "$dir/cubin" "$dir/fatbin" "$dir/pack" "$dir/obj"
    f16=$(awk -F'\t' -v a="$arch" '$1 == a { print $5 }' "$BUILD/gen/archs.txt")
    shared=$(awk -F'\t' -v a="$arch" '$1 == a { print $4 }' "$BUILD/gen/archs.txt")
    printf '%s\t%s\t-\t%s\t%s\n' "$target" "$sm" "$shared" "$f16" >"$dir/archs.txt"
    for key in $(cut -f1 "$BUILD/gen/keys.txt"); do
        sed "s/^\.target .*/.target $target/" "$BUILD/ptx/$key.$arch.ptx" >"$dir/cubin/$key.ptx"
        "$cuda/bin/ptxas" -v -arch="$target" -o "$dir/cubin/$key.$target.cubin" "$dir/cubin/$key.ptx" \
            2>"$dir/cubin/$key.$target.log"
        "$cuda/bin/fatbinary" -64 --compress-mode=none --create="$dir/fatbin/$key.fatbin" \
            --image3=kind=elf,sm="$sm",file="$dir/cubin/$key.$target.cubin"
    done
    # Registers were allotted for another arch, so spills say nothing here.
    cut -f1 "$BUILD/gen/keys.txt" | sed "s/$/	$target	4096/" >"$dir/spills.txt"
    "$BUILD/pack-bin/pack" --keys "$BUILD/gen/keys.txt" --archs "$dir/archs.txt" --spills "$dir/spills.txt" \
        --fatbins "$dir/fatbin" --logs "$dir/cubin" --out "$dir/pack"
    "${CC:-cc}" -c -I"$dir/pack" -I"$BUILD/gen" -o "$dir/obj/blobs.o" runtime/blobs.S
    make --no-print-directory -s B="$BUILD" HARNESS="$dir/harness" NOJIT="$dir/nojit" BLOBS="$dir/obj/blobs.o" \
        "$dir/harness" "$dir/nojit"
    echo "$dir: harness, nojit"
done

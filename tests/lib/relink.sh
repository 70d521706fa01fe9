# SPDX-License-Identifier: Apache-2.0
#
# Sourced by scripts. keys_of ARCH: its keys. relink DIR ARCH ARCHS-LINE GOAL...: packs the cubins and logs of every key in DIR/cubin as
# the only machine code, of ARCH, and links programs with it: `NOJIT=...`, `HARNESS=...` and what to make of them.
keys_of() { # ARCH: the keys that are not for another arch alone
    awk -F'\t' -v arch="$1" '$5 == arch || $5 !~ /^sm_/ { print $1 }' "$BUILD/gen/keys.txt"
}
relink() {
    local dir=$1 arch=$2 line=$3 key cuda
    shift 3
    cuda=$(sed -n 's/^CUDA_DIR := //p' "$BUILD/setup.mk")
    mkdir -p "$dir/fatbin" "$dir/pack" "$dir/obj"
    printf '%s\t0\n' "$(cut -f1-5 <<<"$line")" >"$dir/archs.txt" # no spare code
    for key in $(keys_of "$arch"); do
        "$cuda/bin/fatbinary" -64 --compress-mode=none --create="$dir/fatbin/$key.fatbin" \
            --image3="kind=elf,sm=${arch#sm_},file=$dir/cubin/$key.$arch.cubin"
    done
    # Registers were allotted for other code, so spills say nothing here.
    cut -f1 "$BUILD/gen/keys.txt" | sed "s/$/	$arch	4096/" >"$dir/spills.txt"
    "$BUILD/pack-bin/pack" --keys "$BUILD/gen/keys.txt" --archs "$dir/archs.txt" --spills "$dir/spills.txt" \
        --fatbins "$dir/fatbin" --logs "$dir/cubin" --out "$dir/pack"
    "${CC:-cc}" -c -I"$dir/pack" -I"$BUILD/gen" -o "$dir/obj/blobs.o" runtime/blobs.S
    if [ $# -gt 0 ]; then make --no-print-directory -s B="$BUILD" BLOBS="$dir/obj/blobs.o" "$@"; fi
}

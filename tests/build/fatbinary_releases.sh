#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# fatbinary_releases.sh: what the fatbinary of each CUDA release here writes is read, or refused by name: of cubins alone it is byte for byte what the
# build has; with NVVM IR, LTO-IR or Tile IR beside them, pack names that. The releases are the build's own, those that `make check-ptxas`
# has fetched, and $FATBINARIES.
set -eu
. tests/lib/lib.sh
needs add.f32 sm_120
d=$scratch/in
mkdir "$d"
grep -P '^add\.f32\t' "$BUILD/gen/keys.txt" >"$d/keys"
printf 'BC\300\336 of NVVM' >"$scratch/nvvm"
printf '\355CN\177\001C\002\203 of LTO-IR' >"$scratch/lto"
printf '\177TileIR\000\015\001\000\000 of a module' >"$scratch/tile"
container() { # KIND=FILE...: of the build's cubins, and of these
    local images=() a w
    for a in $(cut -f1 "$BUILD/gen/archs.txt"); do images+=("--image3=kind=elf,sm=${a#sm_},file=$BUILD/cubin/add.f32.$a.cubin"); done
    for w; do images+=("--image3=kind=${w%%=*},sm=120,file=${w#*=}"); done
    "$fatbinary" -64 --compress-mode=none --create="$d/add.f32.fatbin" "${images[@]}"
}
packs() {
    cp "$BUILD"/cubin/add.f32.*.log "$d"
    mkdir -p "$scratch/packed"
    "$BUILD/pack-bin/pack" --keys "$d/keys" --archs "$BUILD/gen/archs.txt" --spills "$BUILD/gen/spills.txt" --fatbins "$d" --logs "$d" \
        --spares "$BUILD/spare" --spare-logs "$BUILD/spare" --out "$scratch/packed"
}
refused() { # NAME WHAT FILE: pack refuses a container that has the file beside the cubins
    if container "$3" 2>"$scratch/said"; then
        refuses "$1" 1 "add.f32 sm_120: holds $2, which the driver would compile" packs
    else
        skip "$1" "$(head -n 1 "$scratch/said" | cut -c1-100)"
    fi
}
for fatbinary in "$(sed -n 's/^CUDA_DIR := //p' "$BUILD/setup.mk")/bin/fatbinary" "$BUILD"/ptxas/*/bin/fatbinary ${FATBINARIES:-}; do
    [ -x "$fatbinary" ] || continue
    echo "by fatbinary $("$fatbinary" --version | sed -n 's/.*, V\([0-9.]*\).*/\1/p'):"
    container
    ok_if "a container of cubins is byte for byte that of the build" "other bytes" cmp "$d/add.f32.fatbin" "$BUILD/fatbin/add.f32.fatbin"
    succeeds "pack reads a container of cubins" packs
    refused "NVVM IR in a container is refused" "NVVM IR or LTO-IR" nvvm="$scratch/nvvm"
    refused "LTO-IR in a container is refused" "NVVM IR or LTO-IR" nvvm="$scratch/lto"
    refused "Tile IR in a container is refused" "Tile IR" tileir="$scratch/tile"
done
finish

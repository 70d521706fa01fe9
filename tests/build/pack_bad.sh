#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# pack_bad.sh: pack gives the same bytes for the same inputs, and refuses lists, containers and logs that do not fit each other,
# by name and without writing anything. It packs three keys of $BUILD.
set -eu
. tests/lib/lib.sh
needs accumulate.f32 add.f32
pack=$BUILD/pack-bin/pack
spilling=$(cut -f1 "$BUILD/gen/spills.txt" | head -n 1)
names="accumulate.f32 add.f32 $spilling"
d=$scratch/in
spares=$(awk -F'\t' '$6 == 1 { print $1 }' "$BUILD/gen/archs.txt") # archs that have spare code

afresh() { # inputs as make has them
    rm -rf "$d" "$scratch/packed"
    mkdir -p "$d/spare" "$scratch/packed"
    for k in $names; do
        grep -P "^\Q$k\E\t" "$BUILD/gen/keys.txt" >>"$d/keys"
        cp "$BUILD/fatbin/$k.fatbin" "$BUILD/cubin/$k".*.log "$d"
        [ -z "$spares" ] || cp "$BUILD/spare/$k".{fatbin,*.log} "$d/spare"
    done
    cp "$BUILD/gen/archs.txt" "$d/archs"
    cp "$BUILD/gen/spills.txt" "$d/spills"
}
spare_options=(--spares "$d/spare" --spare-logs "$d/spare")
run() { # OPTION...
    "$pack" --keys "$d/keys" --archs "$d/archs" --spills "$d/spills" --fatbins "$d" --logs "$d" --out "$scratch/packed" \
        "${spare_options[@]}" "$@"
}
# bad NAME STATUS REGEX: what was changed since afresh is refused.
bad() {
    refuses "$1" "$2" "$3" run
    if [ -n "$(ls -A "$scratch/packed")" ]; then not_ok "$1, and writes nothing" "$(ls "$scratch/packed")"; fi
    afresh
}
edit() { sed -i -E "$2" "$d/$1"; } # FILE SED-EXPRESSION

afresh
arch=$(head -n 1 "$d/archs" | cut -f1)
log=accumulate.f32.$arch.log
run
for f in index.bin blobs.bin MANIFEST; do cp "$scratch/packed/$f" "$scratch/$f"; done
for k in $names; do
    if diff <(grep "^$k " "$scratch/MANIFEST") <(grep "^$k " "$BUILD/pack/MANIFEST"); then ok "pack packs $k"; else not_ok "pack packs $k" "other lines in MANIFEST"; fi
done
rm -r "$scratch/packed"
mkdir "$scratch/packed"
run --manifest "$scratch/other"
for f in index.bin blobs.bin; do
    if cmp -s "$scratch/$f" "$scratch/packed/$f"; then ok "pack gives the same bytes of $f again"; else not_ok "pack gives the same bytes of $f again" "other bytes"; fi
done
if cmp -s "$scratch/MANIFEST" "$scratch/other" && [ ! -e "$scratch/packed/MANIFEST" ]; then ok "pack --manifest writes the manifest"; else not_ok "pack --manifest writes the manifest" "$(ls "$scratch/packed")"; fi

# The last key is for an arch that this build lacks: it takes no byte.
afresh
last=${names##* }
sed -i -E '$s/\t75\t/\tsm_100a\t/' "$d/keys"
rm -f "$d/$last.fatbin" "$d/spare/$last.fatbin"
run
bytes=0
for f in "$d"/{,spare/}{accumulate,add}.f32.fatbin; do
    [ ! -e "$f" ] || bytes=$(((bytes + 63) / 64 * 64 + $(stat -c %s "$f")))
done
if [ "$(stat -c %s "$scratch/packed/blobs.bin")" = $bytes ] && [ $((bytes % 64)) != 0 ] &&
    ! grep -q "^$last " "$scratch/packed/MANIFEST"; then
    ok "pack takes a key of no arch of this build"
else
    not_ok "pack takes a key of no arch of this build" "$(stat -c %s "$scratch/packed/blobs.bin") bytes for $bytes of containers"
fi

afresh
refuses "pack without options is refused" 2 'usage: pack' "$pack"
refuses "pack refuses an option without value" 2 'usage: pack' run --manifest
refuses "pack refuses an unknown option" 2 'usage: pack' run --keyz x
refuses "pack refuses a folder that is not there" 1 'cannot create /nonexistent/MANIFEST' run --manifest /nonexistent/MANIFEST
afresh
rm "$d/keys"
bad "pack refuses a missing key list" 2 'cannot open .*/keys'
: >"$d/keys"
bad "pack refuses an empty key list" 2 'key list is empty'
edit keys 's/\t256\t/\t0256\t/'
bad "pack refuses a number with a leading zero" 2 'key list, line 1: malformed'
edit keys 's/\t256\t/\t-1\t/'
bad "pack refuses a negative number" 2 'key list, line 1: malformed'
edit keys 's/\t256\t/\t2048\t/'
bad "pack refuses too many threads" 2 'key list, line 1: malformed'
edit keys 's/nj_accumulate/nj_accumulates/'
bad "pack refuses an entry that is not the key's" 2 'key list, line 1: malformed'
edit keys 's/8:8,16:8/8:8,12:8/'
bad "pack refuses parameters one on the other" 2 'key list, line 1: malformed'
edit keys 's/,16:8/,16/'
bad "pack refuses a parameter without size" 2 'key list, line 1: malformed'
edit keys '1{h;d};2{G}'
bad "pack refuses keys out of order" 2 'key list, line 2: accumulate.f32 is not in order'
: >"$d/archs"
bad "pack refuses a list without archs" 2 'arch list has 0 lines'
edit archs '1s/^sm_/sm-/'
bad "pack refuses an arch by another name" 2 'arch list, line 1: malformed'
edit archs '1s/\t-\t/\tx\t/'
bad "pack refuses an arch with an unknown suffix" 2 'arch list, line 1: malformed'
edit archs '1s/\t[01]$/\t2/'
bad "pack refuses an arch whose flag is neither 0 nor 1" 2 'arch list, line 1: malformed'
if [ "$(wc -l <"$d/archs")" -gt 1 ]; then
    edit archs '1{h;d};2{G}'
    bad "pack refuses archs out of order" 2 'arch list, line 2: sm_[0-9]+ is not in order'
fi
rm "$d/spills"
bad "pack refuses a missing list of spills" 2 'cannot open .*/spills'
rm "$d/add.f32.fatbin"
bad "pack refuses a missing container" 2 'cannot open .*/add.f32.fatbin'
rm "$d/add.f32.fatbin"
mkdir "$d/add.f32.fatbin"
bad "pack refuses a folder as container" 2 'add.f32.fatbin is not a regular file'
cp "$d/accumulate.f32.fatbin" "$d/add.f32.fatbin"
bad "pack refuses another key's container" 1 'add.f32'
head -c 10 "$BUILD/fatbin/add.f32.fatbin" >"$d/add.f32.fatbin"
bad "pack refuses a container that is cut short" 1 'add.f32.*fatbin ends inside its header'
printf 'x' | dd of="$d/add.f32.fatbin" conv=notrunc status=none
bad "pack refuses a container of another kind" 1 'add.f32.*fatbin has magic'
printf '\7' | dd of="$d/add.f32.fatbin" seek=4 bs=1 conv=notrunc status=none
bad "pack refuses a container of another version" 1 'add.f32.*unknown version'
version() { grep -aoE -m1 'V1[0-9]\.[0-9]+\.[0-9]+' "$1" | head -n 1; }
was=$(version "$d/add.f32.fatbin")
sed -i "0,/$was/s//${was%?}x/;s/${was%?}x/${was%?}$(((${was: -1} + 1) % 10))/" "$d/add.f32.fatbin"
bad "pack refuses code of one arch by two releases of ptxas" 1 "add.f32 *$arch.*: assembled by ptxas [0-9.]+, other keys by ptxas ${was#V}: rebuild this arch"
if [ -n "$spares" ]; then
    rm "$d/spare/add.f32.fatbin"
    bad "pack refuses missing spare code" 2 'cannot open .*/spare/add.f32.fatbin'
    cp "$d/spare/accumulate.f32.fatbin" "$d/spare/add.f32.fatbin"
    bad "pack refuses another key's spare code" 1 'add.f32 at -O1 .*the kernel is nj_accumulate_f32, not nj_add_f32'
    cp "$d/add.f32.fatbin" "$d/spare/add.f32.fatbin"
    bad "pack refuses spare code for an arch that has none" 1 "add.f32 at -O1 .*holds code for an arch that nobody asks for"
    spare_options=()
    bad "pack without the folder of spare code is refused" 2 'accumulate.f32 at -O1 is wanted: say --spares and --spare-logs'
    spare_options=(--spares "$d/spare" --spare-logs "$d/spare")
fi
rm "$d/$log"
bad "pack refuses a missing log" 1 "accumulate.f32 *$arch.*cannot open .*$log"
cp "$d/add.f32.$arch.log" "$d/$log"
bad "pack refuses another kernel's log" 1 'is not what ptxas -v prints for this kernel'
edit "$log" 's/0 bytes spill stores/12 bytes spill stores/'
bad "pack refuses a spill without excuse" 1 'accumulate.f32 *'"$arch"'.* 12 bytes spilled; the contract excuses 0'
: >"$d/spills"
[ -z "$spilling" ] || bad "pack refuses a spill whose excuse was withdrawn" 1 "$spilling .*excuses 0 \(allow_spill\)"

# Containers whose code is compressed are read, too.
cuda=$(sed -n 's/^CUDA_DIR := *//p' "$BUILD/setup.mk")
images=()
while IFS=$'\t' read -r name _; do
    images+=("--image3=kind=elf,sm=${name#sm_},file=$BUILD/cubin/add.f32.$name.cubin")
done <"$d/archs"
"$cuda/bin/fatbinary" -64 --compress-mode=size --compress-all --create="$d/add.f32.fatbin" "${images[@]}"
run
if cmp -s "$scratch/MANIFEST" "$scratch/packed/MANIFEST"; then ok "pack refuses compressed code"; else not_ok "pack refuses compressed code" "$(diff "$scratch/MANIFEST" "$scratch/packed/MANIFEST" | head -3)"; fi
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# pack_shaders_bad.sh: pack-shaders gives the same bytes for the same shaders and refuses, by name, those that a device may lack
# something for, whose results have no fixed order, or that are not what the launcher fills; blobcheck names the same in a binary.
set -eu
. tests/lib/lib.sh
[ -s "$BUILD/pack/shaders.txt" ] || { skip "everything" "this build lacks shaders"; finish; exit; }
pack=$BUILD/pack-bin/pack-shaders
d=$scratch/in
mkdir "$d" "$scratch/packed"
block() { printf 'own.a\tnj_own_a\t64\t0\t75\t%s\n' "$1" >"$d/keys"; } # of the launcher: bytes, offsets
block "24	0:8,8:4,12:12"

# compile BODY [DECLARATION]: the shader of own.a
compile() {
    cat >"$d/own.a.comp" <<GLSL
#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_atomic_float : enable
#extension GL_EXT_shader_explicit_arithmetic_types_float64 : enable
layout(local_size_x = ${threads:-64}) in;
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer words { uint v[]; };
layout(push_constant, scalar) uniform block { words x; layout(offset = 8) int n; layout(offset = 12) uint grid[3]; };
${2-}
void main() { ${1-} }
GLSL
    glslc --target-env=vulkan1.3 --target-spv="${spv:-spv1.5}" -O ${debug-} -o "$d/own.a.spv" "$d/own.a.comp"
}
run() { "$pack" --keys "$d/keys" --shaders "$d" --compiler "shaderc 1" --out "$scratch/packed" "$@"; }
# bad NAME REGEX: what was compiled is refused, and nothing is written.
bad() {
    refuses "$1" 1 "^pack-shaders: own.a spirv: $2" run
    if [ -n "$(ls -A "$scratch/packed")" ]; then not_ok "$1, and writes nothing" "$(ls "$scratch/packed")"; fi
}
store='x.v[gl_LocalInvocationIndex] = uint(n) + grid[0];'

compile "$store atomicAdd(x.v[0], 1u);"
bad "pack-shaders refuses an atomic" 'instruction [0-9]+ is an atomic: its order'
threads=32 compile "$store"
bad "pack-shaders refuses another workgroup" 'workgroups of 32 x 1 x 1, launched with 64 threads'
block "28	0:8,8:4,16:12"
compile "$store"
bad "pack-shaders refuses another block of constants" 'push constant 2 is 12 bytes at 12, the launcher gives 12 bytes at 16'
block "24	0:8,8:4,12:8,20:4"
bad "pack-shaders refuses another number of parameters" 'it has 3 push constants, the launcher gives 4'
block "24	0:8,8:4,12:12"
compile "many[gl_LocalInvocationIndex] = n; barrier(); x.v[0] = uint(many[63 - gl_LocalInvocationIndex]);" 'shared int many[8193];'
bad "pack-shaders refuses too much shared memory" '32772 bytes of shared memory exceed 32768'
compile 'x.v[0] = uint(double(n) * 0.1);'
bad "pack-shaders refuses double precision" 'capability 10 is not one that the runtime asks for'
compile 'bound[0] = uint(n);' 'layout(set = 0, binding = 0) buffer other { uint bound[]; };'
bad "pack-shaders refuses an array that nobody binds" 'it has a variable that nobody binds'
compile "$store"
sed -i 's/main/mein/' "$d/own.a.spv"
bad "pack-shaders refuses another entry point" 'it is not one compute shader named main'
debug=-g compile "$store"
bad "pack-shaders refuses a shader with text of its source" 'it holds text of its source'
spv=spv1.6 compile "$store"
bad "pack-shaders refuses a newer SPIR-V" 'SPIR-V 1.6 is newer than 1.5'
compile "$store"
printf '\377\377' | dd of="$d/own.a.spv" bs=1 seek=22 conv=notrunc status=none # words of the first instruction
bad "pack-shaders refuses an instruction of no length" 'the shader has an instruction that reaches past its end'
echo text >"$d/own.a.spv"
bad "pack-shaders refuses a text" 'the shader is not a SPIR-V module'
rm "$d/own.a.spv"
refuses "pack-shaders refuses a module that is not there" 2 '^pack-shaders: cannot open' run

compile "$store"
run
cp -r "$scratch/packed" "$scratch/first"
rm "$scratch/packed"/*
run
succeeds "pack-shaders gives the same bytes again" diff -r "$scratch/first" "$scratch/packed"

# In the binary: one byte of a shader, or of its index, at a time.
offset_of() { echo $((16#$(readelf -SW "$BUILD/nojit" | sed -nE "s/.* \.$1 +PROGBITS +[0-9a-f]+ ([0-9a-f]+) .*/\1/p"))); }
damaged() { # NAME SECTION BYTE REGEX
    local at
    at=$(offset_of "$2")
    cp "$BUILD/nojit" "$scratch/damaged"
    printf '\377' | dd of="$scratch/damaged" bs=1 seek=$((at + $3)) conv=notrunc status=none
    refuses "$1" 1 "^blobcheck: .*$4" "$BUILD/blobcheck" "$scratch/damaged" --quiet
}
damaged "blobcheck names a damaged shader" nojit.shaders 400 'the hash of its module is not the recorded one'
damaged "blobcheck names a damaged index of shaders" nojit.shader_index 100 'spirv|shaders: |the hash of the index'

# A GEMM that agrees with its index and has the right hashes, but is not what GEMMs are launched with.
gemm=gemm.nt.lp.large
mkdir "$scratch/modules" "$scratch/planted"
# plant NAME REGEX SED [FROM TO]...: sed edits the GEMM's line in the list of keys; of its module, the words of 32 bits FROM become TO.
plant() {
    local name=$1 regex=$2 keys=$3 section
    shift 3
    cp "$BUILD"/spirv/*.spv "$scratch/modules"
    cp "$scratch/modules/$gemm.spv" "$scratch/modules/${gemm/large/lazer}.spv"
    sed -E "/^$gemm	/{$keys}" "$BUILD/pack/shaders.txt" >"$scratch/keys"
    python3 - "$scratch/modules/$gemm.spv" "$@" <<'PY'
import struct, sys
path, edits = sys.argv[1], sys.argv[2:]
words = lambda text: struct.pack("<%dI" % len(text.split()), *map(int, text.split()))
module = open(path, "rb").read()
for before, after in zip(edits[::2], edits[1::2]):
    assert module.count(words(before)) == 1, (before, module.count(words(before)))
    module = module.replace(words(before), words(after))
open(path, "wb").write(module)
PY
    "$pack" --keys "$scratch/keys" --shaders "$scratch/modules" --out "$scratch/planted" \
        --compiler "$("$BUILD/blobcheck" "$BUILD/nojit" | sed -n 's/.*bytes of SPIR-V, //p')"
    cp "$BUILD/nojit" "$scratch/damaged"
    for section in shader_index shaders; do
        dd if="$scratch/planted/$section.bin" of="$scratch/damaged" bs=4096 oflag=seek_bytes seek="$(offset_of "nojit.$section")" \
            conv=notrunc status=none
    done
    if [ -z "$regex" ]; then
        succeeds "$name" "$BUILD/blobcheck" "$scratch/damaged" --quiet
    else
        refuses "$name" 1 "^blobcheck: $regex" "$BUILD/blobcheck" "$scratch/damaged" --quiet
    fi
}
plant "blobcheck accepts shaders that were packed again" '' ''
# OpExecutionMode LocalSize (17), and OpMemberDecorate Offset (35) of member 11, the grid.
plant "blobcheck names a GEMM with another workgroup" "$gemm spirv: the index says 128 threads, the launcher 256" 's/	256	/	128	/' '17 256 1 1' '17 128 1 1'
plant "blobcheck names a GEMM with another block of constants" "$gemm spirv: its push constants are not the block that GEMMs are launched with" \
    's/	80	(.*),68:12/	84	\1,72:12/' '11 35 68' '11 35 72'
plant "blobcheck names a GEMM that is missing" "$gemm spirv: missing: other GEMMs are there" 's/large/lazer/g'
plant "blobcheck names a shader that nobody launches" "${gemm/large/lazer} spirv: no launcher asks for it" 's/large/lazer/g'
finish

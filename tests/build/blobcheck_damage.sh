#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# blobcheck_damage.sh: blobcheck passes what is whole, and names every fault that damage plants. $BUILD holds nojit,
# blobcheck and damage; NOJIT_BINARY checks another binary. FLIPS (default 300) is how many random bits are flipped.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
binary=${NOJIT_BINARY:-$BUILD/nojit}
blobcheck=$BUILD/blobcheck
: "${FLIPS:=300}"
: "${SEED:=1}"
key=rmsnorm_fwd.lp
other=rmsnorm_fwd.f32

read -ra archs <<<"$("$blobcheck" "$binary" | sed -n 's/^key .* shared  *//p')"
sm=sm_90a
[[ " ${archs[*]} " == *" $sm "* ]] || sm=${archs[-1]}
for other_sm in "${archs[@]}"; do [ "$other_sm" = "$sm" ] || break; done

number=${sm//[!0-9]/}
source=$binary

plant() { # NAME [EXTRA]: leaves the damaged binary in $scratch/damaged
    "$BUILD/damage" "$1" "$source" "$scratch/damaged" $key $other "$number" "${other_sm//[!0-9]/}" ${2+"$2"}
}

# catches "FAULT is found" REGEX [EXTRA]: with that fault planted blobcheck exits with 1 and says so in one of its lines.
catches() {
    local name=$1 pattern=$2
    shift 2
    if plant "${name%% *}" "$@" >"$scratch/planted" 2>&1; then
        refuses "$name" 1 "^blobcheck: .*$pattern" "$blobcheck" "$scratch/damaged"
    else
        not_ok "$name" "cannot plant it: $(cat "$scratch/planted")"
    fi
}

# passes NAME COMMAND...: exits with 0 and says nothing on stderr.
passes() {
    local name=$1
    shift
    if "$@" >"$scratch/out" 2>"$scratch/err" && [ ! -s "$scratch/err" ]; then
        ok "$name"
    else
        not_ok "$name" "$(head -c 300 "$scratch/err")"
    fi
}

# ---- what is whole ----
# From a checkout, wherever it is called: the binary that is named, or that of the build.
passes "tools/blobcheck accepts a binary" tools/blobcheck "$binary" --quiet
passes "tools/blobcheck accepts the build's binary" env -C "$scratch" BUILD="$(realpath "$BUILD")" "$PWD/tools/blobcheck" --quiet
passes "blobcheck accepts the binary" "$blobcheck" "$binary"
strip -s -o "$scratch/stripped" "$binary" && passes "blobcheck accepts the stripped binary" "$blobcheck" "$scratch/stripped"
plant none
passes "blobcheck accepts a binary of two keys" "$blobcheck" "$scratch/damaged"
plant other-host
passes "blobcheck accepts a binary of two keys for another host" "$blobcheck" "$scratch/damaged"
plant none
mv "$scratch/damaged" "$scratch/two"
source=$scratch/two # small: the faults go into this one
passes "blobcheck --json accepts the binary" "$blobcheck" "$binary" --json
passes "blobcheck --arch accepts the binary" "$blobcheck" "$binary" --arch "$sm"

# ---- what is no nojit binary ----
: >"$scratch/empty"
head -c 100000 "$binary" >"$scratch/head"
refuses "blobcheck refuses an empty file" 2 "not an ELF file" "$blobcheck" "$scratch/empty"
refuses "blobcheck refuses a text file" 2 "not an ELF file" "$blobcheck" LICENSE
refuses "blobcheck refuses another program" 2 "holds no kernels" "$blobcheck" "$(type -P true)"
refuses "blobcheck refuses a folder" 2 "not a regular file" "$blobcheck" tests
refuses "blobcheck refuses a file that is not there" 2 "cannot open" "$blobcheck" "$scratch/none"
refuses "blobcheck refuses half a binary" 2 "past the end of the file" "$blobcheck" "$scratch/head"
says() { # NAME STATUS SENTENCE COMMAND...: exits with STATUS and says that sentence, alone
    local name=$1 want=$2 sentence=$3 got=0
    shift 3
    "$@" >"$scratch/out" 2>"$scratch/err" || got=$?
    if [ "$got" = "$want" ] && [ "$(cat "$scratch/err")" = "$sentence" ]; then ok "$name"; else not_ok "$name" "$got: $(head -c 300 "$scratch/err")"; fi
}
says "blobcheck refuses an unknown option" 2 "blobcheck: unknown option --frobnicate; see blobcheck --help" "$blobcheck" --frobnicate
says "blobcheck refuses an option without its value" 2 "blobcheck: --arch needs a value" "$blobcheck" "$binary" --arch
says "blobcheck refuses two binaries" 2 "blobcheck: unexpected argument b: one binary is checked at a time" "$blobcheck" a b
says "blobcheck refuses an arch that is not embedded" 1 "blobcheck: sm_88: the binary holds no code for this arch, but for ${archs[*]}" \
    "$blobcheck" "$binary" --arch sm_88
says "blobcheck refuses a model without a config" 2 "blobcheck: $scratch/config.json: No such file or directory" \
    "$blobcheck" "$binary" --model "$scratch"

# ---- code that is missing, twice, or not asked for ----
catches "arch-removed is found" "$key $sm: missing: no machine code"
catches "code-removed is found" "$key $sm: missing: no machine code"
catches "record-removed is found" "$key $sm: missing in the index"
catches "key-removed is found" "$key: missing: not in the index"
catches "key-twice is found" "$key: present twice in the index"
catches "key-order is found" "the index is not sorted"
catches "key-unasked is found" "$key: in the index, but no launcher asks for it"
catches "code-twice is found" "$key $sm: present twice"
catches "label-unasked is found" "$key sm_86a?: holds code for an arch that nobody asks for"
catches "ptx-added is found" "$key sm_[0-9]+: holds PTX"
catches "tile-ir-added is found" "$key sm_[0-9]+: holds Tile IR, which the driver would compile"
catches "lto-ir-added is found" "$key sm_[0-9]+: holds NVVM IR or LTO-IR, which the driver would compile"

# ---- a key for one arch alone ----
plant only-here
passes "blobcheck accepts a key for $sm alone" "$blobcheck" "$scratch/damaged"
if [ "$("$blobcheck" "$scratch/damaged" | grep -c "^excluded: $key on .*, its contract asks for $sm alone")" = $((${#archs[@]} - 1)) ]; then
    ok "blobcheck prints the exclusions of a key for one arch"
else
    not_ok "blobcheck prints the exclusions of a key for one arch" "$("$blobcheck" "$scratch/damaged" | grep excluded | head -n 3)"
fi
if [ "$other_sm" != "$sm" ]; then
    catches "only-elsewhere is found" "$key $other_sm: holds code for an arch that nobody asks for"
    catches "only-elsewhere is found" "$key $other_sm: recorded in the index, but nobody asks for it"
    catches "only-lost is found" "$key $sm: missing: no machine code"
    catches "only-lost is found" "$key $sm: missing in the index"
fi

# ---- the wrong code, its hash recorded as if it were right ----
if [ "$other_sm" != "$sm" ]; then
    catches "wrong-sm is found" "$key $sm: the code is for ${other_sm%[af]}"
fi
catches "other-code is found" "$key $sm: the kernel is nj_rmsnorm_fwd_f32, not nj_rmsnorm_fwd_lp"
if [ "$sm" = "sm_$number" ] && [ "$number" -ge 90 ]; then # a plain arch that has an `a` form
    catches "suffix-label is found" "$key $sm: wrong suffix: the fatbin entry is labelled ${sm}a"
    catches "suffix-note is found" "$key $sm: wrong suffix or SM: ptxas assembled it for ${sm}a"
    catches "suffix-mark is found" "$key $sm: wrong suffix: the code is marked as for this exact chip"
    cuda=$(sed -n 's/^CUDA_DIR := *//p' "$BUILD/setup.mk" 2>/dev/null || true)
    if [ -x "$cuda/bin/ptxas" ] && [ -f "$BUILD/ptx/$key.$sm.ptx" ]; then
        "$cuda/bin/ptxas" -arch="${sm}a" -o "$scratch/suffix.cubin" "$BUILD/ptx/$key.$sm.ptx"
        catches "code-of-file is found" "$key $sm: wrong suffix: the code is marked as for this exact chip" "$scratch/suffix.cubin"
    fi
fi
catches "lz4-label is found" "$key: fatbin entry is compressed with LZ4"
catches "cubin-machine is found" "$key $sm: the cubin is machine code for ELF machine 62"
catches "cubin-abi is found" "$key $sm: the cubin has an unknown cubin ABI"
catches "virtual-sm is found" "$key $sm: the code was compiled from PTX for compute_75"
catches "param-offset is found" "$key $sm: parameter [0-9]+ is [0-9]+ bytes at 1024"
catches "param-bytes is found" "$key $sm: the kernel takes 8 bytes of parameters"
catches "launch-bound is found" "$key $sm: launch bound 32, launched with [0-9]+ threads"
catches "registers is found" "$key $sm: 65535 registers"
catches "stack is found" "$key $sm: registers, shared memory, stack or size are not the recorded ones"
catches "no-kernel is found" "$key $sm: the cubin holds 0 kernels"
[ "$number" -lt 90 ] || catches "undefined is found" "$key $sm: symbol xnv.reservedSmem.* is not defined"
catches "ptx-text is found" "$key $sm: the cubin carries PTX text"
catches "container-cut is found" "$key: fatbin says"
catches "code-cut is found" "$key: fatbin entry for sm_[0-9]+ is truncated"
catches "code-byte is found" "$key: the hash of its container is not the recorded one"

# ---- an index that does not fit ----
catches "assembler is found" "$key $sm: assembled by ptxas .*, the index says ptxas"
catches "min-sm is found" "$key: the index says [0-9]+ as lowest SM, the launcher 75"
catches "index-threads is found" "$key: the index says [0-9]+ threads, the launcher [0-9]+"
catches "index-param is found" "$key: the index says parameter 1 is 8 bytes at 16, the launcher 8 at 8"
catches "index-entry is found" "$key: the index names entry nj_smsnorm_fwd_lp"
catches "index-registers is found" "$key sm_[0-9]+: registers, shared memory"
catches "index-reserved is found" "$key: reserved fields"
catches "shared-limit is found" "$key $sm: [0-9]+ static and 0 dynamic bytes of shared memory exceed 8"
if [ ${#archs[@]} -gt 1 ]; then
    catches "arch-order is found" "listed twice or out of order"
fi
catches "index-hash is found" "the hash of the index is not the recorded one"
catches "index-cut is found" "the index says .* truncated"
catches "index-magic is found" "does not begin with its magic"
catches "keys-cut is found" "key list is empty or does not end"
catches "keys-zero is found" "key list is empty or does not end"
catches "keys-param is found" "the index says parameter [0-9]+ is 4 bytes"

# ---- spare code ----
spare=$("$blobcheck" "$binary" | sed -n 's/^blobcheck: spare code.* for \(sm_[0-9]*\).*/\1/p')
in_spare() { # as catches, with the SM of spare code
    local number=${spare#sm_}
    catches "$@"
}
if [ -n "$spare" ]; then
    in_spare "in-spare:code-removed is found" "$key at -O1 $spare: missing: no machine code"
    in_spare "in-spare:code-twice is found" "$key at -O1 $spare: present twice"
    in_spare "in-spare:ptx-added is found" "$key at -O1 sm_[0-9]+: holds PTX"
    in_spare "in-spare:label-unasked is found" "$key at -O1 sm_86: holds code for an arch that nobody asks for"
    in_spare "in-spare:container-cut is found" "$key at -O1: fatbin says"
    in_spare "in-spare:lz4-label is found" "$key at -O1: fatbin entry is compressed with LZ4"
    in_spare "spare-exchanged is found" "$key at -O1 $spare: the kernel is nj_rmsnorm_fwd_f32, not nj_rmsnorm_fwd_lp"
    in_spare "spare-unasked is found" "$key at -O1 $spare: holds code for an arch that nobody asks for"
    in_spare "spare-level is found" "$key at -O1 $spare: it was assembled at -O3, not -O1"
    in_spare "spare-byte is found" "$key at -O1: the hash of its container is not the recorded one"
    in_spare "assembler is found" "$key at -O1 $spare: assembled by ptxas .*, the index says ptxas"
else
    skip "in-spare:code-removed is found" "this binary has no spare code"
fi

# ---- bytes that nobody accounts for ----
catches "padding is found" "the padding before its container is not zero"
catches "blobs-tail is found" "containers end at"
catches "blobs-cut is found" "reaches past the end of the blobs"
catches "stray-section is found" "section .nv_fatbin holds CUDA code of others"
catches "stray-fatbin is found" "a fatbin lies outside"
catches "stray-cubin is found" "a cubin lies outside"
catches "stray-ptx is found" "PTX text lies outside"

for ir in '\177TileIR\000\015\005' '\355CN\177\001C\002'; do
    printf "x${ir}x" >"$scratch/mark"
    catches "stray-file is found" "(Tile |LTO-)IR lies outside" "$scratch/mark"
done

# ---- a compiler that makes code at run time: text of it, then the compiler itself, stripped ----
while read -r text; do
    printf 'x%sx' "$text" >"$scratch/mark"
    catches "stray-file is found" "a JIT compiler: '.*' is a mark of" "$scratch/mark"
done <<'END'
x86 64bit (little endian + unaligned)
sljit_create_compiler
pcre2_jit_compile_8
LuaJIT 2.1
luaJIT_BC_
N5Xbyak5ErrorE
onednn_verbose
LLVM ERROR: out of memory
Cuda compilation tools, release 13.0
nvrtcCompileProgram
nvJitLinkCreate
nvPTXCompilerCreate
gcc_jit_context_compile
libpcre2-8.so.0
libluajit-5.1.so.2
libLLVM-14.so
libnvrtc.so.13
libnvJitLink.so.13
libnvidia-ptxjitcompiler.so.1
libgccjit.so.0
END
echo "a pattern of 64 bits, little endian" >"$scratch/mark"
plant stray-file "$scratch/mark"
passes "blobcheck accepts text that only resembles a mark" "$blobcheck" "$scratch/damaged"
if echo 'int pcre2_jit_compile_8(void *, unsigned); int main(void) { return pcre2_jit_compile_8(0, 1); }' |
    "${CC:-cc}" -x c -s -o "$scratch/jit" - -l:libpcre2-8.a 2>"$scratch/err"; then
    catches "stray-file is found" "mark of sljit, the JIT of PCRE2" "$scratch/jit"
fi

catches "segment-writable is found" "lies in a writable segment"
catches "segment-elsewhere is found" "is not what the loader maps"

# ---- any bit: caught; any bit with hashes made to fit: no crash ----
missed=
crashed=
for ((i = 0; i < FLIPS; i++)); do
    where=$(plant flip "$SEED-$i")
    status=0
    "$blobcheck" --quiet "$scratch/damaged" >/dev/null 2>&1 || status=$?
    [ $status = 1 ] || missed="$SEED-$i ($where): status $status"
    plant flip-deep "$SEED-$i"
    status=0
    "$blobcheck" --json "$scratch/damaged" >/dev/null 2>"$scratch/err" || status=$?
    [ $status -le 1 ] && ! grep -q "Sanitizer\|runtime error" "$scratch/err" || crashed="$SEED-$i: status $status"
done
[ -z "$missed" ] && ok "blobcheck notices each of $FLIPS flipped bits" || not_ok "blobcheck notices each of $FLIPS flipped bits" "passed with seed $missed"
[ -z "$crashed" ] && ok "blobcheck survives $FLIPS bits flipped deep in machine code" || not_ok "blobcheck survives $FLIPS bits flipped deep in machine code" "seed $crashed"
finish

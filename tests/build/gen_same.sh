#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gen_same.sh: the same contracts give the same bytes; what did not change is not touched; one op's files do not
# depend on another's; exclusions and selections are data. Over the contracts of this tree.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
GEN=${GEN:-$BUILD/gen-bin/gen}
CONTRACTS=${CONTRACTS:-contracts/kernels}
KERNELS=${KERNELS:-kernels}

# generate CONTRACTS KERNELS OUT [ARGUMENT...]
generate() {
    local contracts=$1 kernels=$2 out=$3
    shift 3
    "$GEN" --contracts "$contracts" --kernels "$kernels" --archs-file contracts/archs.yaml --archs default \
        --out "$out" "$@"
}
# check NAME REASON COMMAND...; a leading ! is understood.
check() {
    local name=$1 reason=$2
    shift 2
    local want=0 got=0
    if [ "$1" = ! ]; then
        want=1
        shift
    fi
    "$@" || got=1
    if [ $got = $want ]; then ok "$name"; else not_ok "$name" "$reason"; fi
}
times() { find "$1" -type f ! -name list.mk -printf '%p %T@\n' | sort; }

generate "$CONTRACTS" "$KERNELS" "$scratch/a"
generate "$CONTRACTS" "$KERNELS" "$scratch/b"
check "the same contracts give the same bytes" "two runs differ" diff -r "$scratch/a" "$scratch/b"
times "$scratch/a" >"$scratch/before"
touch -d '1 hour ago' "$scratch/a/list.mk"
generate "$CONTRACTS" "$KERNELS" "$scratch/a"
times "$scratch/a" >"$scratch/after"
check "gen leaves a file untouched that is the same" "a file was written again" cmp -s "$scratch/before" "$scratch/after"
check "gen writes list.mk last" "list.mk was not written" [ "$scratch/a/list.mk" -nt "$scratch/a/ops.c" ]
check "gen leaves no temporary file" "a temporary file is left" [ -z "$(find "$scratch/a" -name '*.tmp-*')" ]
check "what gen writes names no folder of this machine" "the output names a folder of this machine" ! grep -rqF -e "$PWD" -e "$scratch" "$scratch/a"
generate "$CONTRACTS" "$KERNELS" "$scratch/c" --archs "sm_121 sm_90a sm_89 sm_120 sm_75"
check "the order of --archs does not matter" "the order of --archs matters" diff -r "$scratch/a" "$scratch/c"

# A contract in front of all others.
mkdir "$scratch/contracts"
cp "$CONTRACTS"/*.yaml "$scratch/contracts"
cp -r "$KERNELS" "$scratch/kernels"
sed -e 's/^op: add$/op: aaa/' -e '/^falsifiers:/,$d' "$CONTRACTS/add.yaml" >"$scratch/contracts/aaa.yaml"
cp "$KERNELS/add.cu" "$scratch/kernels/aaa.cu"
cp "$KERNELS/ref/add.c" "$scratch/kernels/ref/aaa.c"
generate "$scratch/contracts" "$scratch/kernels" "$scratch/d"
check "an op in front of others changes no other instance" "other instances changed" \
    [ "$(diff -r "$scratch/a/inst" "$scratch/d/inst")" = "Only in $scratch/d/inst: aaa.t256.cu" ]

# The same op for one arch alone: its source is in that arch's folder, and nothing is asked for elsewhere.
mkdir -p "$scratch/kernels/sm_90a"
mv "$scratch/kernels/aaa.cu" "$scratch/kernels/sm_90a/aaa.cu"
echo 'only: sm_90a' >>"$scratch/contracts/aaa.yaml"
generate "$scratch/contracts" "$scratch/kernels" "$scratch/f" >"$scratch/said"
check "gen says that an op is for one arch alone" "the exclusions are not these" [ "$(grep ' aaa' "$scratch/said")" = "$(for key in aaa.f32 aaa.lp; do
    for arch in 75 89 120 121; do echo "excluded: $key on sm_$arch (only sm_90a)"; done
done)" ]
check "an op for one arch alone is compiled for it alone" "other cubins are listed" \
    [ "$(grep -o 'aaa.lp.sm_[0-9a-z]*' "$scratch/f/list.mk" | sort -u)" = aaa.lp.sm_90a ]
check "an op for one arch alone is read from the folder of the arch" "the source is another" grep -q '^NJ_SRC_aaa.lp := .*/sm_90a/aaa.cu$' "$scratch/f/list.mk"
check "keys.txt names the arch of an op for one arch alone" "the arch is not in keys.txt" [ "$(awk '$1 == "aaa.lp" { print $5 }' "$scratch/f/keys.txt")" = sm_90a ]
check "nj_kernels says where an op is for one arch alone" "the arch is not in nj_kernels" \
    [ "$(grep -A 8 '\.key = "aaa\.' "$scratch/f/ops.c" | grep -c '\.only = "sm_90a"')" = 2 ]
check "an op for one arch alone is asked for there alone" "whether the op is there cannot be asked" grep -q '^int nj_aaa_available(const nj_context \*ctx' "$scratch/f/nojit_ops.h"
check "other ops are asked for on all archs" "it can be asked of ops that every arch has" ! grep -q 'nj_add_available' "$scratch/f/nojit_ops.h"
check "KERNELS.md says where an op is for one arch alone" "KERNELS.md does not say it" grep -q '^- Only architecture: sm_90a$' "$scratch/f/KERNELS.md"
generate "$scratch/contracts" "$scratch/kernels" "$scratch/g" --archs sm_90 >"$scratch/said"
check "an op for one arch is not asked for on archs of its family" "sm_90 has what is for sm_90a alone" ! grep -q 'aaa.*cubin' "$scratch/g/list.mk"

# Architectures that are not built by default: the same keys, each with machine code for each, but what is for another arch alone.
generate "$CONTRACTS" "$KERNELS" "$scratch/h" --archs "sm_88 sm_100 sm_103 sm_110" >"$scratch/said"
check "architectures that are not built by default have the keys of the others" "keys differ" cmp -s "$scratch/a/keys.txt" "$scratch/h/keys.txt"
check "each key for all archs has machine code for an arch that is not built by default" "some lack it" \
    [ "$(grep -o '[^/ ]*\.sm_110\.cubin' "$scratch/h/list.mk" | sort -u | wc -l)" = "$(awk '$5 !~ /^sm_/' "$scratch/h/keys.txt" | wc -l)" ]

# A selection keeps every launcher and only its own keys.
generate "$CONTRACTS" "$KERNELS" "$scratch/e" --only 'rope_*'
check "--only changes no header" "launchers are missing" cmp -s "$scratch/a/nojit_ops.h" "$scratch/e/nojit_ops.h"
check "--only leaves the keys that it selects" "other keys are there" \
    [ "$(cut -f1 "$scratch/e/keys.txt" | tr '\n' ' ')" = "rope_bwd.f32 rope_bwd.lp rope_fwd.f32 rope_fwd.lp " ]
check "keys.txt has the feature that the contract of a key names" "the features are not there" \
    [ "$(cut -f1,8 "$scratch/e/keys.txt" | tr '\t\n' '  ')" = "rope_bwd.f32 not qk_norm rope_bwd.lp not qk_norm rope_fwd.f32 not qk_norm rope_fwd.lp not qk_norm " ]
check "keys.txt is sorted by key" "keys.txt is not sorted by key" [ "$(cut -f1 "$scratch/a/keys.txt" | sort)" = "$(cut -f1 "$scratch/a/keys.txt")" ]

# The generated code compiles without a warning.
for d in a e; do
    for f in ops cases; do
        check "what gen writes of $d compiles ($f)" "see above" "${CC:-cc}" -std=c11 -Wall -Wextra -Wshadow -Wundef -Wvla -Wcast-qual \
            -Wstrict-prototypes -Wmissing-prototypes -Wconversion -Wno-sign-conversion -Werror -O1 \
            -I"$scratch/$d" -I. -Iruntime -Ikernels -Iruntime/selftest -c -o "$scratch/$f.o" "$scratch/$d/$f.c"
    done
done
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tier: all
#
# build_settings.sh: what make does with ARCHS, ONLY and touched files, in a build folder of its own (three small ops).
set -eu
. tests/lib.sh
b=$scratch/b
small=(B="$b" ONLY='add colsum cast_*_lp' ARCHS="sm_75 sm_90")
quiet_make() { make --no-print-directory "$@" >"$scratch/make.log" 2>&1; }
kernels="$b/pack/MANIFEST"
cubins() { find "$b/cubin" -newer "$scratch/mark" -name '*.cubin' | wc -l; }

refuses "unknown arch lists the known" 2 'sm_999.*sm_121' make --no-print-directory B="$b" ARCHS=sm_999 "$kernels"
refuses "archs that shadow each other" 2 'sm_90a' make --no-print-directory B="$b" ARCHS="sm_90 sm_90a" "$kernels"
refuses "unknown sanitizer" 2 'SAN=memory is unknown' make --no-print-directory SAN=memory all

if quiet_make "${small[@]}" "$kernels" && [ "$(grep -c ' sm_' "$kernels")" = 8 ]; then
    ok "ONLY and ARCHS give what was asked"
else
    not_ok "ONLY and ARCHS give what was asked" "$(tail -n 3 "$scratch/make.log"; cat "$kernels")"
fi
cp "$kernels" "$scratch/first"
cp "$b/pack/blobs.bin" "$scratch/first.bin"

touch "$scratch/mark"
sleep 1
if quiet_make "${small[@]}" "$kernels" && [ "$(cubins)" = 0 ]; then ok "nothing to do the second time"; else not_ok "nothing to do the second time" "$(cubins) cubins"; fi
touch kernels/add.cu
quiet_make "${small[@]}" "$kernels"
if [ "$(cubins)" = 4 ]; then ok "touching one .cu rebuilds its keys only"; else not_ok "touching one .cu rebuilds its keys only" "$(cubins) cubins"; fi
if quiet_make B="$b" ONLY=colsum ARCHS=sm_120f "$kernels" && [ "$(grep -c ' sm_' "$kernels")" = 1 ] && grep -q 'sm_120f' "$kernels"; then
    ok "another ARCHS and ONLY without clean"
else
    not_ok "another ARCHS and ONLY without clean" "$(cat "$kernels")"
fi

b2=$scratch/other/folder
quiet_make "${small[@]}" B="$b2" -j8 "$b2/pack/MANIFEST"
if cmp -s "$scratch/first" "$b2/pack/MANIFEST" && cmp -s "$scratch/first.bin" "$b2/pack/blobs.bin"; then
    ok "two folders, same bytes"
else
    not_ok "two folders, same bytes" "$(diff "$scratch/first" "$b2/pack/MANIFEST" | head -3)"
fi
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# vulkan_kernels.sh: every shader against its reference, on whatever GPU Vulkan finds here (Debian's mesa-vulkan-drivers has one that
# runs on the CPU), and what Vulkan's validation layers, where they are installed, say of how it is used. The self-test of a first start
# tries the cheapest cases of each shader, and the harness all cases of those whose large cases differ in kind: norms, positions up to
# 131,069, sums over many rows; with EVERY=1 all cases of all shaders.
set -eu
. tests/lib/lib.sh
. tests/lib/vulkan.sh
: "${EVERY:=0}"

filter='@(rmsnorm_*|rope_*|qknorm_rope_fwd|kl_rows|colsum|loss_reduce|cast_to_lp|embed_bwd|sample_cut).*'
[ "$EVERY" = 0 ] || filter='*'
agree() {
    XDG_CACHE_HOME=$d/first "$nojit" doctor --device vulkan >"$d/first.log" 2>&1 && grep -q '^self-test passed now, in' "$d/first.log" ||
        { cat "$d/first.log" && return 1; }
    "$BUILD/harness" --device vulkan --filter "$filter"
}
succeeds "every shader agrees with its reference" agree

"$nojit" init --preset nojit-tiny --out "$d/model" >/dev/null
head -c 3000 LICENSE >"$d/text.txt"
validated() { # prints what the layers say
    VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation VK_LOADER_DEBUG=layer "$nojit" train --model "$d/model" --data "$d/text.txt" \
        --device vulkan --seq-len 48 --batch-size 2 --steps 2 --out "$d/run" >"$d/said" 2>&1
}
validated || { not_ok "the validation layers say nothing of how shaders are used" "$(tail -n 2 "$d/said")"; finish; exit; }
if grep -q 'Insert instance layer "\?VK_LAYER_KHRONOS_validation' "$d/said"; then
    ok_if "the validation layers say nothing of how shaders are used" "$(grep -m 3 -i 'validation \(error\|warning\)' "$d/said")" \
        [ "$(grep -ci 'validation \(error\|warning\)' "$d/said")" = 0 ]
else
    skip "the validation layers say nothing of how shaders are used" "they are not installed (Debian's vulkan-validationlayers)"
fi
finish

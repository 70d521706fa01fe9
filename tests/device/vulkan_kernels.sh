#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# vulkan_kernels.sh: every shader against its reference, on whatever GPU Vulkan finds here (Debian's mesa-vulkan-drivers has one that
# runs on the CPU), and what Vulkan's validation layers, where they are installed, say of how it is used.
set -eu
. tests/lib/lib.sh
. tests/lib/vulkan.sh

succeeds "every shader agrees with its reference" "$BUILD/harness" --device vulkan

"$nojit" init --preset nojit-tiny --out "$d/model" >/dev/null
head -c 3000 LICENSE >"$d/text.txt"
validated() { # prints what the layers say
    VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation VK_LOADER_DEBUG=layer "$nojit" train --model "$d/model" --data "$d/text.txt" \
        --device vulkan --seq-len 48 --batch-size 2 --steps 2 --out "$d/run" >"$d/said" 2>&1
}
validated || { not_ok "the validation layers say nothing" "$(tail -n 2 "$d/said")"; finish; exit; }
if grep -q 'Insert instance layer "\?VK_LAYER_KHRONOS_validation' "$d/said"; then
    ok_if "the validation layers say nothing" "$(grep -m 3 -i 'validation \(error\|warning\)' "$d/said")" \
        [ "$(grep -ci 'validation \(error\|warning\)' "$d/said")" = 0 ]
else
    skip "the validation layers say nothing" "they are not installed (Debian's vulkan-validationlayers)"
fi
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# vulkan_start.sh: how the Vulkan backend begins: which GPU it takes, and what it says of others.
set -eu
. tests/lib/lib.sh
. tests/lib/vulkan.sh
export XDG_CACHE_HOME=$d/cache
name=$(sed -n 's/^gpu  *\(.*\), by Vulkan.*/\1/p' "$d/doctor")
by() { NOJIT_VULKAN_DEVICE=$1 "$nojit" doctor --device "${2:-vulkan}"; }

# ---- which GPU ----
ok_if "a GPU by its number" "$(by 0 2>&1)" grep -qF "gpu       $name, by Vulkan" <(by 0)
part=${name:1:4}
ok_if "a GPU by a part of its name, in any case" "$(by "${part^^}" 2>&1)" grep -qF "gpu       $name, by Vulkan" <(by "${part^^}")
refuses "a number that no GPU has" 2 '^nojit doctor: --device vulkan: NOJIT_VULKAN_DEVICE=99: Vulkan sees [0-9]+ GPUs?, of which none has' by 99
refuses "a name that no GPU has" 2 '^nojit doctor: --device vulkan: NOJIT_VULKAN_DEVICE=no such: ' by "no such"
refuses "Vulkan switched off" 1 '^nojit doctor: --device vulkan: NOJIT_VULKAN_DEVICE=none switches Vulkan off$' by none
limits='^     workgroups of [0-9]+ threads and [0-9]+ bytes, grids of [0-9]+ x [0-9]+, [0-9]+ bytes of push constants$'
ok_if "doctor shows the limits" "$(cat "$d/doctor")" grep -qE "$limits" "$d/doctor"
ok_if "doctor shows driver and memory" "$(cat "$d/doctor")" \
    grep -qE '^     driver .+; memory [0-9.]+ GiB, [0-9.]+ GiB at a time, buffers of [0-9.]+ GiB$' "$d/doctor"

# ---- auto, where CUDA has no GPU ----
if [ -e /dev/nvidiactl ]; then
    skip "auto" "CUDA may have a GPU here"
elif ! grep -q 'by a Vulkan driver, for tests' "$d/doctor"; then
    skip "auto" "this GPU may be faster than the CPU"
else
    none=$(by none auto)
    ok_if "auto without Vulkan" "$none" grep -q '^gpu  *none is taken: .*; Vulkan: NOJIT_VULKAN_DEVICE=none switches' <<<"$none"
    of_itself=$(by "" auto)
    ok_if "auto leaves a driver that runs on the CPU" "$of_itself" \
        grep -qF "; Vulkan: $name runs on the CPU" <<<"$of_itself"
    timed=$(by 0 auto)
    ok_if "auto weighs a GPU that is named by a GEMM" "$timed" \
        grep -qE '; Vulkan: .* runs a GEMM of 1024 x 1024 x 1024 at [0-9]+ GFLOP/s, the CPU at [0-9]+ GFLOP/s$' <<<"$timed"
    ok_if "and takes the faster" "$timed" grep -q '^verdict   ready to train on the CPU, in float32' <<<"$timed"
    refuses "auto says that a name is wrong" 2 'NOJIT_VULKAN_DEVICE=no such: ' by "no such" auto
fi
finish

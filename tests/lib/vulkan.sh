# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests of the Vulkan backend: $nojit, $d, and whether there is a GPU that Vulkan can use; else the test ends.
nojit=$BUILD/nojit d=$scratch
if ! "$nojit" doctor --device vulkan >"$d/doctor" 2>&1; then
    skip "everything" "$(tail -n 1 "$d/doctor")"
    finish
    exit
fi

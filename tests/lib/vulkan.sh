# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests of the Vulkan backend: $nojit, $d, and whether there is a GPU that Vulkan can use; else the test ends.
# The tests share what a start keeps: the self-test of a driver that runs on the CPU takes ten seconds.
nojit=$BUILD/nojit d=$scratch
export XDG_CACHE_HOME=$PWD/$BUILD/vulkan-cache
[[ $BUILD != /* ]] || XDG_CACHE_HOME=$BUILD/vulkan-cache
if ! "$nojit" doctor --device vulkan >"$d/doctor" 2>&1; then
    why=$(tail -n 1 "$d/doctor")
    case $why in
    *"Vulkan is not here"* | *"Vulkan sees no GPU"* | *"no Vulkan driver can be used"*) skip "everything" "$why" ;;
    *) not_ok "a GPU that Vulkan shows can be used" "$why" ;;
    esac
    finish
    exit
fi

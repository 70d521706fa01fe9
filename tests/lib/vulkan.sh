# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests of the Vulkan backend: $nojit, $d, and whether there is a GPU that Vulkan can use; else the test ends.
# The tests share what a start keeps: the self-test of a driver that runs on the CPU takes half a minute of its compiler, which one test
# spends while others that run beside it wait.
nojit=$BUILD/nojit d=$scratch
export NOJIT_SELF_TEST=on
export XDG_CACHE_HOME=$PWD/$BUILD/vulkan-cache
[[ $BUILD != /* ]] || XDG_CACHE_HOME=$BUILD/vulkan-cache
export MESA_SHADER_CACHE_DIR=$XDG_CACHE_HOME # also with a cache of the test's own: what Mesa's compiler made is no business of nojit's
mkdir -p "$XDG_CACHE_HOME"
if ! flock "$XDG_CACHE_HOME" "$nojit" doctor --device vulkan >"$d/doctor" 2>&1; then
    why=$(tail -n 1 "$d/doctor")
    case $why in
    *"Vulkan is not here"* | *"Vulkan sees no GPU"* | *"no Vulkan driver can be used"*) skip "everything" "$why" ;;
    *) not_ok "a GPU that Vulkan shows can be used" "$why" ;;
    esac
    finish
    exit
fi
# fresh: from here on a cache of the test's own, which holds what doctor has found out and no pipelines.
shared=$XDG_CACHE_HOME
fresh() {
    export XDG_CACHE_HOME=$d/cache
    rm -rf "$d/cache"
    mkdir -p "$d/cache/nojit"
    cp "$shared"/nojit/*.tested "$d/cache/nojit/"
}
# disturbed SETTINGS COMMAND...: with a loader that says so of the GPU (tests/vkfault), and has no pipeline made that no launch needs.
disturbed() { LD_LIBRARY_PATH=$BUILD/vkfault:$no_driver NOJIT_VKFAULT_SET=lazy=1,$1 NOJIT_VKFAULT_LOG=$d/calls "${@:2}"; }

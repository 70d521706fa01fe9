#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# vulkan_faults.sh: every call of Vulkan that can fail, failing (tests/vkfault): the run ends with one sentence and the right exit status,
# and leaves no object of Vulkan. With EVERY=1 each call of each function fails in turn, not three.
set -eu
. tests/lib/lib.sh
. tests/lib/vulkan.sh
: "${EVERY:=0}"
export OMP_NUM_THREADS=2
"$nojit" init --preset nojit-tiny --out "$d/model" >/dev/null
head -c 1500 LICENSE >"$d/text.txt"

# run WHAT: in a cache that holds the self-test alone, so that pipelines are kept, too.
run() {
    fresh
    rm -rf "$d/run"
    : >"$d/calls"
    status=0
    NOJIT_VKFAULT=$1 disturbed "" "$nojit" train --model "$d/model" --data "$d/text.txt" \
        --device vulkan --seq-len 16 --batch-size 1 --steps 1 --out "$d/run" >"$d/log" 2>"$d/err" || status=$?
}
hit() { grep -q 'fails as it was told' "$d/calls"; }

# A run left alone: its weights, and how often it calls what.
run none:1:0
[ $status = 0 ] || not_ok "a run with Vulkan runs to its end" "$(tail -n 1 "$d/err")"
cp "$d/run/model.safetensors" "$d/sound"
cp "$d/calls" "$d/counts"

# ended STATUS REGEX FUNCTION: as it should; why not in $why. What fails when all is done changes nothing.
ended() {
    if [ $status = 0 ]; then
        why="the run went on, and its weights differ"
        cmp -s "$d/run/model.safetensors" "$d/sound"
        return
    fi
    why="exit status $status, expected $1: $(tail -n 2 "$d/err")"
    [ $status = "$1" ] || return 1
    why="not one sentence with '$2': $(cat "$d/err")"
    grep -qE -- "$2" "$d/err" && [ "$(grep -c '^nojit' "$d/err")" = 1 ] || return 1
    why="$(tail -n 1 "$d/calls")"
    grep -q '; 0 objects left$' <(tail -n 1 "$d/calls") || [[ $3 == @(vkCreateInstance|vkEnumerateInstanceVersion) ]]
}

# each NAME STATUS REGEX FUNCTION ERROR: its first call fails, one in the middle of the run, and the last.
each() {
    local name=$1 wanted=$2 pattern=$3 function=$4 error=$5 count=0 stopped=0 bad="" n all
    all=$(sed -n "s/^$function //p" "$d/counts" | head -n 1)
    if [ -z "$all" ]; then not_ok "$name" "the run does not call $function"; return; fi
    if [ "$EVERY" = 0 ]; then set -- $(printf '%s\n' 1 $((all * 2 / 3)) "$all" | sort -nu | grep -vx 0); else set -- $(seq "$all"); fi
    for n; do
        run "$function:$n:$error"
        if ! hit; then bad="call $n of $function was not reached"; elif ! ended "$wanted" "$pattern" "$function"; then bad="at call $n of $function: $why"; fi
        [ -z "$bad" ] || break
        count=$((count + 1)) stopped=$((stopped + (status != 0)))
    done
    if [ -z "$bad" ] && [ $stopped = 0 ]; then bad="no run ended"; fi
    if [ -n "$bad" ]; then not_ok "$name" "$bad"; else ok "$name"; fi
    tried=$((tried + count))
}
tried=0
# The first calls of a driver.
each "a version that cannot be asked for ends a run with a sentence" 1 'libvulkan.so.1 is 0\.0\.0|1\.3\.234' vkEnumerateInstanceVersion -1
each "an instance that cannot be made ends a run with a sentence" 1 'no Vulkan driver can be used: the loader finds none; install' vkCreateInstance -9
each "GPUs that cannot be listed ends a run with a sentence" 3 'listing the GPUs: out of host memory' vkEnumeratePhysicalDevices -1
each "a device that cannot be opened ends a run with a sentence" 1 'opening the GPU: initialization failed \(-3\)' vkCreateDevice -3
each "a device that is lost at once ends a run with a sentence" 1 'opening the GPU: the Vulkan device is lost' vkCreateDevice -4
# At the start.
for function in vkCreateSemaphore vkCreateCommandPool vkAllocateCommandBuffers vkCreatePipelineLayout vkCreatePipelineCache vkCreateShaderModule \
    vkCreateComputePipelines vkGetPipelineCacheData vkCreateQueryPool; do
    each "$function without memory ends a run with a sentence" 3 'out of host memory' $function -1
done
# Memory.
each "device memory that cannot be had ends a run with a sentence" 3 'bytes of (device|host) memory.*: out of device memory' vkAllocateMemory -2
each "a buffer that cannot be made ends a run with a sentence" 3 'bytes of (device|host) memory.*: out of device memory' vkCreateBuffer -2
each "memory that cannot be bound ends a run with a sentence" 3 'bytes of (device|host) memory.*: out of device memory' vkBindBufferMemory -2
each "memory that cannot be mapped ends a run with a sentence" 1 'bytes of host memory.*: memory cannot be mapped \(-5\)' vkMapMemory -5
# Work.
each "commands that cannot begin ends a run with a sentence" 3 'recording commands: out of host memory' vkBeginCommandBuffer -1
each "commands that cannot end ends a run with a sentence" 3 'recording commands: out of device memory' vkEndCommandBuffer -2
each "commands that cannot be reset ends a run with a sentence" 3 'recording commands: out of device memory' vkResetCommandBuffer -2
each "commands that cannot be submitted ends a run with a sentence" 3 'submitting commands: out of host memory' vkQueueSubmit -1
each "a device that is lost at a submission ends a run with a sentence" 1 'submitting commands: the Vulkan device is lost; last enqueued was ' vkQueueSubmit -4
each "a device that is lost while it works ends a run with a sentence" 1 'waiting for the GPU: the Vulkan device is lost; last enqueued was [a-zA-Z][a-zA-Z_0-9. ]*; restart the program' vkWaitSemaphores -4
echo "     $tried calls failed"
finish

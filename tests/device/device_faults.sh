#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_faults.sh: whatever fails on a GPU (a simulated one): memory that cannot be had, a launch, a copy, an address, the
# device itself: the run ends with one sentence and the right status, nothing is left on the device, and the checkpoint before
# it leads to the bits of a run that nothing disturbed. With EVERY=1 each launch and copy of the run fails in turn, not some.
set -eu
. tests/lib/lib.sh
: "${EVERY:=0}"
. tests/lib/faults.sh

# The files that the run left, as one number: rows without their times, names without a process's id.
left() {
    (cd "$d/run" && find . -type f ! -name metrics.jsonl -exec cksum {} + | sed 's/\.tmp-[0-9]*/.tmp/' | sort) >"$d/left"
    rows "$d/run" | cat - "$d/left" | cksum
}
# From the same bytes the same run goes on: those that went on before need not again.
resumed=/
goes_on() {
    local state
    state=$(left)
    [[ $resumed != *"/$state/"* ]] || return 0
    resumed+="$state/"
    same_end
}

# each NAME STATUS REGEX FUNCTION ERROR STEP: FUNCTION fails at its calls 1, 1 + STEP, ... until a run has no further call.
survived=0
each() {
    local name=$1 wanted=$2 pattern=$3 function=$4 error=$5 step=$6 n=1 count=0 bad=""
    [ "$EVERY" = 0 ] || step=1
    while disturb "$function:$n:$error" && hit; do
        if [ $status = 0 ]; then # less memory did
            is_end || bad="at call $n, ended: $why"
        elif ! disturbed "$wanted" "$pattern"; then
            bad="at call $n: $why"
        elif ! goes_on; then
            bad="at call $n, then on: $why"
        fi
        [ -z "$bad" ] || break
        n=$((n + step)) count=$((count + 1))
    done
    if [ -z "$bad" ] && [ $count = 0 ]; then bad="no call failed: $(tail -n 1 "$d/err")"; fi
    if [ -z "$bad" ] && [ $status != 0 ]; then bad="without a fault: exit status $status"; fi
    if [ -n "$bad" ]; then
        not_ok "$name" "$bad"
        return
    fi
    survived=$((survived + count))
    ok "$name ends the run, which goes on, at $count calls"
}
each "device memory that cannot be had" 3 'CUDA_ERROR_OUT_OF_MEMORY \(2\); [0-9]+ bytes are available now' cuMemAlloc_v2 2 1
each "pinned memory that cannot be had" 3 'pinned host memory: CUDA_ERROR_OUT_OF_MEMORY \(2\)' cuMemHostAlloc 2 1
each "a launch that is refused" 1 'CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES \(701\), too many resources' cuLaunchKernelEx 701 23
each "a copy that is refused" 1 'CUDA_ERROR_INVALID_VALUE \(1\), invalid argument' cuMemcpyAsync 1 11
each "an illegal address" 1 'CUDA_ERROR_ILLEGAL_ADDRESS \(700\), .*last enqueued was .*compute-sanitizer' launch 700 31
each "a copy that faults" 1 'CUDA_ERROR_ILLEGAL_ADDRESS \(700\)' copy 700 11
each "a product that faults" 1 'CUDA_ERROR_LAUNCH_FAILED \(719\)' product 719 31
each "a device that is lost" 1 'CUDA_ERROR_UNKNOWN \(999\)' launch 999 53
each "an event that fails" 1 'CUDA_ERROR_UNKNOWN \(999\)' cuEventSynchronize 999+ 1
each "a graph that fails" 1 'CUDA_ERROR_UNKNOWN \(999\)' cuGraphInstantiateWithFlags 999 1
echo "     $survived faults left $(tr -dc / <<<"$resumed" | wc -c | awk '{ print $1 - 1 }') different folders, and each went on"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_faults.sh: whatever fails on a GPU (a simulated one): memory that cannot be had, a launch, a copy, an address, the
# device itself, a step that never ends, libraries: the run ends with one sentence and the right status, nothing is left
# on the device, and the checkpoint before it leads to the bits of a run that nothing disturbed. With EVERY=1 each
# launch and copy of the run fails in turn, not some.
# tier: all
set -eu
. tests/lib.sh
: "${EVERY:=0}"
nojit=$BUILD/nojit
export LD_LIBRARY_PATH=$BUILD/sim NOJIT_CUBLASLT=$BUILD/sim XDG_CACHE_HOME=$scratch/cache OMP_WAIT_POLICY=passive
export NOJIT_SIM_LOG=$scratch/sim.log NOJIT_SIM_DEVICE=rtx4090
needs sm_89
d=$scratch/work
mkdir "$d"

"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
"$nojit" init --preset nojit-tiny --seed 2 --out "$d/teacher" >/dev/null
head -c 3000 LICENSE >"$d/text.txt"
run=("$nojit" distill --teacher "$d/teacher" --student "$d/student" --data "$d/text.txt" --seq-len 16 --batch-size 1
    --lr 1e-3 --device cuda --gemm-table none)
"${run[@]}" --steps 3 --save-every 1 --keep 9 --out "$d/whole" >"$d/log" 2>&1 || not_ok "a run left alone" "$(tail -n 1 "$d/log")"
end=$(grep '^sim: end:' "$NOJIT_SIM_LOG")
if [[ $end == *" 0 exempt; "*"; 0 objects left" ]]; then ok "a run left alone"; else not_ok "a run left alone" "$end"; fi
if [[ $end == *" 0 after the first launch, 0 of PTX refused,"* ]]; then
    ok "no module is loaded after start-up"
else
    not_ok "no module is loaded after start-up" "$end"
fi

# What is to go on: the run after its first step.
mkdir "$d/begun"
cp -r "$d/whole/checkpoint-1" "$d/begun/"
cp "$d/whole/metrics.jsonl" "$d/begun/"
rows() { sed -E 's/"(tokens_per_second|step_ms|mfu_student|mfu_teacher)": [^,]+, //g' "$1/metrics.jsonl"; }
begin() { rm -rf "$d/run" && cp -r "$d/begun" "$d/run" && : >"$NOJIT_SIM_LOG"; }
go_on=("${run[@]}" --steps 3 --save-every 1 --keep 9 --out "$d/run" --resume auto)
hit() { grep -q 'fails as it was told' "$NOJIT_SIM_LOG"; }

# disturbed STATUS REGEX: what the run just made has ended as it should; why not in $why.
disturbed() {
    why="exit status $status: $(tail -n 2 "$d/err")"
    [ "$status" = "$1" ] || return 1
    why="not one sentence with '$2': $(cat "$d/err")"
    grep -qE -- "$2" "$d/err" && [ "$(grep -c '^nojit' "$d/err")" = 1 ] || return 1
    why="$(tail -n 1 "$NOJIT_SIM_LOG")"
    grep -q '; 0 objects left$' "$NOJIT_SIM_LOG" || return 1
    why="checkpoint-1 is not what it was"
    diff -r "$d/begun/checkpoint-1" "$d/run/checkpoint-1" >/dev/null
}
is_end() {
    why="rows differ: $(diff <(rows "$d/whole") <(rows "$d/run") | head -n 2)"
    [ "$(rows "$d/whole")" = "$(rows "$d/run")" ] || return 1
    why="weights differ"
    cmp -s "$d/whole/model.safetensors" "$d/run/model.safetensors" &&
        cmp -s "$d/whole/checkpoint-3/state.bin" "$d/run/checkpoint-3/state.bin"
}
same_end() { # the run goes on, without a fault
    why="$(tail -n 1 "$d/log")"
    "${go_on[@]}" >"$d/log" 2>&1 && is_end
}
disturb() { # NAME:N:ERROR
    begin
    status=0
    NOJIT_SIM_FAIL=$1 "${go_on[@]}" >"$d/log" 2>"$d/err" || status=$?
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
        else
            last=$n
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
    disturb "$function:$last:$error"
    if same_end; then ok "$name, $count times"; else not_ok "$name: then on" "$why"; fi
}
each "no device memory" 3 'CUDA_ERROR_OUT_OF_MEMORY \(2\); [0-9]+ bytes can be had now' cuMemAlloc_v2 2 1
each "no pinned memory" 3 'pinned host memory: CUDA_ERROR_OUT_OF_MEMORY \(2\)' cuMemHostAlloc 2 1
each "a launch that is refused" 1 'CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES \(701\), too many resources' cuLaunchKernel 701 23
each "a copy that is refused" 1 'CUDA_ERROR_INVALID_VALUE \(1\), invalid argument' cuMemcpyAsync 1 11
each "an illegal address" 1 'CUDA_ERROR_ILLEGAL_ADDRESS \(700\), .*last enqueued was .*compute-sanitizer' launch 700 31
each "a copy that faults" 1 'CUDA_ERROR_ILLEGAL_ADDRESS \(700\)' copy 700 11
each "a product that faults" 1 'CUDA_ERROR_LAUNCH_FAILED \(719\)' product 719 31
each "a device that is lost" 1 'CUDA_ERROR_UNKNOWN \(999\)' launch 999 53
each "an event that fails" 1 'CUDA_ERROR_UNKNOWN \(999\)' cuEventSynchronize 999+ 1
each "a graph that fails" 1 'CUDA_ERROR_UNKNOWN \(999\)' cuGraphInstantiateWithFlags 999 1
echo "     $survived faults"

# A step that never ends: the process is ended, without its context being closed.
launches=$(sed -E 's/.*exempt; ([0-9]+) launches.*/\1/' <<<"$end")
begin
status=0
NOJIT_SIM_FAIL=launch:$((launches / 4)):hang timeout 60 "${go_on[@]}" --first-step-timeout 2 >"$d/log" 2>"$d/err" || status=$?
if [ $status = 1 ] && grep -qE '^nojit: step 2 has not ended after 2 seconds: the GPU hangs .*--first-step-timeout$' "$d/err"; then
    ok "a first step that hangs"
else
    not_ok "a first step that hangs" "exit status $status: $(cat "$d/err")"
fi
if same_end; then ok "and then on"; else not_ok "and then on" "$why"; fi

# ---- libraries and GPUs
without() { # NAME STATUS REGEX SETTING=VALUE...: nothing can be begun
    local name=$1 wanted=$2 pattern=$3
    shift 3
    begin
    refuses "$name" "$wanted" "^nojit distill: .*$pattern" env "$@" "${go_on[@]}"
    if diff -r "$d/begun" "$d/run" >"$d/diff"; then ok "$name: nothing is touched"; else not_ok "$name: nothing is touched" "$(cat "$d/diff")"; fi
}
mkdir "$d/none" "$d/lacks" "$d/old"
without "no driver" 1 'the NVIDIA driver is not here .*install driver 580' LD_LIBRARY_PATH="$d/none"
without "an old driver" 1 'supports CUDA 12.4, 13.0 is needed; install driver 580' NOJIT_SIM_CUDA=12040
# All functions that the runtime looks for but one.
functions=$(sed -n '/define NJ_DRIVER_SYMBOLS/,/^$/p' runtime/cuda/api.h | grep -oE '"cu[A-Za-z0-9_]+"' | tr -d '"')
for f in $functions; do
    case $f in
    cuLaunchKernel) ;;
    cuDriverGetVersion) echo "int $f(int *v); int $f(int *v) { *v = 13000; return 0; }" ;;
    *) echo "int $f(void); int $f(void) { return 0; }" ;;
    esac
done >"$d/lacks.c"
"${CC:-cc}" -shared -fPIC -o "$d/lacks/libcuda.so.1" "$d/lacks.c"
without "a driver without a function" 1 'has no function cuLaunchKernel; install driver 580' LD_LIBRARY_PATH="$d/lacks"
without "no cuBLASLt" 1 'cuBLASLt 13 cannot be opened .*NOJIT_CUBLASLT' NOJIT_CUBLASLT="$d/none"
without "cuBLASLt of another major" 1 'is version 12.9.1, not 13' NOJIT_SIM_LT_VERSION=120901
without "no GPU" 1 'the driver sees no GPU; check nvidia-smi' NOJIT_SIM_DEVICE=none
without "a GPU without code" 4 'is sm_86 and this program holds .*make ARCHS=sm_86$' NOJIT_SIM_DEVICE=sm_86
without "two GPUs, the second has code" 4 'sm_86.*; GPU 1 of this machine is sm_89: .*CUDA_VISIBLE_DEVICES=1$' NOJIT_SIM_DEVICE=sm_86,rtx4090
begin
if NOJIT_SIM_DEVICE=sm_86,rtx4090 CUDA_VISIBLE_DEVICES=1 same_end; then ok "two GPUs, the second chosen"; else not_ok "two GPUs, the second chosen" "$why"; fi

# Exactly the functions that the runtime looks for.
if [ "$(echo "$functions" | sort)" = "$(nm -D --defined-only "$BUILD/sim/libcuda.so.1" | awk '$3 ~ /^cu/ { print $3 }' | sort)" ]; then
    ok "the simulated driver has the runtime's functions and no others"
else
    not_ok "the simulated driver has the runtime's functions and no others" "compare nm with runtime/cuda/api.h"
fi
finish

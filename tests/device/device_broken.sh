#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_broken.sh: a driver or a cuBLASLt that is missing, too old or of another version, GPUs without code, and a GPU that hangs
# (simulated): the run ends with one sentence and the right status, and what it had saved leads to the same end.
set -eu
. tests/lib/lib.sh
. tests/lib/faults.sh
end=$(grep '^sim: end:' "$NOJIT_SIM_LOG")
if [[ $end == *" 0 exempt; "*"; 0 objects left" ]]; then ok "a run on a simulated GPU leaves no object"; else not_ok "a run on a simulated GPU leaves no object" "$end"; fi
if [[ $end == *" 0 after the first launch, 0 of PTX refused,"* ]]; then
    ok "no module is loaded after start-up"
else
    not_ok "no module is loaded after start-up" "$end"
fi

# A step that never ends: the process is ended, without its context being closed.
launches=$(sed -E 's/.*exempt; ([0-9]+) launches.*/\1/' <<<"$end")
begin
status=0
NOJIT_SIM_FAIL=launch:$((launches / 4)):hang timeout 60 "${go_on[@]}" --first-step-timeout 2 >"$d/log" 2>"$d/err" || status=$?
if [ $status = 1 ] && grep -qE '^nojit: step 2 has not ended after 2 seconds: the GPU is hung .*--first-step-timeout$' "$d/err"; then
    ok "a first step that hangs ends the run with a sentence"
else
    not_ok "a first step that hangs ends the run with a sentence" "exit status $status: $(cat "$d/err")"
fi
if same_end; then ok "a run whose step hung goes on to the same end"; else not_ok "a run whose step hung goes on to the same end" "$why"; fi

# ---- libraries and GPUs
without() { # NAME STATUS REGEX SETTING=VALUE...: nothing can be begun
    local name=$1 wanted=$2 pattern=$3
    shift 3
    begin
    refuses "$name" "$wanted" "^nojit distill: .*$pattern" env "$@" "${go_on[@]}"
    if diff -r "$d/begun" "$d/run" >"$d/diff"; then ok "$name, and nothing is touched"; else not_ok "$name, and nothing is touched" "$(cat "$d/diff")"; fi
}
mkdir "$d/none" "$d/lacks" "$d/old"
without "a missing driver is refused" 1 'the NVIDIA driver is not here .*install driver 580' LD_LIBRARY_PATH="$no_driver"
without "a driver that is too old is refused" 1 'supports CUDA 12.4, 13.0 is needed; install driver 580' NOJIT_SIM_CUDA=12040
# All functions that the runtime looks for but one.
functions=$(sed -n '/define NJ_DRIVER_SYMBOLS/,/^$/p' runtime/cuda/api.h | grep -oE '"cu[A-Za-z0-9_]+"' | tr -d '"')
for f in $functions; do
    case $f in
    cuLaunchKernelEx) ;;
    cuDriverGetVersion) echo "int $f(int *v); int $f(int *v) { *v = 13000; return 0; }" ;;
    *) echo "int $f(void); int $f(void) { return 0; }" ;;
    esac
done >"$d/lacks.c"
"${CC:-cc}" -shared -fPIC -o "$d/lacks/libcuda.so.1" "$d/lacks.c"
without "a driver that lacks a function is refused" 1 'has no function cuLaunchKernelEx; install driver 580' LD_LIBRARY_PATH="$d/lacks"
without "a missing cuBLASLt is refused" 1 'cuBLASLt 13 cannot be opened .*NOJIT_CUBLASLT' NOJIT_CUBLASLT="$d/none"
without "a cuBLASLt of another major version is refused" 1 'is version 12.9.1, not 13' NOJIT_SIM_LT_VERSION=120901
without "a driver without a GPU is refused" 1 'the driver sees no GPU; check nvidia-smi' NOJIT_SIM_DEVICE=none
without "a GPU without code is refused" 4 'is sm_86 and this program holds .*make ARCHS=sm_86$' NOJIT_SIM_DEVICE=sm_86
without "a GPU without code is refused, and one beside it with code named" 4 'sm_86.*; GPU 1 of this machine is sm_89: .*CUDA_VISIBLE_DEVICES=1$' NOJIT_SIM_DEVICE=sm_86,rtx4090
begin
if NOJIT_SIM_DEVICE=sm_86,rtx4090 CUDA_VISIBLE_DEVICES=1 same_end; then ok "CUDA_VISIBLE_DEVICES chooses the second GPU"; else not_ok "CUDA_VISIBLE_DEVICES chooses the second GPU" "$why"; fi

# Exactly the functions that the runtime looks for.
if [ "$(echo "$functions" | sort)" = "$(nm -D --defined-only "$BUILD/sim/libcuda.so.1" | awk '$3 ~ /^cu/ { print $3 }' | sort)" ]; then
    ok "the simulated driver has the runtime's functions and no others"
else
    not_ok "the simulated driver has the runtime's functions and no others" "compare nm with runtime/cuda/api.h"
fi
finish

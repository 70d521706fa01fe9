#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_sim.sh: what the program does with a GPU besides computing, on simulated GPUs: what doctor says,
# which 16-bit types are refused, and where GEMM choices are kept.
set -eu
. tests/lib/lib.sh
. tests/lib/relink.sh
nojit=$BUILD/nojit
needs sm_75 sm_89 sm_121
export LD_LIBRARY_PATH=$BUILD/sim NOJIT_CUBLASLT=$BUILD/sim XDG_CACHE_HOME=$scratch/cache
export NOJIT_SIM_DEVICE=rtx4090
says() { # NAME REGEX FILE
    if grep -qE -- "$2" "$3"; then ok "$1"; else not_ok "$1" "no '$2' in: $(head -c 400 "$3")"; fi
}

"$nojit" doctor --device cuda >"$scratch/doctor"
keys=$("$nojit" version --json | sed -E 's/.*"keys": ([0-9]+).*/\1/')
here=$(keys_of sm_89 | wc -l)
says "doctor: the GPU" '^gpu +Simulated NVIDIA GeForce RTX 4090, sm_89, 128 SMs$' "$scratch/doctor"
says "doctor: its memory" '^memory +23.64 GiB, 23.24 GiB may be used; arenas in device memory' "$scratch/doctor"
says "doctor: kernels" "^kernels +$here of $keys loaded from $here modules, 16-bit type bfloat16(; $((keys - here)) for code of other archs)?\$" "$scratch/doctor"
says "doctor: cuBLASLt" '^cublasLt .*libcublasLt.so.13, version 130100' "$scratch/doctor"
says "doctor: verdict" '^verdict +ready to train on the GPU' "$scratch/doctor"
NOJIT_SIM_DEVICE=t4 "$nojit" doctor >"$scratch/doctor"
says "doctor: float16 on sm_75" '16-bit type float16' "$scratch/doctor"
NOJIT_SIM_DEVICE=gb10 "$nojit" doctor >"$scratch/doctor"
says "doctor: shared memory" 'memory shared with the host' "$scratch/doctor"
says "doctor: managed memory" 'arenas in managed memory' "$scratch/doctor"
"$nojit" doctor --json >"$scratch/doctor"
says "doctor --json" '"backend": "cuda", "device": "Simulated NVIDIA GeForce RTX 4090", "sm": 89,.*"fits": true' "$scratch/doctor"
NOJIT_SIM_DEVICE=sm_86 "$nojit" doctor --json --device cuda >"$scratch/doctor" 2>/dev/null || true
says "doctor --json: no fit" '"fits": false' "$scratch/doctor"

"$nojit" init --preset nojit-tiny --out "$scratch/model" >/dev/null
head -c 5000 LICENSE >"$scratch/text.txt"
train() { # SETTING=VALUE... -- OPTION...
    local settings=()
    while [ "$1" != -- ]; do
        settings+=("$1")
        shift
    done
    shift
    rm -rf "$scratch/run"
    env "${settings[@]}" "$nojit" train --student "$scratch/model" --data "$scratch/text.txt" --seq-len 32 --batch-size 2 \
        --device cuda --out "$scratch/run" "$@"
}
refuses "no bfloat16 on sm_75" 2 'sm_75\) has no bfloat16; use float16' train NOJIT_SIM_DEVICE=t4 -- --steps 1 --dtype bfloat16
refuses "no float16 on sm_89" 2 'sm_89\) uses bfloat16' train -- --steps 1 --dtype float16
refuses "16 bits on a CPU" 2 'a CPU runs float32 only' train -- --steps 1 --dtype bfloat16 --device cpu

# The simulated driver gives what is asked for: what the device says has gone is the plan, and that at the end of a run is no less.
bytes() { sed -nE "s/.*\"$1\": ([0-9]+).*/\1/p" "$scratch/run/receipt.json"; }
train XDG_CACHE_HOME="$scratch/other" -- --steps 1 >"$scratch/log" 2>&1
if [ "$(bytes allocated_bytes)" = "$(bytes plan_bytes)" ] && [ "$(bytes used_bytes)" -ge "$(bytes plan_bytes)" ]; then
    ok "the plan is what is taken"
else
    not_ok "the plan is what is taken" "plan $(bytes plan_bytes), taken $(bytes allocated_bytes), in all $(bytes used_bytes)"
fi

train NOJIT_SIM_DEVICE=gb10 -- --steps 1 >"$scratch/log" 2>&1
if [ "$(bytes context_bytes) $(bytes library_bytes) $(bytes allocated_bytes) $(bytes used_bytes)" = "0 0 0 0" ]; then
    ok "managed memory tells nothing"
else
    not_ok "managed memory tells nothing" "$(grep _bytes "$scratch/run/receipt.json")"
fi

timed() { sed -nE 's/.*"gemms_timed": ([0-9]+).*/\1/p' "$scratch/run/receipt.json"; }
# choices NAME WHERE TIMED SETTING=VALUE... -- OPTION...: how many products were timed (some or none) and what is said of it.
choices() {
    local name=$1 pattern=$2 want=$3 got
    shift 3
    if ! train "$@" --steps 1 >"$scratch/log" 2>&1; then
        not_ok "$name" "$(head -n 3 "$scratch/log")"
        return
    fi
    got=$(timed)
    if [ "$want" = none ] && [ "$got" != 0 ] || [ "$want" = some ] && [ "$got" = 0 ]; then
        not_ok "$name" "$got products timed"
    elif [ -n "$pattern" ]; then
        says "$name" "$pattern" "$scratch/log"
    elif grep -q timed "$scratch/log"; then
        not_ok "$name" "$(grep timed "$scratch/log")"
    else
        ok "$name"
    fi
}
choices "products are timed once" "kept in $scratch/cache/nojit/gemm-Simulated-NVIDIA-GeForce-RTX-4090-sm_89-bfloat16-130100.txt" some --
choices "and then known" "" none --
choices "another GPU times its own" "gemm-Simulated-Tesla-T4-sm_75-float16-130100.txt" some NOJIT_SIM_DEVICE=t4 --
mkdir "$scratch/home"
choices "in HOME" "kept in $scratch/home/.cache/nojit/gemm" some -u XDG_CACHE_HOME HOME="$scratch/home" --
choices "no cache folder" 'no cache folder for the choices' some -u XDG_CACHE_HOME -u HOME --
choices "a file of one's own" "kept in $scratch/choices.txt" some -- --gemm-table "$scratch/choices.txt"
choices "a file that cannot be written" 'choices cannot be kept.*/nonexistent' some -- --gemm-table /nonexistent/choices.txt
choices "none are timed" "" none -- --gemm-table none
finish

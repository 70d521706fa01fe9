#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_sim.sh: what the program does with a GPU besides computing, on simulated GPUs: doctor describes the GPU, 16-bit types
# that it lacks are refused, the plan is what is taken, and choices of GEMMs are kept where they should be.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
needs sm_75 sm_89 sm_121
export LD_LIBRARY_PATH=$BUILD/sim NOJIT_CUBLASLT=$BUILD/sim XDG_CACHE_HOME=$scratch/cache
export NOJIT_SIM_DEVICE=rtx4090
says() { # NAME REGEX FILE
    if grep -qE -- "$2" "$3"; then ok "$1"; else not_ok "$1" "no '$2' in: $(head -c 400 "$3")"; fi
}

"$nojit" doctor --device cuda >"$scratch/doctor"
says "doctor names the GPU" '^gpu +Simulated NVIDIA GeForce RTX 4090, sm_89, 128 SMs$' "$scratch/doctor"
says "doctor names cuBLASLt and its version" '^cublasLt .*libcublasLt.so.13, version 130100' "$scratch/doctor"
says "doctor ends in a verdict" '^verdict +ready to train on the GPU' "$scratch/doctor"
NOJIT_SIM_DEVICE=t4 "$nojit" doctor >"$scratch/doctor"
says "doctor says float16 on sm_75" '16-bit type float16' "$scratch/doctor"
NOJIT_SIM_DEVICE=gb10 "$nojit" doctor >"$scratch/doctor"
says "doctor says that a GB10 shares memory with the host" 'memory shared with the host' "$scratch/doctor"
"$nojit" doctor --json >"$scratch/doctor"
says "doctor --json names backend, device and architecture" '"backend": "cuda", "device": "Simulated NVIDIA GeForce RTX 4090", "sm": 89,.*"fits": true' "$scratch/doctor"
NOJIT_SIM_DEVICE=sm_86 "$nojit" doctor --json --device cuda >"$scratch/doctor" 2>/dev/null || true
says "doctor --json says that a GPU does not fit" '"fits": false' "$scratch/doctor"

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
refuses "bfloat16 on sm_75 is refused" 2 'sm_75\) has no bfloat16; use float16' train NOJIT_SIM_DEVICE=t4 -- --steps 1 --dtype bfloat16
refuses "float16 on sm_89 is refused" 2 'sm_89\) uses bfloat16' train -- --steps 1 --dtype float16
refuses "bfloat16 on a CPU is refused" 2 'a CPU runs float32 only' train -- --steps 1 --dtype bfloat16 --device cpu

# The simulated driver gives what is asked for: what the device says has gone is the plan, and that at the end of a run is no less.
bytes() { sed -nE "s/.*\"$1\": ([0-9]+).*/\1/p" "$scratch/run/receipt.json"; }
train XDG_CACHE_HOME="$scratch/other" -- --steps 1 >"$scratch/log" 2>&1
if [ "$(bytes allocated_bytes)" = "$(bytes plan_bytes)" ] && [ "$(bytes used_bytes)" -ge "$(bytes plan_bytes)" ]; then
    ok "a run takes the memory of its plan"
else
    not_ok "a run takes the memory of its plan" "plan $(bytes plan_bytes), taken $(bytes allocated_bytes), in all $(bytes used_bytes)"
fi

# A compiler that the driver opens shows in the memory map; any library of such a name will do.
said() { tr -d '\n' <"$scratch/run/receipt.json" | grep -oE '"compilations": \{[^}]*\}'; }
ok_if "the receipt counts no compilation on a GPU, and says how that was seen" "$(said)" \
    grep -qE '"at_start": 0, +"in_steps": 0, +"observed": "the driver.s JIT and its cache were switched off .*; [1-9][0-9]* modules, .*; no compiler was mapped at the end of the run"' <<<"$(said)"
cp "$BUILD/sim/libnvidia-ml.so.1" "$scratch/libnvidia-ptxjitcompiler.so.1"
train XDG_CACHE_HOME="$scratch/other" NOJIT_SIM_OPEN="$scratch/libnvidia-ptxjitcompiler.so.1" -- --steps 1 >"$scratch/log" 2>&1
ok_if "the receipt counts nothing where a compiler was opened during the run" "$(said)" \
    grep -qE '"at_start": null, +"in_steps": null, +"observed": "not known: .* libnvidia-ptxjitcompiler.so.1 was mapped' <<<"$(said)"

train NOJIT_SIM_DEVICE=gb10 -- --steps 1 >"$scratch/log" 2>&1
if [ "$(bytes context_bytes) $(bytes library_bytes) $(bytes allocated_bytes) $(bytes used_bytes)" = "0 0 0 0" ]; then
    ok "the receipt has no bytes taken of managed memory"
else
    not_ok "the receipt has no bytes taken of managed memory" "$(grep _bytes "$scratch/run/receipt.json")"
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
choices "GEMMs are timed at a first run" "kept in $scratch/cache/nojit/gemm-Simulated-NVIDIA-GeForce-RTX-4090-sm_89-bfloat16-130100.txt" some --
choices "GEMMs are not timed again" "" none --
choices "another GPU times its own GEMMs" "gemm-Simulated-Tesla-T4-sm_75-float16-130100.txt" some NOJIT_SIM_DEVICE=t4 --
mkdir "$scratch/home"
choices "choices of GEMMs are kept in HOME without XDG_CACHE_HOME" "kept in $scratch/home/.cache/nojit/gemm" some -u XDG_CACHE_HOME HOME="$scratch/home" --
choices "a run without a cache folder says that choices of GEMMs are not kept" 'no cache folder for the choices' some -u XDG_CACHE_HOME -u HOME --
choices "--gemm-table keeps choices of GEMMs in a file" "kept in $scratch/choices.txt" some -- --gemm-table "$scratch/choices.txt"
choices "a --gemm-table that cannot be written is said" 'choices cannot be kept.*/nonexistent' some -- --gemm-table /nonexistent/choices.txt
choices "--gemm-table none times no GEMM" "" none -- --gemm-table none
finish

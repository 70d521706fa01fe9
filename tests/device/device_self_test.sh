#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_self_test.sh: at its first start on a GPU (a simulated RTX 4090) nojit holds every kernel and kind of GEMM against sums in double, and
# keeps that it passed; a kernel that is wrong is refused by name, nothing is left of that start, and the report of `nojit doctor
# --self-test` has all of them. tests/unit/test_self_test.c has what a kept result depends on.
set -eu
. tests/lib/lib.sh
. tests/lib/simulated.sh
needs sm_89 add.f32
nojit=$(realpath "$nojit")
NOJIT_CUBLASLT=$(realpath "$NOJIT_CUBLASLT")
export NOJIT_SELF_TEST=on NOJIT_SIM_DEVICE=rtx4090
not_in() { # FILE TEXT...
    local text
    for text in "${@:2}"; do ! grep -qF -- "$text" "$1" || return 1; done
}
launches() { counted | sed -E 's/.* ([0-9]+) launches.*/\1/'; }

# ---- a GPU that passes ----
status=0
"$nojit" doctor --device cuda >"$d/first" 2>&1 || status=$?
kernels=$(sed -nE 's/^kernels +([0-9]+) of .*/\1/p' "$d/first")
ok_if "a first start on a GPU tries every kernel" "exit status $status: $(tail -n 3 "$d/first")" \
    grep -qE "^self-test passed now, in [^:]+: $kernels kernels, 26 GEMMs\$" "$d/first"
ok_if "a self-test loads nothing after its first launch and leaves no object" "$(counted)" clean
"$nojit" doctor --device cuda >"$d/second" 2>&1 || true
ok_if "a GPU that passed its self-test is not tried again" "$(cat "$d/second")" \
    grep -qE "^self-test passed on [0-9-]{10}, in .*: $kernels kernels, 26 GEMMs\$" "$d/second"
ok_if "a second start on a GPU launches nothing" "$(counted)" [ "$(launches)" = 0 ]

# ---- receipts ----
"$nojit" init --preset nojit-tiny --out "$d/model" >/dev/null
head -c 3000 LICENSE >"$d/text.txt"
train() { # OUT SETTING=VALUE...
    env "${@:2}" "$nojit" train --student "$d/model" --data "$d/text.txt" --seq-len 32 --batch-size 1 --steps 1 --out "$1" >"$d/log" 2>&1 || tail -n 3 "$d/log"
}
said() { tr -d '\n' <"$1/receipt.json" | grep -oE '"self_test": \{[^}]*\}'; }
train "$d/before"
at='[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z'
ok_if "the receipt says when the GPU passed its self-test" "$(said "$d/before")" \
    grep -qE "\"result\": \"passed before\", +\"at\": \"$at\", +\"ms\": [0-9.]+, +\"kernels\": $kernels, +\"gemms\": 26, +\"spares\": \"\"" <(said "$d/before")
train "$d/off" NOJIT_SELF_TEST=off XDG_CACHE_HOME="$d/empty"
ok_if "the receipt says that the self-test was switched off" "$(said "$d/off")" grep -q '"result": "off"' <(said "$d/off")
train "$d/cpu" NOJIT_SIM_DEVICE=none NOJIT_VULKAN_DEVICE=none
ok_if "the receipt of a run on the CPU says that there was no self-test" "$(said "$d/cpu")" grep -q '"result": "none"' <(said "$d/cpu")
NOJIT_SELF_TEST=off XDG_CACHE_HOME=$d/empty "$nojit" doctor --device cuda >"$d/off.log"
ok_if "doctor says that the self-test is switched off" "$(cat "$d/off.log")" grep -qx 'self-test switched off by NOJIT_SELF_TEST=off' "$d/off.log"
ok_if "doctor --json says which self-test a GPU stands on" "$("$nojit" doctor --json)" grep -q '"self_test": {"result": "passed before", "at": ' <("$nojit" doctor --json)

# ---- a kernel that is wrong ----
export NOJIT_SIM_LIE=nj_add_f32
wrong='fails the self-test of its kernels, .*`nojit doctor --self-test`.*: add\.f32 \[.*\]: [a-z]+\[[0-9]+\]: got .*, want .*, error .*, tolerance '
refuses "a GPU with a kernel that is wrong is refused by name" 1 "^nojit doctor: --device cuda: Simulated .* RTX 4090 \\(sm_89, driver .*, cuBLASLt .*, machine code by ptxas .*\\) $wrong" \
    env XDG_CACHE_HOME="$d/other" "$nojit" doctor --device cuda
refuses "a run on a GPU with a kernel that is wrong is refused" 1 "$wrong" env XDG_CACHE_HOME="$d/other" \
    "$nojit" train --student "$d/model" --data "$d/text.txt" --seq-len 32 --steps 1 --out "$d/refused"
ok_if "a start that fails its self-test leaves nothing" "$(ls -A "$d/other" "$d/refused" 2>&1)" [ ! -e "$d/other" -a ! -e "$d/refused" ]

# ---- doctor --self-test ----
NOJIT_SELF_TEST=off refuses "doctor --self-test tries a GPU that has passed" 1 "$wrong" "$nojit" doctor --self-test --report "$d/report.json"
ok_if "doctor --self-test names the kernel that is wrong and counts the others" "$(cat "$scratch/out")" \
    grep -qzE "  add\.f32 \[.*\] failed: [a-z]+\[[0-9]+\]: got .*  1 of $kernels kernels and 0 of 26 GEMMs failed.*report +$d/report.json" "$scratch/out"
rows() { grep -c "\"verdict\": \"$1\"" "$d/report.json"; }
ok_if "the report of a self-test has each kernel and GEMM" "$(rows failed) failed, $(rows passed) passed" \
    [ "$(rows failed) $(rows passed)" = "2 $((kernels + 25))" ]
for field in '"nojit": "[0-9.]+"' '"index_hash": "[0-9a-f]{16}"' '"assembler": "ptxas [^"]+"' '"device": "Simulated NVIDIA GeForce RTX 4090"' '"sm": 89' '"driver_cuda": 13000' \
    '"gemm_version": 130100' '"error": [0-9.e-]+' '"tolerance": [0-9.e-]+' '"ms": [0-9.e-]+'; do
    grep -qE "$field" "$d/report.json" || lacks="${lacks:-} $field"
done
ok_if "the report of a self-test names program, GPU, driver and library" "lacks ${lacks:-}" [ -z "${lacks:-}" ]
ok_if "the report of a self-test names no user, host or folder" "$(head -n 20 "$d/report.json")" \
    not_in "$d/report.json" "$(id -un)" "$(hostname)" "$HOME" "$scratch" "$PWD"
"$nojit" doctor --device cuda >"$d/again" 2>&1 || true
ok_if "a GPU that fails doctor --self-test has no passed self-test any more" "$(tail -n 1 "$d/again")" grep -q 'fails the self-test' "$d/again"
unset NOJIT_SIM_LIE

# ---- a second set of machine code ----
if ! grep -qE '"spare_archs": \[[^]]*"sm_121"' <("$nojit" version --json); then
    skip "a kernel whose first set of machine code is wrong gets its second" "this build has no second set of machine code for sm_121"
else
    second() { NOJIT_SIM_DEVICE=gb10 XDG_CACHE_HOME=$d/spare "$nojit" doctor --device cuda >"$d/second.log" 2>&1 || true; }
    NOJIT_SIM_LIE=nj_add_f32:1 second
    ok_if "a kernel whose first set of machine code is wrong gets its second" "$(cat "$d/second.log")" \
        grep -qzE "  add\.f32 fails the self-test, so its second set .* [a-z]+\[[0-9]+\]: got .*self-test passed now, [^;]*; the second set of machine code of add\.f32" "$d/second.log"
    second
    ok_if "a kernel that needs its second set of machine code gets it at later starts" "$(counted); $(cat "$d/second.log")" \
        grep -qE 'self-test passed on .*; the second set of machine code of add\.f32$' "$d/second.log"
    ok_if "a later start loads the second set of machine code" "$(counted)" [ "$(counted | cut -d' ' -f1)" = "$(($(sed -nE 's/^kernels +([0-9]+) of .*/\1/p' "$d/second.log") + 1))" ]
    NOJIT_SIM_LIE=nj_add_f32 NOJIT_SIM_DEVICE=gb10 refuses "a kernel that is wrong in both sets of machine code is refused" 1 "$wrong" \
        env XDG_CACHE_HOME="$d/third" "$nojit" doctor --device cuda
fi

# ---- the other GPUs that this build has code for ----
for p in $profiles; do
    [ "${p%:*}" != rtx4090 ] && [[ $held =~ \ sm_${p#*:}a?\  ]] || continue
    NOJIT_SIM_DEVICE=${p%:*} succeeds "a simulated ${p%:*} passes its self-test" env XDG_CACHE_HOME="$d/${p%:*}" "$nojit" doctor --device cuda
done
refuses "doctor --self-test of several GPUs is refused" 2 '^nojit doctor: --self-test tries one GPU: ' "$nojit" doctor --self-test --gpus 2
(cd "$d" && "$nojit" doctor --self-test --device cpu >cpu.log 2>&1) || true
ok_if "doctor --self-test tries the CPU, too, and has a name for its report" "$(cat "$d/cpu.log")" grep -q '"verdict": "passed"' "$d/nojit-self-test.json"
finish

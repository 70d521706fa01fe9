#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# vulkan_start.sh: the Vulkan backend takes the GPU that it should, says why it refuses others, keeps pipelines and passed
# self-tests, and finds kernels that are wrong.
set -eu
. tests/lib/lib.sh
. tests/lib/vulkan.sh
fresh
name=$(sed -n 's/^gpu  *\(.*\), by Vulkan.*/\1/p' "$d/doctor")
by() { NOJIT_VULKAN_DEVICE=$1 disturbed "" "$nojit" doctor --device "${2:-vulkan}"; }

# ---- which GPU ----
ok_if "NOJIT_VULKAN_DEVICE takes a GPU by its number" "$(by 0 2>&1)" grep -qF "gpu       $name, by Vulkan" <(by 0)
part=${name:1:4}
ok_if "NOJIT_VULKAN_DEVICE takes a GPU by a part of its name in any case" "$(by "${part^^}" 2>&1)" grep -qF "gpu       $name, by Vulkan" <(by "${part^^}")
refuses "NOJIT_VULKAN_DEVICE with a number that no GPU has is refused" 2 '^nojit doctor: --device vulkan: NOJIT_VULKAN_DEVICE=99: Vulkan sees [0-9]+ GPUs?, and none has' by 99
refuses "NOJIT_VULKAN_DEVICE with a name that no GPU has is refused" 2 '^nojit doctor: --device vulkan: NOJIT_VULKAN_DEVICE=no such: ' by "no such"
refuses "--device vulkan with Vulkan switched off is refused" 1 '^nojit doctor: --device vulkan: NOJIT_VULKAN_DEVICE=none switches Vulkan off$' by none
limits='^     workgroups of [0-9]+ threads and [0-9]+ bytes, grids of [0-9]+ x [0-9]+, [0-9]+ bytes of push constants$'
ok_if "doctor shows the limits of a GPU by Vulkan" "$(cat "$d/doctor")" grep -qE "$limits" "$d/doctor"
ok_if "doctor shows driver and memory of a GPU by Vulkan" "$(cat "$d/doctor")" \
    grep -qE '^     driver .+; memory [0-9.]+ GiB, [0-9.]+ GiB at a time, buffers of [0-9.]+ GiB$' "$d/doctor"
refuses "a GPU with too little shared memory is refused" 1 \
    "^nojit doctor: --device vulkan: .* cannot be used: it has 16384 bytes of shared memory, and 32768 are needed\$" \
    disturbed shared=16384 "$nojit" doctor --device vulkan
refuses "a Vulkan driver that is known to be bad is refused" 1 'cannot be used: its driver is known to be bad: .*Direct3D 12' \
    disturbed driver=23 "$nojit" doctor --device vulkan
disturbed driver=23 "$nojit" doctor --device vulkan >"$d/bad" 2>&1 || true
ok_if "doctor says why a Vulkan driver is refused" "$(cat "$d/bad")" grep -qE '^  0: .*: refused, as its driver is known to be bad: ' "$d/bad"
# NVK of Mesa 24.0.9 and 24.1.0. No such GPU is wanted, so that none is opened, and tried.
nvk() { disturbed driver=24,version=$1 env NOJIT_VULKAN_DEVICE="no such" "$nojit" doctor --device vulkan >"$d/bad" 2>&1 || true; }
nvk 100663305
ok_if "a version of a Vulkan driver that is known to be bad is refused" "$(cat "$d/bad")" grep -qE '^  0: .*: refused, as its driver is known to be bad: NVK was not conformant' "$d/bad"
nvk 100667392
ok_if "the version in which a Vulkan driver was mended is taken" "$(cat "$d/bad")" grep -qE '^  0: .*: can be used$' "$d/bad"

# ---- auto, where CUDA has no GPU ----
if [ -e /dev/nvidiactl ]; then
    skip "auto weighs GPUs by Vulkan" "CUDA may have a GPU here"
elif ! grep -q 'by a Vulkan driver, for tests' "$d/doctor"; then
    skip "auto weighs GPUs by Vulkan" "this GPU may be faster than the CPU"
else
    none=$(by none auto)
    ok_if "auto says that Vulkan is switched off" "$none" grep -q '^gpu  *not used: .*; Vulkan: NOJIT_VULKAN_DEVICE=none switches' <<<"$none"
    of_itself=$(by "" auto)
    ok_if "auto takes no Vulkan driver that runs on the CPU" "$of_itself" \
        grep -qF "; Vulkan: $name runs on the CPU" <<<"$of_itself"
    timed=$(disturbed dispatch=1e11 env NOJIT_VULKAN_DEVICE=0 "$nojit" doctor)
    ok_if "auto weighs a GPU that is named by a GEMM" "$timed" \
        grep -qE '; Vulkan: .* runs a GEMM of 1024 x 1024 x 1024 at [0-9]+ GFLOP/s, the CPU at [0-9]+ GFLOP/s$' <<<"$timed"
    ok_if "auto takes the CPU where its GEMM is faster than by Vulkan" "$timed" grep -q '^verdict   ready to train on the CPU, in float32' <<<"$timed"
    fast=$(disturbed dispatch=1 env NOJIT_VULKAN_DEVICE=0 "$nojit" doctor)
    ok_if "auto takes Vulkan where its GEMM is faster than on the CPU" "$fast" grep -q '^verdict   ready to train on the CPU by a Vulkan driver' <<<"$fast"
    ok_if "doctor says why CUDA is not taken but Vulkan" "$fast" grep -q '^cuda      cannot be used: .*GFLOP/s, the CPU at' <<<"$fast"
    NOJIT_VKFAULT_WRONG=$BUILD/spirv/gemm.nt.f32.spv disturbed dispatch=1,driver=98 env NOJIT_VULKAN_DEVICE=0 "$nojit" doctor >"$d/bad" 2>&1 || true
    ok_if "auto takes no GPU that fails its self-test" "$(cat "$d/bad")" \
        grep -q '^gpu  *not used: .*; Vulkan: .* fails the self-test of its kernels' "$d/bad"
    refuses "auto refuses a NOJIT_VULKAN_DEVICE that no GPU has" 2 'NOJIT_VULKAN_DEVICE=no such: ' by "no such" auto
fi

# ---- pipelines ----
fresh
compiled() { # of a driver that finds pipelines again
    disturbed caching=1 "$nojit" doctor --device vulkan --json | sed -nE 's/.*"kernels_loaded": ([0-9]+).*"pipelines_compiled": ([0-9]+).*/\1 \2/p'
}
kept() { (cd "$d/cache/nojit" && ls -- *."$1" 2>/dev/null) || true; }
shaders=$(wc -l <"$BUILD/pack/shaders.txt")
was=$(compiled)
ok_if "all pipelines are compiled at a first start" "$was" [ "$was" = "$shaders $shaders" ]
was=$(compiled)
ok_if "no pipeline is compiled at a second start" "$was" [ "$was" = "$shaders 0" ]
file=$d/cache/nojit/$(kept pipelines)
printf 'x' | dd of="$file" bs=1 seek=60 conv=notrunc 2>/dev/null
was=$(compiled)
ok_if "a damaged file of pipelines is made anew" "$was" [ "$was" = "$shaders $shaders" ]

# ---- the self-test ----
wrong() { NOJIT_VKFAULT_WRONG=$BUILD/spirv/$1.spv disturbed "caching=1${2:+,$2}" env NOJIT_VULKAN_DEVICE=0 "${@:3}"; }
# A device that this cache has not seen: a driver of another number.
refuses "the self-test finds a GEMM that is wrong" 1 'fails the self-test of its kernels, .*: GEMM NT float32 \[67 ' wrong gemm.nt.f32 driver=99 "$nojit" doctor --device vulkan
if grep -q 'bfloat16 as storage' "$d/doctor"; then
    refuses "the self-test finds a GEMM of bfloat16 that is wrong" 1 'fails the self-test of its kernels, .*: GEMM TN bfloat16 \[67 ' \
        wrong gemm.tn.lp driver=99 "$nojit" doctor --device vulkan
    refuses "the self-test finds a GEMM of large tiles that is wrong" 1 'fails the self-test of its kernels, .*: GEMM NN bfloat16 to float32 \[5 ' \
        wrong gemm.nn.lp_f32.large driver=99 "$nojit" doctor --device vulkan
else
    skip "the self-test finds a GEMM of bfloat16 that is wrong" "no 16-bit storage here"
fi
refuses "the self-test finds a kernel that is wrong" 1 "^nojit doctor: --device vulkan: .* fails the self-test of its kernels.*: accumulate.f32 \\[" \
    wrong accumulate.f32 driver=99 "$nojit" doctor --device vulkan
ok_if "a device that failed its self-test is tested again" "$(kept tested)" [ "$(kept tested)" = "$(cd "$shared/nojit" && ls -- *.tested)" ]
ok_if "pipelines of another driver are kept" "$(kept pipelines)" [ "$(kept pipelines | wc -l)" = 2 ]
disturbed caching=1 "$nojit" doctor --device vulkan >"$d/passed" 2>&1 || true
ok_if "a device that passed its self-test is not tested again" "$(cat "$d/passed")" grep -qE '^self-test passed on [0-9-]+, in ' "$d/passed"
head -c 3000 LICENSE >"$d/text.txt"
"$nojit" init --preset nojit-tiny --out "$d/model" >/dev/null
train() { "$nojit" train --model "$d/model" --data "$d/text.txt" --device vulkan --seq-len 48 --batch-size 2 --steps 3 --out "$@"; }
disturbed caching=1 train "$d/run" >"$d/log" 2>&1 || not_ok "a run with Vulkan runs to its end" "$(tail -n 2 "$d/log")"
ok_if "the receipt says how many pipelines were compiled" "$(grep -A 9 '"pipelines"' "$d/run/receipt.json")" \
    grep -qzE '"pipelines": \{[^}]*"compiled": 0,[^}]*"ms": [0-9.]+' "$d/run/receipt.json"
ok_if "no pipeline is made after the start" "$(tail -n 1 "$d/calls")" grep -q "; $shaders pipelines; .*; 0 objects left\$" <(tail -n 1 "$d/calls")

ok_if "the receipt says that the kernels passed their self-test" "$(grep -A 3 '"self_test"' "$d/run/receipt.json")" grep -q '"result": "passed before"' "$d/run/receipt.json"
finish

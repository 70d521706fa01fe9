#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# aarch64_qemu.sh: the build for an aarch64 host, with the machine code of GB10 (sm_121), and that binary under qemu-user: doctor,
# blobcheck, the first steps of the demo on the CPU backend, which must give what this machine's own binary gives, and those of a
# distillation on a simulated GB10.
# Needs Debian's cross compiler and qemu-user, which set-up installs where it may.
set -eu
. tests/lib/lib.sh
. tests/lib/relink.sh
unset MAKEFLAGS MAKELEVEL MFLAGS B # of a make that runs this
export OMP_WAIT_POLICY=passive
host=aarch64-linux-gnu
cross=$BUILD/$host
d=$scratch/work
mkdir "$d"
CUDA_HOME=$(sed -n 's/^CUDA_DIR := //p' "$BUILD/setup.mk")
export CUDA_HOME
made() { make --no-print-directory HOST=$host ARCHS=sm_121 NATIVE="$BUILD" B="$cross" "$@"; }

refuses "an unknown HOST is refused" 2 "HOST=riscv64-linux-gnu is unknown; use HOST=$host" make HOST=riscv64-linux-gnu NATIVE="$BUILD" B="$d/none" all
refuses "make test with the HOST of another machine is refused" 2 "HOST=$host goes with 'all', 'dist'" make HOST=$host test
shells_host() { [ "$(HOST=riscv64-linux-gnu make -n clean)" = "rm -rf build" ]; }
if shells_host; then ok "a HOST of the shell's environment does not decide"; else not_ok "a HOST of the shell's environment does not decide" "it decides"; fi
if [ "$(uname -m)-linux-gnu" = $host ]; then
    skip "nojit builds for aarch64" "this machine is an $host"
    finish
    exit
fi
if ! scripts/setup_host.sh $host "$cross" 2>"$scratch/err" && ! { command -v $host-gcc && command -v qemu-aarch64; } >/dev/null; then
    skip "nojit builds for aarch64" "the cross compiler or qemu-user is not here: $(tail -n 1 "$scratch/err")"
    finish
    exit
fi
emulator=$(sed -n 's/^EMULATOR := //p' "$cross/setup.mk")

shared() { find "$BUILD"/{spirv,unit,ptx,cubin} -type f -printf '%p %T@\n' | sort; }
shared >"$d/shared"
parsers=$(printf "$cross/fuzz/%s " $(ls tests/fuzz/corpus))
sim="$cross/sim/libcuda.so.1 $cross/sim/libcublasLt.so.13"
if made -j2 "$cross/checked" "$cross/blobcheck" $parsers $sim >"$scratch/log" 2>&1 && made "$cross/checked" >"$scratch/again" 2>&1; then
    ok "nojit builds for aarch64"
else
    not_ok "nojit builds for aarch64" "$(tail -n 3 "$scratch/log" "$scratch/again")"
    finish
    exit
fi
# Else the next make builds this machine's binary anew, beside tests that run it.
ok_if "a build for another machine leaves the shared code as it is" "$(shared | comm -23 "$d/shared" - | head -n 3)" \
    [ -z "$(shared | comm -23 "$d/shared" -)" ]
is_aarch64() { [ "$(od -An -tx1 -j18 -N2 "$1" | tr -d ' ')" = b700 ]; } # e_machine
elsewhere=$(($(wc -l <"$BUILD/gen/keys.txt") - $(keys_of sm_121 | wc -l))) # keys that another arch alone has
same_code() { # what both versions of blobcheck print of the binary
    "$BUILD/blobcheck" "$cross/nojit" >"$scratch/native" && $emulator "$cross/blobcheck" "$cross/nojit" >"$scratch/emulated" &&
        cmp "$scratch/native" "$scratch/emulated" && grep -q " $elsewhere excluded.*no problems" "$scratch/native"
}
succeeds "the cross-built binary is of aarch64" is_aarch64 "$cross/nojit"
succeeds "blobcheck of both machines accepts the aarch64 binary" same_code
same_machine_code() { # where this machine's build has it too
    grep ' sm_121 ' "$cross/pack/MANIFEST" >"$d/cross" && { grep ' sm_121 ' "$BUILD/pack/MANIFEST" || cat "$d/cross"; } | cmp - "$d/cross"
}
succeeds "the aarch64 binary has the machine code of this machine's" same_machine_code
cp "$cross/nojit" "$d/damaged"
at=$(grep -obUaP '\x7fELF' "$d/damaged" | sed -n '$s/:.*//p') # the last cubin
printf '\0' | dd of="$d/damaged" bs=1 seek="$at" conv=notrunc 2>/dev/null
refuses "blobcheck on aarch64 sees damage" 1 ELF $emulator "$cross/blobcheck" "$d/damaged"
doctor() {
    $emulator "$cross/nojit" doctor >"$scratch/doctor" &&
        grep -qE '^binary +nojit .* kernels for sm_121; .*no PTX$' "$scratch/doctor" &&
        grep -q '^verdict   ready to train on the CPU' "$scratch/doctor" || { cat "$scratch/doctor" && return 1; }
}
succeeds "doctor runs on aarch64" doctor
# A simulated GB10, which finds its PTX in this machine's build.
gb10=(env -i "PATH=$PATH" $emulator -E "LD_LIBRARY_PATH=$cross/sim" -E NOJIT_SIM_DEVICE=gb10 -E "NOJIT_SIM_PTX=$BUILD/sim/ptx.txt"
    -E NOJIT_SELF_TEST=off -E "NOJIT_SIM_LOG=$scratch/sim.log" -E "NOJIT_CUBLASLT=$(realpath "$BUILD")/$host/sim" "$cross/nojit")
plain() { sed -E 's/^self-test .*/self-test/; s/release unknown/0/; s/Simulated //; s|/[^ ,]*/lib|lib|; s/[0-9]+(\.[0-9]+)*/0/g'; }
doctor_of_gb10() {
    sed -n '/^## doctor/,/^## /{/^```/,/^```/p}' docs/dgx-spark.md | grep -v '^```' | sed -E 's/\bN(\+1)?\b/0/g' | plain >"$scratch/page"
    "${gb10[@]}" doctor --device cuda >"$scratch/doctor" &&
        diff "$scratch/page" <(plain <"$scratch/doctor")
}
succeeds "doctor on a simulated GB10 says what docs/dgx-spark.md shows" doctor_of_gb10
succeeds "the aarch64 programs are hardened" env BUILD="$cross" bash tests/build/hardening_elf.sh
succeeds "the help on aarch64 is that of this machine" cmp <("$BUILD/nojit" help --man) <($emulator "$cross/nojit" help --man)

package() ( # in a shell of its own, for cd
    local file
    file=$cross/dist/nojit-$("$BUILD/nojit" version | sed -E 's/^binary +nojit ([^:]+):.*/\1/')-aarch64-sm_121
    made dist && mkdir "$d/package" && tar -xzf "$file.tar.gz" -C "$d/package" --strip-components=1 && cd "$d/package" &&
        sha256sum -c SHA256SUMS && [ -s dgx-spark.md ] && [ -s nojit.1 ] && $emulator ./nojit version
)
succeeds "make dist packs for aarch64" package
wheel() { # as pip installs it for that machine
    local file
    file=$(made wheel | tail -n 1) && python3 -m pip install -q --no-index --no-deps --no-cache-dir --only-binary=:all: \
        --platform manylinux_2_36_aarch64 --target "$d/pip" "$file" && is_aarch64 "$d/pip/bin/nojit" && $emulator "$d/pip/bin/nojit" version
}
if python3 -m pip --version >/dev/null 2>&1; then succeeds "make wheel packs for aarch64" wheel; else ok "make wheel packs for aarch64"; fi

# char has no sign there: what parsers make of bytes above 127 is seen on damaged files.
succeeds "parsers on aarch64 refuse the corpus of damaged files" env BUILD="$cross" EMULATOR="$emulator" bash tests/fuzz/fuzz_corpus.sh

# The demo's models from the same seed, on less text and in smaller steps.
head -c 6000 /usr/share/common-licenses/GPL-3 >"$d/text.txt"
head -c 1500 /usr/share/common-licenses/LGPL-3 >"$d/held.txt"
for m in teacher student; do
    "$BUILD/nojit" init --preset nojit-demo-$m --out "$d/$m" >/dev/null
    $emulator "$cross/nojit" init --preset nojit-demo-$m --out "$d/emulated-$m" >/dev/null
    succeeds "init on aarch64 gives the weights of this machine for $m" cmp "$d/$m/model.safetensors" "$d/emulated-$m/model.safetensors"
done
first_steps() { # OUT COMMAND...
    local out=$1
    shift
    "$@" distill --teacher "$d/teacher" --student "$d/student" --data "$d/text.txt" --eval-data "$d/held.txt" --out "$out" --device cpu \
        --seq-len 64 --batch-size 2 --steps 4 --lr 2e-3 --warmup-steps 1 --beta2 0.99 --kd-ratio 0.8 --temperature 1 >"$scratch/log" 2>&1
}
succeeds "the first steps of the demo run on this machine" first_steps "$d/here" "$BUILD/nojit"
succeeds "the first steps of the demo run on aarch64" first_steps "$d/emulated" $emulator "$cross/nojit"
# Sums of float32 in another order: the bound is that of our float32 against float64 (tests/unit/golden_case.h).
numbers() { # FILE: every loss and norm, a line each
    grep -oE '"(loss|kd_loss|ce_loss|teacher_entropy|grad_norm|eval_ce_loss|eval_kd_loss)": [^,}]+' "$1"
}
same_numbers() {
    numbers "$d/here/metrics.jsonl" >"$scratch/here"
    numbers "$d/emulated/metrics.jsonl" >"$scratch/emulated"
    paste -d' ' "$scratch/here" "$scratch/emulated" | awk '
        $1 != $3 || ($2 - $4) ^ 2 > (1e-5 * $2) ^ 2 + 1e-16 { print; bad = 1 }
        END { exit bad || NR < 20 }'
}
succeeds "losses and norms on aarch64 agree with this machine's within 1e-5" same_numbers
# On the simulated GB10: kernels as PTX, in bfloat16; its losses are within 2^-9 of themselves (tests/device/device_training.sh).
for seed in 1 2; do "$BUILD/nojit" init --preset nojit-tiny --seed $seed --out "$d/tiny$seed" >/dev/null; done
tiny() { # OUT DEVICE COMMAND...
    local out=$1 device=$2
    shift 2
    "$@" distill --teacher "$d/tiny2" --student "$d/tiny1" --data "$d/text.txt" --out "$out" --device "$device" --seq-len 24 --batch-size 2 \
        --steps 3 --lr 1e-3 --gemm-table none >"$scratch/log" 2>&1
}
losses() { grep -oE '"loss": [^,]+' "$1/metrics.jsonl" | cut -d' ' -f2; }
on_gb10() {
    tiny "$d/tiny-here" cpu "$BUILD/nojit" && tiny "$d/tiny-gb10" cuda "${gb10[@]}" && grep -q ' 0 exempt; .* 0 objects left$' "$scratch/sim.log" &&
        paste <(losses "$d/tiny-here") <(losses "$d/tiny-gb10") | awk '
            ($1 - $2) ^ 2 > ($1 * 2 ^ -9) ^ 2 { print; bad = 1 }
            END { exit bad || NR != 3 || NF != 2 }' || { tail -n 2 "$scratch/log" "$scratch/sim.log" && return 1; }
}
succeeds "a distillation runs on aarch64 with a simulated GB10" on_gb10
held_out() { "$BUILD/nojit" eval --model "$1" --data "$d/held.txt" --device cpu --seq-len 64 --batch-size 2 --json | grep -oE '"ce_loss": [^,]+' | cut -d' ' -f2; }
same_model() { awk -v a="$(held_out "$d/here")" -v b="$(held_out "$d/emulated")" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < (1e-5 * a) ^ 2) }'; }
succeeds "a model distilled on aarch64 has the same held-out loss here" same_model
finish

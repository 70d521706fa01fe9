#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_misfit.sh: what is said of a GPU without embedded code, a kernel without any, a driver too old and a missing cuBLASLt, on a
# simulated driver: what is missing is named, and auto takes the CPU and says so once.
set -eu
. tests/lib/lib.sh
needs adamw.f32
nojit=$BUILD/nojit
sim=$BUILD/sim
on() { # SETTING=VALUE... COMMAND...: with the simulated driver
    env LD_LIBRARY_PATH="$sim" "$@"
}

arch=$(cut -f1 "$BUILD/gen/archs.txt" | tail -n 1)
for absent in 86 100 75; do # one that no code here runs on: same major, equal or lower minor
    awk -F'\t' -v sm=$absent 'int($2 / 10) == int(sm / 10) && $2 <= sm { found = 1 } END { exit !found }' "$BUILD/gen/archs.txt" || break
done
refuses "doctor names a GPU without embedded code" 4 "Simulated GPU.*sm_$absent.*$arch.*make ARCHS=sm_$absent" \
    on NOJIT_SIM_DEVICE=sm_$absent "$nojit" doctor --device cuda
refuses "doctor names a GPU of a later generation" 4 'sm_130' on NOJIT_SIM_DEVICE=sm_130 "$nojit" doctor --device cuda
refuses "doctor names a driver that is too old" 1 '12\.[0-9].*(13\.0|580)' on NOJIT_SIM_CUDA=12040 "$nojit" doctor --device cuda
refuses "doctor names a missing cuBLASLt" 1 'cuBLASLt|cublasLt' on NOJIT_CUBLASLT=/nonexistent "$nojit" doctor --device cuda

"$nojit" init --preset nojit-tiny --out "$scratch/model" >/dev/null
head -c 5000 LICENSE >"$scratch/text.txt"
train=("$nojit" train --student "$scratch/model" --data "$scratch/text.txt" --seq-len 32 --batch-size 2 --steps 2)
for case in NOJIT_SIM_DEVICE=sm_$absent NOJIT_SIM_CUDA=12040 NOJIT_CUBLASLT=/nonexistent; do
    name="auto takes the CPU and says so once ($case)"
    if on "$case" "${train[@]}" --out "$scratch/run-${case%%=*}" >"$scratch/log" 2>&1 &&
        [ "$(grep -c 'running on the CPU' "$scratch/log")" = 1 ]; then
        ok "$name"
    else
        not_ok "$name" "$(head -n 3 "$scratch/log")"
    fi
done

# A path that is neither UTF-8 nor free of quotation marks, where JSON quotes it.
strange=$'/none"xist\xff'
on NOJIT_CUBLASLT="$strange" "$nojit" doctor --device cuda --json >"$scratch/json" 2>/dev/null || true
if grep -qE '"fits": false, "problem": ".*/none\\"xist\?: [^"\]*"\}$' "$scratch/json"; then
    ok "doctor --json says the problem"
else
    not_ok "doctor --json says the problem" "$(cat "$scratch/json")"
fi
on NOJIT_CUBLASLT="$strange" "${train[@]}" --out "$scratch/strange" >"$scratch/log" 2>&1 || true
if grep -qE '^ *"fallback": ".*/none\\"xist' "$scratch/strange/receipt.json"; then
    ok "the receipt says why no GPU was used"
else
    not_ok "the receipt says why no GPU was used" "$(grep -A 14 '"device"' "$scratch/strange/receipt.json")"
fi

# A key whose entry in the index is empty: the binary holds code for this GPU, but not that kernel's. A key for one arch alone if there is
# one: the arch is named, not the GPU.
read -r key arch < <(
    awk 'NR == FNR { here[$1] } NR > FNR && $5 in here { print $1, $5 }' "$BUILD"/gen/{archs,keys}.txt
    awk -v arch="$arch" '{ print $1, arch }' "$BUILD/gen/keys.txt"
)
"$BUILD/damage" entry-emptied "$nojit" "$scratch/emptied" "$key"
chmod +x "$scratch/emptied"
emptied() { on NOJIT_SIM_DEVICE="${arch%[af]}" "$scratch/emptied" "${train[@]:1}" --out "$scratch/$1" "${@:2}"; }
sentence="$key has no machine code for $arch; build it with: make ARCHS=$arch"
refuses "--device cuda is refused where a kernel has no code" 4 "^nojit train: --device cuda: $sentence\$" emptied none --device cuda
if emptied run-emptied >"$scratch/log" 2>&1 && [ "$(grep -cx "running on the CPU, since no GPU is used: $sentence; see \`nojit doctor\`" "$scratch/log")" = 1 ]; then
    ok "auto takes the CPU and says so once (a kernel has no code)"
else
    not_ok "auto takes the CPU and says so once (a kernel has no code)" "$(head -n 3 "$scratch/log")"
fi
# doctor reports a missing GPU, and a binary of which one byte has changed.
"$nojit" doctor --device cuda >"$scratch/verdict" 2>/dev/null || true
if grep -qx 'verdict   not ready to train on the GPU' "$scratch/verdict"; then
    ok "doctor without a GPU ends in a verdict"
else
    not_ok "doctor without a GPU ends in a verdict" "$(tail -n 1 "$scratch/verdict")"
fi
cp "$nojit" "$scratch/damaged"
at=$(LC_ALL=C grep -obUaP '\x7fELF' "$scratch/damaged" | sed -n '$s/:.*//p') # the last cubin
printf '\0' | dd of="$scratch/damaged" bs=1 seek="$at" conv=notrunc 2>/dev/null
refuses "doctor refuses a damaged binary" 1 'index is damaged; rebuild or reinstall' "$scratch/damaged" doctor --device cpu
refuses "doctor --json refuses a damaged binary" 1 'index is damaged; rebuild or reinstall' "$scratch/damaged" doctor --device cpu --json

if [ -e "$scratch/none" ]; then not_ok "refused runs on a GPU that does not fit write nothing" "$(ls "$scratch/none")"; else ok "refused runs on a GPU that does not fit write nothing"; fi
finish

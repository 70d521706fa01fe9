#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_expanded.sh: on a simulated GPU, weights of a GGUF file that are quantized are expanded to what a folder with the
# expanded ones holds, to the last bit: the losses are the same.
set -eu
. tests/lib/lib.sh
needs sm_89 dequantize.lp.type6
. tests/lib/simulated.sh
head -c 700 /usr/share/common-licenses/LGPL-3 >"$d/text.txt"
"$nojit" init --preset nojit-tiny-llama --dtype float32 --seed 3 --out "$d/model" >"$scratch/out"
"$BUILD/gguf-of" "$d/model" "$d/model.gguf" Q5_0
"$nojit" init --like "$d/model.gguf" --layers 0,1 --dtype float32 --out "$d/expanded" >"$scratch/out"
measured() {
    NOJIT_SIM_DEVICE=rtx4090 "$nojit" eval --model "$1" --data "$d/text.txt" --seq-len 32 --batch-size 2 --device cuda --dtype "$2" --json \
        2>"$scratch/err" || tail -n 1 "$scratch/err" >&2
}
for dtype in float32 bfloat16; do
    got=$(measured "$d/model.gguf" $dtype)
    want=$(measured "$d/expanded" $dtype)
    if [ -n "$got" ] && [ "$got" = "$want" ]; then ok "a quantized file in $dtype has the losses of its expanded weights"; else not_ok "a quantized file in $dtype has the losses of its expanded weights" "got '$got', expected '$want'"; fi
done
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_decode.sh: texts on simulated GPUs: those of one, two, four, eight and 16 sequences at a time, whose steps have kernels of their
# own, are those that 11 at a time write, in float32 and in 16 bits; float32 writes what a CPU writes. In 16 bits the decoder predicts what a forward pass
# does (bench/decode_kl.c). Few are tried in 16 bits on all GPUs but the GB10, whose PTX for that is the RTX 5090's, and in float32, which has no
# products of its own for them, on two; with EVERY=1 on all.
set -eu
. tests/lib/lib.sh
: "${EVERY:=0}"
. tests/lib/simulated.sh

"$BUILD/nojit" init --preset nojit-demo-student --out "$d/model" >/dev/null 2>&1
for text in 12+30= a 'some more words' 7 xyz b 5 1+1= c 'a text' d; do
    echo "{\"prompt\": \"$text\", \"max_tokens\": 8}"
done >"$d/prompts-11.jsonl"
head -n 5 "$d/prompts-11.jsonl" >"$d/prompts-5.jsonl"
head -c 2000 /usr/share/common-licenses/GPL-3 >"$d/text.txt"
write() { "$BUILD/nojit" generate --model "$d/model" --prompts "$d/prompts-$1.jsonl" --gemm-table none "${@:2}" 2>"$d/err"; }
write 11 --device cpu >"$d/cpu"

few=
cpu=
apart=
# Logits of random weights lie within +-1: off by 1e-2 at most, they are 5e-5 nats apart at most.
predictions() { # PROFILE
    "$BUILD/decode_kl" "$d/model" "$d/text.txt" --device cuda --contexts 3 --seq-len 80 >"$d/table" 2>"$d/err" &&
        awk '/^KL/ { n += $(NF - 2) < 5e-5 } END { exit n != 2 }' "$d/table" || apart+=" $1: $(tail -n 1 "$d/err" "$d/table");"
}
in_few() { # PROFILE DTYPE: whether few sequences are tried there
    [[ $EVERY = 1 || " t4:float32 t4:auto rtx4090:auto h100:auto rtx5090:float32 rtx5090:auto " == *" $1:$2 "* ]]
}
texts() { # PROFILE
    local dtype rows count
    export NOJIT_SIM_DEVICE=$1
    for dtype in float32 auto; do
        write 11 --dtype $dtype --batch-size 11 >"$d/most" || few+=" $1, --dtype $dtype: $(tail -n 1 "$d/err");"
        for rows in 1 2 4 8 16; do
            in_few "$1" $dtype || continue
            count=$((rows < 5 ? 5 : 11))
            write $count --dtype $dtype --batch-size $rows >"$d/few" || few+=" $1, --dtype $dtype: $(tail -n 1 "$d/err");"
            head -n $count "$d/most" | cmp -s "$d/few" - || few+=" $1, --dtype $dtype, $rows at a time;"
        done
        [ $dtype = auto ] || cmp -s "$d/most" "$d/cpu" || cpu+=" $1;"
    done
    predictions "$1"
    unset NOJIT_SIM_DEVICE
}
recurrent=
# Steps of layers with convolutions and with linear attention, and of gated attention.
recurrent_texts() { # PROFILE
    local kind rows
    export NOJIT_SIM_DEVICE=$1
    for kind in lfm2 qwen3.5; do
        rm -rf "$d/model"
        "$BUILD/nojit" init --preset "nojit-tiny-$kind" --out "$d/model" >/dev/null 2>&1
        write 5 --batch-size 5 >"$d/most" || recurrent+=" $1, $kind: $(tail -n 1 "$d/err");"
        for rows in 1 4; do
            write 5 --batch-size $rows >"$d/few" || recurrent+=" $1, $kind: $(tail -n 1 "$d/err");"
            cmp -s "$d/most" "$d/few" || recurrent+=" $1, $kind, $rows at a time;"
        done
        predictions "$1, $kind"
    done
    unset NOJIT_SIM_DEVICE
}
for p in $profiles; do
    arch=${p#*:}
    [[ $held == *" sm_$arch "* || $held == *" sm_${arch}a "* ]] || continue
    texts "${p%:*}"
    [[ $EVERY = 1 || ${p%:*} = h100 ]] || continue
    mv "$d/model" "$d/plain"
    recurrent_texts "${p%:*}"
    rm -rf "$d/model"
    mv "$d/plain" "$d/model"
done
if [ -z "$few" ]; then ok "few sequences at a time give the texts of 11 at a time"; else not_ok "few sequences at a time give the texts of 11 at a time" "${few:0:400}"; fi
if [ -z "$recurrent" ]; then ok "few sequences of recurrent layers give the texts of 5 at a time"; else not_ok "few sequences of recurrent layers give the texts of 5 at a time" "${recurrent:0:400}"; fi
if [ -z "$apart" ]; then ok "the decoder in 16 bits predicts what a forward pass does"; else not_ok "the decoder in 16 bits predicts what a forward pass does" "${apart:0:400}"; fi
if [ -z "$cpu" ]; then ok "float32 on GPUs writes the texts of a CPU"; else not_ok "float32 on GPUs writes the texts of a CPU" "others on$cpu"; fi
finish

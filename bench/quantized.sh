#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# quantized.sh: what quantizing a teacher costs: trains one of 182M parameters as bench/quality.sh does, its rows whole blocks of every
# type, and compares GGUF files of it with it: size, held-out loss, divergence from the model itself in nats per token, and how
# often both rank the same token first. Needs a GPU, and Python with `tokenizers`; with PyPI's xllamacpp and gguf also the types that
# only ggml quantizes are there.
#   FOLDERS='/usr/share/doc /usr/lib/python3'   where the text comes from     MEGABYTES=160   VOCABULARY=16384
#   STEPS=3000                                  of 32 x 512 tokens            WORK=build/quantized
set -eu
: "${BUILD:=build}" "${WORK:=$BUILD/quantized}" "${PYTHON:=python3}" "${DEVICE:=cuda}" "${STEPS:=3000}" "${BATCH:=32}" "${SEQ:=512}"
: "${FOLDERS:=/usr/share/doc /usr/share/common-licenses /usr/lib/python3 /usr/include}" "${MEGABYTES:=160}" "${VOCABULARY:=16384}"
nojit=$BUILD/nojit
. bench/lib.sh
give_help "$@"
needs_tokenizers
needs_device
rm -rf "$WORK"
mkdir -p "$WORK/files"
stage "text and tokenizer"
make_text
stage "teacher, $STEPS steps"
"$nojit" init --like "$WORK/shape-teacher" --hidden-size 1024 --intermediate-size 2816 --heads 16 --kv-heads 16 --out "$WORK/start"
"$nojit" train --student "$WORK/start" --data "$WORK/train.bin" --eval-data "$WORK/held-out.bin" --out "$WORK/teacher" --device "$DEVICE" \
    --batch-size "$BATCH" --seq-len "$SEQ" --lr-schedule cosine --warmup-ratio 0.05 --steps "$STEPS" --lr 1e-3 --weight-decay 0.1 \
    --eval-every 500 --log-every 100 >"$WORK/log" 2>&1 || refuse "$(tail -n 1 "$WORK/log")"
tail -n 2 "$WORK/log"

stage "held out"
files=$WORK/files

# row TYPE: of the file that has the matrices in it
row() {
    local file=$files/$1.gguf
    # shellcheck disable=SC2183 # held_out gives three words
    printf '%-8s %8.1f %8.4f %12.6f %10.4f\n' "$1" "$(($(stat -c %s "$file") / 100000))e-1" \
        $(held_out "$file" "$WORK/teacher" --batch-size "$BATCH" --seq-len "$SEQ")
}
printf '%-8s %8s %8s %12s %10s\n' type MB loss KL agreement
for type in bf16 q8_0 q6_k q5_k_m q4_k_m; do
    "$nojit" export --model "$WORK/teacher" --out "$files/$type.gguf" --type "$type" >/dev/null 2>&1
    row "$type"
done
if "$PYTHON" -c 'import gguf, xllamacpp' 2>/dev/null; then
    "$nojit" export --model "$WORK/teacher" --out "$files/f32.gguf" --type f32 >/dev/null 2>&1
    for type in Q4_0 IQ4_XS Q3_K Q2_K; do
        "$PYTHON" tests/lib/llama_cpp.py requantize "$files/f32.gguf" "$type" "$files/$type.gguf"
        row "$type"
    done
else
    echo "the types that only ggml quantizes are left out: $PYTHON lacks xllamacpp or gguf"
fi
stage "done"

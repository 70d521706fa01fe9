#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# curve.sh: does nojit learn what PyTorch learns? Distils the same weights on the same tokens in the same order with nojit and with
# bench/torch_distill.py, each twice: with whole batches and with halves, so that rounding differs and nothing else; in 16
# bits PyTorch once more in float32, to show what those cost. Draws the curves (OUT.svg) and says whether the two programs
# differ by more than rounding makes one differ from itself. Exit status 1 if so.
# Needs Python with torch and transformers. Three minutes on an H200 with the models that are meant.
#   TEACHER=DIR STUDENT=DIR   folders (default: random weights, PAIR='qwen2.5-1.5b qwen2.5-0.5b')   DATA='FILE...' text
#   STEPS=200 BATCH=4 SEQ=256 LR=1e-4 WARMUP=20   DEVICE=cuda   DTYPE=auto   PYTHON=python3
#   BUILD=build   WORK=BUILD/curve   OUT=WORK/curve   NOISE=2   how many times the noise the difference may be
# Arguments go to nojit.
set -eu
: "${BUILD:=build}" "${WORK:=$BUILD/curve}" "${OUT:=$WORK/curve}" "${PYTHON:=python3}" "${DEVICE:=cuda}" "${DTYPE:=auto}" "${NOISE:=2}"
: "${PAIR:=qwen2.5-1.5b qwen2.5-0.5b}" "${TEACHER:=}" "${STUDENT:=}" "${DATA:=}"
: "${STEPS:=200}" "${BATCH:=4}" "${SEQ:=256}" "${LR:=1e-4}" "${WARMUP:=20}"
nojit=$BUILD/nojit
. bench/lib.sh
give_help "$@"
if [ $((BATCH % 2)) != 0 ]; then
    refuse "BATCH=$BATCH cannot be halved; give an even one"
fi
"$PYTHON" -c 'import torch, transformers' >/dev/null 2>&1 ||
    refuse "PYTHON=$PYTHON does not import torch and transformers; name a Python that has them"
needs_device
mkdir -p "$WORK"

if [ -z "$TEACHER" ]; then
    TEACHER=$WORK/teacher
    rm -rf "$TEACHER"
    "$nojit" init --preset "${PAIR% *}" --seed 2 --out "$TEACHER" >"$WORK/log"
fi
if [ -z "$STUDENT" ]; then
    STUDENT=$WORK/student
    rm -rf "$STUDENT"
    "$nojit" init --preset "${PAIR#* }" --seed 1 --out "$STUDENT" >"$WORK/log"
fi
# As many tokens as the steps take, and one more; without ends of texts, since PyTorch's run knows no documents.
for f in ${DATA:-/usr/share/common-licenses/* /usr/share/doc/*/copyright}; do
    if [ -f "$f" ]; then cat "$f"; fi
done | head -c $((STEPS * BATCH * SEQ * 8)) >"$WORK/text.txt" || true
rm -f "$WORK/tokens.bin" # of an earlier run
"$nojit" tokenize --model "$STUDENT" --data "$WORK/text.txt" --out "$WORK/tokens.bin" >"$WORK/log" 2>&1
"$PYTHON" - "$WORK/tokens.bin" "$WORK/tokens.u32" $((STEPS * BATCH * SEQ + 1)) <<'PY'
import array, sys
source, target, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3])
header, ids = array.array("i"), array.array("I")
data = open(source, "rb").read()
header.frombytes(data[8:24])  # version, bytes per id, how many, vocabulary
ids.frombytes(data[1024 : 1024 + 4 * header[2]])
ids = ids[:-1]  # the end of the text
if not ids:
    sys.exit("curve.sh: there is no text")
while len(ids) < wanted:
    ids.extend(ids[: wanted - len(ids)])
ids[:wanted].tofile(open(target, "wb"))
PY

stage "nojit, $STEPS steps of $BATCH x $SEQ tokens"
distil() { # NAME BATCH ACCUM OPTION...
    rm -rf "${WORK:?}/$1"
    if ! "$nojit" distill --teacher "$TEACHER" --student "$STUDENT" --data "$WORK/tokens.u32" --out "$WORK/$1" --seed 0 \
        --steps "$STEPS" --batch-size "$2" --grad-accum "$3" --seq-len "$SEQ" --lr "$LR" --warmup-steps "$WARMUP" \
        --device "$DEVICE" --dtype "$DTYPE" "${@:4}" >"$WORK/log" 2>&1; then
        cat "$WORK/log" >&2
        exit 1
    fi
    tail -n 1 "$WORK/log"
}
distil nojit "$BATCH" 1 "$@"
distil nojit-halves $((BATCH / 2)) 2 "$@"
stage "PyTorch"
"$PYTHON" bench/torch_distill.py "$WORK/nojit" "$WORK/torch" --device "$DEVICE"
"$PYTHON" bench/torch_distill.py "$WORK/nojit" "$WORK/torch-halves" --device "$DEVICE" --micro 2
exact=()
if ! grep -q '"dtype": "float32"' "$WORK/nojit/receipt.json"; then
    exact=(--exact "$WORK/torch-exact")
    "$PYTHON" bench/torch_distill.py "$WORK/nojit" "$WORK/torch-exact" --device "$DEVICE" --exact
fi
stage "curves: $OUT.svg"
"$PYTHON" bench/curve_plot.py --noise "$NOISE" --svg "$OUT.svg" ${exact[@]+"${exact[@]}"} \
    "$WORK/nojit" "$WORK/nojit-halves" "$WORK/torch" "$WORK/torch-halves"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bench_curve.sh: bench/curve_plot.py tells a difference from noise; where $PYTHON has torch and transformers, bench/curve.sh
# trains with both programs in float32, and a PyTorch run that does something else is noticed. Scripts describe themselves with
# --help. If it fails, the page that compares curves with PyTorch's proves nothing.
set -eu
. tests/lib/lib.sh
: "${PYTHON:=python3}"
if ! command -v "$PYTHON" >/dev/null; then
    skip "everything" "there is no Python"
    finish
    exit
fi

# run NAME SHIFT: a loss that falls, with SHIFT added by turns
run() {
    mkdir -p "$scratch/$1"
    awk -v shift="$2" 'BEGIN { for (i = 1; i <= 40; i++)
        printf "{\"step\": %d, \"loss\": %.9f}\n", i, 2 + exp(-i / 9) + (i % 2 ? shift : -shift) }' >"$scratch/$1/metrics.jsonl"
}
plot() { "$PYTHON" bench/curve_plot.py --svg "$scratch/c.svg" "$@"; }
run a 0
run b 1e-4
run c 1.5e-4
run d 4e-4
plot "$scratch/a" "$scratch/b" "$scratch/c" "$scratch/c" >"$scratch/log" && got=0 || got=$?
if [ $got = 0 ] && grep -q 'differ by 1.50e-04 .* by 1.00e-04 .*: within 2 times' "$scratch/log"; then ok "curve_plot.py finds curves within the noise alike"; else not_ok "curve_plot.py finds curves within the noise alike" "$(cat "$scratch/log")"; fi
if "$PYTHON" -c 'import sys, xml.dom.minidom as m; sys.exit(len(m.parse(sys.argv[1]).getElementsByTagName("path")) != 5)' "$scratch/c.svg"; then
    ok "curve_plot.py draws five curves"
else
    not_ok "curve_plot.py draws five curves" "$(head -c 300 "$scratch/c.svg")"
fi
plot "$scratch/a" "$scratch/b" "$scratch/d" "$scratch/d" >"$scratch/log" && got=0 || got=$?
if [ $got = 1 ] && grep -q 'by 4.00e-04 .* by 1.00e-04 .*: BEYOND' "$scratch/log"; then ok "curve_plot.py finds curves beyond the noise different"; else not_ok "curve_plot.py finds curves beyond the noise different" "$(cat "$scratch/log")"; fi
plot --exact "$scratch/a" "$scratch/a" "$scratch/b" "$scratch/d" "$scratch/d" >"$scratch/log" && got=0 || got=$?
if [ $got = 1 ] && grep -q '^PyTorch, float32 .* 4.00e-04' "$scratch/log"; then
    ok "curve_plot.py shows what float32 changes and excuses nothing by it"
else
    not_ok "curve_plot.py shows what float32 changes and excuses nothing by it" "$(cat "$scratch/log")"
fi
head -n 20 "$scratch/a/metrics.jsonl" >"$scratch/b/metrics.jsonl"
refuses "curve_plot.py refuses runs of other lengths" 1 'the runs have 40, 20, 40, 40 steps' plot "$scratch/a" "$scratch/b" "$scratch/c" "$scratch/c"
refuses "curve.sh refuses a batch that cannot be halved" 2 'cannot be halved' env WORK="$scratch/w" BATCH=3 bench/curve.sh
refuses "curve.sh refuses a Python without torch" 2 'PYTHON=false does not import torch' env WORK="$scratch/w" PYTHON=false bench/curve.sh
refuses "curve.sh refuses a GPU that is not there" 2 '^curve.sh: .*doctor' env WORK="$scratch/w" PYTHON=true NOJIT_CUBLASLT=/absent bench/curve.sh
if [ -e "$scratch/w" ]; then not_ok "a refused curve.sh makes nothing" "$(ls "$scratch/w")"; else ok "a refused curve.sh makes nothing"; fi
for script in bench/curve.sh bench/gpu.sh bench/quality.sh bench/defaults.sh bench/objectives.sh scripts/demo.sh; do
    if $script --help | grep -q "^$(basename $script): "; then ok "$script --help describes the script"; else not_ok "$script --help describes the script" "$($script --help 2>&1)"; fi
done

if ! "$PYTHON" -c 'import torch, transformers' 2>/dev/null; then
    skip "curve.sh finds nojit's curve within PyTorch's noise" "$PYTHON lacks torch or transformers"
    finish
    exit
fi
export WORK=$scratch/curve PYTHON PAIR='nojit-demo-teacher nojit-tiny'
env DATA=LICENSE DEVICE=cpu STEPS=12 BATCH=2 SEQ=32 LR=1e-3 WARMUP=3 NOISE=10 bench/curve.sh --weight-decay 0.2 >"$scratch/log" 2>&1 && got=0 || got=$?
if [ $got = 0 ] && grep -q 'within 10 times the noise' "$scratch/log"; then ok "curve.sh finds nojit's curve within PyTorch's noise"; else not_ok "curve.sh finds nojit's curve within PyTorch's noise" "$(tail -n 5 "$scratch/log")"; fi
# Without clipping, with another decay of moments or weights it is another curve.
for change in '"max_grad_norm": 1.0/"max_grad_norm": 0.0' '"beta2": 0.949999988/"beta2": 0.99' '"weight_decay": 0.200000003/"weight_decay": 0.0' \
    '"kd_ratio": 0.800000012/"kd_ratio": 0.6'; do
    rm -rf "$WORK/other" && cp -r "$WORK/nojit" "$WORK/other"
    sed -i "s/$change/" "$WORK/other/receipt.json"
    "$PYTHON" bench/torch_distill.py "$WORK/other" "$WORK/torch-other" --device cpu >"$scratch/log" 2>&1
    if plot --noise 10 "$WORK/nojit" "$WORK/nojit-halves" "$WORK/torch-other" "$WORK/torch-other" >"$scratch/log"; then
        not_ok "curve.sh notices a PyTorch run with another ${change%%/*}" "$(tail -n 1 "$scratch/log")"
    else
        ok "curve.sh notices a PyTorch run with another ${change%%/*}"
    fi
done
finish

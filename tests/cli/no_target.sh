#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# no_target.sh: micro-batches of which no position has a target, as where a prompt fills a sequence: they are skipped and counted, on one device
# and on several, and end nothing.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_NUM_THREADS=1
"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
long=$(printf 'a question that fills the sequence %.0s' 1 2 3)
row() { printf '{"prompt": "%s", "completion": " b b b b b b"}\n' "$1"; }
# Rows of 64 tokens, cut where they are full: those that hold only a part of a long prompt have no target; by seed 2 the second, fourth and last.
for prompt in "$long" q "$long" "$long" q "$long" q q; do row "$prompt"; done >"$d/some.jsonl"
train() { # OUT OPTION...
    "$nojit" train --student "$d/student" --data "$d/some.jsonl" --seq-len 64 --batch-size 1 --packing wrapped --seed "${seed:-2}" --device cpu --save-every 1 --keep 9 \
        --lr-schedule constant --out "$d/$1" "${@:2}" >"$d/$1.log" 2>"$d/$1.err"
}
succeeds "a run with steps that have no target runs to its end" train one --epochs 1
rows() { grep -c "$2" "$d/$1/metrics.jsonl" || true; }
ok_if "a step without a target has a row without a loss" "$(cat "$d/one/metrics.jsonl")" \
    [ "$(rows one '"loss": null, .*"valid_tokens": 0, "tokens_per_second": null') $(rows one '"valid_tokens": [1-9]')" = "3 5" ]
ok_if "a run counts micro-batches without a target in its log" "$(cat "$d/one.log")" grep -qx 'micro-batches without a target, which were skipped: 3 of 8' "$d/one.log"
ok_if "the first micro-batch without a target is explained, once" "$(cat "$d/one.log")" [ "$(grep -c 'a micro-batch has no target' "$d/one.log")" = 1 ]
ok_if "the receipt counts micro-batches without a target" "$(grep empty "$d/one/receipt.json")" grep -q '"empty_micro_batches": 3' "$d/one/receipt.json"
ok_if "a step without a target changes no weight" "they differ" cmp -s "$d/one/checkpoint-3/model.safetensors" "$d/one/checkpoint-4/model.safetensors"
ok_if "the step after one without a target changes weights" "they are alike" eval '! cmp -s "$d/one/checkpoint-4/model.safetensors" "$d/one/checkpoint-5/model.safetensors"'

same() { # NAME OUT
    ok_if "$1" "$(cat "$d/$2.err")" cmp -s "$d/one/model.safetensors" "$d/$2/model.safetensors"
}
train parted --steps 4
train parted --steps 8 --resume auto
same "a run resumed at a step without a target is the same run" parted
train two --steps 4 --grad-accum 2 --gpus 2
train virtual --steps 4 --grad-accum 2 --virtual-ranks 2
ok_if "several processes pass over micro-batches without a target as one does" "$(cat "$d"/two.*)" cmp -s "$d/two/model.safetensors" "$d/virtual/model.safetensors"
ok_if "several processes count micro-batches without a target as one does" "$(cat "$d/two/receipt.json")" grep -q '"empty_micro_batches": 3' "$d/two/receipt.json"

refuses "a run without any target ends with an error" 1 'no position of the data has a target in any of 1 step; check its masks' eval 'seed=0 train none --steps 1 || { cat "$d/none.err" >&2 && false; }'
ok_if "a run without any target writes no model" "$(ls "$d/none")" [ ! -e "$d/none/model.safetensors" ]
finish

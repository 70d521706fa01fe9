#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# diverged.sh: a run whose loss rises for good ends with a status of its own, says so, and keeps its model; others do not.
set -eu
. tests/lib/lib.sh
d=$scratch/work
mkdir "$d"
export OMP_NUM_THREADS=1
"$BUILD/nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
head -c 4000 LICENSE >"$d/text.txt"
train() { # OUT LR OPTION...
    "$BUILD/nojit" train --student "$d/student" --data "$d/text.txt" --seq-len 32 --batch-size 2 --steps 20 --max-grad-norm 0 --device cpu --lr "$2" --out "$d/$1" "${@:3}" >"$d/$1.log"
}
refuses "a run that has diverged says so" 5 \
    '^nojit train: this run has diverged: the cross-entropy of its last steps is [0-9.]+, after 5[.][0-9]+; lower --lr, or add --warmup-steps, and start again in another folder$' \
    train wild 3 --eval-data "$d/text.txt"
ok_if "a run that has diverged writes its model" "$(ls "$d/wild")" test -s "$d/wild/model.safetensors"
refuses "a run of several ranks that has diverged says so" 5 '^nojit train: this run has diverged: ' train ranks 3 --gpus 2
refuses "a run that has diverged names its best model" 5 "; $d/best/best has the lowest held-out loss\$" \
    train best 3 --warmup-steps 19 --eval-data "$d/text.txt" --keep-best --eval-every 1
train saved 3 --save-every 15 || true
refuses "a diverged run that is resumed when it has ended says so again" 5 \
    "^nojit train: this run has diverged, as $d/saved/receipt.json says; lower --lr, " train saved 3 --save-every 15 --resume auto
ok_if "the receipt of a run that has diverged says so" "$(grep diverged "$d/wild/receipt.json")" grep -q '"diverged": true' "$d/wild/receipt.json"
ok_if "a large perplexity is printed in a few digits" "$(grep 'held out' "$d/wild.log")" \
    grep -qE 'held out at step 20: ce [0-9.]+  perplexity [0-9.]+e\+[0-9]+$' "$d/wild.log"
train tame 1e-3
ok_if "a run that has not diverged does not say so" "$(tail -n 2 "$d/tame.log")" eval '! grep -q diverged "$d/tame.log"'
ok_if "the receipt of a run that has not diverged does not say so" "$(grep diverged "$d/tame/receipt.json")" grep -q '"diverged": false' "$d/tame/receipt.json"
finish

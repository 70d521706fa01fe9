#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# old_run.sh: the folders of runs in tests/golden, written once by tests/golden/make_run.sh, are read by every later nojit: state.bin, settings.txt,
# progress.txt and metrics.jsonl as docs/run-folder.md promises.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1

for golden in tests/golden/run*; do
    name=${golden##*/}
    unpack() { # OUT: as a run that was interrupted after step 2 leaves it
        rm -rf "$1"
        mkdir -p "$1/checkpoint-2"
        base64 -d "$golden/state.bin.base64" >"$1/checkpoint-2/state.bin"
        cp "$golden"/*.txt "$1/checkpoint-2"
        cp "$golden/metrics.jsonl" "$1"
    }
    rm -rf "$d"
    mkdir -p "$d/like"
    cp "$golden/config.json" "$d/like"
    base64 -d "$golden/data.bin.base64" >"$d/data.bin"
    # Weights of another seed: those of the run come from its state.
    "$nojit" init --like "$d/like" --dtype float32 --seed 6 --out "$d/student" >/dev/null
    run=("$nojit" train --student "$d/student" --data "$d/data.bin" --eval-data "$d/data.bin" --eval-every 1 --seq-len 8 --batch-size 1 --lr 1e-2
        --save-every 1 --device cpu --out "$d/out" --resume auto)

    unpack "$d/out"
    if "${run[@]}" --steps 2 >"$scratch/out" 2>&1 && [ "$(tail -c 9440 "$d/out/model.safetensors" | cksum)" = "$(cat "$golden/weights.cksum")" ]; then
        ok "the state of an old run $name holds its weights"
    else
        not_ok "the state of an old run $name holds its weights" "$(tail -n 1 "$scratch/out")"
    fi
    for lacks in nothing progress.txt; do # which the first checkpoints did not have
        unpack "$d/out"
        rm -f "$d/out/checkpoint-2/$lacks"
        if "${run[@]}" --keep-best --steps 4 >"$scratch/out" 2>&1 && grep -q '^continuing from .*/checkpoint-2 (step 2)$' "$scratch/out" &&
            [ "$(head -n "$(wc -l <"$golden/metrics.jsonl")" "$d/out/metrics.jsonl")" = "$(cat "$golden/metrics.jsonl")" ] &&
            [ "$(grep -c '"loss"' "$d/out/metrics.jsonl")" = 4 ] && [ -f "$d/out/checkpoint-4/state.bin" ]; then
            ok "an old run $name goes on without $lacks"
        else
            not_ok "an old run $name goes on without $lacks" "$(tail -n 2 "$scratch/out")"
        fi
    done
    sed -i 's/^seed 1$/seed 2/' "$d/out/checkpoint-4/settings.txt"
    refuses "an old run $name with another setting is refused" 2 'was made with seed 2, this run has seed 1' "${run[@]}" --steps 6
done
finish

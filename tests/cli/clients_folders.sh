#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# clients_folders.sh: model folders that transformers wrote open here, train, and are written again; with transformers in
# reach of $PYTHON, both sides have the same held-out loss on folders of either. (test_golden.c compares all numbers.)
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive TRANSFORMERS_VERBOSITY=error
head -c 8000 /usr/share/common-licenses/GPL-3 >"$d/text.txt"
head -c 1500 /usr/share/common-licenses/LGPL-3 >"$d/held.txt"
held_out() { "$nojit" eval --device cpu --json --seq-len 96 --data "$d/held.txt" --model "$1" | sed -E 's/.*"ce_loss": ([^,]+),.*/\1/'; }
client() { "${PYTHON:-python3}" tests/lib/clients.py "$@" 2>"$scratch/err"; }
train() { # FROM TO
    "$nojit" train --device cpu --data "$d/text.txt" --student "$1" --out "$2" --seq-len 64 --batch-size 2 --steps 6 \
        --lr 3e-3 >"$scratch/out" 2>&1
}

for family in qwen2 qwen3 llama; do
    from=tests/golden/torch/$family
    train "$from" "$d/golden-$family"
    before=$(held_out "$from") after=$(held_out "$d/golden-$family")
    if awk -v a="$after" -v b="$before" 'BEGIN { exit !(a != "" && a < b - 0.2) }'; then
        ok "$family of transformers trains"
    else
        not_ok "$family of transformers trains" "held-out loss $before -> $after"
    fi
done

if "${PYTHON:-python3}" -c 'import torch, transformers' 2>/dev/null; then
    client make "$d/theirs" || not_ok "transformers writes models" "$(tail -n 1 "$scratch/err")"
    for from in "$d"/theirs/*; do train "$from" "$d/ours-$(basename "$from")"; done
    folders=("$d"/theirs/* "$d"/ours-* tests/golden/torch/{qwen2,qwen3,llama} "$d"/golden-*)
    mapfile -t losses < <(client loss "$d/held.txt" 96 "${folders[@]}")
    for i in "${!folders[@]}"; do
        name="${folders[i]#"$d/"}: transformers has our loss" mine=$(held_out "${folders[i]}")
        if awk -v a="$mine" -v b="${losses[i]:-}" 'BEGIN { exit !(a != "" && b != "" && a - b < 1e-5 && b - a < 1e-5) }'; then
            ok "$name"
        else
            not_ok "$name" "$mine here, ${losses[i]:-$(tail -n 1 "$scratch/err")} there"
        fi
    done
fi
finish

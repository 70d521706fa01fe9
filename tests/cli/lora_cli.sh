#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# lora_cli.sh: adapters are trained, continued, resumed, merged, evaluated and refused from the command line; with PEFT in reach
# of $PYTHON they go there and back.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive

"$nojit" init --preset nojit-tiny-qwen3 --dtype float32 --out "$d/base" >/dev/null
head -c 20000 /usr/share/common-licenses/GPL-3 >"$d/text.txt"
head -c 3000 /usr/share/common-licenses/LGPL-3 >"$d/held.txt"
fast=(--seq-len 64 --batch-size 2 --device cpu --data "$d/text.txt" --student "$d/base" --lr 1e-2)
lora=(--lora-r 8 --lora_alpha 16 --lora_dropout 0.05 --lora_target_modules "q_proj,v_proj" up_proj down_proj)
train() { "$nojit" train "${fast[@]}" "$@" >"$scratch/out" 2>&1; }
held_out() { "$nojit" eval --device cpu --json --seq-len 64 --data "$d/held.txt" "$@" | sed -E 's/.*"ce_loss": ([^,]+),.*/\1/'; }
near() { # NAME A B: within 1e-4
    if awk -v a="$2" -v b="$3" 'BEGIN { exit !(a != "" && b != "" && a - b < 1e-4 && b - a < 1e-4) }'; then
        ok "$1"
    else
        not_ok "$1" "$2 and $3"
    fi
}

train "${lora[@]}" --out "$d/one" --steps 8 --save-every 4 --merge
if [ -f "$d/one/adapter_model.safetensors" ] && [ ! -e "$d/one/model.safetensors" ]; then
    ok "a run with --lora-r saves adapters alone"
else
    not_ok "a run with --lora-r saves adapters alone" "$(ls "$d/one")"
fi
before=$(held_out --model "$d/base") after=$(held_out --model "$d/base" --adapter "$d/one")
if awk -v a="$after" -v b="$before" 'BEGIN { exit !(a < b - 0.05) }'; then ok "adapters lower the held-out loss"; else not_ok "adapters lower the held-out loss" "$before -> $after"; fi
near "the merged model has the loss of base and adapters" "$after" "$(held_out --model "$d/one/merged")"
said=$("$nojit" merge --model "$d/base" --adapter "$d/one" --out "$d/merged")
if [ "$said" = "$d/merged: $d/base with 8 adapters of $d/one in its weights" ]; then ok "merge says what it wrote"; else not_ok "merge says what it wrote" "$said"; fi
if grep -q "^8 adapters merged into the model: $d/one/merged" "$scratch/out"; then ok "train --merge says what it wrote"; else not_ok "train --merge says what it wrote" "$(tail -n 2 "$scratch/out")"; fi
if cmp -s "$d/merged/model.safetensors" "$d/one/merged/model.safetensors"; then ok "merge writes the weights that train --merge writes"; else not_ok "merge writes the weights that train --merge writes" "the weights differ"; fi
cp -r "$d/one" "$d/two"
rm -r "$d/two/merged" "$d"/two/adapter_* "$d/two/checkpoint-8"
train "${lora[@]}" --out "$d/two" --steps 8 --resume auto
if cmp -s "$d/one/adapter_model.safetensors" "$d/two/adapter_model.safetensors"; then ok "a run with adapters is resumed bit for bit"; else not_ok "a run with adapters is resumed bit for bit" "the adapters differ"; fi
cp -r "$d/one" "$d/on"
train "${lora[@]}" --out "$d/on" --steps 12 --resume auto --merge || true
"$nojit" merge --model "$d/base" --adapter "$d/on" --out "$d/longer" >/dev/null
if cmp -s "$d/longer/model.safetensors" "$d/on/merged/model.safetensors" && ! cmp -s "$d/longer/model.safetensors" "$d/merged/model.safetensors"; then
    ok "a resumed run with --merge merges anew"
else
    not_ok "a resumed run with --merge merges anew" "$(tail -n 1 "$scratch/out")"
fi
train --adapter "$d/one" --out "$d/more" --steps 2
if grep -q "adapters of rank 8" "$scratch/out"; then ok "--adapter goes on with saved adapters"; else not_ok "--adapter goes on with saved adapters" "$(cat "$scratch/out")"; fi
if "$nojit" generate --device cpu --model "$d/base" --adapter "$d/one" --prompt "the" --max-tokens 8 --seq-len 64 --temperature 0 >"$d/a" 2>&1 &&
    "$nojit" generate --device cpu --model "$d/merged" --prompt "the" --max-tokens 8 --seq-len 64 --temperature 0 >"$d/b" 2>&1 && cmp -s "$d/a" "$d/b"; then
    ok "generate with --adapter writes the text of the merged model"
else
    not_ok "generate with --adapter writes the text of the merged model" "$(cat "$d/a" "$d/b")"
fi
total() { "$nojit" plan --seq-len 128 --student "$d/base" --json "$@" | sed -E 's/.*"total_bytes": ([0-9]+).*/\1/'; }
if [ "$(total --lora-r 8)" -lt "$(total)" ]; then ok "a plan of adapters is smaller than one of all weights"; else not_ok "a plan of adapters is smaller than one of all weights" "$(total --lora-r 8)"; fi

refuses "an --out that holds adapters is refused" 2 "holds a model already" "$nojit" train "${fast[@]}" "${lora[@]}" --out "$d/one" --steps 1
mkdir -p "$d/new/merged" && touch "$d/new/merged/theirs"
refuses "an --out with a folder named merged of something else is refused" 2 "new already contains merged, which a new run would write" "$nojit" train "${fast[@]}" "${lora[@]}" --out "$d/new" --steps 1 --merge
if [ "$(find "$d/new" -type f)" = "$d/new/merged/theirs" ]; then ok "a refused --merge leaves a folder named merged of something else as it was"; else not_ok "a refused --merge leaves a folder named merged of something else as it was" "$(ls "$d/new")"; fi
refuses "--merge without adapters is refused" 2 "--merge needs adapters" "$nojit" train "${fast[@]}" --out "$d/x" --steps 1 --merge
refuses "--lora-target-modules without a rank is refused" 2 "needs --lora-r" "$nojit" train "${fast[@]}" --out "$d/x" --steps 1 --lora-target-modules q_proj
refuses "--lora-target-modules of an unknown matrix is refused" 2 "lm_head" "$nojit" train "${fast[@]}" --out "$d/x" --steps 1 --lora-r 4 --lora-target-modules lm_head
refuses "--lora-r beside --adapter is refused" 2 "its own rank" "$nojit" train "${fast[@]}" --out "$d/x" --steps 1 --lora-r 4 --adapter "$d/one"
refuses "--adapter with a folder without adapters is refused" 1 "adapter_config.json" "$nojit" eval --model "$d/base" --adapter "$d/base" --data "$d/held.txt" --seq-len 64

client() { "${PYTHON:-python3}" tests/lib/clients.py "$@" 2>"$scratch/err"; }
if "${PYTHON:-python3}" -c 'import peft, torch, transformers' 2>/dev/null; then
    near "PEFT has the loss of our adapters" "$after" "$(client loss "$d/held.txt" 64 "$d/base:$d/one")"
    if client peft-names "$d/base" "$d/one" >/dev/null; then ok "names and settings of saved adapters are PEFT's"; else not_ok "names and settings of saved adapters are PEFT's" "$(tail -n 1 "$scratch/err")"; fi
    if client peft-merge "$d/base" "$d/one" "$d/merged" >/dev/null; then ok "PEFT merges to the same weights"; else not_ok "PEFT merges to the same weights" "$(tail -n 1 "$scratch/err")"; fi
    client peft-make "$d/base" "$d/theirs"
    near "adapters of PEFT have their loss here" "$(held_out --model "$d/base" --adapter "$d/theirs")" \
        "$(client loss "$d/held.txt" 64 "$d/base:$d/theirs")"
fi
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# best_model.sh: --early-stop-patience ends a run when it should, and --keep-best keeps the checkpoint with the lowest held-out
# loss, also over a resume.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive

"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
head -c 1500 /usr/share/common-licenses/GPL-3 >"$d/text.txt"
head -c 3000 /usr/share/common-licenses/LGPL-3 | tail -c 1500 >"$d/held.txt"
# A short text and a high rate: the model learns it by heart and the held-out loss rises again.
run=("$nojit" train --student "$d/student" --data "$d/text.txt" --eval-data "$d/held.txt" --seq-len 32 --batch-size 4
    --steps 120 --eval-every 5 --lr 2e-2 --lr-schedule constant --device cpu)
losses() { sed -nE 's/.*"step": ([0-9]+), "eval_loss": ([^,]+),.*/\1 \2/p' "$1/metrics.jsonl"; }
best_step() { losses "$1" | sort -g -k2,2 -s | head -n 1 | cut -d' ' -f1; }
last_step() { losses "$1" | tail -n 1 | cut -d' ' -f1; }
loss_of() { "$nojit" eval --device cpu --json --model "$1" --data "$d/held.txt" --seq-len 32 --batch-size 4 | sed -E 's/.*"ce_loss": ([^,]+),.*/\1/'; }

"${run[@]}" --out "$d/a" --early-stop-patience 3 --keep-best >"$d/log" 2>&1
best=$(best_step "$d/a") last=$(last_step "$d/a")
if [ "$last" = $((best + 15)) ] && [ "$last" -lt 120 ]; then ok "--early-stop-patience 3 ends a run after three measurements without a lower loss"; else not_ok "--early-stop-patience 3 ends a run after three measurements without a lower loss" "best $best, last $last"; fi
if grep -q "ended at step $last" "$d/log" && [ -f "$d/a/config.json" ]; then ok "a run that stops early says why and leaves a model"; else not_ok "a run that stops early says why and leaves a model" "$(tail -n 2 "$d/log")"; fi
want=$(losses "$d/a" | sed -n "s/^$best //p")
if [ "$(loss_of "$d/a/best")" = "$want" ]; then ok "--keep-best keeps the model with the lowest loss"; else not_ok "--keep-best keeps the model with the lowest loss" "$(loss_of "$d/a/best"), expected $want"; fi
if [ -f "$d/a/best/state.bin" ] && ! ls "$d/a" | grep -qE 'best\.|checkpoint'; then ok "OUT/best can be resumed, and no other checkpoint is left"; else not_ok "OUT/best can be resumed, and no other checkpoint is left" "$(ls "$d/a")"; fi

# Interrupted two measurements after the best: the count goes on.
"${run[@]}" --steps $((best + 10)) --out "$d/b" --early-stop-patience 3 --keep-best --save-every $((best + 10)) >/dev/null 2>&1
rm "$d/b/config.json" "$d/b/model.safetensors"
"${run[@]}" --out "$d/b" --early-stop-patience 3 --keep-best --resume auto >/dev/null 2>&1
if [ "$(last_step "$d/b")" = "$last" ] && cmp -s "$d/a/best/model.safetensors" "$d/b/best/model.safetensors"; then
    ok "a resumed run goes on counting measurements without a lower loss"
else
    not_ok "a resumed run goes on counting measurements without a lower loss" "last $(last_step "$d/b"), expected $last"
fi

# A run that stopped early is finished, though it has a checkpoint: of before its end, or of its last step.
for every in 5 $((last - 1)); do
    "${run[@]}" --out "$d/c$every" --early-stop-patience 3 --save-every $every >/dev/null 2>&1
    cksum "$d/c$every/model.safetensors" "$d/c$every/metrics.jsonl" >"$d/before"
    status=0
    "${run[@]}" --out "$d/c$every" --early-stop-patience 3 --save-every $every --resume auto >"$d/log" 2>&1 || status=$?
    if [ $status = 0 ] && grep -q "^nothing left to do: the run stopped early, at step $last of 120; model in" "$d/log" &&
        cksum "$d/c$every/model.safetensors" "$d/c$every/metrics.jsonl" | cmp -s - "$d/before"; then
        ok "a run that stopped early is finished, with --save-every $every"
    else
        not_ok "a run that stopped early is finished, with --save-every $every" "status $status: $(tail -n 2 "$d/log")"
    fi
done
"${run[@]}" --out "$d/c5" --early-stop-patience 4 --resume auto >"$d/log" 2>&1
if [ "$(last_step "$d/c5")" -gt "$last" ]; then ok "more patience continues a run that stopped early"; else not_ok "more patience continues a run that stopped early" "$(tail -n 2 "$d/log")"; fi

refuses "patience without measurements is refused" 2 "needs --eval-data and --eval-every" "${run[@]}" --out "$d/x" --eval-every 0 --early-stop-patience 3
refuses "--keep-best without measurements is refused" 2 "needs --eval-data" "$nojit" train --student "$d/student" --data "$d/text.txt" --out "$d/x" --keep-best
finish

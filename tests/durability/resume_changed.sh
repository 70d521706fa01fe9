#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# resume_changed.sh: a resumed run with other options, or whose files were damaged: what would mix two runs is refused, what may change is
# said, what decides about OUT/best comes from the checkpoint, and rows that are cut off are kept.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1

"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
head -c 1500 LICENSE >"$d/text.txt"
head -c 300 LICENSE >"$d/other.txt"
tail -c 800 LICENSE >"$d/held.txt"
tail -c 1600 LICENSE | head -c 800 >"$d/held2.txt"
# A short text and a high rate: the held-out loss falls and rises again.
run=("$nojit" train --student "$d/student" --data "$d/text.txt" --eval-data "$d/held.txt" --seq-len 32 --batch-size 4 --steps 60 --eval-every 5
    --lr 2e-2 --lr-schedule constant --device cpu --save-every 5 --keep 3 --keep-best)
"${run[@]}" --out "$d/whole" >"$scratch/out" 2>&1
begin() { # as if it had been interrupted at step 60
    rm -rf "$d/run"
    cp -r "$d/whole" "$d/run"
    rm "$d"/run/{config.json,model.safetensors,receipt.json}
}
go_on() { "${run[@]}" --out "$d/run" --resume auto "$@"; }
best=$(cksum <"$d/whole/best/model.safetensors")
best_step=$(sed -nE 's/^best-step //p' "$d/whole/checkpoint-60/progress.txt")
says() { # NAME REGEX COMMAND...: it ends well and says so
    local name=$1 pattern=$2
    shift 2
    if "$@" >"$scratch/out" 2>&1 && grep -qE -- "$pattern" "$scratch/out"; then ok "$name"; else not_ok "$name" "$(grep -vE "^step|^held" "$scratch/out" | tail -n 4)"; fi
}
best_stays() {
    if [ "$(cksum <"$d/run/best/model.safetensors")" = "$best" ]; then ok "the best model is as it was after $1"; else not_ok "the best model is as it was after $1" "it differs"; fi
}
if [ "$best_step" -lt 50 ]; then ok "the best model of the tested run is an early one"; else not_ok "the best model of the tested run is an early one" "step $best_step"; fi

# ---- what decides about the best model is in the checkpoint
begin
sed -i "s/\"step\": $best_step, \"eval_loss\": [^,]*/\"step\": $best_step, \"eval_loss\": 99/" "$d/run/metrics.jsonl"
says "a resumed run with rows of another loss" "steps" go_on --steps 65
best_stays "a resumed run with rows of another loss"
begin
rm "$d/run/metrics.jsonl"
says "a resumed run whose rows are gone" "^$d/run/metrics.jsonl lacks the rows of 60 steps$" go_on --steps 65
best_stays "a resumed run whose rows are gone"
begin
sed -i "s/\"step\": 20, \"eval_loss\"/\"step\": 2000, \"eval_loss\"/" "$d/run/metrics.jsonl"
tail -n +"$(grep -n '"step": 2000' "$d/run/metrics.jsonl" | cut -d: -f1)" "$d/run/metrics.jsonl" >"$d/tail"
says "a resumed run with a row of another step" "^$d/run/metrics.jsonl: $(wc -l <"$d/tail") lines after the checkpoint moved to $d/run/metrics.jsonl.old; $d/run/metrics.jsonl lacks the rows of 40 steps$" \
    go_on --steps 65
best_stays "a resumed run with a row of another step"
if cmp "$d/tail" "$d/run/metrics.jsonl.old" >"$scratch/err" 2>&1; then ok "rows behind a checkpoint are kept in metrics.jsonl.old"; else not_ok "rows behind a checkpoint are kept in metrics.jsonl.old" "$(cat "$scratch/err")"; fi
rm "$d"/run/{config.json,model.safetensors,receipt.json}
printf '{"step": 66, "lo\n' >>"$d/run/metrics.jsonl" # cut short; its end is that of the file
truncate -s -1 "$d/run/metrics.jsonl"
rm -r "$d"/run/checkpoint-65
sed -n '/"step": 6[1-9]/p' "$d/run/metrics.jsonl" >"$d/more"
says "a resumed run moves rows behind its checkpoint again" "lines after the checkpoint moved" go_on --steps 62
if cmp <(cat "$d/tail" "$d/more") "$d/run/metrics.jsonl.old" >"$scratch/err" 2>&1; then ok "rows moved again follow those moved before"; else not_ok "rows moved again follow those moved before" "$(cat "$scratch/err")"; fi
begin
sed -i 's/^best-loss .*/best-loss 99/' "$d/run/checkpoint-60/progress.txt"
refuses "a damaged progress.txt is refused" 1 "^nojit train: $d/run/checkpoint-60/progress.txt: is damaged; take another checkpoint; another one is --resume $d/run/checkpoint-55$" go_on
begin
rm "$d"/run/checkpoint-*/progress.txt
says "a resumed run of an earlier nojit goes on by its rows" "^continuing" go_on --steps 65
best_stays "a resumed run of an earlier nojit"

# ---- two held-out sets
begin
refuses "resuming with other held-out data is refused" 2 "^nojit train: --eval-data: $d/run/checkpoint-60 was measured on other data \([0-9a-f]{16}, now [0-9a-f]{16}\), and the losses cannot be compared; repeat the --eval-data of the run, or name another --out$" \
    go_on --steps 70 --eval-data "$d/held2.txt"
says "a run is resumed without held-out data" "^continuing" "$nojit" train --student "$d/student" --data "$d/text.txt" --seq-len 32 --batch-size 4 --steps 62 --lr 2e-2 \
    --lr-schedule constant --device cpu --save-every 1 --out "$d/run" --resume auto
rm "$d"/run/{config.json,model.safetensors,receipt.json}
refuses "resuming with other held-out data after a while without is refused" 2 "was measured on other data" go_on --steps 70 --eval-data "$d/held2.txt"
says "a resumed run with the same held-out data after a while without" "^continuing" go_on --steps 65
best_stays "a resumed run with the same held-out data after a while without"
says "a run goes on in another folder with other held-out data" "^continuing" "${run[@]}" --steps 65 --out "$d/fork" --resume "$d/whole/checkpoint-60" --eval-data "$d/held2.txt"

# ---- rates and lengths may change, and it is said
begin
says "a resumed run says which settings changed" "^changed since the checkpoint: steps 60 -> 65, lr 0.02 -> 0.001$" go_on --steps 65 --lr 1e-3
begin
go_on >"$scratch/out" 2>&1
if ! grep -q changed "$scratch/out"; then ok "a resumed run says nothing of settings that did not change"; else not_ok "a resumed run says nothing of settings that did not change" "$(grep changed "$scratch/out")"; fi

# ---- settings that are gone say nothing of the run
for damage in ': >' 'sed -i 3,\$d' 'sed -i \$d' 'truncate -s 20' rm; do
    begin
    eval "$damage $d/run/checkpoint-60/settings.txt"
    refuses "a settings.txt after $damage is refused" 1 "^nojit train: $d/run/checkpoint-60/settings.txt: lacks '[a-z-]+'; take another checkpoint; another one is --resume $d/run/checkpoint-55$" \
        go_on
done

# ---- every line of settings.txt counts, and every number of the engine has one there or in progress.txt
names=$(cut -d' ' -f1 "$d/whole/checkpoint-60/settings.txt")
for name in $names; do
    [ "$name" != template-date ] || continue # a resumed run takes it from there (template_date.sh)
    begin
    sed -i "s/^$name .*/$name other/" "$d/run/checkpoint-60/settings.txt"
    refuses "a checkpoint made with another $name is refused" 2 "^nojit train: $d/run/checkpoint-60 was made with $name other, this run has $name .*; repeat the options of the run" go_on
done
names+=" $(cut -d' ' -f1 "$d/whole/checkpoint-60/progress.txt")"
same=" head_chunk recompute teacher_shard optimizer_state padding data_sources writer kv_dtype " # the same numbers, in state.bin, or of the data
for name in $(sed -nE '/^  "applied"/,/^  }/s/^    "([a-z0-9_]+)":.*/\1/p' "$d/whole/receipt.json"); do
    [[ $same = *" $name "* || $name = sample_* || " ${names//$'\n'/ } " = *" ${name//_/-} "* ]] || echo "$name"
done >"$scratch/unknown"
if [ ! -s "$scratch/unknown" ]; then ok "a checkpoint has every number of the engine that decides"; else not_ok "a checkpoint has every number of the engine that decides" "not $(paste -sd' ' "$scratch/unknown")"; fi

# ---- a run that ended is not run again, though its newest checkpoint is older
"${run[@]}" --steps 63 --out "$d/ended" >/dev/null
sum=$(cat "$d"/ended/{model.safetensors,receipt.json,metrics.jsonl} | cksum)
says "--resume auto of a run that ended says that nothing is left" "^nothing left to do: step 63 of 63 is done; model in $d/ended$" "${run[@]}" --steps 63 --out "$d/ended" --resume auto
if [ "$(cat "$d"/ended/{model.safetensors,receipt.json,metrics.jsonl} | cksum)" = "$sum" ] && [ ! -e "$d/ended/lock" ]; then ok "--resume auto of a run that ended changes nothing"; else not_ok "--resume auto of a run that ended changes nothing" "$(ls "$d/ended")"; fi
cp "$d/ended/receipt.json" "$scratch/receipt"
echo '{"steps_done": 63,' >"$d/ended/receipt.json"
refuses "a receipt that cannot be read is not taken for none" 1 "^nojit train: $d/ended/receipt.json:.*; remove it, and the run continues from its newest checkpoint\$" \
    "${run[@]}" --steps 63 --out "$d/ended" --resume auto
mv "$scratch/receipt" "$d/ended/receipt.json"
says "a run that ended goes on to more steps" "^continuing from $d/ended/checkpoint-60 " "${run[@]}" --steps 66 --out "$d/ended" --resume auto
finish

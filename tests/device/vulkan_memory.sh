#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# vulkan_memory.sh: memory in pieces of what a Vulkan driver promises at a time gives the same bits; `plan` cuts as a run does;
# arrays larger than any piece are refused.
set -eu
. tests/lib/lib.sh
. tests/lib/vulkan.sh
fresh
head -c 3000 LICENSE >"$d/text.txt"
"$nojit" init --preset nojit-tiny --out "$d/model" >/dev/null
"$nojit" init --preset nojit-tiny --seed 2 --out "$d/teacher" >/dev/null
distil() { "$nojit" distill --teacher "$d/teacher" --student "$d/model" --data "$d/text.txt" --device vulkan --seq-len 48 --batch-size 2 --steps 2 --out "$@"; }
disturbed "" distil "$d/one" >"$d/log" 2>&1 || not_ok "a run with memory in one piece runs to its end" "$(tail -n 2 "$d/log")"
# Allocations of at most 400,000 bytes: less than the weights of either model.
disturbed allocation=400000 distil "$d/pieces" >"$d/log" 2>&1 || not_ok "a run with memory in pieces runs to its end" "$(tail -n 2 "$d/log")"
ok_if "memory in pieces gives the same bits" "the weights differ" cmp -s "$d/one/model.safetensors" "$d/pieces/model.safetensors"
bytes() { sed -n 's/.*"plan_bytes": \([0-9]*\),/\1/p' "$1/receipt.json"; }
more=$(($(bytes "$d/pieces") - $(bytes "$d/one"))) # activations of student and teacher, which share memory, are cut at other places
ok_if "memory in pieces takes less than a piece more" "$more bytes" [ "$more" -ge 0 -a "$more" -lt 400000 ]
refuses "a run with an array that is larger than any piece is refused" 3 \
    '^nojit distill: student.weights has an array of 0.5 MiB, and this driver allocates at most 0.4 MiB at a time; use a smaller model' \
    disturbed allocation=400000,buffer=400000 distil "$d/refused"
# The plan of the same run.
plan() { "$nojit" plan --teacher "$d/teacher" --student "$d/model" --device vulkan --seq-len 48 --batch-size 2 "$@"; }
planned=$(disturbed allocation=400000 plan --json)
ok_if "plan cuts memory into pieces as a run does" "$planned" grep -qF "\"total_bytes\": $(bytes "$d/pieces"), " <<<"$planned"
sum=$(sed -E 's/.*"pieces": \[([0-9, ]+)\].*/\1/' <<<"$planned" | tr -d ' ' | tr , '\n' | awk '{ n += $1 } END { print n }')
ok_if "allocations of a plan are all of its memory" "$sum; $planned" [ "$sum" = "$(bytes "$d/pieces")" ]
disturbed allocation=400000 plan >"$d/plan" 2>&1 || not_ok "a plan with memory in pieces is printed" "$(tail -n 2 "$d/plan")"
ok_if "plan shows the pieces of memory" "$(cat "$d/plan")" grep -qE '^allocations  *[0-9]+  \(up to [0-9.]+ [KM]iB; the driver guarantees 390\.[0-9]+ KiB at a time\)$' "$d/plan"
ok_if "plan shows the largest array" "$(cat "$d/plan")" grep -qE '^largest array  *[0-9.]+ [KM]iB  \(in (student|teacher)\.weights; the driver allocates [0-9.]+ GiB at most\)$' "$d/plan"
refuses "plan refuses an array that is larger than any piece" 3 \
    '^nojit plan: student.weights has an array of 0.5 MiB, and this driver allocates at most 0.4 MiB at a time; use a smaller model' \
    disturbed allocation=400000,buffer=400000 plan
refuses "plan with a budget refuses an array that is larger than any piece" 3 '^nojit plan: student.weights has an array of 0.5 MiB' \
    disturbed allocation=400000,buffer=400000 plan --memory-budget 4
# Gate and up of one layer with four times the batch have 589,824 bytes.
disturbed "" distil "$d/wide" --batch-size 8 >"$d/log" 2>&1 || not_ok "a run with memory in one piece runs to its end" "$(tail -n 2 "$d/log")"
disturbed allocation=600000 distil "$d/wide-pieces" --batch-size 8 >"$d/log" 2>&1 || not_ok "a run with activations in pieces runs to its end" "$(tail -n 2 "$d/log")"
ok_if "activations in pieces give the same bits" "the weights differ" cmp -s "$d/wide/model.safetensors" "$d/wide-pieces/model.safetensors"
disturbed allocation=600000,buffer=600000 plan --batch-size 8 >"$d/plan" 2>&1 && status=0 || status=$?
ok_if "activations are cut at layers" "$(tail -n 1 "$d/plan")" [ "$status" = 0 ]
refuses "a run that needs more memory than the driver has left is refused" 3 '^nojit distill: this run needs 0.00 GiB of device memory and 0.00 GiB are available' \
    disturbed heap=1000000 distil "$d/refused"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# plan_fit.sh: `nojit plan` compares a run with its budget and says what would make it fit; --batch-size auto takes the largest
# batch that does, and keeps it when the run goes on.
set -eu
. tests/lib/lib.sh
export OMP_WAIT_POLICY=passive
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d" "$d/half"
# The proportions of Qwen2.5-0.5B: config.json is all that a plan reads.
cat >"$d/half/config.json" <<'JSON'
{"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
 "num_key_value_heads": 2, "vocab_size": 151936, "max_position_embeddings": 32768, "rms_norm_eps": 1e-6,
 "rope_theta": 1000000.0, "tie_word_embeddings": true, "hidden_act": "silu"}
JSON
plan() { "$nojit" plan --student "$d/half" --teacher "$d/half" --seq-len 2048 "$@"; }
field() { sed -E "s/.*\"$1\": ([^,}]+).*/\1/"; }

succeeds "half a billion from half a billion in bf16, 1 x 2048 tokens, fits in 13 GB" plan --batch-size 1 --memory-budget 12.107
refuses "a plan beyond the budget is refused" 3 'needs 20\.[0-9]+ GiB, and the budget is 16.00 GiB' plan --batch-size 8 --memory-budget 16
# Each way is tried: what is said to fit does, the rest does not, and the totals are those of a plan of its own.
sed -n 's/^  \(--.*[a-z0-9]\)   *\([0-9.]* [GM]iB\)/\1|\2/p' "$scratch/out" >"$scratch/ways"
wrong=
while IFS='|' read -r way total; do
    plan --batch-size 8 $way --memory-budget 16 >"$scratch/plan" 2>/dev/null && fits=fits || fits=
    says=${total#*iB}
    grep -qE "^device total +${total%%iB*}iB\$" "$scratch/plan" && [ "${says// /}" = "$fits" ] ||
        wrong="$way: said '$total', the plan: $(grep total "$scratch/plan" | head -n 1)"
done <"$scratch/ways"
if [ "$(wc -l <"$scratch/ways")" = 12 ] && [ -z "$wrong" ]; then ok "each way to fit saves what is said of it"; else not_ok "each way to fit saves what is said of it" "$wrong"; fi
if ! "$nojit" plan --student "$d/half" --batch-size 8 --memory-budget 4 >"$scratch/out" 2>&1 && ! grep -q '^  --head-chunk' "$scratch/out" &&
    grep -q '^  --recompute mlp' "$scratch/out"; then
    ok "plan names no way that saves nothing"
else
    not_ok "plan names no way that saves nothing" "$(tail -n 9 "$scratch/out")"
fi
if "$nojit" plan --student "$d/half" --batch-size 1 --seq-len 64 --memory-budget 8.35 2>&1 | grep -q '^  --recompute mlp .*  fits$'; then
    ok "a way that saves little is named where it is enough"
else
    not_ok "a way that saves little is named where it is enough" ""
fi
one=(--student "$d/half" --teacher "$d/half" --seq-len 1024 --json)
succeeds "plan --json says in which memory logits lie" [ "$("$nojit" plan "${one[@]}" | grep -o '"within": .*')" = '"within": {"head.logits": "student.gradients"}}' ]
succeeds "plan says in which memory logits lie" [ "$(plan --batch-size 1 | grep -c '^head.logits  *in student.gradients$')" = 1 ]
succeeds "plan --json says where logits share no memory" [ "$("$nojit" plan "${one[@]}" --grad-accum 2 | grep -o '"within": .*')" = '"within": {}}' ]
# 19.1B parameters of gpt-oss-20b are experts of 4 bits and an eighth of an exponent each, 1.8B are bfloat16.
mkdir "$d/words" "$d/mxfp4" "$d/few"
sed 's/151936/201088/' "$d/half/config.json" >"$d/words/config.json"
oss=(--student "$d/words" --teacher gpt-oss-20b --batch-size 1 --seq-len 64)
succeeds "a preset of gpt-oss is planned as it is published" [ "$("$nojit" plan "${oss[@]}" 2>/dev/null | grep -c '^teacher.weights  *12.82 GiB')" = 1 ]
succeeds "gpt-oss is planned in bfloat16 where that is asked for" [ "$("$nojit" plan "${oss[@]}" --teacher-dtype bfloat16 2>/dev/null | grep -c '^teacher.weights  *38.9[0-9] GiB')" = 1 ]
vocab=$(sed -nE 's/.*"vocab_size": ([0-9]+).*/\1/p' tests/golden/families/gpt_oss.json)
sed "s/151936/$vocab/; s/151643/1/" "$d/half/config.json" >"$d/few/config.json"
sed '1s/{/{"quantization_config": {"quant_method": "mxfp4"},/; s/"intermediate_size": 40/"intermediate_size": 64/' tests/golden/families/gpt_oss.json >"$d/mxfp4/config.json"
succeeds "a folder whose configuration says MXFP4 is planned so without its weights" \
    [ "$("$nojit" plan --student "$d/few" --teacher "$d/mxfp4" --batch-size 1 --seq-len 64 2>/dev/null | grep -c '^teacher.expanded')" = 1 ]
mkdir "$d/other" "$d/padded" "$d/short"
sed 's/151936/50304/' "$d/half/config.json" >"$d/other/config.json"
sed 's/151936/152064/' "$d/half/config.json" >"$d/padded/config.json"
refuses "a plan with vocabularies that differ is refused" 1 'vocab_size is 151936 .* 50304 .*more than padding; use two models' plan --batch-size 1 --teacher "$d/other"
succeeds "a plan takes vocabularies that differ by padding" plan --batch-size 1 --memory-budget 16 --teacher "$d/padded"
sed 's/32768/1024/' "$d/half/config.json" >"$d/short/config.json"
for one in student teacher; do
    refuses "a plan with sequences longer than the $one takes is refused" 2 "short: the model has 1024 positions, .* 2048; pass --seq-len 1024" \
        plan --batch-size 1 "--$one" "$d/short"
done
auto=$(plan --batch-size auto --memory-budget 16 --json | field batch_size)
plan --batch-size "$auto" --memory-budget 16 >/dev/null || not_ok "a batch of --batch-size auto fits" "$auto"
refuses "one row more than --batch-size auto takes does not fit" 3 'budget' plan --batch-size $((auto + 1)) --memory-budget 16
refuses "--batch-size auto is refused where no row fits" 3 'budget is 1.00 GiB' plan --batch-size auto --memory-budget 1
if "$nojit" doctor --device cuda >/dev/null 2>&1; then
    echo "a GPU is here: its memory is the budget"
else
    refuses "--batch-size auto with memory that is not known is refused" 2 'name it by --gpu or --memory-budget' plan --batch-size auto
    plan --batch-size 1 >"$scratch/plan"
    succeeds "plan prints that the budget is unknown" grep -q '^budget  *unknown' "$scratch/plan"
fi
plan --batch-size 1 --device cpu --dtype float32 >"$scratch/plan" || true
succeeds "plan takes the memory of the machine for a CPU" grep -qE '^budget +[0-9.]+ [GT]iB' "$scratch/plan"

# ---- a run
"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
head -c 8000 LICENSE >"$d/text.txt"
same=(--student "$d/student" --seq-len 32 --device cpu --batch-size auto)
run() { "$nojit" train "${same[@]}" --data "$d/text.txt" --steps 4 --save-every 2 --out "$d/$1" "${@:2}" >"$d/$1.log" 2>&1; }
batch_of() { grep -oE '"batch_size": [0-9]+' "$d/$1/receipt.json" | cut -d' ' -f2; }
succeeds "a run with --batch-size auto runs to its end" run whole --memory-budget 0.01
planned=$("$nojit" plan "${same[@]}" --memory-budget 0.01 --json | field batch_size)
if [ "$(batch_of whole)" = "$planned" ] && [ "$planned" -gt 1 ]; then ok "--batch-size auto is as large in a run as in the plan"; else not_ok "--batch-size auto is as large in a run as in the plan" "$(batch_of whole), $planned"; fi
succeeds "a run with --batch-size auto says the batch size" grep -q "^batch size $planned, the largest that fits: uses .* of 10.24 MiB available" "$d/whole.log"
succeeds "the receipt has the batch size that was asked for" grep -q '"batch-size": "auto"' "$d/whole/receipt.json"
cp -r "$d/whole" "$d/resumed"
rm -r "$d"/resumed/{config.json,model.safetensors,receipt.json,checkpoint-4}
succeeds "a run with --batch-size auto is resumed with more memory" run resumed --memory-budget 0.02 --resume auto
if [ "$(batch_of resumed)" = "$planned" ] && cmp "$d/whole/model.safetensors" "$d/resumed/model.safetensors"; then
    ok "a resumed run with --batch-size auto keeps its batch and reaches the same bits"
else
    not_ok "a resumed run with --batch-size auto keeps its batch and reaches the same bits" "$(batch_of resumed), $planned"
fi
succeeds "a resumed run with --batch-size auto says that it keeps its batch" grep -q "^batch size $planned, as in .*/checkpoint-2" "$d/resumed.log"
succeeds "a run with --batch-size auto and room for more runs to its end" run small --memory-budget 0.3
rows=$(grep -oE '"data_windows": [0-9]+' "$d/small/receipt.json" | cut -d' ' -f2)
if [ "$(batch_of small)" = "$rows" ] && [ "$rows" -gt 100 ]; then ok "--batch-size auto takes no more rows than the data have"; else not_ok "--batch-size auto takes no more rows than the data have" "$(batch_of small), $rows"; fi
succeeds "a run says that its batch is all rows of an epoch" grep -q "^batch size $rows, all sequences of an epoch: " "$d/small.log"
succeeds "a run with --batch-size auto and --grad-accum runs to its end" run parts --grad-accum 3 --memory-budget 0.3
if [ "$(batch_of parts)" = $(((rows + 2) / 3)) ]; then ok "micro-batches of --batch-size auto share the rows of an epoch"; else not_ok "micro-batches of --batch-size auto share the rows of an epoch" "$(batch_of parts), $rows"; fi
plan --batch-size auto --device cpu --dtype float32 --json >"$scratch/plan" 2>/dev/null || true
if awk -v total="$(field total_bytes <"$scratch/plan")" -v budget="$(field budget_bytes <"$scratch/plan")" -v batch="$(field batch_size <"$scratch/plan")" \
    'BEGIN { exit !(batch == 1 || (total > 0 && total <= 0.75 * budget)) }'; then
    ok "--batch-size auto on a CPU leaves a quarter of the memory"
else
    not_ok "--batch-size auto on a CPU leaves a quarter of the memory" "$(cat "$scratch/plan")"
fi
# On a simulated GPU: memory is the GPU's, and the workspace of products is in the plan, here and there.
arch=$("$nojit" version | grep -oE 'sm_[0-9]+' | tail -n 1)
sim() { env LD_LIBRARY_PATH="$BUILD/sim" NOJIT_CUBLASLT="$BUILD/sim" NOJIT_SIM_DEVICE="$arch" NOJIT_SIM_MEMORY=$((8 << 30)) "$@"; }
gpu=(--student "$d/student" --seq-len 32 --device cuda --batch-size auto)
sim "$nojit" plan "${gpu[@]}" --memory-budget 0.05 >"$scratch/plan"
sim "$nojit" train "${gpu[@]}" --memory-budget 0.05 --data "$d/text.txt" --steps 1 --dry-run >"$scratch/run"
regions() { grep -E '^(batch size .*|[a-z0-9._ ]+ +([0-9.]+ ([KMG]i)?B|in [a-z.]+))$' "$1"; }
succeeds "plan and run on a GPU have the same regions" diff <(regions "$scratch/plan") <(regions "$scratch/run")
succeeds "a run on a GPU has the workspace of GEMMs in its plan" grep -q '^gemm.workspace  *32.00 MiB$' "$scratch/run"
sim "$nojit" plan "${gpu[@]}" >"$scratch/plan"
small() { sim env NOJIT_SIM_MEMORY=$((200 << 20)) "$nojit" "$@" "${gpu[@]}"; }
small plan | grep '^batch size' >"$scratch/planned-batch"
for _ in $(seq 30); do cat LICENSE; done >"$d/long.txt"
starts() { small train --data "$d/long.txt" --steps 1 --dry-run >"$scratch/run"; }
succeeds "GEMMs are timed before the memory is taken, so an automatic batch starts" starts
grep '^batch size' "$scratch/run" >"$scratch/batch" || true
fixed=(--student "$d/student" --seq-len 256 --batch-size 16 --device cuda)
takes=$(sim "$nojit" plan "${fixed[@]}" --json | field total_bytes)
exactly() { sim env NOJIT_SIM_MEMORY=$((takes + $1)) "$nojit" train "${fixed[@]}" --data "$d/text.txt" --steps 1 --dry-run; }
succeeds "a run whose plan is all the memory that there is starts" exactly 0
refuses "a run whose plan is a byte more than there is is refused" 3 'this run needs' exactly -1
succeeds "plan and run on a GPU take the same batch without a budget" cmp "$scratch/planned-batch" "$scratch/batch"
succeeds "plan takes the memory of the GPU as budget" grep -q '^budget  *8.00 GiB  (Simulated GPU)$' "$scratch/plan"
refuses "a run without memory for one sequence is refused" 3 'this run needs' "$nojit" train "${same[@]}" --data "$d/text.txt" --steps 1 --out "$d/none" --memory-budget 0.001
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bench_gpu.sh: bench/gpu.sh on the CPU with small models: rows, ratios, floors and JSON; a row that fails is said, the others go on.
set -eu
. tests/lib/lib.sh
export WORK=$scratch/work DEVICE=cpu STEPS=8 PAIR='nojit-tiny nojit-tiny' PAIR3='nojit-tiny-qwen3 nojit-tiny-qwen3' \
    PAIR_LLAMA='nojit-tiny-llama nojit-tiny-llama' PAIR_8B='nojit-tiny-llama nojit-tiny-llama' PAIR_MISTRAL='nojit-tiny-llama nojit-tiny-llama' KBENCH=add.f32 SHAPES=n=1000 COMMIT=0123456789abcdef
mkdir -p "$WORK/text"
head -c 20000 LICENSE >"$WORK/text/text.txt"
# A script as TORCH wants it; for batches of 1 it fails.
cat >"$scratch/torch" <<'SH'
#!/bin/sh
echo "$*" >>"$0.calls"
[ "$1" != 1 ] || exit 3
echo "{\"tok_s\": $((1000 * $2)), \"first_step_s\": 7}"
SH
chmod +x "$scratch/torch"
value() { # ROW FIELD
    sed -nE "s/.*\"row\": \"$1\".*\"$2\": ([^,}]*)[,}].*/\1/p" "$WORK/bench.json"
}
check() { # NAME CONDITION...
    local name=$1
    shift
    if "$@"; then ok "$name"; else not_ok "$name" "$(tail -n 25 "$scratch/log")"; fi
}
holds() { awk "BEGIN { exit !($1) }"; }

got=0
ROWS='distill:2x32 fp8:2x32 q4:2x32 train:2x32 qwen3:2x32 distill:1x32' TORCH=$scratch/torch BENCH_TORCH='2x32 qwen3:2x32 1x32' \
    bench/gpu.sh --seed 3 --seq-len 4096 >"$scratch/log" 2>&1 || got=$?
check "gpu.sh says which row failed" grep -q 'FAILED: PyTorch for distill:1x32' "$scratch/log"
check "gpu.sh ends with 1 where a row failed" [ "$got" = 1 ]
check "gpu.sh goes on with the other rows where one failed" [ "$(grep -c '^[a-z0-9]*:[12]x32 *[0-9]* ' "$scratch/log")" = 6 ]
check "gpu.sh runs PyTorch once for each shape and pair" [ "$(tr '\n' ';' <"$scratch/torch.calls")" = '2 32 8 qwen2.5;2 32 8 qwen3;1 32 8 qwen2.5;' ]
ours=$(value distill:2x32 tokens_per_second) ratio=$(value distill:2x32 ratio)
check "the ratio of gpu.sh is nojit's rate over PyTorch's" holds "$ours > 0 && ($ratio - $ours / 32000)^2 <= 0.005^2 * 1.01"
check "an fp8 row of gpu.sh has its pair's PyTorch rate" [ "$(value fp8:2x32 torch_tokens_per_second)" = 32000 ]
check "a quantized row of gpu.sh has its pair's PyTorch rate" [ "$(value q4:2x32 torch_tokens_per_second)" = 32000 ]
check "a row of gpu.sh without a counterpart has no ratio" [ "$(value train:2x32 torch_tokens_per_second)$(value train:2x32 ratio)" = nullnull ]
check "gpu.sh keeps what the PyTorch script said" grep -q '"row": "qwen3:2x32".*"torch": {"tok_s": 32000, "first_step_s": 7}' "$WORK/bench.json"
rate=$(sed -nE 's/.*"product_f32_gflops": ([0-9.e+]+).*/\1/p' "$WORK/kbench.json")
flops=$(sed -nE 's/.*"(student|teacher)_flops": ([0-9]+).*/\2/p' "$WORK/logs/distill-2x32.receipt.json" | paste -sd+)
floor=$(value distill:2x32 floor_tokens_per_second)
check "the floor of gpu.sh is all operations at the rate of a GEMM" holds "($floor * ($flops) / ($rate * 1e9) / 64 - 1)^2 < 1e-4"
check "gpu.sh times the first step" holds "$(value distill:2x32 first_step_s) > 0"
check "gpu.sh times a second start" holds "$(sed -nE 's/.*"warm_start_s": ([0-9.]+),.*/\1/p' "$WORK/bench.json") > 0"
check "gpu.sh passes its arguments on to nojit" grep -q '"seed": "3"' "$WORK/logs/distill-2x32.receipt.json"
check "a row of gpu.sh sets its own sizes over arguments" grep -q '"seq-len": "32"' "$WORK/logs/distill-2x32.receipt.json"
check "gpu.sh records the commit" grep -q '"commit": "0123456789abcdef"' "$WORK/bench.json"
if command -v python3 >/dev/null; then check "what gpu.sh writes is JSON" python3 -m json.tool "$WORK/bench.json" /dev/null; fi

got=0
ROWS='llama:2x32 fp8-llama:2x32 llama8b:2x32 q4-qwen3:2x32 mistral:2x32' KBENCH='' KEEP=no TORCH=$scratch/torch BENCH_TORCH='llama:2x32 mistral:2x32' bench/gpu.sh \
    >"$scratch/log" 2>&1 || got=$?
check "gpu.sh runs other pairs and variants of them" [ "$got" = 0 ]
check "gpu.sh runs PyTorch once for a pair and its variants" [ "$(tail -n 2 "$scratch/torch.calls" | tr '\n' ';')" = '2 32 8 llama;2 32 8 mistral;' ]
check "a variant in gpu.sh has the pair's PyTorch rate" [ "$(value fp8-llama:2x32 torch_tokens_per_second)" = 32000 ]
check "gpu.sh passes the options of a variant" grep -q '"teacher-dtype": "fp8"' "$WORK/logs/fp8-llama-2x32.receipt.json"
check "gpu.sh passes the options of a pair" grep -q '"recompute": "block"' "$WORK/logs/llama8b-2x32.receipt.json"
check "gpu.sh removes models that no later row needs" [ -z "$(find "$WORK" -maxdepth 1 -name 'nojit-tiny-llama-*' -o -maxdepth 1 -name 'nojit-tiny-qwen3-*')" ]

got=0
ROWS='train:2x32 train:2x9999999' STEPS=4 KBENCH='' bench/gpu.sh >"$scratch/log" 2>&1 || got=$?
check "gpu.sh says why a run failed" grep -q 'FAILED: train:2x9999999: .*must lie between' "$scratch/log"
check "gpu.sh ends with 1 where a run failed" [ "$got" = 1 ]
check "gpu.sh says that no TORCH is given" grep -q 'no TORCH is given' "$scratch/log"
check "gpu.sh gives no floor without kbench" [ "$(value train:2x32 floor_tokens_per_second)" = null ]
ROWS=train:2x32 STEPS=4 KBENCH='' bench/gpu.sh >"$scratch/log" 2>&1 && got=0 || got=$?
check "gpu.sh ends with 0 where all rows ran" [ "$got" = 0 ]
ROWS=train:2x32 STEPS=1000000 LIMIT=1 KBENCH='' bench/gpu.sh >"$scratch/log" 2>&1 && got=0 || got=$?
check "gpu.sh says that a run took longer than LIMIT" grep -q 'FAILED: train:2x32: .*ended after 1 s; LIMIT=1' "$scratch/log"

rm -rf "$WORK"
refuses "gpu.sh refuses a preset that is not there" 2 'no preset nosuch' env PAIR='nojit-tiny nosuch' bench/gpu.sh
refuses "gpu.sh refuses a build that is not there" 2 'BUILD=/absent holds no nojit' env BUILD=/absent bench/gpu.sh
refuses "gpu.sh refuses STEPS of 0" 2 'STEPS=0: give a number from 1 on' env STEPS=0 bench/gpu.sh
refuses "gpu.sh refuses a row of no kind" 2 'ROWS: eval:2x32 is not' env ROWS='train:2x32 eval:2x32' bench/gpu.sh
refuses "gpu.sh refuses a variant of no pair" 2 'ROWS: fp8-eval:2x32 is not' env ROWS='fp8-eval:2x32' bench/gpu.sh
refuses "gpu.sh refuses a variant of the student alone" 2 'ROWS: fp8-train:2x32 is not' env ROWS='fp8-train:2x32' bench/gpu.sh
refuses "gpu.sh refuses a row of no size" 2 'ROWS: train:2x is not' env ROWS=train:2x bench/gpu.sh
refuses "gpu.sh refuses an argument that nojit does not know" 2 'unknown option --sed' env ROWS=train:2x32 bench/gpu.sh --sed 3
refuses "gpu.sh refuses an argument that a kind of row does not take" 2 'no option --kd-ratio here' env ROWS='distill:2x32 train:2x32' bench/gpu.sh --kd-ratio 0.3
refuses "gpu.sh refuses a GPU that is not there" 2 '^gpu.sh: .*doctor' env NOJIT_CUBLASLT=/absent DEVICE=cuda ROWS=train:2x32 bench/gpu.sh
if [ -e "$WORK" ]; then not_ok "a refused gpu.sh makes nothing" "$(ls "$WORK")"; else ok "a refused gpu.sh makes nothing"; fi
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bench_ranks.sh: bench/ranks.sh on the CPU with small models: rows, shares of linear and JSON; a row that fails is
# said, the others go on; and, with a program that takes the CPU for GPUs, each of them by itself, and phases side by
# side.
set -eu
. tests/lib/lib.sh
export WORK=$scratch/work DEVICE=cpu STEPS=8 PAIR='nojit-tiny nojit-tiny' PAIR7='nojit-tiny nojit-tiny' COMMIT=0123456789abcdef OMP_NUM_THREADS=1
mkdir -p "$WORK/text"
head -c 20000 LICENSE >"$WORK/text/text.txt"
printf '#!/bin/sh\necho "{\\"tok_s\\": $((1000 * $1 * $3))}"\n' >"$scratch/torch"
chmod +x "$scratch/torch"
value() { # ROW GPUS FIELD
    sed -nE "s/.*\"row\": \"$1\", \"gpus\": $2,.*\"$3\": ([^,}]*)[,}].*/\1/p" "$WORK/ranks.json"
}
check() { # NAME CONDITION...
    local name=$1
    shift
    if "$@"; then ok "$name"; else not_ok "$name" "$(tail -n 25 "$scratch/log")"; fi
}
holds() { awk "BEGIN { exit !($1) }"; }

got=0
ROWS='distill:2x32 train:2x32 big:2x32' GPUS='1 2' TORCH=$scratch/torch BENCH_TORCH=distill:2x32 bench/ranks.sh --seed 3 >"$scratch/log" 2>&1 || got=$?
check "ranks.sh ends with 0 where all rows ran" [ $got = 0 ]
check "ranks.sh prints a line for each row and number of GPUs" [ "$(grep -c '^[a-z]*:2x32 .*[12] ' "$scratch/log")" = 9 ]
one=$(value distill:2x32 1 tokens_per_second) two=$(value distill:2x32 2 tokens_per_second)
check "ranks.sh gives the share of linear scaling" holds "($(value distill:2x32 2 of_linear) - $two / (2 * $one))^2 < 0.001^2"
slowest=$(value 'distill:2x32 on GPU 0' 1 tokens_per_second)
other=$(value 'distill:2x32 on GPU 1' 1 tokens_per_second)
if holds "$other < $slowest"; then slowest=$other; fi
check "ranks.sh gives the share of the slowest GPU" holds "($(value distill:2x32 2 of_slowest) - $two / (2 * $slowest))^2 < 0.001^2"
check "a row of ranks.sh that ran on one GPU has no share of the slowest" [ "$(value train:2x32 2 of_slowest)" = null ]
check "ranks.sh runs PyTorch on no single GPU of several" [ "$(value 'distill:2x32 on GPU 1' 1 torch_tokens_per_second)" = null ]
check "ranks.sh measures over sockets too" holds "$(value 'distill:2x32 over sockets' 2 of_linear) > 0"
check "ranks.sh runs PyTorch on as many GPUs" [ "$(value distill:2x32 2 torch_tokens_per_second)$(value train:2x32 2 torch_tokens_per_second)" = 64000null ]
check "ranks.sh runs two processes" grep -q '"processes": 2' "$WORK/logs/distill-2x32-2.receipt.json"
check "ranks.sh passes its arguments on to nojit" grep -q '"seed": "3"' "$WORK/logs/distill-2x32-2.receipt.json"
if command -v python3 >/dev/null; then check "what ranks.sh writes is JSON" python3 -m json.tool "$WORK/ranks.json" /dev/null; fi

got=0
ROWS='train:2x9999999 train:2x32' GPUS=1 bench/ranks.sh >"$scratch/log" 2>&1 || got=$?
check "ranks.sh says which row failed" grep -q 'FAILED: train:2x9999999 on 1: .*must lie between' "$scratch/log"
check "ranks.sh ends with 1 where a row failed" [ $got = 1 ]
check "ranks.sh goes on with the other rows where one failed" holds "$(value train:2x32 1 tokens_per_second) > 0"

# A program that takes the CPU for GPUs, says which ones it is shown, and leaves what the library of CUPTI would.
mkdir -p "$scratch/gpus"
touch "$scratch/gpus/cupti_kernels.so"
cat >"$scratch/gpus/nojit" <<SCRIPT
#!/usr/bin/env bash
case "\$*" in *"--out $WORK/run"*) echo "\${CUDA_VISIBLE_DEVICES-}" >>"$scratch/shown" ;; esac
case "\$*" in *"--gpus 2"*) copies=1.500 ;; *) copies=0.000 ;; esac
if [ -n "\${KERNEL_TABLE-}" ]; then
    echo "too few steps to show" >"\${KERNEL_TABLE/\%p/1}"
    cat >"\${KERNEL_TABLE/\%p/2}" <<TABLE
15 steps, 12.5\${copies:0:1} ms per step, GPU idle 4.00 %
    8.000 ms, 0.250 idle, 0.000 copies alone  forward passes
    4.500 ms, 0.250 idle, \$copies copies alone  update of all
    3.000 ms  24.0 %     1.0 runs  gemm
TABLE
fi
exec "$(realpath "$BUILD/nojit")" "\${@/#cuda/cpu}"
SCRIPT
chmod +x "$scratch/gpus/nojit"
got=0
BUILD=$scratch/gpus DEVICE=cuda CUDA_VISIBLE_DEVICES=5,7 ROWS=train:2x32 GPUS='1 2' SOCKETS=no \
    bench/ranks.sh >"$scratch/log" 2>&1 || got=$?
check "ranks.sh ends with 0 with GPUs" [ $got = 0 ]
check "ranks.sh runs each GPU by itself" [ "$(tr '\n' ' ' <"$scratch/shown")" = '5,7 5,7 5 7 5,7 5,7 ' ]
words() { tr -s ' ' <"$scratch/log"; }
check "ranks.sh prints phases of one and two GPUs side by side" [ "$(words | grep -A 3 '^phase ')" = 'phase one GPU idle copies one of 2 idle copies
forward passes 8.00 0.25 0.00 8.00 0.25 0.00
update of all 4.50 0.25 0.00 4.50 0.25 1.50
step 12.50 0.50 0.00 12.51 0.50 1.50' ]
check "ranks.sh prints the kernels of the most GPUs" [ "$(words | grep -A 1 '^15 steps')" = '15 steps, 12.51 ms per step, GPU idle 4.00 %
 3.000 ms 24.0 % 1.0 runs gemm' ]

rm -rf "$WORK"
refuses "ranks.sh refuses a row of no kind" 2 '^ranks.sh: ROWS: eval:2x32 is not' env ROWS=eval:2x32 bench/ranks.sh
refuses "ranks.sh refuses GPUS that are no numbers" 2 'GPUS=two: give numbers' env GPUS=two ROWS=train:2x32 bench/ranks.sh
if [ -e "$WORK" ]; then not_ok "a refused ranks.sh makes nothing" "$(ls "$WORK")"; else ok "a refused ranks.sh makes nothing"; fi
finish

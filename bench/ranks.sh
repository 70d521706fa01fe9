#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ranks.sh: how a run scales over the GPUs of this host: tokens per second on one and on several in the same run, as a table and as JSON, beside
# PyTorch's, and what a step of the first row spends in each kernel on one of them. It needs the built program alone (nojit; cupti_kernels.so for the kernels). A row that fails is said, the others go on, and the exit status is 1; what
# cannot run at all is refused before anything is made, with 2. Arguments go to every run of nojit.
#
#   ROWS='distill:8x1024 ...'   KIND:BATCHxTOKENS of a GPU; kinds as in gpu.sh, and shard: big with --teacher-shard
#   GPUS='1 2 4'                numbers of them (default: powers of two up to those there are)
#   STEPS=30   DEVICE=cuda   BUILD=build   WORK=BUILD/bench-ranks   OUT=WORK/ranks.json   PAIR, PAIR3, PAIR7, LIMIT, COMMIT: as in gpu.sh
#   SOCKETS=no                  without the first row over sockets (no P2P, no shared memory), as between hosts
#   TORCH=COMMAND               PyTorch's time: called as COMMAND GPUS BATCH TOKENS STEPS, prints JSON with "tok_s"
#   BENCH_TORCH='distill:8x1024'   rows that it runs for
set -u
: "${BUILD:=build}" "${DEVICE:=cuda}" "${STEPS:=30}" "${WORK:=$BUILD/bench-ranks}" "${OUT:=$WORK/ranks.json}" "${LIMIT:=150}" "${SOCKETS:=yes}"
: "${ROWS=distill:8x1024 fp8:8x1024 train:8x1024 qwen3:8x1024 big:8x1024 shard:8x1024 distill:1x512}"
: "${GPUS:=}" "${TORCH:=}" "${BENCH_TORCH:=distill:8x1024}" "${COMMIT:=$(git rev-parse HEAD 2>/dev/null || echo unknown)}"
nojit=$BUILD/nojit
extra=("$@")
failed=0
trap 'exit 130' INT
. bench/lib.sh
. bench/rows.sh
give_help "$@"
kinds="$kinds|shard" known_kinds="$known_kinds, shard"
before
if [ -z "$GPUS" ]; then
    there=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
    for ((n = 1; n <= there; n *= 2)); do GPUS="$GPUS $n"; done
fi
for n in $GPUS; do [[ $n =~ ^[1-9][0-9]*$ ]] || refuse "GPUS=$GPUS: give numbers from 1 on"; done
[ -n "$GPUS" ] || refuse "nvidia-smi lists no GPU; set GPUS"
mkdir -p "$WORK/text" "$WORK/logs" && rm -f "$WORK"/logs/* "$WORK/rows" "$OUT" || exit 1
: >"$WORK/rows"

torch_of() { # ROW GPUS
    local log=$WORK/logs/torch-${1/:/-}-$2 shape=${1#*:}
    case " $BENCH_TORCH " in *" $1 "*) ;; *) return ;; esac
    [ -n "$TORCH" ] || return
    limited "$((2 * LIMIT))" "$log.err" $TORCH "$2" "${shape%x*}" "${shape#*x}" "$STEPS" >"$log" 2>"$log.err" || : >"$log"
    number tok_s "$log"
}
# measure NAME ROW GPUS: a line of $WORK/rows: name, GPUs, tokens/s, ms, plan and NCCL bytes, PyTorch
measure() {
    local kind=${2%%:*} shape=${2#*:} gpus=$3 log=$WORK/logs/${1/:/-}-$3 skip=5 command torch_pair ours
    command_of "${kind/shard/big}"
    if [ "$gpus" -gt 1 ]; then command+=(--gpus "$gpus"); fi
    if [ "$kind" = shard ] && [ "$gpus" -gt 1 ]; then command+=(--teacher-shard); fi
    if ! run "$log" "$STEPS" "${shape%x*}" "${shape#*x}" >/dev/null; then
        fails "$1 on $gpus" "$log"
        return
    fi
    if [ "$STEPS" -le 10 ]; then skip=1; fi
    cp "$WORK/run/receipt.json" "$log.receipt.json"
    ours=$(median tokens_per_second $skip "$WORK/run/metrics.jsonl")
    printf '%s|%s|%s|%s|%s|%s|%s\n' "$1" "$gpus" "$ours" "$(median step_ms $skip "$WORK/run/metrics.jsonl")" \
        "$(number plan_bytes "$log.receipt.json")" "$(number comm_bytes "$log.receipt.json")" "$(torch_of "$2" "$gpus")" >>"$WORK/rows"
    note "$1 on $gpus: $ours tokens/s"
}
# Share of linear: of a row with its name on one GPU.
table() {
    awk -F'|' -v json="$1" -v commit="$COMMIT" -v device="$(text name "$(find "$WORK/logs" -name '*.receipt.json' | head -n 1)")" '
        function or(x) { return x == "" ? (json ? "null" : "-") : x }
        function share(a, b) { return b > 0 ? sprintf("%.3f", a / b) : "" }
        function mib(x) { return x > 0 ? sprintf("%.0f", x / 1048576) : "" }
        BEGIN {
            f = "%-30s %5s %10s %9s %10s %8s %8s %9s %7s\n"
            if (json) printf "{\"commit\": \"%s\", \"device\": \"%s\",\n \"rows\": [", commit, device
            else printf f, "row", "GPUs", "tokens/s", "ms", "of linear", "plan", "NCCL", "PyTorch", "ratio"
        }
        {
            base = $1
            sub(/ over sockets$/, "", base)
            if ($2 == 1) one[$1] = $3
            linear = share($3, $2 * one[base])
            if (json)
                printf "%s\n  {\"row\": \"%s\", \"gpus\": %s, \"tokens_per_second\": %s, \"step_ms\": %s, \"of_linear\": %s, \"plan_bytes\": %s, \"comm_bytes\": %s, \"torch_tokens_per_second\": %s}",
                    (NR > 1 ? "," : ""), $1, $2, or($3), or($4), or(linear), or($5), or($6), or($7)
            else printf f, $1, $2, sprintf("%.0f", $3), sprintf("%.2f", $4), or(linear), or(mib($5)), or(mib($6)), or($7), or(share($3, $7))
        }
        END { if (json) print "\n ]}" }' "$WORK/rows"
}

prepare
rm -f "$WORK/gemm.txt"
for row in $ROWS; do make_models "${row/shard/big}"; done
note "models are there"
for row in $ROWS; do
    for n in $GPUS; do measure "$row" "$row" "$n"; done
done
first=${ROWS%% *} last=${GPUS##* }
if [ "$SOCKETS" = yes ] && [ "$last" -gt 1 ]; then
    NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 measure "$first over sockets" "$first" "$last"
fi
kernels() { # ROW GPUS
    local kind=${1%%:*} shape=${1#*:} log=$WORK/logs/kernels command torch_pair
    [ "$DEVICE" = cuda ] && [ -f "$BUILD/cupti_kernels.so" ] || return 0
    command_of "${kind/shard/big}"
    if [ "$2" -gt 1 ]; then command+=(--gpus "$2"); fi
    rm -f "$WORK"/kernels-*.txt
    CUDA_INJECTION64_PATH=$(realpath "$BUILD/cupti_kernels.so") KERNEL_TABLE=$WORK/kernels-%p.txt \
        run "$log" 20 "${shape%x*}" "${shape#*x}" >/dev/null || fails "kernels of a step" "$log"
    printf '\n%s on %s, one of them: ' "$1" "$2"
    head -n 16 "$(find "$WORK" -name 'kernels-*.txt' -size +200c | head -n 1)"
}
table 1 >"$OUT.tmp" && mv "$OUT.tmp" "$OUT"
echo
table 0
printf '\nplan, NCCL: MiB of a GPU. JSON: %s; %d s in all%s\n' "$OUT" "$SECONDS" "$([ "$failed" = 0 ] || echo "; FAILED: $failed")"
kernels "$first" "$last"
rm -rf "$WORK/run"
[ "$failed" = 0 ]

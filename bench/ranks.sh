#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ranks.sh: how a run scales over the GPUs of this host: tokens per second on one and on several in the same run, as a
# table and as JSON, beside PyTorch's; the first row also on each GPU by itself, as all wait for the slowest; and what a
# step of it spends in each phase, on one and on the most, and in each kernel. It needs the built program alone (nojit;
# for phases and kernels cupti_kernels.so). A row that fails is reported, the others still run, and the exit status is 1;
# what cannot run at all is refused before anything is made, with 2. Arguments go to every run of nojit.
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
GPUS=$(tr ' ' '\n' <<<"$GPUS" | sort -nu | xargs) # shares are of one, which comes first
mkdir -p "$WORK/text" "$WORK/logs" && rm -f "$WORK"/logs/* "$WORK/rows" "$OUT" || exit 1
: >"$WORK/rows"

# row_command ROW GPUS: the words of nojit that make it, in command
row_command() {
    local kind=${1%%:*}
    command_of "${kind/shard/big}"
    [ "$2" -gt 1 ] || return 0
    command+=(--gpus "$2")
    if [ "$kind" = shard ]; then command+=(--teacher-shard); fi
}
torch_of() { # ROW GPUS
    local log=$WORK/logs/torch-${1/:/-}-$2 shape=${1#*:}
    case " $BENCH_TORCH " in *" $1 "*) ;; *) return ;; esac
    [ -n "$TORCH" ] || return
    limited "$((2 * LIMIT))" "$log.err" $TORCH "$2" "${shape%x*}" "${shape#*x}" "$STEPS" >"$log" 2>"$log.err" || : >"$log"
    number tok_s "$log"
}
# measure NAME ROW GPUS: a line of $WORK/rows: name, GPUs, tokens/s, ms, plan and NCCL bytes, PyTorch
measure() {
    local shape=${2#*:} gpus=$3 log=$WORK/logs/${1/:/-}-$3 skip=5 command torch_pair ours
    row_command "$2" "$gpus"
    if ! run "$log" "$STEPS" "${shape%x*}" "${shape#*x}" >/dev/null; then
        fails "$1 on $gpus" "$log"
        return
    fi
    if [ "$STEPS" -le 10 ]; then skip=1; fi
    cp "$WORK/run/receipt.json" "$log.receipt.json"
    ours=$(median tokens_per_second $skip "$WORK/run/metrics.jsonl")
    printf '%s|%s|%s|%s|%s|%s|%s\n' "$1" "$gpus" "$ours" "$(median step_ms $skip "$WORK/run/metrics.jsonl")" \
        "$(number plan_bytes "$log.receipt.json")" "$(number comm_bytes "$log.receipt.json")" "$(torch_of "$2" "$gpus")" >>"$WORK/rows"
    note "$1, GPUs: $gpus: ${ours%.*} tokens/s"
}
# Share of linear: of a row with its name on one GPU; of the slowest: of its GPUs, each by itself. Reads the rows twice.
table() {
    awk -F'|' -v json="$1" -v commit="$COMMIT" -v device="$(text name "$(find "$WORK/logs" -name '*.receipt.json' | head -n 1)")" '
        function shown(x) { return x == "" ? (json ? "null" : "-") : x }
        function share(a, b) { return b > 0 ? sprintf("%.3f", a / b) : "" }
        function mib(x) { return x > 0 ? sprintf("%.0f", x / 1048576) : "" }
        function slowest(row, gpus, least, i) {
            for (i = 0; i < gpus; i++) {
                if (!((row, i) in alone)) return ""
                if (i == 0 || alone[row, i] < least) least = alone[row, i]
            }
            return least
        }
        BEGIN {
            f = "%-30s %5s %10s %9s %10s %11s %8s %8s %9s %7s\n"
            if (json) printf "{\"commit\": \"%s\", \"device\": \"%s\",\n \"rows\": [", commit, device
            else
                printf f, "row", "GPUs", "tokens/s", "ms", "of linear", "of slowest", "plan", "NCCL", "PyTorch", "ratio"
        }
        NR == FNR && match($1, / on GPU [0-9]+$/) { alone[substr($1, 1, RSTART - 1), substr($1, RSTART + 8)] = $3 }
        NR == FNR { next }
        {
            base = $1
            sub(/ (over sockets|on GPU [0-9]+)$/, "", base)
            if ($2 == 1) one[$1] = $3
            linear = share($3, $2 * one[base])
            of = $2 > 1 ? share($3, $2 * slowest($1, $2)) : ""
            if (json) {
                printf "%s\n  {\"row\": \"%s\", \"gpus\": %s, \"tokens_per_second\": %s, \"step_ms\": %s, ",
                    (FNR > 1 ? "," : ""), $1, $2, shown($3), shown($4)
                printf "\"of_linear\": %s, \"of_slowest\": %s, \"plan_bytes\": %s, \"comm_bytes\": %s, ",
                    shown(linear), shown(of), shown($5), shown($6)
                printf "\"torch_tokens_per_second\": %s}", shown($7)
            } else
                printf f, $1, $2, sprintf("%.0f", $3), sprintf("%.2f", $4), shown(linear), shown(of), shown(mib($5)),
                    shown(mib($6)), shown($7), shown(share($3, $7))
        }
        END { if (json) print "\n ]}" }' "$WORK/rows" "$WORK/rows"
}

# alone ROW: on each GPU by itself, of those that the most would use
alone() {
    local i visible
    IFS=, read -ra visible <<<"${CUDA_VISIBLE_DEVICES:-}"
    for ((i = 0; i < last; i++)); do TORCH='' CUDA_VISIBLE_DEVICES=${visible[i]:-$i} measure "$1 on GPU $i" "$1" 1; done
}
# kernels ROW GPUS: $WORK/kernels-GPUS.txt, of one of them; nothing without CUPTI
kernels() {
    local shape=${1#*:} log=$WORK/logs/kernels-$2 table=$WORK/kernels-$2.txt found command torch_pair
    rm -f "$WORK"/kernels-of-*.txt "$table"
    [ "$DEVICE" = cuda ] && [ -f "$BUILD/cupti_kernels.so" ] || return 0
    row_command "$1" "$2"
    CUDA_INJECTION64_PATH=$(realpath "$BUILD/cupti_kernels.so") KERNEL_TABLE=$WORK/kernels-of-%p.txt \
        run "$log" 20 "${shape%x*}" "${shape#*x}" >/dev/null || fails "kernels of a step on $2" "$log"
    found=$(grep -l 'ms per step' "$WORK"/kernels-of-*.txt 2>/dev/null | head -n 1)
    if [ -n "$found" ]; then mv "$found" "$table"; fi
}
# phases ROW GPUS...: side by side
phases() {
    local gpus files=()
    for gpus in "${@:2}"; do [ ! -s "$WORK/kernels-$gpus.txt" ] || files+=("$WORK/kernels-$gpus.txt"); done
    [ ${#files[@]} -gt 0 ] || return 0
    printf '\n%s, ms of a step under the profiler: all; of it idle; of it copies without a kernel\n' "$1"
    awk '
        function put(name) { if (!(name in at)) { at[name] = ++names; order[names] = name } }
        FNR == 1 {
            gpus = FILENAME
            gsub(/.*kernels-|[.]txt$/, "", gpus)
            head[++n] = gpus == 1 ? "one GPU" : "one of " gpus
            whole[n] = $3
        }
        / copies alone / {
            all = $1; idle = $3; copies = $5
            sub(/.* copies alone +/, "")
            put($0)
            cell[$0, n] = sprintf("%12.2f %7.2f %7.2f", all, idle, copies)
            idles[n] += idle; copied[n] += copies
        }
        END {
            printf "%-30s", "phase"
            for (i = 1; i <= n; i++) printf "%12s %7s %7s", head[i], "idle", "copies"
            for (k = 1; k <= names; k++) {
                printf "\n%-30s", order[k]
                for (i = 1; i <= n; i++) printf "%28s", cell[order[k], i]
            }
            printf "\n%-30s", "step"
            for (i = 1; i <= n; i++) printf "%12.2f %7.2f %7.2f", whole[i], idles[i], copied[i]
            print ""
        }' "${files[@]}"
}

prepare
rm -f "$WORK/gemm.txt"
for row in $ROWS; do make_models "${row/shard/big}"; done
note "models are there"
first=${ROWS%% *} last=${GPUS##* }
for row in $ROWS; do
    for n in $GPUS; do measure "$row" "$row" "$n"; done
    if [ "$row" = "$first" ] && [ "$last" -gt 1 ]; then alone "$row"; fi
done
if [ "$SOCKETS" = yes ] && [ "$last" -gt 1 ]; then
    NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 measure "$first over sockets" "$first" "$last"
fi
table 1 >"$OUT.tmp" && mv "$OUT.tmp" "$OUT"
echo
table 0
printf '\nof slowest: share of what as many of the slowest GPU would make; plan, NCCL: MiB of a GPU. JSON: %s\n' "$OUT"
kernels "$first" 1
if [ "$last" -gt 1 ]; then kernels "$first" "$last"; fi
phases "$first" $(printf '%s\n' 1 "$last" | uniq)
if [ -s "$WORK/kernels-$last.txt" ]; then
    printf '\n%s on %s, kernels of one of them\n' "$first" "$last"
    grep -v ' copies alone ' "$WORK/kernels-$last.txt" | head -n 17
fi
rm -rf "$WORK/run"
printf '\n%d s in all%s\n' "$SECONDS" "$([ "$failed" = 0 ] || echo "; FAILED: $failed")"
[ "$failed" = 0 ]

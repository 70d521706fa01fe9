#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gpu.sh: how fast this machine trains: one table, and the same as JSON. `make bench-gpu` builds and calls it; it needs the built
# programs alone (nojit, kbench; cupti_kernels.so for the share of time the GPU is idle). A row that fails is said, the
# others go on, and the exit status is 1; what cannot run at all is refused before anything is made, with 2. Arguments go to every run of nojit;
# batch, tokens and steps are those of the row.
#
#   ROWS='distill:8x1024 ...'   KIND:BATCHxTOKENS; kinds are pairs: distill, train (its student alone), qwen3, llama, mistral, llama8b (its student with
#                               --recompute block), big, gemma3, olmo2, moe, hybrid; and variants of them: fp8-llama (--teacher-dtype fp8), fp8s-llama (--student-dtype
#                               fp8), fp8ts-llama (both), q4-llama (--teacher-dtype q4_k); fp8, fp8s, fp8ts, q4: of distill; fp8s-train
#   STEPS=30   DEVICE=cuda   BUILD=build   WORK=BUILD/bench   OUT=WORK/bench.json
#   PAIR='qwen2.5-1.5b qwen2.5-0.5b' PAIR3='qwen3-1.7b qwen3-0.6b' PAIR7='qwen2.5-7b qwen2.5-0.5b' PAIR_LLAMA='llama-3.2-3b llama-3.2-1b'
#   PAIR_MISTRAL='mistral-7b-v0.3 mistral-0.8b' PAIR_8B='llama-3.1-8b llama-3.2-1b'
#   PAIR_GEMMA='gemma-3-4b gemma-3-1b' PAIR_OLMO='olmo-2-7b olmo-2-1b' PAIR_MOE='qwen3-30b-a3b qwen3-0.6b' (61 GB)
#   PAIR_HYBRID='qwen3.5-4b qwen3.5-0.8b'
#                               presets of teacher and student; random weights
#   KEEP=no                     removes models that no later row needs: the default rows' take 50 GB, with KEEP=no 19 GB at a time
#   TORCH=COMMAND               PyTorch's time, as by 'python3 bench/torch_rate.py': called as COMMAND BATCH TOKENS STEPS PAIR FOLDER..., prints JSON with
#                               "tok_s"; PAIR is qwen2.5, qwen2.5-ce (its student alone), qwen3, ..., folders are those of the models. Without it its
#                               columns stay empty
#   BENCH_TORCH='8x1024 train:8x1024'   rows that it runs for, a minute or two each (default: the first); KIND is distill if left out
#   KBENCH='attn_* kd_head ...' SHAPES='...'   kernels that kbench times (none by default on a CPU, nor a floor then);
#                               KBENCH_TORCH=1: beside PyTorch's operations
#   LIMIT=150                   seconds for a run; COMMIT=... where there is no git
set -u
: "${BUILD:=build}" "${DEVICE:=cuda}" "${STEPS:=30}" "${WORK:=$BUILD/bench}" "${TORCH:=}" "${LIMIT:=150}" "${KBENCH_TORCH:=}"
: "${OUT:=$WORK/bench.json}"
: "${ROWS=distill:8x1024 fp8:8x1024 fp8ts:8x1024 distill:8x2048 fp8:8x2048 fp8ts:8x2048 distill:1x512 fp8:1x512 distill:4x512 fp8:4x512 distill:4x4096
    fp8:4x4096 train:8x1024 fp8s-train:8x1024 qwen3:8x1024 llama:4x1024 fp8-llama:4x1024 fp8ts-llama:4x1024 llama8b:4x1024 fp8-llama8b:4x1024 mistral:4x1024
    fp8-mistral:4x1024 fp8ts-mistral:4x1024}"
: "${BENCH_TORCH:=8x1024}" "${COMMIT:=$(git rev-parse HEAD 2>/dev/null || echo unknown)}"
if [ "$DEVICE" = cpu ]; then : "${KBENCH=}"; fi
: "${KBENCH=attn_*.lp* kd_head.lp kd_head_e5m2.lp e5m2_transpose adamw.lp add*.lp swiglu_*.lp glu_*.lp.* *norm*.lp rope_*.lp *_quantize.lp cast_* grad_sumsq embed_bwd.lp
    row_gather.lp heads_map.lp dequantize.lp.*}"
nojit=$BUILD/nojit
extra=("$@")
failed=0
trap 'exit 130' INT
. bench/lib.sh
. bench/rows.sh
give_help "$@"
before
mkdir -p "$WORK/text" "$WORK/logs" && rm -f "$WORK"/logs/* "$WORK/kbench.json" "$WORK/rows" "$OUT" || exit 1
: >"$WORK/rows"

# The log of PyTorch for a row: a teacher's type makes no difference to it.
torch_log() { echo "$WORK/logs/torch-$(pair_of "${1%%:*}")-${1#*:}"; } # ROW
# PyTorch's tokens per second for a row of BENCH_TORCH, measured once for its pair and shape.
torch_rate() { # ROW
    local w shape=${1#*:} log wanted=''
    log=$(torch_log "$1")
    for w in $BENCH_TORCH; do
        case $w in *:*) ;; *) w=distill:$w ;; esac
        if [ "$(torch_log "$w")" = "$log" ]; then wanted=yes; fi
    done
    [ -n "$wanted" ] && [ -n "$TORCH" ] || return
    if ! [ -e "$log" ]; then
        limited "$((2 * LIMIT))" "$log.err" $TORCH "${shape%x*}" "${shape#*x}" "$STEPS" "$torch_pair" $(models_of "$kind" | sed "s,^,$WORK/,") >"$log" 2>"$log.err" || : >"$log"
    fi
    number tok_s "$log"
}

# Seconds that all operations of a step would take at the rate of one large product of their type.
floor_seconds() {
    awk -v s="$(number student_flops "$1")" -v t="$(number teacher_flops "$1")" -v e="$(number teacher_f8_flops "$1")" \
        -v se="$(number student_fp8_flops "$1")" \
        -v lp="$(number product_lp_gflops "$WORK/kbench.json")" -v f32="$(number product_f32_gflops "$WORK/kbench.json")" \
        -v f8="$(number product_f8_gflops "$WORK/kbench.json")" 'BEGIN {
            rate = lp > 0 ? lp : f32
            if (f8 <= 0) f8 = rate
            if (rate > 0) printf "%.6f", ((s + t) / rate + (se + e) / f8) * 1e-9 }'
}

row() { # KIND:BATCHxSEQ
    local kind=${1%%:*} shape=${1#*:}
    local batch=${shape%x*} seq=${shape#*x} log=$WORK/logs/${1/:/-} first receipt=$WORK/run/receipt.json skip=5 command torch_pair
    make_models "$1"
    command_of "$kind"
    if ! first=$(run "$log" "$STEPS" "$batch" "$seq"); then
        if [[ $(variant_of "$kind") = fp8* ]] && grep -q 'sm_90 only' "$log"; then note "$1 is left out: not on this GPU"; else fails "$1" "$log"; fi
        return
    fi
    if [ "$STEPS" -le 10 ]; then skip=1; fi
    cp "$receipt" "$log.receipt.json"
    local ours ms theirs floor
    ours=$(median tokens_per_second $skip "$WORK/run/metrics.jsonl")
    ms=$(median step_ms $skip "$WORK/run/metrics.jsonl")
    theirs=$(torch_rate "$1")
    if [ -z "$theirs" ] && [ -e "$(torch_log "$1")" ]; then fails "PyTorch for $1" "$(torch_log "$1").err"; fi
    floor=$(quotient $((batch * seq)) "$(floor_seconds "$receipt")" 0)
    printf '%s|%s|%s|%s|%s|%s|%s|%s|%s|%s|%s\n' "$1" "$ours" "$ms" "$theirs" "$(quotient "$ours" "$theirs")" "$floor" \
        "$(quotient "$ours" "$floor")" "$first" "$(number plan_bytes "$receipt")" "$(number allocated_bytes "$receipt")" \
        "$(number used_bytes "$receipt")" >>"$WORK/rows"
    note "$1: $ours tokens/s${theirs:+, PyTorch $theirs}"
    write_json
}

# The first row again, three steps, with the table of products that now is there; and with CUPTI.
start_up() {
    local first log=$WORK/logs/start command torch_pair shape=${1#*:}
    command_of "${1%%:*}"
    if first=$(run "$log" 3 "${shape%x*}" "${shape#*x}"); then warm_start=$first; else fails "start-up" "$log"; fi
}
idle_share() {
    local log=$WORK/logs/idle command torch_pair shape=${1#*:}
    [ "$DEVICE" = cuda ] && [ -f "$BUILD/cupti_kernels.so" ] || return
    command_of "${1%%:*}"
    export CUDA_INJECTION64_PATH KERNEL_TABLE=$WORK/kernels.txt
    CUDA_INJECTION64_PATH=$(realpath "$BUILD/cupti_kernels.so")
    rm -f "$KERNEL_TABLE"
    run "$log" 20 "${shape%x*}" "${shape#*x}" >/dev/null || fails "kernels of a step" "$log"
    unset CUDA_INJECTION64_PATH
    idle=$(sed -nE 's/.*GPU idle ([0-9.]+) %.*/\1/p' "$KERNEL_TABLE" 2>/dev/null)
}
kernels() {
    [ -n "$KBENCH" ] || return
    local shapes=() s log=$WORK/logs/kbench
    while IFS= read -r s; do if [ -n "$s" ]; then shapes+=(--shape "$s"); fi; done <<<"${SHAPES-}"
    set -f # patterns are kbench's, not the shell's
    limited "$LIMIT" "$log" "$BUILD/kbench" $KBENCH --device "$DEVICE" ${shapes[@]+"${shapes[@]}"} --json "$WORK/kbench.json" \
        ${KBENCH_TORCH:+--torch} >"$log.table" 2>"$log" || fails kbench "$log"
    set +f
    cat "$log.table"
}

a_receipt() { find "$WORK/logs" -name '*.receipt.json' | head -n 1 | grep . || echo /dev/null; }
torch_line() { # ROW: all that the script said
    grep -h '^{.*"tok_s".*}$' "$(torch_log "$1")" 2>/dev/null | tail -n 1 | grep . || echo null
}
# Numbers as they are, nothing as null.
field() { printf '"%s": %s' "$1" "${2:-null}"; }
write_json() {
    local about sep='' name ours ms theirs ratio floor first plan taken used
    about=$(a_receipt)
    {
        printf '{"commit": "%s", "date": "%s", ' "$COMMIT" "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
        printf '"device": "%s", "driver": "%s", ' "$(sed -n '/"device": {/,/}/p' "$about" | text name /dev/stdin)" "$(text driver "$about")"
        printf '%s, "toolkit": "%s",\n' "$(field gemm_version "$(number gemm_version "$about")")" "$(text toolkit "$about")"
        printf ' %s, %s,\n "rows": [' "$(field warm_start_s "$warm_start")" "$(field idle_percent "$idle")"
        while IFS='|' read -r name ours ms theirs ratio floor _ first plan taken used; do
            printf '%s\n  {"row": "%s", ' "$sep" "$name"
            printf '%s, %s, %s, %s, ' "$(field tokens_per_second "$ours")" "$(field step_ms "$ms")" \
                "$(field torch_tokens_per_second "$theirs")" "$(field ratio "$ratio")"
            printf '%s, %s, ' "$(field floor_tokens_per_second "$floor")" "$(field first_step_s "$first")"
            printf '"torch": %s, ' "$(torch_line "$name")"
            printf '%s, %s, %s}' "$(field plan_bytes "$plan")" "$(field allocated_bytes "$taken")" "$(field used_bytes "$used")"
            sep=,
        done <"$WORK/rows"
        printf '\n ],\n "kernels": '
        if [ -s "$WORK/kbench.json" ]; then cat "$WORK/kbench.json"; else echo null; fi
        printf '}\n'
    } >"$OUT.tmp" && mv "$OUT.tmp" "$OUT"
}
print_table() {
    local about
    about=$(a_receipt)
    printf '\n%s, driver %s, cuBLASLt %s, %s, commit %s\n\n' "$(sed -n '/"device": {/,/}/p' "$about" | text name /dev/stdin)" \
        "$(text driver "$about")" "$(number gemm_version "$about")" "$(text toolkit "$about")" "${COMMIT:0:12}"
    awk -F'|' -v gib=$((1 << 30)) '
        function size(x) { return x > 0 ? sprintf("%.2f", x / gib) : "-" }
        function shown(x) { return x == "" ? "-" : x }
        BEGIN { f = "%-16s %10s %9s %9s %6s %9s %6s %8s %8s %8s %8s\n"
            printf f, "row", "tokens/s", "ms", "PyTorch", "ratio", "floor", "of it", "first s", "plan", "taken", "in all" }
        { printf f, $1, sprintf("%.0f", $2), sprintf("%.2f", $3), shown($4), shown($5), shown($6), shown($7), shown($8), size($9), size($10), size($11) }
        ' "$WORK/rows"
    cat <<TEXT

floor: tokens per second if all operations of a step ran at the rate of one large product of their type, measured here.
first s: seconds from the start of the process to the end of the first step; the first row times its GEMMs before it,
  with their table it takes ${warm_start:--} s. plan, taken, in all: GiB; taken is what free memory fell by for the plan, in all: with
  code and graphs. GPU idle in a step of the first row: ${idle:-not measured (no CUPTI)}${idle:+ %; $WORK/kernels.txt}.
PyTorch: ${TORCH:-no TORCH is given, so its columns are empty}${TORCH:+ (rows of BENCH_TORCH: $BENCH_TORCH)}
JSON: $OUT; $SECONDS s in all$([ "$failed" = 0 ] || echo "; FAILED: $failed")
TEXT
}

warm_start='' idle=''
prepare
rm -f "$WORK/gemm.txt"
kernels
first_row=
# shellcheck disable=SC2206 # words
later=($ROWS)
for r in $ROWS; do
    row "$r"
    if [ -z "$first_row" ]; then
        first_row=$r
        start_up "$r"
        idle_share "$r"
    fi
    later=("${later[@]:1}")
    drop_models "${later[@]}"
done
write_json
print_table
rm -rf "$WORK/run"
[ "$failed" = 0 ]

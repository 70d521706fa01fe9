#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gpu.sh [run|gemms]: everything that needs a GPU: all kernels against their references (with SANITIZE=1 also under
# compute-sanitizer), the PTX of other archs where BUILD/foreign has it, the trainer against PyTorch's numbers, training runs that must
# load nothing after start-up, repeat their bits, take the memory that was planned and go on after kills. Ends with `N passed, N failed`,
# and leaves what held in BUILD/check-gpu.results, with the GPU and the tree, for contractcheck. `run` is the first runs alone, without a
# record: what they map, load and repeat; `gemms` the algorithms of cuBLASLt alone: how many were compared, and what that takes.
set -u
part=${1:-all}
: "${BUILD:=build}" "${SANITIZE:=0}" "${DEVICE:=cuda}"
. tests/lib/lib.sh
export XDG_CACHE_HOME=$scratch/cache-home
nojit=$BUILD/nojit
verdicts=$scratch/verdicts
results=$scratch/results

step() { # NAME COMMAND...
    local name=$1 started=$SECONDS
    shift
    if "$@" >"$scratch/log" 2>&1; then
        ok "$name"
        echo "     $((SECONDS - started)) s: $(tail -n 1 "$scratch/log")"
    else
        status=$?
        tail -n 25 "$scratch/log"
        not_ok "$name" "exit status $status: $*"
    fi
}
program() { # NAME PROGRAM COMMAND...: a step with checks of its own, which are recorded
    local status=0
    step "$1" "${@:3}"
    grep '^     ' "$scratch/log" # what it measured
    awk -v program="gpu-$2" -v status="$status" -f tests/lib/results.awk "$scratch/log" >>"$results"
    printf '%s\tgpu-%s\t\n' "$([ "$status" = 0 ] && echo passed || echo failed)" "$2" >>"$results"
}

step "doctor accepts the GPU" "$nojit" doctor --device cuda
sed -nE 's/^(gpu|driver|cublasLt) +/\1\t/p' "$scratch/log" >"$scratch/machine"
told=$(grep -c 'arenas in device memory' "$scratch/log")
algorithms=$BUILD/tests/test_gemm_algorithms
if [ "$part" != run ] && [ -x "$algorithms" ]; then program "algorithms of cuBLASLt" test_gemm_algorithms env REQUIRE_GPU=1 "$algorithms"; fi
if [ "$part" = gemms ]; then
    finish
    exit
fi
if [ "$part" = all ]; then
    program "the self-test" self_test bash tests/gpu_self_test.sh
    program "harness" harness "$BUILD/harness" --device cuda
    sed -nE 's|^([a-z0-9_]+) +(lp\|f32) +[0-9]+ cases, worst error +(\S+) of +(\S+)$|worst\t\1\t\2\t\3\t\4|p' "$scratch/log" >>"$scratch/machine"
    for h in "$BUILD"/foreign/*/harness; do
        if [ -x "$h" ]; then step "harness with PTX of $(basename "$(dirname "$h")")" "$h" --device cuda; fi
    done
    for t in test_device:"memory, copies, products, graphs" test_fp8_rows:"rows of e4m3" test_fp8:"products of e4m3" \
        test_head_e5m2:"gradients of logits as e5m2" test_gemm_table:"choices of products in a file" test_activation:"activations at the largest numbers" \
        test_attn_decode:"rows decoded alone and in a batch" test_cache_ring:"slots of the cache that are rings" \
        test_delta_device:"the delta rule, pass by pass"; do
        if [ -x "$BUILD/tests/${t%%:*}" ]; then program "${t#*:}" "${t%%:*}" env REQUIRE_GPU=1 "$BUILD/tests/${t%%:*}"; fi
    done
    for dtype in float32 16-bit; do
        for t in test_golden:"PyTorch's numbers" test_golden_families:"PyTorch's numbers of every family"; do
            if [ -x "$BUILD/tests/${t%%:*}" ]; then
                program "${t#*:} in $dtype" "${t%%:*}" env GOLDEN_DEVICE=cuda GOLDEN_DTYPE=$dtype "$BUILD/tests/${t%%:*}"
            fi
        done
    done
    for tool in memcheck racecheck initcheck; do
        if [ "$SANITIZE" = 1 ]; then
            program "$tool" $tool compute-sanitizer --tool $tool --error-exitcode 9 "$BUILD/harness" --device cuda
        else
            printf 'skipped\tgpu-%s\t\n' $tool >>"$results"
        fi
    done
fi

# A run must finish with a lower loss, an empty JIT cache and no JIT library mapped.
mkdir -p "$scratch/cache" "$scratch/text"
cp /usr/share/common-licenses/* "$scratch/text/" 2>/dev/null || cp README.md "$scratch/text/README.txt"
for f in "$scratch"/text/*; do case $f in *.txt) ;; *) mv "$f" "$f.txt" ;; esac done
"$nojit" init --preset nojit-small --out "$scratch/teacher" >/dev/null
"$nojit" init --preset nojit-tiny --seed 2 --out "$scratch/student" >/dev/null
train=("$nojit" distill --teacher "$scratch/teacher" --student "$scratch/student" --data "$scratch/text"
    --device cuda --seq-len 256 --batch-size 8 --steps 60 --lr 1e-3)
# sm_75 has float16 and loss scaling: its PTX on this GPU.
if [ -x "$BUILD/foreign/sm_75/nojit" ]; then
    step "a distillation in float16 ends" "$BUILD/foreign/sm_75/nojit" "${train[@]:1}" --dtype float16 --out "$scratch/f16"
    step "a distillation in float16 with a bf16 state ends" "$BUILD/foreign/sm_75/nojit" "${train[@]:1}" --dtype float16 --optimizer-state bf16 \
        --out "$scratch/f16-bf16"
fi

# --verbose: a line for each kernel, of doctor and of whatever runs a model.
loaded=$("$nojit" doctor --device cuda --json | grep -oE '"kernels_loaded": [0-9]+' | tr -dc 0-9)
count_loaded() { "$@" 2>&1 | grep -cE 'loaded .*, [0-9]+ registers, ' || true; }
counted="$(count_loaded "$nojit" doctor --device cuda --verbose) $(count_loaded "${train[@]}" --dry-run --verbose)"
if [ "$counted $(count_loaded "${train[@]}" --dry-run)" = "$loaded $loaded 0" ]; then
    ok "--verbose has a line for each kernel"
else
    not_ok "--verbose has a line for each kernel" "$counted lines of $loaded kernels"
fi

# While a run goes on, no JIT library is in its memory map; the loader's record of the whole run shows those that are opened and closed again.
LD_DEBUG=files LD_DEBUG_OUTPUT=$scratch/opened "${train[@]}" --steps 100000 --out "$scratch/mapped" >/dev/null 2>&1 &
pid=$!
for _ in $(seq 300); do
    sleep 0.1
    [ ! -s "$scratch/mapped/metrics.jsonl" ] || break
done
cat "/proc/$pid/maps" >"$scratch/maps"
kill -INT "$pid"
wait "$pid"
ended=$?
lacks() { # NAME LIBRARIES: in the map, with the driver, and in the record
    if grep -q libcuda "$scratch/maps" && grep -q libcuda "$scratch/opened.$pid" && ! grep -qE "$2" "$scratch/maps" "$scratch/opened.$pid"; then
        ok "$1"
    else
        not_ok "$1" "$(grep -hoE "[^/ ]*($2).*" "$scratch/maps" "$scratch/opened.$pid" | head -n 1)"
    fi
}
lacks "no JIT library is mapped" 'ptxjitcompiler|nvJitLink|nvptxcompiler|tileiras'
lacks "no compiler of CUDA C is opened" 'nvrtc|nvidia-nvvm'
if [ $ended = 130 ] && ls "$scratch"/mapped/checkpoint-* >/dev/null 2>&1; then
    ok "an interrupt saves and exits with 130"
else
    not_ok "an interrupt saves and exits with 130" "$(ls "$scratch/mapped")"
fi

counts=$scratch/counts
: >"$counts"
inject=()
if [ -f "$BUILD/cupti_modules.so" ]; then
    inject=("CUDA_INJECTION64_PATH=$(realpath "$BUILD/cupti_modules.so")" "MODULE_COUNTS=$counts")
fi
step "a distillation ends" env "${inject[@]}" CUDA_CACHE_PATH="$scratch/cache" "${train[@]}" --out "$scratch/graph"
if [ -s "$scratch/graph/metrics.jsonl" ] && [ -z "$(ls -A "$scratch/cache")" ]; then
    ok "JIT cache stays empty"
else
    not_ok "JIT cache stays empty" "$(ls "$scratch/cache")"
fi
compilations=$(tr -d '\n' <"$scratch/graph/receipt.json" | grep -oE '"compilations": \{[^}]*\}')
if grep -qE '"at_start": 0, +"in_steps": 0,' <<<"$compilations"; then
    ok "the receipt counts no compilation"
else
    not_ok "the receipt counts no compilation" "$compilations"
fi
if [ -s "$counts" ] && grep -q 'after: 0$' "$counts"; then
    ok "no module load after start-up"
    echo "     $(cat "$counts")"
else
    not_ok "no module load after start-up" "$(cat "$counts") (needs CUPTI)"
fi
losses() { sed -E 's/.*"loss": ([^,]+),.*"grad_norm": ([^,]+),.*/\1 \2/' "$1/metrics.jsonl"; }
weights() { cat "$1"/*model.safetensors; }
same_bits() { # NAME RUN RUN
    if [ -s "$2/metrics.jsonl" ] && [ "$(losses "$2")" = "$(losses "$3")" ] && cmp -s <(weights "$2") <(weights "$3"); then
        ok "$1"
    else
        not_ok "$1" "$(diff <(losses "$2") <(losses "$3") | head -3)"
    fi
}
step "a distillation without graphs ends" env NOJIT_GRAPH=0 "${train[@]}" --out "$scratch/plain"
same_bits "graphs and no graphs give the same bits" "$scratch/graph" "$scratch/plain"
# A student in training and a teacher go through the same kernels.
step "a distillation of a model from itself ends" "$nojit" distill --teacher "$scratch/teacher" --student "$scratch/teacher" --allow-self-distillation --data "$scratch/text" \
    --device cuda --seq-len 256 --batch-size 8 --steps 1 --out "$scratch/itself"
if sed -nE 's/.*"kd_loss": ([^,]+),.*"agreement": ([^,]+),.*/\1 \2/p' "$scratch/itself/metrics.jsonl" |
    awk '{ n++; bad += !($1 == 0 && $2 == 1) } END { exit !(n == 1 && bad == 0) }'; then
    ok "a model does not diverge from itself"
else
    not_ok "a model does not diverge from itself" "$(cat "$scratch/itself/metrics.jsonl")"
fi
if [ "$part" = run ]; then
    finish
    exit
fi
program "a run killed at random moments goes on" resume_killed env DEVICE=cuda STEPS=200 bash tests/durability/resume_killed.sh
if [ "$told" = 1 ]; then
    program "free memory falls by the plan" plan_taken env DEVICE=cuda bash tests/cli/plan_taken.sh
else # memory is taken as it is used
    printf 'skipped\tgpu-plan_taken\t\n' >>"$results"
fi
# NAME OPTION...: a shorter run of its own, with and without graphs.
variant() {
    local name=$1 dir=$scratch/variant-$1
    shift
    step "a run with $name ends" "${train[@]}" --steps 20 "$@" --out "$dir"
    NOJIT_GRAPH=0 "${train[@]}" --steps 20 "$@" --out "$dir-plain" >"$scratch/log" 2>&1
    same_bits "graphs and no graphs give the same bits with $name" "$dir" "$dir-plain"
}
# Timed choices are kept in the file and in checkpoints: either gives the same bits again.
table=$scratch/table
chosen=("${train[@]}" --steps 10 --gemm-table "$table")
step "a run that times GEMMs ends" "${chosen[@]}" --save-every 5 --out "$scratch/chosen"
if [ -s "$table" ] && cmp -s "$table" "$scratch/chosen/checkpoint-5/gemm.txt"; then
    ok "choices are kept"
else
    not_ok "choices are kept" "$(ls "$scratch/chosen/checkpoint-5")"
fi
step "a run with a table of GEMMs ends" "${chosen[@]}" --out "$scratch/chosen-again"
same_bits "a table gives the same bits" "$scratch/chosen" "$scratch/chosen-again"
rm "$table"
step "a run resumed with the GEMMs of its checkpoint ends" "${chosen[@]}" --resume "$scratch/chosen/checkpoint-5" --out "$scratch/chosen-on"
if ! grep -q ' timed;' "$scratch/log" && cmp -s "$scratch"/chosen{,-on}/model.safetensors; then
    ok "a resumed run takes the choices of its checkpoint"
else
    not_ok "a resumed run takes the choices of its checkpoint" "$(grep timed "$scratch/log")"
fi
variant none
variant mlp --recompute mlp
variant block --recompute block
same_bits "recomputing the MLP changes no bit" "$scratch/variant-none" "$scratch/variant-mlp"
same_bits "recomputing blocks changes no bit" "$scratch/variant-none" "$scratch/variant-block"
variant jensen-shannon --beta 0.5
variant reverse --beta 1
variant total-variation --objective tvd
variant float32 --dtype float32
variant accumulated --batch-size 2 --grad-accum 4
variant bf16-state --optimizer-state bf16
variant bf16-state-float32 --optimizer-state bf16 --dtype float32
variant bf16-state-adapters --optimizer-state bf16 --lora-r 8 --lora-dropout 0.1
step "adapters of 16 bits load again" "$nojit" eval --model "$scratch/student" --adapter "$scratch/variant-bf16-state-adapters" \
    --data "$scratch/text" --device cuda --seq-len 256 --batch-size 8
# A checkpoint holds all that rounding at random needs.
kept=("${train[@]}" --steps 20 --optimizer-state bf16)
step "a run with a bf16 state saves" "${kept[@]}" --save-every 10 --out "$scratch/kept"
step "a run with a bf16 state is resumed" "${kept[@]}" --resume "$scratch/kept/checkpoint-10" --out "$scratch/kept-on"
if cmp -s "$scratch"/kept{,-on}/model.safetensors; then
    ok "bf16 state resumes bit for bit"
else
    not_ok "bf16 state resumes bit for bit" "$(tail -n 3 "$scratch/log")"
fi
refuses "resuming with another --optimizer-state is refused" 2 "optimizer-state bf16; resume with the same" "${train[@]}" --resume "$scratch/kept/checkpoint-10" --out "$scratch/kept-f32"
variant adapters --lora-r 8 --lora-dropout 0.1
variant adapters-of-odd-rank --lora-r 5 --lora-target-modules q_proj,down_proj --recompute block
# FP8 works on GPUs for which cuBLASLt takes a scale for each E4M3 row, and is refused on others.
if "$nojit" doctor --device cuda | grep -q '^gpu .*sm_90'; then
    variant fp8 --teacher-dtype fp8
    grep -h "fp8 teacher" "$scratch/log"
    variant fp8-float32 --teacher-dtype fp8 --dtype float32
    kd=$("$nojit" eval --model "$scratch/graph" --teacher "$scratch/graph" --teacher-dtype fp8 --data "$scratch/text" \
        --device cuda --seq-len 256 --batch-size 8 --json 2>"$scratch/log" | sed -E 's/.*"kd_loss": ([^,]+),.*/\1/')
    if awk -v k="$kd" 'BEGIN { exit !(k > 1e-6 && k < 0.02) }'; then
        ok "fp8 changes a model by $kd nats per token"
    else
        not_ok "fp8 changes a model by $kd nats per token" "$(tail -n 3 "$scratch/log")"
    fi
else
    refuses "fp8 on a GPU without scales per row is refused" 2 "sm_90 only" "${train[@]}" --teacher-dtype fp8 --out "$scratch/fp8"
fi
step "eval measures the divergence from a teacher" "$nojit" eval --model "$scratch/graph" --teacher "$scratch/teacher" --data "$scratch/text" \
    --device cuda --seq-len 256 --batch-size 8
first=$(losses "$scratch/graph" | head -n 1 | cut -d' ' -f1)
last=$(losses "$scratch/graph" | tail -n 1 | cut -d' ' -f1)
if awk -v a="$first" -v b="$last" 'BEGIN { exit !(b < a) }'; then ok "loss falls ($first -> $last)"; else not_ok "loss falls" "$first -> $last"; fi

{
    printf 'tree\t%s\ncommit\t%s\n' "$(tests/lib/treehash.sh)" "$(git rev-parse HEAD 2>/dev/null || echo unknown)"
    cat "$scratch/machine" "$results"
    awk -v program=gpu-run -f tests/lib/results.awk "$verdicts"
} >"$BUILD/check-gpu.results"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gpus.sh: a run that several processes share, started by --gpus or as launchers do it, on the CPU and on simulated GPUs: bit for bit what one
# process computes for as many ranks. One that fails is one sentence and the end of all.
set -eu
. tests/lib/lib.sh
. tests/lib/simulated.sh
. tests/lib/compare_runs.sh
. tests/lib/plant_nan.sh
export NOJIT_SIM_DEVICE=rtx4090,rtx4090,rtx4090 OMP_NUM_THREADS=1

"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
"$nojit" init --preset nojit-tiny --seed 2 --out "$d/teacher" >/dev/null
head -c 3000 LICENSE >"$d/text.txt"
head -c 400 LICENSE >"$d/held.txt"
models=(--student "$d/student" --teacher "$d/teacher" --data "$d/text.txt" --batch-size 2 --seq-len 24 --grad-accum 6 --lr 1e-2
    --gemm-table none)
few=("${models[@]}" --lr-schedule constant --eval-data "$d/held.txt" --eval-every 2 --keep-best --steps 4 --save-every 2 --keep 3)
long=("${models[@]}" --steps 4000 --save-every 20 --log-every 100000 --device cpu)

distill() { # OUT OPTION...
    "$nojit" distill --out "$d/$1" "${@:2}" >"$d/$1.log" 2>"$d/$1.err"
}
# What a launcher sets for each of its two processes.
torchrun() { env RANK=$1 WORLD_SIZE=2 LOCAL_RANK=$1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT="$port" "${@:2}"; }
slurm() {
    env SLURM_PROCID=$1 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=$1 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2 SLURM_STEP_NODELIST=localhost \
        SLURM_JOB_ID=1 MASTER_PORT="$port" "${@:2}"
}
openmpi() {
    env OMPI_COMM_WORLD_RANK=$1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=$1 OMPI_COMM_WORLD_LOCAL_SIZE=2 MASTER_PORT="$port" "${@:2}"
}
free_port() { port=$((20000 + RANDOM % 10000)); }
# Two processes; statuses in $status0 and $status1.
launched() { # LAUNCHER OUT OPTION...
    local pid out=$2
    free_port
    "$1" 1 "$nojit" distill --out "$d/$out" "${@:3}" >"$d/$out.1.log" 2>"$d/$out.1.err" &
    pid=$!
    status0=0 status1=0
    "$1" 0 "$nojit" distill --out "$d/$out" "${@:3}" >"$d/$out.log" 2>"$d/$out.err" || status0=$?
    wait $pid || status1=$?
}
figures() { sed -E 's/, "tokens_per_second.*//' "$1/metrics.jsonl"; }
same() { # NAME A B: models, states, rows
    if cmp "$d/$2/model.safetensors" "$d/$3/model.safetensors" >"$d/diff" 2>&1 &&
        cmp "$d/$2/checkpoint-2/state.bin" "$d/$3/checkpoint-2/state.bin" >"$d/diff" 2>&1 &&
        cmp "$d/$2/best/state.bin" "$d/$3/best/state.bin" >"$d/diff" 2>&1 &&
        diff <(figures "$d/$2") <(figures "$d/$3") >"$d/diff"; then
        ok "$1"
    else
        not_ok "$1" "$(head -c 300 "$d/diff") $(tail -n 1 "$d/$3.err")"
    fi
}

# ---- the same bits
for device in cpu cuda; do
    for ranks in 2 3; do
        distill virtual-$device-$ranks "${few[@]}" --device $device --virtual-ranks $ranks
        # in simulation: with a stream that does its work at once, where all others do theirs late
        NOJIT_SIM_EAGER=$((ranks - 2)) distill gpus-$device-$ranks "${few[@]}" --device $device --gpus $ranks || true
        same "--gpus $ranks on $device" virtual-$device-$ranks gpus-$device-$ranks
    done
done
# Nothing between the last step and the model, and a quantised teacher.
for set in "" "--teacher-dtype q8_0 --beta 0.5"; do
    # shellcheck disable=SC2086 # options
    distill virtual-last "${models[@]}" --steps 3 --device cuda --virtual-ranks 2 $set
    # shellcheck disable=SC2086
    distill gpus-last "${models[@]}" --steps 3 --device cuda --gpus 2 $set || true
    if cmp "$d/virtual-last/model.safetensors" "$d/gpus-last/model.safetensors" >"$d/diff" 2>&1; then
        ok "weights of the last step are saved${set:+ ($set)}"
    else
        not_ok "weights of the last step are saved${set:+ ($set)}" "$(cat "$d/diff") $(tail -n 1 "$d/gpus-last.err")"
    fi
    rm -r "$d/virtual-last" "$d/gpus-last"
done
distill virtual-rounded "${few[@]}" --device cuda --virtual-ranks 3 --reduce-dtype bf16
NOJIT_SIM_NCCL_MEMORY=500000000 distill gpus-rounded "${few[@]}" --device cuda --gpus 3 --reduce-dtype bf16 || true
same "bfloat16 gradients" virtual-rounded gpus-rounded
if grep -q '^3 ranks, 3 on this host (--gpus), NCCL 2.27.3 with 476.84 MiB' "$d/gpus-rounded.log" &&
    grep -q '"comm_bytes": 500000000' "$d/gpus-rounded/receipt.json"; then
    ok "memory of NCCL is told before the plan's is taken"
else
    not_ok "memory of NCCL is told before the plan's is taken" "$(grep ranks "$d/gpus-rounded.log")"
fi
if cmp -s "$d/virtual-rounded/model.safetensors" "$d/virtual-cuda-3/model.safetensors"; then not_ok "are rounded" "same bits as float32"; else ok "are rounded"; fi
for launcher in torchrun slurm openmpi; do
    launched $launcher $launcher "${few[@]}" --device cpu
    same "as $launcher starts it" virtual-cpu-2 $launcher
done
if [ "$(cat "$d/torchrun.1.log" "$d/torchrun.1.err" | wc -c)" = 0 ]; then ok "only rank 0 speaks"; else not_ok "only rank 0 speaks" "$(cat "$d"/torchrun.1.*)"; fi
if grep -q '^2 ranks, 2 on this host (torchrun)$' "$d/torchrun.log"; then ok "the launcher is named"; else not_ok "the launcher is named" "$(cat "$d/torchrun.log")"; fi
receipt() { tr -d ' \n' <"$d/$1/receipt.json"; }
if [[ $(receipt gpus-cuda-2) == *'"ranks":{"count":2,"processes":2,"launcher":"--gpus"}'* && $(receipt gpus-cuda-2) == *'"comm_version":22703'* &&
    $(receipt virtual-cpu-3) == *'"ranks":{"count":3,"processes":1,"launcher":""}'* ]]; then
    ok "the receipt says how many"
else
    not_ok "the receipt says how many" "$(grep -A4 -E '"ranks|comm_' "$d/gpus-cuda-2/receipt.json")"
fi
distill all "${few[@]}" --device cuda --gpus all || true
same "--gpus all" virtual-cuda-3 all

# ---- doctor
on() { NOJIT_SIM_DEVICE=$1 "$nojit" doctor "${@:2}"; }
if on h100,h100 --gpus all >"$d/doctor" && grep -q '^ranks      2 ranks, 2 on this host (--gpus), NCCL 2.27.3' "$d/doctor" &&
    grep -qE '^rank 1 +GPU 1 of .*H100.*, sm_90a, 79.19 GiB; peer access to 0$' "$d/doctor" &&
    [ "$(grep -cE '^(exchange|gather) +64 MiB per rank in [0-9.]+ ms: [0-9.]+ GB/s in each direction$' "$d/doctor")" = 2 ]; then
    ok "doctor tries the links"
else
    not_ok "doctor tries the links" "$(cat "$d/doctor")"
fi
if on rtx4090,rtx4090 --gpus 2 | grep -q '^verdict    slow, below 10 GB/s: the driver gives no peer access' &&
    NCCL_P2P_DISABLE=1 on rtx4090,rtx4090 --gpus 2 --json | grep -q '"fast": false, "problem": "NCCL_P2P_DISABLE is set; unset it"'; then
    ok "doctor says what to change"
else
    not_ok "doctor says what to change" "$(on rtx4090,rtx4090 --gpus 2)"
fi
refuses "doctor: one GPU" 2 'there is one GPU here' on h100 --gpus all
refuses "doctor: more than there are" 1 'GPU 1 wanted, the driver sees 1' on h100 --gpus 2

# ---- resuming
distill straight "${few[@]}" --device cpu --gpus 2 --steps 6
distill parted "${few[@]}" --device cpu --gpus 2
distill parted "${few[@]}" --device cpu --gpus 2 --steps 6 --resume auto
same "a resumed run is the same run" straight parted
distill other "${few[@]}" --device cpu --gpus 2
distill other "${few[@]}" --device cpu --steps 6 --resume auto
if grep -q '^changed since the checkpoint: .*gpus 2 -> 1' "$d/other.log" && [ -s "$d/other/model.safetensors" ]; then
    ok "on another number of GPUs, said in a line"
else
    not_ok "on another number of GPUs, said in a line" "$(cat "$d/other.log")"
fi
distill parted "${few[@]}" --device cpu --gpus 2 --steps 6 --resume auto
if grep -q 'nothing left to do' "$d/parted.log"; then ok "a run that is done"; else not_ok "a run that is done" "$(cat "$d/parted.log" "$d/parted.err")"; fi

# ---- refusals
refuses "micro-batches that cannot be dealt out" 2 '^nojit distill: gradient accumulation is 6 and 4 ranks share' "$nojit" distill "${few[@]}" \
    --device cpu --gpus 4 --out "$d/x"
refuses "no falling back to CPUs" 1 'driver' env LD_LIBRARY_PATH="$d" NOJIT_CUBLASLT="$d" "$nojit" distill "${few[@]}" --gpus 2 --out "$d/x"
refuses "bfloat16 gradients on a CPU" 2 '^nojit distill: --reduce-dtype bf16: .* has no bfloat16' "$nojit" distill "${few[@]}" --device cpu --reduce-dtype bf16 --out "$d/x"
refuses "--gpus all without one" 1 'no GPU can be used here' env LD_LIBRARY_PATH="$d" "$nojit" distill "${few[@]}" --gpus all --out "$d/x"
refuses "--gpus under a launcher" 2 'torchrun started 2 processes' env RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 "$nojit" distill \
    "${few[@]}" --gpus 3 --out "$d/x"
refuses "a file that is not there, once" 1 'nothing.txt' "$nojit" distill "${few[@]}" --data nothing.txt --device cpu --gpus 3 --out "$d/x"
if [ "$(wc -l <"$scratch/err")" = 1 ] && [ ! -e "$d/x" ]; then ok "in one line"; else not_ok "in one line" "$(cat "$scratch/err")"; fi

# One weight that is no number, of a token that only one micro-batch holds.
"$nojit" init --preset nojit-tiny-qwen3 --dtype float32 --out "$d/planted" >/dev/null
plant_nan "$d/planted" 126
{ head -c 200 LICENSE && printf '~' && tail -c 1000 LICENSE; } >"$d/tilde.txt"
refuses "a loss that is not finite on one rank" 1 \
    '^nojit train: rank 1: step 1: weight of the student model.embed_tokens.weight is not finite, in micro-batch 5 of 6, which begins with window 9 of epoch 1' \
    "$nojit" train --student "$d/planted" --data "$d/tilde.txt" --batch-size 2 --seq-len 24 --grad-accum 6 --seed 0 --device cpu --gpus 3 --out "$d/y"
if [ "$(wc -l <"$scratch/err")" = 1 ]; then ok "is one line"; else not_ok "is one line" "$(cat "$scratch/err")"; fi

# ---- ranks that differ
two_seeds() { # RANK COMMAND...
    torchrun "$1" "${@:2}" --seed "$1"
}
launched two_seeds seeds "${few[@]}" --device cpu
if [ $status0 != 0 ] && [ $status1 = 2 ] && [ "$(cat "$d/seeds.err" "$d/seeds.1.err")" = \
    "nojit distill: rank 1: 'seed 1' here, but 'seed 0' on rank 0; give all ranks the same options and files" ]; then
    ok "another option on one rank"
else
    not_ok "another option on one rank" "$status0 $status1 $(cat "$d/seeds.err" "$d/seeds.1.err")"
fi
if [ ! -e "$d/seeds" ]; then ok "nothing is written before"; else not_ok "nothing is written before" "$(ls -A "$d/seeds")"; fi

# ---- ranks that end
row_of_step() { [ -s "$1/metrics.jsonl" ] && grep -q "\"step\": $2, \"loss\"" "$1/metrics.jsonl" || { sleep 0.01 && false; }; }
children() { pgrep -P "$1" | sort -n; }
# A run of three by --gpus that has saved; its pid in $pid, those of its ranks in $rank.
begun() { # OUT
    rm -rf "${d:?}/$1"
    "$nojit" distill "${long[@]}" --gpus 3 --out "$d/$1" >"$d/$1.log" 2>"$d/$1.err" &
    pid=$!
    until_true $pid row_of_step "$d/$1" 24 || true
    mapfile -t rank < <(children $pid)
}
gone() { # NAME OUT STATUS SENTENCE: the run ended so, with all its processes, and goes on
    local status=0 p
    wait "$pid" || status=$?
    for p in "${rank[@]}"; do
        ! kill -0 "$p" 2>/dev/null || { not_ok "$1" "process $p is still there" && return; }
    done
    if [ $status != "$3" ] || [ "$(wc -l <"$d/$2.err")" -gt 1 ] || ! grep -qE -- "$4" "$d/$2.err" "$d/$2.log"; then
        not_ok "$1" "status $status: $(tail -n 3 "$d/$2.log") $(cat "$d/$2.err")"
    elif ! distill "$2" "${long[@]}" --gpus 3 --resume auto --steps 1 2>"$d/err" && ! grep -q 'past the 1 step' "$d/$2.err"; then
        not_ok "$1" "does not go on: $(cat "$d/$2.err")"
    else
        ok "$1"
    fi
}
for i in 0 1 2; do
    begun killed-$i
    kill -KILL "${rank[$i]}"
    gone "a rank is killed" killed-$i 1 "^nojit distill: rank $i: its process ${rank[$i]} was ended by signal 9 .*--resume auto$"
done
# Whichever is told, all stop after the same step.
begun told
kill -TERM "${rank[2]}"
gone "a signal to one rank" told 130 'interrupted: checkpoint-[0-9]+ is saved; continue with --resume auto$'
begun told
kill -TERM $pid "${rank[@]}"
gone "a signal to all processes" told 130 'interrupted: checkpoint-[0-9]+ is saved; continue with --resume auto$'
begun parent
kill -KILL $pid
status=0
wait $pid || status=$?
left() { ! kill -0 "${rank[0]}" 2>/dev/null && ! kill -0 "${rank[1]}" 2>/dev/null && ! kill -0 "${rank[2]}" 2>/dev/null || { sleep 0.01 && false; }; }
if until_true $$ left; then ok "the supervisor is killed"; else not_ok "the supervisor is killed" "ranks are left"; fi
kill -KILL "${rank[@]}" 2>/dev/null || true
for signal in TERM HUP; do
    begun stopped
    kill -$signal $pid
    gone "a signal to the supervisor" stopped 130 'interrupted: checkpoint-[0-9]+ is saved; continue with --resume auto$'
done
NOJIT_SILENCE_TIMEOUT=3 begun silent
kill -STOP "${rank[1]}"
gone "a rank that is stopped" silent 1 '^nojit distill: rank 1 has been silent for 3 s: its process is stopped'
NOJIT_SILENCE_TIMEOUT=2 begun suspended
sleep 3 # no condition to wait for: longer than a rank may be silent
kill -STOP $pid "${rank[@]}"
sleep 3
kill -CONT "${rank[@]}" $pid
kill -TERM $pid
gone "a run that is suspended goes on" suspended 130 'interrupted: checkpoint-[0-9]+ is saved; continue with --resume auto$'
# Ranks that are stopped save nothing between the two.
begun twice
kill -STOP "${rank[@]}"
taken() { kill -TERM $pid && until_true $pid grep -q '^ShdPnd:.0*$' /proc/$pid/status; }
taken && taken && kill -CONT "${rank[@]}" 2>/dev/null || true
status=0
wait $pid || status=$?
if [ $status = 130 ] && [ ! -s "$d/twice.err" ] && ! grep -q 'is saved' "$d/twice.log"; then
    ok "a second signal to the supervisor"
else
    not_ok "a second signal to the supervisor" "$status $(cat "$d/twice.err" "$d/twice.log")"
fi
finish

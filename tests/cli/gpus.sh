#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gpus.sh: a run that several processes share, started by --gpus or as launchers do it, on the CPU and on simulated GPUs: bit for bit what one
# process computes for as many ranks. What happens when one fails: rank_faults.sh.
set -eu
. tests/lib/lib.sh
. tests/lib/ranks.sh
. tests/lib/plant_nan.sh

# As other launchers set it.
slurm() {
    env SLURM_PROCID=$1 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=$1 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2 SLURM_STEP_NODELIST=localhost \
        SLURM_JOB_ID=1 MASTER_PORT="$port" "${@:2}"
}
openmpi() {
    env OMPI_COMM_WORLD_RANK=$1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=$1 OMPI_COMM_WORLD_LOCAL_SIZE=2 MASTER_PORT="$port" "${@:2}"
}

# ---- the same bits
for device in cpu cuda; do
    for ranks in 2 3; do
        distill virtual-$device-$ranks "${few[@]}" --device $device --virtual-ranks $ranks
        # in simulation: with a stream that does its work at once, where all others do theirs late
        NOJIT_SIM_EAGER=$((ranks - 2)) distill gpus-$device-$ranks "${few[@]}" --device $device --gpus $ranks || true
        same "--gpus $ranks on $device computes the bits of one process" virtual-$device-$ranks gpus-$device-$ranks
    done
done
# Nothing between the last step and the model, and a quantized teacher.
for set in "" "--teacher-dtype q8_0 --beta 0.5"; do
    saved='--gpus 2 saves the weights of the last step'
    if [ -n "$set" ]; then saved='--gpus 2 with a quantized teacher saves the weights of the last step'; fi
    # shellcheck disable=SC2086 # options
    distill virtual-last "${models[@]}" --steps 3 --device cuda --virtual-ranks 2 $set
    # shellcheck disable=SC2086
    distill gpus-last "${models[@]}" --steps 3 --device cuda --gpus 2 $set || true
    if cmp "$d/virtual-last/model.safetensors" "$d/gpus-last/model.safetensors" >"$d/diff" 2>&1; then
        ok "$saved"
    else
        not_ok "$saved" "$(cat "$d/diff") $(tail -n 1 "$d/gpus-last.err")"
    fi
    rm -r "$d/virtual-last" "$d/gpus-last"
done
distill virtual-rounded "${few[@]}" --device cuda --virtual-ranks 3 --reduce-dtype bf16
NOJIT_SIM_NCCL_MEMORY=500000000 distill gpus-rounded "${few[@]}" --device cuda --gpus 3 --reduce-dtype bf16 || true
same "bfloat16 gradients on 3 GPUs give the bits of one process" virtual-rounded gpus-rounded
if grep -q '^3 ranks, 3 on this host (--gpus), NCCL 2.28.3 with 476.84 MiB' "$d/gpus-rounded.log" &&
    grep -q '"comm_bytes": 500000000' "$d/gpus-rounded/receipt.json"; then
    ok "memory of NCCL is told before the plan's is taken"
else
    not_ok "memory of NCCL is told before the plan's is taken" "$(grep ranks "$d/gpus-rounded.log")"
fi
if cmp -s "$d/virtual-rounded/model.safetensors" "$d/virtual-cuda-3/model.safetensors"; then not_ok "--reduce-dtype bf16 rounds gradients" "same bits as float32"; else ok "--reduce-dtype bf16 rounds gradients"; fi
for launcher in torchrun slurm openmpi; do
    launched $launcher $launcher "${few[@]}" --device cpu
    same "ranks as $launcher starts them compute the bits of one process" virtual-cpu-2 $launcher
done
if [ "$(spoken "$d/torchrun.1.log" "$d/torchrun.1.err" | wc -c)" = 0 ]; then ok "only rank 0 prints"; else not_ok "only rank 0 prints" "$(cat "$d"/torchrun.1.*)"; fi
if grep -q '^2 ranks, 2 on this host (torchrun)$' "$d/torchrun.log"; then ok "a run of several ranks names its launcher"; else not_ok "a run of several ranks names its launcher" "$(cat "$d/torchrun.log")"; fi
receipt() { tr -d ' \n' <"$d/$1/receipt.json"; }
if [[ $(receipt gpus-cuda-2) == *'"ranks":{"count":2,"processes":2,"launcher":"--gpus"}'* && $(receipt gpus-cuda-2) == *'"comm_version":22803'* &&
    $(receipt virtual-cpu-3) == *'"ranks":{"count":3,"processes":1,"launcher":""}'* ]]; then
    ok "the receipt says how many ranks there were"
else
    not_ok "the receipt says how many ranks there were" "$(grep -A4 -E '"ranks|comm_' "$d/gpus-cuda-2/receipt.json")"
fi
distill all "${few[@]}" --device cuda --gpus all || true
same "--gpus all takes all GPUs" virtual-cuda-3 all

# ---- what a run would take: masters and moments are shared
planned() { "$nojit" plan --student "$d/student" --teacher "$d/teacher" --batch-size 1 --seq-len 24 --grad-accum 6 --device cuda "$@" | sed -nE 's/^device total +([0-9.]+) MiB.*/\1/p'; }
dry() { "$nojit" distill "${models[@]}" --device cuda --steps 4 --dry-run "$@" | sed -nE 's/^device total +([0-9.]+) MiB.*/\1/p'; }
one=$(planned) three=$(planned --gpus 3)
if awk "BEGIN { exit !($three < $one) }" && [ "$(dry)" = "$one" ] && [ "$(dry --gpus 3)" = "$three" ]; then
    ok "plan and --dry-run know the ranks"
else
    not_ok "plan and --dry-run know the ranks" "planned $one and $three, dry $(dry) and $(dry --gpus 3)"
fi

# ---- what comes from other ranks in a step, which the plan knows exactly
number() { sed -E "s/.*\"$1\": ([0-9]+).*/\1/"; }
moved() { # NAME RUN OPTION...: as the receipt of the run measured it
    local planned measured
    planned=$("$nojit" plan --json --student "$d/student" --teacher "$d/teacher" --batch-size 1 --seq-len 24 --grad-accum 6 "${@:3}" | number comm_step_bytes)
    measured=$(tr -d '\n' <"$d/$2/receipt.json" | number comm_step_bytes)
    ok_if "$1" "planned '$planned', measured '$measured'" [ "$planned" = "$measured" ]
}
moved "the plan knows the bytes that a step moves between GPUs" gpus-cuda-3 --device cuda --gpus 3
moved "the plan knows the bytes that a step with bfloat16 gradients moves" gpus-rounded --device cuda --gpus 3 --reduce-dtype bf16
moved "the plan knows the bytes that a step moves between processes" gpus-cpu-2 --device cpu --gpus 2
distill adapters "${models[@]}" --steps 2 --device cpu --gpus 2 --lora-r 4
moved "the plan knows the bytes that a step of adapters moves" adapters --device cpu --gpus 2 --lora-r 4
estimates=$(for n in 2 8; do "$nojit" plan --json --student "$d/student" --seq-len 24 --device cuda --gpus $n | number comm_bytes_estimate; done)
ok_if "a plan of several GPUs estimates NCCL's memory" "$estimates" [ "$estimates" = $'1643000000\n4343000000' ]
ok_if "a plan in words estimates NCCL's memory" "no line of NCCL" grep -q '^comm_bytes_estimate  *1.53 GiB  (of NCCL' <("$nojit" plan --student "$d/student" --seq-len 24 --device cuda --gpus 2)
alone=$("$nojit" plan --json --student "$d/student" --seq-len 24 --device cuda --virtual-ranks 2)
ok_if "a plan of one GPU has no estimate of NCCL's memory" "$alone" grep -qE '^\{"batch_size": [0-9]+, "total_bytes": [0-9]+, "host_bytes": [0-9]+, ("budget|"regions)' <<<"$alone"

# ---- resuming
distill straight "${few[@]}" --device cpu --gpus 2 --steps 6
distill parted "${few[@]}" --device cpu --gpus 2
distill parted "${few[@]}" --device cpu --gpus 2 --steps 6 --resume auto
same "a run resumed on another number of GPUs is the same run" straight parted
distill other "${few[@]}" --device cpu --gpus 2
distill other "${few[@]}" --device cpu --steps 6 --resume auto
if grep -q '^changed since the checkpoint: .*gpus 2 -> 1' "$d/other.log" && [ -s "$d/other/model.safetensors" ]; then
    ok "a run resumed on another number of GPUs says so in a line"
else
    not_ok "a run resumed on another number of GPUs says so in a line" "$(cat "$d/other.log")"
fi
distill parted "${few[@]}" --device cpu --gpus 2 --steps 6 --resume auto
if grep -q 'nothing left to do' "$d/parted.log"; then ok "--resume of a run that is done says that nothing is left"; else not_ok "--resume of a run that is done says that nothing is left" "$(cat "$d/parted.log" "$d/parted.err")"; fi

# ---- refusals
refuses "micro-batches that ranks cannot share are refused" 2 '^nojit distill: gradient accumulation is 6 and 4 ranks share' "$nojit" distill "${few[@]}" \
    --device cpu --gpus 4 --out "$d/x"
refuses "--virtual-ranks beside --gpus is refused" 2 '^nojit distill: --virtual-ranks is for one process' "$nojit" distill "${few[@]}" --device cpu --gpus 2 \
    --virtual-ranks 2 --out "$d/x"
refuses "--gpus without a driver does not fall back to CPUs" 1 'driver' env LD_LIBRARY_PATH="$no_driver" NOJIT_CUBLASLT="$d" "$nojit" distill "${few[@]}" --gpus 2 --out "$d/x"
refuses "--reduce-dtype bf16 on a CPU is refused" 2 '^nojit distill: --reduce-dtype bf16: .* has no bfloat16' "$nojit" distill "${few[@]}" --device cpu --reduce-dtype bf16 --out "$d/x"
refuses "--gpus all without a GPU is refused" 1 'no GPU can be used here' env LD_LIBRARY_PATH="$no_driver" "$nojit" distill "${few[@]}" --gpus all --out "$d/x"
refuses "--gpus under a launcher is refused" 2 'torchrun started 2 processes' env RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 "$nojit" distill \
    "${few[@]}" --gpus 3 --out "$d/x"
refuses "data that are not there are refused once, not by each rank" 1 'nothing.txt' "$nojit" distill "${few[@]}" --data nothing.txt --device cpu --gpus 3 --out "$d/x"
if [ "$(wc -l <"$scratch/err")" = 1 ] && [ ! -e "$d/x" ]; then ok "data that are not there are refused in one line, and nothing is made"; else not_ok "data that are not there are refused in one line, and nothing is made" "$(cat "$scratch/err")"; fi

# One weight that is no number, of a token that only one micro-batch holds.
"$nojit" init --preset nojit-tiny-qwen3 --dtype float32 --out "$d/planted" >/dev/null
plant_nan "$d/planted" 126
{ head -c 200 LICENSE && printf '~' && tail -c 1000 LICENSE; } >"$d/tilde.txt"
refuses "a loss that is not finite on one rank ends all ranks" 1 \
    '^nojit train: rank 1: step 1: weight of the student model.embed_tokens.weight is not finite, in micro-batch 5 of 6, which begins with window 9 of epoch 1' \
    "$nojit" train --student "$d/planted" --data "$d/tilde.txt" --batch-size 2 --seq-len 24 --grad-accum 6 --seed 0 --device cpu --gpus 3 --out "$d/y"
if [ "$(grep -vc "contains NaN or infinity: " "$scratch/err")" = 1 ]; then ok "a loss that is not finite on one rank is said in one line"; else not_ok "a loss that is not finite on one rank is said in one line" "$(cat "$scratch/err")"; fi

# ---- ranks that differ
refused_alike() { # NAME OUT LINES: by rank 1, in one sentence
    if [ $status0 != 0 ] && [ $status1 = 2 ] && [ "$(spoken "$d/$2.err" "$d/$2.1.err")" = "nojit distill: rank 1: $3; give all ranks the same options and files" ]; then
        ok "$1"
    else
        not_ok "$1" "$status0 $status1 $(cat "$d/$2.err" "$d/$2.1.err")"
    fi
}
two_rates() { # RANK COMMAND...
    torchrun "$1" "${@:2}" --lr "1e-$((2 + $1))"
}
launched two_rates rates "${few[@]}" --device cpu
refused_alike "another option on one rank is refused" rates "'lr 0.001' here, but 'lr 0.01' on rank 0"
ok_if "ranks that differ write nothing" "$(ls -A "$d/rates" 2>&1)" [ ! -e "$d/rates" ]
one_reads() {
    if [ "$1" = 0 ]; then torchrun "$@" --every-rank-reads; else torchrun "$@"; fi
}
launched one_reads reads "${few[@]}" --device cpu
refused_alike "--every-rank-reads on rank 0 alone is refused" reads "'every-rank-reads false' here, but 'every-rank-reads true' on rank 0"
# The same program for the machine, not for its hash.
cp "$nojit" "$d/other-nojit"
printf x >>"$d/other-nojit"
two_builds() {
    if [ "$1" = 0 ]; then torchrun "$@"; else torchrun 1 "$d/other-nojit" "${@:3}"; fi
}
launched two_builds builds "${few[@]}" --device cpu
ok_if "another build on one rank is refused" "$status0 $status1 $(cat "$d/builds.err" "$d/builds.1.err")" \
    grep -qE '^nojit distill: rank 0: the build of nojit \(binary_hash\) is .* on rank 1 but .* on rank 0; it must be the same on all ranks$' "$d/builds.err"

# ---- two jobs of one launcher on one host, at one port, each in a folder of its own that it calls by the same name
free_port
mkdir "$d/jobs" "$d/jobs/a" "$d/jobs/b"
program=$(realpath "$nojit")
of_job() { # JOB RANK
    cd "$d/jobs/$1"
    openmpi "$2" "$program" distill "${models[@]}" --steps 2 --device cpu --out run >"$2.log" 2>"$2.err"
}
NOJIT_CONNECT_TIMEOUT=30 of_job a 0 &
first=$!
connected() { grep -qi ":$(printf %04x "$port") .* 0A " /proc/net/tcp; }
until_true $first connected || true
status=0
(of_job b 1) || status=$?
ok_if "a rank of another job is sent away" "$status $(cat "$d/jobs/b/1.err")" grep -q '^nojit distill: rank 1: another run listens on this port' "$d/jobs/b/1.err"
ok_if "a rank that is sent away learns nothing of the other job" "$(cat "$d/jobs/b/1.err")" eval '! grep -q "jobs/a" "$d/jobs/b/1.err"'
(of_job a 1) || true
ok_if "a job whose port a stranger tried waits for its own rank" "$(cat "$d/jobs/a/0.err")" wait $first

finish

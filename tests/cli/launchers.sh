#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# launchers.sh: runs that the mpirun of Open MPI, the mpiexec of MPICH and a Slurm of one node start: bit for bit what one process computes for as
# many ranks, and the end of all when one fails, is killed or the launcher is told to stop. Needs Debian's openmpi-bin, mpich, or slurmctld and slurmd.
set -eu
. tests/lib/lib.sh
. tests/lib/compare_runs.sh
. tests/lib/plant_nan.sh
. tests/lib/slurm.sh
trap 'slurm_end; rm -rf "$scratch"' EXIT
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_NUM_THREADS=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 # of machines for tests

"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
"$nojit" init --preset nojit-tiny --seed 2 --out "$d/teacher" >/dev/null
head -c 3000 LICENSE >"$d/text.txt"
run=("$nojit" distill --student "$d/student" --teacher "$d/teacher" --data "$d/text.txt" --batch-size 2 --seq-len 24 --grad-accum 6 --lr 1e-2
    --lr-schedule constant --gemm-table none --device cpu)
# One weight that is no number, of a token that only the second micro-batch holds.
"$nojit" init --preset nojit-tiny-qwen3 --dtype float32 --out "$d/planted" >/dev/null
plant_nan "$d/planted" 126
{ head -c 200 LICENSE && printf '~' && tail -c 1000 LICENSE; } >"$d/tilde.txt"
planted=("$nojit" train --student "$d/planted" --data "$d/tilde.txt" --batch-size 2 --seq-len 24 --grad-accum 6 --seed 14 --device cpu)

virtual() { # STEPS: the folder of what one process computes
    local out=$d/virtual-$1
    [ -e "$out" ] || "${run[@]}" --virtual-ranks 2 --steps "$1" --out "$out" >"$out.log"
    echo "$out"
}
same_model() { cmp "$(virtual "$2")/model.safetensors" "$1/model.safetensors" >"$scratch/diff" 2>&1; }
# The ranks of a run, and their supervisor where it has one, whoever is their parent.
ranks() { pgrep -f -- "^$nojit distill .*--out $1( |\$)"; }
none_left() {
    local i
    for ((i = 0; i < 1000; i++)); do
        ranks "$1" >/dev/null || return 0
        sleep 0.01
    done
    return 1
}
sentences() { grep -h '^nojit [a-z]*: ' "$1.err" || true; }
# A run that has saved; the pid of its launcher in $pid.
begun() { # OUT
    "${launch[@]}" "${run[@]}" "${own[@]}" --steps 4000 --save-every 20 --log-every 100000 --out "$1" >"$1.log" 2>"$1.err" &
    pid=$!
    until_true $pid row_of_step "$1" 24 || true
}
# The launcher has ended; no rank is left, and their sentences are at most one.
ended() { # NAME OUT STATUS
    local status=0
    wait $pid || status=$?
    if ! [[ $status == $3 ]]; then
        not_ok "$1" "status $status, expected $3: $(tail -n 3 "$2.log" "$2.err")"
    elif ! none_left "$2"; then
        not_ok "$1" "ranks are left: $(ranks "$2")"
    elif [ "$(sentences "$2" | wc -l)" -gt 1 ]; then
        not_ok "$1" "$(cat "$2.err")"
    else
        return 0
    fi
    return 1
}
goes_on() { # NAME OUT: from its newest checkpoint, bit for bit
    local saved steps
    saved=$(newest "$2")
    steps=$((${saved##*-} + 2))
    if "${launch[@]}" "${run[@]}" "${own[@]}" --steps $steps --resume auto --out "$2" >"$2.log" 2>"$2.err" && same_model "$2" $steps; then
        ok "$1"
    else
        not_ok "$1" "$(cat "$scratch/diff" "$2.err")"
    fi
}

# LABEL SAID COMMAND...: a launcher of two ranks, which rank 0 calls SAID; own: options of nojit.
launcher() {
    local label=$1 said=$2 out=$d/$1
    launch=("${@:3}")
    if "${launch[@]}" "${run[@]}" "${own[@]}" --steps 4 --out "$out" >"$out.log" 2>"$out.err" && same_model "$out" 4; then
        ok "$label starts ranks that compute the bits of one process"
    else
        not_ok "$label starts ranks that compute the bits of one process" "$(cat "$scratch/diff" "$out.err")"
    fi
    if grep -q "^2 ranks, 2 on this host ($said)\$" "$out.log"; then ok "$label is named by rank 0"; else not_ok "$label is named by rank 0" "$(cat "$out.log")"; fi

    refuses "under $label a rank that fails ends all" '[1-9]*' '^nojit train: rank 1: step 1: weight of the student .* is not finite' \
        "${launch[@]}" "${planted[@]}" "${own[@]}" --out "$out-nan"
    cp "$scratch/err" "$out-nan.err"
    if [ "$(sentences "$out-nan" | grep -vc "contains NaN or infinity: ")" = 1 ]; then ok "under $label a rank that fails is the only one to speak"; else not_ok "under $label a rank that fails is the only one to speak" "$(cat "$out-nan.err")"; fi

    begun "$out-killed"
    kill -KILL "$(ranks "$out-killed" | tail -n 1)"
    if ended "under $label a run whose rank was killed goes on" "$out-killed" '[1-9]*'; then goes_on "under $label a run whose rank was killed goes on" "$out-killed"; fi
    export OMPI_MCA_odls_base_sigkill_timeout=4 # after which Open MPI kills; 1 without it
    begun "$out-told"
    unset OMPI_MCA_odls_base_sigkill_timeout
    "$stop" $pid
    if ended "under $label a run whose launcher was told to stop goes on" "$out-told" '*'; then
        if grep -q 'interrupted: checkpoint-[0-9]* is saved' "$out-told.log" "$out-told.err"; then ok "under $label a run whose launcher is told to stop saves"; else not_ok "under $label a run whose launcher is told to stop saves" "$(cat "$out-told.log" "$out-told.err")"; fi
        goes_on "under $label a run whose launcher was told to stop goes on" "$out-told"
    fi
}

mpi() { # LABEL WORD COMMAND...: if COMMAND is there and its version says WORD
    if [[ $("$3" --version 2>&1) == *"$2"* ]]; then launcher "$1" "$1" "${@:3}" -n 2; else skip "$1" "there is no $3"; fi
}
told() { kill -TERM "$1"; }
cancelled() { scancel $(squeue -h -o %A); }
own=() stop=told
mpi "Open MPI" open-mpi.org mpirun.openmpi --bind-to none
# Each process as on a host of its own: where rank 0 is, PMIx says.
apart() { env OMPI_COMM_WORLD_LOCAL_SIZE=1 OMPI_COMM_WORLD_LOCAL_RANK=0 "$@"; }
export -f apart
across() { # NAME COMMAND...
    local out=$d/across
    if ! ldconfig -p | grep -q 'libpmix\.so\.2 '; then skip "$1" "there is no libpmix.so.2" && return; fi
    if "${@:2}" -n 2 bash -c 'apart "$@"' x "${run[@]}" --steps 4 --out "$out" >"$out.log" 2>"$out.err" && same_model "$out" 4 &&
        grep -q '^2 ranks, 1 on this host (Open MPI)$' "$out.log"; then
        ok "$1"
    else
        not_ok "$1" "$(cat "$scratch/diff" "$out.err")"
    fi
    refuses "$1, and is refused where PMIx does not know it" '[1-9]*' '^nojit distill: Open MPI does not say on which host rank 0 is, nor does PMIx .*; give its address: mpirun -x MASTER_ADDR=HOST' \
        "${@:2}" -n 2 env -u PMIX_NAMESPACE bash -c 'apart "$@"' x "${run[@]}" --steps 4 --out "$out-none"
}
if [[ $(mpirun.openmpi --version 2>&1) == *open-mpi.org* ]]; then across "under Open MPI the host of rank 0 is known by PMIx" mpirun.openmpi --bind-to none; fi
mpi MPICH HYDRA mpiexec.hydra
if ! slurm_here; then
    skip Slurm "there is no srun, slurmctld or slurmd"
elif ! slurm_begin; then
    skip Slurm "it does not come up here: $(tail -n 1 "$slurm/slurmd.log")"
else
    stop=cancelled
    launcher Slurm Slurm srun -n 2
    own=(--gpus 2)
    launcher "Slurm, a task that forks" --gpus srun -n 1
fi
finish

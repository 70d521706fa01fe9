# SPDX-License-Identifier: Apache-2.0
#
# ranks.sh: sourced by gpus.sh, rank_files.sh and rank_faults.sh: runs that several processes share, on the CPU and on three simulated GPUs.
. tests/lib/simulated.sh
. tests/lib/compare_runs.sh
export NOJIT_SIM_DEVICE=rtx4090,rtx4090,rtx4090 OMP_NUM_THREADS=1 TMPDIR=$scratch

"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
"$nojit" init --preset nojit-tiny --seed 2 --out "$d/teacher" >/dev/null
head -c 3000 LICENSE >"$d/text.txt"
head -c 210 LICENSE >"$d/held.txt"
models=(--student "$d/student" --teacher "$d/teacher" --data "$d/text.txt" --batch-size 1 --seq-len 24 --grad-accum 6 --lr 1e-2
    --gemm-table none)
few=("${models[@]}" --lr-schedule constant --eval-data "$d/held.txt" --eval-every 2 --keep-best --steps 4 --save-every 2 --keep 3)

distill() { # OUT OPTION...
    "$nojit" distill --out "$d/$1" "${@:2}" >"$d/$1.log" 2>"$d/$1.err"
}
# The variables that a launcher sets for each of its two processes.
torchrun() { env RANK=$1 WORLD_SIZE=2 LOCAL_RANK=$1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT="$port" "${@:2}"; }
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
# Print the output of a launcher's processes, without the lines that they wait for rank 0, which is late on a busy machine.
spoken() { cat "$@" | grep -v '^nojit [a-z]*: rank [0-9]* waits for rank 0 at ' || true; }
figures() { sed -E 's/, "tokens_per_second.*//' "$1/metrics.jsonl"; }
same() { # NAME A B: models, states, rows
    if cmp "$d/$2/"*model.safetensors "$d/$3/"*model.safetensors >"$d/diff" 2>&1 &&
        cmp "$d/$2/checkpoint-2/state.bin" "$d/$3/checkpoint-2/state.bin" >"$d/diff" 2>&1 &&
        cmp "$d/$2/best/state.bin" "$d/$3/best/state.bin" >"$d/diff" 2>&1 &&
        diff <(figures "$d/$2") <(figures "$d/$3") >"$d/diff"; then
        ok "$1"
    else
        not_ok "$1" "$(head -c 300 "$d/diff") $(tail -n 1 "$d/$3.err")"
    fi
}

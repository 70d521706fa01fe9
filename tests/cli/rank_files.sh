#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rank_files.sh: rank 0 alone reads models, data and checkpoints: a rank that is started where they are not computes the same bits; with
# --every-rank-reads it says what it lacks.
set -eu
. tests/lib/lib.sh
. tests/lib/ranks.sh

"$nojit" export --model "$d/teacher" --out "$d/teacher.gguf" --type q8_0 >/dev/null 2>&1
mkdir "$d/empty"
blind() { # RANK COMMAND...
    if [ "$1" = 1 ]; then cd "$d/empty"; else cd "$d"; fi
    torchrun "$@"
}
here=$(realpath "$nojit")
relative() { # OUT OPTION...: two ranks, paths from where rank 0 is
    local pid
    free_port
    (blind 1 "$here" distill --out "$1" "${@:2}" >"$d/$1.1.log" 2>"$d/$1.1.err") &
    pid=$!
    status0=0 status1=0
    (blind 0 "$here" distill --out "$1" "${@:2}" >"$d/$1.log" 2>"$d/$1.err") || status0=$?
    wait $pid || status1=$?
}
few_here=(--student student --data text.txt --eval-data held.txt --eval-every 2 --keep-best --batch-size 2 --seq-len 24 --grad-accum 6 --lr 1e-2
    --gemm-table none --lr-schedule constant --steps 4 --save-every 2 --keep 3)
LD_LIBRARY_PATH=$(realpath "$BUILD/sim")
export LD_LIBRARY_PATH NOJIT_CUBLASLT=$LD_LIBRARY_PATH NOJIT_NCCL=$LD_LIBRARY_PATH
unread() { # NAME OPTION...
    local name=blind-${1// /-}
    (cd "$d" && "$here" distill "${few_here[@]}" "${@:2}" --virtual-ranks 2 --out "$name-virtual" >"$name.log" 2>&1) || cat "$d/$name.log"
    relative "$name" "${few_here[@]}" "${@:2}"
    same "$1" "$name-virtual" "$name"
}
unread "float32" --device cpu --teacher teacher
unread "a quantised file" --device cuda --teacher teacher.gguf
unread "a teacher to be quantised" --device cuda --teacher teacher --teacher-dtype q8_0 --optimizer-state bf16
unread "packed rows and weights" --device cuda --teacher teacher --data-weights 1,2 --data held.txt --packing bfd
models_same() { if cmp -s "$d/$2/adapter_model.safetensors" "$d/$3/adapter_model.safetensors"; then ok "$1"; else not_ok "$1" "$(cat "$d/$3.err" "$d/$3.1.err")"; fi; }
lora=(--device cuda --teacher teacher --lora-r 4 --lora-dropout 0.1 --keep-best false)
(cd "$d" && "$here" distill "${few_here[@]}" "${lora[@]}" --virtual-ranks 2 --out lora-virtual >lora.log 2>&1) || cat "$d/lora.log"
relative lora-blind "${few_here[@]}" "${lora[@]}"
models_same "adapters" lora-virtual lora-blind
more=(--device cuda --teacher teacher --adapter lora-virtual --keep-best false)
(cd "$d" && "$here" distill "${few_here[@]}" "${more[@]}" --virtual-ranks 2 --out more-virtual >lora.log 2>&1) || cat "$d/lora.log"
relative more-blind "${few_here[@]}" "${more[@]}"
models_same "adapters of a folder" more-virtual more-blind
(cd "$d" && "$here" distill "${few_here[@]}" --device cpu --teacher teacher --virtual-ranks 2 --steps 6 --out resumed-virtual >lora.log 2>&1) || cat "$d/lora.log"
relative resumed --device cpu --teacher teacher "${few_here[@]}"
relative resumed --device cpu --teacher teacher "${few_here[@]}" --steps 6 --resume auto
same "a checkpoint" resumed-virtual resumed
NOJIT_CONNECT_TIMEOUT=2 relative each --device cpu --teacher teacher "${few_here[@]}" --every-rank-reads
if [ $status1 = 1 ] && grep -q 'student' "$d/each.1.err" "$d/each.err"; then ok "--every-rank-reads"; else not_ok "--every-rank-reads" "$status1 $(cat "$d/each.1.err" "$d/each.err")"; fi
launched torchrun each-reads "${few[@]}" --device cpu --every-rank-reads
distill virtual-cpu "${few[@]}" --device cpu --virtual-ranks 2
same "--every-rank-reads changes no bit" virtual-cpu each-reads

# ---- two DGX Sparks, as docs/two-dgx-sparks.md starts them
spark() { # RANK COMMAND...
    env RANK="$1" WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=localhost MASTER_PORT="$port" NOJIT_SIM_DEVICE=gb10 "${@:2}"
}
on_both() { # OUT COMMAND...
    local pid
    free_port
    spark 1 "${@:2}" >"$d/$1.1.log" 2>"$d/$1.1.err" &
    pid=$!
    spark 0 "${@:2}" >"$d/$1.log" 2>"$d/$1.err" || true
    wait $pid || true
}
needs sm_121
on_both sparks "$nojit" doctor --gpus all
if grep -q '^ranks      2 ranks, 1 on this host (torchrun)' "$d/sparks.log" && grep -qE '^rank 1 +GPU 0 of .*GB10' "$d/sparks.log"; then
    ok "two Sparks: doctor"
else
    not_ok "two Sparks: doctor" "$(cat "$d/sparks.log" "$d/sparks.err")"
fi
NOJIT_SIM_DEVICE=gb10 distill spark-virtual "${few[@]}" --device cuda --virtual-ranks 2
on_both spark "$nojit" distill "${few[@]}" --device cuda --out "$d/spark"
same "two Sparks: a run" spark-virtual spark
finish

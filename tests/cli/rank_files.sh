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
relative() { # OUT OPTION...: two ranks, paths of models and data from where rank 0 is
    local pid
    free_port
    (blind 1 "$here" distill --out "$d/$1" "${@:2}" >"$d/$1.1.log" 2>"$d/$1.1.err") &
    pid=$!
    status0=0 status1=0
    (blind 0 "$here" distill --out "$d/$1" "${@:2}" >"$d/$1.log" 2>"$d/$1.err") || status0=$?
    wait $pid || status1=$?
}
few_here=(--student student --data text.txt --eval-data held.txt --eval-every 2 --keep-best --batch-size 1 --seq-len 24 --grad-accum 6 --lr 1e-2
    --gemm-table none --lr-schedule constant --steps 4 --save-every 2 --keep 3)
LD_LIBRARY_PATH=$(realpath "$BUILD/sim")
export LD_LIBRARY_PATH NOJIT_CUBLASLT=$LD_LIBRARY_PATH NOJIT_NCCL=$LD_LIBRARY_PATH
unread() { # NAME OPTION...
    local name=blind-${1// /-}
    (cd "$d" && "$here" distill "${few_here[@]}" "${@:2}" --virtual-ranks 2 --out "$name-virtual" >"$name.log" 2>&1) || cat "$d/$name.log"
    relative "$name" "${few_here[@]}" "${@:2}"
    same "$1" "$name-virtual" "$name"
}
unread "a float32 run does not depend on files of rank 1" --device cpu --teacher teacher
unread "a run with a quantized teacher does not depend on files of rank 1" --device cuda --teacher teacher.gguf
unread "a run with --teacher-dtype q8_0 does not depend on files of rank 1" --device cuda --teacher teacher --teacher-dtype q8_0 --optimizer-state bf16
unread "a run with packed rows and weights does not depend on files of rank 1" --device cuda --teacher teacher --data-weights 1,2 --data held.txt --packing bfd
models_same() { if cmp -s "$d/$2/adapter_model.safetensors" "$d/$3/adapter_model.safetensors"; then ok "$1"; else not_ok "$1" "$(cat "$d/$3.err" "$d/$3.1.err")"; fi; }
lora=(--device cuda --teacher teacher --lora-r 4 --lora-dropout 0.1 --keep-best false)
(cd "$d" && "$here" distill "${few_here[@]}" "${lora[@]}" --virtual-ranks 2 --out lora-virtual >lora.log 2>&1) || cat "$d/lora.log"
relative lora-blind "${few_here[@]}" "${lora[@]}"
models_same "new adapters do not depend on files of rank 1" lora-virtual lora-blind
more=(--device cuda --teacher teacher --adapter lora-virtual --keep-best false)
(cd "$d" && "$here" distill "${few_here[@]}" "${more[@]}" --virtual-ranks 2 --out more-virtual >lora.log 2>&1) || cat "$d/lora.log"
relative more-blind "${few_here[@]}" "${more[@]}"
models_same "adapters of a folder do not depend on files of rank 1" more-virtual more-blind
(cd "$d" && "$here" distill "${few_here[@]}" --device cpu --teacher teacher --virtual-ranks 2 --steps 6 --out resumed-virtual >lora.log 2>&1) || cat "$d/lora.log"
relative resumed --device cpu --teacher teacher "${few_here[@]}"
relative resumed --device cpu --teacher teacher "${few_here[@]}" --steps 6 --resume auto
same "a resumed run does not depend on files of rank 1" resumed-virtual resumed
NOJIT_CONNECT_TIMEOUT=2 relative each --device cpu --teacher teacher "${few_here[@]}" --every-rank-reads
if [ $status1 = 1 ] && grep -q 'student' "$d/each.1.err" "$d/each.err"; then ok "--every-rank-reads says what a rank lacks"; else not_ok "--every-rank-reads says what a rank lacks" "$status1 $(cat "$d/each.1.err" "$d/each.err")"; fi
launched torchrun each-reads "${few[@]}" --device cpu --every-rank-reads
distill virtual-cpu "${few[@]}" --device cpu --virtual-ranks 2
same "--every-rank-reads changes no bit" virtual-cpu each-reads

# ---- files of its own for each rank, of which one is cut, rewritten or not the same
"$nojit" tokenize --model "$d/student" --data "$d/text.txt" --out "$d/whole.bin" >/dev/null
for i in 0 1; do
    mkdir "$d/own$i"
    cp -r "$d/student" "$d/teacher" "$d/held.txt" "$d/own$i"
    cp "$d/whole.bin" "$d/own$i/tokens.bin"
done
own() { # RANK OPTION...
    cd "$d/own$1"
    torchrun "$1" timeout -s KILL 60 "$here" distill --student student --teacher teacher --data tokens.bin --batch-size 2 --seq-len 24 --grad-accum 6 --lr 1e-2 \
        --gemm-table none --lr-schedule constant --device cpu --save-every 20 --log-every 100000 --every-rank-reads --out "$d/own" "${@:2}" >"$d/own.$1.log" 2>"$d/own.$1.err"
}
start_own() {
    free_port
    (own 1 "$@") &
    other=$!
    (own 0 "$@") &
    first=$!
}
end_own() {
    status0=0 status1=0
    wait $first || status0=$?
    wait $other || status1=$?
}
said() { # NAME REGEX: by one of them, which have failed
    if [ $status0 = 1 ] && [ $status1 = 1 ] && [ "$(spoken "$d"/own.[01].err | wc -l)" = 1 ] && grep -qhE "$2" "$d"/own.[01].err; then
        ok "$1"
    else
        not_ok "$1" "$status0 $status1 $(cat "$d"/own.[01].err)"
    fi
}
goes_on() { # NAME: bit for bit, with the file as it was
    local steps
    saved=$(newest "$d/own")
    steps=$((${saved##*-} + 2))
    cp "$d/whole.bin" "$d/own0/tokens.bin"
    cp "$d/whole.bin" "$d/own1/tokens.bin"
    start_own --steps $steps --resume auto "${@:2}"
    end_own
    (cd "$d/own0" && "$here" distill --student student --teacher teacher --data tokens.bin --batch-size 2 --seq-len 24 --grad-accum 6 --lr 1e-2 \
        --gemm-table none --lr-schedule constant --device cpu --virtual-ranks 2 --out "$d/alone" --steps $steps "${@:2}" >"$d/alone.log" 2>&1) || cat "$d/alone.log"
    if cmp "$d/alone/model.safetensors" "$d/own/model.safetensors" >"$d/diff" 2>&1; then ok "$1"; else not_ok "$1" "$(cat "$d/diff" "$d"/own.[01].err)"; fi
    rm -rf "$d/alone" "$d/own"
}
for i in 0 1; do
    start_own --steps 4000
    until_true $first row_of_step "$d/own" 24 || true
    truncate -s 3000 "$d/own$i/tokens.bin"
    end_own
    saved=$(newest "$d/own")
    said "data that one rank cannot read end the run with a checkpoint" "^nojit distill: rank $i: tokens.bin: cannot read byte .*; ${saved##*/} was saved; repair the data and continue with --resume auto\$"
    goes_on "a run whose data one rank could not read goes on bit for bit"
done
# Held-out text, in a part of a round that not every rank reads for itself.
"$nojit" tokenize --model "$d/student" --data "$d/held.txt" --out "$d/held.bin" >/dev/null
cp "$d/held.bin" "$d/own0"
cp "$d/held.bin" "$d/own1"
start_own --steps 4000 --eval-data held.bin --eval-every 10
until_true $first row_of_step "$d/own" 24 || true
truncate -s 700 "$d/own1/held.bin"
end_own
said "held-out data that one rank cannot read end the run with a checkpoint" '^nojit distill: rank 1: held.bin: cannot read byte .*; checkpoint-[0-9]*0 was saved; '
cp "$d/held.bin" "$d/own1"
goes_on "a run whose held-out data one rank could not read goes on bit for bit" --eval-data held.bin --eval-every 10
start_own --steps 4000
until_true $first row_of_step "$d/own" 24 || true
tail -c +65 "$d/whole.bin" | tr '\000-\377' '\377' | dd of="$d/own1/tokens.bin" bs=64 seek=1 conv=notrunc 2>/dev/null
end_own
said "data that were rewritten on one rank end the run with a checkpoint" '^nojit distill: rank 1: tokens.bin: token [0-9]+ is -?[0-9]+, the vocabulary of this run ends at [0-9]+; .*; checkpoint-'
goes_on "a run whose data one rank rewrote goes on bit for bit"
printf 'another text than that of the other rank, and longer than a window of 24, so that it will do; and longer still' >"$d/other.txt"
rm "$d/own1/tokens.bin"
"$nojit" tokenize --model "$d/student" --data "$d/other.txt" --out "$d/own1/tokens.bin" >/dev/null
name="another file of data on one rank is refused"
for what in data student; do
    start_own --steps 4
    end_own
    if [ $status0 != 0 ] && [ $status1 = 2 ] && [ "$(spoken "$d"/own.[01].err | wc -l)" = 1 ] &&
        grep -qhE "^nojit distill: rank 1: '$what [^']*' here, but '$what [^']*' on rank 0; give all ranks the same options and files\$" "$d"/own.[01].err && [ ! -e "$d/own" ]; then
        ok "$name"
    else
        not_ok "$name" "$status0 $status1 $(cat "$d"/own.[01].err)"
    fi
    name="another student on one rank is refused"
    cp "$d/whole.bin" "$d/own1/tokens.bin"
    rm -rf "$d/own1/student"
    "$nojit" init --preset nojit-tiny --seed 7 --out "$d/own1/student" >/dev/null
done

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
    ok "doctor on two DGX Sparks names both GPUs"
else
    not_ok "doctor on two DGX Sparks names both GPUs" "$(cat "$d/sparks.log" "$d/sparks.err")"
fi
NOJIT_SIM_DEVICE=gb10 distill spark-virtual "${few[@]}" --device cuda --virtual-ranks 2
on_both spark "$nojit" distill "${few[@]}" --device cuda --out "$d/spark"
same "a run on two DGX Sparks gives the bits of one process" spark-virtual spark
finish

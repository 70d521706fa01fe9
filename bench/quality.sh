#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# quality.sh: does distillation pay? Trains a teacher of 137M parameters on text of this machine, distils it into a
# student of 34M, trains the same student on cross-entropy alone with the same tokens, for several seeds, and compares
# held-out loss and divergence. Needs a GPU, and Python with `tokenizers` for the tokenizer; ends with a table.
#   FOLDERS='/usr/share/doc /usr/lib/python3'   where the text comes from     MEGABYTES=160   VOCABULARY=16384
#   TEACHER_STEPS=3000 STUDENT_STEPS=1200       of 32 x 512 tokens            SEEDS='1 2 3'   WORK=build/quality
#   SHAPE='--hidden-size 1024 ...'              of the student, as for nojit init
#   ALSO='--student-dtype fp8'                  distils once more with these options; PLAIN=no: and does not train without a teacher
set -eu
: "${BUILD:=build}" "${WORK:=$BUILD/quality}" "${PYTHON:=python3}" "${DEVICE:=cuda}"
: "${FOLDERS:=/usr/share/doc /usr/share/common-licenses /usr/lib/python3 /usr/include}" "${MEGABYTES:=160}" "${VOCABULARY:=16384}"
: "${SHAPE:=}" "${ALSO:=}" "${PLAIN:=yes}"
: "${TEACHER_STEPS:=3000}" "${STUDENT_STEPS:=1200}" "${SEEDS:=1 2 3}" "${BATCH:=32}" "${SEQ:=512}"
nojit=$BUILD/nojit
. bench/lib.sh
give_help "$@"
needs_tokenizers
needs_device
mkdir -p "$WORK/logs"

# train NAME COMMAND...: quiet but for the last lines; the whole log lies beside the run.
train() {
    local name=$1
    shift
    "$nojit" "$@" --data "$WORK/train.bin" --eval-data "$WORK/held-out.bin" --out "$WORK/$name" --device "$DEVICE" \
        --batch-size "$BATCH" --seq-len "$SEQ" --lr-schedule cosine --warmup-ratio 0.05 --log-every 100 \
        --sample-prompt "def read_" "This software is" --sample-tokens 60 \
        >"$WORK/logs/$name.log" 2>&1 || { tail -n 5 "$WORK/logs/$name.log"; exit 1; }
    tail -n 2 "$WORK/logs/$name.log"
}

stage "text and tokenizer"
rm -rf "$WORK"/train* "$WORK"/held-out* "$WORK"/teacher* "$WORK"/distilled* "$WORK"/also* "$WORK"/plain* "$WORK"/start*
kinds="distilled${ALSO:+ also}"
if [ "$PLAIN" = yes ]; then kinds="$kinds plain"; fi
make_text

stage "teacher, $TEACHER_STEPS steps"
"$nojit" init --like "$WORK/shape-teacher" --out "$WORK/start-teacher"
train teacher train --student "$WORK/start-teacher" --steps "$TEACHER_STEPS" --lr 1e-3 --weight-decay 0.1 --eval-every 500
for seed in $SEEDS; do
    # shellcheck disable=SC2086 # options
    "$nojit" init --like "$WORK/shape-student" $SHAPE --seed "$seed" --out "$WORK/start-$seed"
    student=(--student "$WORK/start-$seed" --steps "$STUDENT_STEPS" --seed "$seed" --lr 2e-3 --weight-decay 0.1 --eval-every 200)
    distil=(distill --teacher "$WORK/teacher" --temperature "${TEMPERATURE:-1}" --kd-ratio "${KD_RATIO:-0.8}" "${student[@]}")
    stage "distilled, seed $seed"
    train "distilled-$seed" "${distil[@]}"
    if [ -n "$ALSO" ]; then
        stage "distilled with $ALSO, seed $seed"
        # shellcheck disable=SC2086 # options
        train "also-$seed" "${distil[@]}" $ALSO
    fi
    [ "$PLAIN" = yes ] || continue
    stage "cross-entropy alone, seed $seed"
    train "plain-$seed" train "${student[@]}"
done

stage "held out"
rows=(--batch-size "$BATCH" --seq-len "$SEQ")
printf '%-14s %5s %10s %12s %10s\n' model seed loss KL agreement
printf '%-14s %5s %10.4f\n' teacher - "$("$nojit" eval --model "$WORK/teacher" --data "$WORK/held-out.bin" \
    --device "$DEVICE" "${rows[@]}" --json 2>/dev/null | sed -E 's/.*"ce_loss": ([0-9.]+).*/\1/')"
for kind in $kinds; do
    for seed in $SEEDS; do
        # shellcheck disable=SC2183 # held_out gives three words
        printf '%-14s %5s %10.4f %12.4f %10.4f\n' "$kind" "$seed" $(held_out "$WORK/$kind-$seed" "$WORK/teacher" "${rows[@]}")
    done
done | tee "$WORK/table"
awk '{ n[$1]++; loss[$1] += $3; square[$1] += $3 * $3; kl[$1] += $4 }
    END {
        for (k in n) {
            mean = loss[k] / n[k]
            spread = n[k] > 1 ? sqrt((square[k] - n[k] * mean * mean) / (n[k] - 1)) : 0
            printf "%-14s mean loss %.4f, standard deviation %.4f, mean KL %.4f\n", k, mean, spread, kl[k] / n[k]
        }
    }' "$WORK/table"
runs=()
for kind in $kinds; do runs+=("$WORK/$kind"-*); done
"$nojit" report "${runs[@]}" --out "$WORK/report.html"
stage "done: models in $WORK, curves in $WORK/report.html"

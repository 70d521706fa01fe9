#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# on_policy.sh: does it pay to learn from one's own answers? A teacher learns to add numbers of three digits from text; a smaller
# student that has seen some of it is then distilled in several ways, each step
# with as many positions for the teacher. Reported: how many sums of 1,000 that nobody has seen the student gets right, greedily, and the seconds it took.
#   SEEDS='1 2 3'    STEPS=1500   of 32 x 96 tokens     TEACHER_STEPS=3000   START_STEPS=1500   WORK=build/on-policy   DEVICE=cuda
#   LABELLED=N       sums with answers that the student's side has (all 39,000, as the teacher had); prompts are as many in any case
#   STUDENT='...'    shape of the student, options of nojit init
#   METHODS='...'    rows of the table: see `methods` below; NAME-long has LONG=2 times as many steps, for comparison at equal time
set -eu
: "${BUILD:=build}" "${WORK:=$BUILD/on-policy}" "${DEVICE:=cuda}" "${SEEDS:=1 2 3}" "${STEPS:=1500}" "${TEACHER_STEPS:=3000}"
: "${LONG:=2}" "${STUDENT:=--hidden-size 128 --intermediate-size 384 --heads 2 --kv-heads 1}" "${START_STEPS:=1500}" "${BATCH:=32}" "${LABELLED:=39000}" "${METHODS:=plain off-fkl off-rkl off-jsd half-fkl half-rkl half-jsd on-fkl on-rkl on-jsd teacher-writes plain-long off-fkl-long}"
nojit=$BUILD/nojit
. bench/lib.sh
begin "$@"

# Sums as prompt and completion: those of test.jsonl are in neither of the others.
make_sums() {
    awk -v dir="$WORK" "$next_int"'
        BEGIN {
            x = 7
            for (i = 0; i < 60000; i++) {
                a = next_int(1000); b = next_int(1000)
                if (i >= 1000 && ((a, b) in test))
                    continue
                if (i < 1000)
                    test[a, b] = 1
                printf "{\"prompt\": \"%d+%d=\", \"completion\": \"%d\"}\n", a, b, a + b > \
                    (dir "/" (i < 1000 ? "test" : i < 40000 ? "train" : "prompts") ".jsonl")
            }
        }'
}
# learn OUT OPTION...: a run; its seconds to $WORK/seconds
learn() {
    local from=$EPOCHREALTIME
    "$nojit" "${@:2}" --out "$1" --packing bfd --seq-len 96 --batch-size "$BATCH" --warmup-ratio 0.05 --weight-decay 0.01 --device "$DEVICE" \
        >"$WORK/log" 2>&1 || refuse "$(tail -n 1 "$WORK/log")"
    awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $from }" >"$WORK/seconds"
}
# right MODEL: of 1,000 sums
right() {
    "$nojit" generate --model "$1" --prompts "$WORK/test.jsonl" --temperature 0 --max-tokens 8 --device "$DEVICE" 2>/dev/null |
        sed -nE 's/.*"text": "([^"]*)".*/\1/p' | paste -d ' ' - "$WORK/answers" | awk '$1 == $2 && NF == 2 { n++ } END { print n + 0 }'
}
# method NAME: its options
off="--data $WORK/labelled.jsonl --kd-ratio 1"
half="--data $WORK/labelled.jsonl --prompts $WORK/prompts.jsonl --on-policy 0.5 --max-new 8"
on="--prompts $WORK/prompts.jsonl --on-policy 1 --max-new 8"
declare -A methods=(
    [off-fkl]="$off --beta 0" [off-rkl]="$off --beta 1" [off-jsd]="$off --beta 0.5"
    [half-fkl]="$half --beta 0" [half-rkl]="$half --beta 1" [half-jsd]="$half --beta 0.5"
    [on-fkl]="$on --beta 0" [on-rkl]="$on --beta 1" [on-jsd]="$on --beta 0.5"
    [teacher-writes]="$on --beta 0 --writer teacher")

make_sums
head -n "$LABELLED" "$WORK/train.jsonl" >"$WORK/labelled.jsonl"
sed -E 's/.*"completion": "([0-9]*)".*/\1/' "$WORK/test.jsonl" >"$WORK/answers"
printf '%-16s %4s %6s %8s\n' method seed right seconds
for seed in $SEEDS; do
    "$nojit" init --preset nojit-demo-teacher --hidden-size 256 --intermediate-size 768 --heads 4 --kv-heads 2 --out "$WORK/shape-$seed" --seed "$seed" >/dev/null 2>&1
    "$nojit" init --preset nojit-demo-student $STUDENT --out "$WORK/small-$seed" --seed "$seed" >/dev/null 2>&1
    learn "$WORK/teacher-$seed" train --student "$WORK/shape-$seed" --data "$WORK/train.jsonl" --steps "$TEACHER_STEPS" --lr 1e-3 --seed "$seed"
    printf '%-16s %4s %6s %8s\n' teacher "$seed" "$(right "$WORK/teacher-$seed")" "$(cat "$WORK/seconds")"
    learn "$WORK/start-$seed" train --student "$WORK/small-$seed" --data "$WORK/labelled.jsonl" --steps "$START_STEPS" --lr 1e-3 --seed "$seed"
    printf '%-16s %4s %6s %8s\n' start "$seed" "$(right "$WORK/start-$seed")" "$(cat "$WORK/seconds")"
    for method in $METHODS; do
        steps=$STEPS
        case $method in *-long) steps=$((STEPS * LONG)) ;; esac
        if [ "${method%-long}" = plain ]; then
            learn "$WORK/$method-$seed" train --student "$WORK/start-$seed" --data "$WORK/labelled.jsonl" --steps "$steps" --lr 1e-3 --seed "$seed"
        else
            # shellcheck disable=SC2086 # options
            learn "$WORK/$method-$seed" distill --teacher "$WORK/teacher-$seed" --student "$WORK/start-$seed" --steps "$steps" --lr 1e-3 \
                --seed "$seed" ${methods[${method%-long}]}
        fi
        printf '%-16s %4s %6s %8s\n' "$method" "$seed" "$(right "$WORK/$method-$seed")" "$(cat "$WORK/seconds")"
    done
done | tee "$WORK/table"
echo "means over the seeds:"
awk '{ n[$1]++; r[$1] += $3; s[$1] += $4; q[$1] += $3 * $3 }
    END { for (m in n) {
        deviation = 0
        if (n[m] - 1 > 0) deviation = sqrt((q[m] - r[m] * r[m] / n[m]) / (n[m] - 1) + 1e-9)
        printf "%-16s %7.1f +- %5.1f %8.1f s\n", m, r[m] / n[m], deviation, s[m] / n[m]
    } }' "$WORK/table" | sort

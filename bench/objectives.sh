#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# objectives.sh: which objective distils best at equal steps? Trains a byte-level teacher on the text of this tree, then a student with each
# objective from the same weights on the same tokens, for several seeds. Measured on held-out text: cross-entropy, KL(teacher || student)
# (forward), KL(student || teacher) (reverse), acceptance rate; on texts that the student writes at temperature 1: how improbable the teacher
# finds them (written) and KL(student || teacher) (free). Ends with means over the seeds, and with how those of AGAINST differ from each.
# Results are kept in WORK/results.tsv: called again, the script continues where it ended. After LIMIT_S seconds no run begins.
#   OBJECTIVES='forward=--beta 0;reverse=--beta 1;...'   NAME=options of nojit distill, separated by semicolons
#   AGAINST='forward' those that are compared with all others, seed by seed      SEEDS='1 2 3'
#   TEACHER='--hidden-size 512 ...' STUDENT='...'   shapes, as for nojit init    START=N   steps of forward KL that come first (0)
#   TEACHER_STEPS=1000 STEPS=400     of BATCH=32 sequences of SEQ=512 bytes      TEACHER_RATE=1e-3 RATE=1e-3
#   OPTIONS='--kd-ratio 1 ...'       of nojit distill, for all objectives; on its own answers: '--on-policy 0.5 --max-new 64 --prompts WORK/learn.jsonl'
#   PROMPTS=256 WRITTEN=128          texts that are measured, and their bytes
#   FOLDERS='docs kernels ...'       where the text comes from                   WORK=build/objectives   DEVICE=cuda   LIMIT_S=480
set -eu
: "${BUILD:=build}" "${WORK:=$BUILD/objectives}" "${DEVICE:=cuda}" "${SEEDS:=1 2 3}" "${LIMIT_S:=480}" "${AGAINST:=forward}" "${OPTIONS:=}"
: "${OBJECTIVES:=forward=--beta 0;reverse=--beta 1;jsd=--beta 0.5;tvd=--objective tvd}"
: "${TEACHER=--hidden-size 512 --intermediate-size 1536 --num-layers 8 --heads 8 --kv-heads 4}"
: "${STUDENT=--hidden-size 256 --intermediate-size 768 --num-layers 4 --heads 4 --kv-heads 2}" "${START:=0}"
: "${TEACHER_STEPS:=1000}" "${STEPS:=400}" "${BATCH:=32}" "${SEQ:=512}" "${TEACHER_RATE:=1e-3}" "${RATE:=1e-3}" "${PROMPTS:=256}" "${WRITTEN:=128}"
: "${FOLDERS:=base bench contracts docs gen kernels runtime scripts tests tools trainer}"
nojit=$BUILD/nojit
. bench/lib.sh
give_help "$@"
needs_device
mkdir -p "$WORK"
results=$WORK/results.tsv
touch "$results"
sequences=(--batch-size "$BATCH" --seq-len "$SEQ" --gemm-table "$WORK/gemm.txt" --device "$DEVICE")
left_out=0

quietly() { "$@" >"$WORK/log" 2>&1 || { tail -n 5 "$WORK/log" >&2; exit 1; }; }
# train FOLDER COMMAND...
train() {
    rm -rf "${WORK:?}/run"
    quietly "$nojit" "${@:2}" --data "$WORK/train.bin" --out "$WORK/run" "${sequences[@]}" --lr-schedule cosine --warmup-ratio 0.05 \
        --weight-decay 0.1 --log-every 100
    rm -rf "$1"
    mv "$WORK/run" "$1"
}
start() { # PRESET SHAPE SEED: random weights, in WORK/start
    rm -rf "${WORK:?}/start"
    # shellcheck disable=SC2086 # options
    quietly "$nojit" init --preset "$1" $2 --seed "$3" --out "$WORK/start"
}
# A file in ten is held out, by its name. Prompts are beginnings of lines.
make_text() {
    local path side sum n=0
    rm -rf "$WORK"/{train,held-out}{,.bin} "$WORK/prompts.jsonl"
    mkdir "$WORK/train" "$WORK/held-out"
    # shellcheck disable=SC2086 # folders
    find $FOLDERS -type f \( -name '*.md' -o -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.comp' -o -name '*.glsl' -o -name '*.sh' \
        -o -name '*.py' -o -name '*.yaml' \) | sort >"$WORK/files"
    while read -r path; do
        n=$((n + 1))
        side=train
        sum=$(cksum <<<"$path")
        if [ $((${sum%% *} % 10)) = 0 ]; then side='held-out'; fi
        cp "$path" "$WORK/$side/$n.txt"
    done <"$WORK/files"
    for side in train held-out; do
        "$nojit" tokenize --model "$WORK/teacher-start" --data "$WORK/$side" --out "$WORK/$side.bin" 2>&1 | tail -n 1
    done
    beginnings held-out "$PROMPTS" >"$WORK/prompts.jsonl"
    beginnings train 4096 >"$WORK/learn.jsonl"
}
beginnings() { # SIDE COUNT: of lines, as prompts
    cat "$WORK/$1"/*.txt | LC_ALL=C grep -E '^[]a-zA-Z0-9 .,:;#/*()={}<>&|!?_+$[-]{48,}$' | awk -v count="$2" '
        { line[NR] = substr($0, 1, 32) }
        END { for (i = 1; i <= count && NR > 0; i++) printf "{\"prompt\": \"%s\"}\n", line[int((i - 1) * NR / count) + 1] }'
}
# number NAME TEXT: the value of a field of JSON
number() { sed -nE "s/.*\"$1\": ([-0-9.e+]+).*/\1/p" <<<"$2"; }
evaluate() { "$nojit" eval "$@" --json "${sequences[@]}" 2>>"$WORK/log"; }
# measurements STUDENT: cross-entropy, forward and reverse divergence, acceptance; the teacher's cross-entropy and the divergence on its texts
measurements() {
    local held back own
    held=$(evaluate --model "$1" --teacher "$WORK/teacher" --data "$WORK/held-out.bin" --acceptance)
    back=$(evaluate --model "$WORK/teacher" --teacher "$1" --data "$WORK/held-out.bin")
    "$nojit" generate --model "$1" --prompts "$WORK/prompts.jsonl" --temperature 1 --max-tokens "$WRITTEN" --ignore-eos --device "$DEVICE" \
        2>>"$WORK/log" | sed -E 's/.*"text": ("([^"\\]|\\.)*").*/"completion": \1}/' |
        paste -d ' ' <(sed 's/}$/,/' "$WORK/prompts.jsonl") - >"$WORK/own.jsonl"
    own=$(evaluate --model "$WORK/teacher" --teacher "$1" --data "$WORK/own.jsonl")
    echo "$(number ce_loss "$held") $(number kd_loss "$held") $(number kd_loss "$back") $(number acceptance "$held")" \
        "$(number ce_loss "$own") $(number kd_loss "$own")"
}
# measure NAME OPTIONS SEED: a row of results.tsv, unless there is one
measure() {
    local row began=$SECONDS
    if grep -q "^$1	$3	" "$results"; then return; fi
    if [ "$SECONDS" -ge "$LIMIT_S" ]; then
        left_out=$((left_out + 1))
        return
    fi
    # shellcheck disable=SC2086 # options
    train "$WORK/student" distill --teacher "$WORK/teacher" --student "$WORK/start-$3" --steps "$STEPS" --seed "$3" --lr "$RATE" $OPTIONS $2
    row=$(measurements "$WORK/student")
    printf '%s\t%s\t%s\n' "$1" "$3" "${row// /	}" >>"$results"
    stage "$1 seed $3: $row ($((SECONDS - began)) s)"
}

if ! [ -e "$WORK/held-out.bin" ]; then
    start nojit-demo-teacher "$TEACHER" 1
    rm -rf "$WORK/teacher-start" && mv "$WORK/start" "$WORK/teacher-start"
    make_text
fi
if ! [ -d "$WORK/teacher" ]; then
    train "$WORK/teacher" train --student "$WORK/teacher-start" --steps "$TEACHER_STEPS" --lr "$TEACHER_RATE"
fi
measured=$(evaluate --model "$WORK/teacher" --teacher "$WORK/teacher" --data "$WORK/held-out.bin")
stage "teacher: held-out cross-entropy $(number ce_loss "$measured"), entropy $(number teacher_entropy "$measured") nats/byte"
echo "columns: cross-entropy, forward, reverse, acceptance, written, free"
IFS=';' read -ra rows <<<"$OBJECTIVES"
for seed in $SEEDS; do
    if ! [ -d "$WORK/start-$seed" ]; then
        start nojit-demo-student "$STUDENT" "$seed"
        if [ "$START" != 0 ]; then
            train "$WORK/start-$seed" distill --teacher "$WORK/teacher" --student "$WORK/start" --steps "$START" --seed "$((seed + 100))" --lr "$RATE"
        else
            mv "$WORK/start" "$WORK/start-$seed"
        fi
    fi
    for row in "${rows[@]}"; do measure "${row%%=*}" "${row#*=}" "$seed"; done
done

printf '\n%-12s %5s %18s %18s %18s %18s %18s %18s\n' objective seeds cross-entropy forward reverse acceptance written free
awk -F'\t' -v against="$AGAINST" '
    function deviation(sum, square, n) { return n > 1 && square - sum * sum / n > 0 ? sqrt((square - sum * sum / n) / (n - 1)) : 0 }
    {
        if (!($1 in n)) name[++names] = $1
        n[$1]++
        if (!($2 in have)) { have[$2]; seed[++seeds] = $2 }
        for (k = 3; k <= 8; k++) { x[$1, $2, k] = $k; sum[$1, k] += $k; square[$1, k] += $k * $k }
    }
    END {
        for (i = 1; i <= names; i++) {
            o = name[i]
            printf "%-12s %5d", o, n[o]
            for (k = 3; k <= 8; k++) printf " %10.4f +- %.4f", sum[o, k] / n[o], deviation(sum[o, k], square[o, k], n[o])
            print ""
        }
        wanted = split(against, candidates, " ")
        for (c = 1; c <= wanted; c++) {
            printf "\n%s less each other, seed by seed: mean difference, its deviation, seeds in which it is lower\n", candidates[c]
            for (i = 1; i <= names; i++) {
                o = name[i]
                if (o == candidates[c]) continue
                printf "%-12s      ", o
                for (k = 3; k <= 8; k++) {
                    both = total = squares = lower = 0
                    for (j = 1; j <= seeds; j++)
                        if (((o, seed[j], k) in x) && ((candidates[c], seed[j], k) in x)) {
                            d = x[candidates[c], seed[j], k] - x[o, seed[j], k]
                            both++; total += d; squares += d * d; lower += d < 0
                        }
                    if (both > 0) printf "  %+.4f +- %.4f (%d)", total / both, deviation(total, squares, both), lower
                }
                print ""
            }
        }
    }' "$results"
if [ "$left_out" != 0 ]; then echo "ended after LIMIT_S=$LIMIT_S s: $left_out runs were left out; call it again to continue"; fi
stage "results: $results"

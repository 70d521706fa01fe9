#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# defaults.sh: which --temperature, --kd-ratio and --beta distil best? Trains teachers on text of this machine, then students with many
# settings, each on the same tokens for the same number of steps, and compares held-out loss and divergence from the teacher.
#   round 1   every temperature with every ratio, forward KL, the first learning rate of RATES
#   round 2   the KEEP best over all pairs, and those of ALWAYS: the other learning rates
#   round 3   the best: the other divergences (BETAS), every learning rate
#   round 4   the KEEP best now, and those of ALWAYS, at the learning rate that was best for each: the other seeds
# Results are kept in WORK/results.tsv: called again, the script goes on where it was ended. After LIMIT_S seconds no run begins.
# Needs a GPU, and Python with `tokenizers` where WORK holds no train.bin and held-out.bin; ends with tables, best first.
#   PAIRS='small-teacher:small-student teacher:student'   TEACHER:STUDENT, shapes of bench/quality_text.py or presets; a student
#                               0,2,4 is those layers of its teacher (LAYER_RATES='8e-4 4e-4 16e-4' for them)
#   RATES='2e-3 1e-3 4e-3'   TEMPERATURES='1 1.5 2 4'   RATIOS='0.3 0.5 0.8 1'   BETAS='0.5 1'   SEEDS='1 2 3'   KEEP=3
#   ALWAYS='2,0.5,0 1,0.8,0 1,0,0'   temperature, ratio, beta; a ratio of 0 is cross-entropy alone
#   TEACHER_STEPS=2500 STEPS=400     of BATCH=16 sequences of SEQ=512 tokens       TEACHER_RATE=1e-3
#   FOLDERS='/usr/share/doc ...'     MEGABYTES=60 VOCABULARY=16384   of text       WORK=build/defaults   LIMIT_S=480
set -eu
: "${BUILD:=build}" "${WORK:=$BUILD/defaults}" "${PYTHON:=python3}" "${DEVICE:=cuda}" "${LIMIT_S:=480}"
: "${FOLDERS:=/usr/share/doc /usr/share/common-licenses /usr/lib/python3 /usr/include}" "${MEGABYTES:=60}" "${VOCABULARY:=16384}"
: "${PAIRS:=small-teacher:small-student teacher:student}" "${ALWAYS:=2,0.5,0 1,0.8,0 1,0,0}" "${KEEP:=3}" "${SEEDS:=1 2 3}"
: "${RATES:=2e-3 1e-3 4e-3}" "${LAYER_RATES:=8e-4 4e-4 16e-4}" "${TEMPERATURES:=1 1.5 2 4}" "${RATIOS:=0.3 0.5 0.8 1}" "${BETAS=0.5 1}"
: "${TEACHER_STEPS:=2500}" "${TEACHER_RATE:=1e-3}" "${STEPS:=400}" "${BATCH:=16}" "${SEQ:=512}"
nojit=$BUILD/nojit
. bench/lib.sh
give_help "$@"
if ! [ -e "$WORK/held-out.bin" ]; then needs_tokenizers; fi
needs_device
mkdir -p "$WORK"
results=$WORK/results.tsv
touch "$results"
sequences=(--batch-size "$BATCH" --seq-len "$SEQ" --gemm-table "$WORK/gemm.txt")
left_out=0

# quietly COMMAND...: its output where it fails
quietly() { "$@" >"$WORK/log" 2>&1 || { tail -n 5 "$WORK/log" >&2; exit 1; }; }
# train FOLDER COMMAND...
train() {
    rm -rf "${WORK:?}/run"
    quietly "$nojit" "${@:2}" --data "$WORK/train.bin" --out "$WORK/run" --device "$DEVICE" "${sequences[@]}" \
        --lr-schedule cosine --warmup-ratio 0.05 --weight-decay 0.1 --log-every 100
    rm -rf "$1"
    mv "$WORK/run" "$1"
}
# start SHAPE SEED: random weights, in WORK/start
start() {
    local shape=(--preset "$1")
    if [ -d "$WORK/shape-$1" ]; then shape=(--like "$WORK/shape-$1"); fi
    rm -rf "${WORK:?}/start"
    quietly "$nojit" init "${shape[@]}" --seed "$2" --out "$WORK/start"
}
make_teacher() { # SHAPE
    if [ -d "$WORK/$1" ]; then return; fi
    start "$1" 1
    train "$WORK/$1" train --student "$WORK/start" --steps "$TEACHER_STEPS" --lr "$TEACHER_RATE"
    stage "teacher $1: held-out loss $(held_out "$WORK/$1" "$WORK/$1" "${sequences[@]}" | cut -d' ' -f1)"
}

start_student() { # PAIR SEED
    if ! [[ ${1#*:} =~ ^[0-9,]+$ ]]; then
        start "${1#*:}" "$2"
        return
    fi
    rm -rf "${WORK:?}/start"
    quietly "$nojit" init --like "$WORK/${1%%:*}" --layers "${1#*:}" --out "$WORK/start"
}

# measure PAIR TEMPERATURE,RATIO,BETA RATE SEED: a row of results.tsv, unless there is one
measure() {
    local temperature ratio beta row began=$SECONDS teacher=$WORK/${1%%:*}
    IFS=, read -r temperature ratio beta <<<"$2"
    if grep -q "^$1	$2	$3	$4	" "$results"; then return; fi
    if [ "$SECONDS" -ge "$LIMIT_S" ]; then
        left_out=$((left_out + 1))
        return
    fi
    start_student "$1" "$4"
    train "$WORK/student" distill --teacher "$teacher" --student "$WORK/start" --steps "$STEPS" --seed "$4" --lr "$3" \
        --temperature "$temperature" --kd-ratio "$ratio" --beta "$beta"
    row=$(held_out "$WORK/student" "$teacher" "${sequences[@]}")
    printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "${row// /	}" >>"$results"
    stage "$1 T,ratio,beta $2 rate $3 seed $4: loss, KL, agreement $row ($((SECONDS - began)) s)"
}
# A row for each pair and setting: mean loss, setting, rate, seeds, deviation, divergence, agreement; at the rate that was
# best with the first seed. Then as pair "all" how far each setting is on average from the best of each pair.
ranking() {
    awk -F'\t' -v OFS='\t' -v pairs="$PAIRS" -v first="${SEEDS%% *}" '
        BEGIN { wanted = split(pairs, name, " "); for (i in name) pair[name[i]] }
        $1 in pair {
            k = $1 OFS $2
            if ($4 == first && (!(k in best) || $5 < best[k])) { best[k] = $5; rate[k] = $3 }
            row[NR] = $0
        }
        END {
            for (i in row) {
                split(row[i], f, "\t")
                k = f[1] OFS f[2]
                if (f[3] != rate[k]) continue
                n[k]++; loss[k] += f[5]; square[k] += f[5] * f[5]; kl[k] += f[6]; agree[k] += f[7]
            }
            for (k in n) {
                mean = loss[k] / n[k]
                split(k, f, OFS)
                if (!(f[1] in low) || mean < low[f[1]]) low[f[1]] = mean
                if (!(f[1] in near) || kl[k] / n[k] < near[f[1]]) near[f[1]] = kl[k] / n[k]
            }
            for (k in n) {
                split(k, f, OFS)
                mean = loss[k] / n[k]
                variance = n[k] > 1 ? (square[k] - n[k] * mean * mean) / (n[k] - 1) : 0
                print f[1], mean, f[2], rate[k], n[k], sqrt(variance > 0 ? variance : 0), kl[k] / n[k], agree[k] / n[k]
                count[f[2]]++; seeds[f[2]] += n[k]
                behind[f[2]] += (mean - low[f[1]]) / wanted; farther[f[2]] += (kl[k] / n[k] - near[f[1]]) / wanted
            }
            for (s in count) if (count[s] == wanted) print "all", behind[s], s, "-", seeds[s], "-", farther[s], "-"
        }' "$results" | sort -t '	' -k1,1 -k2,2g
}
rates_of() { if [[ ${1#*:} =~ ^[0-9,]+$ ]]; then echo "$LAYER_RATES"; else echo "$RATES"; fi; } # PAIR
best() { ranking | awk -F'\t' -v keep="$1" '$1 == "all" && n++ < keep { print $3 }'; } # HOW-MANY
rate_of() { ranking | awk -F'\t' -v pair="$1" -v setting="$2" '$1 == pair && $3 == setting { print $4 }'; } # PAIR SETTING
with_always() { { best "$KEEP" && tr ' ' '\n' <<<"$ALWAYS"; } | awk '!seen[$0]++'; }

if ! [ -e "$WORK/held-out.bin" ]; then
    rm -rf "$WORK/train" "$WORK/train.bin" "$WORK/held-out"
    make_text
fi
for pair in $PAIRS; do make_teacher "${pair%%:*}"; done

first_seed=${SEEDS%% *}
# Every pair with every of its rates, or with its first alone.
at_rates() { # SETTING [first]
    local pair rate
    for pair in $PAIRS; do
        for rate in $(rates_of "$pair"); do
            measure "$pair" "$1" "$rate" "$first_seed"
            if [ "${2-}" = first ]; then break; fi
        done
    done
}
stage "temperatures and ratios"
for t in $TEMPERATURES; do
    for r in $RATIOS; do at_rates "$t,$r,0" first; done
done
stage "learning rates"
for setting in $(with_always); do at_rates "$setting"; done
stage "divergences"
winner=$(best 1)
for beta in $BETAS; do at_rates "${winner%,*},$beta"; done
stage "seeds"
finalists=$(with_always)
for seed in $SEEDS; do
    for setting in $finalists; do
        for pair in $PAIRS; do measure "$pair" "$setting" "$(rate_of "$pair" "$setting")" "$seed"; done
    done
done

for pair in $PAIRS; do
    printf '\n%s\n%-12s %8s %6s %9s %10s %9s %7s\n' "$pair" "T,ratio,beta" rate seeds loss deviation KL agree
    ranking | awk -F'\t' -v pair="$pair" '$1 == pair { printf "%-12s %8s %6d %9.4f %10.4f %9.4f %7.4f\n", $3, $4, $5, $2, $6, $7, $8 }'
done
printf '\nall pairs: mean distance from the best of each\n%-12s %6s %9s %9s\n' "T,ratio,beta" runs loss KL
ranking | awk -F'\t' '$1 == "all" { printf "%-12s %6d %9.4f %9.4f\n", $3, $5, $2, $7 }'
if [ "$left_out" != 0 ]; then echo "ended after LIMIT_S=$LIMIT_S s: $left_out runs were left out; call it again to continue"; fi
stage "results: $results"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# option_effects.sh: every option of every command does what it says. A row for each: the commands that have it, its
# name, and a check that runs with another value and looks at what changes; an option without a row is a failure. The rows
# are in option_effect_rows.sh, here is what they are made of.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive

for seed in 1 2; do "$nojit" init --preset nojit-tiny --seed $seed --dtype float32 --out "$d/model$seed" >/dev/null; done
"$nojit" init --preset nojit-tiny-qwen3 --dtype float32 --out "$d/larger" >/dev/null
head -c 2000 /usr/share/common-licenses/GPL-3 >"$d/text.txt"
head -c 900 /usr/share/common-licenses/LGPL-3 >"$d/held.txt"
small=(--batch-size 2 --seq-len 32 --device cpu)

# ---- what checks are made of; a check fails by its status, and says in $why what it saw
why=
is() { # GOT WANTED
    why="got '${1:0:200}', expected '${2:0:200}'"
    [ "$1" = "$2" ]
}
differs() { # A B
    why="'${1:0:200}' did not change"
    [ -n "$1" ] && [ -n "$2" ] && [ "$1" != "$2" ]
}
compare() { # AWK-CONDITION A B: of numbers a and b
    why="a = $2, b = $3: not $1"
    awk -v a="$2" -v b="$3" "BEGIN { exit !(a != \"\" && b != \"\" && ($1)) }"
}
near() { compare '(a - b) ^ 2 <= (1e-5 * b) ^ 2 + 1e-16' "$1" "$2"; } # float32, printed with nine digits
field() { grep -oE "\"$1\": [^,}]+" | cut -d' ' -f2-; }
column() { field "$1" <"${2:-$d/run}/metrics.jsonl"; }
first() { column "$@" | head -n 1; }

pair() { if [ "$cmd" = distill ]; then echo "--student $d/model1 --teacher $d/model2"; else echo "--student $d/model1"; fi; }
# The command of the row with its usual arguments, then those of the check (the last one counts): $d/run, $d/log, $d/err.
data=("$d/text.txt")
go() {
    rm -rf "$d/run"
    "$nojit" "$cmd" $(pair) --data "${data[@]}" "${small[@]}" --steps 4 --lr 1e-2 --out "$d/run" "$@" >"$d/log" 2>"$d/err" ||
        { why="exit status $?: $(head -c 300 "$d/err")" && return 1; }
}
fails() { # STATUS REGEX ARGUMENTS...: as go, but refused
    local status=0 want=$1 pattern=$2
    shift 2
    rm -rf "$d/run"
    "$nojit" "$cmd" $(pair) --data "${data[@]}" "${small[@]}" --steps 4 --out "$d/run" "$@" >"$d/log" 2>"$d/err" || status=$?
    is $status "$want" && why="no '$pattern' in $(cat "$d/err")" && grep -qE -- "$pattern" "$d/err"
}
eval_json() { "$nojit" eval --model "$d/model1" --data "$d/held.txt" "${small[@]}" --json "$@" 2>"$d/err"; }
plan_json() { "$nojit" plan --student "$d/model1" --teacher "$d/model2" "${small[@]}" --memory-budget 9 --json "$@" 2>"$d/err"; }
region() { # NAME ARGUMENTS...: its bytes in the plan
    local name=$1
    shift
    plan_json "$@" | field "$name"
}
write_text() { "$nojit" generate --model "$d/model1" --device cpu --max-tokens 20 --prompt a "$@" 2>"$d/err"; }
init() { rm -rf "$d/new" && "$nojit" init --preset nojit-tiny --out "$d/new" "$@" >/dev/null 2>"$d/err"; }
weights_of() { cksum <"$1/model.safetensors"; }

declare -A row
effect() { # COMMANDS OPTION CHECK [ARGUMENT...]
    local commands=$1 option=$2
    shift 2
    for cmd in $commands; do
        row["$cmd $option"]=1
        why="$*"
        if "$@"; then ok "$cmd --$option has its effect"; else not_ok "$cmd --$option has its effect" "$why"; fi
    done
}
# The effect is looked at in another script, which must name the option.
elsewhere() {
    why="$1 no longer names --$option; check its effect here"
    grep -qE -- "--$option([^a-z-]|\$)" "$(find tests -name "$1")"
}
# For settings that decide numbers and no memory: plan takes them so that a run's options can be planned as they are.
no_memory() { # VALUE ARGUMENTS...
    is "$(plan_json "${@:2}" "--$option" "$1")" "$(plan_json "${@:2}")"
}

# ---- one step of AdamW, computed from the state that a step with a rate of 0 leaves
arrays() { # FOLDER: master weight, first and second moment, a line each element
    local f=$1/state.bin n at
    n=$(od -An -td8 -j24 -N8 "$f" | tr -d ' ')
    at=$(($(stat -c %s "$f") - 12 * n))
    paste -d' ' <(od -An -v -tf4 -w4 -j$at -N$((4 * n)) "$f") <(od -An -v -tf4 -w4 -j$((at + 4 * n)) -N$((4 * n)) "$f") \
        <(od -An -v -tf4 -w4 -j$((at + 8 * n)) -N$((4 * n)) "$f")
}
adamw() { # VALUE of the option of the row
    local one=(--steps 1 --save-every 1 --lr-schedule constant) zero=$d/zero-$cmd
    if [ ! -e "$zero" ]; then
        go "${one[@]}" --lr 0 --weight-decay 0 --max-grad-norm 0 || return 1
        arrays "$d/run/checkpoint-1" >"$zero"
        first grad_norm >"$zero.norm"
    fi
    go "${one[@]}" "--$option" "$1" || return 1
    arrays "$d/run/checkpoint-1" >"$d/one"
    why=$(paste -d' ' "$zero" "$d/one" | awk -v option="$option" -v value="$1" -v norm="$(cat "$zero.norm")" '
        function off(a, b, least) { return (a - b) ^ 2 > (2e-5 * b) ^ 2 + least ^ 2 }
        BEGIN {
            o["lr"] = 1e-2; o["beta1"] = 0.9; o["beta2"] = 0.95; o["eps"] = 1e-8; o["weight-decay"] = 0.01; o["max-grad-norm"] = 1
            o[option] = value
            c = o["max-grad-norm"]
            clip = c > 0 && norm > c ? c / norm : 1
        }
        {
            g = $2 / (1 - 0.9) * clip
            if (off($5, (1 - o["beta1"]) * g, 1e-12)) print "first moment " NR ": " $5 ", expected " (1 - o["beta1"]) * g
            if (off($6, (1 - o["beta2"]) * g * g, 1e-18)) print "second moment " NR ": " $6 ", expected " (1 - o["beta2"]) * g * g
            w = $1 - o["lr"] * g / (sqrt(g * g) + o["eps"])
            kept = !off($4, w, 1e-6)
            decayed = !off($4, w - o["lr"] * o["weight-decay"] * $1, 1e-6)
            if (!kept && !decayed) print "weight " NR ": " $4 ", expected " w " less the decay"
            if (decayed && !kept && norms) print "weight " NR " decays, after one that does not"
            matrices += decayed && !kept
            norms += kept && !decayed
        }
        END { if (NR < 1e5 || matrices < NR / 2 || !norms) print NR " weights, " matrices " decay, " norms " do not" }' | head -n 1)
    [ -z "$why" ]
}

# The rates of ten steps by their formula.
rates() { # SCHEDULE WARM-UP LAST/PEAK ARGUMENTS...
    local schedule=$1 warm=$2 least=$3
    shift 3
    go --steps 10 "$@" && why=$(column lr | awk -v s="$schedule" -v warm="$warm" -v least="$least" -v peak="${peak:-1e-2}" '
        {
            begins = s == "wsd" && 9 > warm ? 9 : warm
            x = NR > begins ? (NR - begins) / (10 - begins) : 0
            left = s == "cosine" ? (1 + cos(x * atan2(0, -1))) / 2 : s == "linear" ? 1 - x : s == "wsd" ? 1 - sqrt(x) : 1
            want = NR < warm ? peak * NR / warm : peak * (least + (1 - least) * left)
            if (($1 - want) ^ 2 > (1e-5 * peak) ^ 2) print "step " NR ": rate " $1 ", expected " want
        }
        END { if (NR != 10) print NR " rates" }' | head -n 1) && [ -z "$why" ]
}

# loss = (1 - R) CE + R T^2 D in every row.
loss_of_parts() { # R T
    why=$(paste -d' ' <(column loss) <(column class_loss) <(column kd_loss) | awk -v r="$1" -v t="$2" '
        { want = (1 - r) * $2 + r * t * t * $3 }
        ($1 - want) ^ 2 > (1e-6 * want) ^ 2 { print "loss " $1 ", its parts give " want }
        END { if (NR != 4) print NR " rows" }') && [ -z "$why" ]
}

. tests/lib/option_effect_rows.sh

# ---- every option of every command has a row, and every row an option
for cmd in $("$nojit" --help | awk '/^  [a-z]/ { print $1 }'); do
    for option in $("$nojit" "$cmd" --help | sed -nE 's/^  --([a-z0-9-]+).*/\1/p'); do
        if [ -n "${row["$cmd $option"]:-}" ]; then
            unset "row[$cmd $option]"
        else
            not_ok "$cmd --$option has a row" "no test looks at its effect: add to tests/lib/option_effect_rows.sh a line
    effect $cmd $option CHECK...    where CHECK runs with another value and compares what it changes
    (or \`elsewhere FILE\` if tests/*/FILE does)"
        fi
    done
done
if [ ${#row[@]} = 0 ]; then ok "every row has an option"; else not_ok "every row has an option" "there is no: ${!row[*]}"; fi
finish

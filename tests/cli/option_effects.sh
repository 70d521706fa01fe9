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

# Numbers are for unit tests (test_options.c: each option sets its field; test_guards.c, test_objective.c, test_schedule.c: what follows from
# that). Here the command line changes what a run does.
trains_other() { # ARGUMENT...
    go "$@" && differs "$(weights_of "$d/run")" "$(weights_of "$d/$cmd")"
}
other_rates() { # ARGUMENT...
    go "$@" && differs "$(column lr)" "$(column lr "$d/$cmd")"
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

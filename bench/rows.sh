# SPDX-License-Identifier: Apache-2.0
#
# rows.sh: sourced by gpu.sh, ranks.sh and start.sh, which set $nojit, $DEVICE, $WORK, $STEPS, $LIMIT, $ROWS, $extra and failed=0: runs of the kinds
# that a row names, KIND:BATCHxTOKENS, with random weights and text of this machine. A kind is a pair of models, or a variant of one: VARIANT-PAIR.
: "${PAIR:=qwen2.5-1.5b qwen2.5-0.5b}" "${PAIR3:=qwen3-1.7b qwen3-0.6b}" "${PAIR7:=qwen2.5-7b qwen2.5-0.5b}" "${KEEP:=yes}"
: "${PAIR_LLAMA:=llama-3.2-3b llama-3.2-1b}" "${PAIR_MISTRAL:=mistral-7b-v0.3 mistral-0.8b}" "${PAIR_8B:=llama-3.1-8b llama-3.2-1b}"
: "${PAIR_GEMMA:=gemma-3-4b gemma-3-1b}" "${PAIR_OLMO:=olmo-2-7b olmo-2-1b}" "${PAIR_MOE:=qwen3-30b-a3b qwen3-0.6b}"
: "${PAIR_HYBRID:=qwen3.5-4b qwen3.5-0.8b}"
# NAME|teacher and student (the student alone: train)|options|the pair as TORCH is told it
pairs="distill|$PAIR||qwen2.5
train|${PAIR#* }||qwen2.5-ce
qwen3|$PAIR3||qwen3
big|$PAIR7||qwen2.5-7b
llama|$PAIR_LLAMA||llama
mistral|$PAIR_MISTRAL||mistral
llama8b|$PAIR_8B|--recompute block|llama-8b
gemma3|$PAIR_GEMMA||gemma3
olmo2|$PAIR_OLMO||olmo2
moe|$PAIR_MOE||qwen3-moe
hybrid|$PAIR_HYBRID||qwen3.5"
# NAME|options. PyTorch's side has none of them, so a variant is held against the pair's.
variants='fp8|--teacher-dtype fp8
fp8s|--student-dtype fp8
fp8ts|--teacher-dtype fp8 --student-dtype fp8
q4|--teacher-dtype q4_k'
# Shapes without a preset: NAME|options of nojit init. The student of Mistral's shape has 0.79 billion weights.
shapes='mistral-0.8b|--preset mistral-7b-v0.3 --hidden-size 2048 --intermediate-size 7168 --num-layers 12 --heads 16 --kv-heads 4'

names() { cut -d'|' -f1 <<<"$1" | paste -sd"$2"; } # TABLE SEPARATOR
column() { awk -F'|' -v name="$2" -v n="$3" '$1 == name { print $n }' <<<"$1"; } # TABLE NAME NUMBER
pair_of() { # KIND: `fp8` alone is that of distill
    local name=${1#*-}
    if [ "$name" = "$1" ] && [ -n "$(column "$variants" "$1" 1)" ]; then name=distill; fi
    echo "$name"
}
variant_of() { if [ "$(pair_of "$1")" != "$1" ]; then echo "${1%%-*}"; fi; } # KIND
pair_names="$(names "$pairs" '|')" variant_names="$(names "$variants" '|')"
kinds="($variant_names)|(($variant_names)-)?($pair_names)"
known_kinds="${pair_names//|/, }; each also as ${variant_names//|/- or }-, train as fp8s- alone, and ${variant_names//|/, } of distill"

# Before anything is made: what a script is told, and whether this device can do it.
# accepts WORD...: nojit takes these words and the arguments, with models of a moment.
accepts() {
    "$nojit" "$@" --data "$try/text.txt" --device "$DEVICE" --out "$try/run" ${extra[@]+"${extra[@]}"} --steps 1 --batch-size 1 \
        --seq-len 16 --dry-run >/dev/null 2>"$try/log" || refuse "$(tail -n 1 "$try/log")"
}
before() {
    local r try presets trained='' distilled=''
    try=$(mktemp -d)
    cp README.md "$try/text.txt"
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf '$try'" EXIT
    for r in STEPS LIMIT; do [[ ${!r} =~ ^[1-9][0-9]*$ ]] || refuse "$r=${!r}: give a number from 1 on"; done
    for r in $ROWS; do
        [[ $r =~ ^($kinds):[1-9][0-9]*x[1-9][0-9]*$ && ($r != *-train:* || $r = fp8s-train:*) ]] ||
            refuse "ROWS: $r is not KIND:BATCHxTOKENS with KIND one of $known_kinds"
        case $r in *train:*) trained=yes ;; *) distilled=yes ;; esac
    done
    [ -x "$nojit" ] || refuse "BUILD=$BUILD holds no nojit; \`make\` builds it"
    presets=$("$nojit" init --preset list)
    for r in $(cut -d'|' -f2 <<<"$pairs"); do
        [ -n "$(column "$shapes" "$r" 1)" ] || grep -q "^$r " <<<"$presets" ||
            refuse "PAIR, PAIR3, ...: there is no preset $r; see $nojit init --preset list"
    done
    needs_device
    for r in 1 2; do "$nojit" init --preset nojit-tiny --seed $r --out "$try/$r" >/dev/null || exit 2; done
    if [ -n "$trained" ]; then accepts train --student "$try/1"; fi
    if [ -n "$distilled" ]; then accepts distill --teacher "$try/2" --student "$try/1"; fi
    rm -rf "$try"
    trap - EXIT
}

# limited SECONDS LOG COMMAND...: a command that takes longer is ended, and LOG says so.
limited() {
    local seconds=$1 log=$2 status=0
    shift 2
    timeout -k 10 "$seconds" "$@" & # with what it starts
    # shellcheck disable=SC2064 # the process of now
    trap "kill $!; wait $!; exit 130" INT
    wait $! || status=$?
    trap 'exit 130' INT
    if [ $status = 124 ]; then echo "ended after $seconds s; LIMIT=$LIMIT, which may be raised" >>"$log"; fi
    return $status
}
note() { printf '%4d s  %s\n' "$SECONDS" "$*"; }
fails() { # WHAT LOG
    failed=$((failed + 1))
    note "FAILED: $1: $(grep -v '^ *$' "$2" 2>/dev/null | tail -n 2 | cut -c1-200 | tr '\n' ' ')"
}
text() { sed -nE "s/.*\"$1\": \"([^\"]*)\".*/\1/p" "$2" 2>/dev/null | head -n 1; }
number() { sed -nE "s/.*\"$1\": ([-0-9.e+]+).*/\1/p" "$2" 2>/dev/null | head -n 1; }
median_of() { sort -g | awk '{ v[NR] = $1 } END { if (NR) printf "%.10g", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }
# median FIELD FROM FILE: of the steps after the first FROM
median() { sed -nE "s/.*\"$1\": ([0-9.e+-]+).*/\1/p" "$3" 2>/dev/null | tail -n +$(($2 + 1)) | median_of; }
quotient() { awk -v a="${1:-0}" -v b="${2:-0}" -v d="${3:-2}" 'BEGIN { if (a > 0 && b > 0) printf "%.*f", d, a / b }'; }

init() { # SHAPE SEED
    local shape
    shape=$(column "$shapes" "$1" 2)
    # shellcheck disable=SC2086 # words
    [ -s "$WORK/$1-$2/config.json" ] || limited "$LIMIT" "$WORK/logs/init-$1" "$nojit" init ${shape:---preset $1} --seed "$2" \
        --out "$WORK/$1-$2" >"$WORK/logs/init-$1" 2>&1 || fails "random weights of $1" "$WORK/logs/init-$1"
}
# The folders of a kind: the teacher's, if there is one, and the student's.
models_of() { # KIND
    local pair
    pair=$(column "$pairs" "$(pair_of "$1")" 2)
    if [ "${pair% *}" != "$pair" ]; then echo "${pair% *}-2"; fi
    echo "${pair#* }-1"
}
# Makes the models of a row. With KEEP=no those that no later row needs are removed after it, as they may not all fit a disk.
make_models() { # ROW
    local m
    for m in $(models_of "${1%%:*}"); do init "${m%-*}" "${m##*-}"; done
}
all_models() { local row; for row in "$@"; do models_of "${row%%:*}"; done; } # ROW...
drop_models() {                                                    # LATER-ROW...
    local m later
    [ "$KEEP" = no ] || return 0
    later=" $(all_models "$@" | tr '\n' ' ')"
    # shellcheck disable=SC2086 # rows
    for m in $(all_models $ROWS); do
        case $later in *" $m "*) ;; *) rm -rf "${WORK:?}/$m" ;; esac
    done
}
prepare() {
    local f
    [ -n "$(ls -A "$WORK/text")" ] || for f in /usr/share/common-licenses/* /usr/share/doc/*/copyright; do
        [ -f "$f" ] && cp "$f" "$WORK/text/${f//\//_}.txt"
    done
    [ -n "$(ls -A "$WORK/text")" ] || cp README.md "$WORK/text/README.txt"
}

# command_of KIND: the words of nojit that make such a row
command_of() {
    local pair models
    pair=$(pair_of "$1")
    mapfile -t models < <(models_of "$1")
    torch_pair=$(column "$pairs" "$pair" 4)
    case ${#models[@]} in
    1) command=(train --student "$WORK/${models[0]}") ;;
    *) command=(distill --teacher "$WORK/${models[0]}" --student "$WORK/${models[1]}") ;;
    esac
    # shellcheck disable=SC2207 # words
    command+=($(column "$pairs" "$pair" 3) $(column "$variants" "$(variant_of "$1")" 2))
    command+=(--data "$WORK/text" --tokenizer bytes --device "$DEVICE" --lr 1e-4 --warmup-steps 1 --gemm-table "$WORK/gemm.txt" --out "$WORK/run" --json)
}
# run LOG STEPS BATCH SEQ: trains, and prints how many seconds after its start the first step was done.
run() {
    local started
    rm -rf "$WORK/run"
    started=$(date +%s%N)
    limited "$LIMIT" "$1" "$nojit" "${command[@]}" ${extra[@]+"${extra[@]}"} --steps "$2" --batch-size "$3" --seq-len "$4" 2>"$1" | {
        read -r _ && echo $(($(date +%s%N) - started)) | awk '{ printf "%.2f\n", $1 * 1e-9 }'
        cat >/dev/null
    }
    [ "${PIPESTATUS[0]}" = 0 ]
}

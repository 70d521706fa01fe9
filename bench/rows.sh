# SPDX-License-Identifier: Apache-2.0
#
# rows.sh: sourced by gpu.sh and ranks.sh, which set $nojit, $DEVICE, $WORK, $STEPS, $LIMIT, $ROWS, $extra and failed=0: runs of the kinds that a row
# names, KIND:BATCHxTOKENS, with random weights and text of this machine.
: "${PAIR:=qwen2.5-1.5b qwen2.5-0.5b}" "${PAIR3:=qwen3-1.7b qwen3-0.6b}" "${PAIR7:=qwen2.5-7b qwen2.5-0.5b}"
kinds='distill|fp8|q4|train|qwen3|big'

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
        [[ $r =~ ^($kinds):[1-9][0-9]*x[1-9][0-9]*$ ]] || refuse "ROWS: $r is not KIND:BATCHxTOKENS with KIND one of ${kinds//|/, }"
        case $r in train:*) trained=yes ;; *) distilled=yes ;; esac
    done
    [ -x "$nojit" ] || refuse "BUILD=$BUILD holds no nojit; \`make\` builds it"
    presets=$("$nojit" init --preset list)
    for r in $PAIR $PAIR3 $PAIR7; do
        grep -q "^$r " <<<"$presets" || refuse "PAIR, PAIR3, PAIR7: there is no preset $r; see $nojit init --preset list"
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
# median FIELD FROM FILE: of the steps after the first FROM
median() {
    sed -nE "s/.*\"$1\": ([0-9.e+-]+).*/\1/p" "$3" 2>/dev/null | tail -n +$(($2 + 1)) | sort -g |
        awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'
}
quotient() { awk -v a="${1:-0}" -v b="${2:-0}" -v d="${3:-2}" 'BEGIN { if (a > 0 && b > 0) printf "%.*f", d, a / b }'; }

init() { # PRESET SEED
    [ -s "$WORK/$1-$2/config.json" ] || limited "$LIMIT" "$WORK/logs/init-$1" "$nojit" init --preset "$1" --seed "$2" \
        --out "$WORK/$1-$2" >"$WORK/logs/init-$1" 2>&1 || fails "random weights of $1" "$WORK/logs/init-$1"
}
init_pair() {
    init "${1% *}" 2
    init "${1#* }" 1
}
prepare() {
    local f
    [ -n "$(ls -A "$WORK/text")" ] || for f in /usr/share/common-licenses/* /usr/share/doc/*/copyright; do
        [ -f "$f" ] && cp "$f" "$WORK/text/${f//\//_}.txt"
    done
    [ -n "$(ls -A "$WORK/text")" ] || cp README.md "$WORK/text/README.txt"
    init_pair "$PAIR"
    case "$ROWS" in *qwen3:*) init_pair "$PAIR3" ;; esac
    case "$ROWS" in *big:* | *shard:*) init_pair "$PAIR7" ;; esac
}

pair_command() { command=(distill --teacher "$WORK/${1% *}-2" --student "$WORK/${1#* }-1"); }
# command_of KIND: the words of nojit that make such a row
command_of() {
    case $1 in
    train) command=(train --student "$WORK/${PAIR#* }-1") torch_pair=qwen2.5-ce ;;
    qwen3) pair_command "$PAIR3" && torch_pair=qwen3 ;;
    big) pair_command "$PAIR7" && torch_pair= ;;
    *) pair_command "$PAIR" && torch_pair=qwen2.5 ;;
    esac
    case $1 in
    fp8) command+=(--teacher-dtype fp8) ;;
    q4) command+=(--teacher-dtype q4_k) ;;
    esac
    command+=(--data "$WORK/text" --device "$DEVICE" --lr 1e-4 --warmup-steps 1 --gemm-table "$WORK/gemm.txt" --out "$WORK/run" --json)
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

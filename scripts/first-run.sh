#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# first-run.sh [ARCHIVE]: tries nojit on this machine's GPU and packs what it saw into one archive, for an issue or for yourself: the machine,
# `nojit doctor`, the self-test of every kernel, three rows of the benchmark with random weights, and a small run from training to generated text. A step
# that fails is in the archive with what it said, and the others go on. Names of this host, of its user and of folders are taken out; nothing is sent.
#
#   NOJIT=FILE     the program; else that beside this script, in ../build or on PATH      DEVICE=cuda   or cpu, vulkan
#   ROWS='distill:1x512 distill:8x1024 fp8:8x1024'   KIND:BATCHxTOKENS (fp8: teacher and student in FP8), ROWS= for none
#   PAIR='qwen2.5-1.5b qwen2.5-0.5b'   presets of the rows' teacher and student           STEPS=50      of the small run
#   SMALL='nojit-demo-teacher nojit-demo-student'   presets of the small run              SHAPE=4x128   its batch and tokens
#   LIMIT=300      seconds that a step may take     TMPDIR=/tmp   where models are made, and removed
#
# Exit status: 0 all steps passed; 1 one failed; 2 usage; 4 there is no GPU that nojit can use (the archive says why); 130 interrupted.
# shellcheck disable=SC2317 # functions that are called through others
set -u
export LC_ALL=C
: "${DEVICE:=cuda}" "${ROWS=distill:1x512 distill:8x1024 fp8:8x1024}" "${PAIR:=qwen2.5-1.5b qwen2.5-0.5b}" "${STEPS:=50}" "${LIMIT:=300}"
: "${SMALL:=nojit-demo-teacher nojit-demo-student}" "${SHAPE:=4x128}" "${NEEDED_MB:=8000}"
ulimit -c 0
case " $* " in *" --help "* | *" -h "*) sed -n '4,/^# shellcheck/{/^# shellcheck/d;s/^# \{0,1\}//p}' "$0" && exit ;; esac

refuse() { # SENTENCE
    echo "first-run: $1" >&2
    exit 2
}
find_nojit() {
    local here f
    here=$(cd "$(dirname "$0")" && pwd)
    for f in "${NOJIT:-$here/nojit}" "${NOJIT:-$here/../build/nojit}" "${NOJIT:-$(command -v nojit)}"; do
        if [ -f "$f" ] && [ -x "$f" ]; then
            realpath "$f"
            return
        fi
    done
    return 1
}
nojit=$(find_nojit) || refuse "there is no nojit${NOJIT:+ at NOJIT=$NOJIT}; build it, or set NOJIT to its path"
[ $# -le 1 ] || refuse "one argument at most, the archive's name"
[[ $DEVICE =~ ^(cuda|cpu|vulkan)$ ]] || refuse "DEVICE=$DEVICE: give cuda, cpu or vulkan"
for n in STEPS LIMIT; do [[ ${!n} =~ ^[1-9][0-9]{0,6}$ ]] || refuse "$n=${!n}: give a number from 1 on"; done
[[ $SHAPE =~ ^[1-9][0-9]*x[1-9][0-9]*$ ]] || refuse "SHAPE=$SHAPE: give BATCHxTOKENS"
for n in $ROWS; do [[ $n =~ ^(distill|fp8):[1-9][0-9]*x[1-9][0-9]*$ ]] || refuse "ROWS: $n is not KIND:BATCHxTOKENS with KIND distill or fp8"; done
for n in PAIR SMALL; do [[ ${!n} =~ ^[^\ ]+\ [^\ ]+$ ]] || refuse "$n=${!n}: give two presets; nojit init --preset list names them"; done
archive=${1:-nojit-first-run-$(date -u +%Y%m%d-%H%M%S).tar.gz}
[ ! -e "$archive" ] || refuse "$archive is there already; name another"
: >"$archive.part" || refuse "$archive cannot be written"

work=$(mktemp -d) || refuse "there is no room for a folder in ${TMPDIR:-/tmp}"
pack=$work/nojit-first-run
mkdir "$pack"
export XDG_CACHE_HOME=$work/cache # all is tried and timed as at a first start, and nothing is left
trap 'rm -rf "$work" "$archive.part"' EXIT
trap 'echo "first-run: interrupted; no archive was written" >&2; exit 130' INT TERM
failed=0
done_steps=0
rows=$(wc -w <<<"$ROWS")
all=$((4 + (rows > 0 ? rows + 1 : 0)))
say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }
result() { # NAME VERDICT SECONDS WHAT
    printf '%-22s %-8s %4s s  %s\n' "$1" "$2" "$3" "$4" >>"$pack/summary.txt"
    say "$1: $2${4:+ ($4)}"
}
# step FILE TITLE COMMAND...: its output goes into FILE.txt of the archive, the last line of it to the summary.
step() {
    local file=$pack/$1.txt title=$2 began=$SECONDS status=0 verdict=passed
    shift 2
    done_steps=$((done_steps + 1))
    say "[$done_steps/$all] $title ..."
    "$@" >"$file" 2>&1 || status=$?
    if [ $status != 0 ]; then
        verdict=FAILED
        failed=$((failed + 1))
        [ $status != 124 ] || echo "ended after LIMIT=$LIMIT s" >>"$file"
    fi
    result "$title" "$verdict" $((SECONDS - began)) "$(grep -v '^ *$' "$file" | tail -n 1 | cut -c1-200)"
    echo "exit status $status, $((SECONDS - began)) s" >>"$file"
    return $status
}
limited() { timeout -k 10 "$LIMIT" "$@"; }
field() { sed -nE "s/.*\"$1\": \"?([^\",]*)\"?.*/\1/p" "$2" 2>/dev/null | tail -n 1; } # NAME FILE

# ---- steps ----
machine() {
    "$nojit" version --verbose
    printf 'sha256    %s\n' "$(sha256sum <"$nojit" | cut -d' ' -f1)"
    printf 'kernel    %s\n' "$(uname -srm)"
    printf 'system    %s, %s\n' "$(sed -n 's/^PRETTY_NAME="\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' /etc/os-release 2>/dev/null)" "$(getconf GNU_LIBC_VERSION)"
    printf 'cpu       %s, %s threads\n' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1 | grep . || uname -m)" "$(nproc)"
    printf 'memory    %s MiB\n' "$(($(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 1024))"
    if command -v nvidia-smi >/dev/null; then
        timeout -k 5 20 nvidia-smi --format=csv \
            --query-gpu=name,driver_version,compute_cap,memory.total,power.limit,clocks.max.sm,clocks.max.memory,pcie.link.gen.max,pcie.link.width.max || true
    fi
}
doctor() {
    limited "$nojit" doctor --device "$DEVICE" --json >"$pack/doctor.json" 2>/dev/null
    limited "$nojit" doctor --device "$DEVICE"
}
self_test() { limited "$nojit" doctor --device "$DEVICE" --self-test --report "$pack/self-test.json"; }
# The folders that a run left are not packed, but for what says how it went.
keep() { # RUN NAME
    local f
    for f in metrics.jsonl receipt.json; do
        if [ -f "$1/$f" ]; then cp "$1/$f" "$pack/$2-$f"; fi
    done
}
text() { # what nojit says of itself: the same on every machine
    mkdir -p "$work/text"
    "$nojit" help --man >"$work/text/man.txt"
}
models() { # NAME PRESETS: NAME-teacher and NAME-student
    limited "$nojit" init --preset "${2% *}" --seed 2 --out "$work/$1-teacher" && limited "$nojit" init --preset "${2#* }" --out "$work/$1-student"
}
small_run() {
    local first last run=$work/small-run common=(--data "$work/text" --tokenizer bytes --device "$DEVICE" --batch-size "${SHAPE%x*}" --seq-len "${SHAPE#*x}" --lr 2e-3 --warmup-steps 1)
    models small "$SMALL" &&
        limited "$nojit" train --student "$work/small-teacher" "${common[@]}" --steps "$STEPS" --out "$work/small-taught" &&
        limited "$nojit" distill --teacher "$work/small-taught" --student "$work/small-student" "${common[@]}" --steps "$STEPS" --save-every "$STEPS" --out "$run" &&
        limited "$nojit" distill --teacher "$work/small-taught" --student "$work/small-student" "${common[@]}" --steps $((STEPS + 1)) --resume auto --out "$run" &&
        limited "$nojit" generate --model "$run" --device "$DEVICE" --max-tokens 16 --seq-len 128 --prompt 'The student' || return
    keep "$work/small-taught" small-taught
    keep "$run" small-run
    first=$(field initial_loss "$work/small-taught/receipt.json") last=$(field final_loss "$work/small-taught/receipt.json")
    printf '\nloss of the teacher %s -> %s, compilations %s\n' "$first" "$last" "$(field in_steps "$run/receipt.json")"
    awk -v a="$first" -v b="$last" 'BEGIN { exit !(b > 0 && b < a) }'
}
row() { # KIND:BATCHxTOKENS
    local shape=${1#*:} run=$work/row status=0 options=()
    case $1 in fp8:*) options=(--teacher-dtype fp8 --student-dtype fp8) ;; esac
    rm -rf "$run"
    limited "$nojit" distill --teacher "$work/pair-teacher" --student "$work/pair-student" --data "$work/text" --tokenizer bytes --device "$DEVICE" \
        --lr 1e-4 --warmup-steps 1 --steps 12 --batch-size "${shape%x*}" --seq-len "${shape#*x}" ${options[@]+"${options[@]}"} --out "$run" || status=$?
    keep "$run" "row-${1/:/-}"
    [ $status != 0 ] || printf '\n%s tokens/s, median of the last 10 steps\n' \
        "$(sed -nE 's/.*"tokens_per_second": ([0-9.e+]+).*/\1/p' "$run/metrics.jsonl" | tail -n 10 | sort -g | sed -n 5p | cut -d. -f1)"
    return $status
}

# ---- nothing private ----
private_names() { # of this host and its user; those that many have tell nothing
    local f
    {
        hostname
        hostname -s
        cat /etc/hostname
        id -un
        echo "${USER:-}"
        echo "${LOGNAME:-}"
        echo "${SUDO_USER:-}"
    } 2>/dev/null | grep -vxE 'root|localhost|nojit|nvidia|ubuntu|user|' | sort -u | awk '{ print length($0) "\t" $0 }' | sort -rn | cut -f2
}
quoted() { sed 's/[][\.*^$/+?(){}|]/\\&/g' <<<"$1"; }
privacy_script() {
    local path name
    # Folders, the deepest first; then names, in any case, where no letter or digit is beside them.
    for path in "$work=WORK" "$(realpath "$work")=WORK" "$(dirname "$nojit")=NOJIT" "$PWD=FOLDER" "$(pwd -P)=FOLDER" "${HOME:-/}=HOME"; do
        case ${path%=*} in / | "") ;; *) echo "s/$(quoted "${path%=*}")/${path##*=}/g" ;; esac
    done
    echo 's,/(home|Users)/[^]/[:space:]":;,)]+,/home/USER,g'
    private_names | while IFS= read -r name; do
        echo ":$((++n))"
        printf '%s\n' "s/(^|[^[:alnum:]])$(quoted "$name")([^[:alnum:]]|\$)/\1***\2/I"
        echo "t$n"
    done
}
pack_up() {
    local f
    n=0 privacy_script >"$work/private.sed"
    for f in "$pack"/*; do sed -E -i -f "$work/private.sed" "$f" || rm -f "$f"; done # rather nothing than a name
    tar -C "$work" --owner=0 --group=0 --numeric-owner -czf "$archive.part" nojit-first-run && mv "$archive.part" "$archive"
}
finish() { # STATUS
    local size
    printf '%s\n' "$SECONDS s in all; steps that failed: $failed" >>"$pack/summary.txt"
    pack_up || {
        echo "first-run: $archive cannot be written" >&2
        exit 1
    }
    size=$(($(wc -c <"$archive") / 1024 + 1))
    say "$archive: $size KiB, to attach to an issue; look at what is in it: tar -xzOf $archive | less"
    exit "$1"
}

echo "nojit's first run here: $all steps in a few minutes, $((all * LIMIT / 60)) at the very most; made in $work and removed afterwards"
echo "$(date -u +%Y-%m-%dT%H:%MZ), DEVICE=$DEVICE ROWS='$ROWS' STEPS=$STEPS" >"$pack/summary.txt"
step machine "the machine" machine
if ! step doctor "doctor" doctor; then
    # A GPU that fails its self-test is refused; the self-test below says all that is wrong, and the runs may show more.
    export NOJIT_SELF_TEST=off
    if ! doctor >"$pack/doctor-untested.txt" 2>&1; then
        say "there is no device that nojit can use: $(grep -m 1 '^nojit doctor: ' "$pack/doctor.txt" | cut -c1-300)"
        finish 4
    fi
fi
text
step self-test "the self-test" self_test
step small-run "a small run" small_run
if [ "$rows" != 0 ]; then
    if [ "$(df -Pm "$work" | awk 'NR == 2 { print $4 }')" -lt "$NEEDED_MB" ]; then
        result "the rows" skipped 0 "${TMPDIR:-/tmp} has less than $NEEDED_MB MB; TMPDIR names another place"
        failed=$((failed + 1))
    elif step models "random weights for the rows" models pair "$PAIR"; then
        for r in $ROWS; do step "row-${r/:/-}" "row $r" row "$r"; done
    fi
fi
finish $((failed > 0))

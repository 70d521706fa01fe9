#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# nothing_lost_at.sh: a signal before each system call of a checkpoint, each of those calls failing, a disk that is full at the first, a middle
# and the last byte of each file (tests/tools/interrupt.c): what was saved is whole, nothing partial has the name of a checkpoint, and going on
# reaches the bits of a run left alone. EVERY=1: all calls of the whole run, and every kind of disturbance at each; else some of each kind.
# A kill leaves what the kernel has yet to write, so it cannot show a missing fsync: the order of the calls is read instead.
set -eu
# Memory, where there is some: waiting for a disk would show nothing here.
if [ "$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)" -gt 200000 ] 2>/dev/null; then export TMPDIR=/dev/shm; fi
. tests/lib/lib.sh
: "${EVERY:=0}"
nojit=$BUILD/nojit
d=$(realpath "$scratch")/work
mkdir "$d"
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1

"$nojit" init --preset nojit-tiny --dtype float32 --out "$d/student" >/dev/null
head -c 300 LICENSE >"$d/text.txt"
run=("$nojit" train --student "$d/student" --data "$d/text.txt" --eval-data "$d/text.txt" --seq-len 16 --batch-size 1 --steps 4
    --lr 1e-2 --device cpu --save-every 1 --eval-every 1 --keep-best --resume auto)
disturbed=(env "LD_PRELOAD=$(realpath "$BUILD")/interrupt.so" "INTERRUPT_IN=$d/run" "INTERRUPT_LOG=$d/calls")

"${run[@]}" --keep 9 --out "$d/all" >/dev/null   # every checkpoint that there is
"${run[@]}" --keep 2 --out "$d/whole" >/dev/null # what is to be the end
"${disturbed[@]}" "${run[@]}" --keep 2 --out "$d/run" >"$scratch/out" 2>&1 || true
if ! cp "$d/calls" "$d/all-calls" || [ ! -s "$d/calls" ]; then
    not_ok "the system calls of a run are counted" "$(tail -n 1 "$scratch/out")"
    finish
fi
rows() { sed -E 's/"(tokens_per_second|step_ms)": [^,]+, //g' "$1/metrics.jsonl"; }
# True if a run left the same files as the undisturbed run; otherwise $why has the reason.
is_end() {
    why=$(diff -rq -x metrics.jsonl -x metrics.jsonl.old -x receipt.json "$d/whole" "$d/run" 2>&1) || return 1
    why=$(diff <(rows "$d/whole") <(rows "$d/run")) || return 1
    why="no receipt"
    [ -s "$d/run/receipt.json" ]
}
if is_end && ! grep -q unknown "$d/calls"; then ok "a run whose calls are counted has the same end"; else not_ok "a run whose calls are counted has the same end" "$why $(tail -n 1 "$scratch/out")"; fi

# ---- the order of the calls: every file is flushed after its last byte, and its folder, before that has the name of a checkpoint
why=$(awk -F'\t' '
    $3 == "write" { unflushed[$4] = 1 }
    $3 == "flush" { delete unflushed[$4]; delete unnamed[$4] }
    $3 == "open" || $3 == "mkdir" || $3 == "rename" { at = $3 == "rename" ? $5 : $4; sub("/[^/]*$", "", at); unnamed[at] = 1 }
    $3 == "rename" && $4 in unflushed { unflushed[$5] = 1; delete unflushed[$4] }
    $3 == "rename" && $4 ~ /[.]tmp-[0-9]+$/ && $5 ~ /(checkpoint-[0-9]+|best[.]new)$/ {
        published++
        for (f in unflushed) if (index(f, $4 "/") == 1) print f " is not on the disk at call " $1
        if ($4 in unnamed) print "the names in " $4 " are not on the disk at call " $1
        if ((getline) <= 0 || $3 != "flush") print "the new name is not on the disk at call " $1
    }
    END { if (published != 8) print published + 0 " folders were published, not 8" }' "$d/all-calls")
if [ -z "$why" ]; then ok "every file of a checkpoint is flushed before it is named"; else not_ok "every file of a checkpoint is flushed before it is named" "$why"; fi

# ---- each disturbance
# Every folder that has the name of a checkpoint is one, bit for bit; a receipt is whole.
nothing_half() {
    local c
    for c in "$d"/run/checkpoint-* "$d"/run/best*; do
        case $c in *.tmp-* | *'*') continue ;; */checkpoint-*) why=$(diff -rq "$d/all/${c##*/}" "$c" 2>&1) || return 1 ;; *)
            why="$c is none of the checkpoints"
            diff -rq "$d/all/checkpoint-$(step_in "$c")" "$c" >/dev/null 2>&1 || [ "${c##*.}" = old ] || return 1
            ;;
        esac
    done
    why="receipt.json is cut short"
    [ ! -e "$d/run/receipt.json" ] || [ "$(tail -c 2 "$d/run/receipt.json")" = "}" ]
}
step_in() { # FOLDER: the step of a state, its first field
    local records
    records=$(od -An -tu4 -j12 -N4 "$1/state.bin" 2>/dev/null) || return
    od -An -td8 -j$((24 + 32 * records)) -N8 "$1/state.bin" | tr -d ' '
}
one_sentence() {
    why="exit status $status, not one sentence: $(cat "$scratch/err")"
    [ "$status" = 1 ] && [ "$(wc -l <"$scratch/err")" = 1 ] && grep -qE "^nojit train: $d/run.*: (No space left on device|free space)" "$scratch/err"
}
no_leftovers() {
    why="left: $(find "$d/run" -name '*.tmp-*' 2>/dev/null)"
    [ "$why" = "left: " ]
}
# disturb VARIABLE=VALUE...: runs so, from the start; then $status and $scratch/err are set.
disturb() {
    rm -rf "$d/run"
    status=0
    "${disturbed[@]}" "$@" "${run[@]}" --keep 2 --out "$d/run" >"$scratch/out" 2>"$scratch/err" || status=$?
} 2>/dev/null # bash reports a job that was killed
goes_on() {
    why="$(tail -n 2 "$scratch/out")"
    "${run[@]}" --keep 2 --out "$d/run" >"$scratch/out" 2>&1 && is_end && no_leftovers
}
# try NAME WAY POINTS: WAY is a function that disturbs at a point and checks what that left; then the run goes on. One verdict for all points.
try() {
    local point tried=0 bad=""
    for point in $3; do
        tried=$((tried + 1))
        "$2" "$point" && nothing_half && goes_on || bad+="at $point: $why; "
    done
    if [ $tried -gt 0 ] && [ -z "$bad" ]; then ok "$1 loses nothing, at $tried points"; else not_ok "$1 loses nothing, at $tried points" "${bad:0:1500}"; fi
}
killed() {
    disturb INTERRUPT_AT="$1"
    why="exit status $status"
    [ "$status" = 137 ]
}
# A call that fails ends the run; but a folder may be there already, and what cannot be removed stays until the next start.
failing() {
    disturb INTERRUPT_AT="$1" INTERRUPT_WITH=-28 # ENOSPC
    local what
    what=$(sed -n "$1p" "$d/all-calls" | sed -E 's/\.tmp-[0-9]+/.tmp/g' | cut -f 3-4)
    case $status:$what in
    0:mkdir?$d/run | 0:remove?$d/run | 0:remove?$d/run/lock | 0:remove*/final.tmp* | 0:rename?$d/run/best.*) ;;
    0:remove* | 0:rename?$d/run/checkpoint-[0-9]) # something old: a line, not the end
        why="no line says it"
        grep -qE "^$d/run/.* cannot be removed: No space left on device$" "$scratch/out"
        ;;
    *) one_sentence && no_leftovers ;;
    esac
}
unflushed() { # CALL:ERROR
    disturb INTERRUPT_AT="${1%:*}" INTERRUPT_WITH="-${1#*:}"
    why="exit status $status: $(cat "$scratch/err")"
    case ${1#*:} in
    5) [ "$status" = 1 ] && grep -q "^nojit train: $d/run.*: Input/output error" "$scratch/err" && no_leftovers ;;
    *) [ "$status" = 0 ] && [ ! -s "$scratch/err" ] ;;
    esac
}
full() { # CALL:BYTES
    disturb INTERRUPT_AT="${1%:*}" INTERRUPT_FULL="${1#*:}"
    one_sentence && no_leftovers
}
ended() { # SIGNAL N: where steps are left, they are not done, and there is a checkpoint; the last step ends the run
    disturb INTERRUPT_AT="$2" INTERRUPT_WITH="$1"
    why="exit status $status: $(tail -n 1 "$scratch/out")"
    if [ "$2" -lt "$last_step" ]; then
        [ "$status" = 130 ] && grep -qE 'interrupted: checkpoint-[1-3] is saved' "$scratch/out"
    else
        [ "$status" = 0 ]
    fi
}
terminated() { ended 15 "$1"; }
interrupted() { ended 2 "$1"; }

# Calls by number: of the first one of a kind, and of a window those that differ in kind, with the first, a middle and the last of a file.
call() { awk -F'\t' -v name="$1" -v path="$2" '$3 == name && $4 ~ path { print $1; exit }' "$d/all-calls"; }
kinds() { # FIRST LAST EVERY-NTH
    awk -F'\t' -v first="$1" -v last="$2" -v nth="$3" -v every="$EVERY" '
        function give() { if (n++ % nth == 0) points = points " " held }
        $1 < first || $1 > last { next }
        every { points = points " " $1; next }
        { at = $4; if ($3 != "write") sub("/[^/]*$", "", at) }
        $3 " " at != kind { if (same > 1) give(); kind = $3 " " at; same = 0 }
        { held = $1; if (same++ == 0 || same == 12) give() }
        END { if (same > 1) give(); print points }' "$d/all-calls"
}
bytes() { # FIRST LAST: the first, a middle and the last byte of each file; a receipt and a row may be shorter the next time
    awk -F'\t' -v first="$1" -v last="$2" '
        function give() { if (file != "") print from ":0", from ":" int(size / 2), from ":" size - (file ~ /json(l|.tmp-[0-9]+)$/ ? 100 : 1) }
        $1 < first || $1 > last || $3 != "write" { next }
        $4 != file { give(); file = $4; from = $1; size = 0 }
        { size += $2 }
        END { give() }' "$d/all-calls"
}
calls=$(wc -l <"$d/all-calls")
start=$(call open "$d/run/metrics.jsonl\$")     # signals are caught from here on
last_step=$(($(call mkdir /checkpoint-3.tmp-) - 1)) # whoever is told later to end has one step left, and does it
final=$(call mkdir "$d/run/final.tmp-")
if [ "$EVERY" = 1 ]; then
    begin=1 end=$calls
else # from best of step 3 to its checkpoint and what that removes
    begin=$(awk -F'\t' -v to=$last_step '$1 < to && $3 == "mkdir" && $4 ~ /best.new.tmp-/ { n = $1 } END { print n }' "$d/all-calls")
    end=$(awk -F'\t' -v from=$last_step '$1 > from && $4 ~ /metrics.jsonl$/ { print $1; exit }' "$d/all-calls")
fi
final() { [ "$EVERY" = 1 ] || "$1" "$final" "$calls" "${@:2}"; } # a window of its own
# The first calls make the folder and look for leftovers; a signal there ends the process as it ends any.
try "SIGKILL before a call" killed "$(kinds "$begin" "$end" 1) $(final kinds 1)"
try "SIGTERM before a call" terminated "$(kinds $((begin > start ? begin : start)) "$end" 8) $(final kinds 8)"
try "SIGINT before a call" interrupted "$(kinds $((begin > start ? begin : start)) "$end" 9) $(final kinds 9)"
try "a call that fails" failing "$(kinds "$begin" "$end" 3) $(final kinds 3)"
# Flushing fails for a folder inside the one to publish, for its parent, and for the parent of the model: EIO ends
# the run; EINVAL and ENOTSUP come from file systems without that call.
first_within=$(awk -F'\t' '$3 == "flush" && $4 ~ /(checkpoint-[0-9]+|best[.]new)[.]tmp-[0-9]+$/ { print $1; exit }' "$d/all-calls")
last_of_all=$(awk -F'\t' -v path="$d/run" '$3 == "flush" && $4 == path { n = $1 } END { print n }' "$d/all-calls")
try "a folder that cannot be flushed" unflushed "$(for at in "$first_within" "$(call flush "^$d/run\$")" "$last_of_all"; do
    echo "$at:5" "$at:22" "$at:95"
done)"
try "a disk full at a byte" full "$(bytes "$([ "$EVERY" = 1 ] && echo 1 || echo "$last_step")" "$end") $(final bytes)"
finish

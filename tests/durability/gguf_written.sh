#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gguf_written.sh: a GGUF file in the place of another, with the process killed before a system call, with that call failing, and with
# a disk that is full (tests/tools/interrupt.c): what has the name is the old file or the new one, whole.
set -eu
. tests/lib/lib.sh
d=$(realpath "$scratch")/work
mkdir "$d" "$d/out"
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1
"$BUILD/nojit" init --preset nojit-tiny --dtype float32 --out "$d/model" >/dev/null
write=("$BUILD/gguf-of" "$d/model" "$d/out/m.gguf" Q8_0)
disturbed=(env "LD_PRELOAD=$(realpath "$BUILD")/interrupt.so" "INTERRUPT_IN=$d/out" "INTERRUPT_LOG=$d/calls")
"${write[@]}" && mv "$d/out/m.gguf" "$d/new"
echo old >"$d/old"

"${disturbed[@]}" "${write[@]}" >"$scratch/out" 2>&1 || true
cp "$d/calls" "$d/all-calls"
calls=$(wc -l <"$d/all-calls")
if cmp -s "$d/new" "$d/out/m.gguf"; then ok "a GGUF file written with calls counted is the same"; else not_ok "a GGUF file written with calls counted is the same" "$(cat "$scratch/out")"; fi
kinds=$(cut -f 3-4 "$d/all-calls" | sed -E "s,$d/,,; s/[.]tmp-[0-9]+/.tmp/" | uniq | tr '\t\n' ' ;')
want="open out/m.gguf.tmp;write out/m.gguf.tmp;flush out/m.gguf.tmp;rename out/m.gguf.tmp;flush out;"
if [ "$kinds" = "$want" ]; then ok "a GGUF file is flushed, then named, and its name flushed"; else not_ok "a GGUF file is flushed, then named, and its name flushed" "$kinds"; fi

# All calls but some of the many writes.
points=$(awk -F'\t' -v n="$calls" '$3 != "write" || $1 < 5 || $1 % 40 == 0 || $1 > n - 6 { print $1 }' "$d/all-calls")
renamed=$(awk -F'\t' '$3 == "rename" { print $1 }' "$d/all-calls")
disturb() {
    rm -rf "$d/out" && mkdir "$d/out" && cp "$d/old" "$d/out/m.gguf"
    status=0
    "${disturbed[@]}" "$@" "${write[@]}" >"$scratch/out" 2>"$scratch/err" || status=$?
} 2>/dev/null # bash reports a job that was killed
holds() { # POINT: the old file until it is renamed, then the new one
    why="exit status $status, $(ls -l "$d/out"), $(cat "$scratch/err")"
    if [ "$1" -gt "$renamed" ]; then cmp -s "$d/new" "$d/out/m.gguf"; else cmp -s "$d/old" "$d/out/m.gguf"; fi
}
one_sentence() { [ "$status" = 1 ] && [ "$(wc -l <"$scratch/err")" = 1 ] && grep -qE "^gguf-of: $d/out.*No space left on device" "$scratch/err"; }
killed() { disturb INTERRUPT_AT="$1" && [ "$status" = 137 ] && holds "$1"; }
failing() { disturb INTERRUPT_AT="$1" INTERRUPT_WITH=-28 && holds "$1" && one_sentence && [ "$(ls "$d/out")" = m.gguf ]; }
full() { disturb INTERRUPT_AT=1 INTERRUPT_FULL="$1" && holds 1 && one_sentence && [ "$(ls "$d/out")" = m.gguf ]; }
try() { # NAME WAY POINT...
    local point bad=""
    for point in "${@:3}"; do "$2" "$point" || bad+="at $point: $why; "; done
    if [ -z "$bad" ]; then ok "$1 leaves the old GGUF file or the new one"; else not_ok "$1 leaves the old GGUF file or the new one" "${bad:0:1000}"; fi
}
size=$(stat -c %s "$d/new")
# shellcheck disable=SC2086 # a list
try "SIGKILL before a call" killed $points
# shellcheck disable=SC2086
try "a call that fails" failing $points
try "a disk full at a byte" full 0 1 23 24 5000 $((size / 2)) $((size - 1))
finish

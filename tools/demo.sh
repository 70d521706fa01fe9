#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# demo.sh: the whole product on text of this machine. Trains a small byte-level teacher, distils it into a student a
# quarter its size, trains the same student without the teacher for as many steps, and compares on held-out files.
#   SEED=1   order of the data and first weights            DEVICE=auto|cpu|cuda
set -eu
: "${BUILD:=build}" "${SEED:=1}" "${DEVICE:=auto}" "${TEACHER_STEPS:=260}" "${STUDENT_STEPS:=160}"
nojit=$BUILD/nojit
out=$BUILD/demo
started=$SECONDS
rm -rf "$out"
mkdir -p "$out/text" "$out/held-out"

# Licence texts and copyright notices, each text once; every tenth file is held out.
collect() {
    local n=0 total=0 size f
    local -A seen=()
    for f in /usr/share/common-licenses/* /usr/share/doc/*/copyright; do
        [ -f "$f" ] && [ ! -L "$f" ] || continue
        size=$(wc -c <"$f")
        local sum
        sum=$(cksum <"$f")
        [ -z "${seen[$sum]:-}" ] && [ "$size" -ge 2000 ] || continue
        seen[$sum]=1
        n=$((n + 1))
        total=$((total + size))
        if [ $((n % 10)) = 0 ]; then cp "$f" "$out/held-out/$n.txt"; else cp "$f" "$out/text/$n.txt"; fi
        [ "$total" -lt 3000000 ] || break
    done
}
collect
echo "text: $(ls "$out/text" | wc -l) files, $(cat "$out"/text/* | wc -c) bytes; held out: $(ls "$out/held-out" | wc -l) files, $(cat "$out"/held-out/* | wc -c) bytes"

say() { printf '\n%s\n' "$*"; }
common=(--data "$out/text" --eval-data "$out/held-out" --device "$DEVICE" --seed "$SEED"
    --seq-len 256 --batch-size 8 --warmup-steps 20 --lr 2e-3)

"$nojit" init --preset nojit-small --seed "$SEED" --out "$out/teacher-start"
"$nojit" init --preset nojit-tiny --seed "$((SEED + 1000))" --out "$out/student-start"

say "1. teacher: nojit train, $TEACHER_STEPS steps"
"$nojit" train --student "$out/teacher-start" --out "$out/teacher" --steps "$TEACHER_STEPS" "${common[@]}"
say "2. student: nojit distill, $STUDENT_STEPS steps"
"$nojit" distill --teacher "$out/teacher" --student "$out/student-start" --out "$out/distilled" \
    --steps "$STUDENT_STEPS" "${common[@]}"
say "3. the same student without the teacher: nojit train, $STUDENT_STEPS steps"
"$nojit" train --student "$out/student-start" --out "$out/plain" --steps "$STUDENT_STEPS" "${common[@]}"

held_out() {
    "$nojit" eval --model "$1" --data "$out/held-out" --device "$DEVICE" --seq-len 256 --batch-size 8 --json |
        sed -E 's/.*"class_loss": ([0-9.]+).*/\1/'
}
parameters() { sed -n 's/.*"student_parameters": \([0-9]*\).*/\1/p' "$1/receipt.json"; }
sample() {
    "$nojit" generate --model "$1" --device "$DEVICE" --seq-len 256 --max-tokens 160 --seed "$SEED" --prompt "This software is "
}

say "Held-out loss, nats a byte (lower is better)"
teacher=$(held_out "$out/teacher")
distilled=$(held_out "$out/distilled")
plain=$(held_out "$out/plain")
printf '  %-22s %10s %8s %8s\n' model parameters steps loss
printf '  %-22s %10s %8s %8.4f\n' teacher "$(parameters "$out/teacher")" "$TEACHER_STEPS" "$teacher"
printf '  %-22s %10s %8s %8.4f\n' 'student, distilled' "$(parameters "$out/distilled")" "$STUDENT_STEPS" "$distilled"
printf '  %-22s %10s %8s %8.4f\n' 'student, plain' "$(parameters "$out/plain")" "$STUDENT_STEPS" "$plain"
awk -v d="$distilled" -v p="$plain" 'BEGIN { if (d < p) printf "  the distilled student is %.1f %% better than the plain one\n", 100 * (p - d) / p
    else printf "  the distilled student is NOT better than the plain one (%.4f against %.4f)\n", d, p }'

for m in teacher distilled plain; do
    say "sample of $m:"
    sample "$out/$m"
done
say "models, metrics.jsonl and receipt.json: $out/{teacher,distilled,plain}; $((SECONDS - started)) s"
awk -v d="$distilled" -v p="$plain" 'BEGIN { exit !(d < p) }'

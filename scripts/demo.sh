#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# demo.sh: the whole product on text of this machine. Trains a small byte-level teacher, distils it into a student a
# quarter its size, trains the same student without the teacher for as many steps, and compares on held-out files. A demo that
# was interrupted continues where it was, if it is run again with the same settings and program.
#   SEED=1   first weights, order of the data, samples      DEVICE=auto|cpu|cuda
#   TEXT='a.txt b/*.txt'   other files than licence texts and copyright notices
#   TEACHER_STEPS, STUDENT_STEPS   optimizer steps
set -eu
export LC_ALL=C
: "${BUILD:=build}" "${SEED:=1}" "${DEVICE:=auto}" "${TEACHER_STEPS:=680}" "${STUDENT_STEPS:=500}"
: "${TEXT:=/usr/share/common-licenses/* /usr/share/doc/*/copyright}"
nojit=$BUILD/nojit
case " $* " in *" --help "* | *" -h "*) sed -n '3,/^set /s/^# \{0,1\}//p' "$0" && exit ;; esac
out=$BUILD/demo
started=$SECONDS

say() { printf '\n%s\n' "$*"; }

refuse() { # SENTENCE
    echo "demo: $1" >&2
    exit 2
}
# Before the last demo is removed.
before() {
    local n found=
    [[ $SEED =~ ^[0-9]{1,18}$ ]] || refuse "SEED=$SEED: give a whole number of up to 18 digits"
    for n in TEACHER_STEPS STUDENT_STEPS; do [[ ${!n} =~ ^[1-9][0-9]{0,6}$ ]] || refuse "$n=${!n}: give a number from 1 to 9999999"; done
    [[ $DEVICE =~ ^(auto|cpu|cuda)$ ]] || refuse "DEVICE=$DEVICE: give auto, cpu or cuda"
    for n in $TEXT; do if [ -f "$n" ]; then found=yes; fi; done
    [ -n "$found" ] || refuse "TEXT=$TEXT names no file"
    if [ "$DEVICE" = cuda ]; then "$nojit" doctor --device cuda >/dev/null; fi
}

# Copies paragraphs of the given files, each file into text/ or, every tenth, into held-out/. The same notices are in
# many files with other names and line breaks; so a paragraph is left out if a third of its runs of eight words have
# been seen in those kept before, on either side. A file gives at most 40 kB, all together 1 MB.
select_text() {
    awk -v out="$out" '
        function end_paragraph(   words, runs, old, run, now, i, k) {
            run = tolower(paragraph)
            gsub(/[^a-z]+/, " ", run)
            runs = split(run, words, " ") - 7
            if (runs < 1)
                runs = 1
            for (i = 1; i <= runs; i++) {
                run = words[i]
                for (k = 1; k < 8; k++)
                    run = run " " words[i + k]
                now[i] = run
                old += run in seen
            }
            if (3 * old < runs) {
                for (i = 1; i <= runs; i++)
                    seen[now[i]]
                text = text paragraph "\n"
            }
            paragraph = ""
        }
        function end_file(   name) {
            end_paragraph()
            if (length(text) >= 500) {
                name = out (++files % 10 == 0 ? "/held-out/" : "/text/") files ".txt"
                printf "%s", text > name
                close(name)
                total += length(text)
            }
            text = ""
        }
        FNR == 1 { end_file() }
        total > 1000000 { exit }
        length(text) > 40000 { next }
        /^[ .\t]*$/ { end_paragraph(); next }
        { paragraph = paragraph $0 "\n" }
        length(paragraph) > 4000 { end_paragraph() }
        END { end_file() }' "$@"
}

bytes() { cat "$1"/* 2>/dev/null | wc -c; }
count() { find "$1" -type f | wc -l; }

collect() {
    local f files=()
    for f in $TEXT; do
        if [ -f "$f" ] && [ ! -L "$f" ]; then files+=("$f"); fi
    done
    rm -rf "$out"
    mkdir -p "$out/text" "$out/held-out"
    [ ${#files[@]} = 0 ] || select_text "${files[@]}"
    if [ "$(bytes "$out/text")" -lt 150000 ] || [ "$(bytes "$out/held-out")" -lt 10000 ]; then
        echo "demo: too little text: $(bytes "$out/text") bytes to train on and $(bytes "$out/held-out") held out, of" \
            "150000 and 10000; name more files: TEXT='notes/*.txt src/*.c' make demo" >&2
        exit 1
    fi
    echo "text      $(count "$out/text") files, $(bytes "$out/text") bytes"
    echo "held out  $(count "$out/held-out") other files, $(bytes "$out/held-out") bytes, near-duplicates left out"
}

settings() { printf '%s\n' "$SEED" "$TEACHER_STEPS" "$STUDENT_STEPS" "$TEXT" "$(cksum <"$nojit")"; }

# phase NAME STEPS COMMAND...: one run of nojit and what it took, with what it took before it was interrupted. A short one has a
# fifth of its steps as warm-up.
phase() {
    local name=$1 steps=$2
    local warmup=$((steps < 500 ? steps / 5 : 100)) fifth=$(((steps + 4) / 5))
    shift 2
    if [ -e "$out/$name.done" ]; then
        echo "done before the demo was interrupted"
    else
        current=$name began=$SECONDS
        "$nojit" "$@" --out "$out/$name" --data "$out/text" --device "$DEVICE" --seed "$SEED" --seq-len 128 \
            --eval-data "$out/held-out" --eval-every "$fifth" --save-every "$fifth" --keep 1 --resume auto \
            --batch-size 8 --steps "$steps" --warmup-steps "$warmup" --beta2 0.99 --log-every $(((steps + 9) / 10))
        spent
        touch "$out/$name.done"
    fi
    took[$name]=$(cat "$out/$name.seconds")
}
# spent: adds the time since the current run began to what it took before.
spent() {
    [ -n "$current" ] || return 0
    echo $(($(cat "$out/$current.seconds" 2>/dev/null || echo 0) + SECONDS - began)) >"$out/$current.seconds"
    current=
}
left() {
    rm -rf "$BUILD/demo.new"
    [ -z "$current" ] || printf '\n%s\n' "demo: not finished; run it again to continue from here" >&2
    spent
}
# After the last step.
held_out() { sed -nE 's/.*"eval_ce_loss": ([0-9.]+).*/\1/p' "$out/$1/metrics.jsonl" | tail -n 1; }
sample() {
    "$nojit" generate --model "$out/$1" --device "$DEVICE" --seq-len 256 --max-tokens 200 --temperature 0.6 \
        --seed "$SEED" --prompt "This software is " >"$out/$1-sample.txt"
}
# On a GPU most of a sample's time is that of starting, so all are made at once; on a CPU each takes all cores.
samples() { # MODEL...
    local m waited=()
    for m in "$@"; do
        sample "$m" &
        if [ "$DEVICE" = cpu ]; then wait $!; else waited+=($!); fi
    done
    for m in ${waited[@]+"${waited[@]}"}; do wait "$m"; done
}
parameters() { sed -n 's/.*"student_parameters": \([0-9]*\).*/\1/p' "$out/$1/receipt.json"; }
row() { printf '  %-20s %10s %6s %8s %12.4f\n' "$1" "$(parameters "$2")" "$3" "${took[$2]} s" "$4"; }

before
current=
trap left EXIT
if [ ! -e "$out/finished" ] && [ "$(cat "$out/settings" 2>/dev/null)" = "$(settings)" ]; then
    echo "demo: continues the one that was interrupted ($out)"
else
    echo "demo: three small models are trained and compared; that takes about two minutes on two cores, seconds on a GPU"
    # The last demo stays until there is text for another.
    out=$BUILD/demo.new
    collect
    out=$BUILD/demo
    rm -rf "$out"
    mv "$BUILD/demo.new" "$out"
    "$nojit" init --preset nojit-demo-teacher --seed "$SEED" --out "$out/teacher-start" >"$out/init.log"
    "$nojit" init --preset nojit-demo-student --seed "$SEED" --out "$out/student-start" >>"$out/init.log"
    settings >"$out/settings"
fi
declare -A took

say "1. The teacher: nojit train, $TEACHER_STEPS steps"
phase teacher "$TEACHER_STEPS" train --student "$out/teacher-start" --lr 1e-3
if grep -q '"backend": "cpu"' "$out/teacher/receipt.json"; then DEVICE=cpu; fi # no other run looks for a GPU
say "2. The student: nojit distill, $STUDENT_STEPS steps"
phase distilled "$STUDENT_STEPS" distill --teacher "$out/teacher" --student "$out/student-start" --lr 2e-3 \
    --kd-ratio 0.8 --temperature 1
say "3. The same student without the teacher: nojit train, $STUDENT_STEPS steps"
phase plain "$STUDENT_STEPS" train --student "$out/student-start" --lr 2e-3

teacher=$(held_out teacher)
distilled=$(held_out distilled)
plain=$(held_out plain)

samples teacher distilled plain
for m in teacher distilled plain; do
    say "Sample of $m:"
    cat "$out/$m-sample.txt"
done

say "Held-out loss in nats per byte, lower is better (seed $SEED):"
printf '  %-20s %10s %6s %8s %12s\n' model parameters steps time 'held-out loss'
row teacher teacher "$TEACHER_STEPS" "$teacher"
row 'student, distilled' distilled "$STUDENT_STEPS" "$distilled"
row 'student, plain' plain "$STUDENT_STEPS" "$plain"
touch "$out/finished"
say "Models, metrics.jsonl and receipt.json: $out/{teacher,distilled,plain}; text: $out/{text,held-out}"
awk -v d="$distilled" -v p="$plain" -v s="$((SECONDS - started))" 'BEGIN {
    better = d < p
    printf "The distilled student is %.1f %% %s than the plain one. %d s in all.\n",
        100 * (better ? p - d : d - p) / p, better ? "better" : "WORSE", s
    exit !better
}'

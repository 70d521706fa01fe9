#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cli_progress.sh: the line of a running step in a terminal: it is rewritten, never wider than the terminal, and leaves
# nothing behind; what lasts is what a file gets.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive
"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
head -c 3000 /usr/share/common-licenses/GPL-3 >"$d/text.txt"
run="$nojit train --student $d/student --data $d/text.txt --seq-len 64 --batch-size 4 --steps 60 --log-every 30 --device cpu"
command -v script >/dev/null || { not_ok "a terminal can be made" "no \`script\`; install bsdutils"; finish; }

# in_terminal COLUMNS [TERM]: $d/steps has each state of the rewritten line, $d/stays what is left on the screen.
in_terminal() {
    rm -rf "$d/out" "$d/log"
    TERM=${2:-xterm} script -qec "stty cols $1; $run --out $d/out --log $d/log" /dev/null </dev/null | tr -d '\r' >"$d/raw"
    sed 's/\x1b\[K/\n/g' "$d/raw" | grep '^step' >"$d/steps"
    sed 's/.*\x1b\[K//' "$d/raw" >"$d/stays"
}
widest() { awk '{ if (length > n) n = length } END { print n }'; }

for columns in 100 60 20; do
    in_terminal "$columns"
    got=$(grep -v '^step 60/60' "$d/steps" | widest)
    if [ "$got" -lt "$columns" ] && [ "$(wc -l <"$d/steps")" -gt 1 ]; then ok "the line of a step fits $columns columns"; else not_ok "the line of a step fits $columns columns" "$got wide: $(head -n 1 "$d/steps")"; fi
done
if grep -qE '^step [0-9]+/60$' "$d/steps"; then ok "a narrow terminal shows the number of the step"; else not_ok "a narrow terminal shows the number of the step" "$(head -n 1 "$d/steps")"; fi
in_terminal 60
if grep -vq norm "$d/steps" && grep -qE '^step [0-9]+/60  loss [0-9.]+ .*tok/s.*ETA' "$d/steps"; then ok "the norm is the first to be left out of the line of a step"; else not_ok "the norm is the first to be left out of the line of a step" "$(head -n 1 "$d/steps")"; fi
if [ "$(grep -c '^step' "$d/stays")" = 1 ] && grep -q '^step 60/60 .*norm' "$d/stays" && tail -n 1 "$d/stays" | grep -q '^loss .* over 60 steps'; then
    ok "a run leaves nothing of its progress in the terminal"
else
    not_ok "a run leaves nothing of its progress in the terminal" "$(tail -n 3 "$d/stays" | cat -v)"
fi
if [ "$(grep -c '^step' "$d/log")" = 2 ] && grep -q '^step 60/60 .*norm' "$d/log"; then ok "the log has every line that is due, whole"; else not_ok "the log has every line that is due, whole" "$(grep -c '^step' "$d/log") lines"; fi
in_terminal 60 dumb
if grep -q $'\x1b' "$d/raw"; then not_ok "a dumb terminal gets lines without escapes" "$(head -n 6 "$d/raw" | cat -v)"; else ok "a dumb terminal gets lines without escapes"; fi
TERM=xterm script -qec "stty cols 60; $nojit eval --model $d/student --data $d/text.txt --seq-len 64 --batch-size 4 --device cpu >$d/results" \
    /dev/null </dev/null | tr -d '\r' >"$d/raw"
if grep -q '^held out: 0 of 47 rows' "$d/raw" && ! grep -q 'held out' "$d/results" && grep -q '^ce_loss' "$d/results"; then
    ok "a terminal shows the progress of an evaluation"
else
    not_ok "a terminal shows the progress of an evaluation" "$(cat -v "$d/raw") $(cat "$d/results")"
fi
CUDA_VISIBLE_DEVICES='' "$nojit" generate --model "$d/student" --prompt ab --max-tokens 2 >"$d/results" 2>"$d/said"
if grep -q '^running on the CPU' "$d/said" && [ "$(head -c 2 "$d/results")" = ab ] && ! grep -aq 'running on' "$d/results"; then
    ok "generate in a terminal prints the text alone to standard output"
else
    not_ok "generate in a terminal prints the text alone to standard output" "$(head -n 2 "$d/results") $(cat "$d/said")"
fi
prompt=$'\x1b]52;c;AAAA\x07 \xc2\x9b2J'
generate() { TERM=xterm script -qec "$nojit generate --model $d/student --prompt '$prompt' --max-tokens 300 --device cpu --temperature 3" /dev/null </dev/null; }
generate | tr -d '\r' >"$d/raw"
"$nojit" generate --model "$d/student" --prompt "$prompt" --max-tokens 300 --device cpu --temperature 3 >"$d/results"
if ! LC_ALL=C grep -qaP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' "$d/raw" && grep -qaF '?]52;c;AAAA? ?2J' "$d/raw" &&
    [ "$(head -c 16 "$d/results")" = "${prompt:0:16}" ]; then
    ok "a model's escapes are shown in a terminal and kept in a file"
else
    not_ok "a model's escapes are shown in a terminal and kept in a file" "$(head -c 200 "$d/raw" | cat -v)"
fi
out=$("$nojit" train --student "$d/student" --data "$d/text.txt" --seq-len 64 --batch-size 4 --steps 1 --device cpu --out "$d/one")
if grep -q '; 1 step of 256 tokens' <<<"$out" && grep -q 'over 1 step in' <<<"$out"; then ok "one step is called a step"; else not_ok "one step is called a step" "$out"; fi
finish

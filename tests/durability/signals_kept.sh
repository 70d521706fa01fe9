#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# signals_kept.sh: a terminal that closes, a reader that goes away and data that become shorter cost a run nothing; other commands end with
# their reader.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive

"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
head -c 4000 /usr/share/common-licenses/GPL-3 >"$d/text.txt"
command=("$nojit" train --student "$d/student" --data "$d/text.txt" --seq-len 16 --batch-size 1 --device cpu)
run=(env --default-signal="HUP,INT,PIPE" "${command[@]}") # whatever ignores them where the tests run
. tests/lib/compare_runs.sh
ends_with() { # NAME STATUS PID
    local status=0
    wait "$3" || status=$?
    if [ "$status" = "$2" ]; then ok "$1"; else not_ok "$1" "exit status $status, expected $2: $(tail -n 2 "$scratch/said")"; fi
}
saved() { # NAME FOLDER OPTIONS...: it holds a checkpoint from which the run goes on
    local at name=$1 out=$2
    shift 2
    at=$(newest "$out")
    if [ -n "$at" ] && whole_checkpoints "$out" &&
        "${run[@]}" "$@" --out "$out" --resume auto --steps $((${at##*-} + 1)) >"$scratch/resumed" 2>&1; then
        ok "$name"
    else
        not_ok "$name" "$(ls "$out"; tail -n 1 "$scratch/resumed")"
    fi
}

# ---- SIGHUP: from the kernel and from the shell of the terminal, so more than once
"${run[@]}" --steps 1000000 --out "$d/hung-up" >"$scratch/said" 2>&1 &
pid=$!
until_true $pid row_of_step "$d/hung-up" 3 || true
for _ in $(seq 40); do kill -HUP $pid 2>/dev/null && sleep 0.001 || break; done
ends_with "a run whose terminal closes ends with 130" 130 $pid
saved "a run whose terminal closes has saved" "$d/hung-up"

"${run[@]}" --steps 1000000 --out "$d/both" >"$scratch/said" 2>&1 &
pid=$!
until_true $pid row_of_step "$d/both" 3 && kill -HUP $pid && kill -TERM $pid || true
ends_with "a SIGTERM that follows waits for the checkpoint" 130 $pid
saved "the checkpoint saved before a SIGTERM that follows is whole" "$d/both"

(trap '' HUP && exec "${command[@]}" --steps 1000000 --out "$d/nohup") >"$scratch/said" 2>&1 &
pid=$!
until_true $pid row_of_step "$d/nohup" 3 && kill -HUP $pid || true
at=$(grep -c '"loss"' "$d/nohup/metrics.jsonl")
if until_true $pid row_of_step "$d/nohup" $((at + 10)); then ok "a run under nohup goes on when its terminal closes"; else not_ok "a run under nohup goes on when its terminal closes" "$(tail -n 1 "$scratch/said")"; fi
kill -TERM $pid || true
ends_with "SIGTERM ends a run under nohup with 130" 130 $pid

# ---- an evaluation that takes minutes: it is said at once that the run waits for it, and a second SIGINT does not
for _ in $(seq 60); do cat /usr/share/common-licenses/GPL-3; done >"$d/long.txt"
"${run[@]}" --steps 10 --eval-data "$d/long.txt" --out "$d/long" >"$scratch/said" 2>&1 &
pid=$!
begun() { [ -e "$d/long/metrics.jsonl" ] || { sleep 0.01 && false; }; }
said() { grep -q '^interrupted: the run saves and stops when this evaluation is done; a second Ctrl-C ends it at once' "$scratch/said" || { sleep 0.01 && false; }; }
until_true $pid begun && kill -INT $pid || true
if until_true $pid said; then ok "an interrupted evaluation says so"; else not_ok "an interrupted evaluation says so" "$(tail -n 1 "$scratch/said")"; fi
kill -INT $pid || true
ends_with "a second interrupt ends an evaluation with 130" 130 $pid
if [ -e "$d/long/lock" ] && "${run[@]}" --steps 3 --out "$d/long" --resume auto >"$scratch/said" 2>&1 && [ ! -e "$d/long/lock" ]; then
    ok "a run after an interrupted evaluation takes its lock"
else
    not_ok "a run after an interrupted evaluation takes its lock" "$(ls "$d/long"; tail -n 1 "$scratch/said")"
fi

# ---- a step that takes long: the same
cat "$d/long.txt" "$d/long.txt" >"$d/longer.txt"
NOJIT_WAIT_SECONDS=60 "$nojit" train --student "$d/student" --data "$d/longer.txt" --seq-len 512 --batch-size 16 --grad-accum 128 --device cpu --steps 2 --out "$d/slow" \
    --resume auto >"$scratch/said" 2>&1 &
pid=$!
starts() { grep -q '^student ' "$scratch/said" && sleep 1 || { sleep 0.01 && false; }; }
answered() { grep -q '^stopping after this step; a checkpoint is saved then (press Ctrl-C again to end now)$' "$scratch/said" || { sleep 0.01 && false; }; }
until_true $pid starts && kill -INT $pid || true
if until_true $pid answered && ! grep -q '^step 1' "$scratch/said"; then ok "an interrupt within a step is answered at once"; else not_ok "an interrupt within a step is answered at once" "$(tail -n 2 "$scratch/said")"; fi
kill -INT $pid || true
ends_with "a second interrupt ends a step with 130" 130 $pid
if grep -q '^nojit: ended at once; what was not saved yet is lost$' "$scratch/said"; then ok "a second interrupt says that no checkpoint was saved"; else not_ok "a second interrupt says that no checkpoint was saved" "$(tail -n 2 "$scratch/said")"; fi
if grep -q "^nothing to continue in $d/slow: the run begins at step 1$" "$scratch/said"; then ok "--resume auto says that there is nothing to continue"; else not_ok "--resume auto says that there is nothing to continue" "$(head -n 9 "$scratch/said")"; fi

# ---- SIGPIPE
gone() { # COMMAND...: its output has no reader any more
    local status=0
    exec 3> >(exec true)
    wait $!
    env --default-signal=PIPE "$@" >&3 2>"$scratch/said" || status=$?
    exec 3>&-
    echo $status
}
status=$(gone "${run[@]}" --steps 40 --out "$d/piped")
if [ "$status" = 1 ] && [ "$(tail -n 1 "$d/piped/metrics.jsonl" | cut -c 1-11)" = '{"step": 40' ] && [ -f "$d/piped/model.safetensors" ] &&
    grep -q '^nojit train: standard output lacks lines: Broken pipe; the run itself is whole$' "$scratch/said"; then
    ok "a run whose reader goes away runs to its end and says so"
else
    not_ok "a run whose reader goes away runs to its end and says so" "status $status: $(cat "$scratch/said")"
fi
ends_quietly() { # NAME COMMAND...
    local name=$1 status
    shift
    status=$(gone "$@")
    if [ "$status" = 141 ] && [ ! -s "$scratch/said" ]; then ok "$name"; else not_ok "$name" "status $status: $(cat "$scratch/said")"; fi
}
ends_quietly "help ends with its reader" "$nojit" help train
ends_quietly "generate ends with its reader" "$nojit" generate --model "$d/student" --prompt a --max-tokens 20 --device cpu
ends_quietly "a dry run ends with its reader" "${run[@]}" --dry-run

# ---- data that become shorter under a run
"$nojit" tokenize --model "$d/student" --data "$d/text.txt" --out "$d/whole.bin" >/dev/null
cut() { # NAME FILE OPTIONS...: FILE loses its last tokens after step 3
    local name=$1 file=$2 out=$d/cut-${2##*/}
    shift 2
    cp "$d/whole.bin" "$file"
    "${run[@]}" --steps 1000000 --out "$out" "$@" >"$scratch/said" 2>&1 &
    pid=$!
    until_true $pid row_of_step "$out" 3 && truncate -s -9000 "$file" || true
    ends_with "$name ends a run with 1" 1 $pid
    at=$(newest "$out")
    if grep -qE "^nojit train: $file: cannot read byte [0-9]+ of [0-9]+: .*; ${at##*/} was saved; repair the data and continue with --resume auto\$" \
        "$scratch/said"; then ok "data that become shorter are said with what is saved"; else not_ok "data that become shorter are said with what is saved" "$(tail -n 1 "$scratch/said")"; fi
    cp "$d/whole.bin" "$file"
    saved "the checkpoint saved when data became shorter is whole" "$out" "$@"
}
run=("$nojit" train --student "$d/student" --seq-len 16 --batch-size 1 --grad-accum 2 --device cpu)
cut "a token file that is cut" "$d/tokens.bin" --data "$d/tokens.bin"
cut "held-out tokens that are cut" "$d/held.bin" --data "$d/text.txt" --eval-data "$d/held.bin" --eval-every 1
finish

# SPDX-License-Identifier: Apache-2.0
#
# faults.sh: sourced by device_faults.sh and device_broken.sh: a run on a simulated GPU, what it leaves, and the same run going
# on after something failed.
. tests/lib/simulated.sh
export NOJIT_SIM_DEVICE=rtx4090
needs sm_89

"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
"$nojit" init --preset nojit-tiny --seed 2 --out "$d/teacher" >/dev/null
head -c 3000 LICENSE >"$d/text.txt"
run=("$nojit" distill --teacher "$d/teacher" --student "$d/student" --data "$d/text.txt" --seq-len 16 --batch-size 1
    --lr 1e-3 --device cuda --gemm-table none)
"${run[@]}" --steps 3 --save-every 1 --keep 9 --out "$d/whole" >"$d/log" 2>&1 || not_ok "a run left alone" "$(tail -n 1 "$d/log")"
# The run that is to continue: after its first step.
mkdir "$d/begun"
cp -r "$d/whole/checkpoint-1" "$d/begun/"
cp "$d/whole/metrics.jsonl" "$d/begun/"
rows() { sed -E 's/"(tokens_per_second|step_ms|mfu_student|mfu_teacher)": [^,]+, //g' "$1/metrics.jsonl"; }
begin() { rm -rf "$d/run" && cp -r "$d/begun" "$d/run" && : >"$NOJIT_SIM_LOG"; }
go_on=("${run[@]}" --steps 3 --save-every 1 --keep 9 --out "$d/run" --resume auto)
hit() { grep -q 'fails as it was told' "$NOJIT_SIM_LOG"; }

# disturbed STATUS REGEX: what the run just made has ended as it should; why not in $why.
disturbed() {
    why="exit status $status: $(tail -n 2 "$d/err")"
    [ "$status" = "$1" ] || return 1
    why="not one sentence with '$2': $(cat "$d/err")"
    grep -qE -- "$2" "$d/err" && [ "$(grep -c '^nojit' "$d/err")" = 1 ] || return 1
    why="$(tail -n 1 "$NOJIT_SIM_LOG")"
    grep -q '; 0 objects left$' "$NOJIT_SIM_LOG" || return 1
    why="checkpoint-1 is not what it was"
    diff -r "$d/begun/checkpoint-1" "$d/run/checkpoint-1" >/dev/null
}
is_end() {
    why="rows differ: $(diff <(rows "$d/whole") <(rows "$d/run") | head -n 2)"
    [ "$(rows "$d/whole")" = "$(rows "$d/run")" ] || return 1
    why="weights differ"
    cmp -s "$d/whole/model.safetensors" "$d/run/model.safetensors" &&
        cmp -s "$d/whole/checkpoint-3/state.bin" "$d/run/checkpoint-3/state.bin"
}
same_end() { # the run goes on, without a fault
    why="$(tail -n 1 "$d/log")"
    "${go_on[@]}" >"$d/log" 2>&1 && is_end
}
disturb() { # NAME:N:ERROR
    begin
    status=0
    NOJIT_SIM_FAIL=$1 "${go_on[@]}" >"$d/log" 2>"$d/err" || status=$?
}

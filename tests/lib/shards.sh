# SPDX-License-Identifier: Apache-2.0
#
# shards.sh: sourced by teacher_shard.sh and teacher_shard_types.sh, after ranks.sh: runs of a teacher of five layers, whole and in slices.
"$nojit" init --preset nojit-tiny --seed 3 --num-layers 5 --out "$d/deep" >/dev/null

# Without the memory that was taken.
figures() { sed -E 's/, "(tokens_per_second|memory_bytes).*//' "$1/metrics.jsonl"; }
same() { # NAME A B: states, and rows to the last
    if cmp "$d/$2/checkpoint-2/state.bin" "$d/$3/checkpoint-2/state.bin" >"$d/diff" 2>&1 &&
        cmp "$d/$2/best/state.bin" "$d/$3/best/state.bin" >"$d/diff" 2>&1 && diff <(figures "$d/$2") <(figures "$d/$3") >"$d/diff"; then
        ok "$1"
    else
        not_ok "$1" "$(head -c 300 "$d/diff") $(tail -n 1 "$d/$3.err")"
    fi
}
parts() { # NAME RANKS EAGER OPTION...
    rm -rf "$d/parts"
    [ "$whole" = "$2 ${*:4}" ] || { rm -rf "$d/whole" && distill whole "${few[@]}" "${@:4}" --virtual-ranks "$2"; }
    whole="$2 ${*:4}"
    NOJIT_SIM_EAGER=$3 distill parts "${few[@]}" "${@:4}" --gpus "$2" --teacher-shard || true
    same "$1" whole parts
}
whole=

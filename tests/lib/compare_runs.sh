# SPDX-License-Identifier: Apache-2.0
#
# compare_runs.sh: sourced by scripts that disturb a run: how far it is, and what it left, beside that of the run left alone in $d/whole. Who compares
# has the command in `run`, which lacks --out and --resume.
# The parts of a run that must repeat: rows without their times, weights, states, names.
rows() { sed -E 's/"(tokens_per_second|step_ms|mfu_student|mfu_teacher)": [^,]+, //g' "$1/metrics.jsonl"; }
names() { (cd "$1" && find . -type f ! -path './checkpoint-*.old/*' ! -name metrics.jsonl.old | sort); }
bits() { (cd "$1" && cat model.safetensors checkpoint-*[0-9]/{model.safetensors,state.bin} best/state.bin | cksum); }
same_end() { # NAME FOLDER
    if ! diff <(rows "$d/whole") <(rows "$2") >"$scratch/diff"; then
        not_ok "$1" "rows differ: $(head -c 300 "$scratch/diff")"
    elif ! diff <(names "$d/whole") <(names "$2") >"$scratch/diff"; then
        not_ok "$1" "files differ: $(head -c 300 "$scratch/diff")"
    elif [ "$(bits "$d/whole")" != "$(bits "$2")" ]; then
        not_ok "$1" "weights or states differ"
    else
        ok "$1"
    fi
}
finish_run() { # NAME FOLDER: the resumed run reaches its end, which is that of the run left alone
    if "${run[@]}" --out "$2" --resume auto >"$scratch/out" 2>&1; then
        same_end "$1" "$2"
    else
        not_ok "$1" "exit status $?: $(tail -n 1 "$scratch/out")"
    fi
}
# Every folder named as a checkpoint is one; a partial one has another name.
whole_checkpoints() { # FOLDER
    local c f
    for c in "$1"/checkpoint-* "$1"/best; do
        case $c in *.tmp-* | *'*') continue ;; esac
        [ -d "$c" ] || continue
        for f in config.json model.safetensors settings.txt state.bin; do
            if [ ! -s "$c/$f" ]; then
                echo "$c lacks $f"
                return 1
            fi
        done
    done
}
# Rows are written before what is saved after them.
row_of_step() { [[ -s $1/metrics.jsonl && $(<"$1/metrics.jsonl") == *"{\"step\": $2, \"loss\""* ]] || { sleep 0.005 && false; }; }
saving_of() { compgen -G "$1/*.tmp-$2" >/dev/null; } # FOLDER PID: others are what a process that was killed has left
newest() { find "$1" -maxdepth 1 -name 'checkpoint-*' ! -name '*.*' | sort -t- -k2 -V | tail -n 1; }
saving() { compgen -G "$1/*.tmp-*" >/dev/null; }
until_true() { # PID COMMAND...: waits; fails if the process ends before
    local pid=$1
    shift
    until "$@"; do kill -0 "$pid" 2>/dev/null || return 1; done
}

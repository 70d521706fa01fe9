# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the scripts of this folder, which set $nojit and $DEVICE: what they say before they begin, and what more than one
# of them does. Those that train on text of this machine also set $WORK, $PYTHON, $FOLDERS, $MEGABYTES and $VOCABULARY.

export LC_ALL=C # numbers with a point
# A function for awk: random numbers that are the same with every awk. Its caller seeds x.
next_int='function next_int(n) { x = (x * 1103515245 + 12345) % 2147483648; return int(x / 65536) % n }'

give_help() { # ARGUMENT...: where one asks for it, the head of the script
    case " $* " in *" --help "* | *" -h "*) sed -n '3,/^set /s/^# \{0,1\}//p' "$0" && exit ;; esac
}
refuse() { # SENTENCE
    echo "$(basename "$0"): $1" >&2
    exit 2
}
needs_device() {
    local said
    said=$("$nojit" doctor --device "$DEVICE" 2>&1 >/dev/null) ||
        refuse "$(tail -n 1 <<<"$said" | grep . || echo "DEVICE=$DEVICE cannot be used; see $nojit doctor --device $DEVICE")"
}
needs_tokenizers() {
    "$PYTHON" -c 'import tokenizers' >/dev/null 2>&1 || refuse "PYTHON=$PYTHON does not import tokenizers; name a Python that has it"
}
# begin ARGUMENT...: help where one asks for it; a device that can be used, and $WORK empty
begin() {
    give_help "$@"
    needs_device
    rm -rf "$WORK"
    mkdir -p "$WORK"
}
# prompts COUNT FROM TO ANSWER_FROM ANSWER_TO: lines of random letters, which are tokens where there is no tokenizer
prompts() {
    awk -v count="$1" -v from="$2" -v to="$3" -v first="$4" -v last="$5" "$next_int"'
        BEGIN {
            x = 1
            for (i = 0; i < count; i++) {
                length_ = from + next_int(to - from + 1)
                text = ""
                for (k = 0; k < length_; k++)
                    text = text sprintf("%c", 97 + next_int(26))
                printf "{\"prompt\": \"%s\", \"max_tokens\": %d}\n", text, first + next_int(last - first + 1)
            }
        }'
}
stage() { printf '%4d s  %s\n' "$SECONDS" "$*"; }
# Token files train.bin and held-out.bin, and the shapes of models (shape-NAME) with the tokenizer that made them.
make_text() {
    local side
    "$PYTHON" bench/quality_text.py "$WORK" "$VOCABULARY" "$MEGABYTES" $FOLDERS
    for side in train held-out; do
        "$nojit" tokenize --model "$WORK/shape-teacher" --data "$WORK/$side" --out "$WORK/$side.bin" 2>&1 | tail -n 1
    done
}
# held_out FOLDER TEACHER OPTION...: cross-entropy, KL divergence from the teacher, share of tokens where both rank the same first
held_out() {
    local row
    row=$("$nojit" eval --model "$1" --teacher "$2" --data "$WORK/held-out.bin" --device "$DEVICE" --json "${@:3}" 2>/dev/null) || return 1
    sed -E 's/.*"ce_loss": ([-0-9.e+]+).*"kd_loss": ([-0-9.e+]+).*"agreement": ([-0-9.e+]+).*/\1 \2 \3/' <<<"$row"
}

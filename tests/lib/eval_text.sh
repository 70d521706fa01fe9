# SPDX-License-Identifier: Apache-2.0
#
# eval_text.sh: for tests of what `nojit eval` prints: $scratch/text in words and $scratch/json as JSON.
value() { sed -nE "s/.*\"$1\": ([-0-9.e+]+).*/\1/p" "$scratch/json"; } # FIELD: of the JSON
# line NAME REGEX FIELD...: the text has a line of this form, whose numbers are those of the fields.
line() {
    local name=$1 regex=$2 words i=0
    shift 2
    words=$(grep -E -- "$regex" "$scratch/text" | grep -oE '[ (][0-9]+(\.[0-9]+)?' | tr -d ' (' || true)
    for field; do
        i=$((i + 1))
        if awk -v a="$(echo "$words" | sed -n ${i}p)" -v b="$(value "$field")" \
            'BEGIN { exit !(a != "" && b != "" && (a - b) ^ 2 <= 1e-8 + 1e-8 * b * b) }'; then
            ok "eval's $name has $field as its JSON does"
        else
            not_ok "eval's $name has $field as its JSON does" "$(value "$field"), in: $(cat "$scratch/text")"
        fi
    done
}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# decode_kl.sh: bench/decode_kl, on a tiny model in float32, measures that the decoder predicts what a forward pass does, and with
# a cache of bytes almost that; what it cannot measure it refuses. If it fails, device_decode.sh and the pages that quote it
# measure something else.
set -eu
. tests/lib/lib.sh
d=$scratch
kl=("$BUILD/decode_kl" --device cpu)
"$BUILD/nojit" init --preset nojit-tiny-qwen3 --dtype float32 --out "$d/model" >/dev/null
head -c 20000 /usr/share/common-licenses/GPL-3 >"$d/a.txt"
"${kl[@]}" "$d/model" "$d/a.txt" --contexts 24 --seq-len 300 >"$d/table"
# The table's row $1: mean, p99, max and top-1 are numbers in their order, and this holds of them.
row() {
    if awk -v row="$1" '
        index($0, row) == 1 { n = NF; mean = $(n - 4); p99 = $(n - 3); max = $(n - 2); top1 = $(n - 1)
            found = mean <= max && p99 <= max && top1 <= 100 && ('"$3"') }
        END { exit !found }' "$d/table"; then ok "$2"; else not_ok "$2" "$(cat "$d/table")"; fi
}
# If logits are off by at most x, the divergence is at most about x^2 / 2. The logits of this model lie within +-1; they are off by
# at most 1e-5 of the largest in float32, and by 2e-2 with a cache of bytes (tests/unit/test_decode.c).
row "KL(forward||decoder)" "the decoder predicts what a forward pass does" "max < 1e-8 && top1 == 100"
row "KL(decoder||int8 cache)" "a cache of bytes is close, and is another" "mean > 1e-9 && max < 2e-4"
if grep -qx '24 contexts of 16 to 299 tokens' "$d/table"; then ok "decode_kl says how long its contexts are"; else not_ok "decode_kl says how long its contexts are" "$(head -n 1 "$d/table")"; fi

"$BUILD/nojit" tokenize --model "$d/model" --data "$d/a.txt" --out "$d/a.bin" >/dev/null
"${kl[@]}" "$d/model" "$d/a.bin" --seq-len 300 --contexts 24 >"$d/again"
if cmp -s "$d/table" "$d/again"; then ok "decode_kl of a token file prints the table of its text"; else not_ok "decode_kl of a token file prints the table of its text" "$(cat "$d/again")"; fi

"$BUILD/decode_kl" --help >"$d/help"
if grep -q -- '--contexts N' "$d/help"; then ok "decode_kl --help has its options"; else not_ok "decode_kl --help has its options" "$(head -n 1 "$d/help")"; fi
refuses "decode_kl without data is refused" 2 'MODEL and DATA are needed' "${kl[@]}" "$d/model"
refuses "decode_kl refuses an unknown argument" 2 'unknown argument --kv;' "${kl[@]}" "$d/model" "$d/a.txt" --kv
refuses "decode_kl refuses a third path" 2 'unknown argument more;' "${kl[@]}" "$d/model" "$d/a.txt" more
refuses "decode_kl refuses an option without its value" 2 '--contexts needs a value' "${kl[@]}" "$d/model" "$d/a.txt" --contexts
refuses "decode_kl refuses a value that is no number" 2 '--contexts 3x: must be a number from 1 to' "${kl[@]}" "$d/model" "$d/a.txt" --contexts 3x
refuses "decode_kl refuses an unknown type" 2 '--dtype f8: must be one of auto\|float32\|bfloat16' "${kl[@]}" "$d/model" "$d/a.txt" --dtype f8
refuses "decode_kl refuses bfloat16 on a CPU" 1 '--dtype bfloat16: .* has no bfloat16' "${kl[@]}" "$d/model" "$d/a.txt" --dtype bfloat16
refuses "decode_kl refuses a --seq-len beyond the model" 1 '--seq-len 4096: .* takes [0-9]* at most' "${kl[@]}" "$d/model" "$d/a.txt" --seq-len 4096
refuses "decode_kl refuses a model that is not there" 1 "$d/none" "${kl[@]}" "$d/none" "$d/a.txt"
echo short >"$d/short.txt"
refuses "decode_kl refuses too little text" 1 'fewer than one sequence' "${kl[@]}" "$d/model" "$d/short.txt"
finish

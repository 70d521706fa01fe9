#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# harness_options.sh: every key that blobs/MANIFEST records has cases and a benchmark; the harness runs those that a filter names,
# with the seed it is given and prints, and counts them.
set -eu
. tests/lib/lib.sh
harness=$BUILD/harness
same() { # NAME GOT WANT
    if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', want '$3'"; fi
}

only=$(sed 's|.*/ *||' "$BUILD/stamp/gen") # the setting: empty for all ops
"$harness" --list >"$scratch/list"
# keys PATTERN: that lines of the list speak of which match it
keys() { grep -E -- "$1" "$scratch/list" | cut -d' ' -f1 | sort -u | tr '\n' ' '; }
if [ -z "$only" ]; then recorded=$(grep -v '^#' blobs/MANIFEST | cut -d' ' -f1); else recorded=$(cut -f1 "$BUILD/gen/keys.txt"); fi
recorded=$(echo "$recorded" | sort -u | tr '\n' ' ')
same "every recorded key has a case" "$(keys '\]$')" "$recorded"
same "every recorded key has a benchmark" "$(keys '\] bench$')" "$recorded"

key=$(keys . | tr ' ' '\n' | grep -m 1 '\.f32$')
cases=$(grep -c "^$key .*\]$" "$scratch/list")
"$harness" --device cpu --filter "$key" --seed 77 --json "$scratch/json" >"$scratch/log"
same "the harness counts keys and cases" "$(tail -n 1 "$scratch/log")" "1 of 1 keys, $cases passed, 0 failed (seed 77)"
if grep -q "\"seed\": 77, \"keys\": 1, \"keys_run\": 1, .*\"cases\": $cases, \"failed\": 0" "$scratch/json"; then ok "the harness writes JSON"; else not_ok "the harness writes JSON" "$(head -c 200 "$scratch/json")"; fi
for seed in 1 2; do
    "$harness" --device cpu --filter "$key" --seed $seed --json "$scratch/json$seed" >/dev/null
    "$harness" --device cpu --filter "$key" --seed $seed --json "$scratch/again$seed" >/dev/null
    same "the harness repeats with seed $seed" "$(cat "$scratch/again$seed")" "$(cat "$scratch/json$seed")"
done
errors() { sed -nE 's/.*"worst_error": ([^,]*),.*/\1/p' "$1"; }
if [ "$(errors "$scratch/json1")" != "$(errors "$scratch/json2")" ]; then ok "another seed gives the harness other inputs"; else not_ok "another seed gives the harness other inputs" "$(errors "$scratch/json1")"; fi

for what in "" --list; do
    refuses "the harness refuses a key that is not there, $what" 2 "no key matches 'nothing.\*'; --list" "$harness" --device cpu $what --filter 'nothing.*'
done
refuses "the harness refuses a seed that is none" 2 "cannot use '--seed'" "$harness" --seed 1x
refuses "the harness refuses an unknown device" 2 "cannot use '--device'" "$harness" --device tpu
refuses "the harness refuses an unknown option" 2 "cannot use '--seeds'" "$harness" --seeds 1
refuses "the harness refuses a filter without value" 2 "cannot use '--filter'" "$harness" --filter
refuses "the harness refuses a file that cannot be written" 1 '/nonexistent/json: No such file' "$harness" --filter "$key" --json /nonexistent/json
finish

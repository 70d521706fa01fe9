#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rooms.sh: no object of trainer/ refers to a symbol of a room after its own, whatever it includes.
set -eu
. tests/lib/lib.sh
symbols=$scratch/symbols
objects=()
for source in trainer/*/*.c; do objects+=("$BUILD/obj/${source%.c}.o"); done
nm -A "${objects[@]}" | awk -v root="$BUILD/obj/" '
    {
        object = $1
        sub(/:[^:]*$/, "", object)
        source = substr(object, length(root) + 1, length(object) - length(root) - 1) "c"
        split(source, part, "/")
    }
    $(NF - 1) ~ /^[A-TV-Z]$/ { print "defined", $NF, part[2], source }
    $(NF - 1) == "U" { print "used", $NF, part[2], source }' >"$symbols"
up=$(awk -v rooms="$(scripts/rooms.sh)" '
    BEGIN { n = split(rooms, room, " "); for (i = 1; i <= n; i++) floor[room[i]] = i }
    NR == FNR { if ($1 == "defined") home[$2] = $3; next }
    $1 == "used" && $2 in home && floor[home[$2]] > floor[$3] { print $4 " uses " $2 " of " home[$2] }' "$symbols" "$symbols")
if [ -z "$up" ]; then ok "no object refers to a symbol of a later room"; else not_ok "no object refers to a symbol of a later room" "$up"; fi
if [ "$(grep -c '^defined' "$symbols")" -gt 200 ]; then ok "symbols of the objects were seen"; else not_ok "symbols of the objects were seen" "$(wc -l <"$symbols")"; fi
finish

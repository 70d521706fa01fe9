#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# calls_one_way.sh: the call graph between the files of a folder is acyclic, so the files can be read from the ground up.
# The symbols that an object leaves undefined, and the object that defines each, say who calls whom.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh

one_way() { # FOLDER
    local f
    local -a objects=()
    for f in "$1"/*.c; do objects+=("$BUILD/obj/${f%.c}.o"); done
    nm -gPA "${objects[@]}" >"$scratch/symbols" || { not_ok "calls in $1 go one way" "an object cannot be read" && return; }
    awk '{ sub(/.*\//, "", $1); sub(/\.o:$/, ".c", $1) }
        $3 == "U" { wanted[$1, $2] } $3 != "U" { home[$2] = $1 }
        END { for (w in wanted) { split(w, part, SUBSEP); if (part[2] in home) print part[1], home[part[2]] } }' \
        "$scratch/symbols" | sort -u >"$scratch/calls"
    if tsort "$scratch/calls" >/dev/null 2>"$scratch/loop"; then
        ok "calls in $1 go one way"
    else
        not_ok "calls in $1 go one way" "files that call each other: $(sed -n 's/^tsort: \([a-z0-9_]*\.c\)$/\1/p' "$scratch/loop" | sort -u | tr '\n' ' ')"
    fi
}
for folder in gen runtime runtime/*/ tools/*/ trainer/*/; do
    one_way "${folder%/}"
done
finish

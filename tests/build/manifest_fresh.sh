#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# manifest_fresh.sh: blobs/MANIFEST, the committed record of registers, shared memory, spills and code, is what this tree
# builds: line by line for the ops and archs of $BUILD. Code by another ptxas differs, so of an arch that another one assembled only
# the pairs of key and arch are compared.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
record=blobs/MANIFEST
built=$BUILD/pack/MANIFEST
releases() { awk '/^# ptxas / { for (i = 4; i <= NF; i++) print $i, $3 }' "$1" | sort; } # FILE: lines of arch and release
releases "$record" >"$scratch/releases"
releases "$built" >"$scratch/built-releases"
same=$(comm -12 "$scratch/releases" "$scratch/built-releases" | cut -d' ' -f1)
while read -r arch release; do
    said=$(sed -n "s/^$arch //p" "$scratch/releases")
    [ "$said" = "$release" ] || [ -z "$said" ] || skip "the code of $arch is that of blobs/MANIFEST" "it was assembled by ptxas $release, that of $record by $said"
done <"$scratch/built-releases"

# lines FILE OTHER COLUMN...: the lines of FILE whose value in each COLUMN is in that column of OTHER, too; key and arch alone where
# the releases are not the same.
lines() {
    awk -v columns="${*:3}" -v same="$(tr '\n' ' ' <<<"$same")" 'BEGIN {
            n = split(columns, c)
            for (i = split(same, s, " "); i > 0; i--) whole[s[i]] = whole[s[i] "-O1"] = 1
        }
        /^#/ { next }
        FNR == NR { for (i = 1; i <= n; i++) seen[i, $c[i]] = 1; next }
        { for (i = 1; i <= n; i++) if (!((i, $c[i]) in seen)) next; print ($2 in whole) ? $0 : $1 " " $2 }' "$2" "$1"
}
only=$(sed 's|.*/ *||' "$BUILD/stamp/gen") # the setting: empty for all ops
lines "$record" "$built" 2 ${only:+1} >"$scratch/recorded"
lines "$built" "$record" 2 >"$scratch/built"
if diff -u "$scratch/recorded" "$scratch/built" >"$scratch/diff"; then
    ok "blobs/MANIFEST is what this tree builds"
else
    not_ok "blobs/MANIFEST is what this tree builds" "$record is not of this tree; look at the difference, then (all archs): make manifest"
    cat "$scratch/diff"
fi
named() { cut -d' ' -f2 "$record" | sed -n 's/^\(sm_[0-9]*[af]*\).*/\1/p' | sort -u | cmp - <(cut -d' ' -f1 "$scratch/releases"); }
succeeds "blobs/MANIFEST names the ptxas of every arch" named
finish

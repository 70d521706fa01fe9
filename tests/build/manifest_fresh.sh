#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# manifest_fresh.sh: blobs/MANIFEST, the committed record of registers, shared memory, spills and code, is what this tree
# builds: line by line for the ops and archs of $BUILD. Code by another ptxas differs, so then only its pairs of key and
# arch are compared.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
record=blobs/MANIFEST
built=$BUILD/pack/MANIFEST
[ "$(sed -n 1p "$built")" = "$(sed -n 1p "$record")" ] && columns=1- || columns=1,2

# lines FILE OTHER COLUMN...: the lines of FILE whose value in each COLUMN is in that column of OTHER, too.
lines() {
    awk -v columns="${*:3}" 'BEGIN { n = split(columns, c) }
        /^#/ { next }
        FNR == NR { for (i = 1; i <= n; i++) seen[i, $c[i]] = 1; next }
        { for (i = 1; i <= n; i++) if (!((i, $c[i]) in seen)) next; print }' "$2" "$1" | cut -d' ' -f$columns
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
finish

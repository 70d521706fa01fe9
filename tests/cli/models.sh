#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# models.sh: `nojit models` prints the table of families that docs/models.md has.
set -eu
. tests/lib/lib.sh
"$BUILD/nojit" models >"$scratch/table"
grep -A100 -F "$(head -n 1 "$scratch/table")" docs/models.md | head -n "$(wc -l <"$scratch/table")" >"$scratch/docs"
succeeds "docs/models.md has the table that nojit models prints" diff "$scratch/docs" "$scratch/table"
rows=$(($(wc -l <"$scratch/table") - 2)) # without its head
"$BUILD/nojit" models --json >"$scratch/json"
ok_if "models --json has an object for each row of the table" "$(head -c 200 "$scratch/json")" [ "$(grep -c '^{"models": ' "$scratch/json")" = "$rows" ]
finish

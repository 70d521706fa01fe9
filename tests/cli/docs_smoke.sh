#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# docs_smoke.sh: the smoke run of docs/dgx-spark.md, as it is written there, on the CPU.
set -eu
. tests/lib/lib.sh
export OMP_WAIT_POLICY=passive
page=$PWD/docs/dgx-spark.md
sed -n '/^## A smoke run/,/^## /{/^```/,/^```/p}' "$page" | grep -v '^```' | sed 's/--device cuda/--device cpu/' >"$scratch/run.sh"
ln -s "$(realpath "$BUILD/nojit")" "$scratch/nojit"
cd "$scratch"
if [ "$(grep -c -- '--device cpu' run.sh)" = 1 ] && bash -eu run.sh >out 2>&1 && [ "$(tail -n 1 out)" = passed ]; then
    ok "the smoke run passes"
else
    not_ok "the smoke run passes" "$(tail -n 3 out)"
fi
sed -i 's/"final_loss": /&9/' smoke/run/receipt.json
if sed -n '/^awk/,$p' run.sh | bash -eu >out 2>&1 || grep -q passed out; then
    not_ok "the smoke run fails where the loss rises" "$(cat out)"
else
    ok "the smoke run fails where the loss rises"
fi
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# lm_eval_tasks.sh: nojit eval --tasks beside lm-evaluation-harness itself, item for item. PYTHON: an interpreter with the PyPI package
# lm_eval[hf] (0.4.13); where it is absent the test is skipped, and cli_tasks.sh compares with what the harness said before.
set -eu
. tests/lib/lib.sh
python=${PYTHON:-python3}
if ! "$python" -c 'import lm_eval, torch, transformers' 2>"$scratch/log"; then
    skip "everything" "$(tail -n 1 "$scratch/log" | cut -c 1-100); name a PYTHON with PyPI's lm_eval[hf]"
    finish
    exit
fi
"$python" tests/golden/make_tasks.py check "$BUILD/nojit" >"$scratch/verdicts" 2>"$scratch/err" || true
while IFS= read -r line; do
    case $line in
    "ok "*) ok "lm-evaluation-harness agrees on ${line#ok }" ;;
    *) not_ok "lm-evaluation-harness agrees on ${line%%: *}" "${line#*: }" ;;
    esac
done <"$scratch/verdicts"
if [ -s "$scratch/verdicts" ]; then ok "lm-evaluation-harness ran items"; else not_ok "lm-evaluation-harness ran items" "$(tail -n 3 "$scratch/err")"; fi
finish

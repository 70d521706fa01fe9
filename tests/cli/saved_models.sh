#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# saved_models.sh: what nojit saves is loaded by transformers and PEFT with equal logits, in every family and form, and what these save is
# read here with equal logits; tests/lib/saved_models.py has the models, the forms and the tolerance. If it fails, a folder, adapter,
# file or tokenizer that nojit wrote is another model elsewhere. PYTHON: an interpreter with the PyPI packages torch (2.15), transformers
# (5.24), peft (0.21) and gguf (0.19); where they are absent the test is skipped.
set -eu
. tests/lib/lib.sh
python=${PYTHON:-python3}
if ! "$python" -c 'import gguf, peft, torch, transformers' 2>"$scratch/log"; then
    skip "everything" "$(tail -n 1 "$scratch/log" | cut -c 1-100); name a PYTHON with PyPI's torch, transformers, peft and gguf"
    finish
    exit
fi
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 TRANSFORMERS_VERBOSITY=error HF_HUB_OFFLINE=1
mkdir "$scratch/work"
got=0
"$python" tests/lib/saved_models.py "$BUILD" "$scratch/work" >"$scratch/verdicts" 2>"$scratch/err" || got=$?
while IFS= read -r line; do
    case $line in
    "ok "*) ok "${line#ok }" ;;
    "skip "*) line=${line#skip } && skip "${line%%: *}" "${line#*: }" ;;
    *) line=${line#FAIL } && not_ok "${line%%: *}" "${line#*: }" ;;
    esac
done <"$scratch/verdicts"
ok_if "all forms were tried" "$(tail -n 3 "$scratch/err")" [ "$got" = 0 ]
finish

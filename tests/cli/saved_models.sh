#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# saved_models.sh: what nojit saves is loaded by transformers and PEFT with equal logits, in every family and form, and what these save is
# read here with equal logits; tests/lib/saved_models.py has the models, the forms and the tolerance. If it fails, a folder, adapter,
# file or tokenizer that nojit wrote is another model elsewhere. PYTHON: an interpreter with the PyPI packages torch (2.15), transformers
# (5.24), peft (0.21) and gguf (0.19); where they are absent the test is skipped.
set -eu
. tests/lib/lib.sh
. tests/lib/peers.sh
compare_with saved_models.py "gguf, peft, torch, transformers" "torch, transformers, peft and gguf" "all forms were tried"
finish

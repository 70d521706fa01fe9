#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# golden_blocks.sh: tests/golden/blocks.bin is what its script makes with ggml's Python package, where $PYTHON (python3) has that.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
: "${PYTHON:=python3}"
if ! "$PYTHON" -c 'import gguf' 2>/dev/null; then
    skip "tests/golden/blocks.bin is what its script makes" "$PYTHON lacks gguf"
elif "$PYTHON" tests/golden/make_blocks.py "$scratch/blocks.bin" && cmp "$scratch/blocks.bin" tests/golden/blocks.bin; then
    ok "tests/golden/blocks.bin is what its script makes"
else
    not_ok "tests/golden/blocks.bin is what its script makes" "they differ"
fi
finish

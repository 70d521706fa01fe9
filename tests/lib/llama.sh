# SPDX-License-Identifier: Apache-2.0
#
# llama.sh: for tests beside a real llama.cpp: llama_cpp COMMAND... runs tests/lib/llama_cpp.py. PYTHON: an interpreter with the PyPI
# packages xllamacpp (2026.10.11549), gguf (0.19.0) and numpy; where they are absent the test that reads this is skipped.
python=${PYTHON:-python3}
if ! "$python" -c 'import gguf, numpy, xllamacpp' 2>"$scratch/log"; then
    skip "everything" "$(tail -n 1 "$scratch/log" | cut -c 1-100); name a PYTHON with PyPI's xllamacpp and gguf"
    finish
    exit
fi
llama_cpp() { "$python" tests/lib/llama_cpp.py "$@"; }

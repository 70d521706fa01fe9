# SPDX-License-Identifier: Apache-2.0
#
# llama.sh: for tests beside a real llama.cpp: llama_cpp COMMAND... runs tests/lib/llama_cpp.py. PYTHON: an interpreter with the PyPI
# packages xllamacpp, gguf and numpy; without one a venv is made in the build folder, and where that cannot be had the test
# that reads this is skipped.
kept=$BUILD/llama_cpp
python=${PYTHON:-$kept/venv/bin/python}
has_packages() { "$python" -c 'import gguf, numpy, xllamacpp' 2>/dev/null; }
fetch() { # by one test at a time
    mkdir -p "$kept"
    (
        flock 9
        has_packages && exit
        [ -x "$python" ] || python3 -m venv "$kept/venv" || exit
        timeout 300 "$python" -m pip install -q numpy gguf==0.19.0 xllamacpp==2026.10.11549
    ) 9>"$kept/lock"
}
if ! has_packages && { [ -n "${PYTHON:-}" ] || ! fetch >"$scratch/log" 2>&1 || ! has_packages; }; then
    skip "everything" "PyPI's xllamacpp and gguf are not installed: $(tail -n 1 "$scratch/log" 2>/dev/null | cut -c 1-100)"
    finish
    exit
fi
llama_cpp() { "$python" tests/lib/llama_cpp.py "$@"; }

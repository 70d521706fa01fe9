#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tidy.sh [COMMIT]: clang-tidy over the C code but the tests, all or what changed since COMMIT, with the commands of
# compile_commands.json (`make compdb`). Fails if it finds anything (.clang-tidy); the compiler's warnings are another matter. Where
# there is no clang-tidy 14, says so.
set -eu
export LC_ALL=C
if ! command -v clang-tidy-14 >/dev/null 2>&1; then
    echo "tidy: skipped, since clang-tidy-14 is not installed (make setup installs it)"
    exit
fi
{ if [ -n "${1-}" ]; then git diff --name-only --diff-filter=d "$1"; else git ls-files; fi; } | grep '\.c$' | grep -v '^tests/\|^examples/' |
    grep -Fxf <(grep -oE '"file": "[^"]+' compile_commands.json | cut -d '"' -f 4) |
    xargs -r -P "$(nproc)" -n 8 clang-tidy-14 -p . --quiet --extra-arg=-Wno-error 2>/dev/null

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# record.sh: writes tests/record.txt after `make test-all` has passed: at which commit, and the CPU seconds and seconds of each test, by which
# tests/run.sh orders them and scripts/lint.sh keeps `make check` quick.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
: "${BUILD:=build}"
changed=$(git status --porcelain -- . ':!tests/record.txt')
{
    echo "# SPDX-License-Identifier: Apache-2.0"
    echo "# make test-all passed at commit $(git rev-parse --short=12 HEAD)${changed:+ with changes}, on $(date -u +%Y-%m-%d), $(nproc) processors ($(uname -m))."
    echo "# CPU seconds and seconds of each test:"
    sort "$BUILD/test-times" | awk '{ printf "%-28s %6.1f %6.1f\n", $1, $2, $3 }'
} >tests/record.txt.new
mv tests/record.txt.new tests/record.txt

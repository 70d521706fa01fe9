#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# coverage.sh BUILD: which lines of gen, runtime, tools and trainer the tests without a GPU run. Builds with gcc --coverage in
# BUILD-coverage, with the machine code of BUILD, runs tests/run.sh quick there, prints lines run by file (lowest first) and by
# folder, and fails under MINIMUM percent of all, or if a test fails. What cannot run without a GPU counts as not run.
set -eu
export LC_ALL=C
: "${MINIMUM:=90}"
from=${1:?usage: coverage.sh BUILD}
build=$from-coverage
say() { echo "coverage: $*" >&2; }
command -v gcov >/dev/null 2>&1 && gcc --version >/dev/null 2>&1 || {
    say "gcc and its gcov are needed: apt-get install gcc"
    exit 1
}

mkdir -p "$build"
cp -a "$from"/setup.mk "$from"/stamp "$from"/gen "$from"/unit "$from"/ptx "$from"/cubin "$from"/fatbin "$build"
[ ! -e "$from/spare" ] || cp -a "$from/spare" "$build"
make --no-print-directory B="$build" CC=gcc COVERAGE=1 CFLAGS='-O1 -g' programs
find "$build" -name '*.gcda' -delete # what the build itself ran
tests=0
BUILD=$build tests/run.sh quick || tests=$?

# gcov's text: COUNT:LINE:SOURCE, where COUNT is - for no code and ##### or ===== for not run. A header is in many objects.
find "$build"/obj/{gen,runtime,tools,trainer} -name '*.gcno' -print0 | sort -z | xargs -0 gcov --stdout 2>"$build/gcov.log" |
    awk -F: -v minimum="$MINIMUM" '
    { count = $1; gsub(/[ *]/, "", count); line = $2 + 0 }
    line == 0 { if ($3 == "Source") { file = $4; sub(/^\.\//, "", file) } next }
    count == "-" || file !~ /^(gen|runtime|tools|trainer)\// { next }
    { at = file SUBSEP line; ran[at] = ran[at] || count !~ /^[#=]+$/ }
    END {
        for (at in ran) {
            split(at, part, SUBSEP)
            folder = part[1]; sub(/\/[^\/]*$/, "", folder)
            lines[part[1]]++; lines[folder "/"]++; lines["all"]++
            got[part[1]] += ran[at]; got[folder "/"] += ran[at]; got["all"] += ran[at]
        }
        for (name in lines) {
            rank = name == "all" ? 3 : name ~ /\/$/ ? 2 : 1
            printf "%d %6.2f %% %6d of %6d lines  %s\n", rank, 100 * got[name] / lines[name], got[name], lines[name], name | "sort -n"
        }
        close("sort -n")
        exit 100 * got["all"] < minimum * lines["all"]
    }' >"$build/coverage.txt" || { sed 's/^. //' "$build/coverage.txt"; say "under $MINIMUM % of the lines ran"; exit 1; }
sed 's/^. //' "$build/coverage.txt"
exit "$tests"

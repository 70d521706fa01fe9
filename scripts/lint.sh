#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# lint.sh: what the tree must keep to: sizes, layers, banned calls, white space, licence lines, clang-format, shellcheck. A line
# per fault.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit
faults=0
say() {
    echo "lint: $*"
    faults=$((faults + 1))
}
each() { # MESSAGE, then lines on standard input
    local line
    while IFS= read -r line; do say "$1: $line"; done
}
files() { git ls-files --cached --others --exclude-standard -- "$@"; }
code=$(files '*.c' '*.h' '*.def' '*.cu' '*.cuh' '*.comp' '*.glsl' '*.sh' '*.mk' Makefile)

each "trailing white space (sed -i 's/[[:blank:]]*\$//' FILE)" < <(grep -nE '[[:blank:]]+$' $code /dev/null | cut -d: -f1,2)
each "tab in C" < <(grep -nP '\t' $(files '*.c' '*.h' '*.cu' '*.cuh' '*.comp' '*.glsl') /dev/null | cut -d: -f1,2)
each "no newline at the end (echo >>FILE)" < <(for f in $code; do [ -z "$(tail -c 1 "$f")" ] || echo "$f"; done)
each "no SPDX line (SPDX-License-Identifier: Apache-2.0, in a comment at the top)" < <(grep -LE 'SPDX-License-Identifier: Apache-2.0' $code)
each "a script that follows the locale (export LC_ALL=C, or a lib.sh that does)" < <(
    grep -lE '^#!.*sh' $(files '*.sh' .ci/run) | xargs grep -LE '^(export LC_ALL=C|\. (tests/lib|bench)/lib\.sh)')
each "over 600 lines (split it)" < <(wc -l $code | awk '$1 > 600 && $2 != "total" { print $2 " has " $1 }')
each "line over 120 columns" < <(awk 'length($0) > 120 { print FILENAME ":" FNR }' $(files '*.c' '*.h' '*.cu' '*.cuh' '*.comp' '*.glsl'))
each "function over 80 lines" < <(awk '
    FNR == 1 { start = 0 }
    /^\{/ { start = FNR }
    /^\}/ { if (start && FNR - start > 81) print FILENAME ":" start " (" FNR - start - 1 " lines)"; start = 0 }
    ' $(files '*.c' '*.cu' '*.cuh' '*.comp' '*.glsl'))
each "runtime must not exit, print or assert" < <(
    grep -nE '\b(_?exit|_Exit|abort|v?d?printf|puts|putchar|perror|assert)\(|\bstd(out|err)\b|\bSTD(OUT|ERR)_' $(files 'runtime/*.[ch]') /dev/null)
each "unbounded string call" < <(grep -nE '\b(strcpy|strcat|sprintf|gets|atoi|atof)\(' $(files '*.c') /dev/null)
rooms=$(scripts/rooms.sh) || exit
each "an include of the trainer, from below it" < <(grep -nE "^#include \"(${rooms// /|})/" \
    $(files 'gen/*.[ch]' 'runtime/*.[ch]' 'kernels/*' 'bench/kbench*' 'examples/*') /dev/null)
# Each room of trainer/ includes those before it alone: docs/architecture.md. tests/build/rooms.sh looks at symbols.
each "an include that runs up" < <(awk -v rooms="$rooms" '
    BEGIN { n = split(rooms, room, " "); for (i = 1; i <= n; i++) floor[room[i]] = i }
    /^#include "[a-z]+\// {
        split(FILENAME, own, "/"); split($2, other, /["\/]/)
        if (floor[other[2]] > floor[own[2]]) print FILENAME ":" FNR " " $2
    }' $(files 'trainer/*.[ch]'))
each "an engine that knows a source of batches (batch/source.h is enough)" < <(
    grep -nE '^#include "batch/' $(files 'trainer/state/*' 'trainer/step/*' 'trainer/engine/*') /dev/null | grep -vE '"batch/(batch\.(h|def)|source\.h)"')
each "a source of batches that knows ranks (batch/dealt.c stands between)" < <(
    grep -nE '^#include "ranks/' $(files 'trainer/batch/*' ':!trainer/batch/dealt.*') /dev/null)
each "a file outside the rooms" < <(files 'trainer/*' | awk -F/ 'NF != 3')
each "an include of base/, which stands below all" < <(grep -nE '^#include "' $(files 'base/*') /dev/null | grep -v '"base/')
each "gen includes the runtime" < <(grep -nE '#include "(nojit|internal)\.h"' $(files 'gen/*') /dev/null)
# The error idiom of CONTRIBUTING.md, "Style".
idiom='trainer runtime tools gen'
each "another idiom of errors (TRY, rc == 0 and rc != 0: CONTRIBUTING.md)" < <(grep -nE '\berr\b( [=!]=? |[;,)])|!(rc|err)\b|\bNJ_OK\b|\((rc|err)\)$|\b(return|=) rc \?' \
    $(for room in $idiom; do files "$room/*.[ch]" ':!runtime/nojit.h'; done) /dev/null)
each "bare arithmetic where memory is carved (use checked.h)" < <(awk '
    /^\{/ { inside = 1; carves = 0; found = "" }
    /^\}/ { if (inside && carves) printf "%s", found; inside = 0 }
    inside {
        line = comment ? "" : $0
        comment = comment ? !/\*\// : /\/\*/ && !/\*\//
        sub(/\/\*.*/, "", line)
        if (line ~ /(carve_take|plan_add|fp8_rows|host_region|[^_a-z]region)\(/) carves = 1
        if (line ~ / [-+*]=? /) found = found FILENAME ":" FNR "\n"
    }' $(files 'trainer/*.c'))
each "left to do" < <(grep -nE '\b(TODO|FIXME|XXX)\b|^#if 0' $code /dev/null | grep -v '^scripts/lint.sh')
each "a kernel key outside the contracts" < <(grep -nE '"[a-z_0-9]+\.(lp|f32)(\.d[0-9]+)?"' $(files 'trainer/*.c' 'runtime/*.c') /dev/null)
each "a test of make check that took more than 5 CPU seconds (give it a row in tests/tiers.txt)" < <(awk '
    FNR == NR { tier[$1] = 1; next } !/^#/ && $2 > 5 && !($1 in tier) { print $1 " " $2 }' tests/tiers.txt tests/record.txt)
each "a test that tests/changed.txt names and nobody has" < <(awk '
    FNR == NR { known[$1] = 1; next } !/^#/ { for (i = 2; i <= NF; i++) if (!($i in known)) print $i }
    ' <(files 'tests/*.c' 'tests/*.sh' | sed 's,.*/,,; s/\.[a-z]*$//'; printf '%s\n' harness-selftest) tests/changed.txt)
# Comments are sentences: that of a function begins with its verb, that of a field is a noun phrase with its noun. The folders that keep to it:
sentences=(mk tools bench scripts gen runtime trainer base kernels examples tests/unit tests/simgpu tests/harness tests/lib tests/device tests/fuzz)
each "a comment that begins with a relative clause (say what it does, or name the thing)" < <(
    comment='(Of|What|Where|Those|Whose|Whoever|As of)[[:space:]]'
    grep -nE "(/\*|//|#|\"\"\") *$comment" $(files "${sentences[@]}" ':!*/corpus/*' ':!scripts/lint.sh') /dev/null
    c_files=$(for folder in "${sentences[@]}"; do files "$folder/*.[ch]" "$folder/*.cu" "$folder/*.cuh" "$folder/*.comp" "$folder/*.glsl"; done)
    grep -niE "(/\*+|[;,{})] +//) *$comment" $c_files /dev/null | grep -vE "(/\*+|//) *$comment"
    awk 'FNR == 1 { last = "" }
        /^(\/\*+|\/\/) *(As|At|By|False|For|From|True|Whether|With) / && !(/^\/\// && last ~ /^\/\//) { print FILENAME ":" FNR ":" $0 }
        { last = $0 }' $c_files)
here() { command -v "$1" >/dev/null 2>&1 || { echo "lint: $1 is not installed (make setup installs it): its checks are skipped"; false; }; }
# The field's words, in pages (outside of code), help, messages and claims: WORDS=WHAT TO WRITE.
words='matrix products?=GEMM
copy engine=TMA
rounded at random=stochastic rounding
masters=master weights
heads of (64|128)=head_dim 64
turned back=inverse RoPE
multiprocessors?=SM
first choices?=top-1 agreement
waits? for memory=memory-bound
copy speed=copy bandwidth
planted faults?=mutation
the same bits=bitwise identical
mailbox=pinned staging buffer
deadline=watchdog
multipl(y|ies) e4m3=FP8 (E4M3) GEMMs
half-written=partial
(go|goes|going|went) on=continue, resume
(nats|bytes|bits|tokens|ms|instructions|numbers?) an? (token|step|second|parameter|byte|update|epoch|layer|row|id)=per'
prose=$(
    awk 'FNR == 1 { code = 0 } /^ *```/ { code = !code; next } !code && !/^    / { gsub(/`[^`]*`/, "`"); print FILENAME ":" FNR ": " $0 }' \
        $(files '*.md' ':!CHANGELOG.md')
    grep -nE '".*"' trainer/options/*.def
    grep -noE '"[^"]{6,}"' $(files 'trainer/*.c' 'runtime/*.c' 'gen/*.c' 'tools/*.c' 'bench/*.c')
    grep -noE '"[^"]{6,}"' $(files 'scripts/*.sh' 'bench/*.sh' ':!scripts/lint.sh')
    grep -nE '\b(summary|claim|open|doc): ' $(files 'contracts/*.yaml')
)
while IFS='=' read -r word better; do
    each "write '$better'" < <(grep -iE ":.*\b($word)\b" <<<"$prose" | cut -c 1-160)
done <<<"$words"
if here clang-format-14; then
    format() { # FILE...: prints those that clang-format would change
        local f as
        for f; do
            as=${f/%.comp/.c}
            clang-format-14 --assume-filename="${as/%.glsl/.c}" <"$f" | cmp -s - "$f" || echo "$f"
        done
    }
    export -f format
    each "clang-format differs (clang-format-14 -i FILE)" < <(
        files '*.c' '*.h' '*.cu' '*.cuh' '*.comp' '*.glsl' | xargs -P "$(nproc)" -n 40 bash -c 'format "$@"' format)
fi
if here shellcheck; then
    each "shellcheck" < <(files '*.sh' .ci/run | xargs -P "$(nproc)" -n 8 shellcheck -f gcc)
fi
[ "$faults" = 0 ] || { echo "lint: $faults faults"; exit 1; }

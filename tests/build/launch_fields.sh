#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# launch_fields.sh: a launch names every field of its struct but the optional pointers. A required pointer that is left out is
# refused when it runs; a size or a factor would be 0.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh

# left_out FILE...: "FILE: struct nj_OP lacks FIELD" for each
left_out() {
    awk '
        FNR == 1 { file++ }
        file == 1 && /^struct nj_[a-z0-9_]+ \{/ { op = $2 }
        file == 1 && /^    \/\*/ { about = "" }
        file == 1 { about = about " " $0 }
        file == 1 && op != "" && /^    [^\/*].*;$/ {
            field = $NF
            gsub(/[*;]/, "", field)
            if (about !~ /\] or NULL[,:]/)
                needed[op] = needed[op] " " field
            about = ""
        }
        file == 1 && /^};/ { op = "" }
        file == 1 { next }
        FNR == 1 { check() }
        { name = FILENAME; text = text " " $0 }
        END { check() }
        function check(  at, depth, i, c, given, op, count, want) {
            while (match(text, /\(struct nj_[a-z0-9_]+\)[ ]*\{/)) {
                op = substr(text, RSTART + 8, RLENGTH)
                sub(/\).*/, "", op)
                text = substr(text, RSTART + RLENGTH)
                given = ","
                depth = 1
                for (i = 1; depth > 0 && i <= length(text); i++) {
                    c = substr(text, i, 1)
                    depth += (c ~ /[{(\[]/) - (c ~ /[})\]]/)
                    if (depth == 1 && c ~ /[^ ]/)
                        given = given c
                }
                count = split(needed[op], want, " ")
                for (i = 1; i <= count; i++)
                    if (!index(given, ",." want[i] "="))
                        print name ": struct " op " lacks " want[i]
            }
            text = ""
        }' "$BUILD/gen/nojit_ops.h" "$@"
}

mapfile -t launching < <(grep -lE '\(struct nj_[a-z0-9_]+\)\{' trainer/*/*.c bench/*.c)
lacking=$(left_out "${launching[@]}")
ok_if "every launch of the trainer names all that its op needs" "$lacking" [ -z "$lacking" ]

printf 'f(s, &(struct nj_gemv_add){.s = a(1, 2), .x = b,\n    .N = n, .K = k, .scale = 1});\n' >"$scratch/one.c"
printf 'f(s, &(struct nj_add){.y = y, .a = a, .b = b, .n = n});\n' >"$scratch/two.c"
ok_if "a launch without a pointer that its op needs is found" "it is not" [ "$(left_out "$scratch/one.c" "$scratch/two.c")" = "$scratch/one.c: struct nj_gemv_add lacks w" ]
sed -i 's/, \.n = n//' "$scratch/two.c"
ok_if "a launch without a size is found" "it is not" [ "$(left_out "$scratch/two.c")" = "$scratch/two.c: struct nj_add lacks n" ]
echo '(struct nj_gemv_norm){.y = y, .x = x, .g = g, .w = w, .N = n, .C = c, .ld = n, .eps = e, .offset = 0}' >"$scratch/three.c"
ok_if "an optional pointer may be left out" "it is asked for" [ -z "$(left_out "$scratch/three.c")" ]
finish

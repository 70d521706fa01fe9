#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# assembler.sh LEAST FOLDER...: the first of these folders of CUDA whose bin/ptxas is of release LEAST (13.3.73) or newer, and that
# release, as `FOLDER RELEASE`. Prints nothing where there is none.
export LC_ALL=C
least=${1:?usage: assembler.sh LEAST FOLDER...}
shift
for folder; do
    [ -n "$folder" ] || continue
    release=$("$folder/bin/ptxas" --version 2>/dev/null | sed -n 's/.*, V\([0-9.]*\)$/\1/p')
    if [ -n "$release" ] && [ "$(printf '%s\n' "$least" "$release" | sort -V | head -n 1)" = "$least" ]; then
        echo "$folder $release"
        exit
    fi
done

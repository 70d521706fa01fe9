#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# compdb.sh: reads what make would run, a command per line, and prints compile_commands.json: an entry for each C file (the first,
# where several objects are made of one). Make quotes nothing that JSON would have to escape but quotes and backslashes.
set -eu
export LC_ALL=C
escape() { sed 's/[\\"]/\\&/g'; }
folder=$(pwd -P | escape)
awk '/ -c -o [^ ]+\.o [^ ]+\.c$/ && !seen[$NF]++' | escape | awk -v folder="$folder" '
    { printf "%s\n {\"directory\": \"%s\", \"file\": \"%s\", \"command\": \"%s\"}", NR == 1 ? "[" : ",", folder, $NF, $0 }
    END { print NR ? "\n]" : "[]" }'

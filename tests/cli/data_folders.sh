#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# data_folders.sh: which files of a folder are data: commands say which they pass over, read those that are named, and write nothing into
# a folder that they read, as the next run would train on it.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive
"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
head -c 6000 /usr/share/common-licenses/GPL-3 >"$d/a.txt"
train() { # OUT, options...
    local out=$d/$1
    shift
    "$nojit" train --student "$d/student" --out "$out" --seq-len 32 --batch-size 2 --device cpu "$@" >"$scratch/said" 2>&1
}
says() { # NAME REGEX
    if grep -qE -- "$2" "$scratch/said"; then ok "$1"; else not_ok "$1" "no '$2' in: $(cat "$scratch/said")"; fi
}

# ---- an output among the data would be read as data by the next run
mkdir -p "$d/texts/deep" "$d/other"
cp "$d/a.txt" "$d/texts"
ln -s texts "$d/link"
inside() { # NAME OPTION-IN-THE-SENTENCE OUT OPTIONS...
    local name=$1 option=$2 out=$3
    shift 3
    for command in train distill; do
        refuses "$command refuses --out where $name" 2 "^nojit $command: --out $out lies in .*, which $option reads, so .*; name a place outside of it\$" \
            "$nojit" $command --student "$d/student" --device cpu --seq-len 32 --steps 2 --out "$out" "$@" \
            $([ $command = train ] || echo --teacher "$d/student")
    done
    if [ "$(find "$d/texts" "$d/other" | wc -l)" = 4 ]; then ok "nothing is written where $name"; else not_ok "nothing is written where $name" "$(find "$d/texts" "$d/other")"; fi
}
inside "it is the folder of --data" --data "$d/texts" --data "$d/a.txt" "$d/texts"
inside "it lies in the folder of --data" --data "$d/texts/deep/run" --data "$d/texts/"
inside "it lies in the folder of --data by another name" --data "$d/link/run" --data "$d/texts"
inside "it lies in the folder of --eval-data" --eval-data "$d/other/run" --data "$d/a.txt" --eval-data "$d/other"
inside "it lies in a folder that a pattern of --data names" --data "$d/texts/run" --data "$d/text*"
inside "it lies in the folder of --data of a dry run" --data "$d/texts/run" --data "$d/texts" --dry-run
refuses "tokenize refuses --out in the folder of --data" 2 '^nojit tokenize: --out .*/texts/t.bin lies in .*, which --data reads' \
    "$nojit" tokenize --model "$d/student" --data "$d/texts" --out "$d/texts/t.bin"
if [ -e "$d/texts/t.bin" ]; then not_ok "a refused tokenize leaves no file among the data" "they are there"; else ok "a refused tokenize leaves no file among the data"; fi
train beside --steps 1 --data "$d/texts/a.txt" --out "$d/texts/run"
if [ -f "$d/texts/run/model.safetensors" ]; then ok "--out may lie beside a file of --data"; else not_ok "--out may lie beside a file of --data" "$(cat "$scratch/said")"; fi

# ---- what a folder holds beside data
mkdir "$d/heap"
cp "$d/a.txt" "$d/heap"
for name in README.md notes.md run.py LICENSE .hidden; do echo text >"$d/heap/$name"; done
over='^4 files skipped \(without an ending 1, [.]md 2, [.]py 1\); name a file to have it read as text$'
train folder --steps 1 --data "$d/heap"
says "train says which files it passes over" "$over"
"$nojit" tokenize --model "$d/student" --data "$d/heap" --out "$d/heap.bin" >"$scratch/said" 2>&1
says "tokenize says which files it passes over" "$over"
"$nojit" eval --model "$d/student" --data "$d/heap" --device cpu --seq-len 32 >"$scratch/said" 2>&1
says "eval says which files it passes over" "$over"
train named --steps 1 --data "$d/heap/a.txt" "$d/heap/LICENSE" "$d/heap/notes.md" "$d/heap/run.py"
says "files that are named are read whatever their ending" '; 6019 tokens of text;'
finish

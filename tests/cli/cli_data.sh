#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cli_data.sh: --data-weights and --packing do what they say, are said and written down, refuse what cannot be, and a resumed run
# goes on with them bit for bit.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive

"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
head -c 6000 /usr/share/common-licenses/GPL-3 >"$d/a.txt"
head -c 3000 /usr/share/common-licenses/LGPL-3 >"$d/b.txt"
for i in $(seq 90); do # documents of 1 to 46 letters
    printf '{"text": "%s"}\n' "$(head -c $((i / 2 + 1)) "$d/a.txt" | tr -c 'a-zA-Z' '-')"
done >"$d/c.jsonl"
train() { # OUT, options...
    local out=$d/$1
    shift
    "$nojit" train --student "$d/student" --out "$out" --seq-len 32 --batch-size 2 --device cpu "$@" >"$scratch/said" 2>&1
}
says() { # NAME REGEX
    if grep -qE -- "$2" "$scratch/said"; then ok "$1"; else not_ok "$1" "no '$2' in: $(cat "$scratch/said")"; fi
}
holds() { # NAME FILE LINE-REGEX
    if grep -qE -- "$3" "$d/$2"; then ok "$1"; else not_ok "$1" "no '$3' in: $(cat "$d/$2")"; fi
}
same() { # NAME yes|no OUT OUT: whether two runs have the same weights
    local got=no
    if cmp -s "$d/$3/model.safetensors" "$d/$4/model.safetensors"; then got=yes; fi
    if [ "$got" = "$2" ] && [ -f "$d/$3/model.safetensors" ]; then ok "$1"; else not_ok "$1" "the same weights: $got"; fi
}
refused() { # NAME REGEX OPTIONS...
    local name=$1 pattern=$2
    shift 2
    refuses "$name" 2 "$pattern" "$nojit" train --student "$d/student" --out "$d/bad" --steps 2 --device cpu --seq-len 32 "$@"
    if [ -e "$d/bad" ]; then not_ok "$name" "it wrote $d/bad"; fi
}

# ---- sources
train plain --steps 3 --data "$d/a.txt" "$d/b.txt"
if grep -qE '^(source|packing) ' "$scratch/said"; then not_ok "nothing is said of the sources of one stream" "$(cat "$scratch/said")"; else ok "nothing is said of the sources of one stream"; fi
train mixed --steps 3 --data "$d/a.txt" "$d/b.txt" --data-weights 0.25,0.75
# 6001 and 3001 tokens: 187 and 93 rows of 32
says "a source is said with its tokens and its share" '^source .*/a.txt: 6001 tokens; 70 of 280 sequences per epoch \(25.00 %\)$'
says "a second source is said with its tokens and its share" '^source .*/b.txt: 3001 tokens; 210 of 280 sequences per epoch \(75.00 %\)$'
same "--data-weights change the trained weights" no plain mixed
holds "the receipt has a source's weight" mixed/receipt.json '"weight": 0.25'
holds "the receipt has a source's rows per epoch" mixed/receipt.json '"rows_per_epoch": 210'
train listed --steps 3 --data "$d/a.txt" --data "$d/b.txt" --data_weights 1 3
same "--data-weights 1 3 are 0.25 0.75" yes mixed listed
train first --steps 3 --data "$d/a.txt"
train left-out --steps 3 --data "$d/a.txt" "$d/b.txt" --data-weights 1,0
same "a weight of 0 leaves a source out" yes first left-out
printf 'data: [%s, %s]\ndata_weights: [0.25, 0.75]\npacking: wrapped\n' "$d/a.txt" "$d/b.txt" >"$d/run.yaml"
train filed --steps 3 --config "$d/run.yaml"
same "a --config has weights as the command line has" yes mixed filed
two=(--data "$d/a.txt" "$d/b.txt" --data-weights)
refused "--data-weights for fewer paths than --data has are refused" '--data-weights: 1 for 2 paths of --data; give each path one' "${two[@]}" 1
refused "--data-weights for more paths than --data has are refused" '--data-weights: 3 for 2 paths of --data' "${two[@]}" 1,2 3
refused "a negative weight is refused" "--data-weights -2: '-2' is not a number between 0" "${two[@]}" 1 -2
refused "a weight that is no number is refused" "--data-weights 1,x: 'x' is not a number" "${two[@]}" 1,x
refused "a weight of NaN is refused" "'nan' is not a number" "${two[@]}" nan 1
refused "a weight that is missing is refused" "--data-weights 1,,2: '' is not a number" "${two[@]}" 1,,2
refused "weights that are all 0 are refused" '--data-weights: all are 0' "${two[@]}" 0 0

# ---- packing: 1 to 46 letters, 2,115 in all; 27 of the 90 documents take two rows
train wrapped --steps 3 --data "$d/c.jsonl"
train bfd --steps 3 --data "$d/c.jsonl" --packing bfd
says "--packing bfd says its rows and padding" '^packing bfd: 67 sequences of 32 tokens per epoch, 1.35 % padding$'
holds "the receipt has the padding of --packing bfd" bfd/receipt.json '"padding": 0\.01352'
train none --steps 3 --data "$d/c.jsonl" --packing none
says "--packing none says its rows and padding" '^packing none: 117 sequences of 32 tokens per epoch, 43.51 % padding$'
same "--packing bfd trains other weights than the stream" no wrapped bfd
same "--packing bfd trains other weights than one document a row" no bfd none
train true --steps 3 --data "$d/c.jsonl" --packing True
same "--packing True is bfd" yes bfd true
train strategy --steps 3 --data "$d/c.jsonl" --packing_strategy bfd
same "--packing_strategy bfd is --packing bfd" yes bfd strategy
train false --steps 3 --data "$d/c.jsonl" --packing False
same "--packing False is none" yes none false
train default --steps 3 --data "$d/c.jsonl" --packing wrapped
same "--packing wrapped is the default" yes wrapped default

# ---- going on
both=(--data "$d/c.jsonl" "$d/b.txt" --packing bfd --data-weights "2,1" --lr-schedule constant)
train whole --steps 6 "${both[@]}"
train parts --steps 3 "${both[@]}" --save-every 3
go_on() { "$nojit" train --student "$d/student" --out "$d/parts" --seq-len 32 --batch-size 2 --device cpu --steps 6 --resume auto "$@"; }
refuses "resuming with another --packing is refused" 2 'with packing bfd, this run has packing none' go_on "${both[@]}" --packing none
refuses "resuming with other --data-weights is refused" 2 'data-weights 0.666666667 0.333333333, this run has data-weights 0.5 0.5' \
    go_on --data "$d/c.jsonl" "$d/b.txt" --packing bfd --data-weights 1,1
refuses "resuming without the --data-weights of the run is refused" 2 'was made with data .*, this run has data [0-9a-f]* \(the tokens of --data differ, or their weights\); repeat' go_on --data "$d/c.jsonl" "$d/b.txt" --packing bfd
rm "$d/parts"/*.json "$d/parts/model.safetensors"
if go_on "${both[@]}" >"$scratch/said" 2>&1; then ok "a run with --packing and --data-weights is resumed"; else not_ok "a run with --packing and --data-weights is resumed" "$(cat "$scratch/said")"; fi
same "a resumed run with --packing and --data-weights has the weights of a whole one" yes whole parts
finish

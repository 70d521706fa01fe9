#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hostile_out.sh: what lies in --out before a run, times the ways to start one: a table. Files of the user, wherever a name or a link leads to,
# are as they were afterwards; a resumed run ends well whatever lies around, and says what it could not remove.
set -eu
. tests/lib/lib.sh
nojit=$(realpath "$BUILD")/nojit
box=$(realpath "$scratch")/box
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1

"$nojit" init --preset nojit-tiny --out "$scratch/student" >/dev/null
head -c 600 LICENSE >"$scratch/text.txt"
base=(timeout 60 "$nojit" train --student "$scratch/student" --data "$scratch/text.txt" --seq-len 32 --batch-size 1 --device cpu --save-every 1 --keep 2)
best=(--eval-data "$scratch/text.txt" --eval-every 1 --keep-best)
# Two runs to go on with: with a checkpoint, and without one.
"${base[@]}" "${best[@]}" --steps 3 --out "$scratch/begun" >/dev/null
rm "$scratch"/begun/{config.json,model.safetensors,receipt.json}
"${base[@]}" "${best[@]}" --steps 3 --lora-r 2 --out "$scratch/adapted" >/dev/null
rm "$scratch"/adapted/{adapter_config.json,adapter_model.safetensors,receipt.json}
mkdir "$scratch/early"
head -n 3 "$scratch/begun/metrics.jsonl" >"$scratch/early/metrics.jsonl"

# ---- states: what lies in $box/out; what is the user's holds the word
mine() { echo "precious ${1##*/} $RANDOM" >"$1"; }
own_file() { mkdir out && mine "out/$1"; }
own_folder() { mkdir -p "out/$1" && mine "out/$1/notes" && mine "out/$1/model.safetensors"; }
link_to_file() { mkdir -p out && mine victim/file && ln -s ../victim/file "out/$1"; }
link_to_folder() { mkdir -p out && mine victim/id_ed25519 && mine victim/config.json && ln -s ../victim "out/$1"; }
dangling() { mkdir -p out && ln -s ../victim/new "out/$1"; }
hard_link() { mkdir -p out && mine victim/file && ln victim/file "out/$1"; }
pipe() { mkdir -p out && mkfifo "out/$1"; }
begun() { cp -r "$scratch/begun" out; }
adapted() { cp -r "$scratch/adapted" out; }
early() { cp -r "$scratch/early" out; }
data_here() { # the data itself, under a name of a run
    mkdir out
    for i in $(seq 50); do echo "{\"text\": \"precious $i, the kettle sings before the rain\"}"; done >out/samples.jsonl
}

# ---- commands
new() { "${base[@]}" --steps 2 --out out "$@"; }
new_here() { (cd out && "${base[@]}" --steps 2 --out . "$@"); }
data_is_here() { (cd out && timeout 60 "$nojit" train --student "$scratch/student" --data samples.jsonl --seq-len 32 --batch-size 1 --device cpu --steps 1 --out .); }
auto() { "${base[@]}" "${best[@]}" --steps 5 --out out --resume auto "$@"; }
log() { new --log "out/$1"; }

whole() { # what must stay: the victim with names and modes, and every file of the user's by its content
    (cd victim && find . -printf '%p %m %l\n' | sort)
    find . -type f -exec grep -l precious {} + 2>/dev/null | sort | xargs -rd '\n' sha256sum | cut -d' ' -f1 | sort
}
row() { # STATUS REGEX STATE COMMAND: STATE and COMMAND are words
    local want=$1 pattern=$2 state=$3 command=$4 status=0 before name
    name="the user's files stay after $state; $command"
    rm -rf "$box" && mkdir -p "$box/victim"
    cd "$box"
    eval "$state"
    before=$(whole)
    eval "$command" >"$scratch/out" 2>&1 || status=$?
    cd - >/dev/null
    if [ "$(cd "$box" && whole)" != "$before" ]; then
        not_ok "$name" "the user's files differ: $(diff <(echo "$before") <(cd "$box" && whole) | head -n 3)"
    elif ! [[ $status == $want ]]; then
        not_ok "$name" "exit status $status, expected $want: $(tail -n 2 "$scratch/out")"
    elif ! grep -qE -- "$pattern" "$scratch/out"; then
        not_ok "$name" "no '$pattern' in: $(tail -n 3 "$scratch/out")"
    elif [ "$want" = 0 ] && ! compgen -G "$box/out/*model.safetensors" >/dev/null; then
        not_ok "$name" "no model in $(ls "$box/out")"
    else
        ok "$name"
    fi
}

# ---- a new run: a name that it would write, whatever it is, is named and stays
row 2 "^nojit train: --out \. already contains samples.jsonl, which a new run would write" data_here data_is_here
row 2 "^nojit train: --out \. already contains vocab.json, which a new run would write" "own_file vocab.json" new_here
for name in metrics.jsonl samples.jsonl metrics.jsonl.old receipt.json lock tokenizer.json model-00001-of-00002.safetensors \
    receipt.json.tmp-4194000 checkpoint-3.old; do
    row 2 "^nojit train: --out out already contains $name, which a new run would write; choose another folder, move it away, or" "own_file $name" new
done
for name in best best.old best.new best.new.tmp-4194000 merged runs final final.tmp-4194000 checkpoint-7.old checkpoint-7.tmp-4194000; do
    row 2 "^nojit train: --out out already contains $name, which a new run would write" "own_folder $name" new
    row 2 "^nojit train: --out out already contains $name, which a new run would write" "link_to_folder $name" new
    row 2 "^nojit train: --out out already contains $name, which a new run would write" "dangling $name" new
done
for name in metrics.jsonl samples.jsonl receipt.json lock tokenizer.json; do
    row 2 "^nojit train: --out out already contains $name, which a new run" "link_to_file $name" new
    row 2 "^nojit train: --out out already contains $name, which a new run" "hard_link $name" new
    row 2 "^nojit train: --out out already contains $name, which a new run" "pipe $name" new
done
row 2 "^nojit train: --out out already contains metrics.jsonl, .*, or continue that run with --resume auto$" early new
row 0 "model in out" "own_file notes.txt" new
row 0 "model in out" "own_folder checkpoint-0007" new
row 0 "model in out" "link_to_folder data" new

# ---- --resume auto where no run began is a new run
row 2 "already contains metrics.jsonl, which a new run would write" "own_file metrics.jsonl" auto
row 2 "already contains samples.jsonl, which a new run would write" data_here auto
row 2 "already contains best.old, which a new run would write" "link_to_folder best.old" auto

# ---- a resumed run: what is not its own stays; where that has a name that is needed, it gets another
row 0 "^out/metrics.jsonl: 3 lines after the checkpoint moved to out/metrics.jsonl.old$" early auto
for state in begun early; do
    for name in best.old best.new; do
        row 0 "^out/$name is not removed: no run wrote it; it is now $name.kept1$" "$state; link_to_folder $name" auto
        row 0 "^out/$name is not removed: it holds notes, which no run writes; it is now $name.kept1$" "$state; own_folder $name" auto
    done
    row 0 "^out/final.tmp-4194000 is not removed: it holds notes, which" "$state; own_folder final.tmp-4194000" auto
    row 0 "^out/checkpoint-1.tmp-4194000 is not removed: no run wrote it" "$state; link_to_folder checkpoint-1.tmp-4194000" auto
    row 0 "model in out" "$state; own_folder checkpoint-0007" auto
    row 0 "model in out" "$state; own_folder 'checkpoint- 7'" auto
    row 0 "model in out" "$state; own_folder checkpoint-+7" auto
    for name in samples.jsonl receipt.json tokenizer.json model.safetensors; do
        row 2 "^nojit train: --out out: $name was not written by nojit; move or rename it$" "$state; rm -f out/$name; link_to_file $name" "auto --sample-prompt a"
        row 2 "^nojit train: --out out: $name was not written by nojit; move or rename it$" "$state; rm -f out/$name; dangling $name" "auto --sample-prompt a"
        row 2 "^nojit train: --out out: $name was not written by nojit; move or rename it$" "$state; rm -f out/$name; pipe $name" "auto --sample-prompt a"
    done
    row 2 "samples.jsonl: has 2 hard links; writing would change all of them; move it away$" "$state; hard_link samples.jsonl" "auto --sample-prompt a"
    row 1 "^nojit train: out/runs: not a folder, or a link to one: .*; move it away$" "$state; link_to_folder runs" "auto --report-to tensorboard"
    row 2 "final was not written by nojit" "$state; own_folder final" auto
done
for state in link_to_file dangling pipe; do
    row 2 "^nojit train: --out out: metrics.jsonl was not written by nojit; move or rename it$" "begun; rm out/metrics.jsonl; $state metrics.jsonl" auto
    row 2 "^nojit train: --out out already contains metrics.jsonl, which a new run would write" "$state metrics.jsonl" auto
done
row 0 "^out/checkpoint-2 is not removed: it holds notes, which no run writes" "begun; own_folder checkpoint-2" auto
row 0 "^out/best.old is not removed: it holds notes, which no run writes" "begun; mine out/best/notes" auto
row 0 "^out/checkpoint-2 is not removed: no run wrote it" "begun; mv out/checkpoint-2 victim/; ln -s ../victim/checkpoint-2 out/" auto
row 0 "^out/checkpoint-5.old is not removed: it is not a checkpoint; it is now checkpoint-5.old.kept1" \
    "begun; mkdir out/checkpoint-5.old; mine out/checkpoint-5.old/config.json; cp -r out/checkpoint-3 out/checkpoint-5" "auto --resume out/checkpoint-2"
row 0 "^out/merged is not removed: it holds notes, which no run writes; it is now merged.kept1$" "adapted; own_folder merged" "auto --lora-r 2 --merge"
row 0 "^out/merged is not removed: no run wrote it; it is now merged.kept1$" "adapted; link_to_folder merged" "auto --lora-r 2 --merge"

for name in state.bin settings.txt progress.txt; do
    row 1 "^nojit train: out/checkpoint-3/$name: .*; take another checkpoint; another one is --resume out/checkpoint-2$" \
        "begun; rm out/checkpoint-3/$name; pipe checkpoint-3/$name" auto
done

# ---- --log
row 2 "^nojit train: --log out/x.log is a symbolic link, which nojit does not follow; move it away$" "link_to_file x.log" "log x.log"
row 2 "^nojit train: --log out/x.log is a symbolic link" "dangling x.log" "log x.log"
row 2 "^nojit train: --log out/x.log: has 2 hard links; writing would change all of them; move it away$" "hard_link x.log" "log x.log"
row "[12]" "^nojit train: --log out/x.log: (not a regular file|cannot be written)" "pipe x.log" "log x.log"
finish

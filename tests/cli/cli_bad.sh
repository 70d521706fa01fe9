#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cli_bad.sh: what bad input gets: one sentence that names file, field and remedy, the right exit status, nothing
# partial.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"

"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
"$nojit" init --preset nojit-tiny --seed 2 --out "$d/teacher" >/dev/null
head -c 20000 /usr/share/common-licenses/GPL-3 >"$d/text.txt"
fast=(--seq-len 32 --batch-size 2 --steps 2 --device cpu)
train() { # MODEL, extra options...
    local m=$1
    shift
    "$nojit" train --student "$m" --data "$d/text.txt" --out "$d/out" "${fast[@]}" "$@"
}
nothing_written() { # NAME
    if [ -e "$d/out" ] && [ -n "$(ls -A "$d/out")" ]; then
        not_ok "$1 leaves nothing" "$(ls -A "$d/out" | head -3)"
    else
        ok "$1 leaves nothing"
    fi
    rm -rf "$d/out"
}
copy() { rm -rf "$d/bad" && cp -r "$d/student" "$d/bad"; }
config() { # SED-EXPRESSION: a student whose config.json is edited
    copy
    sed -i -E "$1" "$d/bad/config.json"
}

# ---- the command line
refuses "alpha without adapters" 2 '--lora-alpha needs --lora-r$' train "$d/student" --lora-alpha 16
refuses "alpha of adapters that have one" 2 'brings its own rank, alpha, dropout and matrices; leave --lora-alpha out' \
    train "$d/student" --lora-alpha 16 --adapter "$d/student"
refuses "a norm that rounds to 0" 2 '--max-grad-norm 1e-46: rounds to 0 in float32' train "$d/student" --max-grad-norm 1e-46
refuses "a temperature that blurs the divergence" 2 '--temperature 101: at most 100; .*the divergence' \
    "$nojit" distill --student "$d/student" --teacher "$d/student" --data "$d" --out "$d/hot" --temperature 101
refuses "less than a byte" 3 'this run needs .* can be had' train "$d/student" --memory-budget 1e-10
refuses "options file missing" 2 "$d/none.yaml: No such file" train "$d/student" --config "$d/none.yaml"
options_file() { # NAME REGEX TEXT: a file of options that is refused
    printf "$3" >"$d/options.yaml"
    refuses "$1" 2 "$2" train "$d/student" --config "$d/options.yaml"
}
options_file "options file: two documents" 'options.yaml:2: a second document begins here' 'steps: 3\n---\nsteps: 4\n'
options_file "options file: a NUL in a value" 'options.yaml:1: a NUL character' 'out: "a\\0b"\n'
options_file "options file: too deep" 'options.yaml:1: lists or mappings lie too deep' "$(printf '[%.0s' {1..40000})"
options_file "options file: too many anchors" 'options.yaml:[0-9]+: too many anchors' "data: [$(printf '&a%d x, ' {1..20000})]\n"
options_file "options file: too large" 'options.yaml: .* the limit for this file is 1048576' "#%1048576s"
mkfifo "$d/pipe.yaml"
refuses "options file: a pipe" 2 'pipe.yaml: not a regular file; name a YAML file' train "$d/student" --config "$d/pipe.yaml"
if [ "$("$nojit" help train)" = "$("$nojit" train --help)" ]; then ok "help COMMAND"; else not_ok "help COMMAND" "$("$nojit" help train | head -2)"; fi
if "$nojit" help eval | grep -q 'adapters.*training goes on'; then not_ok "--adapter of eval" "speaks of training"; else ok "--adapter of eval"; fi
long=$(for c in $("$nojit" --help | awk '/^  [a-z]/ { print $1 }'); do "$nojit" "$c" --help; done | awk 'length > 100')
if [ -z "$long" ]; then ok "help fits 100 columns"; else not_ok "help fits 100 columns" "$long"; fi
refuses "init by preset and like another" 2 '--preset nojit-tiny and --like .*/student: .*; leave the other out' \
    "$nojit" init --preset nojit-tiny --like "$d/student" --out "$d/out"
refuses "dropout without adapters" 2 '--lora-dropout needs --lora-r' train "$d/student" --lora-dropout 0.1
refuses "warm-up too long" 2 '--warmup-steps 2: must be fewer' train "$d/student" --warmup-steps 2
nothing_written "usage"

# ---- models
refuses "model folder missing" 1 "$d/none" train "$d/none"
mkdir -p "$d/empty"
refuses "no config.json" 1 'config.json: No such file or directory; a model folder holds config.json' train "$d/empty"
mkdir "$d/gguf"
: >"$d/gguf/model-Q4_K_M.gguf"
refuses "a folder of GGUF" 1 "$d/gguf: holds GGUF files and no config.json; name the file: $d/gguf/model-Q4_K_M.gguf" train "$d/gguf"
refuses "no GGUF in it" 1 "model-Q4_K_M.gguf: neither a folder nor a GGUF or APR file; .* fetch the file again" train "$d/gguf/model-Q4_K_M.gguf"
mkdir "$d/adapters"
echo '{}' >"$d/adapters/adapter_config.json"
refuses "adapters as a model" 1 'adapters: adapters, not a model; .* as --adapter' train "$d/adapters"
config 's/"model_type": *"[^"]*"/"model_type": "gpt_bigcode"/'
refuses "unknown family" 1 'config.json.*model_type.*gpt_bigcode' train "$d/bad"
if CUDA_VISIBLE_DEVICES='' "$nojit" train --student "$d/bad" --data "$d/text.txt" --out "$d/out" 2>&1 | grep -q 'running on the CPU'; then
    not_ok "before the device is spoken of" "it is"
else
    ok "before the device is spoken of"
fi
config 's/"num_key_value_heads": *[0-9]+/"num_key_value_heads": 3/'
refuses "heads do not divide" 1 'num_key_value_heads' train "$d/bad"
config 's/"hidden_size": *[0-9]+/"hidden_size": -4/'
refuses "negative size" 1 'hidden_size' train "$d/bad"
config '1s/^/x/'
refuses "config is not JSON" 1 'config.json' train "$d/bad"
copy
truncate -s -10 "$d/bad/config.json"
refuses "config is cut short" 1 'config.json:[0-9]+: .*; fetch the model again$' train "$d/bad"
refuses "a preset is no folder" 1 'nojit-tiny: no such folder, but a preset; .*`nojit init --preset nojit-tiny --out DIR`$' \
    "$nojit" plan --student nojit-tiny
refuses "nor is what is no preset" 1 'nojit-tinier: no such folder or file; give' "$nojit" plan --student nojit-tinier
copy
rm "$d/bad/model.safetensors"
refuses "weights missing" 1 'safetensors' train "$d/bad"
copy
truncate -s -100 "$d/bad/model.safetensors"
refuses "weights truncated" 1 'model.safetensors' train "$d/bad"
copy
printf '\377\377\377\377\377\377\377\177' | dd of="$d/bad/model.safetensors" conv=notrunc status=none
refuses "header length lies" 1 'model.safetensors.*header' train "$d/bad"
copy
sed -i 's/"dtype":"F32"/"dtype":"F99"/;s/"dtype":"BF16"/"dtype":"BF99"/' "$d/bad/model.safetensors"
refuses "unknown dtype" 1 'BF?99' train "$d/bad"
config 's/"num_hidden_layers": *[0-9]+/"num_hidden_layers": 9/'
refuses "tensor missing" 1 'model.layers' train "$d/bad"
config 's/"intermediate_size": *[0-9]+/"intermediate_size": 320/'
refuses "tensor of another shape" 1 'mlp' train "$d/bad"
: >"$d/model.apr"
refuses "no APR in it" 1 'model.apr: neither a folder nor a GGUF or APR file' train "$d/model.apr"
refuses "teacher is the student" 2 'same weights' "$nojit" distill --teacher "$d/student" --student "$d/student" \
    --data "$d/text.txt" --out "$d/out" "${fast[@]}"
config 's/"max_position_embeddings": *[0-9]+/"max_position_embeddings": 16/'
refuses "teacher of shorter sequences" 2 "$d/bad: the model has 16 positions, the sequence length is 32; pass --seq-len 16" \
    "$nojit" distill --teacher "$d/bad" --student "$d/student" --data "$d/text.txt" --out "$d/out" "${fast[@]}"
nothing_written "models"

# ---- data
with_data() {
    local p=$1
    shift
    "$nojit" train --student "$d/student" --data "$p" --out "$d/out" "${fast[@]}" "$@"
}
: >"$d/empty.txt"
refuses "empty data" 1 'empty.txt' with_data "$d/empty.txt"
printf 'short' >"$d/short.txt"
refuses "less than a window" 1 'seq-len' with_data "$d/short.txt"
refuses "data missing" 1 'nowhere.txt' with_data "$d/nowhere.txt"
refuses "glob without match" 1 'nowhere' with_data "$d/nowhere*.txt"
: >"$d/data.parquet"
refuses "parquet" 1 'parquet' with_data "$d/data.parquet"
echo '[]' >"$d/data.json"
refuses "JSON that is not lines" 1 'data.json: not read as it is; write a line of [.]jsonl for each row' with_data "$d/data.json"
echo '{"question": "a", "answer": "b"}' >"$d/fields.jsonl"
refuses "fields of others" 1 'fields.jsonl:1: .*it has question, answer: say which of them count' with_data "$d/fields.jsonl"
printf '\001\000\377\377%.0s' $(seq 200) >"$d/ids.u16"
refuses "ids beyond the vocabulary" 1 '65535' with_data "$d/ids.u16"
nothing_written "data"

# ---- where it writes
if [ -c /dev/full ]; then
    into_full() { "$@" >/dev/full; }
    refuses "output of a run that is lost" 1 'standard output cannot be written' into_full train "$d/student" --json
    rm -rf "$d/out"
    refuses "log that is lost" 1 '^nojit train: --log /dev/full lacks lines: No space left on device; the run itself is whole$' \
        train "$d/student" --log /dev/full
    if [ -f "$d/out/model.safetensors" ]; then ok "but the run is not"; else not_ok "but the run is not" "$(ls "$d/out")"; fi
    rm -rf "$d/out"
    refuses "help that is lost" 1 'standard output cannot be written' into_full "$nojit" help train
fi
refuses "folder cannot be made" 1 'text.txt' "$nojit" train --student "$d/student" --data "$d/text.txt" \
    --out "$d/text.txt/out" "${fast[@]}"
refuses "a file as the folder" 1 '--out .*/text.txt: is a file; name a folder' "$nojit" train --student "$d/student" \
    --data "$d/text.txt" --out "$d/text.txt" "${fast[@]}"
refuses "no folder" 1 "--out '': not usable as a folder name" "$nojit" train --student "$d/student" --data "$d/text.txt" --out '' "${fast[@]}"
refuses "folder holds a model" 2 'student' "$nojit" train --student "$d/student" --data "$d/text.txt" \
    --out "$d/student" "${fast[@]}"
# Where it writes and what it goes on from are looked at before the text, which is missing here.
early() { "$nojit" train --student "$d/student" --data "$d/nowhere.txt" "${fast[@]}" "$@"; }
refuses "folder holds a model, said first" 2 'holds a model already' early --out "$d/student"
refuses "folder cannot be made, said first" 1 '--out .*text.txt/out: .*text.txt is a file; name a folder' early --out "$d/text.txt/out"
refuses "log cannot be written, said first" 1 '--log /nowhere/log: cannot be written' early --out "$d/out" --log /nowhere/log
refuses "resume without a folder" 2 '--resume .*/none: no such folder; name a checkpoint' early --out "$d/out" --resume "$d/none"
refuses "resume without a state" 2 'there is no state.bin in it' early --out "$d/out" --resume "$d/student"
refuses "dry run, folder holds a model" 2 'holds a model already' early --dry-run --out "$d/student"
refuses "dry run, folder cannot be made" 1 'text.txt/out: .*text.txt is a file' early --dry-run --out "$d/text.txt/out"
refuses "dry run, folder cannot be written" 1 '/proc/out: cannot be written' early --dry-run --out /proc/out
refuses "dry run makes none" 1 'nowhere.txt' early --dry-run --out "$d/parents/of/none" --log "$d/parents/of/none/log"
if [ -e "$d/parents" ]; then not_ok "a dry run leaves nothing" "$d/parents is there"; else ok "a dry run leaves nothing"; fi
refuses "text missing, folder new" 1 'nowhere.txt' early --out "$d/parents/of/none" --log "$d/parents/of/none/log"
if [ -e "$d/parents" ]; then not_ok "folders made for nothing go" "$d/parents is there"; else ok "folders made for nothing go"; fi
train "$d/student" --out "$d/parents/of/out" >/dev/null 2>&1
train "$d/student" --out "$d/logged" --log "$d/logged/log" >"$d/log" 2>&1 || true
if cmp "$d/log" "$d/logged/log"; then ok "--log in a new --out"; else not_ok "--log in a new --out" "$(tail -n 1 "$d/log")"; fi
if [ -f "$d/parents/of/out/model.safetensors" ]; then ok "parents of --out are made"; else not_ok "parents of --out are made" "$(ls "$d")"; fi
refuses "resume of a finished run" 2 'the run in .*/out is finished.*--student' early --out "$d/parents/of/out" --resume auto

go_on() { train "$d/student" --save-every 1 "$@"; }
go_on >/dev/null 2>&1
refuses "resumed with another seed" 2 'seed 1, this run has seed 7; repeat the options of the run, or name another --out$' go_on --resume auto --steps 4 --seed 7
refuses "resumed with another length" 2 'seq-len 32, this run has seq-len 16' go_on --resume auto --steps 4 --seq-len 16
refuses "resumed with another state" 2 'saved with --optimizer-state f32; resume with the same$' \
    go_on --resume auto --steps 4 --optimizer-state bf16
refuses "resumed elsewhere with another seed" 2 'seed 1, this run has seed 7; repeat the options of the run, or leave --resume out$' \
    go_on --out "$d/elsewhere" --resume "$d/out/checkpoint-2" --steps 4 --seed 7
cp -r "$d/out" "$d/begun"
rm "$d/begun"/*.json "$d/begun/model.safetensors"
refuses "checkpoints are there" 2 'holds checkpoints of an unfinished run; continue with --resume auto' go_on --out "$d/begun"
mkdir -p "$d/others/checkpoint-100"
echo '{}' >"$d/others/checkpoint-100/trainer_state.json"
refuses "a checkpoint of another trainer is in --out" 2 'holds checkpoint-100 of another trainer; name another folder$' go_on --out "$d/others"
cp -r "$d/out" "$d/newer"
printf '\002' | dd of="$d/newer/checkpoint-2/state.bin" bs=1 seek=8 conv=notrunc status=none
refuses "resumed by an older program" 1 'state.bin: format version 2, and this program reads version 1; continue with the nojit that wrote it; if that is this one, the file is damaged$' \
    go_on --out "$d/newer" --resume auto --steps 4
refuses "resumed by the folder of a run" 2 "name $d/out/checkpoint-2 in it" early --out "$d/new" --resume "$d/out"

# What a run that was killed has left goes; what another one is writing, and what only looks like it, stays.
sleep 1000 &
living=$!
(exit 0) &
dead=$!
wait $dead
gone=(checkpoint-3.tmp-$dead final.tmp-$dead best.new.tmp-$dead merged.tmp-$dead)
kept=(checkpoint-3.tmp-$living notes.tmp-$dead checkpoint-3.tmp-${dead}x checkpoint-x.tmp-$dead)
for f in "${gone[@]}" "${kept[@]}"; do mkdir "$d/out/$f" && touch "$d/out/$f/config.json"; done
cp -r "$d/out/checkpoint-2" "$d/out/best.old"
if go_on --resume auto --steps 4 >"$d/log" 2>&1; then ok "resumed with the same options"; else not_ok "resumed with the same options" "$(tail -n 1 "$d/log")"; fi
for f in "${gone[@]}"; do [ ! -e "$d/out/$f" ] || not_ok "leftovers go" "$f is there"; done
for f in "${kept[@]}"; do [ -e "$d/out/$f/config.json" ] || not_ok "others stay" "$f is gone"; done
if [ -e "$d/out/best/config.json" ] && [ ! -e "$d/out/best.old" ]; then ok "the last best is back"; else not_ok "the last best is back" "$(ls "$d/out")"; fi
if [ "$(grep -c 'removed 4 leftovers of a run that was killed' "$d/log")" = 1 ]; then ok "leftovers are said once"; else not_ok "leftovers are said once" "$(head -n 2 "$d/log")"; fi
kill $living
rm -rf "$d/out"
small_disk() { (ulimit -f 64 && trap '' XFSZ && train "$d/student" --save-every 1); }
refuses "disk full" 1 "$d/out" small_disk
if ls "$d"/out/checkpoint-* "$d"/out/model.safetensors >/dev/null 2>&1; then
    not_ok "disk full leaves no checkpoint" "$(ls "$d/out")"
else
    ok "disk full leaves no checkpoint"
fi
rm -rf "$d/out"

# ---- devices
if [ -e /dev/nvidiactl ]; then
    skip "no GPU" "there is one"
else
    refuses "no GPU with --device cuda" 1 'driver' train "$d/student" --device cuda
    nothing_written "no GPU"
    NOJIT_CUBLASLT=/nonexistent "$nojit" train --student "$d/student" --data "$d/text.txt" --out "$d/out" \
        --seq-len 32 --batch-size 2 --steps 2 --device auto >"$d/log" 2>&1 || true
    if [ "$(grep -c 'running on the CPU' "$d/log")" = 1 ]; then
        ok "falling back is said once"
    else
        not_ok "falling back is said once" "$(head -3 "$d/log")"
    fi
fi
finish

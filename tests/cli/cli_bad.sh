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
        not_ok "refusals of $1 leave nothing in --out" "$(ls -A "$d/out" | head -3)"
    else
        ok "refusals of $1 leave nothing in --out"
    fi
    rm -rf "$d/out"
}
copy() { rm -rf "$d/bad" && cp -r "$d/student" "$d/bad"; }
config() { # SED-EXPRESSION: a student whose config.json is edited
    copy
    sed -i -E "$1" "$d/bad/config.json"
}

# ---- the command line
refuses "--lora-alpha without adapters is refused" 2 '--lora-alpha needs --lora-r$' train "$d/student" --lora-alpha 16
refuses "--lora-alpha for adapters that bring one is refused" 2 'brings its own rank, alpha, dropout and matrices; leave --lora-alpha out' \
    train "$d/student" --lora-alpha 16 --adapter "$d/student"
refuses "a --max-grad-norm that rounds to 0 is refused" 2 '--max-grad-norm 1e-46: rounds to 0 in float32' train "$d/student" --max-grad-norm 1e-46
refuses "a --temperature that blurs the divergence is refused" 2 '--temperature 101: at most 100; .*the divergence' \
    "$nojit" distill --student "$d/student" --teacher "$d/student" --data "$d" --out "$d/hot" --temperature 101
refuses "a --memory-budget of less than a byte is refused" 3 'this run needs .* are available' train "$d/student" --memory-budget 1e-10
refuses "a --config that is missing is refused" 2 "$d/none.yaml: No such file" train "$d/student" --config "$d/none.yaml"
options_file() { # NAME REGEX TEXT: a file of options that is refused
    printf "$3" >"$d/options.yaml"
    refuses "$1" 2 "$2" train "$d/student" --config "$d/options.yaml"
}
options_file "a --config of two documents is refused" 'options.yaml:2: a second document begins here' 'steps: 3\n---\nsteps: 4\n'
options_file "a --config with NUL in a value is refused" 'options.yaml:1: a NUL character' 'out: "a\\0b"\n'
options_file "a --config whose lists lie too deep is refused" 'options.yaml:1: lists or mappings lie too deep' "$(printf '[%.0s' {1..40000})"
options_file "a --config with too many anchors is refused" 'options.yaml:[0-9]+: too many anchors' "data: [$(printf '&a%d x, ' {1..20000})]\n"
options_file "a --config that is too large is refused" 'options.yaml: .* the limit for this file is 1048576' "#%1048576s"
mkfifo "$d/pipe.yaml"
refuses "a --config that is a pipe is refused" 2 'pipe.yaml: not a regular file; name a YAML file' train "$d/student" --config "$d/pipe.yaml"
if [ "$("$nojit" help train)" = "$("$nojit" train --help)" ]; then ok "help COMMAND is COMMAND --help"; else not_ok "help COMMAND is COMMAND --help" "$("$nojit" help train | head -2)"; fi
if "$nojit" help eval | grep -q 'adapters.*training continues'; then not_ok "help of eval says of --adapter nothing about training" "speaks of training"; else ok "help of eval says of --adapter nothing about training"; fi
long=$(for c in $("$nojit" --help | awk '/^  [a-z]/ { print $1 }'); do "$nojit" "$c" --help; done | awk 'length > 100')
if [ -z "$long" ]; then ok "the help of every command fits 100 columns"; else not_ok "the help of every command fits 100 columns" "$long"; fi
refuses "init by --preset and by --like at once is refused" 2 '--preset nojit-tiny and --like .*/student: .*; leave the other out' \
    "$nojit" init --preset nojit-tiny --like "$d/student" --out "$d/out"
refuses "--lora-dropout without adapters is refused" 2 '--lora-dropout needs --lora-r' train "$d/student" --lora-dropout 0.1
refuses "a warm-up as long as the run is refused" 2 '--warmup-steps 2: must be fewer' train "$d/student" --warmup-steps 2
nothing_written "wrong options"
while IFS='|' read -r command with given; do
    # shellcheck disable=SC2086
    "$nojit" $command $given >"$scratch/out" 2>"$scratch/err" || true
    for word in $given; do
        [[ $word = --* ]] || continue
        ok_if "$command $word without $with is said to have no effect" "$(cat "$scratch/err")" grep -qx "nojit $command: $word has no effect without $with" "$scratch/err"
    done
done <<'END'
distill|--on-policy|--max-new 9 --group 2 --rollout-temperature 1 --rollout-top-p 0.5 --reuse 2 --rollout-batch 4
distill|--on-policy or --sample-prompt|--kv-dtype int8
train|--sample-prompt|--sample-tokens 9 --sample-temperature 1 --sample-min-p 0.1
generate|--prompts|--batch-size 3 --skip-unusable
eval|--data|--fields text=a --train-on-prompts --skip-unusable
END
"$nojit" train --steps 4 --epochs 2 --warmup-steps 1 --warmup-ratio 0.1 --lr-schedule constant --min-lr-ratio 0.5 >"$scratch/out" 2>"$scratch/err" || true
ok_if "options that others replace are said to have no effect" "$(cat "$scratch/err")" test "$(grep -c ' has no effect without ' "$scratch/err")" = 3
"$nojit" train --steps 4 --warmup-steps 1 --lr-schedule linear --min-lr-ratio 0.5 --sample-prompt a --sample-tokens 3 >"$scratch/out" 2>"$scratch/err" || true
ok_if "options that have an effect are not said to have none" "$(cat "$scratch/err")" test "$(grep -c 'has no effect' "$scratch/err")" = 0

# ---- models
refuses "a model folder that is missing is refused" 1 "$d/none" train "$d/none"
mkdir -p "$d/empty"
refuses "a model folder without config.json is refused" 1 'config.json: No such file or directory; a model folder holds config.json' train "$d/empty"
mkdir "$d/gguf"
: >"$d/gguf/model-Q4_K_M.gguf"
refuses "a folder of GGUF files is refused, and a file named" 1 "$d/gguf: holds GGUF files and no config.json; name the file: $d/gguf/model-Q4_K_M.gguf" train "$d/gguf"
refuses "a .gguf file that is no GGUF is refused" 1 "model-Q4_K_M.gguf: neither a folder nor a GGUF or APR file; .* fetch the file again" train "$d/gguf/model-Q4_K_M.gguf"
mkdir "$d/adapters"
echo '{}' >"$d/adapters/adapter_config.json"
touch "$d/adapters/model-q8_0.gguf" # of --export
refuses "a folder of adapters given as a model is refused" 1 'adapters: adapters, not a model; .* as --adapter' train "$d/adapters"
config 's/"model_type": *"[^"]*"/"model_type": "gpt_bigcode"/'
refuses "a model of an unknown family is refused" 1 'config.json.*model_type.*gpt_bigcode' train "$d/bad"
if CUDA_VISIBLE_DEVICES='' "$nojit" train --student "$d/bad" --data "$d/text.txt" --out "$d/out" 2>&1 | grep -q 'running on the CPU'; then
    not_ok "a model is refused before a device is spoken of" "it is"
else
    ok "a model is refused before a device is spoken of"
fi
copy
truncate -s -10 "$d/bad/config.json"
refuses "a config.json that is cut short is refused" 1 'config.json:[0-9]+: .*; fetch the model again$' train "$d/bad"
refuses "a preset given as a model is refused, and init named" 1 'nojit-tiny: no such folder, but a preset; .*`nojit init --preset nojit-tiny --out DIR`$' \
    "$nojit" train --student nojit-tiny --data LICENSE --out "$d/none"
refuses "a name that is neither a folder nor a preset is refused" 1 'nojit-tinier: no such folder or file; give' "$nojit" plan --student nojit-tinier
copy
rm "$d/bad/model.safetensors"
refuses "a model folder without weights is refused" 1 'safetensors' train "$d/bad"
config 's/"num_hidden_layers": *[0-9]+/"num_hidden_layers": 9/'
refuses "weights that lack a tensor are refused" 1 'model.layers' train "$d/bad"
config 's/"intermediate_size": *[0-9]+/"intermediate_size": 320/'
refuses "a tensor of another shape is refused" 1 'mlp' train "$d/bad"
: >"$d/model.apr"
refuses "a .apr file that is no APR is refused" 1 'model.apr: neither a folder nor a GGUF or APR file' train "$d/model.apr"
refuses "a teacher with the student's weights is refused" 2 'same weights' "$nojit" distill --teacher "$d/student" --student "$d/student" \
    --data "$d/text.txt" --out "$d/out" "${fast[@]}"
config 's/"max_position_embeddings": *[0-9]+/"max_position_embeddings": 16/'
refuses "a teacher of shorter sequences is refused" 2 "$d/bad: the model has 16 positions, the sequence length is 32; pass --seq-len 16" \
    "$nojit" distill --teacher "$d/bad" --student "$d/student" --data "$d/text.txt" --out "$d/out" "${fast[@]}"
nothing_written "bad models"

# ---- data
with_data() {
    local p=$1
    shift
    "$nojit" train --student "$d/student" --data "$p" --out "$d/out" "${fast[@]}" "$@"
}
: >"$d/empty.txt"
refuses "an empty file of data is refused" 1 'empty.txt' with_data "$d/empty.txt"
printf 'short' >"$d/short.txt"
refuses "data of fewer tokens than a sequence are refused" 1 'seq-len' with_data "$d/short.txt"
refuses "data that are missing are refused" 1 'nowhere.txt' with_data "$d/nowhere.txt"
refuses "a pattern that matches no file is refused" 1 'nowhere' with_data "$d/nowhere*.txt"
: >"$d/data.parquet"
refuses "a .parquet file that is no Parquet is refused" 1 'parquet' with_data "$d/data.parquet"
echo '[]' >"$d/data.json"
refuses "a .json file of data is refused" 1 'data.json: not read as it is; write a line of [.]jsonl for each row' with_data "$d/data.json"
echo '{"question": "a", "answer": "b"}' >"$d/fields.jsonl"
refuses "rows whose fields are not known are refused" 1 'fields.jsonl:1: .*it has question, answer: say which of them count' with_data "$d/fields.jsonl"
printf '\001\000\377\377%.0s' $(seq 200) >"$d/ids.u16"
refuses "token ids beyond the vocabulary are refused" 1 '65535' with_data "$d/ids.u16"
nothing_written "bad data"

# ---- where it writes
if [ -c /dev/full ]; then
    into_full() { "$@" >/dev/full; }
    refuses "a run whose standard output is full ends with an error" 1 'standard output cannot be written' into_full train "$d/student" --json
    rm -rf "$d/out"
    refuses "a run whose --log is full says that lines are lacking" 1 '^nojit train: --log /dev/full lacks lines: No space left on device; the run itself is whole$' \
        train "$d/student" --log /dev/full
    if [ -f "$d/out/model.safetensors" ]; then ok "a run whose --log is full leaves its model"; else not_ok "a run whose --log is full leaves its model" "$(ls "$d/out")"; fi
    rm -rf "$d/out"
    refuses "help into a full device ends with an error" 1 'standard output cannot be written' into_full "$nojit" help train
fi
refuses "an --out that cannot be made is refused" 1 'text.txt' "$nojit" train --student "$d/student" --data "$d/text.txt" \
    --out "$d/text.txt/out" "${fast[@]}"
refuses "a file as --out is refused" 1 '--out .*/text.txt: is a file; name a folder' "$nojit" train --student "$d/student" \
    --data "$d/text.txt" --out "$d/text.txt" "${fast[@]}"
refuses "an empty --out is refused" 1 "--out '': not usable as a folder name" "$nojit" train --student "$d/student" --data "$d/text.txt" --out '' "${fast[@]}"
refuses "an --out that holds a model is refused" 2 'student' "$nojit" train --student "$d/student" --data "$d/text.txt" \
    --out "$d/student" "${fast[@]}"
# The output folder and the checkpoint are checked before the text, which is missing here.
early() { "$nojit" train --student "$d/student" --data "$d/nowhere.txt" "${fast[@]}" "$@"; }
refuses "an --out that holds a model is refused before data are read" 2 'holds a model already' early --out "$d/student"
refuses "an --out that cannot be made is refused before data are read" 1 '--out .*text.txt/out: .*text.txt is a file; name a folder' early --out "$d/text.txt/out"
refuses "a --log that cannot be written is refused before data are read" 1 '--log /nowhere/log: cannot be written' early --out "$d/out" --log /nowhere/log
refuses "--resume of a folder that is not there is refused" 2 '--resume .*/none: no such folder; name a checkpoint' early --out "$d/out" --resume "$d/none"
refuses "--resume of a folder without state.bin is refused" 2 'there is no state.bin in it' early --out "$d/out" --resume "$d/student"
refuses "a dry run refuses an --out that holds a model" 2 'holds a model already' early --dry-run --out "$d/student"
refuses "a dry run refuses an --out that cannot be made" 1 'text.txt/out: .*text.txt is a file' early --dry-run --out "$d/text.txt/out"
refuses "a dry run refuses an --out that cannot be written" 1 '/proc/out: cannot be written' early --dry-run --out /proc/out
refuses "a dry run with data that are missing is refused" 1 'nowhere.txt' early --dry-run --out "$d/parents/of/none" --log "$d/parents/of/none/log"
if [ -e "$d/parents" ]; then not_ok "a dry run makes no folder" "$d/parents is there"; else ok "a dry run makes no folder"; fi
refuses "data that are missing are refused with a new --out" 1 'nowhere.txt' early --out "$d/parents/of/none" --log "$d/parents/of/none/log"
if [ -e "$d/parents" ]; then not_ok "folders made for a run that is refused are removed" "$d/parents is there"; else ok "folders made for a run that is refused are removed"; fi
train "$d/student" --out "$d/parents/of/out" >/dev/null 2>&1
train "$d/student" --out "$d/logged" --log "$d/logged/log" >"$d/log" 2>&1 || true
if cmp "$d/log" "$d/logged/log"; then ok "--log in a new --out is written"; else not_ok "--log in a new --out is written" "$(tail -n 1 "$d/log")"; fi
if [ -f "$d/parents/of/out/model.safetensors" ]; then ok "the parent folders of --out are made"; else not_ok "the parent folders of --out are made" "$(ls "$d")"; fi
refuses "--resume of a finished run is refused" 2 'the run in .*/out is finished.*--student' early --out "$d/parents/of/out" --resume auto

go_on() { train "$d/student" --save-every 1 "$@"; }
go_on >/dev/null 2>&1
refuses "a run resumed with another seed is refused" 2 'seed 1, this run has seed 7; repeat the options of the run, or name another --out$' go_on --resume auto --steps 4 --seed 7
refuses "a run resumed with another --optimizer-state is refused" 2 'saved with --optimizer-state f32; resume with the same$' \
    go_on --resume auto --steps 4 --optimizer-state bf16
refuses "a run resumed in another folder with another seed is refused" 2 'seed 1, this run has seed 7; repeat the options of the run, or leave --resume out$' \
    go_on --out "$d/elsewhere" --resume "$d/out/checkpoint-2" --steps 4 --seed 7
cp -r "$d/out" "$d/begun"
rm "$d/begun"/*.json "$d/begun/model.safetensors"
refuses "a new run in a folder with checkpoints is refused" 2 'holds checkpoints of an unfinished run; continue with --resume auto' go_on --out "$d/begun"
mkdir -p "$d/others/checkpoint-100"
echo '{}' >"$d/others/checkpoint-100/trainer_state.json"
refuses "an --out with a checkpoint of another trainer is refused" 2 'holds checkpoint-100 of another trainer; name another folder$' go_on --out "$d/others"
cp -r "$d/out" "$d/newer"
printf '\003' | dd of="$d/newer/checkpoint-2/state.bin" bs=1 seek=8 conv=notrunc status=none
refuses "a checkpoint of a newer format is refused" 1 'state.bin: format version 3, and this program reads versions 1 and 2; continue with the nojit that wrote it; if that is this one, the file is damaged$' \
    go_on --out "$d/newer" --resume auto --steps 4
refuses "--resume of a run's folder is refused, and its checkpoint named" 2 "name $d/out/checkpoint-2 in it" early --out "$d/new" --resume "$d/out"

# Temporary folders of a killed run are removed; those of a running process, and folders that only look like them, stay.
sleep 1000 &
living=$!
(exit 0) &
dead=$!
wait $dead
gone=(checkpoint-3.tmp-$dead final.tmp-$dead best.new.tmp-$dead merged.tmp-$dead)
kept=(checkpoint-3.tmp-$living notes.tmp-$dead checkpoint-3.tmp-${dead}x checkpoint-x.tmp-$dead)
for f in "${gone[@]}" "${kept[@]}"; do mkdir "$d/out/$f" && touch "$d/out/$f/config.json"; done
cp -r "$d/out/checkpoint-2" "$d/out/best.old"
if go_on --resume auto --steps 4 >"$d/log" 2>&1; then ok "a run goes on with the same options"; else not_ok "a run goes on with the same options" "$(tail -n 1 "$d/log")"; fi
for f in "${gone[@]}"; do [ ! -e "$d/out/$f" ] || not_ok "leftovers of a killed run are removed" "$f is there"; done
for f in "${kept[@]}"; do [ -e "$d/out/$f/config.json" ] || not_ok "folders that only look like leftovers stay" "$f is gone"; done
if [ -e "$d/out/best/config.json" ] && [ ! -e "$d/out/best.old" ]; then ok "a best model that was being replaced is put back"; else not_ok "a best model that was being replaced is put back" "$(ls "$d/out")"; fi
if [ "$(grep -c 'removed 4 leftovers of a run that was killed' "$d/log")" = 1 ]; then ok "leftovers that were removed are said once"; else not_ok "leftovers that were removed are said once" "$(head -n 2 "$d/log")"; fi
kill $living
rm -rf "$d/out"
small_disk() { (ulimit -f 64 && trap '' XFSZ && train "$d/student" --save-every 1); }
refuses "a full disk ends a run with the name of the file" 1 "$d/out" small_disk
if ls "$d"/out/checkpoint-* "$d"/out/model.safetensors >/dev/null 2>&1; then
    not_ok "a full disk leaves no checkpoint" "$(ls "$d/out")"
else
    ok "a full disk leaves no checkpoint"
fi
rm -rf "$d/out"

# ---- devices
if [ -e /dev/nvidiactl ]; then
    skip "a GPU that is not there is refused with --device cuda" "there is one"
else
    refuses "a GPU that is not there is refused with --device cuda" 1 'driver' train "$d/student" --device cuda
    nothing_written "a GPU that is not there is refused with --device cuda"
    NOJIT_CUBLASLT=/nonexistent "$nojit" train --student "$d/student" --data "$d/text.txt" --out "$d/out" \
        --seq-len 32 --batch-size 2 --steps 2 --device auto >"$d/log" 2>&1 || true
    if [ "$(grep -c 'running on the CPU' "$d/log")" = 1 ]; then
        ok "falling back to the CPU is said once"
    else
        not_ok "falling back to the CPU is said once" "$(head -3 "$d/log")"
    fi
fi
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# config_files.sh: each examples/*.yaml can be planned as it stands and trains (with small models, on the CPU); a receipt as --config repeats its
# run to the bit; and what YAML means in several ways, or nobody reads, is refused by name. test_options has the sentences of the parser.
set -eu
. tests/lib/lib.sh
export OMP_WAIT_POLICY=passive
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
"$nojit" init --preset nojit-tiny --seed 2 --out "$d/teacher" >/dev/null
head -c 20000 LICENSE >"$d/text.txt"
for i in $(seq 40); do printf '{"prompt": "question %d"}\n' "$i"; done >"$d/prompts.jsonl"

# ---- the examples
for example in examples/*.yaml; do
    which=$(basename "$example" .yaml)
    pair=(--student qwen2.5-0.5b --teacher qwen2.5-1.5b)
    gpu=h100
    if [ "$which" = quantized-teacher ]; then pair=(--student qwen2.5-0.5b --teacher qwen2.5-7b) gpu=t4; fi
    succeeds "$which.yaml fits on $gpu" "$nojit" plan --config "$example" "${pair[@]}" --gpu "$gpu"
    data=(--data "$d/text.txt")
    if [ "$which" = on-policy ]; then data=(--prompts "$d/prompts.jsonl" --max-new 8); fi
    if [ "$which" = fp8 ]; then data+=(--eval-data "$d/text.txt"); fi
    succeeds "$which.yaml trains, with small models" "$nojit" distill --config "$example" --student "$d/student" --teacher "$d/teacher" "${data[@]}" \
        --device cpu --steps 2 --warmup-steps 1 --batch-size 1 --seq-len 64 --out "$d/$which"
    given() { # what the file says is what the receipt has, but for what the command line replaced
        local key value
        while IFS=': ' read -r key value; do
            grep -qF "\"${key//_/-}\": \"$value\"" "$d/$which/receipt.json" || { echo "$key: $value" && return 1; }
        done < <(sed -nE 's/ +#.*//; s/^(temperature|kd_ratio|lora_r|lora_alpha|recompute|teacher_dtype|student_dtype|gpus|beta|grad_accum|save_every|on_policy): /\1: /p' "$example")
    }
    succeeds "$which.yaml: its values are those of the receipt" given
done
succeeds "lora-chat.yaml leaves adapters and a merged model" [ -s "$d/lora-chat/adapter_model.safetensors" -a -s "$d/lora-chat/merged/model.safetensors" ]
succeeds "quantized-teacher.yaml leaves a GGUF file" [ -s "$d/quantized-teacher/model-q4_k_m.gguf" ]
documented() { for example in examples/*.yaml; do grep -qF "($(printf '../%s' "$example"))" docs/config.md || { echo "$example" && return 1; }; done; }
succeeds "docs/config.md names each example" documented
full_example() { # the file in docs/config.md
    sed -n '/^```yaml$/,/^```$/{/^```/d;p}' docs/config.md >"$d/full.yaml" && [ "$(wc -l <"$d/full.yaml")" -gt 20 ] &&
        "$nojit" distill --config "$d/full.yaml" --student "$d/student" --teacher "$d/teacher" --data "$d/text.txt" "$d/text.txt" --eval-data "$d/text.txt" --device cpu --steps 2 \
            --warmup-steps 1 --batch-size 1 --seq-len 64 --out "$d/full"
}
succeeds "the example of docs/config.md trains" full_example

# ---- a receipt
first() {
    "$nojit" distill --student "$d/student" --teacher "$d/teacher" --data "$d/text.txt" "$d/text.txt" --data-weights 1 2 --device cpu --steps 3 --batch-size auto \
        --memory-budget 0.02 --seq-len 32 --lr 0.000123456789 --kd-ratio 0.3333333333 --lora-r 4 --lora-target-modules q_proj v_proj --out "$d/first"
}
succeeds "a run leaves a receipt" first
repeated() { "$nojit" distill --config "$d/first/receipt.json" --out "$d/again" && cmp "$d/first/adapter_model.safetensors" "$d/again/adapter_model.safetensors"; }
succeeds "a receipt as --config repeats its run to the bit" repeated
options() { sed -n '/^  "options": {$/,/^  }/p' "$d/$1/receipt.json" | grep -vE '"(out|config|batch-size)": '; }
succeeds "the receipt of a repeated run has the same options" diff <(options first) <(options again)
applied() { sed -n '/^  "applied": {$/,/^  }/p' "$d/$1/receipt.json"; }
succeeds "a repeated run has the same values in the engine" diff <(applied first) <(applied again)
chosen_then() { # with room for more
    local batch
    batch=$(grep -oE '"batch_size": [0-9]+' "$d/first/receipt.json") && [ "${batch#*: }" -gt 1 ] &&
        grep -qF "$batch," <("$nojit" plan --config "$d/first/receipt.json" --memory-budget 1 --json)
}
succeeds "the batch that --batch-size auto chose then is taken, with room for more" chosen_then
succeeds "the command line takes precedence over a receipt" grep -q '"batch_size": 2,' <("$nojit" plan --config "$d/first/receipt.json" --batch-size 2 --json)
refuses "the output folder is not repeated" 2 '^nojit distill: --out is needed' "$nojit" distill --config "$d/first/receipt.json"
refuses "a receipt of another command" 2 'receipt.json:3: the receipt of a `nojit distill`, which repeats it' "$nojit" train --config "$d/first/receipt.json" --out "$d/no"
sed 's/"beta": /"gamma": /' "$d/first/receipt.json" >"$d/other.json"
refuses "an option of a receipt that this version lacks" 2 'other.json:[0-9]+: unknown option --gamma' "$nojit" distill --config "$d/other.json" --out "$d/no"

# ---- YAML
file() { # TEXT: printf's
    printf "$1" >"$d/run.yaml"
    "$nojit" train --student "$d/student" --data "$d/text.txt" --device cpu --batch-size 1 --seq-len 32 --steps 1 --config "$d/run.yaml" --dry-run
}
for word in true yes on True YES; do succeeds "$word is true" file "gradient_checkpointing: $word\n"; done
refuses "one option by two names" 2 'run.yaml:2: the option is named twice: --lr, in line 1 too' file 'lr: 1\nlearning_rate: 2\n'
refuses "a tab as indent" 2 'run.yaml:2: not YAML: .*; indent by spaces, not by tabs' file 'data:\n\t- a\n'
refuses "a merge key" 2 'run.yaml:1: merge keys \(<<\) are not read; write the options out' file '<<: {lr: 1}\n'
refuses "a tag of another program" 2 'run.yaml:1: tags \(!include and the like\) are not read' file 'log: !include base.yaml\n'
refuses "a number that is octal to some" 2 'run.yaml:1: a number begins with 0' file 'log_every: 010\n'
refuses "a key that is none, with the nearest" 2 'run.yaml:1: unknown option --learning_rat; did you mean --learning-rate\?' file 'learning_rat: 1\n'
succeeds "anchors are read" file 'lr: &rate 1e-4\nweight_decay: *rate\n'
succeeds "a folded value is read" file 'lr: >-\n  1e-4\n'
refuses "a value of several lines where a number belongs" 2 'run.yaml:1: --lr 1e-4.2' file 'lr: |\n  1e-4\n  2\n'
plan_of_run() { printf 'student: nojit-tiny\ndata: [a, b]\nout: x\nsave_every: 5\nseq_len: 64\n' >"$d/run.yaml" && "$nojit" plan --config "$d/run.yaml" --gpu h100; }
succeeds "a plan ignores options of the run that it does not need" plan_of_run
plan_by_command() {
    "$nojit" plan --student nojit-tiny --data a b --eval-data=c --out x --save-every 5 --seq-len 64 --gpu h100 2>"$scratch/said" >"$scratch/log" &&
        grep -q '^nojit plan: ignored, since a plan does not need them: --data, --eval-data, --out, --save-every$' "$scratch/said"
}
succeeds "a plan takes the command line of its run, and names the options that it ignores" plan_by_command
refuses "a plan checks the values of options that it ignores" 2 '^nojit plan: --save-every x: not a whole number' "$nojit" plan --student nojit-tiny --save-every x --gpu h100
misspelt() { printf 'save_evry: 5\n' >"$d/run.yaml" && "$nojit" plan --config "$d/run.yaml" --student nojit-tiny --gpu h100; }
refuses "an unknown name in the file of a plan is refused" 2 'run.yaml:1: unknown option --save_evry; see' misspelt
finish

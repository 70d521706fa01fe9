#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# init_layers.sh: a student of layers of its teacher: with all of them it computes what the teacher does, with some it trains;
# a student with a shape of its own; what is refused. With transformers in reach of $PYTHON it opens them, too.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive
head -c 1500 /usr/share/common-licenses/LGPL-3 >"$d/text.txt"
small=(--device cpu --seq-len 32 --batch-size 2)
measured() { "$nojit" eval --model "$1" --data "$d/text.txt" "${small[@]}" --json 2>"$scratch/err"; }
same() { # NAME GOT WANTED
    if [ -n "$2" ] && [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', expected '$3'"; fi
}
init() { # OUT ARGUMENT...
    rm -rf "${d:?}/$1"
    "$nojit" init --out "$d/$1" "${@:2}" >"$scratch/out" 2>"$scratch/err" || cat "$scratch/err"
}
shape() { # OUT: its sizes
    sed -nE 's/.*"(hidden_size|intermediate_size|num_hidden_layers|num_attention_heads|num_key_value_heads|head_dim|vocab_size)": ([0-9]+).*/\1=\2/p' \
        "$d/$1/config.json" | sort | paste -sd' '
}

init teacher --preset nojit-demo-teacher --seed 3 --shard-bytes 300000
echo '{"top_k": 7}' >"$d/teacher/generation_config.json"
init all --like "$d/teacher" --layers 0,1 2,3
same "a student of all layers has the losses of its teacher" "$(measured "$d/all")" "$(measured "$d/teacher")"
same "a student of all layers has the logits of its teacher" "$("$nojit" eval --model "$d/all" --teacher "$d/teacher" --data "$d/text.txt" "${small[@]}" --json 2>"$scratch/err" |
    grep -oE '"(kd_max|agreement)": [^,}]+' | paste -sd' ')" '"kd_max": 0 "agreement": 1'
init half --like "$d/teacher" --layers 0,2
same "init --layers says what it took over" "$(cat "$scratch/out")" \
    "$d/half: qwen2, 0.5M parameters: 2 of 4 layers of $d/teacher, and its embeddings and final norm"
same "init --layers copies the generation settings" "$(cat "$d/half/generation_config.json")" '{"top_k": 7}'
sed -i 's/"eos_token_id": [0-9]*/"eos_token_id": [3, 5], "pad_token_id": 7/' "$d/teacher/config.json"
init few --like "$d/teacher" --layers 0,2
same "init --layers keeps what the configuration says" "$(tr -d ' \n' <"$d/few/config.json" | grep -oE '"(eos_token_id":\[3,5\]|pad_token_id":7|num_hidden_layers":2)' | sort | paste -sd' ')" \
    '"eos_token_id":[3,5] "num_hidden_layers":2 "pad_token_id":7'
if "$nojit" distill --teacher "$d/teacher" --student "$d/half" --data "$d/text.txt" "${small[@]}" --steps 2 --out "$d/run" \
    >"$scratch/out" 2>&1; then ok "a student of some layers trains"; else not_ok "a student of some layers trains" "$(tail -n 1 "$scratch/out")"; fi

# ---- experts
init mixture --preset nojit-tiny-qwen3-moe --seed 3
init all-experts --like "$d/mixture" --layers 0,1 --experts 8
same "a student of all experts has the losses of its teacher" "$(measured "$d/all-experts")" "$(measured "$d/mixture")"
init experts --like "$d/mixture" --layers 1 --experts 4
same "init --experts keeps the first ones" "$(grep -aoE 'experts\.[0-9]+\.up_proj' "$d/experts/model.safetensors" | sort -u | paste -sd' ')" \
    "experts.0.up_proj experts.1.up_proj experts.2.up_proj experts.3.up_proj"
if "$nojit" distill --teacher "$d/mixture" --student "$d/experts" --data "$d/text.txt" "${small[@]}" --steps 2 --out "$d/run-experts" \
    >"$scratch/out" 2>&1; then ok "a student of some experts trains"; else not_ok "a student of some experts trains" "$(tail -n 1 "$scratch/out")"; fi
init random-experts --preset nojit-tiny-qwen3-moe --experts 4
same "init makes as many experts as are given" "$(grep -c '"num_experts": 4' "$d/random-experts/config.json")" 1

# ---- shapes
init own --like "$d/teacher" --hidden-size 192 --intermediate-size 256 --num-layers 3 --heads 3 --kv-heads 3 --vocab-size 272
same "init takes the sizes that are given" "$(shape own)" \
    "head_dim=64 hidden_size=192 intermediate_size=256 num_attention_heads=3 num_hidden_layers=3 num_key_value_heads=3 vocab_size=272"
same "a model with a shape of its own is evaluated" "$(measured "$d/own" | grep -c ce_loss)" 1
init wide --preset nojit-tiny --hidden_size 128
same "init makes heads of the width that is given" "$(shape wide)" \
    "head_dim=128 hidden_size=128 intermediate_size=192 num_attention_heads=1 num_hidden_layers=2 num_key_value_heads=1 vocab_size=264"
init free --preset nojit-tiny --hidden-size 72 --head-dim 64
same "init keeps a head size that is given" "$(shape free)" \
    "head_dim=64 hidden_size=72 intermediate_size=192 num_attention_heads=1 num_hidden_layers=2 num_key_value_heads=1 vocab_size=264"
init large --preset nojit-tiny --hidden-size 64 --head-dim 256
same "init makes heads of 256" "$(shape large)" \
    "head_dim=256 hidden_size=64 intermediate_size=192 num_attention_heads=1 num_hidden_layers=2 num_key_value_heads=1 vocab_size=264"
same "a model with heads of 256 is evaluated" "$(measured "$d/large" | grep -c ce_loss)" 1
init untied --preset nojit-tiny --tie_word_embeddings False
same "init --tie_word_embeddings False writes an LM head" "$(grep -ac '"lm_head.weight"' "$d/untied/model.safetensors")" 1

# ---- what is refused
refused() { # NAME STATUS PATTERN ARGUMENT...
    refuses "$1" "$2" "$3" "$nojit" init --out "$d/out" "${@:4}"
    if [ -e "$d/out" ]; then not_ok "$1, and nothing is left" "$(ls "$d/out")"; fi
    rm -rf "$d/out"
}
like=(--like "$d/teacher")
refused "init --layers of a layer that is not there is refused" 2 '--layers 0,4: there is no layer 4; --like has layers 0 to 3' "${like[@]}" --layers 0,4
refused "init --layers of a layer below 0 is refused" 2 'there is no layer -1' "${like[@]}" --layers=-1
refused "init --layers of a layer twice is refused" 2 'layer 2 is named twice' "${like[@]}" --layers 2 0,2
refused "init --layers of no number is refused" 2 "'1-3' is not the number of a layer; .* as 0,2,4" "${like[@]}" --layers 0,1-3
refused "init --layers with an empty number is refused" 2 "'' is not the number of a layer" "${like[@]}" --layers 0,
refused "init --layers of a preset is refused" 2 '--layers needs --like' --preset nojit-tiny --layers 0
refused "init --layers with a shape is refused" 2 '--layers keeps weights, which --hidden-size would make random; leave one' "${like[@]}" --layers 0 --hidden-size 64
refused "init --layers with another LM head is refused" 2 'which --tie-embeddings would make random' "${like[@]}" --layers 0 --tie-embeddings false
refused "init --experts of a model without any is refused" 2 '--experts: no layer of --like has experts' "${like[@]}" --layers 0 --experts 4
refused "init --experts of a shape without any is refused" 2 '--experts: no layer of this model has experts' --preset nojit-tiny --experts 4
refused "init --experts beyond those of the model is refused" 2 '--experts 9: layers of --like have 8' --like "$d/mixture" --layers 0 --experts 9
refused "init --experts below those that a row takes is refused" 1 'num_experts_per_tok is 2; it must lie between 1 and num_experts 1' \
    --like "$d/mixture" --layers 0 --experts 1
refused "a width that heads do not divide is refused" 2 '^nojit init: hidden size 200 / 2 heads = 100; as head_dim, multiples of 8 up to 256 are supported: give' "${like[@]}" --hidden-size 200
refused "heads that key-value heads do not divide are refused" 2 '3 query heads are not a multiple of 2 key-value heads' "${like[@]}" --head-dim 64 --heads 3 --kv-heads 2
refused "a head size that is no multiple of 8 is refused" 2 '--head-dim 100: multiples of 8 up to 256 are supported' "${like[@]}" --head-dim 100
refused "a width that is no multiple of 8 is refused" 1 'the new model: .* both must be multiples of 8' "${like[@]}" --intermediate-size 100

if "${PYTHON:-python3}" -c 'import torch, transformers' 2>/dev/null; then
    folders=("$d/teacher" "$d/all" "$d/half" "$d/own" "$d/wide" "$d/free" "$d/untied" "$d/experts" "$d/run-experts")
    mapfile -t losses < <("${PYTHON:-python3}" tests/lib/clients.py loss "$d/text.txt" 32 "${folders[@]}" 2>"$scratch/err")
    for i in "${!folders[@]}"; do
        mine=$(measured "${folders[i]}" | grep -oE '"ce_loss": [^,]+' | cut -d' ' -f2)
        if awk -v a="$mine" -v b="${losses[i]:-}" 'BEGIN { exit !(a != "" && b != "" && a - b < 1e-4 && b - a < 1e-4) }'; then
            ok "transformers has our loss of the student ${folders[i]##*/}"
        else
            not_ok "transformers has our loss of the student ${folders[i]##*/}" "$mine here, ${losses[i]:-$(tail -n 1 "$scratch/err")} there"
        fi
    done
fi
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# chat_stops.sh: a student that has learned conversations ends its texts where the assistant's turns end: in its folder, its adapters and its GGUF file. What
# fails if this does: chats with a trained base model never end in transformers, vLLM or Ollama.
set -eu
. tests/lib/lib.sh
. tests/lib/chat_model.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1

turns_model "$d/new"
cat >"$d/chats.jsonl" <<'END'
{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "yes"}]}
{"messages": [{"role": "user", "content": "r"}, {"role": "assistant", "content": "no"}]}
END
echo '{"text": "a text"}' >"$d/texts.jsonl"
train() { "$nojit" train --seq-len 32 --batch-size 2 --lr 1e-2 --device cpu "$@" >"$d/err" 2>&1; }
ends() { tr -d ' \n' <"$1/generation_config.json" | grep -o '"eos_token_id":[^}]*\]'; }
line='the assistant.s turns end with <tool> (token 1263), which joins eos_token_id of the saved model'

train --student "$d/new" --data "$d/chats.jsonl" --steps 40 --save-every 30 --out "$d/run" --export q8_0
ok_if "a line says which token joins eos_token_id" "$(cat "$d/err")" grep -qx "$line" "$d/err"
ok_if "the token that ends turns joins eos_token_id of generation_config.json" "$(cat "$d/run/generation_config.json")" \
    test "$(ends "$d/run")" = '"eos_token_id":[1256,1263]'
ok_if "the token that ends turns joins eos_token_id of a checkpoint" "$(cat "$d/run/checkpoint-30/generation_config.json")" test "$(ends "$d/run/checkpoint-30")" = '"eos_token_id":[1256,1263]'
ok_if "other fields of generation_config.json stay" "$(cat "$d/run/generation_config.json")" grep -q '"do_sample": false' "$d/run/generation_config.json"
say() { "$nojit" generate --chat --prompt q --temperature 0 --max-tokens 20 --device cpu "$@" 2>/dev/null; }
ok_if "texts of the saved student end with the turn" "$(say --model "$d/run")" test "$(say --model "$d/run")" = yes
ok_if "the GGUF file of a run names the token that ends turns" "$d/run" grep -aq tokenizer.ggml.eot_token_id "$d/run/model-q8_0.gguf"
ok_if "texts of the GGUF file end with the turn" "$(say --model "$d/run/model-q8_0.gguf")" test "$(say --model "$d/run/model-q8_0.gguf")" = yes

train --student "$d/run" --data "$d/chats.jsonl" --steps 1 --out "$d/again"
ok_if "a student that stops there already keeps its file" "$(cat "$d/err" "$d/again/generation_config.json")" \
    cmp -s "$d/run/generation_config.json" "$d/again/generation_config.json"
ok_if "nothing is said of a student that stops there already" "$(cat "$d/err")" test "$(grep -c 'turns end' "$d/err")" = 0
train --student "$d/new" --data "$d/texts.jsonl" --packing bfd --steps 1 --out "$d/texts"
ok_if "texts teach no turns" "$(cat "$d/texts/generation_config.json")" cmp -s "$d/new/generation_config.json" "$d/texts/generation_config.json"

cp -r "$d/new" "$d/bare"
rm "$d/bare/generation_config.json"
train --student "$d/bare" --data "$d/chats.jsonl" --steps 1 --out "$d/made"
ok_if "a missing generation_config.json is made from config.json" "$(cat "$d/made/generation_config.json")" \
    test "$(ends "$d/made")" = '"eos_token_id":[1256,1263]'
train --student "$d/new" --data "$d/chats.jsonl" --steps 40 --lora-r 8 --lr 5e-2 --merge --out "$d/lora"
ok_if "adapters carry the token that ends turns, and give it to the merged model" "$(cat "$d/lora/generation_config.json" "$d/lora/merged/generation_config.json")" \
    test "$(ends "$d/lora") $(ends "$d/lora/merged")" = '"eos_token_id":[1256,1263] "eos_token_id":[1256,1263]'
echo '{"messages": [{"role": "user", "content": "q"}]}' >"$d/prompts.jsonl"
"$nojit" distill --student "$d/new" --teacher "$d/run" --prompts "$d/prompts.jsonl" --on-policy 1 --max-new 8 --batch-size 1 --seq-len 32 --steps 1 --device cpu \
    --out "$d/policy" >"$d/err" 2>&1
ok_if "conversations of --prompts teach the token that ends turns" "$(cat "$d/err" "$d/policy/generation_config.json")" test "$(ends "$d/policy")" = '"eos_token_id":[1256,1263]'

finish
